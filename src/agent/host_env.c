/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment: what is set here is for the commands of the same set of tools. This process's own
 * environment stays as it is: other threads read it, which no lock could protect, and what decides
 * about consent is in it.
 */
#include "agent/host.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strings.h"
#include "proc/env.h"

static bool is_protected(const char *name)
{
    static const char *const names[] = {
        "PATH",
        "PYTHONPATH",
        "STRANDS_HOME",
        "SHELL",
        "USER",
        "HOME",
        "BYPASS_TOOL_CONSENT",
        "STRANDS_NON_INTERACTIVE",
        "STRANDS_DISABLE_LOAD_TOOL",
        "ENV_VARS_MASKED_DEFAULT",
        "STRANDS_HTTP_ALLOW_INSECURE_SSL",
        "EDITOR_DISABLE_BACKUP",
    };

    for (size_t i = 0; i < PF_COUNT(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* Whether the value is not to be shown: the operator may say otherwise, an agent may not. */
static bool is_secret(const char *name, size_t len)
{
    static const char *const parts[] = { "TOKEN", "SECRET", "PASSWORD", "KEY", "AUTH" };
    const char *masked = getenv("ENV_VARS_MASKED_DEFAULT");

    if (masked && strcasecmp(masked, "false") == 0)
        return false;
    for (size_t i = 0; i < PF_COUNT(parts); i++)
        for (size_t at = 0; at + strlen(parts[i]) <= len; at++)
            if (strncasecmp(name + at, parts[i], strlen(parts[i])) == 0)
                return true;
    return false;
}

static bool is_name(const char *name)
{
    if (!name || !*name || isdigit((unsigned char)*name))
        return false;
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && *name != '_')
            return false;
    return true;
}

/* The environment that commands get. */
static char **merged_env(struct pf_host *host)
{
    char **merged;

    pthread_mutex_lock(&host->lock);
    merged = pf_env_merge((const char *const *const[]){ (const char *const *)environ,
                                                        (const char *const *)host->env },
                          2);
    for (size_t i = 0; merged && host->unset && host->unset[i]; i++)
        for (size_t j = 0, len = strlen(host->unset[i]); merged[j];) {
            if (strncmp(merged[j], host->unset[i], len) == 0 && merged[j][len] == '=') {
                free(merged[j]);
                memmove(merged + j, merged + j + 1,
                        (pf_strv_count((const char *const *)merged + j + 1) + 1) * sizeof(char *));
            } else {
                j++;
            }
        }
    pthread_mutex_unlock(&host->lock);
    return merged;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* One variable, or all of a prefix. */
static int show(struct pf_host *host, const char *name, const char *prefix,
                struct pinfold_tool_result *ret, struct pinfold_error *err)
{
    _cleanup_strv_ char **env = merged_env(host);
    struct pf_buf out = PF_BUF_INIT(PF_BUF_UNLIMITED);
    int r = env ? 0 : -PINFOLD_ENOMEM;

    if (env)
        qsort(env, pf_strv_count((const char *const *)env), sizeof(*env), compare);
    for (size_t i = 0; r == 0 && env[i]; i++) {
        size_t len = strcspn(env[i], "=");

        if (name ? strlen(name) != len || strncmp(env[i], name, len) != 0
                 : strncmp(env[i], prefix, strlen(prefix)) != 0)
            continue;
        r = pf_buf_printf(&out, "%.*s=%s\n", (int)len, env[i],
                          is_secret(env[i], len) ? "****"
                          : env[i][len]          ? env[i] + len + 1
                                                 : "");
    }
    if (r == 0 && out.len == 0)
        r = name ? pf_tool_result_fail(ret, "%s is not set.", name)
                 : pf_tool_result_fail(ret, "No variable begins with \"%s\".", prefix);
    else if (r == 0)
        r = pf_tool_result_text(ret, &out, err);
    pf_buf_done(&out);
    return r < 0 ? pf_fail_nomem(err) : 0;
}

/* Put an entry into a list, in place of what it had of this name. */
static int replace(char ***list, const char *name, const char *entry)
{
    char **old = *list, **fresh;
    size_t count = pf_strv_count((const char *const *)old), len = strlen(name), kept = 0;

    fresh = calloc(count + 2, sizeof(*fresh));
    if (!fresh)
        return -PINFOLD_ENOMEM;
    if (entry && !(fresh[kept++] = strdup(entry))) {
        free(fresh);
        return -PINFOLD_ENOMEM;
    }
    for (size_t i = 0; i < count; i++)
        if (strncmp(old[i], name, len) == 0 && (old[i][len] == '=' || !old[i][len]))
            free(old[i]);
        else
            fresh[kept++] = old[i];
    free(old);
    *list = fresh;
    return 0;
}

/* value NULL: delete. */
static int change(struct pf_host *host, const char *name, const char *value)
{
    _cleanup_free_ char *entry = NULL;
    int r;

    if (value && asprintf(&entry, "%s=%s", name, value) < 0) {
        entry = NULL;
        return -PINFOLD_ENOMEM;
    }
    pthread_mutex_lock(&host->lock);
    r = replace(&host->unset, name, value ? NULL : name);
    if (r == 0)
        r = replace(&host->env, name, entry);
    pthread_mutex_unlock(&host->lock);
    return r;
}

static int set(struct pf_host *host, const char *name, const char *value,
               struct pinfold_tool_result *ret)
{
    _cleanup_free_ char *question = NULL;
    int r;

    if (is_protected(name))
        return pf_tool_result_fail(ret, "%s is protected and cannot be changed.", name);
    r = value ? asprintf(&question, "Set the variable %s to \"%s\"?", name, value)
              : asprintf(&question, "Delete the variable %s?", name);
    if (r < 0) {
        question = NULL;
        return -PINFOLD_ENOMEM;
    }
    if (!pf_host_consent(
                host,
                &(struct pf_consent){ .tool = "environment", .question = question, .strip = true },
                ret))
        return 0;
    r = change(host, name, value);
    return r < 0 ? r
                 : pinfold_tool_result_add_text(ret, value ? "Set." : "Deleted.", value ? 4 : 8,
                                                NULL);
}

int pf_host_environment(void *host, struct pinfold_tool_call *call, struct pinfold_tool_result *ret,
                        struct pinfold_error *err)
{
    const char *action = pinfold_tool_call_string(call, "action", NULL);
    const char *name = pinfold_tool_call_string(call, "name", NULL);
    const char *prefix = pinfold_tool_call_string(call, "prefix", NULL);
    const char *value = pinfold_tool_call_string(call, "value", NULL);
    int r;

    if (strcmp(action, "list") == 0)
        return show(host, NULL, prefix ? prefix : "", ret, err);
    if (!is_name(name))
        r = pf_tool_result_fail(ret, "%s needs a name of letters, digits and '_'.", action);
    else if (strcmp(action, "get") == 0 || strcmp(action, "validate") == 0)
        return show(host, name, NULL, ret, err);
    else if (strcmp(action, "set") == 0 && !value)
        r = pf_tool_result_fail(ret, "set needs a value.");
    else
        r = set(host, name, strcmp(action, "set") == 0 ? value : NULL, ret);
    return r < 0 ? pf_fail_nomem(err) : 0;
}

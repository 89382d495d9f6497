/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: which source wins, and what a file may not say that nobody chose. */
#include "cli/policy.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"

static void free_values(char **values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(values[i]);
    free(values);
}

static int nomem(struct pinfold_error *err)
{
    *err = (struct pinfold_error){ .code = PINFOLD_ENOMEM, .msg = "read a policy: out of memory" };
    return -PINFOLD_ENOMEM;
}

/* ---- a file that nobody chose ---- */

/* A limit as a number. What is no number, the space that the disk can spare, is more than every
 * number, and less than no limit at all. */
static double amount(const char *text)
{
    static const char suffixes[] = "KMG";
    char *end;
    double number = strtod(text, &end);
    const char *suffix = *end ? strchr(suffixes, *end) : NULL;

    if (strcmp(text, "unlimited") == 0)
        return INFINITY;
    if (end == text)
        return DBL_MAX;
    return suffix ? number * pow(1024, (double)(suffix - suffixes + 1)) : number;
}

static bool has(const struct pf_setting *setting, const char *value)
{
    for (size_t i = 0; i < setting->count; i++)
        if (strcmp(setting->values[i], value) == 0)
            return true;
    return false;
}

/* The first of the values that opens more of the network than is open; NULL: none does. */
static const char *opens(const struct pf_setting *before, char **values, size_t count)
{
    bool open = has(before, "host");

    for (size_t i = 0; i < count && !open; i++)
        if (strcmp(values[i], "none") != 0 && !has(before, values[i]))
            return values[i];
    return NULL;
}

/* Whether a project's file may set a key to these values. Returns 0 or -PINFOLD_EVALUE. */
static int check_tightening(const struct pf_reading *reading, const struct pf_key *key,
                            const struct pf_setting *before, unsigned line, char **values,
                            size_t count, struct pinfold_error *err)
{
    const char *held = before->count ? before->values[0] : key->otherwise;
    const char *opened = NULL;

    switch (key->tightening) {
    case PF_MAY_ADD:
        return 0;
    case PF_MAY_LOWER:
        if (count == 1 && amount(values[0]) <= amount(held))
            return 0;
        return pf_policy_wrong(reading->file, line, err,
                               "%s: a file that lies in a project may only lower it, and it is %s; "
                               "--config names a file that you trust",
                               key->path, held);
    case PF_MAY_NARROW:
        opened = opens(before, values, count);
        if (!opened)
            return 0;
        return pf_policy_wrong(reading->file, line, err,
                               "%s: a file that lies in a project may not open it, as %.60s does; "
                               "--config names a file that you trust",
                               key->path, opened);
    case PF_MAY_NOT:
        break;
    }
    return pf_policy_wrong(reading->file, line, err,
                           "%s: a file that lies in a project may not set it, only tighten limits, "
                           "network and excludes; --config names a file that you trust",
                           key->path);
}

/* ---- settings ---- */

static int set(const struct pf_reading *reading, struct pf_setting *setting, unsigned line,
               char **values, size_t count, struct pinfold_error *err)
{
    char *file = reading->file ? strdup(reading->file) : NULL;

    if (reading->file && !file) {
        free_values(values, count);
        return nomem(err);
    }
    free(setting->file);
    free_values(setting->values, setting->count);
    *setting = (struct pf_setting){
        .source = reading->source, .file = file, .line = line, .values = values, .count = count
    };
    return 0;
}

/* Put values behind those that there are: what is left out adds up. */
static int join(struct pf_setting *setting, char ***values, size_t *count,
                struct pinfold_error *err)
{
    char **all = calloc(setting->count + *count + 1, sizeof(*all));

    if (!all)
        return nomem(err);
    for (size_t i = 0; i < setting->count; i++)
        all[i] = setting->values[i];
    for (size_t i = 0; i < *count; i++)
        all[setting->count + i] = (*values)[i];
    free(setting->values);
    free(*values);
    *values = all;
    *count += setting->count;
    setting->values = NULL;
    setting->count = 0;
    return 0;
}

/* A value that no sandbox takes. */
static int refuse(const struct pf_reading *reading, const struct pf_key *key, unsigned line,
                  const char *why, struct pinfold_error *err)
{
    if (reading->file)
        return pf_policy_wrong(reading->file, line, err, "%s: %s", key->path, why);
    *err = (struct pinfold_error){ .code = PINFOLD_EVALUE };
    snprintf(err->msg, sizeof(err->msg), "%s--%s: %.200s",
             reading->source == PF_FROM_ENVIRONMENT ? "the variable for " : "", key->option, why);
    return -PINFOLD_EVALUE;
}

int pf_policy_put(const struct pf_reading *reading, int key, unsigned line, char **values,
                  size_t count, struct pinfold_error *err)
{
    struct pf_setting *setting = &reading->policy->settings[key];
    const struct pf_key *what = &pf_keys[key];
    bool project = reading->source == PF_FROM_PROJECT;
    /* What may not be said at all is told so, however wrong it is besides. */
    bool check = !project || what->tightening != PF_MAY_NOT;
    /* The seed is meant by true, and by an option without a value; a variable has no such form. */
    bool bare = what->form == PF_SYNC && count == 1 && !*values[0] &&
                reading->source != PF_FROM_ENVIRONMENT;
    struct pinfold_error wrong = PINFOLD_ERROR_INIT;
    int r = 0;

    for (size_t i = 0; check && i < count && r == 0 && !bare; i++)
        r = pf_options_check_value(what->option, values[i], &wrong);
    if (r == -PINFOLD_ENOMEM)
        *err = wrong;
    else if (r < 0)
        r = refuse(reading, what, line, wrong.msg, err);
    else if (project)
        r = check_tightening(reading, what, setting, line, values, count, err);
    if (r == 0 && what->tightening == PF_MAY_ADD)
        r = join(setting, &values, &count, err);
    if (r < 0) {
        free_values(values, count);
        return r;
    }
    return set(reading, setting, line, values, count, err);
}

void pf_policy_done(struct pf_policy *policy)
{
    for (size_t i = 0; policy->settings && i < pf_key_count; i++) {
        free(policy->settings[i].file);
        free_values(policy->settings[i].values, policy->settings[i].count);
    }
    free(policy->settings);
    for (size_t i = 0; i < policy->file_count; i++)
        free(policy->files[i].path);
    *policy = (struct pf_policy){ 0 };
}

/* ---- words ---- */

/* Whether a setting counts for this command: it takes the option, nothing stronger has been given,
 * and it is not for another backend. What is left out adds up. */
static bool counts(const struct pf_policy *policy, size_t i,
                   bool (*given)(const void *ctx, const char *option), const void *ctx,
                   bool (*takes)(const void *ctx, const char *option))
{
    const struct pf_key *key = &pf_keys[i];
    const struct pf_setting *backend = &policy->settings[pf_key_of_path("backend")];

    if (policy->settings[i].source == PF_FROM_DEFAULT || !takes(ctx, key->option))
        return false;
    if (key->backend && (!backend->count || strcmp(backend->values[0], key->backend) != 0))
        return false;
    return key->tightening == PF_MAY_ADD || strcmp(key->option, "env") == 0 ||
           !given(ctx, key->option);
}

/* The policy itself neither goes in nor comes home: what is inside must not write the next one. */
static const char keep_out[] = "--exclude=pinfold.toml";

char **pf_policy_words(const struct pf_policy *policy, int argc, char **argv,
                       bool (*given)(const void *ctx, const char *option), const void *ctx,
                       bool (*takes)(const void *ctx, const char *option))
{
    size_t count = (size_t)argc + 2, bytes = 0, next = 0;
    char **words;
    char *text, *end;

    bytes += sizeof(keep_out);
    for (size_t i = 0; i < pf_key_count; i++) {
        const struct pf_setting *setting = &policy->settings[i];
        if (!counts(policy, i, given, ctx, takes))
            continue;
        count += setting->count;
        for (size_t j = 0; j < setting->count; j++)
            bytes += strlen(pf_keys[i].option) + strlen(setting->values[j]) + sizeof("--=");
    }
    words = malloc(count * sizeof(*words) + bytes);
    if (!words)
        return NULL;
    text = (char *)(words + count);
    end = text + bytes;
    words[next++] = argv[0];
    if (takes(ctx, "exclude")) {
        words[next++] = memcpy(text, keep_out, sizeof(keep_out));
        text += sizeof(keep_out);
    }
    for (size_t i = 0; i < pf_key_count; i++) {
        const struct pf_setting *setting = &policy->settings[i];
        for (size_t j = 0; counts(policy, i, given, ctx, takes) && j < setting->count; j++) {
            words[next++] = text;
            text += 1 + snprintf(text, (size_t)(end - text),
                                 *setting->values[j] ? "--%s=%s" : "--%s", pf_keys[i].option,
                                 setting->values[j]);
        }
    }
    for (int i = 1; i < argc; i++)
        words[next++] = argv[i];
    words[next] = NULL;
    return words;
}

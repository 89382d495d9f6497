/* SPDX-License-Identifier: Apache-2.0 */
/* The part of 'pinfold config' that reads policies, and the policy in front of options. */
#include "cli/config_check.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/box.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/policy.h"
#include "cli/say.h"

/* ---- before the options ---- */

struct taker {
    const struct pf_options *options;
    const struct pf_command *command;
};

static bool given(const void *ctx, const char *option)
{
    return pf_options_given(((const struct taker *)ctx)->options, option);
}

/* What a policy says of output is not for a terminal, which passes all on, and what it says of the
 * end not for an agent that only reads: neither would have been said for this run. */
static bool takes(const void *ctx, const char *option)
{
    const struct taker *taker = ctx;

    if (taker->options->tty && strcmp(option, "max-output") == 0)
        return false;
    if (taker->options->agent.read_only && strcmp(option, "sync") == 0)
        return false;
    return pf_options_takes(taker->command, option);
}

/* Which settings count hangs on the backend, and of that an option has the last word. */
static int put_backend(struct pf_policy *policy, const struct pf_options *options,
                       struct pinfold_error *err)
{
    const struct pf_reading reading = { .policy = policy, .source = PF_FROM_OPTION };
    const char *name = options->isolated    ? "isolated"
                       : options->agentcore ? "agentcore"
                       : options->daytona   ? "daytona"
                                            : "local";
    char **values = calloc(1, sizeof(*values));

    if (values)
        values[0] = strdup(name);
    if (!values || !values[0]) {
        free(values);
        *err = (struct pinfold_error){ .code = PINFOLD_ENOMEM, .msg = "out of memory" };
        return -PINFOLD_ENOMEM;
    }
    return pf_policy_put(&reading, pf_key_of_path("backend"), 0, values, 1, err);
}

char **pf_apply_policy(const struct pf_command *command, const struct pf_options *options, int argc,
                       char **argv)
{
    struct taker taker = { options, command };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pf_policy policy;
    char **words = NULL;
    int r = pf_policy_load(options->config, false, &policy, &err);

    if (r == 0 && pf_options_given(options, "backend"))
        r = put_backend(&policy, options, &err);
    if (r < 0) {
        pf_say("%s", err.msg);
    } else {
        words = pf_policy_words(&policy, argc, argv, given, &taker, takes);
        if (!words)
            pf_say("out of memory");
    }
    pf_policy_done(&policy);
    return words;
}

/* ---- what does not go together ---- */

/* Say what is wrong in words for whom has said it. Returns false when the policy has not. */
static bool tell_clash(const struct pf_policy *policy, const struct pf_clash *clash,
                       struct pinfold_error *err)
{
    int key = pf_key_of_option(clash->option);
    const struct pf_setting *setting = key < 0 ? NULL : &policy->settings[key];

    *err = (struct pinfold_error){ .code = PINFOLD_EVALUE };
    if (setting && setting->file)
        pf_policy_wrong(setting->file, setting->line, err, "%s: %s", pf_keys[key].path,
                        clash->setting);
    else if (setting && setting->source == PF_FROM_ENVIRONMENT)
        snprintf(err->msg, sizeof(err->msg), "the variable for --%s: %.200s", clash->option,
                 clash->setting);
    else
        snprintf(err->msg, sizeof(err->msg), "%.230s", clash->words);
    return setting && (setting->file || setting->source == PF_FROM_ENVIRONMENT);
}

bool pf_policy_blame(const char *config, const struct pf_clash *clash, struct pinfold_error *err)
{
    struct pf_policy policy;
    bool told = pf_policy_load(config, false, &policy, err) == 0 && tell_clash(&policy, clash, err);

    pf_policy_done(&policy);
    return told;
}

/* Whether a server could start with the policy and the options, as far as these alone tell: it
 * looks for the same. */
static int check_together(const struct pf_command *command, const struct pf_policy *policy,
                          const struct pf_options *options, int argc, char **argv,
                          struct pinfold_error *err)
{
    struct taker taker = { options, command };
    char **words = pf_policy_words(policy, argc, argv, given, &taker, takes);
    struct pf_options whole;
    struct pf_clash clash;
    int count = 0, status, r = 0;

    *err = (struct pinfold_error){ .code = PINFOLD_ENOMEM, .msg = "out of memory" };
    while (words && words[count])
        count++;
    if (!words || !pf_options_parse(command, count, words, &whole, &status)) {
        free(words);
        return -PINFOLD_ENOMEM; /* each word has been looked at before */
    }
    if (pf_find_server_clash(command, &whole, argc, argv, &clash)) {
        tell_clash(policy, &clash, err);
        r = -PINFOLD_EVALUE;
    } else {
        r = pf_box_check(&whole, err);
    }
    pf_options_done(&whole);
    free(words);
    return r;
}

/* ---- the options as settings ---- */

struct collector {
    struct pf_policy *policy;
    struct pinfold_error *err;
};

/* One option that was given. Of one that is a list the next value comes behind the last. */
static int collect(void *ctx, const char *option, const char *value)
{
    struct collector *collector = ctx;
    struct pf_reading reading = { .policy = collector->policy, .source = PF_FROM_OPTION };
    int key = pf_key_of_option(option);
    struct pf_setting *setting = key < 0 ? NULL : &collector->policy->settings[key];
    bool is_list = key >= 0 && (pf_keys[key].form == PF_LIST || pf_keys[key].form == PF_PATHS ||
                                pf_keys[key].form == PF_NETWORK);
    size_t before = setting && is_list && setting->source == PF_FROM_OPTION &&
                                    pf_keys[key].tightening != PF_MAY_ADD
                            ? setting->count
                            : 0;
    char **values;

    if (key < 0)
        return 0;
    values = calloc(before + 1, sizeof(*values));
    for (size_t i = 0; values && i < before; i++)
        values[i] = strdup(setting->values[i]);
    if (values)
        values[before] = strdup(value ? value : "");
    if (!values || !values[before]) {
        free(values);
        *collector->err = (struct pinfold_error){ .code = PINFOLD_ENOMEM, .msg = "out of memory" };
        return -PINFOLD_ENOMEM;
    }
    return pf_policy_put(&reading, key, 0, values, before + 1, collector->err);
}

/* ---- the answer ---- */

/* Whether a setting is for another backend than the one that holds. */
static bool is_idle(const struct pf_policy *policy, size_t i)
{
    const struct pf_setting *backend = &policy->settings[pf_key_of_path("backend")];
    const char *name = backend->count ? backend->values[0] : "isolated";

    return pf_keys[i].backend && strcmp(pf_keys[i].backend, name) != 0;
}

static void show_value(const struct pf_setting *setting, const char *otherwise)
{
    if (setting->source == PF_FROM_DEFAULT)
        fputs(otherwise, stdout);
    else if (!setting->count)
        fputs("(nothing)", stdout);
    for (size_t i = 0; setting->source != PF_FROM_DEFAULT && i < setting->count; i++) {
        char *text = pf_printable(*setting->values[i] ? setting->values[i] : "back to the seed");
        printf("%s%s", i ? ", " : "", text ? text : "(out of memory)");
        free(text);
    }
}

static void show_source(const struct pf_setting *setting)
{
    char *file = setting->file ? pf_printable(setting->file) : NULL;

    if (file)
        printf("%s:%u", file, setting->line);
    else
        fputs(pf_source_word(setting->source), stdout);
    free(file);
}

static void show(const struct pf_policy *policy)
{
    if (policy->file_count > 0 && policy->files[0].source == PF_FROM_PROJECT)
        puts("user     none: HOME is not set to a directory");
    for (size_t i = 0; i < policy->file_count; i++) {
        const struct pf_policy_file *file = &policy->files[i];
        char *path = pf_printable(file->path);
        printf("%-8s %s%s\n", pf_source_word(file->source), path ? path : "(out of memory)",
               !file->found                      ? ": not there"
               : file->source == PF_FROM_PROJECT ? ": it may only tighten"
                                                 : "");
        free(path);
    }
    putchar('\n');
    for (size_t i = 0; i < pf_key_count; i++) {
        const struct pf_setting *setting = &policy->settings[i];
        if (is_idle(policy, i) && setting->source == PF_FROM_DEFAULT)
            continue;
        printf("%-24s ", pf_keys[i].path);
        show_value(setting, pf_keys[i].otherwise);
        fputs("  # ", stdout);
        show_source(setting);
        puts(is_idle(policy, i) ? ", of another backend" : "");
    }
}

static json_t *setting_json(const struct pf_policy *policy, size_t i)
{
    const struct pf_setting *setting = &policy->settings[i];
    json_t *object = json_object();
    json_t *values = json_array();
    int bad = 0;

    for (size_t j = 0; j < setting->count; j++)
        bad |= json_array_append_new(values, pf_json_name(setting->values[j]));
    bad |= pf_json_set(object, "values", values);
    bad |= pf_json_set(object, "source", json_string(pf_source_word(setting->source)));
    if (setting->source == PF_FROM_DEFAULT)
        bad |= pf_json_set(object, "default", json_string(pf_keys[i].otherwise));
    if (setting->file) {
        bad |= pf_json_set(object, "file", pf_json_name(setting->file));
        bad |= pf_json_set(object, "line", json_integer(setting->line));
    }
    bad |= pf_json_set(object, "in_force", json_boolean(!is_idle(policy, i)));
    return pf_json_complete(object, bad);
}

/* Returns as pf_json_print(). */
static int print_json(const struct pf_policy *policy, const struct pinfold_error *err)
{
    json_t *object = json_object();
    json_t *settings = json_object();
    json_t *files = json_array();
    int bad = 0;

    for (size_t i = 0; i < policy->file_count; i++) {
        json_t *file = json_object();
        bad |= pf_json_set(file, "path", pf_json_name(policy->files[i].path));
        bad |= pf_json_set(file, "source", json_string(pf_source_word(policy->files[i].source)));
        bad |= pf_json_set(file, "found", json_boolean(policy->files[i].found));
        bad |= json_array_append_new(files, file);
    }
    for (size_t i = 0; i < pf_key_count; i++)
        bad |= pf_json_set(settings, pf_keys[i].path, setting_json(policy, i));
    bad |= pf_json_set(object, "files", files);
    bad |= pf_json_set(object, "settings", settings);
    if (err)
        bad |= pf_json_set(object, "error", pf_json_error(err));
    object = pf_json_complete(object, bad);
    if (object)
        return pf_json_print(object);
    pf_say("print the policy: out of memory");
    return PF_EXIT_FAILED;
}

int pf_config_check(const struct pf_command *command, const struct pf_options *options, int argc,
                    char **argv)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pf_policy policy;
    struct collector collector = { &policy, &err };
    int r = pf_policy_load(options->config, false, &policy, &err);
    int status = 0, printed = 0;

    if (r == 0)
        r = pf_options_each(command, argc, argv, collect, &collector);
    if (r == 0)
        r = check_together(command, &policy, options, argc, argv, &err);
    if (r < 0) {
        status = err.code == PINFOLD_EVALUE ? 1 : PF_EXIT_FAILED;
        pf_say("%s", err.msg);
    }
    if (options->json)
        printed = print_json(&policy, r < 0 ? &err : NULL);
    else if (r == 0)
        show(&policy);
    pf_policy_done(&policy);
    return printed ? printed : status;
}

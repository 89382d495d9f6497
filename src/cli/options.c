/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/box.h"
#include "cli/extras.h"
#include "cli/flags.h"
#include "cli/say.h"

bool pf_options_remote(const struct pf_options *options)
{
    return options->agentcore || options->daytona;
}

int pf_usage_error(const struct pf_command *command, const char *format, ...)
{
    char line[512];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    pf_say("%s: %s; see 'pinfold help %s'", command->name, line, command->name);
    return PF_EXIT_FAILED;
}

/* The command's own flag of this name, or NULL. */
static const struct pf_flag *own_flag(const struct pf_command *command, const char *name)
{
    for (const struct pf_flag *flag = command->flags; flag && flag->name; flag++)
        if (strcmp(flag->name, name) == 0)
            return flag;
    return NULL;
}

/* Whether a command takes one of the flags of all: its own ones stand before those. */
static bool takes(const struct pf_command *command, const struct pf_flag *flag)
{
    return flag->commands & command->bit && !own_flag(command, flag->name);
}

static void show_option(const struct pf_flag *flag)
{
    char left[40];
    int len = snprintf(left, sizeof(left), "%s%s%s", flag->name,
                       flag->argument && flag->argument[0] != '[' ? " " : "",
                       flag->argument ? flag->argument : "");

    if (flag->letter && flag->value != PF_VALUE_OF_HELP)
        snprintf(left + len, sizeof(left) - (size_t)len, ", -%c", flag->letter);
    printf("  --%-20s %s\n", left, flag->help);
}

static void show_options(const struct pf_command *command)
{
    for (const struct pf_flag *flag = command->flags; flag && flag->name; flag++)
        show_option(flag);
    for (const struct pf_flag *flag = pf_flags; flag < pf_flags + pf_flag_count; flag++)
        if (takes(command, flag))
            show_option(flag);
}

int pf_command_show(const struct pf_command *command)
{
    printf("usage: pinfold %s%s%s\n%s\n\noptions:\n", command->name, *command->usage ? " " : "",
           command->usage, command->summary);
    show_options(command);
    if (command->help)
        printf("\n%s\n", command->help);
    return 0;
}

/* One allocation for all lists: none can be longer than argv. */
static bool make_lists(struct pf_options *options, int argc)
{
    const char ***const lists[] = {
        &options->exclude,    &options->include, &options->env,
        &options->ro,         &options->rw,      &options->net_allow,
        &options->http_hosts, &options->tokens,  &options->resolved,
    };
    const size_t count = sizeof(lists) / sizeof(lists[0]), each = (size_t)argc + 1;
    const char **all = calloc(count * each, sizeof(*all));

    for (size_t i = 0; i < count && all; i++)
        *lists[i] = all + i * each;
    return all != NULL;
}

/* What getopt answers for a flag: its place in flags, or in the command's own, above every
 * character, so that letters stay what they are. */
enum { FIRST_FLAG = 256, FIRST_OWN = 512 };

static struct option long_option(const struct pf_flag *flag, int answer)
{
    return (struct option){
        .name = flag->name,
        .has_arg = !flag->argument            ? no_argument
                   : flag->argument[0] == '[' ? optional_argument
                                              : required_argument,
        .val = answer,
    };
}

/* Fill getopt's table from ours. */
static void fill_long_options(const struct pf_command *command, struct option *ret_options)
{
    for (int i = 0; i < PF_OWN_FLAGS_MAX && command->flags && command->flags[i].name; i++)
        *ret_options++ = long_option(&command->flags[i], FIRST_OWN + i);
    for (size_t i = 0; i < pf_flag_count; i++)
        if (takes(command, &pf_flags[i]))
            *ret_options++ = long_option(&pf_flags[i], FIRST_FLAG + (int)i);
    *ret_options = (struct option){ 0 };
}

/* The flag that getopt's answer stands for. */
static const struct pf_flag *flag_of(const struct pf_command *command, int answer)
{
    if (answer >= FIRST_OWN)
        return &command->flags[answer - FIRST_OWN];
    if (answer >= FIRST_FLAG)
        return &pf_flags[answer - FIRST_FLAG];
    for (const struct pf_flag *flag = pf_flags; flag < pf_flags + pf_flag_count; flag++) {
        if (flag->letter == answer && (flag->commands & command->bit))
            return flag;
    }
    return NULL;
}

static const struct pf_flag *find_flag(const char *name)
{
    for (const struct pf_flag *flag = pf_flags; flag < pf_flags + pf_flag_count; flag++)
        if (strcmp(flag->name, name) == 0)
            return flag;
    return NULL;
}

/* What an option means by being there, whatever its value. */
static void note_given(struct pf_options *options, const struct pf_flag *flag)
{
    const struct pf_flag *common = find_flag(flag->name);

    if (flag->commands & PF_ISOLATED_ALONE && !options->isolated_alone)
        options->isolated_alone = flag->name;
    if (flag->commands & PF_AGENTCORE_ALONE && !options->agentcore_alone)
        options->agentcore_alone = flag->name;
    if (flag->commands & PF_DAYTONA_ALONE && !options->daytona_alone)
        options->daytona_alone = flag->name;
    if (flag->commands & PF_NEEDS_EXTRAS)
        options->takes_extras = true;
    /* A command's own flag means the same as the one of all that has its name. */
    if (common)
        options->given[common - pf_flags] = true;
}

/* Answer one option. Returns false when parsing ends, with *ret_status set. */
static bool take(const struct pf_command *command, struct pf_options *options, int answer,
                 const char *written, int *ret_status)
{
    const struct pf_flag *flag = flag_of(command, answer);
    const char *wrong;

    if (answer == ':') {
        *ret_status = pf_usage_error(command, "%s: a value is missing", written);
        return false;
    }
    if (!flag) {
        /* For an option that takes no value and was given one getopt tells which it is. */
        *ret_status = pf_usage_error(command, "%s: %s", written,
                                     optopt >= FIRST_FLAG ? "takes no value" : "no such option");
        return false;
    }
    if (flag->value == PF_VALUE_OF_HELP) {
        *ret_status = pf_command_show(command);
        return false;
    }
    note_given(options, flag);
    wrong = pf_flag_take(flag, options, optarg);
    if (wrong) {
        /* An address may have a password in it, which nothing of ours repeats. */
        *ret_status = pf_usage_error(command, "--%s %s: %s", flag->name,
                                     strchr(optarg, '@') ? "(with an @)" : optarg, wrong);
        return false;
    }
    return true;
}

/* What pf_options_parse() does with the words alone. */
static bool parse_words(const struct pf_command *command, int argc, char **argv,
                        struct pf_options *ret_options, int *ret_status)
{
    struct option long_options[PF_OWN_FLAGS_MAX + PF_FLAGS_MAX + 1];
    struct pf_options options = { .isolated = true };

    if (!make_lists(&options, argc)) {
        pf_say("out of memory");
        *ret_status = PF_EXIT_FAILED;
        return false;
    }
    fill_long_options(command, long_options);
    opterr = 0;
    optind = 0; /* from the start, however often that is */
    for (;;) {
        /* "+": what follows the first other word belongs to the command that is run. */
        int here = optind ? optind : 1;
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread yet. */
        int answer = getopt_long(argc, argv, "+:qht", long_options, NULL);
        if (answer == -1)
            break;
        if (!take(command, &options, answer, argv[here], ret_status)) {
            pf_options_done(&options);
            return false;
        }
    }
    options.command = argv + optind;
    pf_say_set_quiet(options.quiet);
    *ret_options = options;
    return true;
}

/* Parse again, with the words of the policy before those that were given. */
static bool parse_with_policy(const struct pf_command *command, int argc, char **argv,
                              struct pf_options *options, int *ret_status)
{
    char **words = pf_mcp_extras->words(command, options, argc, argv);
    int count = 0;

    pf_options_done(options);
    *ret_status = PF_EXIT_FAILED;
    if (!words)
        return false;
    while (words[count])
        count++;
    if (!parse_words(command, count, words, options, ret_status)) {
        free(words);
        return false;
    }
    options->words = words;
    return true;
}

bool pf_options_parse(const struct pf_command *command, int argc, char **argv,
                      struct pf_options *ret_options, int *ret_status)
{
    if (!parse_words(command, argc, argv, ret_options, ret_status))
        return false;
    /* Servers have a policy in any case. 'config' looks at it, and does not use it. */
    if (!pf_mcp_extras || command->bit & PF_FOR_CONFIG ||
        (!ret_options->config && !(command->bit & PF_FOR_MCP)))
        return true;
    return parse_with_policy(command, argc, argv, ret_options, ret_status);
}

bool pf_options_given(const struct pf_options *options, const char *name)
{
    const struct pf_flag *flag = find_flag(name);

    return flag && options->given[flag - pf_flags];
}

bool pf_options_takes(const struct pf_command *command, const char *name)
{
    const struct pf_flag *flag = find_flag(name);

    return flag && flag->commands & command->bit;
}

int pf_options_check_value(const char *name, const char *value, struct pinfold_error *err)
{
    const struct pf_flag *flag = find_flag(name);
    struct pf_options options = { .isolated = true };
    const char *wrong = "out of memory";
    int r = -PINFOLD_ENOMEM;

    if (make_lists(&options, 1)) {
        wrong = flag ? pf_flag_take(flag, &options, value) : "no such option";
        r = wrong ? -PINFOLD_EVALUE : pf_box_check(&options, err);
    }
    if (wrong) {
        err->code = -r;
        snprintf(err->msg, sizeof(err->msg), "%s", wrong);
    }
    pf_options_done(&options);
    return r;
}

int pf_options_each(const struct pf_command *command, int argc, char **argv,
                    int (*fn)(void *ctx, const char *name, const char *value), void *ctx)
{
    struct option long_options[PF_OWN_FLAGS_MAX + PF_FLAGS_MAX + 1];
    int answer, r = 0;

    fill_long_options(command, long_options);
    optind = 0;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread yet. */
    while (r == 0 && (answer = getopt_long(argc, argv, "+:qht", long_options, NULL)) != -1) {
        const struct pf_flag *flag = flag_of(command, answer);
        if (flag)
            r = fn(ctx, flag->name, optarg);
    }
    return r;
}

void pf_options_done(struct pf_options *options)
{
    for (size_t i = 0; options->resolved && options->resolved[i]; i++)
        free((void *)(uintptr_t)options->resolved[i]);
    free(options->exclude);
    free(options->words);
    *options = (struct pf_options){ 0 };
}

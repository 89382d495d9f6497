/* SPDX-License-Identifier: Apache-2.0 */
/* pinfold plan: what a seed or a sync would copy, and why not the rest. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <pinfold/pinfold.h>

#include "cli/box.h"
#include "cli/clash.h"
#include "cli/extras.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/say.h"

/* Print a plan. Returns whether nothing in it is an error. */
static bool show(const char *verb, const struct pinfold_plan *plan)
{
    bool good = true;
    char size[32];

    for (size_t i = 0; i < plan->count; i++) {
        const struct pinfold_plan_entry *entry = &plan->items[i];
        char *path = pf_printable(entry->path);
        bool copies = entry->action <= PINFOLD_PLAN_OVERWRITE;
        printf("%-9s  %8s  %s%s%s\n", pf_plan_word(entry->action),
               copies && entry->size ? pf_format_size((uint64_t)entry->size, size) : "",
               path ? path : "(out of memory)", *entry->reason ? "  # " : "", entry->reason);
        good = good && path && entry->action != PINFOLD_PLAN_ERROR;
        free(path);
    }
    printf("would %s %llu files (%s)\n", verb, (unsigned long long)plan->files,
           pf_format_size(plan->bytes, size));
    return good;
}

/* The dry run of a seed needs no workspace: it goes as if that were empty. */
static int plan_seed(struct pf_box *box, const struct pf_options *options,
                     struct pinfold_plan *ret_plan, struct pinfold_cancel *cancel,
                     struct pinfold_error *err)
{
    int r = pf_box_open(box, options, options->workspace ? options->workspace : "/nonexistent",
                        err);

    return r < 0 ? r : pinfold_sandbox_plan_seed(box->sandbox, ret_plan, cancel, err);
}

/* The dry run of a flush reads a workspace that is there. Starting would seed it, or make it. */
static int plan_sync(struct pf_box *box, const struct pf_options *options,
                     struct pinfold_plan *ret_plan, struct pinfold_cancel *cancel,
                     struct pinfold_error *err)
{
    struct pf_options unseeded = *options;
    int r;

    unseeded.seed = NULL;
    if (!unseeded.sync)
        unseeded.sync = options->seed;
    r = pf_box_open(box, &unseeded, options->workspace, err);
    if (r == 0)
        r = pinfold_sandbox_start(box->sandbox, NULL, cancel, err);
    return r < 0 ? r : pinfold_sandbox_plan_flush(box->sandbox, NULL, ret_plan, cancel, err);
}

/* Make the plan and print it. Returns the exit status. */
static int plan_and_show(const struct pf_options *options)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_cancel *cancel = NULL;
    struct pinfold_plan plan = { 0 };
    struct pf_box box = { 0 };
    int status = 0;
    int r = pf_interrupt_catch(&cancel, &err);

    if (r == 0)
        r = options->wants_sync ? plan_sync(&box, options, &plan, cancel, &err)
                                : plan_seed(&box, options, &plan, cancel, &err);
    if (r < 0) {
        status = pf_interrupt_signal() ? PF_EXIT_SIGNAL + pf_interrupt_signal() : PF_EXIT_FAILED;
        pf_say("%s", err.msg);
    } else if (options->json) {
        json_t *report = json_object();
        pf_json_set(report, options->wants_sync ? "sync" : "seed", pf_json_plan(&plan));
        status = pf_json_print(report);
    } else if (!show(options->wants_sync ? "sync" : "seed", &plan)) {
        status = PF_EXIT_FAILED;
    }
    pinfold_plan_done(&plan);
    pf_box_close(&box, NULL);
    pinfold_cancel_free(cancel);
    return status;
}

/* Whether a sync is planned, and not a seed. One that a policy has is of the end of runs: of it
 * there is a plan where a workspace is named that was kept, and else of the seed. */
static int note_sync(void *ctx, const char *name, const char *value)
{
    bool *said = ctx;

    (void)value;
    *said |= strcmp(name, "sync") == 0;
    return 0;
}

static void choose(const struct pf_command *command, struct pf_options *options, int argc,
                   char **argv)
{
    bool said = false;

    if (!options->words || options->workspace)
        return;
    pf_options_each(command, argc, argv, note_sync, &said);
    if (said)
        return;
    options->wants_sync = false;
    options->sync = NULL;
}

/* Whether there is anything to plan. Complains when there is not, with the exit status. */
static bool check(const struct pf_command *command, const struct pf_options *options, int argc,
                  char **argv, int *ret_status)
{
    struct pf_clash clash;
    struct stat st;

    if (options->command[0])
        *ret_status = pf_usage_error(command, "%s: takes no command", options->command[0]);
    else if (!options->wants_sync && !options->seed)
        *ret_status =
                pf_usage_error(command, "nothing to plan: give --seed, or --workspace and --sync");
    else if (options->wants_sync && pf_options_remote(options))
        *ret_status = pf_usage_error(command,
                                     "--sync from --backend %s: a workspace there ends with its "
                                     "run, so that there is nothing to look at",
                                     options->daytona ? "daytona" : "agentcore");
    else if (options->wants_sync && !options->workspace)
        *ret_status =
                pf_usage_error(command, "--sync needs --workspace: a workspace that was kept");
    else if (pf_find_clash(options, &clash))
        *ret_status = pf_clash_error(command, options, argc, argv, &clash);
    else if (options->wants_sync && stat(options->workspace, &st) < 0) {
        pf_say("open the workspace %s: %s", options->workspace, pf_error_words(errno));
        *ret_status = PF_EXIT_FAILED;
    } else
        return true;
    return false;
}

static int run_plan(const struct pf_command *command, int argc, char **argv)
{
    struct pf_options options;
    int status;

    if (!pf_options_parse(command, argc, argv, &options, &status))
        return status;
    if (options.config && pf_hand_over(PF_MCP, argv - 1, &status)) {
        pf_options_done(&options);
        return status;
    }
    choose(command, &options, argc, argv);
    if (check(command, &options, argc, argv, &status)) {
        /* Nothing runs: files are looked at, which takes no jail. */
        options.isolated = options.agentcore = options.daytona = false;
        status = plan_and_show(&options);
    }
    pf_options_done(&options);
    return status;
}

const struct pf_command pf_command_plan = {
    .name = "plan",
    .usage = "--seed DIR [OPTION]... | --workspace DIR --sync[=DIR] [OPTION]...",
    .summary = "list what a seed or a sync would copy, and change nothing",
    .help = "One line for each path: copy, overwrite, identical, skip or error; what is skipped\n"
            "says why behind a #. Options mean what they mean for 'pinfold run'.\n"
            "\n"
            "The exit status is 0, or 125 when something in the plan is an error, unless --json\n"
            "tells it, and when pinfold itself failed.",
    .bit = PF_FOR_PLAN,
    .run = run_plan,
};

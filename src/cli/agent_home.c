/* SPDX-License-Identifier: Apache-2.0 */
/* The end of an agent's run: what it has changed, the question, and the way home. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <pinfold/changes.h>

#include "cli/agent_out.h"
#include "cli/agent_run.h"
#include "cli/interrupt.h"
#include "cli/say.h"

/* ---- what was changed ---- */

static int on_diff(void *ctx, const char *text, size_t len)
{
    struct pf_agent_run *run = ctx;

    pf_agent_told(run, run->teller->diff(run->teller, text, len));
    return run->broken || pf_interrupt_signal();
}

static int show(struct pf_agent_run *run, struct pinfold_changes *changes,
                struct pinfold_error *err)
{
    struct pinfold_changes_options what = PINFOLD_CHANGES_OPTIONS_INIT;
    int r;

    what.on_diff = on_diff;
    what.on_diff_ctx = run;
    what.keep = true; /* what is shown, and nothing else, may be written */
    r = pinfold_sandbox_changes(run->box.sandbox, &what, changes, run->cancel, err);
    if (r < 0)
        return r;
    pf_agent_told(run, run->teller->changes(run->teller, changes));
    for (size_t i = 0; i < changes->errors.count && i < 20; i++)
        pf_say("could not be looked at: %s", changes->errors.items[i]);
    return 0;
}

/* What a flush is to leave alone. */
struct left_out {
    const char **paths; /* NULL-terminated; borrowed strings */
    size_t count;
    bool unknown; /* there may be more of them */
};

/* Links and modes, which no flush brings: to be told so is an error neither of it nor of ours. */
static bool stays(const struct pinfold_change *change)
{
    return !change->syncs && change->kind != PINFOLD_CHANGE_DELETED;
}

/* Returns false when out of memory. */
static bool find_left_out(const struct pf_agent_run *run, const struct pinfold_changes *changes,
                          struct left_out *ret)
{
    const struct pinfold_strings *newer = &changes->seed_changes, *unknown = &changes->unknown;
    bool undoes = !run->options->sync; /* what goes elsewhere undoes nothing */

    ret->paths = calloc(changes->count + newer->count + unknown->count + 1, sizeof(*ret->paths));
    if (!ret->paths)
        return false;
    for (size_t i = 0; i < changes->count; i++)
        if (stays(&changes->items[i]) ||
            (undoes && changes->items[i].syncs && changes->items[i].seed_changed))
            ret->paths[ret->count++] = changes->items[i].path;
    if (!undoes)
        return true;
    /* What somebody has changed here since the copy was made, a flush would undo. Of an overlay it
     * takes the agent's changes alone. */
    for (size_t i = 0; i < newer->count && !run->overlay; i++)
        ret->paths[ret->count++] = newer->items[i];
    ret->unknown = unknown->count >= PINFOLD_CHANGES_LIST_MAX ||
                   (!run->overlay && newer->count >= PINFOLD_CHANGES_LIST_MAX);
    for (size_t i = 0; i < unknown->count; i++) {
        ret->unknown |= strcmp(unknown->items[i], ".") == 0;
        ret->paths[ret->count++] = unknown->items[i];
    }
    return true;
}

/* How many of the changes are written back, apart from those that collide. */
static size_t count_syncs(const struct pf_agent_run *run, const struct pinfold_changes *changes)
{
    size_t count = 0;

    for (size_t i = 0; i < changes->count; i++)
        count += changes->items[i].syncs && (run->options->sync || !changes->items[i].seed_changed);
    return count;
}

/* ---- the question ---- */

static bool can_ask(const struct pf_options *options)
{
    return !options->json && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

/* Read a line of an answer; false when nobody answers. */
static bool read_answer(char *answer, size_t size)
{
    size_t len = 0;

    for (;;) {
        char byte;
        ssize_t n = read(STDIN_FILENO, &byte, 1);

        if (pf_interrupt_signal() || n == 0 || (n < 0 && errno != EINTR))
            return false;
        if (n < 0)
            continue;
        if (byte == '\n')
            break;
        if (len + 1 < size)
            answer[len++] = byte;
    }
    answer[len] = '\0';
    return true;
}

/* How many files would be written that nobody has seen, since the diff lacks them. */
static size_t count_unseen(const struct pinfold_changes *changes)
{
    size_t count = 0;

    for (size_t i = 0; i < changes->count; i++)
        count += changes->items[i].syncs && changes->items[i].shown != PINFOLD_SHOWN_TEXT;
    return count;
}

static bool ask(const struct pf_agent_run *run, const struct pinfold_changes *changes)
{
    const char *home = run->options->sync ? run->options->sync : run->options->seed;
    char path[PATH_MAX], answer[8], unseen[48] = "", *clean, *question = NULL;
    const char *shown = realpath(home, path) ? path : home;
    bool yes = false;

    if (count_unseen(changes))
        snprintf(unseen, sizeof(unseen), ", %zu of them not shown,", count_unseen(changes));
    clean = pf_clean(shown, strlen(shown), PF_KEEP_NONE, 0);
    if (clean &&
        asprintf(&question, "Write %s%s to %s? [y/N] ",
                 run->signal ? "what was changed so far" : "these changes", unseen, clean) >= 0) {
        /* What was typed before the question was there is no answer to it. */
        tcflush(STDIN_FILENO, TCIFLUSH);
        yes = pf_put_or_stop(STDERR_FILENO, question, strlen(question)) == 0 &&
              read_answer(answer, sizeof(answer)) &&
              (strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0);
        free(question);
    }
    if (pf_interrupt_signal())
        pf_put(STDERR_FILENO, "\n", 1);
    free(clean);
    return yes;
}

/* A patch that lacks something must not look like a whole one. Returns the exit status. */
static int check_patch(const struct pinfold_changes *changes)
{
    size_t missing = changes->errors.count;

    for (size_t i = 0; i < changes->count; i++)
        missing += changes->items[i].shown != PINFOLD_SHOWN_TEXT;
    if (!missing)
        return 0;
    pf_say("the diff is not whole: %zu files are binary, too large, or could not be read", missing);
    return PF_EXIT_NOT_WRITTEN;
}

/* Whether to write back. *ret_status says why not. */
static bool is_wanted(struct pf_agent_run *run, const struct pinfold_changes *changes,
                      int *ret_status)
{
    const struct pf_options *options = run->options;
    bool patch = options->agent.diff && !options->agent.yes;

    *ret_status = patch ? check_patch(changes) : 0;
    if (!options->wants_sync || patch)
        return false;
    if (options->agent.yes && !run->signal)
        return true;
    *ret_status = PF_EXIT_NOT_WRITTEN;
    if (can_ask(options)) {
        if (ask(run, changes))
            return true;
        pf_note("nothing was written back");
    } else if (run->signal) {
        pf_say("nothing was written back, since the agent was stopped");
    } else {
        pf_say("nothing was written back: there is no terminal to ask at; --yes writes without "
               "asking, --no-sync and --diff only show");
    }
    if (pf_interrupt_signal())
        *ret_status = PF_EXIT_SIGNAL + pf_interrupt_signal();
    return false;
}

/* ---- the way home ---- */

static int flush(struct pf_agent_run *run, const struct pinfold_changes *changes,
                 const struct left_out *left_out)
{
    __attribute__((cleanup(pinfold_sync_result_done))) struct pinfold_sync_result sync = { 0 };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    int r, status = 0;

    pf_progress_begin(&run->box.progress, "writing back", !run->options->quiet);
    r = pinfold_sandbox_flush_changes(run->box.sandbox, NULL, changes, left_out->paths, &sync,
                                      run->cancel, &err);
    pf_progress_end(&run->box.progress);
    if (r < 0) {
        status = pf_agent_failed(run, &err);
    } else if (sync.errors.count) {
        pf_say("%zu paths could not be written back", sync.errors.count);
        status = PF_EXIT_FAILED;
    }
    pf_say_list(&sync.errors);
    run->written = status == 0;
    pf_agent_told(run, run->teller->sync(run->teller, &sync));
    return status;
}

/* Both have changed these; which is right a program cannot know. */
static void say_left(const struct pinfold_changes *changes)
{
    pf_say("you have changed these meanwhile, and so has the agent; they were left as they are "
           "here:");
    for (size_t i = 0; i < changes->count; i++)
        if (changes->items[i].syncs && changes->items[i].seed_changed)
            pf_say("  %s", changes->items[i].path);
}

/* Returns the exit status. *lost: the agent's side of something is nowhere else. */
static int say_stays(const struct pinfold_changes *changes, bool *lost)
{
    size_t count = 0;

    for (size_t i = 0; i < changes->count; i++) {
        count += !changes->items[i].syncs;
        *lost |= stays(&changes->items[i]);
    }
    if (!count)
        return 0;
    pf_say("%zu of the changes were not written back: deletions, links and modes never are; "
           "--diff has them",
           count);
    return PF_EXIT_NOT_WRITTEN;
}

/* The same, of what may be newer here than what the agent was given. */
static int say_unknown(const struct pf_agent_run *run, const struct pinfold_changes *changes,
                       bool *lost)
{
    const struct pinfold_strings *unknown = &changes->unknown;

    if (run->options->sync || !unknown->count)
        return 0;
    *lost = true;
    pf_say("it cannot be told whether these have changed here; they were left as they are here:");
    pf_say_list(unknown);
    return PF_EXIT_NOT_WRITTEN;
}

static int write_back(struct pf_agent_run *run, const struct pinfold_changes *changes)
{
    struct left_out left_out = { 0 };
    size_t syncs = count_syncs(run, changes);
    int status = PF_EXIT_NOT_WRITTEN;
    bool both = false, lost = true;

    for (size_t i = 0; i < changes->count && !run->options->sync; i++)
        both |= changes->items[i].syncs && changes->items[i].seed_changed;
    if (!find_left_out(run, changes, &left_out)) {
        pf_say("write back: out of memory");
        status = PF_EXIT_FAILED;
    } else if (left_out.unknown) {
        pf_say("nothing was written back: more than %d files were changed here meanwhile, or it "
               "cannot be told which",
               PINFOLD_CHANGES_LIST_MAX);
    } else if (syncs || changes->errors.count) { /* what could not be looked at may be new, too */
        status = flush(run, changes, &left_out);
        lost = status != 0;
        status = pf_agent_worse(status, say_stays(changes, &lost));
        status = pf_agent_worse(status, say_unknown(run, changes, &lost));
    } else {
        pf_note("nothing of that is written back");
    }
    if (both)
        say_left(changes);
    if (lost || both)
        pf_box_keep(&run->box, run->options, run->overlay);
    free(left_out.paths);
    return both ? pf_agent_worse(status, PF_EXIT_NOT_WRITTEN) : status;
}

/* The agent has worked: unless somebody has said no, it is not for nothing. */
static int end_early(struct pf_agent_run *run, bool keep, const struct pinfold_error *err)
{
    int status = run->broken ? pf_agent_broken(run) : pf_agent_failed(run, err);

    if (keep)
        pf_box_keep(&run->box, run->options, run->overlay);
    return status;
}

/* Somebody may have worked here until the answer came, and that is not to be undone either. What
 * the agent did is as it was shown: nothing of it runs any more. */
static int look_again(struct pf_agent_run *run, struct pinfold_changes *changes,
                      struct pinfold_error *err)
{
    struct pinfold_changes_options what = PINFOLD_CHANGES_OPTIONS_INIT;
    struct pinfold_changes now;
    int r;

    what.keep = true;
    what.again = changes;
    r = pinfold_sandbox_changes(run->box.sandbox, &what, &now, run->cancel, err);
    if (r < 0)
        return r;
    pinfold_changes_done(changes);
    *changes = now;
    return 0;
}

static int finish(struct pf_agent_run *run, struct pinfold_changes *changes)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    bool asks = !run->options->agent.yes || run->signal;
    int status;

    /* First of all: what was left in the background could change what is being looked at. */
    if (pinfold_sandbox_stop_commands(run->box.sandbox, &err) < 0 || show(run, changes, &err) < 0 ||
        run->broken)
        return end_early(run, !pf_interrupt_signal(), &err);
    if (!changes->count && !changes->errors.count) {
        pf_note("the agent has changed nothing");
        return 0;
    }
    if (!is_wanted(run, changes, &status))
        return status;
    if (asks && look_again(run, changes, &err) < 0)
        return end_early(run, true, &err); /* they said yes */
    return write_back(run, changes);
}

int pf_agent_home(struct pf_agent_run *run)
{
    struct pinfold_changes changes = { 0 };
    int status;

    if (run->signal && run->signal != SIGINT) {
        pf_say("the agent was stopped; nothing was written back");
        return 0; /* the signal is the status */
    }
    status = finish(run, &changes);
    pinfold_changes_done(&changes);
    return status;
}

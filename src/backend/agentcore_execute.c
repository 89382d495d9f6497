/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of the workspace's user. */
#include "backend/agentcore.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "backend/agentcore_tree.h"
#include "backend/remote_output.h"
#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "proc/capture.h"
#include "proc/command.h"
#include "tree/data.h"
#include "tree/place.h"

#define WORD_MAX ((size_t)100000)        /* bytes of a command that is one word */
#define FETCH_MAX ((uint64_t)1024 << 20) /* bytes of one stream that are fetched */
#define SCRIPT_MAX ((size_t)64 << 20)
enum { REFUSED_STATUS = 125 };

static int add_words(struct pf_buf *script, const char *const *words)
{
    int r = 0;

    for (size_t i = 0; r == 0 && words && words[i]; i++) {
        r = pf_buf_append(script, " ", 1);
        if (r == 0)
            r = pf_buf_append_word(script, words[i]);
    }
    return r;
}

/* Enter the directory, or say why not. The wrapper runs this twice, the first time with "check" and
 * no further: so what a command prints cannot be taken for a reason. */
static int add_entry(struct pf_buf *script, const struct pf_ac_box *box, const char *cwd)
{
    static const char enter[] =
            "; x() { case \"$1/\" in \"$R\"/*) ;; *) f 'Invalid cross-device link';; esac; }; "
            "cd \"$R\" 2>/dev/null || f 'No such file or directory'; "
            "cd \"$C\" 2>/dev/null || { x \"$(readlink -m -- \"$C\")\"; "
            "[ -e \"$C\" ] || f 'No such file or directory'; "
            "[ -d \"$C\" ] || f 'Not a directory'; f 'Permission denied'; }; "
            "x \"$(pwd -P)\"; [ \"$1\" != check ] || exit 0; S=; ";
    /* Out of the terminal's session, so that nothing can ask whoever sits at one. A task stays
     * where stopTask looks for what it kills. */
    static const char leave[] = "command -v setsid >/dev/null && S=setsid; ";
    int r = pf_buf_printf(script, "f() { echo \"cd: $1\" >&2; exit %d; }; R='%s'; C=./",
                          REFUSED_STATUS, box->root);

    if (r == 0)
        r = pf_buf_append_word(script, cwd);
    return r < 0 ? r
                 : pf_buf_printf(script, "%s%sexec $S env -u OLDPWD", enter,
                                 box->tasks ? "" : leave);
}

/* ret_id receives what the command is kept under, "" when it is in the script. */
static int add_command(struct pf_ac_box *box, const struct pf_run_request *request,
                       struct pf_buf *script, char ret_id[static PF_AC_ID_MAX],
                       struct pinfold_error *err)
{
    _cleanup_free_ char *command = NULL;
    size_t len = request->command_len;
    int r;

    if (request->argv) {
        r = pf_buf_append_text(script, pf_remote_run_anyway(request->argv[0]));
        if (r == 0)
            r = add_words(script, request->argv);
        return r < 0 ? pf_fail_nomem(err) : 0;
    }
    if (len > WORD_MAX) {
        r = len > PF_AC_PART
                    ? pf_fail(err, PINFOLD_EVALUE, "the command is too long: %zu bytes", len)
                    : pf_ac_put_bytes(box, request->command, len, ret_id, request->cancel, err);
        if (r < 0)
            return r;
        r = pf_buf_printf(script, " /bin/sh -c '. %s/" PF_AC_SCRATCH "/%s.0000' sh", box->home,
                          ret_id);
        return r < 0 ? pf_fail_nomem(err) : 0;
    }
    command = strndup(request->command, len);
    r = command ? pf_buf_append_text(script, " /bin/sh -c -- ") : -PINFOLD_ENOMEM;
    if (r == 0)
        r = pf_buf_append_word(script, command);
    if (r == 0)
        r = pf_buf_append_text(script, " sh"); /* its $0, as everywhere else */
    return r < 0 ? pf_fail_nomem(err) : 0;
}

/* ---- what came ---- */

static int fail_entry(const struct pf_ac_output *output, const char *cwd, struct pinfold_error *err)
{
    const struct pf_buf *text = output->merged ? &output->out : &output->errs;

    if (!output->refused)
        return 0;
    return pf_fail_at(err, pf_remote_errno_of(text->data), "enter directory", cwd);
}

/* All of a stream of which only the start came with the command. */
static int fetch_stream(struct pf_ac_box *box, const struct pf_ac_output *output, char name,
                        struct pinfold_cancel *cancel, int *ret_fd, struct pinfold_error *err)
{
    char script[160];

    snprintf(script, sizeof(script), "head -c %llu %s/%c", (unsigned long long)FETCH_MAX,
             output->kept, name);
    *ret_fd = pf_remote_unnamed(err);
    return *ret_fd < 0 ? *ret_fd : pf_ac_fetch(box, script, FETCH_MAX, *ret_fd, cancel, err);
}

static void discard_kept(struct pf_ac_box *box, const struct pf_ac_output *output)
{
    struct pf_ac_output ignored;
    char script[160];

    if (!output->kept[0])
        return;
    snprintf(script, sizeof(script), "rm -rf %s", output->kept);
    if (pf_ac_run(box, script, strlen(script), 1024, false, NULL, &ignored, NULL, NULL) == 0)
        pf_ac_output_done(&ignored);
}

enum { NOTES_MAX = 300 };

static void note(const struct pf_run_request *request, const struct pf_ac_output *output,
                 char notes[static NOTES_MAX])
{
    static const char merged[] =
            "stdout and stderr came as one stream, with the line ends of a terminal: there was no "
            "room for files in /tmp, or no base64";
    size_t len = 0;

    notes[0] = '\0';
    if (output->merged) {
        len = (size_t)snprintf(notes, NOTES_MAX, "[%s]\n", merged);
        /* Who takes the streams as they come does not look at notes. */
        pf_log(PINFOLD_LOG_WARNING, "AgentCore: %s", merged);
    }
    if (output->timed_out)
        snprintf(notes + len, NOTES_MAX - len, "[timed out after %g s%s]\n",
                 (double)request->timeout_ns / (double)PF_NS_PER_SEC,
                 output->runs_on ? ", and could not be stopped: it may run on" : "");
    else if (output->cancelled || output->stopped)
        snprintf(notes + len, NOTES_MAX - len, "[%s%s%s]\n", output->runs_on ? "" : "killed: ",
                 output->cancelled ? "the call was cancelled" : "the sandbox was stopped",
                 output->runs_on ? "; the command could not be stopped: it may run on" : "");
}

static int compose(struct pf_ac_box *box, const struct pf_run_request *request,
                   const struct pf_ac_output *output, struct pinfold_execute_result *ret,
                   struct pinfold_error *err)
{
    PF_CLEANUP(pf_capture_done) struct pf_capture capture;
    const struct pf_buf *texts[] = { &output->out, &output->errs };
    const uint64_t sizes[] = { output->out_size, output->err_size };
    char notes[NOTES_MAX];
    int r = 0;

    pf_capture_init(&capture, request);
    for (int i = 0; r == 0 && i < 2; i++) {
        int fd = -1;
        if (output->kept[0] && sizes[i] > texts[i]->len && !output->cancelled)
            r = fetch_stream(box, output, "oe"[i], request -> cancel, &fd, err);
        if (r < 0 && fd >= 0)
            close(fd);
        if (r == 0)
            r = pf_remote_give(&capture, i, texts[i], fd, err);
    }
    if (r < 0)
        return r;
    for (int i = 0; i < 2; i++) {
        struct pf_stream *stream = &capture.streams[i];
        stream->full = stream->full || sizes[i] > stream->raw_bytes;
        stream->raw_bytes = sizes[i];
    }
    note(request, output, notes);
    return pf_capture_finish(&capture, notes, ret, err);
}

/* Nobody waits any more for the call that began the command, or runs it, and no other call ends
 * that. What it said is lost. */
static int given_up(const struct pf_run_request *request, struct pinfold_execute_result *ret,
                    struct pinfold_error *err)
{
    PF_CLEANUP(pf_capture_done) struct pf_capture capture;
    bool cancelled = pinfold_cancel_fired(request->cancel);
    const struct pf_ac_output output = { .cancelled = cancelled,
                                         .stopped = !cancelled,
                                         .runs_on = true };
    char notes[NOTES_MAX];
    int r;

    pf_capture_init(&capture, request);
    ret->exit_code = 137;
    note(request, &output, notes);
    r = pf_capture_finish(&capture, notes, ret, cancelled ? NULL : err);
    return cancelled ? pf_cancel_check(request->cancel, err) : r;
}

static int run(struct pf_ac_box *box, const struct pf_run_request *request,
               const struct pf_buf *script, const char *cwd, struct pinfold_execute_result *ret,
               struct pinfold_error *err)
{
    bool all = request->on_output || request->spool_limit > 0 || request->keep_tail ||
               request->output_limit > PF_AC_INLINE;
    const struct pf_ac_job job = { .script = script->data,
                                   .len = script->len,
                                   .limit = PF_AC_INLINE,
                                   .keep = all,
                                   .checks = true,
                                   .stop = box->stop,
                                   .timeout_ns = request->timeout_ns };
    struct pf_ac_output output;
    int r = box->tasks ? pf_ac_run_task(box, &job, &output, request->cancel, err)
                       : pf_ac_run_job(box, &job, &output, request->cancel, err);

    if (r == -PINFOLD_ECANCELLED)
        return given_up(request, ret, err);
    if (r < 0)
        return r;
    ret->exit_code = output.status;
    ret->timed_out = output.timed_out;
    if (output.timed_out) {
        ret->limit = PINFOLD_LIMIT_TIME;
        ret->limits_hit = 1U << PINFOLD_LIMIT_TIME;
    }
    r = fail_entry(&output, cwd, err);
    if (r == 0)
        r = compose(box, request, &output, ret, err);
    discard_kept(box, &output);
    pf_ac_output_done(&output);
    return r == 0 && output.cancelled ? pf_cancel_check(request->cancel, err) : r;
}

static int refuse_stopped(struct pf_ac_box *box, struct pinfold_error *err)
{
    bool stopped;

    pthread_mutex_lock(&box->lock);
    stopped = box->stopped;
    pthread_mutex_unlock(&box->lock);
    return stopped ? pf_fail(err, PINFOLD_ESTART, "AgentCore: the workspace is stopping") : 0;
}

/* The service knows no time for a single call; of tasks we keep it ourselves. */
static int64_t timeout_of(const struct pf_ac_box *box, double seconds)
{
    if (!(seconds > 0))
        seconds = box->timeout_seconds;
    if (!box->tasks || !(seconds > 0) || seconds > 1e9)
        return PF_NEVER;
    return (int64_t)(seconds * (double)PF_NS_PER_SEC);
}

int pf_ac_execute(void *state, const struct pinfold_execute_options *options,
                  struct pinfold_execute_result *ret_result, struct pinfold_cancel *cancel,
                  struct pinfold_error *err)
{
    struct pf_ac_box *box = state;
    PF_CLEANUP(pf_buf_done) struct pf_buf script = PF_BUF_INIT(SCRIPT_MAX);
    struct pf_run_request request = pf_command_request(options, box->max_output_bytes, cancel);
    const char *cwd = options->cwd ? options->cwd : ".";
    const char *nothing = pf_command_nothing(&request);
    char id[PF_AC_ID_MAX] = "";
    int64_t start = pf_clock_now();
    int r = pf_remote_check(options, (const char *const *)box->env, err);

    if (r == 0)
        r = refuse_stopped(box, err);
    if (r == 0 && !box->session)
        r = pf_fail(err, PINFOLD_ESTART, "AgentCore: no session: the sandbox is not started");
    if (r < 0)
        return r;
    if (nothing)
        return pf_command_answer_nothing(nothing, ret_result, err); /* costs no call */
    request.timeout_ns = timeout_of(box, options->timeout_seconds);
    if (request.timeout_ns != PF_NEVER)
        ret_result->holders[PINFOLD_LIMIT_TIME] = PINFOLD_HOLDER_OWNER;
    if (add_entry(&script, box, cwd) < 0 || add_words(&script, (const char *const *)box->env) < 0 ||
        add_words(&script, options->env) < 0)
        return pf_fail_nomem(err);
    r = add_command(box, &request, &script, id, err);
    if (r == 0)
        r = run(box, &request, &script, cwd, ret_result, err);
    if (id[0])
        pf_ac_forget(box, id);
    ret_result->duration_ns = pf_clock_now() - start;
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running scripts in a session. The service runs commands on a terminal, which merges the streams
 * and changes line ends. So a wrapper has both streams go to files, and then prints them in base64
 * between marks, which a terminal leaves as they are: agentcore_frame.c.
 */
#include "backend/agentcore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/utf8.h"

#define WRAPPED_MAX ((size_t)200 << 20)
#define TEXT_MAX ((size_t)512 << 20)

void pf_ac_output_done(struct pf_ac_output *output)
{
    pf_buf_done(&output->out);
    pf_buf_done(&output->errs);
}

/* ---- calls ---- */

/* Wait for a turn. Cancellation counts at the next turn that becomes free, or within a second. */
static int begin_call(struct pf_ac_box *box, struct pinfold_cancel *cancel,
                      struct pinfold_error *err)
{
    int r = pf_cancel_check(cancel, err);

    pthread_mutex_lock(&box->lock);
    while (r == 0 && box->in_flight >= PF_AC_IN_FLIGHT) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec++;
        pthread_cond_timedwait(&box->fewer, &box->lock, &until);
        r = pf_cancel_check(cancel, err);
    }
    if (r == 0 && !box->session)
        r = pf_fail(err, PINFOLD_ESTART, "AgentCore: no session: the sandbox is not started");
    if (r == 0)
        box->in_flight++;
    pthread_mutex_unlock(&box->lock);
    return r;
}

static void end_call(struct pf_ac_box *box, bool gone)
{
    pthread_mutex_lock(&box->lock);
    box->in_flight--;
    box->lost = box->lost || gone;
    pthread_cond_signal(&box->fewer);
    pthread_mutex_unlock(&box->lock);
}

static int fail_lost(const struct pf_ac_box *box, struct pinfold_error *err)
{
    int status = err ? err->http_status : 0;
    bool late = pf_clock_now() >= box->ends;

    pf_fail(err, PINFOLD_EBACKEND,
            "AgentCore: session %s has ended%s: its files and processes are lost, start another",
            PF_QUOTE(box->session),
            late ? ", its time is up (session_timeout_seconds)" : " before its time");
    if (err)
        err->http_status = status;
    return -PINFOLD_EBACKEND;
}

int pf_ac_invoke(struct pf_ac_box *box, const char *tool, json_t *arguments,
                 struct pinfold_cancel *stop, struct pf_agentcore_result *ret,
                 struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    return pf_ac_invoke_within(box, tool, arguments, PF_AGENTCORE_CALL_NS, stop, ret, cancel, err);
}

int pf_ac_invoke_within(struct pf_ac_box *box, const char *tool, json_t *arguments, int64_t ns,
                        struct pinfold_cancel *stop, struct pf_agentcore_result *ret,
                        struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    bool gone = false;
    struct pf_agentcore_call call = {
        .deadline = pf_clock_deadline(ns),
        .cancel = cancel,
        .also_cancel = stop,
        .session_gone = &gone,
    };
    int r = begin_call(box, cancel, err);

    if (r < 0)
        return r;
    r = pf_agentcore_invoke(box->client, box->session, tool, arguments, &call, ret, err);
    end_call(box, gone);
    if (gone)
        return fail_lost(box, err);
    if (r == 0 && ret->events == 0) {
        pf_agentcore_result_done(ret);
        r = pf_fail(err, PINFOLD_EBACKEND, "AgentCore %s: the service sent no result", tool);
    }
    return r;
}

/* ---- the wrapper ---- */

/* Whether text can be typed into a terminal: no control characters, and not too much of it. */
static bool can_be_typed(const char *text, size_t len)
{
    if (len > PF_AC_COMMAND_MAX || !pf_utf8_valid(text, len, NULL))
        return false;
    for (size_t i = 0; i < len; i++)
        if (((unsigned char)text[i] < 0x20 && text[i] != '\n') || text[i] == 0x7f)
            return false;
    return true;
}

/* Everything that a result says, wherever the service put it. */
static int join_result(const struct pf_agentcore_result *result, struct pf_buf *text)
{
    int r;

    if (!result->has_output)
        return pf_agentcore_result_text(result, text);
    r = pf_buf_append(text, result->out.data ? result->out.data : "", result->out.len);
    if (r == 0)
        r = pf_buf_append(text, "\n", 1);
    return r < 0 ? r
                 : pf_buf_append(text, result->errs.data ? result->errs.data : "",
                                 result->errs.len);
}

int pf_ac_understand(const struct pf_agentcore_result *result, const char *mark, size_t limit,
                     struct pf_ac_output *ret, struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(TEXT_MAX);
    int r = join_result(result, &text);

    /* A NUL would hide what follows it; none of ours is one. */
    for (size_t i = 0; r == 0 && i < text.len; i++)
        if (text.data[i] == '\0')
            text.data[i] = '?';
    if (r == 0)
        r = pf_ac_frame_read(text.data, mark, limit, ret);
    if (r == -PINFOLD_ENOMEM)
        return pf_fail_nomem(err);
    if (r < 0)
        return pf_fail(err, PINFOLD_EBACKEND,
                       "AgentCore executeCommand: what came back is not whole (%zu bytes): \"%s\"",
                       text.len, PF_QUOTE(text.data ? text.data : ""));
    return 0;
}

/* The wrapper ends as the command did, which the service tells by a way of its own. */
static int check_status(const struct pf_agentcore_result *result, const struct pf_ac_output *output,
                        struct pinfold_error *err)
{
    if (!result->has_exit_code || result->exit_code == output->status)
        return 0;
    return pf_fail(err, PINFOLD_EBACKEND,
                   "AgentCore executeCommand: it ended with status %d and its output says %d",
                   result->exit_code, output->status);
}

static int call_wrapper(struct pf_ac_box *box, const char *text, const struct pf_ac_wrapper *w,
                        struct pinfold_cancel *stop, struct pf_ac_output *ret,
                        struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    json_auto_t *arguments = json_pack("{s:s}", "command", text);
    struct pf_agentcore_result result = { 0 };
    int r;

    if (!arguments)
        return pf_fail_nomem(err);
    r = pf_ac_invoke(box, "executeCommand", arguments, stop, &result, cancel, err);
    if (r == 0)
        r = pf_ac_understand(&result, w->mark, w->limit, ret, err);
    if (r == 0)
        r = check_status(&result, ret, err);
    if (r == 0)
        pf_ac_note_kept(w, ret);
    pf_agentcore_result_done(&result);
    return r;
}

void pf_ac_note_kept(const struct pf_ac_wrapper *w, struct pf_ac_output *output)
{
    if (w->keep && !output->merged && (output->out_size > w->limit || output->err_size > w->limit))
        snprintf(output->kept, sizeof(output->kept), "/tmp/pinfold-%s", w->mark);
}

int pf_ac_prepare(struct pf_ac_box *box, const struct pf_ac_job *job, struct pf_ac_wrapper *w,
                  struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf run = PF_BUF_INIT(WRAPPED_MAX);
    char id[PF_AC_ID_MAX] = "";
    int r = 0;

    *w = (struct pf_ac_wrapper){ .limit = job->limit, .keep = job->keep, .checks = job->checks };
    pf_random_hex(w->mark, PF_AC_MARK_DIGITS);
    snprintf(w->forget, sizeof(w->forget), "true");
    if (job->len > PF_AC_PART)
        return pf_fail(err, PINFOLD_EVALUE, "the command is too long: %zu bytes", job->len);
    if (can_be_typed(job->script, job->len)) {
        r = pf_buf_append_text(&run, "/bin/sh -c ");
        if (r == 0)
            r = pf_buf_append_word(&run, job->script);
        if (r == 0)
            r = pf_buf_append_text(&run, " sh");
    }
    if (r == 0 && (run.len == 0 || run.len > PF_AC_COMMAND_MAX)) {
        r = pf_ac_put_bytes(box, job->script, job->len, id, cancel, err);
        if (r < 0)
            return r;
        run.len = 0;
        r = pf_buf_printf(&run, "/bin/sh %s/" PF_AC_SCRATCH "/%s.0000", box->home, id);
        snprintf(w->forget, sizeof(w->forget), "rm -f %s/" PF_AC_SCRATCH "/%s.0000", box->home, id);
    }
    w->run = r == 0 ? strdup(run.data) : NULL;
    return w->run ? 0 : pf_fail_nomem(err);
}

void pf_ac_wrapper_done(struct pf_ac_wrapper *w)
{
    free(TAKE(w->run));
}

int pf_ac_run_job(struct pf_ac_box *box, const struct pf_ac_job *job, struct pf_ac_output *ret,
                  struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_ac_wrapper_done) struct pf_ac_wrapper wrapper = { .run = NULL };
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(WRAPPED_MAX);
    int r;

    *ret = (struct pf_ac_output){ .out = PF_BUF_INIT(0), .errs = PF_BUF_INIT(0) };
    r = pf_ac_prepare(box, job, &wrapper, cancel, err);
    if (r == 0 && pf_ac_wrapper(&text, &wrapper) < 0)
        r = pf_fail_nomem(err);
    if (r == 0)
        r = call_wrapper(box, text.data, &wrapper, job->stop, ret, cancel, err);
    if (r < 0)
        pf_ac_output_done(ret);
    return r;
}

int pf_ac_run(struct pf_ac_box *box, const char *script, size_t len, size_t limit, bool keep,
              struct pinfold_cancel *stop, struct pf_ac_output *ret, struct pinfold_cancel *cancel,
              struct pinfold_error *err)
{
    const struct pf_ac_job job = {
        .script = script, .len = len, .limit = limit, .keep = keep, .stop = stop
    };

    return pf_ac_run_job(box, &job, ret, cancel, err);
}

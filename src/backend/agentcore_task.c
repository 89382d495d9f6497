/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands that may take hours: as tasks of the service, which are asked after until they end.
 * Their streams and their status are in files there from the first byte on, so that what they said
 * so far is not lost when they are stopped, and nothing depends on how the service tells a task's
 * output.
 */
#include "backend/agentcore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"

#define WRAPPED_MAX ((size_t)200 << 20)
#define FIRST_PAUSE_NS (50 * PF_NS_PER_MS)
#define LAST_PAUSE_NS (5 * PF_NS_PER_SEC)
#define ASK_NS (60 * PF_NS_PER_SEC)
#define STOP_NS (5 * PF_NS_PER_SEC)    /* for a caller who has cancelled, and waits for this */
#define PRINT_NS (120 * PF_NS_PER_SEC) /* two megabytes at most */
enum { FAILURES_MAX = 24, NO_FILES = 3, KILLED = 137, TIMED_OUT = 124 };

struct task {
    struct pf_ac_box *box;
    const struct pf_ac_job *job;
    struct pf_ac_wrapper wrapper;
    char *id;
    int64_t deadline, pause;
    unsigned failures; /* to ask after it, one after the other */
    struct pf_agentcore_result last;
};

static void task_done(struct task *task)
{
    pf_ac_wrapper_done(&task->wrapper);
    pf_agentcore_result_done(&task->last);
    free(task->id);
}

/* ---- calls ---- */

static int fail_tool(const struct pf_agentcore_result *result, const char *tool,
                     struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(PF_BUF_UNLIMITED);

    if (pf_agentcore_result_text(result, &text) < 0)
        return pf_fail_nomem(err);
    return pf_fail(err, PINFOLD_EBACKEND, "AgentCore %s: %s: \"%s\"", tool,
                   result->is_error ? "it failed" : "no task came back",
                   PF_QUOTE(text.data ? text.data : ""));
}

static int start(struct task *task, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(WRAPPED_MAX);
    PF_CLEANUP(pf_agentcore_result_done) struct pf_agentcore_result result = { 0 };
    json_auto_t *arguments = NULL;
    int r;

    if (pf_ac_task_wrapper(&text, &task->wrapper) < 0)
        return pf_fail_nomem(err);
    arguments = json_pack("{s:s}", "command", text.data);
    if (!arguments)
        return pf_fail_nomem(err);
    r = pf_ac_invoke(task->box, "startCommandExecution", arguments, task->job->stop, &result,
                     cancel, err);
    if (r < 0)
        return r;
    if (!result.task_id || !result.task_id[0])
        return fail_tool(&result, "startCommandExecution", err);
    task->id = TAKE(result.task_id);
    return 0;
}

static int call(struct task *task, const char *tool, int64_t ns, struct pinfold_cancel *stop,
                struct pf_agentcore_result *ret, struct pinfold_cancel *cancel,
                struct pinfold_error *err)
{
    json_auto_t *arguments = json_pack("{s:s}", "taskId", task->id);

    return arguments ? pf_ac_invoke_within(task->box, tool, arguments, ns, stop, ret, cancel, err)
                     : pf_fail_nomem(err);
}

/* With its session a task has ended, too. */
static bool is_lost(struct pf_ac_box *box)
{
    bool lost;

    pthread_mutex_lock(&box->lock);
    lost = box->lost;
    pthread_mutex_unlock(&box->lock);
    return lost;
}

/* Returns whether it has ended. The service's tool tells a failure in a result, which without one
 * is the task's, whatever that says of its end. */
static bool stop(struct task *task)
{
    struct pf_agentcore_result result = { 0 };
    bool done;

    if (call(task, "stopTask", STOP_NS, NULL, &result, NULL, NULL) < 0)
        return is_lost(task->box);
    done = !result.is_error || result.task_status;
    pf_agentcore_result_done(&result);
    return done;
}

/* Have the files removed, for nobody will ask for them. */
static void discard(struct task *task)
{
    struct pf_agentcore_result result = { 0 };
    char command[600];
    json_auto_t *arguments = NULL;

    snprintf(command, sizeof(command), "rm -rf /tmp/pinfold-%s; %s", task->wrapper.mark,
             task->wrapper.forget);
    arguments = json_pack("{s:s}", "command", command);
    if (arguments && pf_ac_invoke_within(task->box, "executeCommand", arguments, STOP_NS, NULL,
                                         &result, NULL, NULL) == 0)
        pf_agentcore_result_done(&result);
}

/* ---- waiting ---- */

static bool has_ended(const struct pf_agentcore_result *result)
{
    static const char *const ends[] = { "completed", "failed", "canceled" };

    for (size_t i = 0; result->task_status && i < PF_COUNT(ends); i++)
        if (strcmp(result->task_status, ends[i]) == 0)
            return true;
    return result->has_exit_code;
}

/* Returns 1 when it has ended, 0 when it has not, or a negative code. What passes by itself is no
 * reason to give up the work of hours: it is asked again, for a minute or more. */
static int ask(struct task *task, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pinfold_error one = PINFOLD_ERROR_INIT;
    int64_t left = task->deadline - pf_clock_now() + PF_NS_PER_SEC;
    int r;

    pf_agentcore_result_done(&task->last);
    r = call(task, "getTask", left < ASK_NS ? left : ASK_NS, task->job->stop, &task->last, cancel,
             &one);
    if (r < 0) {
        if ((one.retryable || r == -PINFOLD_ETIMEOUT) && ++task->failures < FAILURES_MAX)
            return 0;
        if (err)
            *err = one;
        return r;
    }
    task->failures = 0;
    if (!task->last.task_status && !task->last.has_exit_code)
        return fail_tool(&task->last, "getTask", err);
    return has_ended(&task->last);
}

static bool is_late(const struct task *task)
{
    return task->deadline != PF_NEVER && pf_clock_now() >= task->deadline;
}

/* Pause, for longer each time. Ends early at the deadline and when a token is fired. */
static void pause_between(struct task *task, struct pinfold_cancel *cancel)
{
    int64_t until = pf_clock_deadline(task->pause);

    if (task->deadline != PF_NEVER && until > task->deadline)
        until = task->deadline;
    pf_cancel_wait(cancel, task->job->stop, until, NULL);
    task->pause += task->pause / 2;
    if (task->pause > LAST_PAUSE_NS)
        task->pause = LAST_PAUSE_NS;
}

/* Returns 1 when it has ended by itself, 0 when its time was up, or a negative code. */
static int await(struct task *task, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    int r = 0;

    while (r == 0) {
        if (is_late(task))
            return 0;
        pause_between(task, cancel);
        r = pf_cancel_check(cancel, err);
        if (r == 0)
            r = pf_cancel_check(task->job->stop, err);
        if (r == 0)
            r = ask(task, cancel, err);
    }
    return r;
}

/* ---- what it left ---- */

/* Without files its output is what the service has of it, or it was stopped before it had any. */
static int understand(struct task *task, const struct pf_agentcore_result *printed, bool ended,
                      struct pf_ac_output *ret, struct pinfold_error *err)
{
    bool files = !printed->has_exit_code || printed->exit_code != NO_FILES;

    if (!files && !ended) {
        ret->partial = true;
        return 0;
    }
    return pf_ac_understand(files ? printed : &task->last, task->wrapper.mark, task->wrapper.limit,
                            ret, err);
}

/* ended: by itself. */
static int collect(struct task *task, bool ended, int64_t ns, struct pf_ac_output *ret,
                   struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(WRAPPED_MAX);
    PF_CLEANUP(pf_agentcore_result_done) struct pf_agentcore_result result = { 0 };
    json_auto_t *arguments = NULL;
    int r;

    if (pf_ac_task_printer(&text, &task->wrapper) < 0)
        return pf_fail_nomem(err);
    arguments = json_pack("{s:s}", "command", text.data);
    if (!arguments)
        return pf_fail_nomem(err);
    r = pf_ac_invoke_within(task->box, "executeCommand", arguments, ns, NULL, &result, cancel, err);
    if (r == 0)
        r = understand(task, &result, ended, ret, err);
    if (r == 0)
        pf_ac_note_kept(&task->wrapper, ret);
    return r;
}

/* It has ended. Both who tells how must agree; one that was killed from outside tells nothing. */
static int settle(const struct task *task, struct pf_ac_output *ret, struct pinfold_error *err)
{
    if (ret->partial) {
        ret->status = task->last.has_exit_code ? task->last.exit_code & 255 : KILLED;
        return 0;
    }
    if (task->last.has_exit_code && task->last.exit_code != ret->status)
        return pf_fail(err, PINFOLD_EBACKEND,
                       "AgentCore getTask: it ended with status %d and its files say %d",
                       task->last.exit_code, ret->status);
    return 0;
}

/* Whoever gets an error is not to take what runs on for dead, either. */
static int fail_running(int r, bool runs_on, struct pinfold_error *err)
{
    return runs_on ? pf_wrap(err, r, "the command could not be stopped, and may run on") : r;
}

/* How it came to its end: r is what await() said. Whoever cancelled gets what it had said so far,
 * if that can be had in a moment. */
static int finish(struct task *task, int r, struct pf_ac_output *ret, struct pinfold_cancel *cancel,
                  struct pinfold_error *err)
{
    bool cancelled = r == -PINFOLD_ECANCELLED && pinfold_cancel_fired(cancel);
    bool stopped = r == -PINFOLD_ECANCELLED && !cancelled;
    bool late = r == 0, ended = r > 0, runs_on = false;

    if (!ended)
        runs_on = !stop(task);
    if (r < 0 && !stopped && !cancelled) {
        discard(task);
        return fail_running(r, runs_on, err);
    }
    r = collect(task, ended, cancelled ? STOP_NS : PRINT_NS, ret, cancelled ? NULL : cancel,
                cancelled ? NULL : err);
    if (r < 0) {
        if (cancelled || r == -PINFOLD_ECANCELLED)
            discard(task);
        if (!cancelled)
            return fail_running(r, runs_on, err);
        pf_ac_output_done(ret);
        *ret = (struct pf_ac_output){ .partial = true };
    }
    ret->timed_out = late;
    ret->stopped = stopped;
    ret->cancelled = cancelled;
    ret->runs_on = runs_on;
    if (ended)
        return settle(task, ret, err);
    ret->status = late ? TIMED_OUT : KILLED;
    return 0;
}

int pf_ac_run_task(struct pf_ac_box *box, const struct pf_ac_job *job, struct pf_ac_output *ret,
                   struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(task_done) struct task task = { .box = box, .job = job, .pause = FIRST_PAUSE_NS };
    int r;

    *ret = (struct pf_ac_output){ .out = PF_BUF_INIT(0), .errs = PF_BUF_INIT(0) };
    task.deadline = pf_clock_deadline(job->timeout_ns);
    r = pf_ac_prepare(box, job, &task.wrapper, cancel, err);
    if (r == 0)
        r = start(&task, cancel, err);
    if (r < 0)
        return r;
    r = await(&task, cancel, err);
    r = finish(&task, r, ret, cancel, err);
    if (r < 0)
        pf_ac_output_done(ret);
    return r;
}

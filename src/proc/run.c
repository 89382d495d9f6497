/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/run.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/poll.h"
#include "proc/capture.h"
#include "proc/command.h"
#include "proc/launcher.h"
#include "proc/turn.h"

#define IDLE_NS (200 * PF_NS_PER_MS)  /* silence after which an exited leader's pipes are let go */
#define DRAIN_NS (2 * PF_NS_PER_SEC)  /* and the most that they are listened to */
#define GRACE_NS (10 * PF_NS_PER_MS)  /* for processes that are just about to end */
#define LATE_NS (1 * PF_NS_PER_SEC)   /* after the deadline: the supervisor may have been stopped */
#define ANSWER_NS (5 * PF_NS_PER_SEC) /* a supervisor that does not answer is stuck */

struct run {
    const struct pf_run_request *request;
    struct pf_launcher *launcher;
    struct pf_live *live;
    struct pf_turn turn; /* at starting */
    struct pf_capture capture;
    struct pf_super_message exit; /* event is 0 until it came */
    struct pf_super_message failure;
    bool lost;     /* the supervisor was killed from inside */
    bool gone;     /* no process is left */
    bool hung_up;  /* nor a supervisor */
    bool killing;  /* because of error */
    int result;    /* what the call will return */
    unsigned left; /* processes that run on, or refused to die */
    int64_t idle_at, drain_end;
    int64_t nudge_at; /* when the supervisor should have ended the command */
    int64_t slow_at;  /* when the caller is told that the command takes long */
};

static int start(struct pf_launcher *launcher, struct run *run, const struct pf_command *command,
                 struct pinfold_error *err)
{
    static const char *const nothing[] = { NULL };
    const struct pf_run_request *request = run->request;
    int out[2], errs[2], r;

    if (pipe2(out, O_CLOEXEC) < 0)
        return pf_fail_os(err, errno, "create a pipe for the output of the command");
    if (pipe2(errs, O_CLOEXEC) < 0) {
        r = pf_fail_os(err, errno, "create a pipe for the errors of the command");
        close(out[0]);
        close(out[1]);
        return r;
    }
    struct pf_super_spec spec = {
        .read_end = { out[0], errs[0] },
        .write_end = { out[1], errs[1] },
        .cwd = request->cwd_fd,
        .cwd_path = request->cwd_path,
        .script = command->script,
        .deadline =
                request->timeout_ns == PF_NEVER ? PF_NEVER : pf_clock_deadline(request->timeout_ns),
        .search = request->argv != NULL,
        .slave = -1,
        .null = -1,
        .retire = -1,
        .argv = request->argv ? request->argv : command->shell,
        .envp = request->envp ? request->envp : nothing,
    };
    run->turn = pf_turn_take();
    r = pf_launcher_start(launcher, &spec, &run->live, err);
    if (r < 0)
        pf_turn_end(&run->turn);
    close(out[1]);
    close(errs[1]);
    run->capture.streams[0].fd = out[0];
    run->capture.streams[1].fd = errs[0];
    run->nudge_at = spec.deadline < PF_NEVER - LATE_NS ? spec.deadline + LATE_NS : PF_NEVER;
    return r;
}

/* Remember why the call fails, and end the command. */
static void give_up(struct run *run, int result)
{
    if (run->result == 0)
        run->result = result;
    run->killing = true;
    run->nudge_at = pf_clock_now();
}

/* The supervisor hung up, or cannot be heard any more. When it was killed by what it watched the
 * command has an end all the same: init kills what is left of it. */
static void hung_up(struct run *run, bool ended)
{
    run->hung_up = true;
    if (!ended || run->exit.event != 0 || run->failure.event != 0 ||
        !pf_launcher_lives_on(run->launcher))
        return;
    run->lost = run->gone = true;
    run->exit = (struct pf_super_message){ .event = PF_EVENT_EXITED, .status = SIGKILL };
    run->idle_at = pf_clock_deadline(IDLE_NS);
    run->drain_end = pf_clock_deadline(DRAIN_NS);
}

static void hear(struct run *run)
{
    struct pf_super_message message;
    ssize_t len = recv(run->live->control, &message, sizeof(message), MSG_DONTWAIT);

    /* A supervisor that ended without having read all our orders resets the connection: what it
     * said before comes after this error. */
    if (len < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET))
        return;
    if (len != (ssize_t)sizeof(message)) {
        hung_up(run, len == 0);
        return;
    }
    if (message.event != PF_EVENT_STARTED)
        pf_turn_end(&run->turn);
    switch ((enum pf_super_event)message.event) {
    case PF_EVENT_FAILED:
        run->failure = message;
        return;
    case PF_EVENT_EXITED:
        run->exit = message;
        run->idle_at = pf_clock_deadline(IDLE_NS);
        run->drain_end = pf_clock_deadline(DRAIN_NS);
        break;
    case PF_EVENT_GONE:
        run->exit.cause = run->exit.cause ? run->exit.cause : message.cause;
        run->exit.cpu_ns = message.cpu_ns;
        run->exit.peak_bytes = message.peak_bytes;
        break;
    case PF_EVENT_COUNT:
        run->left = message.left;
        return;
    case PF_EVENT_STARTED:
        run->live->supervisor = message.status;
        return;
    case PF_EVENT_TERMINAL:
    case PF_EVENT_RUNNING: /* not of this command */
        return;
    }
    run->left = message.left;
    run->gone = message.left == 0 || message.cause != PF_CAUSE_NONE;
    run->live->over = run->gone && message.event == PF_EVENT_EXITED;
}

static bool has_open_stream(const struct run *run)
{
    return run->capture.streams[0].fd >= 0 || run->capture.streams[1].fd >= 0;
}

/* Whether the supervisor has still to say something. */
static bool is_awaited(const struct run *run)
{
    return run->exit.event == 0 || (run->killing && !run->gone && !run->hung_up);
}

/* Whether there is nothing more to wait for. */
static bool is_over(const struct run *run, int64_t now)
{
    if (run->hung_up && run->exit.event == 0)
        return true;
    if (is_awaited(run))
        return false;
    return !has_open_stream(run) || now >= run->idle_at || now >= run->drain_end;
}

/* Keep a supervisor awake that should have ended the command by now; one that is to end it before
 * its time is told until it does. */
static void nudge(struct run *run)
{
    int64_t now = pf_clock_now();

    if (!is_awaited(run) || now < run->nudge_at)
        return;
    if (run->killing)
        pf_live_insist(run->live);
    else
        pf_live_nudge(run->live);
    run->nudge_at = pf_clock_deadline(PF_NUDGE_NS);
}

static void tell_slow(struct run *run)
{
    if (run->slow_at == PF_NEVER || pf_clock_now() < run->slow_at)
        return;
    run->slow_at = PF_NEVER;
    run->request->on_slow(run->request->on_slow_ctx);
}

static int64_t next_wake(const struct run *run)
{
    if (is_awaited(run))
        return run->nudge_at < run->slow_at ? run->nudge_at : run->slow_at;
    return run->idle_at < run->drain_end ? run->idle_at : run->drain_end;
}

static void read_stream(struct run *run, struct pf_stream *stream, struct pinfold_error *err)
{
    uint64_t before = stream->raw_bytes;
    int r = pf_capture_read(&run->capture, stream, run->result == 0 ? err : NULL);

    if (r < 0)
        give_up(run, r);
    if (r < 0 && r != -PINFOLD_ECANCELLED) { /* no use in trying again */
        close(stream->fd);
        stream->fd = -1;
    }
    if (run->exit.event != 0 && stream->raw_bytes > before)
        run->idle_at = pf_clock_deadline(IDLE_NS);
}

static void collect(struct run *run, struct pinfold_error *err)
{
    enum { OUT, ERR, CONTROL, CANCEL, COUNT };
    struct pf_stream *streams = run->capture.streams;

    while (!is_over(run, run->exit.event == 0 ? 0 : pf_clock_now())) {
        struct pollfd fds[COUNT] = {
            [OUT] = { streams[0].fd, POLLIN, 0 },
            [ERR] = { streams[1].fd, POLLIN, 0 },
            [CONTROL] = { run->hung_up ? -1 : run->live->control, POLLIN, 0 },
            [CANCEL] = { run->killing ? -1 : pf_cancel_fd(run->request->cancel), POLLIN, 0 },
        };
        int ready = pf_poll(fds, COUNT, pf_clock_poll_ms(next_wake(run)));
        nudge(run);
        tell_slow(run);
        if (ready <= 0)
            continue;
        for (int i = OUT; i <= ERR; i++)
            if (fds[i].revents == POLLHUP) /* and nothing in it: no need to read that */
                pf_capture_close(&streams[i]);
            else if (fds[i].revents)
                read_stream(run, &streams[i], err);
        if (fds[CONTROL].revents)
            hear(run);
        if (fds[CANCEL].revents && !run->killing)
            give_up(run, pf_fail(run->result == 0 ? err : NULL, PINFOLD_ECANCELLED,
                                 "run a command: cancelled"));
    }
}

static void listen_until(struct run *run, int64_t deadline, unsigned event)
{
    struct pollfd control = { run->live->control, POLLIN, 0 };

    run->left = event == PF_EVENT_COUNT ? UINT_MAX : run->left;
    while (!run->gone && !run->hung_up && pf_clock_now() < deadline) {
        int64_t wake = pf_clock_deadline(PF_NUDGE_NS);
        if (event == PF_EVENT_COUNT && run->left != UINT_MAX)
            return;
        pf_live_nudge(run->live);
        if (pf_poll(&control, 1, pf_clock_poll_ms(wake < deadline ? wake : deadline)) > 0)
            hear(run);
    }
}

/* The leader is gone and something it started is not. Leave it to the supervisor. */
static void let_go(struct run *run)
{
    if (!has_open_stream(run))
        listen_until(run, pf_clock_deadline(GRACE_NS), PF_EVENT_GONE);
    if (run->gone || run->hung_up)
        return;
    pf_live_order(run->live, PF_ORDER_DETACH);
    listen_until(run, pf_clock_deadline(ANSWER_NS), PF_EVENT_COUNT);
    if (run->gone || run->hung_up || run->left == UINT_MAX)
        run->left = 0;
}

/* Then the caller knows why, and tells. */
static bool was_killed_by_caller(const struct run *run)
{
    const struct pf_run_request *request = run->request;

    return run->exit.cause == PF_CAUSE_KILLED && run->result == 0 && request->kills &&
           *request->kills != request->kills_before;
}

static const char *write_notes(const struct run *run, char *notes, size_t size)
{
    const char *plural = run->left == 1 ? "" : "es";
    int used = 0;

    notes[0] = '\0';
    if (run->lost)
        snprintf(notes, size,
                 "[killed: something in the sandbox killed the command's supervisor]\n");
    else if (run->exit.cause == PF_CAUSE_DEAF)
        used = snprintf(notes, size,
                        "[killed: something in the sandbox lowered the limits of the command's "
                        "supervisor]\n");
    else if (run->exit.cause == PF_CAUSE_MUTE)
        used = snprintf(notes, size,
                        "[killed: the system had no memory for the report that it had ended]\n");
    else if (run->exit.cause == PF_CAUSE_DEADLINE)
        used = snprintf(notes, size, "[timed out after %g s]\n",
                        (double)run->request->timeout_ns / (double)PF_NS_PER_SEC);
    else if (run->exit.cause == PF_CAUSE_KILLED && !was_killed_by_caller(run))
        used = snprintf(notes, size, "[killed: the call was %s]\n",
                        run->result == -PINFOLD_ECANCELLED ? "cancelled" : "stopped");
    if (run->left > 0 && run->exit.cause != PF_CAUSE_NONE)
        snprintf(notes + used, size - (size_t)used, "[%u process%s could not be killed]\n",
                 run->left, plural);
    else if (run->left > 0)
        snprintf(notes + used, size - (size_t)used, "[%u background process%s still running]\n",
                 run->left, plural);
    return notes;
}

static int finish(struct run *run, int64_t began, struct pinfold_execute_result *ret,
                  struct pinfold_error *err)
{
    struct pinfold_execute_result result = { 0 };
    char notes[160];
    int r;

    if (run->failure.event != 0)
        return pf_command_explain(&run->failure, err);
    if (run->exit.event == 0)
        return pf_fail(err, PINFOLD_EBACKEND,
                       "run a command: its supervisor died (was it killed from outside?)");
    if (run->result < 0 && run->result != -PINFOLD_ECANCELLED)
        return run->result;
    r = pf_capture_finish(&run->capture, write_notes(run, notes, sizeof(notes)), &result, err);
    if (r < 0) {
        pinfold_execute_result_done(&result);
        return r;
    }
    result.exit_code = pf_command_exit_code(&run->exit);
    result.timed_out = run->exit.cause == PF_CAUSE_DEADLINE;
    result.supervisor_lost = run->lost;
    result.holders[PINFOLD_LIMIT_TIME] = PINFOLD_HOLDER_OWNER;
    if (result.timed_out) {
        result.limit = PINFOLD_LIMIT_TIME;
        result.limits_hit = 1U << PINFOLD_LIMIT_TIME;
    }
    result.background = run->left;
    result.cpu_ns = run->exit.cpu_ns;
    result.peak_bytes = run->exit.peak_bytes;
    result.duration_ns = pf_clock_now() - began;
    *ret = result;
    return run->result;
}

int pf_run(struct pf_launcher *launcher, const struct pf_run_request *request,
           struct pinfold_execute_result *ret, struct pinfold_error *err)
{
    PF_CLEANUP(pf_command_done) struct pf_command command;
    const char *nothing = pf_command_nothing(request);
    int64_t began = pf_clock_now();
    struct run run;
    int r;

    pf_command_init(&command);
    memset(ret, 0, sizeof(*ret));
    r = pf_cancel_check(request->cancel, err);
    if (r < 0)
        return r;
    if (nothing)
        return pf_command_answer_nothing(nothing, ret, err);
    r = pf_command_prepare(request, &command, err);
    if (r < 0)
        return r;
    memset(&run, 0, sizeof(run));
    run.request = request;
    run.launcher = launcher;
    run.slow_at = request->on_slow ? pf_clock_deadline(request->slow_ns) : PF_NEVER;
    pf_capture_init(&run.capture, request);
    r = start(launcher, &run, &command, err);
    if (r == 0) {
        collect(&run, err);
        if (run.exit.event != 0 && !run.gone && !run.hung_up)
            let_go(&run);
        pf_turn_end(&run.turn);
        if (run.exit.event == 0 && run.failure.event == 0)
            pf_launcher_doubt(launcher);
        pf_launcher_release(launcher, run.live, run.left > 0 && !run.gone && !run.hung_up);
        r = finish(&run, began, ret, err);
    }
    pf_capture_done(&run.capture);
    return r;
}

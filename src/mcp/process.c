/* SPDX-License-Identifier: Apache-2.0 */
/* start_process, read_process and stop_process. A process is a command that a thread of its own
 * waits for; it ends with the session of the client that started it. */
#include "mcp/process.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "mcp/output.h"
#include "mcp/state.h"
#include "mcp/tape.h"
#include "mcp/tool.h"

/* Of one client: how many may run, and how many that have ended are remembered. */
enum { RUNNING_MAX = 16, ENDED_MAX = 16 };

/* Whoever waits looks this often whether he is still to; and lets output that has begun to come
 * go on this long, so that a burst is one result. */
#define LOOK_NS (PF_MCP_SECOND / 10)
#define SETTLE_NS (PF_MCP_SECOND / 10)

struct pf_mcp_process {
    char id[PF_MCP_ID_SIZE];
    char *command, *cwd;
    size_t command_len;
    struct pf_mcp_session *session; /* a reference, while it runs */
    struct pf_mcp_tape *tape;
    struct pinfold_cancel *cancel;
    /* By the session's lock: */
    unsigned users; /* calls that look at it, and its thread */
    bool ended, stopped, dropped;
    int exit_code;
    struct pinfold_error failure; /* it could not be run, or watched */
    uint64_t read[2];             /* what the client has seen of each stream */
    struct pf_mcp_process *prev, *next;
};

/* ---- life ---- */

static void free_process(struct pf_mcp_process *process)
{
    pf_mcp_tape_free(process->tape);
    pinfold_cancel_free(process->cancel);
    free(process->command);
    free(process->cwd);
    free(process);
}

static void unuse(struct pf_mcp_session *session, struct pf_mcp_process *process)
{
    bool last;

    pthread_mutex_lock(&session->lock);
    last = --process->users == 0 && process->dropped;
    pthread_mutex_unlock(&session->lock);
    if (last)
        free_process(process);
}

/* Forget the oldest that have ended when there are too many. The lock is held. */
static void forget_oldest(struct pf_mcp_session *session)
{
    struct pf_mcp_process *process, *oldest = NULL;
    int ended = 0;

    DL_FOREACH(session->processes, process) {
        if (process->ended && !oldest)
            oldest = process;
        ended += process->ended;
    }
    if (ended <= ENDED_MAX)
        return;
    DL_DELETE(session->processes, oldest);
    oldest->dropped = true;
    if (!oldest->users)
        free_process(oldest);
}

static int take_output(void *ctx, enum pinfold_stream stream, const char *data, size_t len)
{
    struct pf_mcp_process *process = ctx;

    pf_mcp_tape_write(process->tape, stream, data, len);
    return 0;
}

static void execute(struct pf_mcp_process *process)
{
    __attribute__((
            cleanup(pinfold_execute_result_done))) struct pinfold_execute_result result = { 0 };
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pf_mcp_session *session = process->session;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_sandbox *sandbox;
    int r = pf_mcp_workspace_begin(session, process->cancel, &sandbox, &err);

    options.command = process->command;
    options.command_len = process->command_len;
    options.cwd = process->cwd;
    options.timeout_seconds = INFINITY;
    options.discard_output = true;
    options.on_output = take_output;
    options.on_output_ctx = process;
    if (r == 0) {
        r = pinfold_sandbox_execute(sandbox, &options, &result, process->cancel, &err);
        pf_mcp_workspace_end(session);
    }
    /* Nothing was run, and nothing streamed: the library says why in place of the command. */
    if (r == 0 && pf_mcp_tape_total(process->tape, PINFOLD_STDERR) == 0 && result.stderr_len)
        pf_mcp_tape_write(process->tape, PINFOLD_STDERR, result.stderr_text, result.stderr_len);
    pthread_mutex_lock(&session->lock);
    process->ended = true;
    process->stopped = r == -PINFOLD_ECANCELLED;
    process->exit_code = r == 0 ? result.exit_code : 137;
    if (r < 0 && r != -PINFOLD_ECANCELLED)
        process->failure = err;
    forget_oldest(session);
    pthread_mutex_unlock(&session->lock);
    pf_mcp_tape_end(process->tape);
}

static void *work(void *ctx)
{
    struct pf_mcp_process *process = ctx;
    struct pf_mcp_session *session = process->session;
    struct pf_mcp_server *server = session->server;

    execute(process);
    unuse(session, process);
    pf_mcp_session_unref(session);
    pthread_mutex_lock(&server->lock);
    server->processes--;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

static bool start_thread(struct pf_mcp_process *process)
{
    struct pf_mcp_server *server = process->session->server;
    pthread_attr_t attr;
    pthread_t thread;
    int failed;

    pthread_mutex_lock(&server->lock);
    server->processes++;
    pthread_mutex_unlock(&server->lock);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    failed = pthread_create(&thread, &attr, work, process);
    pthread_attr_destroy(&attr);
    if (!failed)
        return true;
    pthread_mutex_lock(&server->lock);
    server->processes--;
    pthread_mutex_unlock(&server->lock);
    return false;
}

void pf_mcp_process_end_all(struct pf_mcp_session *session)
{
    struct pf_mcp_process *process;

    pthread_mutex_lock(&session->lock);
    DL_FOREACH(session->processes, process)
        pinfold_cancel_fire(process->cancel);
    pthread_mutex_unlock(&session->lock);
}

void pf_mcp_process_free_all(struct pf_mcp_session *session)
{
    struct pf_mcp_process *process, *next;

    DL_FOREACH_SAFE(session->processes, process, next)
        free_process(process);
    session->processes = NULL;
}

void pf_mcp_process_wait(struct pf_mcp_server *server)
{
    pthread_mutex_lock(&server->lock);
    while (server->processes)
        pthread_cond_wait(&server->changed, &server->lock);
    pthread_mutex_unlock(&server->lock);
}

/* ---- what calls do with one ---- */

/* Find one to look at; it stays until unuse(). */
static struct pf_mcp_process *use(struct pf_mcp_session *session, const char *id,
                                  struct pinfold_error *err)
{
    struct pf_mcp_process *process;
    char there[160] = "";

    pthread_mutex_lock(&session->lock);
    DL_FOREACH(session->processes, process) {
        size_t len = strlen(there);
        if (strcmp(process->id, id) == 0)
            break;
        snprintf(there + len, sizeof(there) - len, "%s%s%s",
                 len ? ", " : "; there are: ", process->id, process->ended ? " (ended)" : "");
    }
    if (process)
        process->users++;
    pthread_mutex_unlock(&session->lock);
    if (!process)
        pf_mcp_refuse(err, "there is no process %.40s%s", id, there);
    return process;
}

/* What came of a stream that the client has not seen. */
static bool add_stream(struct pf_mcp_session *session, struct pf_mcp_process *process,
                       enum pinfold_stream stream, struct pf_mcp_result *ret)
{
    size_t size = pf_mcp_shown(session), len;
    bool is_err = stream == PINFOLD_STDERR;
    uint64_t seen, offset;
    char *text = malloc(size);

    if (!text)
        return false;
    pthread_mutex_lock(&session->lock);
    seen = offset = process->read[is_err];
    pthread_mutex_unlock(&session->lock);
    len = pf_mcp_tape_read(process->tape, stream, &offset, text, size);
    pthread_mutex_lock(&session->lock);
    process->read[is_err] = offset + len;
    pthread_mutex_unlock(&session->lock);
    if (offset > seen)
        pf_mcp_addf(ret,
                    "[%" PRIu64 " bytes of %s are lost: they came faster than they were read.]",
                    offset - seen, is_err ? "stderr" : "stdout");
    if (len)
        pf_mcp_addf(ret, "%s:\n%.*s", is_err ? "stderr" : "stdout", (int)len, text);
    if (offset + len < pf_mcp_tape_total(process->tape, stream))
        pf_mcp_addf(ret, "[There is more: call read_process again.]");
    pf_mcp_set(ret, is_err ? "stderr" : "stdout", pf_mcp_text(text, len));
    free(text);
    return true;
}

static int show(struct pf_mcp_session *session, struct pf_mcp_process *process,
                struct pf_mcp_result *ret, struct pinfold_error *err)
{
    bool ended, stopped;
    int exit_code;

    pthread_mutex_lock(&session->lock);
    ended = process->ended;
    stopped = process->stopped;
    exit_code = process->exit_code;
    if (process->failure.code)
        *err = process->failure;
    pthread_mutex_unlock(&session->lock);
    if (err->code)
        return -err->code;
    if (!ended)
        pf_mcp_addf(ret, "%s is running.", process->id);
    else if (stopped)
        pf_mcp_addf(ret, "%s was stopped.", process->id);
    else
        pf_mcp_addf(ret, "%s has ended with exit code %d.", process->id, exit_code);
    pf_mcp_set(ret, "id", json_string(process->id));
    pf_mcp_set(ret, "running", json_boolean(!ended));
    pf_mcp_set(ret, "exit_code", ended ? json_integer(exit_code) : json_null());
    if (!add_stream(session, process, PINFOLD_STDOUT, ret) ||
        !add_stream(session, process, PINFOLD_STDERR, ret))
        return pf_mcp_nomem(err);
    return 0;
}

/* Wait until there is something to tell: the end, or output unless only the end counts. */
static int wait_for_news(struct pf_mcp_call *call, struct pf_mcp_process *process, bool exit_only,
                         double seconds, struct pinfold_error *err)
{
    int64_t until = pf_mcp_now() + (int64_t)(seconds * 1e9), left;
    uint64_t seen[2] = { UINT64_MAX, UINT64_MAX };
    bool ended = false, news = false;

    if (!exit_only) {
        pthread_mutex_lock(&call->session->lock);
        memcpy(seen, process->read, sizeof(seen));
        pthread_mutex_unlock(&call->session->lock);
    }
    while (!ended && !news && (left = until - pf_mcp_now()) > 0) {
        if (pinfold_cancel_fired(call->cancel)) {
            *err = (struct pinfold_error){ .code = PINFOLD_ECANCELLED, .msg = "cancelled" };
            return -PINFOLD_ECANCELLED;
        }
        ended = pf_mcp_tape_wait(process->tape, seen[0], seen[1], left < LOOK_NS ? left : LOOK_NS);
        news = pf_mcp_tape_total(process->tape, PINFOLD_STDOUT) > seen[0] ||
               pf_mcp_tape_total(process->tape, PINFOLD_STDERR) > seen[1];
    }
    if (news && !ended)
        pf_mcp_tape_wait(process->tape, UINT64_MAX, UINT64_MAX, SETTLE_NS);
    return 0;
}

/* ---- start_process ---- */

static struct pf_mcp_process *new_process(const json_t *args, const char *cwd)
{
    struct pf_mcp_process *process = calloc(1, sizeof(*process));
    const char *command = pf_mcp_string(args, "command", NULL);

    if (!process)
        return NULL;
    process->command = malloc(json_string_length(json_object_get(args, "command")) + 1);
    process->command_len = json_string_length(json_object_get(args, "command"));
    process->cwd = strdup(cwd);
    process->tape = pf_mcp_tape_new();
    if (process->command && process->cwd && process->tape &&
        pinfold_cancel_new(&process->cancel, NULL) == 0) {
        memcpy(process->command, command, process->command_len + 1);
        return process;
    }
    free_process(process);
    return NULL;
}

/* Put it into the table, and begin. */
static int begin(struct pf_mcp_session *session, struct pf_mcp_process *process,
                 struct pinfold_error *err)
{
    struct pf_mcp_process *other;
    int running = 0;
    bool room;

    pthread_mutex_lock(&session->lock);
    DL_FOREACH(session->processes, other)
        running += !other->ended;
    room = running < RUNNING_MAX && !session->closing;
    if (room) {
        snprintf(process->id, sizeof(process->id), "process-%u", ++session->next_number);
        process->users = 2; /* its thread, and the call */
        DL_APPEND(session->processes, process);
    }
    pthread_mutex_unlock(&session->lock);
    if (!room)
        return pf_mcp_refuse(err, "%d processes are running: stop one with stop_process first",
                             running);
    process->session = pf_mcp_session_ref(session);
    if (start_thread(process))
        return 0;
    pthread_mutex_lock(&session->lock);
    DL_DELETE(session->processes, process);
    pthread_mutex_unlock(&session->lock);
    pf_mcp_session_unref(session);
    return pf_mcp_refuse(err, "no thread can be made for another process");
}

static int run_start(struct pf_mcp_call *call, const json_t *args, struct pf_mcp_result *ret,
                     struct pinfold_error *err)
{
    const char *cwd = pf_mcp_path(args, "cwd", ".", err);
    struct pf_mcp_process *process = cwd ? new_process(args, cwd) : NULL;
    int r;

    if (!process)
        return cwd ? pf_mcp_nomem(err) : -err->code;
    r = begin(call->session, process, err);
    if (r < 0) {
        free_process(process);
        return r;
    }
    r = wait_for_news(call, process, false, pf_mcp_number(args, "wait_seconds", 1), err);
    if (r == 0)
        r = show(call->session, process, ret, err);
    /* Nobody would know of it. */
    if (r < 0)
        pinfold_cancel_fire(process->cancel);
    unuse(call->session, process);
    return r;
}

#define PROCESS_OUTPUT                                                                         \
    "{\"type\":\"object\",\"properties\":{\"id\":{\"type\":\"string\"},"                       \
    "\"running\":{\"type\":\"boolean\"},\"exit_code\":{\"type\":[\"integer\",\"null\"]},"      \
    "\"stdout\":{\"type\":\"string\",\"description\":\"What has come since the last look.\"}," \
    "\"stderr\":{\"type\":\"string\"}},"                                                       \
    "\"required\":[\"id\",\"running\",\"exit_code\",\"stdout\",\"stderr\"]}"

const struct pf_mcp_tool pf_mcp_start_process = {
    .name = "start_process",
    .title = "Start a process",
    .description =
            "Start a shell command that goes on while you do other things: a server, a watcher, a "
            "long build. The result has its id and what it printed in the first second; "
            "read_process tells the rest, stop_process ends it. It has no time limit, and ends "
            "with this session at the latest. At most 16 run at a time.",
    .input = "{\"type\":\"object\",\"properties\":{"
             "\"command\":{\"type\":\"string\",\"minLength\":1,\"description\":\"Shell command, "
             "without a & at its end.\"},"
             "\"cwd\":{\"type\":[\"string\",\"null\"],\"description\":\"Directory to run it in, "
             "relative to the workspace root. Default: the root.\"},"
             "\"wait_seconds\":{\"type\":\"number\",\"minimum\":0,\"maximum\":60,\"default\":1,"
             "\"description\":\"How long to wait for its first output.\"}},"
             "\"required\":[\"command\"],\"additionalProperties\":false}",
    .output = PROCESS_OUTPUT,
    .traits = PF_MCP_DESTROYS | PF_MCP_RUNS | PF_MCP_RUNNER,
    .run = run_start,
};

/* ---- read_process and stop_process ---- */

static int run_read(struct pf_mcp_call *call, const json_t *args, struct pf_mcp_result *ret,
                    struct pinfold_error *err)
{
    struct pf_mcp_process *process = use(call->session, pf_mcp_string(args, "id", NULL), err);
    const char *until = pf_mcp_string(args, "until", NULL);
    int r;

    if (!process)
        return -err->code;
    r = wait_for_news(call, process, until && strcmp(until, "exit") == 0,
                      pf_mcp_number(args, "wait_seconds", 30), err);
    if (r == 0)
        r = show(call->session, process, ret, err);
    unuse(call->session, process);
    return r;
}

const struct pf_mcp_tool pf_mcp_read_process = {
    .name = "read_process",
    .title = "Read a process",
    .description =
            "Wait for news of a process that start_process started, and return them: what it has "
            "printed since the last call, and whether it still runs. Returns as soon as there is "
            "new output or it has ended, at the latest after wait_seconds: do not call it in a "
            "loop with a short time, but once with a long one.",
    .input = "{\"type\":\"object\",\"properties\":{"
             "\"id\":{\"type\":\"string\",\"description\":\"As start_process gave it.\"},"
             "\"wait_seconds\":{\"type\":\"number\",\"minimum\":0,\"maximum\":600,\"default\":30},"
             "\"until\":{\"enum\":[\"output\",\"exit\"],\"default\":\"output\",\"description\":"
             "\"What to wait for: new output or the end, or the end alone.\"}},"
             "\"required\":[\"id\"],\"additionalProperties\":false}",
    .output = PROCESS_OUTPUT,
    .traits = PF_MCP_READS | PF_MCP_RUNNER,
    .run = run_read,
};

static int run_stop(struct pf_mcp_call *call, const json_t *args, struct pf_mcp_result *ret,
                    struct pinfold_error *err)
{
    struct pf_mcp_process *process = use(call->session, pf_mcp_string(args, "id", NULL), err);
    int r;

    if (!process)
        return -err->code;
    pinfold_cancel_fire(process->cancel);
    r = wait_for_news(call, process, true, 60, err);
    if (r == 0)
        r = show(call->session, process, ret, err);
    unuse(call->session, process);
    return r;
}

const struct pf_mcp_tool pf_mcp_stop_process = {
    .name = "stop_process",
    .title = "Stop a process",
    .description = "Kill a process that start_process started, with everything that it started "
                   "itself. The result has what it printed since the last look. One that has ended "
                   "already is no mistake.",
    .input = "{\"type\":\"object\",\"properties\":{"
             "\"id\":{\"type\":\"string\",\"description\":\"As start_process gave it.\"}},"
             "\"required\":[\"id\"],\"additionalProperties\":false}",
    .output = PROCESS_OUTPUT,
    .traits = PF_MCP_IDEMPOTENT | PF_MCP_RUNNER,
    .run = run_stop,
};

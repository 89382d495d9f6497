/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands of the workspace's user, each in a session of its own. The service's log of a session
 * adds line ends, drops NUL bytes and takes some bytes for its marks; so a wrapper has the streams
 * go to files, and puts into the log what is in these, in base64, or only their sizes when it is
 * much. A process that stays in the background then holds nothing open, and the command ends.
 */
#include <stdio.h>
#include <string.h>

#include "backend/daytona.h"
#include "backend/remote_output.h"
#include "base/base64.h"
#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/log.h"
#include "base/number.h"
#include "base/random.h"
#include "proc/command.h"
#include "tree/data.h"
#include "tree/place.h"

#define WORD_MAX ((size_t)100000)        /* the kernel's limit there is 128 KiB */
#define FETCH_MAX ((uint64_t)1024 << 20) /* bytes of one stream that are fetched */
#define SCRIPT_MAX ((size_t)64 << 20)
#define IDLE_NS (30 * PF_NS_PER_SEC) /* of a download of one */
#define NOT_KILLED_NOTE "[the service could not be reached to kill it]\n"
#define LOST_NOTE "[output was lost: the command removed or replaced the files it went to]\n"
enum { MARK_DIGITS = 16, TIMEOUT_STATUS = 124, SIGNAL_STATUS = 128, KILLED_STATUS = 137 };

/* $1 a directory for the streams, $2 the root, $3 the directory to enter, $4 the mark, $5 how many
 * bytes of a stream come with the log; then what to run. */
static const char wrapper[] =
        "d=$1 R=$2 C=$3 m=$4 n=$5; shift 5\n"
        "x() { echo \"pf-$m-x\"; echo \"pf-$m-x\" >&2; }\n"
        "f() { echo \"pf-$m-f:$1\"; x; exit 1; }\n"
        "cd \"$R\" 2>/dev/null || f 'No such file or directory'\n"
        "i() { case \"$1/\" in \"$R\"/*) ;; *) f 'Invalid cross-device link';; esac; }\n"
        "cd \"$C\" 2>/dev/null || { p=$(readlink -m -- \"$C\" 2>/dev/null) && i \"$p\"\n"
        "[ -e \"$C\" ] || f 'No such file or directory'\n"
        "[ -d \"$C\" ] || f 'Not a directory'; f 'Permission denied'; }\n"
        "i \"$(pwd -P)\"\n"
        /* The service's shell has signals ignored, which no shell can undo. */
        "s=; env --default-signal true 2>/dev/null && s=--default-signal\n"
        "c() { exec env $s -u OLDPWD \"$@\"; }\n"
        "if mkdir -m 700 \"$d\" 2>/dev/null && : 2>/dev/null >\"$d/o\" && : >\"$d/e\" && "
        ": | base64 >/dev/null 2>&1; then\n"
        /* Opened before the command has them, which may put anything in their place. */
        "exec 6<\"$d/o\" 7<\"$d/o\" 8<\"$d/e\" 9<\"$d/e\"\n"
        "(c \"$@\") >\"$d/o\" 2>\"$d/e\" 6<&- 7<&- 8<&- 9<&-; r=$?\n"
        "o=$(wc -c <&6); e=$(wc -c <&8)\n"
        "echo \"pf-$m-b\"; echo \"pf-$m-b\" >&2\n"
        "[ \"$o\" -gt \"$n\" ] || head -c \"$o\" <&7 | base64\n"
        "[ \"$e\" -gt \"$n\" ] || head -c \"$e\" <&9 | base64 >&2\n"
        "[ \"$o\" -gt \"$n\" ] || [ \"$e\" -gt \"$n\" ] || rm -rf \"$d\" 2>/dev/null\n"
        "echo \"pf-$m-r:$((r)):$((o)):$((e))\"\n"
        "else\n"
        "echo \"pf-$m-m\"; echo \"pf-$m-m\" >&2\n"
        "(c \"$@\"); r=$?\n"
        "echo \"pf-$m-r:$((r)):-1:-1\"\n"
        "fi\n"
        "x\n"
        "exit \"$r\"\n";

struct command {
    struct pf_dt_box *box;
    struct pf_run_request request;
    const char *cwd;
    char mark[MARK_DIGITS + 1];
    char dir[PF_DT_PATH_MAX];  /* the streams' there */
    char file[PF_DT_PATH_MAX]; /* the command's, or "" */
    bool kept;                 /* the directory is still there */
    bool merged;               /* the log is all there is */
    bool lost;                 /* a stream's file is not there, or is none */
    int status;
    int64_t sizes[2];
    struct pf_buf texts[2];
};

/* ---- what is run ---- */

static int add_word(struct pf_buf *text, const char *word)
{
    int r = pf_buf_append(text, " ", 1);

    return r < 0 ? r : pf_buf_append_word(text, word);
}

static int add_words(struct pf_buf *text, const char *const *words)
{
    int r = 0;

    for (size_t i = 0; r == 0 && words && words[i]; i++)
        r = add_word(text, words[i]);
    return r;
}

/* A command that is too long for a word becomes a file. */
static int add_command(struct command *command, struct pf_buf *text, struct pinfold_error *err)
{
    const struct pf_run_request *request = &command->request;
    _cleanup_free_ char *line = NULL;
    size_t len = request->command_len;
    int r;

    if (request->argv) {
        r = pf_buf_append_text(text, pf_remote_run_anyway(request->argv[0]));
        if (r == 0)
            r = add_words(text, request->argv);
        return r < 0 ? pf_fail_nomem(err) : 0;
    }
    if (len > WORD_MAX) {
        pf_dt_scratch(command->box, command->file);
        r = pf_dt_put_bytes(command->box, command->file, request->command, len, request->cancel,
                            err);
        if (r < 0)
            return r;
        r = pf_buf_printf(text, " /bin/sh -c '. %s' sh", command->file);
        return r < 0 ? pf_fail_nomem(err) : 0;
    }
    line = strndup(request->command, len);
    r = line ? pf_buf_append_text(text, " /bin/sh -c --") : -PINFOLD_ENOMEM;
    if (r == 0)
        r = add_word(text, line);
    if (r == 0)
        r = pf_buf_append_text(text, " sh"); /* its $0, as everywhere else */
    return r < 0 ? pf_fail_nomem(err) : 0;
}

static int write_script(struct command *command, const char *const *env, struct pf_buf *text,
                        struct pinfold_error *err)
{
    int r = pf_buf_printf(text, "set -- %s '%s' ./", command->dir, command->box->root);

    if (r == 0)
        r = pf_buf_append_word(text, command->cwd);
    if (r == 0)
        r = pf_buf_printf(text, " %s %zu", command->mark, PF_DT_INLINE);
    if (r == 0)
        r = add_words(text, env);
    if (r < 0)
        return pf_fail_nomem(err);
    r = add_command(command, text, err);
    if (r == 0 && pf_buf_printf(text, "\n%s", wrapper) < 0)
        r = pf_fail_nomem(err);
    return r;
}

/* ---- what came ---- */

static const char *find_mark(const struct command *command, const struct pf_buf *log, size_t from,
                             const char *kind)
{
    char text[64];

    snprintf(text, sizeof(text), "pf-%s-%s", command->mark, kind);
    return pf_dt_find(log, from, text);
}

/* What stands between the line of one mark and another one. Returns its length, or -1. */
static ssize_t between(const struct command *command, const struct pf_buf *log, const char *first,
                       const char *last, const char **ret)
{
    const char *start = find_mark(command, log, 0, first), *end;

    start = start ? memchr(start, '\n', (size_t)(log->data + log->len - start)) : NULL;
    if (!start)
        return -1;
    start++;
    end = last ? find_mark(command, log, (size_t)(start - log->data), last) : NULL;
    if (last && !end)
        return -1;
    *ret = start;
    return (end ? end : log->data + log->len) - start;
}

static int take_stream(struct command *command, int number, const struct pf_buf *log,
                       const char *last)
{
    int64_t size = command->sizes[number] > (int64_t)PF_DT_INLINE ? 0 : command->sizes[number];
    const char *text;
    ssize_t len = between(command, log, command->merged ? "m" : "b", last, &text);
    struct pf_buf *to = &command->texts[number];
    int r;

    if (len < 0)
        return -PINFOLD_EBACKEND;
    if (command->merged)
        return pf_buf_append(to, text, (size_t)len);
    r = pf_base64_decode(text, (size_t)len, to);
    return r == -PINFOLD_EVALUE || (r == 0 && (int64_t)to->len != size) ? -PINFOLD_EBACKEND : r;
}

/* The reason that the wrapper gave for not running anything. */
static int fail_entry(const struct command *command, const struct pf_buf *log,
                      struct pinfold_error *err)
{
    const char *mark = find_mark(command, log, 0, "f:"), *reason;
    char line[200];

    if (!mark)
        return 0;
    reason = strchr(mark, ':') + 1;
    snprintf(line, sizeof(line), "pinfold: %.*s", (int)strcspn(reason, "\n"), reason);
    return pf_fail_at(err, pf_remote_errno_of(line), "enter directory", command->cwd);
}

/* "STATUS:SIZE:SIZE"; where the log is all there is, a size is -1. */
static bool take_end(struct command *command, const char *at)
{
    uint64_t number;

    if (!pf_take_number(&at, 255, &number))
        return false;
    command->status = (int)number;
    for (int i = 0; i < 2; i++) {
        if (strncmp(at, ":-1", 3) == 0) {
            command->sizes[i] = -1;
            at += 3;
        } else {
            if (*at++ != ':' || !pf_take_number(&at, INT64_MAX, &number))
                return false;
            command->sizes[i] = (int64_t)number;
        }
    }
    return true;
}

static int understand(struct command *command, const struct pf_dt_run *run,
                      struct pinfold_error *err)
{
    const char *end = find_mark(command, &run->out, 0, "r:");
    int r = fail_entry(command, &run->out, err);

    if (r < 0)
        return r;
    command->merged = find_mark(command, &run->out, 0, "m") != NULL;
    if (!end || !take_end(command, strchr(end, ':') + 1))
        return pf_fail(err, PINFOLD_EBACKEND,
                       "Daytona: the log of the command is not whole (%zu bytes, status %d)",
                       run->out.len, run->status);
    for (int i = 0; i < 2; i++)
        command->kept = command->kept || command->sizes[i] > (int64_t)PF_DT_INLINE;
    r = take_stream(command, 0, &run->out, "r:");
    if (r == 0)
        r = take_stream(command, 1, &run->errs, "x");
    if (r == -PINFOLD_ENOMEM)
        return pf_fail_nomem(err);
    return r < 0 ? pf_fail(err, PINFOLD_EBACKEND, "Daytona: the log of the command is not whole")
                 : 0;
}

/* ---- streams that are files there ---- */

static int write_sink(void *ctx, const void *data, size_t len, struct pinfold_error *err)
{
    int r = pf_write_all(*(int *)ctx, data, len);

    return r < 0 ? pf_fail_os(err, -r, "keep the output of the command") : 0;
}

/* Whether it is a file: a pipe in its place would have the service wait for who writes to it.
 * Returns 1 when it is, 0 when it is none, or a negative code. ret_size receives how long it is. */
static int is_file(struct command *command, const char *path, const struct pf_daytona_call *call,
                   int64_t *ret_size, struct pinfold_error *err)
{
    json_auto_t *info = NULL;
    const char *mode;
    int r = pf_daytona_file_info(&command->box->toolbox, path, call, &info, err);

    if (r < 0)
        return err->http_status == 404 ? 0 : r;
    mode = json_string_value(json_object_get(info, "mode"));
    *ret_size = json_integer_value(json_object_get(info, "size"));
    return !json_is_true(json_object_get(info, "isDir")) && (!mode || mode[0] == '-');
}

/* partly: the command was killed, maybe before it began, and the service may be in no state to tell
 * anything: what it has is all there will be. */
static int fetch_stream(struct command *command, int number, uint64_t limit, bool partly,
                        int *ret_fd, struct pinfold_error *err)
{
    const struct pf_daytona_call call = { .deadline = pf_clock_deadline(PF_DT_TRANSFER_NS),
                                          .idle_ns = IDLE_NS,
                                          .cancel = command->request.cancel };
    struct pinfold_error own = PINFOLD_ERROR_INIT;
    char path[PF_DT_PATH_MAX + 8];
    int64_t size = 0;
    int r;

    snprintf(path, sizeof(path), "%s/%c", command->dir, "oe"[number]);
    *ret_fd = pf_remote_unnamed(err);
    if (*ret_fd < 0)
        return *ret_fd;
    r = is_file(command, path, &call, &size, &own);
    if (r == 1 && partly) /* it had no time to say so itself */
        command->sizes[number] = size;
    /* One that is missing may never have been made, when the command was killed. */
    command->lost = command->lost || (r == 0 && !(partly && own.http_status == 404));
    if (r == 1)
        r = pf_daytona_file_get(&command->box->toolbox, path, limit, &call, write_sink, ret_fd,
                                &own);
    if (r >= 0)
        return 0;
    if (partly && r != -PINFOLD_ECANCELLED && r != -PINFOLD_ENOMEM) {
        command->lost = true;
        pf_log(PINFOLD_LOG_WARNING, "Daytona: the output of a command that was killed: %s",
               own.msg);
        return 0;
    }
    close(TAKE_FD(*ret_fd));
    if (err)
        *err = own;
    return r;
}

static bool wants_all(const struct pf_run_request *request)
{
    return request->on_output || request->spool_limit > 0 || request->keep_tail;
}

/* Give one stream to the composer, from wherever it is. */
static int give_stream(struct command *command, struct pf_capture *capture, int number, bool partly,
                       struct pinfold_error *err)
{
    const struct pf_run_request *request = &command->request;
    uint64_t limit = wants_all(request) ? FETCH_MAX : request->output_limit + 4;
    int fd = -1, r = 0;

    /* What a process in the background goes on writing is not the command's any more. */
    if (!partly && (uint64_t)command->sizes[number] < limit)
        limit = (uint64_t)command->sizes[number];
    if (partly || command->sizes[number] > (int64_t)PF_DT_INLINE)
        r = fetch_stream(command, number, limit, partly, &fd, err);
    return r < 0 ? r : pf_remote_give(capture, number, &command->texts[number], fd, err);
}

/* partly: the command was killed, and what it has written is in the files. */
static int compose(struct command *command, bool partly, const char *notes,
                   struct pinfold_execute_result *ret, struct pinfold_error *err)
{
    PF_CLEANUP(pf_capture_done) struct pf_capture capture;
    char all[300];
    int r = 0;

    pf_capture_init(&capture, &command->request);
    for (int i = 0; r == 0 && i < 2; i++)
        r = give_stream(command, &capture, i, partly && !command->merged, err);
    if (r < 0)
        return r;
    for (int i = 0; !command->merged && i < 2; i++) {
        struct pf_stream *stream = &capture.streams[i];
        uint64_t size = (uint64_t)command->sizes[i];
        stream->full = stream->full || size > stream->raw_bytes;
        if (!partly || size > stream->raw_bytes)
            stream->raw_bytes = size;
    }
    ret->exit_code = command->status;
    snprintf(all, sizeof(all), "%s%s", notes, command->lost ? LOST_NOTE : "");
    if (command->lost)
        pf_log(PINFOLD_LOG_WARNING, "Daytona: output of a command was lost");
    return pf_capture_finish(&capture, all, ret, err);
}

/* ---- ends ---- */

static int finished(struct command *command, const struct pf_dt_run *run,
                    struct pinfold_execute_result *ret, struct pinfold_error *err)
{
    int r;

    /* Whatever the command did to the shell around it, it has ended, and its streams are there. */
    if (run->status > SIGNAL_STATUS && !find_mark(command, &run->out, 0, "r:")) {
        command->status = run->status;
        command->kept = true;
        return compose(command, true, "[the shell that ran the command was killed]\n", ret, err);
    }
    r = understand(command, run, err);
    return r < 0 ? r
                 : compose(command, false,
                           command->merged ? "[the streams came by the service's log, which adds "
                                             "line ends and drops bytes: there was no room for "
                                             "files, or no base64]\n"
                                           : "",
                           ret, err);
}

static int timed_out(struct command *command, const struct pf_dt_run *run, double seconds,
                     struct pinfold_execute_result *ret, struct pinfold_error *err)
{
    char notes[200];

    command->merged = find_mark(command, &run->out, 0, "m") != NULL;
    command->status = TIMEOUT_STATUS;
    command->kept = !command->merged;
    for (int i = 0; command->merged && i < 2; i++)
        take_stream(command, i, i == 0 ? &run->out : &run->errs, NULL);
    snprintf(notes, sizeof(notes), "[timed out after %g s]\n%s", seconds,
             run->kill_failed ? NOT_KILLED_NOTE : "");
    ret->timed_out = true;
    ret->limit = PINFOLD_LIMIT_TIME;
    ret->limits_hit = 1U << PINFOLD_LIMIT_TIME;
    return compose(command, true, notes, ret, err);
}

/* Whoever ended it is not to take what runs on for dead. */
static int killed(struct command *command, const struct pf_dt_run *run, const char *why,
                  struct pinfold_execute_result *ret, struct pinfold_error *err)
{
    char notes[200];

    command->status = KILLED_STATUS;
    snprintf(notes, sizeof(notes), "[%s%s]\n%s", run->kill_failed ? "" : "killed: ", why,
             run->kill_failed ? NOT_KILLED_NOTE : "");
    return compose(command, true, notes, ret, err);
}

/* The sandbox was stopped while the command ran. What it said is lost. */
static int stopped(struct command *command, const struct pf_dt_run *run,
                   struct pinfold_execute_result *ret, struct pinfold_error *err)
{
    command->merged = true;
    return killed(command, run, "the sandbox was stopped", ret, err);
}

/* The session is deleted; what the command had written is still there. */
static int cancelled(struct command *command, const struct pf_dt_run *run,
                     struct pinfold_execute_result *ret, struct pinfold_error *err)
{
    struct pinfold_cancel *cancel = command->request.cancel;

    command->request.cancel = NULL;
    killed(command, run, "the call was cancelled", ret, NULL);
    return pf_cancel_check(cancel, err);
}

static int run_command(struct command *command, const struct pinfold_execute_options *options,
                       struct pinfold_execute_result *ret, struct pinfold_error *err)
{
    struct pf_dt_box *box = command->box;
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(SCRIPT_MAX);
    double seconds = options->timeout_seconds > 0 ? options->timeout_seconds : box->timeout_seconds;
    char end[64];
    struct pf_dt_run run = { .stop = box->stop, .end = end };
    int r = write_script(command, options->env, &text, err);

    if (r < 0)
        return r;
    run.text = text.data;
    run.len = text.len;
    run.timeout_ns = seconds < 1e9 ? (int64_t)(seconds * 1e9) : PF_NEVER;
    if (run.timeout_ns != PF_NEVER)
        ret->holders[PINFOLD_LIMIT_TIME] = PINFOLD_HOLDER_OWNER;
    snprintf(end, sizeof(end), "pf-%s-x\n", command->mark);
    r = pf_dt_run(box, &run, command->request.cancel, err);
    if (r < 0) {
        command->kept = true; /* it may be */
        if (r != -PINFOLD_ECANCELLED)
            return run.kill_failed
                           ? pf_wrap(err, r, "the command could not be killed, and may run on")
                           : r;
        return pinfold_cancel_fired(command->request.cancel) ? cancelled(command, &run, ret, err)
                                                             : stopped(command, &run, ret, err);
    }
    r = run.timed_out ? timed_out(command, &run, seconds, ret, err)
                      : finished(command, &run, ret, err);
    pf_dt_run_done(&run);
    return r;
}

static int refuse_stopped(struct pf_dt_box *box, struct pinfold_error *err)
{
    bool stopped;

    pthread_mutex_lock(&box->lock);
    stopped = box->stopped;
    pthread_mutex_unlock(&box->lock);
    return stopped ? pf_fail(err, PINFOLD_ESTART, "Daytona: the workspace is stopping") : 0;
}

static void command_done(struct command *command)
{
    struct pf_dt_box *box = command->box;

    if (command->kept && !box->lost && !box->stopped)
        pf_dt_forget(box, command->dir);
    if (command->file[0] && !box->lost && !box->stopped)
        pf_dt_forget(box, command->file);
    pf_buf_done(&command->texts[0]);
    pf_buf_done(&command->texts[1]);
}

int pf_dt_execute(void *state, const struct pinfold_execute_options *options,
                  struct pinfold_execute_result *ret_result, struct pinfold_cancel *cancel,
                  struct pinfold_error *err)
{
    struct pf_dt_box *box = state;
    struct command command = {
        .box = box,
        .cwd = options->cwd ? options->cwd : ".",
        .texts = { PF_BUF_INIT(PF_BUF_UNLIMITED), PF_BUF_INIT(PF_BUF_UNLIMITED) },
        .request = pf_command_request(options, box->max_output_bytes, cancel),
    };
    const char *nothing;
    int64_t start = pf_clock_now();
    int r = pf_remote_check(options, (const char *const *)box->env, err);

    if (r == 0)
        r = pf_dt_fail_start(box, err);
    if (r == 0)
        r = refuse_stopped(box, err);
    if (r < 0)
        return r;
    nothing = pf_command_nothing(&command.request);
    if (nothing)
        return pf_command_answer_nothing(nothing, ret_result, err); /* costs no call */
    pf_random_hex(command.mark, MARK_DIGITS);
    pf_dt_scratch(box, command.dir);
    r = run_command(&command, options, ret_result, err);
    command_done(&command);
    ret_result->duration_ns = pf_clock_now() - start;
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running scripts there: small ones in one request, which has an answer of bounded size and no
 * clean streams; all others in a session, asynchronously, so that no request is held for long.
 *
 * Whatever shell the service has is given one simple command, "/bin/sh -c '...'", with nothing to
 * read. So exit, set -e, and errors of syntax end that shell and not the session's, which otherwise
 * would never tell a status.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/daytona.h"
#include "backend/remote_output.h"
#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/log.h"
#include "base/random.h"
#include "base/utf8.h"
#include "tree/place.h"

#define TEXT_MAX ((size_t)64 << 20)
#define TYPED_MAX ((size_t)100000) /* the kernel's limit of a word is 128 KiB */
#define LOG_MAX ((size_t)256 << 20)
#define SCRIPT_SECONDS 90
#define END_NS (30 * PF_NS_PER_SEC) /* to end a session, whoever is in a hurry */
#define FIRST_POLL_NS (20 * PF_NS_PER_MS)
enum { BAD_POLLS = 8, LOG_TRIES = 10, STATUS_FAILED = 9, STATUS_NO_ROOT = 10 };

/* ---- files on their way ---- */

void pf_dt_scratch(const struct pf_dt_box *box, char ret[static PF_DT_PATH_MAX])
{
    char name[PF_DT_NAME_MAX + 1];

    pf_random_hex(name, PF_DT_NAME_MAX);
    snprintf(ret, PF_DT_PATH_MAX, "%s/%s", box->scratch, name);
}

int pf_dt_put(struct pf_dt_box *box, struct pf_daytona_put *files, size_t count,
              struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    const struct pf_daytona_call call = { .deadline = pf_clock_deadline(PF_DT_TRANSFER_NS),
                                          .idle_ns = PF_DT_IDLE_NS,
                                          .cancel = cancel };
    struct pinfold_error own = PINFOLD_ERROR_INIT;
    unsigned tries = 0;
    int r;

    do {
        own = (struct pinfold_error)PINFOLD_ERROR_INIT;
        r = pf_daytona_files_put(&box->toolbox, files, count, &call, &own);
    } while (r < 0 && pf_dt_again(box, &tries, true, cancel, &own));
    if (r < 0 && err)
        *err = own;
    return r < 0 ? -own.code : 0;
}

int pf_dt_put_bytes(struct pf_dt_box *box, const char *path, const void *data, size_t len,
                    struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pf_daytona_put file = { .path = path, .data = data ? data : "", .size = len };
    int r = pf_dt_put(box, &file, 1, cancel, err);

    if (r == 0 && file.error.code && err)
        *err = file.error;
    return r < 0 ? r : -file.error.code;
}

void pf_dt_forget(struct pf_dt_box *box, const char *path)
{
    const struct pf_daytona_call call = { .deadline = pf_clock_deadline(END_NS) };
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    if (pf_daytona_file_delete(&box->toolbox, path, true, &call, &err) < 0 &&
        err.http_status != 404)
        pf_log(PINFOLD_LOG_WARNING, "Daytona: %s is left there: %s", path, err.msg);
}

/* ---- the one command ---- */

/* A command that runs a script, for whatever shell is there. ret_file receives the path of the file
 * that the script had to be put in, or "". */
static int write_command(struct pf_dt_box *box, const char *text, size_t len,
                         struct pf_buf *ret_command, char ret_file[static PF_DT_PATH_MAX],
                         struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    int r = pf_buf_append_text(ret_command, "/bin/sh -c ");

    ret_file[0] = '\0';
    if (r == 0 && len <= TYPED_MAX && pf_utf8_valid(text, len, NULL))
        r = pf_buf_append_word(ret_command, text);
    else
        ret_command->len = 0;
    if (r == 0 && ret_command->len == 0) {
        pf_dt_scratch(box, ret_file);
        r = pf_dt_put_bytes(box, ret_file, text, len, cancel, err);
        if (r < 0)
            return r;
        r = pf_buf_printf(ret_command, "/bin/sh %s", ret_file);
    }
    if (r == 0)
        r = pf_buf_append_text(ret_command, " </dev/null");
    return r < 0 ? pf_fail_nomem(err) : 0;
}

/* ---- small scripts ---- */

/* w fails for a path that leaves the root; m makes the directory of a path. */
static const char prelude[] =
        "export LC_ALL=C; f() { echo \"pinfold: $1\"; exit 9; }; cd \"$R\" 2>/dev/null || exit 10; "
        "w() { case \"$(readlink -m -- \"$1\")/\" in \"$R\"/*) ;; "
        "*) f 'Invalid cross-device link';; esac; }; "
        "m() { w \"${1%/*}\"; if [ -e \"${1%/*}\" ] && [ ! -d \"${1%/*}\" ]; then "
        "f 'Not a directory'; fi; mkdir -p -- \"${1%/*}\" || exit 9; }; ";

static int write_script(const struct pf_dt_box *box, const char *script, const char *const *words,
                        struct pf_buf *text)
{
    int r = pf_buf_printf(text, "export R='%s' S='%s'; %sset --", box->root, box->scratch, prelude);

    for (size_t i = 0; r == 0 && words[i]; i++) {
        r = pf_buf_append(text, " ", 1);
        if (r == 0)
            r = pf_buf_append_word(text, words[i]);
    }
    return r < 0 ? r : pf_buf_printf(text, "\n%s\n", script);
}

static int execute(struct pf_dt_box *box, const char *command, bool again, int *ret_status,
                   struct pf_buf *text, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    const struct pf_daytona_call call = { .deadline =
                                                  pf_clock_deadline(PF_DT_CALL_NS + PF_DT_CALL_NS),
                                          .cancel = cancel };
    unsigned tries = 0;
    int r;

    do {
        text->len = 0;
        *err = (struct pinfold_error)PINFOLD_ERROR_INIT;
        r = pf_daytona_execute(&box->toolbox, command, SCRIPT_SECONDS, &call, ret_status, text,
                               err);
    } while (r < 0 && pf_dt_again(box, &tries, again, cancel, err));
    return r < 0 ? -err->code : 0;
}

int pf_dt_script(struct pf_dt_box *box, const char *script, const char *const *words, bool again,
                 const char *operation, const char *path, struct pf_buf *text,
                 struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf whole = PF_BUF_INIT(TEXT_MAX);
    PF_CLEANUP(pf_buf_done) struct pf_buf command = PF_BUF_INIT(4 * TYPED_MAX);
    struct pinfold_error own = PINFOLD_ERROR_INIT;
    char file[PF_DT_PATH_MAX];
    int status = -1, r = pf_dt_fail_start(box, err);

    if (r == 0)
        r = pf_dt_fail_bare(box, err);
    if (r < 0)
        return r;
    r = write_script(box, script, words, &whole);
    if (r < 0)
        return pf_fail_nomem(err);
    r = write_command(box, whole.data, whole.len, &command, file, cancel, &own);
    if (r == 0)
        r = execute(box, command.data, again, &status, text, cancel, &own);
    if (r == 0 && file[0])
        pf_dt_forget(box, file);
    if (r < 0) {
        if (err)
            *err = own;
        return pf_wrap(err, r, "%s \"%s\"", operation, PF_QUOTE(path));
    }
    if (status == 0)
        return 0;
    if (status == STATUS_NO_ROOT)
        return pf_fail_os(err, ENOENT, "%s \"%s\": workspace root is gone: workspace %s", operation,
                          PF_QUOTE(path), PF_QUOTE(box->root));
    if (status == STATUS_FAILED)
        return pf_fail_at(err, pf_remote_errno_of(text->data), operation, path);
    return pf_fail(err, PINFOLD_EBACKEND,
                   "%s \"%s\": the script there ended with status %d: \"%s\"", operation,
                   PF_QUOTE(path), status, PF_QUOTE(text->data ? text->data : ""));
}

/* ---- sessions ---- */

const char *pf_dt_find(const struct pf_buf *in, size_t from, const char *text)
{
    return in->len > from ? memmem(in->data + from, in->len - from, text, strlen(text)) : NULL;
}

struct session {
    struct pf_dt_box *box;
    struct pf_dt_run *run;
    char name[40];
    char *id;         /* of the command */
    bool sent;        /* there may be one */
    int64_t deadline; /* its own, from when it was begun */
    struct pinfold_cancel *cancel;
};

static struct pf_daytona_call call_of(const struct session *session)
{
    int64_t soon = pf_clock_deadline(PF_DT_CALL_NS);

    return (struct pf_daytona_call){
        .deadline = session->deadline < soon ? session->deadline : soon,
        .cancel = session->cancel,
        .also_cancel = session->run->stop,
    };
}

/* Whether a session was lost before the command was taken: the service tells that with 500. */
static bool no_session(const struct pinfold_error *err)
{
    return err->http_status == 500 && strstr(err->msg, "session not found");
}

/* A name of our own each time, so that it may be tried again. */
static int begin(struct session *session, const char *command, struct pinfold_error *err)
{
    struct pf_dt_box *box = session->box;
    unsigned tries = 0;
    int r;

    do {
        const struct pf_daytona_call call = call_of(session);
        char digits[33];
        pf_random_hex(digits, 32);
        snprintf(session->name, sizeof(session->name), "pf-%s", digits);
        *err = (struct pinfold_error)PINFOLD_ERROR_INIT;
        r = pf_daytona_session_create(&box->toolbox, session->name, &call, err);
        session->sent = session->sent || r == 0;
        if (r == 0)
            r = pf_daytona_session_exec(&box->toolbox, session->name, command, &call, &session->id,
                                        err);
    } while (r < 0 && ((no_session(err) && tries++ == 0) ||
                       pf_dt_again(box, &tries, false, session->cancel, err)));
    session->deadline = pf_clock_deadline(session->run->timeout_ns);
    return r < 0 ? -err->code : 0;
}

/* Whether polling goes on after a failure: the command runs, whoever cannot be reached. */
static bool passes(struct session *session, unsigned *bad, struct pinfold_error *err)
{
    int status = err->http_status;
    struct pinfold_error own = PINFOLD_ERROR_INIT;
    unsigned tries = 0;

    if (err->code == PINFOLD_ECANCELLED || err->code == PINFOLD_ENOMEM || ++*bad > BAD_POLLS)
        return false;
    if (err->code == PINFOLD_EOS || err->code == PINFOLD_ETIMEOUT || status == 429)
        return true;
    if (status < 500 && status != 400 && status != 404)
        return false;
    /* A sandbox that was stopped meanwhile has lost the command. */
    own.http_status = status;
    if (pf_dt_again(session->box, &tries, true, session->cancel, &own) && status >= 500)
        return true;
    session->sent = own.code != 0;
    if (own.code)
        *err = own;
    else
        pf_wrap(err, -err->code, "the command was lost with its session, or with its sandbox");
    return false;
}

static int poll_until_done(struct session *session, struct pinfold_error *err)
{
    struct pf_dt_run *run = session->run;
    int64_t pause = FIRST_POLL_NS;
    bool done = false;
    unsigned bad = 0;
    int r;

    for (;;) {
        const struct pf_daytona_call call = call_of(session);
        int64_t left =
                session->deadline == PF_NEVER ? PF_NEVER : session->deadline - pf_clock_now();
        run->timed_out = left <= 0;
        if (run->timed_out)
            return 0;
        r = pf_cancel_wait(session->cancel, run->stop,
                           pf_clock_deadline(pause < left ? pause : left), err);
        if (r < 0)
            return r;
        pause = pause < PF_NS_PER_SEC ? pause + pause / 2 : PF_NS_PER_SEC;
        *err = (struct pinfold_error)PINFOLD_ERROR_INIT;
        r = pf_daytona_session_poll(&session->box->toolbox, session->name, session->id, &call,
                                    &done, &run->status, err);
        if (r == 0 && done)
            return 0;
        if (r == 0)
            bad = 0;
        else if (pf_clock_now() < session->deadline && !passes(session, &bad, err))
            return -err->code;
    }
}

static bool is_whole(const struct pf_dt_run *run)
{
    return !run->end || (pf_dt_find(&run->out, 0, run->end) && pf_dt_find(&run->errs, 0, run->end));
}

/* The status may be known before the log is. */
static int read_log(struct session *session, struct pinfold_error *err)
{
    struct pf_dt_run *run = session->run;
    int64_t pause = FIRST_POLL_NS;
    int r;

    for (int i = 0;; i++) {
        const struct pf_daytona_call call = { .deadline = pf_clock_deadline(PF_DT_CALL_NS),
                                              .cancel = session->cancel,
                                              .also_cancel = run->stop };
        run->out.len = run->errs.len = 0;
        *err = (struct pinfold_error)PINFOLD_ERROR_INIT;
        r = pf_daytona_session_logs(&session->box->toolbox, session->name, session->id, &call,
                                    &run->out, &run->errs, err);
        if (r < 0 || run->timed_out || is_whole(run) || i == LOG_TRIES)
            return r;
        r = pf_cancel_wait(session->cancel, run->stop, pf_clock_deadline(pause), err);
        if (r < 0)
            return r;
        pause = pause < PF_NS_PER_SEC ? 2 * pause : pause;
    }
}

/* Everything that was started in it is dead when this returns. */
static void end(struct session *session)
{
    const struct pf_daytona_call call = { .deadline = pf_clock_deadline(END_NS) };
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    if (pf_daytona_session_delete(&session->box->toolbox, session->name, &call, &err) < 0) {
        session->run->kill_failed = session->sent && !session->box->lost;
        pf_log(PINFOLD_LOG_WARNING, "%s", err.msg);
    }
    free(session->id);
}

int pf_dt_run(struct pf_dt_box *box, struct pf_dt_run *run, struct pinfold_cancel *cancel,
              struct pinfold_error *err)
{
    struct session session = { .box = box, .run = run, .deadline = PF_NEVER, .cancel = cancel };
    PF_CLEANUP(pf_buf_done) struct pf_buf command = PF_BUF_INIT(4 * TYPED_MAX);
    struct pinfold_error own = PINFOLD_ERROR_INIT;
    char file[PF_DT_PATH_MAX];
    int r;

    run->out = (struct pf_buf)PF_BUF_INIT(LOG_MAX);
    run->errs = (struct pf_buf)PF_BUF_INIT(LOG_MAX);
    r = write_command(box, run->text, run->len, &command, file, cancel, &own);
    if (r == 0)
        r = begin(&session, command.data, &own);
    if (r == 0)
        r = poll_until_done(&session, &own);
    if (r == 0)
        r = read_log(&session, &own);
    if (session.name[0])
        end(&session);
    if (file[0] && !box->lost)
        pf_dt_forget(box, file);
    if (r < 0 && err)
        *err = own;
    if (r < 0)
        pf_dt_run_done(run);
    return r;
}

void pf_dt_run_done(struct pf_dt_run *run)
{
    pf_buf_done(&run->out);
    pf_buf_done(&run->errs);
}

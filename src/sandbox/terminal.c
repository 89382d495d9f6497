/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox's terminal: the backend's, which keeps the sandbox in use while it is open, and is
 * audited when it is opened and when it is closed.
 */
#include "sandbox/sandbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"

struct watched {
    struct pinfold_terminal *inner;
    struct pinfold_sandbox *sandbox;
    struct pf_session *session; /* a reference, held */
    /* Of the event at the end. */
    char *cwd;
    char hash[PF_AUDIT_HASH_DIGITS + 1];
    int64_t command_len;
    const char *inferred_op;
};

static void watched_free(struct watched *watched)
{
    free(watched->cwd);
    free(watched);
}

static void watched_freep(struct watched **watched)
{
    if (*watched)
        watched_free(*watched);
}

static ssize_t watched_read(void *state, void *buffer, size_t size, double timeout_seconds,
                            struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    const struct watched *watched = state;

    return pinfold_terminal_read(watched->inner, buffer, size, timeout_seconds, cancel, err);
}

static ssize_t watched_write(void *state, const void *data, size_t len, double timeout_seconds,
                             struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    const struct watched *watched = state;

    return pinfold_terminal_write(watched->inner, data, len, timeout_seconds, cancel, err);
}

static int watched_resize(void *state, uint16_t rows, uint16_t cols, struct pinfold_error *err)
{
    return pinfold_terminal_resize(((const struct watched *)state)->inner, rows, cols, err);
}

static int watched_signal(void *state, int signal, struct pinfold_error *err)
{
    return pinfold_terminal_signal(((const struct watched *)state)->inner, signal, err);
}

static void watched_kill(void *state)
{
    pinfold_terminal_kill(((const struct watched *)state)->inner);
}

static int watched_wait(void *state, double timeout_seconds, struct pinfold_terminal_exit *ret_exit,
                        struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    return pinfold_terminal_wait(((const struct watched *)state)->inner, timeout_seconds, ret_exit,
                                 cancel, err);
}

static int watched_fd(void *state)
{
    return pinfold_terminal_fd(((const struct watched *)state)->inner);
}

/* One that still runs is killed first, so that the event can say how it ended. */
static void audit_end(const struct watched *watched)
{
    struct pinfold_audit_event event = PF_AUDIT_EVENT_INIT("sandbox.close_terminal");
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_terminal_exit end;
    int r = pinfold_terminal_wait(watched->inner, 0, &end, NULL, NULL);

    if (r == -PINFOLD_ETIMEOUT) {
        pinfold_terminal_kill(watched->inner);
        r = pinfold_terminal_wait(watched->inner, 10, &end, NULL, &err);
    }
    event.cwd = watched->cwd;
    event.command_len = watched->command_len;
    event.command_sha256 = watched->hash[0] ? watched->hash : NULL;
    event.inferred_op = watched->inferred_op;
    if (r == 0) {
        event.exit_code = end.exit_code;
        event.timed_out = end.timed_out;
        event.duration_ns = end.duration_ns;
        if (end.peak_bytes > 0) { /* else nobody counted */
            event.cpu_ns = end.cpu_ns;
            event.peak_bytes = (int64_t)end.peak_bytes;
        }
        event.bytes = (int64_t)end.output_bytes;
        if (end.limit)
            event.limit = pinfold_limit_name(end.limit);
    }
    pf_sandbox_audit(watched->sandbox, watched->session, &event, r, &err);
}

static void watched_close(void *state)
{
    struct watched *watched = state;

    if (watched->sandbox->audit.emit)
        audit_end(watched);
    pinfold_terminal_close(watched->inner);
    pf_session_let_go(watched->session);
    pf_session_unref(watched->session);
    watched_free(watched);
}

static const struct pinfold_terminal_ops watched_ops = {
    .size = sizeof(struct pinfold_terminal_ops),
    .read = watched_read,
    .write = watched_write,
    .resize = watched_resize,
    .signal = watched_signal,
    .kill = watched_kill,
    .wait = watched_wait,
    .fd = watched_fd,
    .close = watched_close,
};

static void audit_open(struct pinfold_sandbox *sandbox, const struct pf_session *session,
                       const struct pinfold_terminal_options *options, struct watched *watched,
                       int r, const struct pinfold_error *err)
{
    struct pinfold_audit_event event = PF_AUDIT_EVENT_INIT("sandbox.open_terminal");

    if (!sandbox->audit.emit)
        return;
    /* No memory: the event lacks the hash. */
    (void)pf_sandbox_describe_command(options->command, options->command_len, options->argv, &event,
                                      watched->hash);
    watched->command_len = event.command_len;
    watched->inferred_op = event.inferred_op;
    event.cwd = options->cwd ? options->cwd : ".";
    pf_sandbox_audit(sandbox, session, &event, r, err);
}

static int check_options(const struct pinfold_terminal_options *options, struct pinfold_error *err)
{
    if (options->size != sizeof(*options))
        return pf_fail(err, PINFOLD_EVALUE, "open a terminal: options of %zu bytes, not %zu",
                       options->size, sizeof(*options));
    if (options->command && options->argv)
        return pf_fail(err, PINFOLD_EVALUE, "open a terminal: give a command, an argv, or neither");
    return 0;
}

/* Open the backend's terminal, and ours around it. */
static int open_terminal(const struct pinfold_sandbox *sandbox, struct pf_session *session,
                         const struct pinfold_terminal_options *options, struct watched *watched,
                         struct pinfold_terminal **ret_terminal, struct pinfold_cancel *cancel,
                         struct pinfold_error *err)
{
    struct pinfold_terminal_options normalised = *options;
    _cleanup_free_ char *cwd = NULL;
    int r = pf_sandbox_path(session, options->cwd ? options->cwd : ".", &cwd, err);

    if (r < 0)
        return r;
    normalised.cwd = cwd;
    r = PF_BACKEND_CALL(pf_sandbox_reader(sandbox, session), err, open_terminal, &normalised,
                        &watched->inner, cancel, err);
    if (r < 0)
        return r;
    r = pinfold_terminal_new(&watched_ops, watched, ret_terminal, err);
    if (r < 0)
        pinfold_terminal_close(watched->inner);
    return r;
}

int pinfold_sandbox_open_terminal(struct pinfold_sandbox *sandbox,
                                  const struct pinfold_terminal_options *options,
                                  struct pinfold_terminal **ret_terminal,
                                  struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    static const struct pinfold_terminal_options defaults = PINFOLD_TERMINAL_OPTIONS_INIT;
    _cleanup_operation_ struct pf_session *session = NULL;
    PF_CLEANUP(watched_freep) struct watched *watched = NULL;
    struct pinfold_error local = PINFOLD_ERROR_INIT;
    int r;

    if (!options)
        options = &defaults;
    r = check_options(options, err);
    if (r == 0)
        r = pf_sandbox_begin(sandbox, &session, err);
    if (r < 0)
        return r;
    watched = calloc(1, sizeof(*watched));
    if (!watched)
        return pf_fail_nomem(err);
    watched->sandbox = sandbox;
    watched->cwd = strdup(options->cwd ? options->cwd : ".");
    if (!watched->cwd)
        return pf_fail_nomem(err);
    r = open_terminal(sandbox, session, options, watched, ret_terminal, cancel, &local);
    audit_open(sandbox, session, options, watched, r, &local);
    if (r < 0) {
        if (err)
            *err = local;
        return r;
    }
    watched->session = pf_session_ref(session);
    pf_session_hold(session);
    (void)TAKE(watched);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/pty.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "proc/terminal.h"

struct pty {
    struct pf_terminal *terminal;
    pf_pty_judge_fn judge;
    void *judge_ctx;
};

static int64_t to_ns(double seconds)
{
    if (seconds < 0 || seconds >= 9e9)
        return PF_NEVER;
    return (int64_t)(seconds * (double)PF_NS_PER_SEC);
}

static struct pf_terminal *terminal_of(void *state)
{
    return ((struct pty *)state)->terminal;
}

static ssize_t pty_read(void *state, void *buffer, size_t size, double timeout_seconds,
                        struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    return pf_terminal_read(terminal_of(state), buffer, size, to_ns(timeout_seconds), cancel, err);
}

static ssize_t pty_write(void *state, const void *data, size_t len, double timeout_seconds,
                         struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    return pf_terminal_write(terminal_of(state), data, len, to_ns(timeout_seconds), cancel, err);
}

static int pty_resize(void *state, uint16_t rows, uint16_t cols, struct pinfold_error *err)
{
    return pf_terminal_resize(terminal_of(state), rows, cols, err);
}

static int pty_signal(void *state, int signal, struct pinfold_error *err)
{
    return pf_terminal_signal(terminal_of(state), signal, err);
}

static void pty_kill(void *state)
{
    pf_terminal_kill(terminal_of(state));
}

static int pty_wait(void *state, double timeout_seconds, struct pinfold_terminal_exit *ret_exit,
                    struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    const struct pty *pty = state;
    int r = pf_terminal_wait(pty->terminal, to_ns(timeout_seconds), ret_exit, cancel, err);

    if (r == 0 && pty->judge)
        pty->judge(pty->judge_ctx, ret_exit);
    return r;
}

static int pty_fd(void *state)
{
    return pf_terminal_fd(terminal_of(state));
}

static void pty_close(void *state)
{
    struct pty *pty = state;

    pf_terminal_close(pty->terminal);
    free(pty->judge_ctx);
    free(pty);
}

static const struct pinfold_terminal_ops pty_ops = {
    .size = sizeof(struct pinfold_terminal_ops),
    .read = pty_read,
    .write = pty_write,
    .resize = pty_resize,
    .signal = pty_signal,
    .kill = pty_kill,
    .wait = pty_wait,
    .fd = pty_fd,
    .close = pty_close,
};

int pf_pty_options(const struct pinfold_terminal_options *options, const char *shell,
                   struct pinfold_execute_options *ret, struct pinfold_error *err)
{
    bool is_shell = !options->command && !options->argv;

    if (isnan(options->timeout_seconds) || options->timeout_seconds < 0)
        return pf_fail(err, PINFOLD_EVALUE, "timeout must be more than 0 seconds, not %g",
                       options->timeout_seconds);
    *ret = (struct pinfold_execute_options){
        .size = sizeof(*ret),
        .command = is_shell ? shell : options->command,
        .command_len = is_shell ? 0 : options->command_len,
        .argv = options->argv,
        .cwd = options->cwd,
        .env = options->env,
        .timeout_seconds = options->timeout_seconds > 0 ? options->timeout_seconds : HUGE_VAL,
    };
    return 0;
}

char *pf_pty_term(const struct pinfold_terminal_options *options)
{
    char *term = NULL;

    return asprintf(&term, "TERM=%s", options->term ? options->term : "xterm-256color") < 0 ? NULL
                                                                                            : term;
}

int pf_pty_open(struct pf_launcher *launcher, const struct pf_run_request *request,
                const struct pinfold_terminal_options *options, pf_pty_judge_fn judge, void *ctx,
                struct pinfold_terminal **ret_terminal, struct pinfold_error *err)
{
    struct pty *pty = malloc(sizeof(*pty));
    int r;

    if (!pty)
        return pf_fail_nomem(err);
    *pty = (struct pty){ .judge = judge, .judge_ctx = ctx };
    r = pf_terminal_open(launcher, request, options->rows ? options->rows : 24,
                         options->cols ? options->cols : 80, &pty->terminal, err);
    if (r == 0) {
        r = pinfold_terminal_new(&pty_ops, pty, ret_terminal, err);
        if (r < 0)
            pf_terminal_close(pty->terminal);
    }
    if (r < 0)
        free(pty);
    return r;
}

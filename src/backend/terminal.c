/* SPDX-License-Identifier: Apache-2.0 */
/* Terminals as everybody sees them: a table of functions and a state. */
#include "backend/backend.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"

struct pinfold_terminal {
    const struct pinfold_terminal_ops *ops;
    void *state;
};

int pinfold_terminal_new(const struct pinfold_terminal_ops *ops, void *state,
                         struct pinfold_terminal **ret_terminal, struct pinfold_error *err)
{
    struct pinfold_terminal *terminal;

    if (ops->size != sizeof(*ops))
        return pf_fail(err, PINFOLD_EVALUE, "terminal: a table of %zu bytes, not %zu", ops->size,
                       sizeof(*ops));
    if (!ops->read || !ops->write || !ops->resize || !ops->signal || !ops->kill || !ops->wait ||
        !ops->fd || !ops->close)
        return pf_fail(err, PINFOLD_EVALUE, "terminal: a table with functions missing");
    terminal = malloc(sizeof(*terminal));
    if (!terminal)
        return pf_fail_nomem(err);
    *terminal = (struct pinfold_terminal){ ops, state };
    *ret_terminal = terminal;
    return 0;
}

static int check_time(double seconds, struct pinfold_error *err)
{
    return isnan(seconds)
                   ? pf_fail(err, PINFOLD_EVALUE, "terminal: the time to wait is not a number")
                   : 0;
}

ssize_t pinfold_terminal_read(struct pinfold_terminal *terminal, void *buffer, size_t size,
                              double timeout_seconds, struct pinfold_cancel *cancel,
                              struct pinfold_error *err)
{
    int r = check_time(timeout_seconds, err);

    if (r == 0 && size == 0)
        r = pf_fail(err, PINFOLD_EVALUE, "terminal: nothing can be read into 0 bytes");
    return r < 0 ? r
                 : terminal->ops->read(terminal->state, buffer, size, timeout_seconds, cancel, err);
}

ssize_t pinfold_terminal_write(struct pinfold_terminal *terminal, const void *data, size_t len,
                               double timeout_seconds, struct pinfold_cancel *cancel,
                               struct pinfold_error *err)
{
    int r = check_time(timeout_seconds, err);

    return r < 0 ? r
                 : terminal->ops->write(terminal->state, data, len, timeout_seconds, cancel, err);
}

int pinfold_terminal_resize(struct pinfold_terminal *terminal, uint16_t rows, uint16_t cols,
                            struct pinfold_error *err)
{
    return terminal->ops->resize(terminal->state, rows, cols, err);
}

int pinfold_terminal_signal(struct pinfold_terminal *terminal, int signal,
                            struct pinfold_error *err)
{
    return terminal->ops->signal(terminal->state, signal, err);
}

void pinfold_terminal_kill(struct pinfold_terminal *terminal)
{
    if (terminal)
        terminal->ops->kill(terminal->state);
}

int pinfold_terminal_wait(struct pinfold_terminal *terminal, double timeout_seconds,
                          struct pinfold_terminal_exit *ret_exit, struct pinfold_cancel *cancel,
                          struct pinfold_error *err)
{
    int r = check_time(timeout_seconds, err);

    return r < 0 ? r : terminal->ops->wait(terminal->state, timeout_seconds, ret_exit, cancel, err);
}

int pinfold_terminal_fd(struct pinfold_terminal *terminal)
{
    return terminal->ops->fd(terminal->state);
}

void pinfold_terminal_close(struct pinfold_terminal *terminal)
{
    if (!terminal)
        return;
    terminal->ops->close(terminal->state);
    free(terminal);
}

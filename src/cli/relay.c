/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One loop over both terminals and the signals. Each direction has one buffer and is read only when
 * that is empty: so a program that prints without end waits for a screen that does not take it, and
 * a paste waits for a program that does not read, while the other direction and Ctrl-C go on.
 */
#include "cli/relay.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "cli/say.h"
#include "cli/screen.h"

/* How long to wait before typing again into a terminal that takes no more: there is no descriptor
 * to wait for that. Doubled each time. */
enum { FIRST_PAUSE_MS = 1, LONGEST_PAUSE_MS = 64 };

struct pipe {
    char data[65536];
    size_t from, to; /* what is still to be written */
};

struct relay {
    struct pf_screen screen;
    struct pinfold_terminal *terminal;
    int signals;
    struct pipe typed, printed;
    int pause_ms; /* 0: typing is not held up */
    bool ended;   /* the command's output has */
};

static bool is_empty(const struct pipe *pipe)
{
    return pipe->from == pipe->to;
}

static int fail_os(struct pinfold_error *err, int sys_errno, const char *what)
{
    err->code = PINFOLD_EOS;
    err->sys_errno = sys_errno;
    snprintf(err->msg, sizeof(err->msg), "%s: %s", what, pf_error_words(sys_errno));
    return -PINFOLD_EOS;
}

static void resize(struct relay *relay)
{
    uint16_t rows, cols;

    pf_screen_size(&relay->screen, &rows, &cols);
    if (rows) /* a terminal that has just lost its size keeps the one before */
        (void)pinfold_terminal_resize(relay->terminal, rows, cols, NULL);
}

/* Returns 0 or an errno. */
static int take_signal(struct relay *relay)
{
    struct signalfd_siginfo info;

    if (read(relay->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return 0;
    if (info.ssi_signo == SIGTSTP) {
        pf_screen_restore(&relay->screen);
        kill(getpid(), SIGSTOP);
    }
    resize(relay);
    /* Whoever had the terminal while we were stopped left it in modes of his own. */
    return info.ssi_signo == SIGWINCH ? 0 : pf_screen_raw(&relay->screen);
}

/* From the keyboard. Returns 0 or an errno. */
static int read_keys(struct relay *relay)
{
    ssize_t len = read(relay->screen.in, relay->typed.data, sizeof(relay->typed.data));

    if (len < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : errno;
    if (len == 0) /* hung up */
        return EIO;
    relay->typed.from = 0;
    relay->typed.to = (size_t)len;
    return 0;
}

static void type(struct relay *relay)
{
    struct pipe *typed = &relay->typed;
    ssize_t len = pinfold_terminal_write(relay->terminal, typed->data + typed->from,
                                         typed->to - typed->from, 0, NULL, NULL);

    if (len < 0 && len != -PINFOLD_ETIMEOUT) /* nobody is there to read it */
        typed->from = typed->to;
    else if (len > 0)
        typed->from += (size_t)len;
    if (is_empty(typed))
        relay->pause_ms = 0;
    else if (len > 0 || !relay->pause_ms)
        relay->pause_ms = FIRST_PAUSE_MS;
    else if (relay->pause_ms < LONGEST_PAUSE_MS)
        relay->pause_ms *= 2;
}

static int read_output(struct relay *relay, struct pinfold_error *err)
{
    ssize_t len = pinfold_terminal_read(relay->terminal, relay->printed.data,
                                        sizeof(relay->printed.data), 0, NULL, err);

    if (len == -PINFOLD_ETIMEOUT)
        return 0;
    relay->ended = len == 0;
    relay->printed.from = 0;
    relay->printed.to = len > 0 ? (size_t)len : 0;
    return len < 0 ? (int)len : 0;
}

/* Onto the screen. Returns 0 or an errno. */
static int show(struct relay *relay)
{
    struct pipe *printed = &relay->printed;
    size_t len = printed->to - printed->from;
    ssize_t done;

    /* Should it be one that blocks, this much does not hold us up when it polls writable. */
    if (len > 4096)
        len = 4096;
    done = write(relay->screen.out, printed->data + printed->from, len);
    if (done < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : errno;
    printed->from += (size_t)done;
    return 0;
}

static int step(struct relay *relay, struct pinfold_error *err)
{
    enum { KEYS, OUTPUT, SHOW, SIGNALS, COUNT };
    struct pollfd fds[COUNT] = {
        [KEYS] = { is_empty(&relay->typed) ? relay->screen.in : -1, POLLIN, 0 },
        [OUTPUT] = { is_empty(&relay->printed) && !relay->ended
                             ? pinfold_terminal_fd(relay->terminal)
                             : -1,
                     POLLIN, 0 },
        [SHOW] = { is_empty(&relay->printed) ? -1 : relay->screen.out, POLLOUT, 0 },
        [SIGNALS] = { relay->signals, POLLIN, 0 },
    };
    int sys_errno = 0, r = 0;

    if (poll(fds, COUNT, relay->pause_ms ? relay->pause_ms : -1) < 0 && errno != EINTR)
        return fail_os(err, errno, "wait for a terminal");
    if (pf_interrupt_signal()) {
        err->code = PINFOLD_ECANCELLED;
        return -PINFOLD_ECANCELLED;
    }
    if (fds[SIGNALS].revents)
        sys_errno = take_signal(relay);
    if (sys_errno == 0 && fds[KEYS].revents)
        sys_errno = read_keys(relay);
    if (!is_empty(&relay->typed))
        type(relay);
    if (fds[OUTPUT].revents)
        r = read_output(relay, err);
    if (sys_errno == 0 && !is_empty(&relay->printed) && (fds[OUTPUT].revents || fds[SHOW].revents))
        sys_errno = show(relay);
    return sys_errno ? fail_os(err, sys_errno, "use the terminal that pinfold was started on") : r;
}

static int relay_all(struct relay *relay, struct pinfold_terminal_exit *ret_exit,
                     struct pinfold_error *err)
{
    int sys_errno = pf_screen_raw(&relay->screen), r = 0;

    if (sys_errno)
        return fail_os(err, sys_errno, "put the terminal into raw mode");
    resize(relay); /* it may have changed before we watched it */
    while (r == 0 && !(relay->ended && is_empty(&relay->printed)))
        r = step(relay, err);
    return r < 0 ? r : pinfold_terminal_wait(relay->terminal, -1, ret_exit, NULL, err);
}

/* SIGCONT too is only to be known of here: it wakes us all the same. */
static int watch_signals(sigset_t *old)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGWINCH);
    sigaddset(&set, SIGCONT);
    sigaddset(&set, SIGTSTP);
    pthread_sigmask(SIG_BLOCK, &set, old);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

bool pf_relay_possible(void)
{
    return isatty(STDIN_FILENO);
}

int pf_relay(struct pinfold_sandbox *sandbox, struct pinfold_terminal_options *what,
             struct pinfold_cancel *cancel, struct pinfold_terminal_exit *ret_exit,
             struct pinfold_error *err)
{
    struct relay *relay = calloc(1, sizeof(*relay));
    const char *term = getenv("TERM");
    sigset_t old;
    int r;

    if (!relay || (r = pf_screen_open(&relay->screen)) != 0) {
        r = fail_os(err, relay ? r : ENOMEM, "use the terminal that pinfold was started on");
        free(relay);
        return r;
    }
    what->term = term && *term ? term : "dumb";
    pf_screen_size(&relay->screen, &what->rows, &what->cols);
    relay->signals = watch_signals(&old);
    r = relay->signals < 0
                ? fail_os(err, errno, "watch for signals")
                : pinfold_sandbox_open_terminal(sandbox, what, &relay->terminal, cancel, err);
    if (r == 0)
        r = relay_all(relay, ret_exit, err);
    /* First of all: what follows may take a moment. */
    pf_screen_close(&relay->screen);
    pinfold_terminal_close(relay->terminal);
    if (relay->signals >= 0)
        close(relay->signals);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    free(relay);
    return r;
}

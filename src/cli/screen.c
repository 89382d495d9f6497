/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

static bool same_modes(const struct termios *a, const struct termios *b)
{
    /* Not the speed and size of characters, of which not every terminal takes what is asked. */
    return a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag && a->c_lflag == b->c_lflag &&
           memcmp(a->c_cc, b->c_cc, sizeof(a->c_cc)) == 0;
}

/* A file of our own on the same terminal: O_NONBLOCK on the one we were given would be seen by
 * everybody who shares it. Where that is not possible the given one serves, and a terminal that
 * takes no output holds us up. */
static int open_again(int fd, int mode)
{
    char path[32];
    int own;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    own = isatty(fd) ? open(path, mode | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
    return own >= 0 ? own : fd;
}

/* A process that waits for our end. If the terminal then still is as we made it we were killed, and
 * nobody else has mended it: so it does. In a session of its own, where what kills our group does
 * not reach it, and where it may change the terminal without being in its foreground. All signals
 * are blocked. */
static void be_guard(const struct pf_screen *screen, int ours) __attribute__((noreturn));
static void be_guard(const struct pf_screen *screen, int ours)
{
    int keep_low = ours < screen->in ? ours : screen->in;
    int keep_high = ours < screen->in ? screen->in : ours;
    struct termios now;
    char byte;

    setsid();
    /* Among them what keeps a sandbox alive. */
    if (keep_low > 0)
        close_range(0, (unsigned)keep_low - 1, 0);
    if (keep_high > keep_low + 1)
        close_range((unsigned)keep_low + 1, (unsigned)keep_high - 1, 0);
    close_range((unsigned)keep_high + 1, ~0U, 0);
    while (read(ours, &byte, 1) < 0 && errno == EINTR) {
    }
    if (tcgetattr(screen->in, &now) == 0 && same_modes(&now, &screen->during))
        tcsetattr(screen->in, TCSANOW, &screen->before);
    _exit(0);
}

static int start_guard(struct pf_screen *screen)
{
    int ends[2], sys_errno;
    sigset_t all, old;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return errno;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* our handlers are not the guard's */
    screen->guard = fork();
    sys_errno = errno;
    if (screen->guard == 0) {
        close(ends[1]);
        be_guard(screen, ends[0]);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    close(ends[0]);
    if (screen->guard < 0) {
        close(ends[1]);
        return sys_errno;
    }
    screen->lifeline = ends[1];
    return 0;
}

int pf_screen_open(struct pf_screen *screen)
{
    *screen = (struct pf_screen){ .in = -1, .out = -1, .lifeline = -1, .guard = -1 };
    if (tcgetattr(STDIN_FILENO, &screen->before) < 0)
        return errno;
    screen->during = screen->before;
    cfmakeraw(&screen->during);
    screen->in = open_again(STDIN_FILENO, O_RDONLY);
    screen->out = open_again(STDOUT_FILENO, O_WRONLY);
    return 0;
}

int pf_screen_raw(struct pf_screen *screen)
{
    int r = screen->guard < 0 ? start_guard(screen) : 0;

    if (r != 0)
        return r;
    while (tcsetattr(screen->in, TCSANOW, &screen->during) < 0)
        if (errno != EINTR)
            return errno;
    screen->raw = true;
    return 0;
}

void pf_screen_restore(struct pf_screen *screen)
{
    if (!screen->raw)
        return;
    tcflush(screen->in, TCIFLUSH);
    /* At once: output that the terminal does not take must not hold us up. */
    while (tcsetattr(screen->in, TCSANOW, &screen->before) < 0 && errno == EINTR) {
    }
    screen->raw = false;
}

void pf_screen_close(struct pf_screen *screen)
{
    pf_screen_restore(screen);
    if (screen->lifeline >= 0)
        close(screen->lifeline);
    while (screen->guard > 0 && waitpid(screen->guard, NULL, 0) < 0 && errno == EINTR) {
    }
    if (screen->in > STDIN_FILENO)
        close(screen->in);
    if (screen->out > STDOUT_FILENO)
        close(screen->out);
}

void pf_screen_size(const struct pf_screen *screen, uint16_t *ret_rows, uint16_t *ret_cols)
{
    struct winsize size = { 0 };

    if (ioctl(screen->in, TIOCGWINSZ, &size) < 0 || !size.ws_row || !size.ws_col)
        size = (struct winsize){ 0 };
    *ret_rows = size.ws_row;
    *ret_cols = size.ws_col;
}

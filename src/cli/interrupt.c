/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/interrupt.h"

#include <stddef.h>
#include <sys/time.h>
#include <time.h>

static struct pinfold_cancel *volatile token;
static volatile sig_atomic_t caught;

/* Interrupt blocked calls from first_us on, ten times a second: a single signal could come between
 * the last look at the token or the clock and the call that then blocks. */
static void keep_waking(int64_t first_us)
{
    struct itimerval timer = { .it_interval.tv_usec = 100000 };

    timer.it_value.tv_sec = first_us / 1000000;
    timer.it_value.tv_usec = first_us % 1000000;
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void fire(int number)
{
    /* The first one names the exit status; a second changes nothing, so that an impatient
     * Ctrl-C cannot break the cleanup. */
    if (caught)
        return;
    caught = number;
    pinfold_cancel_fire(token);
    keep_waking(100000);
}

static void wake(int number)
{
    (void)number;
}

void pf_signals_catch(const struct sigaction *action)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
    struct sigaction old;

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        /* nohup and "&" in a script ignore signals for their commands: that stays so. */
        sigaction(numbers[i], action, &old);
        if (old.sa_handler == SIG_IGN)
            sigaction(numbers[i], &old, NULL);
    }
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
}

int pf_interrupt_catch(struct pinfold_cancel **ret_cancel, struct pinfold_error *err)
{
    /* No SA_RESTART: a write that blocks on our stdout has to notice. */
    struct sigaction action = { .sa_handler = wake };
    int r = pinfold_cancel_new(ret_cancel, err);

    if (r < 0)
        return r;
    token = *ret_cancel;
    sigaction(SIGALRM, &action, NULL);
    action.sa_handler = fire;
    pf_signals_catch(&action);
    return 0;
}

int pf_interrupt_signal(void)
{
    return caught;
}

int pf_interrupt_again(struct pinfold_cancel **cancel, struct pinfold_error *err)
{
    struct pinfold_cancel *fresh;
    int r = pinfold_cancel_new(&fresh, err);

    if (r < 0)
        return r;
    pf_interrupt_writes_never();
    token = fresh;
    caught = 0; /* until here a signal changes nothing: the old token has fired */
    pinfold_cancel_free(*cancel);
    *cancel = fresh;
    return 0;
}

int64_t pf_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

void pf_interrupt_writes_at(int64_t deadline_ns)
{
    int64_t left_us = (deadline_ns - pf_now_ns()) / 1000;

    keep_waking(left_us < 1 ? 1 : left_us);
    if (caught) /* between the two lines above: its earlier time was overwritten */
        keep_waking(100000);
}

void pf_interrupt_writes_never(void)
{
    setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
}

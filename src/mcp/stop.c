/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/stop.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static int wake = -1;
static volatile sig_atomic_t caught;

static void stop(int number)
{
    int saved = errno;

    caught = number;
    if (write(wake, &(uint64_t){ 1 }, sizeof(uint64_t)) < 0)
        caught = number; /* it is full, and so readable */
    errno = saved;
}

int pf_mcp_stop_catch(struct pinfold_error *err)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
    struct sigaction action = { .sa_handler = stop, .sa_flags = SA_RESTART }, old;

    wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake < 0) {
        *err = (struct pinfold_error){ .code = PINFOLD_EOS, .sys_errno = errno };
        snprintf(err->msg, sizeof(err->msg), "make an eventfd: %s", strerror(errno));
        return -PINFOLD_EOS;
    }
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        sigaction(numbers[i], &action, &old);
        if (old.sa_handler == SIG_IGN)
            sigaction(numbers[i], &old, NULL);
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    return 0;
}

int pf_mcp_stop_fd(void)
{
    return wake;
}

int pf_mcp_stop_signal(void)
{
    return caught;
}

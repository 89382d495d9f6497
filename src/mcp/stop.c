/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/stop.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "cli/say.h"

static int wake = -1;
static volatile sig_atomic_t caught;

static void stop(int number)
{
    int saved = errno;

    caught = number;
    (void)!write(wake, &(uint64_t){ 1 }, sizeof(uint64_t)); /* if it is full, it is readable */
    errno = saved;
}

int pf_mcp_stop_catch(struct pinfold_error *err)
{
    struct sigaction action = { .sa_handler = stop, .sa_flags = SA_RESTART };

    wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake < 0) {
        *err = (struct pinfold_error){ .code = PINFOLD_EOS, .sys_errno = errno };
        snprintf(err->msg, sizeof(err->msg), "make an eventfd: %s", pf_error_words(errno));
        return -PINFOLD_EOS;
    }
    pf_signals_catch(&action);
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

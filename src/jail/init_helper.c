/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes beside the first one. They share its memory: a copy would take longer to make than what
 * they do, and after it each page that the first process writes to would have to be copied, too.
 */
#include "jail/init.h"

#include <errno.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

void init_helper_start(struct init_helper *helper, int (*main)(void *arg), void *arg, int flags)
{
    helper->pid = clone(main, helper->stack + sizeof(helper->stack), CLONE_VM | flags, arg);
    if (helper->pid < 0)
        init_fail("start a process", "that builds the sandbox");
}

void init_helper_fail(struct init_helper *helper, const char *step, const char *object)
{
    helper->sys_errno = errno;
    helper->step = step;
    helper->object = object;
    _exit(1);
}

void init_helper_end(struct init_helper *helper)
{
    int status = 0;

    while (waitpid(helper->pid, &status, __WALL) < 0 && errno == EINTR) {
    }
    if (status == 0)
        return;
    errno = helper->step ? helper->sys_errno : ECANCELED;
    init_fail(helper->step ? helper->step : "wait for a process",
              helper->step ? helper->object : "that builds the sandbox");
}

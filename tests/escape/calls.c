/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attacks by system call, each in a process of its own. Prints "NAME escaped" when the kernel did
 * what was asked for, "NAME contained: REASON" when it did not. With --control it is run without a
 * sandbox, to show that they work: what could then hurt the machine is skipped where the process
 * cannot first move to namespaces of its own.
 */
#include "calls.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool control;

bool own_namespace(int flag)
{
    if (unshare(NEW_USER_AND(flag)) == 0)
        return true;
    if (control)
        _exit(0);
    return false;
}

static void perform(const struct attack *attack)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        alarm(5);
        long r = attack->run();
        if (r >= 0)
            printf("%s escaped\n", attack->name);
        else
            printf("%s contained: %s\n", attack->name, strerrorname_np(errno));
        fflush(stdout);
        _exit(0);
    }
    if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFSIGNALED(status))
        printf("%s contained: SIG%s\n", attack->name, sigabbrev_np(WTERMSIG(status)));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const struct attack *const all[] = { mounts_attacks, kernel_attacks, process_attacks,
                                         files_attacks };

    control = argc > 1 && strcmp(argv[1], "--control") == 0;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        for (const struct attack *attack = all[i]; attack->name; attack++)
            perform(attack);
    return 0;
}

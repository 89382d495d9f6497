/* SPDX-License-Identifier: Apache-2.0 */
/* The program that starts quickly: what it cannot do it leaves to the full one. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/extras.h"
#include "cli/say.h"
#include "pf_config.h"

#define FULL_NAME "pinfold-full"

/* The list of all of them, and so their help, is the full program's. */
const struct pf_command *const pf_commands[] = { &pf_command_run, &pf_command_shell,
                                                 &pf_command_doctor, &pf_command_version, NULL };

const struct pf_extras *const pf_extras = NULL;

/* Returns only when it failed, with errno. */
static void execute_in(const char *directory, size_t len, char **argv)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof(path), "%.*s/" FULL_NAME, (int)len, directory) >= (int)sizeof(path))
        errno = ENAMETOOLONG;
    else
        execv(path, argv);
}

bool pf_hand_over(char **argv, int *ret_status)
{
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self));
    const char *slash = len > 0 ? memrchr(self, '/', (size_t)len) : NULL;

    errno = ENOENT;
    if (slash)
        execute_in(self, (size_t)(slash - self), argv);
    if (errno == ENOENT)
        execute_in(PF_LIBEXECDIR, strlen(PF_LIBEXECDIR), argv);
    if (errno == ENOENT)
        pf_say("this takes the program " FULL_NAME
               ", which is neither beside this one nor in " PF_LIBEXECDIR "; install pinfold anew");
    else
        pf_say("execute " FULL_NAME ": %s", strerror(errno));
    *ret_status = PF_EXIT_FAILED;
    return true;
}

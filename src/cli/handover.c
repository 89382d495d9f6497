/* SPDX-License-Identifier: Apache-2.0 */
/* Executing a program that can do more. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/extras.h"
#include "cli/say.h"
#include "pf_config.h"

/* Returns only when it failed, with errno. */
static void execute_in(const char *directory, size_t len, const char *name, char **argv)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof(path), "%.*s/%s", (int)len, directory, name) >= (int)sizeof(path))
        errno = ENAMETOOLONG;
    else
        execv(path, argv);
}

bool pf_hand_over(enum pf_program to, char **argv, int *ret_status)
{
    static const char *const names[] = {
        [PF_FULL] = "pinfold-full", [PF_REMOTE] = "pinfold-remote", [PF_MCP] = "pinfold-mcp"
    };
    char self[PATH_MAX];
    ssize_t len;
    const char *slash;

    if (to <= pf_program)
        return false;
    len = readlink("/proc/self/exe", self, sizeof(self));
    slash = len > 0 ? memrchr(self, '/', (size_t)len) : NULL;
    errno = ENOENT;
    if (slash)
        execute_in(self, (size_t)(slash - self), names[to], argv);
    if (errno == ENOENT)
        execute_in(PF_LIBEXECDIR, strlen(PF_LIBEXECDIR), names[to], argv);
    if (errno == ENOENT)
        pf_say("this takes the program %s, which is neither beside this one nor in " PF_LIBEXECDIR
               "; install pinfold anew",
               names[to]);
    else
        pf_say("execute %s: %s", names[to], pf_error_words(errno));
    *ret_status = PF_EXIT_FAILED;
    return true;
}

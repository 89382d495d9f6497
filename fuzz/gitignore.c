/* SPDX-License-Identifier: Apache-2.0 */
/* The .gitignore of a project that nobody knows: what is taken from it are patterns, behind those
 * that were given. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <pinfold/policy.h>

#include "base/cleanup.h"
#include "cli/agent_run.h"
#include "cli/say.h"
#include "fuzz.h"
#include "../tests/tempdir.h"

static char project[PATH_MAX];

static void leave_project(void)
{
    char path[PATH_MAX + 16];

    snprintf(path, sizeof(path), "%s/.gitignore", project);
    unlink(path);
    rmdir(project);
}

static void write_ignore(const uint8_t *data, size_t size)
{
    char path[PATH_MAX + 16];
    int fd;

    if (!project[0]) {
        demand(test_tempdir("pf-fuzz", project, sizeof(project)) != NULL);
        atexit(leave_project);
        pf_say_set_quiet(true);
    }
    snprintf(path, sizeof(path), "%s/.gitignore", project);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    demand(fd >= 0 && write(fd, data, size) == (ssize_t)size && close(fd) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *given[] = { "given", NULL };
    struct pf_options options = { .seed = project, .exclude = given };
    _cleanup_free_ char *text = NULL;
    _cleanup_free_ const char **list = NULL;

    write_ignore(data, size);
    list = pf_agent_ignores(&options, &text);
    demand(list && list[0] == given[0]);
    demand(pinfold_patterns_check(list, NULL) == 0);
    for (size_t i = 1; list[i]; i++)
        demand(list[i] >= text && list[i] < text + strlen(text) + size);
    return 0;
}

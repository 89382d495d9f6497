/* SPDX-License-Identifier: Apache-2.0 */
/* The command pinfold: finds the subcommand and hands over. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/extras.h"
#include "cli/say.h"

const struct pf_command *pf_command_find(const char *name)
{
    for (const struct pf_command *const *command = pf_commands; *command; command++) {
        if (strcmp((*command)->name, name) == 0)
            return *command;
    }
    return NULL;
}

/* A file opened while 0, 1 or 2 is closed would become our stdout: fill the gaps. Writing to the
 * stdout that is not there still fails: output that is lost is an error. */
static bool fill_standard_fds(void)
{
    struct pollfd fds[3] = { { .fd = 0 }, { .fd = 1 }, { .fd = 2 } };

    if (poll(fds, 3, 0) <= 0)
        return true;
    for (int i = 0; i < 3; i++) {
        /* open() takes the lowest free number, which is this one. */
        if ((fds[i].revents & POLLNVAL) && open("/dev/null", i == 1 ? O_RDONLY : O_RDWR) != i)
            return false;
    }
    return true;
}

/* What printf() still holds goes out now; nobody else would notice that it cannot. */
static int finish(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    if (errno == EPIPE)
        return PF_EXIT_SIGNAL + SIGPIPE;
    pf_say("write to stdout: %s", pf_error_words(errno));
    return PF_EXIT_FAILED;
}

int main(int argc, char **argv)
{
    const struct pf_command *command;
    const char *name = argc > 1 ? argv[1] : "";
    int status;

    if (!fill_standard_fds())
        return PF_EXIT_FAILED;
    if (argc < 2) {
        pf_say("no command given; 'pinfold help' lists what there is");
        return PF_EXIT_FAILED;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    else if (strcmp(name, "--version") == 0)
        name = "version";
    command = pf_command_find(name);
    if (!command && pf_hand_over(PF_FULL, argv, &status))
        return status;
    if (!command) {
        pf_say("%s: no such %s; 'pinfold help' lists what there is", name,
               *name == '-' ? "option here: those of a command follow it" : "command");
        return PF_EXIT_FAILED;
    }
    return finish(command->run(command, argc - 1, argv + 1));
}

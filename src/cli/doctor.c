/* SPDX-License-Identifier: Apache-2.0 */
/* pinfold doctor: what isolation this machine offers, and how to get what is missing. */
#include <stdio.h>
#include <string.h>

#include <pinfold/pinfold.h>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/say.h"

static void show(const struct pinfold_isolated_probe *probe)
{
    for (int i = 0; i < PINFOLD_PROBE_COUNT; i++) {
        const struct pinfold_probe_answer *answer = &probe->answers[i];
        printf("%-8s %s",
               answer->works    ? "ok"
               : answer->needed ? "MISSING"
                                : "without",
               answer->name);
        if (answer->number > 0)
            printf(", version %d", answer->number);
        if (!answer->works)
            printf(": %s\n         %s", answer->detail, answer->hint);
        putchar('\n');
    }
    puts(probe->possible ? "\nCommands can be isolated: 'pinfold run' works."
                         : "\nCommands cannot be isolated here: 'pinfold run' refuses.");
}

/* What holds the limits of a sandbox: one line for each holder would hide which are missing. */
static void show_limits(const struct pinfold_isolated_probe *probe)
{
    puts("\nlimits are held by:");
    for (int i = PINFOLD_LIMIT_NONE + 1; i < PINFOLD_LIMIT_COUNT; i++)
        printf("  %-10s %s%s\n", pinfold_limit_name((enum pinfold_limit)i),
               probe->holders[i] ? pinfold_holder_name(probe->holders[i]) : "nothing",
               i == PINFOLD_LIMIT_CPU_SHARE && !probe->holders[i] ? ": --cpus is refused" : "");
    if (probe->holders[PINFOLD_LIMIT_MEMORY] == PINFOLD_HOLDER_RLIMIT)
        puts("Memory is limited for each process, not for all together; what would count all is\n"
             "control groups: see above how to get them.");
}

void pf_doctor_complain(const char *said)
{
    struct pinfold_isolated_probe probe;

    if (pinfold_isolated_probe(&probe))
        return;
    /* The first is what the rest fails of. */
    for (int i = 0; i < PINFOLD_PROBE_SANDBOX; i++) {
        const struct pinfold_probe_answer *answer = &probe.answers[i];
        if (!answer->needed || answer->works)
            continue;
        if (!strstr(said, answer->hint))
            pf_say("missing: %s (%s); %s", answer->name, answer->detail, answer->hint);
        break;
    }
    pf_say("nothing was run: commands cannot be isolated here. 'pinfold doctor' tells why; with "
           "--backend local they run without isolation, able to do all that you can do");
}

static int run_doctor(const struct pf_command *command, int argc, char **argv)
{
    struct pinfold_isolated_probe probe;
    struct pf_options options;
    int status;

    if (!pf_options_parse(command, argc, argv, &options, &status))
        return status;
    if (options.command[0]) {
        status = pf_usage_error(command, "%s: takes no argument", options.command[0]);
    } else {
        status = pinfold_isolated_probe(&probe) ? 0 : 1;
        show(&probe);
        if (probe.possible)
            show_limits(&probe);
    }
    pf_options_done(&options);
    return status;
}

const struct pf_command pf_command_doctor = {
    .name = "doctor",
    .usage = "",
    .summary = "tell what isolation this machine offers, and how to get what is missing",
    .help = "Everything is tried for real. The exit status is 0 when commands can be isolated, 1\n"
            "when they cannot: then 'pinfold run' refuses without --backend local.",
    .bit = PF_FOR_OTHERS,
    .run = run_doctor,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* A subcommand: help, option parsing and dispatch come from this one struct. */
#ifndef PF_CLI_COMMAND_H
#define PF_CLI_COMMAND_H

/* Exit statuses of pinfold itself; every other status is the command's own. */
enum {
    PF_EXIT_TIMEOUT = 124,
    PF_EXIT_FAILED = 125, /* pinfold failed, or was called wrongly */
    PF_EXIT_SIGNAL = 128, /* plus the signal's number */
};

struct pf_flag;

struct pf_command {
    const char *name;
    const char *usage;   /* what follows the name */
    const char *summary; /* one line, for the list of commands */
    const char *help;    /* what stands below the options in the command's help; may be NULL */
    unsigned bit;        /* which options it takes: see flags.c */
    const struct pf_flag *flags; /* and those that are its own; they stand before others of the same
                                    name. The last has no name; NULL: none */
    /* argv[0] is the subcommand's name. Returns the exit status. */
    int (*run)(const struct pf_command *command, int argc, char **argv);
};

extern const struct pf_command pf_command_run;
extern const struct pf_command pf_command_shell;
extern const struct pf_command pf_command_agent;
extern const struct pf_command pf_command_plan;
extern const struct pf_command pf_command_config;
extern const struct pf_command pf_command_mcp;
extern const struct pf_command pf_command_install; /* a part of it */
extern const struct pf_command pf_command_doctor;
extern const struct pf_command pf_command_version;
extern const struct pf_command pf_command_help;

/* Those that this program has (extras.h), NULL-terminated, in the order of the overview. */
extern const struct pf_command *const pf_commands[];

const struct pf_command *pf_command_find(const char *name);

/* Print the help of one command. Returns the exit status. */
int pf_command_show(const struct pf_command *command);

/* After a sandbox could not be started: if it is that this machine cannot have any, say what is
 * missing, unless said, the text of the error, has it. */
void pf_doctor_complain(const char *said);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of the command takes libraries that are too slow to start, or too large. There are four
 * programs of the same sources: pinfold, which can do the common things at once, pinfold-full,
 * which can do everything on this machine, pinfold-remote, which has libcurl and agents and can
 * talk to services as well, and pinfold-mcp, which is a server besides. Each executes a later one
 * when it is asked for more. Where there is one C library only, pinfold is the full one.
 */
#ifndef PF_CLI_EXTRAS_H
#define PF_CLI_EXTRAS_H

#include <pinfold/audit.h>
#include <pinfold/backend.h>

#include "cli/clash.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/report.h"

enum pf_program { PF_FRONT, PF_FULL, PF_REMOTE, PF_MCP };
extern const enum pf_program pf_program; /* this one */

struct pf_extras {
    /* NULL when out of memory. */
    struct pf_report *(*new_report)(void);
    int (*open_audit)(const char *path, struct pinfold_audit_file **ret_file,
                      struct pinfold_error *err);
    struct pinfold_audit_sink (*audit_sink)(struct pinfold_audit_file *file);
    int (*close_audit)(struct pinfold_audit_file *file, struct pinfold_error *err);
};

/* NULL in the program that has none of it. */
extern const struct pf_extras *const pf_extras;

/* The template of sandboxes at the service that the options name; NULL in the programs that cannot
 * make one. Returns 0 or a negative pinfold_code. */
extern int (*const pf_new_remote)(const struct pf_options *options,
                                  struct pinfold_backend **ret_backend, struct pinfold_error *err);

/* What only the last program has: TOML, for policies, and what else a server takes. NULL in the
 * others. */
struct pf_mcp_extras {
    /* pf_apply_policy(), pf_config_check() and pf_policy_blame(): config_check.h. */
    char **(*words)(const struct pf_command *command, const struct pf_options *options, int argc,
                    char **argv);
    int (*check_config)(const struct pf_command *command, const struct pf_options *options,
                        int argc, char **argv);
    bool (*blame)(const char *config, const struct pf_clash *clash, struct pinfold_error *err);
    /* pf_install(): install.h. */
    int (*install)(const struct pf_command *command, const char *client,
                   const struct pf_options *options, const char *main_word);
};

extern const struct pf_mcp_extras *const pf_mcp_extras;

/* Be a server of the Model Context Protocol. Returns the exit status. NULL in the programs that are
 * none. */
extern int (*const pf_serve_mcp)(const struct pf_options *options);

/* Run the agent that the options describe; NULL in the programs that cannot. Returns the exit
 * status. */
extern int (*const pf_run_agent)(const struct pf_command *command, struct pf_options *options);

/* Execute another program with main's argv, if this is an earlier one. Returns false when it is
 * not; else, having failed and said why, true with the exit status. */
bool pf_hand_over(enum pf_program to, char **argv, int *ret_status);

#endif

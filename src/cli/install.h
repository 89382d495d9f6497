/* SPDX-License-Identifier: Apache-2.0 */
/* pinfold mcp install: the configuration of agent programs. */
#ifndef PF_CLI_INSTALL_H
#define PF_CLI_INSTALL_H

#include <jansson.h>

#include <pinfold/error.h>

#include "cli/options.h"

/* Print, or merge with --write, what client, with options.command as the server's own words, needs
 * to know. main_word is how pinfold itself was called. Returns the exit status. */
int pf_install(const struct pf_command *command, const char *client,
               const struct pf_options *options, const char *main_word);

/* Put a server into a config.toml as Codex has it: section [mcp_servers.NAME], every other line
 * stays. ret_text is to free(). Returns 0, -PINFOLD_EVALUE or -PINFOLD_ENOMEM; err.msg is without
 * a path. */
int pf_install_toml(const char *text, size_t len, const char *name, json_t *value, char **ret_text,
                    struct pinfold_error *err);

/* The section of one server. NULL: out of memory. */
char *pf_install_toml_section(const char *name, json_t *value);

/* A file that is to be changed. */
struct pf_edit {
    char *path; /* behind links */
    char *text; /* what is there, "" when there is nothing */
    size_t len;
    bool exists;
    struct pf_edit_stamp {
        uint64_t dev, ino, size;
        int64_t mtime_ns;
        unsigned mode;
    } stamp;
};

/* Read a file of at most 8 MiB, which need not be there. Returns 0, -PINFOLD_EOS, -PINFOLD_EVALUE
 * or -PINFOLD_ENOMEM. pf_edit_done() is right in either case. */
int pf_edit_open(struct pf_edit *edit, const char *path, struct pinfold_error *err);

/* Exchange it for text at once, unless it has changed meanwhile, and keep what was there beside it:
 * ret_backup is the name of that, to free(), NULL when there was nothing. A new file gets the mode.
 */
int pf_edit_save(const struct pf_edit *edit, const char *text, unsigned mode, char **ret_backup,
                 struct pinfold_error *err);

void pf_edit_done(struct pf_edit *edit);

#endif

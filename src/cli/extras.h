/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of the command takes libraries that are too slow to start, or too large. There are two
 * programs of the same sources: pinfold, which can do the common things at once, and pinfold-full,
 * which can do everything. The first executes the second when it is asked for more. Where there is
 * one C library only, pinfold is the full one.
 */
#ifndef PF_CLI_EXTRAS_H
#define PF_CLI_EXTRAS_H

#include <pinfold/audit.h>

#include "cli/report.h"

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

/* Execute the full program with main's argv, if this is not it. Returns false when it is; else,
 * having failed and said why, true with the exit status. */
bool pf_hand_over(char **argv, int *ret_status);

#endif

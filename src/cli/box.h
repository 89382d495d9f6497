/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox as the options describe it, with all that goes with it. */
#ifndef PF_CLI_BOX_H
#define PF_CLI_BOX_H

#include <pinfold/pinfold.h>

#include "cli/options.h"
#include "cli/progress.h"

struct pf_box {
    struct pinfold_backend *backend;
    struct pinfold_sandbox *sandbox;
    struct pinfold_audit_file *audit;
    struct pinfold_audit_sink sink; /* of the file */
    struct pinfold_audit_sink also; /* set before it is opened: who else hears of events */
    const char *const *stay; /* set before it is opened, and only then looked at: what is not copied
                                back, besides the excludes; NULL: nothing */
    bool goes_on; /* set before it is opened: this process does not end after the close */
    struct pf_progress progress;
    struct pinfold_temp_workspace *temporary; /* NULL: the user has named a workspace, or
                                                 the backend has them elsewhere */
};

/* Make the sandbox, not started, in a workspace that exists or is made by start; NULL for a
 * backend that has them elsewhere. Returns 0 or a
 * negative pinfold_code with err filled; pf_box_close() is right in either case. */
int pf_box_open(struct pf_box *box, const struct pf_options *options, const char *workspace,
                struct pinfold_error *err);

/* Whether the library takes what the options say, as far as their words alone can tell: patterns,
 * names of the network, limits, directories to show; and whether the record of --audit would lie
 * where it could be changed. Nothing is made. Returns 0 or a negative pinfold_code. */
int pf_box_check(const struct pf_options *options, struct pinfold_error *err);

/* What was not copied back shall not be lost: keep a temporary workspace, and say where it is, or
 * that it is lost with what a service made. overlay: the workspace is one. Returns its path, which
 * lives until the close, or NULL. */
const char *pf_box_keep(struct pf_box *box, const struct pf_options *options, bool overlay);

/* Stop and free everything, and remove a temporary workspace that is not to be kept. Returns 0, or
 * a negative pinfold_code and err when something of the work may be lost (the audit file). */
int pf_box_close(struct pf_box *box, struct pinfold_error *err);

#endif

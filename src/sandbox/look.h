/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at a whole workspace from this machine, whatever its backend: in its own directory, or in
 * a copy that is fetched as a flush would. */
#ifndef PF_SANDBOX_LOOK_H
#define PF_SANDBOX_LOOK_H

#include <pinfold/temp_workspace.h>

#include "sandbox/session.h"
#include "tree/glob.h"

struct pf_look {
    int root_fd;
    int upper_fd;                       /* as backends' open_root gives it */
    bool fetched;                       /* a copy, with nothing of what was not asked for */
    struct pf_globs *include, *exclude; /* of the session's sync policy */
    struct pinfold_strings errors;      /* of fetching */
    struct pinfold_temp_workspace *copy;
};

#define PF_LOOK_INIT                  \
    {                                 \
        .root_fd = -1, .upper_fd = -1 \
    }

/* What of a workspace is wanted, where it has to be fetched. */
enum pf_look_scope {
    PF_LOOK_SYNCED,  /* what the sync policy takes */
    PF_LOOK_ALLOWED, /* what it does not exclude */
    PF_LOOK_EVERYTHING,
};

/* What was fetched, for a flush that is to write that very thing. */
struct pinfold_kept {
    char *session_id;
    struct pinfold_temp_workspace *copy;
    struct pinfold_strings errors;
};

/* Take it from a look that is over but for its pf_look_done(); NULL if nothing was fetched. */
int pf_look_keep(struct pf_look *look, const struct pf_session *session, struct pinfold_kept **ret,
                 struct pinfold_error *err);
void pf_kept_free(struct pinfold_kept *kept);

/* sync.c: whether it is of this session: 0, or -PINFOLD_EVALUE. */
int pf_kept_check(const struct pinfold_kept *kept, const struct pf_session *session,
                  struct pinfold_error *err);

/* As pf_look_open(), but what was kept of an earlier look, which is borrowed. */
int pf_look_open_kept(struct pf_look *look, const struct pf_session *session,
                      const struct pinfold_kept *kept, struct pinfold_error *err);

/* Within an operation. */
int pf_look_open(struct pf_look *look, const struct pf_session *session, enum pf_look_scope scope,
                 struct pinfold_cancel *cancel, struct pinfold_error *err);
void pf_look_done(struct pf_look *look);

#endif

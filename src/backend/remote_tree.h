/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside backend/: seeding and flushing a workspace on another machine. Each passes through a
 * temporary directory on this one, so that the rules of seeds and flushes are those of the local
 * backend, by its own code; between that directory and the other machine everything goes as one
 * archive, whatever is in it.
 */
#ifndef PF_BACKEND_REMOTE_TREE_H
#define PF_BACKEND_REMOTE_TREE_H

#include <pinfold/backend.h>
#include <pinfold/temp_workspace.h>

#include "base/buf.h"

enum { PF_REMOTE_NAME_MAX = 512 };

/* What a remote backend can do for it. Scripts are for /bin/sh there, with GNU's tools. */
struct pf_remote {
    void *box;
    const char *root; /* of the workspace there: plain characters */
    /* Run a script. ret_text receives what it says of errors. */
    int (*run)(void *box, const char *script, int *ret_status, struct pf_buf *ret_text,
               struct pinfold_cancel *cancel, struct pinfold_error *err);
    /* Put the first size bytes of a descriptor there. ret_name names them for the next two. */
    int (*put)(void *box, int fd, uint64_t size, char ret_name[static PF_REMOTE_NAME_MAX],
               struct pinfold_cancel *cancel, struct pinfold_error *err);
    /* A command that prints them, and deletes them unless keep. */
    void (*print)(void *box, const char *name, bool keep, char ret[static PF_REMOTE_NAME_MAX]);
    void (*forget)(void *box, const char *name); /* delete what is there still; never fails */
    /* Write what a script prints, at most limit bytes, into a descriptor, once. A script that fails
     * fails as the system's words in its errors say. */
    int (*fetch)(void *box, const char *script, uint64_t limit, int fd,
                 struct pinfold_cancel *cancel, struct pinfold_error *err);
};

int pf_remote_seed(const struct pf_remote *remote, const struct pinfold_seed_request *request,
                   struct pinfold_seed_result *ret_result, struct pinfold_cancel *cancel,
                   struct pinfold_error *err);
int pf_remote_sync(const struct pf_remote *remote, const struct pinfold_sync_request *request,
                   struct pinfold_sync_result *ret_result, struct pinfold_cancel *cancel,
                   struct pinfold_error *err);

/* What is to come: names behind each other, each with a NUL, and how large it may be. */
struct pf_remote_wanted {
    struct pf_buf names;
    uint64_t bytes;
    struct pf_buf large;  /* names of what is too large, likewise */
    struct pf_buf closed; /* of directories in which nobody could look for anything */
};
enum { PF_REMOTE_LIST_MAX = 512 << 20 }; /* bytes of names */
#define PF_REMOTE_WANTED_INIT                                                               \
    {                                                                                       \
        .names = PF_BUF_INIT(PF_REMOTE_LIST_MAX), .large = PF_BUF_INIT(PF_REMOTE_LIST_MAX), \
        .closed = PF_BUF_INIT(PF_REMOTE_LIST_MAX)                                           \
    }
void pf_remote_wanted_done(struct pf_remote_wanted *wanted);
/* Fetch that into a stage; what is not there, or cannot be read, does not come. follow: give what
 * links inside the root lead to in their place; names may be there twice. */
int pf_remote_fetch(const struct pf_remote *remote, const struct pf_remote_wanted *wanted,
                    bool follow, int stage_fd, struct pinfold_cancel *cancel,
                    struct pinfold_error *err);

/* ---- what reads its answers ---- */

/* Of a list of a workspace, records "TYPE SIZE PATH" with a NUL each, what a flush is to fetch. */
int pf_remote_choose(const struct pf_buf *listing, const struct pinfold_sync_request *request,
                     struct pf_remote_wanted *wanted, struct pinfold_error *err);
/* What tar said when it unpacked a seed and ended with this status: errors of the seed, and files
 * that are not there after all. Changes text, which may be NULL. */
int pf_remote_note_unpacking(int stage_fd, char *text, int status,
                             struct pinfold_seed_result *result, struct pinfold_error *err);

/* ---- the stage ---- */

/* A temporary directory of this machine's, through which files pass. */
struct pf_stage {
    struct pinfold_temp_workspace *temp;
    int fd;
};
#define PF_STAGE_INIT \
    {                 \
        .fd = -1      \
    }
int pf_stage_open(struct pf_stage *stage, struct pinfold_error *err);
void pf_stage_done(struct pf_stage *stage);
bool pf_remote_is_in(int stage_fd, const char *path);

#endif

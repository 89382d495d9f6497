/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a seed was taken, and from where. What has changed since, in the seed or in the workspace,
 * is told by the change times of files: nobody can set them back.
 */
#ifndef PF_TREE_SEED_MARK_H
#define PF_TREE_SEED_MARK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct pf_seed_mark {
    char *source; /* host path; NULL: there was no seed */
    char **exclude;
    dev_t dev; /* of the directory */
    ino_t ino;
    int64_t began_ns, ended_ns;
    int64_t booted_ns; /* when the machine was started, by the clock of then */
};

/* Note that a seed is about to be taken. root_fd: the workspace on this machine, borrowed until the
 * end; -1: there is none. Returns 0 or -PINFOLD_ENOMEM. */
int pf_seed_mark_begin(struct pf_seed_mark *mark, const char *source, const char *const *exclude,
                       int root_fd);
/* ... and that it was. */
void pf_seed_mark_end(struct pf_seed_mark *mark, int root_fd);
void pf_seed_mark_done(struct pf_seed_mark *mark);

/* From when on a change time says that something was changed after a moment of the mark. The clock
 * may have been set back since. */
int64_t pf_seed_mark_limit(const struct pf_seed_mark *mark, int64_t moment_ns);

static inline bool pf_changed_since(const struct stat *st, int64_t limit_ns)
{
    return st->st_ctim.tv_sec * INT64_C(1000000000) + st->st_ctim.tv_nsec >= limit_ns;
}

#endif

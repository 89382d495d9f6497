/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the copier. The calling thread walks and decides; what is to be copied it puts
 * into batches, each of one directory, and a few threads work them off:
 *
 *   copy.c       the walk: what is taken, where it goes
 *   copy_pool.c  batches, threads, the list of errors, progress
 *   copy_file.c  one file
 *   copy_plan.c  the dry run's answer for one file
 *   copy_choice.c  what is left out
 *
 * hide.c counts and lists by the same means what it does not copy.
 */
#ifndef PF_TREE_COPY_JOB_H
#define PF_TREE_COPY_JOB_H

#include <pthread.h>
#include <stdatomic.h>

#include "tree/copy.h"

enum {
    PF_COPY_MAX_ERRORS = 10000, /* lines kept: a dying disk has millions of them */
    PF_COPY_MAX_FULL = 8,       /* "no space left" so often: the rest will not fit either */
    PF_COPY_MAX_THREADS = 8,
    PF_COPY_MAX_BATCHES = 32,
    PF_COPY_BATCH_FILES = 64,
    PF_COPY_BATCH_BYTES = 4096, /* of names */
    PF_COPY_ANY_ACCESS = 0777,  /* the permission bits that travel */
};

/* A directory on both sides, shared by its batches. */
struct pf_copy_dir {
    atomic_uint refs;
    atomic_bool mode_seen; /* one file's mode was compared with what was asked for ... */
    atomic_bool mode_lost; /* ... and a default ACL of the directory had changed it */
    int src_fd, dst_fd;    /* owned */
    char path[];           /* for messages; "" for the root */
};

struct pf_copy_batch {
    struct pf_copy_batch *next;
    struct pf_copy_dir *dir;
    unsigned count;
    size_t used;
    char names[PF_COPY_BATCH_BYTES]; /* count NUL-terminated names */
};

struct pf_copy_job {
    const struct pf_copy_options *options;
    mode_t umask;
    dev_t dst_dev; /* of the destination's root */
    ino_t dst_ino;

    atomic_bool stopped; /* nothing more is to be begun: cancelled, out of memory, disk full */
    atomic_bool no_memory;
    atomic_bool disk_full;
    atomic_uint full_errors;
    atomic_uint_least64_t files, bytes; /* copied whole */
    atomic_uint_least64_t moved;        /* bytes, for progress */

    pthread_mutex_t lock; /* protects what follows */
    pthread_cond_t changed;
    struct pf_copy_batch *first, *last; /* waiting */
    struct pf_copy_batch *spare;
    unsigned batch_count;  /* that exist */
    unsigned queued_files; /* so far, until threads are started */
    bool closing;
    struct pinfold_strings errors, skipped;
    uint64_t errors_dropped;

    pthread_t threads[PF_COPY_MAX_THREADS]; /* the caller's own from here on */
    unsigned thread_count;
    char *buffer;
    int64_t next_progress;
};

/* One thread's view. */
struct pf_copy_worker {
    struct pf_copy_job *job;
    char *buffer; /* PF_DATA_BUFFER bytes */
    bool caller;  /* reports progress */
};

/* copy_pool.c */
int pf_copy_job_init(struct pf_copy_job *job, const struct pf_copy_options *options);
void pf_copy_job_done(struct pf_copy_job *job);

/* A directory pair; dst_fd and src_fd are duplicated. NULL: job->no_memory or an error line. */
struct pf_copy_dir *pf_copy_dir_new(struct pf_copy_job *job, int src_fd, int dst_fd,
                                    const char *path, size_t path_len);
void pf_copy_dir_unref(struct pf_copy_dir *dir);

/* An empty batch of dir, which it takes a reference of. Works batches off while there are too
 * many. NULL when out of memory. */
struct pf_copy_batch *pf_copy_batch_new(struct pf_copy_job *job, struct pf_copy_dir *dir);
bool pf_copy_batch_add(struct pf_copy_batch *batch, const char *name); /* false: it is full */
void pf_copy_submit(struct pf_copy_job *job, struct pf_copy_batch *batch);

/* No batch follows: work off what is left and end the threads. */
void pf_copy_finish(struct pf_copy_job *job);

/* Cancellation, and progress when it is time. Returns true when the job has stopped. */
bool pf_copy_tick(struct pf_copy_worker *worker);
/* The same as a pf_data_fn, for what is only read: -ECANCELED when the job has stopped. */
int pf_copy_tick_read(void *worker, uint64_t bytes);

void pf_copy_no_memory(struct pf_copy_job *job);
/* Add the line: copy "dir/name": step: cause. */
void pf_copy_fail(struct pf_copy_job *job, const char *dir, const char *name, const char *step,
                  int sys_errno);
/* As pf_copy_fail, with a cause in words. */
void pf_copy_refuse(struct pf_copy_job *job, const char *dir, const char *name, const char *why);
void pf_copy_skipped(struct pf_copy_job *job, const char *dir, const char *name, bool is_dir);

/* copy_file.c */
void pf_copy_file(struct pf_copy_worker *worker, struct pf_copy_dir *dir, const char *name);

struct pf_walk_entry;

/* copy_choice.c */
/* Whether an exclude pattern matches. A link to a directory counts as one, and so does one that
 * leads nowhere: what cannot be known is rather left out. */
bool pf_copy_excluded(const struct pf_copy_options *options, const struct pf_walk_entry *entry);
/* Whether a link of the source stays inside it: 1, 0, or -errno when it cannot be followed now. */
int pf_copy_link_inside(const struct pf_copy_options *options, const struct pf_walk_entry *entry,
                        const char *target);

/* copy.c */
/* A root cannot be used at all: whatever the system said, the workspace is not prepared. */
int pf_copy_fail_root(const struct pf_copy_options *options, int result, struct pinfold_error *err);
/* How the run ended, once all threads have. */
int pf_copy_conclude(struct pf_copy_job *job, struct pf_copy_result *ret,
                     struct pinfold_error *err);

/* copy_plan.c */
/* dst_fd -1: the destination has no such directory. Returns 0 or -PINFOLD_ENOMEM. */
int pf_copy_plan_file(struct pf_copy_job *job, const struct pf_walk_entry *entry, int dst_fd);

#endif

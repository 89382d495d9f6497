/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside backend/: a workspace in a sandbox of Daytona. Bytes of files go by the service's own file
 * operations. What those do not tell, such as where a link leads, or cannot do, such as replacing a
 * file at once, small scripts do there beside them.
 */
#ifndef PF_BACKEND_DAYTONA_H
#define PF_BACKEND_DAYTONA_H

#include <pinfold/daytona.h>
#include <pthread.h>

#include "backend/backend.h"
#include "base/buf.h"
#include "base/clock.h"
#include "net/daytona.h"

#define PF_DT_CALL_NS (120 * PF_NS_PER_SEC)      /* of a small call */
#define PF_DT_TRANSFER_NS (1800 * PF_NS_PER_SEC) /* of one that carries files */
#define PF_DT_IDLE_NS (120 * PF_NS_PER_SEC)      /* of such a one, without a byte */
#define PF_DT_INLINE ((size_t)16 * 1024)         /* bytes of output that come with the log */

struct pf_dt_box {
    /* Set when it is made. */
    struct pf_daytona_config config;
    char *workspace_id, *snapshot, *image, *network_allow_list, *domain_allow_list;
    char **env, **labels;
    double timeout_seconds;
    int auto_stop_minutes, auto_delete_minutes;
    unsigned create_timeout_seconds;
    bool network_block_all;
    size_t max_output_bytes;
    struct pf_http *http;
    struct pf_daytona *client;

    /* Between create and close, when no operation runs, they do not change. */
    char *id; /* of the sandbox */
    struct pf_daytona_toolbox toolbox;
    char *root, *scratch, *storage_key; /* directories there, of plain characters */
    bool bare;                          /* the tools there cannot do what scripts need */
    pid_t owner;                        /* the process that made it: a fork of it must not end it */
    struct pinfold_cancel *stop;        /* fired to end the commands */
    pthread_t keeper;                   /* keeps it awake */
    bool kept;

    pthread_mutex_t waking; /* held by the thread that starts a stopped sandbox again */
    pthread_mutex_t lock;   /* guards the rest, and is never held while waiting for the service */
    pthread_cond_t changed;
    bool stopped; /* no new commands */
    bool ending;  /* the keeper is to return */
    bool lost;    /* the service knows no such sandbox */
};

/* ---- daytona_life.c ---- */

int pf_dt_create(struct pf_dt_box *box, struct pinfold_cancel *cancel, struct pinfold_error *err);
/* Delete the sandbox, if there is one, and forget it. */
int pf_dt_delete(struct pf_dt_box *box, struct pinfold_error *err);

/* After a failure of the toolbox: whether to try again. It starts the sandbox when that was
 * stopped, in which case nothing can have been done; otherwise repeatable must say that doing it
 * twice is harmless. tries counts, from 0. err is the failure, and may become a better one. */
bool pf_dt_again(struct pf_dt_box *box, unsigned *tries, bool repeatable,
                 struct pinfold_cancel *cancel, struct pinfold_error *err);

int pf_dt_fail_start(const struct pf_dt_box *box, struct pinfold_error *err);
/* Fails when nothing but commands works there. */
int pf_dt_fail_bare(const struct pf_dt_box *box, struct pinfold_error *err);

/* ---- daytona_orphans.c ---- */

enum { PF_DT_OWNER_MAX = 80 };
/* A text for a label: this process, and a random number. */
void pf_dt_owner(char ret[static PF_DT_OWNER_MAX]);
/* Delete what runs that died left behind. Only cancellation and want of memory fail. */
int pf_dt_delete_orphans(struct pf_dt_box *box, struct pinfold_cancel *cancel,
                         struct pinfold_error *err);
/* Delete a sandbox that was asked for, and whose id never came. The list of sandboxes lags behind,
 * so it is looked at up to so many times. */
void pf_dt_delete_unseen(struct pf_dt_box *box, const char *owner, int tries);
/* The labels that an orphan of this workspace has; NULL: no memory. */
json_t *pf_dt_labels(const struct pf_dt_box *box);

/* ---- daytona_keeper.c ---- */

void pf_dt_keeper_start(struct pf_dt_box *box);
void pf_dt_keeper_end(struct pf_dt_box *box);

/* ---- daytona_shell.c ---- */

enum { PF_DT_NAME_MAX = 24 };
#define PF_DT_PATH_MAX 400
/* A new name in the scratch directory. */
void pf_dt_scratch(const struct pf_dt_box *box, char ret[static PF_DT_PATH_MAX]);
/* Write bytes to such a name. */
int pf_dt_put_bytes(struct pf_dt_box *box, const char *path, const void *data, size_t len,
                    struct pinfold_cancel *cancel, struct pinfold_error *err);
int pf_dt_put(struct pf_dt_box *box, struct pf_daytona_put *files, size_t count,
              struct pinfold_cancel *cancel, struct pinfold_error *err);
/* Delete a scratch file or directory; never fails. */
void pf_dt_forget(struct pf_dt_box *box, const char *path);

/* Run a script of file operations with words, which are paths relative to the root or whatever. It
 * ends with status 0, or with 9 and the system's words for what was wrong, which then fails as
 * operation on path. again: it may be run twice. text receives what it prints. */
int pf_dt_script(struct pf_dt_box *box, const char *script, const char *const *words, bool again,
                 const char *operation, const char *path, struct pf_buf *text,
                 struct pinfold_cancel *cancel, struct pinfold_error *err);

/* A script in a session of its own, polled until it ends. */
struct pf_dt_run {
    const char *text; /* of the script; any bytes but NUL */
    size_t len;
    int64_t timeout_ns;          /* or PF_NEVER; then it is killed */
    struct pinfold_cancel *stop; /* a second token; may be NULL */
    bool timed_out, kill_failed; /* out */
    int status;                  /* out */
    struct pf_buf out, errs;     /* out: the log, of whole lines */
    const char *end; /* the log is whole when both have this text; NULL: it is at once */
};
int pf_dt_run(struct pf_dt_box *box, struct pf_dt_run *run, struct pinfold_cancel *cancel,
              struct pinfold_error *err);
void pf_dt_run_done(struct pf_dt_run *run);
/* Where text stands in a log, from an offset on, or NULL. */
const char *pf_dt_find(const struct pf_buf *in, size_t from, const char *text);

/* ---- daytona_execute.c ---- */

int pf_dt_execute(void *state, const struct pinfold_execute_options *options,
                  struct pinfold_execute_result *ret_result, struct pinfold_cancel *cancel,
                  struct pinfold_error *err);

/* ---- daytona_files.c ---- */

int pf_dt_read_file(void *state, const char *path, struct pinfold_bytes *ret_content,
                    struct pinfold_cancel *cancel, struct pinfold_error *err);
int pf_dt_write_file(void *state, const char *path, const void *data, size_t len, bool exclusive,
                     struct pinfold_cancel *cancel, struct pinfold_error *err);
int pf_dt_list_dir(void *state, const char *path, struct pinfold_file_infos *ret_infos,
                   struct pinfold_cancel *cancel, struct pinfold_error *err);
int pf_dt_remove_file(void *state, const char *path, struct pinfold_cancel *cancel,
                      struct pinfold_error *err);
int pf_dt_move_file(void *state, const char *src, const char *dest, struct pinfold_cancel *cancel,
                    struct pinfold_error *err);

/* ---- daytona_transfer.c, daytona_tree.c ---- */

/* What became of a file that a script was to look at or to put in place. */
struct pf_dt_verdict {
    int sys_errno; /* 0: fine */
    uint64_t size;
    mode_t mode;
};
/* Look at files: regular ones beneath the root have a size and a mode. */
int pf_dt_look(struct pf_dt_box *box, const char *const *paths, size_t count,
               struct pf_dt_verdict *verdicts, struct pinfold_cancel *cancel,
               struct pinfold_error *err);
/* Move scratch files to their places; a mode is in octal digits, "" for that of a new file. */
int pf_dt_place(struct pf_dt_box *box, const char *const *paths, const char *const *sources,
                const char *const *modes, size_t count, bool exclusive,
                struct pf_dt_verdict *verdicts, struct pinfold_cancel *cancel,
                struct pinfold_error *err);

int pf_dt_upload(void *state, const struct pinfold_upload *files, size_t count, bool overwrite,
                 struct pinfold_transfer_results *ret_results, struct pinfold_cancel *cancel,
                 struct pinfold_error *err);
int pf_dt_download(void *state, const struct pinfold_download *files, size_t count, bool overwrite,
                   struct pinfold_transfer_results *ret_results, struct pinfold_cancel *cancel,
                   struct pinfold_error *err);
int pf_dt_seed(void *state, const struct pinfold_seed_request *request,
               struct pinfold_seed_result *ret_result, struct pinfold_cancel *cancel,
               struct pinfold_error *err);
int pf_dt_sync(void *state, const struct pinfold_sync_request *request,
               struct pinfold_sync_result *ret_result, struct pinfold_cancel *cancel,
               struct pinfold_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside backend/: a workspace in a session of AgentCore's code interpreter. Everything is done by
 * shell scripts that run there, since its own file tools change line ends, know no errors but
 * texts, and do not tell sizes; large data goes in and out as files, by its tools.
 */
#ifndef PF_BACKEND_AGENTCORE_H
#define PF_BACKEND_AGENTCORE_H

#include <pinfold/agentcore.h>
#include <pthread.h>

#include "backend/backend.h"
#include "base/buf.h"
#include "net/agentcore.h"

#define PF_AC_WORKSPACE "workspace"       /* beside what is there from the start */
#define PF_AC_SCRATCH "pinfold-scratch"   /* likewise, for what is on its way */
#define PF_AC_PART ((size_t)24 << 20)     /* bytes of a file in one call, below every limit */
#define PF_AC_INLINE ((size_t)1 << 20)    /* bytes of output that come with their command */
#define PF_AC_COMMAND_MAX ((size_t)60000) /* a longer line would hang in the terminal there */
enum { PF_AC_IN_FLIGHT = 8 };             /* calls at a time; the service takes about 10 */

struct pf_ac_box {
    /* Set when it is made. */
    char *region, *identifier, *endpoint, *name, *profile;
    char *access_key, *secret_key, *session_token;
    char **env;
    unsigned session_timeout;
    double timeout_seconds; /* of a task that names none; 0: none */
    size_t max_output_bytes;
    bool tasks; /* run commands as tasks */
    struct pf_http *http;
    struct pf_aws_provider *provider;
    struct pf_agentcore *client;

    /* Between create and close, when no operation runs, they do not change. */
    char *session, *home, *root, *storage_key;
    pid_t owner; /* the process that made the session: a fork of it must not end it */
    struct pinfold_cancel *stop; /* fired to end the commands */
    int64_t ends;                /* the session, at the earliest */

    pthread_mutex_t lock; /* guards the rest, and is never held while waiting for the service */
    pthread_cond_t fewer;
    unsigned in_flight;
    bool stopped; /* no new commands */
    bool lost;    /* the service has forgotten the session */
};

/* ---- agentcore_frame.c ---- */

/* What a script left. */
struct pf_ac_output {
    int status;
    bool refused; /* its check failed, and it did not begin; errs says why */
    bool partial; /* it has not ended, or not told how: status means nothing */
    bool timed_out, stopped,
            cancelled;           /* a task that was ended: out and errs are what it said so far */
    bool runs_on;                /* one that was to be, and that the service did not end */
    bool merged;                 /* the streams could not be told apart: all is in out */
    struct pf_buf out, errs;     /* at most the limit that was given, of each */
    uint64_t out_size, err_size; /* in all */
    char kept[80];               /* path of a directory that has the whole in o and e, or "" */
};

/* A script between the service and its streams. */
enum { PF_AC_MARK_DIGITS = 16 };
struct pf_ac_wrapper {
    char mark[PF_AC_MARK_DIGITS + 1]; /* what begins its marks, and names its directory */
    char *run;                        /* a command of /bin/sh: the script; owned */
    char forget[400];                 /* another one, for what the script needed */
    size_t limit;                     /* bytes of each stream that are printed */
    bool keep;                        /* leave the whole there when it is more */
    bool checks; /* run it first with the word "check", and not again if that fails */
};

/* Append a wrapper that runs and prints, that runs and leaves its files, and that prints such files
 * (it ends with 3 when there are none). Each returns 0 or what pf_buf_printf() does. */
int pf_ac_wrapper(struct pf_buf *to, const struct pf_ac_wrapper *w);
int pf_ac_task_wrapper(struct pf_buf *to, const struct pf_ac_wrapper *w);
int pf_ac_task_printer(struct pf_buf *to, const struct pf_ac_wrapper *w);

/* Read what a wrapper printed, out of all that came from the terminal (NULL: nothing did). Returns
 * 0, -PINFOLD_EBACKEND (it is not whole, or not what one wrapper prints) or -PINFOLD_ENOMEM;
 * ret is the caller's to free in any case. */
int pf_ac_frame_read(const char *text, const char *mark, size_t limit, struct pf_ac_output *ret);

/* ---- agentcore_shell.c ---- */

/* Call a tool in the box's session. Says what was lost when the session is. stop: a second token,
 * or NULL; the box's own for what stopping the commands is to end, and nothing else: a flush
 * follows that. */
int pf_ac_invoke(struct pf_ac_box *box, const char *tool, json_t *arguments,
                 struct pinfold_cancel *stop, struct pf_agentcore_result *ret,
                 struct pinfold_cancel *cancel, struct pinfold_error *err);
/* The same, within another time than the service's own limit. */
int pf_ac_invoke_within(struct pf_ac_box *box, const char *tool, json_t *arguments, int64_t ns,
                        struct pinfold_cancel *stop, struct pf_agentcore_result *ret,
                        struct pinfold_cancel *cancel, struct pinfold_error *err);

/* A script to run, and how. */
struct pf_ac_job {
    const char *script; /* any text, of any length */
    size_t len, limit;
    bool keep, checks; /* these as in the wrapper */
    struct pinfold_cancel *stop;
    int64_t timeout_ns; /* of a task; PF_NEVER: none */
};
int pf_ac_run_job(struct pf_ac_box *box, const struct pf_ac_job *job, struct pf_ac_output *ret,
                  struct pinfold_cancel *cancel, struct pinfold_error *err);

/* The parts of that: what wraps a job (its script sent ahead when it cannot be typed), what a
 * result of the service says, and whether the whole is still there. */
int pf_ac_prepare(struct pf_ac_box *box, const struct pf_ac_job *job, struct pf_ac_wrapper *w,
                  struct pinfold_cancel *cancel, struct pinfold_error *err);
void pf_ac_wrapper_done(struct pf_ac_wrapper *w);
int pf_ac_understand(const struct pf_agentcore_result *result, const char *mark, size_t limit,
                     struct pf_ac_output *ret, struct pinfold_error *err);
void pf_ac_note_kept(const struct pf_ac_wrapper *w, struct pf_ac_output *output);

/* Run a script by a shell of its own there. limit: bytes of each stream that come back; keep: leave
 * the whole there when it is more; stop: as above. script is any text, of any length. */
int pf_ac_run(struct pf_ac_box *box, const char *script, size_t len, size_t limit, bool keep,
              struct pinfold_cancel *stop, struct pf_ac_output *ret, struct pinfold_cancel *cancel,
              struct pinfold_error *err);
void pf_ac_output_done(struct pf_ac_output *output);

/* ---- agentcore_task.c ---- */

/* The same as pf_ac_run_job(), as a task of the service that may take longer than one call. When
 * the job's token is fired or its time is up, the task is stopped, and that is a success with what
 * it has said; when cancel is fired the same, and cancelled is set. */
int pf_ac_run_task(struct pf_ac_box *box, const struct pf_ac_job *job, struct pf_ac_output *ret,
                   struct pinfold_cancel *cancel, struct pinfold_error *err);

/* ---- agentcore_files.c ---- */

/* Run a script of file operations: its $1 and on are words, relative to the root, and it tells
 * errors as the system's commands do. A status other than 0 fails as operation on path. */
int pf_ac_script(struct pf_ac_box *box, const char *script, const char *const *words,
                 const char *operation, const char *path, struct pf_ac_output *ret,
                 struct pinfold_cancel *cancel, struct pinfold_error *err);
int pf_ac_read_file(void *state, const char *path, struct pinfold_bytes *ret_content,
                    struct pinfold_cancel *cancel, struct pinfold_error *err);
int pf_ac_write_file(void *state, const char *path, const void *data, size_t len, bool exclusive,
                     struct pinfold_cancel *cancel, struct pinfold_error *err);
/* The first size bytes of a descriptor. */
int pf_ac_write_from(struct pf_ac_box *box, const char *path, int fd, uint64_t size, mode_t mode,
                     bool exclusive, struct pinfold_cancel *cancel, struct pinfold_error *err);
int pf_ac_list_dir(void *state, const char *path, struct pinfold_file_infos *ret_infos,
                   struct pinfold_cancel *cancel, struct pinfold_error *err);
int pf_ac_remove_file(void *state, const char *path, struct pinfold_cancel *cancel,
                      struct pinfold_error *err);
int pf_ac_move_file(void *state, const char *src, const char *dest, struct pinfold_cancel *cancel,
                    struct pinfold_error *err);

/* ---- agentcore_parts.c ---- */

/* Put bytes of a descriptor, from its start, into files "ID.0000" and on in the scratch directory,
 * several calls at a time. id receives what they begin with. */
enum { PF_AC_ID_MAX = 33 };
int pf_ac_put(struct pf_ac_box *box, int fd, uint64_t size, char ret_id[static PF_AC_ID_MAX],
              struct pinfold_cancel *cancel, struct pinfold_error *err);
int pf_ac_put_bytes(struct pf_ac_box *box, const void *data, size_t len,
                    char ret_id[static PF_AC_ID_MAX], struct pinfold_cancel *cancel,
                    struct pinfold_error *err);
/* Fetch size bytes of such files into a descriptor. */
int pf_ac_get(struct pf_ac_box *box, const char *id, uint64_t size, int fd,
              struct pinfold_cancel *cancel, struct pinfold_error *err);
void pf_ac_forget(struct pf_ac_box *box, const char *id); /* delete them; never fails */

/* ---- agentcore_execute.c, agentcore_tree.c, agentcore_lists.c ---- */

int pf_ac_execute(void *state, const struct pinfold_execute_options *options,
                  struct pinfold_execute_result *ret_result, struct pinfold_cancel *cancel,
                  struct pinfold_error *err);
int pf_ac_seed(void *state, const struct pinfold_seed_request *request,
               struct pinfold_seed_result *ret_result, struct pinfold_cancel *cancel,
               struct pinfold_error *err);
int pf_ac_sync(void *state, const struct pinfold_sync_request *request,
               struct pinfold_sync_result *ret_result, struct pinfold_cancel *cancel,
               struct pinfold_error *err);
int pf_ac_upload(void *state, const struct pinfold_upload *files, size_t count, bool overwrite,
                 struct pinfold_transfer_results *ret_results, struct pinfold_cancel *cancel,
                 struct pinfold_error *err);
int pf_ac_download(void *state, const struct pinfold_download *files, size_t count, bool overwrite,
                   struct pinfold_transfer_results *ret_results, struct pinfold_cancel *cancel,
                   struct pinfold_error *err);

#endif

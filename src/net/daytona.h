/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of Daytona: the control plane, which makes and ends sandboxes, and the toolbox of each
 * sandbox, with sessions of commands and with files. Requests are as Daytona's own clients send
 * them. A request is sent again only when that cannot do anything twice: when it was not sent, when
 * it only asks, and when the service answered 429.
 */
#ifndef PF_NET_DAYTONA_H
#define PF_NET_DAYTONA_H

#include <jansson.h>
#include <pinfold/cancel.h>
#include <pinfold/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/daytona_config.h"
#include "net/http.h"

struct pf_daytona;

/* How one call is made. */
struct pf_daytona_call {
    int64_t deadline;                            /* of all attempts together */
    int64_t idle_ns;                             /* without a byte either way; 0: no limit */
    struct pinfold_cancel *cancel, *also_cancel; /* two tokens, each may be NULL */
};

/* Make a client; any thread may use it. config and http are borrowed for its life. Returns 0 or
 * -PINFOLD_ENOMEM. */
int pf_daytona_new(const struct pf_daytona_config *config, struct pf_http *http,
                   struct pf_daytona **ret, struct pinfold_error *err);
void pf_daytona_free(struct pf_daytona *client); /* NULL is fine */

/* What the service said, for a message: itself, unless the credential is in it. */
const char *pf_daytona_words(const struct pf_daytona *client, const char *text);

/*
 * All operations return 0, -PINFOLD_EBACKEND (the service refused, with err->http_status, or sent
 * what is no reply), -PINFOLD_ETIMEOUT, -PINFOLD_ECANCELLED, -PINFOLD_EOS (the connection) or
 * -PINFOLD_ENOMEM. err must not be NULL. err->retryable says that the same call may work later and
 * has done nothing.
 */

/* ---- sandboxes: daytona.c ---- */

/* The replies are sandbox objects; the caller owns them, and they have an id. */
int pf_daytona_create(struct pf_daytona *client, const json_t *body,
                      const struct pf_daytona_call *call, json_t **ret, struct pinfold_error *err);
int pf_daytona_get(struct pf_daytona *client, const char *id, const struct pf_daytona_call *call,
                   json_t **ret, struct pinfold_error *err);
/* All sandboxes with these labels, an object, as the service knows them now: it may be late. */
int pf_daytona_list(struct pf_daytona *client, const json_t *labels,
                    const struct pf_daytona_call *call, json_t **ret, struct pinfold_error *err);
int pf_daytona_start(struct pf_daytona *client, const char *id, const struct pf_daytona_call *call,
                     struct pinfold_error *err);
int pf_daytona_stop(struct pf_daytona *client, const char *id, const struct pf_daytona_call *call,
                    struct pinfold_error *err);
/* One that is gone is deleted. */
int pf_daytona_delete(struct pf_daytona *client, const char *id, const struct pf_daytona_call *call,
                      struct pinfold_error *err);
int pf_daytona_touch(struct pf_daytona *client, const char *id, const struct pf_daytona_call *call,
                     struct pinfold_error *err);

/* ---- the toolbox of one sandbox ---- */

struct pf_daytona_toolbox {
    struct pf_daytona *client;
    char *base;         /* "https://host/toolbox/ID" */
    _Atomic bool slash; /* this daemon knows "/files/" only */
};

/* Find it: in the object, or by asking as older services want it. */
int pf_daytona_toolbox_find(struct pf_daytona *client, const json_t *sandbox,
                            const struct pf_daytona_call *call, struct pf_daytona_toolbox *ret,
                            struct pinfold_error *err);
void pf_daytona_toolbox_done(struct pf_daytona_toolbox *toolbox);

/* "work-dir" or "user-home-dir". The caller owns the path. */
int pf_daytona_dir(struct pf_daytona_toolbox *toolbox, const char *which,
                   const struct pf_daytona_call *call, char **ret, struct pinfold_error *err);

/* Run a command by the shell there, which has it as its standard input. ret_text receives both
 * streams in one, in UTF-8, at most as much as its limit; -1 is no status. */
int pf_daytona_execute(struct pf_daytona_toolbox *toolbox, const char *command,
                       unsigned timeout_seconds, const struct pf_daytona_call *call,
                       int *ret_status, struct pf_buf *ret_text, struct pinfold_error *err);

/* ---- sessions: daytona_session.c ---- */

int pf_daytona_session_create(struct pf_daytona_toolbox *toolbox, const char *session,
                              const struct pf_daytona_call *call, struct pinfold_error *err);
/* Begin a command; the caller owns its id. The command is UTF-8. */
int pf_daytona_session_exec(struct pf_daytona_toolbox *toolbox, const char *session,
                            const char *command, const struct pf_daytona_call *call, char **ret_id,
                            struct pinfold_error *err);
int pf_daytona_session_poll(struct pf_daytona_toolbox *toolbox, const char *session, const char *id,
                            const struct pf_daytona_call *call, bool *ret_done, int *ret_status,
                            struct pinfold_error *err);
/* What it has said so far: each line with a line end, whether it had one or not. */
int pf_daytona_session_logs(struct pf_daytona_toolbox *toolbox, const char *session, const char *id,
                            const struct pf_daytona_call *call, struct pf_buf *ret_out,
                            struct pf_buf *ret_errs, struct pinfold_error *err);
/* Kills all that was started in it. One that is gone is deleted. */
int pf_daytona_session_delete(struct pf_daytona_toolbox *toolbox, const char *session,
                              const struct pf_daytona_call *call, struct pinfold_error *err);

/* ---- files: daytona_files.c ---- */

/* Paths are absolute there. The two replies are an array and an object, as the service gives
 * them. */
int pf_daytona_files_list(struct pf_daytona_toolbox *toolbox, const char *path,
                          const struct pf_daytona_call *call, json_t **ret,
                          struct pinfold_error *err);
int pf_daytona_file_info(struct pf_daytona_toolbox *toolbox, const char *path,
                         const struct pf_daytona_call *call, json_t **ret,
                         struct pinfold_error *err);
int pf_daytona_folder(struct pf_daytona_toolbox *toolbox, const char *path, unsigned mode,
                      const struct pf_daytona_call *call, struct pinfold_error *err);
int pf_daytona_file_delete(struct pf_daytona_toolbox *toolbox, const char *path, bool recursive,
                           const struct pf_daytona_call *call, struct pinfold_error *err);
/* Fails with status 409 when the destination exists. */
int pf_daytona_file_move(struct pf_daytona_toolbox *toolbox, const char *from, const char *to,
                         const struct pf_daytona_call *call, struct pinfold_error *err);

/* Takes the bytes of a file as they come. Returns 0 or a negative code. */
typedef int (*pf_daytona_sink_fn)(void *ctx, const void *data, size_t len,
                                  struct pinfold_error *err);

/* The first limit bytes of a file; the path may be any bytes. */
int pf_daytona_file_get(struct pf_daytona_toolbox *toolbox, const char *path, uint64_t limit,
                        const struct pf_daytona_call *call, pf_daytona_sink_fn fn, void *ctx,
                        struct pinfold_error *err);

/* One of many files. data, or the first size bytes of a descriptor. */
struct pf_daytona_put {
    const char *path; /* UTF-8, without white space at its ends */
    const void *data; /* NULL: of fd */
    int fd;
    uint64_t size;
    struct pinfold_error error; /* out: code 0: it is there */
};

/* Write files in one request, with their parents. Returns 0 also when single ones failed. */
int pf_daytona_files_put(struct pf_daytona_toolbox *toolbox, struct pf_daytona_put *files,
                         size_t count, const struct pf_daytona_call *call,
                         struct pinfold_error *err);

struct pf_daytona_fetch {
    const char *path; /* UTF-8 */
    pf_daytona_sink_fn fn;
    void *ctx;
    bool came;                  /* out: whole */
    struct pinfold_error error; /* out: why not */
};

/* Read files in one request. Returns 0 also when single ones failed. What a sink returns for its
 * file becomes that file's error, but cancellation and want of memory end all. */
int pf_daytona_files_fetch(struct pf_daytona_toolbox *toolbox, struct pf_daytona_fetch *files,
                           size_t count, const struct pf_daytona_call *call,
                           struct pinfold_error *err);

#endif

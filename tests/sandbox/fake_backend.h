/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backend in memory, with switches for failures and for blocking, and without move_file: what a
 * remote backend looks like to the rooms above. Include once per test program.
 */
#ifndef FAKE_BACKEND_H
#define FAKE_BACKEND_H

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <pinfold/pinfold.h>

enum { FAKE_FILES = 16 };

struct fake {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct {
        char *path;
        char *data;
        size_t len;
    } files[FAKE_FILES];
    const char *key;     /* storage key */
    int created, closed; /* how often */
    int seed_us;         /* how long a seeding takes, beyond what it always does */
    int close_us;        /* how long close takes */
    int stops;           /* stop_commands calls */
    int seeds, syncs;    /* calls */
    int freed_elsewhere; /* not freed with the backend when set */
    int fail_create, fail_close, fail_seed, seed_errors, fail_sync, sync_errors;
    bool corrupt_writes; /* what is written is not what is stored */
    bool block;          /* execute waits until this is false */
    int executing;
    char last_dest[256], last_include[64], last_exclude[512], last_cwd[64];
    pinfold_network_fn on_network;
    void *on_network_ctx;
};

static inline int fake_fail(struct pinfold_error *err, int code, int sys_errno, const char *msg)
{
    if (err) {
        *err = (struct pinfold_error){ .code = code, .sys_errno = sys_errno };
        snprintf(err->msg, sizeof(err->msg), "%s", msg);
    }
    return -code;
}

static inline int fake_find(struct fake *fake, const char *path)
{
    for (int i = 0; i < FAKE_FILES; i++)
        if (fake->files[i].path && strcmp(fake->files[i].path, path) == 0)
            return i;
    return -1;
}

static inline int fake_create(void *state, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct fake *fake = state;

    (void)cancel;
    if (fake->fail_create > 0 && fake->fail_create--)
        return fake_fail(err, PINFOLD_EOS, EIO, "create: no such machine");
    fake->created++;
    return 0;
}

static inline int fake_close(void *state, struct pinfold_error *err)
{
    struct fake *fake = state;

    usleep((useconds_t)fake->close_us);
    fake->closed++;
    return fake->fail_close ? fake_fail(err, PINFOLD_EOS, EIO, "close: lost contact") : 0;
}

static inline int fake_stop_commands(void *state, struct pinfold_error *err)
{
    struct fake *fake = state;

    (void)err;
    pthread_mutex_lock(&fake->lock);
    fake->stops++;
    fake->block = false;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
    return 0;
}

static inline int fake_read_file(void *state, const char *path, struct pinfold_bytes *ret,
                                 struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct fake *fake = state;
    int i = fake_find(fake, path);

    (void)cancel;
    if (i < 0)
        return fake_fail(err, PINFOLD_EOS, ENOENT, "read: no such file");
    ret->data = malloc(fake->files[i].len + 1);
    ret->len = fake->files[i].len;
    if (ret->len > 0)
        memcpy(ret->data, fake->files[i].data, ret->len);
    ret->data[ret->len] = '\0';
    return 0;
}

static inline int fake_write_file(void *state, const char *path, const void *data, size_t len,
                                  bool exclusive, struct pinfold_cancel *cancel,
                                  struct pinfold_error *err)
{
    struct fake *fake = state;
    int i = fake_find(fake, path);

    (void)cancel;
    if (i >= 0 && exclusive)
        return fake_fail(err, PINFOLD_EOS, EEXIST, "write: file exists");
    for (int j = 0; i < 0 && j < FAKE_FILES; j++)
        if (!fake->files[j].path) {
            fake->files[j].path = strdup(path);
            i = j;
        }
    if (i < 0)
        return fake_fail(err, PINFOLD_EOS, ENOSPC, "write: disk full");
    free(fake->files[i].data);
    fake->files[i].data = malloc(len + 1);
    if (len > 0)
        memcpy(fake->files[i].data, data, len);
    fake->files[i].len = fake->corrupt_writes && len > 0 ? len - 1 : len;
    return 0;
}

static inline int fake_remove_file(void *state, const char *path, struct pinfold_cancel *cancel,
                                   struct pinfold_error *err)
{
    struct fake *fake = state;
    int i = fake_find(fake, path);

    (void)cancel;
    if (i < 0)
        return fake_fail(err, PINFOLD_EOS, ENOENT, "remove: no such file");
    free(fake->files[i].path);
    free(fake->files[i].data);
    memset(&fake->files[i], 0, sizeof(fake->files[i]));
    return 0;
}

static inline char *fake_line(const char *text)
{
    return strdup(text);
}

static inline void fake_add_line(struct pinfold_strings *list, const char *text)
{
    list->items = realloc(list->items, (list->count + 1) * sizeof(*list->items));
    list->items[list->count++] = fake_line(text);
    list->capacity = list->count;
}

static inline int fake_seed(void *state, const struct pinfold_seed_request *request,
                            struct pinfold_seed_result *ret, struct pinfold_cancel *cancel,
                            struct pinfold_error *err)
{
    struct fake *fake = state;

    (void)request;
    __atomic_fetch_add(&fake->seeds, 1, __ATOMIC_SEQ_CST);
    usleep((useconds_t)fake->seed_us);
    usleep(20000); /* so that concurrent starts really overlap */
    if (pinfold_cancel_fired(cancel))
        return fake_fail(err, PINFOLD_ECANCELLED, 0, "seed: cancelled");
    ret->files_seeded = 3;
    ret->bytes_seeded = 30;
    for (int i = 0; i < fake->seed_errors; i++)
        fake_add_line(&ret->errors, "copy a: broken");
    return fake->fail_seed ? fake_fail(err, PINFOLD_EPREPARE, 0, "seed: cannot") : 0;
}

static inline void fake_join(char *out, size_t size, const char *const *list)
{
    *out = '\0';
    for (size_t i = 0; list[i]; i++)
        snprintf(out + strlen(out), size - strlen(out), "%s%s", i ? " " : "", list[i]);
}

static inline int fake_sync(void *state, const struct pinfold_sync_request *request,
                            struct pinfold_sync_result *ret, struct pinfold_cancel *cancel,
                            struct pinfold_error *err)
{
    struct fake *fake = state;

    (void)cancel;
    fake->syncs++;
    snprintf(fake->last_dest, sizeof(fake->last_dest), "%s", request->dest);
    snprintf(fake->last_include, sizeof(fake->last_include), "%s",
             request->include[0] ? request->include[0] : "");
    fake_join(fake->last_exclude, sizeof(fake->last_exclude), request->exclude);
    ret->files_synced = 2;
    for (int i = 0; i < fake->sync_errors; i++)
        fake_add_line(&ret->errors, "write b: broken");
    return fake->fail_sync ? fake_fail(err, PINFOLD_EPREPARE, EACCES, "sync: no entry") : 0;
}

static inline int fake_upload(void *state, const struct pinfold_upload *files, size_t count,
                              bool overwrite, struct pinfold_transfer_results *ret,
                              struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    (void)err;
    ret->items = calloc(count + 1, sizeof(*ret->items));
    ret->count = count;
    for (size_t i = 0; i < count; i++) {
        int r = fake_write_file(state, files[i].path, files[i].data, files[i].len, !overwrite,
                                cancel, &ret->items[i].error);
        ret->items[i].path = strdup(files[i].path);
        if (r < 0 && ret->items[i].error.sys_errno == EEXIST) {
            ret->items[i].skipped = true;
            ret->items[i].error = (struct pinfold_error)PINFOLD_ERROR_INIT;
        }
    }
    return 0;
}

static inline int fake_execute(void *state, const struct pinfold_execute_options *options,
                               struct pinfold_execute_result *ret, struct pinfold_cancel *cancel,
                               struct pinfold_error *err)
{
    struct fake *fake = state;

    (void)cancel;
    (void)err;
    snprintf(fake->last_cwd, sizeof(fake->last_cwd), "%s", options->cwd ? options->cwd : "(none)");
    pthread_mutex_lock(&fake->lock);
    fake->executing++;
    pthread_cond_broadcast(&fake->changed);
    while (fake->block)
        pthread_cond_wait(&fake->changed, &fake->lock);
    fake->executing--;
    pthread_mutex_unlock(&fake->lock);
    ret->output = strdup("done");
    ret->output_len = 4;
    ret->stderr_text = strdup("");
    return 0;
}

static inline const char *fake_key(void *state)
{
    return ((struct fake *)state)->key;
}

static inline const char *fake_root(void *state)
{
    (void)state;
    return "/workspace";
}

static inline void fake_watch_network(void *state, pinfold_network_fn fn, void *ctx)
{
    struct fake *fake = state;

    fake->on_network = fn;
    fake->on_network_ctx = ctx;
}

static inline void fake_clear(struct fake *fake)
{
    for (int i = 0; i < FAKE_FILES; i++) {
        free(fake->files[i].path);
        free(fake->files[i].data);
        memset(&fake->files[i], 0, sizeof(fake->files[i]));
    }
}

static const struct pinfold_backend_ops fake_ops = {
    .size = sizeof(struct pinfold_backend_ops),
    .type_name = "FakeBackend",
    .create = fake_create,
    .close = fake_close,
    .stop_commands = fake_stop_commands,
    .read_file = fake_read_file,
    .write_file = fake_write_file,
    .remove_file = fake_remove_file,
    .seed_workspace = fake_seed,
    .sync_artifacts = fake_sync,
    .upload_files = fake_upload,
    .execute = fake_execute,
    .workspace_root = fake_root,
    .storage_key = fake_key,
    .watch_network = fake_watch_network,
};

/* The state outlives the backend, so that a test can look at it afterwards: fake_clear() it. */
static inline struct pinfold_backend *fake_backend(struct fake *fake)
{
    struct pinfold_backend *backend = NULL;

    pthread_mutex_init(&fake->lock, NULL);
    pthread_cond_init(&fake->changed, NULL);
    assert_int_equal(pinfold_backend_new(&fake_ops, fake, "fake", &backend, NULL), 0);
    return backend;
}

/* A factory that gives one backend. */
static inline int fake_make(void *ctx, struct pinfold_backend **ret, struct pinfold_error *err)
{
    (void)err;
    *ret = pinfold_backend_ref(ctx);
    return 0;
}

static inline void fake_wait_executing(struct fake *fake, int count)
{
    pthread_mutex_lock(&fake->lock);
    while (fake->executing < count)
        pthread_cond_wait(&fake->changed, &fake->lock);
    pthread_mutex_unlock(&fake->lock);
}

#endif

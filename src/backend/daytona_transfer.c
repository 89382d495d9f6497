/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of files, many in one request. What comes passes through a temporary directory on this
 * machine, so that the rules for its last way are those of the local backend, by its own code.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/daytona.h"
#include "backend/local_files.h"
#include "backend/remote_archive.h"
#include "backend/remote_tree.h"
#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/utf8.h"
#include "tree/beneath.h"
#include "tree/data.h"
#include "tree/file.h"
#include "tree/place.h"

enum { BATCH = 128 }; /* files that are open at a time */
/* Of one file: what costs nothing there, a file of holes, is not waited for without an end here. */
#define FETCH_MAX ((uint64_t)16 << 30)

/* ---- out ---- */

/* A file that comes: into the stage, under its own name. */
struct incoming {
    struct stage_writer *writer;
    const char *path;
    char *whole; /* its path there */
    mode_t mode;
};

struct stage_writer {
    int stage_fd;
    const struct incoming *current;
    int fd;
    uint64_t total; /* of the current one */
};

/* Make the file of the one that comes now. One that was asked for twice comes twice. */
static int turn_to(struct stage_writer *writer, const struct incoming *file,
                   struct pinfold_error *err)
{
    _cleanup_close_ int parent = -1;
    const char *name;

    if (writer->current == file)
        return 0;
    if (writer->fd >= 0)
        close(writer->fd);
    writer->current = file;
    writer->total = 0;
    writer->fd = -1;
    parent = pf_beneath_open_parent(writer->stage_fd, file->path, true, &name);
    if (parent < 0)
        return pf_fail_at(err, -parent, "keep", file->path);
    writer->fd = openat(parent, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (writer->fd < 0 || fchmod(writer->fd, file->mode | 0400) < 0)
        return pf_fail_at(err, errno, "keep", file->path);
    return 0;
}

static int take_bytes(void *ctx, const void *data, size_t len, struct pinfold_error *err)
{
    const struct incoming *file = ctx;
    int r = turn_to(file->writer, file, err);

    if (r < 0)
        return r;
    file->writer->total += len;
    if (file->writer->total > FETCH_MAX)
        return pf_fail_at(err, EFBIG, "keep", file->path);
    r = pf_remote_keep(file->writer->fd, data, len);
    /* It may have been a hole, which has no end by itself. */
    if (r == 0 && ((const char *)data)[len - 1] == '\0' &&
        ftruncate(file->writer->fd, (off_t)file->writer->total) < 0)
        r = -errno;
    return r < 0 ? pf_fail_os(err, -r, "keep \"%s\"", PF_QUOTE(file->path)) : 0;
}

/* A list is JSON, and the reply names its parts in headers as they are: what is no UTF-8, or ends a
 * line, cannot stand there, but in an address. */
static bool can_be_listed(const char *path)
{
    for (const char *c = path; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return false;
    return pf_utf8_valid(path, strlen(path), NULL);
}

static int fetch_alone(struct pf_dt_box *box, struct pf_daytona_fetch *fetch,
                       struct pinfold_cancel *cancel)
{
    const struct pf_daytona_call call = { .deadline = pf_clock_deadline(PF_DT_TRANSFER_NS),
                                          .idle_ns = PF_DT_IDLE_NS,
                                          .cancel = cancel };
    int r = pf_daytona_file_get(&box->toolbox, fetch->path, PF_BUF_UNLIMITED, &call, fetch->fn,
                                fetch->ctx, &fetch->error);

    fetch->came = r == 0;
    return r == -PINFOLD_ECANCELLED || r == -PINFOLD_ENOMEM ? r : 0;
}

static int fetch_list(struct pf_dt_box *box, struct pf_daytona_fetch *list, size_t count,
                      struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    const struct pf_daytona_call call = { .deadline = pf_clock_deadline(PF_DT_TRANSFER_NS),
                                          .idle_ns = PF_DT_IDLE_NS,
                                          .cancel = cancel };
    struct pinfold_error own = PINFOLD_ERROR_INIT;
    size_t listed = 0;
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++) {
        struct pf_daytona_fetch one = list[i];
        if (can_be_listed(one.path)) { /* those come first */
            list[i] = list[listed];
            list[listed++] = one;
            continue;
        }
        r = fetch_alone(box, &list[i], cancel);
        if (r < 0)
            own = list[i].error;
    }
    if (r == 0 && listed > 0)
        r = pf_daytona_files_fetch(&box->toolbox, list, listed, &call, &own);
    if (r < 0 && err)
        *err = own;
    return r;
}

/* Empty files have no bytes, and are made here; what failed is no file. */
static int settle(struct pf_daytona_fetch *list, size_t count, struct pinfold_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++) {
        const struct incoming *file = list[i].ctx;
        _cleanup_close_ int parent = -1;
        const char *name;
        struct stat st;
        parent = pf_beneath_open_parent(file->writer->stage_fd, file->path, list[i].came, &name);
        if (parent < 0)
            continue;
        if (!list[i].came)
            unlinkat(parent, name, 0);
        else if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            r = turn_to(file->writer, file, err);
    }
    return r;
}

struct download {
    struct pf_dt_box *box;
    const struct pinfold_download *files;
    size_t count;
    struct pf_dt_verdict *verdicts;
    struct incoming *incoming;
    struct pf_daytona_fetch *list;
    size_t listed;
};

static void download_done(struct download *download)
{
    for (size_t i = 0; download->incoming && i < download->count; i++)
        free(download->incoming[i].whole);
    free(download->verdicts);
    free(download->incoming);
    free(download->list);
}

static int look_at_all(struct download *download, struct pinfold_cancel *cancel,
                       struct pinfold_error *err)
{
    _cleanup_free_ const char **paths = calloc(download->count, sizeof(*paths));

    if (!paths)
        return pf_fail_nomem(err);
    for (size_t i = 0; i < download->count; i++)
        paths[i] = download->files[i].path;
    return pf_dt_look(download->box, paths, download->count, download->verdicts, cancel, err);
}

static int fetch_all(struct download *download, struct stage_writer *writer,
                     struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    int r = look_at_all(download, cancel, err);

    for (size_t i = 0; r == 0 && i < download->count; i++) {
        struct incoming *file = &download->incoming[i];
        if (download->verdicts[i].size > FETCH_MAX)
            download->verdicts[i].sys_errno = EFBIG;
        if (download->verdicts[i].sys_errno)
            continue;
        *file = (struct incoming){ writer, download->files[i].path, NULL,
                                   download->verdicts[i].mode };
        if (asprintf(&file->whole, "%s/%s", download->box->root, file->path) < 0) {
            file->whole = NULL;
            return pf_fail_nomem(err);
        }
        download->list[download->listed++] =
                (struct pf_daytona_fetch){ .path = file->whole, .fn = take_bytes, .ctx = file };
    }
    if (r == 0 && download->listed > 0)
        r = fetch_list(download->box, download->list, download->listed, cancel, err);
    return r < 0 ? r : settle(download->list, download->listed, err);
}

/* What the service said of a file is more than that it is not in the stage. */
static void explain(const struct download *download, struct pinfold_transfer_results *results)
{
    for (size_t i = 0; i < download->count; i++) {
        struct pinfold_transfer_result *result = &results->items[i];
        if (result->error.code && download->verdicts[i].sys_errno)
            pf_fail_at(&result->error, download->verdicts[i].sys_errno, "read",
                       download->files[i].path);
    }
    for (size_t k = 0; k < download->listed; k++) {
        const struct incoming *file = download->list[k].ctx;
        struct pinfold_transfer_result *result = &results->items[file - download->incoming];
        if (result->error.code && download->list[k].error.code)
            result->error = download->list[k].error;
    }
}

int pf_dt_download(void *state, const struct pinfold_download *files, size_t count, bool overwrite,
                   struct pinfold_transfer_results *ret_results, struct pinfold_cancel *cancel,
                   struct pinfold_error *err)
{
    PF_CLEANUP(pf_stage_done) struct pf_stage stage = PF_STAGE_INIT;
    PF_CLEANUP(download_done)
    struct download download = { state, files, count, NULL, NULL, NULL, 0 };
    struct stage_writer writer = { .fd = -1 };
    int r = pf_dt_fail_start(state, err);

    if (r == 0)
        r = pf_stage_open(&stage, err);
    if (r == 0 && count > 0) {
        download.verdicts = calloc(count, sizeof(*download.verdicts));
        download.incoming = calloc(count, sizeof(*download.incoming));
        download.list = calloc(count, sizeof(*download.list));
        writer.stage_fd = stage.fd;
        r = download.verdicts && download.incoming && download.list
                    ? fetch_all(&download, &writer, cancel, err)
                    : pf_fail_nomem(err);
    }
    if (writer.fd >= 0)
        close(writer.fd);
    if (r == 0)
        r = pf_local_download(stage.fd, files, count, overwrite, ret_results, cancel, err);
    if (r == 0 && count > 0)
        explain(&download, ret_results);
    return r;
}

/* ---- in ---- */

/* A file that goes: first under a scratch name. */
struct outgoing {
    const struct pinfold_upload *file;
    char scratch[PF_DT_PATH_MAX];
    char mode[8];
    int fd;
    struct pinfold_error error;
};

static int open_host(struct outgoing *out, struct pf_daytona_put *put, struct pinfold_error *err)
{
    _cleanup_free_ char *path = NULL;
    const char *name = out->file->host_path;
    struct stat st;
    int r = pf_path_expand(name, &path, err);

    if (r < 0)
        return r;
    out->fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (out->fd < 0 || fstat(out->fd, &st) < 0)
        return pf_fail_os(err, errno, "host file %s", PF_QUOTE(name));
    r = pf_check_regular(st.st_mode);
    if (r < 0)
        return pf_fail_at(err, -r, "read host file", name);
    snprintf(out->mode, sizeof(out->mode), "%o", st.st_mode & 0777);
    put->fd = out->fd;
    put->size = (uint64_t)st.st_size;
    return 0;
}

static int prepare(struct pf_dt_box *box, struct outgoing *out, struct pf_daytona_put *put)
{
    pf_dt_scratch(box, out->scratch);
    *put = (struct pf_daytona_put){ .path = out->scratch, .fd = -1 };
    if (strcmp(out->file->path, ".") == 0)
        return pf_fail_at(&out->error, EISDIR, "write", out->file->path);
    if (out->file->host_path)
        return open_host(out, put, &out->error);
    put->data = out->file->data ? out->file->data : "";
    put->size = out->file->len;
    return 0;
}

/* Send those of a batch that can be, and put in place those that arrived. */
struct batch {
    struct outgoing out[BATCH];
    struct pf_daytona_put puts[BATCH];
    size_t index[BATCH]; /* of puts, in out */
    size_t count, sent;
};

static int place_batch(struct pf_dt_box *box, struct batch *batch, bool exclusive,
                       struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    const char *paths[BATCH], *sources[BATCH], *modes[BATCH];
    struct pf_dt_verdict verdicts[BATCH];
    struct outgoing *placed[BATCH];
    size_t count = 0;
    int r;

    for (size_t i = 0; i < batch->sent; i++) {
        struct outgoing *out = &batch->out[batch->index[i]];
        out->error = batch->puts[i].error;
        if (out->error.code)
            continue;
        placed[count] = out;
        paths[count] = out->file->path;
        sources[count] = out->scratch;
        modes[count++] = out->mode;
    }
    if (count == 0)
        return 0;
    r = pf_dt_place(box, paths, sources, modes, count, exclusive, verdicts, cancel, err);
    for (size_t i = 0; r == 0 && i < count; i++) {
        if (!verdicts[i].sys_errno)
            continue;
        pf_fail_at(&placed[i]->error, verdicts[i].sys_errno, "write", paths[i]);
        pf_dt_forget(box, placed[i]->scratch);
    }
    return r;
}

static int send_batch(struct pf_dt_box *box, struct batch *batch, bool exclusive,
                      struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    int r = 0;

    for (size_t i = 0; i < batch->count; i++) {
        if (prepare(box, &batch->out[i], &batch->puts[batch->sent]) < 0)
            continue;
        batch->index[batch->sent++] = i;
    }
    if (batch->sent > 0)
        r = pf_dt_put(box, batch->puts, batch->sent, cancel, err);
    return r < 0 ? r : place_batch(box, batch, exclusive, cancel, err);
}

static int upload_batch(struct pf_dt_box *box, const struct pinfold_upload *files, size_t count,
                        bool overwrite, struct pinfold_transfer_result *items,
                        struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    _cleanup_free_ struct batch *batch = calloc(1, sizeof(*batch));
    int r;

    if (!batch)
        return pf_fail_nomem(err);
    batch->count = count;
    for (size_t i = 0; i < count; i++) {
        batch->out[i].file = &files[i];
        batch->out[i].fd = -1;
    }
    r = send_batch(box, batch, !overwrite, cancel, err);
    for (size_t i = 0; i < count; i++) {
        struct outgoing *out = &batch->out[i];
        if (out->fd >= 0)
            close(out->fd);
        items[i].skipped = !overwrite && out->error.code && out->error.sys_errno == EEXIST;
        if (!items[i].skipped)
            items[i].error = out->error;
        items[i].path = strdup(files[i].path);
        if (!items[i].path && r == 0)
            r = pf_fail_nomem(err);
    }
    return r;
}

int pf_dt_upload(void *state, const struct pinfold_upload *files, size_t count, bool overwrite,
                 struct pinfold_transfer_results *ret_results, struct pinfold_cancel *cancel,
                 struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_transfer_results_done) struct pinfold_transfer_results results = { 0 };
    int r = pf_dt_fail_start(state, err);

    if (r == 0 && pf_transfer_results_new(count, &results) < 0)
        r = pf_fail_nomem(err);
    for (size_t at = 0; r == 0 && at < count; at += BATCH) {
        r = pf_cancel_check(cancel, err);
        if (r == 0)
            r = upload_batch(state, files + at, count - at < BATCH ? count - at : BATCH, overwrite,
                             results.items + at, cancel, err);
    }
    if (r < 0)
        return r;
    *ret_results = results;
    results = (struct pinfold_transfer_results){ 0 };
    return 0;
}

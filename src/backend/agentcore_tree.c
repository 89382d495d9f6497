/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole trees and lists of files. Each passes through a temporary directory on this machine, so
 * that the rules of seeds, flushes and transfers are those of the local backend, by its own code;
 * between that directory and the session everything goes as one archive, whatever is in it.
 */
#include <fcntl.h>
#include <pinfold/temp_workspace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/agentcore_archive.h"
#include "backend/local_files.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/strings.h"
#include "tree/beneath.h"
#include "tree/file.h"
#include "tree/glob.h"
#include "tree/place.h"

#define SCRIPT_MAX ((size_t)1 << 20)
#define LIST_MAX ((size_t)512 << 20)
#define FLUSH_MAX ((uint64_t)16 << 30) /* bytes of files that come back at once */

struct stage {
    struct pinfold_temp_workspace *temp;
    int fd;
};

static void stage_done(struct stage *stage)
{
    if (stage->fd >= 0)
        close(stage->fd);
    if (stage->temp)
        pinfold_temp_workspace_free(stage->temp, NULL);
}

static int stage_open(struct stage *stage, struct pinfold_error *err)
{
    int r = pinfold_temp_workspace_new(&stage->temp, err);

    if (r < 0)
        return r;
    stage->fd = open(pinfold_temp_workspace_path(stage->temp), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return stage->fd < 0 ? pf_fail_os(err, errno, "open a temporary directory") : 0;
}

static int fail_start(const struct pf_ac_box *box, struct pinfold_error *err)
{
    return box->root ? 0
                     : pf_fail(err, PINFOLD_ESTART,
                               "AgentCore: no session: the sandbox is not started");
}

/* ---- in ---- */

/* Unpack there. What tar has to say becomes errors of the seed. */
static int unpack_there(struct pf_ac_box *box, const char *id, struct pinfold_strings *errors,
                        struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pf_ac_output output;
    char script[1000];
    int r;

    snprintf(script, sizeof(script),
             "export LC_ALL=C; cat %s/" PF_AC_SCRATCH "/%s.* | gzip -dc | "
             "tar -xf - -C '%s' --no-same-owner -m",
             box->home, id, box->root);
    r = pf_ac_run(box, script, strlen(script), PF_AC_INLINE, false, NULL, &output, cancel, err);
    if (r < 0)
        return r;
    if (output.status != 0)
        r = pf_strings_addf(errors, "unpack the seed: status %d: %s", output.status,
                            PF_QUOTE(output.errs.data ? output.errs.data : ""));
    pf_ac_output_done(&output);
    return r < 0 ? pf_fail_nomem(err) : 0;
}

static int send_stage(struct pf_ac_box *box, int stage_fd, struct pinfold_strings *errors,
                      struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    _cleanup_close_ int fd = pf_ac_unnamed(err);
    char id[PF_AC_ID_MAX];
    uint64_t size;
    int r;

    if (fd < 0)
        return fd;
    r = pf_ac_pack(stage_fd, fd, &size, cancel, err);
    if (r == 0)
        r = pf_ac_put(box, fd, size, id, cancel, err);
    if (r < 0)
        return r;
    r = unpack_there(box, id, errors, cancel, err);
    pf_ac_forget(box, id);
    return r;
}

int pf_ac_seed(void *state, const struct pinfold_seed_request *request,
               struct pinfold_seed_result *ret_result, struct pinfold_cancel *cancel,
               struct pinfold_error *err)
{
    struct pf_ac_box *box = state;
    PF_CLEANUP(stage_done) struct stage stage = { .fd = -1 };
    int r = fail_start(box, err);

    if (r == 0)
        r = stage_open(&stage, err);
    if (r == 0)
        r = pf_local_seed(stage.fd, pinfold_temp_workspace_path(stage.temp), request, ret_result,
                          cancel, err);
    if (r < 0 || request->plan)
        return r;
    return send_stage(box, stage.fd, &ret_result->errors, cancel, err);
}

/* ---- out ---- */

/* What is to come: names behind each other, each with a NUL, and how large it may be. */
struct wanted {
    struct pf_buf names;
    uint64_t bytes;
    struct pf_buf large; /* names of what is too large, likewise */
};

static void wanted_done(struct wanted *wanted)
{
    pf_buf_done(&wanted->names);
    pf_buf_done(&wanted->large);
}

static bool is_excluded(const struct pf_globs *exclude, const char *path, size_t len, bool is_dir)
{
    for (size_t i = 1; i < len; i++)
        if (path[i] == '/' && pf_globs_match(exclude, path, i, true))
            return true;
    return pf_globs_match(exclude, path, len, is_dir);
}

/* The copier decides; this only leaves out what it would not take anyway, and what cannot be: the
 * disk there has 10 GB, and who claims more has a file of holes, which would come here as zeros. */
static int choose(const struct pf_buf *listing, const struct pf_globs *include,
                  const struct pf_globs *exclude, struct wanted *wanted)
{
    int r = 0;

    for (size_t at = 0, len; r == 0 && at < listing->len; at += len + 1) {
        const char *record = listing->data + at;
        char *path;
        uint64_t size = 0;
        size_t path_len;
        len = strlen(record);
        if (len < 4)
            continue;
        size = strtoull(record + 2, &path, 10);
        if (*path != ' ')
            continue;
        path_len = strlen(++path);
        if (record[0] == 'd' || !pf_globs_match(include, path, path_len, false) ||
            is_excluded(exclude, path, path_len, false))
            continue;
        size = record[0] == 'f' ? size : 0;
        if (size > FLUSH_MAX || wanted->bytes + size > FLUSH_MAX) {
            r = pf_buf_append(&wanted->large, path, path_len + 1);
            continue;
        }
        wanted->bytes += size + 2 * path_len + 4 * 1024;
        r = pf_buf_append(&wanted->names, path, path_len + 1);
    }
    return r;
}

static int list_there(struct pf_ac_box *box, struct pf_buf *ret, struct pinfold_cancel *cancel,
                      struct pinfold_error *err)
{
    _cleanup_close_ int fd = pf_ac_unnamed(err);
    char script[400];
    off_t size;
    int r;

    if (fd < 0)
        return fd;
    snprintf(script, sizeof(script),
             "cd '%s' && { find . -mindepth 1 -printf '%%y %%s %%P\\0'; :; }", box->root);
    r = pf_ac_fetch(box, script, LIST_MAX, fd, cancel, err);
    size = lseek(fd, 0, SEEK_END);
    if (r < 0)
        return r;
    if (size < 0 || pf_buf_reserve(ret, (size_t)size) < 0)
        return pf_fail_nomem(err);
    for (ssize_t n = 1; n > 0 && ret->len < (size_t)size; ret->len += (size_t)(n > 0 ? n : 0))
        n = pread(fd, ret->data + ret->len, (size_t)size - ret->len, (off_t)ret->len);
    ret->data[ret->len] = '\0';
    return 0;
}

/* follow: give what links inside the root lead to in their place. */
static int fetch_stage(struct pf_ac_box *box, const struct wanted *wanted, bool follow,
                       int stage_fd, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    _cleanup_close_ int fd = pf_ac_unnamed(err);
    char id[PF_AC_ID_MAX], script[1500];
    int r;

    if (fd < 0)
        return fd;
    r = pf_ac_put_bytes(box, wanted->names.data, wanted->names.len, id, cancel, err);
    if (r < 0)
        return r;
    snprintf(script, sizeof(script),
             "cd '%s' && cat %s/" PF_AC_SCRATCH "/%s.* | %s"
             "tar --format=gnu --hard-dereference --no-recursion --ignore-failed-read %s "
             "--null --verbatim-files-from -T - -cf -; [ $? -le 2 ]",
             box->root, box->home, id,
             follow ? "xargs -0 /bin/sh -c 'for p; do case \"$(readlink -m -- \"$p\")/\" in "
                      "\"$PWD\"/*) printf \"%s\\0\" \"$p\";; esac; done' sh | "
                    : "",
             follow ? "-h" : "");
    r = pf_ac_fetch(box, script, wanted->bytes + (64 << 10), fd, cancel, err);
    pf_ac_forget(box, id);
    return r < 0 ? r : pf_ac_unpack(fd, stage_fd, cancel, err);
}

/* What was wanted and did not come is an error, not a file less. */
static int note_missing(const struct wanted *wanted, int stage_fd, struct pinfold_strings *errors,
                        struct pinfold_error *err)
{
    for (size_t at = 0; at < wanted->names.len; at += strlen(wanted->names.data + at) + 1) {
        const char *path = wanted->names.data + at, *name;
        _cleanup_close_ int parent = pf_beneath_open_parent(stage_fd, path, false, &name);
        struct stat st;
        if (parent >= 0 && fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            continue;
        if (pf_strings_addf(errors, "fetch \"%s\": it could not be read there", PF_QUOTE(path)) < 0)
            return pf_fail_nomem(err);
    }
    for (size_t at = 0; at < wanted->large.len; at += strlen(wanted->large.data + at) + 1)
        if (pf_strings_addf(errors, "fetch \"%s\": all together it is more than %llu bytes",
                            PF_QUOTE(wanted->large.data + at), (unsigned long long)FLUSH_MAX) < 0)
            return pf_fail_nomem(err);
    return 0;
}

static int choose_for_sync(struct pf_ac_box *box, const struct pinfold_sync_request *request,
                           struct wanted *wanted, struct pinfold_cancel *cancel,
                           struct pinfold_error *err)
{
    PF_CLEANUP(pf_globs_freep) struct pf_globs *include = NULL;
    PF_CLEANUP(pf_globs_freep) struct pf_globs *exclude = NULL;
    PF_CLEANUP(pf_buf_done) struct pf_buf listing = PF_BUF_INIT(LIST_MAX);
    int r = pf_globs_new(request->include, &include, err);

    if (r == 0)
        r = pf_globs_new(request->exclude, &exclude, err);
    if (r == 0)
        r = list_there(box, &listing, cancel, err);
    if (r < 0)
        return r;
    return choose(&listing, include, exclude, wanted) < 0 ? pf_fail_nomem(err) : 0;
}

int pf_ac_sync(void *state, const struct pinfold_sync_request *request,
               struct pinfold_sync_result *ret_result, struct pinfold_cancel *cancel,
               struct pinfold_error *err)
{
    struct pf_ac_box *box = state;
    PF_CLEANUP(stage_done) struct stage stage = { .fd = -1 };
    PF_CLEANUP(wanted_done)
    struct wanted wanted = { .names = PF_BUF_INIT(LIST_MAX), .large = PF_BUF_INIT(LIST_MAX) };
    int r = fail_start(box, err);

    if (r == 0)
        r = stage_open(&stage, err);
    if (r == 0)
        r = choose_for_sync(box, request, &wanted, cancel, err);
    if (r == 0 && wanted.names.len > 0)
        r = fetch_stage(box, &wanted, false, stage.fd, cancel, err);
    if (r == 0)
        r = pf_local_sync(stage.fd, NULL, box->root, request, ret_result, cancel, err);
    if (r == 0)
        r = note_missing(&wanted, stage.fd, &ret_result->errors, err);
    return r;
}

/* ---- lists of files ---- */

int pf_ac_download(void *state, const struct pinfold_download *files, size_t count, bool overwrite,
                   struct pinfold_transfer_results *ret_results, struct pinfold_cancel *cancel,
                   struct pinfold_error *err)
{
    struct pf_ac_box *box = state;
    PF_CLEANUP(stage_done) struct stage stage = { .fd = -1 };
    PF_CLEANUP(wanted_done)
    struct wanted wanted = { .names = PF_BUF_INIT(LIST_MAX), .bytes = LIST_MAX };
    int r = fail_start(box, err);

    wanted.bytes *= 16; /* of files whose sizes nobody knows yet */
    if (r == 0)
        r = stage_open(&stage, err);
    for (size_t i = 0; r == 0 && i < count; i++)
        if (pf_buf_append(&wanted.names, files[i].path, strlen(files[i].path) + 1) < 0)
            r = pf_fail_nomem(err);
    if (r == 0 && count > 0)
        r = fetch_stage(box, &wanted, true, stage.fd, cancel, err);
    if (r == 0)
        r = pf_local_download(stage.fd, files, count, overwrite, ret_results, cancel, err);
    return r;
}

static int upload_one(struct pf_ac_box *box, const struct pinfold_upload *file, bool exclusive,
                      struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    _cleanup_free_ char *path = NULL;
    _cleanup_close_ int fd = -1;
    struct stat st;
    int r;

    if (!file->host_path)
        return pf_ac_write_file(box, file->path, file->data, file->len, exclusive, cancel, err);
    r = pf_path_expand(file->host_path, &path, err);
    if (r < 0)
        return r;
    fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return pf_fail_os(err, errno, "host file %s", PF_QUOTE(file->host_path));
    r = pf_check_regular(st.st_mode);
    if (r < 0)
        return pf_fail_at(err, -r, "read host file", file->host_path);
    return pf_ac_write_from(box, file->path, fd, (uint64_t)st.st_size, st.st_mode, exclusive,
                            cancel, err);
}

int pf_ac_upload(void *state, const struct pinfold_upload *files, size_t count, bool overwrite,
                 struct pinfold_transfer_results *ret_results, struct pinfold_cancel *cancel,
                 struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_transfer_results_done) struct pinfold_transfer_results results = { 0 };
    int r = fail_start(state, err);

    if (r == 0 && pf_transfer_results_new(count, &results) < 0)
        r = pf_fail_nomem(err);
    for (size_t i = 0; r == 0 && i < count; i++) {
        struct pinfold_error one = PINFOLD_ERROR_INIT;
        r = upload_one(state, &files[i], !overwrite, cancel, &one);
        results.items[i].path = strdup(files[i].path);
        if (!results.items[i].path)
            return pf_fail_nomem(err);
        results.items[i].skipped = r < 0 && !overwrite && one.sys_errno == EEXIST;
        if (r < 0 && !results.items[i].skipped)
            results.items[i].error = one;
        if (r == -PINFOLD_ECANCELLED || r == -PINFOLD_ENOMEM) {
            if (err)
                *err = one;
            return r;
        }
        r = 0;
    }
    if (r < 0)
        return r;
    *ret_results = results;
    results = (struct pinfold_transfer_results){ 0 };
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of files, up and down. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/agentcore_tree.h"
#include "backend/remote_output.h"
#include "backend/local_files.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "tree/file.h"
#include "tree/place.h"

#define LIST_MAX ((size_t)512 << 20)

/* Put what the session says of each path, with a NUL, into output, in their order. */
static int ask_why(struct pf_ac_box *box, const char *const *paths, struct pf_ac_output *output,
                   struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    static const char script[] =
            "for p; do (p=./$p; w \"$p\"; stat -L -- \"$p\" >/dev/null || exit 9; "
            "[ ! -d \"$p\" ] || f 'Is a directory'; [ -f \"$p\" ] || f 'No such device'; "
            "[ -r \"$p\" ] || f 'Permission denied'; f 'No such file or directory') 2>&1; "
            "printf '\\0'; done";

    return pf_ac_script(box, script, paths, "download", paths[0], output, cancel, err);
}

/* What did not come fails for the reason that it has there, not as what is missing here. */
static int explain_missing(struct pf_ac_box *box, int stage_fd,
                           struct pinfold_transfer_results *results, struct pinfold_cancel *cancel,
                           struct pinfold_error *err)
{
    _cleanup_free_ const char **paths = calloc(results->count + 1, sizeof(*paths));
    _cleanup_free_ struct pinfold_error **errors =
            calloc(results->count + 1, sizeof(struct pinfold_error *));
    struct pf_ac_output output;
    size_t count = 0, at = 0;
    int r;

    if (!paths || !errors)
        return pf_fail_nomem(err);
    for (size_t i = 0; i < results->count; i++) {
        struct pinfold_transfer_result *one = &results->items[i];
        if (one->error.code == 0 || pf_remote_is_in(stage_fd, one->path))
            continue;
        paths[count] = one->path;
        errors[count++] = &one->error;
    }
    if (count == 0)
        return 0;
    r = ask_why(box, paths, &output, cancel, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < count && at < output.out.len; i++) {
        pf_fail_at(errors[i], pf_remote_errno_of(output.out.data + at), "read", paths[i]);
        at += strlen(output.out.data + at) + 1;
    }
    pf_ac_output_done(&output);
    return 0;
}

int pf_ac_download(void *state, const struct pinfold_download *files, size_t count, bool overwrite,
                   struct pinfold_transfer_results *ret_results, struct pinfold_cancel *cancel,
                   struct pinfold_error *err)
{
    struct pf_ac_box *box = state;
    struct pf_remote remote = pf_ac_remote(box);
    PF_CLEANUP(pf_stage_done) struct pf_stage stage = PF_STAGE_INIT;
    PF_CLEANUP(pinfold_transfer_results_done) struct pinfold_transfer_results results = { 0 };
    PF_CLEANUP(pf_remote_wanted_done)
    struct pf_remote_wanted wanted = { .names = PF_BUF_INIT(LIST_MAX), .bytes = LIST_MAX };
    int r = pf_ac_need_session(box, err);

    wanted.bytes *= 16; /* of files whose sizes nobody knows yet */
    if (r == 0)
        r = pf_stage_open(&stage, err);
    for (size_t i = 0; r == 0 && i < count; i++)
        if (pf_buf_append(&wanted.names, files[i].path, strlen(files[i].path) + 1) < 0)
            r = pf_fail_nomem(err);
    if (r == 0 && count > 0)
        r = pf_remote_fetch(&remote, &wanted, true, stage.fd, cancel, err);
    if (r == 0)
        r = pf_local_download(stage.fd, files, count, overwrite, &results, cancel, err);
    if (r == 0)
        r = explain_missing(box, stage.fd, &results, cancel, err);
    if (r < 0)
        return r;
    *ret_results = results;
    results = (struct pinfold_transfer_results){ 0 };
    return 0;
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
    int r = pf_ac_need_session(state, err);

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

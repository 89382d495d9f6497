/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole trees, seeded and flushed. Each passes through a temporary directory on this machine, so
 * that the rules of seeds, flushes and transfers are those of the local backend, by its own code;
 * between that directory and the session everything goes as one archive, whatever is in it.
 */
#include <pinfold/temp_workspace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/agentcore_tree.h"
#include "backend/local_files.h"
#include "backend/remote_archive.h"
#include "backend/remote_output.h"
#include "base/cleanup.h"
#include "base/error.h"

#define SCRIPT_MAX ((size_t)1 << 20)

int pf_ac_need_session(const struct pf_ac_box *box, struct pinfold_error *err)
{
    return box->root ? 0
                     : pf_fail(err, PINFOLD_ESTART,
                               "AgentCore: no session: the sandbox is not started");
}

/* ---- in ---- */

static int unpack_there(struct pf_ac_box *box, const char *id, int stage_fd,
                        struct pinfold_seed_result *result, struct pinfold_cancel *cancel,
                        struct pinfold_error *err)
{
    struct pf_ac_output output;
    char script[1000];
    int r;

    snprintf(script, sizeof(script),
             "export LC_ALL=C; S=%s/" PF_AC_SCRATCH "/%s; cat $S.* | gzip -dc | "
             "tar -xf - -C '%s' --no-same-owner --quoting-style=literal -m; "
             "s=$?; rm -f $S.*; exit $s",
             box->home, id, box->root);
    r = pf_ac_run(box, script, strlen(script), PF_AC_INLINE, false, NULL, &output, cancel, err);
    if (r < 0)
        return r;
    if (output.status != 0)
        r = pf_remote_note_unpacking(stage_fd, output.merged ? output.out.data : output.errs.data,
                                     output.status, result, err);
    pf_ac_output_done(&output);
    return r;
}

static int send_stage(struct pf_ac_box *box, int stage_fd, struct pinfold_seed_result *result,
                      struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    _cleanup_close_ int fd = pf_remote_unnamed(err);
    char id[PF_AC_ID_MAX];
    uint64_t size;
    int r;

    if (fd < 0)
        return fd;
    r = pf_remote_pack(stage_fd, fd, &size, cancel, err);
    if (r == 0)
        r = pf_ac_put(box, fd, size, id, cancel, err);
    if (r < 0)
        return r;
    r = unpack_there(box, id, stage_fd, result, cancel, err);
    if (r < 0)
        pf_ac_forget(box, id);
    return r;
}

int pf_ac_seed(void *state, const struct pinfold_seed_request *request,
               struct pinfold_seed_result *ret_result, struct pinfold_cancel *cancel,
               struct pinfold_error *err)
{
    struct pf_ac_box *box = state;
    PF_CLEANUP(pf_stage_done) struct pf_stage stage = PF_STAGE_INIT;
    int r = pf_ac_need_session(box, err);

    if (r == 0)
        r = pf_stage_open(&stage, err);
    if (r == 0)
        r = pf_local_seed(stage.fd, pinfold_temp_workspace_path(stage.temp), request, ret_result,
                          cancel, err);
    if (r < 0 || request->plan)
        return r;
    return send_stage(box, stage.fd, ret_result, cancel, err);
}

/* ---- out ---- */

static int list_there(struct pf_ac_box *box, struct pf_buf *ret, struct pinfold_cancel *cancel,
                      struct pinfold_error *err)
{
    _cleanup_close_ int fd = pf_remote_unnamed(err);
    char script[400];
    off_t size;
    int r;

    if (fd < 0)
        return fd;
    snprintf(script, sizeof(script), "cd '%s' && { %s; :; }", box->root, PF_REMOTE_LIST);
    r = pf_ac_fetch(box, script, PF_REMOTE_LIST_MAX, fd, cancel, err);
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

/* What prints the names: they stand in the script, or are a file there. */
static int add_names(struct pf_ac_box *box, const struct pf_buf *names, struct pf_buf *script,
                     char id[static PF_AC_ID_MAX], struct pinfold_cancel *cancel,
                     struct pinfold_error *err)
{
    int r;

    id[0] = '\0';
    if (names->len <= PF_REMOTE_NAMES_TYPED)
        return pf_remote_type(names->data, names->len, script) < 0 ? pf_fail_nomem(err) : 0;
    r = pf_ac_put_bytes(box, names->data, names->len, id, cancel, err);
    if (r < 0)
        return r;
    r = pf_buf_printf(script, "cat %s/" PF_AC_SCRATCH "/%s.*", box->home, id);
    return r < 0 ? pf_fail_nomem(err) : 0;
}

int pf_ac_fetch_stage(struct pf_ac_box *box, const struct pf_remote_wanted *wanted, bool follow,
                      int stage_fd, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    static const char inside[] =
            " | sort -zu | xargs -0 /bin/sh -c 'for p; do case \"$(readlink -m -- \"$p\")/\" in "
            "\"$PWD\"/*) printf \"%s\\0\" \"$p\";; esac; done' sh";
    static const char pack[] = "tar --format=gnu --hard-dereference --no-recursion "
                               "--ignore-failed-read --null --verbatim-files-from -T - -cf -";
    PF_CLEANUP(pf_buf_done) struct pf_buf script = PF_BUF_INIT(SCRIPT_MAX);
    _cleanup_close_ int fd = pf_remote_unnamed(err);
    char id[PF_AC_ID_MAX];
    int r;

    if (fd < 0)
        return fd;
    if (pf_buf_printf(&script, "cd '%s' && ", box->root) < 0)
        return pf_fail_nomem(err);
    r = add_names(box, &wanted->names, &script, id, cancel, err);
    if (r < 0)
        return r;
    if (pf_buf_printf(&script, "%s | %s%s; [ $? -le 2 ]", follow ? inside : "", pack,
                      follow ? " -h" : "") < 0)
        r = pf_fail_nomem(err);
    else
        r = pf_ac_fetch(box, script.data, wanted->bytes + (64 << 10), fd, cancel, err);
    if (id[0])
        pf_ac_forget(box, id);
    return r < 0 ? r : pf_remote_unpack(fd, stage_fd, cancel, err);
}

int pf_ac_sync(void *state, const struct pinfold_sync_request *request,
               struct pinfold_sync_result *ret_result, struct pinfold_cancel *cancel,
               struct pinfold_error *err)
{
    struct pf_ac_box *box = state;
    PF_CLEANUP(pf_stage_done) struct pf_stage stage = PF_STAGE_INIT;
    PF_CLEANUP(pf_remote_wanted_done)
    struct pf_remote_wanted wanted = PF_REMOTE_WANTED_INIT;
    PF_CLEANUP(pf_buf_done) struct pf_buf listing = PF_BUF_INIT(PF_REMOTE_LIST_MAX);
    int r = pf_ac_need_session(box, err);

    if (r == 0)
        r = pf_stage_open(&stage, err);
    if (r == 0)
        r = list_there(box, &listing, cancel, err);
    if (r == 0)
        r = pf_remote_choose(&listing, request, &wanted, err);
    if (r == 0 && wanted.names.len > 0)
        r = pf_ac_fetch_stage(box, &wanted, false, stage.fd, cancel, err);
    if (r == 0)
        r = pf_local_sync(stage.fd, NULL, box->root, request, ret_result, cancel, err);
    if (r == 0)
        r = pf_remote_note_missing(&wanted, stage.fd, &ret_result->errors, err);
    return r;
}

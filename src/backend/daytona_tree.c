/* SPDX-License-Identifier: Apache-2.0 */
/* Whole trees: archives go in and out by the service's file operations, and are packed and unpacked
 * in sessions, since that may take long. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/daytona.h"
#include "backend/remote_archive.h"
#include "backend/remote_output.h"
#include "backend/remote_tree.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "tree/data.h"

#define SCRIPT_MAX ((size_t)64 << 20)

static int run_script(void *box, const char *script, int *ret_status, struct pf_buf *ret_text,
                      struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pf_dt_run run = { .text = script,
                             .len = strlen(script),
                             .timeout_ns = PF_DT_TRANSFER_NS };
    int r = pf_dt_run(box, &run, cancel, err);

    if (r < 0)
        return r;
    *ret_status = run.status;
    r = run.timed_out
                ? pf_fail(err, PINFOLD_ETIMEOUT, "Daytona: packing or unpacking took too long")
                : 0;
    if (r == 0 && run.errs.data && pf_buf_append(ret_text, run.errs.data, run.errs.len) < 0)
        r = pf_fail_nomem(err);
    pf_dt_run_done(&run);
    return r;
}

static int put(void *box, int fd, uint64_t size, char ret_name[static PF_REMOTE_NAME_MAX],
               struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    char path[PF_DT_PATH_MAX];
    struct pf_daytona_put file = { .path = path, .fd = fd, .size = size };
    int r;

    pf_dt_scratch(box, path);
    snprintf(ret_name, PF_REMOTE_NAME_MAX, "%s", path);
    r = pf_dt_put(box, &file, 1, cancel, err);
    if (r == 0 && file.error.code && err)
        *err = file.error;
    return r < 0 ? r : -file.error.code;
}

static void print(void *box, const char *name, char ret[static PF_REMOTE_NAME_MAX])
{
    (void)box;
    snprintf(ret, PF_REMOTE_NAME_MAX, "cat %s", name);
}

static void forget(void *box, const char *name)
{
    pf_dt_forget(box, name);
}

/* ---- out ---- */

static int download(struct pf_dt_box *box, const char *path, uint64_t limit, int fd,
                    struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    const struct pf_daytona_call call = { .deadline = pf_clock_deadline(PF_DT_TRANSFER_NS),
                                          .idle_ns = PF_DT_IDLE_NS,
                                          .cancel = cancel };
    PF_CLEANUP(pf_inflater_freep) struct pf_inflater *inflater = NULL;
    struct pinfold_error own = PINFOLD_ERROR_INIT;
    int r = pf_inflater_new(fd, limit, &inflater, &own);

    if (r == 0)
        r = pf_daytona_file_get(&box->toolbox, path, PF_BUF_UNLIMITED, &call, pf_inflater_take,
                                inflater, &own);
    if (r == 0)
        r = pf_inflater_end(inflater, &own);
    if (r < 0 && err)
        *err = own;
    return r;
}

/* The script's status goes by a file, as a pipe only has its last command's. */
static int fetch(void *box, const char *script, uint64_t limit, int fd,
                 struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf whole = PF_BUF_INIT(SCRIPT_MAX);
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(SCRIPT_MAX);
    char path[PF_DT_PATH_MAX], status_path[PF_DT_PATH_MAX + 8];
    int status = -1, r;

    pf_dt_scratch(box, path);
    snprintf(status_path, sizeof(status_path), "%s.s", path);
    if (pf_buf_printf(&whole,
                      "export LC_ALL=C; { (%s); echo $? >%s; } | gzip -1 >%s || exit; "
                      "r=$(cat %s); rm -f %s; exit \"$r\"",
                      script, status_path, path, status_path, status_path) < 0)
        return pf_fail_nomem(err);
    r = run_script(box, whole.data, &status, &text, cancel, err);
    if (r == 0 && status != 0)
        r = pf_fail_os(err, pf_remote_errno_of(text.data), "fetch");
    if (r == 0)
        r = download(box, path, limit, fd, cancel, err);
    pf_dt_forget(box, path);
    return r;
}

static struct pf_remote remote_of(struct pf_dt_box *box)
{
    return (struct pf_remote){ .box = box,
                               .root = box->root,
                               .run = run_script,
                               .put = put,
                               .print = print,
                               .forget = forget,
                               .fetch = fetch };
}

int pf_dt_seed(void *state, const struct pinfold_seed_request *request,
               struct pinfold_seed_result *ret_result, struct pinfold_cancel *cancel,
               struct pinfold_error *err)
{
    struct pf_remote remote = remote_of(state);
    int r = pf_dt_fail_start(state, err);

    if (r == 0)
        r = pf_dt_fail_bare(state, err);
    return r < 0 ? r : pf_remote_seed(&remote, request, ret_result, cancel, err);
}

int pf_dt_sync(void *state, const struct pinfold_sync_request *request,
               struct pinfold_sync_result *ret_result, struct pinfold_cancel *cancel,
               struct pinfold_error *err)
{
    struct pf_remote remote = remote_of(state);
    int r = pf_dt_fail_start(state, err);

    if (r == 0)
        r = pf_dt_fail_bare(state, err);
    return r < 0 ? r : pf_remote_sync(&remote, request, ret_result, cancel, err);
}

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
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/random.h"
#include "tree/data.h"

#define SCRIPT_MAX ((size_t)64 << 20)
#define TOO_LONG "Daytona: packing or unpacking took too long"
enum { MARK_DIGITS = 16 };

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
    r = run.timed_out ? pf_fail(err, PINFOLD_ETIMEOUT, TOO_LONG) : 0;
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
    if (r == 0)
        r = -file.error.code;
    if (r < 0) /* whoever tries again does so by another name */
        pf_dt_forget(box, path);
    return r;
}

static void print(void *box, const char *name, bool keep, char ret[static PF_REMOTE_NAME_MAX])
{
    (void)box;
    snprintf(ret, PF_REMOTE_NAME_MAX, "{ P=%s; cat $P; %s; }", name, keep ? ":" : "rm -f $P");
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

/* What a script prints goes into a file there, compressed; its status goes by another, as a pipe
 * only has its last command's. What is small comes with the log, and is no file any more: each
 * request that is saved is a round trip. */
static int write_fetch(struct pf_buf *text, const char *script, const char *path, const char *end)
{
    return pf_buf_printf(text,
                         "export LC_ALL=C; P=%s; trap 'echo %s; echo %s >&2' EXIT; "
                         "{ (%s); echo $? >$P.s; } | gzip -1 >$P || exit; "
                         "r=$(cat $P.s); rm -f $P.s; [ \"$r\" = 0 ] || exit \"$r\"; "
                         "n=$(wc -c <$P); echo $n; "
                         "[ $n -gt %zu ] || { base64 <$P && rm -f $P; }; exit 0",
                         path, end, end, script, PF_DT_INLINE);
}

/* What came with the log. Returns 1 when it is a file there, of which only the size came. */
static int take_inlined(const struct pf_dt_run *run, const char *end, uint64_t limit, int fd,
                        struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf packed = PF_BUF_INIT(2 * PF_DT_INLINE);
    PF_CLEANUP(pf_inflater_freep) struct pf_inflater *inflater = NULL;
    const char *text = run->out.data, *line = pf_dt_find(&run->out, 0, "\n");
    const char *stop = pf_dt_find(&run->out, 0, end);
    char *rest;
    unsigned long long size = text && line ? strtoull(text, &rest, 10) : 0;
    int r;

    if (size == 0 || !stop || stop < line)
        return pf_fail(err, PINFOLD_EBACKEND, "Daytona: what was fetched is not whole");
    if (size > PF_DT_INLINE)
        return 1;
    r = pf_base64_decode(line, (size_t)(stop - line), &packed);
    if (r == -PINFOLD_ENOMEM)
        return pf_fail_nomem(err);
    if (r < 0 || packed.len != size)
        return pf_fail(err, PINFOLD_EBACKEND, "Daytona: what was fetched is not whole");
    r = pf_inflater_new(fd, limit, &inflater, err);
    if (r == 0)
        r = pf_inflater_take(inflater, packed.data, packed.len, err);
    return r < 0 ? r : pf_inflater_end(inflater, err);
}

/* The reason of a script that failed: the last line of its errors, before our mark. */
static int fail_fetch(struct pf_dt_run *run, const char *end, struct pinfold_error *err)
{
    const char *stop = pf_dt_find(&run->errs, 0, end);

    if (stop)
        run->errs.data[stop - run->errs.data] = '\0';
    return pf_fail_os(err, pf_remote_errno_of(run->errs.data), "fetch");
}

static int fetch(void *box, const char *script, uint64_t limit, int fd,
                 struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(SCRIPT_MAX);
    char path[PF_DT_PATH_MAX], end[8 + MARK_DIGITS] = "pf-";
    struct pf_dt_run run = { .timeout_ns = PF_DT_TRANSFER_NS, .end = end };
    int r;

    pf_dt_scratch(box, path);
    pf_random_hex(end + strlen(end), MARK_DIGITS);
    if (write_fetch(&text, script, path, end) < 0)
        return pf_fail_nomem(err);
    run.text = text.data;
    run.len = text.len;
    r = pf_dt_run(box, &run, cancel, err);
    if (r == 0 && run.timed_out)
        r = pf_fail(err, PINFOLD_ETIMEOUT, TOO_LONG);
    else if (r == 0 && run.status != 0)
        r = fail_fetch(&run, end, err);
    else if (r == 0)
        r = take_inlined(&run, end, limit, fd, err);
    if (r == 1)
        r = download(box, path, limit, fd, cancel, err);
    else if (r == 0)
        path[0] = '\0';
    if (path[0])
        pf_dt_forget(box, path);
    pf_dt_run_done(&run);
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

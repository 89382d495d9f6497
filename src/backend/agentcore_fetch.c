/* SPDX-License-Identifier: Apache-2.0 */
/* What a script prints there, of any size, comes here. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "backend/agentcore_tree.h"
#include "backend/remote_archive.h"
#include "backend/remote_output.h"
#include "base/base64.h"
#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/number.h"
#include "base/random.h"
#include "tree/data.h"

#define SCRIPT_MAX ((size_t)64 << 20)
#define AT_ONCE (PF_AC_INLINE / 8 * 5) /* bytes that in base64 are less than that */

/* Have the script's output put into parts there; what is small comes at once, in inlined. */
static int prepare(struct pf_ac_box *box, const char *script, const char *id, uint64_t *ret_size,
                   struct pf_buf *inlined, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(SCRIPT_MAX);
    struct pf_ac_output output;
    uint64_t status, size = 0;
    const char *rest;
    int r;

    /* The script's status goes by a file, as a pipe only has its last command's. */
    if (pf_buf_printf(&text,
                      "export LC_ALL=C; S=%s/" PF_AC_SCRATCH "/%s; "
                      "{ (%s); echo $? >$S.status; } | gzip -1 | split -b %zu -d -a 4 - $S. && "
                      "n=$(cat $S.[0-9]* | wc -c) && echo $(cat $S.status) $n && "
                      "if [ $n -le %zu ] && cat $S.[0-9]* | base64; then rm -f $S.*; fi",
                      box->home, id, script, PF_AC_PART, AT_ONCE) < 0)
        return pf_fail_nomem(err);
    r = pf_ac_run(box, text.data, text.len, PF_AC_INLINE, false, NULL, &output, cancel, err);
    if (r < 0)
        return r;
    rest = output.out.data;
    if (!rest || output.status != 0 || !pf_take_number(&rest, UINT8_MAX, &status) ||
        *rest++ != ' ' || !pf_take_number(&rest, UINT64_MAX, &size) || size == 0)
        r = pf_fail_os(err, pf_remote_errno_of(output.errs.data), "prepare to fetch");
    else if (status != 0)
        r = pf_fail_os(err, pf_remote_errno_of(output.errs.data), "fetch");
    *ret_size = size;
    rest = r == 0 ? strchr(rest, '\n') : NULL;
    if (rest && rest[1]) {
        r = pf_base64_decode(rest, strlen(rest), inlined);
        if (r < 0)
            r = r == -PINFOLD_ENOMEM
                        ? pf_fail_nomem(err)
                        : pf_fail(err, PINFOLD_EBACKEND, "what was fetched is not whole");
    }
    pf_ac_output_done(&output);
    return r;
}

static int keep_inlined(const struct pf_buf *inlined, uint64_t size, int fd,
                        struct pinfold_error *err)
{
    int r = inlined->len == size ? pf_write_all(fd, inlined->data, inlined->len) : -EIO;

    return r < 0 ? pf_fail_os(err, -r, "keep what was fetched") : 0;
}

int pf_ac_fetch(struct pf_ac_box *box, const char *script, uint64_t limit, int fd,
                struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    _cleanup_close_ int packed = pf_remote_unnamed(err);
    PF_CLEANUP(pf_buf_done) struct pf_buf inlined = PF_BUF_INIT(2 * AT_ONCE);
    char id[PF_AC_ID_MAX];
    uint64_t size = 0;
    int r;

    if (packed < 0)
        return packed;
    pf_random_hex(id, PF_AC_ID_MAX - 1);
    r = prepare(box, script, id, &size, &inlined, cancel, err);
    /* Gzip's worst is hardly more than what went in. */
    if (r == 0 && size > limit + limit / 100 + 4096)
        r = pf_fail_os(err, EFBIG, "fetch");
    if (r == 0 && inlined.len > 0)
        r = keep_inlined(&inlined, size, packed, err);
    else if (r == 0)
        r = pf_ac_get(box, id, size, packed, cancel, err);
    if (inlined.len == 0)
        pf_ac_forget(box, id);
    if (r == 0 && lseek(packed, 0, SEEK_SET) < 0)
        r = pf_fail_os(err, errno, "read what was fetched");
    return r < 0 ? r : pf_remote_inflate(packed, fd, limit, cancel, err);
}

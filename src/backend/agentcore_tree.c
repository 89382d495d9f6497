/* SPDX-License-Identifier: Apache-2.0 */
/* Whole trees: archives go in and out as files in parts, and are packed and unpacked by scripts. */
#include <stdio.h>
#include <string.h>

#include "backend/agentcore_tree.h"
#include "base/error.h"

int pf_ac_need_session(const struct pf_ac_box *box, struct pinfold_error *err)
{
    return box->root ? 0
                     : pf_fail(err, PINFOLD_ESTART,
                               "AgentCore: no session: the sandbox is not started");
}

static int run_script(void *box, const char *script, int *ret_status, struct pf_buf *ret_text,
                      struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pf_ac_output output;
    const struct pf_buf *said;
    int r = pf_ac_run(box, script, strlen(script), PF_AC_INLINE, false, NULL, &output, cancel, err);

    if (r < 0)
        return r;
    *ret_status = output.status;
    said = output.merged ? &output.out : &output.errs;
    if (said->data && pf_buf_append(ret_text, said->data, said->len) < 0)
        r = pf_fail_nomem(err);
    pf_ac_output_done(&output);
    return r;
}

static int put(void *box, int fd, uint64_t size, char ret_name[static PF_REMOTE_NAME_MAX],
               struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    return pf_ac_put(box, fd, size, ret_name, cancel, err);
}

static void print(void *box, const char *name, bool keep, char ret[static PF_REMOTE_NAME_MAX])
{
    snprintf(ret, PF_REMOTE_NAME_MAX, "{ P=%s/" PF_AC_SCRATCH "/%s; cat $P.*; %s; }",
             ((const struct pf_ac_box *)box)->home, name, keep ? ":" : "rm -f $P.*");
}

static void forget(void *box, const char *name)
{
    pf_ac_forget(box, name);
}

static int fetch(void *box, const char *script, uint64_t limit, int fd,
                 struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    return pf_ac_fetch(box, script, limit, fd, cancel, err);
}

struct pf_remote pf_ac_remote(struct pf_ac_box *box)
{
    return (struct pf_remote){ .box = box,
                               .root = box->root,
                               .run = run_script,
                               .put = put,
                               .print = print,
                               .forget = forget,
                               .fetch = fetch };
}

int pf_ac_seed(void *state, const struct pinfold_seed_request *request,
               struct pinfold_seed_result *ret_result, struct pinfold_cancel *cancel,
               struct pinfold_error *err)
{
    struct pf_remote remote = pf_ac_remote(state);
    int r = pf_ac_need_session(state, err);

    return r < 0 ? r : pf_remote_seed(&remote, request, ret_result, cancel, err);
}

int pf_ac_sync(void *state, const struct pinfold_sync_request *request,
               struct pinfold_sync_result *ret_result, struct pinfold_cancel *cancel,
               struct pinfold_error *err)
{
    struct pf_remote remote = pf_ac_remote(state);
    int r = pf_ac_need_session(state, err);

    return r < 0 ? r : pf_remote_sync(&remote, request, ret_result, cancel, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/ids.h"

#include <pinfold/policy.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"

enum { WORKSPACE_ID_MAX = 255 };

int pf_workspace_id_check(const char *id, struct pinfold_error *err)
{
    if (!id || !*id)
        return pf_fail(err, PINFOLD_EVALUE, "a workspace id must not be empty");
    if (strchr(id, '/'))
        return pf_fail(err, PINFOLD_EVALUE, "workspace id %s must not contain '/'", PF_QUOTE(id));
    if (strlen(id) > WORKSPACE_ID_MAX)
        return pf_fail(err, PINFOLD_EVALUE, "workspace id %s has %zu bytes; the limit is %d",
                       PF_QUOTE(id), strlen(id), WORKSPACE_ID_MAX);
    return 0;
}

static int make_id(const char *prefix, const char *id, const char *suffix, char **ret_id,
                   struct pinfold_error *err)
{
    _cleanup_free_ char *made = NULL;
    int r = pf_workspace_id_check(id, err);

    if (r < 0)
        return r;
    if (asprintf(&made, "%s%s%s", prefix, id, suffix) < 0) {
        made = NULL;
        return pf_fail_nomem(err);
    }
    r = pf_workspace_id_check(made, err);
    if (r < 0)
        return r;
    *ret_id = TAKE(made);
    return 0;
}

int pinfold_workspace_id_for_run(const char *run_id, char **ret_id, struct pinfold_error *err)
{
    return make_id("graph-", run_id, "", ret_id, err);
}

int pinfold_workspace_id_for_context(const char *context_id, bool shared, char **ret_id,
                                     struct pinfold_error *err)
{
    return make_id("", context_id, shared ? ":shared-ws" : "", ret_id, err);
}

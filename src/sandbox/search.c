/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/search.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strings.h"
#include "sandbox/look.h"
#include "sandbox/sandbox.h"

void pinfold_search_result_done(struct pinfold_search_result *result)
{
    for (size_t i = 0; i < result->count; i++) {
        free(result->items[i].path);
        free(result->items[i].text);
    }
    free(result->items);
    pinfold_strings_done(&result->errors);
    memset(result, 0, sizeof(*result));
}

static int check_options(const struct pinfold_search_options *options, struct pinfold_error *err)
{
    if (options->size != sizeof(*options))
        return pf_fail(err, PINFOLD_EVALUE, "search: options of %zu bytes, not %zu", options->size,
                       sizeof(*options));
    if (!options->text && !options->names)
        return pf_fail(err, PINFOLD_EVALUE, "search: a text or patterns for names are needed");
    return 0;
}

static int search(const struct pf_look *looks, const char *path,
                  const struct pinfold_search_options *options, struct pinfold_search_result *ret,
                  struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_globs_freep) struct pf_globs *names = NULL;
    int r = options->names ? pf_globs_new(options->names, &names, err) : 0;

    if (r < 0)
        return r;
    return pf_search(
            &(struct pf_search_request){ .root_fd = looks->root_fd,
                                         .exclude = options->everything ? NULL : looks->exclude,
                                         .names = names,
                                         .path = path,
                                         .options = options,
                                         .cancel = cancel },
            ret, err);
}

int pinfold_sandbox_search(struct pinfold_sandbox *sandbox,
                           const struct pinfold_search_options *options,
                           struct pinfold_search_result *ret, struct pinfold_cancel *cancel,
                           struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_search_result_done) struct pinfold_search_result result = { 0 };
    _cleanup_operation_ struct pf_session *session = NULL;
    PF_CLEANUP(pf_look_done) struct pf_look look = PF_LOOK_INIT;
    _cleanup_free_ char *path = NULL;
    int r = check_options(options, err);

    memset(ret, 0, sizeof(*ret));
    if (r == 0)
        r = pf_sandbox_begin(sandbox, &session, err);
    if (r == 0)
        r = pf_sandbox_path(session, options->path ? options->path : ".", &path, err);
    if (r == 0)
        r = pf_look_open(&look, session, options->everything ? PF_LOOK_EVERYTHING : PF_LOOK_ALLOWED,
                         cancel, err);
    if (r == 0)
        r = search(&look, path, options, &result, cancel, err);
    if (r == 0 && look.errors.count > 0) {
        pinfold_strings_done(&result.errors);
        result.errors = look.errors;
        look.errors = (struct pinfold_strings){ .items = NULL };
    }
    if (r < 0)
        return r;
    *ret = result;
    result = (struct pinfold_search_result){ 0 };
    return 0;
}

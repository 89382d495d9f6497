/* SPDX-License-Identifier: Apache-2.0 */
/* Flush, and the dry runs of seed and flush. */
#include "sandbox/sandbox.h"

#include <stdlib.h>
#include <string.h>

#include <pinfold/changes.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strings.h"
#include "sandbox/look.h"
#include "tree/copy.h"
#include "tree/file.h"
#include "tree/glob.h"

/* Where a flush goes: what the caller said, else what was configured. *ret NULL: nowhere. */
static int flush_dest(struct pinfold_sandbox *sandbox, const char *dest, char **ret,
                      struct pinfold_error *err)
{
    if (!dest)
        dest = sandbox->sync.dest;
    return dest ? pf_path_expand(dest, ret, err) : 0;
}

/* The pattern that stands for one path, whatever bytes its name has. NULL when out of memory. */
static char *pattern_of(const char *path)
{
    char *pattern = malloc(2 * strlen(path) + 2), *out = pattern;

    if (!pattern)
        return NULL;
    *out++ = '/'; /* from the root, and not anywhere */
    for (; *path; path++) {
        if (*path != '/')
            *out++ = '\\';
        *out++ = *path;
    }
    *out = '\0';
    return pattern;
}

/* Leave paths out of a flush, besides what it leaves out anyway. */
static int exclude_paths(struct pf_sync_config *config, const char *const *except,
                         struct pinfold_error *err)
{
    const char *const *lists[2] = { (const char *const *)config->exclude, NULL };
    _cleanup_strv_ char **patterns = NULL;
    size_t count = pf_strv_count(except);
    char **all;
    int r;

    patterns = calloc(count + 1, sizeof(*patterns));
    for (size_t i = 0; patterns && i < count; i++) {
        patterns[i] = pattern_of(except[i]);
        if (!patterns[i])
            return pf_fail_nomem(err);
    }
    if (!patterns)
        return pf_fail_nomem(err);
    r = pinfold_patterns_check((const char *const *)patterns, err);
    if (r < 0)
        return r;
    lists[1] = (const char *const *)patterns;
    all = pf_strv_concat(lists, 2);
    if (!all)
        return pf_fail_nomem(err);
    pf_strv_free(config->exclude);
    config->exclude = all;
    return 0;
}

int pf_kept_check(const struct pinfold_kept *kept, const struct pf_session *session,
                  struct pinfold_error *err)
{
    return strcmp(kept->session_id, pf_session_id(session)) == 0
                   ? 0
                   : pf_fail(err, PINFOLD_EVALUE, "the changes are of workspace %s",
                             PF_QUOTE(kept->session_id));
}

/* Whether it can be told from changes what was looked at. */
static int check_changes(const struct pf_session *session, const struct pinfold_changes *changes,
                         struct pinfold_error *err)
{
    if (changes->kept)
        return pf_kept_check(changes->kept, session, err);
    return pf_session_backend(session)->ops->open_root
                   ? 0
                   : pf_fail(err, PINFOLD_EVALUE, "flush: the changes were listed without keep");
}

static int flush(struct pinfold_sandbox *sandbox, struct pf_session *session, const char *dest,
                 const struct pinfold_kept *kept, const char *const *except,
                 struct pinfold_sync_result *ret_result, struct pinfold_cancel *cancel,
                 struct pinfold_error *err)
{
    PF_CLEANUP(pf_sync_config_done) struct pf_sync_config config = { 0 };
    struct pf_sync_copy copy;
    int r = 0;

    if (!except && !kept)
        return pf_session_sync(session, &sandbox->sync, dest, NULL, ret_result, cancel, err);
    if (pf_sync_config_copy(&config, &sandbox->sync) < 0)
        return pf_fail_nomem(err);
    if (kept) {
        copy = (struct pf_sync_copy){ pinfold_temp_workspace_path(kept->copy), &kept->errors };
        config.copy = &copy;
    }
    if (except)
        r = exclude_paths(&config, except, err);
    return r < 0 ? r : pf_session_sync(session, &config, dest, NULL, ret_result, cancel, err);
}

/* Begin to flush, or to plan that. Returns 1 with what is needed for it, 0 when there is nowhere to
 * flush to, which nobody minds, started or not. */
static int begin(struct pinfold_sandbox *sandbox, const char *name, const char *dest,
                 char **ret_dest, struct pf_session **ret_session, struct pinfold_error *err)
{
    struct pinfold_audit_event event = PF_AUDIT_EVENT_INIT(name);
    int r;

    event.path = dest;
    r = pf_view_refuse(sandbox, &event, err);
    if (r == 0)
        r = flush_dest(sandbox, dest, ret_dest, err);
    if (r < 0 || !*ret_dest)
        return r;
    r = pf_sandbox_begin(sandbox, ret_session, err);
    return r < 0 ? r : 1;
}

/* changes: flush what they were made of; NULL: what is there now. */
static int flush_all(struct pinfold_sandbox *sandbox, const char *dest,
                     const struct pinfold_changes *changes, const char *const *except,
                     struct pinfold_sync_result *ret_result, struct pinfold_cancel *cancel,
                     struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_sync_result_done) struct pinfold_sync_result unused = { 0 };
    _cleanup_operation_ struct pf_session *session = NULL;
    _cleanup_free_ char *expanded = NULL;
    int r;

    if (ret_result)
        memset(ret_result, 0, sizeof(*ret_result));
    else
        ret_result = &unused;
    r = begin(sandbox, "sandbox.flush", dest, &expanded, &session, err);
    if (r > 0 && changes && check_changes(session, changes, err) < 0)
        return -PINFOLD_EVALUE;
    if (r <= 0)
        return r;
    r = flush(sandbox, session, expanded, changes ? changes->kept : NULL, except, ret_result,
              cancel, err);
    return r < 0 ? r : 1;
}

int pinfold_sandbox_flush(struct pinfold_sandbox *sandbox, const char *dest,
                          struct pinfold_sync_result *ret_result, struct pinfold_cancel *cancel,
                          struct pinfold_error *err)
{
    return flush_all(sandbox, dest, NULL, NULL, ret_result, cancel, err);
}

int pinfold_sandbox_flush_except(struct pinfold_sandbox *sandbox, const char *dest,
                                 const char *const *except, struct pinfold_sync_result *ret_result,
                                 struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    return flush_all(sandbox, dest, NULL, except, ret_result, cancel, err);
}

int pinfold_sandbox_flush_changes(struct pinfold_sandbox *sandbox, const char *dest,
                                  const struct pinfold_changes *changes, const char *const *except,
                                  struct pinfold_sync_result *ret_result,
                                  struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    return flush_all(sandbox, dest, changes, except, ret_result, cancel, err);
}

int pinfold_sync_workspace_for_sandbox(struct pinfold_sandbox *sandbox, const char *dest,
                                       struct pinfold_sync_result *ret_result,
                                       struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    return pinfold_sandbox_flush(sandbox, dest, ret_result, cancel, err);
}

int pinfold_sandbox_plan_flush(struct pinfold_sandbox *sandbox, const char *dest,
                               struct pinfold_plan *ret_plan, struct pinfold_cancel *cancel,
                               struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_sync_result_done) struct pinfold_sync_result unused = { 0 };
    PF_CLEANUP(pinfold_plan_done) struct pinfold_plan plan = { 0 };
    _cleanup_operation_ struct pf_session *session = NULL;
    _cleanup_free_ char *expanded = NULL;
    int r;

    memset(ret_plan, 0, sizeof(*ret_plan));
    r = begin(sandbox, "sandbox.plan_flush", dest, &expanded, &session, err);
    if (r <= 0)
        return r;
    r = pf_session_sync(session, &sandbox->sync, expanded, &plan, &unused, cancel, err);
    if (r < 0)
        return r;
    *ret_plan = plan;
    plan = (struct pinfold_plan){ 0 };
    return 1;
}

/* A plan against an empty workspace needs no backend. */
static int plan_unstarted(struct pinfold_sandbox *sandbox, struct pinfold_plan *plan,
                          struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_globs_freep) struct pf_globs *exclude = NULL;
    _cleanup_close_ int source_fd = -1;
    struct pf_copy_result unused = { 0 };
    int r = pf_globs_new((const char *const *)sandbox->exclude, &exclude, err);

    if (r < 0)
        return r;
    source_fd = pf_root_open(sandbox->seed_from, false, NULL, err);
    if (source_fd < 0) {
        if (err && source_fd != -PINFOLD_ENOMEM)
            err->code = PINFOLD_EPREPARE;
        return source_fd == -PINFOLD_ENOMEM ? source_fd : -PINFOLD_EPREPARE;
    }
    r = pf_copy_tree(&(struct pf_copy_options){ .src_fd = source_fd,
                                                .dst_fd = -1,
                                                .src_name = sandbox->seed_from,
                                                .dst_name = "an empty workspace",
                                                .exclude = exclude,
                                                .empty_dirs = true,
                                                .links = true,
                                                .plan = plan,
                                                .cancel = cancel },
                     &unused, err);
    pinfold_strings_done(&unused.skipped);
    pinfold_strings_done(&unused.errors);
    return r;
}

static int plan_started(struct pinfold_sandbox *sandbox, struct pf_session *session,
                        struct pinfold_plan *plan, struct pinfold_cancel *cancel,
                        struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_seed_result_done) struct pinfold_seed_result unused = { 0 };
    struct pinfold_seed_request request = {
        .size = sizeof(request),
        .source = sandbox->seed_from,
        .exclude = (const char *const *)sandbox->exclude,
        .plan = plan,
    };

    return PF_BACKEND_CALL(pf_session_backend(session), err, seed_workspace, &request, &unused,
                           cancel, err);
}

int pinfold_sandbox_plan_seed(struct pinfold_sandbox *sandbox, struct pinfold_plan *ret_plan,
                              struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_plan_done) struct pinfold_plan plan = { 0 };
    _cleanup_operation_ struct pf_session *session = NULL;
    int r;

    memset(ret_plan, 0, sizeof(*ret_plan));
    if (!sandbox->seed_from)
        return 0;
    if (pf_sandbox_begin(sandbox, &session, NULL) == 0)
        r = plan_started(sandbox, session, &plan, cancel, err);
    else
        r = plan_unstarted(sandbox, &plan, cancel, err);
    if (r < 0)
        return r;
    *ret_plan = plan;
    plan = (struct pinfold_plan){ 0 };
    return 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What has changed in a workspace. */
#include "tree/changes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strings.h"
#include "sandbox/look.h"
#include "sandbox/sandbox.h"

void pinfold_changes_done(struct pinfold_changes *changes)
{
    for (size_t i = 0; i < changes->count; i++)
        free(changes->items[i].path);
    free(changes->items);
    pinfold_strings_done(&changes->seed_changes);
    pinfold_strings_done(&changes->errors);
    memset(changes, 0, sizeof(*changes));
}

/* ---- of a copy that was fetched ---- */

/* Whether what looks deleted is there after all. A link to a directory is listed as one. Returns 1,
 * 0 or a negative code. */
static int is_there(struct pinfold_backend *backend, const struct pinfold_change *change,
                    struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_file_infos_done) struct pinfold_file_infos infos = { 0 };
    struct pinfold_error one = PINFOLD_ERROR_INIT;
    const char *path = change->path, *slash = strrchr(path, '/');
    _cleanup_free_ char *dir = slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
    int r;

    if (!dir)
        return pf_fail_nomem(err);
    r = PF_BACKEND_CALL(backend, &one, list_dir, dir, &infos, cancel, &one);
    if (r < 0 && (one.sys_errno == ENOENT || one.sys_errno == ENOTDIR))
        return 0;
    if (r < 0 && err)
        *err = one;
    for (size_t i = 0; r == 0 && i < infos.count; i++)
        if (strcmp(infos.items[i].path, path) == 0)
            return !infos.items[i].is_dir || change->old_mode == 0120000;
    return r;
}

/* What a flush does not bring, a link or what cannot be read, is not deleted. */
static int keep_deleted(const struct pf_session *session, struct pinfold_changes *changes,
                        struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    size_t kept = 0;
    int r = 0;

    for (size_t i = 0; i < changes->count; i++) {
        struct pinfold_change *change = &changes->items[i];
        bool gone = change->kind == PINFOLD_CHANGE_DELETED && r >= 0;
        if (gone)
            r = is_there(pf_session_backend(session), change, cancel, err);
        if (gone && r == 1)
            free(change->path);
        else
            changes->items[kept++] = *change;
    }
    changes->count = kept;
    return r < 0 ? r : 0;
}

static int take_errors(struct pinfold_strings *from, struct pinfold_changes *changes,
                       struct pinfold_error *err)
{
    for (size_t i = 0; i < from->count; i++)
        if (pf_changes_note(&changes->errors, "%s", from->items[i]) < 0)
            return pf_fail_nomem(err);
    pf_strings_sort(&changes->errors);
    return 0;
}

/* ---- the whole ---- */

static int find(struct pf_look *look, const struct pf_session *session, const char *path,
                const struct pinfold_changes_options *options, struct pinfold_changes *ret,
                struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_globs_freep) struct pf_globs *seed_exclude = NULL;
    const struct pf_seed_mark *mark = pf_session_seed_mark(session);
    struct pf_changes_request request = {
        .root_fd = look->root_fd,
        .upper_fd = look->upper_fd,
        .mark = mark,
        .fetched = look->fetched,
        .include = look->include,
        .exclude = look->exclude,
        .path = path,
        .options = options,
        .cancel = cancel,
    };
    int r = mark->source ? pf_globs_new((const char *const *)mark->exclude, &seed_exclude, err) : 0;

    request.seed_exclude = seed_exclude;
    if (r == 0)
        r = pf_changes_find(&request, ret, err);
    if (r == 0 && look->fetched)
        r = keep_deleted(session, ret, cancel, err);
    if (r == 0)
        r = take_errors(&look->errors, ret, err);
    return r == 0 ? pf_changes_write(&request, ret, err) : r;
}

int pinfold_sandbox_changes(struct pinfold_sandbox *sandbox,
                            const struct pinfold_changes_options *options,
                            struct pinfold_changes *ret, struct pinfold_cancel *cancel,
                            struct pinfold_error *err)
{
    static const struct pinfold_changes_options defaults = PINFOLD_CHANGES_OPTIONS_INIT;
    PF_CLEANUP(pinfold_changes_done) struct pinfold_changes changes = { 0 };
    _cleanup_operation_ struct pf_session *session = NULL;
    PF_CLEANUP(pf_look_done) struct pf_look look = PF_LOOK_INIT;
    _cleanup_free_ char *path = NULL;
    int r;

    memset(ret, 0, sizeof(*ret));
    if (!options)
        options = &defaults;
    if (options->size != sizeof(*options))
        return pf_fail(err, PINFOLD_EVALUE, "changes: options of %zu bytes, not %zu", options->size,
                       sizeof(*options));
    r = pf_sandbox_begin(sandbox, &session, err);
    if (r == 0)
        r = pf_sandbox_path(session, options->path ? options->path : ".", &path, err);
    if (r == 0)
        r = pf_look_open(&look, session, options->everything ? PF_LOOK_EVERYTHING : PF_LOOK_SYNCED,
                         cancel, err);
    if (r == 0)
        r = find(&look, session, path, options, &changes, cancel, err);
    if (r < 0)
        return r;
    *ret = changes;
    changes = (struct pinfold_changes){ 0 };
    return 0;
}

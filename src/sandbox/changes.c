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
#include "tree/file.h"

void pinfold_changes_done(struct pinfold_changes *changes)
{
    for (size_t i = 0; i < changes->count; i++)
        free(changes->items[i].path);
    free(changes->items);
    pinfold_strings_done(&changes->seed_changes);
    pinfold_strings_done(&changes->errors);
    pinfold_strings_done(&changes->unknown);
    pf_kept_free(changes->kept);
    memset(changes, 0, sizeof(*changes));
}

/* ---- of a copy that was fetched ---- */

/* What a directory there has: the last one that was asked for, as most paths are behind others of
 * the same. */
struct listing {
    char *dir;
    struct pinfold_file_infos infos;
    struct pinfold_error error; /* of the system, or of a path that leads out of the workspace */
};

static void listing_done(struct listing *listing)
{
    free(listing->dir);
    pinfold_file_infos_done(&listing->infos);
    *listing = (struct listing){ .error = PINFOLD_ERROR_INIT };
}

/* Takes dir. What the system says of it there is in the listing, and no failure. */
static int list(struct listing *listing, struct pinfold_backend *backend, char *dir,
                struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pinfold_error *one = &listing->error;
    int r;

    if (dir && listing->dir && strcmp(dir, listing->dir) == 0) {
        free(dir);
        return 0;
    }
    listing_done(listing);
    listing->dir = dir;
    if (!dir)
        return pf_fail_nomem(err);
    r = PF_BACKEND_CALL(backend, one, list_dir, dir, &listing->infos, cancel, one);
    pf_infos_sort(&listing->infos); /* a backend may be anybody's */
    if (r == 0 || one->code == PINFOLD_EOS || one->code == PINFOLD_EPATH)
        return 0;
    if (err)
        *err = *one;
    listing_done(listing);
    return r;
}

/* Whether what looks deleted is there after all. A link to a directory is listed as one; one that
 * leads out of the workspace stands where a directory was, and what was below that is gone. Returns
 * 1, 0, or a negative number when the system does not tell. */
static int is_there(const struct listing *listing, const struct pinfold_change *change)
{
    static const int gone[] = { 0, ENOENT, ENOTDIR, ELOOP };
    const struct pinfold_file_info *info = pf_infos_find(&listing->infos, change->path);
    bool known = false;

    for (size_t i = 0; i < PF_COUNT(gone); i++)
        known = known || listing->error.sys_errno == gone[i];
    if (info)
        return !info->is_dir || change->old_mode == 0120000;
    return known ? 0 : -listing->error.sys_errno;
}

/* Returns 1 when it is there, or cannot be looked at, which is an error of the changes then; 0, or
 * a negative code. */
static int look_for(struct listing *listing, const struct pf_session *session,
                    const struct pinfold_change *change, struct pinfold_changes *changes,
                    struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    const char *slash = strrchr(change->path, '/');
    struct pinfold_error one = PINFOLD_ERROR_INIT;
    int r = list(listing, pf_session_backend(session),
                 slash ? strndup(change->path, (size_t)(slash - change->path)) : strdup("."),
                 cancel, err);
    int there = r < 0 ? 0 : is_there(listing, change);

    /* A flush may fetch it all the same, next time. */
    if (there != 0 && change->seed_changed &&
        pf_changes_note(&changes->unknown, "%s", change->path) < 0)
        return pf_fail_nomem(err);
    if (there >= 0)
        return r < 0 ? r : there;
    pf_fail_os(&one, -there, "compare \"%s\" with the seed", PF_QUOTE(change->path));
    return pf_changes_note(&changes->errors, "%s", one.msg) < 0 ? pf_fail_nomem(err) : 1;
}

/* What a flush does not bring, a link or what cannot be read, is not deleted. */
static int keep_deleted(const struct pf_session *session, struct pinfold_changes *changes,
                        struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(listing_done) struct listing listing = { .error = PINFOLD_ERROR_INIT };
    size_t kept = 0;
    int r = 0;

    for (size_t i = 0; i < changes->count; i++) {
        struct pinfold_change *change = &changes->items[i];
        bool gone = change->kind == PINFOLD_CHANGE_DELETED && r >= 0;
        if (gone)
            r = look_for(&listing, session, change, changes, cancel, err);
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
    pf_strings_sort(&changes->unknown);
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

static int check_keep(const struct pinfold_changes_options *options, struct pinfold_error *err)
{
    if (options->keep && (options->path || options->everything))
        return pf_fail(err, PINFOLD_EVALUE,
                       "changes: keep is for all that a flush takes, and so with neither path nor "
                       "everything");
    if (options->again && !options->keep)
        return pf_fail(err, PINFOLD_EVALUE, "changes: again takes keep");
    return 0;
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
    const struct pinfold_kept *kept;
    _cleanup_free_ char *path = NULL;
    int r;

    memset(ret, 0, sizeof(*ret));
    if (!options)
        options = &defaults;
    if (options->size != sizeof(*options))
        return pf_fail(err, PINFOLD_EVALUE, "changes: options of %zu bytes, not %zu", options->size,
                       sizeof(*options));
    r = check_keep(options, err);
    if (r < 0)
        return r;
    kept = options->again ? options->again->kept : NULL;
    r = pf_sandbox_begin(sandbox, &session, err);
    if (r == 0)
        r = pf_sandbox_path(session, options->path ? options->path : ".", &path, err);
    if (r == 0)
        r = kept ? pf_look_open_kept(&look, session, kept, err)
                 : pf_look_open(&look, session,
                                options->everything ? PF_LOOK_EVERYTHING : PF_LOOK_SYNCED, cancel,
                                err);
    if (r == 0)
        r = find(&look, session, path, options, &changes, cancel, err);
    if (r == 0 && options->keep && !kept)
        r = pf_look_keep(&look, session, &changes.kept, err);
    if (r < 0)
        return r;
    if (kept)
        changes.kept = TAKE(options->again->kept);
    *ret = changes;
    changes = (struct pinfold_changes){ 0 };
    return 0;
}

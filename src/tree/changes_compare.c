/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/changes_job.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strings.h"
#include "tree/data.h"

enum { READ_FLAGS = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC };

int pf_changes_note(struct pinfold_strings *list, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    int len;

    if (list->count >= PINFOLD_CHANGES_LIST_MAX)
        return 0;
    va_start(args, format);
    len = vasprintf(&text, format, args);
    va_end(args);
    return len < 0 ? -PINFOLD_ENOMEM : pf_strings_take(list, text);
}

static int note(struct pinfold_strings *list, const char *path, struct pinfold_error *err)
{
    return pf_changes_note(list, "%s", path) < 0 ? pf_fail_nomem(err) : 0;
}

int pf_changes_unknown(struct pf_changes_job *job, const char *path, int sys_errno,
                       struct pinfold_error *err)
{
    struct pinfold_error one = PINFOLD_ERROR_INIT;
    int r;

    if (sys_errno == ENOMEM)
        return pf_fail_nomem(err);
    pf_fail_os(&one, sys_errno, "compare \"%s\" with the seed", PF_QUOTE(path));
    r = note(&job->ret->errors, one.msg, err);
    return r < 0 ? r : note(&job->ret->unknown, path, err);
}

static unsigned git_mode(const struct pf_changes_side *side)
{
    if (!side->exists)
        return 0;
    return S_ISLNK(side->st.st_mode) ? 0120000 : side->st.st_mode & S_IXUSR ? 0100755 : 0100644;
}

static int tick(void *ctx, uint64_t bytes)
{
    const struct pf_changes_job *job = ctx;

    (void)bytes;
    return pinfold_cancel_fired(job->request->cancel) ? -ECANCELED : 0;
}

/* Returns 1 (the same bytes), 0, -errno. */
static int same_file(struct pf_changes_job *job, const char *name,
                     const struct pf_changes_side *old_side, const struct pf_changes_side *new_side)
{
    _cleanup_close_ int old_fd = openat(old_side->dir_fd, name, READ_FLAGS);
    _cleanup_close_ int new_fd = -1;

    if (old_fd < 0)
        return -errno;
    new_fd = openat(new_side->dir_fd, name, READ_FLAGS);
    if (new_fd < 0)
        return -errno;
    return pf_data_same(old_fd, new_fd, job->buffer, tick, job);
}

static int same_link(const char *name, const struct pf_changes_side *old_side,
                     const struct pf_changes_side *new_side)
{
    char old_target[PATH_MAX], new_target[PATH_MAX];
    ssize_t old_len = readlinkat(old_side->dir_fd, name, old_target, sizeof(old_target));
    ssize_t new_len;

    if (old_len < 0)
        return -errno;
    new_len = readlinkat(new_side->dir_fd, name, new_target, sizeof(new_target));
    if (new_len < 0)
        return -errno;
    return old_len == new_len && memcmp(old_target, new_target, (size_t)old_len) == 0;
}

/* What kind of change it is, from both modes and, where these do not say it, the bytes. Returns 0
 * for none, an enum pinfold_change_kind, or -errno. */
static int find_kind(struct pf_changes_job *job, const char *name,
                     const struct pf_changes_side *old_side, const struct pf_changes_side *new_side)
{
    unsigned before = git_mode(old_side), after = git_mode(new_side);
    int same;

    if (!before || !after)
        return before ? PINFOLD_CHANGE_DELETED : PINFOLD_CHANGE_ADDED;
    if ((before == 0120000) != (after == 0120000))
        return PINFOLD_CHANGE_TYPE;
    if (old_side->st.st_size != new_side->st.st_size)
        return PINFOLD_CHANGE_MODIFIED;
    same = before == 0120000 ? same_link(name, old_side, new_side)
                             : same_file(job, name, old_side, new_side);
    if (same <= 0)
        return same < 0 ? same : PINFOLD_CHANGE_MODIFIED;
    return before == after ? 0 : PINFOLD_CHANGE_MODE;
}

static int add(struct pf_changes_job *job, const struct pinfold_change *change,
               struct pinfold_error *err)
{
    struct pinfold_changes *ret = job->ret;
    size_t capacity = ret->capacity ? ret->capacity * 2 : 64;
    struct pinfold_change *items;
    char *path;

    if (ret->count == ret->capacity) {
        items = reallocarray(ret->items, capacity, sizeof(*items));
        if (!items)
            return pf_fail_nomem(err);
        ret->items = items;
        ret->capacity = capacity;
    }
    path = strdup(change->path);
    if (!path)
        return pf_fail_nomem(err);
    ret->items[ret->count] = *change;
    ret->items[ret->count++].path = path;
    return 0;
}

/* Whether the file was made after the seed was taken. Where that is not known, whether it was
 * changed. */
static bool born_since(const struct pf_changes_job *job, const char *name,
                       const struct pf_changes_side *side)
{
    struct statx stx;

    if (statx(side->dir_fd, name, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &stx) < 0 ||
        !(stx.stx_mask & STATX_BTIME))
        return true;
    return stx.stx_btime.tv_sec * INT64_C(1000000000) + stx.stx_btime.tv_nsec >= job->old_limit;
}

/* Whether something was done to the seed here. */
static bool is_old_newer(const struct pf_changes_job *job, const struct pf_changes_side *old_side)
{
    return old_side->exists && (job->old_moved != PF_CHANGES_NOT_MOVED ||
                                pf_changed_since(&old_side->st, job->old_limit));
}

/* Whether something was done to the workspace. */
static bool is_now_newer(const struct pf_changes_job *job, const struct pf_changes_side *new_side)
{
    return job->now_moved != PF_CHANGES_NOT_MOVED ||
           pf_changed_since(&new_side->st, job->now_limit);
}

/*
 * Whether it is the seed that has changed here, and the workspace has not. A file that the
 * workspace does not have may have been deleted there or added to the seed; one that it has alone
 * may have been deleted in the seed, which then shows in the directory.
 */
static bool is_seeds_own(const struct pf_changes_job *job, const char *name,
                         const struct pf_changes_side *old_side,
                         const struct pf_changes_side *new_side, bool parent_newer)
{
    bool old_newer = is_old_newer(job, old_side);

    if (!new_side->exists)
        return old_newer && born_since(job, name, old_side);
    if (job->request->fetched || job->request->upper_fd >= 0 || is_now_newer(job, new_side))
        return false;
    return old_side->exists ? old_newer : parent_newer;
}

/* Nothing has been done to either side since: no need to read them. */
static bool is_untouched(const struct pf_changes_job *job, const struct pf_changes_side *old_side,
                         const struct pf_changes_side *new_side)
{
    return old_side->exists && new_side->exists && !job->request->fetched &&
           !is_old_newer(job, old_side) && !is_now_newer(job, new_side) &&
           old_side->st.st_size == new_side->st.st_size && git_mode(old_side) == git_mode(new_side);
}

/* Of everything that is listed, what a flush takes is what its patterns match. */
static bool syncs(const struct pinfold_change *change, bool chosen)
{
    return chosen &&
           (change->kind == PINFOLD_CHANGE_ADDED || change->kind == PINFOLD_CHANGE_MODIFIED) &&
           change->new_mode != 0120000;
}

int pf_changes_compare(struct pf_changes_job *job, const char *path, const char *name,
                       const struct pf_changes_side *old_side,
                       const struct pf_changes_side *new_side, bool parent_newer,
                       struct pinfold_error *err)
{
    union {
        const char *constant;
        char *borrowed;
    } text = { .constant = path };
    struct pinfold_change change = {
        .path = text.borrowed,
        .old_mode = git_mode(old_side),
        .new_mode = git_mode(new_side),
        .old_size = old_side->exists ? old_side->st.st_size : -1,
        .new_size = new_side->exists ? new_side->st.st_size : -1,
    };
    int kind;

    if (is_untouched(job, old_side, new_side))
        return 0;
    kind = find_kind(job, name, old_side, new_side);
    if (kind == 0 || kind == -ENOENT || kind == -ECANCELED)
        return 0; /* gone meanwhile; who is cancelled looks at that next */
    if (kind < 0)
        return pf_changes_unknown(job, path, -kind, err);
    if (job->seed_fd >= 0 && is_seeds_own(job, name, old_side, new_side, parent_newer))
        return note(&job->ret->seed_changes, path, err);
    change.kind = (enum pinfold_change_kind)kind;
    change.seed_changed = is_old_newer(job, old_side);
    change.syncs = syncs(&change, pf_changes_chosen(job->request, path));
    return add(job, &change, err);
}

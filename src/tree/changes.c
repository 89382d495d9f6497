/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/changes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/strings.h"
#include "tree/below.h"
#include "tree/beneath.h"
#include "tree/changes_job.h"
#include "tree/data.h"
#include "tree/file.h"

const char *pinfold_change_kind_name(enum pinfold_change_kind kind)
{
    static const char *const names[] = {
        [PINFOLD_CHANGE_ADDED] = "added",     [PINFOLD_CHANGE_MODIFIED] = "modified",
        [PINFOLD_CHANGE_DELETED] = "deleted", [PINFOLD_CHANGE_MODE] = "mode",
        [PINFOLD_CHANGE_TYPE] = "type",
    };

    return (size_t)kind < PF_COUNT(names) && names[kind] ? names[kind] : "unknown";
}

/* ---- what is looked at ---- */

bool pf_changes_chosen(const struct pf_changes_request *request, const char *path)
{
    size_t len = strlen(path);

    return pf_globs_match_whole(request->include, path, len, false) &&
           !pf_globs_match_whole(request->exclude, path, len, false);
}

/* A file or a link. */
static bool is_wanted(const struct pf_changes_job *job, const char *path)
{
    const struct pf_changes_request *request = job->request;

    return pf_is_at_or_below(path, request->path) &&
           (request->options->everything || pf_changes_chosen(request, path));
}

/* Whether something below a directory may be wanted. */
static bool leads_on(const struct pf_changes_job *job, const char *path, size_t len)
{
    const struct pf_changes_request *request = job->request;

    if (!pf_is_at_or_below(path, request->path) && !pf_is_at_or_below(request->path, path))
        return false;
    if (request->options->everything)
        return true;
    return !pf_globs_match(request->exclude, path, len, true) &&
           (pf_globs_match_whole(request->include, path, len, true) ||
            pf_globs_could_match_below(request->include, path, len));
}

/* Whether a seed takes the entry of its source: of a directory, with what is in it. Returns 1, 0,
 * or -errno for a link that cannot be read or followed now. */
static int is_seeded(const struct pf_changes_job *job, const struct pf_walk_entry *entry)
{
    char target[PATH_MAX];
    ssize_t len;

    if (entry->type == PF_WALK_SPECIAL || pf_copy_excluded(&job->old_side, entry))
        return 0;
    if (entry->type != PF_WALK_LINK)
        return 1;
    len = readlinkat(entry->dir_fd, entry->name, target, sizeof(target) - 1);
    if (len < 0)
        return errno == ENOENT ? 0 : -errno;
    target[len] = '\0';
    return pf_copy_link_inside(&job->old_side, entry, target);
}

static enum pf_walk_type type_of(const struct stat *st)
{
    return S_ISREG(st->st_mode)   ? PF_WALK_FILE
           : S_ISLNK(st->st_mode) ? PF_WALK_LINK
           : S_ISDIR(st->st_mode) ? PF_WALK_DIR
                                  : PF_WALK_SPECIAL;
}

/* The entry of the seed at the path of one of the workspace, in a directory that the seed has.
 * Returns 1, 0 when there is none that was seeded, or -errno. */
static int find_old(const struct pf_changes_job *job, const struct pf_walk_entry *entry,
                    struct pf_walk_entry *ret_old, struct stat *ret_st)
{
    *ret_old = *entry;
    ret_old->dir_fd = pf_dirs_top(&job->old)->fd;
    if (fstatat(ret_old->dir_fd, entry->name, ret_st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    ret_old->type = type_of(ret_st);
    return is_seeded(job, ret_old);
}

static int note_error(struct pf_changes_job *job, const char *text, struct pinfold_error *err)
{
    return pf_changes_note(&job->ret->errors, "%s", text) < 0 ? pf_fail_nomem(err) : 0;
}

static int note_os(struct pf_changes_job *job, int sys_errno, const char *path,
                   struct pinfold_error *err)
{
    struct pinfold_error one = PINFOLD_ERROR_INIT;

    if (sys_errno == ENOMEM)
        return pf_fail_nomem(err);
    pf_fail_os(&one, sys_errno, "compare \"%s\" with the seed", PF_QUOTE(path));
    return note_error(job, one.msg, err);
}

/* ---- what is there ---- */

static bool parent_newer(const struct pf_changes_job *job)
{
    struct stat st;

    /* What the seed does not have at all went with its innermost directory that it has. */
    return job->seed_fd >= 0 && fstat(pf_dirs_top(&job->old)->fd, &st) == 0 &&
           pf_changed_since(&st, job->old_limit);
}

static int visit_file(struct pf_changes_job *job, const struct pf_walk_entry *entry,
                      struct pinfold_error *err)
{
    struct pf_changes_side old_side = { .exists = false };
    struct pf_changes_side new_side = { .exists = true, .dir_fd = entry->dir_fd };
    struct pf_walk_entry old;
    int r = 0;

    if (!is_wanted(job, entry->path) ||
        (entry->type == PF_WALK_LINK && !job->request->options->everything &&
         pf_copy_excluded(&job->now_side, entry)))
        return 0;
    if (fstatat(entry->dir_fd, entry->name, &new_side.st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : pf_changes_unknown(job, entry->path, errno, err);
    if (type_of(&new_side.st) != entry->type)
        return 0; /* it has changed this very moment: as if a moment later */
    if (pf_changes_old_here(job, entry->depth))
        r = find_old(job, entry, &old, &old_side.st);
    if (r < 0)
        return pf_changes_unknown(job, entry->path, -r, err);
    if (r > 0 && old.type != PF_WALK_DIR) {
        old_side.exists = true;
        old_side.dir_fd = old.dir_fd;
    }
    return pf_changes_compare(job, entry->path, entry->name, &old_side, &new_side,
                              !old_side.exists && parent_newer(job), err);
}

/* ---- what is gone ---- */

/* A file or link of the seed, if a seed takes it. */
static int note_gone(struct pf_changes_job *job, const struct pf_walk_entry *old,
                     struct pinfold_error *err)
{
    const struct pf_changes_side new_side = { .exists = false };
    struct pf_changes_side old_side = { .exists = true, .dir_fd = old->dir_fd };
    int r = is_wanted(job, old->path) ? is_seeded(job, old) : 0;

    if (r <= 0)
        return r < 0 ? note_os(job, -r, old->path, err) : 0;
    if (fstatat(old->dir_fd, old->name, &old_side.st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : note_os(job, errno, old->path, err);
    return pf_changes_compare(job, old->path, old->name, &old_side, &new_side, false, err);
}

/* An entry below a directory of the seed that the workspace does not have. */
static int visit_gone(struct pf_changes_job *job, struct pf_walk *walk,
                      const struct pf_walk_entry *entry, struct pinfold_error *err)
{
    if (entry->type == PF_WALK_DIR_DONE)
        return 0;
    if (entry->type == PF_WALK_ERROR)
        return note_error(job, entry->error.msg, err);
    if (entry->type == PF_WALK_DIR) {
        if (!is_seeded(job, entry) || !leads_on(job, entry->path, entry->path_len))
            pf_walk_skip(walk);
        return 0;
    }
    return note_gone(job, entry, err);
}

/* Everything below a directory of the seed. */
static int list_gone(struct pf_changes_job *job, const struct pf_walk_entry *dir,
                     struct pinfold_error *err)
{
    _cleanup_close_ int fd =
            openat(dir->dir_fd, dir->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    PF_CLEANUP(pf_walk_freep) struct pf_walk *walk = NULL;
    PF_CLEANUP(pf_buf_done) struct pf_buf path = PF_BUF_INIT(PF_BUF_UNLIMITED);
    struct pf_walk_entry entry;
    int r;

    if (fd < 0)
        return note_os(job, errno, dir->path, err);
    r = pf_walk_new(fd, &walk, err);
    while (r == 0 && (r = pf_walk_next(walk, &entry)) > 0) {
        path.len = 0;
        if (pf_buf_printf(&path, "%s/%s", dir->path, entry.path) < 0)
            return pf_fail_nomem(err);
        entry.name = path.data + path.len - strlen(entry.name);
        entry.path = path.data;
        entry.path_len = path.len;
        entry.depth += dir->depth + 1;
        r = pf_cancel_check(job->request->cancel, err);
        if (r == 0)
            r = visit_gone(job, walk, &entry, err);
    }
    return r == -PINFOLD_ENOMEM ? pf_fail_nomem(err) : r;
}

/* Look for one name of the seed in the workspace's directory. */
static int look_for(struct pf_changes_job *job, struct pf_walk_entry *old, int now_fd,
                    struct pinfold_error *err)
{
    struct stat st, now;
    bool here;

    if (fstatat(old->dir_fd, old->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : note_os(job, errno, old->path, err);
    old->type = type_of(&st);
    here = fstatat(now_fd, old->name, &now, AT_SYMLINK_NOFOLLOW) == 0;
    if (!here && errno != ENOENT)
        return note_os(job, errno, old->path, err);
    if (here && old->type == PF_WALK_DIR ? S_ISDIR(now.st_mode)
        : here                           ? S_ISREG(now.st_mode) || S_ISLNK(now.st_mode)
                                         : false)
        return 0; /* the walk of what is there comes to it */
    if (old->type != PF_WALK_DIR)
        return note_gone(job, old, err);
    return is_seeded(job, old) && leads_on(job, old->path, old->path_len) ? list_gone(job, old, err)
                                                                          : 0;
}

/* What a directory of the seed has, and the workspace's, open as now_fd, has not. */
static int look_for_all(struct pf_changes_job *job, const char *path, unsigned depth, int now_fd,
                        struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf name = PF_BUF_INIT(PF_BUF_UNLIMITED);
    int old_fd = pf_dirs_top(&job->old)->fd, r = 0;
    int fd = openat(old_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *found;

    if (!dir) {
        r = note_os(job, errno, *path ? path : ".", err);
        if (fd >= 0)
            close(fd);
        return r;
    }
    while (r == 0 && (errno = 0, found = readdir(dir))) {
        struct pf_walk_entry old = { .dir_fd = old_fd, .depth = depth };
        if (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0)
            continue;
        name.len = 0;
        if (pf_buf_printf(&name, "%s%s%s", path, *path ? "/" : "", found->d_name) < 0) {
            r = pf_fail_nomem(err);
            break;
        }
        old.path = name.data;
        old.path_len = name.len;
        old.name = name.data + name.len - strlen(found->d_name);
        r = look_for(job, &old, now_fd, err);
    }
    if (r == 0 && errno != 0)
        r = note_os(job, errno, *path ? path : ".", err);
    closedir(dir);
    return r;
}

/* ---- the walk ---- */

/* The directory as the workspace shows it: the walk may be that of an upper layer. */
static int open_now(const struct pf_changes_job *job, const struct pf_walk_entry *entry)
{
    int fd;

    if (job->request->upper_fd >= 0)
        return pf_beneath_open(job->request->root_fd, entry->path,
                               O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
    fd = openat(entry->dir_fd, entry->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/*
 * Whether a directory may have been moved here since: that changes its own time, and that of the
 * directory it comes into. Only the former changes with what is made or deleted in it, and neither
 * with what is written to files.
 */
static bool may_have_moved(int parent_fd, const char *name, int64_t limit)
{
    struct stat parent, dir;

    return fstat(parent_fd, &parent) < 0 ||
           fstatat(parent_fd, name, &dir, AT_SYMLINK_NOFOLLOW) < 0 ||
           (pf_changed_since(&parent, limit) && pf_changed_since(&dir, limit));
}

static void note_moves(struct pf_changes_job *job, const struct pf_walk_entry *entry)
{
    if (job->now_moved == PF_CHANGES_NOT_MOVED &&
        may_have_moved(entry->dir_fd, entry->name, job->now_limit))
        job->now_moved = entry->depth;
    if (job->old_moved == PF_CHANGES_NOT_MOVED && pf_changes_old_here(job, entry->depth) &&
        may_have_moved(pf_dirs_top(&job->old)->fd, entry->name, job->old_limit))
        job->old_moved = entry->depth;
}

/* Go on in the seed's directory of the same name, if it has one that was seeded. */
static int visit_dir(struct pf_changes_job *job, const struct pf_walk_entry *entry,
                     struct pinfold_error *err)
{
    _cleanup_close_ int now_fd = -1;
    struct pf_walk_entry old;
    struct stat st;
    int r;

    if (!leads_on(job, entry->path, entry->path_len)) {
        pf_walk_skip(job->walk);
        return 0;
    }
    note_moves(job, entry);
    if (!pf_changes_old_here(job, entry->depth))
        return 0;
    r = find_old(job, entry, &old, &st);
    if (r == 0 || (r > 0 && old.type != PF_WALK_DIR))
        return 0;
    if (r > 0) {
        now_fd = open_now(job, entry);
        r = now_fd < 0 ? now_fd : pf_dirs_push(&job->old, entry->name);
    }
    if (r < 0) {
        pf_walk_skip(job->walk); /* or all in it would look as if it had been added */
        return r == -ENOENT ? 0 : pf_changes_unknown(job, entry->path, -r, err);
    }
    return look_for_all(job, entry->path, entry->depth + 1, now_fd, err);
}

static int leave_dir(struct pf_changes_job *job, const struct pf_walk_entry *entry,
                     struct pinfold_error *err)
{
    if (job->now_moved == entry->depth)
        job->now_moved = PF_CHANGES_NOT_MOVED;
    if (job->old_moved == entry->depth)
        job->old_moved = PF_CHANGES_NOT_MOVED;
    while (job->seed_fd >= 0 && job->old.count - 1 > entry->depth)
        if (pf_dirs_pop(&job->old) < 0)
            return pf_fail(err, PINFOLD_EPREPARE,
                           "compare with the seed: its directories were moved meanwhile");
    return 0;
}

/* A directory of the workspace that cannot be read, or no further. */
static int visit_error(struct pf_changes_job *job, const struct pf_walk_entry *entry,
                       struct pinfold_error *err)
{
    const char *path = entry->path_len ? entry->path : ".";
    struct stat st;
    int r = note_error(job, entry->error.msg, err);

    if (r < 0 || job->seed_fd < 0 ||
        (fstatat(job->seed_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
         (errno == ENOENT || errno == ENOTDIR)))
        return r;
    return pf_changes_note(&job->ret->unknown, "%s", path) < 0 ? pf_fail_nomem(err) : 0;
}

static int visit(struct pf_changes_job *job, const struct pf_walk_entry *entry,
                 struct pinfold_error *err)
{
    switch (entry->type) {
    case PF_WALK_FILE:
    case PF_WALK_LINK:
        return visit_file(job, entry, err);
    case PF_WALK_DIR:
        return visit_dir(job, entry, err);
    case PF_WALK_DIR_DONE:
        return leave_dir(job, entry, err);
    case PF_WALK_ERROR:
        return visit_error(job, entry, err);
    case PF_WALK_SPECIAL:
        break;
    }
    return 0;
}

static int walk(struct pf_changes_job *job, struct pinfold_error *err)
{
    const struct pf_changes_request *request = job->request;
    int walked = request->upper_fd >= 0 ? request->upper_fd : request->root_fd;
    struct pf_walk_entry entry;
    int r = pf_walk_new(walked, &job->walk, err);

    if (r == 0 && job->seed_fd >= 0) {
        r = pf_dirs_init(&job->old, job->seed_fd, O_PATH);
        if (r < 0)
            return pf_fail_os(err, -r, "open the seed");
        r = look_for_all(job, "", 0, request->root_fd, err);
    }
    while (r == 0 && (r = pf_walk_next(job->walk, &entry)) > 0) {
        r = pf_cancel_check(request->cancel, err);
        if (r == 0)
            r = visit(job, &entry, err);
    }
    return r == -PINFOLD_ENOMEM ? pf_fail_nomem(err) : r;
}

/* ---- the whole ---- */

int pf_changes_open_seed(const struct pf_seed_mark *mark, struct pinfold_error *err)
{
    _cleanup_close_ int fd = -1;
    struct stat st;

    if (!mark->source)
        return -1;
    fd = pf_root_open(mark->source, false, NULL, err);
    if (fd < 0) {
        if (fd != -PINFOLD_ENOMEM && err)
            err->code = PINFOLD_EPREPARE;
        return fd == -PINFOLD_ENOMEM
                       ? fd
                       : pf_wrap(err, -PINFOLD_EPREPARE, "compare with the seed, which is gone");
    }
    if (fstat(fd, &st) < 0 || st.st_dev != mark->dev || st.st_ino != mark->ino)
        return pf_fail(err, PINFOLD_EPREPARE,
                       "compare with the seed: \"%s\" is another directory than when it was seeded",
                       PF_QUOTE(mark->source));
    return TAKE_FD(fd);
}

static int compare_changes(const void *a, const void *b)
{
    const struct pinfold_change *left = a, *right = b;

    return strcmp(left->path, right->path);
}

static int find(struct pf_changes_job *job, struct pinfold_error *err)
{
    struct pinfold_changes *ret = job->ret;
    int r;

    job->buffer = malloc(PF_DATA_BUFFER);
    r = job->buffer ? walk(job, err) : pf_fail_nomem(err);
    pf_walk_free(job->walk);
    pf_dirs_done(&job->old);
    free(job->buffer);
    if (r < 0)
        return r;
    if (ret->count > 1)
        qsort(ret->items, ret->count, sizeof(*ret->items), compare_changes);
    pf_strings_sort(&ret->seed_changes);
    pf_strings_sort(&ret->errors);
    pf_strings_sort(&ret->unknown);
    return 0;
}

int pf_changes_find(const struct pf_changes_request *request, struct pinfold_changes *ret,
                    struct pinfold_error *err)
{
    const struct pf_seed_mark *mark = request->mark;
    _cleanup_close_ int seed_fd = pf_changes_open_seed(mark, err);
    struct pf_changes_job job = {
        .request = request,
        .ret = ret,
        .seed_fd = seed_fd,
        .now_side = { .src_fd = request->root_fd, .exclude = request->exclude },
        .old_side = { .src_fd = seed_fd, .exclude = request->seed_exclude },
        .old_limit = pf_seed_mark_limit(mark, mark->began_ns),
        .now_limit = pf_seed_mark_limit(mark, mark->ended_ns),
        .old = { .path = PF_BUF_INIT(PF_BUF_UNLIMITED) },
        .now_moved = PF_CHANGES_NOT_MOVED,
        .old_moved = PF_CHANGES_NOT_MOVED,
    };

    if (seed_fd < 0 && mark->source)
        return seed_fd;
    ret->seeded = seed_fd >= 0;
    return find(&job, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/hide.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "tree/copy_job.h"
#include "tree/dirs.h"
#include "tree/file.h"
#include "tree/walk.h"

#define OTHER_BITS (S_ISUID | S_ISGID | S_ISVTX) /* which a copy does not have */

/* The walk of the seed, and where it stands in the layer. */
struct hiding {
    struct pf_copy_job *job;
    const struct pf_copy_options *options;
    struct pf_walk *walk;
    struct pf_dirs layer; /* a prefix of the walk's directories */
    struct pf_buf modes;  /* a mode_t for each of the walk's directories but the root */
    dev_t dev;            /* the seed's */
    uid_t uid;            /* ours */
    gid_t gid;
    char *why; /* the seed cannot be shown; "" as long as it can */
    size_t size;
};

/* The seed cannot be shown as it is. The walk ends. */
static int unfit(struct hiding *hiding, const char *path, const char *reason)
{
    snprintf(hiding->why, hiding->size, "\"%s\" %s", PF_QUOTE(path), reason);
    return 1;
}

static int unfit_os(struct hiding *hiding, const char *path, int sys_errno)
{
    char reason[128];

    snprintf(reason, sizeof(reason), "cannot be hidden: %s", strerrordesc_np(sys_errno));
    return unfit(hiding, path, reason);
}

static mode_t dir_mode(const struct hiding *hiding, size_t depth)
{
    mode_t mode;

    memcpy(&mode, hiding->modes.data + depth * sizeof(mode), sizeof(mode));
    return mode;
}

/* Make a directory as a copy would: the mode of the seed's, but open to us. */
static int make_dir(const struct hiding *hiding, const char *name, mode_t mode)
{
    return mkdirat(pf_dirs_top(&hiding->layer)->fd, name, (mode & PF_COPY_ANY_ACCESS) | S_IRWXU) <
                                   0 &&
                           errno != EEXIST
                   ? -errno
                   : 0;
}

/* Bring the layer to the directory that holds the entry, made with all that lead to it. */
static int follow_to(struct hiding *hiding, const struct pf_walk_entry *entry)
{
    struct pf_dirs *layer = &hiding->layer;
    char name[NAME_MAX + 1];
    int r = 0;

    while (r == 0 && layer->count - 1 < entry->depth) {
        const char *start = entry->path + layer->path.len + (layer->count > 1);
        size_t len = strcspn(start, "/");
        memcpy(name, start, len);
        name[len] = '\0';
        r = make_dir(hiding, name, dir_mode(hiding, layer->count - 1));
        if (r == 0)
            r = pf_dirs_push(layer, name);
    }
    return r == 0 && pf_dirs_top(layer)->fd < 0 ? -ESTALE : r;
}

static int hide(struct hiding *hiding, const struct pf_walk_entry *entry)
{
    int r = follow_to(hiding, entry);

    /* Anybody may make this one device, since Linux 5.8. */
    if (r == 0 &&
        mknodat(pf_dirs_top(&hiding->layer)->fd, entry->name, S_IFCHR, PF_WHITEOUT_DEVICE) < 0)
        r = -errno;
    if (r < 0)
        return unfit_os(hiding, entry->path, -r);
    pf_copy_skipped(hiding->job, "", entry->path, entry->type == PF_WALK_DIR);
    return 0;
}

/* What a user namespace of one user cannot change, or what the overlay would not show. */
static int check_entry(struct hiding *hiding, const struct pf_walk_entry *entry,
                       const struct stat *st)
{
    if (st->st_uid != hiding->uid || st->st_gid != hiding->gid)
        return unfit(hiding, entry->path, "in the seed belongs to another user or group");
    if (st->st_dev != hiding->dev)
        return unfit(hiding, entry->path, "in the seed is on another file system");
    return 0;
}

static int visit_file(struct hiding *hiding, const struct pf_walk_entry *entry,
                      const struct stat *st)
{
    if (st->st_mode & OTHER_BITS)
        return unfit(hiding, entry->path, "in the seed has a set-id or sticky bit");
    /* Nobody could have copied it, so nobody shall see it in the other way. */
    if (!(st->st_mode & S_IRUSR) && hiding->uid != 0) {
        pf_copy_fail(hiding->job, "", entry->path, "open", EACCES);
        return 0;
    }
    atomic_fetch_add_explicit(&hiding->job->files, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&hiding->job->bytes, (uint64_t)st->st_size, memory_order_relaxed);
    return 0;
}

static int visit_link(struct hiding *hiding, const struct pf_walk_entry *entry)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(entry->dir_fd, entry->name, target, sizeof(target) - 1);
    int r;

    if (len < 0) {
        pf_copy_fail(hiding->job, "", entry->path, "read the symbolic link", errno);
        return 0;
    }
    target[len] = '\0';
    r = pf_copy_link_inside(hiding->options, entry, target);
    if (r < 0)
        pf_copy_fail(hiding->job, "", entry->path, "follow the symbolic link", -r);
    return r > 0 ? 0 : hide(hiding, entry);
}

static int visit_dir(struct hiding *hiding, const struct pf_walk_entry *entry,
                     const struct stat *st)
{
    int r;

    hiding->modes.len = entry->depth * sizeof(st->st_mode);
    if (pf_buf_append(&hiding->modes, &st->st_mode, sizeof(st->st_mode)) < 0)
        return -PINFOLD_ENOMEM;
    if ((st->st_mode & S_IRWXU) == S_IRWXU && !(st->st_mode & OTHER_BITS))
        return 0;
    r = follow_to(hiding, entry);
    if (r == 0)
        r = make_dir(hiding, entry->name, st->st_mode);
    return r < 0 ? unfit_os(hiding, entry->path, -r) : 0;
}

static void leave_dir(struct hiding *hiding, const struct pf_walk_entry *entry)
{
    while (hiding->layer.count - 1 > entry->depth)
        pf_dirs_pop(&hiding->layer);
}

/* Returns 0, 1 when the seed cannot be shown, or -PINFOLD_ENOMEM. */
static int visit(struct hiding *hiding, const struct pf_walk_entry *entry)
{
    struct stat st;
    int r;

    if (entry->type == PF_WALK_DIR_DONE) {
        leave_dir(hiding, entry);
        return 0;
    }
    if (entry->type == PF_WALK_ERROR) {
        pf_copy_refuse(hiding->job, "", entry->path, entry->error.msg);
        return 0;
    }
    if (entry->type == PF_WALK_SPECIAL || pf_copy_excluded(hiding->options, entry)) {
        if (entry->type == PF_WALK_DIR)
            pf_walk_skip(hiding->walk);
        return hide(hiding, entry);
    }
    if (fstatat(entry->dir_fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0; /* deleted since the directory was read: as if a moment later */
    r = check_entry(hiding, entry, &st);
    if (r != 0)
        return r;
    return entry->type == PF_WALK_LINK  ? visit_link(hiding, entry)
           : entry->type == PF_WALK_DIR ? visit_dir(hiding, entry, &st)
                                        : visit_file(hiding, entry, &st);
}

static int run(struct hiding *hiding, struct pinfold_error *err)
{
    struct pf_copy_worker caller = { hiding->job, hiding->job->buffer, true };
    struct pf_walk_entry entry;
    struct stat st;
    int r = fstat(hiding->options->src_fd, &st) < 0 ? -errno : 0;

    if (r < 0)
        return pf_copy_fail_root(hiding->options, pf_fail_os(err, -r, "look at the seed"), err);
    hiding->dev = st.st_dev;
    if (st.st_uid != hiding->uid || st.st_gid != hiding->gid)
        return unfit(hiding, hiding->options->src_name, "belongs to another user or group");
    r = pf_walk_new(hiding->options->src_fd, &hiding->walk, err);
    if (r == 0)
        r = pf_dirs_init(&hiding->layer, hiding->options->dst_fd, O_PATH);
    if (r < 0)
        return pf_copy_fail_root(hiding->options, r, err);
    r = 0;
    while (r == 0 && !pf_copy_tick(&caller) && (r = pf_walk_next(hiding->walk, &entry)) > 0)
        r = visit(hiding, &entry);
    return r < 0 ? pf_fail_nomem(err) : r;
}

int pf_hide_tree(const struct pf_copy_options *options, struct pf_copy_result *ret, char *why,
                 size_t size, struct pinfold_error *err)
{
    struct pf_copy_job job;
    struct hiding hiding = {
        .job = &job,
        .options = options,
        .layer = { .path = PF_BUF_INIT(PF_BUF_UNLIMITED) },
        .modes = PF_BUF_INIT(PF_BUF_UNLIMITED),
        .uid = geteuid(),
        .gid = getegid(),
        .why = why,
        .size = size,
    };
    int r;

    if (pf_copy_job_init(&job, options) < 0)
        return pf_fail_nomem(err);
    r = run(&hiding, err);
    pf_walk_free(hiding.walk);
    pf_dirs_done(&hiding.layer);
    pf_buf_done(&hiding.modes);
    if (r == 0)
        r = pf_copy_conclude(&job, ret, err);
    pf_copy_job_done(&job);
    return r;
}

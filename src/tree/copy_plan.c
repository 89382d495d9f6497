/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/copy_job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tree/data.h"
#include "tree/walk.h"

enum { READ_FLAGS = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC };

int pf_copy_plan_add(struct pinfold_plan *plan, const char *path, bool is_dir,
                     enum pinfold_plan_action action, int64_t size, const char *reason)
{
    size_t capacity = plan->capacity ? plan->capacity * 2 : 64;
    struct pinfold_plan_entry *items;
    char *text;

    if (plan->count == plan->capacity) {
        items = reallocarray(plan->items, capacity, sizeof(*items));
        if (!items)
            return -PINFOLD_ENOMEM;
        plan->items = items;
        plan->capacity = capacity;
    }
    if (asprintf(&text, "%s%s", path, is_dir ? "/" : "") < 0)
        return -PINFOLD_ENOMEM;
    plan->items[plan->count++] = (struct pinfold_plan_entry){
        .path = text,
        .action = action,
        .size = size,
        .reason = reason,
    };
    return 0;
}

static int compare_entries(const void *a, const void *b)
{
    const struct pinfold_plan_entry *left = a, *right = b;

    return strcmp(left->path, right->path);
}

void pf_copy_plan_sort(struct pinfold_plan *plan)
{
    if (plan->count > 1)
        qsort(plan->items, plan->count, sizeof(*plan->items), compare_entries);
}

/* What a file would meet in the destination. */
struct meeting {
    enum pinfold_plan_action action;
    const char *reason;
};

static struct meeting meet(enum pinfold_plan_action action, const char *reason)
{
    return (struct meeting){ action, reason };
}

static struct meeting meet_error(int sys_errno)
{
    const char *text = strerrordesc_np(sys_errno); /* static */

    return meet(PINFOLD_PLAN_ERROR, text ? text : "unknown error");
}

static struct meeting compare_files(struct pf_copy_job *job, const struct pf_walk_entry *entry,
                                    int dst_fd)
{
    _cleanup_close_ int src_file = openat(entry->dir_fd, entry->name, READ_FLAGS);
    _cleanup_close_ int dst_file = openat(dst_fd, entry->name, READ_FLAGS);
    struct pf_copy_worker caller = { job, job->buffer, true };
    int r;

    if (src_file < 0)
        return meet_error(errno);
    if (dst_file < 0)
        return meet(PINFOLD_PLAN_OVERWRITE, "");
    r = pf_data_same(src_file, dst_file, job->buffer, pf_copy_tick_read, &caller);
    if (r < 0)
        return meet_error(-r);
    return r ? meet(PINFOLD_PLAN_IDENTICAL, "the same bytes are there already")
             : meet(PINFOLD_PLAN_OVERWRITE, "");
}

static struct meeting look_at_destination(struct pf_copy_job *job,
                                          const struct pf_walk_entry *entry, const struct stat *src,
                                          int dst_fd)
{
    bool flush = job->options->skip_identical;
    struct stat dst;

    if (dst_fd < 0 ||
        (fstatat(dst_fd, entry->name, &dst, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT))
        return meet(PINFOLD_PLAN_COPY, "");
    if (S_ISDIR(dst.st_mode))
        return meet(PINFOLD_PLAN_ERROR, "a directory of that name is in the way");
    if (dst.st_dev == src->st_dev && dst.st_ino == src->st_ino)
        return meet(PINFOLD_PLAN_IDENTICAL, "it is the same file");
    if (flush && !S_ISREG(dst.st_mode))
        return meet(PINFOLD_PLAN_ERROR, "the destination is a link or no regular file");
    return flush && dst.st_size == src->st_size ? compare_files(job, entry, dst_fd)
                                                : meet(PINFOLD_PLAN_OVERWRITE, "");
}

int pf_copy_plan_file(struct pf_copy_job *job, const struct pf_walk_entry *entry, int dst_fd)
{
    struct pinfold_plan *plan = job->options->plan;
    struct meeting meeting;
    struct stat src;
    bool writes;

    if (fstatat(entry->dir_fd, entry->name, &src, AT_SYMLINK_NOFOLLOW) < 0) {
        if (errno == ENOENT)
            return 0;
        meeting = meet_error(errno);
    } else {
        meeting = faccessat(entry->dir_fd, entry->name, R_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) < 0
                          ? meet_error(errno)
                          : look_at_destination(job, entry, &src, dst_fd);
    }
    writes = meeting.action == PINFOLD_PLAN_COPY || meeting.action == PINFOLD_PLAN_OVERWRITE;
    if (writes) {
        plan->files++;
        plan->bytes += (uint64_t)src.st_size;
    }
    return pf_copy_plan_add(plan, entry->path, false, meeting.action, writes ? src.st_size : 0,
                            meeting.reason);
}

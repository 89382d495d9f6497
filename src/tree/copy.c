/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strings.h"
#include "tree/beneath.h"
#include "tree/copy_job.h"
#include "tree/dirs.h"
#include "tree/file.h"
#include "tree/temp.h"
#include "tree/walk.h"

#define NO_DEPTH UINT_MAX

/* The walk of the source, and where it stands in the destination. */
struct tour {
    struct pf_copy_job *job;
    const struct pf_copy_options *options;
    struct pf_walk *walk;
    struct pf_dirs dst; /* a prefix of the walk's directories */
    bool has_dst;       /* false: a plan without a destination */
    unsigned
            included; /* the depth of a directory that an include pattern matched, with all in it */
    unsigned dead;    /* the depth of a directory that cannot be written to */
    unsigned missing; /* plan: the depth of a directory that the destination does not have */
    struct pf_copy_dir *dir; /* of the entries that are being gathered */
    struct pf_copy_batch *batch;
};

static int no_memory(struct tour *tour)
{
    pf_copy_no_memory(tour->job);
    return -PINFOLD_ENOMEM;
}

/* Directory and name of an entry, for the pool's messages, are one path. */
static int fail_entry(struct tour *tour, const struct pf_walk_entry *entry, const char *step,
                      int sys_errno)
{
    const char *reason = strerrordesc_np(sys_errno);

    if (tour->options->plan)
        return pf_copy_plan_add(tour->options->plan, entry->path, false, PINFOLD_PLAN_ERROR, 0,
                                reason ? reason : "unknown error");
    pf_copy_fail(tour->job, "", entry->path, step, sys_errno);
    return 0;
}

/* A directory on the way is refused: say so once. What is below it is passed over. */
static int refuse_dir(struct tour *tour, unsigned depth, const char *path, int sys_errno)
{
    const char *why = sys_errno == ENOTDIR || sys_errno == ELOOP
                              ? "the destination has a file or a symbolic link in its place"
                              : NULL;
    const char *reason = why ? why : strerrordesc_np(sys_errno);

    tour->dead = depth;
    if (tour->options->plan)
        return pf_copy_plan_add(tour->options->plan, path, true, PINFOLD_PLAN_ERROR, 0,
                                reason ? reason : "unknown error");
    if (why)
        pf_copy_refuse(tour->job, "", path, why);
    else
        pf_copy_fail(tour->job, "", path, "create the directory", sys_errno);
    return 0;
}

/* Refuse the directory that the first len bytes of an entry's path name. */
static int refuse_parent(struct tour *tour, unsigned depth, const struct pf_walk_entry *entry,
                         size_t len, int sys_errno)
{
    _cleanup_free_ char *path = strndup(entry->path, len);

    return path ? refuse_dir(tour, depth, path, sys_errno) : no_memory(tour);
}

/* Enter the next directory of the destination, which is made when it is missing. */
static int enter_dst(struct tour *tour, const char *name)
{
    int r = pf_dirs_push(&tour->dst, name);

    if (r != -ENOENT || tour->options->plan)
        return r;
    if (mkdirat(pf_dirs_top(&tour->dst)->fd, name, 0777) < 0 && errno != EEXIST)
        return -errno;
    return pf_dirs_push(&tour->dst, name);
}

/*
 * Bring the destination to the directory that holds the entry. Component by component, each opened
 * without following a link; most of them are open already. Returns 1 (there), 0 (there is no such
 * directory, or it was refused), or -PINFOLD_ENOMEM.
 */
static int follow_to(struct tour *tour, const struct pf_walk_entry *entry)
{
    char name[NAME_MAX + 1];
    const char *start, *slash;
    unsigned depth;
    int r;

    if (!tour->has_dst || tour->dead != NO_DEPTH || tour->missing != NO_DEPTH)
        return 0;
    for (;;) {
        depth = (unsigned)tour->dst.count - 1;
        if (depth == entry->depth && pf_dirs_top(&tour->dst)->fd >= 0)
            return 1;
        if (depth == entry->depth) /* it could not be opened again; the root always is open */
            return refuse_parent(tour, depth - 1, entry, tour->dst.path.len, ESTALE);
        start = entry->path + tour->dst.path.len + (depth > 0);
        slash = strchr(start, '/');
        memcpy(name, start, (size_t)(slash - start));
        name[slash - start] = '\0';
        r = enter_dst(tour, name);
        if (r == -ENOMEM)
            return no_memory(tour);
        if (r == -ENOENT && tour->options->plan) {
            tour->missing = depth;
            return 0;
        }
        if (r < 0)
            return refuse_parent(tour, depth, entry, (size_t)(slash - entry->path), -r);
    }
}

/* The entries to come belong to another directory. */
static void close_dir(struct tour *tour)
{
    if (tour->batch)
        pf_copy_submit(tour->job, TAKE(tour->batch));
    pf_copy_dir_unref(TAKE(tour->dir));
}

/* A copy into itself through a mount would never end. */
static bool is_destination(const struct tour *tour, int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_dev == tour->job->dst_dev &&
           st.st_ino == tour->job->dst_ino;
}

static int open_dir(struct tour *tour, const struct pf_walk_entry *entry)
{
    size_t dir_len = (size_t)(entry->name - entry->path);
    int r = follow_to(tour, entry);

    if (r <= 0)
        return r;
    if (is_destination(tour, entry->dir_fd)) {
        tour->dead = entry->depth - 1;
        pf_copy_refuse(tour->job, "", entry->path, "it lies in the destination itself");
        return 0;
    }
    tour->dir = pf_copy_dir_new(tour->job, entry->dir_fd, pf_dirs_top(&tour->dst)->fd, entry->path,
                                dir_len ? dir_len - 1 : 0);
    return tour->dir != NULL;
}

static int take_file(struct tour *tour, const struct pf_walk_entry *entry)
{
    int r;

    if (tour->options->plan) {
        r = follow_to(tour, entry);
        if (r < 0 || tour->dead != NO_DEPTH)
            return r;
        return pf_copy_plan_file(tour->job, entry, r ? pf_dirs_top(&tour->dst)->fd : -1);
    }
    if (!tour->dir) {
        r = open_dir(tour, entry);
        if (r <= 0)
            return r;
    }
    while (!tour->batch || !pf_copy_batch_add(tour->batch, entry->name)) {
        if (tour->batch)
            pf_copy_submit(tour->job, TAKE(tour->batch));
        tour->batch = pf_copy_batch_new(tour->job, tour->dir);
        if (!tour->batch)
            return -PINFOLD_ENOMEM;
    }
    return 0;
}

/* Leave an entry out, and say why where somebody wants to know. */
static int skip(struct tour *tour, const struct pf_walk_entry *entry, const char *reason)
{
    bool is_dir = entry->type == PF_WALK_DIR;

    if (tour->options->plan)
        return pf_copy_plan_add(tour->options->plan, entry->path, is_dir, PINFOLD_PLAN_SKIP, 0,
                                reason);
    pf_copy_skipped(tour->job, "", entry->path, is_dir);
    return 0;
}

static int skip_unmatched(struct tour *tour, const struct pf_walk_entry *entry)
{
    return tour->options->plan ? skip(tour, entry, PF_COPY_UNMATCHED) : 0;
}

/* Give the destination the link, in the place of a file or another link. */
static int place_link(struct tour *tour, const struct pf_walk_entry *entry, const char *target)
{
    _cleanup_temp_ struct pf_temp temp = PF_TEMP_INIT;
    int dir_fd = pf_dirs_top(&tour->dst)->fd, r;

    if (symlinkat(target, dir_fd, entry->name) == 0)
        return 0;
    r = -errno;
    if (r == -EEXIST)
        r = pf_temp_link(&temp, dir_fd, target);
    if (r == 0)
        r = pf_temp_place(&temp, entry->name, false);
    return r < 0 ? fail_entry(tour, entry, "create the symbolic link", -r) : 0;
}

/* Whether the destination has the very same link: what was seeded and is still there. */
static bool has_same_link(const struct tour *tour, const struct pf_walk_entry *entry,
                          const char *target)
{
    char there[PATH_MAX];
    const char *name;
    ssize_t len;
    _cleanup_close_ int dir_fd =
            tour->has_dst ? pf_beneath_open_parent(tour->options->dst_fd, entry->path, false, &name)
                          : -1;

    if (dir_fd < 0)
        return false;
    len = readlinkat(dir_fd, name, there, sizeof(there) - 1);
    if (len < 0)
        return false;
    there[len] = '\0';
    return strcmp(there, target) == 0;
}

/* Flush: a link that an agent made is not written to the host; one that is there already is fine.
 */
static int leave_link(struct tour *tour, const struct pf_walk_entry *entry, const char *target)
{
    static const char reason[] = "it is a symbolic link, which is not followed";
    bool same = has_same_link(tour, entry, target);

    if (tour->options->plan)
        return pf_copy_plan_add(tour->options->plan, entry->path, false,
                                same ? PINFOLD_PLAN_IDENTICAL : PINFOLD_PLAN_ERROR, 0,
                                same ? "" : reason);
    if (!same)
        pf_copy_refuse(tour->job, "", entry->path, reason);
    return 0;
}

static int take_link(struct tour *tour, const struct pf_walk_entry *entry)
{
    char target[PATH_MAX];
    ssize_t len;
    int r;

    len = readlinkat(entry->dir_fd, entry->name, target, sizeof(target) - 1);
    if (len < 0)
        return fail_entry(tour, entry, "read the symbolic link", errno);
    target[len] = '\0';
    if (!tour->options->links)
        return leave_link(tour, entry, target);
    r = tour->options->links_out ? 1 : pf_copy_link_inside(tour->options, entry, target);
    if (r == 0)
        return skip(tour, entry, "a symbolic link that leaves the source");
    if (r < 0)
        return fail_entry(tour, entry, "follow the symbolic link", -r);
    if (tour->options->plan)
        return pf_copy_plan_add(tour->options->plan, entry->path, false, PINFOLD_PLAN_COPY, 0, "");
    r = follow_to(tour, entry);
    return r <= 0 ? r : place_link(tour, entry, target);
}

static bool included(const struct tour *tour, const struct pf_walk_entry *entry)
{
    return !tour->options->include || tour->included != NO_DEPTH ||
           pf_globs_match(tour->options->include, entry->path, entry->path_len,
                          entry->type == PF_WALK_DIR);
}

/* Seed: a directory exists even when nothing goes into it. With the permission bits of the source,
 * but open to us. */
static int make_dir(struct tour *tour, const struct pf_walk_entry *entry)
{
    struct stat st;
    int r = follow_to(tour, entry);

    if (r <= 0)
        return r;
    if (fstatat(entry->dir_fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        st.st_mode = 0777; /* the walk says what is wrong with it */
    if (mkdirat(pf_dirs_top(&tour->dst)->fd, entry->name,
                (st.st_mode & PF_COPY_ANY_ACCESS) | S_IRWXU) == 0 ||
        errno == EEXIST)
        return 0;
    pf_walk_skip(tour->walk);
    return refuse_dir(tour, entry->depth, entry->path, errno);
}

static int visit_dir(struct tour *tour, const struct pf_walk_entry *entry)
{
    close_dir(tour);
    if (tour->dead != NO_DEPTH) {
        pf_walk_skip(tour->walk);
        return 0;
    }
    if (pf_copy_excluded(tour->options, entry)) {
        pf_walk_skip(tour->walk);
        return skip(tour, entry, PF_COPY_EXCLUDED);
    }
    if (tour->options->include && tour->included == NO_DEPTH) {
        if (included(tour, entry))
            tour->included = entry->depth;
        else if (!pf_globs_could_match_below(tour->options->include, entry->path,
                                             entry->path_len)) {
            pf_walk_skip(tour->walk);
            return skip_unmatched(tour, entry);
        }
    }
    return tour->options->empty_dirs && !tour->options->plan ? make_dir(tour, entry) : 0;
}

static int leave_dir(struct tour *tour, const struct pf_walk_entry *entry)
{
    close_dir(tour);
    if (tour->included == entry->depth)
        tour->included = NO_DEPTH;
    if (tour->dead == entry->depth)
        tour->dead = NO_DEPTH;
    if (tour->missing == entry->depth)
        tour->missing = NO_DEPTH;
    /* A level that cannot be opened again is noticed, and reported, when something goes there. */
    while (tour->has_dst && tour->dst.count - 1 > entry->depth)
        pf_dirs_pop(&tour->dst);
    return 0;
}

static int visit_error(struct tour *tour, const struct pf_walk_entry *entry)
{
    const char *reason = strerrordesc_np(entry->error.sys_errno);

    if (tour->options->plan)
        return pf_copy_plan_add(tour->options->plan, entry->path, true, PINFOLD_PLAN_ERROR, 0,
                                entry->error.sys_errno && reason ? reason : "it cannot be read");
    pf_copy_refuse(tour->job, "", entry->path, entry->error.msg);
    return 0;
}

/* Whether an entry says that something was deleted: a flush deletes nothing. */
static bool is_whiteout(const struct tour *tour, const struct pf_walk_entry *entry)
{
    struct stat st;

    return tour->options->upper &&
           fstatat(entry->dir_fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISCHR(st.st_mode) && st.st_rdev == PF_WHITEOUT_DEVICE;
}

static int visit(struct tour *tour, const struct pf_walk_entry *entry)
{
    if (entry->type == PF_WALK_DIR)
        return visit_dir(tour, entry);
    if (entry->type == PF_WALK_DIR_DONE)
        return leave_dir(tour, entry);
    if (tour->dead != NO_DEPTH || (entry->type == PF_WALK_SPECIAL && is_whiteout(tour, entry)))
        return 0;
    if (entry->type == PF_WALK_ERROR)
        return visit_error(tour, entry);
    if (pf_copy_excluded(tour->options, entry))
        return skip(tour, entry, PF_COPY_EXCLUDED);
    if (!included(tour, entry))
        return skip_unmatched(tour, entry);
    if (entry->type == PF_WALK_LINK)
        return take_link(tour, entry);
    if (entry->type == PF_WALK_SPECIAL)
        return skip(tour, entry, PF_COPY_NO_FILE);
    return take_file(tour, entry);
}

static void tour_done(struct tour *tour)
{
    close_dir(tour);
    pf_walk_free(tour->walk);
    if (tour->has_dst)
        pf_dirs_done(&tour->dst);
}

int pf_copy_fail_root(const struct pf_copy_options *options, int result, struct pinfold_error *err)
{
    if (result == -PINFOLD_ENOMEM)
        return pf_fail_nomem(err);
    if (err)
        err->code = PINFOLD_EPREPARE;
    return pf_wrap(err, -PINFOLD_EPREPARE, "copy \"%s\" to \"%s\"", PF_QUOTE(options->src_name),
                   PF_QUOTE(options->dst_name ? options->dst_name : "nowhere"));
}

/* Walk the source, with the threads at work behind. */
static int run(struct tour *tour, struct pinfold_error *err)
{
    const struct pf_copy_options *options = tour->options;
    struct pf_copy_worker caller = { tour->job, tour->job->buffer, true };
    struct pf_walk_entry entry;
    int r;

    r = pf_walk_new(options->src_fd, &tour->walk, err);
    if (r == 0 && options->dst_fd >= 0) {
        r = pf_dirs_init(&tour->dst, options->dst_fd, O_PATH);
        tour->has_dst = true; /* what there is of it */
        if (r < 0)
            r = pf_fail_os(err, -r, "open the destination");
    }
    if (r < 0)
        return pf_copy_fail_root(options, r, err);
    while (!pf_copy_tick(&caller) && (r = pf_walk_next(tour->walk, &entry)) > 0)
        if (visit(tour, &entry) < 0)
            pf_copy_no_memory(tour->job);
    if (r < 0)
        pf_copy_no_memory(tour->job);
    return 0;
}

/* The lists, sorted, with what was left out of them. */
static int give_lists(struct pf_copy_job *job, struct pf_copy_result *ret)
{
    int r = 0;

    pf_strings_sort(&job->errors);
    pf_strings_sort(&job->skipped);
    if (job->errors_dropped > 0)
        r = pf_strings_addf(&job->errors, "and %llu more errors",
                            (unsigned long long)job->errors_dropped);
    if (r == 0 && atomic_load(&job->disk_full))
        r = pf_strings_addf(&job->errors, "stopped: no space is left in \"%s\"",
                            job->options->dst_name);
    if (r < 0)
        return r;
    ret->files = atomic_load(&job->files);
    ret->bytes = atomic_load(&job->bytes);
    ret->skipped = job->skipped;
    ret->errors = job->errors;
    job->skipped = job->errors = (struct pinfold_strings){ .items = NULL };
    return 0;
}

int pf_copy_conclude(struct pf_copy_job *job, struct pf_copy_result *ret, struct pinfold_error *err)
{
    const struct pf_copy_options *options = job->options;
    int r;

    if (atomic_load(&job->no_memory))
        return pf_fail_nomem(err);
    r = pf_cancel_check(options->cancel, err);
    if (r < 0)
        return r;
    if (options->plan)
        pf_copy_plan_sort(options->plan);
    return give_lists(job, ret) < 0 ? pf_fail_nomem(err) : 0;
}

/* Returns 1 when there is something to copy. */
static int check_roots(const struct pf_copy_options *options, struct pinfold_error *err)
{
    enum pf_root_relation relation = PF_ROOTS_APART;
    int r;

    if (options->dst_fd < 0)
        return 1;
    r = pf_roots_relation(options->src_fd, options->dst_fd, &relation, err);
    if (r == 0 && relation == PF_ROOTS_APART && options->src_place)
        r = pf_roots_relation(*options->src_place, options->dst_fd, &relation, err);
    if (r < 0)
        return pf_copy_fail_root(options, r, err);
    if (relation == PF_ROOTS_NESTED && !options->src_inside)
        return pf_fail(err, PINFOLD_EPREPARE,
                       "copy \"%s\" to \"%s\": one lies inside the other, nothing was copied",
                       PF_QUOTE(options->src_name), PF_QUOTE(options->dst_name));
    return relation != PF_ROOTS_SAME;
}

int pf_copy_tree(const struct pf_copy_options *options, struct pf_copy_result *ret,
                 struct pinfold_error *err)
{
    struct pf_copy_job job;
    struct tour tour = {
        .job = &job,
        .options = options,
        .included = NO_DEPTH,
        .dead = NO_DEPTH,
        .missing = NO_DEPTH,
    };
    int r = check_roots(options, err);

    if (r <= 0) {
        if (r == 0)
            *ret = (struct pf_copy_result){ .files = 0 };
        return r;
    }
    if (pf_copy_job_init(&job, options) < 0)
        return pf_fail_nomem(err);
    r = run(&tour, err);
    tour_done(&tour);
    pf_copy_finish(&job);
    if (r == 0)
        r = pf_copy_conclude(&job, ret, err);
    pf_copy_job_done(&job);
    return r;
}

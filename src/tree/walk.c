/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "tree/dirs.h"

enum { BATCH = 256 * 1024 };

/*
 * A directory is read in batches. The files of a batch are returned at once, its subdirectories
 * noted and entered after them; then comes the next batch. So one buffer serves the whole walk,
 * and what a level keeps is the names of the subdirectories of one batch.
 */
struct level {
    struct pf_buf subdirs; /* NUL-terminated names */
    size_t subdir_at;
    off_t position; /* where to go on reading, for a directory that was closed meanwhile */
    bool at_end;
};

struct pf_walk {
    struct pf_dirs dirs;
    struct level *levels; /* parallel to dirs.levels */
    size_t level_capacity;
    char *batch;
    size_t batch_len, batch_at;
    struct pf_buf path; /* of the entry that was returned */
    enum {
        READING,  /* return the entries of the batch, then enter subdirectories */
        ENTERING, /* PF_WALK_DIR was returned: its contents are next */
        LEAVING,  /* PF_WALK_DIR_DONE of path is next */
    } state;
};

static struct level *top(struct pf_walk *walk)
{
    return &walk->levels[walk->dirs.count - 1];
}

void pf_walk_free(struct pf_walk *walk)
{
    if (!walk)
        return;
    for (size_t i = 0; i < walk->level_capacity; i++)
        pf_buf_done(&walk->levels[i].subdirs);
    free(walk->levels);
    free(walk->batch);
    pf_buf_done(&walk->path);
    pf_dirs_done(&walk->dirs);
    free(walk);
}

void pf_walk_freep(struct pf_walk **walk)
{
    pf_walk_free(*walk);
}

/* Make the level that was just pushed ready, or the next one to be. */
static int prepare_level(struct pf_walk *walk, size_t index)
{
    size_t capacity = walk->level_capacity ? walk->level_capacity * 2 : 32;
    struct level *levels;

    if (index >= walk->level_capacity) {
        levels = reallocarray(walk->levels, capacity, sizeof(*levels));
        if (!levels)
            return -ENOMEM;
        for (size_t i = walk->level_capacity; i < capacity; i++)
            levels[i] = (struct level){ .subdirs = PF_BUF_INIT(PF_BUF_UNLIMITED) };
        walk->levels = levels;
        walk->level_capacity = capacity;
    }
    walk->levels[index].subdirs.len = 0;
    walk->levels[index].subdir_at = 0;
    walk->levels[index].position = 0;
    walk->levels[index].at_end = false;
    return 0;
}

int pf_walk_new(int root_fd, struct pf_walk **ret, struct pinfold_error *err)
{
    PF_CLEANUP(pf_walk_freep) struct pf_walk *walk = calloc(1, sizeof(*walk));
    int r;

    if (!walk)
        return pf_fail_nomem(err);
    walk->path = (struct pf_buf)PF_BUF_INIT(PF_BUF_UNLIMITED);
    walk->batch = malloc(BATCH);
    if (!walk->batch || prepare_level(walk, 0) < 0)
        return pf_fail_nomem(err);
    r = pf_dirs_init(&walk->dirs, root_fd, O_RDONLY);
    if (r < 0)
        return pf_fail_os(err, -r, "read the root directory");
    *ret = TAKE(walk);
    return 0;
}

/* Set path to the innermost directory, plus name if there is one. */
static int set_path(struct pf_walk *walk, const char *name)
{
    const struct pf_buf *dir = &walk->dirs.path;
    int r;

    walk->path.len = 0;
    r = pf_buf_append(&walk->path, dir->data, dir->len);
    if (r == 0 && name && dir->len > 0)
        r = pf_buf_append(&walk->path, "/", 1);
    if (r == 0 && name)
        r = pf_buf_append_text(&walk->path, name);
    return r;
}

/* Fill *ret for path, which lies in the innermost open directory. Returns 1. */
static int give(struct pf_walk *walk, enum pf_walk_type type, struct pf_walk_entry *ret)
{
    const char *slash = memrchr(walk->path.data, '/', walk->path.len);

    *ret = (struct pf_walk_entry){
        .type = type,
        .path = walk->path.data,
        .path_len = walk->path.len,
        .name = slash ? slash + 1 : walk->path.data,
        .dir_fd = pf_dirs_top(&walk->dirs)->fd,
        .depth = (unsigned)walk->dirs.count - 1,
    };
    return 1;
}

/* An error entry at path; dir is the directory that cannot be read (further). */
static int give_error(struct pf_walk *walk, const char *dir, int sys_errno,
                      struct pf_walk_entry *ret)
{
    const char *shown = dir[0] ? dir : ".";

    if (sys_errno == ENOMEM)
        return -PINFOLD_ENOMEM;
    give(walk, PF_WALK_ERROR, ret);
    if (sys_errno == ESTALE)
        pf_fail(&ret->error, PINFOLD_EOS, "read directory \"%s\": it was moved meanwhile",
                PF_QUOTE(shown));
    else
        pf_fail_os(&ret->error, sys_errno, "read directory \"%s\"", PF_QUOTE(shown));
    return 1;
}

static enum pf_walk_type type_of(mode_t mode)
{
    return S_ISREG(mode)   ? PF_WALK_FILE
           : S_ISLNK(mode) ? PF_WALK_LINK
           : S_ISDIR(mode) ? PF_WALK_DIR
                           : PF_WALK_SPECIAL;
}

/* PF_WALK_ERROR: it has vanished. */
static enum pf_walk_type entry_type(int dir_fd, const struct dirent64 *entry)
{
    struct stat st;

    if (entry->d_type != DT_UNKNOWN)
        return type_of(DTTOIF(entry->d_type));
    if (fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return PF_WALK_ERROR;
    return type_of(st.st_mode);
}

static bool is_dot(const char *name)
{
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* The next file of the batch; subdirectories are noted on the way. Returns 1, or 0 when the batch
 * is used up. */
static int next_in_batch(struct pf_walk *walk, struct pf_walk_entry *ret)
{
    int dir_fd = pf_dirs_top(&walk->dirs)->fd;
    const struct dirent64 *entry;
    enum pf_walk_type type;

    while (walk->batch_at < walk->batch_len) {
        entry = (const struct dirent64 *)(const void *)(walk->batch + walk->batch_at);
        walk->batch_at += entry->d_reclen;
        top(walk)->position = entry->d_off;
        if (is_dot(entry->d_name))
            continue;
        type = entry_type(dir_fd, entry);
        if (type == PF_WALK_ERROR)
            continue;
        if (type == PF_WALK_DIR) {
            if (pf_buf_append(&top(walk)->subdirs, entry->d_name, strlen(entry->d_name) + 1) < 0)
                return -PINFOLD_ENOMEM;
            continue;
        }
        return set_path(walk, entry->d_name) < 0 ? -PINFOLD_ENOMEM : give(walk, type, ret);
    }
    return 0;
}

/* Returns 0, or 1 with an error entry. */
static int read_batch(struct pf_walk *walk, struct pf_walk_entry *ret)
{
    struct level *level = top(walk);
    ssize_t len = getdents64(pf_dirs_top(&walk->dirs)->fd, walk->batch, BATCH);

    walk->batch_at = 0;
    walk->batch_len = len > 0 ? (size_t)len : 0;
    level->subdirs.len = level->subdir_at = 0;
    if (len > 0)
        return 0;
    level->at_end = true;
    if (len == 0)
        return 0;
    len = errno;
    if (set_path(walk, NULL) < 0)
        return -PINFOLD_ENOMEM;
    return give_error(walk, walk->path.data, (int)len, ret);
}

/* The innermost directory is finished: go up, and return its PF_WALK_DIR_DONE. */
static int leave(struct pf_walk *walk, struct pf_walk_entry *ret)
{
    struct level *level;
    int r;

    if (walk->dirs.count == 1)
        return 0;
    if (set_path(walk, NULL) < 0)
        return -PINFOLD_ENOMEM;
    r = pf_dirs_pop(&walk->dirs);
    level = top(walk);
    if (r == PF_DIRS_REOPENED && lseek(pf_dirs_top(&walk->dirs)->fd, level->position, SEEK_SET) < 0)
        r = -errno;
    if (r >= 0)
        return give(walk, PF_WALK_DIR_DONE, ret);

    /* What is left of the level above cannot be reached any more. */
    level->at_end = true;
    level->subdir_at = level->subdirs.len;
    walk->state = LEAVING;
    return give_error(walk, walk->dirs.path.data, -r, ret);
}

static int enter(struct pf_walk *walk, struct pf_walk_entry *ret)
{
    const char *slash = memrchr(walk->path.data, '/', walk->path.len);
    int r = prepare_level(walk, walk->dirs.count);

    if (r == 0)
        r = pf_dirs_push(&walk->dirs, slash ? slash + 1 : walk->path.data);
    if (r == 0) {
        walk->state = READING;
        return 0;
    }
    walk->state = LEAVING;
    return give_error(walk, walk->path.data, -r, ret);
}

int pf_walk_next(struct pf_walk *walk, struct pf_walk_entry *ret)
{
    struct level *level;
    int r;

    for (;;) {
        if (walk->state == ENTERING) {
            r = enter(walk, ret);
            if (r != 0)
                return r;
        }
        if (walk->state == LEAVING) {
            walk->state = READING;
            return give(walk, PF_WALK_DIR_DONE, ret);
        }
        r = next_in_batch(walk, ret);
        if (r != 0)
            return r;
        level = top(walk);
        if (level->subdir_at < level->subdirs.len) {
            if (set_path(walk, level->subdirs.data + level->subdir_at) < 0)
                return -PINFOLD_ENOMEM;
            level->subdir_at += strlen(level->subdirs.data + level->subdir_at) + 1;
            walk->state = ENTERING;
            return give(walk, PF_WALK_DIR, ret);
        }
        if (level->at_end)
            return leave(walk, ret);
        r = read_batch(walk, ret);
        if (r != 0)
            return r;
    }
}

void pf_walk_skip(struct pf_walk *walk)
{
    if (walk->state == ENTERING)
        walk->state = LEAVING;
}

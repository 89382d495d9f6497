/* SPDX-License-Identifier: Apache-2.0 */
/* What is left out of a seed, whether it is copied (copy.c) or shown as it is (hide.c). */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tree/beneath.h"
#include "tree/copy_job.h"
#include "tree/walk.h"

/* Whether a link's target stays inside the source, read as text, for a link that lies depth
 * directories deep. */
static bool stays_inside(const char *target, unsigned depth)
{
    size_t len;

    if (target[0] == '/')
        return false;
    for (; *target; target += len + (target[len] == '/')) {
        len = strcspn(target, "/");
        if (len == 2 && target[0] == '.' && target[1] == '.') {
            if (depth-- == 0)
                return false;
        } else if (len > 0 && !(len == 1 && target[0] == '.')) {
            depth++;
        }
    }
    return true;
}

/* The same, followed for real: other links on the way may lead out. One that leads to nothing that
 * exists stays inside; what is said of the way and not of the system counts as leading out. */
static int resolves_inside(int src_fd, const char *path)
{
    static const int of_the_way[] = { EXDEV, ELOOP, ENOTDIR, ENAMETOOLONG, EACCES, EPERM };
    int fd = pf_beneath_open(src_fd, path, O_PATH, 0);

    if (fd >= 0)
        close(fd);
    if (fd >= 0 || fd == -ENOENT)
        return 1;
    for (size_t i = 0; i < PF_COUNT(of_the_way); i++)
        if (fd == -of_the_way[i])
            return 0;
    return fd;
}

int pf_copy_link_inside(const struct pf_copy_options *options, const struct pf_walk_entry *entry,
                        const char *target)
{
    return stays_inside(target, entry->depth) ? resolves_inside(options->src_fd, entry->path) : 0;
}

bool pf_copy_excluded(const struct pf_copy_options *options, const struct pf_walk_entry *entry)
{
    const struct pf_globs *exclude = options->exclude;
    struct stat st;

    if (!exclude)
        return false;
    if (pf_globs_match(exclude, entry->path, entry->path_len, entry->type == PF_WALK_DIR))
        return true;
    if (entry->type != PF_WALK_LINK || !pf_globs_match(exclude, entry->path, entry->path_len, true))
        return false;
    return fstatat(entry->dir_fd, entry->name, &st, 0) < 0 || S_ISDIR(st.st_mode);
}

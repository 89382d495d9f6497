/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/place.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "tree/beneath.h"

void pf_place_done(struct pf_place *place)
{
    if (place->dir_fd >= 0)
        close(place->dir_fd);
    place->dir_fd = -1;
}

/* Look at what path names, without following it. */
static int look(struct pf_place *place, int root_fd, const char *path, bool make)
{
    const char *name;

    pf_place_done(place);
    place->dir_fd = pf_beneath_open_parent(root_fd, path, make, &name);
    if (place->dir_fd < 0)
        return place->dir_fd;
    if (strlen(name) > NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(place->name, name, strlen(name) + 1);
    place->exists = fstatat(place->dir_fd, name, &place->st, AT_SYMLINK_NOFOLLOW) == 0;
    return place->exists || errno == ENOENT ? 0 : -errno;
}

/* Replace the last component of path by the target of the link there. */
static int lead_on(const struct pf_place *place, char path[static PATH_MAX])
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(place->dir_fd, place->name, target, sizeof(target) - 1);
    char *slash = strrchr(path, '/');
    size_t parent_len = slash ? (size_t)(slash + 1 - path) : 0;

    if (len < 0)
        return -errno;
    target[len] = '\0';
    if (target[0] == '/')
        return -EXDEV;
    if (parent_len + (size_t)len >= PATH_MAX)
        return -ENAMETOOLONG;
    memcpy(path + parent_len, target, (size_t)len + 1);
    return 0;
}

int pf_place_find(struct pf_place *place, int root_fd, const char *path, int flags)
{
    enum { MAX_LINKS = 40 };
    char text[PATH_MAX];
    int r;

    *place = (struct pf_place){ .dir_fd = -1 };
    if (strlen(path) >= sizeof(text))
        return -ENAMETOOLONG;
    memcpy(text, path, strlen(path) + 1);
    r = look(place, root_fd, text, flags & PF_PLACE_MAKE_PARENTS);
    for (int links = 0; r == 0 && place->exists && S_ISLNK(place->st.st_mode); links++) {
        if (!(flags & PF_PLACE_FOLLOW))
            return 0;
        if (links == MAX_LINKS)
            return -ELOOP;
        r = lead_on(place, text);
        if (r == 0)
            r = look(place, root_fd, text, false);
    }
    return r;
}

int pf_fail_at(struct pinfold_error *err, int sys_errno, const char *operation, const char *path)
{
    if (sys_errno == EXDEV)
        return pf_fail(err, PINFOLD_EPATH,
                       "%s \"%s\": a symbolic link on the way leads out of the root", operation,
                       PF_QUOTE(path));
    if (sys_errno == ENODEV) {
        pf_fail(err, PINFOLD_EOS, "%s \"%s\": it is no regular file but a device, FIFO or socket",
                operation, PF_QUOTE(path));
        if (err)
            err->sys_errno = EINVAL;
        return -PINFOLD_EOS;
    }
    return pf_fail_os(err, sys_errno, "%s \"%s\"", operation, PF_QUOTE(path));
}

int pf_check_regular(mode_t mode)
{
    return S_ISREG(mode) ? 0 : S_ISDIR(mode) ? -EISDIR : -ENODEV;
}

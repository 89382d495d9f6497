/* SPDX-License-Identifier: Apache-2.0 */
/* Reading what the kernel has in memory: for threads that must not wait. */
#include "tree/file.h"

#include <linux/magic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tree/beneath.h"

#ifndef RWF_NOWAIT /* musl has neither it nor preadv2 */
#define RWF_NOWAIT 0x00000008
#endif
#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

bool pf_file_system_is_prompt(int root_fd)
{
    struct statfs fs;

    if (fstatfs(root_fd, &fs) < 0)
        return false;
    /* Others ask a server or another process to open a file, or cannot read without waiting. */
    return fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == XFS_SUPER_MAGIC ||
           fs.f_type == BTRFS_SUPER_MAGIC;
}

bool pf_file_read_cached(int root_fd, const char *path, size_t limit, struct pinfold_bytes *ret)
{
    _cleanup_close_ int fd = pf_beneath_open_cached(root_fd, path);
    _cleanup_free_ char *data = NULL;
    struct iovec room;
    struct stat st;
    size_t len;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size > limit)
        return false;
    len = (size_t)st.st_size;
    data = malloc(len + 1); /* one byte more, to see the end in the same read */
    if (!data)
        return false;
    room = (struct iovec){ .iov_base = data, .iov_len = len + 1 };
    if (syscall(SYS_preadv2, fd, &room, 1, 0, 0, RWF_NOWAIT) != (long)len)
        return false;
    data[len] = '\0';
    *ret = (struct pinfold_bytes){ .data = TAKE(data), .len = len };
    return true;
}

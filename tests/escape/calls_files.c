/* SPDX-License-Identifier: Apache-2.0 */
/* Device nodes, and bits that would give the rights of the owner to others on the host. */
#include "calls.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static long make_block_device(void)
{
    unlink("node");
    return mknod("node", S_IFBLK | 0600, makedev(254, 0));
}

static long make_mem_device(void)
{
    unlink("node");
    return mknod("node", S_IFCHR | 0600, makedev(1, 1));
}

static long set_id_file(void)
{
    int fd = open(".", O_TMPFILE | O_RDWR, 04755);
    struct stat st;

    if (fd < 0)
        return -1;
    errno = EPERM;
    return fstat(fd, &st) == 0 && (st.st_mode & S_ISUID) ? 0 : -1;
}

static long set_id(int how)
{
    struct stat st;
    int fd = open("set-id", O_CREAT | O_RDWR | O_TRUNC, how == 0 ? 06755 : 0755), saved;

    if (how == 1)
        chmod("set-id", 06755);
    else if (how == 2)
        fchmod(fd, 06755);
    else if (how == 3)
        syscall(452 /* fchmodat2 */, AT_FDCWD, "set-id", 06755, 0);
    else if (how == 4 && unlink("set-id") == 0)
        mknod("set-id", S_IFREG | 06755, 0);
    saved = errno;
    int r = stat("set-id", &st);
    unlink("set-id");
    errno = saved;
    return r == 0 && (st.st_mode & (S_ISUID | S_ISGID)) ? 0 : -1;
}

static long set_id_open(void)
{
    return set_id(0);
}
static long set_id_chmod(void)
{
    return set_id(1);
}
static long set_id_fchmod(void)
{
    return set_id(2);
}
static long set_id_fchmodat2(void)
{
    return set_id(3);
}
static long set_id_mknod(void)
{
    return set_id(4);
}

/* Whoever opens the file has to wait for us. */
static long write_lease(void)
{
    int fd = open("leased", O_CREAT | O_RDWR, 0600);

    unlink("leased");
    return fd < 0 ? -1 : fcntl(fd, F_SETLEASE, F_WRLCK);
}

const struct attack files_attacks[] = {
    ATTACK(make_block_device), ATTACK(make_mem_device),
    ATTACK(set_id_file),       ATTACK(set_id_open),
    ATTACK(set_id_chmod),      ATTACK(set_id_fchmod),
    ATTACK(set_id_fchmodat2),  ATTACK(set_id_mknod),
    ATTACK(write_lease),       { NULL, NULL },
};

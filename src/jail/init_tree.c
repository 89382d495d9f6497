/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building the tree of a jail, in the mount namespace that its clone copied from the host's. The
 * new root is a tmpfs mounted over /, which changes nothing for this process: its root is still
 * what lies below, so that absolute paths are the host's and relative ones the jail's until the
 * roots are swapped.
 */
#include "jail/init.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_PROCESSES (1 << 22) /* of any kernel */

static int workspace = -1;
static struct init_helper letting_go;

static int clone_tree(int dir, const char *path)
{
    /* Recursive, because a user namespace may not uncover what the host has mounted over. */
    return (int)syscall(SYS_open_tree, dir, path,
                        OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
}

static int set_attributes(int dir, const char *path, unsigned flags, uint64_t set)
{
    struct mount_attr attr = { .attr_set = set };

    return (int)syscall(SYS_mount_setattr, dir, path, flags, &attr, sizeof(attr));
}

/* A limit of file sizes cuts one write, and it is the next that says so. */
static bool write_whole(int fd, const char *text, size_t len)
{
    ssize_t n = 0;

    for (; len > 0; text += n, len -= (size_t)n) {
        n = write(fd, text, len);
        if (n <= 0)
            return false;
    }
    return true;
}

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || !write_whole(fd, text, strlen(text)))
        init_fail("write the file", path);
    close(fd);
}

static char *put_number(char *at, uint64_t number)
{
    char digits[24];
    size_t len = 0;

    do
        digits[len++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    while (len > 0)
        *at++ = digits[--len];
    *at = '\0';
    return at;
}

static const char *put_map(char *text, id_t outside)
{
    char *at = put_number(text, PF_JAIL_UID);

    *at++ = ' ';
    memcpy(put_number(at, outside), " 1", 3);
    return text;
}

/* One user and one group: the owner's, under another number. */
static void map_ids(const struct pf_plan *plan)
{
    char text[64];

    write_file("/proc/self/uid_map", put_map(text, plan->uid));
    write_file("/proc/self/setgroups", "deny");
    write_file("/proc/self/gid_map", put_map(text, plan->gid));
}

static void make_dir(const struct pf_op *op, const char *target)
{
    /* Given directories may lie in one of the host's that is shown, and then are there. */
    if (mkdir(target, op->mode) < 0 &&
        !((op->flags & PF_OP_GIVEN) && (errno == EEXIST || errno == EROFS)))
        init_fail("make the directory", target);
}

static void make_file(const struct pf_op *op, const char *target)
{
    size_t len = op->text_len - 1;
    int fd;

    if (len == 0) { /* most are there to be mounted on */
        if (mknod(target, S_IFREG | op->mode, 0) < 0)
            init_fail("make the file", target);
        return;
    }
    fd = open(target, O_WRONLY | O_CREAT | O_EXCL, op->mode);
    if (fd < 0 || !write_whole(fd, init_text(op), len))
        init_fail("make the file", target);
    close(fd);
}

/* Where a directory of the user's goes: a link on the way, which an earlier agent may have left in
 * another such directory, is not followed. */
static int open_place(const char *target)
{
    struct open_how how = { .flags = O_PATH | O_CLOEXEC,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };

    return (int)syscall(SYS_openat2, AT_FDCWD, target, &how, sizeof(how));
}

static int attach(const struct pf_op *op, int tree, const char *target)
{
    int place, r;

    if (!(op->flags & PF_OP_GIVEN))
        return (int)syscall(SYS_move_mount, tree, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH);
    place = open_place(target);
    if (place < 0)
        return -1;
    r = (int)syscall(SYS_move_mount, tree, "", place, "",
                     MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
    close(place);
    return r;
}

/* Show the mounted tree as target; closes it. */
static void show(const struct pf_op *op, int tree, const char *source, const char *target)
{
    uint64_t set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    const char *step = "show the host's";
    int r = tree;

    if (!(op->flags & PF_OP_WRITABLE))
        set |= MOUNT_ATTR_RDONLY;
    if (r >= 0)
        r = set_attributes(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, set);
    if (r >= 0)
        r = attach(op, tree, target);
    if (r < 0 && (op->flags & PF_OP_GIVEN))
        init_reject(step, source);
    if (r < 0)
        init_fail(step, source);
    close(tree);
}

/* It becomes read-only together with the root. */
static void show_system(const struct pf_op *op, const char *source, const char *target)
{
    static const char step[] = "show the host's";

    if (mount(source, target, NULL, MS_BIND | MS_REC, NULL) == 0)
        return;
    if (!(op->flags & PF_OP_OPTIONAL))
        init_fail(step, source);
    init_note(step, source);
}

/* Devices are written to all the same. But their nodes are the host's, and belong to an owner who
 * is root: the agent must not change their modes and times. */
static int show_device(const char *source, const char *target)
{
    int r = mount(source, target, NULL, MS_BIND, NULL);

    if (r == 0)
        r = set_attributes(AT_FDCWD, target, 0,
                           MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
    return r;
}

static void mask(const char *target)
{
    /* With the attributes that this mount of it has. If the target is not there, this kernel does
     * not have it. */
    if (mount("dev/null", target, NULL, MS_BIND, NULL) < 0 && errno != ENOENT)
        init_fail("mask the file", target);
}

static void mount_fresh(const char *type, const char *target, unsigned long flags,
                        const char *options)
{
    static const char step[] = "mount a fresh file system on";

    if (mount(type, target, type, MS_NOSUID | flags, options) < 0)
        init_fail(step, target);
}

static void perform(const struct pf_op *op)
{
    const char *target = init_target(op), *text = init_text(op);

    switch (op->kind) {
    case PF_OP_DIR:
        make_dir(op, target);
        break;
    case PF_OP_LINK:
        if (symlink(text, target) < 0)
            init_fail("make the link", target);
        break;
    case PF_OP_FILE:
        make_file(op, target);
        break;
    case PF_OP_DEVICE:
        if (show_device(text, target) < 0)
            init_fail("show the host's", text);
        break;
    case PF_OP_BIND:
        if (op->flags & PF_OP_GIVEN)
            show(op, clone_tree(AT_FDCWD, text), text, target);
        else
            show_system(op, text, target);
        break;
    case PF_OP_WORKSPACE:
        show(op, workspace, "workspace directory", target);
        break;
    case PF_OP_TMPFS:
        mount_fresh("tmpfs", target, MS_NODEV, text);
        break;
    case PF_OP_PROC:
        mount_fresh("proc", target, MS_NODEV | MS_NOEXEC, NULL);
        break;
    case PF_OP_DEVPTS:
        mount_fresh("devpts", target, MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0600,max=256");
        break;
    case PF_OP_MASK:
        mask(target);
        break;
    default:
        errno = EPROTO;
        init_fail("read the plan", target);
    }
}

/* Mount the new root over the old one and enter it. */
static void begin_root(void)
{
    int fs = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC), root;

    if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "mode", "0755", 0) < 0 ||
        syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        init_fail("make a tmpfs", "for the root of the sandbox");
    root = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    if (root < 0 || syscall(SYS_move_mount, root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0 ||
        fchdir(root) < 0)
        init_fail("mount a tmpfs", "for the root of the sandbox");
    close(fs);
    close(root);
}

/* The kernel refuses a limit below what its processors need: then the next that it takes. */
static void limit_processes(uint64_t count)
{
    static const char path[] = "proc/sys/kernel/pid_max";
    int fd = count ? open(path, O_WRONLY | O_CLOEXEC) : -1;
    char text[24];

    if (!count)
        return;
    while (fd < 0 || write(fd, text, (size_t)(put_number(text, count) - text)) < 0) {
        if (fd < 0 || errno != EINVAL || count > MOST_PROCESSES)
            init_fail("limit the number of processes through", path);
        count *= 2;
    }
    close(fd);
}

/* Taking the old root away lasts until all processors have seen it: nothing to do for milliseconds
 * on a busy machine, so that somebody else waits for it. */
static int let_go(void *arg)
{
    (void)arg;
    if (umount2(".", MNT_DETACH) < 0)
        init_helper_fail(&letting_go, "let go of the host's root", "");
    _exit(0);
}

void init_build_end(void)
{
    init_helper_end(&letting_go);
}

void init_offer_memory(void)
{
    write_file("/proc/self/oom_score_adj", "1000");
}

void init_build_begin(const struct pf_plan *plan, int lent)
{
    map_ids(plan);
    if (set_attributes(AT_FDCWD, "/", AT_RECURSIVE, 0) < 0)
        init_fail("change a mount (mount_setattr, which Linux has since 5.12)", "");
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        init_fail("make the mounts of the sandbox private", "");
    workspace = plan->lent ? lent : plan->seed_at ? init_overlay(plan) : clone_tree(AT_FDCWD, ".");
    if (workspace < 0)
        init_fail("show the host's", "workspace directory");
    begin_root();
    init_each(plan, sizeof(*plan), plan->shown_end, perform);
    if (set_attributes(AT_FDCWD, ".", AT_RECURSIVE,
                       MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV) < 0)
        init_fail("make read-only", "the root of the sandbox");
    init_each(plan, plan->shown_end, plan->ops_end, perform);
    if (plan->seed_at)
        init_give_root();
    limit_processes(plan->max_processes);
    /* Nothing in /proc has to be written by programs; much must not be by those of a root owner. */
    if (set_attributes(AT_FDCWD, "proc", 0, MOUNT_ATTR_RDONLY) < 0)
        init_fail("make read-only", "/proc");
    /* The new root is put on top of the old one and the old one under it taken away. */
    if (syscall(SYS_pivot_root, ".", ".") < 0)
        init_fail("change the root (pivot_root)", "");
    init_helper_start(&letting_go, let_go, NULL, 0);
    if (chdir("/workspace") < 0)
        init_fail("enter", "/workspace");
}

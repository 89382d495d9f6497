/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of a jail: which parts of the host it shows, and what it has of its own. */
#include "jail/compose.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "jail/limits.h"
#include "proc/launcher.h"

#define PLAN_MAX (4 << 20)
#define BYTES_PER_INODE 8192 /* of a tmpfs: an inode costs about a KiB of memory */

static struct pf_buf *part_of(struct pf_draft *draft, const struct pf_op *op)
{
    switch (op->kind) {
    case PF_OP_DIR:
    case PF_OP_LINK:
    case PF_OP_FILE:
        return op->flags & PF_OP_LATE ? &draft->mounted : &draft->made;
    case PF_OP_BIND:
        return op->flags & PF_OP_GIVEN ? &draft->mounted : &draft->shown;
    default:
        return &draft->mounted;
    }
}

int pf_plan_add(struct pf_draft *draft, struct pf_op op, const char *target, const char *text,
                size_t text_len)
{
    static const char padding[8];
    struct pf_buf *plan = part_of(draft, &op);
    size_t len;
    int r;

    target += strspn(target, "/"); /* init builds the tree in its working directory */
    op.target_len = (uint32_t)strlen(target) + 1;
    op.text_len = (uint32_t)text_len + 1;
    len = sizeof(op) + op.target_len + op.text_len;
    op.size = (uint32_t)(len + 7) & ~7U;
    r = pf_buf_reserve(plan, op.size);
    if (r < 0)
        return r;
    pf_buf_append(plan, &op, sizeof(op));
    pf_buf_append(plan, target, op.target_len);
    pf_buf_append(plan, text, text_len);
    return pf_buf_append(plan, padding, op.size - len + 1);
}

static int add(struct pf_draft *draft, enum pf_op_kind kind, int flags, mode_t mode,
               const char *target, const char *text)
{
    struct pf_op op = { .kind = (uint16_t)kind, .flags = (uint16_t)flags, .mode = mode };

    return pf_plan_add(draft, op, target, text, strlen(text));
}

static int add_tmpfs(struct pf_draft *draft, const struct pinfold_limits *limits,
                     const char *target, mode_t mode)
{
    uint64_t bytes = limits->tmp_bytes;
    char text[128];

    if (bytes == PINFOLD_UNLIMITED)
        snprintf(text, sizeof(text), "mode=%o,size=0,nr_inodes=0", (unsigned)mode);
    else
        snprintf(text, sizeof(text), "mode=%o,size=%" PRIu64 ",nr_inodes=%" PRIu64, (unsigned)mode,
                 bytes, bytes / BYTES_PER_INODE + 64);
    return add(draft, PF_OP_TMPFS, 0, 0, target, text);
}

/* Show name, an entry of the directory base on the host, in the root of the jail: a link stays a
 * link, so that both sides agree about what /lib is. What is not there is left out. */
static int add_system(struct pf_draft *draft, const char *base, const char *name)
{
    char path[PATH_MAX], link[PATH_MAX];
    struct stat st;
    ssize_t len;
    int r;

    if (snprintf(path, sizeof(path), "%s/%s", base, name) >= (int)sizeof(path) ||
        lstat(path, &st) < 0)
        return 0;
    if (S_ISLNK(st.st_mode)) {
        len = readlink(path, link, sizeof(link) - 1);
        if (len < 0)
            return 0;
        link[len] = '\0';
        return add(draft, PF_OP_LINK, 0, 0, name, link);
    }
    if (!S_ISDIR(st.st_mode))
        return 0;
    r = add(draft, PF_OP_DIR, 0, 0755, name, "");
    return r < 0 ? r : add(draft, PF_OP_BIND, 0, 0, name, path);
}

/* What the jail has of its own, whatever root it is given. */
static bool is_own(const char *name)
{
    static const char *const own[] = { ".",   "..",  "dev", "home",     "proc",
                                       "run", "sys", "tmp", "workspace" };

    for (size_t i = 0; i < PF_COUNT(own); i++)
        if (strcmp(name, own[i]) == 0)
            return true;
    return false;
}

static int add_rootfs(struct pf_draft *draft, const char *rootfs, struct pinfold_error *err)
{
    DIR *dir = opendir(rootfs);
    struct dirent *entry;
    int r = 0;

    if (!dir)
        return pf_fail_os(err, errno, "open the root directory %s", PF_QUOTE(rootfs));
    while (r == 0 && (entry = readdir(dir)))
        if (!is_own(entry->d_name))
            r = add_system(draft, rootfs, entry->d_name);
    closedir(dir);
    return r < 0 ? pf_fail_nomem(err) : 0;
}

static int add_root(struct pf_draft *draft, const struct pf_jail_config *config,
                    struct pinfold_error *err)
{
    static const char *const system[] = { "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32" };
    int r = 0;

    if (config->rootfs)
        return add_rootfs(draft, config->rootfs, err);
    for (size_t i = 0; r == 0 && i < PF_COUNT(system); i++)
        r = add_system(draft, "", system[i]);
    if (r == 0)
        r = pf_plan_etc(draft, config->net);
    return r < 0 ? pf_fail_nomem(err) : 0;
}

struct step {
    enum pf_op_kind kind;
    int flags;
    mode_t mode;
    const char *target, *text;
};

static int add_steps(struct pf_draft *draft, const struct step *steps, size_t count)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++)
        r = add(draft, steps[i].kind, steps[i].flags, steps[i].mode, steps[i].target,
                steps[i].text);
    return r;
}

/* The files that would tell an agent something about the host. Most open for root alone, which a
 * jail of root is to them; what the kernel does not have costs one failed look-up. */
static int add_proc(struct pf_draft *draft)
{
    static const struct step always[] = {
        { PF_OP_DIR, 0, 0555, "proc", "" },           { PF_OP_PROC, 0, 0, "proc", "" },
        { PF_OP_MASK, 0, 0, "proc/keys", "" },        { PF_OP_MASK, 0, 0, "proc/timer_list", "" },
        { PF_OP_MASK, 0, 0, "proc/sched_debug", "" },
    };
    static const struct step of_root[] = {
        { PF_OP_MASK, 0, 0, "proc/kcore", "" },       { PF_OP_MASK, 0, 0, "proc/kmsg", "" },
        { PF_OP_MASK, 0, 0, "proc/kpagecount", "" },  { PF_OP_MASK, 0, 0, "proc/kpageflags", "" },
        { PF_OP_MASK, 0, 0, "proc/kpagecgroup", "" }, { PF_OP_MASK, 0, 0, "proc/vmallocinfo", "" },
        { PF_OP_MASK, 0, 0, "proc/slabinfo", "" },
    };
    int r = add_steps(draft, always, PF_COUNT(always));

    return r == 0 && geteuid() == 0 ? add_steps(draft, of_root, PF_COUNT(of_root)) : r;
}

static int add_dev(struct pf_draft *draft, const struct pinfold_limits *limits)
{
    static const char *const nodes[] = { "null", "zero", "full", "random", "urandom", "tty" };
    static const struct step steps[] = {
        { PF_OP_DIR, 0, 0755, "dev/pts", "" },
        { PF_OP_DEVPTS, 0, 0, "dev/pts", "" },
        { PF_OP_LINK, 0, 0, "dev/ptmx", "pts/ptmx" },
        { PF_OP_LINK, 0, 0, "dev/fd", "/proc/self/fd" },
        { PF_OP_LINK, 0, 0, "dev/stdin", "/proc/self/fd/0" },
        { PF_OP_LINK, 0, 0, "dev/stdout", "/proc/self/fd/1" },
        { PF_OP_LINK, 0, 0, "dev/stderr", "/proc/self/fd/2" },
        { PF_OP_DIR, 0, 0755, "dev/shm", "" },
    };
    int r = add(draft, PF_OP_DIR, 0, 0755, "dev", "");

    for (size_t i = 0; r == 0 && i < PF_COUNT(nodes); i++) {
        char path[16];
        snprintf(path, sizeof(path), "/dev/%s", nodes[i]);
        r = add(draft, PF_OP_FILE, 0, 0666, path, "");
        if (r == 0)
            r = add(draft, PF_OP_DEVICE, 0, 0, path, path);
    }
    if (r == 0)
        r = add_steps(draft, steps, PF_COUNT(steps));
    return r == 0 ? add_tmpfs(draft, limits, "dev/shm", 01777) : r;
}

/* /dev comes before /proc: masks are made of its null. */
static int add_own(struct pf_draft *draft, const struct pf_jail_config *config)
{
    static const struct step dirs[] = {
        { PF_OP_DIR, 0, 0755, "tmp", "" },
        { PF_OP_DIR, 0, 0755, "run", "" },
        { PF_OP_DIR, 0, 0755, "home", "" },
        { PF_OP_DIR, 0, 0755, PF_JAIL_HOME, "" },
        { PF_OP_DIR, 0, 0755, PF_JAIL_WORKSPACE, "" },
    };
    int r = add_dev(draft, &config->limits);

    if (r == 0)
        r = add_proc(draft);
    if (r == 0)
        r = add_steps(draft, dirs, PF_COUNT(dirs));
    if (r == 0 && config->net == PINFOLD_NET_ALLOW)
        r = pf_plan_way_out(draft, !config->rootfs);
    if (r == 0)
        r = add_tmpfs(draft, &config->limits, "tmp", 01777);
    if (r == 0)
        r = add_tmpfs(draft, &config->limits, PF_JAIL_HOME, 0755);
    return r == 0 ? add(draft, PF_OP_WORKSPACE, config->workspace_read_only ? 0 : PF_OP_WRITABLE, 0,
                        PF_JAIL_WORKSPACE, "")
                  : r;
}

static bool is_at_or_below(const char *path, const char *above)
{
    size_t len = strlen(above);

    while (len > 0 && above[len - 1] == '/')
        len--;
    return strncmp(path, above, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

/* Nothing that the jail itself rests on may be covered. */
static int check_covers(const char *path, struct pinfold_error *err)
{
    static const char *const reserved[] = { "/proc", "/dev",  "/workspace", "/sys",
                                            "/bin",  "/sbin", "/lib",       "/lib64" };
    static const char *const mounted[] = { "/tmp", PF_JAIL_HOME };

    for (size_t i = 0; i < PF_COUNT(reserved); i++)
        if (is_at_or_below(path, reserved[i]))
            return pf_fail(err, PINFOLD_EVALUE,
                           "cannot show %s in a sandbox: %s there is the sandbox's own",
                           PF_QUOTE(path), reserved[i]);
    for (size_t i = 0; i < PF_COUNT(mounted); i++)
        if (is_at_or_below(mounted[i], path))
            return pf_fail(err, PINFOLD_EVALUE,
                           "cannot show %s in a sandbox: it would cover %s, which is the sandbox's "
                           "own; name directories below it",
                           PF_QUOTE(path), mounted[i]);
    return 0;
}

/* A directory of the user's. */
static int check_given(const char *path, struct pinfold_error *err)
{
    if (path[0] != '/' || path[strspn(path, "/")] == '\0')
        return pf_fail(err, PINFOLD_EVALUE,
                       "cannot show %s in a sandbox: name an absolute path below /",
                       PF_QUOTE(path));
    if (strlen(path) >= PATH_MAX)
        return pf_fail(err, PINFOLD_EVALUE, "cannot show %s in a sandbox: the path is too long",
                       PF_QUOTE(path));
    for (const char *at = path; *at;) {
        at += strspn(at, "/");
        size_t len = strcspn(at, "/");
        if ((len == 1 && at[0] == '.') || (len == 2 && at[0] == '.' && at[1] == '.'))
            return pf_fail(err, PINFOLD_EVALUE,
                           "cannot show %s in a sandbox: the path has a part . or ..",
                           PF_QUOTE(path));
        if (at > path + 1 && at[-2] == '/')
            return pf_fail(err, PINFOLD_EVALUE,
                           "cannot show %s in a sandbox: the path has // in it", PF_QUOTE(path));
        at += len;
    }
    return check_covers(path, err);
}

int pf_jail_check_shown(const char *const *paths, struct pinfold_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && paths && paths[i]; i++)
        r = check_given(paths[i], err);
    return r;
}

/* Make path and its parents in the tree of the jail; what is there stays. */
static int add_parents(struct pf_draft *draft, const char *path, int flags)
{
    char part[PATH_MAX];
    int r = 0;

    snprintf(part, sizeof(part), "%s", path); /* check_given() has seen to its length */
    for (char *slash = strchr(part + 1, '/'); r == 0 && slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        r = add(draft, PF_OP_DIR, flags | PF_OP_GIVEN, 0755, part, "");
        *slash = '/';
    }
    return r == 0 ? add(draft, PF_OP_DIR, flags | PF_OP_GIVEN, 0755, part, "") : r;
}

/* All places to mount on are made before the first directory of the user's is mounted: so they are
 * made in no directory of the user's. Each is made twice, in the root and, when that is read-only,
 * in the file systems that are mounted on it by then. */
static int add_given(struct pf_draft *draft, const char *const *paths, bool mount, int flags,
                     struct pinfold_error *err)
{
    for (size_t i = 0; paths && paths[i]; i++) {
        int r = check_given(paths[i], err);
        if (r < 0)
            return r;
        if (mount) {
            r = add(draft, PF_OP_BIND, flags | PF_OP_GIVEN, 0, paths[i], paths[i]);
        } else {
            r = add_parents(draft, paths[i], 0);
            if (r == 0)
                r = add_parents(draft, paths[i], PF_OP_LATE);
        }
        if (r < 0)
            return pf_fail_nomem(err);
    }
    return 0;
}

static int add_all(struct pf_draft *draft, const struct pf_jail_config *config,
                   struct pinfold_error *err)
{
    int r = add_root(draft, config, err);

    if (r == 0 && add_own(draft, config) < 0)
        r = pf_fail_nomem(err);
    for (int mount = 0; mount < 2; mount++) {
        if (r == 0)
            r = add_given(draft, config->ro, mount, 0, err);
        if (r == 0)
            r = add_given(draft, config->rw, mount, PF_OP_WRITABLE, err);
    }
    return r;
}

static void set_limits(struct pf_plan *head, const struct pinfold_limits *limits)
{
    enum { LEAST_PID_MAX = 512 }; /* what the kernel takes depends on the number of processors */

    head->cpu_seconds = limits->cpu_seconds;
    head->open_files = limits->open_files;
    head->file_bytes = limits->file_bytes;
    if (geteuid() == 0 && limits->processes != PINFOLD_UNLIMITED && pf_limits_have_pid_max())
        head->max_processes = limits->processes < LEAST_PID_MAX ? LEAST_PID_MAX : limits->processes;
}

/* The jail has to find it by its path, and must not take something else for it. */
static int set_seed(struct pf_plan *head, const struct pf_jail_config *config,
                    struct pinfold_error *err)
{
    struct stat st;

    if (fstat(config->seed_fd, &st) < 0)
        return pf_fail_os(err, errno, "look at the seed %s", PF_QUOTE(config->seed));
    head->seed_at = head->ops_end;
    head->seed_dev = st.st_dev;
    head->seed_ino = st.st_ino;
    return 0;
}

static void free_draft(struct pf_draft *draft)
{
    pf_buf_done(&draft->made);
    pf_buf_done(&draft->shown);
    pf_buf_done(&draft->mounted);
}

int pf_plan_compose(const struct pf_jail_config *config, struct pf_plan **ret,
                    struct pinfold_error *err)
{
    struct pf_draft draft PF_CLEANUP(free_draft) = { .made = PF_BUF_INIT(PLAN_MAX),
                                                     .shown = PF_BUF_INIT(PLAN_MAX),
                                                     .mounted = PF_BUF_INIT(PLAN_MAX) };
    struct pf_plan head = {
        .uid = geteuid(),
        .gid = getegid(),
        .alone = config->workspace_read_only,
        .lent = config->lent,
        .proxy_port = config->net == PINFOLD_NET_ALLOW ? PF_JAIL_PROXY_PORT : 0,
    };
    size_t seed_len = config->seed ? strlen(config->seed) + 1 : 0;
    char *at;
    int r;

    set_limits(&head, &config->limits);
    r = add_all(&draft, config, err);
    if (r < 0)
        return r;
    head.shown_end = sizeof(head) + draft.made.len + draft.shown.len;
    head.ops_end = head.shown_end + draft.mounted.len;
    head.size = head.ops_end + seed_len;
    if (config->seed) {
        r = set_seed(&head, config, err);
        if (r < 0)
            return r;
    }
    struct iovec parts[] = { { &head, sizeof(head) },
                             { draft.made.data, draft.made.len },
                             { draft.shown.data, draft.shown.len },
                             { draft.mounted.data, draft.mounted.len },
                             { (void *)(uintptr_t)config->seed, seed_len } };
    *ret = malloc(head.size);
    if (!*ret)
        return pf_fail_nomem(err);
    at = (char *)*ret;
    for (size_t i = 0; i < PF_COUNT(parts); i++)
        if (parts[i].iov_len > 0)
            at = mempcpy(at, parts[i].iov_base, parts[i].iov_len);
    return 0;
}

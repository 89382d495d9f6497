/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second wall behind the mounts, where the kernel has it: everything may be read and run, and
 * only what is meant for it written, whatever a mistake in the tree of mounts would allow.
 */
#include "jail/init.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jail/jail.h"

/* Newer than the headers that this is built with. */
#define RIGHT_REFER (1ULL << 13)     /* since ABI 2 */
#define RIGHT_TRUNCATE (1ULL << 14)  /* since ABI 3 */
#define RIGHT_IOCTL_DEV (1ULL << 15) /* since ABI 5 */
#define SCOPE_ALL 3ULL               /* since ABI 6: abstract sockets, signals */

struct ruleset {
    uint64_t fs, net, scoped;
};

#define READ \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define USE_DEVICE (READ | LANDLOCK_ACCESS_FS_WRITE_FILE | RIGHT_TRUNCATE | RIGHT_IOCTL_DEV)
#define FIRST_RIGHTS ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1) /* all of ABI 1 */

static int ruleset_fd;
static uint64_t handled;

static void allow(const char *path, uint64_t rights)
{
    struct landlock_path_beneath_attr rule = {
        .allowed_access = rights & handled,
        .parent_fd = open(path, O_PATH | O_CLOEXEC),
    };

    if (rule.parent_fd < 0 ||
        syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
        init_fail("allow with Landlock the use of", path);
    close(rule.parent_fd);
}

/* The targets are relative to the root, which is not the working directory any more. */
static void allow_writable(const struct pf_op *op)
{
    const char *target = init_target(op);

    if (op->kind == PF_OP_TMPFS ||
        ((op->kind == PF_OP_BIND || op->kind == PF_OP_WORKSPACE) && (op->flags & PF_OP_WRITABLE))) {
        char path[4096 + 1] = "/";
        size_t i = 0;
        for (; target[i] && i + 2 < sizeof(path); i++)
            path[i + 1] = target[i];
        path[i + 1] = '\0';
        allow(path, ~0ULL);
    }
}

void init_landlock(const struct pf_plan *plan)
{
    struct ruleset ruleset = { 0 };
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    size_t size = sizeof(ruleset);

    /* ABI 1 cannot allow that a file is moved to another directory. */
    if (abi < 2)
        return;
    handled = FIRST_RIGHTS | RIGHT_REFER;
    if (abi >= 3)
        handled |= RIGHT_TRUNCATE;
    if (abi >= 5)
        handled |= RIGHT_IOCTL_DEV;
    ruleset.fs = handled;
    if (abi >= 6)
        ruleset.scoped = SCOPE_ALL;
    else
        size = sizeof(ruleset.fs);
    ruleset_fd = (int)syscall(SYS_landlock_create_ruleset, &ruleset, size, 0);
    if (ruleset_fd < 0)
        init_fail("make the Landlock rules", "");
    allow("/", READ);
    allow("/dev", USE_DEVICE);
    init_each(plan, plan->shown_end, plan->ops_end, allow_writable);
    if (syscall(SYS_landlock_restrict_self, ruleset_fd, 0) < 0)
        init_fail("enforce the Landlock rules", "");
    close(ruleset_fd);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of a sandbox on this machine: how much it may use, which mechanism of the kernel holds it
 * to that, and which limit ended a command.
 */
#ifndef PINFOLD_LIMITS_H
#define PINFOLD_LIMITS_H

#include <stdint.h>

#include <pinfold/api.h>

PINFOLD_BEGIN_DECLS

/* What a sandbox may use. Zero is the default named, PINFOLD_UNLIMITED no limit. What no command
 * could run with is refused: the least is given below. */
#define PINFOLD_UNLIMITED UINT64_MAX

struct pinfold_limits {
    uint64_t memory_bytes;    /* of the whole sandbox, files in memory included, by control group;
                                 else of the data of each process, by rlimit; at least 1 MiB; 0:
                                 4 GiB */
    uint64_t processes;       /* threads included, and our own two; 3 to 4,194,304; 0: 1,024 */
    uint64_t cpu_seconds;     /* of each process, user and system; 0: no limit */
    uint64_t open_files;      /* of each process; at least 16; 0: 4,096. The hard limit when that is
                                 lower */
    uint64_t file_bytes;      /* of each file; 0: no limit */
    uint64_t tmp_bytes;       /* of each of /tmp, the home directory and /dev/shm; 0: 1 GiB, or a
                                 quarter of memory_bytes when that is less */
    uint64_t workspace_bytes; /* of all in the workspace; looked after by the owner, which kills
                                 what runs soon after it is over (see docs/security.md); 0: no limit
                                 but the space that the disk must keep: 1 GiB, a twentieth of it, or
                                 half of what was free at the start, whichever is least.
                                 PINFOLD_UNLIMITED: not even that */
    double cpus;              /* processors' worth of time, such as 1.5, of the whole sandbox, by
                                 control group; create fails where none can be made; 0.01 to 100,000;
                                 0: no limit */
};

/* What a limit is of. */
enum pinfold_limit {
    PINFOLD_LIMIT_NONE = 0,
    PINFOLD_LIMIT_TIME, /* the command's timeout */
    PINFOLD_LIMIT_MEMORY,
    PINFOLD_LIMIT_PROCESSES,
    PINFOLD_LIMIT_CPU_TIME,
    PINFOLD_LIMIT_CPU_SHARE, /* slows down, never ends anything */
    PINFOLD_LIMIT_OPEN_FILES,
    PINFOLD_LIMIT_FILE_SIZE,
    PINFOLD_LIMIT_TMP_SIZE,
    PINFOLD_LIMIT_WORKSPACE,
    PINFOLD_LIMIT_DISK, /* the space that the workspace's file system keeps free */
    PINFOLD_LIMIT_COUNT,
};

/* What holds a limit. */
enum pinfold_holder {
    PINFOLD_HOLDER_NONE = 0, /* it is not in force */
    PINFOLD_HOLDER_CGROUP2,
    PINFOLD_HOLDER_CGROUP1,
    PINFOLD_HOLDER_RLIMIT,  /* each process has its own; processes: counted for the sandbox */
    PINFOLD_HOLDER_PID_MAX, /* the sandbox runs out of process numbers; never fewer than 512, and
                               with many processors more */
    PINFOLD_HOLDER_TMPFS,   /* the size of the file system */
    PINFOLD_HOLDER_OWNER,   /* this process or the command's supervisor looks after it */
};

/**
 * A limit as a word: "none", "time", "memory", "processes", "cpu time", "cpu share", "open files",
 * "file size", "tmp size", "workspace" or "disk".
 *
 * Returns static text; "none" for what is no limit.
 * Threads: any.
 */
PINFOLD_API const char *pinfold_limit_name(enum pinfold_limit limit);

/**
 * What holds a limit, as words: "none", "cgroup v2", "cgroup v1", "rlimit", "pid_max", "tmpfs" or
 * "owner".
 *
 * Returns static text; "none" for what holds nothing.
 * Threads: any.
 */
PINFOLD_API const char *pinfold_holder_name(enum pinfold_holder holder);

PINFOLD_END_DECLS

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors: a fallible call returns 0 or one of the negative codes below, and fills the optional
 * struct pinfold_error that the caller owns. The struct is plain data: copy it, keep it on the
 * stack, write it through a pipe. It is written only on failure.
 */
#ifndef PINFOLD_ERROR_H
#define PINFOLD_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#include <pinfold/api.h>

PINFOLD_BEGIN_DECLS

/* Append-only: the numbers are ABI. Each stands for one exception of the specification. */
enum pinfold_code {
    PINFOLD_OK = 0,
    PINFOLD_EVALUE = 1,    /* an argument is out of range or malformed (ValueError) */
    PINFOLD_EPATH = 2,     /* a workspace path is malformed or leaves the root (SandboxPathError, a
                              ValueError) */
    PINFOLD_EOS = 3,       /* the system refused: see sys_errno (OSError and its subclasses) */
    PINFOLD_ENOMEM = 4,    /* out of memory (MemoryError) */
    PINFOLD_ESTART = 5,    /* not started, or the workspace is claimed (SandboxStartError) */
    PINFOLD_EATTACH = 6,   /* the agent cannot be attached (SandboxAttachError) */
    PINFOLD_EDETACHED = 7, /* the agent is no longer attached (AgentSandboxDetachedError) */
    PINFOLD_EDENIED = 8,   /* a read-only agent tried to change something
                              (SandboxMutationDeniedError) */
    PINFOLD_EPREPARE = 9,  /* seeding or sync reported errors (WorkspacePrepareError) */
    PINFOLD_ECANCELLED = 10, /* the cancellation token fired (CancelledError) */
    PINFOLD_ETIMEOUT = 11,   /* a wait that is not a command's ran out of time (TimeoutError) */
    PINFOLD_EENCODING = 12,  /* text was asked for and the bytes are not UTF-8
                                (UnicodeDecodeError) */
    PINFOLD_ETYPE = 13,      /* a required object is missing or of the wrong kind (TypeError) */
    PINFOLD_ENOTSUP = 14,    /* the backend has no such operation (NotImplementedError) */
    PINFOLD_EBACKEND = 15,   /* a backend broke its contract, or its helper process died
                                (RuntimeError) */
    PINFOLD_EBUSY = 16,      /* the agent has an invocation under way (ConcurrencyException) */
};

struct pinfold_error {
    int code;        /* enum pinfold_code, positive */
    int sys_errno;   /* errno behind it, or 0 */
    int http_status; /* HTTP status behind it, or 0 */
    int retryable;   /* 1: the same call may succeed later, unchanged */
    char msg[240];   /* one line, NUL-terminated, valid UTF-8: the operation, the path, the cause */
};

#define PINFOLD_ERROR_INIT \
    {                      \
        0, 0, 0, 0,        \
        {                  \
            0              \
        }                  \
    }

/**
 * Name a code as the specification names its exception, for example "SandboxStartError".
 *
 * code  a positive enum pinfold_code or its negative; unknown codes give "UnknownError"
 *
 * Returns a static string, never NULL.
 * Threads: any.
 */
PINFOLD_API const char *pinfold_code_name(int code);

PINFOLD_END_DECLS

#endif

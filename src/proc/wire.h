/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a launcher asks the helper program for a supervisor: one SOCK_SEQPACKET datagram with a
 * struct pf_wire_request and descriptors. The vectors are NUL-terminated strings one after the
 * other: in the datagram as a rule, and in a sealed memfd when they are long, megabytes maybe.
 */
#ifndef PF_PROC_WIRE_H
#define PF_PROC_WIRE_H

#include "proc/super.h"

#define PF_HELPER_NAME "pinfold-launch"
#define PF_HELPER_FD 3    /* where the helper finds its socket */
#define PF_WIRE_TEXT 8000 /* longer vectors travel in a memfd */

struct pf_wire_request {
    int64_t deadline;
    uint64_t blob_len;
    uint32_t argc, envc;
    int32_t owner; /* 0: only the control socket tells that it is gone */
    uint8_t search, has_cwd, has_script;
    uint8_t has_cwd_path; /* the working directory is the first string, before argv */
    uint8_t terminal;     /* a terminal instead of the pipes, which do not travel */
    uint16_t rows, cols;
    uint32_t lease;          /* what a resident sent when it was free; 0: to no resident */
    uint8_t has_blob;        /* the vectors are there, and not in text */
    char text[PF_WIRE_TEXT]; /* blob_len bytes of it are sent */
};

/* The descriptors, in the order in which they travel: the control socket; of the pipes, unless
 * there is a terminal, the two read ends and the two write ends; those that the request says it
 * has: blob, working directory, script. */
enum pf_wire_fd {
    PF_WIRE_CONTROL,
    PF_WIRE_PIPES = 4,
    PF_WIRE_MAX = 1 + PF_WIRE_PIPES + 3,
};

/* Send a request and its descriptors, which stay the caller's. flags: MSG_DONTWAIT or 0. Returns 0,
 * or -errno: -EAGAIN when so many are not read yet that there is no room. */
int pf_wire_send(int socket, const struct pf_wire_request *request, const int *fds, size_t count,
                 int flags);

/* Send an order or a report, which nobody asks for again: without it somebody would wait for ever.
 * Where the system has no memory for it now, it may a moment later. flags as above. Returns whether
 * it was sent: not when the other side is gone, or there is no room; or after a tenth of a
 * second. */
bool pf_wire_tell(int socket, const void *message, size_t len, int flags);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a launcher asks the helper program for a supervisor: one SOCK_SEQPACKET datagram with a
 * struct pf_wire_request and descriptors. The vectors, which may be megabytes, are in a sealed
 * memfd, as NUL-terminated strings one after the other.
 */
#ifndef PF_PROC_WIRE_H
#define PF_PROC_WIRE_H

#include "proc/super.h"

#define PF_HELPER_NAME "pinfold-launch"
#define PF_HELPER_FD 3 /* where the helper finds its socket */

struct pf_wire_request {
    int64_t deadline;
    uint64_t blob_len;
    uint32_t argc, envc;
    int32_t owner; /* 0: only the control socket tells that it is gone */
    uint8_t search, has_cwd, has_script;
    uint8_t has_cwd_path; /* the working directory is the first string, before argv */
    uint8_t terminal;     /* a terminal instead of the pipes, which do not travel */
    uint16_t rows, cols;
};

/* The descriptors, in the order in which they travel: the control socket; of the pipes, unless
 * there is a terminal, the two read ends and the two write ends; the blob; those that the request
 * says it has: the working directory, the script. */
enum pf_wire_fd {
    PF_WIRE_CONTROL,
    PF_WIRE_PIPES = 4,
    PF_WIRE_MAX = 1 + PF_WIRE_PIPES + 1 + 2,
};

#endif

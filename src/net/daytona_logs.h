/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside net/: the log of a command in a Daytona session. Each line has a mark of three bytes in
 * front that names its stream: 01 01 01 is stdout, 02 02 02 stderr.
 */
#ifndef PF_NET_DAYTONA_LOGS_H
#define PF_NET_DAYTONA_LOGS_H

#include <stddef.h>

/* Receives bytes of stream 1 or 2. Returns 0, or what pf_daytona_demux() is to return. */
typedef int (*pf_daytona_log_fn)(void *ctx, int stream, const char *data, size_t len);

/* Zero-initialised. */
struct pf_daytona_demux {
    int stream;  /* of what comes; 0: before the first mark, when nothing counts */
    char mark;   /* the byte that may begin a mark, */
    int matched; /* and how often it has been seen in a row */
};

/* Take the next piece of a log, of any size; marks may be cut. */
int pf_daytona_demux(struct pf_daytona_demux *demux, const char *data, size_t len,
                     pf_daytona_log_fn fn, void *ctx);

/* The log is over: what looked like half a mark was none. */
int pf_daytona_demux_finish(struct pf_daytona_demux *demux, pf_daytona_log_fn fn, void *ctx);

#endif

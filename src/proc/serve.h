/* SPDX-License-Identifier: Apache-2.0 */
/* Serving the requests of wire.h: what the helper program and the first process of a jail have in
 * common. Async-signal-safe, and needs nothing of the library. */
#ifndef PF_PROC_SERVE_H
#define PF_PROC_SERVE_H

#include "proc/wire.h"

/* Receive one request and its descriptors. Returns how many came, 0 for a request that came
 * incomplete (its sender sees the control socket hang up), -1 at the end. */
int pf_serve_receive(int socket, struct pf_wire_request *request, int fds[static PF_WIRE_MAX]);

/* In the fork for a request, or in a resident: be its supervisor. All signals must be blocked, and,
 * but SIGCHLD, be what pf_default_signals() makes them: once per server costs less than once per
 * command. null, retire: as in struct pf_super_spec. */
void pf_serve(const struct pf_wire_request *request, const int *fds, int null, int retire);

#endif

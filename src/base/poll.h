/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PF_BASE_POLL_H
#define PF_BASE_POLL_H

#include <poll.h>
#include <stddef.h>

/* poll(2), for whoever may not be kept from waiting by a limit: that refuses to look at more
 * descriptors than the process may have now, which may be fewer than it has. What has only hung up
 * may be told as POLLIN then, and is not told to who asks for no events. */
int pf_poll(struct pollfd *fds, size_t count, int timeout_ms);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of an origin's answer to a plain request. A proxy connection carries one request, and
 * the client has to know: an origin that promised it more could send, unasked, what the client then
 * takes for the answer of the next host. Pure functions over hostile bytes.
 */
#ifndef PF_JAIL_EGRESS_REPLY_H
#define PF_JAIL_EGRESS_REPLY_H

#include <stdbool.h>
#include <stddef.h>

#define PF_EGRESS_REPLY_MAX ((size_t)32 * 1024) /* of one head */
#define PF_EGRESS_REPLY_GROWTH ((size_t)64)

/* Rewrite a whole head of len bytes: without what it says of the connection, and saying instead
 * that this is closed at the end.
 *
 * to         receives at most len + PF_EGRESS_REPLY_GROWTH bytes
 * ret_len    how many
 * ret_final  false for an interim answer (100 Continue): another head follows
 *
 * Returns NULL, or what is wrong with it: a static string. */
const char *pf_egress_reply_rewrite(const char *data, size_t len, char *to, size_t *ret_len,
                                    bool *ret_final);

#endif

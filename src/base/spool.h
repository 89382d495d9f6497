/* SPDX-License-Identifier: Apache-2.0 */
/* Writing what pinfold_spool_read() reads. */
#ifndef PF_BASE_SPOOL_H
#define PF_BASE_SPOOL_H

#include <pinfold/result.h>

/* Two unnamed files, in $TMPDIR or /tmp, that take limit bytes together: the first bytes of each
 * stream. A quarter of the limit is stderr's share and the rest is stdout's; what one leaves of its
 * share the other has. */
int pf_spool_new(uint64_t limit, struct pinfold_spool **ret, struct pinfold_error *err);

/* Append. Keeps what fits, at the cost of what the other stream has beyond its share; after a
 * failure, which pf_spool_errno() tells, nothing more. */
void pf_spool_write(struct pinfold_spool *spool, enum pinfold_stream stream, const char *data,
                    size_t len);

/* Whether more of a stream can be kept. Once it cannot, it never can again. */
bool pf_spool_wants(const struct pinfold_spool *spool, enum pinfold_stream stream);

/* errno of the write that failed, or 0. */
int pf_spool_errno(const struct pinfold_spool *spool);

#endif

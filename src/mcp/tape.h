/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command printed, kept to be paged through: of each stream the last bytes, as many as
 * PF_MCP_TAPE_MAX. Little is kept in memory, more in a file without a name. Reading and writing may
 * be done at the same time.
 */
#ifndef PF_MCP_TAPE_H
#define PF_MCP_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pinfold/result.h>

#define PF_MCP_TAPE_MAX ((uint64_t)16 * 1024 * 1024)

struct pf_mcp_tape;

/* NULL when out of memory. */
struct pf_mcp_tape *pf_mcp_tape_new(void);
void pf_mcp_tape_free(struct pf_mcp_tape *tape); /* NULL is fine */

/* Append. What cannot be kept is counted all the same. */
void pf_mcp_tape_write(struct pf_mcp_tape *tape, enum pinfold_stream stream, const char *data,
                       size_t len);

/* No more will come: whoever waits is woken. */
void pf_mcp_tape_end(struct pf_mcp_tape *tape);

/* How many bytes have come. */
uint64_t pf_mcp_tape_total(struct pf_mcp_tape *tape, enum pinfold_stream stream);

/* Wait until more than these have come of either stream, or the end, or for ns nanoseconds. Returns
 * whether the end has come. */
bool pf_mcp_tape_wait(struct pf_mcp_tape *tape, uint64_t out, uint64_t err, int64_t ns);

/* Read up to size bytes from *offset on, which is moved to the first byte that is still kept.
 * Characters of UTF-8 are not cut at the end. Returns how many: 0 at the end. */
size_t pf_mcp_tape_read(struct pf_mcp_tape *tape, enum pinfold_stream stream, uint64_t *offset,
                        char *buffer, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A stream that becomes a text. */
#ifndef PF_CLI_TEXT_STREAM_H
#define PF_CLI_TEXT_STREAM_H

#include <stdio.h>

/* As open_memstream(3), which drops what it has no memory for and tells nobody: of this one
 * ferror() and fclose() do. The text is there after fclose(), to free(), also when it is not whole;
 * it ends with NUL, which len does not count. Returns NULL when out of memory. */
FILE *pf_text_stream(char **ret_text, size_t *ret_len);

#endif

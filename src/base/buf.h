/* SPDX-License-Identifier: Apache-2.0 */
/* A growing byte buffer with a hard limit, set when it is made. Always NUL-terminated. */
#ifndef PF_BASE_BUF_H
#define PF_BASE_BUF_H

#include <stdint.h>

#include <pinfold/result.h>

#define PF_BUF_UNLIMITED (SIZE_MAX - 1) /* for what a caller asked for whole */

struct pf_buf {
    char *data;
    size_t len;
    size_t capacity;
    size_t limit; /* len never exceeds it */
};

#define PF_BUF_INIT(max) \
    {                    \
        .limit = (max)   \
    }

/* Make room for more bytes. Returns 0, -PINFOLD_ENOMEM, or -PINFOLD_EVALUE past the limit; the
 * buffer is as it was on failure. */
int pf_buf_reserve(struct pf_buf *buf, size_t more);
int pf_buf_append(struct pf_buf *buf, const void *data, size_t len);
int pf_buf_append_text(struct pf_buf *buf, const char *text);
/* As one word of a POSIX shell's, in single quotes. On failure a part of it may stand there. */
int pf_buf_append_word(struct pf_buf *buf, const char *text);
int pf_buf_printf(struct pf_buf *buf, const char *format, ...) PINFOLD_PRINTF(2, 3);

/* Hand the bytes over; the buffer is empty after. Never gives NULL data unless out of memory:
 * then returns -PINFOLD_ENOMEM. */
int pf_buf_take(struct pf_buf *buf, struct pinfold_bytes *ret_bytes);
void pf_buf_done(struct pf_buf *buf);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int pf_buf_reserve(struct pf_buf *buf, size_t more)
{
    size_t capacity = buf->capacity ? buf->capacity : 64;
    char *data;

    if (more > buf->limit - buf->len)
        return -PINFOLD_EVALUE;
    if (buf->data && buf->len + more < buf->capacity)
        return 0;
    while (capacity <= buf->len + more)
        capacity = capacity > SIZE_MAX / 2 ? buf->len + more + 1 : capacity * 2;
    if (capacity > buf->limit + 1)
        capacity = buf->limit + 1;
    data = realloc(buf->data, capacity);
    if (!data)
        return -PINFOLD_ENOMEM;
    data[buf->len] = '\0';
    buf->data = data;
    buf->capacity = capacity;
    return 0;
}

int pf_buf_append(struct pf_buf *buf, const void *data, size_t len)
{
    int r = pf_buf_reserve(buf, len);

    if (r < 0)
        return r;
    if (len > 0)
        memcpy(buf->data + buf->len, data, len);
    buf->len += len;
    buf->data[buf->len] = '\0';
    return 0;
}

int pf_buf_append_text(struct pf_buf *buf, const char *text)
{
    return pf_buf_append(buf, text, strlen(text));
}

int pf_buf_append_word(struct pf_buf *buf, const char *text)
{
    int r = pf_buf_append(buf, "'", 1);

    for (; r == 0 && *text; text++)
        r = *text == '\'' ? pf_buf_append_text(buf, "'\\''") : pf_buf_append(buf, text, 1);
    return r == 0 ? pf_buf_append(buf, "'", 1) : r;
}

int pf_buf_printf(struct pf_buf *buf, const char *format, ...)
{
    va_list args;
    int len, r;

    va_start(args, format);
    len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (len < 0)
        return -PINFOLD_EVALUE;
    r = pf_buf_reserve(buf, (size_t)len);
    if (r < 0)
        return r;
    va_start(args, format);
    vsnprintf(buf->data + buf->len, (size_t)len + 1, format, args);
    va_end(args);
    buf->len += (size_t)len;
    return 0;
}

int pf_buf_take(struct pf_buf *buf, struct pinfold_bytes *ret_bytes)
{
    int r = pf_buf_reserve(buf, 0);

    if (r < 0)
        return r;
    ret_bytes->data = buf->data;
    ret_bytes->len = buf->len;
    *buf = (struct pf_buf)PF_BUF_INIT(buf->limit);
    return 0;
}

void pf_buf_done(struct pf_buf *buf)
{
    free(buf->data);
    *buf = (struct pf_buf)PF_BUF_INIT(buf->limit);
}

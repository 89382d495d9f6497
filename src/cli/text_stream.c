/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text_stream.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 256 };

struct text {
    char *data;
    size_t len, room; /* there is always room for the NUL */
    bool lost;
    char **ret_text;
    size_t *ret_len;
};

static bool grow(struct text *text, size_t more)
{
    size_t room = 2 * text->room + more;
    char *data =
            more < SIZE_MAX / 4 && text->room < SIZE_MAX / 4 ? realloc(text->data, room) : NULL;

    if (!data)
        return false;
    text->data = data;
    text->room = room;
    return true;
}

/* Returns how much was taken: all, or nothing from the first failure on. */
static ssize_t take(void *cookie, const char *data, size_t len)
{
    struct text *text = cookie;

    text->lost = text->lost || (len >= text->room - text->len && !grow(text, len));
    if (text->lost) {
        errno = ENOMEM;
        return 0;
    }
    memcpy(text->data + text->len, data, len);
    text->len += len;
    text->data[text->len] = '\0';
    return (ssize_t)len;
}

/* For ftell() alone. */
static int tell(void *cookie, off64_t *offset, int whence)
{
    const struct text *text = cookie;

    if (whence != SEEK_CUR || *offset != 0) {
        errno = ESPIPE;
        return -1;
    }
    *offset = (off64_t)text->len;
    return 0;
}

static int finish(void *cookie)
{
    struct text *text = cookie;
    bool lost = text->lost;

    *text->ret_text = text->data;
    *text->ret_len = text->len;
    free(text);
    return lost ? -1 : 0;
}

FILE *pf_text_stream(char **ret_text, size_t *ret_len)
{
    static const cookie_io_functions_t calls = { .write = take, .seek = tell, .close = finish };
    struct text *text = calloc(1, sizeof(*text));
    FILE *stream = NULL;

    if (text) {
        *text = (struct text){ .room = FIRST_ROOM, .ret_text = ret_text, .ret_len = ret_len };
        text->data = calloc(1, FIRST_ROOM);
    }
    if (text && text->data)
        stream = fopencookie(text, "w", calls);
    if (!stream && text) {
        free(text->data);
        free(text);
    }
    return stream;
}

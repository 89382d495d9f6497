/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/agent_out.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "cli/say.h"

/* A pipe or a terminal that polls writable takes this much without blocking. */
enum { PIECE = 4096, LOOK_MS = 100 };

/* Write what stands for one byte that is not shown. Returns its length. */
static size_t escape(unsigned char byte, char *out)
{
    static const char hex[] = "0123456789abcdef";
    const char *letter = byte == '\n' ? "n" : byte == '\t' ? "t" : byte == '\r' ? "r" : NULL;

    out[0] = '\\';
    out[1] = letter ? *letter : 'x';
    if (letter)
        return 2;
    out[2] = hex[byte >> 4];
    out[3] = hex[byte & 15];
    return 4;
}

char *pf_clean(const char *text, size_t len, enum pf_keep keep, size_t most)
{
    /* Each byte becomes four at most; of what is cut no more than that is looked at. */
    size_t room = most && most < len ? most : len, shown = 0, mark = 0;
    char *clean = malloc(4 * room + 8), *out = clean;

    if (!clean)
        return NULL;
    for (const char *at = text; at < text + len;) {
        size_t bytes = pf_printable_char(at);
        bool stays = (*at == '\n' || *at == '\t') && keep == PF_KEEP_LINES;
        size_t made;

        if (most && shown + 3 <= most)
            mark = (size_t)(out - clean); /* where "..." still has a place */
        if (most && shown >= most) {
            memcpy(clean + mark, "...", 4);
            return clean;
        }
        if (stays || bytes) {
            made = stays ? 1 : bytes;
            memcpy(out, at, made);
            at += made;
            shown++;
        } else {
            made = escape((unsigned char)*at++, out);
            shown += made;
        }
        out += made;
    }
    *out = '\0';
    return clean;
}

int pf_put_or_stop(int fd, const char *data, size_t len)
{
    while (len) {
        struct pollfd ready = { .fd = fd, .events = POLLOUT };
        ssize_t n;

        if (pf_interrupt_signal())
            return EINTR;
        if (poll(&ready, 1, LOOK_MS) <= 0)
            continue;
        n = write(fd, data, len < PIECE ? len : PIECE);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return errno;
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

bool pf_has_colour(int fd)
{
    const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

    return isatty(fd) && !(no && *no) && term && *term && strcmp(term, "dumb") != 0;
}

size_t pf_width(int fd)
{
    struct winsize size = { 0 };

    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20 ? size.ws_col : 100;
}

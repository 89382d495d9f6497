/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/stream.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <pinfold/backend.h>

#include "cli/interrupt.h"

/* A reader that does not read must not hold up Ctrl-C, nor the deadline: the library looks at
 * both only between two calls of us. */
static bool must_stop(struct pf_outlet *out)
{
    if (pinfold_cancel_fired(out->cancel))
        return true;
    out->late = pf_now_ns() >= out->deadline_ns;
    return out->late;
}

static int pass(struct pf_outlet *out, int fd, const char *data, size_t len)
{
    while (len) {
        ssize_t n = write(fd, data, len);
        if (n >= 0) {
            data += n;
            len -= (size_t)n;
        } else if (errno == EINTR || errno == EAGAIN) {
            /* Whoever gave us a non-blocking stdout shares it; wait instead of changing it. */
            if (errno == EAGAIN)
                poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, 100);
            if (must_stop(out))
                return -1;
        } else {
            out->failed = errno;
            out->failed_fd = fd;
            return -1;
        }
    }
    return 0;
}

/* How much more may pass. A quarter of the limit is kept for stderr: what went wrong is mostly said
 * last, after a flood on stdout. */
static uint64_t room_for(const struct pf_outlet *out, enum pinfold_stream stream)
{
    uint64_t room = out->limit - out->passed, share = out->limit - out->limit / 4;

    if (!out->limit)
        return UINT64_MAX;
    if (out->full[stream == PINFOLD_STDERR])
        return 0;
    if (stream == PINFOLD_STDERR)
        return room;
    share -= out->passed_stdout;
    return share < room ? share : room;
}

/* Where to cut what is to fit: not within a character of UTF-8 that would be whole with at most
 * three bytes more. Bytes that are no UTF-8 lose at most as many. */
static size_t fit(const char *data, size_t len, uint64_t room)
{
    size_t fits = len < room ? len : (size_t)room, lead = fits;

    for (int back = 0; back < 3 && lead > 0; back++) {
        unsigned char byte = (unsigned char)data[--lead];
        size_t whole = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;

        if (whole > 1)
            return lead + whole > room ? lead : fits;
        if (byte < 0x80)
            break;
    }
    return fits;
}

int pf_outlet_write(void *ctx, enum pinfold_stream stream, const char *data, size_t len)
{
    struct pf_outlet *out = ctx;
    size_t fits = fit(data, len, room_for(out, stream));

    if (fits < len) {
        len = fits;
        out->cut = true;
        out->full[stream == PINFOLD_STDERR] = true; /* a little room may be left */
    }
    if (!len)
        return PINFOLD_OUTPUT_ENOUGH; /* what nobody reads costs the library next to nothing */
    if (!out->armed) {
        /* Only now: a silent command costs no timer. */
        pf_interrupt_writes_at(out->deadline_ns);
        out->armed = true;
    }
    out->passed += len;
    if (stream == PINFOLD_STDOUT)
        out->passed_stdout += len;
    return pass(out, stream == PINFOLD_STDERR ? STDERR_FILENO : STDOUT_FILENO, data, len);
}

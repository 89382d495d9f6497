/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/stream.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <pinfold/backend.h>

#include "cli/interrupt.h"

/* A reader that does not read must not hold up Ctrl-C, nor the deadline: the library looks at
 * both only between two calls of us. */
static bool must_stop(struct pf_stream *out)
{
    if (pinfold_cancel_fired(out->cancel))
        return true;
    out->late = pf_now_ns() >= out->deadline_ns;
    return out->late;
}

static int pass(struct pf_stream *out, int fd, const char *data, size_t len)
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

int pf_stream_write(void *ctx, enum pinfold_stream stream, const char *data, size_t len)
{
    struct pf_stream *out = ctx;

    if (out->limit && len > out->limit - out->passed) {
        len = (size_t)(out->limit - out->passed);
        out->cut = true;
    }
    if (!len)
        return PINFOLD_OUTPUT_ENOUGH; /* what nobody reads costs the library next to nothing */
    if (!out->armed) {
        /* Only now: a silent command costs no timer. */
        pf_interrupt_writes_at(out->deadline_ns);
        out->armed = true;
    }
    out->passed += len;
    return pass(out, stream == PINFOLD_STDERR ? STDERR_FILENO : STDOUT_FILENO, data, len);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The stdio transport: one client, one message a line. */
#include "mcp/stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/say.h"
#include "mcp/call.h"
#include "mcp/state.h"
#include "mcp/stop.h"

/* A client that has closed its end may have asked for something just before: what is quick is
 * still answered. Nobody waits longer for a reader that does not read. */
#define GRACE_NS (PF_MCP_SECOND / 2)

/* How often a writer that waits looks whether it is still to. */
enum { LOOK_MS = 100 };

struct stdio {
    struct pf_mcp_server *server;
    struct pf_mcp_session *session;
    int in, out; /* our own: 0 and 1 are for nobody any more */
    bool out_socket;
    bool broken;         /* nobody reads: by the session's lock on sending */
    atomic_int failed;   /* errno, where it is no client that went: a full disk, or no stdout */
    atomic_bool leaving; /* the client has closed its end */
    char *line;          /* what has come of the next message */
    size_t len, capacity;
    bool skipping; /* the message is too long, and its rest is dropped */
};

/* ---- sending ---- */

/* Wait until something can be written, or not at all when lossy is set. Returns false when nothing
 * will be. */
static bool wait_writable(struct stdio *io, bool lossy)
{
    struct pollfd fds[] = { { .fd = io->out, .events = POLLOUT },
                            { .fd = io->in, .events = POLLRDHUP } };
    int64_t since = pf_mcp_now();

    for (;;) {
        poll(fds, 2, lossy ? 0 : LOOK_MS);
        if (fds[0].revents)
            return !(fds[0].revents & (POLLERR | POLLNVAL));
        if (lossy)
            return false;
        /* The thread that would read this may be the one that waits here. */
        if (fds[1].revents) {
            io->leaving = true;
            fds[1].fd = -1;
            fds[1].revents = 0;
        }
        /* The client is about to go, or we are: its time runs from then on. */
        if (!io->leaving && !pf_mcp_stop_signal())
            since = pf_mcp_now();
        else if (pf_mcp_now() - since >= GRACE_NS)
            return false;
    }
}

/* Write what goes without waiting. Others may share the pipe's open file, so that its mode is not
 * ours to change: a pipe that is writable takes PIPE_BUF at once. */
static ssize_t write_some(struct stdio *io, const char *data, size_t len)
{
    if (io->out_socket)
        return send(io->out, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    return write(io->out, data, len < 4096 ? len : 4096);
}

/* Write all of it. What has been begun is never lossy: half a line would spoil the next one. */
static bool put(struct stdio *io, const char *data, size_t len, bool lossy)
{
    while (len) {
        ssize_t n = -1;

        errno = EPIPE; /* who is not waited for any longer has gone */
        if (wait_writable(io, lossy))
            n = write_some(io, data, len);
        if (n > 0) {
            data += n;
            len -= (size_t)n;
            lossy = false;
        } else if (lossy) {
            return true;
        } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
            return false;
        }
    }
    return true;
}

static void send_message(void *ctx, void *origin, const char *text, size_t len, bool lossy)
{
    struct stdio *io = ctx;

    (void)origin;
    if (io->broken)
        return;
    if (put(io, text, len, lossy) && put(io, "\n", 1, false))
        return;
    io->broken = true;
    if (errno != EPIPE && errno != ECONNRESET)
        io->failed = errno;
}

static const struct pf_mcp_transport transport = { .send = send_message };

/* ---- receiving ---- */

/* A line has come, without its newline. */
static void take_line(struct stdio *io, const char *line, size_t len)
{
    if (len && line[len - 1] == '\r')
        len--;
    if (io->skipping || len > PF_MCP_MESSAGE_MAX)
        pf_mcp_refuse_long(io->session, NULL);
    else if (len)
        pf_mcp_receive(io->session, line, len, NULL);
    io->skipping = false;
}

/* Make room for more of a line; what becomes too long is dropped. */
static bool make_room(struct stdio *io)
{
    size_t capacity = io->capacity ? 2 * io->capacity : 65536;
    char *grown;

    if (io->len > PF_MCP_MESSAGE_MAX) {
        io->skipping = true;
        io->len = 0;
    }
    if (io->len < io->capacity)
        return true;
    grown = realloc(io->line, capacity);
    if (!grown)
        return false;
    io->line = grown;
    io->capacity = capacity;
    return true;
}

/* Take the lines of what was read; begun is where the last search for a newline ended. */
static void take_lines(struct stdio *io, size_t begun)
{
    char *start = io->line, *end;

    while ((end = memchr(io->line + begun, '\n', io->len - begun))) {
        size_t whole = (size_t)(end - start);

        take_line(io, start, whole);
        start = end + 1;
        begun = (size_t)(start - io->line);
    }
    io->len -= (size_t)(start - io->line);
    memmove(io->line, start, io->len);
    if (io->skipping)
        io->len = 0;
}

/* Read until the client is gone or a signal has come. Returns 0 or -PINFOLD_ENOMEM. */
static int read_all(struct stdio *io, struct pinfold_error *err)
{
    struct pollfd fds[] = {
        { .fd = io->in, .events = POLLIN },
        { .fd = pf_mcp_stop_fd(), .events = POLLIN },
    };

    for (;;) {
        ssize_t n;

        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            break;
        if (fds[1].revents)
            return 0;
        if (!fds[0].revents)
            continue;
        if (!make_room(io))
            return pf_mcp_nomem(err);
        n = read(io->in, io->line + io->len, io->capacity - io->len);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0)
            break;
        io->len += (size_t)n;
        take_lines(io, io->len - (size_t)n);
        if (io->failed)
            break; /* nobody would hear of what else was done */
    }
    /* The last line may lack its end. */
    io->leaving = true;
    if (io->len)
        take_line(io, io->line, io->len);
    return 0;
}

/* Give what is under way a moment, if there is still somebody who could want to know. */
static void linger(struct stdio *io)
{
    int64_t until = pf_mcp_now() + GRACE_NS;
    struct pollfd out = { .fd = io->out };

    while (pf_mcp_session_calls(io->session) && pf_mcp_now() < until && !pf_mcp_stop_signal())
        if (poll(&out, 1, 5) > 0)
            break;
}

/* Take 0 and 1 away from everybody else: whatever prints prints to stderr, and what is started
 * cannot read what the client says. */
static int take_descriptors(struct stdio *io, struct pinfold_error *err)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct stat st;
    int r = 0;

    io->in = fcntl(0, F_DUPFD_CLOEXEC, 3);
    io->out = fcntl(1, F_DUPFD_CLOEXEC, 3);
    if (null < 0 || io->in < 0 || io->out < 0 || dup2(null, 0) < 0 || dup2(2, 1) < 0) {
        *err = (struct pinfold_error){ .code = PINFOLD_EOS, .sys_errno = errno };
        snprintf(err->msg, sizeof(err->msg), "take over stdin and stdout: %s",
                 pf_error_words(errno));
        r = -PINFOLD_EOS;
    }
    if (null > 2)
        close(null);
    io->out_socket = fstat(io->out, &st) == 0 && S_ISSOCK(st.st_mode);
    return r;
}

int pf_mcp_serve_stdio(struct pf_mcp_server *server, enum pinfold_attach_mode mode,
                       struct pinfold_error *err)
{
    struct stdio io = { .server = server, .in = -1, .out = -1 };
    struct pf_mcp_session_options options = {
        .name = "stdio",
        .mode = mode,
        .local = true,
        .transport = &transport,
        .ctx = &io,
    };
    int r = take_descriptors(&io, err);

    if (r == 0)
        r = pf_mcp_session_new(server, &options, &io.session, err);
    if (r == 0) {
        r = read_all(&io, err);
        linger(&io);
    }
    pf_mcp_session_end(io.session);
    if (r == 0 && io.failed) {
        *err = (struct pinfold_error){ .code = PINFOLD_EOS, .sys_errno = io.failed };
        snprintf(err->msg, sizeof(err->msg), "write to stdout: %s; the client was told no more",
                 pf_error_words(io.failed));
        r = -PINFOLD_EOS;
    }
    free(io.line);
    if (io.in >= 0)
        close(io.in);
    if (io.out >= 0)
        close(io.out);
    return r;
}

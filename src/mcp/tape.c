/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/tape.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mcp/state.h"

/* What one stream may take of memory before it becomes a file. */
enum { MEMORY_MAX = 64 * 1024 };

/* Byte n is at n modulo the size of where it lies. */
struct stream {
    char *memory;
    size_t capacity;
    int fd; /* -1: it is in memory */
    uint64_t total;
    uint64_t first; /* the first byte that is kept */
    bool broken;    /* no memory and no file could be had: nothing is kept any more */
};

struct pf_mcp_tape {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct stream streams[2];
    bool ended;
};

struct pf_mcp_tape *pf_mcp_tape_new(void)
{
    struct pf_mcp_tape *tape = calloc(1, sizeof(*tape));

    if (!tape)
        return NULL;
    pthread_mutex_init(&tape->lock, NULL);
    pf_mcp_cond_init(&tape->changed);
    tape->streams[0].fd = tape->streams[1].fd = -1;
    return tape;
}

void pf_mcp_tape_free(struct pf_mcp_tape *tape)
{
    if (!tape)
        return;
    for (int i = 0; i < 2; i++) {
        free(tape->streams[i].memory);
        if (tape->streams[i].fd >= 0)
            close(tape->streams[i].fd);
    }
    pthread_cond_destroy(&tape->changed);
    pthread_mutex_destroy(&tape->lock);
    free(tape);
}

static struct stream *stream_of(struct pf_mcp_tape *tape, enum pinfold_stream stream)
{
    return &tape->streams[stream == PINFOLD_STDERR];
}

static int unnamed_file(void)
{
    const char *dir = secure_getenv("TMPDIR");
    int fd = open(dir && *dir ? dir : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);

    return fd >= 0 ? fd : memfd_create("pinfold-output", MFD_CLOEXEC);
}

static bool write_all(int fd, const char *data, size_t len, uint64_t at)
{
    while (len) {
        ssize_t n = pwrite(fd, data, len, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        data += n;
        len -= (size_t)n;
        at += (uint64_t)n;
    }
    return true;
}

/* Make the memory large enough, or a file of it. Returns false when that cannot be. */
static bool make_room(struct stream *to, size_t more)
{
    size_t capacity = to->capacity ? to->capacity : 1024;
    char *grown;

    if (to->fd >= 0 || to->total + more <= to->capacity)
        return true;
    if (to->total + more > MEMORY_MAX) {
        int fd = unnamed_file();
        if (fd < 0)
            return false;
        if (!write_all(fd, to->memory, (size_t)to->total, 0)) {
            close(fd);
            return false;
        }
        free(to->memory);
        to->memory = NULL;
        to->fd = fd;
        return true;
    }
    while (capacity < to->total + more)
        capacity *= 2;
    grown = realloc(to->memory, capacity);
    if (!grown)
        return false;
    to->memory = grown;
    to->capacity = capacity;
    return true;
}

/* Write a piece that is no longer than the ring, at its place there. */
static bool put(struct stream *to, const char *data, size_t len)
{
    uint64_t at = to->total % PF_MCP_TAPE_MAX;
    size_t before = len < PF_MCP_TAPE_MAX - at ? len : (size_t)(PF_MCP_TAPE_MAX - at);

    if (to->fd < 0) {
        memcpy(to->memory + to->total, data, len);
        return true;
    }
    return write_all(to->fd, data, before, at) && write_all(to->fd, data + before, len - before, 0);
}

void pf_mcp_tape_write(struct pf_mcp_tape *tape, enum pinfold_stream stream, const char *data,
                       size_t len)
{
    struct stream *to = stream_of(tape, stream);

    pthread_mutex_lock(&tape->lock);
    if (!to->broken)
        to->broken = len > PF_MCP_TAPE_MAX || !make_room(to, len) || !put(to, data, len);
    to->total += len;
    if (to->broken)
        to->first = to->total;
    else if (to->total - to->first > PF_MCP_TAPE_MAX)
        to->first = to->total - PF_MCP_TAPE_MAX;
    pthread_cond_broadcast(&tape->changed);
    pthread_mutex_unlock(&tape->lock);
}

void pf_mcp_tape_end(struct pf_mcp_tape *tape)
{
    pthread_mutex_lock(&tape->lock);
    tape->ended = true;
    pthread_cond_broadcast(&tape->changed);
    pthread_mutex_unlock(&tape->lock);
}

uint64_t pf_mcp_tape_total(struct pf_mcp_tape *tape, enum pinfold_stream stream)
{
    uint64_t total;

    pthread_mutex_lock(&tape->lock);
    total = stream_of(tape, stream)->total;
    pthread_mutex_unlock(&tape->lock);
    return total;
}

bool pf_mcp_tape_wait(struct pf_mcp_tape *tape, uint64_t out, uint64_t err, int64_t ns)
{
    struct timespec until = pf_mcp_after(ns);
    bool ended;

    pthread_mutex_lock(&tape->lock);
    while (!tape->ended && tape->streams[0].total <= out && tape->streams[1].total <= err)
        if (pthread_cond_timedwait(&tape->changed, &tape->lock, &until) != 0)
            break;
    ended = tape->ended;
    pthread_mutex_unlock(&tape->lock);
    return ended;
}

/* How much of a text to take, so that a character that goes on behind it is not cut. */
static size_t whole(const char *text, size_t len)
{
    for (size_t back = 1; back <= 3 && back < len; back++) {
        unsigned char byte = (unsigned char)text[len - back];
        size_t width = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;

        if (width > 1)
            return width > back ? len - back : len;
        if (byte < 0x80)
            break;
    }
    return len;
}

/* Read from the ring. The lock is held. */
static size_t get(const struct stream *from, uint64_t offset, char *buffer, size_t len)
{
    uint64_t at = offset % PF_MCP_TAPE_MAX;
    size_t done = 0;

    if (from->fd < 0) {
        memcpy(buffer, from->memory + offset, len);
        return len;
    }
    while (done < len) {
        size_t piece = len - done;
        ssize_t n;

        if (piece > PF_MCP_TAPE_MAX - at)
            piece = (size_t)(PF_MCP_TAPE_MAX - at);
        n = pread(from->fd, buffer + done, piece, (off_t)at);
        if (n <= 0)
            break;
        done += (size_t)n;
        at = (at + (uint64_t)n) % PF_MCP_TAPE_MAX;
    }
    return done;
}

size_t pf_mcp_tape_read(struct pf_mcp_tape *tape, enum pinfold_stream stream, uint64_t *offset,
                        char *buffer, size_t size)
{
    const struct stream *from = stream_of(tape, stream);
    size_t len = 0;
    bool more;

    pthread_mutex_lock(&tape->lock);
    if (*offset < from->first)
        *offset = from->first;
    if (*offset < from->total) {
        len = from->total - *offset < size ? (size_t)(from->total - *offset) : size;
        len = get(from, *offset, buffer, len);
    }
    more = !tape->ended || *offset + len < from->total;
    pthread_mutex_unlock(&tape->lock);
    return more ? whole(buffer, len) : len;
}

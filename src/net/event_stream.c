/* SPDX-License-Identifier: Apache-2.0 */
#include "net/event_stream.h"

#include <endian.h>
#include <string.h>
#include <zlib.h>

#include "base/error.h"

/* A message: its length, that of its headers, the checksum of both, headers, payload, the checksum
 * of everything before. Numbers are big-endian. */
#define PRELUDE 12
#define OVERHEAD 16

static uint32_t number_at(const unsigned char *data)
{
    uint32_t value;

    memcpy(&value, data, sizeof(value));
    return be32toh(value);
}

static uint32_t checksum(const unsigned char *data, size_t len)
{
    return (uint32_t)crc32_z(0, data, len);
}

static int broken(struct pinfold_error *err, const char *what)
{
    return pf_fail(err, PINFOLD_EBACKEND, "read an event stream: %s", what);
}

int pf_event_stream_feed(struct pf_event_stream *stream, const void *data, size_t len,
                         struct pinfold_error *err)
{
    struct pf_buf *buf = &stream->buf;
    int r;

    /* What was given out makes room first. */
    if (stream->used > 0) {
        memmove(buf->data, buf->data + stream->used, buf->len - stream->used);
        buf->len -= stream->used;
        stream->used = 0;
    }
    r = pf_buf_append(buf, data, len);
    if (r == -PINFOLD_EVALUE)
        return broken(err, "more arrives than is taken");
    return r < 0 ? pf_fail_nomem(err) : 0;
}

/* How many bytes the value of a header takes, its length included, or -1 when that cannot be. */
static ssize_t value_size(unsigned char type, const unsigned char *value, size_t left)
{
    static const signed char fixed[] = { 0, 0, 1, 2, 4, 8, -1, -1, 8, 16 };
    size_t size;

    if (type >= sizeof(fixed))
        return -1;
    if (fixed[type] >= 0)
        return (size_t)fixed[type] <= left ? fixed[type] : -1;
    if (left < 2)
        return -1;
    size = 2 + ((size_t)value[0] << 8 | value[1]);
    return size <= left ? (ssize_t)size : -1;
}

#define TYPE_TEXT 7

struct header {
    const unsigned char *name, *value;
    size_t name_len, value_len;
    unsigned char type;
};

/* Take one header off the front of *at. Returns 1, 0 at the end, or -1 when it cannot be one. */
static int next_header(const unsigned char **at, const unsigned char *end, struct header *ret)
{
    const unsigned char *name = *at + 1, *type;
    ssize_t size;

    if (*at == end)
        return 0;
    ret->name_len = **at;
    if (ret->name_len == 0 || (size_t)(end - name) < ret->name_len + 1)
        return -1;
    type = name + ret->name_len;
    size = value_size(*type, type + 1, (size_t)(end - type - 1));
    if (size < 0)
        return -1;
    *ret = (struct header){
        .name = name,
        .name_len = ret->name_len,
        .type = *type,
        .value = *type == TYPE_TEXT ? type + 3 : type + 1,
        .value_len = *type == TYPE_TEXT ? (size_t)size - 2 : (size_t)size,
    };
    *at = type + 1 + size;
    return 1;
}

static int check_headers(const struct pf_event *event)
{
    const unsigned char *at = event->headers;
    struct header header;
    int r;

    do
        r = next_header(&at, event->headers + event->headers_len, &header);
    while (r > 0);
    return r;
}

int pf_event_stream_next(struct pf_event_stream *stream, struct pf_event *ret,
                         struct pinfold_error *err)
{
    const unsigned char *data = (const unsigned char *)stream->buf.data + stream->used;
    size_t left = stream->buf.len - stream->used, size, headers;

    if (left < PRELUDE)
        return 0;
    size = number_at(data);
    headers = number_at(data + 4);
    if (number_at(data + 8) != checksum(data, 8))
        return broken(err, "the checksum of a message's lengths is wrong");
    if (size < OVERHEAD || headers > size - OVERHEAD)
        return broken(err, "the lengths of a message contradict each other");
    if (size > PF_EVENT_MESSAGE_MAX || headers > PF_EVENT_HEADERS_MAX)
        return broken(err, "a message is too large");
    if (left < size)
        return 0;
    if (number_at(data + size - 4) != checksum(data, size - 4))
        return broken(err, "the checksum of a message is wrong");
    *ret = (struct pf_event){
        .headers = data + PRELUDE,
        .headers_len = headers,
        .payload = data + PRELUDE + headers,
        .payload_len = size - OVERHEAD - headers,
    };
    if (check_headers(ret) < 0)
        return broken(err, "the headers of a message are damaged");
    stream->used += size;
    return 1;
}

int pf_event_stream_end(const struct pf_event_stream *stream, struct pinfold_error *err)
{
    return stream->buf.len > stream->used ? broken(err, "it ends inside a message") : 0;
}

struct pf_event_text pf_event_header(const struct pf_event *event, const char *name)
{
    const unsigned char *at = event->headers;
    size_t len = strlen(name);
    struct header header;

    while (next_header(&at, event->headers + event->headers_len, &header) > 0)
        if (header.type == TYPE_TEXT && header.name_len == len &&
            memcmp(header.name, name, len) == 0)
            return (struct pf_event_text){ (const char *)header.value, header.value_len };
    return (struct pf_event_text){ NULL, 0 };
}

void pf_event_stream_done(struct pf_event_stream *stream)
{
    pf_buf_done(&stream->buf);
}

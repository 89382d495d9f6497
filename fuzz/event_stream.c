/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies of AgentCore as event streams. The first byte says how many bytes arrive at a time, the
 * second whether the checksums are put right first: no mutation would get past them by chance.
 */
#include <endian.h>
#include <zlib.h>

#include "net/agentcore_reply.h"
#include "fuzz.h"

/* The reader of errors asks for headers of HTTP, of which there are none here. */
const char *pf_http_header(const struct pf_http_response *response, const char *name)
{
    (void)response;
    (void)name;
    return NULL;
}

static uint32_t get(const uint8_t *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof(value));
    return be32toh(value);
}

static void put(uint8_t *at, uint32_t value)
{
    value = htobe32(value);
    memcpy(at, &value, sizeof(value));
}

/* As far as the lengths can be lengths. */
static void mend_checksums(uint8_t *data, size_t size)
{
    for (size_t at = 0, len; size - at >= 16; at += len) {
        len = get(data + at);
        put(data + at + 8, (uint32_t)crc32_z(0, data + at, 8));
        if (len < 16 || len > size - at)
            return;
        put(data + at + len - 4, (uint32_t)crc32_z(0, data + at, len - 4));
    }
}

/* What became of a stream. */
struct outcome {
    int result;
    size_t events; /* of the decoder */
    unsigned messages, results;
    bool failed;
};

static struct outcome decode(const uint8_t *data, size_t size, size_t step)
{
    struct pf_event_stream stream = PF_EVENT_STREAM_INIT;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct outcome outcome = { 0 };
    struct pf_event event;
    int r = 0;

    for (size_t at = 0; at < size && r >= 0; at += step) {
        size_t len = size - at < step ? size - at : step;
        demand(pf_event_stream_feed(&stream, data + at, len, &err) == 0);
        while ((r = pf_event_stream_next(&stream, &event, &err)) > 0) {
            demand(event.payload == event.headers + event.headers_len);
            demand(event.headers_len + event.payload_len + 16 <= size);
            (void)pf_event_header(&event, ":message-type");
            outcome.events++;
        }
    }
    outcome.result = r < 0 ? r : pf_event_stream_end(&stream, &err);
    demand((outcome.result == 0) == (err.code == 0));
    pf_event_stream_done(&stream);
    return outcome;
}

static struct outcome understand(const uint8_t *data, size_t size, size_t step)
{
    struct pf_agentcore_stream stream = PF_AGENTCORE_STREAM_INIT;
    struct pf_buf text = PF_BUF_INIT(PF_BUF_UNLIMITED);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct outcome outcome = { 0 };
    int r = 0;

    for (size_t at = 0; at < size && r == 0; at += step)
        r = pf_agentcore_stream_take(&stream, data + at, size - at < step ? size - at : step, &err);
    outcome.result = r < 0 ? r : pf_agentcore_stream_end(&stream, &err);
    outcome.messages = stream.messages;
    outcome.results = stream.result.events;
    outcome.failed = stream.failed;
    demand((outcome.result == 0) == (err.code == 0));
    demand(stream.result.events <= stream.messages);
    if (stream.result.events > 0)
        demand(json_is_array(stream.result.content));
    demand(pf_agentcore_result_text(&stream.result, &text) == 0);
    pf_buf_done(&text);
    pf_agentcore_stream_done(&stream);
    return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct outcome whole, pieces;
    uint8_t *copy;
    size_t step;

    if (size < 2 || size > 1 << 20)
        return 0;
    step = data[0] == 0 ? size : data[0];
    copy = malloc(size - 1); /* not a byte more: overruns are seen */
    demand(copy != NULL);
    memcpy(copy, data + 2, size - 2);
    if (data[1] & 1)
        mend_checksums(copy, size - 2);
    whole = decode(copy, size - 2, size);
    pieces = decode(copy, size - 2, step);
    demand(whole.events == pieces.events && (whole.result == 0) == (pieces.result == 0));
    whole = understand(copy, size - 2, size);
    pieces = understand(copy, size - 2, step);
    demand(whole.messages == pieces.messages && whole.results == pieces.results);
    demand(whole.failed == pieces.failed && (whole.result == 0) == (pieces.result == 0));
    free(copy);
    return 0;
}

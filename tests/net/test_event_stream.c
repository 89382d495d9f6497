/* SPDX-License-Identifier: Apache-2.0 */
/* Replies as raw bytes, with the messages that AWS's client read from them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "net/event_stream.h"
#include "vectors.h"

static struct pinfold_error err;

/* Read a whole reply in pieces of this size, up to a cut. Returns how many messages there were, and
 * whether it ended well. */
static size_t read_in_pieces(const unsigned char *body, size_t len, size_t piece, bool *ret_well)
{
    PF_CLEANUP(pf_event_stream_done) struct pf_event_stream stream = PF_EVENT_STREAM_INIT;
    struct pf_event event;
    size_t count = 0;
    int r = 0;

    for (size_t at = 0; at < len && r >= 0; at += piece) {
        size_t part = len - at < piece ? len - at : piece;
        assert_int_equal(pf_event_stream_feed(&stream, body + at, part, &err), 0);
        while ((r = pf_event_stream_next(&stream, &event, &err)) > 0)
            count++;
    }
    *ret_well = r >= 0 && pf_event_stream_end(&stream, &err) == 0;
    if (!*ret_well)
        assert_int_equal(err.code, PINFOLD_EBACKEND);
    return count;
}

static void check_header(const struct pf_event *event, const char *name, const json_t *header)
{
    struct pf_event_text text = pf_event_header(event, name);
    const json_t *value = json_object_get(header, "value");

    if (strcmp(text_of(header, "type"), "string") != 0) {
        assert_null(text.data);
        return;
    }
    assert_int_equal(text.len, json_string_length(value));
    assert_memory_equal(text.data, json_string_value(value), text.len);
}

static void check_event(const struct pf_event *event, const json_t *message)
{
    const json_t *payload = json_object_get(message, "payloadUtf8");
    const char *name;
    json_t *header;

    assert_int_equal(event->headers_len,
                     json_integer_value(json_object_get(message, "headersLength")));
    assert_int_equal(event->headers_len + event->payload_len + 16,
                     json_integer_value(json_object_get(message, "totalLength")));
    json_object_foreach(json_object_get(message, "headers"), name, header)
        check_header(event, name, header);
    assert_null(pf_event_header(event, ":no-such-header").data);
    if (payload) /* of a large one only the first 4,000 characters were noted */
        assert_memory_equal(event->payload, json_string_value(payload),
                            event->payload_len > 4000 ? 4000 : event->payload_len);
}

/* The recordings that are damaged on purpose, and what is wrong with them. */
static const char *fault_of(const char *name)
{
    static const char *const faults[][2] = {
        { "v40-truncated.json", "it ends inside a message" },
        { "v41-truncated-prelude.json", "it ends inside a message" },
        { "v42-bad-prelude-crc.json", "the checksum of a message's lengths is wrong" },
        { "v43-bad-message-crc.json", "the checksum of a message is wrong" },
        { "v44-connection-reset.json", "it ends inside a message" },
    };

    for (size_t i = 0; i < PF_COUNT(faults); i++)
        if (strcmp(name, faults[i][0]) == 0)
            return faults[i][1];
    return NULL;
}

static void read_recorded(const char *name, const json_t *vector)
{
    PF_CLEANUP(pf_event_stream_done) struct pf_event_stream stream = PF_EVENT_STREAM_INIT;
    const json_t *messages = json_object_get(vector, "messages");
    const char *fault = fault_of(name);
    struct pf_event event;
    size_t len, count = 0;
    _cleanup_free_ unsigned char *body = unhex(text_of(vector, "bodyHex"), &len);
    int r = pf_event_stream_feed(&stream, body, len, &err);

    assert_int_equal(r, 0);
    while ((r = pf_event_stream_next(&stream, &event, &err)) > 0)
        check_event(&event, json_array_get(messages, count++));
    if (r == 0)
        r = pf_event_stream_end(&stream, &err);
    if (!fault && r < 0)
        fail_msg("%s: %s", name, err.msg);
    if (fault) {
        assert_int_equal(r, -PINFOLD_EBACKEND);
        assert_non_null(strstr(err.msg, fault));
    } else {
        assert_int_equal(count, json_array_size(messages));
    }
}

static void recorded_replies_are_read_as_aws_does(void **state)
{
    (void)state;
    assert_true(each_vector("agentcore/vectors", "v*.json", read_recorded) >= 47);
}

static void read_piecewise(const char *name, const json_t *vector)
{
    static const size_t pieces[] = { 1, 7, 13 };
    size_t len, whole;
    _cleanup_free_ unsigned char *body = unhex(text_of(vector, "bodyHex"), &len);
    bool well, well_in_pieces;

    if (len > 20000)
        return;
    whole = read_in_pieces(body, len, len + 1, &well);
    for (size_t i = 0; i < PF_COUNT(pieces); i++)
        if (read_in_pieces(body, len, pieces[i], &well_in_pieces) != whole ||
            well != well_in_pieces)
            fail_msg("%s in pieces of %zu bytes reads differently", name, pieces[i]);
}

static void it_does_not_matter_how_the_bytes_arrive(void **state)
{
    (void)state;
    each_vector("agentcore/vectors", "v*.json", read_piecewise);
}

static size_t ends[64], end_count; /* of the messages of a reply */

static bool is_an_end(size_t at)
{
    bool found = at == 0;

    for (size_t i = 0; i < end_count; i++)
        found = found || ends[i] == at;
    return found;
}

/* Cut anywhere but between two messages: an error, never a shorter success. */
static void cut_everywhere(const char *name, const json_t *vector)
{
    size_t len, i;
    _cleanup_free_ unsigned char *body = unhex(text_of(vector, "bodyHex"), &len);
    json_t *message;
    bool well;

    if (fault_of(name))
        return;
    end_count = 0;
    json_array_foreach(json_object_get(vector, "messages"), i, message) {
        assert_true(end_count < PF_COUNT(ends));
        ends[end_count++] = (size_t)json_integer_value(json_object_get(message, "offset")) +
                            (size_t)json_integer_value(json_object_get(message, "totalLength"));
    }
    for (size_t at = 0; at <= len; at++) {
        if (at > 2000 && at + 2000 < len && at % 97 != 0)
            continue; /* inside one long text nothing else can happen */
        _cleanup_free_ unsigned char *cut =
                malloc(at + 1); /* its end is the sanitizer's to watch */
        assert_non_null(cut);
        memcpy(cut, body, at);
        read_in_pieces(cut, at, at + 1, &well);
        if (well != is_an_end(at))
            fail_msg("%s: cut at %zu of %zu bytes reads %s", name, at, len,
                     well ? "well" : "badly");
    }
}

static void a_reply_that_is_cut_is_an_error(void **state)
{
    (void)state;
    each_vector("agentcore/vectors", "v*.json", cut_everywhere);
}

/* Every bit is covered by a checksum. */
static void flip_everywhere(const char *name, const json_t *vector)
{
    size_t len;
    _cleanup_free_ unsigned char *body = unhex(text_of(vector, "bodyHex"), &len);
    bool well;

    for (size_t bit = 0; bit < 8 * len; bit++) {
        body[bit / 8] ^= (unsigned char)(1U << bit % 8);
        read_in_pieces(body, len, len + 1, &well);
        if (well)
            fail_msg("%s: bit %zu is flipped and nobody noticed", name, bit);
        body[bit / 8] ^= (unsigned char)(1U << bit % 8);
    }
}

static void a_flipped_bit_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(each_vector("agentcore/vectors", "v01*.json", flip_everywhere), 1);
    assert_int_equal(each_vector("agentcore/vectors", "v36*.json", flip_everywhere), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_replies_are_read_as_aws_does),
        cmocka_unit_test(it_does_not_matter_how_the_bytes_arrive),
        cmocka_unit_test(a_reply_that_is_cut_is_an_error),
        cmocka_unit_test(a_flipped_bit_is_an_error),
    };

    return cmocka_run_group_tests_name("event_stream", tests, NULL, NULL);
}

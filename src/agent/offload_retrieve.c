/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retrieve_offloaded_content. The pattern is plain text: a regular expression that a model wrote
 * could keep this process busy without end.
 */
#include "agent/offload.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/storage.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/utf8.h"

enum { SHOWN_MAX = 100000, CONTEXT_LINES = 5, CONTEXT_MAX = 1000 };

const char pf_retrieval_tool_name[] = "retrieve_offloaded_content";

static const char description[] =
        "Fetch content that was moved out of the conversation because of its size, by a reference "
        "from its preview. Without more, from its start; with line_range those lines alone; with "
        "pattern the lines that contain that text, numbered, and context_lines around each. At "
        "most about 100,000 bytes are shown at once.";

static const char schema[] =
        "{\"type\":\"object\",\"properties\":{"
        "\"reference\":{\"type\":\"string\",\"description\":\"A reference, exactly as it stands "
        "in the preview.\"},"
        "\"pattern\":{\"type\":[\"string\",\"null\"],\"description\":\"Text to look for: plain "
        "text, case-sensitive, no regular expression.\"},"
        "\"line_range\":{\"type\":[\"object\",\"null\"],\"properties\":{\"start\":{\"type\":"
        "\"integer\",\"minimum\":1},\"end\":{\"type\":\"integer\",\"minimum\":1}},\"required\":["
        "\"start\",\"end\"],\"additionalProperties\":false,\"description\":\"First and last line "
        "wanted; lines count from 1.\"},"
        "\"context_lines\":{\"type\":[\"integer\",\"null\"],\"minimum\":0,\"default\":5,"
        "\"description\":\"Lines shown before and after each that has the pattern.\"}},"
        "\"required\":[\"reference\"],\"additionalProperties\":false}";

/* What was asked for. */
struct wanted {
    const char *pattern; /* NULL: every line */
    size_t pattern_len;
    int64_t first, last, context;
    bool numbered;
};

struct line {
    size_t at;
    int64_t number;
};

static size_t end_of(const struct pinfold_bytes *text, size_t at)
{
    const char *end = memchr(text->data + at, '\n', text->len - at);

    return end ? (size_t)(end - text->data) + 1 : text->len;
}

static int show_line(struct pf_buf *out, const struct pinfold_bytes *text, struct line line,
                     bool numbered)
{
    size_t end = end_of(text, line.at), len = end - line.at, room = SHOWN_MAX - out->len;
    int r = numbered ? pf_buf_printf(out, "%" PRId64 ": ", line.number) : 0;

    if (len > room)
        len = pf_utf8_floor(text->data + line.at, room);
    if (r == 0)
        r = pf_buf_append(out, text->data + line.at, len);
    if (r == 0 && line.at + len < end)
        r = pf_buf_printf(out, "\n[Line %" PRId64 " was cut.]\n", line.number);
    return r;
}

static bool matches(const struct pinfold_bytes *text, struct line line, const struct wanted *wanted)
{
    return !wanted->pattern || memmem(text->data + line.at, end_of(text, line.at) - line.at,
                                      wanted->pattern, wanted->pattern_len);
}

/* The lines wanted. A line is shown when one that matches is at most context lines away: those
 * before are remembered as the place that far back. */
static int select_lines(struct pf_buf *out, const struct pinfold_bytes *text,
                        const struct wanted *wanted, int64_t *ret_lines)
{
    struct line here = { 0, 1 }, behind = { 0, 1 };
    int64_t until = 0; /* the last line to be shown because of a match before */
    int r = 0;

    for (; r == 0 && here.at < text->len;
         here = (struct line){ end_of(text, here.at), here.number + 1 }) {
        if (here.number < wanted->first || here.number > wanted->last || out->len >= SHOWN_MAX) {
            behind = (struct line){ end_of(text, here.at), here.number + 1 };
            continue;
        }
        while (behind.number < here.number - wanted->context)
            behind = (struct line){ end_of(text, behind.at), behind.number + 1 };
        if (matches(text, here, wanted))
            until = here.number + wanted->context;
        if (here.number > until)
            continue;
        for (; r == 0 && behind.number <= here.number && out->len < SHOWN_MAX;
             behind = (struct line){ end_of(text, behind.at), behind.number + 1 })
            r = show_line(out, text, behind, wanted->numbered);
    }
    *ret_lines = here.number - 1;
    return r;
}

static void read_wanted(const struct pinfold_tool_call *call, struct wanted *wanted)
{
    const json_t *range = json_object_get(call->input, "line_range");

    *wanted = (struct wanted){ .first = 1, .last = INT64_MAX };
    if (json_is_object(range)) {
        wanted->first = (int64_t)json_number_value(json_object_get(range, "start"));
        wanted->last = (int64_t)json_number_value(json_object_get(range, "end"));
    }
    wanted->pattern = pinfold_tool_call_string(call, "pattern", &wanted->pattern_len);
    if (wanted->pattern_len == 0)
        wanted->pattern = NULL;
    wanted->numbered = wanted->pattern;
    if (wanted->pattern)
        wanted->context = pinfold_tool_call_integer(call, "context_lines", CONTEXT_LINES);
    if (wanted->context > CONTEXT_MAX)
        wanted->context = CONTEXT_MAX;
}

static int give_text(const struct pinfold_tool_call *call, const struct pinfold_bytes *text,
                     struct pinfold_tool_result *ret, struct pinfold_error *err)
{
    struct pf_buf out = PF_BUF_INIT(PF_BUF_UNLIMITED);
    struct wanted wanted;
    int64_t lines = 0;
    int r;

    read_wanted(call, &wanted);
    r = select_lines(&out, text, &wanted, &lines);
    if (r == 0 && out.len >= SHOWN_MAX)
        r = pf_buf_printf(&out,
                          "\n[Cut after %d bytes of %" PRId64 " lines; ask for a line_range.]",
                          SHOWN_MAX, lines);
    if (r == 0 && out.len == 0)
        r = pf_buf_printf(&out, "[%s. There are %" PRId64 " lines.]",
                          wanted.pattern ? "No line contains that text" : "The range holds no line",
                          lines);
    r = r < 0 ? pf_fail_nomem(err) : pf_tool_result_text(ret, &out, err);
    pf_buf_done(&out);
    return r;
}

/* What is not text goes back as the block that it was. */
static int give_block(const struct pinfold_bytes *data, const char *type,
                      struct pinfold_tool_result *ret, struct pinfold_error *err)
{
    bool image = strncmp(type, "image/", 6) == 0;
    const char *format = strchr(type, '/');

    return pinfold_tool_result_add(
            ret,
            &(struct pinfold_tool_content){
                    .kind = image ? PINFOLD_TOOL_IMAGE : PINFOLD_TOOL_DOCUMENT,
                    .data = *data,
                    .format = (char *)(uintptr_t)(format ? format + 1 : type),
                    .name = image ? NULL : (char *)(uintptr_t) "document" },
            err);
}

static int retrieve(void *ctx, struct pinfold_tool_call *call, struct pinfold_tool_result *ret,
                    struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_bytes_done) struct pinfold_bytes data = { 0 };
    _cleanup_free_ char *type = NULL;
    int r = pf_storage_retrieve(ctx, pinfold_tool_call_string(call, "reference", NULL), &data,
                                &type, call->cancel, err);

    if (r < 0)
        return r;
    if (strcmp(type, "application/json") == 0 || strncmp(type, "text/", 5) == 0)
        return give_text(call, &data, ret, err);
    return give_block(&data, type, ret, err);
}

static void unref_storage(void *ctx)
{
    pinfold_storage_unref(ctx);
}

int pf_retrieval_tool_new(struct pinfold_storage *storage, struct pinfold_tool **ret,
                          struct pinfold_error *err)
{
    struct pinfold_tool_options options = PINFOLD_TOOL_OPTIONS_INIT;
    int r;

    options.name = pf_retrieval_tool_name;
    options.description = description;
    options.input_schema = schema;
    options.run = retrieve;
    options.ctx = pinfold_storage_ref(storage);
    options.free = unref_storage;
    r = pinfold_tool_new(&options, ret, err);
    if (r < 0)
        pinfold_storage_unref(storage);
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "net/sse.h"

#include <string.h>

#include "base/error.h"

static int failed(int r, struct pinfold_error *err)
{
    return r == -PINFOLD_ENOMEM
                   ? pf_fail_nomem(err)
                   : pf_fail(err, PINFOLD_EBACKEND, "event stream: an event of more than %zu bytes",
                             PF_SSE_EVENT_MAX);
}

/* An empty line: the event is over. */
static int dispatch(struct pf_sse *sse, pf_sse_fn fn, void *ctx, struct pinfold_error *err)
{
    struct pf_sse_event event = { .type = sse->type[0] ? sse->type : "message" };
    int r = 0;

    if (sse->has_data) {
        event.data = sse->data.data;
        event.len = sse->data.len - 1; /* without the line end after its last line */
        sse->data.data[event.len] = '\0';
        r = fn(ctx, &event, err);
    }
    sse->has_data = false;
    sse->data.len = 0;
    sse->type[0] = '\0';
    return r;
}

static int add_data(struct pf_sse *sse, const char *value, size_t len)
{
    int r = pf_buf_append(&sse->data, value, len);

    if (r == 0)
        r = pf_buf_append(&sse->data, "\n", 1);
    sse->has_data = r == 0;
    return r;
}

static void set_type(struct pf_sse *sse, const char *value, size_t len)
{
    if (len >= sizeof(sse->type))
        len = sizeof(sse->type) - 1;
    memcpy(sse->type, value, len);
    sse->type[len] = '\0';
}

static bool is(const char *name, size_t len, const char *wanted)
{
    return len == strlen(wanted) && memcmp(name, wanted, len) == 0;
}

static int take_field(struct pf_sse *sse, const char *line, size_t len, pf_sse_fn fn, void *ctx,
                      struct pinfold_error *err)
{
    const char *colon = memchr(line, ':', len), *value = colon ? colon + 1 : line + len;
    size_t name_len = colon ? (size_t)(colon - line) : len;
    size_t value_len;
    int r = 0;

    if (value < line + len && *value == ' ')
        value++;
    value_len = (size_t)(line + len - value);
    if (is(line, name_len, "data")) {
        r = add_data(sse, value, value_len);
    } else if (is(line, name_len, "event")) {
        set_type(sse, value, value_len);
    } else if (is(line, name_len, "error")) {
        sse->data.len = 0;
        set_type(sse, "error", 5);
        r = add_data(sse, value, value_len);
        if (r == 0)
            return dispatch(sse, fn, ctx, err);
    }
    /* Others, and comments, which are fields without a name, mean nothing here. */
    return r < 0 ? failed(r, err) : 0;
}

static int end_line(struct pf_sse *sse, pf_sse_fn fn, void *ctx, struct pinfold_error *err)
{
    const char *line = sse->line.data;
    size_t len = sse->line.len;
    int r;

    if (!sse->begun && len >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
        line += 3;
        len -= 3;
    }
    sse->begun = true;
    r = len == 0 ? dispatch(sse, fn, ctx, err) : take_field(sse, line, len, fn, ctx, err);
    sse->line.len = 0;
    return r;
}

/* The first CR or LF, or end. */
static const char *line_end(const char *at, const char *end)
{
    const char *lf = memchr(at, '\n', (size_t)(end - at));
    const char *cr = memchr(at, '\r', (size_t)((lf ? lf : end) - at));

    return cr ? cr : lf ? lf : end;
}

int pf_sse_feed(struct pf_sse *sse, const void *data, size_t len, pf_sse_fn fn, void *ctx,
                struct pinfold_error *err)
{
    const char *at = data, *end = at + len;

    while (at < end) {
        const char *stop;
        int r;
        if (sse->after_cr && *at == '\n')
            at++;
        sse->after_cr = false;
        if (at == end)
            break;
        stop = line_end(at, end);
        r = pf_buf_append(&sse->line, at, (size_t)(stop - at));
        if (r < 0)
            return failed(r, err);
        if (stop == end)
            break;
        sse->after_cr = *stop == '\r';
        at = stop + 1;
        r = end_line(sse, fn, ctx, err);
        if (r < 0)
            return r;
    }
    return 0;
}

bool pf_sse_inside(const struct pf_sse *sse)
{
    return sse->line.len > 0 || sse->has_data;
}

void pf_sse_done(struct pf_sse *sse)
{
    pf_buf_done(&sse->line);
    pf_buf_done(&sse->data);
    sse->has_data = sse->after_cr = sse->begun = false;
    sse->type[0] = '\0';
}

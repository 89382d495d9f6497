/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever comes as a stream of events: it is read the same in one piece and in many. */
#include "base/cleanup.h"
#include "net/sse.h"
#include "fuzz.h"

static int hear(void *ctx, const struct pf_sse_event *event, struct pinfold_error *err)
{
    (void)err;
    demand(strlen(event->type) > 0 && strlen(event->type) < PF_SSE_TYPE_MAX);
    demand(event->data[event->len] == '\0' && !memchr(event->data, '\r', event->len));
    demand(pf_buf_append(ctx, event->type, strlen(event->type) + 1) == 0);
    demand(pf_buf_append(ctx, event->data, event->len + 1) == 0);
    return 0;
}

static bool read_all(const uint8_t *data, size_t size, size_t piece, struct pf_buf *heard)
{
    PF_CLEANUP(pf_sse_done) struct pf_sse sse = PF_SSE_INIT;

    for (size_t at = 0; at < size; at += piece)
        demand(pf_sse_feed(&sse, data + at, size - at < piece ? size - at : piece, hear, heard,
                           NULL) == 0);
    return pf_sse_inside(&sse);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf whole = PF_BUF_INIT(PF_BUF_UNLIMITED);
    PF_CLEANUP(pf_buf_done) struct pf_buf parts = PF_BUF_INIT(PF_BUF_UNLIMITED);
    bool inside;

    if (size < 2)
        return 0;
    inside = read_all(data + 1, size - 1, size, &whole);
    demand(read_all(data + 1, size - 1, 1 + data[0] % 16, &parts) == inside);
    demand(whole.len == parts.len &&
           (whole.len == 0 || !memcmp(whole.data, parts.data, whole.len)));
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "net/daytona_logs.h"

#include <stdbool.h>

enum { MARK_LEN = 3 };

static int give(const struct pf_daytona_demux *demux, const char *data, size_t len,
                pf_daytona_log_fn fn, void *ctx)
{
    return len > 0 && demux->stream ? fn(ctx, demux->stream, data, len) : 0;
}

/* The bytes that had been kept back belong to the line. */
static int give_back(struct pf_daytona_demux *demux, pf_daytona_log_fn fn, void *ctx)
{
    const char kept[MARK_LEN] = { demux->mark, demux->mark, demux->mark };
    size_t len = (size_t)demux->matched;

    demux->matched = 0;
    return give(demux, kept, len, fn, ctx);
}

int pf_daytona_demux(struct pf_daytona_demux *demux, const char *data, size_t len,
                     pf_daytona_log_fn fn, void *ctx)
{
    size_t start = 0; /* of what has not been given */
    int r = 0;

    for (size_t i = 0; r == 0 && i < len; i++) {
        bool may_mark = data[i] == 1 || data[i] == 2;
        if (demux->matched > 0 && data[i] != demux->mark) {
            r = give_back(demux, fn, ctx);
            start = i;
        }
        if (r < 0 || !may_mark)
            continue;
        if (demux->matched == 0)
            r = give(demux, data + start, i - start, fn, ctx);
        demux->mark = data[i];
        demux->matched++;
        start = i + 1;
        if (demux->matched == MARK_LEN) {
            demux->stream = (unsigned char)data[i];
            demux->matched = 0;
        }
    }
    return r == 0 && start < len ? give(demux, data + start, len - start, fn, ctx) : r;
}

int pf_daytona_demux_finish(struct pf_daytona_demux *demux, pf_daytona_log_fn fn, void *ctx)
{
    return give_back(demux, fn, ctx);
}

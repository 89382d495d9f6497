/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demultiplexer of a session's log, against one that sees all of it at once; and the reader of
 * files of variables. The first byte chooses the pieces.
 */
#include "base/buf.h"
#include "net/daytona_logs.h"
#include "net/dotenv.h"
#include "fuzz.h"

static int take(void *ctx, int stream, const char *data, size_t len)
{
    struct pf_buf *streams = ctx;

    demand((stream == 1 || stream == 2) && len > 0);
    return pf_buf_append(&streams[stream - 1], data, len);
}

static void reference(const char *data, size_t size, struct pf_buf *streams)
{
    int stream = 0;

    for (size_t i = 0; i < size; i++) {
        if (i + 2 < size && (data[i] == 1 || data[i] == 2) && data[i + 1] == data[i] &&
            data[i + 2] == data[i]) {
            stream = data[i];
            i += 2;
        } else if (stream) {
            demand(pf_buf_append(&streams[stream - 1], data + i, 1) == 0);
        }
    }
}

static void fuzz_demux(const char *data, size_t size, size_t piece)
{
    struct pf_buf got[2] = { PF_BUF_INIT(PF_BUF_UNLIMITED), PF_BUF_INIT(PF_BUF_UNLIMITED) };
    struct pf_buf want[2] = { PF_BUF_INIT(PF_BUF_UNLIMITED), PF_BUF_INIT(PF_BUF_UNLIMITED) };
    struct pf_daytona_demux demux = { 0 };

    reference(data, size, want);
    for (size_t at = 0; at < size; at += piece)
        demand(pf_daytona_demux(&demux, data + at, size - at < piece ? size - at : piece, take,
                                got) == 0);
    demand(pf_daytona_demux_finish(&demux, take, got) == 0);
    for (int i = 0; i < 2; i++) {
        demand(got[i].len == want[i].len);
        demand(got[i].len == 0 || memcmp(got[i].data, want[i].data, got[i].len) == 0);
        pf_buf_done(&got[i]);
        pf_buf_done(&want[i]);
    }
}

struct bounds {
    const char *start, *end;
};

static int take_variable(void *ctx, const char *name, const char *value)
{
    const struct bounds *text = ctx;

    demand(name >= text->start && *name && strchr(name, '=') == NULL);
    demand(value > name && value + strlen(value) <= text->end);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bounds bounds;
    char *text;

    if (size == 0)
        return 0;
    fuzz_demux((const char *)data + 1, size - 1, (size_t)(data[0] % 32) + 1);
    text = malloc(size); /* one byte less, and a NUL: overruns are seen */
    demand(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    bounds = (struct bounds){ text, text + size - 1 };
    demand(pf_dotenv_read(text, size - 1, take_variable, &bounds) == 0);
    free(text);
    return 0;
}

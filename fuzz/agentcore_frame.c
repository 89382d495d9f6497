/* SPDX-License-Identifier: Apache-2.0 */
/* What comes from a terminal on which a wrapper may have printed its frame; '@' stands for the
 * start of a mark, which no mutation would find. */
#include "backend/agentcore.h"
#include "fuzz.h"

#define MARK "0123456789abcdef"
#define START "pf-" MARK "-"
enum { LIMIT = 64 };

static void check(const struct pf_ac_output *output)
{
    const uint64_t sizes[] = { output->out_size, output->err_size };
    const size_t lens[] = { output->out.len, output->errs.len };

    demand(output->status >= 0 && output->status <= 255);
    demand(!(output->partial && (output->merged || output->refused)));
    for (int i = 0; i < 2; i++)
        demand(lens[i] == (output->merged || sizes[i] < LIMIT ? sizes[i] : LIMIT));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pf_ac_output output = { .out = PF_BUF_INIT(0), .errs = PF_BUF_INIT(0) };
    struct pf_buf text = PF_BUF_INIT(1 << 20);
    int r = 0;

    if (size > 4096)
        return 0;
    for (size_t i = 0; r == 0 && i < size; i++)
        r = data[i] == '@' ? pf_buf_append_text(&text, START)
                           : pf_buf_append(&text, data[i] ? (const char *)data + i : "?", 1);
    demand(r == 0);
    r = pf_ac_frame_read(text.data, MARK, LIMIT, &output);
    demand(r == 0 || r == -PINFOLD_EBACKEND);
    if (r == 0)
        check(&output);
    pf_buf_done(&output.out);
    pf_buf_done(&output.errs);
    pf_buf_done(&text);
    return 0;
}

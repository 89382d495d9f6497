/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 that services and commands wrote: what is decoded comes back as the same text, and any
 * bytes go there and back. */
#include "base/base64.h"
#include "base/cleanup.h"
#include "fuzz.h"

static bool is_space(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

/* The text again, but for white space; and the last digit, of which not every bit counts. */
static void check_decoded(const uint8_t *data, size_t size, const struct pf_buf *decoded)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf again = PF_BUF_INIT(PF_BUF_UNLIMITED);
    size_t at = 0;

    demand(pf_base64_encode(decoded->data, decoded->len, &again) == 0);
    for (size_t i = 0; i < size; i++) {
        if (is_space(data[i]))
            continue;
        demand(at < again.len);
        demand((char)data[i] == again.data[at] || (at + 3 >= again.len && data[i] != '='));
        at++;
    }
    demand(at == again.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf decoded = PF_BUF_INIT(PF_BUF_UNLIMITED);
    PF_CLEANUP(pf_buf_done) struct pf_buf encoded = PF_BUF_INIT(PF_BUF_UNLIMITED);
    PF_CLEANUP(pf_buf_done) struct pf_buf back = PF_BUF_INIT(PF_BUF_UNLIMITED);
    int r = pf_base64_decode((const char *)data, size, &decoded);

    demand(r == 0 || (r == -PINFOLD_EVALUE && decoded.len == 0));
    if (r == 0)
        check_decoded(data, size, &decoded);
    demand(pf_base64_encode(data, size, &encoded) == 0);
    demand(encoded.len == (size + 2) / 3 * 4);
    demand(pf_base64_decode(encoded.data, encoded.len, &back) == 0);
    demand(back.len == size && (size == 0 || memcmp(back.data, data, size) == 0));
    return 0;
}

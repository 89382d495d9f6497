/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a client of the proxy sends: what is taken, and rewritten, must be taken by the same
 * reader in the same sense if it came by way of another proxy. The first byte chooses the reader.
 */
#include "jail/egress.h"
#include "jail/egress_head.h"
#include "jail/egress_socks.h"
#include "fuzz.h"

/* The rewritten head is one head: nothing in it ends early or goes on after the end. */
static void check_rewritten(const char *data, const struct pf_egress_head *head)
{
    static char out[PF_EGRESS_HEAD_MAX + PF_EGRESS_HEAD_GROWTH];
    size_t len = pf_egress_head_rewrite(data, head, out, sizeof out);
    size_t scanned = 0;
    const char *host = NULL;

    demand(len > 0 && len <= head->len + PF_EGRESS_HEAD_GROWTH);
    demand(pf_egress_head_end(out, len, &scanned) == len);
    demand(!memchr(out, 0, len));
    host = memmem(out, len, "\r\nHost: ", 8);
    demand(host != NULL);
    host += 8 + (host[8] == '[');
    demand(strncmp(host, head->host.text, strlen(head->host.text)) == 0);
}

static void fuzz_head(const char *data, size_t size)
{
    struct pf_egress_head head;
    struct pf_egress_body body;
    size_t scanned = 0;
    size_t len = pf_egress_head_end(data, size, &scanned);

    if (len == 0 || len > PF_EGRESS_HEAD_MAX || pf_egress_head_parse(data, len, &head))
        return;
    demand(head.len == len && head.port > 0 && head.host.text[0] != 0);
    if (!head.connect)
        check_rewritten(data, &head);
    pf_egress_body_init(&body, &head);
    demand(pf_egress_body_take(&body, data + len, size - len) <= (ssize_t)(size - len));
}

static void fuzz_socks(const uint8_t *data, size_t size)
{
    struct pf_egress_socks socks = { 0 };
    uint8_t answer[PF_SOCKS_ANSWER_MAX];
    size_t answer_len;
    ssize_t taken = 1;

    while (taken > 0) {
        taken = pf_egress_socks_take(&socks, data, size, answer, &answer_len);
        demand(taken <= (ssize_t)size && answer_len <= sizeof answer);
        if (taken > 0) {
            data += taken;
            size -= (size_t)taken;
        }
    }
    demand((taken < 0) == (socks.fault != NULL));
    demand(socks.stage != PF_SOCKS_READY || (socks.port > 0 && socks.host.text[0] != 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && data[0] == 5)
        fuzz_socks(data, size);
    else
        fuzz_head((const char *)data, size);
    return 0;
}

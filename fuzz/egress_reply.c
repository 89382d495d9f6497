/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever an origin answers: a head that is let through is one head, says once that the connection
 * closes, and is taken as it is by the same reader.
 */
#include <strings.h>

#include "jail/egress_head.h"
#include "jail/egress_reply.h"
#include "fuzz.h"

static int count_connection(const char *head, size_t len)
{
    int count = 0;

    for (const char *end = head + len; head < end;) {
        const char *lf = memchr(head, '\n', (size_t)(end - head));

        if ((size_t)(lf - head) > 10 && strncasecmp(head, "connection", 10) == 0)
            count += head[10 + strspn(head + 10, " \t\v\f")] == ':';
        head = lf + 1;
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char once[PF_EGRESS_REPLY_MAX + PF_EGRESS_REPLY_GROWTH];
    static char twice[PF_EGRESS_REPLY_MAX + 2 * PF_EGRESS_REPLY_GROWTH];
    size_t scanned = 0, len, once_len, twice_len;
    bool final;

    len = pf_egress_head_end((const char *)data, size, &scanned);
    if (len == 0 || len > PF_EGRESS_REPLY_MAX ||
        pf_egress_reply_rewrite((const char *)data, len, once, &once_len, &final))
        return 0;
    demand(once_len <= len + PF_EGRESS_REPLY_GROWTH);
    scanned = 0;
    demand(pf_egress_head_end(once, once_len, &scanned) == once_len);
    demand(count_connection(once, once_len) == (final ? 1 : 0));
    demand(!pf_egress_reply_rewrite(once, once_len, twice, &twice_len, &final));
    demand(twice_len == once_len && memcmp(once, twice, once_len) == 0);
    return 0;
}

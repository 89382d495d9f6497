/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is allowed, as options and policies have it, and where somebody wants to go: the first line
 * is the one, the rest the other. A list means what its entries mean one by one, more entries allow
 * more, and the entry that a refusal names would have allowed it. An address is what the C library
 * reads from the same text.
 */
#include <arpa/inet.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "jail/egress_rules.h"

enum { ENTRIES_MAX = 64 };

static struct pf_egress_rules *read_rules(const char *const *lists)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pf_egress_rules *rules = NULL;
    int r = pf_egress_rules_new(lists, &rules, &err);

    demand((r == 0) == (rules != NULL));
    demand(r == 0 || (r == -PINFOLD_EVALUE && err.msg[0] && !strchr(err.msg, '\n') &&
                      pf_utf8_valid(err.msg, strlen(err.msg), NULL)));
    return rules;
}

static bool allowed(const struct pf_egress_rules *rules, const struct pf_egress_host *host,
                    uint16_t port)
{
    struct pf_egress_verdict verdict = pf_egress_rules_host(rules, host, port);

    demand(verdict.allowed || (verdict.reason[0] && !strchr(verdict.reason, '\n')));
    return verdict.allowed;
}

static void check_address(const char *text, size_t len)
{
    uint8_t six[16], four[4];
    struct pf_egress_ip ours, theirs;
    char written[PF_EGRESS_IP_TEXT];
    bool is_ours = pf_egress_ip_parse(text, len, &ours);
    bool is_six = inet_pton(AF_INET6, text, six) == 1;
    bool is_four = inet_pton(AF_INET, text, four) == 1;

    if (strlen(text) != len)
        return;
    demand(is_ours == (is_six || is_four));
    if (!is_ours)
        return;
    pf_egress_ip_from_bytes(is_six ? six : four, is_six ? 16 : 4, &theirs);
    demand(pf_egress_ip_equal(&ours, &theirs));
    pf_egress_ip_format(&ours, written);
    demand(pf_egress_ip_parse(written, strlen(written), &theirs));
    demand(pf_egress_ip_equal(&ours, &theirs));
}

/* Each entry in a list of its own. text is cut at its commas. */
static struct pf_egress_rules *read_one_by_one(char *text)
{
    const char *lists[ENTRIES_MAX + 1] = { text };
    size_t count = 1;

    for (char *comma = strchr(text, ','); comma; comma = strchr(comma + 1, ',')) {
        if (count == ENTRIES_MAX)
            return NULL;
        *comma = '\0';
        lists[count++] = comma + 1;
    }
    return read_rules(lists);
}

/* What a refusal says would allow it does; it allows all else that was allowed. */
static void check_refusal(const struct pf_egress_rules *rules, const char *list,
                          const struct pf_egress_host *host, uint16_t port)
{
    static const char before[] = "; --net allow=", after[] = " would allow it";
    struct pf_egress_verdict verdict = pf_egress_rules_host(rules, host, port);
    const char *entry = strstr(verdict.reason, before);
    _cleanup_free_ char *more = NULL;
    const char *lists[] = { list, NULL, NULL };
    struct pf_egress_rules *wider;

    demand(entry != NULL);
    entry += sizeof(before) - 1;
    demand(asprintf(&more, "%.*s", (int)(strlen(entry) - (sizeof(after) - 1)), entry) > 0);
    lists[1] = more;
    wider = read_rules(lists);
    demand(wider && allowed(wider, host, port));
    pf_egress_rules_free(wider);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = memchr(data, '\n', size);
    size_t len = end ? (size_t)(end - data) : size;
    _cleanup_free_ char *list = copy_text(data, len), *pieces = copy_text(data, len);
    _cleanup_free_ char *to = end ? copy_text(end + 1, size - len - 1) : copy_text(data, 0);
    struct pf_egress_rules *rules = read_rules((const char *const[]){ list, NULL }), *same, *none;
    struct pf_egress_host host;
    const char *fault = NULL;
    uint16_t port = 0;

    check_address(to, end ? size - len - 1 : 0);
    same = read_one_by_one(pieces);
    demand(rules || !same);
    if (pf_egress_authority_parse(to, strlen(to), 443, &host, &port, &fault)) {
        none = read_rules(NULL);
        demand(none && !allowed(none, &host, port));
        check_refusal(none, list[0] && rules ? list : "other.example", &host, port);
        pf_egress_rules_free(none);
        demand(!same || allowed(rules, &host, port) == allowed(same, &host, port));
        if (rules && !allowed(rules, &host, port))
            check_refusal(rules, list, &host, port);
    } else {
        demand(fault && fault[0]);
    }
    pf_egress_rules_free(same);
    pf_egress_rules_free(rules);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The headers of requests to the MCP server: what strangers write, read without a state. */
#include <strings.h>

#include "mcp/http_check.h"
#include "fuzz.h"

/* What a page of another site could have for its name is none of ours. */
static void check_host(const struct pf_http_names *names, const char *text)
{
    if (!pf_http_host_ok(names, text))
        return;
    demand(!strpbrk(text, "/@\\ \t\r\n"));
    demand(strncasecmp(text, "localhost", 9) == 0 || strncmp(text, "127.", 4) == 0 ||
           *text == '[' || strncasecmp(text, "agents.example", 14) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const more[] = { "agents.example", NULL };
    static const char token[] = "0123456789abcdef";
    struct pf_http_names names = { .more = more };
    char *text = malloc(size + 1);
    uint64_t number;
    unsigned stream;

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    check_host(&names, text);
    if (pf_http_origin_ok(&names, text))
        check_host(&names, strstr(text, "//") + 2);
    pf_http_accepts(text, "text/event-stream");
    pf_http_is_json(text);
    if (pf_http_length(text, &number))
        demand(strspn(text, "0123456789") == strlen(text));
    if (pf_http_event_id(text, &stream, &number))
        demand(strspn(text, "0123456789-") == strlen(text));
    if (pf_http_bearer_is(text, token, strlen(token)))
        demand(strcmp(text + strlen(text) - strlen(token), token) == 0);
    free(text);
    return 0;
}

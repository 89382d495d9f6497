/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/http_check.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NAME_MAX_LENGTH = 255 };

/* ---- hosts ---- */

static bool is_port(const char *text)
{
    size_t digits;

    if (*text != ':')
        return !*text;
    digits = strspn(text + 1, "0123456789");
    return digits > 0 && digits <= 5 && !text[1 + digits];
}

/* Take "name", "name:port" or "[address]:port" apart. */
static bool take_name(const char *host, char name[NAME_MAX_LENGTH + 1])
{
    static const char letters[] =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-";
    size_t skip = *host == '[';
    size_t len = skip ? strcspn(host + 1, "]") : strspn(host, letters);

    if (!len || len > NAME_MAX_LENGTH)
        return false;
    if (skip && host[1 + len] != ']')
        return false;
    if (!is_port(host + len + 2 * skip))
        return false;
    memcpy(name, host + skip, len);
    name[len] = '\0';
    return true;
}

static bool is_loopback(const char *name)
{
    struct in6_addr six;
    struct in_addr four;

    if (strcasecmp(name, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, name, &four) == 1)
        return ntohl(four.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, name, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

static bool is_address(const char *name)
{
    struct in6_addr any;

    return inet_pton(AF_INET, name, &any) == 1 || inet_pton(AF_INET6, name, &any) == 1;
}

bool pf_http_host_ok(const struct pf_http_names *names, const char *host)
{
    char name[NAME_MAX_LENGTH + 1];

    if (!take_name(host, name))
        return false;
    if (is_loopback(name) || (names->any_address && is_address(name)))
        return true;
    for (size_t i = 0; names->more && names->more[i]; i++)
        if (strcasecmp(names->more[i], name) == 0)
            return true;
    return false;
}

bool pf_http_origin_ok(const struct pf_http_names *names, const char *origin)
{
    if (strncmp(origin, "http://", 7) == 0)
        return pf_http_host_ok(names, origin + 7);
    return strncmp(origin, "https://", 8) == 0 && pf_http_host_ok(names, origin + 8);
}

/* ---- types ---- */

/* Whether a range, len bytes, takes a type: "text/event-stream", "text/" with a star, or two. */
static bool range_takes(const char *range, size_t len, const char *type)
{
    size_t slash = (size_t)(strchr(type, '/') - type);

    if (len == strlen(type) && strncasecmp(range, type, len) == 0)
        return true;
    if (len == 3 && strncmp(range, "*/*", 3) == 0)
        return true;
    return len == slash + 2 && strncasecmp(range, type, slash + 1) == 0 && range[len - 1] == '*';
}

/* Whether parameters, len bytes from the first semicolon, have a q of nothing but zeros. */
static bool is_refused(const char *parameters, size_t len)
{
    for (size_t i = 0; i + 1 < len; i++) {
        size_t at = i + 1;
        if (parameters[i] != ';')
            continue;
        at += strspn(parameters + at, " \t");
        if (at + 2 < len && (parameters[at] | 0x20) == 'q' && parameters[at + 1] == '=')
            return strspn(parameters + at + 2, "0.") >= strcspn(parameters + at + 2, " \t;,");
    }
    return false;
}

bool pf_http_accepts(const char *accept, const char *type)
{
    while (*accept) {
        size_t whole, len;

        accept += strspn(accept, ", \t");
        whole = strcspn(accept, ",");
        len = strcspn(accept, ",; \t");
        if (len && range_takes(accept, len, type) && !is_refused(accept + len, whole - len))
            return true;
        accept += whole;
    }
    return false;
}

bool pf_http_is_json(const char *type)
{
    size_t len = strcspn(type, "; \t");

    return len == strlen("application/json") && strncasecmp(type, "application/json", len) == 0;
}

/* ---- numbers ---- */

static bool take_number(const char **at, uint64_t most, uint64_t *ret)
{
    size_t digits = strspn(*at, "0123456789");
    char *end;

    if (!digits || digits > 18)
        return false;
    *ret = strtoull(*at, &end, 10);
    *at = end;
    return *ret <= most;
}

bool pf_http_length(const char *text, uint64_t *ret)
{
    return take_number(&text, UINT64_MAX, ret) && !*text;
}

bool pf_http_event_id(const char *text, unsigned *ret_stream, uint64_t *ret_event)
{
    uint64_t stream;

    if (!take_number(&text, UINT32_MAX, &stream) || *text++ != '-' ||
        !take_number(&text, UINT64_MAX, ret_event) || *text)
        return false;
    *ret_stream = (unsigned)stream;
    return true;
}

/* ---- tokens ---- */

bool pf_http_bearer_is(const char *authorization, const char *token, size_t len)
{
    static const char scheme[] = "Bearer ";
    unsigned char differ = 0;
    size_t given;

    if (strncasecmp(authorization, scheme, strlen(scheme)) != 0)
        return false;
    authorization += strlen(scheme);
    authorization += strspn(authorization, " ");
    given = strlen(authorization);
    for (size_t i = 0; i < given; i++)
        differ |= (unsigned char)(authorization[i] ^ token[i % len]);
    /* That the length is wrong is told last. */
    return (differ == 0) & (given == len);
}

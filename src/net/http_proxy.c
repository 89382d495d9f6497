/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http_proxy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/error.h"

#define BETWEEN_NAMES ", \t"
enum { SCHEME_MAX = 8 };

/* As libcurl does: HTTP_PROXY may be a header of a request that a CGI program serves. */
static const char *const variables[] = { "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                         "ALL_PROXY" };

static const char *read_variable(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

/* The variable that counts, or NULL. */
static const char *variable_for(const char *url)
{
    bool https = strncasecmp(url, "https:", 6) == 0;

    for (size_t i = 0; i < PF_COUNT(variables); i++) {
        bool counts = i > 2 || https == (i > 0);
        if (counts && read_variable(variables[i]))
            return variables[i];
    }
    return NULL;
}

/* Whether a name is host, or a domain that it is in; an address is in none. */
static bool covers(const char *name, size_t name_len, const char *host, size_t len)
{
    bool is_address = memchr(host, ':', len) || strspn(host, "0123456789.") >= len;

    if (name_len > 0 && *name == '.') {
        name++;
        name_len--;
    }
    return name_len > 0 && name_len <= len &&
           strncasecmp(host + len - name_len, name, name_len) == 0 &&
           (name_len == len || (!is_address && host[len - name_len - 1] == '.'));
}

/* Networks (10.0.0.0/8) are not looked at: then a proxy is named that is not asked. */
static bool goes_around(const char *url)
{
    const char *names = read_variable("no_proxy"), *host = strstr(url, "://");
    bool bracketed;
    size_t len;

    if (!names)
        names = read_variable("NO_PROXY");
    if (!names || !host)
        return false;
    bracketed = host[3] == '[';
    host += bracketed ? 4 : 3;
    len = strcspn(host, bracketed ? "]" : ":/?#");
    if (strcmp(names, "*") == 0)
        return true;
    for (names += strspn(names, BETWEEN_NAMES); *names; names += strspn(names, BETWEEN_NAMES)) {
        size_t name_len = strcspn(names, BETWEEN_NAMES);
        if (covers(names, name_len, host, len))
            return true;
        names += name_len;
    }
    return false;
}

/* The bytes of "http://", if an address begins with a scheme: in a password all may stand. */
static size_t scheme_len(const char *address)
{
    size_t len = strspn(address, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");

    return len <= SCHEME_MAX && strncmp(address + len, "://", 3) == 0 ? len + 3 : 0;
}

bool pf_http_proxy_name(const char *url, char ret[static PF_HTTP_PROXY_MAX])
{
    const char *variable = variable_for(url), *address, *at;
    size_t len;

    if (!variable || goes_around(url) || !(address = read_variable(variable)))
        return false;
    len = scheme_len(address);
    at = strrchr(address + len, '@');
    snprintf(ret, PF_HTTP_PROXY_MAX, "%s (%.*s%.80s)", variable, (int)len, address,
             PF_QUOTE(at ? at + 1 : address + len));
    return true;
}

bool pf_http_proxy_is_quoted(const char *url, const char *text)
{
    const char *variable = variable_for(url);
    const char *address = variable ? read_variable(variable) : NULL;
    _cleanup_free_ char *begin = NULL;
    size_t len;

    if (!address || !strchr(address, '@'))
        return false;
    len = scheme_len(address);
    len += strcspn(address + len, ":@") + 1;
    begin = strndup(address, len);
    return !begin || strstr(text, begin);
}

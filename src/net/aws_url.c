/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "net/aws_sources.h"

static bool is_authority(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("-._:[]", c));
}

/* Without user names, odd characters or anything else that two readers could take differently. */
int pf_aws_url_parse(const char *url, struct pf_aws_url *ret)
{
    struct pf_aws_url parts = { .https = strncmp(url, "https://", 8) == 0 };
    const char *at, *usual;
    size_t port;

    if (!parts.https && strncmp(url, "http://", 7) != 0)
        return -PINFOLD_EVALUE;
    for (at = url; *at; at++)
        if (*at <= ' ' || *at > '~' || strchr("\\#\"<>^`{|}", *at))
            return -PINFOLD_EVALUE;
    parts.authority = at = url + (parts.https ? 8 : 7);
    while (is_authority(*at))
        at++;
    if (*at && *at != '/')
        return -PINFOLD_EVALUE;
    parts.authority_len = (size_t)(at - parts.authority);
    parts.path = at;
    parts.host = parts.authority + (*parts.authority == '[');
    parts.host_len = strcspn(parts.host, *parts.authority == '[' ? "]" : ":/");
    if (parts.host_len == 0 || parts.host + parts.host_len > at)
        return -PINFOLD_EVALUE;
    /* Neither libcurl nor who checks a signature names a port that goes without saying. */
    usual = parts.https ? ":443" : ":80";
    port = strlen(usual);
    if (parts.authority_len > port &&
        memcmp(parts.authority + parts.authority_len - port, usual, port) == 0 &&
        parts.host + parts.host_len <= parts.authority + parts.authority_len - port)
        parts.authority_len -= port;
    *ret = parts;
    return 0;
}

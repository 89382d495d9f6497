/* SPDX-License-Identifier: Apache-2.0 */
/* Which proxy the environment names. libcurl reads that for itself, this is for the words. */
#ifndef PF_NET_HTTP_PROXY_H
#define PF_NET_HTTP_PROXY_H

#include <stdbool.h>

#define PF_HTTP_PROXY_MAX 112

/* Write "VARIABLE (ADDRESS)" of the proxy on the way to a URL, without the user and the password
 * that may stand in it. Returns false when there is none. */
bool pf_http_proxy_name(const char *url, char ret[static PF_HTTP_PROXY_MAX]);

/* Whether a text has in it what the environment names, as far as to where a password begins. */
bool pf_http_proxy_is_quoted(const char *url, const char *text);

#endif

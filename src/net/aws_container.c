/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials of the task or pod that we run in: Amazon ECS, EKS Pod Identity, Greengrass. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "net/aws_sources.h"

#define ECS_HOST "http://169.254.170.2"
#define ATTEMPTS 3
#define TIMEOUT_NS (2 * PF_NS_PER_SEC)
#define PAUSE_NS PF_NS_PER_SEC

/* Whose answer a token may be shown to without encryption: nobody outside this machine. */
static bool is_near(const struct pf_aws_url *url)
{
    static const char *const allowed[] = { "169.254.170.2", "169.254.170.23", "fd00:ec2::23",
                                           "localhost" };
    struct in6_addr six;
    struct in_addr four;
    char host[64];

    if (url->host_len >= sizeof(host))
        return false;
    memcpy(host, url->host, url->host_len);
    host[url->host_len] = '\0';
    for (size_t i = 0; i < PF_COUNT(allowed); i++)
        if (strcmp(host, allowed[i]) == 0)
            return true;
    if (inet_pton(AF_INET, host, &four) == 1)
        return ntohl(four.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

static int find_url(struct pf_buf *ret, struct pinfold_error *err)
{
    const char *relative = pf_aws_env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *full = pf_aws_env("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    struct pf_aws_url url;

    if (!relative && !full)
        return 0;
    if (relative && *relative != '/')
        return pf_fail(err, PINFOLD_EVALUE,
                       "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI does not begin with /");
    if (pf_buf_printf(ret, "%s%s", relative ? ECS_HOST : "", relative ? relative : full) < 0)
        return pf_fail_nomem(err);
    if (pf_aws_url_parse(ret->data, &url) < 0)
        return pf_fail(err, PINFOLD_EVALUE, "the address of container credentials: %s is none",
                       PF_QUOTE(ret->data));
    if (!url.https && !is_near(&url))
        return pf_fail(err, PINFOLD_EVALUE,
                       "AWS_CONTAINER_CREDENTIALS_FULL_URI: %s is neither https nor on this "
                       "machine (loopback, 169.254.170.2, 169.254.170.23, fd00:ec2::23)",
                       PF_QUOTE(ret->data));
    return 1;
}

/* Returns 1, 0 when none is wanted, or a negative code. */
static int find_token(struct pf_buf *ret, struct pinfold_error *err)
{
    const char *file = pf_aws_env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    const char *token = pf_aws_env("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    int r = 0;

    if (!file && !token)
        return 0;
    ret->limit = PF_AWS_TOKEN_MAX;
    if (file)
        r = pf_aws_read_token(file, ret, err);
    else if (pf_buf_append_text(ret, token) < 0)
        r = pf_fail_nomem(err);
    if (r == 0 && strpbrk(ret->data, "\r\n"))
        r = pf_fail(err, PINFOLD_EVALUE,
                    "AWS_CONTAINER_AUTHORIZATION_TOKEN%s: the token holds a line end, which no "
                    "header can",
                    file ? "_FILE" : "");
    return r < 0 ? r : 1;
}

int pf_aws_container(struct pf_aws_ask *ask, struct pf_aws_credentials *ret,
                     struct pinfold_error *err)
{
    PF_CLEANUP(pf_aws_reply_done) struct pf_aws_reply reply = { 0 };
    PF_CLEANUP(pf_buf_done) struct pf_buf url = PF_BUF_INIT(8 << 10);
    _cleanup_wipe_ struct pf_buf token = { 0 };
    struct pf_header headers[] = { { "accept", "application/json" }, { "authorization", NULL } };
    int r = find_url(&url, err), has_token;

    if (r == 0)
        return pf_aws_nothing(ask, "no container's AWS_CONTAINER_CREDENTIALS_*");
    has_token = r < 0 ? r : find_token(&token, err);
    if (has_token < 0)
        return has_token;
    headers[1].value = token.data;
    const struct pf_aws_call call = {
        .what = "container credentials",
        .method = "GET",
        .url = url.data,
        .headers = headers,
        .header_count = has_token ? 2 : 1,
        .attempts = ATTEMPTS,
        .timeout_ns = TIMEOUT_NS,
        .pause_ns = PAUSE_NS,
        .near = true,
    };
    r = pf_aws_send(ask, &call, &reply, err);
    if (r < 0)
        return r;
    if (reply.status != 200)
        return pf_aws_refused(call.what, reply.status, "", err);
    return pf_aws_json_metadata(&reply.body, call.what, "container", ret, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Where a service is: the address that somebody has configured, or that of AWS for the region, of
 * the kind that is wanted (FIPS, dual stack). */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "net/aws_sources.h"

/* ---- AWS's own ---- */

static const struct partition {
    const char *start, *suffix, *dual_suffix;
} partitions[] = {
    { "cn-", "amazonaws.com.cn", "api.amazonwebservices.com.cn" },
    { "eusc-de-", "amazonaws.eu", "api.amazonwebservices.eu" },
    { "us-iso-", "c2s.ic.gov", "api.aws.ic.gov" },
    { "us-isob-", "sc2s.sgov.gov", "api.aws.scloud" },
    { "us-isof-", "csp.hci.ic.gov", "api.aws.hci.ic.gov" },
    { "eu-isoe-", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk" },
    { "", "amazonaws.com", "api.aws" },
};

static const struct partition *partition_of(const char *region)
{
    const struct partition *at = partitions;

    while (strncmp(region, at->start, strlen(at->start)) != 0)
        at++; /* the last one is everybody's */
    return at;
}

const char *pf_aws_dns_suffix(const char *region)
{
    return partition_of(region)->suffix;
}

/* What kind of endpoint is wanted. */
struct kind {
    bool fips, dual;
};

/* In GovCloud the usual endpoints of the older services are the validated ones. */
static bool has_fips_name(const char *service, const char *region, const struct kind *kind)
{
    return kind->fips && (kind->dual || strncmp(region, "us-gov-", 7) != 0 ||
                          strncmp(service, "bedrock_", 8) == 0);
}

static int append_own(const char *service, const char *host, const char *region,
                      const struct kind *kind, struct pf_buf *ret)
{
    const struct partition *partition = partition_of(region);

    /* S3's hosts for dual stack are older than the scheme of the others. */
    if (strcmp(service, "s3") == 0)
        return pf_buf_printf(ret, "https://%s%s%s.%s.%s", host, kind->fips ? "-fips" : "",
                             kind->dual ? ".dualstack" : "", region, partition->suffix);
    return pf_buf_printf(ret, "https://%s%s.%s.%s", host,
                         has_fips_name(service, region, kind) ? "-fips" : "", region,
                         kind->dual ? partition->dual_suffix : partition->suffix);
}

/* ---- switches ---- */

/* A variable, or else a setting of the profile, that is true or false. What is neither is not taken
 * for no: whoever wrote AWS_USE_FIPS_ENDPOINT=1 wants something. */
static int read_switch(const struct pf_aws_ask *ask, const char *variable, const char *setting,
                       bool *ret, struct pinfold_error *err)
{
    const char *value = pf_aws_env(variable), *name = variable;

    if (!value && ask->profile) {
        value = pf_aws_profile_get(ask, ask->profile, setting);
        name = setting;
    }
    *ret = value && strcasecmp(value, "true") == 0;
    if (!value || *ret || strcasecmp(value, "false") == 0)
        return 0;
    return pf_fail(err, PINFOLD_EVALUE, "AWS endpoints: %s is \"%s\", neither true nor false", name,
                   PF_QUOTE(value));
}

static int read_kind(const struct pf_aws_ask *ask, struct kind *ret, struct pinfold_error *err)
{
    int r = read_switch(ask, "AWS_USE_FIPS_ENDPOINT", "use_fips_endpoint", &ret->fips, err);

    return r < 0 ? r
                 : read_switch(ask, "AWS_USE_DUALSTACK_ENDPOINT", "use_dualstack_endpoint",
                               &ret->dual, err);
}

/* ---- configured ones ---- */

/* The setting that is one of several lines below the service's key in [services NAME]. */
static const char *service_setting(const struct pf_aws_ask *ask, const char *service, size_t *len)
{
    const char *services = pf_aws_profile_get(ask, ask->profile, "services");
    const char *lines = services ? pf_aws_config_get(ask, "services", services, service) : NULL;

    return lines && *lines == '\n' ? pf_ini_nested(lines, "endpoint_url", len) : NULL;
}

static const char *from_environment(const char *service)
{
    char variable[64];
    const char *url;
    size_t at = (size_t)snprintf(variable, sizeof(variable), "AWS_ENDPOINT_URL_%s", service);

    while (at-- > 0)
        if (variable[at] >= 'a' && variable[at] <= 'z')
            variable[at] = (char)(variable[at] & ~0x20);
    url = pf_aws_env(variable);
    return url ? url : pf_aws_env("AWS_ENDPOINT_URL");
}

/* NULL: none is. */
static const char *configured(const struct pf_aws_ask *ask, const char *service, size_t *len)
{
    const char *url = from_environment(service);

    if (!url && ask->profile) {
        url = service_setting(ask, service, len);
        if (url)
            return url;
        url = pf_aws_profile_get(ask, ask->profile, "endpoint_url");
    }
    if (url)
        *len = strlen(url);
    return url;
}

/* ---- both ---- */

static int append_url(const char *service, const char *url, size_t len, const struct kind *kind,
                      struct pf_buf *ret, struct pinfold_error *err)
{
    while (len > 0 && url[len - 1] == '/')
        len--;
    if (kind->fips || kind->dual)
        return pf_fail(err, PINFOLD_EVALUE,
                       "the endpoint of %s: %s and an address of its own (%.*s) exclude each other",
                       service, kind->fips ? "FIPS" : "dual stack", len > 100 ? 100 : (int)len,
                       PF_QUOTE(url));
    return pf_buf_append(ret, url, len) < 0 ? pf_fail_nomem(err) : 0;
}

int pf_aws_endpoint(const struct pf_aws_ask *ask, const char *service, const char *host,
                    const char *region, struct pf_buf *ret, struct pinfold_error *err)
{
    struct pf_aws_url parts;
    struct kind kind;
    size_t len = 0;
    const char *url = NULL;
    bool ignore;
    int r = read_switch(ask, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
                        "ignore_configured_endpoint_urls", &ignore, err);

    if (r == 0)
        r = read_kind(ask, &kind, err);
    if (r < 0)
        return r;
    if (!ignore)
        url = configured(ask, service, &len);
    if (url)
        r = append_url(service, url, len, &kind, ret, err);
    else if (append_own(service, host, region, &kind, ret) < 0)
        r = pf_fail_nomem(err);
    if (r < 0)
        return r;
    if (pf_aws_url_parse(ret->data, &parts) < 0 || strchr(parts.path, '?'))
        return pf_fail(err, PINFOLD_EVALUE, "the endpoint of %s: %s is no http or https address",
                       service,
                       strchr(ret->data, '@') ? "one with a user name" : PF_QUOTE(ret->data));
    return 0;
}

int pf_aws_service_url(const struct pf_aws_options *options, const char *given, const char *service,
                       const char *host, const char *region, char **ret, struct pinfold_error *err)
{
    PF_CLEANUP(pf_aws_config_done) struct pf_aws_ask ask = { .options = options };
    PF_CLEANUP(pf_buf_done) struct pf_buf url = PF_BUF_INIT(8192);
    struct kind kind;
    int r;

    if (!pf_aws_region_fits(region))
        return pf_fail(err, PINFOLD_EVALUE, "AWS region %s: that is not the name of one",
                       PF_QUOTE(region));
    /* Files are read only when they have a say. */
    r = given ? read_kind(&ask, &kind, err) : pf_aws_config_load(&ask, err);
    if (r == 0)
        r = given ? append_url(service, given, strlen(given), &kind, &url, err)
                  : pf_aws_endpoint(&ask, service, host, region, &url, err);
    if (r < 0)
        return r;
    *ret = strdup(url.data ? url.data : "");
    return *ret ? 0 : pf_fail_nomem(err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where AWS credentials and the region come from: what was given, the environment, profiles and the
 * roles they name, the services of containers and machines, in botocore's order. Nothing secret is
 * ever in an error or the log, and memory that held a secret is zeroed.
 */
#ifndef PF_NET_AWS_CREDENTIALS_H
#define PF_NET_AWS_CREDENTIALS_H

#include <pinfold/cancel.h>
#include <pinfold/error.h>
#include <stdint.h>

#include "net/http.h"

struct pf_aws_provider;

struct pf_aws_options {
    const char *access_key, *secret_key; /* given by the application, both or none */
    const char *session_token;           /* with them; may be NULL */
    const char *profile; /* given by the application; NULL: environment, "default" */
    const char *region;  /* likewise */
};

struct pf_aws_credentials {
    char *access_key, *secret_key, *session_token; /* session_token may be NULL; owned */
    int64_t expires;                               /* CLOCK_REALTIME in ns; 0: never */
    const char *source; /* static, for messages: "environment", "profile (static keys)", ... */
};

#define PF_AWS_REGION_MAX 64
#define PF_AWS_CA_BUNDLE "AWS_CA_BUNDLE" /* for pf_http_new(), as botocore has it */

/* Make a provider; any thread may use it. options are copied, http is borrowed for its life.
 * Nothing is read or asked yet. Returns 0, -PINFOLD_EVALUE or -PINFOLD_ENOMEM. */
int pf_aws_provider_new(const struct pf_aws_options *options, struct pf_http *http,
                        struct pf_aws_provider **ret, struct pinfold_error *err);
void pf_aws_provider_free(struct pf_aws_provider *provider); /* NULL is fine */

/* Credentials that are good for some minutes more: those of before, or fresh ones. Of many threads
 * one refreshes, and the others wait for it, each until its own deadline and token; near the expiry
 * only, what is still good is given to them. Returns 0 and a copy, or -PINFOLD_EBACKEND (no source
 * had any: the message names each and why; or the one that should have refused or failed),
 * -PINFOLD_EVALUE (a source is there and wrong, and hides those after it), -PINFOLD_ETIMEOUT,
 * -PINFOLD_ECANCELLED, -PINFOLD_EOS, -PINFOLD_ENOMEM. */
int pf_aws_provider_get(struct pf_aws_provider *provider, int64_t deadline,
                        struct pf_aws_credentials *ret, struct pinfold_cancel *cancel,
                        struct pinfold_error *err);

/* The service refused these as expired: if nobody has fetched others meanwhile, the next get
 * does. */
void pf_aws_provider_expire(struct pf_aws_provider *provider,
                            const struct pf_aws_credentials *refused);

/* The region: given, AWS_REGION, AWS_DEFAULT_REGION, the profile's; checked to be fit for a host
 * name. Returns 0, -PINFOLD_EVALUE (none, or an odd one), -PINFOLD_EOS or -PINFOLD_ENOMEM. */
int pf_aws_region(const struct pf_aws_options *options, char ret[static PF_AWS_REGION_MAX],
                  struct pinfold_error *err);
/* "amazonaws.com", or what the hosts of that part of AWS end in. Static. */
const char *pf_aws_dns_suffix(const char *region);

/* The address of a service, without a '/' at its end: given by the application; AWS_ENDPOINT_URL_
 * and the service's name, AWS_ENDPOINT_URL; the profile's [services] section, its endpoint_url; or
 * AWS's own for the region, FIPS or dual stack when the environment or the profile wants that,
 * which none of the others can be. service is as in "sso_oidc", host as in "portal.sso". Returns 0
 * and a text that the caller owns, -PINFOLD_EVALUE, -PINFOLD_EOS (a file cannot be read) or
 * -PINFOLD_ENOMEM. */
int pf_aws_service_url(const struct pf_aws_options *options, const char *given, const char *service,
                       const char *host, const char *region, char **ret, struct pinfold_error *err);

void pf_aws_credentials_done(struct pf_aws_credentials *credentials); /* zeroes, frees */

#endif

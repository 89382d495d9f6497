/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where Daytona is and who we are there. In this order: the program's options, the environment,
 * ".env.local" and ".env" in the current directory. The address is never taken from a file: who can
 * write one there would have the key sent to him.
 */
#ifndef PF_NET_DAYTONA_CONFIG_H
#define PF_NET_DAYTONA_CONFIG_H

#include <pinfold/error.h>

/* All may be NULL, which is the same as "". */
struct pf_daytona_options {
    const char *api_key;
    const char *api_url; /* "https://host[:port]/path" */
    const char *jwt_token, *organization_id;
    const char *target;
};

struct pf_daytona_config {
    char *api_url;      /* without a slash at the end */
    char *token;        /* the key, or the JWT */
    char *organization; /* with a JWT, NULL with a key */
    char *target;       /* may be NULL */
};

/* Returns 0, -PINFOLD_EVALUE (no credential, a JWT without its organization, an address that is
 * none or that a file contradicts) or -PINFOLD_ENOMEM. Asks nobody. */
int pf_daytona_configure(const struct pf_daytona_options *options, struct pf_daytona_config *ret,
                         struct pinfold_error *err);
void pf_daytona_config_done(struct pf_daytona_config *config); /* wipes the token */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* AWS Signature Version 4 of a whole request, as the services' own clients compute it. */
#ifndef PF_NET_SIGV4_H
#define PF_NET_SIGV4_H

#include <pinfold/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "base/buf.h"
#include "base/hash.h"

#define PF_SIGV4_DATE_MAX 17 /* YYYYMMDDTHHMMSSZ and a NUL */

struct pf_header {
    const char *name, *value;
};

struct pf_aws_keys {
    const char *access_key, *secret_key;
    const char *session_token; /* NULL: none */
};

struct pf_sigv4_request {
    const char *method;
    const char *path; /* as it is sent: encoded once, begins with '/' */
    bool plain_path; /* S3's way: it is signed as it is, neither encoded once more nor simplified */
    const char *query; /* as it is sent, without '?', encoded by pf_uri_encode(); NULL: none */
    /* All that are to be signed, in any order and case, none twice; host and x-amz-date are among
     * them. */
    const struct pf_header *headers;
    size_t header_count;
    char payload_hash[PF_SHA256_HEX + 1];
    char date[PF_SIGV4_DATE_MAX]; /* of the header x-amz-date */
    const char *region, *service;
};

/* The date of a request, in UTC. */
void pf_sigv4_date(time_t now, char ret_date[static PF_SIGV4_DATE_MAX]);

/* What is hashed and signed: exposed for the tests, which have what others made of it. Appends to
 * ret. Returns 0, -PINFOLD_EVALUE past the buffer's limit, or -PINFOLD_ENOMEM. */
int pf_sigv4_canonical(const struct pf_sigv4_request *request, struct pf_buf *ret);

/* Append the value of the header authorization. No secret is in it. Returns 0, -PINFOLD_EVALUE or
 * -PINFOLD_ENOMEM, with err filled. */
int pf_sigv4_sign(const struct pf_sigv4_request *request, const struct pf_aws_keys *keys,
                  struct pf_buf *ret_authorization, struct pinfold_error *err);

#endif

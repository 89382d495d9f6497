/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of one bucket of Amazon S3, or of a service that speaks its language: one is put, or got,
 * whole. AWS's own hosts are asked for the bucket by its name as a host where that can be one, all
 * others by the path. Whatever passes is tried again.
 */
#ifndef PF_NET_S3_H
#define PF_NET_S3_H

#include "net/aws_credentials.h"

#define PF_S3_KEY_MAX 1024
#define PF_S3_OBJECT_MAX ((size_t)256 * 1024 * 1024)

struct pf_s3;

struct pf_s3_options {
    struct pf_aws_options aws;
    const char *bucket;
    const char *endpoint;  /* given by the application; NULL: as in pf_aws_service_url() */
    bool allow_plain_http; /* to other machines, too */
    int attempts;
    int64_t timeout_ns; /* of all attempts together */
};

/* Make a client; any thread may use it. Nothing is asked yet. Returns 0, -PINFOLD_EVALUE (what is
 * no bucket, region or endpoint), -PINFOLD_EOS (a file of AWS's settings cannot be read) or
 * -PINFOLD_ENOMEM. */
int pf_s3_new(const struct pf_s3_options *options, struct pf_s3 **ret, struct pinfold_error *err);
void pf_s3_free(struct pf_s3 *s3); /* NULL is fine */

/* Whether a key can be asked for: not empty, at most PF_S3_KEY_MAX bytes of UTF-8, and without "."
 * and ".." between slashes, which proxies and libcurl take out of a path. */
bool pf_s3_key_fits(const char *key);

/* Put an object in place of what is there. Returns 0, -PINFOLD_EVALUE (the key, no such bucket, or
 * another region's), -PINFOLD_EOS (EACCES: not allowed; or the connection), -PINFOLD_EBACKEND (it
 * failed, or was too busy to the end), -PINFOLD_ETIMEOUT, -PINFOLD_ECANCELLED, -PINFOLD_ENOMEM, or
 * what getting credentials failed with. */
int pf_s3_put(struct pf_s3 *s3, const char *key, const void *data, size_t len,
              const char *content_type, struct pinfold_cancel *cancel, struct pinfold_error *err);

/* Get one. Returns 1, 0 (there is none of that key), or as above. The caller owns both. */
int pf_s3_get(struct pf_s3 *s3, const char *key, struct pinfold_bytes *ret_data, char **ret_type,
              struct pinfold_cancel *cancel, struct pinfold_error *err);

#endif

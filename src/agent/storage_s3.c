/* SPDX-License-Identifier: Apache-2.0 */
/* S3Storage: an object of each block. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/storage.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "net/s3.h"

#define TIMEOUT_SECONDS 60
#define LONGEST_SECONDS 86400
#define NAME_MAX_BYTES 200

enum { ATTEMPTS = 5, ATTEMPTS_MAX = 20 };

struct bucket {
    struct pf_s3 *s3;
    char *start;     /* of every reference: "s3://BUCKET/" and perhaps "PREFIX/" */
    size_t key_from; /* where the key begins in it */
    uint64_t count;  /* atomic */
};

int pf_storage_s3_store(void *state, const char *key, const struct pinfold_bytes *data,
                        const char *content_type, char **ret_reference,
                        struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    _cleanup_free_ char *clean = strdup(key), *reference = NULL;
    struct bucket *bucket = state;
    uint64_t number = __atomic_add_fetch(&bucket->count, 1, __ATOMIC_RELAXED);
    struct timespec now;
    int r;

    if (!clean)
        return pf_fail_nomem(err);
    pf_storage_sanitise(clean);
    clock_gettime(CLOCK_REALTIME, &now);
    if (asprintf(&reference, "%s%lld_%" PRIu64 "_%.*s", bucket->start,
                 (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000, number, NAME_MAX_BYTES,
                 clean) < 0) {
        reference = NULL;
        return pf_fail_nomem(err);
    }
    r = pf_s3_put(bucket->s3, reference + bucket->key_from, data->data, data->len, content_type,
                  cancel, err);
    if (r == 0)
        *ret_reference = TAKE(reference);
    return r;
}

/* Whether it can be one of ours: a model must not read what else is in the bucket. */
static bool is_ours(const struct bucket *bucket, const char *reference)
{
    size_t len = strlen(bucket->start);
    const char *name = reference + len;

    return strncmp(reference, bucket->start, len) == 0 && *name && !strchr(name, '/') &&
           pf_s3_key_fits(reference + bucket->key_from);
}

int pf_storage_s3_retrieve(void *state, const char *reference, struct pinfold_bytes *ret_data,
                           char **ret_content_type, struct pinfold_cancel *cancel,
                           struct pinfold_error *err)
{
    struct bucket *bucket = state;
    int r = is_ours(bucket, reference) ? pf_s3_get(bucket->s3, reference + bucket->key_from,
                                                   ret_data, ret_content_type, cancel, err)
                                       : 0;

    if (r == 0)
        return pf_fail(err, PINFOLD_EVALUE, "there is no reference \"%s\"", PF_QUOTE(reference));
    return r < 0 ? r : 0;
}

static int store(void *state, const char *key, const void *data, size_t len,
                 const char *content_type, char **ret_reference, struct pinfold_error *err)
{
    /* Borrowed: nothing is written to it. */
    const struct pinfold_bytes bytes = { (char *)(uintptr_t)data, len };

    return pf_storage_s3_store(state, key, &bytes, content_type, ret_reference, NULL, err);
}

static int retrieve(void *state, const char *reference, struct pinfold_bytes *ret_data,
                    char **ret_content_type, struct pinfold_error *err)
{
    return pf_storage_s3_retrieve(state, reference, ret_data, ret_content_type, NULL, err);
}

static void free_bucket(void *state)
{
    struct bucket *bucket = state;

    pf_s3_free(bucket->s3);
    free(bucket->start);
    free(bucket);
}

static void bucket_freep(struct bucket **bucket)
{
    if (*bucket)
        free_bucket(*bucket);
}

const struct pinfold_storage_ops pf_storage_s3_ops = {
    .size = sizeof(struct pinfold_storage_ops),
    .store = store,
    .retrieve = retrieve,
    .free = free_bucket,
};

/* ---- making one ---- */

/* Names are numbered from a random one on: two storages with one prefix never meet, not even in the
 * same millisecond with the same key. */
static uint64_t random_start(void)
{
    char hex[9];

    pf_random_hex(hex, 8);
    return strtoul(hex, NULL, 16);
}

static int take_prefix(struct bucket *bucket, const struct pinfold_s3_options *options,
                       struct pinfold_error *err)
{
    const char *prefix = options->prefix ? options->prefix : "";
    size_t len = strlen(prefix);

    while (len > 0 && prefix[len - 1] == '/')
        len--;
    if (asprintf(&bucket->start, "s3://%s/%.*s%s", options->bucket ? options->bucket : "", (int)len,
                 prefix, len > 0 ? "/" : "") < 0) {
        bucket->start = NULL;
        return pf_fail_nomem(err);
    }
    bucket->key_from = strlen("s3:///") + (options->bucket ? strlen(options->bucket) : 0);
    if (len == 0)
        return 0;
    bucket->start[bucket->key_from + len] = '\0';
    /* A name and some 45 bytes of numbers come after it. */
    if (len > PF_S3_KEY_MAX - NAME_MAX_BYTES - 64 || prefix[0] == '/' ||
        strstr(bucket->start + bucket->key_from, "//") ||
        !pf_s3_key_fits(bucket->start + bucket->key_from))
        return pf_fail(err, PINFOLD_EVALUE,
                       "S3 storage: the prefix \"%s\" has an empty part, \".\" or \"..\" in it, or "
                       "is too long",
                       PF_QUOTE(prefix));
    bucket->start[bucket->key_from + len] = '/';
    return 0;
}

static int check_numbers(const struct pinfold_s3_options *options, struct pinfold_error *err)
{
    if (options->size != sizeof(*options))
        return pf_fail(err, PINFOLD_EVALUE, "S3 storage: options of %zu bytes, not %zu",
                       options->size, sizeof(*options));
    if (options->attempts > ATTEMPTS_MAX)
        return pf_fail(err, PINFOLD_EVALUE, "S3 storage: attempts is %u, more than %d",
                       options->attempts, ATTEMPTS_MAX);
    if (!(options->timeout_seconds >= 0 && options->timeout_seconds <= LONGEST_SECONDS))
        return pf_fail(err, PINFOLD_EVALUE, "S3 storage: timeout is %g seconds, not 0 to %d",
                       options->timeout_seconds, LONGEST_SECONDS);
    return 0;
}

int pinfold_storage_s3_new(const struct pinfold_s3_options *options,
                           struct pinfold_storage **ret_storage, struct pinfold_error *err)
{
    PF_CLEANUP(bucket_freep) struct bucket *bucket = NULL;
    struct pf_s3_options s3;
    double seconds;
    int r = check_numbers(options, err);

    if (r < 0)
        return r;
    bucket = calloc(1, sizeof(*bucket));
    if (!bucket)
        return pf_fail_nomem(err);
    bucket->count = random_start();
    seconds = options->timeout_seconds > 0 ? options->timeout_seconds : TIMEOUT_SECONDS;
    s3 = (struct pf_s3_options){
        .aws = { options->access_key, options->secret_key, options->session_token, options->profile,
                 options->region },
        .bucket = options->bucket,
        .endpoint = options->endpoint,
        .allow_plain_http = options->allow_plain_http,
        .attempts = options->attempts ? (int)options->attempts : ATTEMPTS,
        .timeout_ns = (int64_t)(seconds * (double)PF_NS_PER_SEC),
    };
    r = take_prefix(bucket, options, err);
    if (r == 0)
        r = pf_s3_new(&s3, &bucket->s3, err);
    if (r == 0)
        r = pinfold_storage_new(&pf_storage_s3_ops, bucket, ret_storage, err);
    if (r == 0)
        (void)TAKE(bucket);
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever a service that says it is S3 answers, when an object is put or got. */
#include "net/s3.h"
#include "replies.h"

static struct pf_s3 *make_client(void)
{
    static const struct pf_s3_options options = {
        .aws = { .access_key = "AKIDEXAMPLE", .secret_key = FUZZ_SECRET, .region = "us-west-2" },
        .bucket = "bucket",
        .endpoint = "https://s3.example",
        .attempts = 1,
        .timeout_ns = INT64_C(1000000000),
    };
    struct pf_s3 *s3 = NULL;

    demand(pf_s3_new(&options, &s3, NULL) == 0);
    return s3;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct pf_s3 *s3;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_bytes content = { 0 };
    char *type = NULL;
    int r;

    if (size < 1)
        return 0;
    if (!s3)
        s3 = make_client();
    replies.at = data + 1;
    replies.end = data + size;
    r = data[0] % 2 ? pf_s3_put(s3, "a key", "content", 7, "text/plain", NULL, &err)
                    : pf_s3_get(s3, "a key", &content, &type, NULL, &err);
    check_outcome(r, &err);
    demand((r == 1) == (type != NULL) && (r != 1 || content.data));
    pinfold_bytes_done(&content);
    free(type);
    return 0;
}

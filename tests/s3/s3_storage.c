/* SPDX-License-Identifier: Apache-2.0 */
/*
 * S3Storage as a program: s3_storage store KEY TYPE <bytes, or s3_storage retrieve REFERENCE.
 * BUCKET, PREFIX and ENDPOINT, and AWS's own variables, say where. Prints the reference, or the
 * type, a line end and the bytes; what went wrong goes to stderr.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pinfold/pinfold.h>

enum { INPUT_MAX = 32 * 1024 * 1024 };

static int store(struct pinfold_storage *storage, const char *key, const char *type,
                 struct pinfold_error *err)
{
    char *data = malloc(INPUT_MAX), *reference = NULL;
    size_t len = data ? fread(data, 1, INPUT_MAX, stdin) : 0;
    int r = data ? pinfold_storage_store(storage, key, data, len, type, &reference, err) : -1;

    if (r == 0)
        fputs(reference, stdout);
    free(reference);
    free(data);
    return r;
}

static int retrieve(struct pinfold_storage *storage, const char *reference,
                    struct pinfold_error *err)
{
    struct pinfold_bytes data = { 0 };
    char *type = NULL;
    int r = pinfold_storage_retrieve(storage, reference, &data, &type, err);

    if (r == 0) {
        printf("%s\n", type);
        fwrite(data.data, 1, data.len, stdout);
    }
    pinfold_bytes_done(&data);
    free(type);
    return r;
}

int main(int argc, char **argv)
{
    struct pinfold_s3_options options = PINFOLD_S3_OPTIONS_INIT;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_storage *storage = NULL;
    int r;

    options.bucket = getenv("BUCKET");
    options.prefix = getenv("PREFIX");
    options.endpoint = getenv("ENDPOINT");
    r = pinfold_storage_s3_new(&options, &storage, &err);
    if (r == 0)
        r = argc == 4 ? store(storage, argv[2], argv[3], &err)
                      : retrieve(storage, argc == 3 ? argv[2] : "", &err);
    pinfold_storage_unref(storage);
    if (r < 0)
        fprintf(stderr, "%d: %s\n", err.code, err.msg);
    return r < 0;
}

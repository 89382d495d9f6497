/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offloading: results of tools that are too long for a conversation are stored elsewhere, and
 * leave a preview and references behind, by which a model can fetch parts of them.
 */
#ifndef PINFOLD_OFFLOAD_H
#define PINFOLD_OFFLOAD_H

#include <pinfold/hook.h>

PINFOLD_BEGIN_DECLS

struct pinfold_storage;

/* The functions of a storage. They may be called from several threads at once. */
struct pinfold_storage_ops {
    size_t size;
    /* Keep bytes, and make a reference to them, which the caller frees. key is not unique. */
    int (*store)(void *state, const char *key, const void *data, size_t len,
                 const char *content_type, char **ret_reference, struct pinfold_error *err);
    /* Find them again: the caller owns both. -PINFOLD_EVALUE: there is no such reference. */
    int (*retrieve)(void *state, const char *reference, struct pinfold_bytes *ret_data,
                    char **ret_content_type, struct pinfold_error *err);
    void (*free)(void *state); /* may be NULL */
};

/**
 * Make a storage of one's own.
 *
 * ops          borrowed for ever: static storage
 * state        owned by the storage from success on
 * ret_storage  receives the storage; the caller owns one reference, pinfold_storage_unref()
 * err          borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (a table of the wrong size, or with a function missing) or
 * -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_storage_new(const struct pinfold_storage_ops *ops, void *state,
                                    struct pinfold_storage **ret_storage,
                                    struct pinfold_error *err);

/**
 * InMemoryStorage: gone with the process. References are mem_NUMBER_KEY.
 *
 * ret_storage  receives the storage; the caller owns one reference
 * err          borrowed, may be NULL
 *
 * Returns 0 or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_storage_memory_new(struct pinfold_storage **ret_storage,
                                           struct pinfold_error *err);

/**
 * FileStorage: a file of each block in one directory of the host, and .metadata.json with their
 * content types. References are the paths of the files, relative when artifact_dir is; only those
 * directly in it are found again.
 *
 * artifact_dir  borrowed; created when missing; NULL: "./artifacts"
 * ret_storage   receives the storage; the caller owns one reference
 * err           borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EOS (the directory) or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_storage_file_new(const char *artifact_dir,
                                         struct pinfold_storage **ret_storage,
                                         struct pinfold_error *err);

/* Where S3Storage keeps things. Zero means default in every field; all strings are copied. */
struct pinfold_s3_options {
    size_t size;
    const char *bucket;   /* required; it must exist */
    const char *prefix;   /* of the keys, such as "agents/42"; NULL: none */
    const char *region;   /* the bucket's; NULL: AWS_REGION, AWS_DEFAULT_REGION, the profile's */
    const char *endpoint; /* "http(s)://host[:port][/path]" of another service that speaks S3; NULL:
                             AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the profile's, else AWS. Hosts
                             that are not AWS's are asked for the bucket by path */
    /* Credentials: these, or a profile, or whatever the environment, the profiles and the machine
     * offer, in the order of AWS's own tools. */
    const char *profile;
    const char *access_key, *secret_key;
    const char *session_token;
    bool allow_plain_http;  /* to other machines, too; to this one it always is */
    unsigned attempts;      /* at most, with the first one; 0: 5; up to 20 */
    double timeout_seconds; /* of one store or retrieve, all attempts; 0: 60; up to 86,400 */
};

#define PINFOLD_S3_OPTIONS_INIT PINFOLD_SIZED(struct pinfold_s3_options)

/**
 * S3Storage: an object of each block, with its content type, in a bucket of Amazon S3 or of another
 * service that speaks its language. References are s3://BUCKET/PREFIX/TIME_NUMBER_KEY; only those
 * of this bucket and prefix are found again. Nothing is asked of the service yet, and what was
 * stored is never deleted: give the bucket a lifecycle rule. What is stored or retrieved may have
 * 256 MiB.
 *
 * Busy services (SlowDown, 429, 5xx) and connections that break are tried again, with pauses that
 * double; expired credentials are fetched anew once. A store or retrieve fails with -PINFOLD_EOS
 * (with EACCES: not allowed; or the connection), -PINFOLD_EVALUE (no such bucket, or it is in
 * another region), -PINFOLD_EBACKEND, -PINFOLD_ETIMEOUT, or as credentials do.
 *
 * options      borrowed, copied
 * ret_storage  receives the storage; the caller owns one reference
 * err          borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (a bucket, prefix, region, endpoint or number that cannot be),
 * -PINFOLD_EOS (a file of AWS's settings cannot be read) or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_storage_s3_new(const struct pinfold_s3_options *options,
                                       struct pinfold_storage **ret_storage,
                                       struct pinfold_error *err);

/**
 * Take another reference.
 *
 * storage  borrowed
 *
 * Returns storage, for the caller to own.
 * Threads: any.
 */
PINFOLD_API struct pinfold_storage *pinfold_storage_ref(struct pinfold_storage *storage);

/**
 * Give a reference back; the last one frees the storage.
 *
 * storage  owned, NULL is fine
 *
 * Threads: any.
 */
PINFOLD_API void pinfold_storage_unref(struct pinfold_storage *storage);

/**
 * Keep bytes.
 *
 * storage        borrowed
 * key            borrowed; becomes part of the reference
 * data           borrowed, len bytes
 * content_type   borrowed
 * ret_reference  receives the reference; the caller owns it, free()
 * err            borrowed, may be NULL
 *
 * Returns 0 or what the storage returned.
 * Threads: any.
 */
PINFOLD_API int pinfold_storage_store(struct pinfold_storage *storage, const char *key,
                                      const void *data, size_t len, const char *content_type,
                                      char **ret_reference, struct pinfold_error *err);

/**
 * Find bytes again.
 *
 * storage           borrowed
 * reference         borrowed
 * ret_data          receives the bytes; the caller owns them, pinfold_bytes_done()
 * ret_content_type  receives their type; the caller owns it, free()
 * err               borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (there is no such reference) or what the storage returned.
 * Threads: any.
 */
PINFOLD_API int pinfold_storage_retrieve(struct pinfold_storage *storage, const char *reference,
                                         struct pinfold_bytes *ret_data, char **ret_content_type,
                                         struct pinfold_error *err);

/* For preview_tokens: none. */
#define PINFOLD_NO_PREVIEW UINT32_MAX

/* SandboxOutputOffloadPolicy, and the options of a ContextOffloader. */
struct pinfold_offload_policy {
    size_t size;
    struct pinfold_storage *storage; /* required; a reference is taken */
    uint32_t max_result_tokens;      /* longer results are offloaded; 0: 2,500 */
    uint32_t preview_tokens;         /* kept of them; less than the above; 0: 1,000 */
    bool no_retrieval_tool;          /* include_retrieval_tool=False */
    const char *const *tool_names;   /* whose results; NULL-terminated. NULL: as policy of an agent
                                        pinfold_sandbox_offload_tool_names, as offloader all */
};

#define PINFOLD_OFFLOAD_POLICY_INIT PINFOLD_SIZED(struct pinfold_offload_policy)

/**
 * ContextOffloader: a plugin, "context_offloader", that replaces long results of tools. A token is
 * taken to be 4 characters of text, or 2 of JSON. When something cannot be stored the result stays
 * whole and a warning is logged. It brings the tool retrieve_offloaded_content, whose own results
 * stay as they are.
 *
 * policy      borrowed, copied
 * ret_plugin  receives the plugin; the caller owns one reference, pinfold_plugin_unref()
 * err         borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (no storage, or preview_tokens is not less than max_result_tokens) or
 * -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_context_offloader_new(const struct pinfold_offload_policy *policy,
                                              struct pinfold_plugin **ret_plugin,
                                              struct pinfold_error *err);

PINFOLD_END_DECLS

#endif

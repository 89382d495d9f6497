/* SPDX-License-Identifier: Apache-2.0 */
/* Storages of offloaded content: any, and the one in memory. */
#include "agent/storage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/error.h"

struct pinfold_storage {
    unsigned refs; /* atomic */
    const struct pinfold_storage_ops *ops;
    void *state;
};

int pinfold_storage_new(const struct pinfold_storage_ops *ops, void *state,
                        struct pinfold_storage **ret_storage, struct pinfold_error *err)
{
    struct pinfold_storage *storage;

    if (ops->size != sizeof(*ops) || !ops->store || !ops->retrieve)
        return pf_fail(err, PINFOLD_EVALUE,
                       "storage: a table of %zu bytes, not %zu, or without store or retrieve",
                       ops->size, sizeof(*ops));
    storage = calloc(1, sizeof(*storage));
    if (!storage)
        return pf_fail_nomem(err);
    *storage = (struct pinfold_storage){ .refs = 1, .ops = ops, .state = state };
    *ret_storage = storage;
    return 0;
}

struct pinfold_storage *pinfold_storage_ref(struct pinfold_storage *storage)
{
    __atomic_fetch_add(&storage->refs, 1, __ATOMIC_RELAXED);
    return storage;
}

void pinfold_storage_unref(struct pinfold_storage *storage)
{
    if (!storage || __atomic_sub_fetch(&storage->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    if (storage->ops->free)
        storage->ops->free(storage->state);
    free(storage);
}

int pinfold_storage_store(struct pinfold_storage *storage, const char *key, const void *data,
                          size_t len, const char *content_type, char **ret_reference,
                          struct pinfold_error *err)
{
    return storage->ops->store(storage->state, key, data, len, content_type, ret_reference, err);
}

int pinfold_storage_retrieve(struct pinfold_storage *storage, const char *reference,
                             struct pinfold_bytes *ret_data, char **ret_content_type,
                             struct pinfold_error *err)
{
    return storage->ops->retrieve(storage->state, reference, ret_data, ret_content_type, err);
}

int pf_storage_store(struct pinfold_storage *storage, const char *key,
                     const struct pinfold_bytes *data, const char *content_type,
                     char **ret_reference, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    if (storage->ops == &pf_storage_s3_ops)
        return pf_storage_s3_store(storage->state, key, data, content_type, ret_reference, cancel,
                                   err);
    return pinfold_storage_store(storage, key, data->data, data->len, content_type, ret_reference,
                                 err);
}

int pf_storage_retrieve(struct pinfold_storage *storage, const char *reference,
                        struct pinfold_bytes *ret_data, char **ret_content_type,
                        struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    if (storage->ops == &pf_storage_s3_ops)
        return pf_storage_s3_retrieve(storage->state, reference, ret_data, ret_content_type, cancel,
                                      err);
    return pinfold_storage_retrieve(storage, reference, ret_data, ret_content_type, err);
}

bool pf_storage_is_on_disk(const struct pinfold_storage *storage)
{
    return storage->ops == &pf_storage_file_ops;
}

void pf_storage_sanitise(char *key)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_-.";

    for (char *at = key; *at; at++) {
        if (at[0] == '.' && at[1] == '.') { /* one '_' for both */
            *at = '_';
            memmove(at + 1, at + 2, strlen(at + 2) + 1);
        }
        if (!strchr(allowed, *at))
            *at = '_';
    }
}

/* ---- in memory ---- */

struct kept {
    char *reference, *type;
    struct pinfold_bytes data;
    struct kept *prev, *next;
};

struct memory {
    pthread_mutex_t lock;
    unsigned long count;
    struct kept *kept;
};

static void free_kept(struct kept *kept)
{
    if (!kept)
        return;
    pinfold_bytes_done(&kept->data);
    free(kept->reference);
    free(kept->type);
    free(kept);
}

static void kept_freep(struct kept **kept)
{
    free_kept(*kept);
}

static int copy_bytes(struct pinfold_bytes *to, const void *data, size_t len)
{
    to->data = malloc(len + 1);
    if (!to->data)
        return -PINFOLD_ENOMEM;
    if (len > 0)
        memcpy(to->data, data, len);
    to->data[len] = '\0';
    to->len = len;
    return 0;
}

static int store_in_memory(void *state, const char *key, const void *data, size_t len,
                           const char *content_type, char **ret_reference,
                           struct pinfold_error *err)
{
    PF_CLEANUP(kept_freep) struct kept *kept = calloc(1, sizeof(*kept));
    struct memory *memory = state;
    _cleanup_free_ char *reference = NULL, *clean = strdup(key);
    unsigned long number;

    if (!kept || !clean)
        return pf_fail_nomem(err);
    pf_storage_sanitise(clean);
    pthread_mutex_lock(&memory->lock);
    number = ++memory->count;
    pthread_mutex_unlock(&memory->lock);
    if (asprintf(&kept->reference, "mem_%lu_%s", number, clean) < 0) {
        kept->reference = NULL;
        return pf_fail_nomem(err);
    }
    kept->type = strdup(content_type);
    reference = strdup(kept->reference);
    if (!kept->type || !reference || copy_bytes(&kept->data, data, len) < 0)
        return pf_fail_nomem(err);
    pthread_mutex_lock(&memory->lock);
    DL_APPEND(memory->kept, kept);
    kept = NULL;
    pthread_mutex_unlock(&memory->lock);
    *ret_reference = TAKE(reference);
    return 0;
}

static int retrieve_from_memory(void *state, const char *reference, struct pinfold_bytes *ret_data,
                                char **ret_content_type, struct pinfold_error *err)
{
    struct memory *memory = state;
    struct pinfold_bytes data = { 0 };
    struct kept *kept;
    char *type = NULL;
    int r = 0;

    pthread_mutex_lock(&memory->lock);
    DL_FOREACH(memory->kept, kept)
        if (strcmp(kept->reference, reference) == 0)
            break;
    if (kept) {
        type = strdup(kept->type);
        r = type ? copy_bytes(&data, kept->data.data, kept->data.len) : -PINFOLD_ENOMEM;
    }
    pthread_mutex_unlock(&memory->lock);
    if (!kept)
        return pf_fail(err, PINFOLD_EVALUE, "there is no reference \"%s\"", PF_QUOTE(reference));
    if (r < 0) {
        free(type);
        return pf_fail_nomem(err);
    }
    *ret_data = data;
    *ret_content_type = type;
    return 0;
}

static void free_memory(void *state)
{
    struct memory *memory = state;
    struct kept *kept, *next;

    DL_FOREACH_SAFE(memory->kept, kept, next) {
        DL_DELETE(memory->kept, kept);
        free_kept(kept);
    }
    pthread_mutex_destroy(&memory->lock);
    free(memory);
}

int pinfold_storage_memory_new(struct pinfold_storage **ret_storage, struct pinfold_error *err)
{
    static const struct pinfold_storage_ops ops = { .size = sizeof(ops),
                                                    .store = store_in_memory,
                                                    .retrieve = retrieve_from_memory,
                                                    .free = free_memory };
    struct memory *memory = calloc(1, sizeof(*memory));
    int r;

    if (!memory)
        return pf_fail_nomem(err);
    pthread_mutex_init(&memory->lock, NULL);
    r = pinfold_storage_new(&ops, memory, ret_storage, err);
    if (r < 0)
        free_memory(memory);
    return r;
}

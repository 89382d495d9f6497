/* SPDX-License-Identifier: Apache-2.0 */
/* FileStorage: one directory, worked in by its descriptor, so that a reference cannot lead out of
 * it. */
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/storage.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "tree/file.h"

static const char metadata_name[] = ".metadata.json";
enum { METADATA_MAX = 64 * 1024 * 1024 };

struct directory {
    pthread_mutex_t lock; /* guards what follows, and the file of content types */
    unsigned long count;
    json_t *types; /* file name -> content type */
    char *dir;     /* as it was given */
    int fd;
};

/* Those that were there before us: a directory may be used again. */
static int load_types(struct directory *directory, struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_bytes_done) struct pinfold_bytes text = { 0 };
    struct pinfold_error local = PINFOLD_ERROR_INIT;
    int r = pf_file_read(directory->fd, metadata_name, METADATA_MAX, &text, NULL, &local);

    if (r == 0)
        directory->types = json_loadb(text.data, text.len, 0, NULL);
    else if (local.sys_errno != ENOENT) {
        if (err)
            *err = local;
        return r;
    }
    if (!json_is_object(directory->types)) { /* none, or spoilt: names still tell the type */
        json_decref(directory->types);
        directory->types = json_object();
    }
    return directory->types ? 0 : pf_fail_nomem(err);
}

static int note_type(struct directory *directory, const char *name, const char *type,
                     struct pinfold_error *err)
{
    _cleanup_free_ char *text = NULL;

    if (json_object_set_new(directory->types, name, json_string(type)) < 0 ||
        !(text = json_dumps(directory->types, JSON_INDENT(2))))
        return pf_fail_nomem(err);
    return pf_file_write(directory->fd, metadata_name, text, strlen(text), false, NULL, err);
}

static int store_in_file(void *state, const char *key, const void *data, size_t len,
                         const char *content_type, char **ret_reference, struct pinfold_error *err)
{
    _cleanup_free_ char *clean = strdup(key), *name = NULL, *reference = NULL;
    struct directory *directory = state;
    const char *subtype = strchr(content_type, '/');
    const char *extension =
            strcmp(content_type, "text/plain") == 0 || !subtype ? "txt" : subtype + 1;
    struct timespec now;
    unsigned long number;
    int r;

    if (!clean)
        return pf_fail_nomem(err);
    pf_storage_sanitise(clean);
    clock_gettime(CLOCK_REALTIME, &now);
    pthread_mutex_lock(&directory->lock);
    number = ++directory->count;
    pthread_mutex_unlock(&directory->lock);
    if (asprintf(&name, "%lld_%lu_%.120s.%.20s",
                 (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000, number, clean,
                 extension) < 0) {
        name = NULL;
        return pf_fail_nomem(err);
    }
    pf_storage_sanitise(name); /* a content type may be anybody's, too */
    if (asprintf(&reference, "%s/%s", directory->dir, name) < 0) {
        reference = NULL;
        return pf_fail_nomem(err);
    }
    r = pf_file_write(directory->fd, name, data, len, true, NULL, err);
    if (r < 0)
        return pf_wrap(err, r, "store in %s", PF_QUOTE(directory->dir));
    pthread_mutex_lock(&directory->lock);
    r = note_type(directory, name, content_type, err);
    pthread_mutex_unlock(&directory->lock);
    if (r == 0)
        *ret_reference = TAKE(reference);
    return r;
}

/* The file name in a reference, or NULL. */
static const char *name_in(const struct directory *directory, const char *reference)
{
    size_t len = strlen(directory->dir);

    if (strncmp(reference, directory->dir, len) != 0 || reference[len] != '/')
        return NULL;
    reference += len + 1;
    /* Neither another directory, nor what is ours alone, nor a file on its way. */
    return strchr(reference, '/') || reference[0] == '.' || !*reference ? NULL : reference;
}

static char *type_of(struct directory *directory, const char *name)
{
    const char *type, *extension = strrchr(name, '.');
    char *copy;

    pthread_mutex_lock(&directory->lock);
    type = json_string_value(json_object_get(directory->types, name));
    if (!type)
        type = extension && strcmp(extension, ".txt") == 0    ? "text/plain"
               : extension && strcmp(extension, ".json") == 0 ? "application/json"
                                                              : "application/octet-stream";
    copy = strdup(type);
    pthread_mutex_unlock(&directory->lock);
    return copy;
}

static int retrieve_from_file(void *state, const char *reference, struct pinfold_bytes *ret_data,
                              char **ret_content_type, struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_bytes_done) struct pinfold_bytes data = { 0 };
    struct pinfold_error local = PINFOLD_ERROR_INIT;
    struct directory *directory = state;
    const char *name = name_in(directory, reference);
    int r = name ? pf_file_read(directory->fd, name, PF_BUF_UNLIMITED, &data, NULL, &local)
                 : -PINFOLD_EVALUE;

    if (!name || local.sys_errno == ENOENT || local.code == PINFOLD_EPATH)
        return pf_fail(err, PINFOLD_EVALUE, "there is no reference \"%s\"", PF_QUOTE(reference));
    if (r < 0) {
        if (err)
            *err = local;
        return r;
    }
    *ret_content_type = type_of(directory, name);
    if (!*ret_content_type)
        return pf_fail_nomem(err);
    *ret_data = data;
    data = (struct pinfold_bytes){ 0 };
    return 0;
}

static void free_directory(void *state)
{
    struct directory *directory = state;

    if (directory->fd >= 0)
        close(directory->fd);
    json_decref(directory->types);
    pthread_mutex_destroy(&directory->lock);
    free(directory->dir);
    free(directory);
}

static void directory_freep(struct directory **directory)
{
    if (*directory)
        free_directory(*directory);
}

const struct pinfold_storage_ops pf_storage_file_ops = {
    .size = sizeof(struct pinfold_storage_ops),
    .store = store_in_file,
    .retrieve = retrieve_from_file,
    .free = free_directory,
};

int pinfold_storage_file_new(const char *artifact_dir, struct pinfold_storage **ret_storage,
                             struct pinfold_error *err)
{
    PF_CLEANUP(directory_freep) struct directory *directory = calloc(1, sizeof(*directory));
    _cleanup_free_ char *expanded = NULL;
    size_t len;
    int r;

    if (!directory)
        return pf_fail_nomem(err);
    directory->fd = -1;
    pthread_mutex_init(&directory->lock, NULL);
    directory->dir = strdup(artifact_dir ? artifact_dir : "./artifacts");
    if (!directory->dir)
        return pf_fail_nomem(err);
    for (len = strlen(directory->dir); len > 1 && directory->dir[len - 1] == '/';)
        directory->dir[--len] = '\0';
    r = pf_path_expand(directory->dir, &expanded, err);
    if (r < 0)
        return r;
    directory->fd = pf_root_open(expanded, true, NULL, err);
    if (directory->fd < 0)
        return directory->fd;
    r = load_types(directory, err);
    if (r == 0)
        r = pinfold_storage_new(&pf_storage_file_ops, directory, ret_storage, err);
    if (r == 0)
        (void)TAKE(directory);
    return r;
}

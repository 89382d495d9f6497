/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large data on its way into a session and out of it: as files in a scratch directory, each below
 * the service's limits, several calls at a time.
 */
#include "backend/agentcore.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base64.h"
#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/random.h"
#include "tree/data.h"

#define BLOB_MAX (PF_AC_PART / 3 * 4 + 8)

/* Work on one of count parts. */
struct parts {
    struct pf_ac_box *box;
    const char *id;
    int fd;
    uint64_t size;
    int (*work)(struct parts *parts, size_t number, struct pinfold_error *err);
    struct pinfold_cancel *cancel;
    size_t count;
    _Atomic size_t next;
    pthread_mutex_t lock; /* guards the first failure */
    int result;
    struct pinfold_error err;
};

static size_t part_len(const struct parts *parts, size_t number)
{
    uint64_t left = parts->size - (uint64_t)number * PF_AC_PART;

    return left < PF_AC_PART ? (size_t)left : PF_AC_PART;
}

static bool has_failed(struct parts *parts)
{
    bool failed;

    pthread_mutex_lock(&parts->lock);
    failed = parts->result < 0;
    pthread_mutex_unlock(&parts->lock);
    return failed;
}

static void *work(void *arg)
{
    struct parts *parts = arg;

    for (size_t number = parts->next++; number < parts->count && !has_failed(parts);
         number = parts->next++) {
        struct pinfold_error err = PINFOLD_ERROR_INIT;
        int r = parts->work(parts, number, &err);
        if (r == 0)
            continue;
        pthread_mutex_lock(&parts->lock);
        if (parts->result == 0) {
            parts->result = r;
            parts->err = err;
        }
        pthread_mutex_unlock(&parts->lock);
    }
    return NULL;
}

/* The caller works, too; helpers that cannot be had are done without. */
static int run_parts(struct parts *parts, struct pinfold_error *err)
{
    pthread_t helpers[PF_AC_IN_FLIGHT];
    sigset_t all, before;
    unsigned count = 0;

    pthread_mutex_init(&parts->lock, NULL);
    parts->count = parts->size == 0 ? 1 : (size_t)((parts->size - 1) / PF_AC_PART) + 1;
    sigfillset(&all); /* signals are the program's, and go to its threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (count + 1 < PF_AC_IN_FLIGHT && count + 1 < parts->count &&
           pthread_create(&helpers[count], NULL, work, parts) == 0)
        count++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    work(parts);
    while (count > 0)
        pthread_join(helpers[--count], NULL);
    pthread_mutex_destroy(&parts->lock);
    if (parts->result < 0 && err)
        *err = parts->err;
    return parts->result;
}

/* ---- in ---- */

static json_t *write_arguments(const char *name, const void *data, size_t len)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf blob = PF_BUF_INIT(BLOB_MAX);
    json_t *text;

    if (pf_base64_encode(data, len, &blob) < 0)
        return NULL;
    text = json_stringn_nocheck(blob.data, blob.len);
    return text ? json_pack("{s:[{s:s, s:o}]}", "content", "path", name, "blob", text) : NULL;
}

/* Tools tell their failures in a result that is otherwise one. */
static int check_tool(const struct pf_agentcore_result *result, const char *tool,
                      struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(PF_BUF_UNLIMITED);

    if (!result->is_error)
        return 0;
    if (pf_agentcore_result_text(result, &text) < 0)
        return pf_fail_nomem(err);
    return pf_fail(err, PINFOLD_EBACKEND, "AgentCore %s: \"%s\"", tool,
                   PF_QUOTE(text.data ? text.data : ""));
}

static int put_part(struct parts *parts, size_t number, struct pinfold_error *err)
{
    size_t len = part_len(parts, number);
    _cleanup_free_ char *data = malloc(len + 1);
    struct pf_agentcore_result result = { 0 };
    json_auto_t *arguments = NULL;
    char name[80];
    ssize_t n;
    int r;

    snprintf(name, sizeof(name), PF_AC_SCRATCH "/%s.%04zu", parts->id, number);
    if (!data)
        return pf_fail_nomem(err);
    for (size_t at = 0; at < len; at += (size_t)n) {
        n = pread(parts->fd, data + at, len - at, (off_t)(number * PF_AC_PART + at));
        if (n <= 0)
            return pf_fail_os(err, n < 0 ? errno : EIO, "read what is to be sent");
    }
    arguments = write_arguments(name, data, len);
    if (!arguments)
        return pf_fail_nomem(err);
    r = pf_ac_invoke(parts->box, "writeFiles", arguments, NULL, &result, parts->cancel, err);
    if (r == 0)
        r = check_tool(&result, "writeFiles", err);
    pf_agentcore_result_done(&result);
    return r;
}

int pf_ac_put(struct pf_ac_box *box, int fd, uint64_t size, char ret_id[static PF_AC_ID_MAX],
              struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct parts parts = {
        .box = box, .id = ret_id, .fd = fd, .size = size, .work = put_part, .cancel = cancel
    };
    int r;

    pf_random_hex(ret_id, PF_AC_ID_MAX - 1);
    r = run_parts(&parts, err);
    if (r < 0)
        pf_ac_forget(box, ret_id);
    return r;
}

int pf_ac_put_bytes(struct pf_ac_box *box, const void *data, size_t len,
                    char ret_id[static PF_AC_ID_MAX], struct pinfold_cancel *cancel,
                    struct pinfold_error *err)
{
    _cleanup_close_ int fd = memfd_create("pinfold", MFD_CLOEXEC);
    int r = fd < 0 ? -errno : pf_write_all(fd, data, len);

    if (r < 0)
        return pf_fail_os(err, -r, "keep what is to be sent");
    return pf_ac_put(box, fd, len, ret_id, cancel, err);
}

/* ---- out ---- */

/* Whether a resource is that of a name, as far as it says: "file:///" and the name. */
static bool is_of(const json_t *resource, const char *name)
{
    const char *uri = json_string_value(json_object_get(resource, "uri"));
    size_t len = uri ? strlen(uri) : 0, tail = strlen(name);

    return !uri ||
           (len > tail && uri[len - tail - 1] == '/' && strcmp(uri + len - tail, name) == 0);
}

/* The bytes of the one file that was asked for: text, or a blob. */
static int take_file(const struct pf_agentcore_result *result, const char *name, struct pf_buf *ret,
                     struct pinfold_error *err)
{
    const json_t *block, *resource = NULL, *text, *blob;
    size_t i, count = 0;
    int r = -PINFOLD_EVALUE;

    json_array_foreach(result->content, i, block) {
        if (json_is_object(json_object_get(block, "resource"))) {
            resource = json_object_get(block, "resource");
            count++;
        }
    }
    if (count != 1 || !is_of(resource, name))
        return pf_fail(err, PINFOLD_EBACKEND,
                       "AgentCore readFiles: %zu files came back instead of %s", count, name);
    text = json_object_get(resource, "text");
    blob = json_object_get(resource, "blob");
    if (json_is_string(blob))
        r = pf_base64_decode(json_string_value(blob), json_string_length(blob), ret);
    else if (json_is_string(text))
        r = pf_buf_append(ret, json_string_value(text), json_string_length(text));
    if (r == -PINFOLD_ENOMEM)
        return pf_fail_nomem(err);
    return r < 0 ? pf_fail(err, PINFOLD_EBACKEND, "AgentCore readFiles: no file came back") : 0;
}

static int store(const struct parts *parts, size_t number, const struct pf_buf *data,
                 struct pinfold_error *err)
{
    ssize_t n;

    /* Gzip's bytes are no text, so that the service has no reason to touch them. */
    if (data->len != part_len(parts, number))
        return pf_fail(err, PINFOLD_EBACKEND, "AgentCore readFiles: %zu bytes came, not %zu",
                       data->len, part_len(parts, number));
    for (size_t at = 0; at < data->len; at += (size_t)n) {
        n = pwrite(parts->fd, data->data + at, data->len - at, (off_t)(number * PF_AC_PART + at));
        if (n < 0)
            return pf_fail_os(err, errno, "keep what was fetched");
    }
    return 0;
}

static int get_part(struct parts *parts, size_t number, struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf data = PF_BUF_INIT(2 * PF_AC_PART);
    struct pf_agentcore_result result = { 0 };
    json_auto_t *arguments = NULL;
    char name[80];
    int r;

    snprintf(name, sizeof(name), PF_AC_SCRATCH "/%s.%04zu", parts->id, number);
    arguments = json_pack("{s:[s]}", "paths", name);
    if (!arguments)
        return pf_fail_nomem(err);
    r = pf_ac_invoke(parts->box, "readFiles", arguments, NULL, &result, parts->cancel, err);
    if (r == 0)
        r = check_tool(&result, "readFiles", err);
    if (r == 0)
        r = take_file(&result, name, &data, err);
    if (r == 0)
        r = store(parts, number, &data, err);
    pf_agentcore_result_done(&result);
    return r;
}

int pf_ac_get(struct pf_ac_box *box, const char *id, uint64_t size, int fd,
              struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct parts parts = {
        .box = box, .id = id, .fd = fd, .size = size, .work = get_part, .cancel = cancel
    };

    return run_parts(&parts, err);
}

void pf_ac_forget(struct pf_ac_box *box, const char *id)
{
    struct pf_ac_output output;
    char script[400];

    snprintf(script, sizeof(script), "rm -f -- %s/" PF_AC_SCRATCH "/%s.*", box->home, id);
    if (pf_ac_run(box, script, strlen(script), 1024, false, NULL, &output, NULL, NULL) == 0)
        pf_ac_output_done(&output);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* add_files and download_files: many files in one call of the backend, one result each. */
#include "sandbox/sandbox.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strings.h"

/* The requests of a call whose paths have been checked: those that passed, and where each stood. */
struct checked {
    void *requests; /* an array of the caller's type, the paths in it normalised */
    size_t count;
    size_t *index; /* position in the caller's list */
    char **paths;
};

static void checked_done(struct checked *checked)
{
    for (size_t i = 0; i < checked->count; i++)
        free(checked->paths[i]);
    free(checked->paths);
    free(checked->index);
    free(checked->requests);
}

/* Both types of requests begin with their path. */
_Static_assert(offsetof(struct pinfold_upload, path) == 0, "the path comes first");
_Static_assert(offsetof(struct pinfold_download, path) == 0, "the path comes first");

/* Normalise the path of one request, or note in result why it cannot be used. */
static int check(const struct pf_session *session, const void *request, size_t size,
                 size_t position, struct checked *checked, struct pinfold_transfer_result *result)
{
    char **path = &checked->paths[checked->count];
    char *to = (char *)checked->requests + checked->count * size;
    const char *given;
    int r;

    memcpy(&given, request, sizeof(given));
    r = pf_sandbox_path(session, given, path, &result->error);
    result->path = strdup(given);
    if (r == -PINFOLD_ENOMEM || !result->path)
        return -PINFOLD_ENOMEM;
    if (r < 0)
        return 0;
    memcpy(to, request, size);
    memcpy(to, path, sizeof(*path));
    checked->index[checked->count++] = position;
    return 0;
}

/* requests: count of them, of this size each. */
static int check_all(const struct pf_session *session, const void *requests, size_t size,
                     size_t count, struct checked *checked,
                     struct pinfold_transfer_results *results, struct pinfold_error *err)
{
    int r = 0;

    checked->requests = calloc(count + 1, size);
    checked->index = calloc(count + 1, sizeof(*checked->index));
    checked->paths = calloc(count + 1, sizeof(*checked->paths));
    if (!checked->requests || !checked->index || !checked->paths)
        return pf_fail_nomem(err);
    for (size_t i = 0; i < count && r == 0; i++)
        r = check(session, (const char *)requests + i * size, size, i, checked, &results->items[i]);
    return r < 0 ? pf_fail_nomem(err) : 0;
}

/* Put what the backend said of each file back to where the caller asked for it. */
static int merge(const struct checked *checked, struct pinfold_transfer_results *from,
                 struct pinfold_transfer_results *to, struct pinfold_error *err)
{
    if (from->count != checked->count)
        return pf_fail(err, PINFOLD_EBACKEND, "the backend gave %zu results for %zu files",
                       from->count, checked->count);
    for (size_t i = 0; i < from->count; i++) {
        struct pinfold_transfer_result *result = &to->items[checked->index[i]];
        result->error = from->items[i].error;
        result->skipped = from->items[i].skipped;
        result->content = from->items[i].content;
        from->items[i].content = (struct pinfold_bytes){ 0 };
    }
    return 0;
}

/* One error for all that failed: the first, and how many more. 0 when none did. */
static int summarise(const struct pinfold_transfer_results *results, const char *operation,
                     int64_t *ret_failed, struct pinfold_error *err)
{
    const struct pinfold_transfer_result *first = NULL;
    int64_t failed = 0;

    for (size_t i = 0; i < results->count; i++)
        if (results->items[i].error.code != 0) {
            first = first ? first : &results->items[i];
            failed++;
        }
    *ret_failed = failed;
    if (!first)
        return 0;
    *err = first->error;
    if (failed > 1)
        return pf_wrap(err, -first->error.code, "%s: %lld of %zu files failed, first", operation,
                       (long long)failed, results->count);
    return pf_wrap(err, -first->error.code, "%s", operation);
}

/* ---- add_files ---- */

static int upload(struct pf_session *session, const struct pinfold_upload *files, size_t count,
                  bool overwrite, struct pinfold_transfer_results *results,
                  struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_transfer_results_done) struct pinfold_transfer_results got = { 0 };
    PF_CLEANUP(checked_done) struct checked checked = { 0 };
    int r = check_all(session, files, sizeof(*files), count, &checked, results, err);

    if (r < 0)
        return r;
    r = PF_BACKEND_CALL(pf_session_backend(session), err, upload_files, checked.requests,
                        checked.count, overwrite, &got, cancel, err);
    return r < 0 ? r : merge(&checked, &got, results, err);
}

static int list_written(const struct pinfold_transfer_results *results, struct pinfold_strings *ret)
{
    for (size_t i = 0; i < results->count; i++)
        if (results->items[i].error.code == 0 && !results->items[i].skipped &&
            pf_strings_add(ret, results->items[i].path) < 0)
            return -PINFOLD_ENOMEM;
    return 0;
}

int pinfold_sandbox_add_files(struct pinfold_sandbox *sandbox, const struct pinfold_upload *files,
                              size_t count, bool overwrite, struct pinfold_strings *ret_paths,
                              struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_transfer_results_done) struct pinfold_transfer_results results = { 0 };
    PF_CLEANUP(pinfold_strings_done) struct pinfold_strings written = { 0 };
    struct pinfold_audit_event event = PF_AUDIT_EVENT_INIT("sandbox.add_files");
    _cleanup_operation_ struct pf_session *session = NULL;
    struct pinfold_error local = PINFOLD_ERROR_INIT;
    int r = pf_sandbox_begin_change(sandbox, &event, &session, err);

    if (r < 0)
        return r;
    event.errors = 0;
    r = pf_transfer_results_new(count, &results) < 0 ? pf_fail_nomem(&local) : 0;
    if (r == 0)
        r = upload(session, files, count, overwrite, &results, cancel, &local);
    if (r == 0)
        r = summarise(&results, "add_files", &event.errors, &local);
    if (list_written(&results, &written) < 0 || pf_strings_take(&written, strdup("")) < 0) {
        r = pf_fail_nomem(&local);
    } else { /* a terminator for the audit's vector */
        free(written.items[--written.count]);
        written.items[written.count] = NULL;
        event.paths = (const char *const *)written.items;
        event.files = (int64_t)written.count;
    }
    pf_sandbox_audit(sandbox, session, &event, r, &local);
    if (r < 0 && err)
        *err = local;
    if (ret_paths) {
        *ret_paths = written;
        written = (struct pinfold_strings){ 0 };
    }
    return r;
}

/* ---- download_files ---- */

static int download(struct pinfold_sandbox *sandbox, struct pf_session *session,
                    const struct pinfold_download *files, size_t count, bool overwrite,
                    struct pinfold_transfer_results *results, struct pinfold_cancel *cancel,
                    struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_transfer_results_done) struct pinfold_transfer_results got = { 0 };
    PF_CLEANUP(checked_done) struct checked checked = { 0 };
    int r = check_all(session, files, sizeof(*files), count, &checked, results, err);

    if (r < 0)
        return r;
    r = PF_BACKEND_CALL(pf_sandbox_reader(sandbox, session), err, download_files, checked.requests,
                        checked.count, overwrite, &got, cancel, err);
    return r < 0 ? r : merge(&checked, &got, results, err);
}

static int64_t count_fetched(const struct pinfold_transfer_results *results)
{
    int64_t fetched = 0;

    for (size_t i = 0; i < results->count; i++)
        fetched += results->items[i].error.code == 0 && !results->items[i].skipped;
    return fetched;
}

int pinfold_sandbox_download_files(struct pinfold_sandbox *sandbox,
                                   const struct pinfold_download *files, size_t count,
                                   bool overwrite, struct pinfold_transfer_results *ret_results,
                                   struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_transfer_results_done) struct pinfold_transfer_results results = { 0 };
    struct pinfold_audit_event event = PF_AUDIT_EVENT_INIT("sandbox.download_files");
    _cleanup_operation_ struct pf_session *session = NULL;
    struct pinfold_error local = PINFOLD_ERROR_INIT;
    int r = pf_sandbox_begin(sandbox, &session, err);

    if (r < 0)
        return r;
    event.files = event.errors = 0;
    r = pf_transfer_results_new(count, &results) < 0 ? pf_fail_nomem(&local) : 0;
    if (r == 0)
        r = download(sandbox, session, files, count, overwrite, &results, cancel, &local);
    if (r == 0) { /* else nobody has said which of them were */
        r = summarise(&results, "download_files", &event.errors, &local);
        event.files = count_fetched(&results);
    }
    event.path = count == 1 ? files[0].path : NULL;
    pf_sandbox_audit(sandbox, session, &event, r, &local);
    if (r < 0 && err)
        *err = local;
    if (ret_results) {
        *ret_results = results;
        results = (struct pinfold_transfer_results){ 0 };
    }
    return r;
}

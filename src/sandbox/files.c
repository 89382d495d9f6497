/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on single files: each is one call of the backend, and an audit event if it changes
 * something. */
#include "sandbox/sandbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/utf8.h"
#include "tree/file.h"

/* ---- reading ---- */

static int read_bytes(struct pinfold_sandbox *sandbox, const char *path, struct pinfold_bytes *ret,
                      struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    _cleanup_operation_ struct pf_session *session = NULL;
    _cleanup_free_ char *normalised = NULL;
    int r = pf_sandbox_begin(sandbox, &session, err);

    if (r == 0)
        r = pf_sandbox_path(session, path, &normalised, err);
    if (r < 0)
        return r;
    return PF_BACKEND_CALL(pf_sandbox_reader(sandbox, session), err, read_file, normalised, ret,
                           cancel, err);
}

int pinfold_sandbox_read_file(struct pinfold_sandbox *sandbox, const char *path,
                              struct pinfold_bytes *ret_text, struct pinfold_cancel *cancel,
                              struct pinfold_error *err)
{
    struct pinfold_bytes text = { 0 };
    size_t bad = 0;
    int r = read_bytes(sandbox, path, &text, cancel, err);

    if (r < 0)
        return r;
    if (pf_utf8_valid(text.data, text.len, &bad)) {
        *ret_text = text;
        return 0;
    }
    r = pf_fail(err, PINFOLD_EENCODING,
                "read %s: not UTF-8 text at byte %zu of %zu; use download_files for binary files",
                PF_QUOTE(path), bad, text.len);
    pinfold_bytes_done(&text);
    return r;
}

int pinfold_sandbox_try_read_file(struct pinfold_sandbox *sandbox, const char *path,
                                  struct pinfold_bytes *ret_text)
{
    _cleanup_operation_ struct pf_session *session = NULL;
    _cleanup_free_ char *normalised = NULL;
    const struct pinfold_backend *backend;
    struct pinfold_bytes text = { 0 };

    if (pf_sandbox_begin(sandbox, &session, NULL) < 0 ||
        pf_sandbox_path(session, path, &normalised, NULL) < 0)
        return 0;
    backend = pf_sandbox_reader(sandbox, session);
    if (!backend->ops->try_read_file ||
        !backend->ops->try_read_file(backend->state, normalised, PINFOLD_TRY_READ_MAX_BYTES, &text))
        return 0;
    if (pf_utf8_valid(text.data, text.len, NULL)) {
        *ret_text = text;
        return 1;
    }
    pinfold_bytes_done(&text);
    return 0;
}

/* Where line number `line` starts, counting '\n' only; len when there are fewer. */
static size_t line_start(const struct pinfold_bytes *text, size_t from, uint64_t lines)
{
    while (lines > 0 && from < text->len) {
        const char *end = memchr(text->data + from, '\n', text->len - from);
        from = end ? (size_t)(end - text->data) + 1 : text->len;
        lines--;
    }
    return from;
}

static uint64_t count_lines(const struct pinfold_bytes *text)
{
    uint64_t count = 0;

    for (size_t at = 0; at < text->len; count++)
        at = line_start(text, at, 1);
    return count;
}

size_t pinfold_fit_lines(const struct pinfold_bytes *text, size_t max, uint64_t *ret_lines)
{
    struct pinfold_bytes shown = { text->data, text->len };
    const char *end;

    if (max < text->len) {
        end = memrchr(text->data, '\n', max);
        shown.len = end ? (size_t)(end - text->data) + 1 : pf_utf8_floor(text->data, max);
        if (shown.len == 0)
            shown.len = pf_utf8_width(text->data, text->len);
    }
    if (ret_lines)
        *ret_lines = count_lines(&shown);
    return shown.len;
}

int pinfold_sandbox_read_lines(struct pinfold_sandbox *sandbox, const char *path, int64_t offset,
                               int64_t limit, struct pinfold_bytes *ret_text, uint64_t *ret_lines,
                               struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_bytes_done) struct pinfold_bytes text = { 0 };
    struct pf_buf page = PF_BUF_INIT(PF_BUF_UNLIMITED);
    size_t start, end;
    int r = pinfold_sandbox_read_file(sandbox, path, &text, cancel, err);

    if (r < 0)
        return r;
    start = line_start(&text, 0, offset > 0 ? (uint64_t)offset : 0);
    end = line_start(&text, start, limit > 0 ? (uint64_t)limit : 0);
    if (pf_buf_append(&page, text.data + start, end - start) < 0 ||
        pf_buf_take(&page, ret_text) < 0) {
        pf_buf_done(&page);
        return pf_fail_nomem(err);
    }
    if (ret_lines)
        *ret_lines = count_lines(&text);
    return 0;
}

int pinfold_sandbox_list_dir(struct pinfold_sandbox *sandbox, const char *path,
                             struct pinfold_file_infos *ret_infos, struct pinfold_cancel *cancel,
                             struct pinfold_error *err)
{
    _cleanup_operation_ struct pf_session *session = NULL;
    _cleanup_free_ char *normalised = NULL;
    int r = pf_sandbox_begin(sandbox, &session, err);

    if (r == 0)
        r = pf_sandbox_path(session, *path ? path : ".", &normalised, err);
    if (r < 0)
        return r;
    r = PF_BACKEND_CALL(pf_sandbox_reader(sandbox, session), err, list_dir, normalised, ret_infos,
                        cancel, err);
    if (r == 0)
        pf_infos_sort(ret_infos); /* a backend may be anybody's */
    return r;
}

/* ---- changing ---- */

int pinfold_sandbox_write_file(struct pinfold_sandbox *sandbox, const char *path, const void *data,
                               size_t len, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pinfold_audit_event event = PF_AUDIT_EVENT_INIT("sandbox.write_file");
    _cleanup_operation_ struct pf_session *session = NULL;
    struct pinfold_error local = PINFOLD_ERROR_INIT;
    _cleanup_free_ char *normalised = NULL;
    int r;

    event.path = path;
    event.bytes = (int64_t)len;
    r = pf_sandbox_begin_change(sandbox, &event, &session, err);
    if (r < 0)
        return r;
    r = pf_sandbox_path(session, path, &normalised, &local);
    if (r == 0)
        r = PF_BACKEND_CALL(pf_session_backend(session), &local, write_file, normalised, data, len,
                            false, cancel, &local);
    event.path = normalised ? normalised : path;
    pf_sandbox_audit(sandbox, session, &event, r, &local);
    if (r < 0 && err)
        *err = local;
    return r;
}

static int delete_one(struct pf_session *session, const char *path, struct pinfold_cancel *cancel,
                      struct pinfold_error *err)
{
    _cleanup_free_ char *normalised = NULL;
    int r = pf_sandbox_path(session, path, &normalised, err);

    if (r < 0)
        return r;
    return PF_BACKEND_CALL(pf_session_backend(session), err, remove_file, normalised, cancel, err);
}

int pinfold_sandbox_delete_files(struct pinfold_sandbox *sandbox, const char *const *paths,
                                 struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pinfold_audit_event event = PF_AUDIT_EVENT_INIT("sandbox.delete_files");
    struct pinfold_error first = PINFOLD_ERROR_INIT, one = PINFOLD_ERROR_INIT;
    _cleanup_operation_ struct pf_session *session = NULL;
    int r, result;

    event.paths = paths;
    result = pf_sandbox_begin_change(sandbox, &event, &session, err);
    if (result < 0)
        return result;
    event.files = event.errors = 0;
    for (size_t i = 0; paths[i]; i++) {
        r = delete_one(session, paths[i], cancel, &one);
        event.files += r == 0;
        event.errors += r < 0;
        if (r < 0 && result == 0) {
            result = r;
            first = one;
        }
        if (r == -PINFOLD_ECANCELLED || r == -PINFOLD_ENOMEM)
            break;
    }
    if (event.errors > 1)
        pf_wrap(&first, result, "%lld of the files could not be deleted, first",
                (long long)event.errors);
    pf_sandbox_audit(sandbox, session, &event, result, &first);
    if (result < 0 && err)
        *err = first;
    return result;
}

static int verify_copy(struct pinfold_backend *backend, const char *dest,
                       const struct pinfold_bytes *content, struct pinfold_cancel *cancel,
                       struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_bytes_done) struct pinfold_bytes written = { 0 };
    int r = PF_BACKEND_CALL(backend, err, read_file, dest, &written, cancel, err);

    if (r < 0)
        return r;
    if (written.len == content->len &&
        (content->len == 0 || memcmp(written.data, content->data, content->len) == 0))
        return 0;
    return pf_fail(err, PINFOLD_EBACKEND,
                   "%s does not hold what was written to it; the source is kept", PF_QUOTE(dest));
}

/* Move on a backend without a rename: read, write, verify, and only then delete. */
static int move_by_copy(struct pinfold_backend *backend, const char *src, const char *dest,
                        struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_bytes_done) struct pinfold_bytes content = { 0 };
    int r = PF_BACKEND_CALL(backend, err, read_file, src, &content, cancel, err);

    if (r < 0 || strcmp(src, dest) == 0)
        return r; /* onto itself: it exists, and that is all */
    r = PF_BACKEND_CALL(backend, err, write_file, dest, content.data, content.len, false, cancel,
                        err);
    if (r == 0)
        r = verify_copy(backend, dest, &content, cancel, err);
    if (r == 0)
        r = PF_BACKEND_CALL(backend, err, remove_file, src, cancel, err);
    return r;
}

int pinfold_sandbox_move_file(struct pinfold_sandbox *sandbox, const char *src, const char *dest,
                              struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pinfold_audit_event event = PF_AUDIT_EVENT_INIT("sandbox.move_file");
    _cleanup_operation_ struct pf_session *session = NULL;
    _cleanup_free_ char *from = NULL, *to = NULL;
    struct pinfold_error local = PINFOLD_ERROR_INIT;
    struct pinfold_backend *backend;
    int r;

    event.path = src;
    event.dest = dest;
    r = pf_sandbox_begin_change(sandbox, &event, &session, err);
    if (r < 0)
        return r;
    backend = pf_session_backend(session);
    r = pf_sandbox_path(session, src, &from, &local);
    if (r == 0)
        r = pf_sandbox_path(session, dest, &to, &local);
    if (r == 0)
        r = backend->ops->move_file
                    ? backend->ops->move_file(backend->state, from, to, cancel, &local)
                    : move_by_copy(backend, from, to, cancel, &local);
    pf_sandbox_audit(sandbox, session, &event, r, &local);
    if (r < 0 && err)
        *err = local;
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Replacing an exact text in a file. */
#include <pinfold/changes.h>

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "sandbox/sandbox.h"
#include "tree/file.h"

struct piece {
    const char *data;
    size_t len;
};

/* Where the text is in the file. */
struct places {
    uint64_t count;    /* that do not overlap, or 2 when the only one overlaps another */
    uint64_t lines[5]; /* of the first of them, from 1 */
};

static const char *find_next(const char *from, const char *end, struct piece text)
{
    return memmem(from, (size_t)(end - from), text.data, text.len);
}

static uint64_t count_newlines(const char *from, const char *to)
{
    uint64_t count = 0;

    while ((from = memchr(from, '\n', (size_t)(to - from)))) {
        count++;
        from++;
    }
    return count;
}

static struct places find_places(struct piece file, struct piece text)
{
    const char *end = file.data + file.len, *at = file.data, *first = NULL, *counted = file.data;
    struct places places = { 0 };
    uint64_t line = 1;

    for (; (at = find_next(at, end, text)); at += text.len) {
        if (places.count < PF_COUNT(places.lines)) {
            line += count_newlines(counted, at);
            counted = at;
            places.lines[places.count] = line;
        }
        if (places.count++ == 0)
            first = at;
    }
    if (places.count == 1 && (at = find_next(first + 1, end, text))) {
        places.count = 2;
        places.lines[1] = line + count_newlines(counted, at);
    }
    return places;
}

static int fail_missing(const char *path, struct piece text, struct pinfold_error *err)
{
    bool crlf = memmem(text.data, text.len, "\n", 1) && !memmem(text.data, text.len, "\r\n", 2);

    return pf_fail(err, PINFOLD_EVALUE,
                   "edit %s: the text to replace is not in it; it must match exactly, blanks%s "
                   "included",
                   PF_QUOTE(path), crlf ? " and line ends" : "");
}

static int fail_ambiguous(const char *path, const struct places *places, struct pinfold_error *err)
{
    struct pf_buf lines = PF_BUF_INIT(PF_QUOTE_MAX);
    int r = 0;

    for (size_t i = 0; r == 0 && i < PF_COUNT(places->lines) && i < places->count; i++)
        r = pf_buf_printf(&lines, "%s%llu", i ? ", " : "", (unsigned long long)places->lines[i]);
    if (r == 0 && places->count > PF_COUNT(places->lines))
        r = pf_buf_append_text(&lines, ", ...");
    r = pf_fail(err, PINFOLD_EVALUE,
                "edit %s: the text to replace is in it %llu times (lines %s); give more of what "
                "surrounds it, or replace all",
                PF_QUOTE(path), (unsigned long long)places->count, r < 0 ? "unknown" : lines.data);
    pf_buf_done(&lines);
    return r;
}

/* Make the new content. */
static int replace(struct piece file, struct piece from, struct piece to, uint64_t count,
                   const char *path, struct pf_buf *ret, struct pinfold_error *err)
{
    const char *end = file.data + file.len, *at = file.data, *next;
    int r = 0;

    if (to.len > from.len && count > (PINFOLD_READ_MAX_BYTES - file.len) / (to.len - from.len))
        return pf_fail_os(err, EFBIG, "edit %s: it would become larger than %zu bytes",
                          PF_QUOTE(path), PINFOLD_READ_MAX_BYTES);
    for (; r == 0 && (next = find_next(at, end, from)); at = next + from.len) {
        r = pf_buf_append(ret, at, (size_t)(next - at));
        if (r == 0)
            r = pf_buf_append(ret, to.data, to.len);
    }
    if (r == 0)
        r = pf_buf_append(ret, at, (size_t)(end - at));
    return r < 0 ? pf_fail_nomem(err) : 0;
}

/* On a backend that cannot write under a condition: look again right before. */
static int replace_file(struct pinfold_backend *backend, const char *path,
                        const struct pinfold_bytes *expected, const struct pf_buf *content,
                        struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_bytes_done) struct pinfold_bytes now = { 0 };
    int r;

    if (backend->ops->replace_file)
        return backend->ops->replace_file(backend->state, path, expected, content->data,
                                          content->len, cancel, err);
    r = PF_BACKEND_CALL(backend, err, read_file, path, &now, cancel, err);
    if (r < 0)
        return r;
    if (now.len != expected->len || memcmp(now.data, expected->data, now.len) != 0)
        return pf_file_changed(path, err);
    return PF_BACKEND_CALL(backend, err, write_file, path, content->data, content->len, false,
                           cancel, err);
}

static int edit(struct pinfold_backend *backend, const char *path,
                const struct pinfold_edit_options *options, struct pinfold_edit_result *ret,
                struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_bytes_done) struct pinfold_bytes file = { 0 };
    PF_CLEANUP(pf_buf_done) struct pf_buf content = PF_BUF_INIT(PF_BUF_UNLIMITED);
    const struct piece from = { options->old_text,
                                options->old_len ? options->old_len : strlen(options->old_text) };
    const struct piece to = { options->new_text,
                              options->new_len ? options->new_len : strlen(options->new_text) };
    struct places places;
    int r = PF_BACKEND_CALL(backend, err, read_file, path, &file, cancel, err);

    if (r < 0)
        return r;
    places = find_places((struct piece){ file.data ? file.data : "", file.len }, from);
    ret->replaced = places.count;
    ret->line = places.lines[0];
    ret->bytes = file.len;
    if (places.count == 0)
        return fail_missing(path, from, err);
    if (places.count > 1 && !options->replace_all)
        return fail_ambiguous(path, &places, err);
    r = replace((struct piece){ file.data, file.len }, from, to, places.count, path, &content, err);
    if (r < 0)
        return r;
    r = pf_buf_reserve(&content, 0) < 0 ? pf_fail_nomem(err)
                                        : replace_file(backend, path, &file, &content, cancel, err);
    if (r == 0)
        ret->bytes = content.len;
    return r;
}

static int check_options(const struct pinfold_edit_options *options, struct pinfold_error *err)
{
    size_t old_len, new_len;

    if (options->size != sizeof(*options))
        return pf_fail(err, PINFOLD_EVALUE, "edit: options of %zu bytes, not %zu", options->size,
                       sizeof(*options));
    if (!options->path || !options->old_text || !options->new_text)
        return pf_fail(err, PINFOLD_EVALUE, "edit: path, old and new text are needed");
    old_len = options->old_len ? options->old_len : strlen(options->old_text);
    new_len = options->new_len ? options->new_len : strlen(options->new_text);
    if (old_len == 0)
        return pf_fail(err, PINFOLD_EVALUE, "edit %s: the text to replace is empty",
                       PF_QUOTE(options->path));
    if (old_len == new_len && memcmp(options->old_text, options->new_text, old_len) == 0)
        return pf_fail(err, PINFOLD_EVALUE, "edit %s: the new text is the old one",
                       PF_QUOTE(options->path));
    return 0;
}

int pinfold_sandbox_edit(struct pinfold_sandbox *sandbox,
                         const struct pinfold_edit_options *options,
                         struct pinfold_edit_result *ret, struct pinfold_cancel *cancel,
                         struct pinfold_error *err)
{
    struct pinfold_audit_event event = PF_AUDIT_EVENT_INIT("sandbox.edit_file");
    _cleanup_operation_ struct pf_session *session = NULL;
    struct pinfold_error local = PINFOLD_ERROR_INIT;
    struct pinfold_edit_result unused;
    _cleanup_free_ char *path = NULL;
    int r = check_options(options, err);

    if (!ret)
        ret = &unused;
    *ret = (struct pinfold_edit_result){ 0 };
    if (r < 0)
        return r;
    event.path = options->path;
    r = pf_sandbox_begin_change(sandbox, &event, &session, err);
    if (r < 0)
        return r;
    r = pf_sandbox_path(session, options->path, &path, &local);
    if (r == 0)
        r = edit(pf_session_backend(session), path, options, ret, cancel, &local);
    event.path = path ? path : options->path;
    event.bytes = (int64_t)ret->bytes;
    pf_sandbox_audit(sandbox, session, &event, r, &local);
    if (r < 0 && err)
        *err = local;
    return r;
}

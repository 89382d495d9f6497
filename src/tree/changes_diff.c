/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "tree/beneath.h"
#include "tree/file.h"
#include "tree/unified.h"

enum {
    GIT_LINK = 0120000,
    FILE_BYTES = 1 << 20,
    DIFF_BYTES = 16 << 20,
    FILE_BYTES_MOST = 1 << 30, /* a line of a file is counted in 32 bits */
    CONTEXT = 3,
};

struct writer {
    const struct pf_changes_request *request;
    int seed_fd;
    struct pinfold_changes *changes;
    uint64_t file_bytes, diff_bytes; /* the limits */
    struct pf_buf text;              /* of one file */
};

static uint64_t or_default(uint64_t value, uint64_t fallback)
{
    return value ? value : fallback;
}

static int read_link(int root_fd, const char *path, struct pinfold_bytes *ret,
                     struct pinfold_error *err)
{
    char target[PATH_MAX];
    const char *name;
    _cleanup_close_ int dir_fd = pf_beneath_open_parent(root_fd, path, false, &name);
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(PATH_MAX);
    ssize_t len = dir_fd < 0 ? dir_fd : readlinkat(dir_fd, name, target, sizeof(target));

    if (dir_fd < 0 || len < 0)
        return pf_fail_os(err, dir_fd < 0 ? -dir_fd : errno, "read the symbolic link \"%s\"",
                          PF_QUOTE(path));
    if (pf_buf_append(&text, target, (size_t)len) < 0 || pf_buf_take(&text, ret) < 0)
        return pf_fail_nomem(err);
    return 0;
}

/* What one side has. mode 0: nothing. */
static int read_side(const struct writer *writer, int root_fd, const char *path, unsigned mode,
                     struct pinfold_bytes *ret, struct pinfold_error *err)
{
    if (!mode)
        return 0;
    if (mode == GIT_LINK)
        return read_link(root_fd, path, ret, err);
    return pf_file_read(root_fd, path, writer->file_bytes, ret, writer->request->cancel, err);
}

/* ---- one change ---- */

static int emit(struct writer *writer, struct pinfold_error *err)
{
    const struct pinfold_changes_options *options = writer->request->options;

    if (writer->text.len > 0 &&
        options->on_diff(options->on_diff_ctx, writer->text.data, writer->text.len) != 0)
        return pf_fail(err, PINFOLD_ECANCELLED, "write a diff: whoever receives it ended it");
    writer->changes->diff_bytes += writer->text.len;
    return 0;
}

/* A line in the place of a diff, which those who apply it pass over. */
static int remark(struct writer *writer, struct pinfold_change *change,
                  enum pinfold_change_shown shown, const char *why, struct pinfold_error *err)
{
    int r;

    change->shown = shown;
    writer->changes->cut = true;
    writer->text.len = 0;
    writer->text.limit = PF_BUF_UNLIMITED;
    r = pf_buf_append_text(&writer->text, "# ");
    if (r == 0)
        r = pf_unified_name(&writer->text, "", change->path);
    if (r == 0)
        r = pf_buf_printf(&writer->text, ": %s, not shown: %s\n",
                          pinfold_change_kind_name(change->kind), why);
    if (r < 0)
        return pf_fail_nomem(err);
    return writer->text.len + writer->changes->diff_bytes > writer->diff_bytes ? 0
                                                                               : emit(writer, err);
}

struct contents {
    struct pinfold_bytes old_text, new_text;
};

static void contents_done(struct contents *contents)
{
    pinfold_bytes_done(&contents->old_text);
    pinfold_bytes_done(&contents->new_text);
}

/* Of a change of type git makes two files: one that goes, and one that comes. */
static int put_change(struct pf_buf *out, const struct pinfold_change *change,
                      const struct contents *contents, unsigned context, bool binary)
{
    const struct pf_diff_side old_side = {
        .mode = change->old_mode,
        .text = { contents->old_text.data, contents->old_text.len },
    };
    const struct pf_diff_side new_side = {
        .mode = change->new_mode,
        .text = { contents->new_text.data, contents->new_text.len },
    };
    struct pf_diff_file file = { change->path, old_side, new_side, context };
    int r;

    if (change->kind != PINFOLD_CHANGE_TYPE)
        return pf_unified_file(out, &file, binary);
    file.new_side = (struct pf_diff_side){ .mode = 0 };
    r = pf_unified_file(out, &file, pf_text_is_binary(old_side.text));
    file.new_side = new_side;
    file.old_side = (struct pf_diff_side){ .mode = 0 };
    return r == 0 ? pf_unified_file(out, &file, pf_text_is_binary(new_side.text)) : r;
}

static int show(struct writer *writer, struct pinfold_change *change,
                const struct contents *contents, struct pinfold_error *err)
{
    const struct pinfold_changes_options *options = writer->request->options;
    uint64_t left = writer->diff_bytes - writer->changes->diff_bytes;
    const struct pf_text old_text = { contents->old_text.data, contents->old_text.len };
    const struct pf_text new_text = { contents->new_text.data, contents->new_text.len };
    bool binary = pf_text_is_binary(old_text) || pf_text_is_binary(new_text);
    int r;

    writer->text.len = 0;
    writer->text.limit = left < writer->file_bytes ? left : writer->file_bytes;
    r = put_change(&writer->text, change, contents,
                   (unsigned)or_default(options->context_lines, CONTEXT), binary);
    if (r == -PINFOLD_ENOMEM)
        return pf_fail_nomem(err);
    if (r < 0)
        return remark(writer, change, PINFOLD_SHOWN_TOO_LARGE,
                      left < writer->file_bytes ? "all diffs together are too large"
                                                : "its diff is too large",
                      err);
    change->shown = binary ? PINFOLD_SHOWN_BINARY : PINFOLD_SHOWN_TEXT;
    return emit(writer, err);
}

static bool is_too_large(const struct writer *writer, const struct pinfold_change *change)
{
    return (change->old_size > 0 && (uint64_t)change->old_size > writer->file_bytes) ||
           (change->new_size > 0 && (uint64_t)change->new_size > writer->file_bytes);
}

static int write_change(struct writer *writer, struct pinfold_change *change,
                        struct pinfold_error *err)
{
    PF_CLEANUP(contents_done) struct contents contents = { 0 };
    struct pinfold_error one = PINFOLD_ERROR_INIT;
    int r;

    if (is_too_large(writer, change))
        return remark(writer, change, PINFOLD_SHOWN_TOO_LARGE, "it is too large", err);
    if (change->kind == PINFOLD_CHANGE_MODE)
        return show(writer, change, &contents, err);
    r = read_side(writer, writer->seed_fd, change->path, change->old_mode, &contents.old_text,
                  &one);
    if (r == 0)
        r = read_side(writer, writer->request->root_fd, change->path, change->new_mode,
                      &contents.new_text, &one);
    if (r == 0)
        return show(writer, change, &contents, err);
    if (r == -PINFOLD_ECANCELLED || r == -PINFOLD_ENOMEM) {
        if (err)
            *err = one;
        return r;
    }
    if (pf_changes_note(&writer->changes->errors, "%s", one.msg) < 0)
        return pf_fail_nomem(err);
    return remark(writer, change, PINFOLD_SHOWN_FAILED, "it could not be read", err);
}

int pf_changes_write(const struct pf_changes_request *request, struct pinfold_changes *changes,
                     struct pinfold_error *err)
{
    const struct pf_seed_mark *mark = request->mark;
    _cleanup_close_ int seed_fd = request->options->on_diff ? pf_changes_open_seed(mark, err) : -1;
    struct writer writer = {
        .request = request,
        .seed_fd = seed_fd,
        .changes = changes,
        .file_bytes = or_default(request->options->max_file_bytes, FILE_BYTES),
        .diff_bytes = or_default(request->options->max_diff_bytes, DIFF_BYTES),
        .text = PF_BUF_INIT(PF_BUF_UNLIMITED),
    };
    int r = 0;

    if (!request->options->on_diff)
        return 0;
    if (seed_fd < 0 && mark->source)
        return seed_fd;
    if (writer.file_bytes > FILE_BYTES_MOST)
        writer.file_bytes = FILE_BYTES_MOST;
    for (size_t i = 0; r == 0 && i < changes->count; i++) {
        r = pf_cancel_check(request->cancel, err);
        if (r == 0)
            r = write_change(&writer, &changes->items[i], err);
    }
    pf_buf_done(&writer.text);
    return r;
}

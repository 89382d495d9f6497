/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/unified.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#include <pinfold/error.h>

bool pf_text_is_binary(struct pf_text text)
{
    enum { LOOKED_AT = 8000 };

    return text.len > 0 && memchr(text.data, '\0', text.len < LOOKED_AT ? text.len : LOOKED_AT);
}

/* ---- names ---- */

static bool needs_quotes(const char *path)
{
    for (; *path; path++) {
        unsigned char c = (unsigned char)*path;
        if (c < ' ' || c >= 0x7f || c == '"' || c == '\\')
            return true;
    }
    return false;
}

static int put_escaped(struct pf_buf *out, unsigned char c)
{
    static const char plain[] = "\a\b\t\n\v\f\r\"\\", letters[] = "abtnvfr\"\\";
    const char *found = c ? strchr(plain, c) : NULL;

    if (found)
        return pf_buf_printf(out, "\\%c", letters[found - plain]);
    return c < ' ' || c >= 0x7f ? pf_buf_printf(out, "\\%03o", (unsigned)c)
                                : pf_buf_append(out, &c, 1);
}

int pf_unified_name(struct pf_buf *out, const char *prefix, const char *path)
{
    bool quotes = needs_quotes(path);
    int r = quotes ? pf_buf_append_text(out, "\"") : 0;

    if (r == 0)
        r = pf_buf_append_text(out, prefix);
    if (!quotes)
        return r == 0 ? pf_buf_append_text(out, path) : r;
    for (; r == 0 && *path; path++)
        r = put_escaped(out, (unsigned char)*path);
    return r == 0 ? pf_buf_append_text(out, "\"") : r;
}

/* A line "--- a/path". A name with a blank is followed by a tab, or patch would end it there. */
static int put_file_line(struct pf_buf *out, const char *start, const char *prefix,
                         const struct pf_diff_side *side, const char *path)
{
    int r = pf_buf_append_text(out, start);

    if (r == 0)
        r = side->mode ? pf_unified_name(out, prefix, path) : pf_buf_append_text(out, "/dev/null");
    if (r == 0 && side->mode && strchr(path, ' '))
        r = pf_buf_append_text(out, "\t");
    return r == 0 ? pf_buf_append_text(out, "\n") : r;
}

/* ---- headers ---- */

/* With always even when nothing changes: without any such line git takes the head of a binary file
 * for a part of the next one's. */
static int put_modes(struct pf_buf *out, unsigned before, unsigned after, bool always)
{
    if (before == after && !always)
        return 0;
    if (!before)
        return pf_buf_printf(out, "new file mode %06o\n", after);
    if (!after)
        return pf_buf_printf(out, "deleted file mode %06o\n", before);
    return pf_buf_printf(out, "old mode %06o\nnew mode %06o\n", before, after);
}

static int put_git_line(struct pf_buf *out, const char *path)
{
    int r = pf_buf_append_text(out, "diff --git ");

    if (r == 0)
        r = pf_unified_name(out, "a/", path);
    if (r == 0)
        r = pf_buf_append_text(out, " ");
    if (r == 0)
        r = pf_unified_name(out, "b/", path);
    return r == 0 ? pf_buf_append_text(out, "\n") : r;
}

static int put_binary_line(struct pf_buf *out, const struct pf_diff_file *file)
{
    int r = pf_buf_append_text(out, "Binary files ");

    if (r == 0)
        r = file->old_side.mode ? pf_unified_name(out, "a/", file->path)
                                : pf_buf_append_text(out, "/dev/null");
    if (r == 0)
        r = pf_buf_append_text(out, " and ");
    if (r == 0)
        r = file->new_side.mode ? pf_unified_name(out, "b/", file->path)
                                : pf_buf_append_text(out, "/dev/null");
    return r == 0 ? pf_buf_append_text(out, " differ\n") : r;
}

/* ---- hunks ---- */

/* Where the walk through both texts stands: lines that are not changed go together. */
struct cursor {
    size_t old_at, new_at;
};

static bool is_changed(const struct pf_diff *diff, const struct cursor *at)
{
    return (at->old_at < diff->old_side.count && diff->old_side.changed[at->old_at]) ||
           (at->new_at < diff->new_side.count && diff->new_side.changed[at->new_at]);
}

/* Past the changed lines here. */
static void pass_change(const struct pf_diff *diff, struct cursor *at)
{
    while (at->old_at < diff->old_side.count && diff->old_side.changed[at->old_at])
        at->old_at++;
    while (at->new_at < diff->new_side.count && diff->new_side.changed[at->new_at])
        at->new_at++;
}

/* Past lines that are the same, at most max. Returns how many. */
static size_t pass_same(const struct pf_diff *diff, struct cursor *at, size_t max)
{
    size_t n = 0;

    while (n < max && at->old_at < diff->old_side.count && !is_changed(diff, at)) {
        at->old_at++;
        at->new_at++;
        n++;
    }
    return n;
}

static int put_line(struct pf_buf *out, char sign, const struct pf_lines *lines, size_t line)
{
    const char *at = lines->data + lines->starts[line];
    size_t len = lines->starts[line + 1] - lines->starts[line];
    int r = pf_buf_append(out, &sign, 1);

    if (r == 0)
        r = pf_buf_append(out, at, len);
    if (r == 0 && at[len - 1] != '\n')
        r = pf_buf_append_text(out, "\n\\ No newline at end of file\n");
    return r;
}

/* "3,7"; of an empty range the line before it. */
static int put_range(struct pf_buf *out, char sign, size_t from, size_t count)
{
    if (count == 1)
        return pf_buf_printf(out, "%c%zu", sign, from + 1);
    return pf_buf_printf(out, "%c%zu,%zu", sign, count ? from + 1 : from, count);
}

static int put_hunk(struct pf_buf *out, const struct pf_diff *diff, struct cursor from,
                    struct cursor to)
{
    int r = pf_buf_append_text(out, "@@ ");

    if (r == 0)
        r = put_range(out, '-', from.old_at, to.old_at - from.old_at);
    if (r == 0)
        r = pf_buf_append_text(out, " ");
    if (r == 0)
        r = put_range(out, '+', from.new_at, to.new_at - from.new_at);
    if (r == 0)
        r = pf_buf_append_text(out, " @@\n");
    while (r == 0 && (from.old_at < to.old_at || from.new_at < to.new_at)) {
        if (from.old_at < to.old_at && diff->old_side.changed[from.old_at]) {
            r = put_line(out, '-', &diff->old_side, from.old_at++);
        } else if (from.new_at < to.new_at && diff->new_side.changed[from.new_at]) {
            r = put_line(out, '+', &diff->new_side, from.new_at++);
        } else {
            r = put_line(out, ' ', &diff->old_side, from.old_at++);
            from.new_at++;
        }
    }
    return r;
}

/* Changes that are no further apart than twice the context share a hunk. */
static int put_hunks(struct pf_buf *out, const struct pf_diff *diff, size_t context)
{
    struct cursor at = { 0, 0 }, from, to, ahead;
    size_t before;
    int r = 0;

    for (;;) {
        before = pass_same(diff, &at, SIZE_MAX);
        if (!is_changed(diff, &at))
            return 0;
        before = before < context ? before : context;
        from = (struct cursor){ at.old_at - before, at.new_at - before };
        for (;;) {
            pass_change(diff, &at);
            to = ahead = at;
            pass_same(diff, &to, context);
            if (pass_same(diff, &ahead, 2 * context + 1) > 2 * context || !is_changed(diff, &ahead))
                break;
            at = ahead;
        }
        r = put_hunk(out, diff, from, to);
        if (r < 0)
            return r;
        at = to;
    }
}

static bool same_text(struct pf_text a, struct pf_text b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static int put_text(struct pf_buf *out, const struct pf_diff_file *file)
{
    PF_CLEANUP(pf_diff_done) struct pf_diff diff = { 0 };
    int r = pf_diff_texts(file->old_side.text, file->new_side.text, &diff);

    if (r == 0)
        r = put_file_line(out, "--- ", "a/", &file->old_side, file->path);
    if (r == 0)
        r = put_file_line(out, "+++ ", "b/", &file->new_side, file->path);
    return r == 0 ? put_hunks(out, &diff, file->context) : r;
}

int pf_unified_file(struct pf_buf *out, const struct pf_diff_file *file, bool binary)
{
    int r = put_git_line(out, file->path);

    if (r == 0)
        r = put_modes(out, file->old_side.mode, file->new_side.mode, binary);
    if (r == 0 && binary)
        return put_binary_line(out, file);
    if (r < 0 || same_text(file->old_side.text, file->new_side.text))
        return r;
    return put_text(out, file);
}

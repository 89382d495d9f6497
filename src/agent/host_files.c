/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_read and file_write: files of the host. Unlike those of a workspace they may be anywhere and
 * links are followed wherever they lead; this is what the host tools are for. Reading still never
 * waits for a FIFO, and writing never leaves half a file.
 */
#include "agent/host.h"

#include <glob.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "tree/file.h"
#include "tree/walk.h"

enum { SHOWN_MAX = 100000, PREVIEW_LINES = 50, FILE_MAX = 64 * 1024 * 1024 };

/* What file_read was asked for. */
struct reading {
    const char *mode;
    int64_t start, end, chunk, offset, context;
    const char *pattern;
    bool recursive;
    struct pf_host *host;
    struct pinfold_tool_call *call;
    struct pf_buf *out;
};

/* Open the directory of a host file, links resolved; *ret_name is its name there. free() the path.
 * Returns a descriptor or a negative code. */
static int open_parent(const char *path, bool create, char **ret_path, const char **ret_name,
                       struct pinfold_error *err)
{
    _cleanup_free_ char *expanded = NULL;
    char *real, *slash;
    int fd, r = pf_path_expand(path, &expanded, err);

    if (r < 0)
        return r;
    real = realpath(expanded, NULL);
    if (!real && !(create && errno == ENOENT))
        return pf_fail_os(err, errno, "open \"%s\"", PF_QUOTE(path));
    if (!real)
        real = TAKE(expanded); /* a new file: its directory is looked at below */
    slash = strrchr(real, '/');
    *ret_path = real;
    *ret_name = slash + 1;
    if (!slash[1])
        return pf_fail_os(err, EISDIR, "open \"%s\"", PF_QUOTE(path));
    *slash = '\0';
    fd = pf_root_open(slash == real ? "/" : real, create, NULL, err);
    *slash = slash == real ? '\0' : '/';
    return fd;
}

int pf_host_read_file(const char *path, struct pinfold_bytes *ret, struct pinfold_cancel *cancel,
                      struct pinfold_error *err)
{
    _cleanup_free_ char *real = NULL;
    const char *name;
    _cleanup_close_ int dir = open_parent(path, false, &real, &name, err);

    return dir < 0 ? dir : pf_file_read(dir, name, FILE_MAX, ret, cancel, err);
}

/* ---- modes ---- */

/* The start of line number n, from 0, or the end. */
static size_t line_start(const struct pinfold_bytes *text, int64_t n)
{
    size_t at = 0;

    while (n-- > 0 && at < text->len) {
        const char *end = memchr(text->data + at, '\n', text->len - at);

        at = end ? (size_t)(end - text->data) + 1 : text->len;
    }
    return at;
}

static int64_t count_lines(const struct pinfold_bytes *text)
{
    int64_t lines = text->len > 0 && text->data[text->len - 1] != '\n';

    for (size_t i = 0; i < text->len; i++)
        lines += text->data[i] == '\n';
    return lines;
}

static int show(struct pf_buf *out, const char *text, size_t len)
{
    size_t shown = len > SHOWN_MAX ? pf_utf8_floor(text, SHOWN_MAX) : len;
    int r = pf_buf_append(out, text, shown);

    if (r == 0 && shown < len)
        r = pf_buf_printf(out, "\n[%zu of %zu bytes are shown; use the mode lines or chunk.]",
                          shown, len);
    return r;
}

static int show_lines(struct reading *reading, const struct pinfold_bytes *text, int64_t first,
                      int64_t last)
{
    size_t from = line_start(text, first - 1), to = line_start(text, last);

    return to > from ? show(reading->out, text->data + from, to - from)
                     : pf_buf_printf(reading->out, "[The file has %" PRId64 " lines.]",
                                     count_lines(text));
}

static int show_chunk(struct reading *reading, const struct pinfold_bytes *text)
{
    size_t from = (uint64_t)reading->offset > text->len ? text->len : (size_t)reading->offset;
    size_t left = text->len - from;

    return show(reading->out, text->data + from,
                (uint64_t)reading->chunk < left ? (size_t)reading->chunk : left);
}

/* Where a search is: offsets of lines, and their numbers from 1. */
struct cursor {
    size_t at;
    int64_t number;
};

static size_t line_end(const struct pinfold_bytes *text, size_t at)
{
    const char *end = memchr(text->data + at, '\n', text->len - at);

    return end ? (size_t)(end - text->data) + 1 : text->len;
}

/* Print the line of a match and those around it, from shown on, which moves behind them. */
static int show_match(struct reading *reading, const struct pinfold_bytes *text,
                      struct cursor match, struct cursor *shown)
{
    struct cursor from = match;
    int r = 0;

    while (from.number > shown->number && match.number - from.number < reading->context) {
        const char *before = memrchr(text->data, '\n', from.at - 1);

        from.at = before ? (size_t)(before - text->data) + 1 : 0;
        from.number--;
    }
    if (from.number < shown->number)
        from = *shown;
    while (r == 0 && from.at < text->len && from.number <= match.number + reading->context &&
           reading->out->len < SHOWN_MAX) {
        size_t end = line_end(text, from.at);
        size_t len = end - from.at - (text->data[end - 1] == '\n');

        r = pf_buf_printf(reading->out, "%" PRId64 "%c %.*s\n", from.number,
                          from.number == match.number ? ':' : '-', (int)len, text->data + from.at);
        from = (struct cursor){ end, from.number + 1 };
    }
    *shown = from;
    return r;
}

/* Each line that has the pattern, numbered, with those around it. */
static int search(struct reading *reading, const struct pinfold_bytes *text)
{
    struct cursor here = { 0, 1 }, shown = { 0, 1 };
    size_t len = strlen(reading->pattern), end;
    bool found = false;
    int r = 0;

    for (; r == 0 && here.at < text->len; here = (struct cursor){ end, here.number + 1 }) {
        end = line_end(text, here.at);
        if (!memmem(text->data + here.at, end - here.at, reading->pattern, len))
            continue;
        found = true;
        if (reading->out->len >= SHOWN_MAX)
            return pf_buf_append_text(reading->out, "[There is more.]");
        r = show_match(reading, text, here, &shown);
    }
    return r == 0 && !found ? pf_buf_append_text(reading->out, "[Nothing was found.]") : r;
}

static int show_stats(struct reading *reading, const char *path, const struct pinfold_bytes *text)
{
    struct stat st;

    if (stat(path, &st) < 0)
        memset(&st, 0, sizeof(st));
    return pf_buf_printf(
            reading->out, "%zu bytes, %" PRId64 " lines, mode %04o, changed at %lld (Unix time)",
            text->len, count_lines(text), (unsigned)st.st_mode & 07777u, (long long)st.st_mtime);
}

static int show_file(struct reading *reading, const char *path, struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_bytes_done) struct pinfold_bytes text = { 0 };
    int r = pf_host_read_file(path, &text, reading->call->cancel, err);

    if (r < 0)
        return r;
    if (strcmp(reading->mode, "view") == 0)
        r = show(reading->out, text.data ? text.data : "", text.len);
    else if (strcmp(reading->mode, "lines") == 0)
        r = show_lines(reading, &text, reading->start < 1 ? 1 : reading->start, reading->end);
    else if (strcmp(reading->mode, "preview") == 0)
        r = show_lines(reading, &text, 1, PREVIEW_LINES);
    else if (strcmp(reading->mode, "chunk") == 0)
        r = show_chunk(reading, &text);
    else if (strcmp(reading->mode, "search") == 0)
        r = search(reading, &text);
    else
        r = show_stats(reading, path, &text);
    return r < 0 ? pf_fail_nomem(err) : 0;
}

/* ---- find ---- */

static int list_below(struct reading *reading, const char *path, struct pinfold_error *err)
{
    PF_CLEANUP(pf_walk_freep) struct pf_walk *walk = NULL;
    struct pf_walk_entry entry;
    _cleanup_close_ int fd = pf_root_open(path, false, NULL, err);
    int r, added = 0;

    if (fd < 0)
        return fd;
    r = pf_walk_new(fd, &walk, err);
    if (r < 0)
        return r;
    while (added == 0 && reading->out->len < SHOWN_MAX && (r = pf_walk_next(walk, &entry)) == 1) {
        if (entry.type == PF_WALK_FILE || entry.type == PF_WALK_LINK)
            added = pf_buf_printf(reading->out, "%s/%s\n", path, entry.path);
        if (entry.type == PF_WALK_DIR && !reading->recursive)
            pf_walk_skip(walk);
        if (pinfold_cancel_fired(reading->call->cancel))
            return pf_fail(err, PINFOLD_ECANCELLED, "cancelled");
    }
    if (added == 0 && reading->out->len >= SHOWN_MAX)
        added = pf_buf_append_text(reading->out, "[There is more.]\n");
    return r < 0 || added < 0 ? pf_fail_nomem(err) : 0;
}

static int find(struct reading *reading, const char *path, struct pinfold_error *err)
{
    struct stat st;

    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return list_below(reading, path, err);
    if (access(path, F_OK) < 0)
        return pf_fail_os(err, errno, "find \"%s\"", PF_QUOTE(path));
    return pf_buf_printf(reading->out, "%s\n", path) < 0 ? pf_fail_nomem(err) : 0;
}

/* ---- the tools ---- */

static int read_one(struct reading *reading, const char *path, struct pinfold_tool_result *ret,
                    struct pinfold_error *err)
{
    struct pf_buf out = PF_BUF_INIT(PF_BUF_UNLIMITED);
    int r;

    if (strcmp(reading->mode, "document") == 0)
        return pf_host_document(reading->call, path, ret, err);
    reading->out = &out;
    if (strcmp(reading->mode, "find") == 0)
        r = find(reading, path, err);
    else if (strcmp(reading->mode, "diff") == 0)
        r = pf_host_diff(reading->host, reading->call, path, &out, err);
    else if (strcmp(reading->mode, "time_machine") == 0)
        r = pf_host_history(reading->host, reading->call, path, &out, err);
    else
        r = show_file(reading, path, err);
    if (r == 0)
        r = pf_tool_result_text(ret, &out, err);
    reading->out = NULL;
    pf_buf_done(&out);
    return r;
}

/* One path of the call: "~" and wildcards are expanded; what matches nothing is taken as it is. */
static int read_pattern(struct reading *reading, const char *pattern,
                        struct pinfold_tool_result *ret, struct pinfold_error *err)
{
    glob_t found = { 0 };
    /* Unsafe is only where the list of who is logged in stands, which "~" without HOME looks at.
     * NOLINTNEXTLINE(concurrency-mt-unsafe) */
    int r = glob(pattern, GLOB_NOCHECK | GLOB_TILDE, NULL, &found);

    if (r != 0) {
        globfree(&found);
        return r == GLOB_NOSPACE ? pf_fail_nomem(err)
                                 : pf_fail(err, PINFOLD_EVALUE, "\"%s\" cannot be expanded",
                                           PF_QUOTE(pattern));
    }
    for (size_t i = 0; r == 0 && i < found.gl_pathc; i++)
        r = read_one(reading, found.gl_pathv[i], ret, err);
    globfree(&found);
    return r;
}

int pf_host_file_read(void *host, struct pinfold_tool_call *call, struct pinfold_tool_result *ret,
                      struct pinfold_error *err)
{
    struct reading reading = {
        .mode = pinfold_tool_call_string(call, "mode", NULL),
        .start = pinfold_tool_call_integer(call, "start_line", 1),
        .end = pinfold_tool_call_integer(call, "end_line", INT64_MAX),
        .chunk = pinfold_tool_call_integer(call, "chunk_size", 1024),
        .offset = pinfold_tool_call_integer(call, "chunk_offset", 0),
        .context = pinfold_tool_call_integer(call, "context_lines", 2),
        .pattern = pinfold_tool_call_string(call, "search_pattern", NULL),
        .recursive = pinfold_tool_call_bool(call, "recursive", true),
        .host = host,
        .call = call,
    };
    _cleanup_free_ char *paths = strdup(pinfold_tool_call_string(call, "path", NULL));
    char *rest = paths, *one;
    int r = 0;

    if (!paths)
        return pf_fail_nomem(err);
    if (strcmp(reading.mode, "search") == 0 && (!reading.pattern || !*reading.pattern))
        return pf_fail(err, PINFOLD_EVALUE, "the mode search needs a search_pattern");
    if (reading.context > 1000)
        reading.context = 1000;
    while (r == 0 && (one = strsep(&rest, ","))) {
        one += strspn(one, " ");
        if (*one)
            r = read_pattern(&reading, one, ret, err);
    }
    if (r == 0 && ret->count == 0)
        r = pf_fail(err, PINFOLD_EVALUE, "the path is empty");
    return r;
}

int pf_host_file_write(void *host, struct pinfold_tool_call *call, struct pinfold_tool_result *ret,
                       struct pinfold_error *err)
{
    _cleanup_free_ char *question = NULL, *real = NULL, *done = NULL;
    _cleanup_close_ int dir = -1;
    size_t len;
    const char *content = pinfold_tool_call_string(call, "content", &len), *path, *name;
    int r = pf_tool_call_text(call, "path", &path, err);

    if (r < 0)
        return r;
    if (asprintf(&question, "Write %zu bytes to the file %s of this host?", len, path) < 0) {
        question = NULL;
        return pf_fail_nomem(err);
    }
    if (!pf_host_consent(host,
                         &(struct pf_consent){ .tool = "file_write",
                                               .question = question,
                                               .strip = true,
                                               .explain = true },
                         ret))
        return 0;
    dir = open_parent(path, true, &real, &name, err);
    if (dir < 0)
        return dir;
    r = pf_file_write(dir, name, content, len, false, call->cancel, err);
    if (r == 0 && asprintf(&done, "Wrote %zu bytes to %s.", len, path) < 0) {
        done = NULL;
        r = pf_fail_nomem(err);
    }
    return r < 0 ? r : pinfold_tool_result_add_text(ret, done, strlen(done), err);
}

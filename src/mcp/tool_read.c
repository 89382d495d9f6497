/* SPDX-License-Identifier: Apache-2.0 */
/* The tool read_file. */
#include <inttypes.h>
#include <string.h>

#include "mcp/content.h"
#include "mcp/output.h"
#include "mcp/state.h"
#include "mcp/tool.h"

/* What is no text is given whole or not at all. */
enum { IMAGE_MAX = 4 * 1024 * 1024, BINARY_MAX = 256 * 1024 };

static const char description[] =
        "Read a file of the workspace. Text comes exactly as stored, from the line after offset "
        "on: "
        "a result has whole lines, up to about 30,000 bytes, and says in brackets at which offset "
        "to continue when there is more. Images (PNG, JPEG, GIF, WebP) come as images, other "
        "binary files of at most 256 KiB as base64.";

static const char input[] =
        "{\"type\":\"object\",\"properties\":{"
        "\"path\":{\"type\":\"string\",\"description\":\"File path relative to the workspace root, "
        "such as src/main.c. Absolute paths work only beneath /workspace.\"},"
        "\"offset\":{\"type\":[\"integer\",\"null\"],\"minimum\":0,\"description\":\"How many "
        "lines to skip. Default: 0.\"},"
        "\"limit\":{\"type\":[\"integer\",\"null\"],\"minimum\":1,\"description\":\"Maximum number "
        "of lines. Default: as many as fit.\"}},"
        "\"required\":[\"path\"],\"additionalProperties\":false}";

static const char output[] =
        "{\"type\":\"object\",\"properties\":{"
        "\"kind\":{\"enum\":[\"text\",\"image\",\"binary\"]},"
        "\"content\":{\"type\":\"string\",\"description\":\"Of text.\"},"
        "\"total_lines\":{\"type\":\"integer\",\"description\":\"That the text has.\"},"
        "\"next_offset\":{\"type\":[\"integer\",\"null\"],\"description\":\"Where to continue; "
        "null: this is the end.\"},"
        "\"bytes\":{\"type\":\"integer\",\"description\":\"Size of what is no text.\"}},"
        "\"required\":[\"kind\"]}";

/* ---- text ---- */

/* Of the lines from offset on, which text has all or some of, what fits. */
static void show_text(const struct pinfold_bytes *text, uint64_t offset, uint64_t lines, size_t max,
                      struct pf_mcp_result *ret)
{
    uint64_t lines_shown, next;
    size_t shown = pinfold_fit_lines(text, max, &lines_shown);
    bool cut_line = shown < text->len && text->data[shown - 1] != '\n';

    next = offset + lines_shown;
    if (shown)
        pf_mcp_add_text(ret, text->data, shown);
    if (!lines)
        pf_mcp_addf(ret, "[The file is empty.]");
    else if (offset >= lines)
        pf_mcp_addf(ret, "[The file has %" PRIu64 " lines; offset %" PRIu64 " is past its end.]",
                    lines, offset);
    else if (cut_line)
        pf_mcp_addf(ret,
                    "[Line %" PRIu64 " is longer than %zu bytes and was cut: use head -c, tail -c "
                    "or cut to see more of it. The next line is at offset=%" PRIu64 ".]",
                    next, shown, next);
    else if (next < lines)
        pf_mcp_addf(ret,
                    "[Lines %" PRIu64 " to %" PRIu64 " of %" PRIu64
                    ". Continue with offset=%" PRIu64 ".]",
                    offset + 1, next, lines, next);
    pf_mcp_set(ret, "kind", json_string("text"));
    pf_mcp_set(ret, "content", pf_mcp_text(text->data, shown));
    pf_mcp_set(ret, "total_lines", json_integer((json_int_t)lines));
    pf_mcp_set(ret, "next_offset", next < lines ? json_integer((json_int_t)next) : json_null());
}

/* ---- what is no text ---- */

static void add_image(struct pf_mcp_result *ret, const struct pinfold_bytes *bytes,
                      const char *type)
{
    json_t *block = json_object();

    ret->bad |= pf_mcp_put(block, "type", json_string("image"));
    ret->bad |= pf_mcp_put(block, "data", pf_mcp_base64(bytes->data, bytes->len));
    ret->bad |= pf_mcp_put(block, "mimeType", json_string(type));
    ret->bad |= pf_mcp_push(ret->content, block);
}

static void add_blob(struct pf_mcp_result *ret, const struct pinfold_bytes *bytes, const char *path)
{
    json_t *block = json_object(), *resource = json_object();

    ret->bad |= pf_mcp_put(resource, "uri", pf_mcp_uri(path));
    ret->bad |= pf_mcp_put(resource, "mimeType", json_string("application/octet-stream"));
    ret->bad |= pf_mcp_put(resource, "blob", pf_mcp_base64(bytes->data, bytes->len));
    ret->bad |= pf_mcp_put(block, "type", json_string("resource"));
    ret->bad |= pf_mcp_put(block, "resource", resource);
    ret->bad |= pf_mcp_push(ret->content, block);
}

static int show_binary(const struct pinfold_bytes *bytes, const char *path,
                       struct pf_mcp_result *ret, struct pinfold_error *err)
{
    const char *type = pf_mcp_image_type(bytes);

    if (bytes->len > (type ? IMAGE_MAX : BINARY_MAX))
        return pf_mcp_refuse(err,
                             "%.100s is no text and has %zu bytes, too many to be shown; look at "
                             "it with commands: file, od, head -c",
                             path, bytes->len);
    if (type)
        add_image(ret, bytes, type);
    else
        add_blob(ret, bytes, path);
    pf_mcp_set(ret, "kind", json_string(type ? "image" : "binary"));
    pf_mcp_set(ret, "bytes", json_integer((json_int_t)bytes->len));
    return 0;
}

static int read_binary(struct pf_mcp_call *call, struct pinfold_sandbox *sandbox, const char *path,
                       struct pf_mcp_result *ret, struct pinfold_error *err)
{
    __attribute__((cleanup(pinfold_bytes_done))) struct pinfold_bytes bytes = { 0 };
    bool is_text;
    int r = pf_mcp_read_whole(sandbox, path, &bytes, &is_text, call->cancel, err);

    if (r < 0)
        return r;
    /* It has become text meanwhile: then the start of it is as good an answer as any. */
    if (is_text) {
        uint64_t lines;
        pinfold_fit_lines(&bytes, SIZE_MAX, &lines);
        show_text(&bytes, 0, lines, pf_mcp_shown(call->session), ret);
        return 0;
    }
    return show_binary(&bytes, path, ret, err);
}

static int run(struct pf_mcp_call *call, const json_t *args, struct pf_mcp_result *ret,
               struct pinfold_error *err)
{
    __attribute__((cleanup(pinfold_bytes_done))) struct pinfold_bytes text = { 0 };
    const char *path = pf_mcp_path(args, "path", NULL, err);
    json_int_t offset = pf_mcp_integer(args, "offset", 0);
    struct pinfold_sandbox *sandbox;
    uint64_t lines = 0;
    int r = path ? pf_mcp_reading_begin(call->session, call->cancel, &sandbox, err) : -err->code;

    if (r < 0)
        return r;
    r = pinfold_sandbox_read_lines(sandbox, path, offset, pf_mcp_integer(args, "limit", INT64_MAX),
                                   &text, &lines, call->cancel, err);
    if (r == 0)
        show_text(&text, (uint64_t)offset, lines, pf_mcp_shown(call->session), ret);
    else if (r == -PINFOLD_EENCODING)
        r = read_binary(call, sandbox, path, ret, err);
    pf_mcp_reading_end(call->session);
    return r;
}

const struct pf_mcp_tool pf_mcp_read_file = {
    .name = "read_file",
    .title = "Read a file",
    .description = description,
    .input = input,
    .output = output,
    .traits = PF_MCP_READS,
    .run = run,
};

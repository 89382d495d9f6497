/* SPDX-License-Identifier: Apache-2.0 */
/* The tool search. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pinfold/search.h>

#include "cli/say.h"
#include "cli/text_stream.h"
#include "mcp/output.h"
#include "mcp/state.h"
#include "mcp/tool.h"

enum { NAMES_MAX = 64, RESULTS = 200 };

static const char description[] =
        "Find files of the workspace by their content, by their names, or by both. text is what "
        "lines must contain: plain text, or with regex an expression of PCRE2 that sees one line "
        "at "
        "a time. names are glob patterns (*.c, src/**, test_?.py); without text the files that "
        "match are listed. Results are sorted by path, one line each: path:line: text. Links are "
        "not followed; what is never written back (.git, node_modules, ...) is passed over unless "
        "everything is set. Prefer it to grep and find through execute.";

static const char input[] =
        "{\"type\":\"object\",\"properties\":{"
        "\"text\":{\"type\":[\"string\",\"null\"],\"minLength\":1,\"description\":\"What a line "
        "must contain.\"},"
        "\"regex\":{\"type\":\"boolean\",\"default\":false},"
        "\"ignore_case\":{\"type\":\"boolean\",\"default\":false},"
        "\"names\":{\"type\":[\"array\",\"null\"],\"items\":{\"type\":\"string\"},\"maxItems\":64,"
        "\"description\":\"Only files that one of these patterns matches.\"},"
        "\"path\":{\"type\":[\"string\",\"null\"],\"description\":\"Only in this directory or "
        "file. Default: everywhere.\"},"
        "\"context_lines\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":20,\"default\":0},"
        "\"max_results\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":2000,\"default\":200},"
        "\"everything\":{\"type\":\"boolean\",\"default\":false,\"description\":\"Also what is "
        "excluded from being written back.\"}},"
        "\"additionalProperties\":false}";

static const char output[] =
        "{\"type\":\"object\",\"properties\":{"
        "\"matches\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"
        "\"path\":{\"type\":\"string\"},\"line\":{\"type\":\"integer\"},"
        "\"text\":{\"type\":\"string\"},\"context\":{\"type\":\"boolean\"}},"
        "\"required\":[\"path\"]}},"
        "\"files_searched\":{\"type\":\"integer\"},"
        "\"truncated\":{\"type\":\"boolean\",\"description\":\"There may be more.\"}},"
        "\"required\":[\"matches\",\"files_searched\",\"truncated\"]}";

static json_t *entry(const struct pinfold_search_match *match, const char *path)
{
    json_t *object = json_object();
    int bad = pf_mcp_put(object, "path", json_string(path));

    if (match->line) {
        bad |= pf_mcp_put(object, "line", json_integer((json_int_t)match->line));
        bad |= pf_mcp_put(object, "text", pf_mcp_text(match->text, match->text_len));
    }
    if (match->is_context)
        bad |= pf_mcp_put(object, "context", json_true());
    return pf_mcp_whole(object, bad);
}

static void print(FILE *to, const struct pinfold_search_match *match, const char *path)
{
    char mark = match->is_context ? '-' : ':';

    fputs(path, to);
    if (match->line) {
        fprintf(to, "%c%" PRIu64 "%c ", mark, match->line, mark);
        fwrite(match->text, 1, match->text_len, to);
        fputs(match->line_cut ? " [...]" : "", to);
    }
    putc('\n', to);
}

/* As many matches as are shown at once. Returns how many those are. */
static size_t print_matches(FILE *to, size_t room, const struct pinfold_search_result *result,
                            json_t *list, int *bad)
{
    size_t i;

    for (i = 0; i < result->count && (size_t)ftell(to) < room; i++) {
        char *path = pf_printable(result->items[i].path);
        if (path) {
            print(to, &result->items[i], path);
            *bad |= pf_mcp_push(list, entry(&result->items[i], path));
        } else {
            *bad = -1;
        }
        free(path);
    }
    return i;
}

static int show(struct pf_mcp_session *session, const struct pinfold_search_result *result,
                struct pf_mcp_result *ret, struct pinfold_error *err)
{
    json_t *list = json_array();
    char *text = NULL;
    size_t len = 0, shown;
    FILE *to = pf_text_stream(&text, &len);
    bool more;

    if (!to) {
        json_decref(list);
        return pf_mcp_nomem(err);
    }
    shown = print_matches(to, pf_mcp_shown(session), result, list, &ret->bad);
    more = shown < result->count || result->truncated;
    if (!result->count)
        fprintf(to, "[Nothing was found in %" PRIu64 " files.]\n", result->files_searched);
    if (more)
        fputs("[There is more: narrow it down by path, names or text.]\n", to);
    if (result->skipped_large || result->skipped_hard)
        fprintf(to,
                "[Not searched: %" PRIu64 " files that are too large, %" PRIu64
                " for which the expression takes too long.]\n",
                result->skipped_large, result->skipped_hard);
    for (size_t i = 0; i < result->errors.count && i < 10; i++)
        fprintf(to, "[%s]\n", result->errors.items[i]);
    if (ferror(to) | fclose(to))
        ret->bad = -1;
    pf_mcp_add_text(ret, text, len);
    free(text);
    pf_mcp_set(ret, "matches", list);
    pf_mcp_set(ret, "files_searched", json_integer((json_int_t)result->files_searched));
    pf_mcp_set(ret, "truncated", json_boolean(more));
    return 0;
}

/* The patterns, NULL-terminated, or NULL for none. */
static int take_names(const json_t *args, const char *names[static NAMES_MAX + 1],
                      struct pinfold_error *err)
{
    const json_t *list = json_object_get(args, "names"), *name;
    size_t i;

    json_array_foreach(list, i, name) {
        if (i == NAMES_MAX || strlen(json_string_value(name)) != json_string_length(name))
            return pf_mcp_refuse(err, "names: more than %d of them, or a NUL byte", NAMES_MAX);
        names[i] = json_string_value(name);
    }
    return 0;
}

static int run(struct pf_mcp_call *call, const json_t *args, struct pf_mcp_result *ret,
               struct pinfold_error *err)
{
    __attribute__((
            cleanup(pinfold_search_result_done))) struct pinfold_search_result result = { 0 };
    struct pinfold_search_options options = PINFOLD_SEARCH_OPTIONS_INIT;
    const char *names[NAMES_MAX + 1] = { NULL };
    struct pinfold_sandbox *sandbox;
    int r = take_names(args, names, err);

    if (r < 0)
        return r;
    options.path = pf_mcp_path(args, "path", ".", err);
    if (!options.path)
        return -err->code;
    options.names = names[0] ? names : NULL;
    options.text = pf_mcp_string(args, "text", &options.text_len);
    options.regex = pf_mcp_flag(args, "regex", false);
    options.ignore_case = pf_mcp_flag(args, "ignore_case", false);
    options.everything = pf_mcp_flag(args, "everything", false);
    options.context_lines = (unsigned)pf_mcp_integer(args, "context_lines", 0);
    options.max_results = (uint64_t)pf_mcp_integer(args, "max_results", RESULTS);
    if (!options.text && !options.names)
        return pf_mcp_refuse(err, "search for what? Give text, names or both");
    r = pf_mcp_workspace_begin(call->session, call->cancel, &sandbox, err);
    if (r < 0)
        return r;
    r = pinfold_sandbox_search(sandbox, &options, &result, call->cancel, err);
    pf_mcp_workspace_end(call->session);
    return r < 0 ? r : show(call->session, &result, ret, err);
}

const struct pf_mcp_tool pf_mcp_search = {
    .name = "search",
    .title = "Search the workspace",
    .description = description,
    .input = input,
    .output = output,
    .traits = PF_MCP_READS,
    .run = run,
};

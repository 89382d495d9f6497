/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searching as models ask for it, in files of agents. The first three bytes choose how, then a text
 * or an expression, and after a NUL the file. What is found lies in its line, and a fixed text is
 * found in just the lines that have it.
 */
#include <ctype.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "tree/search.h"
#include "fuzz.h"

enum { CPU_MS = 20, MATCHES = 50 };

static void check_match(const struct pinfold_search_match *match,
                        const struct pinfold_search_options *options)
{
    demand(match->line > 0 && strcmp(match->path, "f") == 0);
    demand(match->is_context ? match->column == 0 : match->column > 0);
    demand(pf_utf8_valid(match->text, match->text_len, NULL));
    demand(match->text_len <= 3 * options->max_line_bytes &&
           !memchr(match->text, '\n', match->text_len));
}

static uint64_t check_all(const struct pinfold_search_result *result,
                          const struct pinfold_search_options *options)
{
    uint64_t line = 0, matches = 0;

    for (size_t i = 0; i < result->count; i++) {
        check_match(&result->items[i], options);
        demand(result->items[i].line > line);
        line = result->items[i].line;
        matches += !result->items[i].is_context;
    }
    return matches;
}

/* In how many lines a text without line ends is. */
static uint64_t count_lines(const char *text, size_t len, const char *file, size_t file_len)
{
    uint64_t count = 0;

    for (size_t at = 0, end; at < file_len; at = end + 1) {
        const char *newline = memchr(file + at, '\n', file_len - at);
        end = newline ? (size_t)(newline - file) : file_len;
        count += memmem(file + at, end - at, text, len) != NULL;
    }
    return count;
}

static void search(const struct pinfold_search_options *options, const char *file, size_t len)
{
    struct pinfold_search_result result = { 0 };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pf_matcher *matcher = NULL;
    uint64_t matches = 0, wanted;
    int r = pf_matcher_new(options, NULL, &matcher, &err);

    demand(r == 0 || (r == -PINFOLD_EVALUE && err.msg[0]));
    if (r < 0)
        return;
    r = pf_search_file(matcher, options, "f", file, len, MATCHES, &result, &matches);
    demand(r >= 0 && matches <= MATCHES && check_all(&result, options) == matches);
    if (!options->regex && !options->ignore_case && r != PF_MATCH_NO_TIME &&
        !memchr(options->text, '\n', options->text_len)) {
        wanted = count_lines(options->text, options->text_len, file, len);
        demand(matches == (wanted < MATCHES ? wanted : MATCHES));
        demand((r == PF_MATCH_FOUND) == (wanted > MATCHES));
    }
    pf_matcher_free(matcher);
    pinfold_search_result_done(&result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pinfold_search_options options = PINFOLD_SEARCH_OPTIONS_INIT;
    _cleanup_free_ char *text = NULL, *file = NULL;
    size_t text_len;

    if (size < 4)
        return 0;
    options.regex = data[0] & 1;
    options.ignore_case = data[0] & 2;
    options.context_lines = data[1] % 8;
    options.max_line_bytes = 1 + data[2];
    options.max_cpu_ms = CPU_MS;
    text = copy_text(data + 3, size - 3);
    text_len = strlen(text);
    if (text_len == 0 || text_len == size - 3)
        return 0;
    file = copy_text(data + 3 + text_len + 1, size - 3 - text_len - 1);
    options.text = text;
    options.text_len = text_len;
    search(&options, file, size - 3 - text_len - 1);
    return 0;
}

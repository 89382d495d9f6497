/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/agent_brief.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/agent_out.h"
#include "cli/agent_tell.h"
#include "cli/say.h"

/* A longer input is shown as it stands: to look into it takes too long. */
enum { PARSED_MAX = 1024 * 1024 };

static const char exit_code[] = "exit code: ";

/* ---- inputs ---- */

static char *clean_member(const json_t *value, size_t most)
{
    return pf_clean(json_string_value(value), json_string_length(value), PF_KEEP_NONE, most);
}

/* "path" and what goes with it, or NULL: the input has none. */
static char *brief_path(const json_t *input, size_t most)
{
    const json_t *path = json_object_get(input, "path"), *text = json_object_get(input, "content");
    char size[32] = "", *clean, *line = NULL;

    if (!json_is_string(path))
        return NULL;
    clean = clean_member(path, most > 20 ? most - 16 : most);
    if (!clean || !json_is_string(text))
        return clean;
    pf_format_size(json_string_length(text), size);
    if (asprintf(&line, "%s, %s", clean, size) < 0)
        line = NULL;
    free(clean);
    return line;
}

char *pf_brief_input(const struct pinfold_before_tool_call *call, size_t most)
{
    json_t *input = call->input_len <= PARSED_MAX
                            ? json_loadb(call->input, call->input_len, JSON_ALLOW_NUL, NULL)
                            : NULL;
    const json_t *command = json_object_get(input, "command");
    char *brief = json_is_string(command) ? clean_member(command, most) : brief_path(input, most);

    if (!brief && json_is_object(input) && json_object_size(input) == 0)
        brief = strdup("");
    if (!brief)
        brief = pf_clean(call->input, call->input_len, PF_KEEP_NONE, most);
    json_decref(input);
    return brief;
}

/* ---- results ---- */

const char *pf_result_text(const struct pinfold_tool_result *result, size_t *ret_len)
{
    for (size_t i = 0; i < result->count; i++) {
        if (result->items[i].kind == PINFOLD_TOOL_TEXT && result->items[i].data.data) {
            *ret_len = result->items[i].data.len;
            return result->items[i].data.data;
        }
    }
    *ret_len = 0;
    return "";
}

static bool is_execute(const struct pinfold_after_tool_call *call)
{
    return call->tool && !call->result->is_error &&
           strcmp(pinfold_tool_name(call->tool), "execute") == 0;
}

int pf_result_exit_code(const struct pinfold_after_tool_call *call)
{
    size_t len;
    const char *text = pf_result_text(call->result, &len);

    if (!is_execute(call) || strncmp(text, exit_code, strlen(exit_code)) != 0)
        return -1;
    return (int)strtol(text + strlen(exit_code), NULL, 10);
}

/* A line of a text, without its end. */
struct line {
    const char *text;
    size_t len;
};

static struct line first_line(const char *text, size_t len)
{
    const char *end = memchr(text, '\n', len);

    return (struct line){ text, end ? (size_t)(end - text) : len };
}

/* The last one that is not empty: what a command has to say comes at its end. */
static struct line last_line(const char *text, size_t len)
{
    const char *before;

    while (len && text[len - 1] == '\n')
        len--;
    before = len ? memrchr(text, '\n', len) : NULL;
    return before ? (struct line){ before + 1, len - (size_t)(before + 1 - text) }
                  : (struct line){ text, len };
}

static size_t count_lines(const char *text, size_t len)
{
    size_t lines = 0;

    for (size_t i = 0; i < len; i++)
        lines += text[i] == '\n';
    return len && text[len - 1] != '\n' ? lines + 1 : lines;
}

char *pf_brief_result(const struct pinfold_after_tool_call *call, size_t most)
{
    size_t len, lines;
    const char *text = pf_result_text(call->result, &len);
    struct line line = first_line(text, len);
    char *clean, *brief = NULL;

    if (pf_result_exit_code(call) >= 0) {
        size_t head = line.len < len ? line.len + 1 : len;

        text += head;
        len -= head;
        line = last_line(text, len);
    }
    lines = count_lines(text, len);
    clean = pf_clean(line.text, line.len, PF_KEEP_NONE, most > 40 ? most - 20 : most);
    if (!clean || lines < 2)
        return clean;
    if (asprintf(&brief, "%s (%zu lines)", clean, lines) < 0)
        brief = NULL;
    free(clean);
    return brief;
}

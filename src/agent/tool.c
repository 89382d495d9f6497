/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/tool.h"

#include <stdlib.h>
#include <string.h>

#include "agent/schema.h"
#include "base/cleanup.h"
#include "base/error.h"

struct pinfold_tool {
    unsigned refs; /* atomic */
    char *name, *description, *schema_text;
    json_t *schema;
    pinfold_tool_fn run;
    void *ctx;
    void (*free)(void *ctx);
};

static const char no_parameters[] = "{\"type\":\"object\",\"properties\":{}}";

static int check_name(const char *name, struct pinfold_error *err)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_-";
    size_t len = name ? strlen(name) : 0;

    if (len >= 1 && len <= 64 && strspn(name, allowed) == len)
        return 0;
    return pf_fail(err, PINFOLD_EVALUE, "tool %s: a name has 1 to 64 letters, digits, '_' and '-'",
                   PF_QUOTE(name ? name : ""));
}

static int load_schema(struct pinfold_tool *tool, const char *text, struct pinfold_error *err)
{
    json_error_t wrong;
    int r;

    tool->schema = json_loads(text, JSON_REJECT_DUPLICATES, &wrong);
    if (!tool->schema && pf_json_nomem(&wrong))
        return pf_fail_nomem(err);
    if (!tool->schema)
        return pf_fail(err, PINFOLD_EVALUE, "input schema: line %d column %d: %s", wrong.line,
                       wrong.column, wrong.text);
    r = pf_schema_check_input(tool->schema, err);
    if (r < 0)
        return r;
    tool->schema_text = json_dumps(tool->schema, JSON_COMPACT);
    return tool->schema_text ? 0 : pf_fail_nomem(err);
}

static void free_tool(struct pinfold_tool *tool)
{
    json_decref(tool->schema);
    free(tool->schema_text);
    free(tool->description);
    free(tool->name);
    free(tool);
}

void pf_tool_unrefp(struct pinfold_tool **tool)
{
    pinfold_tool_unref(*tool);
}

int pinfold_tool_new(const struct pinfold_tool_options *options, struct pinfold_tool **ret_tool,
                     struct pinfold_error *err)
{
    PF_CLEANUP(pf_tool_unrefp) struct pinfold_tool *tool = NULL;
    int r;

    if (options->size != sizeof(*options))
        return pf_fail(err, PINFOLD_EVALUE, "tool: options of %zu bytes, not %zu", options->size,
                       sizeof(*options));
    r = check_name(options->name, err);
    if (r < 0)
        return r;
    if (!options->description || !options->run)
        return pf_fail(err, PINFOLD_EVALUE, "tool %s: a description and a function are required",
                       options->name);
    tool = calloc(1, sizeof(*tool));
    if (!tool)
        return pf_fail_nomem(err);
    tool->refs = 1;
    tool->name = strdup(options->name);
    tool->description = strdup(options->description);
    if (!tool->name || !tool->description)
        return pf_fail_nomem(err);
    r = load_schema(tool, options->input_schema ? options->input_schema : no_parameters, err);
    if (r < 0)
        return pf_wrap(err, r, "tool %s", options->name);
    tool->run = options->run;
    tool->ctx = options->ctx;
    tool->free = options->free; /* not before: until here ctx is the caller's */
    *ret_tool = TAKE(tool);
    return 0;
}

struct pinfold_tool *pinfold_tool_ref(struct pinfold_tool *tool)
{
    __atomic_fetch_add(&tool->refs, 1, __ATOMIC_RELAXED);
    return tool;
}

void pinfold_tool_unref(struct pinfold_tool *tool)
{
    if (!tool || __atomic_sub_fetch(&tool->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    if (tool->free)
        tool->free(tool->ctx);
    free_tool(tool);
}

const char *pinfold_tool_name(const struct pinfold_tool *tool)
{
    return tool->name;
}

const char *pinfold_tool_description(const struct pinfold_tool *tool)
{
    return tool->description;
}

const char *pinfold_tool_input_schema(const struct pinfold_tool *tool)
{
    return tool->schema_text;
}

/* ---- input ---- */

/* A model that writes JSON by hand gets it wrong in few ways: say where. */
static int say_not_json(const struct pinfold_tool *tool, const json_error_t *wrong,
                        struct pf_buf *out)
{
    if (pf_json_nomem(wrong))
        return -PINFOLD_ENOMEM;
    return pf_buf_printf(out,
                         "The input of %s is not valid JSON: line %d column %d: %s. Nothing was "
                         "run. Send one JSON object, with quotes and line breaks in strings "
                         "escaped.",
                         tool->name, wrong->line, wrong->column, wrong->text);
}

int pf_tool_parse(const struct pinfold_tool *tool, const char *text, size_t len, json_t **ret_input,
                  struct pf_buf *wrong)
{
    struct pf_buf problems = PF_BUF_INIT(PF_BUF_UNLIMITED);
    json_error_t error;
    json_t *input;
    int r;

    if (len > PINFOLD_TOOL_INPUT_MAX)
        return pf_buf_printf(wrong,
                             "The input of %s has %zu bytes; at most %zu are taken. Nothing was "
                             "run. Send it in several smaller calls.",
                             tool->name, len, PINFOLD_TOOL_INPUT_MAX);
    input = len > 0 ? json_loadb(text, len, JSON_ALLOW_NUL, &error) : json_object();
    if (!input)
        return len > 0 ? say_not_json(tool, &error, wrong) : -PINFOLD_ENOMEM;
    r = pf_schema_validate(tool->schema, input, pf_schema_names_all(tool->schema), &problems);
    if (r == 0)
        r = pf_buf_printf(wrong, "The input of %s is not valid. Nothing was run.\n%.*s", tool->name,
                          (int)problems.len, problems.data ? problems.data : "");
    pf_buf_done(&problems);
    if (r == 1)
        *ret_input = input;
    else
        json_decref(input);
    return r;
}

int pinfold_tool_check_input(const struct pinfold_tool *tool, const char *input, size_t len,
                             struct pinfold_bytes *ret_wrong, struct pinfold_error *err)
{
    struct pf_buf wrong = PF_BUF_INIT(PF_BUF_UNLIMITED);
    json_t *parsed = NULL;
    int r = pf_tool_parse(tool, input, len, &parsed, &wrong);

    json_decref(parsed);
    if (r >= 0 && pf_buf_take(&wrong, ret_wrong) < 0)
        r = -PINFOLD_ENOMEM;
    pf_buf_done(&wrong);
    return r < 0 ? pf_fail_nomem(err) : r;
}

bool pf_tool_runs(const struct pinfold_tool *tool, pinfold_tool_fn run)
{
    return tool->run == run;
}

int pf_tool_run(const struct pinfold_tool *tool, struct pinfold_tool_call *call,
                struct pinfold_tool_result *ret_result, struct pinfold_error *err)
{
    return tool->run(tool->ctx, call, ret_result, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of agents share: tools and sandboxes of their own. Include once per program. */
#ifndef TESTS_AGENT_AGENTS_H
#define TESTS_AGENT_AGENTS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <pinfold/pinfold.h>

#include "tempdir.h"

/* A tool with this function. */
static inline struct pinfold_tool *make_tool(const char *name, const char *schema,
                                             pinfold_tool_fn run, void *ctx)
{
    struct pinfold_tool_options options = PINFOLD_TOOL_OPTIONS_INIT;
    struct pinfold_tool *tool = NULL;

    options.name = name;
    options.description = "A tool of the test's own.";
    options.input_schema = schema;
    options.run = run;
    options.ctx = ctx;
    assert_int_equal(pinfold_tool_new(&options, &tool, NULL), 0);
    return tool;
}

/* Give a tool away to an agent. */
static inline void give_tool(struct pinfold_agent *agent, struct pinfold_tool *tool)
{
    assert_int_equal(pinfold_agent_add_tool(agent, tool, NULL), 0);
    pinfold_tool_unref(tool);
}

static inline struct pinfold_agent *plain_agent(const char *id)
{
    struct pinfold_agent_config config = PINFOLD_AGENT_CONFIG_INIT;
    struct pinfold_agent *agent = NULL;

    config.agent_id = id;
    assert_int_equal(pinfold_agent_new(&config, &agent, NULL), 0);
    return agent;
}

static inline int add_text(struct pinfold_tool_result *ret, const char *text,
                           struct pinfold_error *err)
{
    return pinfold_tool_result_add_text(ret, text, strlen(text), err);
}

/* Call, and copy the text of the first block to a buffer that the next call overwrites. A text that
 * starts with "!" is an error's. */
static inline const char *ask_tool(struct pinfold_agent *agent, const char *name, const char *input)
{
    static char text[8192];
    struct pinfold_tool_result result = { 0 };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    int r = pinfold_agent_call_tool(agent, name, input, strlen(input), &result, NULL, &err);

    if (r < 0)
        fail_msg("%s: %s", name, err.msg);
    assert_true(result.count > 0);
    snprintf(text, sizeof(text), "%s%s", result.is_error ? "!" : "", result.items[0].data.data);
    pinfold_tool_result_done(&result);
    return text;
}

static inline void has_text(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in: %s", part, text);
}

static inline void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* A local backend on a directory. */
static inline struct pinfold_backend *local_backend(const char *root)
{
    struct pinfold_local_options options = PINFOLD_LOCAL_OPTIONS_INIT;
    struct pinfold_backend *backend = NULL;

    options.workspace_root = root;
    assert_int_equal(pinfold_local_backend_new(&options, &backend, NULL), 0);
    return backend;
}

static inline void remove_tree(const char *dir)
{
    char command[512];

    snprintf(command, sizeof(command), "rm -rf '%s'", dir);
    assert_int_equal(system(command), 0);
}

#endif

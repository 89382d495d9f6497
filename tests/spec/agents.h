/* SPDX-License-Identifier: Apache-2.0 */
/* What the rows about agents share: an agent on the sandbox of the fixture. Include once. */
#ifndef TESTS_SPEC_AGENTS_H
#define TESTS_SPEC_AGENTS_H

#include "spec.h"

static struct pinfold_agent *agent; /* freed by agents_teardown(), before the sandbox */
static struct pinfold_tool_result result;

static int agents_setup(void **state)
{
    agent = NULL;
    result = (struct pinfold_tool_result){ 0 };
    return spec_setup(state);
}

static int agents_teardown(void **state)
{
    pinfold_tool_result_done(&result);
    pinfold_agent_free(agent);
    agent = NULL;
    return spec_teardown(state);
}

#undef SPEC_TEST
#define SPEC_TEST(function) cmocka_unit_test_setup_teardown(function, agents_setup, agents_teardown)

/* Call a tool; its result is in result. */
static inline void call(struct spec *s, const char *name, const char *input)
{
    pinfold_tool_result_done(&result);
    spec_ok(s, pinfold_agent_call_tool(agent, name, input, strlen(input), &result, NULL, &s->err));
    assert_true(result.count > 0);
}

/* The text that a tool answered, with success or with an error. */
static inline void answers(struct spec *s, const char *name, const char *input, const char *text)
{
    call(s, name, input);
    assert_string_equal(result.items[0].data.data, text);
    assert_false(result.is_error);
}

static inline void refuses(struct spec *s, const char *name, const char *input, const char *part)
{
    call(s, name, input);
    if (!strstr(result.items[0].data.data, part))
        fail_msg("\"%s\" is not in: %s", part, result.items[0].data.data);
    assert_true(result.is_error);
}

static inline bool has_tool(const char *name)
{
    struct pinfold_tool *tool = pinfold_agent_get_tool(agent, name);

    pinfold_tool_unref(tool);
    return tool;
}

/* An agent that is attached to the fixture's sandbox. */
static inline void new_attached(struct spec *s, enum pinfold_attach_mode mode)
{
    struct pinfold_agent_config config = PINFOLD_AGENT_CONFIG_INIT;

    config.agent_id = "worker";
    config.sandbox = s->sandbox;
    config.sandbox_attach_mode = mode;
    spec_ok(s, pinfold_agent_new(&config, &agent, &s->err));
}

/* A tool of the test's own, which answers "mine". */
static inline int say_mine(void *ctx, struct pinfold_tool_call *tool_call,
                           struct pinfold_tool_result *ret, struct pinfold_error *err)
{
    (void)ctx;
    (void)tool_call;
    return pinfold_tool_result_add_text(ret, "mine", 4, err);
}

static inline struct pinfold_tool *own_tool(const char *name)
{
    struct pinfold_tool_options options = PINFOLD_TOOL_OPTIONS_INIT;
    struct pinfold_tool *tool = NULL;

    options.name = name;
    options.description = "A tool of the test's own.";
    options.run = say_mine;
    assert_int_equal(pinfold_tool_new(&options, &tool, NULL), 0);
    return tool;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* One call of a tool: hooks, checks, the tool itself, hooks. Whatever is wrong with the call or the
 * tool becomes a result that the model can act on. */
#include "agent/agent.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"

/* A before_tool_call with what its setters own. */
struct before {
    struct pinfold_before_tool_call event; /* first: the setters find the rest from it */
    struct pinfold_tool *tool;
    char *cancel, *input;
};

static void before_done(struct before *before)
{
    pinfold_tool_unref(before->tool);
    free(before->cancel);
    free(before->input);
}

int pinfold_before_tool_call_cancel(struct pinfold_before_tool_call *event, const char *text,
                                    struct pinfold_error *err)
{
    struct before *before = (struct before *)event;
    char *copy = strdup(text ? text : "This tool call was cancelled by the user.");

    if (!copy)
        return pf_fail_nomem(err);
    free(before->cancel);
    event->cancel = before->cancel = copy;
    return 0;
}

void pinfold_before_tool_call_select(struct pinfold_before_tool_call *event,
                                     struct pinfold_tool *tool)
{
    struct before *before = (struct before *)event;
    struct pinfold_tool *old = before->tool;

    event->tool = before->tool = pinfold_tool_ref(tool);
    pinfold_tool_unref(old);
}

int pinfold_before_tool_call_set_input(struct pinfold_before_tool_call *event, const char *input,
                                       size_t len, struct pinfold_error *err)
{
    struct before *before = (struct before *)event;
    char *copy = malloc(len + 1);

    if (!copy)
        return pf_fail_nomem(err);
    if (len > 0)
        memcpy(copy, input, len);
    copy[len] = '\0';
    free(before->input);
    event->input = before->input = copy;
    event->input_len = len;
    return 0;
}

/* A model that is told what there is mends its mistake at once. */
static int say_unknown(struct pinfold_agent *agent, const char *name,
                       struct pinfold_tool_result *result)
{
    PF_CLEANUP(pinfold_strings_done) struct pinfold_strings names = { 0 };
    struct pf_buf list = PF_BUF_INIT(PF_BUF_UNLIMITED);
    int r = pinfold_agent_tool_names(agent, &names, NULL);

    for (size_t i = 0; r == 0 && i < names.count; i++)
        r = pf_buf_printf(&list, "%s%s", i ? ", " : "", names.items[i]);
    if (r == 0)
        r = pf_tool_result_fail(result, "Unknown tool: %.64s. %s%s.", name,
                                names.count ? "The tools are: " : "There are no tools",
                                list.data ? list.data : "");
    pf_buf_done(&list);
    return r;
}

static int say_failed(const struct pinfold_error *error, struct pinfold_tool_result *result)
{
    if (error->code == PINFOLD_EVALUE || error->code == PINFOLD_EPATH)
        return pf_tool_result_fail(result, "%s", error->msg);
    return pf_tool_result_fail(result, "%s: %s", pinfold_code_name(error->code), error->msg);
}

/* Parse, check and run. Returns 0 with a result, or -PINFOLD_ENOMEM. */
static int run(struct pinfold_agent *agent, const struct before *before,
               struct pinfold_cancel *cancel, struct pinfold_tool_result *result)
{
    const struct pinfold_before_tool_call *event = &before->event;
    struct pf_buf wrong = PF_BUF_INIT(PF_BUF_UNLIMITED);
    struct pinfold_error error = PINFOLD_ERROR_INIT;
    struct pinfold_tool_call call = {
        .agent = agent,
        .id = event->tool_use_id,
        .text = event->input_len > 0 ? event->input : "{}",
        .len = event->input_len > 0 ? event->input_len : 2,
        .cancel = cancel,
    };
    int r;

    if (!before->tool)
        return say_unknown(agent, event->name, result);
    r = pf_tool_parse(before->tool, call.text, call.len, &call.input, &wrong);
    if (r == 1) {
        r = pf_tool_run(before->tool, &call, result, &error);
        error.code = r < 0 && !error.code ? -r : error.code;
        r = r < 0 ? say_failed(&error, result) : 0;
    } else if (r == 0) {
        r = pf_tool_result_fail(result, "%s", wrong.data ? wrong.data : "");
    }
    json_decref(call.input);
    pf_buf_done(&wrong);
    return r;
}

/* What may not be called is not called, whatever hooks have said. */
static int enforce(struct pinfold_agent *agent, struct before *before, struct pinfold_error *err)
{
    char text[PF_BLOCKED_MAX];
    bool blocked = pf_agent_blocks(agent, before->event.name, text);

    if (!blocked && before->tool)
        blocked = pf_agent_blocks(agent, pinfold_tool_name(before->tool), text);
    return blocked ? pinfold_before_tool_call_cancel(&before->event, text, err) : 0;
}

/* The tool and the hooks after it, again while they ask for it. */
static int run_and_tell(struct pinfold_agent *agent, struct before *before,
                        struct pinfold_cancel *cancel, struct pinfold_tool_result *result,
                        struct pinfold_error *err)
{
    struct pinfold_after_tool_call after = {
        .agent = agent,
        .tool_use_id = before->event.tool_use_id,
        .name = before->event.name,
        .input = before->event.input,
        .input_len = before->event.input_len,
        .cancel = before->event.cancel,
        .tool = before->event.cancel ? NULL : before->tool,
        .token = cancel,
        .result = result,
    };
    int r = 0;

    for (unsigned tries = 0; r == 0 && tries <= PINFOLD_TOOL_RETRIES; tries++) {
        pinfold_tool_result_done(result);
        r = after.cancel ? pf_tool_result_fail(result, "%s", after.cancel)
                         : run(agent, before, cancel, result);
        if (r < 0)
            return pf_fail_nomem(err);
        after.retry = false;
        r = pf_hooks_after_tool(agent, &after, err);
        if (!after.retry || after.cancel || pinfold_cancel_fired(cancel))
            break;
    }
    /* A result without any block would look like a call that never was. */
    if (r == 0 && result->count == 0)
        r = pinfold_tool_result_add_text(result, "[No output.]", 12, err);
    return r;
}

int pf_agent_call(struct pinfold_agent *agent, const struct pf_tool_use *use,
                  struct pinfold_cancel *cancel, struct pinfold_tool_result *ret_result,
                  struct pinfold_error *err)
{
    PF_CLEANUP(before_done)
    struct before before = { .event = { .agent = agent,
                                        .tool_use_id = use->id,
                                        .name = use->name,
                                        .input = use->input ? use->input : "",
                                        .input_len = use->len } };
    int r = pf_cancel_check(cancel, err);

    if (r < 0)
        return r;
    before.event.tool = before.tool = pinfold_agent_get_tool(agent, use->name);
    r = pf_hooks_before_tool(agent, &before.event, err);
    if (r == 0)
        r = enforce(agent, &before, err);
    if (r == 0)
        r = run_and_tell(agent, &before, cancel, ret_result, err);
    return r < 0 ? r : pf_cancel_check(cancel, err);
}

int pinfold_agent_call_tool(struct pinfold_agent *agent, const char *name, const char *input,
                            size_t len, struct pinfold_tool_result *ret_result,
                            struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_tool_result_done) struct pinfold_tool_result result = { 0 };
    struct pf_tool_use use = { .id = "direct", .name = name, .input = input, .len = len };
    struct pf_op op;
    int r = pf_op_begin(agent, cancel, &op, err);

    if (r < 0)
        return r;
    r = pf_agent_call(agent, &use, op.cancel, &result, err);
    pf_op_end(agent, &op);
    if (r < 0)
        return r;
    *ret_result = result;
    result = (struct pinfold_tool_result){ 0 };
    return 0;
}

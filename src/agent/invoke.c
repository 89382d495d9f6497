/* SPDX-License-Identifier: Apache-2.0 */
/* The loop: ask the model, call the tools that it asks for, tell it, until it has nothing more to
 * ask for. */
#include "agent/agent.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"

/* More calls than that in one reply are a model that has lost its way. */
enum { CALLS_MAX = 128 };

static void model_reply_done(struct pinfold_model_reply *reply)
{
    pinfold_model_reply_done(reply);
}

void pinfold_invocation_done(struct pinfold_invocation *invocation)
{
    pinfold_bytes_done(&invocation->text);
    *invocation = (struct pinfold_invocation){ 0 };
}

/* ---- asking ---- */

static int ask_once(struct pinfold_agent *agent, struct pinfold_model_reply *reply,
                    struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_registry_snapshot_freep)
    struct pinfold_tool **tools = pf_registry_snapshot(agent);
    struct pinfold_model_request request = PINFOLD_MODEL_REQUEST_INIT;
    _cleanup_free_ struct pinfold_tool_spec *specs = NULL;
    size_t count = 0;

    while (tools && tools[count])
        count++;
    specs = tools ? calloc(count + 1, sizeof(*specs)) : NULL;
    if (!specs)
        return pf_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        specs[i] = (struct pinfold_tool_spec){ .name = pinfold_tool_name(tools[i]),
                                               .description = pinfold_tool_description(tools[i]),
                                               .schema = pinfold_tool_input_schema(tools[i]) };
    request.system = agent->system_prompt;
    request.messages = agent->messages;
    request.message_count = agent->message_count;
    request.tools = specs;
    request.tool_count = count;
    request.max_tokens = agent->max_tokens;
    request.on_event = agent->on_event;
    request.on_event_ctx = agent->on_event_ctx;
    return pinfold_model_converse(agent->model, &request, reply, cancel, err);
}

/* With the hooks around it, which may have it asked again. */
static int ask(struct pinfold_agent *agent, struct pinfold_model_reply *reply,
               struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pinfold_error error = PINFOLD_ERROR_INIT;
    struct pinfold_after_model_call event;
    int r, told;

    for (unsigned tries = 0;; tries++) {
        r = pf_hooks_before_model(agent, err);
        if (r < 0)
            return r;
        error = (struct pinfold_error)PINFOLD_ERROR_INIT;
        r = ask_once(agent, reply, cancel, &error);
        event = (struct pinfold_after_model_call){ .agent = agent,
                                                   .reply = r < 0 ? NULL : reply,
                                                   .result = r,
                                                   .error = r < 0 ? &error : NULL };
        if (r < 0 && err)
            *err = error;
        told = pf_hooks_after_model(agent, &event, r < 0 ? NULL : err);
        if (told < 0 || !event.retry || tries >= PINFOLD_MODEL_RETRIES ||
            pinfold_cancel_fired(cancel))
            return r < 0 ? r : told;
        pinfold_model_reply_done(reply);
    }
}

/* ---- tools ---- */

static size_t count_calls(const struct pinfold_message *message)
{
    size_t count = 0;

    for (size_t i = 0; i < message->count; i++)
        count += message->blocks[i].kind == PINFOLD_BLOCK_TOOL_USE;
    return count;
}

/* The results of a reply's calls, as the next message; in any case one for each. */
static int tell_results(struct pinfold_agent *agent, const struct pf_tool_use *uses, size_t count,
                        const struct pinfold_tool_result *results, struct pinfold_error *err)
{
    static const char stopped[] = "This call was stopped, or never begun. What it had done until "
                                  "then stays done.";
    struct pinfold_message message = { .role = PINFOLD_ROLE_USER };
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++)
        r = results[i].count > 0 ? pf_message_add_result(&message, uses[i].id, &results[i], err)
                                 : pinfold_message_add_tool_result(&message, uses[i].id, stopped,
                                                                   sizeof(stopped) - 1, true, err);
    if (r == 0)
        r = pf_messages_add(agent, &message, err);
    pinfold_message_done(&message);
    return r;
}

/* Calls are copied: the conversation, which they are part of, may move. */
static void collect(const struct pinfold_message *message, struct pf_tool_use *uses)
{
    for (size_t i = 0, n = 0; i < message->count; i++)
        if (message->blocks[i].kind == PINFOLD_BLOCK_TOOL_USE)
            uses[n++] = (struct pf_tool_use){ .id = message->blocks[i].id,
                                              .name = message->blocks[i].name,
                                              .input = message->blocks[i].text,
                                              .len = message->blocks[i].text_len };
}

/* run: false, the reply was refused, and nothing is done. */
static int call_tools(struct pinfold_agent *agent, bool run, size_t count,
                      struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    const struct pinfold_message *message = &agent->messages[agent->message_count - 1];
    _cleanup_free_ struct pf_tool_use *uses = calloc(count, sizeof(*uses));
    struct pinfold_tool_result *results = calloc(count, sizeof(*results));
    struct pinfold_error call_error = PINFOLD_ERROR_INIT;
    size_t called = count < CALLS_MAX ? count : CALLS_MAX;
    int r = uses && results ? 0 : pf_fail_nomem(err), told = 0;

    if (r == 0) {
        collect(message, uses);
        if (run)
            r = pf_agent_call_all(agent, uses, called, cancel, results, &call_error);
        for (size_t i = called; r == 0 && run && i < count; i++)
            if (pf_tool_result_fail(&results[i],
                                    "Not run: at most %d calls of one reply are. Call it again if "
                                    "it is still needed.",
                                    CALLS_MAX) < 0)
                r = pf_fail_nomem(&call_error);
        told = tell_results(agent, uses, count, results, r < 0 ? NULL : err);
        if (r < 0 && err)
            *err = call_error;
    }
    for (size_t i = 0; results && i < count; i++)
        pinfold_tool_result_done(&results[i]);
    free(results);
    return r < 0 ? r : told;
}

/* ---- the loop ---- */

static void add_usage(struct pinfold_model_usage *sum, const struct pinfold_model_usage *one,
                      bool first)
{
    sum->input += one->input;
    sum->output += one->output;
    sum->cache_read += one->cache_read;
    sum->cache_write += one->cache_write;
    sum->known = one->known && (first || sum->known);
}

/* The text of a reply, which is then taken into the conversation. */
static int keep_text(const struct pinfold_message *message, struct pinfold_bytes *ret)
{
    struct pf_buf text = PF_BUF_INIT(PF_BUF_UNLIMITED);
    int r = 0;

    for (size_t i = 0; r == 0 && i < message->count; i++)
        if (message->blocks[i].kind == PINFOLD_BLOCK_TEXT)
            r = pf_buf_append(&text, message->blocks[i].text, message->blocks[i].text_len);
    pinfold_bytes_done(ret);
    if (r == 0)
        r = pf_buf_take(&text, ret);
    pf_buf_done(&text);
    return r;
}

/* Into the conversation, and its calls are run. Calls without results could not be gone on with:
 * they get some when a hook fails, too, and the reply goes when there is no memory for them. */
static int take_reply(struct pinfold_agent *agent, struct pinfold_message *reply, size_t calls,
                      bool run, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    size_t with_reply = agent->message_count + 1;
    int r, called;

    reply->role = PINFOLD_ROLE_ASSISTANT;
    r = pf_messages_add(agent, reply, err);
    if (calls == 0 || agent->message_count < with_reply)
        return r;
    called = call_tools(agent, r == 0 && run, calls, cancel, r == 0 ? err : NULL);
    if (agent->message_count == with_reply)
        pinfold_message_done(&agent->messages[--agent->message_count]);
    return r < 0 ? r : called;
}

/* One reply and what it asks for. Returns 1 (go on), 0 (done) or an error. */
static int turn(struct pinfold_agent *agent, struct pinfold_invocation *invocation,
                struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(model_reply_done) struct pinfold_model_reply reply = { 0 };
    size_t calls;
    bool refused;
    int r = ask(agent, &reply, cancel, err);

    if (r < 0)
        return r;
    refused = reply.stop == PINFOLD_STOP_REFUSAL;
    calls = count_calls(&reply.message);
    add_usage(&invocation->usage, &reply.usage, invocation->turns == 0);
    invocation->turns++;
    invocation->tool_calls += (unsigned)calls;
    invocation->stop = reply.stop;
    if (keep_text(&reply.message, &invocation->text) < 0)
        return pf_fail_nomem(err);
    if (reply.message.count == 0) /* nothing was said, and no service takes an empty message */
        return 0;
    r = take_reply(agent, &reply.message, calls, !refused, cancel, err);
    if (r < 0)
        return r;
    return (calls > 0 && !refused) || reply.stop == PINFOLD_STOP_PAUSE;
}

static int run_turns(struct pinfold_agent *agent, struct pinfold_invocation *invocation,
                     struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    int r = 1;

    while (r == 1) {
        if (invocation->turns >= agent->max_turns) {
            invocation->out_of_turns = true;
            return 0;
        }
        r = pf_cancel_check(cancel, err);
        if (r == 0)
            r = turn(agent, invocation, cancel, err);
    }
    return r;
}

int pinfold_after_invocation_resume(struct pinfold_agent *agent, const char *prompt,
                                    struct pinfold_error *err)
{
    char *copy = prompt ? strdup(prompt) : NULL;

    if (prompt && !copy)
        return pf_fail_nomem(err);
    if (!agent->may_resume) {
        free(copy);
        return pf_fail(err, PINFOLD_EVALUE,
                       "agent %s: only an invocation that has just succeeded can be resumed",
                       PF_QUOTE(agent->id));
    }
    free(agent->resume);
    agent->resume = copy;
    return 0;
}

static int tell_end(struct pinfold_agent *agent, int result, struct pinfold_error *err)
{
    int r;

    agent->may_resume = result == 0;
    r = pf_hooks_after_invocation(agent, result, err);
    agent->may_resume = false;
    return r;
}

/* The prompt is taken only when the hooks agree. */
static int invoke_once(struct pinfold_agent *agent, const char *prompt,
                       struct pinfold_invocation *invocation, struct pinfold_cancel *cancel,
                       struct pinfold_error *err)
{
    struct pinfold_error after = PINFOLD_ERROR_INIT;
    int r = pf_hooks_before_invocation(agent, cancel, err), told;

    if (r < 0)
        return r;
    if (prompt)
        r = pf_messages_add_prompt(agent, prompt, err);
    else if (agent->message_count == 0)
        r = pf_fail(err, PINFOLD_EVALUE, "agent %s has no conversation to go on with",
                    PF_QUOTE(agent->id));
    if (r == 0)
        r = run_turns(agent, invocation, cancel, err);
    told = tell_end(agent, r, &after);
    if (r == 0 && told < 0 && err)
        *err = after;
    return r < 0 ? r : told;
}

/* Once, and as often as the hooks at the end have something to go on with. */
static int invoke(struct pinfold_agent *agent, const char *prompt,
                  struct pinfold_invocation *invocation, struct pinfold_cancel *cancel,
                  struct pinfold_error *err)
{
    int r = invoke_once(agent, prompt, invocation, cancel, err);

    while (r == 0 && agent->resume && !invocation->out_of_turns) {
        _cleanup_free_ char *next = TAKE(agent->resume);

        r = invoke_once(agent, next, invocation, cancel, err);
    }
    free(TAKE(agent->resume));
    return r;
}

int pinfold_agent_invoke(struct pinfold_agent *agent, const char *prompt,
                         struct pinfold_invocation *ret, struct pinfold_cancel *cancel,
                         struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_invocation_done) struct pinfold_invocation invocation = { 0 };
    struct pf_op op;
    int r;

    if (ret)
        *ret = (struct pinfold_invocation){ 0 };
    if (!agent->model)
        return pf_fail(err, PINFOLD_ETYPE, "agent %s has no model: give it one in its options",
                       PF_QUOTE(agent->id));
    r = pf_invoking_begin(agent, err);
    if (r < 0)
        return r;
    r = pf_op_begin(agent, cancel, &op, err);
    if (r == 0) {
        r = invoke(agent, prompt, &invocation, op.cancel, err);
        pf_op_end(agent, &op);
    }
    pf_invoking_end(agent);
    if (r == 0 && ret) {
        *ret = invocation;
        invocation = (struct pinfold_invocation){ 0 };
    }
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Invocations: the loop between a model and tools, with models that behave and models that do not.
 */
#include "agents.h"

#include <pthread.h>
#include <stdatomic.h>

/* A model that is a function: it sees the request and how often it was asked. */
typedef int (*reply_fn)(const struct pinfold_model_request *request, unsigned turn,
                        struct pinfold_model_reply *reply, struct pinfold_cancel *cancel,
                        struct pinfold_error *err);

static struct {
    reply_fn reply;
    atomic_uint asked;
    struct pinfold_agent *agent;
    struct pinfold_model *model;
    struct pinfold_invocation done;
    struct pinfold_error err;
} t;

static int converse(void *state, const struct pinfold_model_request *request,
                    struct pinfold_model_reply *ret, struct pinfold_cancel *cancel,
                    struct pinfold_error *err)
{
    (void)state;
    ret->message.role = PINFOLD_ROLE_ASSISTANT;
    ret->stop = PINFOLD_STOP_END;
    ret->stop_detail = strdup("");
    ret->request_id = strdup("");
    ret->attempts = 1;
    ret->usage = (struct pinfold_model_usage){ .input = 10, .output = 3, .known = true };
    return t.reply(request, atomic_fetch_add(&t.asked, 1), ret, cancel, err);
}

static int setup(void **state)
{
    static const struct pinfold_model_ops ops = { .size = sizeof(ops),
                                                  .provider = "test",
                                                  .converse = converse };

    (void)state;
    memset(&t, 0, sizeof(t));
    assert_int_equal(pinfold_model_new(&ops, NULL, "test", &t.model, NULL), 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pinfold_invocation_done(&t.done);
    pinfold_agent_free(t.agent);
    pinfold_model_unref(t.model);
    return 0;
}

static void start(reply_fn reply, unsigned max_turns)
{
    struct pinfold_agent_config config = PINFOLD_AGENT_CONFIG_INIT;

    t.reply = reply;
    config.agent_id = "worker";
    config.model = t.model;
    config.max_turns = max_turns;
    config.system_prompt = "Be brief.";
    assert_int_equal(pinfold_agent_new(&config, &t.agent, &t.err), 0);
}

static int invoke(const char *prompt)
{
    pinfold_invocation_done(&t.done);
    t.err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    return pinfold_agent_invoke(t.agent, prompt, &t.done, NULL, &t.err);
}

static int say(struct pinfold_model_reply *reply, const char *text)
{
    return pinfold_message_add_text(&reply->message, text, strlen(text), NULL);
}

static int use(struct pinfold_model_reply *reply, const char *id, const char *name,
               const char *input)
{
    reply->stop = PINFOLD_STOP_TOOL_USE;
    return pinfold_message_add_tool_use(&reply->message, id, name, input, strlen(input), NULL);
}

/* The last message of a request, whose block number is a result of that id and text. */
static void was_told(const struct pinfold_model_request *request, size_t block, const char *id,
                     const char *part, bool is_error)
{
    const struct pinfold_message *last = &request->messages[request->message_count - 1];

    assert_int_equal(last->role, PINFOLD_ROLE_USER);
    assert_true(block < last->count);
    assert_int_equal(last->blocks[block].kind, PINFOLD_BLOCK_TOOL_RESULT);
    assert_string_equal(last->blocks[block].id, id);
    has_text(last->blocks[block].text, part);
    assert_int_equal(last->blocks[block].is_error, is_error);
}

/* Each call of an assistant has one result in the message after it, and roles alternate. */
static void conversation_is_whole(void)
{
    size_t count;
    const struct pinfold_message *all = pinfold_agent_messages(t.agent, &count);

    for (size_t i = 0; i < count; i++) {
        if (i + 1 < count)
            assert_int_not_equal(all[i].role, all[i + 1].role);
        assert_true(all[i].count > 0);
        for (size_t j = 0; all[i].role == PINFOLD_ROLE_ASSISTANT && j < all[i].count; j++) {
            unsigned results = 0;

            if (all[i].blocks[j].kind != PINFOLD_BLOCK_TOOL_USE)
                continue;
            assert_true(i + 1 < count);
            for (size_t k = 0; k < all[i + 1].count; k++)
                results += all[i + 1].blocks[k].kind == PINFOLD_BLOCK_TOOL_RESULT &&
                           strcmp(all[i + 1].blocks[k].id, all[i].blocks[j].id) == 0;
            assert_int_equal(results, 1);
        }
    }
}

static int add_numbers(void *ctx, struct pinfold_tool_call *call, struct pinfold_tool_result *ret,
                       struct pinfold_error *err)
{
    char text[32];

    (void)ctx;
    snprintf(text, sizeof(text), "%lld",
             (long long)(pinfold_tool_call_integer(call, "a", 0) +
                         pinfold_tool_call_integer(call, "b", 0)));
    return add_text(ret, text, err);
}

static void give_add(void)
{
    give_tool(t.agent, make_tool("add",
                                 "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}"
                                 ",\"b\":{\"type\":\"integer\"}},\"required\":[\"a\",\"b\"]}",
                                 add_numbers, NULL));
}

/* ---- models that behave ---- */

static int reply_adds(const struct pinfold_model_request *request, unsigned turn,
                      struct pinfold_model_reply *reply, struct pinfold_cancel *cancel,
                      struct pinfold_error *err)
{
    (void)cancel;
    (void)err;
    if (turn == 0) {
        assert_string_equal(request->system, "Be brief.");
        assert_int_equal(request->tool_count, 1);
        assert_string_equal(request->tools[0].name, "add");
        assert_string_equal(request->messages[0].blocks[0].text, "What is 2+3, and 4+5?");
        say(reply, "I add.");
        use(reply, "c1", "add", "{\"a\":2,\"b\":3}");
        return use(reply, "c2", "add", "{\"a\":4,\"b\":5}");
    }
    was_told(request, 0, "c1", "5", false);
    was_told(request, 1, "c2", "9", false);
    return say(reply, "5 and 9.");
}

static void tools_are_called_until_the_model_is_done(void **state)
{
    size_t count;

    (void)state;
    start(reply_adds, 0);
    give_add();
    assert_int_equal(invoke("What is 2+3, and 4+5?"), 0);
    assert_string_equal(t.done.text.data, "5 and 9.");
    assert_int_equal(t.done.stop, PINFOLD_STOP_END);
    assert_int_equal(t.done.turns, 2);
    assert_int_equal(t.done.tool_calls, 2);
    assert_int_equal(t.done.usage.input, 20);
    assert_true(t.done.usage.known);
    pinfold_agent_messages(t.agent, &count);
    assert_int_equal(count, 4);
    conversation_is_whole();
}

static int reply_counts(const struct pinfold_model_request *request, unsigned turn,
                        struct pinfold_model_reply *reply, struct pinfold_cancel *cancel,
                        struct pinfold_error *err)
{
    char text[32];

    (void)turn;
    (void)cancel;
    (void)err;
    snprintf(text, sizeof(text), "%zu messages", request->message_count);
    return say(reply, text);
}

static void a_conversation_goes_on_and_can_be_replaced(void **state)
{
    struct pinfold_message message = { .role = PINFOLD_ROLE_USER };

    (void)state;
    start(reply_counts, 0);
    assert_int_equal(invoke(NULL), -PINFOLD_EVALUE);
    assert_int_equal(invoke("one"), 0);
    assert_string_equal(t.done.text.data, "1 messages");
    assert_int_equal(invoke("two"), 0);
    assert_string_equal(t.done.text.data, "3 messages");
    assert_int_equal(pinfold_message_add_text(&message, "new", 3, NULL), 0);
    assert_int_equal(pinfold_agent_set_messages(t.agent, &message, 1, NULL), 0);
    pinfold_message_done(&message);
    assert_int_equal(invoke("and more"), 0); /* joined to a message of the user's */
    assert_string_equal(t.done.text.data, "1 messages");
    assert_int_equal(pinfold_agent_set_messages(t.agent, NULL, 0, NULL), 0);
    assert_int_equal(invoke("x"), 0);
    assert_string_equal(t.done.text.data, "1 messages");
}

static void without_a_model_nothing_is_invoked(void **state)
{
    (void)state;
    t.agent = plain_agent("none");
    assert_int_equal(invoke("hello"), -PINFOLD_ETYPE);
    assert_string_equal(t.err.msg, "agent none has no model: give it one in its options");
}

static int reply_pauses(const struct pinfold_model_request *request, unsigned turn,
                        struct pinfold_model_reply *reply, struct pinfold_cancel *cancel,
                        struct pinfold_error *err)
{
    (void)cancel;
    (void)err;
    if (turn == 1)
        assert_int_equal(request->messages[request->message_count - 1].role,
                         PINFOLD_ROLE_ASSISTANT);
    reply->stop = turn == 0 ? PINFOLD_STOP_PAUSE : PINFOLD_STOP_END;
    return say(reply, turn == 0 ? "so far" : "done");
}

static void a_pause_is_gone_on_from(void **state)
{
    (void)state;
    start(reply_pauses, 0);
    assert_int_equal(invoke("think"), 0);
    assert_string_equal(t.done.text.data, "done");
    assert_int_equal(t.done.turns, 2);
}

static int reply_refuses(const struct pinfold_model_request *request, unsigned turn,
                         struct pinfold_model_reply *reply, struct pinfold_cancel *cancel,
                         struct pinfold_error *err)
{
    (void)request;
    (void)cancel;
    (void)err;
    use(reply, "c", "add", "{\"a\":1,\"b\":1}");
    reply->stop = PINFOLD_STOP_REFUSAL;
    return turn;
}

static void calls_of_a_refused_reply_are_not_run(void **state)
{
    size_t count;
    const struct pinfold_message *all;

    (void)state;
    start(reply_refuses, 0);
    give_add();
    assert_int_equal(invoke("do it"), 0);
    assert_int_equal(t.done.stop, PINFOLD_STOP_REFUSAL);
    assert_int_equal(t.done.turns, 1);
    all = pinfold_agent_messages(t.agent, &count);
    assert_int_equal(count, 3);
    has_text(all[2].blocks[0].text, "This call was stopped, or never begun.");
    conversation_is_whole();
}

static int reply_nothing(const struct pinfold_model_request *request, unsigned turn,
                         struct pinfold_model_reply *reply, struct pinfold_cancel *cancel,
                         struct pinfold_error *err)
{
    (void)request;
    (void)turn;
    (void)reply;
    (void)cancel;
    (void)err;
    return 0;
}

static void an_empty_reply_is_no_message(void **state)
{
    size_t count;

    (void)state;
    start(reply_nothing, 0);
    assert_int_equal(invoke("say nothing"), 0);
    assert_int_equal(t.done.text.len, 0);
    pinfold_agent_messages(t.agent, &count);
    assert_int_equal(count, 1);
}

/* ---- models that do not ---- */

static char *huge; /* a JSON of 10 MB */

static int reply_wrongly(const struct pinfold_model_request *request, unsigned turn,
                         struct pinfold_model_reply *reply, struct pinfold_cancel *cancel,
                         struct pinfold_error *err)
{
    (void)cancel;
    (void)err;
    switch (turn) {
    case 0:
        return use(reply, "a", "ad", "{}");
    case 1:
        was_told(request, 0, "a", "Unknown tool: ad. The tools are: add.", true);
        return use(reply, "b", "add", "{\"a\": 1, \"b\": 2");
    case 2:
        was_told(request, 0, "b", "not valid JSON: line 1 column 15", true);
        return use(reply, "c", "add", "{\"a\": \"1\", \"b\": 2, \"c\": 3}");
    case 3:
        was_told(request, 0, "c", "- a: expected integer, got the string \"1\"", true);
        was_told(request, 0, "c", "- c: there is no such parameter; there are: a, b", true);
        return use(reply, "d", "add", huge);
    case 4:
        was_told(request, 0, "d", "at most 4194304 are taken", true);
        return use(reply, "e", "add", "[[[[[[1]]]]]]");
    case 5:
        was_told(request, 0, "e", "expected object, got an array", true);
        return use(reply, "f", "../../bin/sh", "{}");
    case 6:
        was_told(request, 0, "f", "Unknown tool", true);
        return use(reply, "g", "add", "{\"a\":1,\"b\":2}");
    default:
        was_told(request, 0, "g", "3", false);
        return say(reply, "at last");
    }
}

static void every_mistake_of_a_model_is_told_to_it(void **state)
{
    enum { LEN = 10 * 1024 * 1024 };

    (void)state;
    huge = malloc(LEN + 1);
    assert_non_null(huge);
    memset(huge, 'x', LEN);
    memcpy(huge, "{\"a\":\"", 6);
    memcpy(huge + LEN - 2, "\"}", 3);
    start(reply_wrongly, 0);
    give_add();
    assert_int_equal(invoke("add"), 0);
    assert_string_equal(t.done.text.data, "at last");
    assert_int_equal(t.done.turns, 8);
    conversation_is_whole();
    free(huge);
}

static int reply_for_ever(const struct pinfold_model_request *request, unsigned turn,
                          struct pinfold_model_reply *reply, struct pinfold_cancel *cancel,
                          struct pinfold_error *err)
{
    char id[16];

    (void)request;
    (void)cancel;
    (void)err;
    snprintf(id, sizeof(id), "c%u", turn);
    return use(reply, id, "add", "{\"a\":1,\"b\":1}");
}

static void an_endless_loop_ends(void **state)
{
    (void)state;
    start(reply_for_ever, 7);
    give_add();
    assert_int_equal(invoke("loop"), 0);
    assert_true(t.done.out_of_turns);
    assert_int_equal(t.done.turns, 7);
    conversation_is_whole();
    assert_int_equal(invoke("stop that"), 0); /* it can be spoken to again */
    assert_int_equal(t.done.turns, 7);
    conversation_is_whole();
}

static atomic_uint ran;

static int count_run(void *ctx, struct pinfold_tool_call *call, struct pinfold_tool_result *ret,
                     struct pinfold_error *err)
{
    (void)ctx;
    (void)call;
    atomic_fetch_add(&ran, 1);
    return add_text(ret, "ran", err);
}

static int reply_a_flood(const struct pinfold_model_request *request, unsigned turn,
                         struct pinfold_model_reply *reply, struct pinfold_cancel *cancel,
                         struct pinfold_error *err)
{
    char id[16];
    int r = 0;

    (void)cancel;
    (void)err;
    if (turn > 0) {
        was_told(request, 127, "c127", "ran", false);
        was_told(request, 128, "c128", "Not run: at most 128 calls", true);
        was_told(request, 499, "c499", "Not run", true);
        return say(reply, "enough");
    }
    for (int i = 0; r == 0 && i < 500; i++) {
        snprintf(id, sizeof(id), "c%d", i);
        r = use(reply, id, "run", "{}");
    }
    return r;
}

static void a_flood_of_calls_is_dammed(void **state)
{
    (void)state;
    start(reply_a_flood, 0);
    atomic_store(&ran, 0);
    give_tool(t.agent, make_tool("run", NULL, count_run, NULL));
    assert_int_equal(invoke("go"), 0);
    assert_int_equal(atomic_load(&ran), 128);
    conversation_is_whole();
}

static int reply_fails_once(const struct pinfold_model_request *request, unsigned turn,
                            struct pinfold_model_reply *reply, struct pinfold_cancel *cancel,
                            struct pinfold_error *err)
{
    (void)request;
    (void)cancel;
    if (turn > 0)
        return say(reply, "here");
    *err = (struct pinfold_error){ .code = PINFOLD_EBACKEND, .http_status = 529, .retryable = 1 };
    snprintf(err->msg, sizeof(err->msg), "overloaded");
    return -PINFOLD_EBACKEND;
}

static void a_model_that_fails_can_be_asked_again(void **state)
{
    (void)state;
    start(reply_fails_once, 0);
    assert_int_equal(invoke("are you there?"), -PINFOLD_EBACKEND);
    assert_int_equal(t.err.http_status, 529);
    assert_string_equal(t.err.msg, "overloaded");
    assert_int_equal(invoke(NULL), 0); /* the prompt was kept */
    assert_string_equal(t.done.text.data, "here");
    conversation_is_whole();
}

static int retry_failures(void *ctx, struct pinfold_after_model_call *event,
                          struct pinfold_error *err)
{
    (void)ctx;
    (void)err;
    event->retry = event->result < 0;
    assert_true(!event->reply == (event->result < 0));
    return 0;
}

static void a_hook_has_it_asked_again(void **state)
{
    struct pinfold_hooks hooks = PINFOLD_HOOKS_INIT;

    (void)state;
    start(reply_fails_once, 0);
    hooks.after_model_call = retry_failures;
    assert_int_equal(pinfold_agent_add_hooks(t.agent, &hooks, NULL), 0);
    assert_int_equal(invoke("are you there?"), 0);
    assert_string_equal(t.done.text.data, "here");
    assert_int_equal(atomic_load(&t.asked), 2);
}

/* ---- events ---- */

static char trace[256];

static void note(const char *what)
{
    snprintf(trace + strlen(trace), sizeof(trace) - strlen(trace), "%s ", what);
}

static int on_begin(void *ctx, struct pinfold_agent *agent, struct pinfold_cancel *cancel,
                    struct pinfold_error *err)
{
    (void)ctx;
    (void)agent;
    (void)cancel;
    (void)err;
    note("begin");
    return 0;
}

static int on_end(void *ctx, struct pinfold_agent *agent, int result, struct pinfold_error *err)
{
    (void)ctx;
    (void)agent;
    (void)err;
    note(result == 0 ? "end" : "failed");
    return 0;
}

static int on_ask(void *ctx, struct pinfold_agent *agent, struct pinfold_error *err)
{
    (void)ctx;
    (void)agent;
    (void)err;
    note("ask");
    return 0;
}

static int on_reply(void *ctx, struct pinfold_after_model_call *event, struct pinfold_error *err)
{
    (void)ctx;
    (void)event;
    (void)err;
    note("reply");
    return 0;
}

static int on_message(void *ctx, struct pinfold_agent *agent, const struct pinfold_message *message,
                      struct pinfold_error *err)
{
    (void)ctx;
    (void)agent;
    (void)err;
    note(message->role == PINFOLD_ROLE_USER ? "user" : "assistant");
    return 0;
}

static int on_tool(void *ctx, struct pinfold_before_tool_call *event, struct pinfold_error *err)
{
    (void)ctx;
    (void)event;
    (void)err;
    note("tool");
    return 0;
}

static int reply_adds_one(const struct pinfold_model_request *request, unsigned turn,
                          struct pinfold_model_reply *reply, struct pinfold_cancel *cancel,
                          struct pinfold_error *err)
{
    (void)request;
    (void)cancel;
    (void)err;
    return turn == 0 ? use(reply, "c", "add", "{\"a\":1,\"b\":1}") : say(reply, "2");
}

static void events_come_in_their_order(void **state)
{
    struct pinfold_hooks hooks = PINFOLD_HOOKS_INIT;

    (void)state;
    start(reply_adds_one, 0);
    give_add();
    hooks.before_invocation = on_begin;
    hooks.after_invocation = on_end;
    hooks.before_model_call = on_ask;
    hooks.after_model_call = on_reply;
    hooks.message_added = on_message;
    hooks.before_tool_call = on_tool;
    assert_int_equal(pinfold_agent_add_hooks(t.agent, &hooks, NULL), 0);
    trace[0] = '\0';
    assert_int_equal(invoke("1+1?"), 0);
    assert_string_equal(trace, "begin user ask reply assistant tool user ask reply assistant end ");
}

static int refuse_to_begin(void *ctx, struct pinfold_agent *agent, struct pinfold_cancel *cancel,
                           struct pinfold_error *err)
{
    (void)ctx;
    (void)agent;
    (void)cancel;
    *err = (struct pinfold_error){ .code = PINFOLD_EPREPARE };
    return -PINFOLD_EPREPARE;
}

static void an_invocation_that_may_not_begin_has_no_end(void **state)
{
    struct pinfold_hooks hooks = PINFOLD_HOOKS_INIT;
    size_t count;

    (void)state;
    start(reply_adds_one, 0);
    hooks.before_invocation = refuse_to_begin;
    hooks.after_invocation = on_end;
    assert_int_equal(pinfold_agent_add_hooks(t.agent, &hooks, NULL), 0);
    trace[0] = '\0';
    assert_int_equal(invoke("1+1?"), -PINFOLD_EPREPARE);
    assert_string_equal(trace, "");
    pinfold_agent_messages(t.agent, &count);
    assert_int_equal(count, 0);
}

/* ---- at once, and one at a time ---- */

static pthread_barrier_t barrier;

static int meet(void *ctx, struct pinfold_tool_call *call, struct pinfold_tool_result *ret,
                struct pinfold_error *err)
{
    (void)ctx;
    (void)call;
    pthread_barrier_wait(&barrier); /* returns only when all four are here */
    return add_text(ret, "met", err);
}

static int reply_meetings(const struct pinfold_model_request *request, unsigned turn,
                          struct pinfold_model_reply *reply, struct pinfold_cancel *cancel,
                          struct pinfold_error *err)
{
    static const char *const ids[] = { "a", "b", "c", "d" };
    int r = 0;

    (void)cancel;
    (void)err;
    if (turn > 0) {
        for (size_t i = 0; i < 4; i++)
            was_told(request, i, ids[i], "met", false);
        return say(reply, "good");
    }
    for (size_t i = 0; r == 0 && i < 4; i++)
        r = use(reply, ids[i], "meet", "{}");
    return r;
}

static void the_calls_of_one_reply_run_at_once(void **state)
{
    (void)state;
    start(reply_meetings, 0);
    assert_int_equal(pthread_barrier_init(&barrier, NULL, 4), 0);
    give_tool(t.agent, make_tool("meet", NULL, meet, NULL));
    assert_int_equal(invoke("meet"), 0);
    assert_string_equal(t.done.text.data, "good");
    pthread_barrier_destroy(&barrier);
}

static atomic_int waiting;

static int reply_when_cancelled(const struct pinfold_model_request *request, unsigned turn,
                                struct pinfold_model_reply *reply, struct pinfold_cancel *cancel,
                                struct pinfold_error *err)
{
    (void)request;
    (void)turn;
    (void)reply;
    atomic_store(&waiting, 1);
    while (!pinfold_cancel_fired(cancel))
        pause_ms(1);
    *err = (struct pinfold_error){ .code = PINFOLD_ECANCELLED };
    return -PINFOLD_ECANCELLED;
}

static void *invoke_in_thread(void *ret)
{
    *(int *)ret = pinfold_agent_invoke(t.agent, "wait", NULL, NULL, NULL);
    return NULL;
}

static void an_agent_does_one_thing_at_a_time(void **state)
{
    pthread_t thread;
    int r = 0;

    (void)state;
    start(reply_when_cancelled, 0);
    atomic_store(&waiting, 0);
    assert_int_equal(pthread_create(&thread, NULL, invoke_in_thread, &r), 0);
    while (!atomic_load(&waiting))
        pause_ms(1);
    assert_int_equal(invoke("me too"), -PINFOLD_EBUSY);
    assert_int_equal(pinfold_agent_set_messages(t.agent, NULL, 0, NULL), -PINFOLD_EBUSY);
    pinfold_agent_cancel(t.agent);
    pthread_join(thread, NULL);
    assert_int_equal(r, -PINFOLD_ECANCELLED);
    t.reply = reply_counts;
    assert_int_equal(invoke("and now?"), 0);
    conversation_is_whole();
}

static int wait_in_tool(void *ctx, struct pinfold_tool_call *call, struct pinfold_tool_result *ret,
                        struct pinfold_error *err)
{
    (void)ctx;
    atomic_fetch_add(&waiting, 1);
    while (!pinfold_cancel_fired(pinfold_tool_call_cancel_token(call)))
        pause_ms(1);
    atomic_fetch_sub(&waiting, 1);
    return add_text(ret, "woken", err);
}

static int reply_waits(const struct pinfold_model_request *request, unsigned turn,
                       struct pinfold_model_reply *reply, struct pinfold_cancel *cancel,
                       struct pinfold_error *err)
{
    (void)request;
    (void)cancel;
    (void)err;
    if (turn > 0)
        return say(reply, "again");
    use(reply, "a", "wait", "{}");
    use(reply, "b", "wait", "{}");
    return use(reply, "c", "none", "{}");
}

static void cancelling_leaves_no_tool_running(void **state)
{
    pthread_t thread;
    int r = 0;

    (void)state;
    start(reply_waits, 0);
    atomic_store(&waiting, 0);
    give_tool(t.agent, make_tool("wait", NULL, wait_in_tool, NULL));
    assert_int_equal(pthread_create(&thread, NULL, invoke_in_thread, &r), 0);
    while (atomic_load(&waiting) < 2)
        pause_ms(1);
    pinfold_agent_cancel(t.agent);
    pthread_join(thread, NULL);
    assert_int_equal(r, -PINFOLD_ECANCELLED);
    assert_int_equal(atomic_load(&waiting), 0);
    conversation_is_whole(); /* the calls have results that say they were stopped */
    assert_int_equal(invoke("again"), 0);
    conversation_is_whole();
}

static int break_off(void *ctx, struct pinfold_after_tool_call *event, struct pinfold_error *err)
{
    (void)ctx;
    if (strcmp(event->name, "add") != 0)
        return 0;
    *err = (struct pinfold_error){ .code = PINFOLD_EDENIED };
    return -PINFOLD_EDENIED;
}

static int reply_waits_and_adds(const struct pinfold_model_request *request, unsigned turn,
                                struct pinfold_model_reply *reply, struct pinfold_cancel *cancel,
                                struct pinfold_error *err)
{
    (void)request;
    (void)turn;
    (void)cancel;
    (void)err;
    use(reply, "a", "wait", "{}");
    return use(reply, "b", "add", "{\"a\":1,\"b\":1}");
}

static void a_hook_that_fails_stops_the_other_calls_of_the_turn(void **state)
{
    struct pinfold_hooks hooks = PINFOLD_HOOKS_INIT;

    (void)state;
    start(reply_waits_and_adds, 0);
    atomic_store(&waiting, 0);
    give_add();
    give_tool(t.agent, make_tool("wait", NULL, wait_in_tool, NULL));
    hooks.after_tool_call = break_off;
    assert_int_equal(pinfold_agent_add_hooks(t.agent, &hooks, NULL), 0);
    assert_int_equal(invoke("go"), -PINFOLD_EDENIED);
    assert_int_equal(t.err.code, PINFOLD_EDENIED);
    assert_int_equal(atomic_load(&waiting), 0);
    conversation_is_whole();
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tools_are_called_until_the_model_is_done),
        TEST(a_conversation_goes_on_and_can_be_replaced),
        TEST(without_a_model_nothing_is_invoked),
        TEST(a_pause_is_gone_on_from),
        TEST(calls_of_a_refused_reply_are_not_run),
        TEST(an_empty_reply_is_no_message),
        TEST(every_mistake_of_a_model_is_told_to_it),
        TEST(an_endless_loop_ends),
        TEST(a_flood_of_calls_is_dammed),
        TEST(a_model_that_fails_can_be_asked_again),
        TEST(a_hook_has_it_asked_again),
        TEST(events_come_in_their_order),
        TEST(an_invocation_that_may_not_begin_has_no_end),
        TEST(the_calls_of_one_reply_run_at_once),
        TEST(an_agent_does_one_thing_at_a_time),
        TEST(cancelling_leaves_no_tool_running),
        TEST(a_hook_that_fails_stops_the_other_calls_of_the_turn),
    };

    return cmocka_run_group_tests_name("invoke", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of an agent with each allocation failing in turn: it is attached, a model calls tools of
 * it, a result is offloaded, and it goes. Each time there is an error that says so, or all that
 * there should be; what is lost is seen by the sanitizers.
 */
#include "agents.h"

#include <jansson.h>

#include "base/failing_alloc.h"

static struct {
    struct pinfold_backend *backend;
    struct pinfold_sandbox *sandbox;
    struct pinfold_agent *agent;
    struct pinfold_storage *storage;
    struct pinfold_model *model;
    struct pinfold_tool *tool;
    struct pinfold_plugin *plugin;
    struct pinfold_invocation done;
    struct pinfold_tool_result result;
    struct pinfold_error err;
    bool pauses;
} t;

/* jansson's allocations, in this program so that the failing ones are called. */
static void *give(size_t size)
{
    return malloc(size);
}

static void take_back(void *block)
{
    free(block);
}

static int run_command(void *state, const struct pinfold_execute_options *options,
                       struct pinfold_execute_result *ret, struct pinfold_cancel *cancel,
                       struct pinfold_error *err)
{
    static const char long_text[] = "a text of more than forty characters, to be offloaded";

    (void)state;
    (void)options;
    (void)cancel;
    ret->output = malloc(sizeof(long_text));
    ret->stderr_text = calloc(1, 1);
    if (!ret->output || !ret->stderr_text) {
        free(ret->output);
        free(ret->stderr_text);
        memset(ret, 0, sizeof(*ret));
        *err = (struct pinfold_error){ .code = PINFOLD_ENOMEM, .msg = "no memory" };
        return -PINFOLD_ENOMEM;
    }
    memcpy(ret->output, long_text, sizeof(long_text));
    ret->output_len = sizeof(long_text) - 1;
    return 0;
}

/* What a service asks of a conversation: each call has its result in the message after it. */
static void check(const struct pinfold_message *messages, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < messages[i].count; j++)
            if (messages[i].blocks[j].kind == PINFOLD_BLOCK_TOOL_USE &&
                (i + 1 == count || messages[i + 1].blocks[0].kind != PINFOLD_BLOCK_TOOL_RESULT))
                fail_msg("message %zu calls and is not answered", i);
}

/* Two calls in a turn, until the conversation needs more room than it has at first: with a pause
 * the room ends at a reply, without one at results. Then what the first of them gave. */
static int converse(void *state, const struct pinfold_model_request *request,
                    struct pinfold_model_reply *ret, struct pinfold_cancel *cancel,
                    struct pinfold_error *err)
{
    const struct pinfold_message *last = &request->messages[request->message_count - 1];
    int r;

    (void)state;
    (void)cancel;
    ret->message.role = PINFOLD_ROLE_ASSISTANT;
    ret->attempts = 1;
    ret->stop_detail = calloc(1, 1);
    ret->request_id = calloc(1, 1);
    if (!ret->stop_detail || !ret->request_id) {
        *err = (struct pinfold_error){ .code = PINFOLD_ENOMEM, .msg = "no memory" };
        return -PINFOLD_ENOMEM;
    }
    check(request->messages, request->message_count);
    if (request->message_count == 1 && t.pauses) {
        ret->stop = PINFOLD_STOP_PAUSE;
        return pinfold_message_add_text(&ret->message, "Hm.", 3, err);
    }
    if (request->message_count > 8) {
        ret->stop = PINFOLD_STOP_END;
        return pinfold_message_add_text(&ret->message, last->blocks[0].text,
                                        last->blocks[0].text_len, err);
    }
    ret->stop = PINFOLD_STOP_TOOL_USE;
    r = pinfold_message_add_tool_use(&ret->message, "c1", "execute", "{\"command\":\"x\"}", 15,
                                     err);
    return r < 0 ? r
                 : pinfold_message_add_tool_use(&ret->message, "c2", "say", "{\"n\":\"1\"}", 9,
                                                err);
}

static void check_conversation(void)
{
    size_t count;
    const struct pinfold_message *messages = pinfold_agent_messages(t.agent, &count);

    check(messages, count);
}

static int say(void *ctx, struct pinfold_tool_call *call, struct pinfold_tool_result *ret,
               struct pinfold_error *err)
{
    (void)ctx;
    (void)call;
    return add_text(ret, "said", err);
}

static int make_agent(void)
{
    static const struct pinfold_model_ops ops = { .size = sizeof(ops),
                                                  .provider = "test",
                                                  .converse = converse };
    struct pinfold_agent_config config = PINFOLD_AGENT_CONFIG_INIT;
    struct pinfold_offload_policy policy = PINFOLD_OFFLOAD_POLICY_INIT;
    struct pinfold_tool_options tool = PINFOLD_TOOL_OPTIONS_INIT;
    int r = pinfold_storage_memory_new(&t.storage, &t.err);

    tool.name = "say";
    tool.description = "Says it.";
    tool.input_schema = "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}}";
    tool.run = say;
    if (r == 0)
        r = pinfold_tool_new(&tool, &t.tool, &t.err);
    if (r == 0)
        r = pinfold_model_new(&ops, NULL, "test", &t.model, &t.err);
    if (r == 0)
        r = pinfold_sandbox_plugin_new(&t.plugin, &t.err);
    if (r < 0)
        return r;
    policy.storage = t.storage;
    policy.max_result_tokens = 10;
    policy.preview_tokens = 1;
    config.agent_id = "worker";
    config.system_prompt = "Be brief.";
    config.model = t.model;
    config.tools = &t.tool;
    config.tool_count = 1;
    config.plugins = &t.plugin;
    config.plugin_count = 1;
    config.sandbox = t.sandbox;
    config.sandbox_output_offload = &policy;
    config.max_parallel_tools = 1; /* the failing allocations are counted without a lock */
    return pinfold_agent_new(&config, &t.agent, &t.err);
}

static int live(void)
{
    int r = make_agent();

    if (r == 0)
        r = pinfold_agent_invoke(t.agent, "go", &t.done, NULL, &t.err);
    if (r == 0)
        r = pinfold_agent_call_tool(t.agent, "retrieve_offloaded_content",
                                    "{\"reference\":\"mem_1_c1_0\"}", 26, &t.result, NULL, &t.err);
    return r;
}

static void end(void)
{
    pinfold_tool_result_done(&t.result);
    pinfold_invocation_done(&t.done);
    pinfold_agent_free(t.agent);
    pinfold_plugin_unref(t.plugin);
    pinfold_model_unref(t.model);
    pinfold_tool_unref(t.tool);
    pinfold_storage_unref(t.storage);
    t.agent = NULL;
    t.plugin = NULL;
    t.model = NULL;
    t.tool = NULL;
    t.storage = NULL;
}

static void lives_or_says_that_there_is_no_memory(bool pauses)
{
    static const struct pinfold_backend_ops ops = { .size = sizeof(ops),
                                                    .type_name = "MemoryBackend",
                                                    .execute = run_command };
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;
    unsigned n = 1, lived = 0;

    t.pauses = pauses;
    json_set_alloc_funcs(give, take_back);
    assert_int_equal(pinfold_backend_new(&ops, NULL, NULL, &t.backend, NULL), 0);
    options.workspace_id = "nomem";
    options.backend = t.backend;
    options.ttl_seconds = 60;
    assert_int_equal(pinfold_sandbox_new(&options, &t.sandbox, NULL), 0);
    assert_int_equal(pinfold_sandbox_start(t.sandbox, NULL, NULL, NULL), 0);
    for (;; n++) {
        bool hit;
        int r;

        t.err = (struct pinfold_error)PINFOLD_ERROR_INIT;
        failing_alloc_set(n);
        r = live();
        hit = failing_alloc_hit();
        failing_alloc_set(0);
        if (!hit) {
            assert_int_equal(r, 0);
            has_text(t.done.text.data, "[Offloaded: 1 blocks");
            has_text(t.result.items[0].data.data, "to be offloaded");
            break;
        }
        /* A tool that fails is a result: the model is told, and the agent goes on. */
        if (r != 0 && r != -PINFOLD_ENOMEM && r != -PINFOLD_EATTACH &&
            !(r == -PINFOLD_EVALUE && strstr(t.err.msg, "schema"))) /* jansson mistakes it */
            fail_msg("allocation %u: %d %s", n, r, t.err.msg);
        if (r < 0 && (!t.err.msg[0] || t.err.code == 0))
            fail_msg("allocation %u: %d without a word", n, r);
        lived += r == 0;
        if (t.agent)
            check_conversation();
        end();
        assert_true(n < 5000);
    }
    end();
    assert_true(n > 100);
    assert_true(lived < n);
    pinfold_sandbox_free(t.sandbox);
    pinfold_backend_unref(t.backend);
}

static void an_agent_lives_or_says_that_there_is_no_memory(void **state)
{
    (void)state;
    lives_or_says_that_there_is_no_memory(false);
}

static void so_does_one_whose_reply_finds_no_room(void **state)
{
    (void)state;
    lives_or_says_that_there_is_no_memory(true);
}

/* Do something with each allocation failing in turn; wanted is what it returns with memory. */
static void each_allocation_fails(int (*work)(void), int wanted)
{
    for (unsigned n = 1;; n++) {
        bool hit;
        int r;

        t.err = (struct pinfold_error)PINFOLD_ERROR_INIT;
        failing_alloc_set(n);
        r = work();
        hit = failing_alloc_hit();
        failing_alloc_set(0);
        if (!hit) {
            assert_int_equal(r, wanted);
            assert_true(n > 3);
            return;
        }
        if (r != wanted && r != -PINFOLD_ENOMEM &&
            !(r == -PINFOLD_EVALUE && strstr(t.err.msg, "schema"))) /* jansson mistakes it */
            fail_msg("allocation %u: %d %s", n, r, t.err.msg);
        assert_true(n < 5000);
    }
}

static int check_by_schema(void)
{
    static const char schema[] =
            "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/"
            "x\"},\"b\":{\"enum\":[1,"
            "2]}},\"patternProperties\":{\"^c\":{\"not\":{\"type\":\"null\"}}},\"propertyNames\":{"
            "\"maxLength\":1},\"$defs\":{\"x\":{\"type\":\"array\",\"uniqueItems\":true,\"items\":{"
            "\"type\":\"string\",\"pattern\":\"^x\",\"format\":\"email\"}}}}";
    static const char input[] = "{\"a\":[\"x@a.b\",\"y\"],\"b\":3,\"c\":1,\"dd\":2}";
    struct pinfold_tool_options options = PINFOLD_TOOL_OPTIONS_INIT;
    struct pinfold_bytes wrong = { 0 };
    struct pinfold_tool *tool = NULL;
    int r;

    options.name = "t";
    options.description = "";
    options.input_schema = schema;
    options.run = say;
    r = pinfold_tool_new(&options, &tool, &t.err);
    if (r == 0)
        r = pinfold_tool_check_input(tool, input, sizeof(input) - 1, &wrong, &t.err);
    pinfold_bytes_done(&wrong);
    pinfold_tool_unref(tool);
    return r < 0 ? r : 10 + r;
}

static void a_schema_is_checked_or_there_is_no_memory(void **state)
{
    (void)state;
    json_set_alloc_funcs(give, take_back);
    each_allocation_fails(check_by_schema, 10); /* not valid */
}

/* Where nobody listens. */
static int use_s3(void)
{
    struct pinfold_s3_options options = PINFOLD_S3_OPTIONS_INIT;
    struct pinfold_storage *storage = NULL;
    char *reference = NULL;
    int r;

    options.bucket = "bucket";
    options.prefix = "a";
    options.region = "us-east-1";
    options.endpoint = "http://127.0.0.1:1";
    options.access_key = "AKID";
    options.secret_key = "secret";
    options.attempts = 1;
    r = pinfold_storage_s3_new(&options, &storage, &t.err);
    if (r == 0)
        r = pinfold_storage_store(storage, "k", "x", 1, "text/plain", &reference, &t.err);
    free(reference);
    pinfold_storage_unref(storage);
    return r;
}

static void a_bucket_is_asked_or_there_is_no_memory(void **state)
{
    (void)state;
    each_allocation_fails(use_s3, -PINFOLD_EOS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_agent_lives_or_says_that_there_is_no_memory),
        cmocka_unit_test(so_does_one_whose_reply_finds_no_room),
        cmocka_unit_test(a_schema_is_checked_or_there_is_no_memory),
        cmocka_unit_test(a_bucket_is_asked_or_there_is_no_memory),
    };

    return cmocka_run_group_tests_name("agent_nomem", tests, NULL, NULL);
}

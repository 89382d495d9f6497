/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A turn of each provider with each allocation failing in turn: an error, or the reply that it
 * always is, and nothing lost; and whatever is freed meanwhile holds no key any more. The HTTP
 * client, which has tests of its own, is left out: its callers get recorded streams.
 */
#include <fcntl.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include <jansson.h>

#include "agent/model_json.h"
#include "agent/talk.h"
#include "base/cleanup.h"
#include "base/failing_alloc.h"
#include "net/http.h"

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#else
#define VALGRIND_MAKE_MEM_DEFINED(at, size) (void)0
#endif

#define KEY "SECRETWORD-of-a-test"

static char stream[65536];
static size_t stream_len;
/* Of requests: the body when there was memory for all of it, empty while nobody knows, how many had
 * another one, and in how many of those nothing but a block of reasoning was missing. */
static char whole_body[65536];
static unsigned others, thoughtless;

/* volatile: compilers know that free() looks at nothing */
static volatile bool watching;
static volatile unsigned leaks; /* blocks that were freed with a key in them */

void __real_free(void *block);
void __wrap_free(void *block);
int __wrap_pf_http_perform(struct pf_http *http, const struct pf_http_request *request,
                           struct pf_http_response *ret, struct pinfold_cancel *cancel,
                           struct pinfold_error *err);

void __wrap_free(void *block)
{
    size_t size = watching && block ? malloc_usable_size(block) : 0;

    if (size > 0) {
        (void)VALGRIND_MAKE_MEM_DEFINED(block, size);
        leaks += memmem(block, size, "SECRETWORD", 10) != NULL;
    }
    __real_free(block);
}

static void look_at_body(const char *body, size_t len)
{
    const char *thoughts = strstr(whole_body, "{\"reasoningContent\"");
    size_t before, size = strlen(whole_body);

    if (size == 0) {
        assert_true(len < sizeof(whole_body));
        memcpy(whole_body, body, len);
        return;
    }
    if (size == len && memcmp(body, whole_body, len) == 0)
        return;
    others++;
    thoughts = thoughts ? thoughts : strstr(whole_body, "{\"type\":\"thinking\"");
    before = thoughts ? (size_t)(thoughts - whole_body) : size;
    thoughtless += len < size && before < len && memcmp(body, whole_body, before) == 0 &&
                   memcmp(body + before, whole_body + size - (len - before), len - before) == 0;
}

/* Give the stream in two pieces, as the network would. */
int __wrap_pf_http_perform(struct pf_http *http, const struct pf_http_request *request,
                           struct pf_http_response *ret, struct pinfold_cancel *cancel,
                           struct pinfold_error *err)
{
    size_t half = stream_len / 2;
    int r;

    (void)http;
    (void)cancel;
    look_at_body(request->body, request->body_len);
    *ret = (struct pf_http_response){ .status = 200 };
    r = request->on_body(request->on_body_ctx, stream, half, err);
    return r < 0 ? r
                 : request->on_body(request->on_body_ctx, stream + half, stream_len - half, err);
}

/* In this program, so that the failing ones are called. */
static void *give(size_t size)
{
    return malloc(size);
}

static void take_back(void *block)
{
    free(block);
}

static void read_stream(const char *name)
{
    char path[4096];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", getenv("PINFOLD_MODEL_STREAMS"), name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, stream, 1), 1); /* which provider it is of */
    stream_len = (size_t)read(fd, stream, sizeof(stream));
    close(fd);
}

/* ---- a turn ---- */

static const struct {
    const char *spec, *stream, *reply;
} turns[] = {
    { "anthropic:m", "anthropic-tool", NULL },
    { "anthropic:m", "anthropic-reasoning", "R(Let me see.) T(42) end" },
    { "openai:m", "openai-tool", NULL },
    { "openai:m", "openai-whole", NULL },
    { "bedrock:m", "bedrock-tool", NULL },
    { "bedrock:m", "bedrock-reasoning", "R(Let me see.) T(42) end" },
};

static int one_turn(const char *spec, const struct pinfold_message *talk, size_t count,
                    struct pinfold_model_reply *reply, struct pinfold_error *err)
{
    static const struct pinfold_tool_spec tool = { "read_file", "Reads.",
                                                   "{\"type\": \"object\"}" };
    struct pinfold_model_options options = PINFOLD_MODEL_OPTIONS_INIT;
    struct pinfold_model_request request = PINFOLD_MODEL_REQUEST_INIT;
    struct pinfold_model *model = NULL;
    int r;

    options.api_key = KEY;
    options.region = "us-west-2";
    options.base_url = "http://127.0.0.1:1";
    options.extra = "{\"a\": 1}";
    options.attempts = 1;
    request.messages = talk;
    request.message_count = count;
    request.system = "Brief.";
    request.tools = &tool;
    request.tool_count = 1;
    r = pinfold_model_open(spec, &options, &model, err);
    if (r == 0)
        r = pinfold_model_converse(model, &request, reply, NULL, err);
    pinfold_model_unref(model);
    return r;
}

/* How many of the allocations that reading this takes fail and look like another error. */
static unsigned count_unread(const char *text)
{
    unsigned count = 0, nth = 1;

    for (bool hit = true; hit; nth++) {
        json_t *json;
        bool nomem;
        failing_alloc_set(nth);
        json = pf_json_object_load(text, strlen(text), &nomem);
        hit = failing_alloc_hit();
        failing_alloc_set(0);
        count += !json && !nomem;
        json_decref(json);
    }
    return count;
}

static void every_allocation_may_fail(void **state)
{
    static const char whole[] =
            "T(I look.) C(call_1 read_file {\"path\": \"a b/\xc3\xbc.txt\", \"n\": 1.5}) tool_use";
    struct pinfold_message talk[3] = { user("go"),
                                       { .role = PINFOLD_ROLE_ASSISTANT },
                                       { .role = PINFOLD_ROLE_USER } };
    unsigned unread;

    (void)state;
    pinfold_message_add_reasoning(&talk[1], "hm", 2,
                                  "{\"anthropic\":{\"type\":\"thinking\",\"signature\":\"s\"},"
                                  "\"bedrock\":{\"reasoningText\":{\"signature\":\"s\"}}}",
                                  NULL);
    pinfold_message_add_tool_use(&talk[1], "a", "read_file", "{broken", 7, NULL);
    pinfold_message_add_tool_result(&talk[2], "a", "", 0, true, NULL);
    unread = count_unread(talk[1].blocks[0].opaque);
    for (size_t i = 0; i < PF_COUNT(turns); i++) {
        unsigned failures = 0, nth = 1;
        struct pinfold_model_reply first;
        read_stream(turns[i].stream);
        memset(whole_body, 0, sizeof(whole_body));
        assert_int_equal(one_turn(turns[i].spec, talk, 3, &first, NULL), 0);
        pinfold_model_reply_done(&first);
        for (bool hit = true; hit; nth++) {
            struct pinfold_model_reply reply;
            struct pinfold_error err = PINFOLD_ERROR_INIT;
            int r;
            watching = true;
            failing_alloc_set(nth);
            r = one_turn(turns[i].spec, talk, 3, &reply, &err);
            hit = failing_alloc_hit();
            failing_alloc_set(0);
            watching = false;
            if (r < 0) {
                /* jansson cannot always tell that it was for want of memory. */
                if (r != -PINFOLD_ENOMEM && r != -PINFOLD_EBACKEND && r != -PINFOLD_EVALUE)
                    fail_msg("%s, allocation %u: %s", turns[i].stream, nth, err.msg);
                assert_int_equal(err.code, -r);
                failures++;
                continue;
            }
            if (!hit)
                assert_string_equal(write_down(&reply), turns[i].reply ? turns[i].reply : whole);
            pinfold_model_reply_done(&reply);
        }
        assert_true(failures > 50);
        /* Nor does it tell that it could not read what was kept of a block of reasoning: that much
         * is missing then, and as often for one provider as for another. */
        assert_int_equal(others, thoughtless);
        assert_int_equal(thoughtless, strncmp(turns[i].spec, "openai", 6) == 0 ? 0 : unread);
        others = thoughtless = 0;
    }
    assert_int_equal(leaks, 0);
    for (size_t i = 0; i < 3; i++)
        pinfold_message_done(&talk[i]);
}

static void scripts_and_messages_may_find_no_memory(void **state)
{
    static const char json[] = "{\"turns\": [{\"chunk\": 2, \"reply\": [\"hello\", {\"reasoning\": "
                               "\"hm\", \"opaque\": \"o\"}, {\"tool\": \"t\", \"id\": \"i\"}]}]}";
    unsigned nth = 1;

    (void)state;
    for (bool hit = true; hit; nth++) {
        struct pinfold_message hello = { .role = PINFOLD_ROLE_USER }, copy;
        struct pinfold_model *model = NULL;
        struct pinfold_model_reply reply;
        int r;
        failing_alloc_set(nth);
        r = pinfold_message_add_text(&hello, "hello", 5, NULL);
        if (r == 0)
            r = pinfold_message_copy(&copy, &hello, NULL);
        if (r == 0)
            pinfold_message_done(&copy);
        if (r == 0)
            r = pinfold_model_scripted_from_memory(json, sizeof(json) - 1, &model, NULL);
        if (r == 0)
            r = ask(model, &hello, 1, NULL, &reply, NULL);
        hit = failing_alloc_hit();
        failing_alloc_set(0);
        if (r == 0) {
            assert_string_equal(write_down(&reply), "T(hello) R(hm) C(i t {}) tool_use");
            pinfold_model_reply_done(&reply);
        }
        assert_true(r == 0 || hit);
        pinfold_model_unref(model);
        pinfold_message_done(&hello);
    }
    assert_true(nth > 30);
}

static void the_watch_sees_a_key(void **state)
{
    char *text = malloc(100);

    (void)state;
    memcpy(text, KEY, sizeof(KEY));
    __asm__ volatile("" : : "r"(text) : "memory"); /* the compiler shall not drop it */
    watching = true;
    free(text);
    watching = false;
    assert_int_equal(leaks, 1);
    leaks = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_watch_sees_a_key),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(scripts_and_messages_may_find_no_memory),
    };

    json_set_alloc_funcs(give, take_back);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

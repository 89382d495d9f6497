/* SPDX-License-Identifier: Apache-2.0 */
/* Storages, and what becomes of results that are too long. */
#include "agents.h"

#include "agent/offload.h"

static struct pinfold_agent *agent;
static struct pinfold_storage *storage;
static struct pinfold_tool_result result;
static char dir[64];

/* What the tool "give" gives: blocks of these kinds. */
static struct pinfold_tool_content blocks[4];
static size_t block_count;

static int give(void *ctx, struct pinfold_tool_call *call, struct pinfold_tool_result *ret,
                struct pinfold_error *err)
{
    int r = 0;

    (void)ctx;
    (void)call;
    for (size_t i = 0; r == 0 && i < block_count; i++)
        r = pinfold_tool_result_add(ret, &blocks[i], err);
    return r;
}

static void add_block(enum pinfold_tool_content_kind kind, char *data, char *format, char *name)
{
    blocks[block_count++] = (struct pinfold_tool_content){
        .kind = kind, .data = { data, strlen(data) }, .format = format, .name = name
    };
}

static int setup(void **state)
{
    (void)state;
    block_count = 0;
    agent = plain_agent("offload");
    give_tool(agent, make_tool("give", NULL, give, NULL));
    assert_int_equal(pinfold_storage_memory_new(&storage, NULL), 0);
    return test_tempdir("offload", dir, sizeof(dir)) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    pinfold_tool_result_done(&result);
    pinfold_agent_free(agent);
    pinfold_storage_unref(storage);
    remove_tree(dir);
    return 0;
}

static void add_offloader(uint32_t max, uint32_t preview, bool no_tool)
{
    struct pinfold_offload_policy policy = PINFOLD_OFFLOAD_POLICY_INIT;
    struct pinfold_plugin *plugin = NULL;

    policy.storage = storage;
    policy.max_result_tokens = max;
    policy.preview_tokens = preview;
    policy.no_retrieval_tool = no_tool;
    assert_int_equal(pinfold_context_offloader_new(&policy, &plugin, NULL), 0);
    assert_int_equal(pinfold_agent_add_plugin(agent, plugin, NULL), 0);
    pinfold_plugin_unref(plugin);
}

static const char *call(const char *name, const char *input)
{
    pinfold_tool_result_done(&result);
    assert_int_equal(
            pinfold_agent_call_tool(agent, name, input, strlen(input), &result, NULL, NULL), 0);
    assert_true(result.count > 0);
    return result.items[0].data.data;
}

static char *letters(size_t count)
{
    static char text[20001];

    assert_true(count < sizeof(text));
    memset(text, 'a', count);
    text[count] = '\0';
    return text;
}

/* ---- storages ---- */

static void both_storages_keep_and_find(void **state)
{
    struct pinfold_bytes data = { 0 };
    char *reference = NULL, *type = NULL;
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    (void)state;
    for (int on_disk = 0; on_disk < 2; on_disk++) {
        if (on_disk) {
            pinfold_storage_unref(storage);
            assert_int_equal(pinfold_storage_file_new(dir, &storage, NULL), 0);
        }
        assert_int_equal(pinfold_storage_store(storage, "../k/\\1", "a\0b", 3, "image/png",
                                               &reference, NULL),
                         0);
        assert_null(strstr(reference, ".."));
        assert_int_equal(pinfold_storage_retrieve(storage, reference, &data, &type, NULL), 0);
        assert_int_equal(data.len, 3);
        assert_memory_equal(data.data, "a\0b", 3);
        assert_string_equal(type, "image/png");
        pinfold_bytes_done(&data);
        free(type);
        free(reference);
        assert_int_equal(pinfold_storage_retrieve(storage, "none", &data, &type, &err),
                         -PINFOLD_EVALUE);
        has_text(err.msg, "there is no reference \"none\"");
    }
}

static void references_in_memory_are_numbered(void **state)
{
    char *reference = NULL;

    (void)state;
    for (int i = 1; i <= 2; i++) {
        char expected[32];

        snprintf(expected, sizeof(expected), "mem_%d_call_1_0", i);
        assert_int_equal(
                pinfold_storage_store(storage, "call_1_0", "", 0, "text/plain", &reference, NULL),
                0);
        assert_string_equal(reference, expected);
        free(reference);
    }
}

static void files_have_names_and_types_and_do_not_lead_out(void **state)
{
    struct pinfold_storage *again = NULL;
    struct pinfold_bytes data = { 0 };
    char *text = NULL, *json = NULL, *type = NULL, path[256];

    (void)state;
    pinfold_storage_unref(storage);
    assert_int_equal(pinfold_storage_file_new(dir, &storage, NULL), 0);
    assert_int_equal(pinfold_storage_store(storage, "t1_0", "x", 1, "text/plain", &text, NULL), 0);
    assert_int_equal(
            pinfold_storage_store(storage, "t1_1", "{}", 2, "application/json", &json, NULL), 0);
    assert_ptr_equal(strstr(text, dir), text);
    has_text(text, "_1_t1_0.txt");
    has_text(json, "_2_t1_1.json");
    assert_int_equal(access(text, R_OK), 0);
    snprintf(path, sizeof(path), "%s/.metadata.json", dir);
    assert_int_equal(access(path, R_OK), 0);
    assert_int_equal(pinfold_storage_retrieve(storage, path, &data, &type, NULL), -PINFOLD_EVALUE);
    snprintf(path, sizeof(path), "%s/../../../../../../etc/passwd", dir);
    assert_int_equal(pinfold_storage_retrieve(storage, path, &data, &type, NULL), -PINFOLD_EVALUE);
    snprintf(path, sizeof(path), "%s/link", dir);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_int_equal(pinfold_storage_retrieve(storage, path, &data, &type, NULL), -PINFOLD_EVALUE);
    /* Another life of the same directory knows them still. */
    assert_int_equal(pinfold_storage_file_new(dir, &again, NULL), 0);
    assert_int_equal(pinfold_storage_retrieve(again, json, &data, &type, NULL), 0);
    assert_string_equal(type, "application/json");
    pinfold_bytes_done(&data);
    pinfold_storage_unref(again);
    free(type);
    free(text);
    free(json);
}

/* ---- policies ---- */

static void policies_are_checked(void **state)
{
    struct pinfold_offload_policy policy = PINFOLD_OFFLOAD_POLICY_INIT;
    struct pinfold_plugin *plugin = NULL;

    (void)state;
    assert_int_equal(pinfold_context_offloader_new(&policy, &plugin, NULL), -PINFOLD_EVALUE);
    policy.storage = storage;
    policy.max_result_tokens = 1000; /* the default preview is as long */
    assert_int_equal(pinfold_context_offloader_new(&policy, &plugin, NULL), -PINFOLD_EVALUE);
    policy.preview_tokens = 1000;
    assert_int_equal(pinfold_context_offloader_new(&policy, &plugin, NULL), -PINFOLD_EVALUE);
    policy.preview_tokens = 999;
    assert_int_equal(pinfold_context_offloader_new(&policy, &plugin, NULL), 0);
    pinfold_plugin_unref(plugin);
    policy.preview_tokens = PINFOLD_NO_PREVIEW;
    assert_int_equal(pinfold_context_offloader_new(&policy, &plugin, NULL), 0);
    pinfold_plugin_unref(plugin);
}

static void tokens_are_estimated(void **state)
{
    struct pinfold_tool_result r = { 0 };
    char json[] = "[1,2]";
    struct pinfold_tool_content block = { .kind = PINFOLD_TOOL_JSON, .data = { json, 5 } };

    (void)state;
    assert_int_equal(pf_result_tokens(&r), 0);
    assert_int_equal(pinfold_tool_result_add_text(&r, "\xe2\x82\xac\xe2\x82\xac", 6, NULL), 0);
    assert_int_equal(pf_result_tokens(&r), 1); /* characters, not bytes */
    assert_int_equal(pinfold_tool_result_add_text(&r, "12345", 5, NULL), 0);
    assert_int_equal(pf_result_tokens(&r), 3);
    assert_int_equal(pinfold_tool_result_add(&r, &block, NULL), 0);
    assert_int_equal(pf_result_tokens(&r), 6);
    pinfold_tool_result_done(&r);
}

/* ---- results ---- */

static void a_result_at_the_limit_stays(void **state)
{
    (void)state;
    add_offloader(10, 5, false);
    add_block(PINFOLD_TOOL_TEXT, letters(40), NULL, NULL);
    assert_int_equal(strlen(call("give", "{}")), 40);
    block_count = 0;
    add_block(PINFOLD_TOOL_TEXT, letters(41), NULL, NULL);
    has_text(call("give", "{}"), "[Offloaded: 1 blocks, ~11 tokens]");
}

static void a_long_result_leaves_a_preview_and_a_reference(void **state)
{
    const char *text;

    (void)state;
    add_offloader(0, 0, false);
    add_block(PINFOLD_TOOL_TEXT, letters(12345), NULL, NULL);
    text = call("give", "{}");
    has_text(text, "[Offloaded: 1 blocks, ~3,087 tokens]\n");
    has_text(text, "retrieve_offloaded_content");
    has_text(text, "\n[Stored references:]\n  mem_1_direct_0 (text, 12,345 chars)\n");
    assert_true(strlen(text) > 4000 && strlen(text) < 5000);
    assert_int_equal(result.count, 1);
    assert_false(result.is_error);
    text = call("retrieve_offloaded_content", "{\"reference\":\"mem_1_direct_0\"}");
    assert_int_equal(strlen(text), 12345); /* and it is not offloaded again */
}

static void references_stand_by_their_own_blocks(void **state)
{
    char empty[] = "", png[] = "png", pdf[] = "pdf", name[] = "report", bytes[] = "\x89PNG";

    (void)state;
    add_offloader(10, 1, true);
    add_block(PINFOLD_TOOL_TEXT, empty, NULL, NULL); /* is not stored, and shifts nothing */
    add_block(PINFOLD_TOOL_IMAGE, bytes, png, NULL);
    add_block(PINFOLD_TOOL_TEXT, letters(50), NULL, NULL);
    add_block(PINFOLD_TOOL_DOCUMENT, bytes, pdf, name);
    call("give", "{}");
    assert_int_equal(result.count, 3);
    has_text(result.items[0].data.data, "[Stored references:]\n"
                                        "  mem_1_direct_1 (image/png, 4 bytes)\n"
                                        "  mem_2_direct_2 (text, 50 chars)\n"
                                        "  mem_3_direct_3 (report, 4 bytes)\n");
    assert_null(strstr(result.items[0].data.data, "retrieve_offloaded_content"));
    assert_string_equal(result.items[1].data.data, "[image: png, 4 bytes | ref: mem_1_direct_1]");
    assert_string_equal(result.items[2].data.data,
                        "[document: pdf, report, 4 bytes | ref: mem_3_direct_3]");
    assert_null(pinfold_agent_get_tool(agent, "retrieve_offloaded_content"));
}

static void an_image_comes_back_as_an_image(void **state)
{
    char png[] = "png", bytes[] = "\x89PNG";

    (void)state;
    add_offloader(10, 1, false);
    add_block(PINFOLD_TOOL_TEXT, letters(50), NULL, NULL);
    add_block(PINFOLD_TOOL_IMAGE, bytes, png, NULL);
    call("give", "{}");
    call("retrieve_offloaded_content", "{\"reference\":\"mem_2_direct_1\"}");
    assert_int_equal(result.items[0].kind, PINFOLD_TOOL_IMAGE);
    assert_string_equal(result.items[0].format, "png");
    assert_int_equal(result.items[0].data.len, 4);
}

static void a_preview_is_cut_between_characters(void **state)
{
    char text[] = "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
                  "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac";

    (void)state;
    add_offloader(2, 1, false);
    add_block(PINFOLD_TOOL_TEXT, text, NULL, NULL);
    has_text(call("give", "{}"), "\n\n\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\n\n[Stored");
}

static int refuse_to_store(void *state, const char *key, const void *data, size_t len,
                           const char *type, char **ret, struct pinfold_error *err)
{
    (void)state;
    (void)key;
    (void)data;
    (void)len;
    (void)type;
    (void)ret;
    *err = (struct pinfold_error){ .code = PINFOLD_EOS };
    return -PINFOLD_EOS;
}

static int find_nothing(void *state, const char *reference, struct pinfold_bytes *ret,
                        char **ret_type, struct pinfold_error *err)
{
    (void)state;
    (void)reference;
    (void)ret;
    (void)ret_type;
    (void)err;
    return -PINFOLD_EVALUE;
}

static void what_cannot_be_stored_stays_whole(void **state)
{
    static const struct pinfold_storage_ops ops = { .size = sizeof(ops),
                                                    .store = refuse_to_store,
                                                    .retrieve = find_nothing };

    (void)state;
    pinfold_storage_unref(storage);
    assert_int_equal(pinfold_storage_new(&ops, NULL, &storage, NULL), 0);
    add_offloader(10, 1, false);
    add_block(PINFOLD_TOOL_TEXT, letters(100), NULL, NULL);
    assert_int_equal(strlen(call("give", "{}")), 100);
}

static void parts_are_fetched_by_lines_and_by_text(void **state)
{
    char text[] = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";

    (void)state;
    add_offloader(2, 1, false);
    add_block(PINFOLD_TOOL_TEXT, text, NULL, NULL);
    call("give", "{}");
    assert_string_equal(call("retrieve_offloaded_content",
                             "{\"reference\":\"mem_1_direct_0\",\"line_range\":{\"start\":2,"
                             "\"end\":3}}"),
                        "two\nthree\n");
    assert_string_equal(call("retrieve_offloaded_content",
                             "{\"reference\":\"mem_1_direct_0\",\"pattern\":\"four\","
                             "\"context_lines\":1}"),
                        "3: three\n4: four\n5: five\n");
    assert_string_equal(call("retrieve_offloaded_content",
                             "{\"reference\":\"mem_1_direct_0\",\"pattern\":\"o\","
                             "\"context_lines\":0}"),
                        "1: one\n2: two\n4: four\n");
    assert_string_equal(call("retrieve_offloaded_content",
                             "{\"reference\":\"mem_1_direct_0\",\"pattern\":\"e\",\"context_lines\""
                             ":0,\"line_range\":{\"start\":4,\"end\":6}}"),
                        "5: five\n");
    assert_string_equal(call("retrieve_offloaded_content",
                             "{\"reference\":\"mem_1_direct_0\",\"pattern\":\"ten\"}"),
                        "[No line contains that text. There are 7 lines.]");
    assert_string_equal(call("retrieve_offloaded_content",
                             "{\"reference\":\"mem_1_direct_0\",\"line_range\":{\"start\":8,"
                             "\"end\":9}}"),
                        "[The range holds no line. There are 7 lines.]");
    has_text(call("retrieve_offloaded_content", "{\"reference\":\"mem_9_direct_0\"}"),
             "there is no reference \"mem_9_direct_0\"");
    assert_true(result.is_error);
    has_text(call("retrieve_offloaded_content",
                  "{\"reference\":\"x\",\"line_range\":{\"start\":0,\"end\":1}}"),
             "line_range.start: must be at least 1");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(both_storages_keep_and_find),
        TEST(references_in_memory_are_numbered),
        TEST(files_have_names_and_types_and_do_not_lead_out),
        TEST(policies_are_checked),
        TEST(tokens_are_estimated),
        TEST(a_result_at_the_limit_stays),
        TEST(a_long_result_leaves_a_preview_and_a_reference),
        TEST(references_stand_by_their_own_blocks),
        TEST(an_image_comes_back_as_an_image),
        TEST(a_preview_is_cut_between_characters),
        TEST(what_cannot_be_stored_stays_whole),
        TEST(parts_are_fetched_by_lines_and_by_text),
    };

    return cmocka_run_group_tests_name("offload", tests, NULL, NULL);
}

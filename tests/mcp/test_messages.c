/* SPDX-License-Identifier: Apache-2.0 */
/* What a message is, and the texts that messages are made of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mcp/content.h"
#include "mcp/rpc.h"

static void tells_the_kinds_of_messages_apart(void **state)
{
    static const struct {
        const char *text;
        enum pf_mcp_kind kind;
    } cases[] = {
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}", PF_MCP_REQUEST },
        { "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"m\",\"params\":{}}", PF_MCP_REQUEST },
        { "{\"jsonrpc\":\"2.0\",\"method\":\"m\"}", PF_MCP_NOTIFICATION },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":5}", PF_MCP_RESPONSE },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}}", PF_MCP_RESPONSE },
        { "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{}}", PF_MCP_RESPONSE },
        { "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"m\"}", PF_MCP_INVALID },
        { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":[]}", PF_MCP_INVALID },
        { "{\"jsonrpc\":\"2.0\",\"id\":1}", PF_MCP_INVALID },
        { "{\"id\":1,\"method\":\"m\"}", PF_MCP_INVALID },
        { "5", PF_MCP_INVALID },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pf_mcp_fault fault = { 0 };
        struct pf_mcp_message message;
        json_t *value = pf_mcp_parse(cases[i].text, strlen(cases[i].text), &fault);

        assert_non_null(value);
        pf_mcp_classify(value, &message, &fault);
        assert_int_equal(message.kind, cases[i].kind);
        assert_int_equal(fault.code, cases[i].kind == PF_MCP_INVALID ? PF_MCP_INVALID_REQUEST : 0);
        json_decref(value);
    }
}

static void says_where_a_message_is_no_json(void **state)
{
    struct pf_mcp_fault fault = { 0 };

    (void)state;
    assert_null(pf_mcp_parse("{\"a\":}", 6, &fault));
    assert_int_equal(fault.code, PF_MCP_PARSE_ERROR);
    assert_non_null(strstr(fault.message, "Parse error"));
}

static void an_error_without_an_id_has_null(void **state)
{
    struct pf_mcp_fault fault = { 0 };
    json_t *error;

    (void)state;
    pf_mcp_fail(&fault, PF_MCP_BUSY, "too many: %d", 5);
    error = pf_mcp_error(NULL, &fault);
    assert_true(json_is_null(json_object_get(error, "id")));
    assert_string_equal(pf_mcp_string(json_object_get(error, "error"), "message", NULL),
                        "too many: 5");
    json_decref(error);
}

static void values_that_could_not_be_made_add_up_to_none(void **state)
{
    json_t *object = json_object();
    int bad = pf_mcp_put(object, "a", json_integer(1));

    (void)state;
    bad |= pf_mcp_put(object, "b", NULL);
    assert_null(pf_mcp_whole(object, bad));
    assert_null(pf_mcp_reply(NULL, NULL));
    assert_int_not_equal(pf_mcp_put(NULL, "a", json_integer(1)), 0);
}

static void bytes_that_are_no_text_become_replacement_characters(void **state)
{
    json_t *text = pf_mcp_text("a\xff\0b", 4), *none = pf_mcp_text(NULL, 0);

    (void)state;
    assert_int_equal(json_string_length(text), 6);
    assert_memory_equal(json_string_value(text), "a\xef\xbf\xbd\0b", 6);
    assert_string_equal(json_string_value(none), "");
    json_decref(text);
    json_decref(none);
}

static void base64_is_that_of_the_standard(void **state)
{
    static const char *const vectors[] = { "",         "Zg==",     "Zm8=",    "Zm9v",
                                           "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy" };

    (void)state;
    for (size_t len = 0; len < 7; len++) {
        json_t *text = pf_mcp_base64("foobar", len);
        assert_string_equal(json_string_value(text), vectors[len]);
        json_decref(text);
    }
}

static void a_uri_has_any_name_and_gives_it_back(void **state)
{
    char name[256];
    json_t *uri;
    char *path;

    (void)state;
    for (int i = 1; i < 256; i++)
        name[i - 1] = (char)i;
    name[255] = '\0';
    uri = pf_mcp_uri(name);
    path = pf_mcp_decode(json_string_value(uri) + strlen(PF_MCP_FILE_URI));
    assert_string_equal(path, name);
    free(path);
    json_decref(uri);
}

static void a_uri_that_is_not_well_encoded_is_none(void **state)
{
    static const char *const wrong[] = { "%", "a%2", "%zz", "%0g", "%00", "a%00b" };

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_null(pf_mcp_decode(wrong[i]));
}

static void images_are_known_by_their_first_bytes(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *type;
    } cases[] = {
        { "\x89PNG\r\n\x1a\nrest", 12, "image/png" },
        { "\xff\xd8\xff\xe0", 4, "image/jpeg" },
        { "GIF89a..", 8, "image/gif" },
        { "RIFF....WEBPVP8 ", 16, "image/webp" },
        { "RIFF....WAVEfmt ", 16, NULL },
        { "\x89PNG", 4, NULL },
        { "", 0, NULL },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char copy[16];
        struct pinfold_bytes bytes = { .data = copy, .len = cases[i].len };
        const char *type;

        memcpy(copy, cases[i].bytes, cases[i].len);
        type = pf_mcp_image_type(&bytes);
        assert_true(type == cases[i].type || (type && strcmp(type, cases[i].type) == 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_the_kinds_of_messages_apart),
        cmocka_unit_test(says_where_a_message_is_no_json),
        cmocka_unit_test(an_error_without_an_id_has_null),
        cmocka_unit_test(values_that_could_not_be_made_add_up_to_none),
        cmocka_unit_test(bytes_that_are_no_text_become_replacement_characters),
        cmocka_unit_test(base64_is_that_of_the_standard),
        cmocka_unit_test(a_uri_has_any_name_and_gives_it_back),
        cmocka_unit_test(a_uri_that_is_not_well_encoded_is_none),
        cmocka_unit_test(images_are_known_by_their_first_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

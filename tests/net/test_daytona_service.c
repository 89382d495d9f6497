/* SPDX-License-Identifier: Apache-2.0 */
/* The client against a service that means harm, or quotes what it was sent. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "daytona_fixture.h"

static int execute(void)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(1000);
    int status;

    return pf_daytona_execute(&f->toolbox, "x", 0, &f->call, &status, &text, &f->err);
}

static int get_sandbox(void)
{
    json_auto_t *sandbox = NULL;

    return pf_daytona_get(f->client, SID, &f->call, &sandbox, &f->err);
}

static int work_dir(void)
{
    _cleanup_free_ char *dir = NULL;

    return pf_daytona_dir(&f->toolbox, "work-dir", &f->call, &dir, &f->err);
}

static int list(void)
{
    json_auto_t *files = NULL;

    return pf_daytona_files_list(&f->toolbox, "/a", &f->call, &files, &f->err);
}

static int count_bytes(void *ctx, const void *data, size_t len, struct pinfold_error *err)
{
    (void)data;
    (void)err;
    *(uint64_t *)ctx += len;
    return 0;
}

static void statuses_are_those_of_processes(void **state)
{
    static const char *const bad[] = {
        "4294967296", "256",  "-2",    "1e3", "1e400",
        "0.0",        "true", "\"0\"", "{}",  "99999999999999999999"
    };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(bad); i++) {
        bool done = false;
        int status = -9;
        char body[100];
        forget();
        snprintf(body, sizeof(body), "{\"exitCode\":%s,\"result\":\"hi\\n\"}", bad[i]);
        answer_text("200 X", body);
        assert_int_equal(execute(), -PINFOLD_EBACKEND);
        assert_int_equal(pf_daytona_session_poll(&f->toolbox, SESSION, COMMAND, &f->call, &done,
                                                 &status, &f->err),
                         -PINFOLD_EBACKEND);
        assert_int_equal(status, -9);
    }
}

static int find_toolbox(const char *sandbox)
{
    json_auto_t *object = json_loads(sandbox, 0, NULL);
    struct pf_daytona_toolbox toolbox = { 0 };
    int r = pf_daytona_toolbox_find(f->client, object, &f->call, &toolbox, &f->err);

    pf_daytona_toolbox_done(&toolbox);
    return r;
}

static void no_message_holds_the_key(void **state)
{
    struct pf_daytona_put file = { .path = "a", .data = "x", .fd = -1, .size = 1 };
    struct pf_daytona_fetch fetch = { .path = "a" };
    _cleanup_free_ char *id = NULL;
    bool done;
    int status;

    (void)state;
    answer_text("400 X", "{\"errors\":[\"a: " KEY "\"],\"files\":[]}");
    assert_int_equal(pf_daytona_files_put(&f->toolbox, &file, 1, &f->call, &f->err), 0);
    assert_int_equal(file.error.code, PINFOLD_EBACKEND);
    assert_null(strstr(file.error.msg, KEY));
    forget();
    answer_text("200 X\r\nContent-Type: multipart/form-data; boundary=B",
                "--B\r\nContent-Disposition: form-data; name=error; filename=a\r\n\r\n"
                "{\"message\":\"" KEY "\"}\r\n--B--");
    assert_int_equal(pf_daytona_files_fetch(&f->toolbox, &fetch, 1, &f->call, &f->err), 0);
    assert_int_equal(fetch.error.code, PINFOLD_EBACKEND);
    assert_null(strstr(fetch.error.msg, KEY));
    assert_int_equal(find_toolbox("{\"id\":\"i\",\"toolboxProxyUrl\":\"http://h/" KEY "\"}"),
                     -PINFOLD_EBACKEND);
    assert_null(strstr(f->err.msg, KEY));
    forget();
    answer_text("202 X", "{\"cmdId\":\"" KEY "\"}");
    assert_int_equal(pf_daytona_session_exec(&f->toolbox, SESSION, "true", &f->call, &id, &f->err),
                     0);
    forget();
    f->reply_count = 1; /* it hangs up */
    assert_int_equal(
            pf_daytona_session_poll(&f->toolbox, SESSION, id, &f->call, &done, &status, &f->err),
            -PINFOLD_EOS);
    assert_null(strstr(f->err.msg, KEY));
    assert_true(f->err.msg[0]);
    forget();
    answer_text("429 X\r\nRetry-After: 3600\r\nX-RateLimit-Remaining-" KEY ": 0", "");
    assert_int_equal(get_sandbox(), -PINFOLD_EBACKEND);
    assert_null(strcasestr(f->err.msg, KEY));
}

static void an_id_leads_nowhere_else(void **state)
{
    static const char *const ids[] = { "..",     ".",   "a/b",   "a\\tb",
                                       "a\\\\b", "a?b", "a%2fb", "\\u00e9" };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(ids); i++) {
        char sandbox[100];
        snprintf(sandbox, sizeof(sandbox), "{\"id\":\"%s\",\"toolboxProxyUrl\":\"http://h/t\"}",
                 ids[i]);
        assert_int_equal(find_toolbox(sandbox), -PINFOLD_EBACKEND);
        assert_non_null(strstr(f->err.msg, "id"));
    }
}

static void a_redirection_is_not_followed(void **state)
{
    static const char *const statuses[] = { "301", "302", "303", "307", "308" };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(statuses); i++) {
        char head[200];
        forget();
        snprintf(head, sizeof(head), "%s X\r\nLocation: http://127.0.0.1:9/elsewhere", statuses[i]);
        answer_text(head, "");
        assert_int_equal(get_sandbox(), -PINFOLD_EBACKEND);
        assert_int_equal(f->request_count, 1);
        forget();
        answer_text(head, "");
        assert_int_equal(list(), -PINFOLD_EBACKEND); /* with a slash at most, at the same place */
        assert_true(f->request_count <= 2);
        forget();
        answer_text(head, "");
        assert_int_equal(pf_daytona_delete(f->client, SID, &f->call, &f->err),
                         -PINFOLD_EBACKEND); /* it is not deleted */
    }
}

static void json_of_any_shape_is_an_error_or_understood(void **state)
{
    static const char *const bodies[] = { "",
                                          "{",
                                          "null",
                                          "[]",
                                          "0",
                                          "\"text\"",
                                          "{\"id\":null}",
                                          "{\"id\":{}}",
                                          "{\"id\":\"\"}",
                                          "{\"id\":\"\\u0000x\"}",
                                          "{\"id\":1e999}",
                                          "{\"id\":\"a\",\"id\":[]}",
                                          "\xff\xfe{}",
                                          "{\"cmdId\":[\"a\"],\"items\":{},\"exitCode\":[]}" };
    PF_CLEANUP(pf_buf_done) struct pf_buf deep = PF_BUF_INIT(1 << 20);
    json_auto_t *labels = json_object();

    (void)state;
    for (int i = 0; i < 100000; i++)
        assert_int_equal(pf_buf_append(&deep, "[", 1), 0);
    for (size_t i = 0; i <= PF_COUNT(bodies); i++) {
        json_auto_t *all = NULL;
        _cleanup_free_ char *id = NULL;
        forget();
        if (i < PF_COUNT(bodies))
            answer_text("200 X", bodies[i]);
        else
            answer("200 X", deep.data, deep.len);
        assert_int_equal(get_sandbox(), -PINFOLD_EBACKEND);
        assert_int_equal(work_dir(), -PINFOLD_EBACKEND);
        assert_int_equal(execute(), -PINFOLD_EBACKEND);
        assert_int_equal(pf_daytona_session_exec(&f->toolbox, SESSION, "x", &f->call, &id, &f->err),
                         -PINFOLD_EBACKEND);
        if (pf_daytona_list(f->client, labels, &f->call, &all, &f->err) == 0)
            assert_int_equal(json_array_size(all), 0);
    }
}

/* What has no end of its own is ended here: pages that lead to further pages. */
static void a_list_without_an_end_has_one(void **state)
{
    json_auto_t *labels = json_object(), *all = NULL;

    (void)state;
    answer_text("200 X", "{\"items\":[{\"id\":\"a\"}],\"nextCursor\":\"again\"}");
    assert_int_equal(pf_daytona_list(f->client, labels, &f->call, &all, &f->err), 0);
    assert_in_range(f->request_count, 2, 1000);
}

static void what_is_more_than_was_asked_for_is_not_waited_for(void **state)
{
    uint64_t count = 0;
    struct pf_buf *reply;

    (void)state;
    reply = &f->replies[f->reply_count++];
    assert_int_equal(pf_buf_append_text(reply, "HTTP/1.1 200 X\r\nContent-Length: 999999999\r\n\r\n"
                                               "0123456789"),
                     0); /* and nothing more, for ever */
    assert_int_equal(
            pf_daytona_file_get(&f->toolbox, "/a", 4, &f->call, count_bytes, &count, &f->err), 0);
    assert_int_equal(count, 4);
    forget();
    f->reply_count = 0;
    assert_int_equal(pf_buf_append_text(&f->replies[f->reply_count++],
                                        "HTTP/1.1 200 X\r\nContent-Length: 10\r\n\r\n012"),
                     0);
    f->call.idle_ns = PF_NS_PER_SEC;
    assert_int_equal(
            pf_daytona_file_get(&f->toolbox, "/a", 9, &f->call, count_bytes, &count, &f->err),
            -PINFOLD_ETIMEOUT);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(statuses_are_those_of_processes),
        TEST(no_message_holds_the_key),
        TEST(an_id_leads_nowhere_else),
        TEST(a_redirection_is_not_followed),
        TEST(json_of_any_shape_is_an_error_or_understood),
        TEST(a_list_without_an_end_has_one),
        TEST(what_is_more_than_was_asked_for_is_not_waited_for),
    };

    return cmocka_run_group_tests_name("daytona_service", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_backend.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "sandbox/audit.h"
#include "tempdir.h"

static void an_event_is_one_json_object_without_what_does_not_apply(void **unused)
{
    struct pinfold_audit_event event = PF_AUDIT_EVENT_INIT("sandbox.execute");
    char *json = NULL;

    (void)unused;
    event.time_ns = INT64_C(1700000000123456789);
    event.workspace_id = "w \"quoted\"";
    event.exit_code = 0;
    event.truncated = 0;
    event.cpu_ns = 5;
    event.limit = "memory";
    event.paths = (const char *const[]){ "a", "b", NULL };
    assert_int_equal(pinfold_audit_event_json(&event, &json, NULL), 0);
    assert_string_equal(json, "{\"time\":\"2023-11-14T22:13:20.123456789Z\","
                              "\"event\":\"sandbox.execute\",\"workspace_id\":\"w \\\"quoted\\\"\","
                              "\"paths\":[\"a\",\"b\"],\"exit_code\":0,\"truncated\":false,"
                              "\"cpu_ns\":5,\"limit\":\"memory\"}");
    free(json);
}

static void a_command_is_known_by_length_and_hash_prefix(void **unused)
{
    char hash[PF_AUDIT_HASH_DIGITS + 1];

    (void)unused;
    pf_audit_hash("abc", 3, hash);
    assert_string_equal(hash, "ba7816bf8f01cfea"); /* FIPS 180-4, example B.1 */
    pf_audit_hash("", 0, hash);
    assert_string_equal(hash, "e3b0c44298fc1c14");
}

static void the_operation_is_guessed_from_the_first_word(void **unused)
{
    static const struct {
        const char *command, *label;
    } cases[] = {
        { "rm -rf /", "shell_delete" },
        { "  /bin/rm x", "shell_delete" },
        { "rm", "shell_delete" },
        { "mv a b", "shell_move" },
        { "rmx", NULL },
        { "", NULL },
        { "   ", NULL },
        { "cat<x", "shell_read" },
        { "pip install x", "shell_package" },
        { "a-very-long-word-that-never-ends-at-all-x y", NULL },
    };

    (void)unused;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *label = pf_audit_infer(cases[i].command, strlen(cases[i].command));
        if (cases[i].label)
            assert_string_equal(label, cases[i].label);
        else
            assert_null(label);
    }
    assert_null(pf_audit_infer("\0rm", 3));
}

static void the_file_sink_appends_lines_that_nobody_else_reads(void **unused)
{
    char dir[128], path[192], text[1024] = "";
    struct pinfold_audit_event event = PF_AUDIT_EVENT_INIT("sandbox.move_file");
    struct pinfold_audit_file *file = NULL;
    struct pinfold_audit_sink sink;
    struct stat st;
    int fd;

    (void)unused;
    assert_non_null(test_tempdir("pinfold-audit", dir, sizeof(dir)));
    snprintf(path, sizeof(path), "%s/log", dir);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pinfold_audit_file_open(path, &file, NULL), 0);
        sink = pinfold_audit_file_sink(file);
        event.path = "odd\nname\xff";
        pf_audit_emit(&sink, &event, 0, NULL);
        assert_int_equal(pinfold_audit_file_close(file, NULL), 0);
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(read(fd, text, sizeof(text) - 1) > 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    close(fd);
    assert_non_null(strchr(text, '\n'));
    assert_non_null(strstr(strchr(text, '\n') + 1, "\"event\":\"sandbox.move_file\""));
    assert_non_null(strstr(text, "odd\\\\x0aname\\\\xff"));
    assert_string_equal(strrchr(text, '\n'), "\n");
    unlink(path);
    rmdir(dir);
}

static void a_sink_that_cannot_write_says_so_at_the_end(void **unused)
{
    struct pinfold_audit_event event = PF_AUDIT_EVENT_INIT("sandbox.stop");
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_audit_file *file = NULL;
    struct pinfold_audit_sink sink;

    (void)unused;
    assert_int_equal(pinfold_audit_file_open("/dev/full", &file, &err), 0);
    sink = pinfold_audit_file_sink(file);
    pf_audit_emit(&sink, &event, 0, NULL);
    assert_int_equal(pinfold_audit_file_close(file, &err), -PINFOLD_EOS);
    assert_int_equal(err.sys_errno, ENOSPC);
    assert_int_equal(pinfold_audit_file_open("/proc/nonexistent/log", &file, &err), -PINFOLD_EOS);
    assert_non_null(strstr(err.msg, "/proc/nonexistent/log"));
}

static void a_link_is_not_followed_to_an_audit_file(void **unused)
{
    char dir[128], path[192];
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_audit_file *file = NULL;

    (void)unused;
    assert_non_null(test_tempdir("pinfold-audit", dir, sizeof(dir)));
    snprintf(path, sizeof(path), "%s/link", dir);
    assert_int_equal(symlink("/tmp", path), 0);
    assert_int_equal(pinfold_audit_file_open(path, &file, &err), -PINFOLD_EOS);
    assert_int_equal(err.sys_errno, ELOOP);
    unlink(path);
    rmdir(dir);
}

/* Nothing of a kind that can make who opens or writes it wait for somebody else: with a reader or
 * without. The alarm ends a test that waits. */
static void what_could_wait_for_a_reader_is_no_audit_file(void **unused)
{
    static const char *const names[] = { "fifo", "socket", "directory" };
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char dir[64], path[108];
    struct pinfold_audit_file *file = NULL;
    int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), reader = -1;

    (void)unused;
    assert_non_null(test_tempdir("pinfold-audit", dir, sizeof(dir)));
    snprintf(path, sizeof(path), "%s/fifo", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", dir);
    assert_int_equal(bind(sock, (struct sockaddr *)&address, sizeof(address)), 0);
    snprintf(path, sizeof(path), "%s/directory", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    alarm(60);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++) {
            struct pinfold_error err = PINFOLD_ERROR_INIT;
            snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
            assert_int_equal(pinfold_audit_file_open(path, &file, &err),
                             i == 2 ? -PINFOLD_EOS : -PINFOLD_EVALUE);
            assert_non_null(strstr(err.msg, path));
            assert_true(i == 2 || strstr(err.msg, "regular file"));
        }
        snprintf(path, sizeof(path), "%s/fifo", dir);
        if (round == 0)
            reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    }
    alarm(0);
    assert_true(reader >= 0);
    close(reader);
    close(sock);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        remove(path);
    }
    rmdir(dir);
}

/* O_NONBLOCK would turn a slow terminal into lost lines. */
static void what_is_opened_writes_as_if_it_had_been_waited_for(void **unused)
{
    struct pinfold_audit_file *file = NULL;
    int probe = open("/dev/null", O_RDONLY | O_CLOEXEC), flags;

    (void)unused;
    close(probe); /* the lowest free descriptor, which the file is to have */
    assert_int_equal(pinfold_audit_file_open("/dev/null", &file, NULL), 0);
    flags = fcntl(probe, F_GETFL);
    assert_true(flags >= 0 && (flags & O_ACCMODE) == O_WRONLY);
    assert_int_equal(flags & (O_NONBLOCK | O_APPEND), O_APPEND);
    assert_int_equal(pinfold_audit_file_close(file, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_is_one_json_object_without_what_does_not_apply),
        cmocka_unit_test(a_command_is_known_by_length_and_hash_prefix),
        cmocka_unit_test(the_operation_is_guessed_from_the_first_word),
        cmocka_unit_test(the_file_sink_appends_lines_that_nobody_else_reads),
        cmocka_unit_test(a_sink_that_cannot_write_says_so_at_the_end),
        cmocka_unit_test(a_link_is_not_followed_to_an_audit_file),
        cmocka_unit_test(what_could_wait_for_a_reader_is_no_audit_file),
        cmocka_unit_test(what_is_opened_writes_as_if_it_had_been_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

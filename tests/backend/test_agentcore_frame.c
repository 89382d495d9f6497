/* SPDX-License-Identifier: Apache-2.0 */
/* What a wrapper prints, and what somebody might print in its place. */
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tempdir.h"
#include "backend/agentcore.h"
#include "base/cleanup.h"

#define MARK "0123456789abcdef"
#define P "pf-" MARK "-"

static struct pf_ac_output output;

static int read_text(const char *text, size_t limit)
{
    pf_ac_output_done(&output);
    output = (struct pf_ac_output){ .out = PF_BUF_INIT(0), .errs = PF_BUF_INIT(0) };
    return pf_ac_frame_read(text, MARK, limit, &output);
}

static int tear_down(void **state)
{
    (void)state;
    pf_ac_output_done(&output);
    return 0;
}

static void is_text(const struct pf_buf *buf, const char *text)
{
    assert_int_equal(buf->len, strlen(text));
    if (buf->len > 0)
        assert_memory_equal(buf->data, text, buf->len);
}

static void streams_are_apart_whatever_line_ends_the_terminal_makes(void **state)
{
    (void)state;
    assert_int_equal(
            read_text("\r\n" P "r:c:7:3:2\r\nYWJj\r\n\r\n" P "e\r\nMTI=\r\n\r\n" P "x\r\n", 100),
            0);
    assert_int_equal(output.status, 7);
    assert_false(output.refused || output.partial || output.merged);
    is_text(&output.out, "abc");
    is_text(&output.errs, "12");
    assert_int_equal(read_text("noise\n\n" P "r:f:125:0:3\n\n" P "e\nYWJj\n\n" P "x", 100), 0);
    assert_true(output.refused);
    assert_int_equal(read_text(P "r:p:0:9:0\nYWJj\n" P "e\n" P "x\n", 3), 0);
    assert_true(output.partial);
    assert_int_equal(output.out_size, 9);
    is_text(&output.out, "abc");
}

static void what_is_not_what_one_wrapper_prints_is_an_error(void **state)
{
    static const char *const bad[] = {
        "",
        "hello",
        /* cut */
        P "r:c:0:3:0\nYWJj\n",
        P "r:c:0:3:0\nYWJj\n" P "e\n",
        P "r:c:0:3:0\nYW\n" P "e\n" P "x\n",
        P "r:c:0:3:0\n" P "e\n" P "x\n",
        P "r:c:0:3:0",
        P,
        /* another one before, behind or within */
        P "r:c:0:0:0\n\n" P "e\n" P "x\n" P "r:c:1:0:0\n\n" P "e\n" P "x\n",
        P "r:c:0:0:0\n" P "r:c:1:3:0\nYWJj\n" P "e\n" P "x\n",
        P "r:c:1:3:0\nYWJj\n" P "e\n" P "x\n" P,
        P "m\nok\n" P "r:c:1:3:0\nYWJj\n" P "e\n" P "x\n",
        /* out of order, and of other kinds */
        P "e\n" P "r:c:0:0:0\n" P "x\n",
        P "r:c:0:0:0\n" P "x\n" P "e\n",
        P "q:c:0:0:0\n" P "e\n" P "x\n",
        /* numbers that are none, or lie */
        P "r:c:256:0:0\n" P "e\n" P "x\n",
        P "r:c:-1:0:0\n" P "e\n" P "x\n",
        P "r:c::0:0\n" P "e\n" P "x\n",
        P "r:c:0:-1:0\n" P "e\n" P "x\n",
        P "r:c:0:0:99999999999999999999\n" P "e\n" P "x\n",
        P "r:c:0:0:0x\n" P "e\n" P "x\n",
        P "r:c:0:0\n" P "e\n" P "x\n",
        P "r:z:0:0:0\n" P "e\n" P "x\n",
        P "r:c:0:2:0\nYWJj\n" P "e\n" P "x\n",
        P "r:c:0:4:0\nYWJj\n" P "e\n" P "x\n",
        P "r:c:0:0:1\n" P "e\n" P "x\n",
        /* base64 that is none */
        P "r:c:0:3:0\nY*Jj\n" P "e\n" P "x\n",
        P "r:c:0:3:0\nYWJj=\n" P "e\n" P "x\n",
        /* merged, without an end */
        P "m\nfoo\n",
        P "m\nfoo\n" P "n:c:0\nand more",
        P "m\nfoo\n" P "n:p:0\n",
        P "m\nfoo\n" P "n:c:999\n",
        P "n:c:0\n" P "m\n",
    };

    (void)state;
    assert_int_equal(read_text(NULL, 100), -PINFOLD_EBACKEND);
    for (size_t i = 0; i < PF_COUNT(bad); i++)
        if (read_text(bad[i], 100) != -PINFOLD_EBACKEND)
            fail_msg("%zu was believed: %s", i, bad[i]);
}

static void merged_output_may_speak_of_marks_and_its_end_stays_its_end(void **state)
{
    (void)state;
    assert_int_equal(read_text("\r\n" P "m\r\na\r\n" P "n:c:0\r\nb\r\n\r\n" P "n:c:3\r\n", 100), 0);
    assert_true(output.merged);
    assert_int_equal(output.status, 3);
    is_text(&output.out, "a\n" P "n:c:0\nb\n");
    assert_int_equal(read_text(P "m\nwhy\n\n" P "n:f:125\n", 100), 0);
    assert_true(output.refused);
}

/* A frame that is cut at any byte must not be a shorter success. */
static void a_frame_that_is_cut_anywhere_is_an_error(void **state)
{
    static const char whole[] = "\n" P "r:c:0:5:4\nYWJjZGU=\n\n" P "e\nMTIzNA==\n\n" P "x";
    char cut[sizeof(whole)];

    (void)state;
    assert_int_equal(read_text(whole, 100), 0);
    for (size_t at = 0; at < sizeof(whole) - 1; at++) {
        snprintf(cut, sizeof(cut), "%.*s", (int)at, whole);
        assert_int_equal(read_text(cut, 100), -PINFOLD_EBACKEND);
    }
}

/* What the shell makes of a wrapper. The caller owns the text. */
static char *run_shell(const char *text, int *ret_status)
{
    char *said = calloc(1, 10000), dir[200], path[220], command[240];
    FILE *pipe;
    int fd;

    assert_non_null(test_tempdir("pinfold-frame", dir, sizeof(dir)));
    snprintf(path, sizeof(path), "%s/script", dir);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && said);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    snprintf(command, sizeof(command), "/bin/sh %s", path);
    pipe = popen(command, "re");
    assert_non_null(pipe);
    said[fread(said, 1, 9999, pipe)] = '\0';
    *ret_status = WEXITSTATUS(pclose(pipe));
    unlink(path);
    rmdir(dir);
    return said;
}

static int run_wrapper(const char *run, bool checks, int *ret_status)
{
    struct pf_ac_wrapper wrapper = { .limit = 1000, .checks = checks, .forget = "true" };
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(10000);
    _cleanup_free_ char *said = NULL, *copy = strdup(run);

    snprintf(wrapper.mark, sizeof(wrapper.mark), "%08x00000000", (unsigned)getpid());
    wrapper.run = copy;
    assert_int_equal(pf_ac_wrapper(&text, &wrapper), 0);
    said = run_shell(text.data, ret_status);
    pf_ac_output_done(&output);
    output = (struct pf_ac_output){ .out = PF_BUF_INIT(0), .errs = PF_BUF_INIT(0) };
    return pf_ac_frame_read(said, wrapper.mark, wrapper.limit, &output);
}

static void the_wrapper_prints_what_is_read(void **state)
{
    int status;

    (void)state;
    assert_int_equal(run_wrapper("/bin/sh -c 'printf a; printf bc >&2; exit 5' sh", false, &status),
                     0);
    assert_int_equal(status, 5);
    assert_int_equal(output.status, 5);
    is_text(&output.out, "a");
    is_text(&output.errs, "bc");
    /* The status of a refusal is no command's. */
    assert_int_equal(run_wrapper("/bin/sh -c 'echo why >&2; exit 1' sh", true, &status), 0);
    assert_true(output.refused);
    assert_int_equal(status, 125);
    is_text(&output.errs, "why\n");
    assert_int_equal(
            run_wrapper("/bin/sh -c '[ \"$1\" = check ] && exit 0; echo why >&2; exit 1' sh", true,
                        &status),
            0);
    assert_false(output.refused);
    assert_int_equal(output.status, 1);
    is_text(&output.errs, "why\n");
}

#define TEST(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(streams_are_apart_whatever_line_ends_the_terminal_makes),
        TEST(what_is_not_what_one_wrapper_prints_is_an_error),
        TEST(merged_output_may_speak_of_marks_and_its_end_stays_its_end),
        TEST(a_frame_that_is_cut_anywhere_is_an_error),
        TEST(the_wrapper_prints_what_is_read),
    };

    return cmocka_run_group_tests_name("agentcore_frame", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What terminals check for every kind of them, and hand on to one that somebody else has made. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <pinfold/pinfold.h>

/* What it was asked last. */
static char asked[64];

static ssize_t take_read(void *state, void *buffer, size_t size, double timeout_seconds,
                         struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    (void)state;
    (void)buffer;
    (void)cancel;
    (void)err;
    snprintf(asked, sizeof(asked), "read %zu %.1f", size, timeout_seconds);
    return 1;
}

static ssize_t take_write(void *state, const void *data, size_t len, double timeout_seconds,
                          struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    (void)state;
    (void)cancel;
    (void)err;
    snprintf(asked, sizeof(asked), "write %.*s %.1f", (int)len, (const char *)data,
             timeout_seconds);
    return (ssize_t)len;
}

static int take_resize(void *state, uint16_t rows, uint16_t cols, struct pinfold_error *err)
{
    (void)state;
    (void)err;
    snprintf(asked, sizeof(asked), "resize %d %d", rows, cols);
    return 0;
}

static int take_signal(void *state, int signal, struct pinfold_error *err)
{
    (void)state;
    (void)err;
    snprintf(asked, sizeof(asked), "signal %d", signal);
    return -PINFOLD_EVALUE;
}

static void take_kill(void *state)
{
    (void)state;
    strcpy(asked, "kill");
}

static int take_wait(void *state, double timeout_seconds, struct pinfold_terminal_exit *ret_exit,
                     struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    (void)state;
    (void)cancel;
    (void)err;
    snprintf(asked, sizeof(asked), "wait %.1f", timeout_seconds);
    ret_exit->exit_code = 3;
    return 0;
}

static int take_fd(void *state)
{
    return *(int *)state;
}

static void take_close(void *state)
{
    (void)state;
    strcpy(asked, "close");
}

static const struct pinfold_terminal_ops ops = { .size = sizeof(ops),
                                                 .read = take_read,
                                                 .write = take_write,
                                                 .resize = take_resize,
                                                 .signal = take_signal,
                                                 .kill = take_kill,
                                                 .wait = take_wait,
                                                 .fd = take_fd,
                                                 .close = take_close };
static int number = 77;
static struct pinfold_terminal *terminal;
static struct pinfold_error err;

static int setup(void **state)
{
    (void)state;
    asked[0] = '\0';
    return pinfold_terminal_new(&ops, &number, &terminal, &err);
}

static int teardown(void **state)
{
    (void)state;
    pinfold_terminal_close(terminal);
    return strcmp(asked, "close") == 0 ? 0 : -1;
}

static void every_request_is_handed_on(void **state)
{
    struct pinfold_terminal_exit end = { 0 };
    char byte;

    (void)state;
    assert_int_equal(pinfold_terminal_read(terminal, &byte, 1, 0.5, NULL, &err), 1);
    assert_string_equal(asked, "read 1 0.5");
    assert_int_equal(pinfold_terminal_write(terminal, "ls", 2, -1, NULL, &err), 2);
    assert_string_equal(asked, "write ls -1.0");
    assert_int_equal(pinfold_terminal_resize(terminal, 24, 80, &err), 0);
    assert_string_equal(asked, "resize 24 80");
    assert_int_equal(pinfold_terminal_signal(terminal, SIGINT, &err), -PINFOLD_EVALUE);
    assert_string_equal(asked, "signal 2");
    pinfold_terminal_kill(terminal);
    assert_string_equal(asked, "kill");
    assert_int_equal(pinfold_terminal_wait(terminal, 2, &end, NULL, &err), 0);
    assert_string_equal(asked, "wait 2.0");
    assert_int_equal(end.exit_code, 3);
    assert_int_equal(pinfold_terminal_fd(terminal), 77);
}

static void what_makes_no_sense_is_not_handed_on(void **state)
{
    struct pinfold_terminal_exit end = { .exit_code = 9 };
    char byte;

    (void)state;
    assert_int_equal(pinfold_terminal_read(terminal, &byte, 1, NAN, NULL, &err), -PINFOLD_EVALUE);
    assert_non_null(strstr(err.msg, "not a number"));
    assert_int_equal(pinfold_terminal_read(terminal, &byte, 0, 1, NULL, &err), -PINFOLD_EVALUE);
    assert_non_null(strstr(err.msg, "0 bytes"));
    assert_int_equal(pinfold_terminal_write(terminal, "x", 1, NAN, NULL, &err), -PINFOLD_EVALUE);
    assert_int_equal(pinfold_terminal_wait(terminal, NAN, &end, NULL, &err), -PINFOLD_EVALUE);
    assert_int_equal(end.exit_code, 9);
    assert_string_equal(asked, "");
}

static void a_table_that_is_not_whole_is_refused(void **state)
{
    struct pinfold_terminal_ops wrong = ops;
    struct pinfold_terminal *none = NULL;

    (void)state;
    wrong.size--;
    assert_int_equal(pinfold_terminal_new(&wrong, NULL, &none, &err), -PINFOLD_EVALUE);
    assert_non_null(strstr(err.msg, "bytes, not "));
    wrong = ops;
    wrong.close = NULL;
    assert_int_equal(pinfold_terminal_new(&wrong, NULL, &none, &err), -PINFOLD_EVALUE);
    assert_non_null(strstr(err.msg, "missing"));
    assert_null(none);
    pinfold_terminal_kill(NULL);
    pinfold_terminal_close(NULL);
    assert_string_equal(asked, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_request_is_handed_on, setup, teardown),
        cmocka_unit_test_setup_teardown(what_makes_no_sense_is_not_handed_on, setup, teardown),
        cmocka_unit_test_setup_teardown(a_table_that_is_not_whole_is_refused, setup, teardown),
    };

    return cmocka_run_group_tests_name("terminal", tests, NULL, NULL);
}

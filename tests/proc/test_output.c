/* SPDX-License-Identifier: Apache-2.0 */
/* Budgets, decoding, callbacks. */
#include "harness.h"

#include "base/utf8.h"

#include <sys/resource.h>

static void the_head_is_kept_and_a_note_says_so(void **state)
{
    struct fixture *f = *state;

    f->request.output_limit = 10;
    assert_run(f, "printf 0123456789abcdef", 0);
    assert_true(f->result.truncated);
    assert_string_equal(f->result.output, "0123456789\n[output truncated: kept 10 of 16 bytes]\n");
    assert_int_equal(f->result.stdout_len, 10);
    assert_run(f, "printf 0123456789", 0);
    assert_false(f->result.truncated);
    assert_string_equal(f->result.output, "0123456789");
}

static void a_cut_never_splits_a_character(void **state)
{
    struct fixture *f = *state;

    f->request.output_limit = 10;
    assert_run(f, "printf '€€€€€'", 0); /* 15 bytes */
    assert_int_equal(f->result.stdout_len, 9);
    assert_int_equal(strncmp(f->result.output, "€€€\n[", 11), 0);
}

static void stderr_is_kept_under_a_chatty_stdout(void **state)
{
    struct fixture *f = *state;

    f->request.output_limit = 1000;
    assert_run(f, "head -c 5000 /dev/zero | tr '\\0' x; head -c 300 /dev/zero | tr '\\0' e >&2", 0);
    assert_int_equal(f->result.stderr_len, 250);
    assert_int_equal(f->result.stdout_len, 750);
    assert_int_equal(f->result.stdout_bytes, 5000);
    assert_int_equal(f->result.stderr_bytes, 300);
    assert_run(f, "head -c 5000 /dev/zero | tr '\\0' x; printf eeee >&2", 0);
    assert_int_equal(f->result.stderr_len, 4);
    assert_int_equal(f->result.stdout_len, 996);
    assert_run(f, "printf xx; head -c 5000 /dev/zero | tr '\\0' e >&2", 0);
    assert_int_equal(f->result.stderr_len, 998);
}

static void a_limit_of_nothing_keeps_nothing(void **state)
{
    struct fixture *f = *state;

    f->request.output_limit = 0;
    assert_run(f, "echo x", 0);
    assert_string_equal(f->result.output, "[output truncated: kept 0 of 2 bytes]\n");
    f->request.keep_tail = true;
    assert_run(f, "echo x", 0);
    assert_string_equal(f->result.output, "[output truncated: kept 0 of 2 bytes]\n");
}

static void head_and_tail_are_kept_on_request(void **state)
{
    struct fixture *f = *state;

    f->request.output_limit = 20;
    f->request.keep_tail = true;
    assert_run(f, "seq 1 1000", 0);
    assert_string_equal(f->result.output,
                        "1\n2\n3\n4\n5\n[... 3873 bytes omitted ...]\n\n999\n1000\n"
                        "[output truncated: kept 20 of 3893 bytes]\n");
    assert_run(f, "seq 1 9", 0);
    assert_false(f->result.truncated);
    assert_string_equal(f->result.output, "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
}

static void head_and_tail_do_not_split_characters(void **state)
{
    struct fixture *f = *state;

    f->request.keep_tail = true;
    for (size_t limit = 1; limit < 16; limit++) {
        f->request.output_limit = limit;
        assert_run(f, "printf '😀😀😀😀😀'; printf 'a😀' >&2", 0);
        assert_true(pf_utf8_valid(f->result.output, f->result.output_len, NULL));
        assert_null(strstr(f->result.output, "\xef\xbf\xbd"));
    }
}

static void undecodable_bytes_become_replacement_characters(void **state)
{
    struct fixture *f = *state;

    assert_run(f, "printf 'a\\377b\\342\\202'", 0);
    assert_string_equal(f->result.output, "a\xef\xbf\xbd"
                                          "b\xef\xbf\xbd");
    assert_int_equal(f->result.stdout_bytes, 5);
}

static void characters_split_across_reads_are_whole(void **state)
{
    struct fixture *f = *state;

    assert_run(f, "printf '\\342'; sleep 0.05; printf '\\202'; sleep 0.05; printf '\\254'", 0);
    assert_string_equal(f->result.output, "€");
}

static void nul_bytes_are_kept(void **state)
{
    struct fixture *f = *state;

    assert_run(f, "printf 'a\\0b'", 0);
    assert_int_equal(f->result.output_len, 3);
    assert_memory_equal(f->result.output, "a\0b", 4);
}

static void discarded_output_is_counted_only(void **state)
{
    struct fixture *f = *state;

    f->request.discard = true;
    assert_run(f, "echo 12345; echo e >&2", 0);
    assert_string_equal(f->result.output, "");
    assert_int_equal(f->result.stdout_bytes, 6);
    assert_int_equal(f->result.stderr_bytes, 2);
    assert_false(f->result.truncated);
}

static int take_one(void *ctx, enum pinfold_stream stream, const char *data, size_t len)
{
    unsigned *calls = ctx;

    (void)stream;
    (void)data;
    (void)len;
    ++*calls;
    return PINFOLD_OUTPUT_ENOUGH;
}

static void a_receiver_that_has_enough_hears_no_more_and_the_command_goes_on(void **state)
{
    struct fixture *f = *state;
    unsigned calls = 0;

    f->request.discard = true;
    f->request.on_output = take_one;
    f->request.on_output_ctx = &calls;
    assert_run(f, "head -c 10M /dev/zero; echo end >&2; exit 5", 5);
    assert_int_equal(calls, 2); /* one for each stream */
    assert_int_equal(f->result.stdout_bytes, 10 << 20);
    assert_int_equal(f->result.stderr_bytes, 4);
}

static void secret_output_may_be_thrown_away_too(void **state)
{
    struct fixture *f = *state;
    unsigned calls = 0;

    f->request.discard = true;
    f->request.secret = true;
    f->request.on_output = take_one;
    f->request.on_output_ctx = &calls;
    assert_run(f, "head -c 10M /dev/zero", 0);
    assert_int_equal(f->result.stdout_bytes, 10 << 20);
}

static void a_flood_is_drained_in_constant_memory(void **state)
{
    struct fixture *f = *state;
    struct rusage before, after;

    getrusage(RUSAGE_SELF, &before);
    assert_run(f, "head -c 300M /dev/zero; echo end >&2; exit 5", 5);
    getrusage(RUSAGE_SELF, &after);
    assert_int_equal(f->result.stdout_bytes, 300 << 20);
    assert_true(f->result.truncated);
    assert_string_equal(f->result.stderr_text, "end\n");
    assert_non_null(strstr(f->result.output + f->result.stdout_len, "of 314572804 bytes]"));
    assert_true(after.ru_maxrss - before.ru_maxrss < 16 * 1024);
}

struct received {
    size_t bytes[3], largest;
    int calls, stop_after;
    char head[16];
};

static int receive(void *ctx, enum pinfold_stream stream, const char *data, size_t len)
{
    struct received *received = ctx;

    if (received->bytes[stream] == 0 && len < sizeof(received->head) && stream == PINFOLD_STDOUT)
        memcpy(received->head, data, len);
    received->bytes[stream] += len;
    if (len > received->largest)
        received->largest = len;
    return ++received->calls == received->stop_after;
}

static void the_callback_gets_everything_raw(void **state)
{
    struct fixture *f = *state;
    struct received received = { 0 };

    f->request.on_output = receive;
    f->request.on_output_ctx = &received;
    f->request.output_limit = 10;
    assert_run(f, "printf 'a\\377'; sleep 0.1; head -c 3M /dev/zero; echo e >&2", 0);
    assert_int_equal(received.bytes[PINFOLD_STDOUT], (3 << 20) + 2);
    assert_int_equal(received.bytes[PINFOLD_STDERR], 2);
    assert_memory_equal(received.head, "a\xff", 3);
    assert_true(received.largest <= 256 * 1024);
}

static void a_callback_can_stop_the_command(void **state)
{
    struct fixture *f = *state;
    struct received received = { .stop_after = 1 };
    pid_t pid;

    f->request.on_output = receive;
    f->request.on_output_ctx = &received;
    assert_int_equal(run(f, "echo $$ >pid; echo first; sleep 50; echo second"),
                     -PINFOLD_ECANCELLED);
    assert_int_equal(received.calls, 1);
    assert_int_equal(f->err.code, PINFOLD_ECANCELLED);
    assert_non_null(strstr(f->result.output, "first\n"));
    pid = read_pid(f, "pid");
    assert_true(is_gone(pid));
}

static int block(void *ctx, enum pinfold_stream stream, const char *data, size_t len)
{
    (void)ctx, (void)stream, (void)data, (void)len;
    usleep(600000);
    return 0;
}

static void a_blocked_callback_does_not_stop_the_clock(void **state)
{
    struct fixture *f = *state;
    struct stat late;

    f->request.timeout_ns = 200 * PF_NS_PER_MS;
    f->request.on_output = block;
    assert_run(f, "echo x; sleep 0.4; touch late; sleep 50", 124);
    assert_true(f->result.timed_out);
    assert_int_equal(fstatat(f->dir_fd, "late", &late, 0), -1);
}

static void a_spool_keeps_the_whole_and_the_result_head_and_tail(void **state)
{
    struct fixture *f = *state;
    struct pinfold_error err;
    char page[16];

    f->request.output_limit = 20;
    f->request.spool_limit = 1 << 20;
    assert_run(f, "seq 1 1000; echo oops >&2", 0);
    assert_non_null(f->result.spool);
    assert_non_null(strstr(f->result.output, "bytes omitted"));
    assert_int_equal(pinfold_spool_size(f->result.spool, PINFOLD_STDOUT), 3893);
    assert_int_equal(pinfold_spool_size(f->result.spool, PINFOLD_STDERR), 5);
    assert_int_equal(pinfold_spool_read(f->result.spool, PINFOLD_STDOUT, 3888, page, 16, &err), 5);
    assert_memory_equal(page, "1000\n", 5);
    assert_int_equal(pinfold_spool_read(f->result.spool, PINFOLD_STDERR, 0, page, 16, &err), 5);
    assert_memory_equal(page, "oops\n", 5);
}

static void a_spool_keeps_stderr_under_a_chatty_stdout(void **state)
{
    struct fixture *f = *state;
    struct pinfold_error err;
    char page[16];

    f->request.output_limit = 1000;
    f->request.spool_limit = 1000000;
    assert_run(f, "head -c 2000000 /dev/zero | tr '\\0' a; seq 1 5000 >&2", 0);
    assert_non_null(f->result.spool);
    assert_int_equal(pinfold_spool_size(f->result.spool, PINFOLD_STDERR), 23893);
    assert_int_equal(pinfold_spool_size(f->result.spool, PINFOLD_STDOUT), 1000000 - 23893);
    assert_int_equal(pinfold_spool_read(f->result.spool, PINFOLD_STDERR, 23888, page, 16, &err), 5);
    assert_memory_equal(page, "5000\n", 5);
}

static void a_spool_that_cannot_be_made_is_a_note(void **state)
{
    struct fixture *f = *state;

    setenv("TMPDIR", "/no/such/place", 1);
    f->request.envp = (const char *const *)environ; /* setenv() may have moved it */
    f->request.spool_limit = 100;
    int r = run(f, "echo x");
    unsetenv("TMPDIR");
    assert_int_equal(r, 0);
    assert_null(f->result.spool);
    assert_non_null(strstr(f->result.output, "x\n[output not spooled: create a spool file in "
                                             "/no/such/place: No such file or directory]\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_BOTH_MODES(the_head_is_kept_and_a_note_says_so),
        IN_BOTH_MODES(a_cut_never_splits_a_character),
        IN_BOTH_MODES(stderr_is_kept_under_a_chatty_stdout),
        IN_BOTH_MODES(a_limit_of_nothing_keeps_nothing),
        IN_BOTH_MODES(head_and_tail_are_kept_on_request),
        IN_BOTH_MODES(head_and_tail_do_not_split_characters),
        IN_BOTH_MODES(undecodable_bytes_become_replacement_characters),
        IN_BOTH_MODES(characters_split_across_reads_are_whole),
        IN_BOTH_MODES(nul_bytes_are_kept),
        IN_BOTH_MODES(discarded_output_is_counted_only),
        IN_BOTH_MODES(secret_output_may_be_thrown_away_too),
        IN_BOTH_MODES(a_receiver_that_has_enough_hears_no_more_and_the_command_goes_on),
        IN_BOTH_MODES(a_flood_is_drained_in_constant_memory),
        IN_BOTH_MODES(the_callback_gets_everything_raw),
        IN_BOTH_MODES(a_callback_can_stop_the_command),
        IN_BOTH_MODES(a_blocked_callback_does_not_stop_the_clock),
        IN_BOTH_MODES(a_spool_keeps_the_whole_and_the_result_head_and_tail),
        IN_BOTH_MODES(a_spool_keeps_stderr_under_a_chatty_stdout),
        IN_BOTH_MODES(a_spool_that_cannot_be_made_is_a_note),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

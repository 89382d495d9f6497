/* SPDX-License-Identifier: Apache-2.0 */
/* Rows 69 to 80 of the semantics: what a command wrote, and how it ended. */
#include "spec.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>

static void run_limited(struct spec *s, const char *command, size_t limit, bool keep_tail)
{
    struct pinfold_execute_options options = spec_shell(command, 60);

    options.max_output_bytes = limit;
    options.keep_tail = keep_tail;
    spec_run_with(s, &options);
}

static void run_argv(struct spec *s, const char *const *argv)
{
    struct pinfold_execute_options options = spec_shell(NULL, 60);

    options.argv = argv;
    spec_run_with(s, &options);
}
#define RUN_ARGV(s, ...) run_argv(s, (const char *const[]){ __VA_ARGS__, NULL })

static bool output_has(struct spec *s, const char *part)
{
    return memmem(s->run.output, s->run.output_len, part, strlen(part)) != NULL;
}

static bool starts_with(const char *text, size_t len, const char *start)
{
    return len >= strlen(start) && memcmp(text, start, strlen(start)) == 0;
}

static void row_069_a_background_child_does_not_hold_the_call_and_dies_at_stop(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_run(s, "sh -c 'echo $$ > child; exec sleep 300' & while [ ! -s child ]; do sleep 0.05; "
                "done; echo done");
    pid_t child = spec_pid(s, "ws/child");
    assert_int_equal(s->run.exit_code, 0);
    assert_false(s->run.timed_out);
    spec_stdout_is(s, "done\n");
    assert_int_equal(s->run.background, 1);
    assert_true(output_has(s, "1 background process")); /* the note */
    assert_true(spec_alive(s, child));
    spec_run(s, "echo next");
    assert_true(spec_alive(s, child)); /* later commands leave it alone */
    spec_stop(s);
    assert_false(spec_alive(s, child));
}

static void row_069_a_background_child_that_keeps_writing_does_not_hold_the_call(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_run(s, "(while :; do echo noise; sleep 0.02; done) & echo $! > child; exit 5");
    assert_int_equal(s->run.exit_code, 5); /* with the minute of spec_run() not used up */
    assert_false(s->run.timed_out);
    assert_true(s->run.background >= 1);
    assert_true(spec_alive(s, spec_pid(s, "ws/child")));
}

static void row_070_the_limit_counts_bytes_and_cuts_between_characters(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_put(s, "ws/euro.sh",
             "i=0; while [ $i -lt 100 ]; do printf '\\342\\202\\254'; "
             "i=$((i+1)); done\n");
    for (size_t limit = 100; limit <= 102; limit++) {
        run_limited(s, "sh euro.sh", limit, false);
        assert_true(s->run.truncated);
        assert_int_equal(s->run.stdout_bytes, 300);
        assert_true(s->run.stdout_len <= limit && s->run.stdout_len >= limit * 3 / 4 - 3);
        assert_int_equal(s->run.stdout_len % 3, 0);
        for (size_t i = 0; i < s->run.stdout_len; i += 3)
            assert_memory_equal(s->run.output + i, "\xe2\x82\xac", 3);
        assert_true(s->run.output_len > s->run.stdout_len); /* the note is outside the limit */
    }
    run_limited(s, "sh euro.sh", 300, false);
    assert_false(s->run.truncated);
    assert_int_equal(s->run.stdout_len, 300);
}

static void row_070_the_limit_is_of_both_streams_together(void **state)
{
    struct spec *s = *state;
    struct pinfold_local_options local = PINFOLD_LOCAL_OPTIONS_INIT;

    local.max_output_bytes = 1000;
    spec_local(s, &local);
    spec_start_plain(s);
    spec_run(s, "head -c 5000 /dev/zero | tr '\\0' o; head -c 5000 /dev/zero | tr '\\0' e >&2");
    assert_true(s->run.truncated);
    assert_true(s->run.stdout_len + s->run.stderr_len <= 1000);
    assert_true(s->run.stdout_len + s->run.stderr_len >= 990);
}

static void row_071_a_chatty_stdout_does_not_cost_the_error_message(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    run_limited(s, "seq 1 100000; echo 'the reason' >&2; exit 9", 1000, false);
    assert_int_equal(s->run.exit_code, 9);
    assert_true(s->run.truncated);
    assert_true(starts_with(s->run.output, s->run.stdout_len, "1\n2\n3\n")); /* the head */
    assert_true(s->run.stdout_len >= 700);
    spec_stderr_is(s, "the reason\n");
    assert_true(output_has(s, "[stderr] the reason\n"));

    run_limited(s, "seq 1 100000 >&2; echo 'the result'", 1000, false);
    spec_stdout_is(s, "the result\n");
    assert_true(starts_with(s->run.stderr_text, s->run.stderr_len, "1\n2\n3\n"));

    run_limited(s, "seq 1 100000; seq 1 100000 >&2", 1000, false);
    assert_true(s->run.stderr_len >= 240); /* its quarter */
    assert_true(s->run.stdout_len >= 700);
}

static void row_071_head_and_tail_can_be_kept_instead(void **state)
{
    struct spec *s = *state;
    static const char end[] = "99999\n100000\n";

    spec_start_plain(s);
    run_limited(s, "seq 1 100000", 1000, true);
    assert_true(s->run.truncated);
    assert_true(starts_with(s->run.output, s->run.stdout_len, "1\n2\n3\n"));
    /* between the two a mark may stand, so the limit is not looked at here */
    assert_true(output_has(s, end));
    assert_false(output_has(s, "\n50000\n"));
}

static void row_072_what_is_over_the_limit_is_drained(void **state)
{
    enum { BYTES = 50000000, ALLOWED_KIB = 32 << 10 };
    struct spec *s = *state;
    struct rusage before, after;

    spec_start_plain(s);
    run_limited(s, "true", 1000, false);
    getrusage(RUSAGE_SELF, &before);
    run_limited(s, "head -c 50000000 /dev/zero; exit 7", 1000, false);
    getrusage(RUSAGE_SELF, &after);
    assert_int_equal(s->run.exit_code, 7); /* and not 141, of a broken pipe */
    assert_true(s->run.truncated);
    assert_int_equal(s->run.stdout_bytes, BYTES);
    assert_true(s->run.stdout_len <= 1000);
    assert_true(after.ru_maxrss - before.ru_maxrss < ALLOWED_KIB);
}

static void row_073_characters_survive_being_written_in_pieces(void **state)
{
    struct spec *s = *state;
    static const char expected[] = "a\0b\xef\xbf\xbd"
                                   "c\xe2\x82\xac"
                                   "d\xef\xbf\xbd";

    spec_start_plain(s);
    spec_run(s, "printf 'a\\000b\\377c\\342'; sleep 0.1; printf '\\202'; sleep 0.1; "
                "printf '\\254d'; printf '\\360\\237\\230'; printf 'x\\342\\202' >&2");
    assert_int_equal(s->run.stdout_len, sizeof(expected) - 1);
    assert_memory_equal(s->run.output, expected, sizeof(expected) - 1);
    spec_stderr_is(s, "x\xef\xbf\xbd"); /* the end of the stream ends the character */
    assert_int_equal(s->run.exit_code, 0);
}

struct stream {
    char out[64], err[64];
    size_t out_len, err_len;
};

static int collect(void *ctx, enum pinfold_stream which, const char *data, size_t len)
{
    struct stream *stream = ctx;
    char *to = which == PINFOLD_STDOUT ? stream->out : stream->err;
    size_t *used = which == PINFOLD_STDOUT ? &stream->out_len : &stream->err_len;

    if (len > sizeof(stream->out) - *used)
        return -1;
    memcpy(to + *used, data, len);
    *used += len;
    return 0;
}

static void row_073_a_callback_gets_the_raw_bytes(void **state)
{
    struct spec *s = *state;
    struct stream stream = { 0 };
    struct pinfold_execute_options options =
            spec_shell("printf 'a\\377\\000\\342'; printf e >&2", 60);

    options.on_output = collect;
    options.on_output_ctx = &stream;
    spec_start_plain(s);
    spec_run_with(s, &options);
    assert_int_equal(stream.out_len, 4);
    assert_memory_equal(stream.out, "a\xff\0\xe2", 4);
    assert_int_equal(stream.err_len, 1);
    assert_int_equal(s->run.stdout_len, 8); /* while the result is still collected */
}

static unsigned count_of(const char *text, size_t len, const char *part)
{
    unsigned count = 0;

    for (const char *at = text; (at = memmem(at, len - (size_t)(at - text), part, strlen(part)));
         at++)
        count++;
    return count;
}

static void row_074_stderr_follows_stdout_with_a_prefix_and_stands_alone_too(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_run(s, "echo e1 >&2; echo o1; printf 'e2' >&2; echo o2");
    spec_stdout_is(s, "o1\no2\n");
    spec_stderr_is(s, "e1\ne2");
    assert_true(starts_with(s->run.output, s->run.output_len, "o1\no2\n[stderr] e1\n[stderr] e2"));
    spec_run(s, "printf unfinished; echo oops >&2");
    spec_stdout_is(s, "unfinished");
    assert_true(output_has(s, "unfinished\n[stderr] oops\n"));
}

static void row_074_the_formatter_shows_stderr_once(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_run(s, "echo out; echo oops >&2");
    spec_ok(s, pinfold_execute_result_format(&s->run, &s->text, &s->err));
    assert_int_equal(count_of(s->text.data, s->text.len, "oops"), 1);
    assert_int_equal(count_of(s->text.data, s->text.len, "out\n"), 1);
}

static void row_075_death_by_a_signal_is_128_and_its_number(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_run(s, "kill -9 $$");
    assert_int_equal(s->run.exit_code, 137);
    spec_run(s, "kill -TERM $$");
    assert_int_equal(s->run.exit_code, 143);
    RUN_ARGV(s, "/bin/sh", "-c", "kill -SEGV $$");
    assert_int_equal(s->run.exit_code, 139);
    assert_false(s->run.timed_out);
}

static void row_076_a_command_that_fails_is_a_result(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_run(s, "exit 3");
    assert_int_equal(s->run.exit_code, 3);
    assert_false(pinfold_execute_result_success(&s->run));
    spec_run(s, "exit 255");
    assert_int_equal(s->run.exit_code, 255);
    spec_run(s, "no-such-program-here");
    assert_int_equal(s->run.exit_code, 127);
    RUN_ARGV(s, "no-such-program-here", "x");
    assert_int_equal(s->run.exit_code, 127);
    assert_true(output_has(s, "no-such-program-here")); /* says what is missing */
    RUN_ARGV(s, "-i", "sh"); /* programs, and no options or variables of whatever runs them */
    assert_int_equal(s->run.exit_code, 127);
    RUN_ARGV(s, "A=b", "true");
    assert_int_equal(s->run.exit_code, 127);
    spec_run(s, "-c; echo on");
    assert_int_equal(s->run.exit_code, 0);
    assert_true(output_has(s, "on\n"));
    struct pinfold_execute_options closed = spec_shell(NULL, 60);
    spec_dir(s, "closed");
    spec_mode(s, "closed", 0); /* keeps ordinary users out */
    char path[300];
    snprintf(path, sizeof(path), "PATH=%s:/bin", spec_at(s, "closed"));
    closed.argv = (const char *const[]){ "no-such-program-here", NULL };
    closed.env = (const char *const[]){ path, NULL };
    spec_run_with(s, &closed);
    assert_int_equal(s->run.exit_code, 127);
    spec_put(s, "ws/plain", "not a program");
    RUN_ARGV(s, "./plain");
    assert_int_equal(s->run.exit_code, 126);
    spec_run(s, "exit 0");
    assert_true(pinfold_execute_result_success(&s->run));
}

/* As the tool shows results, byte for byte. */
static void format_is(struct spec *s, const char *expected)
{
    pinfold_bytes_done(&s->text);
    spec_ok(s, pinfold_execute_result_format(&s->run, &s->text, &s->err));
    if (s->text.len != strlen(expected) || memcmp(s->text.data, expected, s->text.len) != 0)
        fail_msg("formatted as \"%s\"", s->text.data);
}

static void row_077_the_text_of_a_result_is_frozen(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_run(s, "echo hello");
    format_is(s, "exit code: 0\nhello\n");
    spec_run(s, "exit 7");
    format_is(s, "exit code: 7\n<no output>");
    spec_run(s, "echo out; echo err >&2; exit 1");
    format_is(s, "exit code: 1\nout\n[stderr] err\n");
}

static void row_077_the_note_about_the_cut_comes_last(void **state)
{
    struct spec *s = *state;
    const char *last, *note;

    spec_start_plain(s);
    run_limited(s, "seq 1 1000; echo oops >&2", 100, false);
    spec_ok(s, pinfold_execute_result_format(&s->run, &s->text, &s->err));
    note = strstr(s->text.data, "truncated");
    last = strstr(s->text.data, "oops");
    assert_non_null(note);
    assert_non_null(last);
    assert_true(note > last);
    assert_int_equal(count_of(s->text.data, s->text.len, "truncated"), 1);
}

static void row_079_commands_and_file_operations_run_side_by_side(void **state)
{
    struct spec *s = *state;
    struct spec_call calls[2] = {
        { .s = s,
          .options = spec_shell("touch a; while [ ! -e b ]; do sleep 0.02; done; touch a2; "
                                "while [ ! -e go ]; do sleep 0.02; done",
                                60) },
        { .s = s,
          .options = spec_shell("while [ ! -e a ]; do sleep 0.02; done; touch b; "
                                "while [ ! -e go ]; do sleep 0.02; done",
                                60) },
    };
    pthread_t threads[2];

    spec_start_plain(s);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, spec_call, &calls[i]), 0);
    spec_wait_for(s, "ws/a2"); /* each waited for the other: both run now */
    int r = pinfold_sandbox_write_file(s->sandbox, "go", "", 0, NULL, &s->err);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(calls[i].r, 0);
        assert_int_equal(calls[i].result.exit_code, 0);
        pinfold_execute_result_done(&calls[i].result);
    }
    assert_int_equal(r, 0);
}

struct writer {
    struct spec *s;
    char letter;
    int r;
};

static void *write_often(void *arg)
{
    struct writer *writer = arg;
    char text[5000];

    memset(text, writer->letter, sizeof(text));
    for (int i = 0; i < 100 && writer->r == 0; i++)
        writer->r = pinfold_sandbox_write_file(writer->s->sandbox, "shared", text, sizeof(text),
                                               NULL, NULL);
    return NULL;
}

static void row_079_of_writers_at_once_one_wins_whole(void **state)
{
    struct spec *s = *state;
    struct writer writers[3] = { { s, 'a', 0 }, { s, 'b', 0 }, { s, 'c', 0 } };
    pthread_t threads[3];
    char text[5000];

    spec_start_plain(s);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_often, &writers[i]), 0);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(writers[i].r, 0);
    }
    spec_ok(s, pinfold_sandbox_read_file(s->sandbox, "shared", &s->text, NULL, &s->err));
    assert_true(s->text.len == sizeof(text));
    memset(text, s->text.data[0], sizeof(text));
    spec_is_bytes(s, "ws/shared", text, sizeof(text));
    assert_int_equal(spec_entries(s, "ws"), 1);
}

static void row_080_commands_have_the_limits_that_we_have(void **state)
{
    struct spec *s = *state;
    char own[8192];
    int fd = open("/proc/self/limits", O_RDONLY | O_CLOEXEC);
    ssize_t len = read(fd, own, sizeof(own) - 1);

    close(fd);
    assert_true(len > 0);
    own[len] = '\0';
    spec_start_plain(s);
    RUN_ARGV(s, "/bin/cat", "/proc/self/limits");
    if (spec_is_isolated()) { /* which has limits of its own, and leaves no core files (1 byte: at 0
                                 a core_pattern pipe runs) */
        assert_non_null(strstr(s->run.output, "Max core file size        1  "));
        assert_non_null(strstr(s->run.output, "Max processes             1024  "));
    } else {
        spec_stdout_is(s, own);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SPEC_TEST(row_069_a_background_child_does_not_hold_the_call_and_dies_at_stop),
        SPEC_TEST(row_069_a_background_child_that_keeps_writing_does_not_hold_the_call),
        SPEC_TEST(row_070_the_limit_counts_bytes_and_cuts_between_characters),
        SPEC_TEST(row_070_the_limit_is_of_both_streams_together),
        SPEC_TEST(row_071_a_chatty_stdout_does_not_cost_the_error_message),
        SPEC_TEST(row_071_head_and_tail_can_be_kept_instead),
        SPEC_TEST(row_072_what_is_over_the_limit_is_drained),
        SPEC_TEST(row_073_characters_survive_being_written_in_pieces),
        SPEC_TEST(row_073_a_callback_gets_the_raw_bytes),
        SPEC_TEST(row_074_stderr_follows_stdout_with_a_prefix_and_stands_alone_too),
        SPEC_TEST(row_074_the_formatter_shows_stderr_once),
        SPEC_TEST(row_075_death_by_a_signal_is_128_and_its_number),
        SPEC_TEST(row_076_a_command_that_fails_is_a_result),
        SPEC_TEST(row_077_the_text_of_a_result_is_frozen),
        SPEC_TEST(row_077_the_note_about_the_cut_comes_last),
        SPEC_TEST(row_079_commands_and_file_operations_run_side_by_side),
        SPEC_TEST(row_079_of_writers_at_once_one_wins_whole),
        SPEC_TEST(row_080_commands_have_the_limits_that_we_have),
    };

    return spec_run_tests("rows 69-80", tests);
}

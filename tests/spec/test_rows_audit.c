/* SPDX-License-Identifier: Apache-2.0 */
/* Rows 121 and 122 of the semantics: what the audit says, and what it never says. */
#include "spec.h"

#define PRIVATE "confidential-\xe2\x82\xac"

static void row_121_a_command_is_its_length_and_the_start_of_its_digest(void **state)
{
    struct spec *s = *state;
    const struct spec_event *event;

    spec_start_plain(s);
    spec_dir(s, "ws/sub");
    struct pinfold_execute_options options = { .size = sizeof(options),
                                               .command = "echo \xe2\x82\xac; exit 3",
                                               .cwd = "sub" };
    spec_run_with(s, &options);
    event = spec_event(s, "sandbox.execute");
    assert_non_null(event);
    assert_int_equal(event->command_len, 16); /* bytes of UTF-8 */
    assert_string_equal(event->sha256, "48eaa32b25947e58");
    assert_string_equal(event->cwd, "sub");
    assert_int_equal(event->exit_code, 3);
    assert_true(event->duration_ns > 0);
    assert_int_equal(event->truncated, 0);
    assert_int_equal(event->timed_out, 0);
    assert_string_equal(event->workspace_id, "spec");
    assert_string_equal(event->backend_type, spec_backend_type());
    assert_true(event->owner_id[0] != '\0');
}

static void row_121_truncation_and_timeout_are_told(void **state)
{
    struct spec *s = *state;
    struct pinfold_execute_options options = { .size = sizeof(options),
                                               .command = spec_lacks("timeouts")
                                                                  ? "seq 1 1000"
                                                                  : "seq 1 1000; sleep 300",
                                               .timeout_seconds = 0.5,
                                               .max_output_bytes = 100 };

    spec_start_plain(s);
    spec_run_with(s, &options);
    const struct spec_event *event = spec_event(s, "sandbox.execute");
    assert_non_null(event);
    assert_int_equal(event->truncated, 1);
    assert_int_equal(event->timed_out, !spec_lacks("timeouts"));
    assert_int_equal(event->exit_code, spec_lacks("timeouts") ? 0 : 124);
}

static void everything_once(struct spec *s)
{
    static const char *const gone[] = { "moved", NULL };
    struct pinfold_upload up = { .path = "up", .data = PRIVATE, .len = strlen(PRIVATE) };
    struct pinfold_download down = { .path = "up", .host_path = spec_at(s, "down") };
    struct pinfold_attach_request request = {
        .size = sizeof(request), .agent = s, .agent_id = "reviewer", .mode = PINFOLD_READ_ONLY
    };

    spec_ok(s, pinfold_sandbox_attach(s->sandbox, &request, &s->err));
    spec_ok(s, pinfold_sandbox_add_files(s->sandbox, &up, 1, true, NULL, NULL, &s->err));
    struct pinfold_transfer_results results = { 0 };
    int r = pinfold_sandbox_download_files(s->sandbox, &down, 1, true, &results, NULL, &s->err);
    pinfold_transfer_results_done(&results);
    spec_ok(s, r);
    spec_ok(s,
            pinfold_sandbox_write_file(s->sandbox, "w", PRIVATE, strlen(PRIVATE), NULL, &s->err));
    spec_ok(s, pinfold_sandbox_move_file(s->sandbox, "w", "moved", NULL, &s->err));
    spec_ok(s, pinfold_sandbox_delete_files(s->sandbox, gone, NULL, &s->err));
    spec_run(s, "echo '" PRIVATE "'; echo '" PRIVATE "' >&2; cat up");
    spec_flush(s);
    pinfold_sandbox_detach(s->sandbox, s);
    spec_stop(s);
}

static void row_121_what_a_command_used_is_told_or_left_out(void **state)
{
    static const char *const commands[] = { "true", " " };
    struct spec *s = *state;

    spec_start_plain(s);
    for (size_t i = 0; i < 2; i++) {
        spec_run(s, commands[i]);
        const char *json = spec_event(s, "sandbox.execute")->json;
        bool counted = s->run.peak_bytes > 0;
        assert_int_equal(strstr(json, "\"cpu_ns\":") != NULL, counted);
        assert_int_equal(strstr(json, "\"peak_bytes\":") != NULL, counted);
        assert_true(i == 0 || !counted); /* nothing was run */
    }
}

static void row_121_a_download_counts_what_was_fetched(void **state)
{
    struct spec *s = *state;
    struct pinfold_cancel *cancel = NULL;

    spec_start_plain(s);
    spec_put(s, "ws/a", "a");
    spec_put(s, "ws/b", "b");
    spec_put(s, "down/a", "is there");
    const struct pinfold_download files[] = { { .path = "a", .host_path = spec_at(s, "down/a") },
                                              { .path = "b", .host_path = spec_at(s, "down/b") } };
    spec_ok(s, pinfold_sandbox_download_files(s->sandbox, files, 2, false, NULL, NULL, &s->err));
    assert_int_equal(spec_event(s, "sandbox.download_files")->files, 1);
    spec_ok(s, pinfold_cancel_new(&cancel, &s->err));
    pinfold_cancel_fire(cancel);
    assert_int_equal(
            pinfold_sandbox_download_files(s->sandbox, files, 2, true, NULL, cancel, &s->err),
            -PINFOLD_ECANCELLED);
    assert_int_equal(spec_event(s, "sandbox.download_files")->files, 0);
    pinfold_cancel_free(cancel);
}

static void row_121_every_step_has_its_event_and_none_has_content(void **state)
{
    static const char *const names[] = {
        "sandbox.start",        "attach",
        "sandbox.add_files",    "sandbox.download_files",
        "sandbox.write_file",   "sandbox.move_file",
        "sandbox.delete_files", "sandbox.execute",
        "sandbox.flush",        "detach",
        "sandbox.stop",
    };
    struct spec *s = *state;

    spec_start_plain(s);
    everything_once(s);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (spec_event_count(s, names[i]) != 1)
            fail_msg("%u events %s", spec_event_count(s, names[i]), names[i]);
    for (size_t i = 0; i < s->event_count; i++) {
        assert_non_null(s->events[i].json);
        assert_null(strstr(s->events[i].json, "confidential"));
        assert_string_equal(s->events[i].workspace_id, "spec");
    }
    assert_string_equal(spec_event(s, "attach")->agent_id, "reviewer");
    assert_string_equal(spec_event(s, "attach")->mode, "read_only");
    assert_string_equal(spec_event(s, "detach")->agent_id, "reviewer");
    assert_string_equal(spec_event(s, "sandbox.move_file")->path, "w");
    assert_string_equal(spec_event(s, "sandbox.move_file")->dest, "moved");
    assert_string_equal(spec_event(s, "sandbox.write_file")->path, "w");
}

static void row_121_what_failed_is_told_with_the_name_of_its_exception(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_refuses(s, PINFOLD_EPATH,
                 pinfold_sandbox_write_file(s->sandbox, "../x", "x", 1, NULL, &s->err));
    const struct spec_event *event = spec_event(s, "sandbox.write_file");
    assert_non_null(event);
    assert_string_equal(event->error, "SandboxPathError");
}

static void row_122_the_first_word_gives_a_label(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_put(s, "ws/x", "x");
    spec_run(s, "rm -f x");
    assert_string_equal(spec_event(s, "sandbox.execute")->inferred_op, "shell_delete");
    spec_missing(s, "ws/x");
    spec_run(s, "  /bin/rm -f y");
    assert_string_equal(spec_event(s, "sandbox.execute")->inferred_op, "shell_delete");
    spec_run(s, "rmx-no-such-program");
    assert_string_not_equal(spec_event(s, "sandbox.execute")->inferred_op, "shell_delete");
}

static void row_122_the_label_decides_nothing(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_put(s, "ws/a", "a");
    spec_put(s, "ws/b", "b");
    spec_run(s, "rm a");
    assert_int_equal(s->run.exit_code, 0);
    spec_run(s, "true && rm b"); /* not seen as a deletion, and run all the same */
    assert_int_equal(s->run.exit_code, 0);
    assert_int_equal(spec_entries(s, "ws"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SPEC_TEST(row_121_a_command_is_its_length_and_the_start_of_its_digest),
        SPEC_TEST(row_121_truncation_and_timeout_are_told),
        SPEC_TEST(row_121_every_step_has_its_event_and_none_has_content),
        SPEC_TEST(row_121_a_download_counts_what_was_fetched),
        SPEC_TEST(row_121_what_a_command_used_is_told_or_left_out),
        SPEC_TEST(row_121_what_failed_is_told_with_the_name_of_its_exception),
        SPEC_TEST(row_122_the_first_word_gives_a_label),
        SPEC_TEST(row_122_the_label_decides_nothing),
    };

    return spec_run_tests("rows 121-122", tests);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a backend cannot have, why, and which tests are about that. Such a test is not run on it,
 * and said to be left out, here and by coverage.py, which reads these tables. Nothing else is left
 * out anywhere.
 */
#include "spec.h"

#define SESSION "the workspace is in a session of its own, and in no directory of this machine"
#define ELSEWHERE "commands run on another machine, and get nothing of this process's environment"
#define NO_BACKGROUND "the service kills what a command leaves behind when it ends"
#define NO_OWNER "the service is not told that its client died: a session ends with its lifetime"
#define NO_TERM "the service has no signal that a command could handle before it is killed"
#define NO_DEFAULT "a command without a timeout runs as long as the service lets it"
#define NO_TIMEOUT "the service has none for a call, and the specification says so; its tasks have"
#define IN_GROUP "a task stays in the group that the service kills it by"
#define NO_KILL "the service has no call that ends another; its tasks have"

static const struct {
    const char *backend, *capability, *reason;
} lacking[] = {
    { "agentcore", "host directory", SESSION },
    { "agentcore", "inherited environment", ELSEWHERE },
    { "agentcore", "background", NO_BACKGROUND },
    { "agentcore", "end with its owner", NO_OWNER },
    { "agentcore", "SIGTERM first", NO_TERM },
    { "agentcore", "default timeout", NO_DEFAULT },
    { "agentcore", "timeouts", NO_TIMEOUT },
    { "agentcore", "cancellation that kills", NO_KILL },
    { "agentcore-tasks", "host directory", SESSION },
    { "agentcore-tasks", "inherited environment", ELSEWHERE },
    { "agentcore-tasks", "background", NO_BACKGROUND },
    { "agentcore-tasks", "end with its owner", NO_OWNER },
    { "agentcore-tasks", "SIGTERM first", NO_TERM },
    { "agentcore-tasks", "default timeout", NO_DEFAULT },
    { "agentcore-tasks", "session of its own", IN_GROUP },
    { "daytona", "host directory", SESSION },
    { "daytona", "inherited environment", ELSEWHERE },
    { "daytona", "background", "the session of a command is deleted with all that it started" },
    { "daytona", "end with its owner", NO_OWNER },
    { "daytona", "SIGTERM first", NO_TERM },
};

static const struct {
    const char *capability, *test;
} tests_of[] = {
    { "host directory", "row_015_same_root_is_a_noop" },
    { "host directory", "row_015_a_nested_seed_is_refused_before_any_copy" },
    { "host directory", "row_015_a_nested_destination_is_refused_before_any_copy" },
    { "host directory", "row_015_a_file_that_is_its_own_source_keeps_its_content" },
    { "host directory", "row_089_the_workspace_root_is_never_deleted" },
    { "host directory", "row_090_the_per_agent_path_does_not_share_a_root_either" },
    { "session of its own", "row_057_stdin_is_dev_null_and_there_is_no_terminal" },
    { "default timeout", "row_064_a_timeout_may_be_a_fraction_and_the_backend_has_the_default" },
    { "timeouts", "row_065_a_timeout_kills_everything_daemons_too" },
    { "SIGTERM first", "row_065_term_comes_first_and_leaves_time_to_clean_up" },
    { "timeouts", "row_066_output_does_not_extend_the_time" },
    { "timeouts", "row_067_partial_output_survives_a_timeout" },
    { "timeouts", "row_067_what_was_written_is_counted_after_a_timeout" },
    { "cancellation that kills", "row_068_cancelling_kills_everything_before_the_call_returns" },
    { "background", "row_069_a_background_child_does_not_hold_the_call_and_dies_at_stop" },
    { "background", "row_069_a_background_child_that_keeps_writing_does_not_hold_the_call" },
    { "SIGTERM first", "row_087_stop_ends_running_commands_before_it_flushes" },
    { "end with its owner", "row_105_the_end_of_the_process_ends_its_commands" },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Why this backend does not have it, or NULL: it has. */
static const char *reason_against(const char *capability)
{
    const char *backend = getenv("PINFOLD_SPEC_BACKEND");

    for (size_t i = 0; backend && i < COUNT(lacking); i++)
        if (strcmp(lacking[i].backend, backend) == 0 &&
            strcmp(lacking[i].capability, capability) == 0)
            return lacking[i].reason;
    return NULL;
}

bool spec_lacks(const char *capability)
{
    return reason_against(capability);
}

int spec_rounds(int usual)
{
    return spec_lacks("host directory") ? usual / 10 + 2 : usual;
}

/* Whether a test is run; if it is not, that is said. */
static bool applies(const char *test)
{
    for (size_t i = 0; i < COUNT(tests_of); i++) {
        const char *reason = reason_against(tests_of[i].capability);
        if (!reason || strcmp(tests_of[i].test, test) != 0)
            continue;
        print_message("# %s: not applicable to %s, which has no %s: %s\n", test,
                      getenv("PINFOLD_SPEC_BACKEND"), tests_of[i].capability, reason);
        return false;
    }
    return true;
}

int spec_run_group(const char *name, const struct CMUnitTest *tests, size_t count)
{
    struct CMUnitTest *chosen = calloc(count + 1, sizeof(*chosen));
    size_t some = 0;
    int failed = -1;

    if (!chosen)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (applies(tests[i].name))
            chosen[some++] = tests[i];
    if (some > 0)
        failed = _cmocka_run_group_tests(name, chosen, some, NULL, NULL);
    free(chosen);
    return failed;
}

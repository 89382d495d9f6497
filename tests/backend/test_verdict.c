/* SPDX-License-Identifier: Apache-2.0 */
/* Which limit a result is put down to. */
#include <signal.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend/verdict.h"

/* Every limit is set, and held as where there are control groups. */
static struct pf_verdict with_groups(void)
{
    return (struct pf_verdict){
        .limits = { .memory_bytes = 100 << 20, .cpu_seconds = 3, .file_bytes = 1000 },
        .holders = { [PINFOLD_LIMIT_MEMORY] = PINFOLD_HOLDER_CGROUP1,
                     [PINFOLD_LIMIT_PROCESSES] = PINFOLD_HOLDER_CGROUP1,
                     [PINFOLD_LIMIT_CPU_TIME] = PINFOLD_HOLDER_RLIMIT,
                     [PINFOLD_LIMIT_FILE_SIZE] = PINFOLD_HOLDER_RLIMIT },
    };
}

static enum pinfold_limit judge(const struct pf_verdict *verdict, struct pf_evidence evidence,
                                struct pinfold_execute_result result)
{
    return pf_verdict_judge(verdict, &evidence, &result);
}

static void what_succeeded_was_not_ended(void **state)
{
    struct pf_verdict verdict = with_groups();

    (void)state;
    assert_int_equal(judge(&verdict, (struct pf_evidence){ .kills = 1, .refused = 1 },
                           (struct pinfold_execute_result){ .peak_bytes = 100 << 20 }),
                     PINFOLD_LIMIT_NONE);
}

static void what_failed_by_itself_was_not_ended(void **state)
{
    struct pf_verdict verdict = with_groups();
    static const int codes[] = { 1, 2, 126, 127, 128 + SIGKILL, 128 + SIGSEGV };

    (void)state;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        assert_int_equal(judge(&verdict, (struct pf_evidence){ 0 },
                               (struct pinfold_execute_result){ .exit_code = codes[i],
                                                                .peak_bytes = 99 << 20,
                                                                .cpu_ns = 2900000000 }),
                         PINFOLD_LIMIT_NONE);
}

static void a_kill_of_memory_explains_every_failure(void **state)
{
    struct pf_verdict verdict = with_groups();

    (void)state;
    assert_int_equal(judge(&verdict, (struct pf_evidence){ .kills = 1 },
                           (struct pinfold_execute_result){ .exit_code = 2 }),
                     PINFOLD_LIMIT_MEMORY);
}

static void a_timeout_and_the_owner_come_first(void **state)
{
    struct pf_verdict verdict = with_groups();

    (void)state;
    assert_int_equal(judge(&verdict,
                           (struct pf_evidence){ .kills = 1, .stopped = PINFOLD_LIMIT_WORKSPACE },
                           (struct pinfold_execute_result){ .exit_code = 124, .timed_out = true }),
                     PINFOLD_LIMIT_TIME);
    assert_int_equal(judge(&verdict,
                           (struct pf_evidence){ .kills = 1, .stopped = PINFOLD_LIMIT_WORKSPACE },
                           (struct pinfold_execute_result){ .exit_code = 137 }),
                     PINFOLD_LIMIT_WORKSPACE);
}

static void signals_of_the_kernel_tell_limits(void **state)
{
    struct pf_verdict verdict = with_groups();
    struct pinfold_execute_result xcpu = { .exit_code = 128 + SIGXCPU };
    struct pinfold_execute_result xfsz = { .exit_code = 128 + SIGXFSZ };
    struct pinfold_execute_result killed = { .exit_code = 128 + SIGKILL, .cpu_ns = 3000000000 };

    (void)state;
    assert_int_equal(judge(&verdict, (struct pf_evidence){ 0 }, xcpu), PINFOLD_LIMIT_CPU_TIME);
    assert_int_equal(judge(&verdict, (struct pf_evidence){ 0 }, killed), PINFOLD_LIMIT_CPU_TIME);
    assert_int_equal(judge(&verdict, (struct pf_evidence){ 0 }, xfsz), PINFOLD_LIMIT_FILE_SIZE);
    verdict.holders[PINFOLD_LIMIT_CPU_TIME] = PINFOLD_HOLDER_NONE;
    verdict.holders[PINFOLD_LIMIT_FILE_SIZE] = PINFOLD_HOLDER_NONE;
    assert_int_equal(judge(&verdict, (struct pf_evidence){ 0 }, xcpu), PINFOLD_LIMIT_NONE);
    assert_int_equal(judge(&verdict, (struct pf_evidence){ 0 }, killed), PINFOLD_LIMIT_NONE);
    assert_int_equal(judge(&verdict, (struct pf_evidence){ 0 }, xfsz), PINFOLD_LIMIT_NONE);
}

static void refused_forks_explain_a_failure(void **state)
{
    struct pf_verdict verdict = with_groups();

    (void)state;
    assert_int_equal(judge(&verdict, (struct pf_evidence){ .refused = 4 },
                           (struct pinfold_execute_result){ .exit_code = 2 }),
                     PINFOLD_LIMIT_PROCESSES);
}

static void without_groups_memory_is_guessed_from_the_peak(void **state)
{
    struct pf_verdict verdict = with_groups();

    (void)state;
    verdict.holders[PINFOLD_LIMIT_MEMORY] = PINFOLD_HOLDER_RLIMIT;
    assert_int_equal(
            judge(&verdict, (struct pf_evidence){ 0 },
                  (struct pinfold_execute_result){ .exit_code = 1, .peak_bytes = 75 << 20 }),
            PINFOLD_LIMIT_MEMORY);
    assert_int_equal(
            judge(&verdict, (struct pf_evidence){ 0 },
                  (struct pinfold_execute_result){ .exit_code = 1, .peak_bytes = 74 << 20 }),
            PINFOLD_LIMIT_NONE);
    assert_int_equal(judge(&verdict, (struct pf_evidence){ 0 },
                           (struct pinfold_execute_result){ .peak_bytes = 99 << 20 }),
                     PINFOLD_LIMIT_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_succeeded_was_not_ended),
        cmocka_unit_test(what_failed_by_itself_was_not_ended),
        cmocka_unit_test(a_kill_of_memory_explains_every_failure),
        cmocka_unit_test(a_timeout_and_the_owner_come_first),
        cmocka_unit_test(signals_of_the_kernel_tell_limits),
        cmocka_unit_test(refused_forks_explain_a_failure),
        cmocka_unit_test(without_groups_memory_is_guessed_from_the_peak),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

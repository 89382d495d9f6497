/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pinfold/result.h>

#include "base/strings.h"

/* Whether size bytes at data are all zero. */
static bool is_zero(const void *data, size_t size)
{
    const unsigned char *bytes = data;

    for (size_t i = 0; i < size; i++)
        if (bytes[i])
            return false;
    return true;
}

static void success_is_exit_code_0_alone(void **state)
{
    struct pinfold_execute_result result = { 0 };

    (void)state;
    assert_true(pinfold_execute_result_success(&result));
    result.exit_code = 124;
    assert_false(pinfold_execute_result_success(&result));
}

/* Leaks are the sanitizers' to find; here each struct must be zero after, and bear a second call.
 */
#define DONE_TWICE(type, value)                        \
    do {                                               \
        pinfold_##type##_done(&(value));               \
        assert_true(is_zero(&(value), sizeof(value))); \
        pinfold_##type##_done(&(value));               \
        assert_true(is_zero(&(value), sizeof(value))); \
    } while (0)

static void done_empties_and_may_be_called_again(void **state)
{
    struct pinfold_bytes bytes = { strdup("abc"), 3 };
    struct pinfold_strings strings = { 0 };
    struct pinfold_execute_result execute = {
        .output = strdup("o"), .output_len = 1, .stderr_text = strdup("e"), .exit_code = 3
    };
    struct pinfold_file_infos infos = { calloc(2, sizeof(*infos.items)), 2 };
    struct pinfold_transfer_results transfers = { calloc(2, sizeof(*transfers.items)), 2 };
    struct pinfold_seed_result seed = { .files_seeded = 1 };
    struct pinfold_sync_result sync = { .bytes_synced = 1 };
    struct pinfold_plan plan = { .items = calloc(1, sizeof(*plan.items)), .count = 1 };
    struct pinfold_sandbox_ref ref = { strdup("w"), strdup("b"), NULL };

    (void)state;
    assert_int_equal(pf_strings_add(&strings, "a"), 0);
    assert_int_equal(pf_strings_add(&seed.skipped_paths, "a"), 0);
    assert_int_equal(pf_strings_add(&seed.errors, "a"), 0);
    assert_int_equal(pf_strings_add(&sync.errors, "a"), 0);
    infos.items[0].path = strdup("a");
    transfers.items[1].path = strdup("a");
    transfers.items[1].content.data = strdup("c");
    plan.items[0].path = strdup("a");
    DONE_TWICE(bytes, bytes);
    DONE_TWICE(strings, strings);
    DONE_TWICE(execute_result, execute);
    DONE_TWICE(file_infos, infos);
    DONE_TWICE(transfer_results, transfers);
    DONE_TWICE(seed_result, seed);
    DONE_TWICE(sync_result, sync);
    DONE_TWICE(plan, plan);
    DONE_TWICE(sandbox_ref, ref);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(success_is_exit_code_0_alone),
        cmocka_unit_test(done_empties_and_may_be_called_again),
    };

    return cmocka_run_group_tests_name("result", tests, NULL, NULL);
}

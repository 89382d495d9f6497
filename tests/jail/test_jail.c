/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

static void a_command_runs_in_a_jail(void **state)
{
    struct fixture *f = *state;

    assert_run(f, "id -u; id -un; pwd; hostname; echo $HOME; exit 7", 7);
    assert_string_equal(f->output, "1000\nagent\n/workspace\npinfold\n/home/agent\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_JAIL(a_command_runs_in_a_jail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

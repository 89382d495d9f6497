/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "base/base64.h"
#include "base/cleanup.h"

static void the_standards_examples_come_out_both_ways(void **state)
{
    static const char *const pairs[][2] = { { "", "" },
                                            { "f", "Zg==" },
                                            { "fo", "Zm8=" },
                                            { "foo", "Zm9v" },
                                            { "foob", "Zm9vYg==" },
                                            { "fooba", "Zm9vYmE=" },
                                            { "foobar", "Zm9vYmFy" },
                                            { "\xff\xfb\xef", "//vv" } };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(pairs); i++) {
        PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(100), data = PF_BUF_INIT(100);
        assert_int_equal(pf_base64_encode(pairs[i][0], strlen(pairs[i][0]), &text), 0);
        assert_string_equal(text.data, pairs[i][1]);
        assert_int_equal(pf_base64_decode(text.data, text.len, &data), 0);
        assert_string_equal(data.data, pairs[i][0]);
    }
}

static void lines_of_a_terminal_are_read(void **state)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf data = PF_BUF_INIT(100);

    (void)state;
    assert_int_equal(pf_base64_decode("Zm9v\r\nYm\r\n Fy\r\n", 15, &data), 0);
    assert_string_equal(data.data, "foobar");
}

static void what_is_broken_is_refused(void **state)
{
    static const char *const broken[] = { "Z",     "Zg",       "Zg=",  "Zg===", "Z===",
                                          "Zm9v=", "Zg==Zg==", "Zm9*", "Zm9-",  "====" };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(broken); i++) {
        PF_CLEANUP(pf_buf_done) struct pf_buf data = PF_BUF_INIT(100);
        if (pf_base64_decode(broken[i], strlen(broken[i]), &data) != -PINFOLD_EVALUE)
            fail_msg("%s was taken", broken[i]);
        assert_int_equal(data.len, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_standards_examples_come_out_both_ways),
        cmocka_unit_test(lines_of_a_terminal_are_read),
        cmocka_unit_test(what_is_broken_is_refused),
    };

    return cmocka_run_group_tests_name("base64", tests, NULL, NULL);
}

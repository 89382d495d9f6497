/* SPDX-License-Identifier: Apache-2.0 */
/* A reply that ends after any of its bytes is an error, or whole: never a short success. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "agent/fake_models.h"

/* One answer, cut one byte later each time. Returns whether it was whole. */
static bool ask_once(struct pinfold_model *model)
{
    static const char whole[] = "T(Hi) C(call_1 t {\"a\": 1}) tool_use";
    struct pinfold_model_reply reply;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    int r = ask(model, &hello, 1, NULL, &reply, &err);

    if (r == 0) {
        assert_string_equal(write_down(&reply), whole);
        pinfold_model_reply_done(&reply);
        return true;
    }
    if (r != -PINFOLD_EOS && r != -PINFOLD_EBACKEND)
        fail_msg("%s", err.msg);
    assert_int_equal(err.retryable, 1);
    assert_true(err.msg[0]);
    return false;
}

/* Returns how many bytes were too few. */
static size_t cut_everywhere(int provider, const char *switches)
{
    char all[100], url[500];
    struct pinfold_model_options options;
    struct pinfold_model *model;
    size_t broken = 0, cuts = 0;

    snprintf(all, sizeof(all), "id=%s,cut=count,%s", new_token(), switches);
    options = options_for(provider, "short", all, url);
    options.attempts = 1;
    model = make_model(provider, &options);
    /* Once it is whole it stays so, for some bytes more. */
    for (size_t wholes = 0; wholes < 20 && cuts < 10000; cuts++) {
        bool is_whole = ask_once(model);
        wholes += is_whole;
        broken += !is_whole;
        assert_true(is_whole || wholes == 0);
    }
    assert_true(broken + 20 == cuts);
    pinfold_model_unref(model);
    return broken;
}

static void whose_end_is_that_of_the_connection(void **state)
{
    (void)state;
    for (int provider = 0; provider < PROVIDERS; provider++)
        assert_true(cut_everywhere(provider, "framing=close,usage=none") > 300);
}

static void whose_end_is_told_by_chunks(void **state)
{
    (void)state;
    for (int provider = 0; provider < PROVIDERS; provider++)
        assert_true(cut_everywhere(provider, "framing=chunked") > 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whose_end_is_that_of_the_connection),
        cmocka_unit_test(whose_end_is_told_by_chunks),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}

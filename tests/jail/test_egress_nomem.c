/* SPDX-License-Identifier: Apache-2.0 */
/* Starting the proxy with each of its allocations failing: an error, and nothing taken or lost. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdbool.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/failing_alloc.h"
#include "jail/egress.h"

static int listen_on_loopback(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 1), 0);
    return fd;
}

static int start_and_stop(int fd)
{
    const char *allow[] = { "example.org", "10.0.0.0/8:5432", NULL };
    const struct pf_egress_tuning tuning = { .dns_servers = "127.0.0.1:53" };
    struct pf_egress_rules *rules = NULL;
    struct pf_egress *egress = NULL;
    struct pinfold_error error = PINFOLD_ERROR_INIT;
    int r = pf_egress_rules_new(allow, &rules, &error);

    if (r == 0)
        r = pf_egress_rules_tune(rules, &tuning, &error);
    if (r == 0)
        r = pf_egress_start(fd, rules, NULL, NULL, &egress, &error);
    if (r < 0) {
        assert_int_equal(error.code, PINFOLD_ENOMEM);
        pf_egress_rules_free(rules);
        return r;
    }
    pf_egress_stop(egress);
    return 0;
}

static void every_failed_allocation_is_an_error_that_takes_nothing(void **state)
{
    unsigned nth = 0;
    bool failed = true;

    (void)state;
    while (failed) {
        int fd = listen_on_loopback();
        int r;

        failing_alloc_set(++nth);
        r = start_and_stop(fd);
        failed = failing_alloc_hit();
        failing_alloc_set(0);
        assert_int_equal(r, failed ? -PINFOLD_ENOMEM : 0);
        /* A socket that was not taken is still open; one that was has been closed. */
        assert_int_equal(close(fd), failed ? 0 : -1);
    }
    assert_in_range(nth, 4, 20);
}

static void nothing_to_stop_is_fine(void **state)
{
    (void)state;
    pf_egress_stop(NULL);
    pf_egress_rules_free(NULL);
}

static void a_descriptor_that_is_none_is_an_error(void **state)
{
    struct pf_egress_rules *rules = NULL;
    struct pf_egress *egress = NULL;
    struct pinfold_error error = PINFOLD_ERROR_INIT;

    (void)state;
    assert_int_equal(pf_egress_rules_new(NULL, &rules, &error), 0);
    assert_int_equal(pf_egress_start(-1, rules, NULL, NULL, &egress, &error), -PINFOLD_EOS);
    assert_null(egress);
    pf_egress_rules_free(rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failed_allocation_is_an_error_that_takes_nothing),
        cmocka_unit_test(nothing_to_stop_is_fine),
        cmocka_unit_test(a_descriptor_that_is_none_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

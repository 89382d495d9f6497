/* SPDX-License-Identifier: Apache-2.0 */
/* However many sandboxes a process has, their proxies leave it half of its descriptors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "jail/egress.h"

enum { FILES = 128, EACH = FILES / 16, PROXIES = 3 };

struct proxy {
    struct pf_egress *egress;
    struct sockaddr_in at;
};

static void start(struct proxy *proxy)
{
    struct pf_egress_rules *rules = NULL;
    socklen_t len = sizeof proxy->at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    proxy->at = (struct sockaddr_in){ .sin_family = AF_INET,
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    assert_int_equal(bind(fd, (struct sockaddr *)&proxy->at, len), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&proxy->at, &len), 0);
    assert_int_equal(pf_egress_rules_new(NULL, &rules, NULL), 0);
    assert_int_equal(pf_egress_start(fd, rules, NULL, NULL, &proxy->egress, NULL), 0);
}

/* Begin a request, and never end it. */
static int occupy(const struct proxy *proxy)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (const struct sockaddr *)&proxy->at, sizeof proxy->at), 0);
    assert_int_equal(send(fd, "C", 1, MSG_NOSIGNAL), 1);
    return fd;
}

/* Whether a request is answered before some time is over. */
static bool is_served(int fd, int ms)
{
    static const char rest[] = "ONNECT example.org:1 HTTP/1.1\r\n\r\n";
    struct timeval wait = { ms / 1000, ms % 1000 * 1000 };
    char answer[512];

    send(fd, rest, sizeof rest - 1, MSG_NOSIGNAL);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    return recv(fd, answer, sizeof answer, 0) > 0;
}

static void proxies_share_what_their_process_can_spare(void **state)
{
    struct rlimit before, few;
    struct proxy proxies[PROXIES];
    int held[2][EACH], third;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = FILES;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int i = 0; i < PROXIES; i++)
        start(&proxies[i]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    for (int p = 0; p < 2; p++) {
        for (int i = 0; i < EACH; i++)
            held[p][i] = occupy(&proxies[p]);
    }
    /* The proxies have accepted them all when each has answered one, and taken another. */
    for (int p = 0; p < 2; p++) {
        assert_true(is_served(held[p][EACH - 1], 20000));
        close(held[p][EACH - 1]);
        held[p][EACH - 1] = occupy(&proxies[p]);
    }
    usleep(300000);
    third = occupy(&proxies[2]);
    assert_false(is_served(third, 500));
    for (int i = 0; i < EACH; i++)
        close(held[0][i]);
    assert_true(is_served(third, 20000));
    close(third);
    for (int i = 0; i < EACH; i++)
        close(held[1][i]);
    for (int i = 0; i < PROXIES; i++)
        pf_egress_stop(proxies[i].egress);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(proxies_share_what_their_process_can_spare),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

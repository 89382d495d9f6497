/* SPDX-License-Identifier: Apache-2.0 */
/* The way out of the isolated backend, as the rooms above use it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <pinfold/pinfold.h>

static const char *const some[] = { "example.org,*.example.net:22", NULL };

struct told {
    int refused, after_close;
    bool closed;
    char host[256];
};

static void note(void *ctx, const struct pinfold_network_event *event)
{
    struct told *told = ctx;

    if (event->outcome == PINFOLD_NETWORK_REFUSED)
        told->refused += (int)event->count;
    told->after_close += told->closed;
    snprintf(told->host, sizeof told->host, "%s", event->host);
}

static struct pinfold_backend *make(const char *rootfs, const char *const *allow, struct told *told)
{
    struct pinfold_isolated_options options = PINFOLD_ISOLATED_OPTIONS_INIT;
    const struct pinfold_backend_ops *ops;
    struct pinfold_backend *backend = NULL;
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    options.net = PINFOLD_NET_ALLOW;
    options.net_allow = allow;
    options.rootfs = rootfs;
    if (pinfold_isolated_backend_new(&options, &backend, &err) < 0)
        fail_msg("%s", err.msg);
    ops = pinfold_backend_get_ops(backend);
    ops->watch_network(pinfold_backend_get_state(backend), note, told);
    if (ops->create(pinfold_backend_get_state(backend), NULL, &err) < 0)
        fail_msg("%s", err.msg);
    return backend;
}

static void finish(struct pinfold_backend *backend, struct told *told)
{
    const struct pinfold_backend_ops *ops = pinfold_backend_get_ops(backend);

    assert_int_equal(ops->close(pinfold_backend_get_state(backend), NULL), 0);
    told->closed = true;
    pinfold_backend_unref(backend);
    assert_int_equal(told->after_close, 0);
}

static char *run(struct pinfold_backend *backend, const char *command)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_execute_result result = { 0 };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    char *output;

    options.command = command;
    if (pinfold_backend_get_ops(backend)->execute(pinfold_backend_get_state(backend), &options,
                                                  &result, NULL, &err) < 0)
        fail_msg("%s", err.msg);
    output = strdup(result.output);
    pinfold_execute_result_done(&result);
    return output;
}

static void a_refusal_is_told_before_the_close_returns(void **state)
{
    struct told told = { 0 };
    struct pinfold_backend *backend = make(NULL, some, &told);
    char *output = run(backend, "/run/pinfold/connect evil.example 443 2>&1");

    (void)state;
    assert_non_null(strstr(output, "--net allow=evil.example would allow it"));
    finish(backend, &told);
    assert_int_equal(told.refused, 1);
    assert_string_equal(told.host, "evil.example");
    free(output);
}

static void with_a_root_of_its_own_git_is_told_of_the_helper(void **state)
{
    struct told told = { 0 };
    struct pinfold_backend *backend = make("/", some, &told);
    char *output = run(backend, "env; ls /run/pinfold");

    (void)state;
    assert_non_null(strstr(output, "GIT_SSH_COMMAND=ssh -o 'ProxyCommand=/run/pinfold/connect %h"
                                   " %p'\n"));
    assert_non_null(strstr(output, "GIT_PROXY_COMMAND=/run/pinfold/connect\n"));
    assert_non_null(strstr(output, "\nconnect\n"));
    finish(backend, &told);
    free(output);
}

static void an_empty_list_opens_nothing(void **state)
{
    static const char *const none[] = { NULL };
    const char *const *const lists[] = { NULL, none };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct told told = { 0 };
        struct pinfold_backend *backend = make(NULL, lists[i], &told);
        char *output =
                run(backend, "for h in example.org 127.0.0.1 1.1.1.1 localhost; do "
                             "env -u no_proxy -u NO_PROXY /run/pinfold/connect $h 443 2>&1; done");

        finish(backend, &told);
        assert_int_equal(told.refused, 4);
        assert_non_null(strstr(output, "--net allow=1.1.1.1 would allow it"));
        free(output);
    }
}

/* An interpreter that forks frees in the child what it has of its parent's. */
static void a_fork_that_frees_the_backend_leaves_the_parents_alone(void **state)
{
    struct told told = { 0 };
    struct pinfold_backend *backend = make(NULL, some, &told);
    int status = 0;
    pid_t pid = fork();
    char *output;

    (void)state;
    if (pid == 0) {
        alarm(20); /* that it does not hang */
        pinfold_backend_unref(backend);
        _exit(told.refused);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    output = run(backend, "/run/pinfold/connect evil.example 443 2>&1");
    assert_non_null(strstr(output, "would allow it"));
    finish(backend, &told);
    assert_int_equal(told.refused, 1);
    free(output);
}

static void names_without_the_network_they_are_of_are_refused(void **state)
{
    static const enum pinfold_net others[] = { PINFOLD_NET_NONE, PINFOLD_NET_HOST };
    static const char *const names[] = { "example.org", NULL }, *const none[] = { NULL };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct pinfold_isolated_options options = PINFOLD_ISOLATED_OPTIONS_INIT;
        struct pinfold_backend *backend = NULL;
        struct pinfold_error err = PINFOLD_ERROR_INIT;

        options.net = others[i];
        options.net_allow = names;
        assert_int_equal(pinfold_isolated_backend_new(&options, &backend, &err), -PINFOLD_EVALUE);
        assert_non_null(strstr(err.msg, "net_allow"));
        options.net_allow = none;
        assert_int_equal(pinfold_isolated_backend_new(&options, &backend, &err), 0);
        pinfold_backend_unref(backend);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refusal_is_told_before_the_close_returns),
        cmocka_unit_test(an_empty_list_opens_nothing),
        cmocka_unit_test(names_without_the_network_they_are_of_are_refused),
        cmocka_unit_test(with_a_root_of_its_own_git_is_told_of_the_helper),
        cmocka_unit_test(a_fork_that_frees_the_backend_leaves_the_parents_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

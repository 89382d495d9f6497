/* SPDX-License-Identifier: Apache-2.0 */
/* Flushes from another machine when what is on the way there fails; this one stands in for it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/remote_tree.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "tempdir.h"

enum { LIST, NAMES, ARCHIVE, STEPS };

static struct fixture {
    char dir[200]; /* root, home, and names */
    char root[300], home[300], names[300];
    struct pinfold_error failure; /* of a step */
    int failing, failures;        /* which, and how often */
    int calls[STEPS];
    const char *flood; /* a record that is the list, again and again */
    struct pinfold_sync_result result;
    struct pinfold_error err;
} f;

/* ---- the other machine ---- */

static int begin(int step, int fd, struct pinfold_error *err)
{
    f.calls[step]++;
    if (step != f.failing || f.failures == 0)
        return 0;
    f.failures--;
    if (step != NAMES) /* what had come by then */
        assert_int_equal(write(fd, "f 3 not whole\0f 4", 17), 17);
    *err = f.failure;
    return -err->code;
}

static int put(void *box, int fd, uint64_t size, char ret_name[static PF_REMOTE_NAME_MAX],
               struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    _cleanup_free_ char *data = malloc(size);
    _cleanup_close_ int to = open(f.names, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int r = begin(NAMES, fd, err);

    (void)box, (void)cancel;
    assert_true(data && to >= 0);
    assert_int_equal(pread(fd, data, size, 0), size);
    assert_int_equal(write(to, data, size), size);
    snprintf(ret_name, PF_REMOTE_NAME_MAX, "%s", f.names);
    return r;
}

static void print(void *box, const char *name, bool keep, char ret[static PF_REMOTE_NAME_MAX])
{
    (void)box;
    assert_true(keep);
    snprintf(ret, PF_REMOTE_NAME_MAX, "cat %s", name);
}

static void forget(void *box, const char *name)
{
    (void)box;
    assert_int_equal(unlink(name), 0);
}

enum { FLOOD = 200000 };

static int fetch(void *box, const char *script, uint64_t limit, int fd,
                 struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    int r = begin(strstr(script, "find . ") ? LIST : ARCHIVE, fd, err), status;
    pid_t child;

    (void)box, (void)limit, (void)cancel;
    if (r < 0)
        return r;
    if (f.flood && strstr(script, "find . ")) {
        for (int i = 0; i < FLOOD; i++)
            assert_true(dprintf(fd, "%s%d%c", f.flood, i, '\0') > 0);
        return 0;
    }
    child = fork();
    if (child == 0) {
        dup2(fd, STDOUT_FILENO);
        execl("/bin/sh", "sh", "-c", script, NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return 0;
}

/* ---- flushes from there ---- */

static int set_up(void **state)
{
    memset(&f, 0, sizeof(f));
    assert_non_null(test_tempdir("pinfold-remote-tree", f.dir, sizeof(f.dir)));
    snprintf(f.root, sizeof(f.root), "%s/root", f.dir);
    snprintf(f.home, sizeof(f.home), "%s/home", f.dir);
    snprintf(f.names, sizeof(f.names), "%s/names", f.dir);
    assert_int_equal(mkdir(f.root, 0700), 0);
    /* So many that their names are put there as a file. */
    for (int i = 0; i < 200; i++) {
        char path[600];
        snprintf(path, sizeof(path), "%s/%0200d", f.root, i);
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_int_equal(write(fd, "text", 4), 4);
    }
    *state = &f;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static int tear_down(void **state)
{
    (void)state;
    return nftw(f.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int sync_all(void)
{
    static const char *const all[] = { "**", NULL }, *const none[] = { NULL };
    const struct pf_remote remote = {
        .root = f.root, .put = put, .print = print, .forget = forget, .fetch = fetch
    };
    const struct pinfold_sync_request request = {
        .size = sizeof(request), .dest = f.home, .include = all, .exclude = none
    };

    f.err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    return pf_remote_sync(&remote, &request, &f.result, NULL, &f.err);
}

static int flush(int failing, const struct pinfold_error *failure, int failures)
{
    int r;

    f.failing = failing;
    f.failure = *failure;
    f.failures = failures;
    memset(f.calls, 0, sizeof(f.calls));
    r = sync_all();
    assert_int_equal(f.result.files_synced, r == 0 ? 200 : 0);
    assert_int_equal(f.result.errors.count, 0);
    pinfold_sync_result_done(&f.result);
    if (r == 0) {
        assert_int_equal(access(f.names, F_OK), -1);
        assert_int_equal(nftw(f.home, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    }
    return r;
}

static void what_may_pass_keeps_no_results_from_home(void **state)
{
    static const struct pinfold_error passing[] = {
        { .code = PINFOLD_EOS, .sys_errno = ECONNRESET },
        { .code = PINFOLD_EBACKEND },
        { .code = PINFOLD_EBACKEND, .http_status = 200 },
        { .code = PINFOLD_EBACKEND, .http_status = 503 },
        { .code = PINFOLD_ETIMEOUT }, /* a connection that broke without a word */
    };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(passing); i++) {
        for (int step = 0; step < STEPS; step++) {
            assert_int_equal(flush(step, &passing[i], 1), 0);
            for (int one = 0; one < STEPS; one++)
                assert_int_equal(f.calls[one], one == step ? 2 : 1);
        }
    }
}

static void what_does_not_pass_is_told_at_once(void **state)
{
    static const struct pinfold_error lasting[] = {
        { .code = PINFOLD_EOS, .sys_errno = EFBIG },
        { .code = PINFOLD_EBACKEND, .http_status = 403 },
        { .code = PINFOLD_ENOMEM },
        { .code = PINFOLD_ECANCELLED },
    };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(lasting); i++) {
        for (int step = 0; step < STEPS; step++) {
            assert_int_equal(flush(step, &lasting[i], 1), -lasting[i].code);
            assert_int_equal(f.err.sys_errno, lasting[i].sys_errno);
            assert_int_equal(f.calls[step], 1);
        }
    }
}

static void there_is_an_end_to_trying(void **state)
{
    static const struct pinfold_error broken = { .code = PINFOLD_EOS, .sys_errno = EPIPE };

    (void)state;
    assert_int_equal(flush(NAMES, &broken, 100), -PINFOLD_EOS);
    assert_int_equal(f.err.sys_errno, EPIPE);
    assert_int_equal(f.calls[NAMES], 4);
}

/* The list may be anybody's: a find of the agent's own, say, that sends millions of names, which
 * cost nothing there. */
static void a_list_without_end_is_no_list_of_errors_without_end(void **state)
{
    static const char *const floods[] = { "x 0 ", "f 99999999999999 ", "f 1 " };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(floods); i++) {
        f.flood = floods[i];
        assert_int_equal(sync_all(), 0);
        assert_int_equal(f.result.errors.count, 10001);
        assert_string_equal(f.result.errors.items[10000], "and 190000 more errors");
        pinfold_sync_result_done(&f.result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_may_pass_keeps_no_results_from_home, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_does_not_pass_is_told_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(there_is_an_end_to_trying, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_list_without_end_is_no_list_of_errors_without_end, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests_name("remote_tree", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files on a file system that has none without a name, and whose rename cannot refuse to replace:
 * a seccomp filter on a fork of the test answers as the kernel does there.
 */
#include "tmp.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tree/temp.h"

#define LOAD(field) \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, field))
#define FAIL_WITH(code) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)(code))

static bool be_on_a_plain_file_system(void)
{
    struct sock_filter code[] = {
        LOAD(nr),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
        LOAD(args[2]),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 5),
        FAIL_WITH(EOPNOTSUPP),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 3),
        LOAD(args[4]),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, RENAME_NOREPLACE, 0, 1),
        FAIL_WITH(EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Returns what the first step that fails has returned. */
static int place(int dir_fd, const char *name, const char *text, bool exclusive)
{
    _cleanup_temp_ struct pf_temp temp = PF_TEMP_INIT;
    int r = pf_temp_open(&temp, dir_fd, 0644);

    if (r < 0)
        return r;
    if (temp.name[0] == '\0') /* the filter does nothing */
        return -EXDEV;
    if (write(temp.fd, text, strlen(text)) != (ssize_t)strlen(text))
        return -EIO;
    return pf_temp_place(&temp, name, exclusive);
}

/* The errno of placing a file there, in a fork. */
static int place_there(int dir_fd, const char *name, const char *text, bool exclusive)
{
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(be_on_a_plain_file_system() ? -place(dir_fd, name, text, exclusive) : EPERM);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void check_nothing_else(const struct tmp *tmp, size_t files)
{
    struct pinfold_file_infos infos;
    struct pinfold_error err;

    assert_int_equal(pf_dir_list(tmp->fd, ".", &infos, NULL, &err), 0);
    assert_int_equal(infos.count, files);
    pinfold_file_infos_done(&infos);
}

static void a_file_gets_its_name_where_none_is_without(void **state)
{
    struct tmp *tmp = *state;

    assert_int_equal(place_there(tmp->fd, "a", "first", false), 0);
    check_file(tmp->fd, "a", "first");
    assert_int_equal(place_there(tmp->fd, "a", "second", false), 0);
    check_file(tmp->fd, "a", "second");
    check_nothing_else(tmp, 1);
}

static void no_file_is_replaced_where_a_rename_always_does(void **state)
{
    struct tmp *tmp = *state;

    assert_int_equal(place_there(tmp->fd, "a", "mine", true), 0);
    check_file(tmp->fd, "a", "mine");
    assert_int_equal(place_there(tmp->fd, "a", "other", true), EEXIST);
    check_file(tmp->fd, "a", "mine");
    check_nothing_else(tmp, 1);
}

static void a_directory_that_is_gone_is_said(void **state)
{
    struct tmp *tmp = *state;
    int fd;

    put_dir(tmp->fd, "d");
    fd = sub(tmp->fd, "d");
    assert_int_equal(unlinkat(tmp->fd, "d", AT_REMOVEDIR), 0);
    assert_int_equal(place_there(fd, "a", "text", false), ENOENT);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_gets_its_name_where_none_is_without, tmp_setup,
                                        tmp_teardown),
        cmocka_unit_test_setup_teardown(no_file_is_replaced_where_a_rename_always_does, tmp_setup,
                                        tmp_teardown),
        cmocka_unit_test_setup_teardown(a_directory_that_is_gone_is_said, tmp_setup, tmp_teardown),
    };

    return cmocka_run_group_tests_name("temp", tests, NULL, NULL);
}

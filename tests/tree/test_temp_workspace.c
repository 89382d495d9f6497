/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary workspaces, and what becomes of those whose owner was killed. Each sweep is one of a
 * process of its own: a process sweeps seldom. */
#include <signal.h>
#include <sys/wait.h>

#include <pinfold/temp_workspace.h>

#include "keeper.h"
#include "tmp.h"

static const char *first_tmpdir;

static int set_up(void **state)
{
    struct tmp *tmp;

    setenv("TMPDIR", first_tmpdir, 1);
    if (tmp_setup(state) < 0)
        return -1;
    tmp = *state;
    return setenv("TMPDIR", tmp->path, 1);
}

static struct pinfold_temp_workspace *make(void)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_temp_workspace *workspace = NULL;

    if (pinfold_temp_workspace_new(&workspace, &err) < 0)
        fail_msg("%s", err.msg);
    return workspace;
}

/* Its last component. */
static const char *name_of(const struct pinfold_temp_workspace *workspace)
{
    return strrchr(pinfold_temp_workspace_path(workspace), '/') + 1;
}

static bool is_there(const struct tmp *tmp, const char *name)
{
    return faccessat(tmp->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A process that makes a workspace, fills it, and is killed, and its keeper before it. */
static void leave_one(const struct tmp *tmp, char *ret_name, size_t size)
{
    int status, told[2];
    pid_t pid;
    ssize_t len;

    assert_int_equal(pipe(told), 0);
    pid = fork();
    if (pid == 0) {
        struct pinfold_temp_workspace *workspace = make();
        const char *name = name_of(workspace);
        int fd = openat(tmp->fd, name, O_RDONLY | O_DIRECTORY);
        put_dir(fd, "closed");
        put(fd, "closed/file", "x");
        put_link(fd, "outside", "../keep");
        (void)!fchmodat(fd, "closed", 0, 0);
        (void)!fchmod(fd, 0);
        (void)!write(told[1], name, strlen(name));
        kill(keeper_of(getpid()), SIGKILL);
        raise(SIGKILL);
    }
    close(told[1]);
    len = read(told[0], ret_name, size - 1);
    assert_in_range(len, 1, size - 1);
    ret_name[len] = '\0';
    close(told[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(is_there(tmp, ret_name));
}

/* A program that comes and goes in peace: this one, executed anew, since a sweep is remembered. */
static void pass_by(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        execl("/proc/self/exe", "pass by", "pass by", NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void it_is_empty_and_private_and_then_gone(void **state)
{
    const struct tmp *tmp = *state;
    struct pinfold_temp_workspace *workspace = make();
    char name[64];
    struct stat st;

    snprintf(name, sizeof(name), "%s", name_of(workspace));
    assert_int_equal(stat(pinfold_temp_workspace_path(workspace), &st), 0);
    assert_int_equal(st.st_mode, S_IFDIR | 0700);
    assert_int_equal(pinfold_temp_workspace_free(workspace, NULL), 0);
    assert_false(is_there(tmp, name));
    assert_int_equal(pinfold_temp_workspace_free(NULL, NULL), 0);
}

static void what_a_killed_owner_left_is_gone_after_the_next(void **state)
{
    const struct tmp *tmp = *state;
    char first[64], second[64];

    put(tmp->fd, "keep", "kept");
    leave_one(tmp, first, sizeof(first));
    leave_one(tmp, second, sizeof(second));
    pass_by();
    assert_false(is_there(tmp, first));
    assert_false(is_there(tmp, second));
    check_file(tmp->fd, "keep", "kept");
}

static void one_that_is_in_use_or_kept_is_left_alone(void **state)
{
    const struct tmp *tmp = *state;
    struct pinfold_temp_workspace *used = make(), *kept = make();
    char name[64];

    snprintf(name, sizeof(name), "%s", name_of(kept));
    assert_int_equal(pinfold_temp_workspace_keep(kept, NULL), 0);
    assert_false(is_there(tmp, name));
    snprintf(name, sizeof(name), "%s", name_of(kept));
    assert_int_equal(pinfold_temp_workspace_keep(kept, NULL), 0);
    assert_string_equal(name, name_of(kept));
    assert_int_equal(pinfold_temp_workspace_free(kept, NULL), 0);
    pass_by();
    assert_true(is_there(tmp, name));
    assert_true(is_there(tmp, name_of(used)));
    assert_int_equal(pinfold_temp_workspace_free(used, NULL), 0);
}

static void one_that_a_forked_child_still_has_is_in_use(void **state)
{
    const struct tmp *tmp = *state;
    int told[2], end[2], status;
    char name[64] = "", byte;
    pid_t owner;

    assert_int_equal(pipe(told), 0);
    assert_int_equal(pipe(end), 0);
    owner = fork();
    if (owner == 0) {
        snprintf(name, sizeof(name), "%s", name_of(make()));
        if (fork() == 0) {
            close(end[1]);
            (void)!write(told[1], name, sizeof(name));
            (void)!read(end[0], &byte, 1);
        }
        _exit(0);
    }
    assert_int_equal(waitpid(owner, &status, 0), owner);
    assert_int_equal(read(told[0], name, sizeof(name)), sizeof(name));
    pass_by();
    assert_true(is_there(tmp, name));
    for (int i = 0; i < 2; i++) {
        close(told[i]);
        close(end[i]);
    }
}

static void names_like_ours_that_are_not_ours_are_left_alone(void **state)
{
    static const char *const names[] = { "pinfold-run-0123456789abcde", "pinfold-run-mine",
                                         "pinfold-run-0123456789abcdeF",
                                         "pinfold-run-0123456789abcdef0",
                                         "xpinfold-run-0123456789abcdef" };
    const struct tmp *tmp = *state;
    size_t i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        put_dir(tmp->fd, names[i]);
    put(tmp->fd, "pinfold-run-0123456789abcdef", "a file");
    put_dir(tmp->fd, "elsewhere");
    put(tmp->fd, "elsewhere/file", "kept");
    put_link(tmp->fd, "pinfold-run-aaaaaaaaaaaaaaaa", "elsewhere");
    put_dir(tmp->fd, "pinfold-run-bbbbbbbbbbbbbbbb");
    put(tmp->fd, "pinfold-run-bbbbbbbbbbbbbbbb/file", "a stranger's");
    if (geteuid() == 0)
        assert_int_equal(fchownat(tmp->fd, "pinfold-run-bbbbbbbbbbbbbbbb", 12345, 12345, 0), 0);
    pass_by();
    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_true(is_there(tmp, names[i]));
    check_file(tmp->fd, "pinfold-run-0123456789abcdef", "a file");
    check_file(tmp->fd, "elsewhere/file", "kept");
    assert_true(is_there(tmp, "pinfold-run-bbbbbbbbbbbbbbbb") == (geteuid() == 0));
}

static void a_forked_child_deletes_nothing(void **state)
{
    const struct tmp *tmp = *state;
    struct pinfold_temp_workspace *workspace = make();
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(pinfold_temp_workspace_free(workspace, NULL) < 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_true(is_there(tmp, name_of(workspace)));
    pass_by();
    assert_true(is_there(tmp, name_of(workspace)));
    assert_int_equal(pinfold_temp_workspace_free(workspace, NULL), 0);
}

static void a_place_that_is_not_there_is_named(void **state)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_temp_workspace *workspace = NULL;
    const struct tmp *tmp = *state;
    char missing[200];

    snprintf(missing, sizeof(missing), "%s/missing", tmp->path);
    setenv("TMPDIR", missing, 1);
    assert_int_equal(pinfold_temp_workspace_new(&workspace, &err), -PINFOLD_EOS);
    assert_null(workspace);
    assert_non_null(strstr(err.msg, "missing"));
    assert_int_equal(err.sys_errno, ENOENT);
}

static void one_that_is_deep_is_deleted(void **state)
{
    const struct tmp *tmp = *state;
    struct pinfold_temp_workspace *workspace = make();
    int fd = openat(tmp->fd, name_of(workspace), O_RDONLY | O_DIRECTORY);
    char name[64];

    snprintf(name, sizeof(name), "%s", name_of(workspace));
    for (int i = 0; i < 5000; i++) {
        int next;
        assert_int_equal(mkdirat(fd, "a directory", 0700), 0);
        next = openat(fd, "a directory", O_RDONLY | O_DIRECTORY);
        close(fd);
        fd = next;
    }
    close(fd);
    assert_int_equal(pinfold_temp_workspace_free(workspace, NULL), 0);
    assert_false(is_there(tmp, name));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tmp_teardown)

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "pass by") == 0)
        return pinfold_temp_workspace_free(make(), NULL) < 0;
    const struct CMUnitTest tests[] = {
        TEST(it_is_empty_and_private_and_then_gone),
        TEST(what_a_killed_owner_left_is_gone_after_the_next),
        TEST(one_that_is_in_use_or_kept_is_left_alone),
        TEST(one_that_a_forked_child_still_has_is_in_use),
        TEST(names_like_ours_that_are_not_ours_are_left_alone),
        TEST(a_forked_child_deletes_nothing),
        TEST(a_place_that_is_not_there_is_named),
        TEST(one_that_is_deep_is_deleted),
    };

    first_tmpdir = getenv("TMPDIR") ? strdup(getenv("TMPDIR")) : "/tmp";
    return cmocka_run_group_tests_name("temp_workspace", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tmp.h"

#include <linux/openat2.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "tree/beneath.h"
#include "tree/temp.h"

static struct pinfold_error err;

static void check_no_temp(int fd)
{
    struct pinfold_file_infos infos;

    assert_int_equal(pf_dir_list(fd, ".", &infos, NULL, &err), 0);
    for (size_t i = 0; i < infos.count; i++)
        assert_null(strstr(infos.items[i].path, PF_TEMP_PREFIX));
    pinfold_file_infos_done(&infos);
}

static int write_text(int fd, const char *path, const char *text, bool exclusive)
{
    return pf_file_write(fd, path, text, strlen(text), exclusive, NULL, &err);
}

static void check_read(int fd, const char *path, const char *data, size_t len)
{
    struct pinfold_bytes bytes;

    if (pf_file_read(fd, path, PF_BUF_UNLIMITED, &bytes, NULL, &err) < 0)
        fail_msg("%s", err.msg);
    assert_int_equal(bytes.len, len);
    assert_memory_equal(bytes.data, data, len);
    assert_int_equal(bytes.data[len], '\0');
    pinfold_bytes_done(&bytes);
}

static void check_fails(int result, int code, int sys_errno, const char *path)
{
    assert_int_equal(result, -code);
    assert_int_equal(err.sys_errno, sys_errno);
    if (!strstr(err.msg, path))
        fail_msg("says: %s", err.msg);
}

static void bytes_come_back_as_they_were(void **state)
{
    static const char bytes[] = "\xef\xbb\xbf"
                                "a\r\nb\0c\xff\n";
    struct tmp *tmp = *state;

    assert_int_equal(pf_file_write(tmp->fd, "a/b/c", bytes, sizeof(bytes) - 1, false, NULL, &err),
                     0);
    check_read(tmp->fd, "a/b/c", bytes, sizeof(bytes) - 1);
    assert_int_equal(write_text(tmp->fd, "empty", "", false), 0);
    check_read(tmp->fd, "empty", "", 0);
    check_no_temp(tmp->fd);
}

static void an_existing_file_keeps_its_mode(void **state)
{
    struct tmp *tmp = *state;
    mode_t mask = umask(027);

    put(tmp->fd, "f", "old");
    assert_int_equal(fchmodat(tmp->fd, "f", 0707, 0), 0);
    assert_int_equal(write_text(tmp->fd, "f", "new", false), 0);
    assert_int_equal(write_text(tmp->fd, "g", "new", false), 0);
    umask(mask);
    check_file(tmp->fd, "f", "new");
    assert_int_equal(mode_of(tmp->fd, "f"), 0707);
    assert_int_equal(mode_of(tmp->fd, "g"), 0640);
}

static void exclusive_never_replaces(void **state)
{
    struct tmp *tmp = *state;

    assert_int_equal(write_text(tmp->fd, "f", "one", true), 0);
    check_fails(write_text(tmp->fd, "f", "two", true), PINFOLD_EOS, EEXIST, "write \"f\"");
    put_link(tmp->fd, "link", "nowhere");
    check_fails(write_text(tmp->fd, "link", "two", true), PINFOLD_EOS, EEXIST, "link");
    check_file(tmp->fd, "f", "one");
    check_file(tmp->fd, "nowhere", NULL);
    check_no_temp(tmp->fd);
}

static void links_are_written_through_inside_the_root_only(void **state)
{
    struct tmp *tmp = *state;
    int root;

    put(tmp->fd, "secret", "secret");
    put_dir(tmp->fd, "root");
    root = sub(tmp->fd, "root");
    put_dir(root, "d");
    put(root, "d/target", "old");
    put_link(root, "in", "d/target");
    put_link(root, "d/two", "../in");
    put_link(root, "new", "d/made");
    put_link(root, "out", "../secret");
    put_link(root, "abs", "/etc/passwd");
    put_link(root, "self", "self");
    assert_int_equal(write_text(root, "in", "one", false), 0);
    check_file(root, "d/target", "one");
    assert_int_equal(write_text(root, "d/two", "two", false), 0);
    check_file(root, "d/target", "two");
    check_read(root, "d/two", "two", 3);
    assert_int_equal(write_text(root, "new", "three", false), 0);
    check_file(root, "d/made", "three");
    check_fails(write_text(root, "out", "x", false), PINFOLD_EPATH, 0, "\"out\"");
    check_fails(write_text(root, "abs", "x", false), PINFOLD_EPATH, 0, "\"abs\"");
    check_fails(write_text(root, "self", "x", false), PINFOLD_EOS, ELOOP, "\"self\"");
    check_file(tmp->fd, "secret", "secret");
    check_no_temp(root);
    close(root);
}

static void what_is_no_file_is_refused_without_waiting(void **state)
{
    struct tmp *tmp = *state;
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct pinfold_bytes bytes;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", tmp->path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    close(fd);
    assert_int_equal(mkfifoat(tmp->fd, "fifo", 0600), 0);
    put_dir(tmp->fd, "d");
    check_fails(pf_file_read(tmp->fd, "fifo", 10, &bytes, NULL, &err), PINFOLD_EOS, EINVAL, "fifo");
    check_fails(pf_file_read(tmp->fd, "socket", 10, &bytes, NULL, &err), PINFOLD_EOS, EINVAL,
                "socket");
    check_fails(pf_file_read(tmp->fd, "d", 10, &bytes, NULL, &err), PINFOLD_EOS, EISDIR, "\"d\"");
    check_fails(pf_file_read(tmp->fd, "no", 10, &bytes, NULL, &err), PINFOLD_EOS, ENOENT, "\"no\"");
    check_fails(pf_file_read(tmp->fd, ".", 10, &bytes, NULL, &err), PINFOLD_EOS, EISDIR, "\".\"");
    check_fails(write_text(tmp->fd, "fifo", "x", false), PINFOLD_EOS, EINVAL, "fifo");
    check_fails(write_text(tmp->fd, "d", "x", false), PINFOLD_EOS, EISDIR, "\"d\"");
    check_fails(write_text(tmp->fd, ".", "x", false), PINFOLD_EOS, EISDIR, "\".\"");
    check_no_temp(tmp->fd);
}

static void reading_stops_at_the_limit(void **state)
{
    struct tmp *tmp = *state;
    struct pinfold_bytes bytes;
    int proc = sub(AT_FDCWD, "/proc/self");

    put(tmp->fd, "f", "12345");
    assert_int_equal(pf_file_read(tmp->fd, "f", 5, &bytes, NULL, &err), 0);
    assert_int_equal(bytes.len, 5);
    pinfold_bytes_done(&bytes);
    check_fails(pf_file_read(tmp->fd, "f", 4, &bytes, NULL, &err), PINFOLD_EOS, EFBIG, "\"f\"");
    /* Files whose size says nothing. */
    assert_int_equal(pf_file_read(proc, "status", PF_BUF_UNLIMITED, &bytes, NULL, &err), 0);
    assert_non_null(strstr(bytes.data, "VmPeak"));
    pinfold_bytes_done(&bytes);
    check_fails(pf_file_read(proc, "status", 10, &bytes, NULL, &err), PINFOLD_EOS, EFBIG, "status");
    close(proc);
}

static void a_large_file_comes_back_whole(void **state)
{
    enum { SIZE = 5 * 1024 * 1024 + 7 };
    struct tmp *tmp = *state;
    char *data = malloc(SIZE);

    assert_non_null(data);
    for (size_t i = 0; i < SIZE; i++)
        data[i] = (char)(i * 31 >> 3);
    assert_int_equal(pf_file_write(tmp->fd, "big", data, SIZE, false, NULL, &err), 0);
    check_read(tmp->fd, "big", data, SIZE);
    free(data);
}

static void a_copy_keeps_bytes_modes_and_holes(void **state)
{
    enum { HOLE = 32 * 1024 * 1024 };
    struct tmp *tmp = *state;
    struct stat st;
    uint64_t bytes = 0;
    int fd;

    put(tmp->fd, "f", "text");
    assert_int_equal(fchmodat(tmp->fd, "f", 04755, 0), 0);
    assert_int_equal(pf_file_copy(tmp->fd, "f", tmp->fd, "x/y/g", false, &bytes, NULL, &err), 0);
    assert_int_equal(bytes, 4);
    check_file(tmp->fd, "x/y/g", "text");
    assert_int_equal(mode_of(tmp->fd, "x/y/g"), 0755);
    check_fails(pf_file_copy(tmp->fd, "f", tmp->fd, "x/y/g", true, NULL, NULL, &err), PINFOLD_EOS,
                EEXIST, "x/y/g");
    assert_int_equal(linkat(tmp->fd, "f", tmp->fd, "same", 0), 0);
    assert_int_equal(pf_file_copy(tmp->fd, "f", tmp->fd, "same", false, &bytes, NULL, &err), 0);
    assert_int_equal(bytes, 0);
    check_file(tmp->fd, "same", "text");

    fd = openat(tmp->fd, "sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(pwrite(fd, "middle", 6, HOLE / 2), 6);
    assert_int_equal(ftruncate(fd, HOLE), 0);
    close(fd);
    assert_int_equal(pf_file_copy(tmp->fd, "sparse", tmp->fd, "copy", false, &bytes, NULL, &err),
                     0);
    assert_int_equal(fstatat(tmp->fd, "copy", &st, 0), 0);
    assert_int_equal(st.st_size, HOLE);
    assert_true(st.st_blocks * 512 < HOLE / 4);
    fd = openat(tmp->fd, "copy", O_RDONLY | O_CLOEXEC);
    char text[6];
    assert_int_equal(pread(fd, text, 6, HOLE / 2), 6);
    assert_memory_equal(text, "middle", 6);
    close(fd);
    check_fails(pf_file_copy(tmp->fd, "x", tmp->fd, "z", false, NULL, NULL, &err), PINFOLD_EOS,
                EISDIR, "\"x\"");
    check_no_temp(tmp->fd);
}

static void removing_takes_files_and_links_themselves(void **state)
{
    struct tmp *tmp = *state;

    put(tmp->fd, "f", "x");
    put_dir(tmp->fd, "d");
    put_link(tmp->fd, "link", "f");
    put_link(tmp->fd, "dirlink", "d");
    assert_int_equal(pf_file_remove(tmp->fd, "link", &err), 0);
    assert_int_equal(pf_file_remove(tmp->fd, "dirlink", &err), 0);
    check_file(tmp->fd, "f", "x");
    check_fails(pf_file_remove(tmp->fd, "d", &err), PINFOLD_EOS, EISDIR, "remove \"d\"");
    check_fails(pf_file_remove(tmp->fd, "no", &err), PINFOLD_EOS, ENOENT, "remove \"no\"");
    check_fails(pf_file_remove(tmp->fd, ".", &err), PINFOLD_EOS, EISDIR, "\".\"");
    assert_int_equal(pf_file_remove(tmp->fd, "f", &err), 0);
    check_file(tmp->fd, "f", NULL);
}

static void moving_follows_the_rules_of_move_file(void **state)
{
    struct tmp *tmp = *state;

    put(tmp->fd, "f", "x");
    put(tmp->fd, "other", "y");
    put_dir(tmp->fd, "d");
    assert_int_equal(fchmodat(tmp->fd, "f", 0750, 0), 0);
    assert_int_equal(pf_file_move(tmp->fd, "f", "f", 0, &err), 0);
    check_file(tmp->fd, "f", "x");
    assert_int_equal(linkat(tmp->fd, "f", tmp->fd, "hard", 0), 0);
    assert_int_equal(pf_file_move(tmp->fd, "f", "hard", 0, &err), 0);
    check_file(tmp->fd, "f", "x");
    assert_int_equal(pf_file_move(tmp->fd, "f", "new/deep/f", 0, &err), 0);
    check_file(tmp->fd, "f", NULL);
    check_file(tmp->fd, "new/deep/f", "x");
    assert_int_equal(mode_of(tmp->fd, "new/deep/f"), 0750);
    assert_int_equal(pf_file_move(tmp->fd, "new/deep/f", "other", 0, &err), 0);
    check_file(tmp->fd, "other", "x");
    check_fails(pf_file_move(tmp->fd, "other", "d", 0, &err), PINFOLD_EOS, EISDIR, "\"d\"");
    check_fails(pf_file_move(tmp->fd, "d", "e", 0, &err), PINFOLD_EOS, EISDIR, "\"d\"");
    check_fails(pf_file_move(tmp->fd, "no", "e", 0, &err), PINFOLD_EOS, ENOENT, "\"no\"");
    check_file(tmp->fd, "other", "x");
}

static void a_file_is_replaced_only_while_it_is_what_was_expected(void **state)
{
    const struct pinfold_bytes one = { (char[]){ "one" }, 3 }, empty = { NULL, 0 };
    struct tmp *tmp = *state;

    put(tmp->fd, "f", "one");
    assert_int_equal(fchmodat(tmp->fd, "f", 0711, 0), 0);
    assert_int_equal(pf_file_replace(tmp->fd, "f", &one, "two", 3, NULL, &err), 0);
    check_file(tmp->fd, "f", "two");
    assert_int_equal(mode_of(tmp->fd, "f"), 0711);
    check_fails(pf_file_replace(tmp->fd, "f", &one, "three", 5, NULL, &err), PINFOLD_EOS, EAGAIN,
                "\"f\"");
    assert_int_equal(err.retryable, 1);
    put(tmp->fd, "f", "one and more");
    check_fails(pf_file_replace(tmp->fd, "f", &one, "three", 5, NULL, &err), PINFOLD_EOS, EAGAIN,
                "\"f\"");
    check_file(tmp->fd, "f", "one and more");
    check_fails(pf_file_replace(tmp->fd, "none", &one, "x", 1, NULL, &err), PINFOLD_EOS, ENOENT,
                "none");
    check_file(tmp->fd, "none", NULL);
    put(tmp->fd, "empty", "");
    assert_int_equal(pf_file_replace(tmp->fd, "empty", &empty, "x", 1, NULL, &err), 0);
    check_file(tmp->fd, "empty", "x");
    check_no_temp(tmp->fd);
}

static void directories_are_removed_and_moved_when_that_is_meant(void **state)
{
    struct tmp *tmp = *state;

    put_dir(tmp->fd, "d");
    put_dir(tmp->fd, "d/locked");
    put(tmp->fd, "d/locked/f", "x");
    put(tmp->fd, "f", "x");
    put_link(tmp->fd, "link", "d");
    assert_int_equal(fchmodat(tmp->fd, "d/locked", 0, 0), 0);
    check_fails(pf_dir_remove(tmp->fd, "d", false, &err), PINFOLD_EOS, ENOTEMPTY, "\"d\"");
    check_fails(pf_dir_remove(tmp->fd, "link", true, &err), PINFOLD_EOS, ENOTDIR, "link");
    check_fails(pf_dir_remove(tmp->fd, "f", true, &err), PINFOLD_EOS, ENOTDIR, "\"f\"");
    check_fails(pf_file_move(tmp->fd, "d", "d/x/y", PF_MOVE_DIRS, &err), PINFOLD_EOS, EINVAL,
                "d/x/y");
    assert_int_equal(faccessat(tmp->fd, "d/x", F_OK, 0), -1);
    assert_int_equal(pf_file_move(tmp->fd, "d", "e", PF_MOVE_DIRS, &err), 0);
    check_fails(pf_file_move(tmp->fd, "f", "link", PF_MOVE_NO_REPLACE, &err), PINFOLD_EOS, EEXIST,
                "link");
    assert_int_equal(pf_dir_remove(tmp->fd, "e", true, &err), 0);
    check_fails(pf_dir_remove(tmp->fd, "e", true, &err), PINFOLD_EOS, ENOENT, "\"e\"");
    put_dir(tmp->fd, "empty");
    assert_int_equal(pf_dir_remove(tmp->fd, "empty", false, &err), 0);
    check_file(tmp->fd, "f", "x");
}

static void a_listing_is_sorted_and_says_what_is_what(void **state)
{
    struct tmp *tmp = *state;
    struct pinfold_file_infos infos;
    static const struct {
        const char *path;
        bool is_dir;
        int64_t size;
    } expected[] = {
        { "d/.hidden", false, 1 }, { "d/abs", false, -1 }, { "d/broken", false, -1 },
        { "d/fifo", false, -1 },   { "d/sub", true, -1 },  { "d/to_dir", true, -1 },
        { "d/to_file", false, 1 }, { "d/\xff", false, 0 },
    };

    put_dir(tmp->fd, "d");
    put_dir(tmp->fd, "d/sub");
    put(tmp->fd, "d/.hidden", "h");
    put(tmp->fd, "d/\xff", "");
    put_link(tmp->fd, "d/to_dir", "sub");
    put_link(tmp->fd, "d/to_file", ".hidden");
    put_link(tmp->fd, "d/broken", "no");
    put_link(tmp->fd, "d/abs", "/");
    assert_int_equal(mkfifoat(tmp->fd, "d/fifo", 0600), 0);
    assert_int_equal(pf_dir_list(tmp->fd, "d", &infos, NULL, &err), 0);
    assert_int_equal(infos.count, sizeof(expected) / sizeof(expected[0]));
    for (size_t i = 0; i < infos.count; i++) {
        assert_string_equal(infos.items[i].path, expected[i].path);
        assert_int_equal(infos.items[i].is_dir, expected[i].is_dir);
        assert_int_equal(infos.items[i].size, expected[i].size);
    }
    pinfold_file_infos_done(&infos);
    assert_int_equal(pf_dir_list(tmp->fd, ".", &infos, NULL, &err), 0);
    assert_int_equal(infos.count, 1);
    assert_string_equal(infos.items[0].path, "d");
    pinfold_file_infos_done(&infos);
    check_fails(pf_dir_list(tmp->fd, "d/.hidden", &infos, NULL, &err), PINFOLD_EOS, ENOTDIR,
                "list directory \"d/.hidden\"");
    check_fails(pf_dir_list(tmp->fd, "no", &infos, NULL, &err), PINFOLD_EOS, ENOENT, "\"no\"");
}

static void a_list_is_put_in_order_and_each_name_found(void **state)
{
    enum { COUNT = 1000, STEP = 387 }; /* nothing divides both: each number comes once */
    struct pinfold_file_info items[COUNT], none[1] = { { .path = NULL } };
    struct pinfold_file_infos infos = { .items = items, .count = COUNT }, empty = { .items = none };
    char names[COUNT][8];

    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        size_t number = i * STEP % COUNT;
        snprintf(names[i], sizeof(names[i]), "%03zu", number);
        items[i] = (struct pinfold_file_info){ .path = names[i], .size = (int64_t)number };
    }
    for (int times = 0; times < 2; times++) {
        pf_infos_sort(&infos);
        for (size_t i = 0; i < COUNT; i++) {
            assert_int_equal(items[i].size, i);
            assert_ptr_equal(pf_infos_find(&infos, items[i].path), &items[i]);
        }
    }
    assert_null(pf_infos_find(&infos, ""));
    assert_null(pf_infos_find(&infos, "0000"));
    assert_null(pf_infos_find(&infos, "\xff"));
    pf_infos_sort(&empty);
    assert_null(pf_infos_find(&empty, "000"));
}

static void a_fired_token_stops_everything(void **state)
{
    struct tmp *tmp = *state;
    struct pinfold_cancel *cancel = NULL;
    struct pinfold_file_infos infos;
    struct pinfold_bytes bytes;

    put(tmp->fd, "f", "old");
    assert_int_equal(pinfold_cancel_new(&cancel, NULL), 0);
    pinfold_cancel_fire(cancel);
    assert_int_equal(pf_file_read(tmp->fd, "f", 10, &bytes, cancel, &err), -PINFOLD_ECANCELLED);
    assert_int_equal(pf_file_write(tmp->fd, "f", "n", 1, false, cancel, &err), -PINFOLD_ECANCELLED);
    assert_int_equal(pf_file_copy(tmp->fd, "f", tmp->fd, "g", false, NULL, cancel, &err),
                     -PINFOLD_ECANCELLED);
    assert_int_equal(pf_dir_list(tmp->fd, ".", &infos, cancel, &err), -PINFOLD_ECANCELLED);
    pinfold_cancel_free(cancel);
    check_file(tmp->fd, "f", "old");
    check_file(tmp->fd, "g", NULL);
    check_no_temp(tmp->fd);
}

struct reader {
    int fd;
    atomic_bool stop;
    unsigned torn;
};

static void *read_on(void *arg)
{
    struct reader *reader = arg;
    struct pinfold_bytes bytes;

    while (!atomic_load(&reader->stop)) {
        if (pf_file_read(reader->fd, "f", PF_BUF_UNLIMITED, &bytes, NULL, NULL) < 0) {
            reader->torn++;
            continue;
        }
        for (size_t i = 1; i < bytes.len; i++)
            reader->torn += bytes.data[i] != bytes.data[0];
        reader->torn += bytes.len != 20000;
        pinfold_bytes_done(&bytes);
    }
    return NULL;
}

/* Not even a temporary one, where the file system can do that: so nothing is left of a process that
 * is killed meanwhile. */
static void a_file_has_no_name_before_it_is_whole(void **state)
{
    const struct tmp *tmp = *state;
    struct pf_temp temp = PF_TEMP_INIT;
    bool unnamed;

    for (int replaces = 0; replaces < 2; replaces++) {
        assert_int_equal(pf_temp_open(&temp, tmp->fd, 0644), 0);
        unnamed = temp.name[0] == '\0';
        if (unnamed)
            check_no_temp(tmp->fd);
        assert_int_equal(write(temp.fd, replaces ? "new" : "old", 3), 3);
        if (replaces)
            assert_int_equal(pf_temp_place(&temp, "file", true), -EEXIST);
        if (!replaces || unnamed) /* with a name it has been closed for placing it */
            assert_int_equal(pf_temp_place(&temp, "file", false), 0);
        pf_temp_done(&temp);
        check_file(tmp->fd, "file", replaces && unnamed ? "new" : "old");
        check_no_temp(tmp->fd);
    }
    assert_int_equal(pf_temp_open(&temp, tmp->fd, 0644), 0);
    pf_temp_done(&temp);
    check_no_temp(tmp->fd);
}

static void readers_never_see_half_a_file(void **state)
{
    struct tmp *tmp = *state;
    struct reader reader = { .fd = tmp->fd };
    pthread_t thread;
    char data[20000];

    memset(data, 'a', sizeof(data));
    assert_int_equal(pf_file_write(tmp->fd, "f", data, sizeof(data), false, NULL, &err), 0);
    assert_int_equal(pthread_create(&thread, NULL, read_on, &reader), 0);
    for (int i = 0; i < 500; i++) {
        memset(data, 'a' + i % 26, sizeof(data));
        assert_int_equal(pf_file_write(tmp->fd, "f", data, sizeof(data), false, NULL, &err), 0);
    }
    atomic_store(&reader.stop, true);
    pthread_join(thread, NULL);
    assert_int_equal(reader.torn, 0);
}

static void roots_are_opened_made_and_compared(void **state)
{
    struct tmp *tmp = *state;
    enum pf_root_relation relation;
    char path[128], longer[5001], *real = NULL;
    int a, b;

    snprintf(path, sizeof(path), "%s/x/y", tmp->path);
    check_fails(pf_root_open(path, false, NULL, &err), PINFOLD_EOS, ENOENT, "open directory");
    a = pf_root_open(path, true, &real, &err);
    assert_true(a >= 0);
    assert_non_null(strstr(real, "/x/y"));
    free(real);
    b = sub(tmp->fd, "x");
    assert_int_equal(pf_roots_relation(a, b, &relation, &err), 0);
    assert_int_equal(relation, PF_ROOTS_NESTED);
    assert_int_equal(pf_roots_relation(b, a, &relation, &err), 0);
    assert_int_equal(relation, PF_ROOTS_NESTED);
    assert_int_equal(pf_roots_relation(a, a, &relation, &err), 0);
    assert_int_equal(relation, PF_ROOTS_SAME);
    put_dir(tmp->fd, "z");
    close(b);
    b = sub(tmp->fd, "z");
    assert_int_equal(pf_roots_relation(a, b, &relation, &err), 0);
    assert_int_equal(relation, PF_ROOTS_APART);
    close(a);
    close(b);
    put(tmp->fd, "file", "");
    snprintf(path, sizeof(path), "%s/file", tmp->path);
    check_fails(pf_root_open(path, true, NULL, &err), PINFOLD_EOS, ENOTDIR, "file");
    snprintf(path, sizeof(path), "%s/file/below", tmp->path);
    check_fails(pf_root_open(path, true, NULL, &err), PINFOLD_EOS, ENOTDIR, "file");
    memset(longer, 'x', 5000);
    longer[5000] = '\0';
    check_fails(pf_root_open(longer, true, NULL, &err), PINFOLD_EOS, ENAMETOOLONG, "xxx");
}

static void host_paths_are_expanded(void **state)
{
    char *path = NULL, *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;

    (void)state;
    setenv("HOME", "/home/me", 1);
    assert_int_equal(pf_path_expand("~/x", &path, &err), 0);
    assert_string_equal(path, "/home/me/x");
    free(path);
    assert_int_equal(pf_path_expand("~", &path, &err), 0);
    assert_string_equal(path, "/home/me");
    free(path);
    assert_int_equal(pf_path_expand("/a", &path, &err), 0);
    assert_string_equal(path, "/a");
    free(path);
    assert_int_equal(pf_path_expand("~x", &path, &err), 0);
    assert_int_equal(path[0], '/');
    assert_string_equal(strrchr(path, '/'), "/~x");
    free(path);
    unsetenv("HOME");
    check_fails(pf_path_expand("~/x", &path, &err), PINFOLD_EVALUE, 0, "HOME");
    check_fails(pf_path_expand("", &path, &err), PINFOLD_EVALUE, 0, "empty");
    if (home)
        setenv("HOME", home, 1);
    free(home);
}

/* Not old kernels, and not valgrind. */
static bool has_cached_lookups(const struct tmp *tmp)
{
    struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_CACHED };
    long fd = syscall(SYS_openat2, tmp->fd, ".", &how, sizeof(how));

    if (fd >= 0)
        close((int)fd);
    return fd >= 0;
}

static bool read_cached(const struct tmp *tmp, const char *path, size_t limit)
{
    struct pinfold_bytes bytes;

    if (!pf_file_read_cached(tmp->fd, path, limit, &bytes))
        return false;
    assert_int_equal(bytes.len, 4);
    assert_memory_equal(bytes.data, "text", 5);
    pinfold_bytes_done(&bytes);
    return true;
}

/* The kernel gives up when somebody renames something meanwhile, anywhere: so it is asked again. */
static bool read_cached_in_the_end(const struct tmp *tmp, const char *path)
{
    for (int tries = 0; tries < 10000; tries++)
        if (read_cached(tmp, path, 4))
            return true;
    return false;
}

/* What no file system does without waiting is refused on all, and the rest where it can be. */
static void what_is_in_memory_is_read_at_once(void **state)
{
    struct tmp *tmp = *state;
    bool prompt = pf_file_system_is_prompt(tmp->fd) && has_cached_lookups(tmp);
    int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

    assert_int_equal(write_text(tmp->fd, "a/b", "text", false), 0);
    assert_int_equal(symlinkat("a/b", tmp->fd, "in"), 0);
    assert_int_equal(symlinkat("/etc/passwd", tmp->fd, "out"), 0);
    assert_int_equal(mkfifoat(tmp->fd, "fifo", 0600), 0);
    check_read(tmp->fd, "a/b", "text", 4); /* now it is in memory */
    check_read(tmp->fd, "in", "text", 4);
    assert_int_equal(read_cached_in_the_end(tmp, "a/b"), prompt);
    assert_int_equal(read_cached_in_the_end(tmp, "in"), prompt);
    assert_false(read_cached(tmp, "a/b", 3));
    for (const char *const *path =
                 (const char *const[]){ "a", "out", "fifo", "none", "../x", NULL };
         *path; path++)
        assert_false(read_cached(tmp, *path, 100));
    pf_beneath_force_fallback(true);
    assert_false(read_cached(tmp, "a/b", 100));
    pf_beneath_force_fallback(false);
    assert_false(pf_file_system_is_prompt(proc));
    close(proc);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tmp_setup, tmp_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bytes_come_back_as_they_were),
        TEST(what_is_in_memory_is_read_at_once),
        TEST(an_existing_file_keeps_its_mode),
        TEST(exclusive_never_replaces),
        TEST(links_are_written_through_inside_the_root_only),
        TEST(what_is_no_file_is_refused_without_waiting),
        TEST(reading_stops_at_the_limit),
        TEST(a_large_file_comes_back_whole),
        TEST(a_copy_keeps_bytes_modes_and_holes),
        TEST(removing_takes_files_and_links_themselves),
        TEST(moving_follows_the_rules_of_move_file),
        TEST(a_file_is_replaced_only_while_it_is_what_was_expected),
        TEST(directories_are_removed_and_moved_when_that_is_meant),
        TEST(a_listing_is_sorted_and_says_what_is_what),
        TEST(a_list_is_put_in_order_and_each_name_found),
        TEST(a_fired_token_stops_everything),
        TEST(a_file_has_no_name_before_it_is_whole),
        TEST(readers_never_see_half_a_file),
        TEST(roots_are_opened_made_and_compared),
        TEST(host_paths_are_expanded),
    };

    return cmocka_run_group_tests_name("file", tests, NULL, NULL);
}

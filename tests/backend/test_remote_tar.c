/* SPDX-License-Identifier: Apache-2.0 */
/* Archives as somebody hostile would make them, and as we make them ourselves. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "backend/remote_archive.h"
#include "base/cleanup.h"
#include "tempdir.h"

enum { RECORD = 512 };

static struct fixture {
    char dir[200]; /* root, and beside it what must not be touched */
    int root, archive;
    struct pinfold_error err;
} f;

/* ---- making archives ---- */

static void append(const void *data, size_t len)
{
    assert_int_equal(write(f.archive, data, len), len);
}

static void end_records(size_t len)
{
    static const char zeros[RECORD];

    append(zeros, (RECORD - len % RECORD) % RECORD);
}

static void finish(void)
{
    static const char end[2 * RECORD];

    append(end, sizeof(end));
}

/* One header; size as it stands there. */
static void header(char type, const char *name, const char *link, const char *size)
{
    unsigned char record[RECORD] = { 0 };
    unsigned sum = 0;

    memcpy(record, name, strnlen(name, 100));
    memcpy(record + 100, "0004755", 8);
    snprintf((char *)record + 124, 12, "%s", size);
    record[156] = (unsigned char)type;
    memcpy(record + 157, link, strnlen(link, 100));
    memcpy(record + 257, "ustar  ", 8);
    memset(record + 148, ' ', 8);
    for (int i = 0; i < RECORD; i++)
        sum += record[i];
    snprintf((char *)record + 148, 8, "%06o", sum);
    record[155] = ' ';
    append(record, RECORD);
}

static void entry(char type, const char *name, const char *link, const char *content, size_t len)
{
    char size[13];

    snprintf(size, sizeof(size), "%011o", (unsigned)len);
    header(type, name, link, size);
    append(content, len);
    end_records(len);
}

static void file(const char *name, const char *content)
{
    entry('0', name, "", content, strlen(content));
}

/* ---- the fixture ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void remove_all(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *at(const char *name)
{
    static char paths[4][1000];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, 1000, "%s/%s", f.dir, name);
    return path;
}

/* An empty root again, and an empty archive. */
static void begin(void)
{
    if (f.root >= 0)
        close(f.root);
    remove_all(at("root"));
    assert_int_equal(mkdir(at("root"), 0755), 0);
    f.root = open(at("root"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(f.root >= 0);
    assert_int_equal(ftruncate(f.archive, 0), 0);
    assert_int_equal(lseek(f.archive, 0, SEEK_SET), 0);
    f.err = (struct pinfold_error)PINFOLD_ERROR_INIT;
}

static int set_up(void **state)
{
    int out;

    (void)state;
    assert_non_null(test_tempdir("pinfold-tar", f.dir, sizeof(f.dir)));
    f.archive = memfd_create("archive", MFD_CLOEXEC);
    f.root = -1;
    out = open(at("outside"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(write(out, "safe", 4), 4);
    close(out);
    begin();
    return 0;
}

static int tear_down(void **state)
{
    struct stat st;

    (void)state;
    assert_int_equal(stat(at("outside"), &st), 0);
    assert_int_equal(st.st_size, 4);
    close(f.root);
    close(f.archive);
    remove_all(f.dir);
    return 0;
}

static int unpack(void)
{
    return pf_remote_unpack(f.archive, f.root, NULL, &f.err);
}

static void unpacks(void)
{
    if (unpack() < 0)
        fail_msg("%s", f.err.msg);
}

static void is_refused(const char *what)
{
    if (unpack() == 0)
        fail_msg("%s was unpacked", what);
    assert_true(f.err.code != 0 && f.err.msg[0]);
}

static void holds(const char *name, const char *content)
{
    char data[1000] = "";
    int fd = openat(f.root, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        fail_msg("there is no %s", name);
    assert_true(read(fd, data, sizeof(data) - 1) >= 0);
    close(fd);
    assert_string_equal(data, content);
}

static mode_t mode_of(const char *name)
{
    struct stat st;

    assert_int_equal(fstatat(f.root, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    return st.st_mode;
}

/* ---- names ---- */

static void names_that_lead_out_are_refused(void **state)
{
    static const char *const names[] = { "/etc/x", "../outside",   "a/../../outside",
                                         "..",     "a/b/../../..", "" };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(names); i++) {
        begin();
        file(names[i], "evil");
        finish();
        is_refused(names[i]);
    }
}

static void nothing_goes_through_a_link_that_leads_out(void **state)
{
    static const char *const targets[] = { "..", "/", "../", "/proc/self/cwd", "../outside/.." };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(targets); i++) {
        begin();
        entry('2', "out", targets[i], "", 0);
        file("out/outside", "evil");
        finish();
        is_refused(targets[i]);
        begin();
        entry('2', "out", targets[i], "", 0);
        entry('5', "out/dir", "", "", 0);
        finish();
        is_refused(targets[i]);
    }
}

static void a_file_takes_the_place_of_a_link_and_does_not_go_through_it(void **state)
{
    (void)state;
    entry('2', "x", "../outside", "", 0);
    file("x", "mine");
    finish();
    unpacks();
    holds("x", "mine");
    assert_true(S_ISREG(mode_of("x")));
}

static void the_later_of_two_counts_and_a_directory_stays(void **state)
{
    (void)state;
    file("x", "first, and longer");
    file("x", "second");
    entry('5', "d", "", "", 0);
    file("d/y", "in it");
    entry('5', "d", "", "", 0);
    finish();
    unpacks();
    holds("x", "second");
    holds("d/y", "in it");
    begin();
    entry('5', "d", "", "", 0);
    file("d", "no");
    finish();
    is_refused("a file in the place of a directory");
    begin();
    entry('2', "d", "..", "", 0);
    entry('5', "d", "", "", 0); /* a link is no directory that is there already */
    file("d/outside", "no");
    finish();
    unpacks();
    holds("d/outside", "no");
}

static void odd_names_are_names(void **state)
{
    (void)state;
    file("new\nline", "1");
    file("\xff\xfe", "2");
    file("-rf", "3");
    file("./a//b/./c", "4");
    entry('L', "././@LongLink", "", "long\0er", 8); /* it ends at the NUL */
    file("short", "5");
    finish();
    unpacks();
    holds("new\nline", "1");
    holds("\xff\xfe", "2");
    holds("-rf", "3");
    holds("a/b/c", "4");
    holds("long", "5");
}

static void a_name_without_end_is_refused(void **state)
{
    char name[5000];

    (void)state;
    memset(name, 'n', sizeof(name));
    entry('L', "././@LongLink", "", name, sizeof(name));
    file("short", "x");
    finish();
    is_refused("a name of 5,000 bytes");
    begin();
    header('L', "././@LongLink", "", "77777777777");
    finish();
    is_refused("a name of 8 GiB");
}

/* ---- kinds ---- */

static void devices_and_hard_links_are_made_nothing_of(void **state)
{
    static const char kinds[] = { '1', '3', '4', '6' };

    (void)state;
    for (size_t i = 0; i < sizeof(kinds); i++) {
        begin();
        entry(kinds[i], "odd", "../outside", "", 0);
        finish();
        unpacks();
        assert_true(S_ISFIFO(mode_of("odd")));
    }
}

static void kinds_that_nobody_asked_for_are_refused(void **state)
{
    static const char kinds[] = { 'S', 'M', 'V', 'D', 'N', 'A', '8', 0x7f };

    (void)state;
    for (size_t i = 0; i < sizeof(kinds); i++) {
        begin();
        entry(kinds[i], "odd", "", "x", 1);
        finish();
        is_refused("an odd kind");
    }
}

static void no_bit_but_those_of_access_is_taken(void **state)
{
    (void)state;
    file("x", "suid there"); /* 04755 */
    finish();
    unpacks();
    assert_int_equal(mode_of("x"), S_IFREG | 0755);
}

static void content_of_what_has_none_is_passed_over(void **state)
{
    (void)state;
    entry('2', "link", "x", "some content", 12);
    entry('5', "dir", "", "some content", 12);
    entry('x', "pax", "", "30 path=/etc/passwd-of-nobody\n", 30);
    file("x", "after");
    finish();
    unpacks();
    holds("x", "after");
}

/* ---- sizes ---- */

static void sizes_that_lie_are_refused(void **state)
{
    static const char *const sizes[] = { "77777777777",
                                         "00000002000",
                                         "-0000000001",
                                         "0000000000x",
                                         "\x80\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff",
                                         "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff" };

    (void)state;
    for (size_t i = 0; i < PF_COUNT(sizes); i++) {
        begin();
        header('0', "x", "", sizes[i]);
        finish();
        is_refused(sizes[i]);
    }
}

static void a_wrong_checksum_is_refused(void **state)
{
    (void)state;
    for (off_t at_byte = 0; at_byte < RECORD; at_byte += 7) {
        char byte;
        begin();
        file("some-name", "content");
        finish();
        assert_int_equal(pread(f.archive, &byte, 1, at_byte), 1);
        byte ^= 0x10;
        assert_int_equal(pwrite(f.archive, &byte, 1, at_byte), 1);
        is_refused("a header with a flipped bit");
    }
}

static void an_archive_that_is_cut_at_any_block_is_an_error(void **state)
{
    char content[3000];
    off_t size;

    (void)state;
    memset(content, 'c', sizeof(content));
    entry('5', "d", "", "", 0);
    entry('0', "d/x", "", content, sizeof(content));
    entry('L', "././@LongLink", "", content, 200);
    file("y", "y");
    size = lseek(f.archive, 0, SEEK_CUR);
    for (off_t cut = size; cut >= 0; cut -= RECORD / 2) {
        int root = f.root;
        assert_int_equal(ftruncate(f.archive, cut), 0);
        remove_all(at("root"));
        close(root);
        assert_int_equal(mkdir(at("root"), 0755), 0);
        f.root = open(at("root"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        f.err = (struct pinfold_error)PINFOLD_ERROR_INIT;
        is_refused("a part of an archive");
    }
}

static void holes_stay_holes(void **state)
{
    size_t len = 2 << 20;
    _cleanup_free_ char *content = calloc(1, len);
    struct stat st;

    (void)state;
    assert_non_null(content);
    content[len / 2] = 'x';
    entry('0', "sparse", "", content, len);
    finish();
    unpacks();
    assert_int_equal(fstatat(f.root, "sparse", &st, 0), 0);
    assert_int_equal(st.st_size, len);
    assert_true(st.st_blocks * 512 < (off_t)len / 4);
}

/* ---- gzip ---- */

/* len zeros, as gzip has them. */
static void compress_zeros(size_t len)
{
    static const char zeros[1 << 16];
    gzFile gz = gzdopen(dup(f.archive), "wb1");

    assert_non_null(gz);
    for (size_t at_byte = 0; at_byte < len; at_byte += sizeof(zeros))
        assert_int_equal(gzwrite(gz, zeros, sizeof(zeros)), sizeof(zeros));
    assert_int_equal(gzclose(gz), Z_OK);
}

static int inflate_to(int to, uint64_t limit)
{
    assert_int_equal(lseek(f.archive, 0, SEEK_SET), 0);
    f.err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    return pf_remote_inflate(f.archive, to, limit, NULL, &f.err);
}

static void a_bomb_ends_at_the_limit_and_costs_no_room(void **state)
{
    size_t len = 32 << 20;
    _cleanup_close_ int to = open(at("root"), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    struct stat st;

    (void)state;
    if (to < 0)
        to = memfd_create("to", MFD_CLOEXEC);
    compress_zeros(len);
    assert_int_equal(inflate_to(to, 2 << 20), -PINFOLD_EOS);
    assert_int_equal(f.err.sys_errno, EFBIG);
    assert_int_equal(ftruncate(to, 0), 0);
    assert_int_equal(lseek(to, 0, SEEK_SET), 0);
    assert_int_equal(inflate_to(to, len), 0);
    assert_int_equal(fstat(to, &st), 0);
    assert_int_equal(st.st_size, len);
    assert_true(st.st_blocks * 512 < (off_t)len / 16);
}

static void gzip_that_is_cut_or_none_is_an_error(void **state)
{
    off_t size;

    (void)state;
    compress_zeros(1 << 16);
    size = lseek(f.archive, 0, SEEK_END);
    for (off_t cut = size - 1; cut >= 0; cut--) {
        _cleanup_close_ int to = memfd_create("to", MFD_CLOEXEC);
        assert_int_equal(ftruncate(f.archive, cut), 0);
        assert_int_equal(inflate_to(to, 1 << 20), -PINFOLD_EBACKEND);
    }
    begin();
    append("no gzip at all", 14);
    assert_int_equal(inflate_to(f.root, 1 << 20), -PINFOLD_EBACKEND);
}

/* ---- ours ---- */

static void what_is_packed_is_unpacked_again(void **state)
{
    _cleanup_close_ int packed = memfd_create("packed", MFD_CLOEXEC);
    char name[300];
    uint64_t size;
    int from, fd;

    (void)state;
    memset(name, 'n', 250);
    name[250] = '\0';
    assert_int_equal(mkdir(at("from"), 0755), 0);
    from = open(at("from"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fd = openat(from, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
    assert_int_equal(write(fd, "long", 4), 4);
    close(fd);
    assert_int_equal(symlinkat("../outside", from, "link"), 0);
    assert_int_equal(pf_remote_pack(from, packed, &size, NULL, &f.err), 0);
    close(from);
    assert_int_equal(lseek(packed, 0, SEEK_SET), 0);
    assert_int_equal(pf_remote_inflate(packed, f.archive, 1 << 20, NULL, &f.err), 0);
    unpacks();
    holds(name, "long");
    assert_int_equal(mode_of(name), S_IFREG | 0700);
    assert_true(S_ISLNK(mode_of("link")));
}

/* It would be packed for hours. The alarm ends a test that does. */
static void a_file_that_is_a_huge_hole_is_refused(void **state)
{
    int packed = memfd_create("packed", MFD_CLOEXEC);
    off_t huge = (off_t)15 << 40;
    uint64_t size;
    int fd;

    (void)state;
    fd = openat(f.root, "huge", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    while (ftruncate(fd, huge) < 0)
        huge /= 2;
    assert_true(huge > (off_t)1 << 40);
    close(fd);
    alarm(60);
    assert_int_equal(pf_remote_pack(f.root, packed, &size, NULL, &f.err), -PINFOLD_EOS);
    alarm(0);
    assert_int_equal(f.err.sys_errno, EFBIG);
    assert_non_null(strstr(f.err.msg, "\"huge\""));
    assert_true(size < 4096);
    close(packed);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(names_that_lead_out_are_refused),
        TEST(nothing_goes_through_a_link_that_leads_out),
        TEST(a_file_takes_the_place_of_a_link_and_does_not_go_through_it),
        TEST(the_later_of_two_counts_and_a_directory_stays),
        TEST(odd_names_are_names),
        TEST(a_name_without_end_is_refused),
        TEST(devices_and_hard_links_are_made_nothing_of),
        TEST(kinds_that_nobody_asked_for_are_refused),
        TEST(no_bit_but_those_of_access_is_taken),
        TEST(content_of_what_has_none_is_passed_over),
        TEST(sizes_that_lie_are_refused),
        TEST(a_wrong_checksum_is_refused),
        TEST(an_archive_that_is_cut_at_any_block_is_an_error),
        TEST(holes_stay_holes),
        TEST(a_bomb_ends_at_the_limit_and_costs_no_room),
        TEST(gzip_that_is_cut_or_none_is_an_error),
        TEST(what_is_packed_is_unpacked_again),
        TEST(a_file_that_is_a_huge_hole_is_refused),
    };

    return cmocka_run_group_tests_name("remote_tar", tests, NULL, NULL);
}

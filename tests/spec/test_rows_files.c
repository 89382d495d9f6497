/* SPDX-License-Identifier: Apache-2.0 */
/* Rows 45 to 55 of the semantics: writing, moving, transferring, deleting and listing files. */
#include "spec.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

static int write_text(struct spec *s, const char *path, const char *text)
{
    return pinfold_sandbox_write_file(s->sandbox, path, text, strlen(text), NULL, &s->err);
}

static int move(struct spec *s, const char *src, const char *dest)
{
    return pinfold_sandbox_move_file(s->sandbox, src, dest, NULL, &s->err);
}

static struct pinfold_upload upload(const char *path, const char *text)
{
    return (struct pinfold_upload){ .path = path, .data = text, .len = strlen(text) };
}

static mode_t mode_of(struct spec *s, const char *path)
{
    return spec_stat(s, path).st_mode & 07777;
}

static void row_045_write_makes_parents_and_keeps_an_existing_mode(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_ok(s, write_text(s, "a/b/c.txt", "new"));
    spec_is(s, "ws/a/b/c.txt", "new");
    spec_put(s, "ws/run.sh", "a longer old text");
    spec_mode(s, "ws/run.sh", 0755);
    spec_ok(s, write_text(s, "run.sh", "short"));
    spec_is(s, "ws/run.sh", "short");
    assert_int_equal(mode_of(s, "ws/run.sh"), 0755);
    spec_put(s, "ws/private", "p");
    spec_mode(s, "ws/private", 0600);
    spec_ok(s, write_text(s, "private", "q"));
    assert_int_equal(mode_of(s, "ws/private"), 0600);
}

static void row_045_a_new_file_is_0644_less_the_umask(void **state)
{
    struct spec *s = *state;
    mode_t old = umask(0);
    unsigned there = 0;

    spec_start_plain(s);
    int open_r = write_text(s, "open", "o");
    umask(077);
    int closed_r = write_text(s, "closed", "c");
    umask(old);
    assert_int_equal(open_r, 0);
    assert_int_equal(closed_r, 0);
    if (spec_lacks("host directory")) { /* it is the other machine's umask that counts */
        spec_run(s, "umask");
        assert_int_equal(sscanf(s->run.output, "%o", &there), 1);
        assert_int_equal(mode_of(s, "ws/open"), 0644 & ~there);
        assert_int_equal(mode_of(s, "ws/closed"), 0644 & ~there);
        return;
    }
    assert_int_equal(mode_of(s, "ws/open"), 0644);
    assert_int_equal(mode_of(s, "ws/closed"), 0600);
}

static void row_045_a_directory_is_not_overwritten(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_put(s, "ws/d/f", "f");
    spec_dir(s, "ws/empty");
    spec_refuses(s, PINFOLD_EOS, write_text(s, "d", "x"));
    assert_int_equal(s->err.sys_errno, EISDIR);
    spec_refuses(s, PINFOLD_EOS, write_text(s, "empty", "x"));
    spec_refuses(s, PINFOLD_EOS, write_text(s, "d/f/below-a-file", "x"));
    spec_is(s, "ws/d/f", "f");
    assert_int_equal(spec_entries(s, "ws/d"), 1); /* no temporary name is left */
    assert_int_equal(spec_entries(s, "ws"), 2);
}

struct reader {
    char path[256];
    atomic_bool stop;
    atomic_int broken, seen;
};

enum { LETTERS = 200000 };

static void *read_again_and_again(void *arg)
{
    struct reader *reader = arg;
    char *text = malloc(LETTERS + 1);

    while (text && !atomic_load(&reader->stop)) {
        int fd = open(reader->path, O_RDONLY | O_CLOEXEC);
        size_t len = 0;
        ssize_t n;
        while (fd >= 0 && (n = read(fd, text + len, LETTERS + 1 - len)) > 0)
            len += (size_t)n;
        if (fd >= 0)
            close(fd);
        bool whole = len == LETTERS && memcmp(text, text + 1, len - 1) == 0;
        atomic_fetch_add(whole ? &reader->seen : &reader->broken, 1);
    }
    free(text);
    return NULL;
}

static void row_046_readers_see_the_old_file_or_the_new_one(void **state)
{
    struct spec *s = *state;
    struct reader reader = { 0 };
    char *text = malloc(LETTERS);
    pthread_t thread;
    int r = 0, enough = spec_rounds(200);

    assert_non_null(text);
    spec_start_plain(s);
    snprintf(reader.path, sizeof(reader.path), "%s", spec_at(s, "ws/f"));
    memset(text, 'a', LETTERS);
    spec_put_bytes(s, "ws/f", text, LETTERS);
    assert_int_equal(pthread_create(&thread, NULL, read_again_and_again, &reader), 0);
    for (int i = 0; (i < enough || (atomic_load(&reader.seen) == 0 && i < 5000)) && r == 0; i++) {
        memset(text, 'a' + i % 26, LETTERS);
        r = pinfold_sandbox_write_file(s->sandbox, "f", text, LETTERS, NULL, &s->err);
    }
    atomic_store(&reader.stop, true);
    pthread_join(thread, NULL);
    free(text);
    assert_int_equal(r, 0);
    assert_int_equal(atomic_load(&reader.broken), 0);
    assert_true(atomic_load(&reader.seen) > 0);
    assert_int_equal(spec_entries(s, "ws"), 1);
}

static void row_047_text_is_content_and_a_host_path_is_a_file(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_put_bytes(s, "host.bin", "h\0st", 4);
    spec_put(s, "hostdir/f", "f");
    struct pinfold_upload files[] = {
        upload("text", "/etc/hostname"),
        { .path = "bytes", .data = "\0\xff", .len = 2 },
        { .path = "sub/file", .host_path = spec_at(s, "host.bin") },
        { .path = "empty" },
    };
    spec_ok(s, pinfold_sandbox_add_files(s->sandbox, files, 4, true, &s->paths, NULL, &s->err));
    spec_is(s, "ws/text", "/etc/hostname"); /* the text itself */
    spec_is_bytes(s, "ws/bytes", "\0\xff", 2);
    spec_is_bytes(s, "ws/sub/file", "h\0st", 4);
    spec_is(s, "ws/empty", "");
    assert_int_equal(s->paths.count, 4);

    struct pinfold_upload folder = { .path = "folder", .host_path = spec_at(s, "hostdir") };
    spec_refuses(s, PINFOLD_EOS,
                 pinfold_sandbox_add_files(s->sandbox, &folder, 1, true, NULL, NULL, &s->err));
    assert_int_equal(s->err.sys_errno, EISDIR);
    spec_missing(s, "ws/folder");
}

static void row_048_without_overwrite_only_new_paths_are_written(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_put(s, "ws/old", "old");
    spec_link(s, "nowhere", "ws/dangling");
    struct pinfold_upload files[] = { upload("z", "z"), upload("old", "new"),
                                      upload("dangling", "new"), upload("a/b", "ab") };
    spec_ok(s, pinfold_sandbox_add_files(s->sandbox, files, 4, false, &s->paths, NULL, &s->err));
    assert_int_equal(s->paths.count, 2);
    assert_string_equal(s->paths.items[0], "z"); /* in the order given */
    assert_string_equal(s->paths.items[1], "a/b");
    spec_is(s, "ws/old", "old");
    spec_missing(s, "ws/nowhere"); /* a link in the way exists, and is not written through */
}

struct racer {
    struct spec *s;
    char text[8];
    struct pinfold_strings paths;
    int r;
};

static void *race(void *arg)
{
    struct racer *racer = arg;
    struct pinfold_upload file = upload("prize", racer->text);

    racer->r = pinfold_sandbox_add_files(racer->s->sandbox, &file, 1, false, &racer->paths, NULL,
                                         NULL);
    return NULL;
}

static void row_048_of_many_at_once_exactly_one_writes(void **state)
{
    enum { RACERS = 8 };
    struct spec *s = *state;
    const int rounds = spec_rounds(25);

    spec_start_plain(s);
    for (int round = 0; round < rounds; round++) {
        struct racer racers[RACERS] = { 0 };
        pthread_t threads[RACERS];
        const char *winner = NULL;
        size_t written = 0;

        unlink(spec_at(s, "ws/prize"));
        for (int i = 0; i < RACERS; i++) {
            racers[i].s = s;
            snprintf(racers[i].text, sizeof(racers[i].text), "no %d", i);
            assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
        }
        for (int i = 0; i < RACERS; i++) {
            pthread_join(threads[i], NULL);
            written += racers[i].paths.count;
            if (racers[i].paths.count == 1)
                winner = racers[i].text;
            pinfold_strings_done(&racers[i].paths);
        }
        for (int i = 0; i < RACERS; i++)
            assert_int_equal(racers[i].r, 0);
        assert_int_equal(written, 1);
        spec_is(s, "ws/prize", winner);
    }
    assert_int_equal(spec_entries(s, "ws"), 1);
}

static void row_049_what_could_be_added_stays_when_others_failed(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_put(s, "ws/dir/f", "f");
    struct pinfold_upload files[] = { upload("first", "1"),
                                      upload("dir", "x"),
                                      upload("last", "2"),
                                      { .path = "host", .host_path = spec_at(s, "missing") } };
    spec_refuses(s, PINFOLD_EOS,
                 pinfold_sandbox_add_files(s->sandbox, files, 4, true, &s->paths, NULL, &s->err));
    assert_non_null(strstr(s->err.msg, "dir")); /* the first that failed, */
    assert_non_null(strstr(s->err.msg, "2"));   /* and how many did */
    assert_int_equal(s->paths.count, 2);
    assert_string_equal(s->paths.items[0], "first");
    assert_string_equal(s->paths.items[1], "last");
    spec_is(s, "ws/first", "1");
    spec_is(s, "ws/last", "2");
}

static void row_050_downloads_are_all_tried_and_told_one_by_one(void **state)
{
    struct spec *s = *state;
    struct pinfold_transfer_results results = { 0 };

    spec_start_plain(s);
    spec_put(s, "ws/a", "a");
    spec_put(s, "ws/b", "b");
    spec_put(s, "hostdir/f", "f");
    struct pinfold_download files[] = {
        { .path = "a", .host_path = spec_at(s, "new/parents/a") },
        { .path = "missing", .host_path = spec_at(s, "never") },
        { .path = "b", .host_path = spec_at(s, "hostdir") }, /* a directory in the way */
        { .path = "b", .host_path = spec_at(s, "b") },
    };
    spec_refuses(
            s, PINFOLD_EOS,
            pinfold_sandbox_download_files(s->sandbox, files, 4, true, &results, NULL, &s->err));
    assert_int_equal(results.count, 4);
    assert_string_equal(results.items[1].path, "missing");
    assert_int_equal(results.items[0].error.code, 0);
    assert_int_equal(results.items[1].error.sys_errno, ENOENT);
    assert_true(results.items[2].error.code != 0);
    assert_int_equal(results.items[3].error.code, 0);
    pinfold_transfer_results_done(&results);
    spec_is(s, "new/parents/a", "a");
    spec_is(s, "b", "b");
    spec_missing(s, "never");
    spec_is(s, "hostdir/f", "f");
}

/* A sparse file costs an agent nothing, and would fill the reader's memory. */
static void row_050_what_does_not_fit_in_memory_goes_to_a_file(void **state)
{
    struct spec *s = *state;
    struct pinfold_transfer_results results = { 0 };
    struct pinfold_download file = { .path = "large" };
    const off_t size = (off_t)PINFOLD_READ_MAX_BYTES + 1;
    struct stat st;

    spec_start_plain(s);
    spec_put(s, "ws/large", "text");
    assert_int_equal(truncate(spec_at(s, "ws/large"), size), 0);
    spec_refuses(s, PINFOLD_EOS,
                 pinfold_sandbox_read_file(s->sandbox, "large", &s->text, NULL, &s->err));
    assert_int_equal(s->err.sys_errno, EFBIG);
    assert_non_null(strstr(s->err.msg, "download it to a file"));
    spec_refuses(
            s, PINFOLD_EOS,
            pinfold_sandbox_download_files(s->sandbox, &file, 1, true, &results, NULL, &s->err));
    assert_int_equal(results.items[0].error.sys_errno, EFBIG);
    pinfold_transfer_results_done(&results);
    file.host_path = spec_at(s, "host-copy");
    spec_ok(s, pinfold_sandbox_download_files(s->sandbox, &file, 1, true, NULL, NULL, &s->err));
    assert_int_equal(stat(spec_at(s, "host-copy"), &st), 0);
    assert_int_equal(st.st_size, size);
}

static void row_050_a_download_replaces_atomically_or_skips(void **state)
{
    struct spec *s = *state;
    struct pinfold_transfer_results results = { 0 };
    char text[16] = "";
    int fd;

    spec_start_plain(s);
    spec_put(s, "ws/a", "new");
    spec_put(s, "host/a", "old");
    struct pinfold_download file = { .path = "a", .host_path = spec_at(s, "host/a") };
    spec_ok(s,
            pinfold_sandbox_download_files(s->sandbox, &file, 1, false, &results, NULL, &s->err));
    assert_true(results.items[0].skipped);
    assert_int_equal(results.items[0].error.code, 0);
    pinfold_transfer_results_done(&results);
    spec_is(s, "host/a", "old");
    fd = open(spec_at(s, "host/a"), O_RDONLY | O_CLOEXEC);
    spec_ok(s, pinfold_sandbox_download_files(s->sandbox, &file, 1, true, &results, NULL, &s->err));
    assert_false(results.items[0].skipped);
    pinfold_transfer_results_done(&results);
    assert_int_equal(read(fd, text, sizeof(text)), 3);
    close(fd);
    assert_string_equal(text, "old");
    spec_is(s, "host/a", "new");
    assert_int_equal(spec_entries(s, "host"), 1);
}

static void row_051_delete_does_the_rest_before_it_complains(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_put(s, "ws/a", "a");
    spec_put(s, "ws/b", "b");
    spec_refuses(
            s, PINFOLD_EOS,
            pinfold_sandbox_delete_files(s->sandbox, LIST("a", "missing", "b"), NULL, &s->err));
    assert_int_equal(s->err.sys_errno, ENOENT);
    assert_non_null(strstr(s->err.msg, "missing"));
    spec_missing(s, "ws/a");
    spec_missing(s, "ws/b");
}

static void row_051_a_directory_is_not_deleted_and_a_link_not_followed(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_dir(s, "ws/dir");
    spec_put(s, "ws/target", "t");
    spec_put(s, "outside/f", "f");
    spec_link(s, "target", "ws/link");
    spec_link(s, "dir", "ws/dirlink");
    spec_link(s, "../outside", "ws/out");
    spec_refuses(s, PINFOLD_EOS,
                 pinfold_sandbox_delete_files(s->sandbox, LIST("dir"), NULL, &s->err));
    assert_int_equal(s->err.sys_errno, EISDIR);
    spec_ok(s, pinfold_sandbox_delete_files(s->sandbox, LIST("link", "dirlink", "out"), NULL,
                                            &s->err));
    spec_missing(s, "ws/link");
    spec_missing(s, "ws/dirlink");
    spec_missing(s, "ws/out");
    spec_is(s, "ws/target", "t");
    spec_is(s, "outside/f", "f");
    assert_true(spec_exists(s, "ws/dir"));
}

static void row_052_moving_a_file_onto_itself_keeps_it(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_put(s, "ws/d/a", "content");
    spec_ok(s, move(s, "d/a", "d/a"));
    spec_ok(s, move(s, "d/a", "./d//x/../a"));
    spec_is(s, "ws/d/a", "content");
    assert_int_equal(link(spec_at(s, "ws/d/a"), spec_at(s, "ws/hard")), 0);
    spec_ok(s, move(s, "d/a", "hard")); /* the same inode under two names */
    spec_is(s, "ws/d/a", "content");
    spec_is(s, "ws/hard", "content");
    spec_link(s, "d", "ws/dl");
    spec_ok(s, move(s, "dl/a", "d/a"));
    spec_is(s, "ws/d/a", "content");
}

static void row_052_move_replaces_files_makes_parents_and_keeps_the_mode(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_put(s, "ws/run.sh", "run");
    spec_mode(s, "ws/run.sh", 0755);
    spec_put(s, "ws/old", "old");
    spec_ok(s, move(s, "run.sh", "new/place/run.sh"));
    spec_missing(s, "ws/run.sh");
    spec_is(s, "ws/new/place/run.sh", "run");
    assert_int_equal(mode_of(s, "ws/new/place/run.sh"), 0755);
    spec_ok(s, move(s, "new/place/run.sh", "old"));
    spec_is(s, "ws/old", "run");
    assert_int_equal(mode_of(s, "ws/old"), 0755);
}

static void row_052_directories_are_refused_and_a_failure_leaves_the_source(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_put(s, "ws/f", "f");
    spec_dir(s, "ws/dir");
    spec_refuses(s, PINFOLD_EOS, move(s, "f", "dir"));
    assert_int_equal(s->err.sys_errno, EISDIR);
    spec_refuses(s, PINFOLD_EOS, move(s, "dir", "elsewhere"));
    assert_int_equal(s->err.sys_errno, EISDIR);
    spec_refuses(s, PINFOLD_EOS, move(s, "missing", "elsewhere"));
    assert_int_equal(s->err.sys_errno, ENOENT);
    spec_refuses(s, PINFOLD_EOS, move(s, "f", "f/below"));
    spec_is(s, "ws/f", "f");
    spec_missing(s, "ws/elsewhere");
    assert_int_equal(spec_entries(s, "ws/dir"), 0);
}

static int (*real_write)(void *, const char *, const void *, size_t, bool, struct pinfold_cancel *,
                         struct pinfold_error *);
static enum { WRITE_WELL, WRITE_FAILS, WRITE_LOSES } how_to_write;

static int remote_write(void *state, const char *path, const void *data, size_t len, bool exclusive,
                        struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    if (how_to_write == WRITE_FAILS) {
        *err = (struct pinfold_error){ .code = PINFOLD_EBACKEND, .msg = "write: line dropped" };
        return -PINFOLD_EBACKEND;
    }
    if (how_to_write == WRITE_LOSES && len > 0)
        len--; /* and says that all is well */
    return real_write(state, path, data, len, exclusive, cancel, err);
}

static void row_052_a_backend_without_move_reads_writes_verifies_and_deletes(void **state)
{
    static struct pinfold_backend_ops ops;
    struct spec *s = *state;
    struct pinfold_backend *local = s->backend, *remote = NULL;
    struct pinfold_sandbox_options options = spec_options(s);

    spec_copy_table(s, &ops);
    real_write = ops.write_file;
    ops.write_file = remote_write;
    ops.move_file = NULL;
    spec_ok(s, pinfold_backend_new(&ops, pinfold_backend_get_state(local), NULL, &remote, &s->err));
    options.backend = remote;
    spec_start(s, &options);
    pinfold_backend_unref(remote); /* the sandbox holds it */
    spec_put_bytes(s, "ws/f", "by\0tes\xff", 7);
    how_to_write = WRITE_FAILS;
    assert_true(move(s, "f", "g") < 0);
    spec_is_bytes(s, "ws/f", "by\0tes\xff", 7);
    how_to_write = WRITE_LOSES;
    assert_true(move(s, "f", "g") < 0);
    spec_is_bytes(s, "ws/f", "by\0tes\xff", 7);
    how_to_write = WRITE_WELL;
    spec_ok(s, move(s, "f", "./f"));
    spec_is_bytes(s, "ws/f", "by\0tes\xff", 7);
    spec_ok(s, move(s, "f", "g"));
    spec_is_bytes(s, "ws/g", "by\0tes\xff", 7);
    spec_missing(s, "ws/f");
    pinfold_sandbox_free(s->sandbox); /* before the local backend that it stands on */
    s->sandbox = NULL;
}

static void row_053_a_listing_is_one_level_sorted_and_tells_kinds(void **state)
{
    static const struct {
        const char *path;
        bool is_dir;
        int64_t size;
    } expected[] = {
        { ".hidden", false, 1 }, { "B", false, 2 },         { "a", false, 3 },
        { "broken", false, -2 }, { "dir", true, -1 },       { "dirlink", true, -1 },
        { "dir~", false, 0 },    { "filelink", false, -2 }, { "out", false, -2 },
    };
    struct spec *s = *state;
    struct pinfold_file_infos infos = { 0 };

    spec_start_plain(s);
    spec_put(s, "outside/f", "f");
    spec_put(s, "ws/dir/below", "not listed");
    spec_put(s, "ws/.hidden", "1");
    spec_put(s, "ws/B", "22");
    spec_put(s, "ws/a", "333");
    spec_put(s, "ws/dir~", "");
    spec_link(s, "dir", "ws/dirlink");
    spec_link(s, "a", "ws/filelink");
    spec_link(s, "nowhere", "ws/broken");
    spec_link(s, "../outside", "ws/out");
    spec_ok(s, pinfold_sandbox_list_dir(s->sandbox, ".", &infos, NULL, &s->err));
    assert_int_equal(infos.count, sizeof(expected) / sizeof(*expected));
    for (size_t i = 0; i < infos.count; i++) {
        assert_string_equal(infos.items[i].path, expected[i].path);
        assert_int_equal(infos.items[i].is_dir, expected[i].is_dir);
        if (expected[i].size != -2) /* -2: of a link, not decided */
            assert_int_equal(infos.items[i].size, expected[i].size);
    }
    pinfold_file_infos_done(&infos);
}

static void row_054_listed_paths_are_relative_to_the_root(void **state)
{
    static const char *const spellings[] = { "a/b", "./a//b/", "a/x/../b" };
    struct spec *s = *state;

    spec_start_plain(s);
    spec_put(s, "ws/a/b/c", "c");
    spec_dir(s, "ws/a/x");
    for (size_t i = 0; i < 3; i++) {
        struct pinfold_file_infos infos = { 0 };
        spec_ok(s, pinfold_sandbox_list_dir(s->sandbox, spellings[i], &infos, NULL, &s->err));
        assert_int_equal(infos.count, 1);
        assert_string_equal(infos.items[0].path, "a/b/c");
        pinfold_file_infos_done(&infos);
    }
}

static void row_055_listing_what_is_missing_or_no_directory_is_an_error(void **state)
{
    struct spec *s = *state;
    struct pinfold_file_infos infos = { 0 };

    spec_start_plain(s);
    spec_put(s, "ws/f", "f");
    spec_ok(s, pinfold_sandbox_list_dir(s->sandbox, ".", &infos, NULL, &s->err));
    pinfold_file_infos_done(&infos);
    spec_refuses(s, PINFOLD_EOS,
                 pinfold_sandbox_list_dir(s->sandbox, "missing", &infos, NULL, &s->err));
    assert_int_equal(s->err.sys_errno, ENOENT);
    spec_refuses(s, PINFOLD_EOS, pinfold_sandbox_list_dir(s->sandbox, "f", &infos, NULL, &s->err));
    assert_int_equal(s->err.sys_errno, ENOTDIR);
    assert_int_equal(infos.count, 0);
}

static void row_055_a_root_that_was_deleted_is_an_error_until_it_is_there_again(void **state)
{
    struct spec *s = *state;
    struct pinfold_file_infos infos = { 0 };
    struct pinfold_execute_options run = { .size = sizeof(run), .command = "echo on" };

    spec_start_plain(s);
    if (s->seed.mode == PINFOLD_SEED_OVERLAY) {
        /* Its root is in no directory of the host that could be deleted; from inside it cannot. */
        spec_run_with(s, &(struct pinfold_execute_options){ .size = sizeof(run),
                                                            .command = "cd /; rmdir /workspace" });
        assert_int_not_equal(s->run.exit_code, 0);
        spec_ok(s, write_text(s, "f", "f"));
        return;
    }
    assert_int_equal(rmdir(spec_at(s, "ws")), 0);
    for (int i = 0; i < 2; i++) {
        spec_refuses(s, PINFOLD_EOS,
                     pinfold_sandbox_list_dir(s->sandbox, ".", &infos, NULL, &s->err));
        assert_non_null(strstr(s->err.msg, spec_at(s, "ws")));
        spec_refuses(s, PINFOLD_EOS, write_text(s, "f", "f"));
        spec_refuses(s, PINFOLD_EOS,
                     pinfold_sandbox_execute(s->sandbox, &run, &s->run, NULL, &s->err));
        spec_missing(s, "ws"); /* it is not made behind the application's back */
    }
    spec_dir(s, "ws");
    if (spec_is_isolated()) { /* the sandbox shows the very directory that it was started with */
        spec_refuses(s, PINFOLD_EOS, write_text(s, "f", "f"));
        assert_non_null(strstr(s->err.msg, "deleted"));
        return;
    }
    spec_ok(s, write_text(s, "f", "f"));
    spec_is(s, "ws/f", "f");
    spec_run(s, "cat f");
    spec_stdout_is(s, "f");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SPEC_TEST(row_045_write_makes_parents_and_keeps_an_existing_mode),
        SPEC_TEST(row_045_a_new_file_is_0644_less_the_umask),
        SPEC_TEST(row_045_a_directory_is_not_overwritten),
        SPEC_TEST(row_046_readers_see_the_old_file_or_the_new_one),
        SPEC_TEST(row_047_text_is_content_and_a_host_path_is_a_file),
        SPEC_TEST(row_048_without_overwrite_only_new_paths_are_written),
        SPEC_TEST(row_048_of_many_at_once_exactly_one_writes),
        SPEC_TEST(row_049_what_could_be_added_stays_when_others_failed),
        SPEC_TEST(row_050_downloads_are_all_tried_and_told_one_by_one),
        SPEC_TEST(row_050_what_does_not_fit_in_memory_goes_to_a_file),
        SPEC_TEST(row_050_a_download_replaces_atomically_or_skips),
        SPEC_TEST(row_051_delete_does_the_rest_before_it_complains),
        SPEC_TEST(row_051_a_directory_is_not_deleted_and_a_link_not_followed),
        SPEC_TEST(row_052_moving_a_file_onto_itself_keeps_it),
        SPEC_TEST(row_052_move_replaces_files_makes_parents_and_keeps_the_mode),
        SPEC_TEST(row_052_directories_are_refused_and_a_failure_leaves_the_source),
        SPEC_TEST(row_052_a_backend_without_move_reads_writes_verifies_and_deletes),
        SPEC_TEST(row_053_a_listing_is_one_level_sorted_and_tells_kinds),
        SPEC_TEST(row_054_listed_paths_are_relative_to_the_root),
        SPEC_TEST(row_055_listing_what_is_missing_or_no_directory_is_an_error),
        SPEC_TEST(row_055_a_root_that_was_deleted_is_an_error_until_it_is_there_again),
    };

    return spec_run_tests("rows 45-55", tests);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Rows 17 to 32 of the semantics: what is copied how, and how failures are told. */
#include "spec.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void link_is(struct spec *s, const char *path, const char *target)
{
    char text[256] = "";

    assert_true(readlink(spec_at(s, path), text, sizeof(text) - 1) > 0);
    assert_string_equal(text, target);
}

static void row_017_links_that_stay_inside_are_recreated(void **state)
{
    struct spec *s = *state;

    spec_put(s, "seed/CLAUDE.md", "c");
    spec_put(s, "seed/d/f", "f");
    spec_link(s, "CLAUDE.md", "seed/AGENTS.md");
    spec_link(s, "../CLAUDE.md", "seed/d/up.md");
    spec_link(s, "d", "seed/dl");
    spec_link(s, "not/yet/there", "seed/dangling");
    spec_start_seeded(s);
    link_is(s, "ws/AGENTS.md", "CLAUDE.md");
    link_is(s, "ws/d/up.md", "../CLAUDE.md");
    link_is(s, "ws/dl", "d"); /* not followed into a second copy */
    link_is(s, "ws/dangling", "not/yet/there");
    assert_int_equal(s->seed.skipped_paths.count, 0);
}

static void row_017_links_that_leave_the_seed_are_skipped_and_listed(void **state)
{
    struct spec *s = *state;

    spec_put(s, "outside/secret", "secret");
    spec_put(s, "seed/d/f", "f");
    spec_link(s, "/etc/passwd", "seed/absolute");
    spec_link(s, "/", "seed/slash");
    spec_link(s, spec_at(s, "seed/d"), "seed/absolute_inside");
    spec_link(s, "../outside", "seed/out");
    spec_link(s, "../../outside/secret", "seed/d/out");
    spec_start_seeded(s);
    assert_int_equal(s->seed.files_seeded, 1);
    assert_int_equal(s->seed.skipped_paths.count, 5);
    assert_true(spec_has(&s->seed.skipped_paths, "absolute"));
    assert_true(spec_has(&s->seed.skipped_paths, "slash"));
    assert_true(spec_has(&s->seed.skipped_paths, "absolute_inside"));
    assert_true(spec_has(&s->seed.skipped_paths, "out"));
    assert_true(spec_has(&s->seed.skipped_paths, "d/out"));
    assert_int_equal(spec_entries(s, "ws"), 1);
    assert_int_equal(spec_entries(s, "ws/d"), 1);
}

static void row_017_a_link_that_leaves_the_seed_by_way_of_another_is_skipped(void **state)
{
    struct spec *s = *state;

    /* Read as text both stay inside: "deep/../x" is "x". But here is the root, so here/.. is not.
     */
    spec_put(s, "outside/secret", "secret");
    spec_put(s, "seed/f", "f");
    spec_link(s, ".", "seed/here");
    spec_link(s, "here/../outside/secret", "seed/trick");
    spec_start_seeded(s);
    spec_missing(s, "ws/trick");
    assert_true(spec_has(&s->seed.skipped_paths, "trick"));
}

static void row_018_a_link_in_the_workspace_is_not_followed_by_flush(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_put(s, "outside/secret", "secret");
    spec_link(s, "../outside/secret", "ws/steal.md");
    spec_link(s, "../outside", "ws/src");
    spec_link(s, "../outside/secret", "ws/unmatched.lnk");
    spec_put(s, "ws/ok.md", "ok");
    assert_int_equal(spec_ok(s, pinfold_sandbox_flush(s->sandbox, spec_at(s, "dest"), &s->sync,
                                                      NULL, &s->err)),
                     1);
    spec_is(s, "dest/ok.md", "ok");
    spec_missing(s, "dest/steal.md");
    spec_missing(s, "dest/src");
    spec_missing(s, "dest/unmatched.lnk");
    assert_true(spec_any_contains(&s->sync.errors, "steal.md"));
    assert_false(spec_any_contains(&s->sync.errors, "unmatched"));
    assert_int_equal(s->sync.files_synced, 1);
}

static void row_018_flush_does_not_write_through_links_of_the_destination(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_put(s, "outside/file", "untouched");
    spec_dir(s, "outside/dir");
    spec_link(s, "../outside/file", "dest/out.md");
    spec_link(s, "../outside/dir", "dest/src");
    spec_put(s, "ws/out.md", "evil");
    spec_put(s, "ws/src/a.c", "evil");
    spec_put(s, "ws/ok.md", "ok");
    assert_int_equal(spec_ok(s, pinfold_sandbox_flush(s->sandbox, spec_at(s, "dest"), &s->sync,
                                                      NULL, &s->err)),
                     1);
    spec_is(s, "outside/file", "untouched");
    assert_int_equal(spec_entries(s, "outside/dir"), 0);
    assert_int_equal(spec_entries(s, "outside"), 2);
    spec_is(s, "dest/ok.md", "ok");
    assert_true(spec_any_contains(&s->sync.errors, "src"));
    assert_true(spec_any_contains(&s->sync.errors, "out.md"));
    link_is(s, "dest/out.md", "../outside/file");
}

static void put_socket(struct spec *s, const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", spec_at(s, path));
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    close(fd);
}

static void row_019_special_files_are_skipped_and_hang_nothing(void **state)
{
    struct spec *s = *state;
    bool device;

    spec_put(s, "seed/ok", "ok");
    assert_int_equal(mkfifo(spec_at(s, "seed/fifo"), 0600), 0);
    put_socket(s, "seed/socket");
    device = mknod(spec_at(s, "seed/null"), S_IFCHR | 0600, makedev(1, 3)) == 0; /* root only */
    spec_start_seeded(s);
    assert_int_equal(s->seed.files_seeded, 1);
    assert_int_equal(s->seed.skipped_paths.count, 2 + device);
    assert_true(spec_has(&s->seed.skipped_paths, "fifo"));
    assert_true(spec_has(&s->seed.skipped_paths, "socket"));
    assert_int_equal(spec_entries(s, "ws"), 1);
    assert_int_equal(mkfifo(spec_at(s, "ws/fifo.py"), 0600), 0);
    spec_put(s, "ws/ok.py", "ok");
    spec_ok(s, pinfold_sandbox_flush(s->sandbox, spec_at(s, "dest"), &s->sync, NULL, &s->err));
    assert_int_equal(s->sync.files_synced, 1);
    spec_missing(s, "dest/fifo.py");
    spec_is(s, "dest/ok.py", "ok");
}

static mode_t mode_of(struct spec *s, const char *path)
{
    return spec_stat(s, path).st_mode & 07777;
}

static void row_020_permission_bits_travel_and_nothing_else(void **state)
{
    struct spec *s = *state;
    struct timespec past[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };
    bool chowned;

    spec_put(s, "seed/run.sh", "#!/bin/sh\n");
    spec_mode(s, "seed/run.sh", 0755);
    spec_put(s, "seed/private", "p");
    chowned = chown(spec_at(s, "seed/private"), 12345, 12345) == 0; /* root only */
    spec_mode(s, "seed/private", 0640);
    spec_put(s, "seed/suid", "s");
    spec_mode(s, "seed/suid", 06755);
    spec_put(s, "seed/readonly", "r");
    spec_mode(s, "seed/readonly", 0444);
    assert_int_equal(utimensat(AT_FDCWD, spec_at(s, "seed/run.sh"), past, 0), 0);
    spec_start_seeded(s);
    assert_int_equal(mode_of(s, "ws/run.sh"), 0755);
    assert_int_equal(mode_of(s, "ws/private"), 0640);
    assert_int_equal(mode_of(s, "ws/suid"), 0755);
    assert_int_equal(mode_of(s, "ws/readonly"), 0444);
    assert_true(spec_stat(s, "ws/run.sh").st_mtim.tv_sec > 1500000000);
    if (chowned)
        assert_int_equal(spec_stat(s, "ws/private").st_uid, geteuid());
    spec_put(s, "ws/tool.py", "t");
    spec_mode(s, "ws/tool.py", 04750);
    spec_flush(s);
    assert_int_equal(mode_of(s, "dest/tool.py"), 0750);
}

static void row_021_empty_directories_are_seeded_uncounted_and_not_flushed(void **state)
{
    struct spec *s = *state;

    spec_dir(s, "seed/empty/inner");
    spec_put(s, "seed/f", "f");
    spec_start_seeded(s);
    assert_int_equal(s->seed.files_seeded, 1);
    assert_true(S_ISDIR(spec_stat(s, "ws/empty/inner").st_mode));
    spec_dir(s, "ws/src/empty");
    spec_flush(s);
    assert_int_equal(spec_entries(s, "dest"), 0);
}

static void row_022_gitignore_is_an_ordinary_file(void **state)
{
    struct spec *s = *state;

    spec_put(s, "seed/.gitignore", "*.py\nkept\n");
    spec_put(s, "seed/a.py", "a");
    spec_put(s, "seed/kept", "k");
    spec_start_seeded(s);
    assert_int_equal(s->seed.files_seeded, 3);
    spec_is(s, "ws/.gitignore", "*.py\nkept\n");
    spec_flush(s);
    spec_is(s, "dest/a.py", "a");
}

static void row_023_one_entry_for_a_pruned_directory_and_one_for_a_file(void **state)
{
    struct spec *s = *state;

    spec_put(s, "seed/node_modules/a/b/c", "x");
    spec_put(s, "seed/node_modules/d", "x");
    spec_put(s, "seed/sub/node_modules/d", "x");
    spec_put(s, "seed/.env", "x");
    spec_put(s, "seed/b.pem", "x");
    spec_put(s, "seed/a.pem", "x");
    spec_start_seeded(s);
    assert_int_equal(s->seed.skipped_paths.count, 5);
    assert_string_equal(s->seed.skipped_paths.items[0], ".env"); /* sorted bytewise */
    assert_string_equal(s->seed.skipped_paths.items[1], "a.pem");
    assert_string_equal(s->seed.skipped_paths.items[2], "b.pem");
    assert_string_equal(s->seed.skipped_paths.items[3], "node_modules/");
    assert_string_equal(s->seed.skipped_paths.items[4], "sub/node_modules/");
}

static void row_024_bytes_seeded_is_the_sum_of_what_was_written(void **state)
{
    struct spec *s = *state;

    spec_put(s, "seed/a", "12345");
    spec_put(s, "seed/d/b", "678");
    spec_put(s, "seed/empty", "");
    spec_put(s, "seed/.env", "not counted");
    spec_link(s, "a", "seed/link");
    spec_start_seeded(s);
    assert_int_equal(s->seed.bytes_seeded, 8);
    assert_int_equal(s->seed.files_seeded >= 3, 1);
}

static void row_025_errors_of_seeding_fail_the_start_after_the_whole_walk(void **state)
{
    struct spec *s = *state;
    struct pinfold_sandbox_options options = spec_options(s);
    char *owner = NULL;

    spec_put(s, "seed/clash", "a file");
    spec_put(s, "seed/aa", "before");
    spec_put(s, "seed/zz", "after");
    spec_put_before_seed(s, "ws/clash/inner", "a directory"); /* a file cannot replace it */
    options.backend = s->backend;
    options.seed_from = spec_at(s, "seed");
    spec_new(s, &options);
    spec_refuses(s, PINFOLD_EPREPARE, pinfold_sandbox_start(s->sandbox, &s->seed, NULL, &s->err));
    assert_non_null(strstr(s->err.msg, "clash"));
    assert_int_equal(s->seed.errors.count, 1);
    assert_non_null(strstr(s->seed.errors.items[0], "clash"));
    assert_int_equal(s->seed.files_seeded, 2);
    if (!spec_lacks("host directory")) { /* which outlives a start that failed */
        spec_is(s, "ws/aa", "before");
        spec_is(s, "ws/zz", "after");
        spec_is(s, "ws/clash/inner", "a directory");
    }
    assert_false(pinfold_sandbox_is_started(s->sandbox));
    spec_ok(s, pinfold_sandbox_owner_id(s->sandbox, &owner, &s->err));
    assert_null(owner);
    spec_refuses(s, PINFOLD_ESTART,
                 pinfold_sandbox_read_file(s->sandbox, "aa", &s->text, NULL, &s->err));

    /* The claim is free again: another takes the workspace. */
    options.seed_from = NULL;
    spec_ok(s, pinfold_sandbox_new(&options, &s->other, &s->err));
    spec_ok(s, pinfold_sandbox_start(s->other, NULL, NULL, &s->err));
}

static void row_026_errors_of_the_flush_come_after_the_teardown(void **state)
{
    struct spec *s = *state;
    struct pinfold_sandbox_options options = spec_options(s);

    options.sync_dest = spec_at(s, "dest");
    spec_start(s, &options);
    spec_put(s, "ws/a.py", "a");
    spec_put(s, "ws/b.py", "b");
    spec_put(s, "dest/a.py/inner", "a directory in the way");
    spec_refuses(s, PINFOLD_EPREPARE,
                 pinfold_sandbox_stop(s->sandbox, true, &s->sync, NULL, &s->err));
    assert_int_equal(s->sync.errors.count, 1);
    assert_non_null(strstr(s->sync.errors.items[0], "a.py"));
    assert_int_equal(s->sync.files_synced, 1);
    spec_is(s, "dest/b.py", "b");
    spec_is(s, "dest/a.py/inner", "a directory in the way");
    assert_false(pinfold_sandbox_is_started(s->sandbox));
    spec_ok(s, pinfold_sandbox_new(&options, &s->other, &s->err));
    spec_ok(s, pinfold_sandbox_start(s->other, NULL, NULL, &s->err)); /* the claim is free */
}

static void row_027_flush_called_directly_returns_its_errors(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_put(s, "ws/a.py", "a");
    spec_put(s, "ws/b.py", "b");
    spec_put(s, "dest/a.py/inner", "in the way");
    assert_int_equal(spec_ok(s, pinfold_sandbox_flush(s->sandbox, spec_at(s, "dest"), &s->sync,
                                                      NULL, &s->err)),
                     1);
    assert_int_equal(s->sync.errors.count, 1);
    assert_int_equal(s->sync.files_synced, 1);
    assert_true(pinfold_sandbox_is_started(s->sandbox));
}

/* Whatever backend it is, and wherever the files are compared. */
static void row_027_a_plan_says_of_each_path_what_a_flush_would_do(void **state)
{
    static const struct {
        const char *path;
        enum pinfold_plan_action action;
        const char *reason;
    } wanted[] = {
        { ".env", PINFOLD_PLAN_SKIP, "excluded by a pattern" },
        { "Makefile", PINFOLD_PLAN_SKIP, "not matched by an include pattern" },
        { "a.py", PINFOLD_PLAN_COPY, "" },
        { "deep/other/x.c", PINFOLD_PLAN_SKIP, "not matched by an include pattern" },
        { "deep/other/y.py", PINFOLD_PLAN_COPY, "" },
        { "node_modules/", PINFOLD_PLAN_SKIP, "excluded by a pattern" },
        { "same.py", PINFOLD_PLAN_IDENTICAL, "the same bytes are there already" },
        { "src/.env", PINFOLD_PLAN_SKIP, "excluded by a pattern" },
        { "src/main.c", PINFOLD_PLAN_OVERWRITE, "" },
    };
    static const char *const files[] = { ".env",           "Makefile",        "a.py",
                                         "deep/other/x.c", "deep/other/y.py", "node_modules/d/x.py",
                                         "same.py",        "src/.env",        "src/main.c" };
    struct spec *s = *state;
    struct pinfold_plan plan = { 0 };
    char path[64];

    spec_start_plain(s);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "ws/%s", files[i]);
        spec_put(s, path, "text");
    }
    spec_put(s, "dest/same.py", "text");
    spec_put(s, "dest/src/main.c", "other");
    assert_int_equal(spec_ok(s, pinfold_sandbox_plan_flush(s->sandbox, spec_at(s, "dest"), &plan,
                                                           NULL, &s->err)),
                     1);
    for (size_t i = 0; i < plan.count && i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        assert_string_equal(plan.items[i].path, wanted[i].path);
        assert_string_equal(plan.items[i].reason, wanted[i].reason);
        assert_int_equal(plan.items[i].action, wanted[i].action);
    }
    assert_int_equal(plan.count, sizeof(wanted) / sizeof(wanted[0]));
    assert_int_equal(plan.files, 3);
    pinfold_plan_done(&plan);
}

struct watch {
    char path[256];
    atomic_bool stop;
    atomic_int broken, seen;
    size_t len;
};

/* Reads a file again and again: it must always be whole, and all of one letter. */
static void *watch_file(void *arg)
{
    struct watch *watch = arg;
    char *text = malloc(watch->len + 1);

    while (text && !atomic_load(&watch->stop)) {
        int fd = open(watch->path, O_RDONLY | O_CLOEXEC);
        size_t len = 0;
        ssize_t n;
        if (fd < 0)
            continue; /* not there yet */
        while ((n = read(fd, text + len, watch->len + 1 - len)) > 0)
            len += (size_t)n;
        close(fd);
        bool whole = len == watch->len && memcmp(text, text + 1, len - 1) == 0;
        atomic_fetch_add(whole ? &watch->seen : &watch->broken, 1);
    }
    free(text);
    return NULL;
}

static void row_028_a_reader_never_sees_half_a_file(void **state)
{
    struct spec *s = *state;
    struct watch watch = { .len = 1000000 };
    char *text = malloc(watch.len);
    pthread_t thread;

    assert_non_null(text);
    snprintf(watch.path, sizeof(watch.path), "%s", spec_at(s, "dest/big.py"));
    spec_start_plain(s);
    assert_int_equal(pthread_create(&thread, NULL, watch_file, &watch), 0);
    for (int i = 0; i < 30 || (atomic_load(&watch.seen) == 0 && i < 3000); i++) {
        memset(text, 'a' + i % 26, watch.len);
        spec_put_bytes(s, "ws/big.py", text, watch.len);
        spec_flush(s);
    }
    atomic_store(&watch.stop, true);
    pthread_join(thread, NULL);
    free(text);
    assert_int_equal(atomic_load(&watch.broken), 0);
    assert_true(atomic_load(&watch.seen) > 0);
    assert_int_equal(spec_entries(s, "dest"), 1); /* no temporary name is left */
}

static void row_028_a_file_that_is_open_keeps_its_old_content(void **state)
{
    struct spec *s = *state;
    char text[16] = "";
    int fd;

    spec_put(s, "ws/a", "old");
    spec_put(s, "seed/a", "new");
    fd = open(spec_at(s, "ws/a"), O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    spec_start_seeded(s);
    assert_int_equal(read(fd, text, sizeof(text)), 3);
    close(fd);
    assert_string_equal(text, "old");
    spec_is(s, "ws/a", "new");
    assert_int_equal(spec_entries(s, "ws"), 1);
}

static void row_030_names_are_bytes_and_none_are_merged(void **state)
{
    struct spec *s = *state;
    struct pinfold_file_infos infos = { 0 };

    spec_put(s, "seed/bad\xff", "one");
    spec_put(s, "seed/bad\xfe", "two");
    spec_put(s, "seed/\xe2\x82", "half a character");
    spec_start_seeded(s);
    assert_int_equal(s->seed.files_seeded, 3);
    spec_is(s, "ws/bad\xff", "one");
    spec_is(s, "ws/bad\xfe", "two");
    spec_is(s, "ws/\xe2\x82", "half a character");
    spec_ok(s, pinfold_sandbox_list_dir(s->sandbox, ".", &infos, NULL, &s->err));
    assert_int_equal(infos.count, 3);
    assert_string_equal(infos.items[0].path, "bad\xfe"); /* sorted bytewise */
    assert_string_equal(infos.items[1].path, "bad\xff");
    assert_string_equal(infos.items[2].path, "\xe2\x82");
    pinfold_file_infos_done(&infos);
}

static void row_030_a_name_that_is_not_utf8_can_be_used_and_is_shown_escaped(void **state)
{
    struct spec *s = *state;

    spec_start_plain(s);
    spec_ok(s, pinfold_sandbox_write_file(s->sandbox, "x\xff.py", "x", 1, NULL, &s->err));
    assert_string_equal(spec_event(s, "sandbox.write_file")->path, "x\\xff.py");
    spec_ok(s, pinfold_sandbox_read_file(s->sandbox, "x\xff.py", &s->text, NULL, &s->err));
    assert_string_equal(s->text.data, "x");
    spec_flush(s);
    spec_is(s, "dest/x\xff.py", "x");
    pinfold_bytes_done(&s->text);
    spec_refuses(s, PINFOLD_EOS,
                 pinfold_sandbox_read_file(s->sandbox, "no\xff", &s->text, NULL, &s->err));
    assert_non_null(strstr(s->err.msg, "no\\xff"));
}

static void row_031_a_seed_that_is_missing_or_no_directory_fails_the_start(void **state)
{
    struct spec *s = *state;
    struct pinfold_sandbox_options options = spec_options(s);

    options.seed_from = spec_at(s, "missing");
    spec_new(s, &options);
    spec_refuses(s, PINFOLD_EPREPARE, pinfold_sandbox_start(s->sandbox, NULL, NULL, &s->err));
    assert_non_null(strstr(s->err.msg, "missing"));
    assert_false(pinfold_sandbox_is_started(s->sandbox));
    spec_put(s, "file", "f");
    options.seed_from = spec_at(s, "file");
    spec_new(s, &options);
    spec_refuses(s, PINFOLD_EPREPARE, pinfold_sandbox_start(s->sandbox, NULL, NULL, &s->err));
    assert_non_null(strstr(s->err.msg, "file"));
    spec_dir(s, "missing"); /* the other way round: it may come into being before start */
    options.seed_from = spec_at(s, "missing");
    spec_start(s, &options);
}

static void row_031_a_relative_seed_is_resolved_when_the_sandbox_is_made(void **state)
{
    struct spec *s = *state;
    struct pinfold_sandbox_options options = spec_options(s);
    int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

    assert_true(here >= 0);
    spec_put(s, "seed/a", "a");
    options.seed_from = "seed";
    assert_int_equal(chdir(s->dir), 0);
    int r = pinfold_sandbox_new(&options, &s->sandbox, &s->err);
    assert_int_equal(fchdir(here), 0);
    close(here);
    assert_int_equal(r, 0);
    spec_ok(s, pinfold_sandbox_start(s->sandbox, &s->seed, NULL, &s->err));
    spec_is(s, "ws/a", "a");
}

static void row_031_a_tilde_is_the_home_directory(void **state)
{
    struct spec *s = *state;
    struct pinfold_sandbox_options options = spec_options(s);
    char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;

    spec_put(s, "seed/a", "a");
    options.seed_from = "~/seed";
    setenv("HOME", s->dir, 1);
    int r = pinfold_sandbox_new(&options, &s->sandbox, &s->err);
    if (home)
        setenv("HOME", home, 1);
    else
        unsetenv("HOME");
    free(home);
    assert_int_equal(r, 0);
    spec_ok(s, pinfold_sandbox_start(s->sandbox, &s->seed, NULL, &s->err));
    spec_is(s, "ws/a", "a");
}

static void row_032_a_large_file_is_never_held_in_memory(void **state)
{
    enum { SIZE = 256 << 20, ALLOWED_KIB = 64 << 10 };
    struct spec *s = *state;
    struct rusage before, after;
    int fd = open(spec_at(s, "seed/big.py"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    char last = 0;

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "first", 5, 0), 5);
    assert_int_equal(pwrite(fd, "z", 1, SIZE - 1), 1); /* a hole between */
    close(fd);
    getrusage(RUSAGE_SELF, &before);
    spec_start_seeded(s);
    spec_flush(s);
    getrusage(RUSAGE_SELF, &after);
    assert_int_equal(s->seed.files_seeded, 1);
    assert_int_equal(spec_stat(s, "ws/big.py").st_size, SIZE);
    assert_int_equal(spec_stat(s, "dest/big.py").st_size, SIZE);
    fd = open(spec_at(s, "dest/big.py"), O_RDONLY | O_CLOEXEC);
    assert_int_equal(pread(fd, &last, 1, SIZE - 1), 1);
    close(fd);
    assert_int_equal(last, 'z');
    assert_true(after.ru_maxrss - before.ru_maxrss < ALLOWED_KIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SPEC_TEST(row_017_links_that_stay_inside_are_recreated),
        SPEC_TEST(row_017_links_that_leave_the_seed_are_skipped_and_listed),
        SPEC_TEST(row_017_a_link_that_leaves_the_seed_by_way_of_another_is_skipped),
        SPEC_TEST(row_018_a_link_in_the_workspace_is_not_followed_by_flush),
        SPEC_TEST(row_018_flush_does_not_write_through_links_of_the_destination),
        SPEC_TEST(row_019_special_files_are_skipped_and_hang_nothing),
        SPEC_TEST(row_020_permission_bits_travel_and_nothing_else),
        SPEC_TEST(row_021_empty_directories_are_seeded_uncounted_and_not_flushed),
        SPEC_TEST(row_022_gitignore_is_an_ordinary_file),
        SPEC_TEST(row_023_one_entry_for_a_pruned_directory_and_one_for_a_file),
        SPEC_TEST(row_024_bytes_seeded_is_the_sum_of_what_was_written),
        SPEC_TEST(row_025_errors_of_seeding_fail_the_start_after_the_whole_walk),
        SPEC_TEST(row_026_errors_of_the_flush_come_after_the_teardown),
        SPEC_TEST(row_027_flush_called_directly_returns_its_errors),
        SPEC_TEST(row_027_a_plan_says_of_each_path_what_a_flush_would_do),
        SPEC_TEST(row_028_a_reader_never_sees_half_a_file),
        SPEC_TEST(row_028_a_file_that_is_open_keeps_its_old_content),
        SPEC_TEST(row_030_names_are_bytes_and_none_are_merged),
        SPEC_TEST(row_030_a_name_that_is_not_utf8_can_be_used_and_is_shown_escaped),
        SPEC_TEST(row_031_a_seed_that_is_missing_or_no_directory_fails_the_start),
        SPEC_TEST(row_031_a_relative_seed_is_resolved_when_the_sandbox_is_made),
        SPEC_TEST(row_031_a_tilde_is_the_home_directory),
        SPEC_TEST(row_032_a_large_file_is_never_held_in_memory),
    };

    return spec_run_tests("rows 17-32", tests);
}

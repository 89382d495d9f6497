/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the specification's rows share: a directory of their own, trees in it, one
 * sandbox on a local backend, and a record of its audit. They use the public headers alone.
 *
 * Inside the directory "ws" is the workspace root; "seed" and "dest" are for the host's side.
 */
#ifndef TESTS_SPEC_SPEC_H
#define TESTS_SPEC_SPEC_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <pinfold/pinfold.h>

/* One audit event, copied. Empty text stands for what does not apply. */
struct spec_event {
    char event[32], path[256], dest[256], cwd[256], error[64], agent_id[64], mode[16], view[64];
    char sha256[72], inferred_op[64], owner_id[128], workspace_id[300], backend_type[64];
    int64_t command_len, duration_ns, files, bytes, errors;
    int exit_code, truncated, timed_out;
    char *json;
};

struct spec {
    char dir[64];
    struct pinfold_backend *backend; /* local, on "ws"; not yet created */
    struct pinfold_backend *below;   /* the one whose state a changed backend uses */
    struct pinfold_sandbox *sandbox; /* NULL before spec_new() or spec_start() */
    struct pinfold_sandbox *other;   /* a second one, for tests of two; freed by the teardown */
    struct pinfold_manager *manager; /* likewise for tests that need one */
    struct pinfold_seed_result seed;
    struct pinfold_sync_result sync;
    struct pinfold_execute_result run;
    struct pinfold_bytes text;
    struct pinfold_strings paths;
    struct pinfold_error err;
    struct spec_event events[128];
    size_t event_count;
    struct {
        const char *path, *text;
    } before_seed[8];
    dev_t overlay_dev; /* of the last overlay that was seen; 0: none */
};

/* cmocka fixtures: *state is a struct spec. */
int spec_setup(void **state);
int spec_teardown(void **state);
#define SPEC_TEST(function) cmocka_unit_test_setup_teardown(function, spec_setup, spec_teardown)

/* As cmocka_run_group_tests_name(), without the tests that the backend cannot pass. */
int spec_run_group(const char *name, const struct CMUnitTest *tests, size_t count);
#define spec_run_tests(name, tests) spec_run_group(name, tests, sizeof(tests) / sizeof((tests)[0]))
/* Whether the backend is said not to have something: capabilities.c has the list. */
bool spec_lacks(const char *capability);
/* How often to try what may go wrong only sometimes: fewer times where each takes a request. */
int spec_rounds(int usual);
/* type_name of the backends that spec_local() makes. */
const char *spec_backend_type(void);

/* The call must succeed (0 or more), or fail with exactly this code and say something. Both want
 * &s->err as its error. */
#define spec_ok(s, call) \
    ((s)->err = (struct pinfold_error)PINFOLD_ERROR_INIT, spec_check_ok(s, call, #call, __LINE__))
#define spec_refuses(s, code, call)                       \
    ((s)->err = (struct pinfold_error)PINFOLD_ERROR_INIT, \
     spec_check_refused(s, code, call, #call, __LINE__))
int spec_check_ok(struct spec *s, int r, const char *call, int line);
void spec_check_refused(struct spec *s, enum pinfold_code code, int r, const char *call, int line);

/* Whether the tests run on the isolated backend (PINFOLD_SPEC_BACKEND=isolated, or =overlay: with
 * overlay seeding) instead of the local one; and the name that commands know a path under "ws" by,
 * valid until the next call. */
bool spec_is_isolated(void);
bool spec_is_overlay(void);
const char *spec_inside(struct spec *s, const char *path);
/* The same with every link resolved. */
const char *spec_real(struct spec *s, const char *path);
unsigned spec_lines(const struct spec *s); /* how many the last command wrote to stdout */

/* Put a file into the workspace before the seed comes: now, or, where there is no workspace yet,
 * when the backend is about to be seeded. */
void spec_put_before_seed(struct spec *s, const char *path, const char *text);

/* Trees. Paths are relative to s->dir; parents are made. */
const char *spec_at(struct spec *s, const char *path); /* absolute; the last 8 stay valid */
void spec_dir(struct spec *s, const char *path);
void spec_put(struct spec *s, const char *path, const char *text);
void spec_put_bytes(struct spec *s, const char *path, const void *data, size_t len);
void spec_link(struct spec *s, const char *target, const char *path);
void spec_mode(struct spec *s, const char *path, mode_t mode);
bool spec_exists(struct spec *s, const char *path); /* without following a final link */
void spec_is(struct spec *s, const char *path, const char *text);
void spec_is_bytes(struct spec *s, const char *path, const void *data, size_t len);
void spec_missing(struct spec *s, const char *path);
struct stat spec_stat(struct spec *s, const char *path); /* lstat */
unsigned spec_entries(struct spec *s, const char *path); /* how many a directory has */

/* The sandbox. spec_options(): id "spec", s->backend, one hour, audit into s. */
struct pinfold_sandbox_options spec_options(struct spec *s);
void spec_local(struct spec *s, const struct pinfold_local_options *options); /* s->backend anew */
void spec_new(struct spec *s, const struct pinfold_sandbox_options *options);
void spec_start(struct spec *s, const struct pinfold_sandbox_options *options); /* new and start */
void spec_start_plain(struct spec *s);                                          /* no seed */
void spec_start_seeded(struct spec *s); /* from "seed", which is also the destination */
void spec_flush(struct spec *s);        /* to "dest"; the result is s->sync, without errors */
void spec_stop(struct spec *s);         /* without sync */

/* Run a command to its end, in at most a minute unless the options say otherwise; the result is
 * s->run. */
void spec_run(struct spec *s, const char *command);
void spec_run_with(struct spec *s, const struct pinfold_execute_options *options);

/* Options of a command for the shell, which may be NULL, and of how many seconds it has. */
struct pinfold_execute_options spec_shell(const char *command, double timeout);

/* A command that runs beside the test: spec_call() is for a thread of its own, which gets the call
 * as its argument. */
struct spec_call {
    struct spec *s;
    struct pinfold_execute_options options;
    struct pinfold_cancel *cancel;
    struct pinfold_execute_result result; /* the test's to free */
    struct pinfold_error err;
    int r;
};
void *spec_call(void *call);

void spec_stdout_is(struct spec *s, const char *text);
void spec_stderr_is(struct spec *s, const char *text);

bool spec_has(const struct pinfold_strings *list, const char *text);
bool spec_any_contains(const struct pinfold_strings *list, const char *part);

/* A private copy of the backend's table over the same state, to change and make a backend of with
 * pinfold_backend_new(). s->backend must outlive it, and *table must be static. */
void spec_copy_table(struct spec *s, struct pinfold_backend_ops *table);

/* Processes. A pid file is waited for. */
pid_t spec_pid(struct spec *s, const char *path);
bool spec_alive(struct spec *s, pid_t pid);     /* runs, or is at least not reaped */
bool spec_gone_soon(struct spec *s, pid_t pid); /* waits */
void spec_wait_for(struct spec *s, const char *path);
void spec_sleep(double seconds);

/* The last event of this name, or NULL; how many there are. */
const struct spec_event *spec_event(struct spec *s, const char *name);
unsigned spec_event_count(struct spec *s, const char *name);

#endif

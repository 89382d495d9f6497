/* SPDX-License-Identifier: Apache-2.0 */
/* A workspace of Daytona's for each test, and the controls of the fake service that runs beside the
 * test (tests/daytona/with_fake.py). Include after cmocka.h. */
#ifndef TESTS_BACKEND_DAYTONA_RIG_H
#define TESTS_BACKEND_DAYTONA_RIG_H

#include <jansson.h>
#include <pinfold/daytona.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "fake_service.h"

static struct fixture {
    struct pinfold_backend *template, *backend;
    const struct pinfold_backend_ops *ops;
    struct pinfold_execute_result run;
    struct pinfold_error err;
} f;

#define OK(call) ok((call), #call, __LINE__)

static inline int ok(int r, const char *what, int line)
{
    if (r < 0)
        fail_msg("line %d: %s: %s: %s", line, what, pinfold_code_name(r), f.err.msg);
    return r;
}

static inline json_t *control(const char *method, const char *what, const char *body)
{
    char url[200];

    snprintf(url, sizeof(url), "%s/%s", getenv("PINFOLD_DAYTONA_CONTROL"), what);
    return ask_service(method, url, body);
}

static inline void tell(const char *what, const char *json)
{
    json_decref(control("POST", what, json));
}

static inline json_int_t count_of(const char *operation)
{
    json_t *counts = control("GET", "counts", NULL);
    json_int_t n = json_integer_value(json_object_get(counts, operation));

    json_decref(counts);
    return n;
}

/* How many sandboxes there are that are not on their way out. */
static inline unsigned sandboxes(void)
{
    json_t *all = control("GET", "sandboxes", NULL);
    const json_t *one;
    unsigned count = 0;
    size_t i;

    json_array_foreach(all, i, one) {
        const char *state = json_string_value(json_object_get(one, "state"));
        count += strcmp(state, "destroyed") != 0 && strcmp(state, "destroying") != 0;
    }
    json_decref(all);
    return count;
}

/* ---- a sandbox for each test ---- */

static inline struct pinfold_daytona_options options_for_tests(void)
{
    static const char *const env[] = { "FROM_BACKEND=yes", NULL };
    struct pinfold_daytona_options options = PINFOLD_DAYTONA_OPTIONS_INIT;

    options.env = env;
    options.create_timeout_seconds = 50;
    return options;
}

static inline struct pinfold_backend *build(struct pinfold_backend *template, const char *workspace)
{
    struct pinfold_backend *backend;

    OK(template->ops->build_for_session(template->state, workspace, &backend, &f.err));
    return backend;
}

static inline void make(const struct pinfold_daytona_options *options)
{
    OK(pinfold_daytona_template_new(options, &f.template, &f.err));
    f.backend = build(f.template, "test/one");
    f.ops = f.backend->ops;
}

static inline int set_up_only(void **state)
{
    struct pinfold_daytona_options options = options_for_tests();

    tell("reset", "{}");
    make(&options);
    *state = &f;
    return 0;
}

static inline int set_up(void **state)
{
    set_up_only(state);
    OK(pf_backend_create(f.backend, NULL, &f.err));
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    pinfold_execute_result_done(&f.run);
    OK(pf_backend_close(f.backend, &f.err));
    pinfold_backend_unref(f.backend);
    pinfold_backend_unref(f.template);
    assert_int_equal(sandboxes(), 0);
    return 0;
}

static inline int run(const char *command)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;

    pinfold_execute_result_done(&f.run);
    f.err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    options.command = command;
    return f.ops->execute(f.backend->state, &options, &f.run, NULL, &f.err);
}

static inline void says(const char *command, const char *out, const char *errs, int status)
{
    OK(run(command));
    if (f.run.stdout_len != strlen(out) || memcmp(f.run.output, out, strlen(out)) != 0)
        fail_msg("%s: stdout is \"%s\"", command, f.run.output);
    if (strcmp(f.run.stderr_text, errs) != 0)
        fail_msg("%s: stderr is \"%s\"", command, f.run.stderr_text);
    assert_int_equal(f.run.exit_code, status);
}

static inline void writes(const char *path, const char *text)
{
    f.err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    OK(f.ops->write_file(f.backend->state, path, text, strlen(text), false, NULL, &f.err));
}

static inline void reads(const char *path, const char *text)
{
    struct pinfold_bytes bytes = { 0 };

    f.err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    OK(f.ops->read_file(f.backend->state, path, &bytes, NULL, &f.err));
    assert_string_equal(bytes.data, text);
    pinfold_bytes_done(&bytes);
}

#define WITH_SANDBOX(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define WITHOUT(test) cmocka_unit_test_setup_teardown(test, set_up_only, tear_down)

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the backend: the fake service, and a session of it for each test. Include after
 * cmocka.h. */
#ifndef TESTS_BACKEND_AGENTCORE_FIXTURE_H
#define TESTS_BACKEND_AGENTCORE_FIXTURE_H

#include <fcntl.h>
#include <jansson.h>
#include <pinfold/agentcore.h>
#include <pinfold/temp_workspace.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/backend.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "descriptors.h"
#include "fake_service.h"

static struct fixture {
    struct fake_service fake;
    struct pinfold_temp_workspace *temp; /* the host's side */
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

/* ---- the fake ---- */

static inline int start_fake(void **state)
{
    (void)state;
    setenv("no_proxy", "127.0.0.1", 1);
    return start_service(&f.fake, "PINFOLD_FAKE_AGENTCORE");
}

static inline int end_fake(void **state)
{
    (void)state;
    end_service(&f.fake);
    return 0;
}

static inline json_t *control(const char *method, const char *what, const char *body)
{
    char url[200];

    snprintf(url, sizeof(url), "%s/_fake/%s", f.fake.endpoint, what);
    return ask_service(method, url, body);
}

static inline void fault(const char *json)
{
    json_decref(control("POST", "faults", json));
}

static inline json_int_t tool_runs(const char *tool)
{
    json_t *counts = control("GET", "counts", NULL);
    json_int_t n = json_integer_value(json_object_get(json_object_get(counts, "ran"), tool));

    json_decref(counts);
    return n;
}

/* ---- a session for each test ---- */

/* long_commands: as tasks. */
static inline int set_up_with(void **state, bool long_commands)
{
    struct pinfold_agentcore_options options = PINFOLD_AGENTCORE_OPTIONS_INIT;
    const char *const env[] = { "FROM_BACKEND=yes", NULL };

    options.long_commands = long_commands;
    options.region = "us-west-2";
    options.access_key = "AKIAFAKEFAKEFAKEFAKE";
    options.secret_key = "fakeSecretKey/Example+0123456789ABCDEFGH";
    options.endpoint = f.fake.endpoint;
    options.env = env;
    OK(pinfold_temp_workspace_new(&f.temp, &f.err));
    OK(pinfold_agentcore_template_new(&options, &f.template, &f.err));
    OK(f.template->ops->build_for_session(f.template->state, "test/one", &f.backend, &f.err));
    f.ops = f.backend->ops;
    OK(pf_backend_create(f.backend, NULL, &f.err));
    *state = &f;
    return 0;
}

static inline int set_up(void **state)
{
    return set_up_with(state, false);
}

static inline int tear_down(void **state)
{
    (void)state;
    pinfold_execute_result_done(&f.run);
    OK(pf_backend_close(f.backend, &f.err));
    pinfold_backend_unref(f.backend);
    pinfold_backend_unref(f.template);
    pinfold_temp_workspace_free(f.temp, NULL);
    json_decref(control("POST", "reset", "{}"));
    return 0;
}

static inline const char *at_host(const char *path)
{
    static char slots[4][500];
    static unsigned next;
    char *slot = slots[next++ % 4];

    snprintf(slot, 500, "%s/%s", pinfold_temp_workspace_path(f.temp), path);
    return slot;
}

static inline int run_options(const struct pinfold_execute_options *options,
                              struct pinfold_cancel *cancel)
{
    pinfold_execute_result_done(&f.run);
    f.err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    return f.ops->execute(f.backend->state, options, &f.run, cancel, &f.err);
}

static inline int run_in(const char *command, const char *cwd)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;

    options.command = command;
    options.cwd = cwd;
    return run_options(&options, NULL);
}

static inline void says(const char *command, const char *out, const char *errs, int status)
{
    OK(run_in(command, NULL));
    if (f.run.stdout_len != strlen(out) || memcmp(f.run.output, out, strlen(out)) != 0)
        fail_msg("%s: stdout is \"%s\"", command, f.run.output);
    if (strcmp(f.run.stderr_text, errs) != 0)
        fail_msg("%s: stderr is \"%s\"", command, f.run.stderr_text);
    assert_int_equal(f.run.exit_code, status);
}

static inline int write_text(const char *path, const char *text, bool exclusive)
{
    f.err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    return f.ops->write_file(f.backend->state, path, text, strlen(text), exclusive, NULL, &f.err);
}

static inline void reads(const char *path, const void *data, size_t len)
{
    struct pinfold_bytes bytes = { 0 };

    OK(f.ops->read_file(f.backend->state, path, &bytes, NULL, &f.err));
    assert_int_equal(bytes.len, len);
    assert_memory_equal(bytes.data, data, len);
    pinfold_bytes_done(&bytes);
}

static inline int read_code(const char *path)
{
    struct pinfold_bytes bytes = { 0 };

    f.err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    return f.ops->read_file(f.backend->state, path, &bytes, NULL, &f.err);
}

/* Wait until the service is busy with a call. */
static inline void await_call(void)
{
    json_int_t calls = 0;

    while (calls < 1) {
        json_t *sessions = control("GET", "sessions", NULL);
        const json_t *session;
        size_t i;
        json_array_foreach(sessions, i, session) {
            calls += json_integer_value(json_object_get(session, "calls"));
        }
        json_decref(sessions);
        usleep(20000);
    }
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A fake of a service (tests/agentcore, daytona, models), in a process of its own, and what it is
 * asked. Include after cmocka.h. */
#ifndef TESTS_FAKE_SERVICE_H
#define TESTS_FAKE_SERVICE_H

#include <fcntl.h>
#include <jansson.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/http.h"

struct fake_service {
    pid_t pid;
    int leash; /* its standard input: it ends with it */
    char endpoint[100];
};

/* Start the one whose path is in this variable. Returns 0, or -1 when it has said why not. */
static inline int start_service(struct fake_service *ret, const char *variable)
{
    char *argv[] = { (char[]){ "/usr/bin/python3" }, getenv(variable), (char[]){ "--leash" },
                     NULL };
    posix_spawn_file_actions_t actions;
    int in[2], out[2];
    char line[1000] = "";
    json_t *said;
    FILE *from;

    if (!argv[1]) {
        print_message("%s does not name the fake\n", variable);
        return -1;
    }
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    assert_int_equal(posix_spawn(&ret->pid, argv[0], &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    ret->leash = in[1];
    from = fdopen(out[0], "re");
    if (!fgets(line, sizeof(line), from)) {
        print_message("the fake did not start\n");
        return -1;
    }
    fclose(from);
    said = json_loads(line, 0, NULL);
    snprintf(ret->endpoint, sizeof(ret->endpoint), "%s",
             json_string_value(json_object_get(said, "endpoint")));
    json_decref(said);
    return 0;
}

static inline void end_service(const struct fake_service *service)
{
    int status;

    close(service->leash);
    assert_int_equal(waitpid(service->pid, &status, 0), service->pid);
}

/* Tell a fake something, or ask it. body may be NULL. The caller owns the answer. */
static inline json_t *ask_service(const char *method, const char *url, const char *body)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pf_http *http;
    struct pf_http_response response;
    struct pf_http_request request = { .method = method,
                                       .url = url,
                                       .body = body,
                                       .body_len = body ? strlen(body) : 0,
                                       .bypass_proxy = true,
                                       .deadline = pf_clock_deadline(60 * PF_NS_PER_SEC),
                                       .response_max = 10000000 };
    json_t *answer;

    assert_int_equal(pf_http_new(NULL, &http, NULL), 0);
    if (pf_http_perform(http, &request, &response, NULL, &err) < 0)
        fail_msg("%s: %s", url, err.msg);
    if (response.status != 200)
        fail_msg("%s: %d %s", url, response.status, response.body.data);
    answer = json_loads(response.body.data, 0, NULL);
    pf_http_response_done(&response);
    pf_http_free(http);
    assert_non_null(answer);
    return answer;
}

#endif

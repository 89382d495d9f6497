/* SPDX-License-Identifier: Apache-2.0 */
/* A session of AgentCore from its start to its end, for test_agentcore_faults.py: the endpoint is
 * the argument. Ends with 0 when all went well, with 1 and a message when a call failed, and with 2
 * when something came out wrong. */
#include <pinfold/agentcore.h>
#include <stdio.h>
#include <string.h>

#include "backend/backend.h"

static int check(struct pinfold_backend *backend, struct pinfold_error *err)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_execute_result result = { 0 };
    struct pinfold_bytes bytes = { 0 };
    int r = backend->ops->write_file(backend->state, "x", "text", 4, false, NULL, err);

    options.command = "cat x; exit 3";
    if (r == 0)
        r = backend->ops->execute(backend->state, &options, &result, NULL, err);
    if (r == 0 && (result.exit_code != 3 || result.stdout_bytes != 4))
        r = 2;
    if (r == 0)
        r = backend->ops->read_file(backend->state, "x", &bytes, NULL, err);
    if (r == 0 && (bytes.len != 4 || memcmp(bytes.data, "text", 4) != 0))
        r = 2;
    pinfold_bytes_done(&bytes);
    pinfold_execute_result_done(&result);
    return r;
}

int main(int argc, char **argv)
{
    struct pinfold_agentcore_options options = PINFOLD_AGENTCORE_OPTIONS_INIT;
    struct pinfold_backend *template = NULL, *backend = NULL;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    int r, closed = 0;

    options.region = "us-west-2";
    options.access_key = "AKIAFAKEFAKEFAKEFAKE";
    options.secret_key = "fakeSecretKey/Example+0123456789ABCDEFGH";
    options.endpoint = argc == 2 ? argv[1] : "";
    r = pinfold_agentcore_template_new(&options, &template, &err);
    if (r == 0)
        r = template->ops->build_for_session(template->state, "x", &backend, &err);
    if (r == 0)
        r = pf_backend_create(backend, NULL, &err);
    if (r == 0)
        r = check(backend, &err);
    if (backend)
        closed = pf_backend_close(backend, r == 0 ? &err : NULL);
    pinfold_backend_unref(backend);
    pinfold_backend_unref(template);
    if (r == 0)
        r = closed;
    if (r < 0)
        fprintf(stderr, "%s\n", err.msg);
    return r < 0 ? 1 : r;
}

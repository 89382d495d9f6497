/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library in one page: make a sandbox in the directory given, put a file into it, run a
 * command on that file behind walls, and bring the result home to a second directory.
 *
 *   cc embed.c $(pkg-config --cflags --libs pinfold) && ./a.out WORKSPACE RESULTS
 */
#include <pinfold/pinfold.h>

#include <stdio.h>

static int fail(const struct pinfold_error *err)
{
    fprintf(stderr, "embed: %s: %s\n", pinfold_code_name(err->code), err->msg);
    return 1;
}

/* All calls have one shape: 0 (or more) is good, and err says what is not. */
static int use(struct pinfold_sandbox *sandbox, struct pinfold_error *err)
{
    const struct pinfold_upload file = { .path = "data.txt", .data = "b\na\n", .len = 4 };
    struct pinfold_execute_options what = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_execute_result result = { 0 };
    int r = pinfold_sandbox_start(sandbox, NULL, NULL, err);

    if (r == 0)
        r = pinfold_sandbox_add_files(sandbox, &file, 1, true, NULL, NULL, err);
    if (r == 0) {
        what.command = "sort data.txt | tee sorted.md";
        what.timeout_seconds = 10;
        r = pinfold_sandbox_execute(sandbox, &what, &result, NULL, err);
    }
    if (r == 0)
        printf("exit code %d, output:\n%s", result.exit_code, result.output);
    pinfold_execute_result_done(&result);
    return r;
}

int main(int argc, char **argv)
{
    struct pinfold_isolated_options isolated = PINFOLD_ISOLATED_OPTIONS_INIT;
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_backend *backend = NULL;
    struct pinfold_sandbox *sandbox = NULL;
    int r;

    if (argc != 3)
        return fprintf(stderr, "usage: embed WORKSPACE RESULTS\n"), 2;
    isolated.workspace_root = argv[1];
    if (pinfold_isolated_backend_new(&isolated, &backend, &err) < 0)
        return fail(&err);
    options.workspace_id = "example";
    options.backend = backend;
    options.ttl_seconds = 60;
    options.sync_dest = argv[2];
    r = pinfold_sandbox_new(&options, &sandbox, &err);
    if (r == 0)
        r = use(sandbox, &err);
    if (r == 0)
        r = pinfold_sandbox_stop(sandbox, true, NULL, NULL, &err); /* true: flush, then close */
    pinfold_sandbox_free(sandbox);
    pinfold_backend_unref(backend);
    return r < 0 ? fail(&err) : 0;
}

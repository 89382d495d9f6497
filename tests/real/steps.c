/* SPDX-License-Identifier: Apache-2.0 */
/* steps WORKSPACE COMMAND...: run each command in turn in one isolated sandbox, with all options at
 * their defaults, and print what it says. Stops at the first that fails. */
#include <stdio.h>

#include <pinfold/pinfold.h>

static int fail(const struct pinfold_error *err)
{
    fprintf(stderr, "steps: %s\n", err->msg);
    return 125;
}

static int step(struct pinfold_sandbox *sandbox, const char *command)
{
    struct pinfold_execute_options what = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_execute_result result = { .exit_code = 0 };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    int r;

    what.command = command;
    r = pinfold_sandbox_execute(sandbox, &what, &result, NULL, &err);
    if (r < 0)
        return fail(&err);
    fwrite(result.output, 1, result.output_len, stdout);
    r = result.exit_code;
    if (r != 0)
        printf("\n%s\nended with %d%s\n", command, r, result.timed_out ? ", out of time" : "");
    pinfold_execute_result_done(&result);
    return r;
}

int main(int argc, char **argv)
{
    struct pinfold_isolated_options isolated = PINFOLD_ISOLATED_OPTIONS_INIT;
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_sandbox *sandbox;
    int r = 0;

    if (argc < 3)
        return 2;
    isolated.workspace_root = argv[1];
    if (pinfold_isolated_backend_new(&isolated, &options.backend, &err) < 0)
        return fail(&err);
    options.workspace_id = "steps";
    options.ttl_seconds = 3600;
    if (pinfold_sandbox_new(&options, &sandbox, &err) < 0)
        return fail(&err);
    pinfold_backend_unref(options.backend);
    if (pinfold_sandbox_start(sandbox, NULL, NULL, &err) < 0)
        r = fail(&err);
    for (int i = 2; r == 0 && i < argc; i++)
        r = step(sandbox, argv[i]);
    pinfold_sandbox_free(sandbox);
    return r;
}

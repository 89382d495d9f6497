/* SPDX-License-Identifier: Apache-2.0 */
/* What read_file of 1 KiB costs in C: prints the seconds of each of 3,000 calls. See calls.py. */
#include <pinfold/pinfold.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static int measure(struct pinfold_sandbox *sandbox, struct pinfold_error *err)
{
    for (int i = 0; i < 3000; i++) {
        struct pinfold_bytes text = { 0 };
        double began = now();
        int r = pinfold_sandbox_read_file(sandbox, "file", &text, NULL, err);

        if (r < 0)
            return r;
        pinfold_bytes_done(&text);
        printf("%.9f\n", now() - began);
    }
    return 0;
}

int main(void)
{
    struct pinfold_local_options local = PINFOLD_LOCAL_OPTIONS_INIT;
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_temp_workspace *workspace = NULL;
    struct pinfold_backend *backend = NULL;
    struct pinfold_sandbox *sandbox = NULL;
    char text[1024];
    int r = pinfold_temp_workspace_new(&workspace, &err);

    memset(text, 'x', sizeof(text));
    if (r == 0) {
        local.workspace_root = pinfold_temp_workspace_path(workspace);
        r = pinfold_local_backend_new(&local, &backend, &err);
    }
    options.workspace_id = "bench";
    options.backend = backend;
    options.ttl_seconds = 600;
    if (r == 0)
        r = pinfold_sandbox_new(&options, &sandbox, &err);
    if (r == 0)
        r = pinfold_sandbox_start(sandbox, NULL, NULL, &err);
    if (r == 0)
        r = pinfold_sandbox_write_file(sandbox, "file", text, sizeof(text), NULL, &err);
    if (r == 0)
        r = measure(sandbox, &err);
    pinfold_sandbox_free(sandbox);
    pinfold_backend_unref(backend);
    pinfold_temp_workspace_free(workspace, NULL);
    if (r < 0)
        fprintf(stderr, "calls: %s\n", err.msg);
    return r < 0;
}

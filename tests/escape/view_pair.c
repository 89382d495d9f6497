/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_pair WORKSPACE READER [WRITER]: run WRITER in a sandbox on the directory WORKSPACE and, at
 * the same time, READER in a read-only view of it. What READER writes comes out here, and its exit
 * status is ours; what WRITER writes goes to stderr, and it is killed when READER is done.
 *
 * With VIEW_PAIR_SEED=DIR the workspace is an overlay on the directory DIR.
 * With VIEW_PAIR_CONTROL=1 in the environment READER runs in the sandbox too, beside WRITER: what
 * an attack can do where there is no wall.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <pinfold/pinfold.h>

struct job {
    struct pinfold_sandbox *where;
    const char *command;
    struct pinfold_cancel *cancel;
    struct pinfold_execute_result result;
    struct pinfold_error err;
    int r;
};

static void *perform(void *ctx)
{
    struct job *job = ctx;
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;

    options.command = job->command;
    options.timeout_seconds = 30;
    job->r = pinfold_sandbox_execute(job->where, &options, &job->result, job->cancel, &job->err);
    return NULL;
}

static int fail(const struct pinfold_error *err)
{
    fprintf(stderr, "view_pair: %s\n", err->msg);
    return 125;
}

static int attack(struct pinfold_sandbox *sandbox, struct pinfold_sandbox *view, char **argv)
{
    struct job reader = { .where = getenv("VIEW_PAIR_CONTROL") ? sandbox : view,
                          .command = argv[2] };
    struct job writer = { .where = sandbox, .command = argv[3] };
    pthread_t thread;
    int status;

    if (writer.command && (pinfold_cancel_new(&writer.cancel, &writer.err) < 0 ||
                           pthread_create(&thread, NULL, perform, &writer) != 0))
        return fail(&writer.err);
    perform(&reader);
    if (writer.command) {
        pinfold_cancel_fire(writer.cancel);
        pthread_join(thread, NULL);
        fprintf(stderr, "%s", writer.result.output ? writer.result.output : "");
    }
    printf("%s", reader.result.output ? reader.result.output : "");
    status = reader.r < 0 ? fail(&reader.err) : reader.result.exit_code;
    pinfold_execute_result_done(&reader.result);
    pinfold_execute_result_done(&writer.result);
    pinfold_cancel_free(writer.cancel);
    return status;
}

int main(int argc, char **argv)
{
    struct pinfold_isolated_options isolated = PINFOLD_ISOLATED_OPTIONS_INIT;
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;
    struct pinfold_sandbox *sandbox = NULL, *view = NULL;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_seed_result seed = { 0 };
    int status = 2;

    if (argc < 3)
        return status;
    isolated.workspace_root = argv[1];
    options.seed_from = getenv("VIEW_PAIR_SEED");
    isolated.seed_mode = options.seed_from ? PINFOLD_SEED_OVERLAY : PINFOLD_SEED_COPY;
    options.workspace_id = "pair";
    options.ttl_seconds = 600;
    if (pinfold_isolated_backend_new(&isolated, &options.backend, &err) < 0 ||
        pinfold_sandbox_new(&options, &sandbox, &err) < 0 ||
        pinfold_sandbox_start(sandbox, &seed, NULL, &err) < 0 ||
        pinfold_sandbox_view(sandbox, NULL, &view, &err) < 0)
        status = fail(&err);
    else if (seed.mode != isolated.seed_mode)
        fprintf(stderr, "view_pair: the seed was copied: %s\n", seed.fallback);
    else
        status = attack(sandbox, view, argv);
    pinfold_seed_result_done(&seed);
    pinfold_sandbox_free(view);
    pinfold_sandbox_free(sandbox);
    pinfold_backend_unref(options.backend);
    return status;
}

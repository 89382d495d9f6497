/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two agents on one workspace: one writes, the other reviews, and the kernel sees to it that the
 * reviewer changes nothing. Each gets its task, then the difference to the project is printed; the
 * project itself stays as it is. Offline, with models that are scripts:
 *
 *   cc two_agents.c $(pkg-config --cflags --libs pinfold) && ./a.out WORKSPACE wordcount \
 *       scripted:agent/demo.json scripted:agent/review.json
 *
 * With anthropic:NAME, openai:NAME or bedrock:NAME, and a key in the environment, they are real.
 */
#include <pinfold/pinfold.h>

#include <stdio.h>
#include <stdlib.h>

static const char writing[] =
        "Add an option -l to wordcount, with which it prints the number of lines alone.";
static const char reviewing[] =
        "Review the new option -l of wordcount. Is it right, and is it tested?";

/* Hooks are how an application sees what its agents do. */
static int before_tool_call(void *ctx, struct pinfold_before_tool_call *call,
                            struct pinfold_error *err)
{
    (void)ctx;
    (void)err;
    printf("%s calls %s\n", pinfold_agent_name(call->agent), call->name);
    return 0;
}

/* Make an agent that is attached to the sandbox, give it its task, and print its last words. */
static int have_done(struct pinfold_sandbox *sandbox, const char *name, const char *model_name,
                     enum pinfold_attach_mode mode, const char *task, struct pinfold_error *err)
{
    struct pinfold_agent_config config = PINFOLD_AGENT_CONFIG_INIT;
    struct pinfold_hooks hooks = PINFOLD_HOOKS_INIT;
    const struct pinfold_hooks *all_hooks[] = { &hooks };
    struct pinfold_invocation done = { 0 };
    struct pinfold_agent *agent = NULL;
    struct pinfold_model *model = NULL;
    int r = pinfold_model_open(model_name, NULL, &model, err);

    hooks.before_tool_call = before_tool_call;
    config.agent_id = config.name = name;
    config.model = model;
    config.sandbox = sandbox;
    config.sandbox_attach_mode = mode;
    config.hooks = all_hooks;
    config.hook_count = 1;
    if (r == 0)
        r = pinfold_agent_new(&config, &agent, err);
    if (r == 0)
        r = pinfold_agent_invoke(agent, task, &done, NULL, err);
    if (r == 0)
        printf("%s: %s\n", name, done.text.data ? done.text.data : "");
    pinfold_invocation_done(&done);
    pinfold_agent_free(agent);
    pinfold_model_unref(model);
    return r;
}

static int print_diff(void *ctx, const char *text, size_t len)
{
    (void)ctx;
    return fwrite(text, 1, len, stdout) == len ? 0 : -1;
}

static int show_changes(struct pinfold_sandbox *sandbox, struct pinfold_error *err)
{
    struct pinfold_changes_options options = PINFOLD_CHANGES_OPTIONS_INIT;
    struct pinfold_changes changes = { 0 };
    int r;

    options.on_diff = print_diff;
    r = pinfold_sandbox_changes(sandbox, &options, &changes, NULL, err);
    pinfold_changes_done(&changes);
    return r;
}

int main(int argc, char **argv)
{
    struct pinfold_isolated_options isolated = PINFOLD_ISOLATED_OPTIONS_INIT;
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_backend *backend = NULL;
    struct pinfold_sandbox *sandbox = NULL;
    char *id = NULL;
    int r;

    if (argc != 5)
        return fprintf(stderr, "usage: two_agents WORKSPACE PROJECT WRITER REVIEWER\n"), 2;
    isolated.workspace_root = argv[1];
    r = pinfold_isolated_backend_new(&isolated, &backend, &err);
    if (r == 0)
        r = pinfold_workspace_id_for_run("feature-lines", &id, &err);
    options.workspace_id = id;
    options.backend = backend;
    options.ttl_seconds = 7200;
    options.seed_from = argv[2];
    if (r == 0)
        r = pinfold_sandbox_new(&options, &sandbox, &err);
    if (r == 0)
        r = pinfold_sandbox_start(sandbox, NULL, NULL, &err);
    if (r == 0)
        r = have_done(sandbox, "writer", argv[3], PINFOLD_READ_WRITE, writing, &err);
    if (r == 0)
        r = have_done(sandbox, "reviewer", argv[4], PINFOLD_READ_ONLY, reviewing, &err);
    if (r == 0)
        r = show_changes(sandbox, &err);
    pinfold_sandbox_free(sandbox); /* stops it, and syncs nothing */
    pinfold_backend_unref(backend);
    free(id);
    if (r < 0)
        fprintf(stderr, "two_agents: %s: %s\n", pinfold_code_name(err.code), err.msg);
    return r < 0 ? 1 : 0;
}

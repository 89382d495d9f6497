/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Agents: a set of tools, hooks and plugins, and the workspace that the tools work in. An agent
 * works either in a Sandbox that it is attached to and that others may share, or, on the per-agent
 * path, in a workspace of its own.
 */
#ifndef PINFOLD_AGENT_H
#define PINFOLD_AGENT_H

#include <pinfold/hook.h>
#include <pinfold/model.h>
#include <pinfold/offload.h>
#include <pinfold/sandbox.h>
#include <pinfold/tool.h>

PINFOLD_BEGIN_DECLS

struct pinfold_agent;

/* SandboxMode */
enum pinfold_sandbox_mode {
    PINFOLD_SANDBOX_OFF = 0,   /* "off": no workspace; host tools run */
    PINFOLD_SANDBOX_ON = 1,    /* "sandbox": host tools are blocked */
    PINFOLD_SANDBOX_LOCAL = 2, /* "local_dev": workspace tools and host tools; for development */
};

/* AgentConfig. Zero means default in every field. */
struct pinfold_agent_config {
    size_t size;
    const char *agent_id;     /* NULL: "default"; not empty, no '/', at most 255 bytes */
    const char *name;         /* for people; NULL: "Pinfold agent" */
    const char *session_id;   /* of the agent's session manager; NULL: none; checked likewise */
    const char *workspace_id; /* key of its workspace on the per-agent path; NULL: session_id, else
                                 agent_id */
    struct pinfold_model *model; /* a reference is taken; NULL: no invocations, only direct calls */
    const char *system_prompt;   /* may be NULL */
    unsigned max_tokens;         /* of a reply; 0: the model's option */
    unsigned max_turns;          /* replies of one invocation; 0: 200 */
    pinfold_model_event_fn on_event; /* of replies while they arrive; may be NULL */
    void *on_event_ctx;
    struct pinfold_tool *const *tools; /* tool_count of them; references are taken */
    size_t tool_count;
    const struct pinfold_hooks *const *hooks; /* hook_count of them; copied, and their ctx is the
                                                 agent's from success on */
    size_t hook_count;
    struct pinfold_plugin *const *plugins; /* plugin_count of them, added in this order */
    size_t plugin_count;

    struct pinfold_sandbox *sandbox; /* shared workspace, started; borrowed until detached. The
                                        agent is attached when it is made; excludes
                                        execution_backend, workspace_root and sandbox_manager */
    enum pinfold_attach_mode sandbox_attach_mode;
    enum pinfold_sandbox_mode sandbox_mode; /* with sandbox: OFF counts as ON, LOCAL is refused */
    const struct pinfold_offload_policy *sandbox_output_offload; /* NULL: results stay whole. Not
                                        used when a plugin is a ContextOffloader already */
    /* The per-agent path. */
    struct pinfold_backend *execution_backend; /* instance or template; a reference is taken */
    const char *workspace_root; /* host directory to seed from, and to sync to; NULL: neither */
    const struct pinfold_sync_policy *workspace_sync_policy; /* NULL: the defaults */
    struct pinfold_manager *sandbox_manager; /* a reference is taken; NULL: one of its own */

    unsigned max_parallel_tools; /* calls of one turn that run at once; 0: 8 */
};

#define PINFOLD_AGENT_CONFIG_INIT PINFOLD_SIZED(struct pinfold_agent_config)

/**
 * Check what AgentConfig itself checks.
 *
 * config  borrowed
 * err     borrowed, may be NULL
 *
 * Returns 0 or -PINFOLD_EVALUE (sizes and ids; local_dev together with a sandbox).
 * Threads: any.
 */
PINFOLD_API int pinfold_agent_config_check(const struct pinfold_agent_config *config,
                                           struct pinfold_error *err);

/**
 * Make an agent: its tools, hooks and plugins are added in this order, then it is attached to its
 * sandbox, or its workspace tools are added, then agent_initialized is called. When that fails
 * nothing of it remains, and the hooks stay the caller's.
 *
 * config     borrowed, copied
 * ret_agent  receives the agent; the caller owns it, pinfold_agent_free()
 * err        borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (pinfold_agent_config_check(); a sandbox together with
 * execution_backend, workspace_root or sandbox_manager; mode ON without a backend or a sandbox; a
 * tool or plugin twice), -PINFOLD_EATTACH, -PINFOLD_ENOMEM, or what a plugin or hook returned.
 * Threads: any.
 */
PINFOLD_API int pinfold_agent_new(const struct pinfold_agent_config *config,
                                  struct pinfold_agent **ret_agent, struct pinfold_error *err);

/**
 * Free an agent: it is detached, and on the per-agent path its session stays with the manager that
 * was given, or ends with the agent's own. No call may be under way.
 *
 * agent  owned, NULL is fine
 *
 * Threads: one, the last.
 */
PINFOLD_API void pinfold_agent_free(struct pinfold_agent *agent);

/**
 * The agent's id.
 *
 * agent  borrowed
 *
 * Returns text that lives as long as the agent.
 * Threads: any.
 */
PINFOLD_API const char *pinfold_agent_id(const struct pinfold_agent *agent);

/**
 * The agent's name.
 *
 * agent  borrowed
 *
 * Returns text that lives as long as the agent.
 * Threads: any.
 */
PINFOLD_API const char *pinfold_agent_name(const struct pinfold_agent *agent);

/**
 * The mode that is in force: of an agent with a sandbox ON, whatever was configured, and for ever
 * after it was once attached.
 *
 * agent  borrowed
 *
 * Returns the mode.
 * Threads: any.
 */
PINFOLD_API enum pinfold_sandbox_mode pinfold_agent_mode(struct pinfold_agent *agent);

/**
 * Stop whatever the agent is doing: its invocation and its direct calls end with
 * -PINFOLD_ECANCELLED, and what they started is killed before they return. Later ones run.
 *
 * agent  borrowed
 *
 * Threads: any.
 */
PINFOLD_API void pinfold_agent_cancel(struct pinfold_agent *agent);

/* ---- invocations ---- */

/* What came of an invocation. */
struct pinfold_invocation {
    struct pinfold_bytes text; /* of the last reply */
    enum pinfold_stop_reason stop;
    bool out_of_turns;   /* max_turns were used up: it would have gone on, and another invocation,
                            with or without a prompt, does */
    unsigned turns;      /* replies */
    unsigned tool_calls; /* calls in them */
    struct pinfold_model_usage usage; /* of all; known if it was of each */
};

/**
 * Give an agent something to do, and wait until it is done: the model is asked, the tools that it
 * calls are called, those of one reply at the same time, it is told the results, and so on, until a
 * reply calls no tool. The conversation is kept for the next invocation. When this fails it is kept
 * too, in a form that can be continued: calls that were stopped have results that say so.
 *
 * Whatever is wrong with a call (an unknown tool, an input that is no JSON, or not what the schema
 * says, or too long, more than 128 calls in one reply) becomes a result that tells the model.
 *
 * agent   borrowed
 * prompt  borrowed; NULL: go on with the conversation as it is
 * ret     receives what came of it; the caller owns it, pinfold_invocation_done(); zeroed on
 *         failure; may be NULL
 * cancel  borrowed, may be NULL; when this returns nothing runs on
 * err     borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EBUSY (an invocation is under way), -PINFOLD_ETYPE (no model),
 * -PINFOLD_EVALUE (no prompt, and nothing to go on with), -PINFOLD_ECANCELLED, -PINFOLD_ENOMEM, or
 * what the model, a hook or preparing the workspace returned.
 * Threads: any.
 */
PINFOLD_API int pinfold_agent_invoke(struct pinfold_agent *agent, const char *prompt,
                                     struct pinfold_invocation *ret, struct pinfold_cancel *cancel,
                                     struct pinfold_error *err);

/**
 * The conversation so far.
 *
 * agent      borrowed
 * ret_count  receives how many messages there are
 *
 * Returns the messages, borrowed: until the next invocation, or the next
 * pinfold_agent_set_messages().
 * Threads: not beside an invocation, except from its hooks.
 */
PINFOLD_API const struct pinfold_message *pinfold_agent_messages(struct pinfold_agent *agent,
                                                                 size_t *ret_count);

/**
 * A copy of the conversation so far, for those who cannot know whether an invocation is under way.
 *
 * agent         borrowed
 * ret_messages  receives the messages; the caller owns them: pinfold_message_done() of each, then
 *               free() of all
 * ret_count     receives how many there are
 * err           borrowed, may be NULL
 *
 * Returns 0 or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_agent_copy_messages(struct pinfold_agent *agent,
                                            struct pinfold_message **ret_messages,
                                            size_t *ret_count, struct pinfold_error *err);

/**
 * Put a conversation in place of the one there is.
 *
 * agent     borrowed
 * messages  borrowed, copied; count of them, possibly none
 * err       borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EBUSY (an invocation is under way) or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_agent_set_messages(struct pinfold_agent *agent,
                                           const struct pinfold_message *messages, size_t count,
                                           struct pinfold_error *err);

/**
 * Empty what came of an invocation.
 *
 * invocation  borrowed struct, owned contents; a zeroed one is fine
 *
 * Threads: one at a time per struct.
 */
PINFOLD_API void pinfold_invocation_done(struct pinfold_invocation *invocation);

/* ---- tools, hooks, plugins ---- */

/**
 * Add a tool.
 *
 * agent  borrowed
 * tool   borrowed, a reference is taken
 * err    borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (there is one of this name, or of one that differs only by '-' and
 * '_'), -PINFOLD_EDENIED (a host tool, and the mode is ON) or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_agent_add_tool(struct pinfold_agent *agent, struct pinfold_tool *tool,
                                       struct pinfold_error *err);

/**
 * Take a tool away. Calls of it under way end as they would.
 *
 * agent  borrowed
 * name   borrowed
 *
 * Returns whether it was there.
 * Threads: any.
 */
PINFOLD_API bool pinfold_agent_remove_tool(struct pinfold_agent *agent, const char *name);

/**
 * Look a tool up.
 *
 * agent  borrowed
 * name   borrowed
 *
 * Returns a reference for the caller to own, or NULL.
 * Threads: any.
 */
PINFOLD_API struct pinfold_tool *pinfold_agent_get_tool(struct pinfold_agent *agent,
                                                        const char *name);

/**
 * The names of the tools, in the order they were added.
 *
 * agent      borrowed
 * ret_names  receives the names; the caller owns them, pinfold_strings_done()
 * err        borrowed, may be NULL
 *
 * Returns 0 or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_agent_tool_names(struct pinfold_agent *agent,
                                         struct pinfold_strings *ret_names,
                                         struct pinfold_error *err);

/**
 * Add hooks. There is no way to remove them.
 *
 * agent  borrowed
 * hooks  borrowed, copied; ctx is owned by the agent from success on
 * err    borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (a table of the wrong size) or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_agent_add_hooks(struct pinfold_agent *agent,
                                        const struct pinfold_hooks *hooks,
                                        struct pinfold_error *err);

/**
 * Add a plugin: init_agent is called, its tools are added, then its hooks. When a step fails the
 * tools are taken away again.
 *
 * agent   borrowed
 * plugin  borrowed, a reference is taken
 * err     borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (there is a plugin of this name, or a tool's name is taken),
 * -PINFOLD_EDENIED (a host tool, and the mode is ON), -PINFOLD_ENOMEM, or what init_agent returned.
 * Threads: any.
 */
PINFOLD_API int pinfold_agent_add_plugin(struct pinfold_agent *agent, struct pinfold_plugin *plugin,
                                         struct pinfold_error *err);

/**
 * Whether the agent has a plugin.
 *
 * agent  borrowed
 * name   borrowed
 *
 * Returns true when one of this name was added.
 * Threads: any.
 */
PINFOLD_API bool pinfold_agent_has_plugin(struct pinfold_agent *agent, const char *name);

/**
 * Call a tool as a model would: hooks run, the input is checked, and whatever goes wrong with the
 * tool is a result of status "error".
 *
 * agent       borrowed
 * name        borrowed
 * input       borrowed, len bytes of JSON; NULL and 0: no parameters
 * ret_result  receives the result; the caller owns it, pinfold_tool_result_done()
 * cancel      borrowed, may be NULL
 * err         borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_ECANCELLED, -PINFOLD_ENOMEM, -PINFOLD_EOS (no descriptor left), or what a
 * hook returned.
 * Threads: any.
 */
PINFOLD_API int pinfold_agent_call_tool(struct pinfold_agent *agent, const char *name,
                                        const char *input, size_t len,
                                        struct pinfold_tool_result *ret_result,
                                        struct pinfold_cancel *cancel, struct pinfold_error *err);

/* ---- a shared workspace ---- */

/**
 * Sandbox.attach: bind an agent to a started sandbox. Its workspace tools appear, its host tools
 * go, and stay away after a detach. In the mode read_only, on a backend that has views, it works
 * through one: what it does in the workspace is then read-only to the kernel too. When anything
 * fails nothing of the attach remains.
 *
 * agent    borrowed
 * sandbox  borrowed until detached
 * mode     what its tools may do
 * err      borrowed, may be NULL
 *
 * Returns 0 (also when it is attached there in this mode already), -PINFOLD_EATTACH (not started;
 * attached elsewhere, or in another mode; a per-agent workspace or local_dev is configured; a tool
 * has the name of a workspace tool) or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_agent_attach(struct pinfold_agent *agent, struct pinfold_sandbox *sandbox,
                                     enum pinfold_attach_mode mode, struct pinfold_error *err);

/**
 * Sandbox.detach: take the workspace away from an agent. Its workspace tools go; commands that it
 * has running are killed, and their calls fail with -PINFOLD_EDETACHED, before this returns. An
 * agent that is not attached is a no-op. pinfold_sandbox_detach() and stopping the sandbox do the
 * same. Not to be called from within a workspace helper's callbacks.
 *
 * agent  borrowed
 *
 * Threads: any.
 */
PINFOLD_API void pinfold_agent_detach(struct pinfold_agent *agent);

/**
 * Whether the agent is attached to a sandbox.
 *
 * agent  borrowed
 *
 * Returns true from attach until detach.
 * Threads: any.
 */
PINFOLD_API bool pinfold_agent_is_attached(struct pinfold_agent *agent);

/**
 * SandboxPlugin: adds the workspace tools whenever the agent gets a workspace: execute (when the
 * backend runs commands and the agent may change things), read_file, write_file (likewise) and
 * list_dir. Its name is "sandbox". Attaching adds it where it is missing.
 *
 * ret_plugin  receives the plugin; the caller owns one reference
 * err         borrowed, may be NULL
 *
 * Returns 0 or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_plugin_new(struct pinfold_plugin **ret_plugin,
                                           struct pinfold_error *err);

/* ---- helpers for tools of one's own; in the workspace of an agent, whichever it has ---- */

/* For limit: all lines. */
#define PINFOLD_ALL_LINES INT64_MAX

/**
 * ensure_sandbox_mutation_allowed: whether an agent may change its workspace now.
 *
 * agent  borrowed
 * err    borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EDETACHED (it has no workspace, or has one no longer), -PINFOLD_EDENIED (it
 * is read_only) or -PINFOLD_ESTART (its workspace is not prepared). Threads: any.
 */
PINFOLD_API int pinfold_ensure_sandbox_mutation_allowed(struct pinfold_agent *agent,
                                                        struct pinfold_error *err);

/**
 * run_command: run a shell command, and format what came of it as the execute tool does.
 *
 * agent     borrowed
 * command   borrowed
 * cwd       borrowed; inside the workspace; NULL: its root
 * ret_text  receives the text; the caller owns it, pinfold_bytes_done()
 * cancel    borrowed, may be NULL
 * err       borrowed, may be NULL
 *
 * Returns as pinfold_ensure_sandbox_mutation_allowed() and pinfold_sandbox_execute().
 * Threads: any.
 */
PINFOLD_API int pinfold_run_command(struct pinfold_agent *agent, const char *command,
                                    const char *cwd, struct pinfold_bytes *ret_text,
                                    struct pinfold_cancel *cancel, struct pinfold_error *err);

/**
 * The same with everything that can be said of a command, and everything that came of it.
 *
 * agent       borrowed
 * options     borrowed
 * ret_result  receives the result; the caller owns it, pinfold_execute_result_done()
 * cancel      borrowed, may be NULL
 * err         borrowed, may be NULL
 *
 * Returns as pinfold_run_command().
 * Threads: any.
 */
PINFOLD_API int pinfold_agent_execute(struct pinfold_agent *agent,
                                      const struct pinfold_execute_options *options,
                                      struct pinfold_execute_result *ret_result,
                                      struct pinfold_cancel *cancel, struct pinfold_error *err);

/**
 * read_workspace_file: some lines of a text file.
 *
 * agent      borrowed
 * path       borrowed
 * offset     lines to skip; negative counts as 0
 * limit      lines to return; 0 or less: none; PINFOLD_ALL_LINES
 * ret_text   receives the lines; the caller owns them, pinfold_bytes_done()
 * ret_lines  receives how many lines the file has; may be NULL
 * cancel     borrowed, may be NULL
 * err        borrowed, may be NULL
 *
 * Returns -PINFOLD_EDETACHED, -PINFOLD_ESTART, or as pinfold_sandbox_read_file().
 * Threads: any.
 */
PINFOLD_API int pinfold_read_workspace_file(struct pinfold_agent *agent, const char *path,
                                            int64_t offset, int64_t limit,
                                            struct pinfold_bytes *ret_text, uint64_t *ret_lines,
                                            struct pinfold_cancel *cancel,
                                            struct pinfold_error *err);

/**
 * write_workspace_file: write one file.
 *
 * agent   borrowed
 * path    borrowed
 * data    borrowed, len bytes
 * cancel  borrowed, may be NULL
 * err     borrowed, may be NULL
 *
 * Returns as pinfold_ensure_sandbox_mutation_allowed() and pinfold_sandbox_write_file().
 * Threads: any.
 */
PINFOLD_API int pinfold_write_workspace_file(struct pinfold_agent *agent, const char *path,
                                             const void *data, size_t len,
                                             struct pinfold_cancel *cancel,
                                             struct pinfold_error *err);

/**
 * list_workspace_dir: list one directory.
 *
 * agent      borrowed
 * path       borrowed; "." is the root
 * ret_infos  receives the entries; the caller owns them, pinfold_file_infos_done()
 * cancel     borrowed, may be NULL
 * err        borrowed, may be NULL
 *
 * Returns -PINFOLD_EDETACHED, -PINFOLD_ESTART, or as pinfold_sandbox_list_dir().
 * Threads: any.
 */
PINFOLD_API int pinfold_list_workspace_dir(struct pinfold_agent *agent, const char *path,
                                           struct pinfold_file_infos *ret_infos,
                                           struct pinfold_cancel *cancel,
                                           struct pinfold_error *err);

/* ---- the per-agent path ---- */

/**
 * sandbox_is_active: whether the mode is not OFF and the agent has a workspace, or a backend to
 * make one of.
 *
 * agent  borrowed
 *
 * Returns true then.
 * Threads: any.
 */
PINFOLD_API bool pinfold_sandbox_is_active(struct pinfold_agent *agent);

/**
 * workspace_is_prepared: whether pinfold_prepare_workspace() succeeded, and the session lives.
 *
 * agent  borrowed
 *
 * Returns true then; false for agents that are attached to a sandbox.
 * Threads: any.
 */
PINFOLD_API bool pinfold_workspace_is_prepared(struct pinfold_agent *agent);

/**
 * prepare_workspace: create the backend, or find the session that there is under the agent's
 * workspace id, and seed it from workspace_root if nobody has. Done once; after the session
 * has ended, anew. Nothing to do for an agent that is attached, or whose sandbox is not active.
 *
 * agent     borrowed
 * ret_seed  receives the seed result; the caller owns it, pinfold_seed_result_done(); zeroed when
 *           nothing was seeded by this call; may be NULL; also filled on -PINFOLD_EPREPARE
 * cancel    borrowed, may be NULL
 * err       borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EPREPARE (seeding reported errors), -PINFOLD_EVALUE (the workspace id),
 * -PINFOLD_ESTART, -PINFOLD_ECANCELLED, -PINFOLD_ENOMEM, or what the backend's create returned.
 * Threads: any.
 */
PINFOLD_API int pinfold_prepare_workspace(struct pinfold_agent *agent,
                                          struct pinfold_seed_result *ret_seed,
                                          struct pinfold_cancel *cancel, struct pinfold_error *err);

/**
 * sync_workspace_artifacts: write the workspace's artifacts to workspace_root.
 *
 * agent       borrowed
 * ret_result  receives the result; the caller owns it, pinfold_sync_result_done(); may be NULL
 * cancel      borrowed, may be NULL
 * err         borrowed, may be NULL
 *
 * Returns 1 (synced), 0 (no workspace_root, or nothing is prepared), -PINFOLD_EPREPARE (the sync
 * reported errors), -PINFOLD_ECANCELLED or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_sync_workspace_artifacts(struct pinfold_agent *agent,
                                                 struct pinfold_sync_result *ret_result,
                                                 struct pinfold_cancel *cancel,
                                                 struct pinfold_error *err);

/**
 * close_sandbox_workspace: sync if wanted, then close the session, whatever the sync did. Commands
 * of the agent in it are killed. Nothing prepared: a no-op.
 *
 * agent           borrowed
 * sync_artifacts  whether to sync first
 * cancel          borrowed, may be NULL; stops the sync, never the close
 * err             borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EPREPARE (the sync reported errors), or what the close returned.
 * Threads: any.
 */
PINFOLD_API int pinfold_close_sandbox_workspace(struct pinfold_agent *agent, bool sync_artifacts,
                                                struct pinfold_cancel *cancel,
                                                struct pinfold_error *err);

/**
 * WorkspaceOrchestrator: hooks that call pinfold_prepare_workspace() before each invocation. An
 * agent on the per-agent path has them without being told.
 *
 * Returns the hooks, which need no ctx.
 * Threads: any.
 */
PINFOLD_API struct pinfold_hooks pinfold_workspace_orchestrator(void);

PINFOLD_END_DECLS

#endif

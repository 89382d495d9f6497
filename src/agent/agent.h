/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of an agent, for the files of this room. */
#ifndef PF_AGENT_AGENT_H
#define PF_AGENT_AGENT_H

#include <pthread.h>

#include <pinfold/agent.h>

#include "agent/tool.h"
#include "base/cancel.h"

/* Something under way that can be stopped. */
struct pf_op {
    struct pinfold_cancel *cancel; /* linked to the caller's */
    struct pf_op *prev, *next;
};

struct pf_hook {
    struct pinfold_hooks hooks;
    struct pf_hook *prev, *next;
};

struct pf_plugin_entry {
    struct pinfold_plugin *plugin;
    struct pf_plugin_entry *prev, *next;
};

/* The workspace that an agent has now. */
struct pf_binding {
    struct pinfold_sandbox *sandbox; /* owned: a handle, or a view */
    enum pinfold_attach_mode mode;
    bool own;          /* of the per-agent path */
    bool ended;        /* taken away */
    struct pf_op *ops; /* in it */
};

struct pinfold_agent {
    /* Set by new, never changed. */
    char *id, *name, *session_id, *workspace_id;
    unsigned max_parallel;
    struct pinfold_model *model; /* may be NULL */
    char *system_prompt;
    unsigned max_tokens, max_turns;
    pinfold_model_event_fn on_event;
    void *on_event_ctx;
    struct pinfold_backend *backend; /* of the per-agent path; may be NULL */
    struct pinfold_manager *manager; /* likewise */
    char *workspace_root;            /* absolute; may be NULL */
    struct pinfold_sync_policy *policy;

    pthread_mutex_t lock; /* guards what follows; never held while something else is called */
    pthread_cond_t changed;
    enum pinfold_sandbox_mode mode;
    struct pinfold_tool **tools;
    size_t tool_count, tool_capacity;
    struct pf_hook *hooks;           /* only ever grows */
    struct pf_plugin_entry *plugins; /* likewise, but for a rollback */
    struct pf_op *ops;               /* invocation and direct calls */
    struct pf_binding *binding;      /* NULL: no workspace */
    bool had_binding;                /* there was one */
    bool preparing;                  /* somebody is at work on the per-agent workspace */
    bool invoking;                   /* somebody is, and has the conversation to itself */

    /* Changed by whoever is invoking, who holds the lock for that and reads without. */
    struct pinfold_message *messages;
    size_t message_count, message_capacity;
    bool may_resume; /* likewise: after_invocation hooks are under way */
    char *resume;    /* likewise: what they want it to go on with */
};

void pf_agent_freep(struct pinfold_agent **agent);

/* What is under way of an agent itself: pinfold_agent_cancel() fires it. */
int pf_op_begin(struct pinfold_agent *agent, struct pinfold_cancel *parent, struct pf_op *op,
                struct pinfold_error *err);
void pf_op_end(struct pinfold_agent *agent, struct pf_op *op);

/* registry.c. Whether a tool of this name may not run now, and what the model is told; text has
 * PF_BLOCKED_MAX bytes. */
enum { PF_BLOCKED_MAX = 256 };
bool pf_agent_blocks(struct pinfold_agent *agent, const char *name, char *text);
bool pf_is_host_tool(const char *name);
/* The mode is ON from now on: host tools go. */
void pf_registry_enter_sandbox(struct pinfold_agent *agent);
void pf_registry_clear(struct pinfold_agent *agent);
/* References to all tools now, NULL-terminated, or NULL when out of memory. */
struct pinfold_tool **pf_registry_snapshot(struct pinfold_agent *agent);
void pf_registry_snapshot_freep(struct pinfold_tool ***tools);

/* hooks.c */
int pf_hooks_initialized(struct pinfold_agent *agent, struct pinfold_error *err);
int pf_hooks_before_tool(struct pinfold_agent *agent, struct pinfold_before_tool_call *event,
                         struct pinfold_error *err);
int pf_hooks_after_tool(struct pinfold_agent *agent, struct pinfold_after_tool_call *event,
                        struct pinfold_error *err);
int pf_hooks_before_invocation(struct pinfold_agent *agent, struct pinfold_cancel *cancel,
                               struct pinfold_error *err);
int pf_hooks_before_model(struct pinfold_agent *agent, struct pinfold_error *err);
int pf_hooks_after_model(struct pinfold_agent *agent, struct pinfold_after_model_call *event,
                         struct pinfold_error *err);
int pf_hooks_message(struct pinfold_agent *agent, const struct pinfold_message *message,
                     struct pinfold_error *err);
int pf_hooks_after_invocation(struct pinfold_agent *agent, int result, struct pinfold_error *err);
void pf_hooks_clear(struct pinfold_agent *agent, bool free_contexts);

/* plugin.c */
void pf_plugins_clear(struct pinfold_agent *agent);
void pf_plugin_remove(struct pinfold_agent *agent, const char *name);

/* call.c: one call of a tool, from hooks to result. */
struct pf_tool_use {
    const char *id, *name;
    const char *input; /* JSON as the model wrote it */
    size_t len;
};
int pf_agent_call(struct pinfold_agent *agent, const struct pf_tool_use *use,
                  struct pinfold_cancel *cancel, struct pinfold_tool_result *ret_result,
                  struct pinfold_error *err);
/* turn.c: the calls of one turn at once; results in the order of uses, zeroed by the caller, who
 * owns them on failure too. */
int pf_agent_call_all(struct pinfold_agent *agent, const struct pf_tool_use *uses, size_t count,
                      struct pinfold_cancel *cancel, struct pinfold_tool_result *results,
                      struct pinfold_error *err);

/* messages.c: the conversation. Only for whoever is invoking. */
int pf_invoking_begin(struct pinfold_agent *agent, struct pinfold_error *err);
void pf_invoking_end(struct pinfold_agent *agent);
void pf_messages_clear(struct pinfold_agent *agent);
/* What a user says, or is told: joined to a user's message that is last. */
int pf_messages_add_prompt(struct pinfold_agent *agent, const char *prompt,
                           struct pinfold_error *err);
/* Append a message, which is then empty, and tell the hooks. */
int pf_messages_add(struct pinfold_agent *agent, struct pinfold_message *message,
                    struct pinfold_error *err);
/* Append the result of a call to a message, as text. */
int pf_message_add_result(struct pinfold_message *message, const char *id,
                          const struct pinfold_tool_result *result, struct pinfold_error *err);

/* binding.c: an operation in the workspace. change: it is more than looking. */
struct pf_use {
    struct pf_op op;
    struct pinfold_agent *agent;
    struct pf_binding *binding;
    struct pinfold_cancel *parent;
};
int pf_use_begin(struct pinfold_agent *agent, bool change, struct pinfold_cancel *cancel,
                 struct pf_use *use, struct pinfold_error *err);
/* r: of the operation. Returns it, or -PINFOLD_EDETACHED when the workspace was taken away. */
int pf_use_end(struct pf_use *use, int r, struct pinfold_error *err);
/* Give an agent a workspace, and take it away: then operations in it are stopped and waited for. */
void pf_bind(struct pinfold_agent *agent, struct pf_binding *binding);
struct pf_binding *pf_unbind(struct pinfold_agent *agent, bool own);

/* workspace_tools.c */
extern const char pf_sandbox_plugin_name[];
int pf_workspace_tools_add(struct pinfold_agent *agent, bool executes,
                           enum pinfold_attach_mode mode, struct pinfold_error *err);
void pf_workspace_tools_remove(struct pinfold_agent *agent);

/* per_agent.c */
bool pf_has_own_workspace(const struct pinfold_agent *agent); /* is configured for one */
void pf_own_workspace_drop(struct pinfold_agent *agent);      /* let go of it, not closing it */

#endif

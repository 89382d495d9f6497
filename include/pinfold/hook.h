/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks: functions that an agent calls at set points of its life, and plugins, which bring tools
 * and hooks together. Hooks of "before" run in the order they were added, those of "after" in the
 * reverse order. A hook that fails ends the invocation, or the direct call, with its error.
 */
#ifndef PINFOLD_HOOK_H
#define PINFOLD_HOOK_H

#include <pinfold/model.h>
#include <pinfold/tool.h>

PINFOLD_BEGIN_DECLS

struct pinfold_plugin;

/* A tool is about to be called. Change it by the functions below. */
struct pinfold_before_tool_call {
    struct pinfold_agent *agent;
    const char *tool_use_id;
    const char *name;  /* that was asked for */
    const char *input; /* JSON as it came, input_len bytes, not checked yet */
    size_t input_len;
    struct pinfold_tool *tool; /* that will be called; NULL: there is none */
    const char *cancel;        /* what the caller is told instead; NULL: not cancelled */
};

/* A tool was called, or was not. */
struct pinfold_after_tool_call {
    struct pinfold_agent *agent;
    const char *tool_use_id;
    const char *name;
    const char *input;
    size_t input_len;
    struct pinfold_tool *tool;          /* that was called; NULL: none was */
    const char *cancel;                 /* why it was cancelled; NULL: it was not */
    struct pinfold_cancel *token;       /* of the call, for what takes long */
    struct pinfold_tool_result *result; /* to be changed at will */
    bool retry; /* set to true: call it once more; at most PINFOLD_TOOL_RETRIES times, and not
                   looked at when it was cancelled */
};

#define PINFOLD_TOOL_RETRIES 10

/* The model has answered, or has not. */
struct pinfold_after_model_call {
    struct pinfold_agent *agent;
    const struct pinfold_model_reply *reply; /* NULL: it failed */
    int result;                              /* 0 or a negative code */
    const struct pinfold_error *error;       /* NULL: it did not fail */
    bool retry; /* set to true: forget the reply and ask once more; at most PINFOLD_MODEL_RETRIES
                   times for one answer */
};

#define PINFOLD_MODEL_RETRIES 10

/* Receives the events of agents. Any function may be NULL. err is never NULL, and is to be filled
 * by a function that returns a negative code. Those of tool calls come from several threads at once
 * when a model calls several tools in one turn; both of one call come from the same. */
struct pinfold_hooks {
    size_t size;
    /* The agent is made, with its tools and plugins, and attached. */
    int (*agent_initialized)(void *ctx, struct pinfold_agent *agent, struct pinfold_error *err);
    /* An invocation begins. When this fails, after_invocation does not follow. */
    int (*before_invocation)(void *ctx, struct pinfold_agent *agent, struct pinfold_cancel *cancel,
                             struct pinfold_error *err);
    /* It ended, with result: 0 or a negative code. pinfold_after_invocation_resume() may be called
     * from here. */
    int (*after_invocation)(void *ctx, struct pinfold_agent *agent, int result,
                            struct pinfold_error *err);
    int (*before_model_call)(void *ctx, struct pinfold_agent *agent, struct pinfold_error *err);
    int (*after_model_call)(void *ctx, struct pinfold_after_model_call *event,
                            struct pinfold_error *err);
    /* A message is part of the conversation now. */
    int (*message_added)(void *ctx, struct pinfold_agent *agent,
                         const struct pinfold_message *message, struct pinfold_error *err);
    int (*before_tool_call)(void *ctx, struct pinfold_before_tool_call *event,
                            struct pinfold_error *err);
    int (*after_tool_call)(void *ctx, struct pinfold_after_tool_call *event,
                           struct pinfold_error *err);
    void *ctx;
    void (*free)(void *ctx); /* with the agent; may be NULL */
};

#define PINFOLD_HOOKS_INIT PINFOLD_SIZED(struct pinfold_hooks)

/**
 * Cancel a tool call: no tool runs, and the result is an error with this text.
 *
 * event  borrowed, of a before_tool_call under way
 * text   borrowed, copied; NULL: a text that says it was cancelled
 * err    borrowed, may be NULL
 *
 * Returns 0 or -PINFOLD_ENOMEM.
 * Threads: the one that the hook was called from.
 */
PINFOLD_API int pinfold_before_tool_call_cancel(struct pinfold_before_tool_call *event,
                                                const char *text, struct pinfold_error *err);

/**
 * Have another tool called.
 *
 * event  borrowed, of a before_tool_call under way
 * tool   borrowed, a reference is taken
 *
 * Threads: the one that the hook was called from.
 */
PINFOLD_API void pinfold_before_tool_call_select(struct pinfold_before_tool_call *event,
                                                 struct pinfold_tool *tool);

/**
 * Have the tool called with another input; it is checked as any other.
 *
 * event  borrowed, of a before_tool_call under way
 * input  borrowed, copied; len bytes of JSON
 * err    borrowed, may be NULL
 *
 * Returns 0 or -PINFOLD_ENOMEM.
 * Threads: the one that the hook was called from.
 */
PINFOLD_API int pinfold_before_tool_call_set_input(struct pinfold_before_tool_call *event,
                                                   const char *input, size_t len,
                                                   struct pinfold_error *err);

/**
 * AfterInvocationEvent.resume: have the invocation that has just ended go on with another prompt,
 * as part of the same call of pinfold_agent_invoke(): before_invocation is called again, and so on.
 * What several hooks ask for is what the last of them to be called asks for. max_turns is for all
 * together, and with them used up it does not go on.
 *
 * agent   borrowed, of an after_invocation under way
 * prompt  borrowed, copied; NULL: do not go on, whatever was asked for before
 * err     borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (no after_invocation is under way, or of an invocation that failed:
 * that one ends with its error) or -PINFOLD_ENOMEM.
 * Threads: the one that the hook was called from.
 */
PINFOLD_API int pinfold_after_invocation_resume(struct pinfold_agent *agent, const char *prompt,
                                                struct pinfold_error *err);

struct pinfold_plugin_options {
    size_t size;
    const char *name;                  /* required: its identity; an agent has one of each name */
    struct pinfold_tool *const *tools; /* tool_count of them; references are taken */
    size_t tool_count;
    /* Called when it is added to an agent, before its tools and hooks are; may be NULL. */
    int (*init_agent)(void *ctx, struct pinfold_agent *agent, struct pinfold_error *err);
    const struct pinfold_hooks *hooks; /* may be NULL; copied. They get ctx below, and are not
                                          freed by themselves */
    void *ctx;
    void (*free)(void *ctx); /* the last reference is gone; may be NULL */
};

#define PINFOLD_PLUGIN_OPTIONS_INIT PINFOLD_SIZED(struct pinfold_plugin_options)

/**
 * Make a plugin. One may be given to several agents, and is then called from all their threads.
 *
 * options     borrowed, copied; ctx is owned by the plugin from success on
 * ret_plugin  receives the plugin; the caller owns one reference, pinfold_plugin_unref()
 * err         borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (no name, a table of the wrong size) or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_plugin_new(const struct pinfold_plugin_options *options,
                                   struct pinfold_plugin **ret_plugin, struct pinfold_error *err);

/**
 * Take another reference.
 *
 * plugin  borrowed
 *
 * Returns plugin, for the caller to own.
 * Threads: any.
 */
PINFOLD_API struct pinfold_plugin *pinfold_plugin_ref(struct pinfold_plugin *plugin);

/**
 * Give a reference back; the last one frees the plugin.
 *
 * plugin  owned, NULL is fine
 *
 * Threads: any.
 */
PINFOLD_API void pinfold_plugin_unref(struct pinfold_plugin *plugin);

PINFOLD_END_DECLS

#endif

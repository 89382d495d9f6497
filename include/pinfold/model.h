/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models: whatever continues a conversation. A model is a table of functions and a state; four
 * providers come with the library (Amazon Bedrock, Anthropic, anything that speaks OpenAI's chat
 * completions, and a script in a file), and an application may bring its own.
 *
 * One call, pinfold_model_converse(), sends the whole conversation and blocks until the reply is
 * whole; events tell of it while it arrives. Models keep nothing of a conversation between calls.
 */
#ifndef PINFOLD_MODEL_H
#define PINFOLD_MODEL_H

#include <stdint.h>

#include <pinfold/cancel.h>
#include <pinfold/error.h>

PINFOLD_BEGIN_DECLS

struct pinfold_model;

/* ---- messages ---- */

enum pinfold_role {
    PINFOLD_ROLE_USER = 1, /* people, and the results of tools */
    PINFOLD_ROLE_ASSISTANT = 2,
};

enum pinfold_block_kind {
    PINFOLD_BLOCK_TEXT = 1,
    PINFOLD_BLOCK_TOOL_USE = 2,    /* of an assistant: call a tool */
    PINFOLD_BLOCK_TOOL_RESULT = 3, /* of a user: what came of it */
    PINFOLD_BLOCK_REASONING = 4,   /* of an assistant: its thoughts, where they are shown */
};

/* A part of a message. Text is valid UTF-8, NUL-terminated, and may hold NUL bytes. */
struct pinfold_block {
    enum pinfold_block_kind kind;
    char *text; /* TEXT, TOOL_RESULT and REASONING: never NULL. TOOL_USE: the input as the model
                   wrote it, which is a JSON object if input_valid */
    size_t text_len;
    char *id;         /* TOOL_USE and TOOL_RESULT: which call */
    char *name;       /* TOOL_USE: which tool, as the model wrote it: there may be no such tool */
    bool input_valid; /* TOOL_USE; if not, tell the model so in the result, and call nothing */
    bool is_error;    /* TOOL_RESULT */
    char *opaque;     /* REASONING: what its provider wants back unchanged with the rest of the
                         message, such as a signature; NULL: nothing */
};

struct pinfold_message {
    enum pinfold_role role;
    struct pinfold_block *blocks;
    size_t count;
    size_t capacity; /* private */
};

/**
 * Append a block of text. Bytes that are not UTF-8 become U+FFFD.
 *
 * message  borrowed; a zeroed struct with a role is an empty message
 * text     borrowed, copied
 * len      bytes of text
 * err      borrowed, may be NULL
 *
 * Returns 0 or -PINFOLD_ENOMEM; the message is as it was on failure.
 * Threads: one at a time per message.
 */
PINFOLD_API int pinfold_message_add_text(struct pinfold_message *message, const char *text,
                                         size_t len, struct pinfold_error *err);

/**
 * Append a call of a tool, as an assistant makes it.
 *
 * message  borrowed
 * id       borrowed, copied; not empty
 * name     borrowed, copied; not empty
 * input    borrowed, copied; input_valid is set if it is a JSON object
 * len      bytes of input
 * err      borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (an empty id or name, or one that is not UTF-8) or -PINFOLD_ENOMEM.
 * Threads: one at a time per message.
 */
PINFOLD_API int pinfold_message_add_tool_use(struct pinfold_message *message, const char *id,
                                             const char *name, const char *input, size_t len,
                                             struct pinfold_error *err);

/**
 * Append the result of a tool. Every call of an assistant's message needs one, and only one, in the
 * message after it. Bytes that are not UTF-8 become U+FFFD.
 *
 * message   borrowed
 * id        borrowed, copied: that of the call
 * text      borrowed, copied
 * len       bytes of text
 * is_error  whether the tool failed
 * err       borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (an empty id, or one that is not UTF-8) or -PINFOLD_ENOMEM.
 * Threads: one at a time per message.
 */
PINFOLD_API int pinfold_message_add_tool_result(struct pinfold_message *message, const char *id,
                                                const char *text, size_t len, bool is_error,
                                                struct pinfold_error *err);

/**
 * Append a block of reasoning. Bytes that are not UTF-8 become U+FFFD.
 *
 * message  borrowed
 * text     borrowed, copied
 * len      bytes of text
 * opaque   borrowed, copied; may be NULL
 * err      borrowed, may be NULL
 *
 * Returns 0 or -PINFOLD_ENOMEM.
 * Threads: one at a time per message.
 */
PINFOLD_API int pinfold_message_add_reasoning(struct pinfold_message *message, const char *text,
                                              size_t len, const char *opaque,
                                              struct pinfold_error *err);

/**
 * Copy a message.
 *
 * to    filled on success, whatever it held is not freed; the caller owns it,
 *       pinfold_message_done()
 * from  borrowed
 * err   borrowed, may be NULL
 *
 * Returns 0 or -PINFOLD_ENOMEM.
 * Threads: one at a time per message.
 */
PINFOLD_API int pinfold_message_copy(struct pinfold_message *to, const struct pinfold_message *from,
                                     struct pinfold_error *err);

/* ---- what is asked ---- */

/* A tool that the model may call. */
struct pinfold_tool_spec {
    const char *name;        /* 1 to 64 of A-Z a-z 0-9 _ - */
    const char *description; /* may be NULL */
    const char *schema;      /* JSON Schema of the input, an object; NULL: any object */
};

enum pinfold_model_event_kind {
    PINFOLD_MODEL_TEXT = 1,          /* text: the next piece of a block of text */
    PINFOLD_MODEL_REASONING = 2,     /* text: the next piece of a block of reasoning */
    PINFOLD_MODEL_TOOL_START = 3,    /* tool: id and name are there, the input is not */
    PINFOLD_MODEL_TOOL_INPUT = 4,    /* text: the next piece of its input, which is JSON in parts;
                                        tool: as before */
    PINFOLD_MODEL_TOOL_COMPLETE = 5, /* tool: whole */
    PINFOLD_MODEL_RETRY = 6,         /* error: the attempt that failed; another one follows in
                                        delay_seconds. Nothing of a reply has been told before */
};

/* Borrowed for the time of the call, all of it. */
struct pinfold_model_event {
    size_t size; /* sizeof(struct pinfold_model_event) */
    enum pinfold_model_event_kind kind;
    size_t block;     /* of the message that the reply will be; of several tools that arrive
                         together it tells which */
    const char *text; /* valid UTF-8: never cut inside a character; NUL-terminated */
    size_t text_len;
    const struct pinfold_block *tool;
    const struct pinfold_error *error;
    double delay_seconds;
    unsigned attempt; /* RETRY: the number of the one that failed, from 1 */
};

/* Told of a reply while it arrives, from the thread that called pinfold_model_converse(). Return 0
 * to go on; anything else ends the call with -PINFOLD_ECANCELLED. */
typedef int (*pinfold_model_event_fn)(void *ctx, const struct pinfold_model_event *event);

/* One turn. Zero means default in every field. Everything is borrowed for the time of the call. */
struct pinfold_model_request {
    size_t size;        /* sizeof(struct pinfold_model_request) */
    const char *system; /* instructions that stand before the conversation; may be NULL */
    const struct pinfold_message *messages; /* oldest first; the last one is a user's, unless
                                               a reply stopped with PINFOLD_STOP_PAUSE */
    size_t message_count;
    const struct pinfold_tool_spec *tools;
    size_t tool_count;
    unsigned max_tokens;               /* of the reply; 0: the model's option */
    const double *temperature;         /* NULL: the model's option */
    const char *const *stop_sequences; /* NULL-terminated; may be NULL */
    pinfold_model_event_fn on_event;   /* may be NULL */
    void *on_event_ctx;
};

#define PINFOLD_MODEL_REQUEST_INIT PINFOLD_SIZED(struct pinfold_model_request)

/* ---- what comes back ---- */

enum pinfold_stop_reason {
    PINFOLD_STOP_END = 1,      /* the model has said what it had to say */
    PINFOLD_STOP_TOOL_USE = 2, /* it wants the results of its tool calls */
    PINFOLD_STOP_LENGTH = 3,   /* max_tokens, or the end of the model's context: the last block may
                                  be cut; a tool call that is cut has no valid input */
    PINFOLD_STOP_REFUSAL = 4,  /* the model or a filter declined; what text there is may be cut */
    PINFOLD_STOP_SEQUENCE = 5, /* one of stop_sequences came up; it is not in the text */
    PINFOLD_STOP_PAUSE = 6,    /* the provider broke off a long turn: append the message to the
                                  conversation and ask again, with no message of a user's between */
};

/* In tokens, as the provider counted them. Input that was read from a cache or written to one is
 * not in input. */
struct pinfold_model_usage {
    uint64_t input, output, cache_read, cache_write;
    bool known; /* the provider told; otherwise all are 0 */
};

struct pinfold_model_reply {
    struct pinfold_message message; /* of the assistant; may have no blocks */
    enum pinfold_stop_reason stop;
    char *stop_detail; /* which sequence it was, why it was refused, or else the provider's own word
                          for it; "" if none */
    char *request_id;  /* for the provider's support; "" if none */
    struct pinfold_model_usage usage;
    unsigned attempts; /* that it took */
};

/* ---- a model ---- */

/*
 * The functions of a model, for those that an application brings itself. They may be called from
 * several threads at once.
 */
struct pinfold_model_ops {
    size_t size;          /* sizeof(struct pinfold_model_ops) */
    const char *provider; /* for example "anthropic" */

    /* Required. The request has been checked; ret is zeroed, and whatever is in it when the
     * function fails is freed by the caller. Does its own retries, and none once on_event was told
     * anything. Observes cancel while it waits. Returns 0 or a negative code with err filled. */
    int (*converse)(void *state, const struct pinfold_model_request *request,
                    struct pinfold_model_reply *ret, struct pinfold_cancel *cancel,
                    struct pinfold_error *err);
    /* How many tokens a request is, or an estimate. NULL: pinfold_model_count_tokens() estimates.
     */
    int (*count_tokens)(void *state, const struct pinfold_model_request *request,
                        uint64_t *ret_tokens, struct pinfold_cancel *cancel,
                        struct pinfold_error *err);
    /* NULL: nothing to do */
    void (*free)(void *state);
};

/**
 * Make a model of one's own.
 *
 * ops        borrowed for ever: static storage
 * state      owned by the model from success on; ops->free releases it
 * name       borrowed, copied; for people: what pinfold_model_name() returns
 * ret_model  receives the model; the caller owns one reference, pinfold_model_unref()
 * err        borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (a table of the wrong size, or without a provider or converse) or
 * -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_model_new(const struct pinfold_model_ops *ops, void *state,
                                  const char *name, struct pinfold_model **ret_model,
                                  struct pinfold_error *err);

/**
 * Take another reference.
 *
 * model  borrowed
 *
 * Returns model.
 * Threads: any.
 */
PINFOLD_API struct pinfold_model *pinfold_model_ref(struct pinfold_model *model);

/**
 * Give a reference back; the last one frees the model and wipes its keys.
 *
 * model  owned, NULL is fine
 *
 * Threads: any.
 */
PINFOLD_API void pinfold_model_unref(struct pinfold_model *model);

/**
 * The provider of a model: "bedrock", "anthropic", "openai", "scripted", or what its ops say.
 *
 * model  borrowed
 *
 * Returns a string that lives as long as the model.
 * Threads: any.
 */
PINFOLD_API const char *pinfold_model_provider(const struct pinfold_model *model);

/**
 * The name of a model, such as "claude-opus-5".
 *
 * model  borrowed
 *
 * Returns a string that lives as long as the model.
 * Threads: any.
 */
PINFOLD_API const char *pinfold_model_name(const struct pinfold_model *model);

/**
 * Have a conversation continued by one message. Blocks until the reply is whole; a reply that was
 * cut short is an error, never a short reply. What is retried, and how often, is the model's
 * matter: those of this library retry what passes (HTTP 408, 409, 429, 5xx, a connection that
 * breaks) as long as on_event has been told nothing of the reply.
 *
 * model      borrowed
 * request    borrowed
 * ret_reply  filled on success; the caller owns it, pinfold_model_reply_done()
 * cancel     borrowed, may be NULL
 * err        borrowed, may be NULL; http_status is the provider's, and retryable says that the
 *            same request may work later
 *
 * Returns 0, or -PINFOLD_EVALUE (the request makes no sense, or the provider says so: HTTP 400,
 * 404, 413, 422), -PINFOLD_EOS with sys_errno EACCES (the provider refused the key: HTTP 401, 403)
 * or another (the connection), -PINFOLD_EBACKEND (the provider failed, is overloaded, or sent what
 * is no reply), -PINFOLD_ETIMEOUT, -PINFOLD_ECANCELLED, -PINFOLD_ENOMEM.
 * Threads: any; several calls on one model run side by side.
 */
PINFOLD_API int pinfold_model_converse(struct pinfold_model *model,
                                       const struct pinfold_model_request *request,
                                       struct pinfold_model_reply *ret_reply,
                                       struct pinfold_cancel *cancel, struct pinfold_error *err);

/**
 * How many tokens a request is. Without a count of the model's own it is an estimate: a token for
 * 4 characters of text, and for 2 characters of JSON (inputs of tools, and their schemas).
 *
 * model       borrowed
 * request     borrowed; on_event is not used
 * ret_tokens  receives the number
 * cancel      borrowed, may be NULL
 * err         borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE, or what the model's own count failed with.
 * Threads: any.
 */
PINFOLD_API int pinfold_model_count_tokens(struct pinfold_model *model,
                                           const struct pinfold_model_request *request,
                                           uint64_t *ret_tokens, struct pinfold_cancel *cancel,
                                           struct pinfold_error *err);

/* ---- providers ---- */

/* How a provider is reached. Zero means default in every field. All strings are copied; keys are
 * wiped when the model is freed. */
struct pinfold_model_options {
    size_t size;       /* sizeof(struct pinfold_model_options) */
    const char *model; /* the provider's name of it; required */
    /* Where requests go: "http(s)://host[:port][/path]". NULL: the provider's own. For "anthropic"
     * and "openai" also ANTHROPIC_BASE_URL and OPENAI_BASE_URL, for "bedrock" what AWS's own tools
     * look at: AWS_ENDPOINT_URL_BEDROCK_RUNTIME, AWS_ENDPOINT_URL, the profile; FIPS and dual
     * stack. An "openai" one ends in the API's version, as in "http://127.0.0.1:11434/v1". */
    const char *base_url;
    /* NULL: ANTHROPIC_API_KEY, OPENAI_API_KEY, AWS_BEARER_TOKEN_BEDROCK. "": none. Never sent
     * anywhere but to base_url, and over plain http to this machine only. */
    const char *api_key;
    bool allow_plain_http;     /* send the key over plain http to other machines, too */
    unsigned max_tokens;       /* of a reply; 0: "anthropic" 8,192, others their own */
    const double *temperature; /* NULL: the provider's own */
    /* A JSON object whose members are put into every request's body, over what stands there: what a
     * provider knows besides, such as {"service_tier": "auto"}. May be NULL. */
    const char *extra;
    double connect_timeout_seconds; /* 0: 10 */
    double idle_timeout_seconds;    /* nothing arrives for so long; 0: 300 */
    double timeout_seconds;         /* all attempts together; 0: 1,800 */
    unsigned attempts;              /* at most, with the first one; 0: 5; up to 20 */
    /* Before the second attempt, doubled before each one after it up to 20 s, less up to a half of
     * it at random; what the provider asks for with retry-after, up to 60 s, if that is longer.
     * 0: 0.5 */
    double backoff_seconds;
    size_t max_reply_bytes; /* of the wire, headers excluded; 0: 64 MiB */
    bool send_reasoning; /* "openai": send reasoning back to the server; some refuse it, some need
                            it */
    /* "bedrock" only. region NULL: AWS_REGION, AWS_DEFAULT_REGION, the profile's. Credentials:
     * api_key, or these, or a profile, or whatever the environment, the profiles and the machine
     * offer, in the order of AWS's own tools. */
    const char *region;
    const char *profile;
    const char *access_key, *secret_key;
    const char *session_token;
};

#define PINFOLD_MODEL_OPTIONS_INIT PINFOLD_SIZED(struct pinfold_model_options)

/**
 * A model of Amazon Bedrock, through ConverseStream. Nothing is asked of the service yet.
 *
 * options    borrowed, copied
 * ret_model  receives the model; the caller owns one reference, pinfold_model_unref()
 * err        borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (an option makes no sense, no region), -PINFOLD_EOS (the profile's
 * file cannot be read) or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_model_bedrock_new(const struct pinfold_model_options *options,
                                          struct pinfold_model **ret_model,
                                          struct pinfold_error *err);

/**
 * A model of Anthropic, through the Messages API. Nothing is asked of the service yet.
 *
 * options    borrowed, copied
 * ret_model  receives the model; the caller owns one reference, pinfold_model_unref()
 * err        borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (an option makes no sense, no key) or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_model_anthropic_new(const struct pinfold_model_options *options,
                                            struct pinfold_model **ret_model,
                                            struct pinfold_error *err);

/**
 * A model of any server of OpenAI's chat completions: OpenAI, llama.cpp, Ollama, vLLM and so on.
 * A server of one's own needs no key. Nothing is asked of it yet.
 *
 * options    borrowed, copied
 * ret_model  receives the model; the caller owns one reference, pinfold_model_unref()
 * err        borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (an option makes no sense, or no key for OpenAI's own server) or
 * -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_model_openai_new(const struct pinfold_model_options *options,
                                         struct pinfold_model **ret_model,
                                         struct pinfold_error *err);

/**
 * A model that says what a file tells it to, for tests and demonstrations; docs/models.md has its
 * form. The file is read and checked now, and not again.
 *
 * path       borrowed; of a file of the host
 * ret_model  receives the model; the caller owns one reference, pinfold_model_unref()
 * err        borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (the file is no script; the message says where and why),
 * -PINFOLD_EOS (it cannot be read) or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_model_scripted_new(const char *path, struct pinfold_model **ret_model,
                                           struct pinfold_error *err);

/**
 * As pinfold_model_scripted_new(), from memory.
 *
 * json       borrowed
 * len        bytes of json
 * ret_model  receives the model; the caller owns one reference, pinfold_model_unref()
 * err        borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_model_scripted_from_memory(const char *json, size_t len,
                                                   struct pinfold_model **ret_model,
                                                   struct pinfold_error *err);

/**
 * Make a model of the form "PROVIDER:NAME": "bedrock:MODEL", "anthropic:MODEL", "openai:MODEL" or
 * "scripted:FILE".
 *
 * spec       borrowed
 * options    borrowed, copied; its model is not used; NULL: all default
 * ret_model  receives the model; the caller owns one reference, pinfold_model_unref()
 * err        borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (no such provider, or as its own function), or as that does.
 * Threads: any.
 */
PINFOLD_API int pinfold_model_open(const char *spec, const struct pinfold_model_options *options,
                                   struct pinfold_model **ret_model, struct pinfold_error *err);

/* Each empties what it is given: borrowed struct, owned contents; a zeroed struct is fine.
 * Threads: one at a time per struct. */
PINFOLD_API void pinfold_message_done(struct pinfold_message *message);
PINFOLD_API void pinfold_model_reply_done(struct pinfold_model_reply *reply);

PINFOLD_END_DECLS

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tools: what a model may call. A tool has a name, a description, a JSON Schema of its input, and a
 * function; its input is checked against the schema before the function runs. Also the host tools:
 * shell, python_repl, file_read, file_write and environment.
 */
#ifndef PINFOLD_TOOL_H
#define PINFOLD_TOOL_H

#include <pinfold/cancel.h>
#include <pinfold/error.h>
#include <pinfold/result.h>

PINFOLD_BEGIN_DECLS

struct pinfold_agent;
struct pinfold_tool;
struct pinfold_tool_call; /* one call under way */

enum pinfold_tool_content_kind {
    PINFOLD_TOOL_TEXT = 0, /* UTF-8 */
    PINFOLD_TOOL_JSON,     /* one JSON value, as text */
    PINFOLD_TOOL_IMAGE,    /* bytes; format is "png", "jpeg", ... */
    PINFOLD_TOOL_DOCUMENT, /* bytes; format is "pdf", "txt", ...; it has a name */
};

/* One content block of a result. */
struct pinfold_tool_content {
    enum pinfold_tool_content_kind kind;
    struct pinfold_bytes data;
    char *format; /* NULL for text and JSON */
    char *name;   /* of a document; else NULL */
};

/* What a call gave. Empty it with pinfold_tool_result_done(). */
struct pinfold_tool_result {
    bool is_error; /* the status: "error" instead of "success" */
    struct pinfold_tool_content *items;
    size_t count;
    size_t capacity; /* private */
};

/* Runs a call: fills ret_result, which comes empty, and returns 0; or returns a negative code with
 * err filled, which becomes a result of status "error" with that text, and never ends the agent.
 * Called from any thread, and for the calls of one turn of a model from several at once. Should
 * give up soon after pinfold_tool_call_cancel_token() has fired. err is never NULL. */
typedef int (*pinfold_tool_fn)(void *ctx, struct pinfold_tool_call *call,
                               struct pinfold_tool_result *ret_result, struct pinfold_error *err);

struct pinfold_tool_options {
    size_t size;
    const char *name;         /* required: 1 to 64 letters, digits, '_' and '-' */
    const char *description;  /* required: what models choose and use it by */
    const char *input_schema; /* a JSON Schema, whose type is "object"; NULL: no parameters */
    pinfold_tool_fn run;      /* required */
    void *ctx;
    void (*free)(void *ctx); /* the last reference is gone; may be NULL */
};

#define PINFOLD_TOOL_OPTIONS_INIT PINFOLD_SIZED(struct pinfold_tool_options)

/* The longest input of a call, in bytes of JSON; a longer one is refused with an error result. */
#define PINFOLD_TOOL_INPUT_MAX ((size_t)4 * 1024 * 1024)

/**
 * Make a tool.
 *
 * What is checked of an input is what JSON Schema's draft 2020-12 says, and draft 7 where they
 * differ in names, of type, enum, const, properties, patternProperties, additionalProperties,
 * propertyNames, required, dependentRequired, dependentSchemas, dependencies, minProperties,
 * maxProperties, items, prefixItems, additionalItems, contains, minContains, maxContains, minItems,
 * maxItems, uniqueItems, minLength, maxLength, pattern, format, minimum, maximum,
 * exclusiveMinimum, exclusiveMaximum, multipleOf, anyOf, oneOf, allOf, not, if, then, else, and
 * $ref as a pointer into the same schema. Formats are date-time, date, time, duration, email,
 * hostname, ipv4, ipv6, uri, uri-reference, uuid, json-pointer and regex; others are not checked.
 * All else is shown to models and not checked. Where the schema does not say additionalProperties,
 * and combines no others that could name more, unknown parameters are refused. What would take too
 * long to check, because of a pattern or of schemas that refer to each other, is refused.
 *
 * options   borrowed, copied; ctx is owned by the tool from success on
 * ret_tool  receives the tool; the caller owns one reference, pinfold_tool_unref()
 * err       borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (name, a missing field, a schema that is not one, or has a pattern
 * that is none) or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_tool_new(const struct pinfold_tool_options *options,
                                 struct pinfold_tool **ret_tool, struct pinfold_error *err);

/**
 * Take another reference.
 *
 * tool  borrowed
 *
 * Returns tool, for the caller to own.
 * Threads: any.
 */
PINFOLD_API struct pinfold_tool *pinfold_tool_ref(struct pinfold_tool *tool);

/**
 * Give a reference back; the last one frees the tool.
 *
 * tool  owned, NULL is fine
 *
 * Threads: any.
 */
PINFOLD_API void pinfold_tool_unref(struct pinfold_tool *tool);

/**
 * The name of a tool.
 *
 * tool  borrowed
 *
 * Returns text that lives as long as the tool.
 * Threads: any.
 */
PINFOLD_API const char *pinfold_tool_name(const struct pinfold_tool *tool);

/**
 * The description of a tool.
 *
 * tool  borrowed
 *
 * Returns text that lives as long as the tool.
 * Threads: any.
 */
PINFOLD_API const char *pinfold_tool_description(const struct pinfold_tool *tool);

/**
 * The JSON Schema of a tool's input, as compact JSON.
 *
 * tool  borrowed
 *
 * Returns text that lives as long as the tool.
 * Threads: any.
 */
PINFOLD_API const char *pinfold_tool_input_schema(const struct pinfold_tool *tool);

/**
 * Check an input as a call does, without calling.
 *
 * tool        borrowed
 * input       borrowed, len bytes of JSON
 * ret_wrong   receives what is wrong in words for a model, or an empty text; the caller owns it,
 *             pinfold_bytes_done()
 * err         borrowed, may be NULL
 *
 * Returns 1 (valid), 0 (not: see ret_wrong) or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_tool_check_input(const struct pinfold_tool *tool, const char *input,
                                         size_t len, struct pinfold_bytes *ret_wrong,
                                         struct pinfold_error *err);

/* ---- inside a call ---- */

/**
 * The agent that called; NULL when none did.
 *
 * call  borrowed
 *
 * Returns the agent, borrowed for the time of the call.
 * Threads: any, during the call.
 */
PINFOLD_API struct pinfold_agent *pinfold_tool_call_agent(const struct pinfold_tool_call *call);

/**
 * The id that the model gave the call.
 *
 * call  borrowed
 *
 * Returns text that lives as long as the call.
 * Threads: any, during the call.
 */
PINFOLD_API const char *pinfold_tool_call_id(const struct pinfold_tool_call *call);

/**
 * The token that fires when the call is to be given up; pass it on to whatever can take long.
 *
 * call  borrowed
 *
 * Returns the token, borrowed for the time of the call.
 * Threads: any, during the call.
 */
PINFOLD_API struct pinfold_cancel *
pinfold_tool_call_cancel_token(const struct pinfold_tool_call *call);

/**
 * The whole input.
 *
 * call     borrowed
 * ret_len  receives its length; may be NULL
 *
 * Returns an object as JSON text, which lives as long as the call.
 * Threads: any, during the call.
 */
PINFOLD_API const char *pinfold_tool_call_input(const struct pinfold_tool_call *call,
                                                size_t *ret_len);

/**
 * A parameter that is a string.
 *
 * call     borrowed
 * name     borrowed
 * ret_len  receives its length, for it may hold NUL bytes; may be NULL
 *
 * Returns the text, which lives as long as the call; NULL when it was left out, null, or no string.
 * Threads: any, during the call.
 */
PINFOLD_API const char *pinfold_tool_call_string(const struct pinfold_tool_call *call,
                                                 const char *name, size_t *ret_len);

/**
 * A parameter that is an integer, or a number without a fraction.
 *
 * call     borrowed
 * name     borrowed
 * missing  what to return when it was left out, null, or no integer
 *
 * Returns the value.
 * Threads: any, during the call.
 */
PINFOLD_API int64_t pinfold_tool_call_integer(const struct pinfold_tool_call *call,
                                              const char *name, int64_t missing);

/**
 * A parameter that is a number.
 *
 * call     borrowed
 * name     borrowed
 * missing  what to return when it was left out, null, or no number
 *
 * Returns the value.
 * Threads: any, during the call.
 */
PINFOLD_API double pinfold_tool_call_number(const struct pinfold_tool_call *call, const char *name,
                                            double missing);

/**
 * A parameter that is true or false.
 *
 * call     borrowed
 * name     borrowed
 * missing  what to return when it was left out, null, or neither
 *
 * Returns the value.
 * Threads: any, during the call.
 */
PINFOLD_API bool pinfold_tool_call_bool(const struct pinfold_tool_call *call, const char *name,
                                        bool missing);

/**
 * Add a block of text to a result. What is not UTF-8 in it becomes U+FFFD.
 *
 * result  borrowed
 * text    borrowed, len bytes
 * err     borrowed, may be NULL
 *
 * Returns 0 or -PINFOLD_ENOMEM.
 * Threads: one at a time per result.
 */
PINFOLD_API int pinfold_tool_result_add_text(struct pinfold_tool_result *result, const char *text,
                                             size_t len, struct pinfold_error *err);

/**
 * Add a block of another kind to a result.
 *
 * result   borrowed
 * content  borrowed, copied
 * err      borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (JSON that is none, an image or a document without a format) or
 * -PINFOLD_ENOMEM.
 * Threads: one at a time per result.
 */
PINFOLD_API int pinfold_tool_result_add(struct pinfold_tool_result *result,
                                        const struct pinfold_tool_content *content,
                                        struct pinfold_error *err);

/**
 * Empty a result.
 *
 * result  borrowed struct, owned contents; a zeroed one is fine
 *
 * Threads: one at a time per result.
 */
PINFOLD_API void pinfold_tool_result_done(struct pinfold_tool_result *result);

/* ---- host tools ---- */

/* The host tools, in this order: shell, python_repl, file_read, file_write, environment. */
#define PINFOLD_HOST_TOOLS 5

/* Ask a person whether a host tool may do something. question is one line or several; the answer
 * typed, without its line break, goes to answer, which has size bytes. Only "y" or "Y" is consent;
 * any other text is taken as the reason for the refusal, but after "n" the reason is asked for by a
 * second call. Returns false when nobody answers, which is a refusal. Called from the thread of the
 * tool call, possibly several at once. */
typedef bool (*pinfold_consent_fn)(void *ctx, const char *tool, const char *question, char *answer,
                                   size_t size);

struct pinfold_host_tools_options {
    size_t size;
    pinfold_consent_fn ask; /* NULL: nobody can be asked, and what needs consent is refused unless
                               BYPASS_TOOL_CONSENT is "true" */
    void *ask_ctx;          /* borrowed until the last of the tools is gone */
};

#define PINFOLD_HOST_TOOLS_OPTIONS_INIT PINFOLD_SIZED(struct pinfold_host_tools_options)

/**
 * Make one set of host tools. They do what they are told on the host, as this user, with no
 * isolation whatever; the mode "sandbox" blocks them. shell, python_repl, file_write, and the
 * actions of environment that change something ask for consent first, unless BYPASS_TOOL_CONSENT
 * is "true" in the environment of this process, in any case of letters and with nothing around it;
 * shell and python_repl also do without when STRANDS_NON_INTERACTIVE is. What environment sets is
 * seen by shell and python_repl of the same set, and not by this process. docs/agents.md has their
 * parameters.
 *
 * options    borrowed, copied; NULL for defaults
 * ret_tools  receives PINFOLD_HOST_TOOLS tools; the caller owns a reference to each
 * err        borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (options of the wrong size) or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_host_tools_new(const struct pinfold_host_tools_options *options,
                                       struct pinfold_tool *ret_tools[], struct pinfold_error *err);

PINFOLD_END_DECLS

#endif

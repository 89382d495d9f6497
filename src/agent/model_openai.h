/* SPDX-License-Identifier: Apache-2.0 */
/* Inside agent/: the two halves of the provider of chat completions. */
#ifndef PF_AGENT_MODEL_OPENAI_H
#define PF_AGENT_MODEL_OPENAI_H

#include "agent/model_http.h"
#include "net/sse.h"

/* What a server was found not to know; kept for the life of a model. */
struct pf_openai_dialect {
    bool no_stream_options;
    bool completion_tokens; /* max_completion_tokens instead of max_tokens */
};

struct pf_openai {
    struct pf_model_client client;
    bool send_reasoning;
    _Atomic bool no_stream_options, completion_tokens; /* a dialect, as last found */
};

/* The body of a request. NULL: out of memory. */
json_t *pf_openai_body(const struct pf_openai *model, const struct pinfold_model_request *request,
                       struct pf_openai_dialect dialect);

/* A call of a tool that is arriving. */
struct pf_openai_tool {
    bool has_index;
    json_int_t index;   /* the server's */
    char *id;           /* the server's; NULL: none came */
    size_t block;       /* of the reply; SIZE_MAX until its name is known */
    struct pf_buf held; /* input that came before the name */
};

struct pf_openai_stream {
    struct pf_openai *model;
    const struct pinfold_model_request *request;
    struct pf_openai_dialect dialect;
    struct pf_sse sse;
    bool sniffed, is_json;  /* a server that does not stream sends one object */
    struct pf_buf whole;    /* which is kept here */
    size_t text, reasoning; /* blocks of the reply that are open; SIZE_MAX: none is */
    struct pf_openai_tool *tools;
    size_t tool_count;
    char *finish;
    bool refused;
    struct pinfold_model_usage usage;
};

extern const struct pf_model_wire pf_openai_wire;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* JSON-RPC 2.0 as MCP uses it: what a message is, and what is wrong with one that is none. */
#ifndef PF_MCP_RPC_H
#define PF_MCP_RPC_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

enum {
    PF_MCP_PARSE_ERROR = -32700,
    PF_MCP_INVALID_REQUEST = -32600,
    PF_MCP_NO_METHOD = -32601,
    PF_MCP_INVALID_PARAMS = -32602,
    PF_MCP_INTERNAL_ERROR = -32603,
    PF_MCP_BUSY = -32000,
    PF_MCP_NO_RESOURCE = -32002,
};

/* Why a request is answered with an error. */
struct pf_mcp_fault {
    int code; /* 0: none; then a missing result is want of memory */
    char message[320];
};

/* Fill fault. Returns NULL, as whoever fails has to. */
void *pf_mcp_fail(struct pf_mcp_fault *fault, int code, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

enum pf_mcp_kind { PF_MCP_INVALID, PF_MCP_REQUEST, PF_MCP_NOTIFICATION, PF_MCP_RESPONSE };

/* One message. Everything is borrowed from the value that it was read from. */
struct pf_mcp_message {
    enum pf_mcp_kind kind;
    json_t *id; /* a string or an integer; NULL when there is none, or none that is valid */
    const char *method;
    json_t *params; /* an object, or NULL */
    json_t *result; /* of a response that is no error */
};

/* Read text as one JSON value. Strict: one value and nothing after it, UTF-8 without surrogates, no
 * name twice in an object, bounded depth and numbers. Returns NULL with fault filled. */
json_t *pf_mcp_parse(const char *text, size_t len, struct pf_mcp_fault *fault);

/* The id of what could not be read for nothing but surrogates in its texts: half an emoji that a
 * model has written. Whoever sent that waits for an answer with its id. NULL when it has none. */
json_t *pf_mcp_id_of_broken(const char *text, size_t len);

/* Tell what a value is. A PF_MCP_INVALID one fills fault, and has the id that the error is to be
 * sent with. */
void pf_mcp_classify(json_t *value, struct pf_mcp_message *ret, struct pf_mcp_fault *fault);

/* A reply; takes result. id may be NULL: then it is null. NULL when out of memory. */
json_t *pf_mcp_reply(json_t *id, json_t *result);
json_t *pf_mcp_error(json_t *id, const struct pf_mcp_fault *fault);

#endif

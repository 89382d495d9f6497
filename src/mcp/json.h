/* SPDX-License-Identifier: Apache-2.0 */
/* jansson, as the server uses it. Values that could not be made are NULL, and every function here
 * takes NULL for what is missing and passes the failure on: it is looked at once, at the end. */
#ifndef PF_MCP_JSON_H
#define PF_MCP_JSON_H

#include <stddef.h>

#include <jansson.h>

static inline void pf_mcp_decrefp(json_t **value)
{
    json_decref(*value);
}

#define _cleanup_json_ __attribute__((cleanup(pf_mcp_decrefp)))

/* Set object[key], or append to array, taking value. Returns 0 or -1. */
int pf_mcp_put(json_t *object, const char *key, json_t *value);
int pf_mcp_push(json_t *array, json_t *value);

/* value if bad is 0; else it is freed, and NULL. */
json_t *pf_mcp_whole(json_t *value, int bad);

/* A string of any bytes: what is not UTF-8 in them becomes U+FFFD. */
json_t *pf_mcp_text(const char *text, size_t len);

/* The text of a member that is a string, or NULL. Borrowed; ret_len may be NULL. */
const char *pf_mcp_string(const json_t *object, const char *key, size_t *ret_len);

/* Members that may be left out, or null. A number that is no integer is not one. */
json_int_t pf_mcp_integer(const json_t *object, const char *key, json_int_t missing);
double pf_mcp_number(const json_t *object, const char *key, double missing);
int pf_mcp_flag(const json_t *object, const char *key, int missing);

#endif

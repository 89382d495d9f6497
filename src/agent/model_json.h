/* SPDX-License-Identifier: Apache-2.0 */
/* Inside agent/: jansson, as the models use it. */
#ifndef PF_AGENT_MODEL_JSON_H
#define PF_AGENT_MODEL_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

static inline void pf_json_decrefp(json_t **json)
{
    json_decref(*json);
}

#define _cleanup_pf_json_ __attribute__((cleanup(pf_json_decrefp)))

/* Read a text that is one object, with NUL bytes in strings allowed. Returns NULL for what is none,
 * and *ret_nomem tells whether that was for want of memory. */
json_t *pf_json_object_load(const char *text, size_t len, bool *ret_nomem);

/* The text of a member that is a string, or NULL. Borrowed; ret_len may be NULL. */
const char *pf_json_text(const json_t *object, const char *key, size_t *ret_len);

/* A member that counts something: what is no number, negative, or beyond all reason is 0. */
unsigned long long pf_json_count(const json_t *object, const char *key);

/* Put value, which is taken even on failure and may be NULL for want of memory, under key or at the
 * end of an array. Returns 0 or -PINFOLD_ENOMEM. */
int pf_json_put(json_t *object, const char *key, json_t *value);
int pf_json_push(json_t *array, json_t *value);

#endif

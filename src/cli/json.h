/* SPDX-License-Identifier: Apache-2.0 */
/* Results as JSON. Each returns a new object, or NULL when out of memory. */
#ifndef PF_CLI_JSON_H
#define PF_CLI_JSON_H

#include <jansson.h>

#include <pinfold/error.h>
#include <pinfold/result.h>

json_t *pf_json_execute(const struct pinfold_execute_result *result);
json_t *pf_json_seed(const struct pinfold_seed_result *result);
json_t *pf_json_sync(const struct pinfold_sync_result *result);
json_t *pf_json_plan(const struct pinfold_plan *plan);
/* A name is bytes, and JSON is not: what is not printable UTF-8 is escaped. */
json_t *pf_json_name(const char *bytes);
json_t *pf_json_error(const struct pinfold_error *err);

/* Set object[key], taking value. Returns 0, or -1 when either is NULL or memory is short. */
int pf_json_set(json_t *object, const char *key, json_t *value);

/* Keep an object or array, unless something could not be put into it. */
json_t *pf_json_complete(json_t *json, int failures);

/* Print an object and a newline to stdout, and free it. Returns 0, or the exit status for that it
 * could not be done, after having said why unless nobody reads stdout. */
int pf_json_print(json_t *object);

/* The word for an action of a plan. */
const char *pf_plan_word(enum pinfold_plan_action action);

#endif

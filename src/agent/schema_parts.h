/* SPDX-License-Identifier: Apache-2.0 */
/* Inside agent/: what the checks of JSON Schema are made of. */
#ifndef PF_AGENT_SCHEMA_PARTS_H
#define PF_AGENT_SCHEMA_PARTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* How deep schemas nest, references included: one that refers to itself must end somewhere. */
enum { PF_SCHEMA_DEPTH_MAX = 64 };

/* schema_equal.c: a total order in which 1 and 1.0 are equal, as JSON Schema wants them to be. */
int pf_json_compare(const json_t *a, const json_t *b);
/* Returns 1 (no two items of the array are equal), 0 or -PINFOLD_ENOMEM. */
int pf_json_unique(const json_t *array);
/* An integer, or a real number without a fraction. */
bool pf_json_whole(const json_t *value);

/* schema_pattern.c. Whether a pattern is one: returns 0, or -PINFOLD_EVALUE with the reason in
 * wrong, or -PINFOLD_ENOMEM. */
enum { PF_PATTERN_WRONG_MAX = 120 };
int pf_pattern_check(const char *pattern, size_t len, char wrong[static PF_PATTERN_WRONG_MAX]);
/* Returns 1 (text has it), 0 (not), -PINFOLD_ETIMEOUT (that would have taken too long to find out)
 * or -PINFOLD_ENOMEM. */
int pf_pattern_match(const char *pattern, size_t len, const char *text, size_t text_len);

/* schema_format.c. Whether a text is of a format; of formats that are not known all are. */
bool pf_format_fits(const char *format, const char *text, size_t len);

/* schema_check.c: what "#", "#/$defs/name" or "#/allOf/0/properties/x" stands for, or NULL. */
const json_t *pf_schema_resolve(const json_t *root, const char *reference);

#endif

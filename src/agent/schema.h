/* SPDX-License-Identifier: Apache-2.0 */
/* The part of JSON Schema that tools use: <pinfold/tool.h> says which. */
#ifndef PF_AGENT_SCHEMA_H
#define PF_AGENT_SCHEMA_H

#include <jansson.h>

#include "base/buf.h"

#include <pinfold/error.h>

/* Whether a schema can be checked against: the keywords that are looked at have values of the right
 * kind. Returns 0 or -PINFOLD_EVALUE. */
int pf_schema_check(const json_t *schema, struct pinfold_error *err);

/* Check a value. Appends one line for each of the first few things that are wrong, for a model to
 * read. Returns 1 (valid), 0 (not) or -PINFOLD_ENOMEM. */
int pf_schema_validate(const json_t *schema, const json_t *value, struct pf_buf *wrong);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The part of JSON Schema that tools use: <pinfold/tool.h> says which. */
#ifndef PF_AGENT_SCHEMA_H
#define PF_AGENT_SCHEMA_H

#include <jansson.h>

#include "base/buf.h"

#include <pinfold/error.h>

/* Whether a schema can be checked against: the keywords that are looked at have values of the right
 * kind, patterns are such, and references lead somewhere. Returns 0, -PINFOLD_EVALUE or
 * -PINFOLD_ENOMEM. */
int pf_schema_check(const json_t *schema, struct pinfold_error *err);
/* And whether it is one of objects, as a tool's must be. */
int pf_schema_check_input(const json_t *schema, struct pinfold_error *err);

/* Whether a schema names all the properties there can be, if it does not say so itself: a tool's
 * does, unless some of them may be named by what it refers to or combines. */
bool pf_schema_names_all(const json_t *schema);

/* Check a value. closed: the properties that the schema names are all there are, where it does not
 * say additionalProperties. Appends one line for each of the first few things that are wrong, for a
 * model to read. Returns 1 (valid), 0 (not) or -PINFOLD_ENOMEM. */
int pf_schema_validate(const json_t *schema, const json_t *value, bool closed,
                       struct pf_buf *wrong);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Changing one member of a JSON file that is somebody else's: every other byte stays, comments and
 * the order of the members among them. */
#ifndef PF_CLI_JSONC_H
#define PF_CLI_JSONC_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include <pinfold/error.h>

/* Set member name of the object section of the whole to value, borrowed. A text that is blank is an
 * empty object. comments: the file's readers know comments, and commas after the last member.
 * ret_text receives the new text, to free(). Returns 0, -PINFOLD_EVALUE (no JSON, or it has
 * something else where an object is needed; err.msg says what, without a path) or -PINFOLD_ENOMEM.
 */
int pf_jsonc_set(const char *text, size_t len, bool comments, const char *section, const char *name,
                 json_t *value, char **ret_text, struct pinfold_error *err);

#endif

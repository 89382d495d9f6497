/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the options that several commands take, and how values of options are taken in. */
#ifndef PF_CLI_FLAGS_H
#define PF_CLI_FLAGS_H

#include "cli/options.h"

extern const struct pf_flag pf_flags[];
extern const size_t pf_flag_count;

/* How a row of such a table ends: with what its value goes into. A field of another type does not
 * compile. NOLINTBEGIN(bugprone-macro-parentheses): a type there has none */
#define PF_INTO(value, type, field) \
    value, _Generic(((struct pf_options *)0)->field, type : offsetof(struct pf_options, field))
/* NOLINTEND(bugprone-macro-parentheses) */
#define PF_SWITCH(field) PF_INTO(PF_VALUE_SWITCH, bool, field)
#define PF_TAKE_TEXT(field) PF_INTO(PF_VALUE_TEXT, const char *, field)
#define PF_TAKE_DIRECTORY(field) PF_INTO(PF_VALUE_DIRECTORY, const char *, field)
#define PF_TAKE_FILE(field) PF_INTO(PF_VALUE_FILE, const char *, field)
#define PF_TAKE_NAME(field) PF_INTO(PF_VALUE_NAME, const char *, field)
#define PF_TAKE_LIST(field) PF_INTO(PF_VALUE_LIST, const char **, field)
#define PF_TAKE_SECONDS(field) PF_INTO(PF_VALUE_SECONDS, double, field)
#define PF_TAKE_BYTES(field) PF_INTO(PF_VALUE_BYTES, uint64_t, field)
#define PF_TAKE_BYTE_LIMIT(field) PF_INTO(PF_VALUE_BYTE_LIMIT, uint64_t, field)
#define PF_TAKE_LIMIT(field) PF_INTO(PF_VALUE_LIMIT, uint64_t, field)
#define PF_TAKE_BY(function) PF_VALUE_OWN, 0, function

/* Take a value in; NULL when there is none. Returns NULL, or what is wrong with it. */
const char *pf_flag_take(const struct pf_flag *flag, struct pf_options *options, const char *value);

#endif

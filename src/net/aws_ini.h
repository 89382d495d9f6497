/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of ~/.aws/config and ~/.aws/credentials, as Python's configparser takes them. */
#ifndef PF_NET_AWS_INI_H
#define PF_NET_AWS_INI_H

#include <pinfold/error.h>
#include <stddef.h>

#include "base/buf.h"

struct pf_ini_pair {
    const char *key, *value; /* key in lower case; both lie in the text */
};

struct pf_ini_section {
    const char *name;
    size_t first, count; /* of the pairs */
};

struct pf_ini {
    struct pf_buf text;
    struct pf_ini_section *sections;
    struct pf_ini_pair *pairs;
    size_t section_count, pair_count;
};

/* Read what the caller has put into text, which is overwritten. Returns 0, -PINFOLD_EVALUE (the
 * message names the line, not what is in it) or -PINFOLD_ENOMEM. */
int pf_ini_parse(struct pf_ini *ini, const char *path, struct pinfold_error *err);
const char *pf_ini_get(const struct pf_ini *ini, const struct pf_ini_section *section,
                       const char *key); /* NULL: none */
/* A value of the lines that are indented below a key; *ret_len bytes at the result, NULL: none. */
const char *pf_ini_nested(const char *value, const char *key, size_t *ret_len);
void pf_ini_done(struct pf_ini *ini); /* wipes */

#endif

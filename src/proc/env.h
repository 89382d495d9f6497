/* SPDX-License-Identifier: Apache-2.0 */
/* Building the environment of a command. */
#ifndef PF_PROC_ENV_H
#define PF_PROC_ENV_H

#include <pinfold/error.h>

/* Merge NULL-terminated lists of "NAME=value"; later lists win; NULL lists are skipped. Returns a
 * vector for pf_strv_free(), or NULL when out of memory. */
char **pf_env_merge(const char *const *const *lists, size_t count);

/* 0, or -PINFOLD_EVALUE with the number of the first entry that is not NAME=value with a non-empty
 * NAME. */
int pf_env_check(const char *const *list, struct pinfold_error *err);

#endif

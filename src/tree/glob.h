/* SPDX-License-Identifier: Apache-2.0 */
/* The one glob matcher, for seed excludes and sync includes. Its rules: <pinfold/policy.h>. */
#ifndef PF_TREE_GLOB_H
#define PF_TREE_GLOB_H

#include <pinfold/policy.h>

struct pf_globs; /* compiled patterns; immutable, so any thread may match */

/* Compile. Returns 0, -PINFOLD_EVALUE (names the pattern) or -PINFOLD_ENOMEM. */
int pf_globs_new(const char *const *patterns, struct pf_globs **ret, struct pinfold_error *err);
void pf_globs_free(struct pf_globs *globs);
void pf_globs_freep(struct pf_globs **globs);

/* Whether one of the patterns matches this very path (its parents are not tried: a walker prunes).
 * path is relative, len bytes, no leading or trailing '/'. No allocation. */
bool pf_globs_match(const struct pf_globs *globs, const char *path, size_t len, bool is_dir);

/* Whether something below the directory path could match. False lets a walker skip it whole. */
bool pf_globs_could_match_below(const struct pf_globs *globs, const char *path, size_t len);

#endif

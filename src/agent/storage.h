/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PF_AGENT_STORAGE_H
#define PF_AGENT_STORAGE_H

#include <pinfold/offload.h>

extern const struct pinfold_storage_ops pf_storage_file_ops;

/* Whether references are paths of this host. */
bool pf_storage_is_on_disk(const struct pinfold_storage *storage);

/* What is neither a letter, a digit, '_', '-' nor '.' becomes '_', and so does "..". */
void pf_storage_sanitise(char *key);

#endif

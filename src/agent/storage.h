/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PF_AGENT_STORAGE_H
#define PF_AGENT_STORAGE_H

#include <pinfold/offload.h>

extern const struct pinfold_storage_ops pf_storage_file_ops, pf_storage_s3_ops;

/* As pinfold_storage_store() and pinfold_storage_retrieve(), given up when cancel, which may be
 * NULL, fires: for storages that can take long. */
int pf_storage_store(struct pinfold_storage *storage, const char *key,
                     const struct pinfold_bytes *data, const char *content_type,
                     char **ret_reference, struct pinfold_cancel *cancel,
                     struct pinfold_error *err);
int pf_storage_retrieve(struct pinfold_storage *storage, const char *reference,
                        struct pinfold_bytes *ret_data, char **ret_content_type,
                        struct pinfold_cancel *cancel, struct pinfold_error *err);

/* storage_s3.c: the same of its state. */
int pf_storage_s3_store(void *state, const char *key, const struct pinfold_bytes *data,
                        const char *content_type, char **ret_reference,
                        struct pinfold_cancel *cancel, struct pinfold_error *err);
int pf_storage_s3_retrieve(void *state, const char *reference, struct pinfold_bytes *ret_data,
                           char **ret_content_type, struct pinfold_cancel *cancel,
                           struct pinfold_error *err);

/* Whether references are paths of this host. */
bool pf_storage_is_on_disk(const struct pinfold_storage *storage);

/* What is neither a letter, a digit, '_', '-' nor '.' becomes '_', and so does "..". */
void pf_storage_sanitise(char *key);

#endif

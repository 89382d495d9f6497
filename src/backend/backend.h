/* SPDX-License-Identifier: Apache-2.0 */
/* All that the rooms above know of a backend: short spellings for calling its table. */
#ifndef PF_BACKEND_BACKEND_H
#define PF_BACKEND_BACKEND_H

#include <pinfold/backend.h>

struct pinfold_backend {
    const struct pinfold_backend_ops *ops;
    void *state;
    char *id;
    unsigned refs; /* atomic */
};

/* Call an operation, or fail with PINFOLD_ENOTSUP when the table lacks it. */
#define PF_BACKEND_CALL(backend, err, op, ...)                              \
    ((backend)->ops->op ? (backend)->ops->op((backend)->state, __VA_ARGS__) \
                        : pf_backend_unsupported((backend), #op, (err)))

int pf_backend_unsupported(const struct pinfold_backend *backend, const char *operation,
                           struct pinfold_error *err);
int pf_backend_create(struct pinfold_backend *backend, struct pinfold_cancel *cancel,
                      struct pinfold_error *err);
int pf_backend_close(struct pinfold_backend *backend, struct pinfold_error *err);
void pf_backend_stop_commands(struct pinfold_backend *backend);
void pf_backend_watch_network(struct pinfold_backend *backend, pinfold_network_fn fn, void *ctx);
const char *pf_backend_root(const struct pinfold_backend *backend);
const char *pf_backend_storage_key(const struct pinfold_backend *backend);

/* For transfer operations of backends: one zeroed result per request. */
int pf_transfer_results_new(size_t count, struct pinfold_transfer_results *ret);

#endif

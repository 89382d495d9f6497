/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/random.h"

int pinfold_backend_new(const struct pinfold_backend_ops *ops, void *state, const char *id,
                        struct pinfold_backend **ret_backend, struct pinfold_error *err)
{
    _cleanup_free_ struct pinfold_backend *backend = NULL;
    char digits[9];

    if (ops->size != sizeof(*ops) || !ops->type_name)
        return pf_fail(err, PINFOLD_EVALUE,
                       "backend table: size is %zu, not %zu, or it has no type_name", ops->size,
                       sizeof(*ops));
    backend = calloc(1, sizeof(*backend));
    if (!backend)
        return pf_fail_nomem(err);
    if (id) {
        backend->id = strdup(id);
    } else {
        pf_random_hex(digits, 8);
        if (asprintf(&backend->id, "%s-%s", ops->type_name, digits) < 0)
            backend->id = NULL;
    }
    if (!backend->id)
        return pf_fail_nomem(err);
    backend->ops = ops;
    backend->state = state;
    backend->refs = 1;
    *ret_backend = TAKE(backend);
    return 0;
}

struct pinfold_backend *pinfold_backend_ref(struct pinfold_backend *backend)
{
    __atomic_fetch_add(&backend->refs, 1, __ATOMIC_RELAXED);
    return backend;
}

void pinfold_backend_unref(struct pinfold_backend *backend)
{
    if (!backend || __atomic_sub_fetch(&backend->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    if (backend->ops->free)
        backend->ops->free(backend->state);
    free(backend->id);
    free(backend);
}

const char *pinfold_backend_id(const struct pinfold_backend *backend)
{
    return backend->id;
}

const struct pinfold_backend_ops *pinfold_backend_get_ops(const struct pinfold_backend *backend)
{
    return backend->ops;
}

void *pinfold_backend_get_state(const struct pinfold_backend *backend)
{
    return backend->state;
}

bool pinfold_supports_execution(const struct pinfold_backend *backend)
{
    return backend && backend->ops->execute;
}

int pf_backend_unsupported(const struct pinfold_backend *backend, const char *operation,
                           struct pinfold_error *err)
{
    return pf_fail(err, PINFOLD_ENOTSUP, "backend %s (%s) has no %s", backend->id,
                   backend->ops->type_name, operation);
}

int pf_backend_create(struct pinfold_backend *backend, struct pinfold_cancel *cancel,
                      struct pinfold_error *err)
{
    return backend->ops->create ? backend->ops->create(backend->state, cancel, err) : 0;
}

int pf_backend_close(struct pinfold_backend *backend, struct pinfold_error *err)
{
    return backend->ops->close ? backend->ops->close(backend->state, err) : 0;
}

void pf_backend_stop_commands(struct pinfold_backend *backend)
{
    if (backend->ops->stop_commands)
        backend->ops->stop_commands(backend->state, NULL); /* close reports what stays broken */
}

void pf_backend_watch_network(struct pinfold_backend *backend, pinfold_network_fn fn, void *ctx)
{
    if (backend->ops->watch_network)
        backend->ops->watch_network(backend->state, fn, ctx);
}

const char *pf_backend_root(const struct pinfold_backend *backend)
{
    return backend->ops->workspace_root ? backend->ops->workspace_root(backend->state) : NULL;
}

const char *pf_backend_storage_key(const struct pinfold_backend *backend)
{
    return backend->ops->storage_key ? backend->ops->storage_key(backend->state) : NULL;
}

int pf_transfer_results_new(size_t count, struct pinfold_transfer_results *ret)
{
    struct pinfold_transfer_result *items = calloc(count ? count : 1, sizeof(*items));

    if (!items)
        return -PINFOLD_ENOMEM;
    *ret = (struct pinfold_transfer_results){ .items = items, .count = count };
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Seeding a sandbox by an overlay, or by a copy where that cannot be had, and coming home. */
#include "backend/isolated.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/log.h"

/* From here on the workspace is what the jail shows, to the host's side too. */
static int enter_overlay(struct pf_isolated *isolated, struct pinfold_error *err)
{
    struct pf_directory *dir = &isolated->dir;
    _cleanup_close_ int fd = pf_jail_take_root(isolated->jail);
    struct pf_local_root *root = fd < 0 ? NULL : pf_local_root_new(fd);

    if (fd < 0)
        return pf_fail(err, PINFOLD_EBACKEND, "start a sandbox: it gives no way into its overlay");
    if (!root)
        return pf_fail_nomem(err);
    (void)TAKE_FD(fd);
    pthread_mutex_lock(&dir->lock);
    pf_local_root_put(dir->root);
    dir->root = root;
    pthread_mutex_unlock(&dir->lock);
    return 0;
}

static const char used_already[] = "commands have run in the sandbox, or it was seeded";

/* The jail of a seed. Not when there is one already: nothing can be mounted in it any more. */
static int seeded_jail(struct pf_isolated *isolated, const char *seed, struct pinfold_error *err)
{
    int r = PF_JAIL_NO_OVERLAY;

    pthread_mutex_lock(&isolated->opening);
    if (isolated->jail)
        pf_fail(err, PINFOLD_ESTART, "%s", used_already);
    else
        r = pf_isolated_open_jail(isolated, seed, err);
    pthread_mutex_unlock(&isolated->opening);
    return r;
}

/* Returns PF_JAIL_NO_OVERLAY when a copy has to do, and why says why. */
static int seed_overlay(struct pf_isolated *isolated, const struct pinfold_seed_request *request,
                        struct pinfold_seed_result *ret_result, char *why, size_t size,
                        struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pinfold_error cause = PINFOLD_ERROR_INIT;
    bool used;
    int r;

    pthread_mutex_lock(&isolated->opening);
    used = isolated->jail != NULL;
    pthread_mutex_unlock(&isolated->opening);
    if (used) {
        snprintf(why, size, "%s", used_already);
        return PF_JAIL_NO_OVERLAY;
    }
    r = pf_layers_make(&isolated->layers, isolated->dir.root->fd, request, ret_result, why, size,
                       cancel, err);
    if (r != 0)
        return r;
    r = seeded_jail(isolated, request->source, &cause);
    if (r == 0)
        r = enter_overlay(isolated, &cause);
    if (r == 0 && pf_layers_hide(isolated->dir.root->fd, ret_result)) {
        ret_result->mode = PINFOLD_SEED_OVERLAY;
        return 0;
    }
    if (r == 0)
        return pf_fail(err, PINFOLD_EBACKEND,
                       "start a sandbox: this kernel's overlay shows what is hidden in the seed; "
                       "seed by copying");
    pinfold_seed_result_done(ret_result);
    if (r == PF_JAIL_NO_OVERLAY) {
        pf_layers_done(&isolated->layers, true);
        snprintf(why, size, "%s", cause.msg);
    } else if (err) {
        *err = cause;
    }
    return r;
}

static int seed_by_copy(struct pf_isolated *isolated, const struct pinfold_seed_request *request,
                        const char *why, struct pinfold_seed_result *ret_result,
                        struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    int r = pf_isolated_need_jail(isolated, err);

    if (r < 0)
        return r;
    r = pf_directory_seed_workspace(isolated, request, ret_result, cancel, err);
    if (r < 0)
        return r;
    pf_log(PINFOLD_LOG_WARNING, "the seed %s is copied, an overlay cannot be had: %s",
           PF_QUOTE(request->source), why);
    ret_result->fallback = strdup(why);
    return ret_result->fallback ? 0 : pf_fail_nomem(err);
}

static int isolated_seed(void *state, const struct pinfold_seed_request *request,
                         struct pinfold_seed_result *ret_result, struct pinfold_cancel *cancel,
                         struct pinfold_error *err)
{
    struct pf_isolated *isolated = state;
    char why[256] = "";
    int r;

    if (isolated->seed_mode != PINFOLD_SEED_OVERLAY || request->plan)
        return pf_directory_seed_workspace(state, request, ret_result, cancel, err);
    r = seed_overlay(isolated, request, ret_result, why, sizeof(why), cancel, err);
    return r == PF_JAIL_NO_OVERLAY ? seed_by_copy(isolated, request, why, ret_result, cancel, err)
                                   : r;
}

/* Back to the seed only what was changed can differ. To any other place all is compared. */
int pf_isolated_sync(void *state, const struct pinfold_sync_request *request,
                     struct pinfold_sync_result *ret_result, struct pinfold_cancel *cancel,
                     struct pinfold_error *err)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = NULL;
    struct pf_isolated *isolated = state;
    const struct pf_layers *layers = &isolated->layers;
    struct pf_local_overlay overlay = { layers->host_fd, pf_layers_on(layers, request->dest) };
    int r;

    if (!layers->made)
        return pf_directory_sync_artifacts(state, request, ret_result, cancel, err);
    r = pf_directory_get_root(&isolated->dir, &root, cancel, err);
    return r < 0 ? r
                 : pf_local_sync(overlay.upper ? layers->changes_fd : root->fd, &overlay,
                                 isolated->dir.real_root, request, ret_result, cancel, err);
}

int pf_isolated_seed_workspace(void *state, const struct pinfold_seed_request *request,
                               struct pinfold_seed_result *ret_result,
                               struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pf_isolated *isolated = state;
    int r = isolated_seed(state, request, ret_result, cancel, err);

    if (r < 0 || request->plan)
        return r;
    r = pf_quota_seeded(&isolated->quota, err);
    if (r < 0)
        pinfold_seed_result_done(ret_result);
    return r < 0 ? pf_wrap(err, r, "seed") : 0;
}

int pf_isolated_open_root(void *state, int *ret_root, int *ret_upper, struct pinfold_cancel *cancel,
                          struct pinfold_error *err)
{
    const struct pf_isolated *isolated = state;
    int r = pf_directory_open_root(state, ret_root, ret_upper, cancel, err);

    if (r < 0 || !isolated->layers.made)
        return r;
    *ret_upper = fcntl(isolated->layers.changes_fd, F_DUPFD_CLOEXEC, 0);
    if (*ret_upper >= 0)
        return 0;
    r = pf_fail_os(err, errno, "open the upper layer of the workspace");
    close(*ret_root);
    return r;
}

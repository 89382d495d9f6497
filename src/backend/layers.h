/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's side of overlay seeding: the layers of an overlay in a workspace's directory. The jail
 * mounts them on the seed (jail/init_overlay.c), and nothing is copied.
 */
#ifndef PF_BACKEND_LAYERS_H
#define PF_BACKEND_LAYERS_H

#include <pinfold/backend.h>

struct pf_layers {
    int host_fd;    /* the workspace's directory; -1: there are no layers */
    int changes_fd; /* what the agent made */
    int seed_fd;
    bool made; /* the directories are ours */
};

#define PF_LAYERS_INIT    \
    {                     \
        -1, -1, -1, false \
    }

/* Make the layers for a seed in the empty directory host_fd (borrowed). ret_result is what a copy
 * would give. Returns 0; 1 when a copy has to do: why says why, and nothing is left behind; or a
 * negative code. */
int pf_layers_make(struct pf_layers *layers, int host_fd,
                   const struct pinfold_seed_request *request,
                   struct pinfold_seed_result *ret_result, char *why, size_t size,
                   struct pinfold_cancel *cancel, struct pinfold_error *err);

/* Whether in the mounted overlay root_fd really is nothing to be seen of what was left out. */
bool pf_layers_hide(int root_fd, const struct pinfold_seed_result *result);

/* Whether a host directory is the seed, so that a flush need not look at what did not change. */
bool pf_layers_on(const struct pf_layers *layers, const char *dest);

/* Remove the layers, once nothing shows them: the two that are of no use to anybody, or all. */
void pf_layers_done(struct pf_layers *layers, bool all);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* File transfer between a workspace directory on this machine and the host. */
#ifndef PF_BACKEND_LOCAL_FILES_H
#define PF_BACKEND_LOCAL_FILES_H

#include <pinfold/backend.h>

/* A root directory that operations of several threads share while it may be replaced. */
struct pf_local_root {
    int fd;
    unsigned refs; /* atomic */
    int prompt; /* atomic; pf_file_system_is_prompt(): 1, -1 for no, 0 before anybody has asked */
};

struct pf_local_root *pf_local_root_new(int fd); /* owns fd on success; NULL: out of memory */
struct pf_local_root *pf_local_root_get(struct pf_local_root *root);
void pf_local_root_put(struct pf_local_root *root); /* NULL is fine */
void pf_local_root_putp(struct pf_local_root **root);

/* The operations of struct pinfold_backend_ops with the same names, on an open root; root_name is
 * for messages. */
int pf_local_upload(int root_fd, const struct pinfold_upload *files, size_t count, bool overwrite,
                    struct pinfold_transfer_results *ret_results, struct pinfold_cancel *cancel,
                    struct pinfold_error *err);
int pf_local_download(int root_fd, const struct pinfold_download *files, size_t count,
                      bool overwrite, struct pinfold_transfer_results *ret_results,
                      struct pinfold_cancel *cancel, struct pinfold_error *err);
int pf_local_seed(int root_fd, const char *root_name, const struct pinfold_seed_request *request,
                  struct pinfold_seed_result *ret_result, struct pinfold_cancel *cancel,
                  struct pinfold_error *err);
/* overlay: NULL, or that of the root; upper: root_fd is the upper layer of it alone. */
struct pf_local_overlay {
    int host_fd; /* its directory on the host */
    bool upper;
};
int pf_local_sync(int root_fd, const struct pf_local_overlay *overlay, const char *root_name,
                  const struct pinfold_sync_request *request,
                  struct pinfold_sync_result *ret_result, struct pinfold_cancel *cancel,
                  struct pinfold_error *err);

/* The same from a copy of a workspace that is elsewhere, in a directory of which only we know. */
int pf_local_sync_copy(const char *path, const struct pinfold_sync_request *request,
                       struct pinfold_sync_result *ret_result, struct pinfold_cancel *cancel,
                       struct pinfold_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What backends on this machine have in common: a host directory as workspace, the file operations
 * on it, and the table of commands. A backend's state begins with a struct pf_directory, so that
 * the operations below stand in its table as they are.
 */
#ifndef PF_BACKEND_DIRECTORY_H
#define PF_BACKEND_DIRECTORY_H

#include <pthread.h>

#include "backend/backend.h"
#include "backend/local_files.h"
#include "proc/run.h"

struct pf_directory {
    char *configured_root;
    char **env; /* of the backend, for every command */
    double timeout_seconds;
    size_t max_output_bytes;
    bool fixed; /* a root that is deleted does not come back: something else shows it */

    pthread_mutex_t lock; /* guards root, its replacement, and the launcher */
    struct pf_local_root *root;
    char *real_root;      /* since the first open; never changes after */
    char storage_key[48]; /* device and inode of the root */
    struct pf_launcher *launcher;
    bool stopped;
};

/* Check what all options have; class_name is for the message. */
int pf_directory_check(const char *class_name, double timeout_seconds, const char *const *env,
                       struct pinfold_error *err);
/* Fill a zeroed struct; on failure it is to be emptied all the same. workspace_root NULL: set
 * configured_root before opening. */
int pf_directory_init(struct pf_directory *dir, const char *workspace_root, double timeout_seconds,
                      size_t max_output_bytes, const char *const *env, struct pinfold_error *err);
void pf_directory_done(struct pf_directory *dir);

/* Open the root, which is made when it is missing and must be writable; close it and what runs. */
int pf_directory_open(struct pf_directory *dir, struct pinfold_error *err);
void pf_directory_close(struct pf_directory *dir);

/* Begin an operation: unless it is cancelled already, the root, to give back with
 * pf_local_root_put(). A root that was deleted is an error on every call, and works again as soon
 * as somebody has made it anew. */
int pf_directory_get_root(struct pf_directory *dir, struct pf_local_root **ret,
                          struct pinfold_cancel *cancel, struct pinfold_error *err);

/* What a command's options mean here; the working directory is left to the caller. env is
 * borrowed. */
int pf_directory_request(const struct pf_directory *dir,
                         const struct pinfold_execute_options *options, const char *const *env,
                         struct pinfold_cancel *cancel, struct pf_run_request *ret,
                         struct pinfold_error *err);
/* "PWD=root/cwd" on the heap; NULL: out of memory. */
char *pf_directory_pwd(const char *root, const char *cwd);

/* Operations of struct pinfold_backend_ops. */
int pf_directory_stop_commands(void *state, struct pinfold_error *err);
const char *pf_directory_storage_key(void *state);
int pf_directory_read_file(void *state, const char *path, struct pinfold_bytes *ret_content,
                           struct pinfold_cancel *cancel, struct pinfold_error *err);
bool pf_directory_try_read_file(void *state, const char *path, size_t limit,
                                struct pinfold_bytes *ret_content);
int pf_directory_write_file(void *state, const char *path, const void *data, size_t len,
                            bool exclusive, struct pinfold_cancel *cancel,
                            struct pinfold_error *err);
int pf_directory_list_dir(void *state, const char *path, struct pinfold_file_infos *ret_infos,
                          struct pinfold_cancel *cancel, struct pinfold_error *err);
int pf_directory_remove_file(void *state, const char *path, struct pinfold_cancel *cancel,
                             struct pinfold_error *err);
int pf_directory_move_file(void *state, const char *src, const char *dest,
                           struct pinfold_cancel *cancel, struct pinfold_error *err);
int pf_directory_upload_files(void *state, const struct pinfold_upload *files, size_t count,
                              bool overwrite, struct pinfold_transfer_results *ret_results,
                              struct pinfold_cancel *cancel, struct pinfold_error *err);
int pf_directory_download_files(void *state, const struct pinfold_download *files, size_t count,
                                bool overwrite, struct pinfold_transfer_results *ret_results,
                                struct pinfold_cancel *cancel, struct pinfold_error *err);
int pf_directory_seed_workspace(void *state, const struct pinfold_seed_request *request,
                                struct pinfold_seed_result *ret_result,
                                struct pinfold_cancel *cancel, struct pinfold_error *err);
int pf_directory_sync_artifacts(void *state, const struct pinfold_sync_request *request,
                                struct pinfold_sync_result *ret_result,
                                struct pinfold_cancel *cancel, struct pinfold_error *err);
int pf_directory_replace_file(void *state, const char *path, const struct pinfold_bytes *expected,
                              const void *data, size_t len, struct pinfold_cancel *cancel,
                              struct pinfold_error *err);
int pf_directory_remove_dir(void *state, const char *path, bool recursive,
                            struct pinfold_cancel *cancel, struct pinfold_error *err);
int pf_directory_move_path(void *state, const char *src, const char *dest, bool no_replace,
                           struct pinfold_cancel *cancel, struct pinfold_error *err);
int pf_directory_open_root(void *state, int *ret_root, int *ret_upper,
                           struct pinfold_cancel *cancel, struct pinfold_error *err);

#endif

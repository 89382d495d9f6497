/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Temporary workspaces: directories under $TMPDIR (or /tmp) that are gone when their owner is done
 * with them, and also when it was killed, exits or executes another program: while there are any,
 * a process beside the owner waits for that. The host sees it neither by a wait for any child nor
 * by a signal, and it has none of the host's descriptors open. It shares the host's memory and
 * keeps the rights that the host had: one that gives up some for good does so before it makes its
 * first workspace or sandbox. Should that process be killed too, or not be had, the next pinfold of
 * the same user deletes what nobody holds a lock on.
 */
#ifndef PINFOLD_TEMP_WORKSPACE_H
#define PINFOLD_TEMP_WORKSPACE_H

#include <pinfold/api.h>
#include <pinfold/error.h>

PINFOLD_BEGIN_DECLS

struct pinfold_temp_workspace;

/**
 * Make an empty directory of mode 0700.
 *
 * ret  receives the workspace; the caller owns it, pinfold_temp_workspace_free()
 * err  borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EOS (the directory cannot be made) or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_temp_workspace_new(struct pinfold_temp_workspace **ret,
                                           struct pinfold_error *err);

/**
 * Where it is.
 *
 * workspace  borrowed
 *
 * Returns an absolute path that lives as long as the workspace, or until it is kept.
 * Threads: any.
 */
PINFOLD_API const char *pinfold_temp_workspace_path(const struct pinfold_temp_workspace *workspace);

/**
 * Keep the directory after all, for ever: it gets a name that nothing deletes.
 *
 * workspace  borrowed; its path is another afterwards
 * err        borrowed, may be NULL
 *
 * Returns 0; -PINFOLD_EOS or -PINFOLD_ENOMEM when it cannot be renamed: it is not deleted with the
 * handle then, but possibly by another pinfold later.
 * Threads: one at a time for each workspace.
 */
PINFOLD_API int pinfold_temp_workspace_keep(struct pinfold_temp_workspace *workspace,
                                            struct pinfold_error *err);

/**
 * Delete the directory, unless it is kept, with everything below it, whatever its depth, names and
 * modes; links are not followed. Then, at most once a minute in each process, delete what owners
 * that were killed have left in the same place; that is no reason to fail. With a local backend
 * whose process_ends is set this is left to the supervisor that stays.
 *
 * workspace  owned, NULL is fine; freed in any case. After a fork only the process that made it
 *            deletes anything.
 * err        borrowed, may be NULL; says what could not be deleted, and where it is
 *
 * Returns 0 or -PINFOLD_EOS.
 * Threads: one, the last.
 */
PINFOLD_API int pinfold_temp_workspace_free(struct pinfold_temp_workspace *workspace,
                                            struct pinfold_error *err);

PINFOLD_END_DECLS

#endif

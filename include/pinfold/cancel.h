/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cancellation: a token that one thread fires to stop what another thread waits for. Every call
 * that can take long accepts one (NULL: cannot be cancelled). A cancelled command is killed with
 * everything it started before the call returns -PINFOLD_ECANCELLED.
 */
#ifndef PINFOLD_CANCEL_H
#define PINFOLD_CANCEL_H

#include <pinfold/error.h>

PINFOLD_BEGIN_DECLS

struct pinfold_cancel;

/**
 * Make a cancellation token.
 *
 * ret_cancel  receives the token; the caller owns it, pinfold_cancel_free()
 * err         borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_ENOMEM or -PINFOLD_EOS (no descriptor left).
 * Threads: any.
 */
PINFOLD_API int pinfold_cancel_new(struct pinfold_cancel **ret_cancel, struct pinfold_error *err);

/**
 * Fire a token: calls that hold it stop, later calls with it return at once. Cannot be undone.
 * In a fork of the process that made it, only calls of the fork's own heed it.
 *
 * cancel  borrowed, NULL is fine
 *
 * Threads: any; async-signal-safe.
 */
PINFOLD_API void pinfold_cancel_fire(struct pinfold_cancel *cancel);

/**
 * Ask whether a token has fired.
 *
 * cancel  borrowed, NULL is fine
 *
 * Returns true once pinfold_cancel_fire() was called; false for NULL.
 * Threads: any; async-signal-safe.
 */
PINFOLD_API bool pinfold_cancel_fired(const struct pinfold_cancel *cancel);

/**
 * Free a token. No call may still hold it.
 *
 * cancel  owned, NULL is fine
 *
 * Threads: one, the last.
 */
PINFOLD_API void pinfold_cancel_free(struct pinfold_cancel *cancel);

PINFOLD_END_DECLS

#endif

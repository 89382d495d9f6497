/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CALLS_H
#define CALLS_H

#include <stdbool.h>
#include <stddef.h>

/* Returns a negative number and leaves errno when it was contained. */
struct attack {
    const char *name;
    long (*run)(void);
};

#define ATTACK(function)    \
    {                       \
#function, function \
    }
#define NEW_USER_AND(flag) (CLONE_NEWUSER | (flag))

extern const struct attack mounts_attacks[], kernel_attacks[], process_attacks[], files_attacks[];

/* Move to a namespace of one's own, where success hurts nobody; in a sandbox, where that cannot be,
 * go on without. Returns whether it was done. */
bool own_namespace(int flag);

#endif

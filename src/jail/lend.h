/* SPDX-License-Identifier: Apache-2.0 */
/* Inside jail/: getting something out of a jail that is locked, for another one to show. */
#ifndef PF_JAIL_LEND_H
#define PF_JAIL_LEND_H

#include <pinfold/error.h>

/* Make another mount of what the jail whose first process is pidfd shows at PF_JAIL_WORKSPACE:
 * read-only, and attached to nothing. *ret_fd is the caller's. Returns 0, -PINFOLD_EOS or
 * -PINFOLD_EBACKEND (there is something else by now). root_fd is the caller's way to the same
 * directory. */
int pf_lend_workspace(int pidfd, int root_fd, int *ret_fd, struct pinfold_error *err);

#endif

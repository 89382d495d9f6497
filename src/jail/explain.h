/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PF_JAIL_EXPLAIN_H
#define PF_JAIL_EXPLAIN_H

/* What on this machine makes the kernel refuse namespaces or mounts with this errno, and how to
 * turn it on. Returns "" when nothing is known. */
const char *pf_jail_explain(int sys_errno);
/* The same when the machine has a switch for it that is off, or this process is in a chroot; else
 * NULL. */
const char *pf_jail_switched_off(void);

#endif

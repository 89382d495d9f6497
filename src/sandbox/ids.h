/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PF_SANDBOX_IDS_H
#define PF_SANDBOX_IDS_H

#include <pinfold/error.h>

/* 0, or -PINFOLD_EVALUE: an id is not empty, has no '/', and at most 255 bytes. */
int pf_workspace_id_check(const char *id, struct pinfold_error *err);

#endif

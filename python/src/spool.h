/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PF_PYTHON_SPOOL_H
#define PF_PYTHON_SPOOL_H

#include "module.h"

/* A Spool object that owns the spool, also when it fails; None for NULL. */
PyObject *pf_spool_from(struct pinfold_spool *spool);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PF_PYTHON_MANAGER_H
#define PF_PYTHON_MANAGER_H

#include "module.h"

/* The manager of a Manager object, borrowed; NULL for None, and with an exception for others. */
struct pinfold_manager *pf_manager_of(PyObject *object);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of the library as exceptions of the package, and back. */
#ifndef PF_PYTHON_ERRORS_H
#define PF_PYTHON_ERRORS_H

#include "module.h"

/* Set the exception that err stands for; partial (borrowed) may be NULL. Returns NULL. */
PyObject *pf_raise(const struct pinfold_error *err, PyObject *partial);

/* Set an exception of this code; returns NULL. */
PyObject *pf_raise_text(enum pinfold_code code, const char *text);

/* Take the exception that is set, put into err what the package makes of it, and clear it. context
 * is what was tried. Returns the negative code. */
int pf_take_exception(struct pinfold_error *err, const char *context);

/* Clear the exception that is set, where nobody can be told of a failure: one that is to end the
 * program comes through all the same, others are printed. what is what raised it. */
void pf_tell_exception(PyObject *what);

/* An error of (code, errno, retryable, message). Returns false with an exception. */
bool pf_parse_error(PyObject *tuple, struct pinfold_error *ret);

#endif

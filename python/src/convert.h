/* SPDX-License-Identifier: Apache-2.0 */
/* Results of the library as plain tuples, from which the package makes its dataclasses. Each
 * returns a new reference, or NULL with an exception, and leaves its argument to the caller. */
#ifndef PF_PYTHON_CONVERT_H
#define PF_PYTHON_CONVERT_H

#include "module.h"

/* NULL gives None. */
PyObject *pf_path_from(const char *path);
PyObject *pf_text_from(const char *text);
PyObject *pf_strv_from(const char *const *strings);
PyObject *pf_strings_from(const struct pinfold_strings *strings);
/* (path, is_dir, size or None) */
PyObject *pf_infos_from(const struct pinfold_file_infos *infos);
/* (files, bytes, skipped_paths, errors, "copy" or "overlay", fallback) */
PyObject *pf_seed_from(const struct pinfold_seed_result *result);
/* (files, bytes, errors) */
PyObject *pf_sync_from(const struct pinfold_sync_result *result);
/* The exception that an error stands for; None for none. */
PyObject *pf_exception_from(const struct pinfold_error *err);
/* [(path, content or None, error, skipped)]; memory: content is what was downloaded. error is None
 * or an exception. */
PyObject *pf_transfers_from(const struct pinfold_transfer_results *results, bool memory);
/* [(path, action, size, reason)] */
PyObject *pf_plan_from(const struct pinfold_plan *plan);
/* See ExecuteResult._of() in the package. Takes the spool out of the result. */
PyObject *pf_executed_from(struct pinfold_execute_result *result);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an agent is equipped with, made of what the package gives:
 *   tool     a Tool, or (name, description, schema, callable): callable(id, input) -> result
 *   hook     (kind, callable), see hook.c for what each kind is called with
 *   plugin   "sandbox", or a policy, or (name, [tool], callable): callable() comes before the tools
 *   policy   (storage, max_result_tokens, preview_tokens, retrieval_tool, [name] or None)
 *   storage  a Storage, or a callable: ("store", key, data, type) -> reference, or
 *            ("retrieve", reference) -> (data, type)
 *   model    a Model, or (name, callable): see model_python.c
 * Each returns a reference for the caller to own, or NULL with an exception.
 */
#ifndef PF_PYTHON_EQUIPMENT_H
#define PF_PYTHON_EQUIPMENT_H

#include "link.h"

struct pinfold_tool *pf_tool_from(struct pf_links *links, PyObject *given);
struct pinfold_plugin *pf_plugin_from(struct pf_links *links, PyObject *given);
struct pinfold_storage *pf_storage_from(struct pf_links *links, PyObject *given);
struct pinfold_model *pf_model_from(struct pf_links *links, PyObject *given);
struct pinfold_model *pf_model_python(struct pf_links *links, PyObject *given);

/* hook: filled on success; 0, or -1 with an exception. Its ctx is a link. */
int pf_hook_from(struct pf_links *links, PyObject *given, struct pinfold_hooks *ret);

/* policy: its storage is a reference, and tool_names is in memory that the caller frees with
 * pf_policy_done(), on failure too. 0, or -1 with an exception. */
int pf_policy_from(struct pf_links *links, PyObject *given, struct pinfold_offload_policy *ret);
void pf_policy_done(struct pinfold_offload_policy *policy);

/* A Tool object; takes over the reference, which may be NULL: None. owner: what must live as long
 * as the tool; may be NULL. */
PyObject *pf_tool_wrap(struct pinfold_tool *tool, PyObject *owner);

/* The strings of a list as a NULL-terminated vector, which the caller frees with pf_strv_done().
 * NULL with an exception. */
char **pf_strv_to(PyObject *list);
void pf_strv_done(char **strings);

/* Functions of the module. */
PyObject *pf_host_tools(PyObject *module, PyObject *ask);
PyObject *pf_model_open(PyObject *module, PyObject *args);
PyObject *pf_model_script(PyObject *module, PyObject *json);
PyObject *pf_memory_storage(PyObject *module, PyObject *unused);
PyObject *pf_file_storage(PyObject *module, PyObject *directory);
PyObject *pf_s3_storage(PyObject *module, PyObject *args);
PyObject *pf_format_result(PyObject *module, PyObject *args);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages and results of tools, as plain tuples:
 *   message  (role, [block])
 *   block    (kind, text, id or None, name or None, flag, opaque or None); flag: a tool's input is
 *            valid, or a result is an error
 *   result   (is_error, [(kind, data, format or None, name or None)]); data is str for text and
 *            JSON, else bytes
 *   usage    (input, output, cache_read, cache_write), or None: nobody counted
 *   reply    ([block], stop, stop_detail, request_id, usage)
 * To Python: a new reference, or NULL with an exception. From Python: 0, or -1 with an exception.
 */
#ifndef PF_PYTHON_MESSAGE_H
#define PF_PYTHON_MESSAGE_H

#include "module.h"

/* Any text that is UTF-8, of len bytes. */
PyObject *pf_string_from(const char *text, size_t len);

PyObject *pf_message_from(const struct pinfold_message *message);
PyObject *pf_messages_from(const struct pinfold_message *messages, size_t count);
PyObject *pf_usage_from(const struct pinfold_model_usage *usage);
PyObject *pf_reply_from(const struct pinfold_model_reply *reply);
PyObject *pf_result_from(const struct pinfold_tool_result *result);

/* Each fills what is empty; the caller empties it also on failure. */
int pf_message_to(PyObject *tuple, struct pinfold_message *ret);
int pf_reply_to(PyObject *tuple, struct pinfold_model_reply *ret);
int pf_result_to(PyObject *tuple, struct pinfold_tool_result *ret);

/* Messages of a list, in memory that the caller frees with pf_messages_free(). */
int pf_messages_to(PyObject *list, struct pinfold_message **ret, size_t *ret_count);
void pf_messages_free(struct pinfold_message *messages, size_t count);

#endif

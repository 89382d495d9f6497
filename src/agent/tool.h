/* SPDX-License-Identifier: Apache-2.0 */
/* Inside agent/: tools and calls of them. */
#ifndef PF_AGENT_TOOL_H
#define PF_AGENT_TOOL_H

#include <jansson.h>

#include <pinfold/tool.h>

#include "base/buf.h"

struct pinfold_tool_call {
    struct pinfold_agent *agent; /* borrowed; may be NULL */
    const char *id;              /* borrowed */
    const char *text;            /* the input as JSON; borrowed */
    size_t len;
    json_t *input;
    struct pinfold_cancel *cancel;
};

void pf_tool_unrefp(struct pinfold_tool **tool);

/* Parse and check an input. Returns 1 (*ret_input is a reference), 0 (wrong has the reason, for a
 * model) or -PINFOLD_ENOMEM. An empty text counts as {}. */
int pf_tool_parse(const struct pinfold_tool *tool, const char *text, size_t len, json_t **ret_input,
                  struct pf_buf *wrong);

/* Run the function; the input has been checked. */
int pf_tool_run(const struct pinfold_tool *tool, struct pinfold_tool_call *call,
                struct pinfold_tool_result *ret_result, struct pinfold_error *err);

bool pf_tool_runs(const struct pinfold_tool *tool, pinfold_tool_fn run);

/* "error" with this text, in place of whatever the result held. 0 or -PINFOLD_ENOMEM. */
int pf_tool_result_fail(struct pinfold_tool_result *result, const char *format, ...)
        PINFOLD_PRINTF(2, 3);
/* One block of text. */
int pf_tool_result_text(struct pinfold_tool_result *result, const struct pf_buf *text,
                        struct pinfold_error *err);

/* Whether jansson failed for want of memory: it does not always say so, and then says nothing. */
bool pf_json_nomem(const json_error_t *error);

/* A parameter whose text is used up to its NUL, such as a path: another NUL in it would have
 * something else done than was asked for. *ret is NULL when it was left out. Returns 0 or
 * -PINFOLD_EVALUE. */
int pf_tool_call_text(const struct pinfold_tool_call *call, const char *name, const char **ret,
                      struct pinfold_error *err);

/* Append text, with U+FFFD for what is not UTF-8. */
int pf_append_utf8(struct pf_buf *to, const char *text, size_t len);

#endif

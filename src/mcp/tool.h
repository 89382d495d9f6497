/* SPDX-License-Identifier: Apache-2.0 */
/* Inside mcp/: tools. */
#ifndef PF_MCP_TOOL_H
#define PF_MCP_TOOL_H

#include "mcp/call.h"

/* What a call gave. Members that could not be made count as want of memory. */
struct pf_mcp_result {
    json_t *content;    /* an array */
    json_t *structured; /* an object as the output schema says, or NULL */
    int bad;            /* something could not be put in */
};

enum {
    /* Hints for people who are asked whether a call may be made. */
    PF_MCP_READS = 1,      /* changes nothing */
    PF_MCP_DESTROYS = 2,   /* may overwrite or delete */
    PF_MCP_IDEMPOTENT = 4, /* twice is as once */
    PF_MCP_OUTSIDE = 8,    /* reaches beyond the workspace */
    PF_MCP_RUNS = 16,      /* runs commands: the client's mode and the network say what they can */
    /* Who has it. */
    PF_MCP_WRITER = 32,  /* a client that may change things */
    PF_MCP_RUNNER = 64,  /* a client that may run commands: a writer, or a reader that has a view */
    PF_MCP_SYNCER = 128, /* a client that may, when there is a directory to write back to */
};

struct pf_mcp_tool {
    const char *name, *title;
    const char *description; /* all that a model knows of it */
    /* NULL, or puts into the description what the server's options say: a text to free(), or NULL
     * when out of memory. */
    char *(*describe)(const struct pf_options *options);
    const char *input; /* JSON Schemas */
    const char *output;
    unsigned traits;
    /* Returns 0, or a negative code with err, which becomes a result that says so. args is an
     * object that the input schema allows, borrowed. */
    int (*run)(struct pf_mcp_call *call, const json_t *args, struct pf_mcp_result *ret,
               struct pinfold_error *err);
};

/* The tools, each group in the file of its name. */
extern const struct pf_mcp_tool pf_mcp_execute, pf_mcp_read_output;
extern const struct pf_mcp_tool pf_mcp_edit_file, pf_mcp_delete_file, pf_mcp_move_file;
extern const struct pf_mcp_tool pf_mcp_search;
extern const struct pf_mcp_tool pf_mcp_diff, pf_mcp_sync;
extern const struct pf_mcp_tool pf_mcp_start_process, pf_mcp_read_process, pf_mcp_stop_process;
extern const struct pf_mcp_tool pf_mcp_read_file, pf_mcp_write_file, pf_mcp_list_dir;

/* ---- filling results ---- */

void pf_mcp_add_text(struct pf_mcp_result *result, const char *text, size_t len);
void pf_mcp_addf(struct pf_mcp_result *result, const char *format, ...) PINFOLD_PRINTF(2, 3);
/* A member of the structured part, which comes to be by the first; takes value. */
void pf_mcp_set(struct pf_mcp_result *result, const char *key, json_t *value);

/* A path among the arguments: borrowed, missing when it was left out. NULL with err filled when it
 * has a NUL byte, behind which the library would not look. */
const char *pf_mcp_path(const json_t *args, const char *key, const char *missing,
                        struct pinfold_error *err);

/* Fill err. Returns -PINFOLD_EVALUE. */
int pf_mcp_refuse(struct pinfold_error *err, const char *format, ...) PINFOLD_PRINTF(2, 3);

/* ---- the methods ---- */

json_t *pf_mcp_tools_list(struct pf_mcp_call *call, struct pf_mcp_fault *fault);
json_t *pf_mcp_tools_call(struct pf_mcp_call *call, struct pf_mcp_fault *fault);

/* Make what checks the inputs, and give it back. Returns 0 or a negative code. */
int pf_mcp_tools_open(struct pinfold_error *err);
void pf_mcp_tools_close(void);

#endif

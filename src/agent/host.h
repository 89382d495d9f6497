/* SPDX-License-Identifier: Apache-2.0 */
/* Inside agent/: what the host tools of one set share. */
#ifndef PF_AGENT_HOST_H
#define PF_AGENT_HOST_H

#include <pthread.h>

#include <pinfold/temp_workspace.h>

#include "agent/tool.h"
#include "proc/run.h"

struct pf_host {
    unsigned refs; /* atomic; one for each tool */
    struct pinfold_host_tools_options options;
    pthread_mutex_t lock; /* guards what follows */
    char **env;           /* what environment has set, "NAME=value"; NULL: nothing */
    char **unset;         /* what it has deleted, names */
    struct pf_launcher *launcher;
    struct pinfold_temp_workspace *python; /* state of python_repl */
    pthread_mutex_t python_turn;           /* one piece of code at a time */
};

/* Whether an environment variable of this process switches something on. */
bool pf_host_switch(const char *name);

/* Ask for consent. strip: blanks around the answer do not count. non_interactive: that variable
 * does as well. explain: after "n" ask why. Returns true, or false with a refusal in the result. */
struct pf_consent {
    const char *tool;
    const char *question;
    bool strip, non_interactive, explain;
};
bool pf_host_consent(struct pf_host *host, const struct pf_consent *consent,
                     struct pinfold_tool_result *result);

/* Run a command on the host, with the set's environment. command or argv. */
struct pf_host_command {
    const char *command;
    size_t command_len;
    const char *const *argv;
    const char *const *env; /* NULL: this process's, with what environment has changed */
    const char *dir;        /* NULL: the current one */
    double timeout_seconds;
};
int pf_host_run(struct pf_host *host, const struct pf_host_command *command,
                struct pinfold_execute_result *ret, struct pinfold_cancel *cancel,
                struct pinfold_error *err);
/* SHELL_DEFAULT_TIMEOUT, else 900. */
double pf_host_timeout(void);

int pf_host_shell(void *host, struct pinfold_tool_call *call, struct pinfold_tool_result *ret,
                  struct pinfold_error *err);
int pf_host_python(void *host, struct pinfold_tool_call *call, struct pinfold_tool_result *ret,
                   struct pinfold_error *err);
int pf_host_file_read(void *host, struct pinfold_tool_call *call, struct pinfold_tool_result *ret,
                      struct pinfold_error *err);
/* Read a file of the host whole, wherever it is. */
int pf_host_read_file(const char *path, struct pinfold_bytes *ret, struct pinfold_cancel *cancel,
                      struct pinfold_error *err);
/* host_compare.c: modes of file_read, of one path. */
int pf_host_diff(struct pf_host *host, struct pinfold_tool_call *call, const char *path,
                 struct pf_buf *out, struct pinfold_error *err);
int pf_host_history(struct pf_host *host, struct pinfold_tool_call *call, const char *path,
                    struct pf_buf *out, struct pinfold_error *err);
int pf_host_document(struct pinfold_tool_call *call, const char *path,
                     struct pinfold_tool_result *ret, struct pinfold_error *err);
int pf_host_file_write(void *host, struct pinfold_tool_call *call, struct pinfold_tool_result *ret,
                       struct pinfold_error *err);
int pf_host_environment(void *host, struct pinfold_tool_call *call, struct pinfold_tool_result *ret,
                        struct pinfold_error *err);

#endif

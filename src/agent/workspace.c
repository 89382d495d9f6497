/* SPDX-License-Identifier: Apache-2.0 */
/* The helpers: operations in whatever workspace an agent has. */
#include "agent/agent.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"

int pinfold_agent_execute(struct pinfold_agent *agent,
                          const struct pinfold_execute_options *options,
                          struct pinfold_execute_result *ret_result, struct pinfold_cancel *cancel,
                          struct pinfold_error *err)
{
    struct pf_use use;
    int r;

    memset(ret_result, 0, sizeof(*ret_result));
    r = pf_use_begin(agent, true, cancel, &use, err);
    if (r < 0)
        return r;
    r = pinfold_sandbox_execute(use.binding->sandbox, options, ret_result, use.op.cancel, err);
    return pf_use_end(&use, r, err);
}

int pinfold_run_command(struct pinfold_agent *agent, const char *command, const char *cwd,
                        struct pinfold_bytes *ret_text, struct pinfold_cancel *cancel,
                        struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_execute_result_done) struct pinfold_execute_result result = { 0 };
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    int r;

    options.command = command;
    options.cwd = cwd;
    r = pinfold_agent_execute(agent, &options, &result, cancel, err);
    return r < 0 ? r : pinfold_execute_result_format(&result, ret_text, err);
}

int pinfold_read_workspace_file(struct pinfold_agent *agent, const char *path, int64_t offset,
                                int64_t limit, struct pinfold_bytes *ret_text, uint64_t *ret_lines,
                                struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pf_use use;
    int r = pf_use_begin(agent, false, cancel, &use, err);

    if (r < 0)
        return r;
    r = pinfold_sandbox_read_lines(use.binding->sandbox, path, offset, limit, ret_text, ret_lines,
                                   use.op.cancel, err);
    return pf_use_end(&use, r, err);
}

int pinfold_write_workspace_file(struct pinfold_agent *agent, const char *path, const void *data,
                                 size_t len, struct pinfold_cancel *cancel,
                                 struct pinfold_error *err)
{
    struct pf_use use;
    int r = pf_use_begin(agent, true, cancel, &use, err);

    if (r < 0)
        return r;
    r = pinfold_sandbox_write_file(use.binding->sandbox, path, data, len, use.op.cancel, err);
    return pf_use_end(&use, r, err);
}

int pinfold_list_workspace_dir(struct pinfold_agent *agent, const char *path,
                               struct pinfold_file_infos *ret_infos, struct pinfold_cancel *cancel,
                               struct pinfold_error *err)
{
    struct pf_use use;
    int r = pf_use_begin(agent, false, cancel, &use, err);

    if (r < 0)
        return r;
    r = pinfold_sandbox_list_dir(use.binding->sandbox, path, ret_infos, use.op.cancel, err);
    return pf_use_end(&use, r, err);
}

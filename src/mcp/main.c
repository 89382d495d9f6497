/* SPDX-License-Identifier: Apache-2.0 */
/* The program pinfold-mcp: the command with everything, and the server. */
#include <pinfold/log.h>

#include "cli/extras.h"
#include "cli/say.h"
#include "mcp/http.h"
#include "mcp/server.h"
#include "mcp/stdio.h"
#include "mcp/stop.h"
#include "mcp/tool.h"

const enum pf_program pf_program = PF_MCP;

/* What the library says goes to stderr, and to clients that want to hear it. */
static void log_line(void *ctx, enum pinfold_log_level level, const char *message)
{
    pf_mcp_log(ctx,
               level >= PINFOLD_LOG_ERROR     ? PF_MCP_ERROR
               : level >= PINFOLD_LOG_WARNING ? PF_MCP_WARNING
               : level >= PINFOLD_LOG_INFO    ? PF_MCP_INFO
                                              : PF_MCP_DEBUG,
               "%s", message);
}

static int serve(const struct pf_options *options)
{
    enum pinfold_attach_mode mode = options->read_only ? PINFOLD_READ_ONLY : PINFOLD_READ_WRITE;
    struct pinfold_error err = PINFOLD_ERROR_INIT, end = PINFOLD_ERROR_INIT;
    struct pf_mcp_server *server = NULL;
    int r = pf_mcp_stop_catch(&err);

    if (r == 0)
        r = pf_mcp_tools_open(&err);
    if (r == 0)
        r = pf_mcp_server_new(options, &server, &err);
    if (r == 0) {
        pinfold_log_set_handler(log_line, server);
        r = options->http ? pf_mcp_serve_http(server, options, &err)
                          : pf_mcp_serve_stdio(server, mode, &err);
        pinfold_log_set_handler(pf_say_log, NULL);
    }
    if (r < 0)
        pf_say("%s", err.msg);
    if (pf_mcp_server_free(server, &end) < 0) {
        pf_say("%s", end.msg);
        r = -end.code;
    }
    pf_mcp_tools_close();
    return r < 0 ? PF_EXIT_FAILED : 0;
}

int (*const pf_serve_mcp)(const struct pf_options *options) = serve;

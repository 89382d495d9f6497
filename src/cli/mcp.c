/* SPDX-License-Identifier: Apache-2.0 */
/* pinfold mcp: checks how it was called; the server is a program of its own. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "cli/box.h"
#include "cli/clash.h"
#include "cli/command.h"
#include "cli/extras.h"
#include "cli/options.h"
#include "cli/say.h"

static int run_install(const struct pf_command *command, int argc, char **argv)
{
    /* The client is a word of ours, and the options follow it. */
    bool has_client = argc > 2 && argv[2][0] != '-';
    struct pf_options options;
    int status;

    if (!pf_options_parse(command, argc - 1 - has_client, argv + 1 + has_client, &options, &status))
        return status;
    if (!has_client)
        status = pf_usage_error(command, "for whom? claude-code, codex, cursor or vscode");
    else if (!pf_hand_over(PF_MCP, argv - 1, &status))
        status = pf_mcp_extras->install(command, argv[2], &options, argv[-1]);
    pf_options_done(&options);
    return status;
}

/* The sandbox is made by the first call of a client, who could mend nothing then. */
static bool check_sandbox(const struct pf_options *options, int *ret_status)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    if (pf_box_check(options, &err) == 0)
        return true;
    pf_say("%s", err.msg);
    *ret_status = PF_EXIT_FAILED;
    return false;
}

/* Somebody who has typed it would wait for a prompt. */
static void tell_person(const struct pf_options *options)
{
    if (!options->http && isatty(STDIN_FILENO))
        pf_note("agent programs start this, and talk to it by stdin and stdout; Ctrl-D ends it, "
                "'pinfold help mcp' tells more");
}

static int run_mcp(const struct pf_command *command, int argc, char **argv)
{
    struct pf_options options;
    struct pf_clash clash;
    int status;

    if (argc > 1 && strcmp(argv[1], "install") == 0)
        return run_install(&pf_command_install, argc, argv);
    if (!pf_options_parse(command, argc, argv, &options, &status))
        return status;
    if (options.command[0])
        status = pf_usage_error(command, "%s: takes no command; clients say what to run",
                                options.command[0]);
    else if (!pf_hand_over(PF_MCP, argv - 1, &status)) {
        /* Only now is it known what the policy says. */
        if (pf_find_server_clash(command, &options, argc, argv, &clash))
            status = pf_clash_error(command, &options, argc, argv, &clash);
        else if (check_sandbox(&options, &status)) {
            tell_person(&options);
            status = pf_serve_mcp(&options);
        }
    }
    pf_options_done(&options);
    return status;
}

const struct pf_command pf_command_mcp = {
    .name = "mcp",
    .usage = "[OPTION]...",
    .summary = "serve a workspace to an agent program, over the Model Context Protocol",
    .help = "An agent program starts this, and talks to it by stdin and stdout:\n"
            "  claude mcp add pinfold -- pinfold mcp\n"
            "\n"
            "The workspace is made by the first call that needs it, and ends with the client. Its\n"
            "seed is what --seed names, else the first root that the client offers; never your\n"
            "home directory as a whole. Nothing is written back unless the client calls the tool\n"
            "sync, or --sync was given: then the results come home when the session ends.\n"
            "--timeout is the default of a command, --max-output what one result shows. The other\n"
            "options mean what they mean for 'pinfold run'; docs/mcp.md has the tools.\n"
            "\n"
            "Messages of its own go to stderr. The exit status is 0 when the client has gone or a\n"
            "signal came, 125 when something failed.\n"
            "\n"
            "With --http it serves several clients at once, which share the workspace, until a\n"
            "signal comes. Its address and new tokens are on stdout. Each --token is one client,\n"
            "which shows the token; NAME:MODE:file:PATH and NAME:MODE:env:VARIABLE name the place\n"
            "of one that there is already. Without any there is one client, which may write.\n"
            "\n"
            "'pinfold help mcp install' puts it into an agent program's configuration, and\n"
            "'pinfold help config' tells of the pinfold.toml that is read first.",
    .bit = PF_FOR_RUN | PF_FOR_MCP,
    .run = run_mcp,
};

const struct pf_command pf_command_install = {
    .name = "mcp install",
    .usage = "CLIENT [OPTION]... [-- WORD...]",
    .summary = "print the configuration of an agent program, or merge it into its file",
    .help = "CLIENT is claude-code (.mcp.json, ~/.claude.json), codex (.codex/config.toml,\n"
            "~/.codex/config.toml), cursor (.cursor/mcp.json, ~/.cursor/mcp.json) or vscode\n"
            "(.vscode/mcp.json, ~/.config/Code/User/mcp.json): the file of the project, which is\n"
            "the current directory, and that of the user. The WORDs are options for 'pinfold "
            "mcp';\n"
            "without any the project is the seed.\n"
            "\n"
            "--write changes one entry and leaves every other byte of the file as it is, comments\n"
            "too. A file that it cannot read it refuses.",
    .bit = PF_FOR_INSTALL,
    .run = run_mcp,
};

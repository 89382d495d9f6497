/* SPDX-License-Identifier: Apache-2.0 */
/* pinfold agent: the command; what it does is in agent_run.c, in the program that can. */
#include "cli/agent_options.h"
#include "cli/clash.h"
#include "cli/command.h"
#include "cli/extras.h"

static int run_agent(const struct pf_command *command, int argc, char **argv)
{
    struct pf_options options;
    struct pf_clash clash;
    const char *wrong;
    int status;

    if (!pf_options_parse(command, argc, argv, &options, &status))
        return status;
    /* What a policy says is not known yet, and so not whether the options go together. */
    if (options.config && pf_hand_over(PF_MCP, argv - 1, &status)) {
        pf_options_done(&options);
        return status;
    }
    wrong = pf_agent_options_complete(&options);
    if (wrong)
        status = pf_usage_error(command, "%s", wrong);
    else if (pf_find_clash(&options, &clash))
        status = pf_clash_error(command, &options, argc, argv, &clash);
    else if (!pf_hand_over(PF_REMOTE, argv - 1, &status))
        status = pf_run_agent(command, &options);
    pf_options_done(&options);
    return status;
}

const struct pf_command pf_command_agent = {
    .name = "agent",
    .usage = "[OPTION]... TASK",
    .summary = "have a model work on a copy of a directory, and see what it changed",
    .help = "The agent gets a copy of the directory in a sandbox, with tools to run commands and\n"
            "to read, write and list files there, and works until it has nothing more to do.\n"
            "What the model says is printed as it comes, each call of a tool as it begins and as\n"
            "it ends. Then the diff of what was changed is shown, and nothing is written back\n"
            "before you have said yes. TASK is one word: put it in quotes; '-' reads it from\n"
            "stdin.\n"
            "\n"
            "The key is in the environment, never on the command line: ANTHROPIC_API_KEY,\n"
            "OPENAI_API_KEY (none is needed for a server of your own that --base-url names), or\n"
            "AWS_BEARER_TOKEN_BEDROCK or AWS credentials. It never reaches the sandbox.\n"
            "'scripted:FILE' plays a conversation from a file, offline.\n"
            "\n"
            "All kinds of files come home, but what is left out on both ways: .git,\n"
            "node_modules, __pycache__, .venv, .env, *.pem, credentials.json, secrets/, what\n"
            "--exclude adds, and, without --all, what .gitignore in the directory names. Nothing\n"
            "is deleted here, links are not written, and modes stay as they are: the list says\n"
            "which changes that concerns. What you have changed yourself meanwhile is told too,\n"
            "and left as it is.\n"
            "\n"
            "Without a terminal to ask at, nothing is written back unless --yes says so.\n"
            "Ctrl-C stops the agent and all that it runs, at any moment; then what was changed so\n"
            "far is shown, and can be kept.\n"
            "\n"
            "--session keeps the conversation, so that a later task can go on with it.\n"
            "The other options mean what they mean for 'pinfold run'. With --backend local the\n"
            "agent's commands can do whatever you can do; of your environment they see PATH,\n"
            "HOME, LANG, TMPDIR and your name.\n"
            "\n"
            "Exit status: 0 done, and changes are written back, or there are none, or none were\n"
            "wanted; 1 changes are not written back (the answer was no, or nobody could be\n"
            "asked), or the diff of --diff lacks some, such as binary files; 2 the agent did not\n"
            "come to an end: out of turns or tokens, a reply that was cut, or a refusal; 125\n"
            "pinfold or the model failed; 128+n signal n ended it. The highest of these counts.",
    .bit = PF_FOR_RUN | PF_FOR_AGENT,
    .flags = pf_agent_flags,
    .run = run_agent,
};

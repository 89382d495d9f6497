/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "cli/agent_run.h"

static const char place[] =
        "You work on a project in a workspace. It is a copy in a sandbox: nothing outside can be "
        "seen or changed from it, and some things were left out of the copy, such as .git, "
        "node_modules and files of secrets. Paths are relative to the root of the workspace.\n";

static const char writer[] =
        "Do the task that you are given. Look at what is there before you change it; if there is "
        "an AGENTS.md or a CONTRIBUTING.md, follow it. Change what the task needs and nothing "
        "else. Check your work by running the project's own tests, where it has some. When you "
        "are done, the user sees the difference between your copy and the original, and decides "
        "whether to take it: leave no build products or notes behind that do not belong to it.\n";

static const char reader[] =
        "You can read and list files, and neither change them nor run commands. Answer with what "
        "you have found, and name files and lines.\n";

static const char manner[] =
        "Nobody answers questions while you work: decide by yourself, and say so at the end. "
        "Finish with a few sentences: what you did, how you checked it, and what is left.\n";

static const char *network(const struct pf_options *options)
{
    if (!options->isolated)
        return "";
    if (options->net_allow[0])
        return "Commands reach a few hosts of the network, and no others: a refusal says so.\n";
    return options->host_net ? "" : "There is no network: nothing can be installed or fetched.\n";
}

char *pf_agent_prompt(const struct pf_options *options)
{
    const struct pf_agent_options *agent = &options->agent;
    char *text;

    if (asprintf(&text, "%s%s%s%s%s%s", place, agent->read_only ? reader : writer,
                 agent->read_only ? "" : network(options), manner, agent->system ? "\n" : "",
                 agent->system ? agent->system : "") < 0)
        return NULL;
    return text;
}

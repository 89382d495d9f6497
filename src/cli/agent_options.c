/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/agent_options.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/flags.h"
#include "cli/numbers.h"

enum { DEFAULT_TURNS = 100, MOST_TURNS = 100000, SESSION_SECONDS = 7200 };

/* ---- taking values in ---- */

static const char *take_max_turns(struct pf_options *options, const char *value)
{
    const char *wrong = pf_take_limit(&options->agent.max_turns, value);

    return wrong || options->agent.max_turns > MOST_TURNS ? "not a number from 1 to 100000" : NULL;
}

const struct pf_flag pf_agent_flags[] = {
    { "model", "PROVIDER:NAME", "anthropic:, openai:, bedrock:NAME, scripted:FILE (PINFOLD_MODEL)",
      0, 0, PF_TAKE_TEXT(agent.model) },
    { "base-url", "URL", "where it is, http://127.0.0.1:11434/v1 say (default: the provider's)", 0,
      0, PF_TAKE_TEXT(agent.base_url) },
    { "system", "TEXT", "instructions, besides those that it has anyway", 0, 0,
      PF_TAKE_TEXT(agent.system) },
    { "max-turns", "N", "replies of the model, at most (default 100)", 0, 0,
      PF_TAKE_BY(take_max_turns) },
    { "max-tokens", "N", "no more replies when so many tokens were used (default unlimited)", 0, 0,
      PF_TAKE_LIMIT(agent.max_tokens) },
    { "read-only", NULL, "let the agent look at everything and change nothing", 0, 0,
      PF_SWITCH(agent.read_only) },
    { "seed", "DIR", "what it works on, copied in (default: the current directory)", 0, 0,
      PF_TAKE_DIRECTORY(seed) },
    { "sync", "[=DIR]", "write changes to DIR, and not back to the seed", 0, 0,
      PF_TAKE_DIRECTORY(sync) },
    { "include", "GLOB", "write back only what matches (default: everything); repeatable", 0, 0,
      PF_TAKE_LIST(include) },
    { "all", NULL, "take in, and bring back, what .gitignore names", 0, 0, PF_SWITCH(agent.all) },
    { "yes", NULL, "write changes back without asking", 0, 0, PF_SWITCH(agent.yes) },
    { "no-sync", NULL, "show changes, and write nothing back", 0, 0, PF_SWITCH(agent.no_sync) },
    { "diff", NULL, "print nothing but the diff; write it back only with --yes", 0, 0,
      PF_SWITCH(agent.diff) },
    { "session", "FILE", "go on with the conversation in FILE, and keep it there", 0, 0,
      PF_TAKE_TEXT(agent.session) },
    { "timeout", "SECONDS", "stop a command of the agent's after this time (default 120)", 0, 0,
      PF_TAKE_SECONDS(timeout_seconds) },
    { "json", NULL, "print one JSON object a line, for each thing that happens", 0, 0,
      PF_SWITCH(json) },
    { 0 },
};

/* ---- how they go together ---- */

static bool same_directory(const char *one, const char *other)
{
    struct stat a, b;

    return one && stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static const char *complete_seed(struct pf_options *options)
{
    if (options->seed || options->workspace)
        return NULL;
    /* Nobody wants that who has not said it: it takes long, and shows the agent everything. */
    if (same_directory(getenv("HOME"), ".") || same_directory("/", "."))
        return "this is your home directory, or /: go to a project, or name one with --seed";
    options->seed = ".";
    return NULL;
}

static const char *check_ends(const struct pf_options *options)
{
    const struct pf_agent_options *agent = &options->agent;

    if (agent->read_only && (agent->yes || agent->no_sync || agent->diff || options->sync))
        return "--read-only: there is nothing to write back, and no diff";
    if (agent->yes && agent->no_sync)
        return "--yes and --no-sync contradict each other";
    if (agent->diff && options->json)
        return "--json has the diff in it; --diff does not go with it";
    if (!options->seed && !options->sync && (agent->yes || agent->diff))
        return "with --workspace and no --seed there is nothing to compare with and to write to";
    return NULL;
}

static const char *check_words(struct pf_options *options)
{
    struct pf_agent_options *agent = &options->agent;
    const char *task = options->command[0];

    if (!task || !*task)
        return "no task; say in quotes what is to be done";
    if (options->command[1])
        return "more than one word: put the task in quotes, after the options";
    if (!agent->model)
        agent->model = getenv("PINFOLD_MODEL");
    if (!agent->model || !*agent->model)
        return "no model: name one with --model or in PINFOLD_MODEL, as in anthropic:NAME, "
               "openai:NAME, bedrock:NAME or scripted:FILE";
    /* Not quoted: what stands there would be a password. */
    if (agent->base_url && strchr(agent->base_url, '@'))
        return "--base-url: no user name or password belongs there";
    return NULL;
}

const char *pf_agent_options_complete(struct pf_options *options)
{
    static const char *everything[] = { "**", NULL };
    struct pf_agent_options *agent = &options->agent;
    const char *wrong = check_words(options);

    if (!wrong)
        wrong = complete_seed(options);
    if (!wrong)
        wrong = check_ends(options);
    if (!agent->max_turns)
        agent->max_turns = DEFAULT_TURNS;
    options->least_session = SESSION_SECONDS; /* it is stopped at the end in any case */
    /* The service has none of its own: see new_agentcore() of remote.c. */
    if (options->agentcore)
        options->timeout_seconds = pf_options_seconds(options);
    /* A person looks at what comes home, or says that nobody needs to: no kind stays behind. */
    if (!options->include[0])
        options->include = everything;
    options->wants_sync = !agent->read_only && !agent->no_sync && (options->seed || options->sync);
    return wrong;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Whether options go together that are fine each by itself. */
#include "cli/options.h"

/* What is wrong with seed, sync and workspace together, or NULL. */
static const char *check_travel(const struct pf_options *options)
{
    if (options->agentcore && options->workspace)
        return "--workspace is a directory of this machine; with agentcore it is in its session";
    if (options->daytona && options->workspace)
        return "--workspace is a directory of this machine; with daytona it is in its sandbox";
    if (options->snapshot && options->image)
        return "--snapshot and --image: a sandbox is made of one of them";
    if (options->overlay && !options->isolated)
        return "--seed-mode overlay needs --backend isolated";
    if (options->overlay && !options->seed)
        return "--seed-mode overlay without --seed has nothing to show";
    if (options->wants_sync && !options->sync && !options->seed)
        return "--sync without --seed has nowhere to go: name a directory, --sync=DIR";
    return NULL;
}

int pf_options_check(const struct pf_command *command, const struct pf_options *options)
{
    const char *wrong = check_travel(options);

    if (wrong)
        return pf_usage_error(command, "%s", wrong);
    if (options->isolated_alone && !options->isolated)
        return pf_usage_error(command, "--%s needs --backend isolated", options->isolated_alone);
    if (options->agentcore_alone && !options->agentcore)
        return pf_usage_error(command, "--%s needs --backend agentcore", options->agentcore_alone);
    if (options->daytona_alone && !options->daytona)
        return pf_usage_error(command, "--%s needs --backend daytona", options->daytona_alone);
    return 0;
}

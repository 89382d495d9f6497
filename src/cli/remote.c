/* SPDX-License-Identifier: Apache-2.0 */
/* What only the programs have that talk to services. */
#include <pinfold/agentcore.h>
#include <pinfold/daytona.h>

#include "cli/extras.h"

/* A session of this length is what the service gives by default, and at most. */
enum { DEFAULT_SESSION = 900, LONGEST_SESSION = 28800, SLACK = 120 };

/* A session that ended before the time of --timeout would make that a lie. */
static unsigned session_seconds(const struct pf_options *options)
{
    unsigned least = options->least_session ? options->least_session : DEFAULT_SESSION;
    double wanted = options->timeout_seconds + SLACK;

    if (options->session_timeout)
        return (unsigned)options->session_timeout;
    if (wanted > LONGEST_SESSION)
        return LONGEST_SESSION;
    return wanted > least ? (unsigned)wanted : least;
}

static int new_agentcore(const struct pf_options *options, struct pinfold_backend **ret_backend,
                         struct pinfold_error *err)
{
    struct pinfold_agentcore_options agentcore = PINFOLD_AGENTCORE_OPTIONS_INIT;

    agentcore.region = options->region;
    agentcore.profile = options->profile;
    agentcore.identifier = options->interpreter;
    agentcore.endpoint = options->endpoint;
    agentcore.session_timeout_seconds = session_seconds(options);
    agentcore.max_output_bytes = options->max_output_bytes;
    agentcore.env = options->env;
    /* The service has no timeouts; its tasks can be stopped, and cost more calls. Who runs many
     * commands, an agent or a client, names a time for few of them. */
    agentcore.long_commands = options->timeout_seconds > 0;
    agentcore.timeout_seconds = options->timeout_seconds;
    return pinfold_agentcore_template_new(&agentcore, ret_backend, err);
}

static int new_daytona(const struct pf_options *options, struct pinfold_backend **ret_backend,
                       struct pinfold_error *err)
{
    struct pinfold_daytona_options daytona = PINFOLD_DAYTONA_OPTIONS_INIT;

    /* Key and address are in the environment: a command line is for everybody to read. */
    daytona.target = options->target;
    daytona.snapshot = options->snapshot;
    daytona.image = options->image;
    daytona.timeout_seconds = pf_options_seconds(options);
    daytona.max_output_bytes = options->max_output_bytes;
    daytona.env = options->env;
    return pinfold_daytona_template_new(&daytona, ret_backend, err);
}

static int new_remote(const struct pf_options *options, struct pinfold_backend **ret_backend,
                      struct pinfold_error *err)
{
    return options->daytona ? new_daytona(options, ret_backend, err)
                            : new_agentcore(options, ret_backend, err);
}

int (*const pf_new_remote)(const struct pf_options *options, struct pinfold_backend **ret_backend,
                           struct pinfold_error *err) = new_remote;

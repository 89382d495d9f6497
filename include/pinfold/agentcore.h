/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AgentCoreSandboxTemplate: workspaces in the code interpreter of AWS Bedrock AgentCore, a virtual
 * machine of their own for each. What this backend does otherwise than those of this machine is in
 * docs/backends.md.
 */
#ifndef PINFOLD_AGENTCORE_H
#define PINFOLD_AGENTCORE_H

#include <pinfold/backend.h>

PINFOLD_BEGIN_DECLS

/* Zero means default in every field. */
struct pinfold_agentcore_options {
    size_t size;
    const char *region; /* NULL: AWS_REGION, AWS_DEFAULT_REGION, the profile's */
    /* Credentials: these, or a profile, or (both NULL) whatever the environment, the profiles and
     * the machine offer, in the order of AWS's own tools. Asked for when they are needed. */
    const char *access_key, *secret_key;
    const char *session_token; /* with them; may be NULL */
    const char *profile;
    const char *identifier; /* of the code interpreter; NULL: "aws.codeinterpreter.v1" */
    const char *name;       /* of sessions, 1 to 100 characters; NULL: made of the workspace's */
    /* "https://host[:port]"; NULL: what AWS_ENDPOINT_URL_BEDROCK_AGENTCORE, AWS_ENDPOINT_URL or the
     * profile (services, endpoint_url) say, or the region's, FIPS or dual stack if these are asked
     * for in the ways of AWS's own tools. */
    const char *endpoint;
    /* How long a session lives from its start, whatever happens in it: 1 to 28,800; 0: 900. */
    unsigned session_timeout_seconds;
    size_t max_output_bytes; /* kept of a command's output; 0: 100,000 */
    const char *const *env;  /* NULL-terminated "NAME=value", for every command */
    /* Run commands as tasks of the service: each may take as long as its session lives (at most
     * eight hours; otherwise fifteen minutes), timeout_seconds counts, and cancelling ends what
     * runs there. Each takes two calls more at least, and is asked after every five seconds in the
     * end. */
    bool long_commands;
    double timeout_seconds; /* with them, of a command that names none; 0, or INFINITY: none */
};

#define PINFOLD_AGENTCORE_OPTIONS_INIT PINFOLD_SIZED(struct pinfold_agentcore_options)

/**
 * Make an AgentCoreSandboxTemplate. Nothing is asked of the service before a sandbox is started:
 * its build_for_session(workspace_id) makes the backend of one session, and that one's create
 * starts the session.
 *
 * options      borrowed, copied; keys included, which are wiped when the backend is freed
 * ret_backend  receives the template; the caller owns one reference, pinfold_backend_unref()
 * err          borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (an option out of range, no region, no such endpoint), -PINFOLD_EOS
 * (the profile's file cannot be read) or -PINFOLD_ENOMEM. Threads: any.
 */
PINFOLD_API int pinfold_agentcore_template_new(const struct pinfold_agentcore_options *options,
                                               struct pinfold_backend **ret_backend,
                                               struct pinfold_error *err);

/**
 * The session of a backend that a template built: with its id others of the account find it.
 *
 * backend           borrowed
 * ret_id            receives the session's id; the caller owns it, free()
 * ret_seconds_left  receives how long the session lives at least; may be NULL
 * err               borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_ESTART (no session: before create, after close), -PINFOLD_ETYPE (another kind
 * of backend) or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_agentcore_session(const struct pinfold_backend *backend, char **ret_id,
                                          double *ret_seconds_left, struct pinfold_error *err);

PINFOLD_END_DECLS

#endif

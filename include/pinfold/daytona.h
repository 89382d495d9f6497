/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DaytonaSandboxTemplate: workspaces in sandboxes of Daytona, one for each. What this backend does
 * otherwise than those of this machine is in docs/backends.md.
 */
#ifndef PINFOLD_DAYTONA_H
#define PINFOLD_DAYTONA_H

#include <pinfold/backend.h>

PINFOLD_BEGIN_DECLS

/* Zero means default in every field. What is NULL and has a variable is taken from the environment,
 * else from the files ".env.local" and ".env" in the current directory; but never the address. */
struct pinfold_daytona_options {
    size_t size;
    const char *api_key; /* DAYTONA_API_KEY */
    const char *api_url; /* DAYTONA_API_URL; else "https://app.daytona.io/api" */
    const char *target;  /* the region, DAYTONA_TARGET; else the service's default */
    /* Instead of a key: DAYTONA_JWT_TOKEN and DAYTONA_ORGANIZATION_ID. */
    const char *jwt_token, *organization_id;
    const char *snapshot;            /* its id or name; NULL: the service's default */
    const char *image;               /* instead of a snapshot: of a registry, such as "debian:12" */
    const char *const *env;          /* NULL-terminated "NAME=value", for all that runs there */
    const char *const *labels;       /* likewise, of the sandbox */
    double timeout_seconds;          /* of a command; 0: 900; INFINITY: none (default_timeout=0) */
    int auto_stop_minutes;           /* without use, after which it is stopped; 0: 15; -1: never */
    int auto_delete_minutes;         /* after it was stopped; 0: 1440; -1: never */
    unsigned create_timeout_seconds; /* 0: 60, or 600 with an image, which must be built */
    bool network_block_all;
    const char *network_allow_list; /* networks "10.0.0.0/8,...", and no others; may be NULL */
    const char *domain_allow_list;  /* likewise names; newer services only */
    size_t max_output_bytes;        /* kept of a command's output; 0: 100,000 */
};

#define PINFOLD_DAYTONA_OPTIONS_INIT PINFOLD_SIZED(struct pinfold_daytona_options)

/**
 * Make a DaytonaSandboxTemplate. Nothing is asked of the service before a sandbox is started: its
 * build_for_session(workspace_id) makes the backend of one workspace, and that one's create makes a
 * sandbox for it, after deleting those that a run which died has left with the same workspace id
 * and labels.
 *
 * options      borrowed, copied; the credential included, which is wiped when the backend is freed;
 *              NULL for defaults
 * ret_backend  receives the template; the caller owns one reference, pinfold_backend_unref()
 * err          borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (an option out of range, no credential, a JWT without organization),
 * -PINFOLD_EOS (a .env file cannot be read) or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_daytona_template_new(const struct pinfold_daytona_options *options,
                                             struct pinfold_backend **ret_backend,
                                             struct pinfold_error *err);

/**
 * The id of the Daytona sandbox of a backend that a template built.
 *
 * backend  borrowed
 * ret_id   receives the id; the caller owns it, free()
 * err      borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_ESTART (no sandbox: before create, after close), -PINFOLD_ETYPE (another kind
 * of backend) or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_daytona_sandbox(const struct pinfold_backend *backend, char **ret_id,
                                        struct pinfold_error *err);

PINFOLD_END_DECLS

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The options of all subcommands: one table (flags.c) parses them and prints their help. */
#ifndef PF_CLI_OPTIONS_H
#define PF_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include <pinfold/error.h>
#include <pinfold/limits.h>

#include "cli/command.h"

/* Who takes an option. */
enum {
    PF_FOR_RUN = 1, /* and shell, agent, mcp, config */
    PF_FOR_PLAN = 2,
    PF_FOR_OTHERS = 4,   /* --help alone */
    PF_FOR_COMMAND = 16, /* run, and not shell */
    PF_FOR_AGENT = 128,  /* together with PF_FOR_RUN, as the next two */
    PF_FOR_MCP = 256,
    PF_FOR_CONFIG = 512,
    PF_FOR_INSTALL = 1024,
    PF_NOT_FOR_SHELL = PF_FOR_COMMAND | PF_FOR_AGENT | PF_FOR_MCP, /* all else with PF_FOR_RUN */
    /* Means nothing to other backends, which refuse it. Services have no terminals, and so no use
     * in a shell. */
    PF_ISOLATED_ALONE = 8,
    PF_AGENTCORE_ALONE = 32,
    PF_DAYTONA_ALONE = 64,
    PF_FOR_ISOLATED = PF_FOR_RUN | PF_ISOLATED_ALONE,
    PF_FOR_AGENTCORE = PF_NOT_FOR_SHELL | PF_FOR_PLAN | PF_AGENTCORE_ALONE,
    PF_FOR_DAYTONA = PF_NOT_FOR_SHELL | PF_FOR_PLAN | PF_DAYTONA_ALONE,
    PF_NEEDS_EXTRAS = 2048, /* something of extras.h */
};

/* What pinfold agent alone takes (agent_options.c). */
struct pf_agent_options {
    const char *model, *base_url, *system, *session; /* NULL: not given */
    uint64_t max_turns, max_tokens;                  /* 0: not given */
    bool read_only, yes, no_sync, diff, all;
};

enum { PF_OWN_FLAGS_MAX = 64, PF_FLAGS_MAX = 96 };

/* What was asked for. Strings point into argv; numbers are 0 when they were not given. */
struct pf_options {
    /* The workspace, and what goes in and comes home. */
    const char *seed;
    const char *sync; /* NULL with wants_sync: back to the seed */
    const char *workspace;
    const char **exclude; /* the lists are NULL-terminated, never NULL, and one allocation */
    const char **include;
    bool wants_sync;
    bool overlay; /* --seed-mode overlay */

    /* The backend: isolated unless another was named; none of these is the local one. */
    bool isolated, agentcore, daytona;
    /* An option that was given and only this backend has; NULL: none was. */
    const char *isolated_alone, *agentcore_alone, *daytona_alone;
    bool host_net;          /* --net host */
    const char **net_allow; /* --net allow=... */
    const char **ro, **rw;
    const char *rootfs;
    struct pinfold_limits limits;
    const char *region, *profile, *interpreter, *endpoint;
    uint64_t session_timeout; /* seconds; 0: what the command's time needs, and at least: */
    unsigned least_session;   /* 0: the service's default */
    const char *target, *snapshot, *image;

    /* Commands, and what is told of them. */
    const char **env;
    bool no_inherit_env;
    bool tty; /* run the command on a terminal */
    double timeout_seconds;
    uint64_t max_output_bytes;
    const char *audit;
    const char *config; /* the policy file that was named */
    bool json, quiet;
    bool takes_extras; /* something of extras.h */

    /* mcp */
    const char *http;        /* ADDRESS:PORT */
    const char **http_hosts; /* names that it is asked by, besides those of this machine */
    const char **tokens;     /* NAME:MODE, NAME:MODE:file:PATH or NAME:MODE:env:NAME */
    bool http_anywhere;      /* addresses that are not of this machine's loopback, too */
    double resume_seconds, ttl_seconds;
    bool read_only, no_roots, no_sync;

    /* mcp install */
    const char *name, *url, *token_env;
    bool write, scope_user, scope_project;

    struct pf_agent_options agent;

    char **command;           /* NULL-terminated; its first is NULL when there is none */
    bool given[PF_FLAGS_MAX]; /* in the order of pf_flags: see pf_options_given() */
    const char **resolved;    /* paths of ro, rw and rootfs that were made absolute */
    char **words;             /* of a policy, which the strings above point into; else NULL */
};

/* What a value must be, and of which type the field of struct pf_options is that it goes into. */
enum pf_value {
    PF_VALUE_OF_HELP, /* into none: the option shows the help */
    PF_VALUE_SWITCH,  /* there is none: a bool becomes true */
    PF_VALUE_TEXT,    /* const char *, not empty, as the next two */
    PF_VALUE_DIRECTORY,
    PF_VALUE_FILE,
    PF_VALUE_NAME,       /* const char *: letters, digits, - and _ */
    PF_VALUE_LIST,       /* const char **: any text, put behind what is there */
    PF_VALUE_SECONDS,    /* double */
    PF_VALUE_BYTES,      /* uint64_t, as the next two */
    PF_VALUE_BYTE_LIMIT, /* or "unlimited" */
    PF_VALUE_LIMIT,      /* likewise */
    PF_VALUE_OWN,        /* what its own function says */
};

struct pf_flag {
    const char *name;
    const char *argument; /* NULL: takes none; "[=DIR]": optional */
    const char *help;
    unsigned commands; /* who takes it; not looked at in a command's own */
    char letter;       /* likewise */
    enum pf_value value;
    size_t field; /* its offset in struct pf_options */
    /* Of PF_VALUE_OWN: take a value in. Returns NULL, or what is wrong with it. */
    const char *(*take)(struct pf_options *options, const char *value);
};

/* Parse argv (argv[0] is the subcommand). Returns true to go on; false when there is nothing more
 * to do, because help was asked for or something is wrong: then *ret_status is the exit status. */
bool pf_options_parse(const struct pf_command *command, int argc, char **argv,
                      struct pf_options *ret_options, int *ret_status);

void pf_options_done(struct pf_options *options);

/* Whether an option was given; whether a command takes it. Neither is so for an unknown name. */
bool pf_options_given(const struct pf_options *options, const char *name);
bool pf_options_takes(const struct pf_command *command, const char *name);

/* Whether an option, and then a sandbox, takes a value. Returns 0, -PINFOLD_EVALUE (err says what
 * is wrong with it) or -PINFOLD_ENOMEM. */
int pf_options_check_value(const char *name, const char *value, struct pinfold_error *err);

/* Tell every option in words that pf_options_parse() has found nothing wrong with; value is NULL
 * when there is none. Returns 0, or what fn returned that was not. */
int pf_options_each(const struct pf_command *command, int argc, char **argv,
                    int (*fn)(void *ctx, const char *name, const char *value), void *ctx);

/* Whether the workspace is elsewhere, made by a service for this run, and gone after it. */
bool pf_options_remote(const struct pf_options *options);

/* How long a command has, where it says nothing itself: 120 seconds, as the library's backends on
 * this machine give. Here, so that fuzzers have it without all that parses options. */
static inline double pf_options_seconds(const struct pf_options *options)
{
    return options->timeout_seconds > 0 ? options->timeout_seconds : 120;
}

/* Complain about how a command was called, and say where its help is. Returns the exit status. */
int pf_usage_error(const struct pf_command *command, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/flags.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/numbers.h"
#include "cli/place.h"
#include "cli/say.h"

static void append(const char **list, const char *value)
{
    while (*list)
        list++;
    *list = value;
}

/* A text that is not empty, or else what is said. */
static const char *take_text(const char **field, const char *value, const char *otherwise)
{
    if (!*value)
        return otherwise;
    *field = value;
    return NULL;
}

static const char *take_directory(const char **field, const char *value)
{
    return take_text(field, value, "an empty name; give a directory");
}

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

/* A name that stands in JSON, in TOML without quotes, and in the environment as it is. */
static const char *take_name(const char **field, const char *value)
{
    if (!*value || strlen(value) > 64 || value[strspn(value, letters)])
        return "not a name of letters, digits, - and _";
    *field = value;
    return NULL;
}

static const char *take_seconds(double *field, const char *value)
{
    const char *wrong = pf_take_decimal(field, 1e9, value);

    return wrong ? "not a number of seconds greater than 0, such as 2 or 0.5, up to 1000000000"
                 : NULL;
}

const char *pf_flag_take(const struct pf_flag *flag, struct pf_options *options, const char *value)
{
    void *field = (char *)options + flag->field;

    switch (flag->value) {
    case PF_VALUE_OF_HELP:
        return "it takes no value";
    case PF_VALUE_SWITCH:
        *(bool *)field = true;
        return NULL;
    case PF_VALUE_TEXT:
        return take_text(field, value, "an empty value");
    case PF_VALUE_DIRECTORY:
        return value ? take_directory(field, value) : NULL;
    case PF_VALUE_FILE:
        return take_text(field, value, "an empty name; give a file");
    case PF_VALUE_NAME:
        return take_name(field, value);
    case PF_VALUE_LIST:
        append(*(const char ***)field, value);
        return NULL;
    case PF_VALUE_SECONDS:
        return take_seconds(field, value);
    case PF_VALUE_BYTES:
        return pf_take_bytes(field, value);
    case PF_VALUE_BYTE_LIMIT:
        return pf_take_byte_limit(field, value);
    case PF_VALUE_LIMIT:
        return pf_take_limit(field, value);
    case PF_VALUE_OWN:
        return flag->take(options, value);
    }
    return NULL;
}

/* ---- values that are like no other's ---- */

static const char *take_backend(struct pf_options *options, const char *value)
{
    options->isolated = strcmp(value, "isolated") == 0;
    options->agentcore = strcmp(value, "agentcore") == 0;
    options->daytona = strcmp(value, "daytona") == 0;
    return options->isolated || pf_options_remote(options) || strcmp(value, "local") == 0
                   ? NULL
                   : "no such backend; there are: local, isolated, agentcore, daytona";
}

static const char *take_session_timeout(struct pf_options *options, const char *value)
{
    const char *wrong = pf_take_limit(&options->session_timeout, value);

    return wrong || options->session_timeout > 28800 ? "not a number of seconds from 1 to 28800"
                                                     : NULL;
}

/* As AWS names them: eu-central-1, us-gov-west-1. It becomes a part of a host's name. */
static const char *take_region(struct pf_options *options, const char *value)
{
    static const char small[] = "abcdefghijklmnopqrstuvwxyz",
                      wrong[] = "not the name of a region of AWS, such as eu-central-1";
    size_t len = strspn(value, small), words = 0;
    const char *at = value + len;

    if (!*value)
        return "an empty value";
    if (len < 2 || len > 4 || strlen(value) > 63)
        return wrong;
    for (; *at == '-' && (len = strspn(at + 1, small)) > 0; words++)
        at += 1 + len;
    if (!words || *at != '-' || !at[1] || at[1 + strspn(at + 1, "0123456789")])
        return wrong;
    options->region = value;
    return NULL;
}

/* What a message says of an address has none of it: there may be a password in it. */
static const char *take_endpoint(struct pf_options *options, const char *value)
{
    size_t scheme = strncmp(value, "https://", 8) == 0  ? 8
                    : strncmp(value, "http://", 7) == 0 ? 7
                                                        : 0;
    const char *host = value + scheme;
    size_t len = strcspn(host, "/?#@\\");

    if (!*value)
        return "an empty value";
    if (strchr(value, '@'))
        return "no user name or password belongs into an address";
    for (const char *at = value; *at; at++)
        if (*at <= ' ' || *at > '~')
            return "not an address: it has a blank in it, or what is no ASCII";
    if (!scheme || !len || (host[len] && strcmp(host + len, "/") != 0))
        return "not of the form https://HOST or https://HOST:PORT";
    options->endpoint = value;
    return NULL;
}

static const char *take_seed_mode(struct pf_options *options, const char *value)
{
    options->overlay = strcmp(value, "overlay") == 0;
    return options->overlay || strcmp(value, "copy") == 0 ? NULL : "none of: copy, overlay";
}

static const char *take_sync(struct pf_options *options, const char *value)
{
    options->wants_sync = true;
    return value ? take_directory(&options->sync, value) : NULL;
}

static const char *take_http(struct pf_options *options, const char *value)
{
    struct pf_place place;
    const char *wrong = pf_place_read(value, &place);

    if (wrong)
        return wrong;
    options->http = value;
    return NULL;
}

static const char *take_http_host(struct pf_options *options, const char *value)
{
    if (!*value || strpbrk(value, "/ \t"))
        return "not the name of a host";
    append(options->http_hosts, value);
    return NULL;
}

static const char *take_http_resume(struct pf_options *options, const char *value)
{
    const char *wrong = pf_take_decimal(&options->resume_seconds, 86400, value);

    return wrong ? "not a number of seconds greater than 0, up to 86400" : NULL;
}

static const char *take_scope(struct pf_options *options, const char *value)
{
    options->scope_user = strcmp(value, "user") == 0;
    options->scope_project = strcmp(value, "project") == 0;
    return options->scope_user || options->scope_project ? NULL : "none of: project, user";
}

static const char *take_url(struct pf_options *options, const char *value)
{
    if (strncmp(value, "http://", 7) != 0 && strncmp(value, "https://", 8) != 0)
        return "not an address that begins with http:// or https://";
    options->url = value;
    return NULL;
}

/* The word at *at up to a colon or the end is one of two. */
static bool take_word(const char **at, const char *one, const char *other)
{
    size_t len = strcspn(*at, ":");
    const char *word = *at;

    *at += len + (word[len] == ':');
    return (len == strlen(one) && strncmp(word, one, len) == 0) ||
           (len == strlen(other) && strncmp(word, other, len) == 0);
}

static const char *take_token(struct pf_options *options, const char *value)
{
    size_t len = strspn(value, letters);
    const char *at = value + len;

    if (!len || len > 64 || *at++ != ':' || !take_word(&at, "read_write", "read_only"))
        return "not of the form NAME:MODE, where MODE is read_write or read_only";
    if (*at && (!take_word(&at, "file", "env") || !*at))
        return "its value is not on the command line, where everybody could read it: "
               "NAME:MODE:file:PATH or NAME:MODE:env:VARIABLE say where it is";
    append(options->tokens, value);
    return NULL;
}

static const char *take_env(struct pf_options *options, const char *value)
{
    const char *equals = strchr(value, '=');

    if (!equals || equals == value)
        return "not of the form NAME=value";
    append(options->env, value);
    return NULL;
}

static const char *take_cpus(struct pf_options *options, const char *value)
{
    if (strcmp(value, "unlimited") != 0)
        return pf_take_decimal(&options->limits.cpus, 100000, value);
    options->limits.cpus = 0;
    return NULL;
}

/* What is shown in a sandbox has one absolute path on both sides: a relative one is taken from the
 * current directory, without the links on its way. */
static const char *make_absolute(struct pf_options *options, const char **path)
{
    char *whole;

    if (**path == '/')
        return NULL;
    whole = realpath(*path, NULL);
    if (!whole)
        return pf_error_words(errno);
    append(options->resolved, whole);
    *path = whole;
    return NULL;
}

static const char *take_rootfs(struct pf_options *options, const char *value)
{
    options->rootfs = value;
    return make_absolute(options, &options->rootfs);
}

static const char *take_net(struct pf_options *options, const char *value)
{
    static const char allow[] = "allow=";

    if (strncmp(value, allow, strlen(allow)) == 0 && value[strlen(allow)]) {
        append(options->net_allow, value + strlen(allow));
        options->takes_extras = true; /* the proxy */
        return NULL;
    }
    options->host_net = strcmp(value, "host") == 0;
    return options->host_net || strcmp(value, "none") == 0
                   ? NULL
                   : "none of: none, host, allow=NAME[:PORT],...";
}

static const char *add_directory(struct pf_options *options, const char **list, const char *value)
{
    const char *wrong = make_absolute(options, &value);

    if (!wrong)
        append(list, value);
    return wrong;
}

static const char *take_ro(struct pf_options *options, const char *value)
{
    return add_directory(options, options->ro, value);
}

static const char *take_rw(struct pf_options *options, const char *value)
{
    return add_directory(options, options->rw, value);
}

/* ---- the table ---- */

const struct pf_flag pf_flags[] = {
    { "backend", "NAME",
      "isolated (default); local: the host itself; agentcore, daytona: see below",
      PF_FOR_RUN | PF_FOR_PLAN, 0, PF_TAKE_BY(take_backend) },
    { "net", "NET", "isolated: none (default), host, or allow=NAME[:PORT],...; repeatable",
      PF_FOR_ISOLATED, 0, PF_TAKE_BY(take_net) },
    { "ro", "DIR", "isolated: show a directory of the host, read-only; repeatable", PF_FOR_ISOLATED,
      0, PF_TAKE_BY(take_ro) },
    { "rw", "DIR", "isolated: show a directory of the host, writable; repeatable", PF_FOR_ISOLATED,
      0, PF_TAKE_BY(take_rw) },
    { "rootfs", "DIR", "isolated: use DIR as the system instead of the host's, read-only",
      PF_FOR_ISOLATED, 0, PF_TAKE_BY(take_rootfs) },
    { "memory", "BYTES",
      "isolated: of the sandbox, without control groups of a process (default 4G)", PF_FOR_ISOLATED,
      0, PF_TAKE_BYTE_LIMIT(limits.memory_bytes) },
    { "processes", "N", "isolated: processes and threads (default 1024)", PF_FOR_ISOLATED, 0,
      PF_TAKE_LIMIT(limits.processes) },
    { "cpu-seconds", "N", "isolated: processor time of each process (default unlimited)",
      PF_FOR_ISOLATED, 0, PF_TAKE_LIMIT(limits.cpu_seconds) },
    { "cpus", "N", "isolated: processors' worth of time, such as 1.5; needs control groups",
      PF_FOR_ISOLATED, 0, PF_TAKE_BY(take_cpus) },
    { "open-files", "N", "isolated: open files of each process (default 4096)", PF_FOR_ISOLATED, 0,
      PF_TAKE_LIMIT(limits.open_files) },
    { "file-size", "BYTES", "isolated: of each file, by SIGXFSZ (default unlimited)",
      PF_FOR_ISOLATED, 0, PF_TAKE_BYTE_LIMIT(limits.file_bytes) },
    { "workspace-size", "BYTES", "isolated: what the workspace may hold (default: see below)",
      PF_FOR_ISOLATED, 0, PF_TAKE_BYTE_LIMIT(limits.workspace_bytes) },
    { "tmp-size", "BYTES",
      "isolated: of each of /tmp, /dev/shm and the home directory (default 1G)", PF_FOR_ISOLATED, 0,
      PF_TAKE_BYTE_LIMIT(limits.tmp_bytes) },
    { "region", "NAME", "agentcore: of AWS (default AWS_REGION, or the profile's)",
      PF_FOR_AGENTCORE, 0, PF_TAKE_BY(take_region) },
    { "profile", "NAME", "agentcore: of AWS, with credentials and region", PF_FOR_AGENTCORE, 0,
      PF_TAKE_TEXT(profile) },
    { "interpreter", "ID", "agentcore: code interpreter (default aws.codeinterpreter.v1)",
      PF_FOR_AGENTCORE, 0, PF_TAKE_TEXT(interpreter) },
    { "endpoint", "URL", "agentcore: of the service, instead of the region's", PF_FOR_AGENTCORE, 0,
      PF_TAKE_BY(take_endpoint) },
    { "session-timeout", "SECONDS",
      "agentcore: lifetime of sessions, up to 28800 (default 900; agent 7200)", PF_FOR_AGENTCORE, 0,
      PF_TAKE_BY(take_session_timeout) },
    { "target", "NAME", "daytona: region (default DAYTONA_TARGET, or the service's)",
      PF_FOR_DAYTONA, 0, PF_TAKE_TEXT(target) },
    { "snapshot", "NAME", "daytona: what the sandbox is made of (default: the service's)",
      PF_FOR_DAYTONA, 0, PF_TAKE_TEXT(snapshot) },
    { "image", "NAME", "daytona: instead, an image of a registry, such as debian:12",
      PF_FOR_DAYTONA, 0, PF_TAKE_TEXT(image) },
    { "seed", "DIR", "copy DIR into the workspace first", PF_FOR_RUN | PF_FOR_PLAN, 0,
      PF_TAKE_DIRECTORY(seed) },
    { "seed-mode", "MODE", "copy (default); overlay, isolated: show the seed below the changes",
      PF_FOR_RUN, 0, PF_TAKE_BY(take_seed_mode) },
    { "exclude", "GLOB", "leave out what matches, on the way in and back; repeatable",
      PF_FOR_RUN | PF_FOR_PLAN, 0, PF_TAKE_LIST(exclude) },
    { "sync", "[=DIR]", "copy results back, to DIR or to the seed", PF_FOR_RUN | PF_FOR_PLAN, 0,
      PF_TAKE_BY(take_sync) },
    { "include", "GLOB", "copy back what matches, instead of the default kinds; repeatable",
      PF_FOR_RUN | PF_FOR_PLAN, 0, PF_TAKE_LIST(include) },
    { "tty", NULL, "run the command on a terminal, which is relayed to yours", PF_FOR_COMMAND, 't',
      PF_SWITCH(tty) },
    { "timeout", "SECONDS", "stop it after this time, 1.5 say (default 120; on a terminal none)",
      PF_FOR_RUN, 0, PF_TAKE_SECONDS(timeout_seconds) },
    { "max-output", "BYTES", "cut the output after this much; K, M and G are powers of 1024",
      PF_NOT_FOR_SHELL, 0, PF_TAKE_BYTES(max_output_bytes) },
    { "env", "NAME=VALUE", "set a variable for the command; repeatable", PF_FOR_RUN, 0,
      PF_TAKE_BY(take_env) },
    { "no-inherit-env", NULL, "local: give the command no variable but those of --env", PF_FOR_RUN,
      0, PF_SWITCH(no_inherit_env) },
    { "workspace", "DIR", "work in DIR and keep it (default: a temporary directory)",
      PF_FOR_RUN | PF_FOR_PLAN, 0, PF_TAKE_DIRECTORY(workspace) },
    { "audit", "FILE", "append one JSON line to FILE for everything that is done",
      PF_FOR_RUN | PF_NEEDS_EXTRAS, 0, PF_TAKE_FILE(audit) },
    { "json", NULL, "print one JSON object with all results",
      PF_FOR_COMMAND | PF_FOR_PLAN | PF_FOR_AGENT | PF_FOR_CONFIG | PF_NEEDS_EXTRAS, 0,
      PF_SWITCH(json) },
    { "config", "FILE", "read this policy first: see 'pinfold help config'",
      PF_FOR_RUN | PF_FOR_PLAN, 0, PF_TAKE_FILE(config) },
    { "http", "ADDRESS:PORT", "serve over HTTP there, instead of stdin and stdout", PF_FOR_MCP, 0,
      PF_TAKE_BY(take_http) },
    { "http-host", "NAME", "http: a name that a reverse proxy asks for it by; repeatable",
      PF_FOR_MCP, 0, PF_TAKE_BY(take_http_host) },
    { "http-anywhere", NULL, "http: ADDRESS may be another than this machine's loopback",
      PF_FOR_MCP, 0, PF_SWITCH(http_anywhere) },
    { "http-resume", "SECONDS", "http: a request outlives its connection so long (default 15)",
      PF_FOR_MCP, 0, PF_TAKE_BY(take_http_resume) },
    { "token", "NAME:MODE", "http: a client, read_write or read_only: see below; repeatable",
      PF_FOR_MCP, 0, PF_TAKE_BY(take_token) },
    { "read-only", NULL, "the client may look at everything, and change nothing", PF_FOR_MCP, 0,
      PF_SWITCH(read_only) },
    { "no-sync", NULL, "give the client no tool that writes results back", PF_FOR_MCP, 0,
      PF_SWITCH(no_sync) },
    { "ttl", "SECONDS", "end the workspace when unused (default never), and HTTP clients (3600)",
      PF_FOR_MCP, 0, PF_TAKE_SECONDS(ttl_seconds) },
    { "no-roots", NULL, "take no seed from the client; without this its first root is the seed",
      PF_FOR_MCP, 0, PF_SWITCH(no_roots) },
    { "write", NULL, "merge it into the client's file, and keep what was there beside it",
      PF_FOR_INSTALL, 0, PF_SWITCH(write) },
    { "scope", "SCOPE", "project, or user: for all projects (default: project; codex: user)",
      PF_FOR_INSTALL, 0, PF_TAKE_BY(take_scope) },
    { "name", "NAME", "of the server (default pinfold)", PF_FOR_INSTALL, 0, PF_TAKE_NAME(name) },
    { "url", "URL", "of a server that runs, instead of one that the client starts", PF_FOR_INSTALL,
      0, PF_TAKE_BY(take_url) },
    { "token-env", "NAME", "the variable that has its token", PF_FOR_INSTALL, 0,
      PF_TAKE_NAME(token_env) },
    { "quiet", NULL, "no warnings, notes and summaries on stderr",
      PF_FOR_RUN | PF_FOR_PLAN | PF_FOR_INSTALL, 'q', PF_SWITCH(quiet) },
    { "help", NULL, "show this help", ~0U, 'h', PF_VALUE_OF_HELP },
};

const size_t pf_flag_count = sizeof(pf_flags) / sizeof(pf_flags[0]);
_Static_assert(sizeof(pf_flags) / sizeof(pf_flags[0]) <= PF_FLAGS_MAX,
               "pf_options.given has a place for each");

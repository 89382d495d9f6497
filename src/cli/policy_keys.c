/* SPDX-License-Identifier: Apache-2.0 */
/* What a pinfold.toml can say, and how far one may go that nobody chose. */
#include <string.h>

#include "cli/policy.h"

const struct pf_key pf_keys[] = {
    { "backend", "backend", "isolated", PF_TEXT, PF_MAY_NOT, NULL },
    { "seed", "seed", "none", PF_PATH, PF_MAY_NOT, NULL },
    { "seed-mode", "seed-mode", "copy", PF_TEXT, PF_MAY_NOT, NULL },
    { "exclude", "exclude", "pinfold.toml, and the eight that are always left out", PF_LIST,
      PF_MAY_ADD, NULL },
    { "sync", "sync", "nothing comes home", PF_SYNC, PF_MAY_NOT, NULL },
    { "include", "include", "src, tests, dist, build, *.md, *.py, *.json, *.yaml, *.yml", PF_LIST,
      PF_MAY_NOT, NULL },
    { "workspace", "workspace", "a temporary directory", PF_PATH, PF_MAY_NOT, NULL },
    { "audit", "audit", "none", PF_PATH, PF_MAY_NOT, NULL },
    { "ttl", "ttl", "never; clients of HTTP 3600", PF_NUMBER, PF_MAY_LOWER, NULL },
    { "network", "net", "none", PF_NETWORK, PF_MAY_NARROW, NULL },
    { "ro", "ro", "none", PF_PATHS, PF_MAY_NOT, NULL },
    { "rw", "rw", "none", PF_PATHS, PF_MAY_NOT, NULL },
    { "rootfs", "rootfs", "the system's directories", PF_PATH, PF_MAY_NOT, NULL },
    { "env", "env", "none", PF_LIST, PF_MAY_NOT, NULL },
    { "limits.memory", "memory", "4G", PF_SIZE, PF_MAY_LOWER, NULL },
    { "limits.processes", "processes", "1024", PF_NUMBER, PF_MAY_LOWER, NULL },
    { "limits.cpu-seconds", "cpu-seconds", "unlimited", PF_NUMBER, PF_MAY_LOWER, NULL },
    { "limits.cpus", "cpus", "unlimited", PF_NUMBER, PF_MAY_LOWER, NULL },
    { "limits.open-files", "open-files", "4096", PF_NUMBER, PF_MAY_LOWER, NULL },
    { "limits.file-size", "file-size", "unlimited", PF_SIZE, PF_MAY_LOWER, NULL },
    { "limits.tmp-size", "tmp-size", "1G", PF_SIZE, PF_MAY_LOWER, NULL },
    { "limits.workspace-size", "workspace-size", "what the disk can spare", PF_SIZE, PF_MAY_LOWER,
      NULL },
    { "limits.timeout", "timeout", "120", PF_NUMBER, PF_MAY_LOWER, NULL },
    { "limits.max-output", "max-output", "30000", PF_SIZE, PF_MAY_LOWER, NULL },
    { "agentcore.region", "region", "AWS_REGION, or the profile's", PF_TEXT, PF_MAY_NOT,
      "agentcore" },
    { "agentcore.profile", "profile", "none", PF_TEXT, PF_MAY_NOT, "agentcore" },
    { "agentcore.interpreter", "interpreter", "aws.codeinterpreter.v1", PF_TEXT, PF_MAY_NOT,
      "agentcore" },
    { "agentcore.endpoint", "endpoint", "the region's", PF_TEXT, PF_MAY_NOT, "agentcore" },
    { "agentcore.session-timeout", "session-timeout", "900", PF_NUMBER, PF_MAY_NOT, "agentcore" },
    { "daytona.target", "target", "DAYTONA_TARGET, or the service's", PF_TEXT, PF_MAY_NOT,
      "daytona" },
    { "daytona.snapshot", "snapshot", "the service's", PF_TEXT, PF_MAY_NOT, "daytona" },
    { "daytona.image", "image", "none", PF_TEXT, PF_MAY_NOT, "daytona" },
    { "http.listen", "http", "stdin and stdout instead", PF_TEXT, PF_MAY_NOT, NULL },
    { "http.hosts", "http-host", "those of this machine", PF_LIST, PF_MAY_NOT, NULL },
    { "http.resume", "http-resume", "15", PF_NUMBER, PF_MAY_NOT, NULL },
    { "token", "token", "one that may write, made at the start", PF_LIST, PF_MAY_NOT, NULL },
};

const size_t pf_key_count = sizeof(pf_keys) / sizeof(pf_keys[0]);

int pf_key_of_path(const char *path)
{
    for (size_t i = 0; i < pf_key_count; i++)
        if (strcmp(pf_keys[i].path, path) == 0)
            return (int)i;
    return -1;
}

int pf_key_of_option(const char *option)
{
    for (size_t i = 0; i < pf_key_count; i++)
        if (strcmp(pf_keys[i].option, option) == 0)
            return (int)i;
    return -1;
}

const char *pf_source_word(enum pf_source source)
{
    static const char *const words[] = {
        [PF_FROM_DEFAULT] = "default",         [PF_FROM_USER] = "user",
        [PF_FROM_PROJECT] = "project",         [PF_FROM_NAMED] = "named",
        [PF_FROM_ENVIRONMENT] = "environment", [PF_FROM_OPTION] = "option",
    };

    return words[source];
}

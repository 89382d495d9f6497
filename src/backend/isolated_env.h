/* SPDX-License-Identifier: Apache-2.0 */
/* What commands of the isolated backend find in their environment: for isolated.c alone. */
#ifndef PF_BACKEND_ISOLATED_ENV_H
#define PF_BACKEND_ISOLATED_ENV_H

#include "base/cleanup.h"
#include "jail/jail.h"

/* All that a command has of an environment, before what was asked for. */
static const char *const base_env[] = {
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME=" PF_JAIL_HOME,
    "USER=agent",
    "LOGNAME=agent",
    "SHELL=/bin/sh",
    "LANG=C.UTF-8",
    "TMPDIR=/tmp",
    NULL,
};

/* What programs look at to find the way out. Some know only one spelling. */
#define PROXY_URL "http://127.0.0.1:" PF_STRINGIFY(PF_JAIL_PROXY_PORT)
static const char *const proxy_env[] = {
    "http_proxy=" PROXY_URL,
    "https_proxy=" PROXY_URL,
    "all_proxy=" PROXY_URL,
    "HTTP_PROXY=" PROXY_URL,
    "HTTPS_PROXY=" PROXY_URL,
    "ALL_PROXY=" PROXY_URL,
    "no_proxy=localhost,127.0.0.1,::1",
    "NO_PROXY=localhost,127.0.0.1,::1",
    "NODE_USE_ENV_PROXY=1", /* Node looks at none of these otherwise, and only from 24 on */
    "GIT_PROXY_COMMAND=" PF_JAIL_CONNECT, /* git:// */
    NULL,
};

/* ssh is told by /etc/ssh/ssh_config, unless /etc is that of another root. */
static const char *const rootfs_env[] = {
    "GIT_SSH_COMMAND=ssh -o 'ProxyCommand=" PF_JAIL_CONNECT " %h %p'",
    NULL,
};

#endif

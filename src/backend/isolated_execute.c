/* SPDX-License-Identifier: Apache-2.0 */
/* Commands and terminals of the isolated backend. */
#include "backend/isolated.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "backend/pty.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/strings.h"
#include "proc/env.h"
#include "tree/beneath.h"
#include "tree/place.h"

/* All that a command has of an environment, before what was asked for. */
static const char *const base_env[] = {
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    ("HOME=" PF_JAIL_HOME),
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

/* A result that says what the limits had to do with it. */
static int run_limited(struct pf_isolated *isolated, struct pf_run_request *request,
                       struct pinfold_execute_result *ret, struct pinfold_error *err)
{
    int r = pf_quota_admit(&isolated->quota, 0, err), noted;
    enum pinfold_limit stopped;
    uint64_t kills;

    if (r < 0)
        return pf_wrap(err, r, "run a command");
    kills = pf_verdict_begin(&isolated->verdict);
    pf_quota_attach(&isolated->quota, request);
    r = pf_run(isolated->dir.launcher, request, ret, err);
    stopped = pf_quota_detach(&isolated->quota, request, ret->background > 0);
    if (r < 0 && r != -PINFOLD_ECANCELLED)
        return r;
    noted = pf_verdict_end(&isolated->verdict, kills, stopped, ret, r < 0 ? NULL : err);
    if (noted < 0 && r == 0)
        pinfold_execute_result_done(ret);
    return r < 0 ? r : noted;
}

/* All that starting a command takes. */
struct job {
    struct pf_run_request request;
    char *pwd;
    char **env;
};

static void job_done(struct job *job)
{
    free(job->pwd);
    pf_strv_free(job->env);
}

/* extra, asked: more of an environment, below what the backend has and over it; may be NULL. */
static int prepare(struct pf_isolated *isolated, const struct pinfold_execute_options *options,
                   const char *const *extra, const char *const *asked, struct job *job,
                   struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_local_root_putp) struct pf_local_root *root = NULL;
    const char *cwd = options->cwd ? options->cwd : ".";
    _cleanup_close_ int cwd_fd = -1;
    int r = pf_env_check(options->env, err);

    job->pwd = pf_directory_pwd(PF_JAIL_WORKSPACE, cwd);
    if (r == 0)
        r = pf_directory_get_root(&isolated->dir, &root, cancel, err);
    if (r == 0)
        r = pf_isolated_need_jail(isolated, err);
    if (r < 0)
        return r;
    /* Only to say what is wrong with it, as for files: what enters the jail is the path. */
    cwd_fd = pf_beneath_open(root->fd, cwd, O_PATH | O_DIRECTORY, 0);
    if (cwd_fd < 0)
        return pf_fail_at(err, -cwd_fd, "enter directory", cwd);
    if (job->pwd)
        job->env = pf_env_merge(
                (const char *const *const[]){
                        base_env,
                        extra,
                        isolated->egress ? proxy_env : NULL,
                        isolated->egress && isolated->rootfs ? rootfs_env : NULL,
                        (const char *const[]){ job->pwd, NULL },
                        (const char *const *)isolated->dir.env,
                        asked,
                        options->env,
                },
                8);
    if (!job->env)
        return pf_fail_nomem(err);
    r = pf_directory_request(&isolated->dir, options, (const char *const *)job->env, cancel,
                             &job->request, err);
    job->request.cwd_path = job->pwd + strlen("PWD=");
    return r;
}

int pf_isolated_execute(void *state, const struct pinfold_execute_options *options,
                        struct pinfold_execute_result *ret_result, struct pinfold_cancel *cancel,
                        struct pinfold_error *err)
{
    PF_CLEANUP(job_done) struct job job = { 0 };
    struct pf_isolated *isolated = state;
    int r = prepare(isolated, options, NULL, NULL, &job, cancel, err);

    return r < 0 ? r : run_limited(isolated, &job.request, ret_result, err);
}

/* What the user of a sandbox would log in to. The prompt means something to bash alone. */
static const char login_shell[] = "[ -x /bin/bash ] && SHELL=/bin/bash exec /bin/bash -i\n"
                                  "unset PS1; exec /bin/sh -i";
static const char prompt[] = "PS1=\\u@\\h:\\w\\$ ";

/* What it takes to say which limit ended the command of a terminal. */
struct watch {
    struct pf_isolated *isolated; /* outlives the terminal */
    uint64_t kills;               /* for memory, before */
    unsigned stops;               /* by the quota, before */
    bool judged;                  /* once: afterwards the jail may be gone */
    enum pinfold_limit limit;
};

static void judge(void *ctx, struct pinfold_terminal_exit *end)
{
    struct watch *watch = ctx;
    struct pf_isolated *isolated = watch->isolated;
    enum pinfold_limit stopped = PINFOLD_LIMIT_NONE;

    pthread_mutex_lock(&isolated->opening);
    if (!watch->judged && isolated->jail) {
        if (end->killed && isolated->quota.kills != watch->stops)
            stopped = (enum pinfold_limit)isolated->quota.killed_for;
        watch->limit = pf_verdict_end_terminal(&isolated->verdict, watch->kills, stopped, end);
        watch->judged = true;
    }
    if (watch->limit != PINFOLD_LIMIT_NONE)
        end->limit = watch->limit;
    pthread_mutex_unlock(&isolated->opening);
}

static int open_watched(struct pf_isolated *isolated, struct pf_run_request *request,
                        const struct pinfold_terminal_options *options,
                        struct pinfold_terminal **ret_terminal, struct pinfold_error *err)
{
    struct watch *watch = malloc(sizeof(*watch));
    int r;

    if (!watch)
        return pf_fail_nomem(err);
    *watch = (struct watch){ .isolated = isolated,
                             .kills = pf_verdict_begin_terminal(&isolated->verdict),
                             .stops = isolated->quota.kills };
    pf_quota_attach(&isolated->quota, request);
    r = pf_pty_open(isolated->dir.launcher, request, options, judge, watch, ret_terminal, err);
    /* It runs on, and is watched as what a command leaves behind. */
    pf_quota_detach(&isolated->quota, request, r == 0);
    if (r < 0)
        free(watch);
    return r;
}

int pf_isolated_open_terminal(void *state, const struct pinfold_terminal_options *options,
                              struct pinfold_terminal **ret_terminal, struct pinfold_cancel *cancel,
                              struct pinfold_error *err)
{
    PF_CLEANUP(job_done) struct job job = { 0 };
    _cleanup_free_ char *term = pf_pty_term(options);
    struct pf_isolated *isolated = state;
    struct pinfold_execute_options what;
    int r = pf_pty_options(options, login_shell, &what, err);

    if (r == 0 && !term)
        r = pf_fail_nomem(err);
    if (r == 0)
        r = prepare(isolated, &what, (const char *const[]){ prompt, term, NULL },
                    options->term ? (const char *const[]){ term, NULL } : NULL, &job, cancel, err);
    if (r == 0)
        r = pf_quota_admit(&isolated->quota, 0, err);
    return r < 0 ? r : open_watched(isolated, &job.request, options, ret_terminal, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The isolated backend from its creation to its end: workspace, jail, proxy. */
#include "backend/isolated.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"

/* On the proxy's thread. */
static void note_egress(void *ctx, const struct pf_egress_event *event)
{
    const struct pf_isolated *isolated = ctx;
    struct pinfold_network_event told = {
        .size = sizeof(told),
        .outcome = event->kind == PF_EGRESS_REFUSED  ? PINFOLD_NETWORK_REFUSED
                   : event->kind == PF_EGRESS_FAILED ? PINFOLD_NETWORK_FAILED
                                                     : PINFOLD_NETWORK_OPENED,
        .protocol = event->protocol,
        .host = event->host,
        .port = event->port,
        .reason = event->reason,
        .count = event->count,
    };

    if (event->kind == PF_EGRESS_CLOSED)
        return;
    if (told.outcome != PINFOLD_NETWORK_OPENED)
        pf_log(PINFOLD_LOG_INFO, "network: %s:%u %s %llu time(s): %s", PF_QUOTE(event->host),
               (unsigned)event->port,
               told.outcome == PINFOLD_NETWORK_REFUSED ? "refused" : "not reached",
               (unsigned long long)event->count, event->reason);
    if (isolated->on_network)
        isolated->on_network(isolated->on_network_ctx, &told);
}

void pf_isolated_watch_network(void *state, pinfold_network_fn fn, void *ctx)
{
    struct pf_isolated *isolated = state;

    isolated->on_network = fn;
    isolated->on_network_ctx = ctx;
}

static int open_egress(struct pf_isolated *isolated, struct pinfold_error *err)
{
    struct pf_egress_rules *rules = NULL;
    int socket, r;

    if (isolated->net != PINFOLD_NET_ALLOW)
        return 0;
    r = pf_egress_rules_new((const char *const *)isolated->net_allow, &rules, err);
    if (r < 0)
        return r;
    socket = pf_jail_take_proxy_socket(isolated->jail);
    r = pf_egress_start(socket, rules, note_egress, isolated, &isolated->egress, err);
    if (r < 0) {
        pf_egress_rules_free(rules);
        if (socket >= 0)
            close(socket);
    }
    return r;
}

static int make_root(struct pf_isolated *isolated, struct pinfold_error *err)
{
    int r = pinfold_temp_workspace_new(&isolated->temporary, err);

    if (r < 0)
        return r;
    isolated->dir.configured_root = strdup(pinfold_temp_workspace_path(isolated->temporary));
    return isolated->dir.configured_root ? 0 : pf_fail_nomem(err);
}

/* The jail's part in execution. Commands may be refused already. */
static int start_launcher(struct pf_isolated *isolated, struct pinfold_error *err)
{
    struct pf_directory *dir = &isolated->dir;
    struct pf_launcher *launcher = NULL;
    bool stopped;
    int r = pf_launcher_new_in_jail(pf_jail_socket(isolated->jail),
                                    pf_jail_resident(isolated->jail), &launcher, err);

    if (r < 0)
        return r;
    pf_verdict_init(&isolated->verdict, isolated->jail, &isolated->limits);
    pf_quota_hold(&isolated->quota, isolated->verdict.holders);
    isolated->quota.launcher = launcher;
    pthread_mutex_lock(&dir->lock);
    dir->launcher = launcher;
    stopped = dir->stopped;
    pthread_mutex_unlock(&dir->lock);
    if (stopped)
        pf_launcher_stop(launcher);
    return 0;
}

int pf_isolated_open_jail(struct pf_isolated *isolated, const char *seed, struct pinfold_error *err)
{
    _cleanup_close_ int lent = -1;
    int r = 0;

    if (isolated->lender)
        r = pf_jail_lend(isolated->lender->jail, isolated->dir.root->fd, &lent, err);
    if (r < 0)
        return r;
    r = pf_jail_open(
            &(struct pf_jail_config){
                    .workspace_fd = isolated->lender ? lent
                                    : seed           ? isolated->layers.host_fd
                                                     : isolated->dir.root->fd,
                    .lent = isolated->lender != NULL,
                    .seed = seed,
                    .seed_fd = isolated->layers.seed_fd,
                    .workspace_read_only = isolated->workspace_read_only,
                    .ro = (const char *const *)isolated->ro,
                    .rw = (const char *const *)isolated->rw,
                    .rootfs = isolated->rootfs,
                    .net = isolated->net,
                    .limits = isolated->limits,
            },
            &isolated->jail, err);

    if (r == 0)
        r = open_egress(isolated, err);
    if (r == 0)
        r = start_launcher(isolated, err);
    return r;
}

int pf_isolated_need_jail(struct pf_isolated *isolated, struct pinfold_error *err)
{
    int r = 0;

    if (isolated->seed_mode != PINFOLD_SEED_OVERLAY && !isolated->is_view)
        return 0; /* create has opened it */
    pthread_mutex_lock(&isolated->opening);
    if (!isolated->jail)
        r = pf_isolated_open_jail(isolated, NULL, err);
    if (r < 0) {
        pf_egress_stop(TAKE(isolated->egress));
        pf_jail_close(TAKE(isolated->jail));
    }
    pthread_mutex_unlock(&isolated->opening);
    return r;
}

int pf_isolated_close(void *state, struct pinfold_error *err)
{
    struct pf_isolated *isolated = state;
    struct pf_jail *jail;

    pthread_mutex_lock(&isolated->opening); /* waits for terminals look at it */
    jail = TAKE(isolated->jail);
    pthread_mutex_unlock(&isolated->opening);
    pf_quota_done(&isolated->quota);
    pf_directory_close(&isolated->dir);
    pf_egress_stop(TAKE(isolated->egress));
    pf_jail_close(jail);
    pf_layers_done(&isolated->layers, false);
    if (!isolated->own_root)
        return 0;
    free(TAKE(isolated->dir.configured_root));
    free(TAKE(isolated->dir.real_root));
    return pinfold_temp_workspace_free(TAKE(isolated->temporary), err);
}

/* The rights of root end at the walls: inside, its commands are an ordinary user. */
static void warn_of_owner(const struct pf_directory *dir)
{
    struct stat st;

    if (geteuid() == 0 && fstat(dir->root->fd, &st) == 0 && st.st_uid != 0 &&
        !(st.st_mode & S_IWOTH))
        pf_log(PINFOLD_LOG_WARNING,
               "workspace %s belongs to user %u, and commands cannot write to it; run as that user",
               PF_QUOTE(dir->real_root), (unsigned)st.st_uid);
}

int pf_isolated_create(void *state, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pf_isolated *isolated = state;
    int r = 0;

    (void)cancel;
    if (isolated->own_root)
        r = make_root(isolated, err);
    if (r == 0)
        r = pf_directory_open(&isolated->dir, err);
    if (r == 0) {
        warn_of_owner(&isolated->dir);
        r = pf_quota_init(&isolated->quota, isolated->dir.root->fd,
                          isolated->limits.workspace_bytes, err);
    }
    if (r == 0 && isolated->seed_mode == PINFOLD_SEED_COPY)
        r = pf_isolated_open_jail(isolated, NULL, err);
    if (r < 0)
        pf_isolated_close(state, NULL);
    return r;
}

const char *pf_isolated_workspace_root(void *state)
{
    (void)state;
    return PF_JAIL_WORKSPACE;
}

void pf_isolated_free(void *state)
{
    struct pf_isolated *isolated = state;

    pf_quota_done(&isolated->quota);
    pf_egress_stop(isolated->egress);
    pf_jail_close(isolated->jail);
    pf_layers_done(&isolated->layers, false);
    pthread_mutex_destroy(&isolated->opening);
    pf_directory_done(&isolated->dir);
    pf_strv_free(isolated->ro);
    pf_strv_free(isolated->rw);
    pf_strv_free(isolated->net_allow);
    free(isolated->rootfs);
    free(isolated);
}

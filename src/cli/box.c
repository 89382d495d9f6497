/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/box.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/extras.h"
#include "cli/say.h"

/* The manager wants an idle limit; nothing here ever asks it to expire sessions. */
#define TTL_SECONDS 3600.0

static int make_isolated(struct pf_box *box, const struct pf_options *options,
                         const char *workspace, struct pinfold_error *err)
{
    struct pinfold_isolated_options isolated = PINFOLD_ISOLATED_OPTIONS_INIT;

    isolated.workspace_root = workspace;
    isolated.timeout_seconds = options->timeout_seconds;
    isolated.max_output_bytes = options->max_output_bytes;
    isolated.env = options->env;
    isolated.ro = options->ro;
    isolated.rw = options->rw;
    isolated.rootfs = options->rootfs;
    isolated.net = options->net_allow[0] ? PINFOLD_NET_ALLOW
                   : options->host_net   ? PINFOLD_NET_HOST
                                         : PINFOLD_NET_NONE;
    isolated.net_allow = options->net_allow;
    isolated.limits = options->limits;
    if (options->overlay && options->seed)
        isolated.seed_mode = PINFOLD_SEED_OVERLAY;
    return pinfold_isolated_backend_new(&isolated, &box->backend, err);
}

static int make_backend(struct pf_box *box, const struct pf_options *options, const char *workspace,
                        struct pinfold_error *err)
{
    struct pinfold_local_options local = PINFOLD_LOCAL_OPTIONS_INIT;

    if (pf_options_remote(options))
        return pf_new_remote(options, &box->backend, err);
    if (options->isolated)
        return make_isolated(box, options, workspace, err);
    local.workspace_root = workspace;
    local.timeout_seconds = options->timeout_seconds;
    local.max_output_bytes = options->max_output_bytes;
    local.no_inherit_env = options->no_inherit_env;
    local.env = options->env;
    /* A directory that is kept is held by nobody afterwards. */
    local.process_ends = box->temporary && !box->goes_on;
    return pinfold_local_backend_new(&local, &box->backend, err);
}

/* Where a file is, or where it would be made. */
static bool find_place(const char *file, char ret[PATH_MAX])
{
    const char *slash = strrchr(file, '/');
    char directory[PATH_MAX], name[PATH_MAX];
    int len;

    if (realpath(file, ret))
        return true;
    len = snprintf(name, sizeof(name), "%.*s", slash ? (int)(slash - file) : 1, slash ? file : ".");
    if (errno != ENOENT || len >= (int)sizeof(name) || !realpath(len ? name : "/", directory))
        return false;
    len = snprintf(ret, PATH_MAX, "%s/%s", directory[1] ? directory : "", slash ? slash + 1 : file);
    return len < PATH_MAX;
}

static bool lies_below(const char *file, const char *directory)
{
    char real[PATH_MAX], below[PATH_MAX];
    size_t len;

    if (!find_place(file, below) || !realpath(directory, real))
        return false;
    len = strlen(real);
    return strncmp(below, real, len) == 0 && (below[len] == '/' || real[len - 1] == '/');
}

/* A record that the command can write to records nothing. Nor does one that a sync replaces. */
static int check_audit(const struct pf_options *options, const char *workspace,
                       struct pinfold_error *err)
{
    const char *home = options->sync ? options->sync : options->wants_sync ? options->seed : NULL;
    const char *place = workspace && lies_below(options->audit, workspace) ? workspace : NULL;

    for (size_t i = 0; !place && options->rw[i]; i++)
        if (lies_below(options->audit, options->rw[i]))
            place = options->rw[i];
    if (!place && home && lies_below(options->audit, home))
        place = home;
    if (!place || (!options->isolated && !pf_options_remote(options)))
        return 0;
    err->code = PINFOLD_EVALUE;
    snprintf(err->msg, sizeof(err->msg),
             "--audit %s: the command could change what lies in %s; name a file elsewhere",
             options->audit, place);
    return -PINFOLD_EVALUE;
}

int pf_box_check(const struct pf_options *options, struct pinfold_error *err)
{
    struct pf_box box = { .backend = NULL };
    int r = pinfold_patterns_check(options->exclude, err);

    if (r == 0)
        r = pinfold_patterns_check(options->include, err);
    if (r == 0 && options->isolated)
        r = make_isolated(&box, options, NULL, err);
    if (r == 0 && options->audit)
        r = check_audit(options, options->workspace, err);
    pinfold_backend_unref(box.backend);
    return r;
}

static void tell_both(void *ctx, const struct pinfold_audit_event *event)
{
    const struct pf_box *box = ctx;

    box->sink.emit(box->sink.ctx, event);
    box->also.emit(box->also.ctx, event);
}

int pf_box_open(struct pf_box *box, const struct pf_options *options, const char *workspace,
                struct pinfold_error *err)
{
    struct pinfold_sandbox_options what = PINFOLD_SANDBOX_OPTIONS_INIT;
    struct pinfold_sync_policy policy = {
        .exclude_patterns = options->exclude[0] ? options->exclude : NULL,
        .sync_include_patterns = options->include[0] ? options->include : NULL,
    };
    char id[32];
    int r = make_backend(box, options, workspace, err);

    if (r < 0)
        return r;
    if (options->audit) {
        /* Before, so that nothing is made where it may not be, and then what was opened: a link
         * may have led there. */
        r = check_audit(options, workspace, err);
        if (r == 0)
            r = pf_extras->open_audit(options->audit, &box->audit, err);
        if (r == 0)
            r = check_audit(options, workspace, err);
        if (r < 0)
            return r;
        box->sink = pf_extras->audit_sink(box->audit);
        what.audit = box->sink;
    }
    if (box->also.emit)
        what.audit = box->audit ? (struct pinfold_audit_sink){ tell_both, box } : box->also;
    snprintf(id, sizeof(id), "run-%d", (int)getpid());
    what.workspace_id = id;
    what.backend = box->backend;
    what.ttl_seconds = TTL_SECONDS;
    what.seed_from = options->seed;
    what.seed_exclude = options->exclude;
    what.sync_policy = &policy;
    what.sync_exclude = box->stay;
    what.sync_dest = options->sync;
    what.on_progress = pf_progress_update;
    what.on_progress_ctx = &box->progress;
    return pinfold_sandbox_new(&what, &box->sandbox, err);
}

const char *pf_box_keep(struct pf_box *box, const struct pf_options *options, bool overlay)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    const char *path;

    if (pf_options_remote(options))
        pf_say("what was not copied back is lost with its %s",
               options->daytona ? "sandbox" : "session");
    if (!box->temporary)
        return NULL;
    if (pinfold_temp_workspace_keep(box->temporary, &err) < 0)
        pf_say("%s; move it away soon", err.msg);
    path = pinfold_temp_workspace_path(box->temporary);
    pf_say("the results are kept in %s%s; remove it when you have them", path,
           overlay ? "/changes" : "");
    return path;
}

int pf_box_close(struct pf_box *box, struct pinfold_error *err)
{
    struct pinfold_error stays = PINFOLD_ERROR_INIT;
    int r = box->sandbox ? pinfold_sandbox_stop(box->sandbox, false, NULL, NULL, err) : 0;
    int audit = 0;

    pinfold_sandbox_free(box->sandbox);
    pinfold_backend_unref(box->backend);
    if (box->audit)
        audit = pf_extras->close_audit(box->audit, r < 0 ? NULL : err);
    if (pinfold_temp_workspace_free(box->temporary, &stays) < 0)
        pf_say("%s", stays.msg);
    memset(box, 0, sizeof(*box));
    return r < 0 ? r : audit;
}

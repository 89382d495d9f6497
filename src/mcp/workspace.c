/* SPDX-License-Identifier: Apache-2.0 */
/* The one workspace of a server: opened by the first request that needs it, used by several. */
#include "mcp/state.h"

#include <stdlib.h>
#include <string.h>

#include "cli/say.h"
#include "mcp/settings.h"

/* How long the first request waits for a client that has roots and does not name them, and how
 * often whoever waits looks whether he is still to. */
#define ROOTS_NS (3 * PF_MCP_SECOND)
#define LOOK_NS (PF_MCP_SECOND / 20)
/* Files of up to PINFOLD_READ_MAX_BYTES that are in memory at once. */
enum { READERS_MAX = 4 };

void pf_mcp_workspace_init(struct pf_mcp_workspace *workspace)
{
    pthread_mutex_init(&workspace->lock, NULL);
    pf_mcp_cond_init(&workspace->changed);
    workspace->idle_since = pf_mcp_now();
}

/* Wait a little for something to change. The lock is held. */
static void look_again(struct pf_mcp_workspace *workspace)
{
    struct timespec until = pf_mcp_after(LOOK_NS);

    pthread_cond_timedwait(&workspace->changed, &workspace->lock, &until);
}

static int cancelled(struct pinfold_error *err)
{
    *err = (struct pinfold_error){ .code = PINFOLD_ECANCELLED, .msg = "cancelled" };
    return -PINFOLD_ECANCELLED;
}

static void tell_seed(struct pf_mcp_server *server, const struct pinfold_seed_result *seed,
                      const char *from)
{
    char size[32];

    if (seed->fallback)
        pf_mcp_log(server, PF_MCP_WARNING, "%s", seed->fallback);
    if (from)
        pf_mcp_log(server, PF_MCP_INFO,
                   "the workspace is a copy of %s: %llu files (%s), %zu paths "
                   "left out",
                   from, (unsigned long long)seed->files_seeded,
                   pf_format_size(seed->bytes_seeded, size), seed->skipped_paths.count);
    else
        pf_mcp_log(server, PF_MCP_INFO, "the workspace is empty: no seed was named");
}

/* Make the sandbox of what the options say. */
static int make_sandbox(struct pf_box *box, const struct pf_options *options, const char *place,
                        struct pinfold_error *err)
{
    const char *stay[PF_MCP_SETTINGS + 1];
    int r;

    pf_mcp_settings_stay(options->include, stay);
    box->stay = stay;
    r = pf_box_open(box, options, place, err);
    box->stay = NULL;
    return r;
}

/* Make the sandbox and start it. Nobody else touches the box meanwhile. */
static int open_box(struct pf_mcp_server *server, const char *root, struct pinfold_cancel *cancel,
                    struct pinfold_error *err)
{
    __attribute__((cleanup(pinfold_seed_result_done))) struct pinfold_seed_result seed = { 0 };
    struct pf_box *box = &server->workspace.box;
    struct pf_options options = *server->options;
    const char *place = options.workspace;
    int r = 0;

    if (!options.seed)
        options.seed = root;
    /* What the tool execute promises is kept wherever it runs. A service that only ends commands
     * when they are begun for that is told so by there being a time. */
    options.timeout_seconds = pf_options_seconds(&options);
    box->also = pf_mcp_audit_sink(&server->audit);
    box->goes_on = true;
    if (!place && !pf_options_remote(&options)) {
        r = pinfold_temp_workspace_new(&box->temporary, err);
        place = r < 0 ? NULL : pinfold_temp_workspace_path(box->temporary);
    }
    if (r == 0)
        r = make_sandbox(box, &options, place, err);
    if (r == 0)
        r = pinfold_sandbox_start(box->sandbox, &seed, cancel, err);
    for (size_t i = 0; r < 0 && i < seed.errors.count && i < 20; i++)
        pf_mcp_log(server, PF_MCP_ERROR, "%s", seed.errors.items[i]);
    if (r == -PINFOLD_ENOTSUP && options.isolated)
        pf_mcp_log(server, PF_MCP_ERROR, "%s; 'pinfold doctor' says what is missing", err->msg);
    if (r < 0) {
        pf_box_close(box, NULL);
        return r;
    }
    server->workspace.overlay = seed.mode == PINFOLD_SEED_OVERLAY;
    tell_seed(server, &seed, options.seed);
    return 0;
}

/* Open it, or wait for who does. The lock is held, and given up meanwhile. */
static int open_locked(struct pf_mcp_server *server, struct pinfold_cancel *cancel,
                       struct pinfold_error *err)
{
    struct pf_mcp_workspace *workspace = &server->workspace;
    int64_t patience = pf_mcp_now() + ROOTS_NS;
    char *root;
    int r;

    while (workspace->state == PF_MCP_MOVING ||
           (workspace->state == PF_MCP_CLOSED && workspace->asked && !workspace->waited)) {
        if (pinfold_cancel_fired(cancel))
            return cancelled(err);
        look_again(workspace);
        workspace->waited |= workspace->asked && pf_mcp_now() >= patience;
    }
    if (workspace->state == PF_MCP_OPEN)
        return 0;
    workspace->state = PF_MCP_MOVING;
    root = workspace->root; /* nobody changes it while the state is this */
    pthread_mutex_unlock(&workspace->lock);
    r = open_box(server, root, cancel, err);
    pthread_mutex_lock(&workspace->lock);
    workspace->state = r < 0 ? PF_MCP_CLOSED : PF_MCP_OPEN;
    workspace->life += r == 0;
    pthread_cond_broadcast(&workspace->changed);
    return r;
}

/* Attach a session to this life of the workspace. The lock is held. */
static int attach_locked(struct pf_mcp_session *session, struct pinfold_error *err)
{
    struct pf_mcp_workspace *workspace = &session->server->workspace;
    struct pinfold_attach_request request = {
        .size = sizeof(request),
        .agent = session,
        .agent_id = session->name,
        .mode = session->mode,
    };
    int r;

    pinfold_sandbox_free(session->view);
    session->view = NULL;
    r = pinfold_sandbox_attach(workspace->box.sandbox, &request, err);
    if (r == 0 && session->mode == PINFOLD_READ_ONLY)
        r = pinfold_sandbox_view(workspace->box.sandbox, NULL, &session->view, err);
    /* A backend without views: then it has the tools that only read, and no others. */
    if (r == -PINFOLD_ENOTSUP)
        r = 0;
    if (r == 0) {
        session->renewed = session->life > 0;
        session->life = workspace->life;
    }
    return r;
}

int pf_mcp_workspace_begin(struct pf_mcp_session *session, struct pinfold_cancel *cancel,
                           struct pinfold_sandbox **ret, struct pinfold_error *err)
{
    struct pf_mcp_workspace *workspace = &session->server->workspace;
    int r = 0;

    pthread_mutex_lock(&workspace->lock);
    if (workspace->state != PF_MCP_OPEN)
        r = open_locked(session->server, cancel, err);
    if (r == 0 && session->life != workspace->life)
        r = attach_locked(session, err);
    if (r == 0) {
        workspace->users++;
        *ret = session->view ? session->view : workspace->box.sandbox;
    }
    pthread_mutex_unlock(&workspace->lock);
    return r;
}

void pf_mcp_workspace_end(struct pf_mcp_session *session)
{
    struct pf_mcp_workspace *workspace = &session->server->workspace;

    pthread_mutex_lock(&workspace->lock);
    if (--workspace->users == 0)
        workspace->idle_since = pf_mcp_now();
    pthread_mutex_unlock(&workspace->lock);
}

int pf_mcp_reading_begin(struct pf_mcp_session *session, struct pinfold_cancel *cancel,
                         struct pinfold_sandbox **ret, struct pinfold_error *err)
{
    struct pf_mcp_workspace *workspace = &session->server->workspace;
    int r = pf_mcp_workspace_begin(session, cancel, ret, err);

    if (r < 0)
        return r;
    pthread_mutex_lock(&workspace->lock);
    while (r == 0 && workspace->readers >= READERS_MAX) {
        look_again(workspace);
        if (pinfold_cancel_fired(cancel))
            r = cancelled(err);
    }
    workspace->readers += r == 0;
    pthread_mutex_unlock(&workspace->lock);
    if (r < 0)
        pf_mcp_workspace_end(session);
    return r;
}

void pf_mcp_reading_end(struct pf_mcp_session *session)
{
    struct pf_mcp_workspace *workspace = &session->server->workspace;

    pthread_mutex_lock(&workspace->lock);
    if (workspace->readers-- == READERS_MAX)
        pthread_cond_broadcast(&workspace->changed);
    pthread_mutex_unlock(&workspace->lock);
    pf_mcp_workspace_end(session);
}

bool pf_mcp_workspace_renewed(struct pf_mcp_session *session)
{
    struct pf_mcp_workspace *workspace = &session->server->workspace;
    bool renewed;

    pthread_mutex_lock(&workspace->lock);
    renewed = session->renewed;
    session->renewed = false;
    pthread_mutex_unlock(&workspace->lock);
    return renewed;
}

void pf_mcp_workspace_leave(struct pf_mcp_session *session)
{
    struct pf_mcp_workspace *workspace = &session->server->workspace;

    pthread_mutex_lock(&workspace->lock);
    if (workspace->state == PF_MCP_OPEN && session->life == workspace->life)
        pinfold_sandbox_detach(workspace->box.sandbox, session);
    pthread_mutex_unlock(&workspace->lock);
    pinfold_sandbox_free(session->view);
}

void pf_mcp_workspace_asked(struct pf_mcp_workspace *workspace)
{
    pthread_mutex_lock(&workspace->lock);
    workspace->asked++;
    pthread_mutex_unlock(&workspace->lock);
}

void pf_mcp_workspace_root(struct pf_mcp_workspace *workspace, char *root)
{
    pthread_mutex_lock(&workspace->lock);
    workspace->asked--;
    if (root && workspace->state == PF_MCP_CLOSED) {
        free(workspace->root);
        workspace->root = root;
        root = NULL;
    }
    pthread_cond_broadcast(&workspace->changed);
    pthread_mutex_unlock(&workspace->lock);
    free(root);
}

/* What could not be written back is in the workspace and nowhere else. */
static void keep(struct pf_mcp_workspace *workspace)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    if (!workspace->box.temporary)
        return;
    if (pinfold_temp_workspace_keep(workspace->box.temporary, &err) < 0)
        pf_say("%s; move it away soon", err.msg);
    pf_say("the results are kept in %s%s; remove it when you have them",
           pinfold_temp_workspace_path(workspace->box.temporary),
           workspace->overlay ? "/changes" : "");
}

static int write_back(struct pf_mcp_workspace *workspace, struct pinfold_error *err)
{
    __attribute__((cleanup(pinfold_sync_result_done))) struct pinfold_sync_result sync = { 0 };
    char size[32];
    int r = pinfold_sandbox_flush(workspace->box.sandbox, NULL, &sync, NULL, err);

    if (r >= 0 && sync.errors.count) {
        pf_say("sync: %zu paths could not be copied back", sync.errors.count);
        pf_say_list(&sync.errors);
        *err = (struct pinfold_error){ .code = PINFOLD_EPREPARE, .msg = "sync: not complete" };
        r = -PINFOLD_EPREPARE;
    }
    if (r < 0)
        keep(workspace);
    else if (r > 0)
        pf_note("synced %llu files (%s)", (unsigned long long)sync.files_synced,
                pf_format_size(sync.bytes_synced, size));
    return r < 0 ? r : 0;
}

/* Nobody else touches the box. */
static int close_box(struct pf_mcp_server *server, struct pinfold_error *err)
{
    struct pf_mcp_workspace *workspace = &server->workspace;
    int r = server->options->wants_sync ? write_back(workspace, err) : 0;
    int closed = pf_box_close(&workspace->box, r < 0 ? NULL : err);

    return r < 0 ? r : closed;
}

void pf_mcp_workspace_expire(struct pf_mcp_server *server)
{
    struct pf_mcp_workspace *workspace = &server->workspace;
    int64_t ttl_ns = (int64_t)(server->options->ttl_seconds * 1e9);
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    pthread_mutex_lock(&workspace->lock);
    if (ttl_ns && workspace->state == PF_MCP_OPEN && !workspace->users &&
        pf_mcp_now() - workspace->idle_since >= ttl_ns) {
        workspace->state = PF_MCP_MOVING; /* whoever comes now waits, and opens it anew */
        pthread_mutex_unlock(&workspace->lock);
        pf_mcp_log(server, PF_MCP_NOTICE, "nobody has used the workspace for %g seconds: it ends",
                   server->options->ttl_seconds);
        if (close_box(server, &err) < 0)
            pf_mcp_log(server, PF_MCP_ERROR, "%s", err.msg);
        pthread_mutex_lock(&workspace->lock);
        workspace->state = PF_MCP_CLOSED;
        pthread_cond_broadcast(&workspace->changed);
    }
    pthread_mutex_unlock(&workspace->lock);
}

int pf_mcp_workspace_close(struct pf_mcp_server *server, struct pinfold_error *err)
{
    struct pf_mcp_workspace *workspace = &server->workspace;
    int r = workspace->state == PF_MCP_OPEN ? close_box(server, err) : 0;

    free(workspace->root);
    pthread_cond_destroy(&workspace->changed);
    pthread_mutex_destroy(&workspace->lock);
    return r;
}

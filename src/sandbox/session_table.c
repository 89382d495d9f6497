/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/session_table.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/strings.h"

/* An id in use. Several managers may have a session of it, as long as none of them is owned. */
struct pf_workspace {
    struct pf_session *sessions;
    UT_hash_handle hh;
    char id[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct pf_workspace *workspaces; /* by id */
static struct pf_session *backends;     /* sessions by backend */
static struct pf_session *storages;     /* sessions by storage_key */
static bool inherited;                  /* this process is a fork and the table is its parent's */

/* ---- fork: a child owns no sessions ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

/* The sessions are the parent's: forgotten here without closing anything. Nor is anything freed,
 * since this runs in the middle of a fork: what the tables were made of is lost to the child. */
static void after_fork_in_child(void)
{
    for (const struct pf_workspace *at = workspaces; at; at = at->hh.next) {
        struct pf_session *session;
        DL_FOREACH(at->sessions, session) {
            session->state = PF_SESSION_CLOSED;
            session->refs--; /* the table's */
            *pf_manager_sessions(session->manager) = NULL;
        }
    }
    inherited = workspaces != NULL;
    workspaces = NULL;
    backends = storages = NULL;
    pthread_cond_init(&changed, NULL);
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

bool pf_sessions_inherited(void)
{
    return inherited;
}

/* ---- the lock ---- */

void pf_sessions_lock(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&lock);
}

void pf_sessions_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void pf_sessions_wake(void)
{
    pthread_cond_broadcast(&changed);
}

void pf_sessions_wait(void)
{
    struct timespec until;
    int64_t deadline = pf_clock_deadline(50 * PF_NS_PER_MS);

    until = (struct timespec){ .tv_sec = deadline / PF_NS_PER_SEC,
                               .tv_nsec = deadline % PF_NS_PER_SEC };
    pthread_cond_clockwait(&changed, &lock, CLOCK_MONOTONIC, &until);
}

/* ---- ids ---- */

/* As uthash counts it, whose macros look at it more than once. */
static unsigned length(const char *key)
{
    return (unsigned)strnlen(key, UINT_MAX);
}

static struct pf_workspace *find_workspace(const char *id)
{
    unsigned len = length(id);
    struct pf_workspace *workspace;

    HASH_FIND(hh, workspaces, id, len, workspace);
    return workspace;
}

static struct pf_workspace *new_workspace(const char *id)
{
    unsigned len = length(id);
    struct pf_workspace *workspace = malloc(sizeof(*workspace) + len + 1);

    if (!workspace)
        return NULL;
    workspace->sessions = NULL;
    memcpy(workspace->id, id, len + 1);
    HASH_ADD_KEYPTR(hh, workspaces, workspace->id, len, workspace);
    if (workspace->hh.tbl)
        return workspace;
    free(workspace);
    return NULL;
}

static void drop_if_unused(struct pf_workspace *workspace)
{
    if (workspace->sessions)
        return;
    HASH_DELETE(hh, workspaces, workspace);
    free(workspace);
}

struct pf_session *pf_sessions_find(struct pinfold_manager *manager, const char *id)
{
    struct pf_session **sessions = pf_manager_sessions(manager), *session;
    unsigned len = length(id);

    HASH_FIND(in_manager, *sessions, id, len, session);
    return session;
}

/* An owner of the workspace anywhere in the process, for a claim with an owner any session of that
 * id, and otherwise one in this manager. Agents of two managers may have sessions of one id, as all
 * that are called "default" do. So where one is owned it is the only one. */
struct pf_session *pf_sessions_conflict(const struct pf_session_claim *claim)
{
    const struct pf_workspace *workspace = find_workspace(claim->id);

    if (!workspace)
        return NULL;
    if (claim->owner_id || workspace->sessions->owner_id)
        return workspace->sessions;
    return pf_sessions_find(claim->manager, claim->id);
}

int pf_sessions_enter(struct pf_session *session)
{
    struct pf_session **sessions = pf_manager_sessions(session->manager);
    struct pf_workspace *workspace = find_workspace(session->id);
    unsigned len = length(session->id);

    if (!workspace)
        workspace = new_workspace(session->id);
    if (!workspace)
        return -PINFOLD_ENOMEM;
    HASH_ADD_KEYPTR(in_manager, *sessions, session->id, len, session);
    if (!session->in_manager.tbl) {
        drop_if_unused(workspace);
        return -PINFOLD_ENOMEM;
    }
    DL_APPEND(workspace->sessions, session);
    session->workspace = workspace;
    session->refs++;
    return 0;
}

/* Under the lock. */
static void leave(struct pf_session *session)
{
    struct pf_session **sessions = pf_manager_sessions(session->manager);

    session->state = PF_SESSION_CLOSED;
    HASH_DELETE(in_manager, *sessions, session);
    if (session->backend)
        HASH_DELETE(in_backends, backends, session);
    if (session->storage_key)
        HASH_DELETE(in_storages, storages, session);
    DL_DELETE(session->workspace->sessions, session);
    drop_if_unused(TAKE(session->workspace));
    session->refs--;
}

void pf_sessions_leave(struct pf_session *session)
{
    pf_sessions_lock();
    if (session->state != PF_SESSION_CLOSED) /* already: this is a forked child */
        leave(session);
    pf_sessions_wake();
    pf_sessions_unlock();
}

/* ---- backends and storage ---- */

int pf_sessions_claim_backend(struct pf_session *session, struct pinfold_backend *backend,
                              struct pinfold_error *err)
{
    struct pf_session *other;
    int r = 0;

    pf_sessions_lock();
    HASH_FIND(in_backends, backends, &backend, sizeof(void *), other);
    if (other) {
        r = pf_fail(err, PINFOLD_ESTART,
                    "workspace %s would use the backend instance of workspace %s; give each an "
                    "instance of its own",
                    PF_QUOTE(session->id), PF_QUOTE(other->id));
    } else {
        session->backend = backend;
        HASH_ADD(in_backends, backends, backend, sizeof(void *), session);
        if (!session->in_backends.tbl) {
            session->backend = NULL;
            r = pf_fail_nomem(err);
        }
    }
    pf_sessions_unlock();
    return r;
}

/* Under the lock. Takes the key over on success. */
static int enter_storage(struct pf_session *session, char *key, struct pinfold_error *err)
{
    const char *root = pf_backend_root(session->backend);
    unsigned len = length(key);
    struct pf_session *other;

    HASH_FIND(in_storages, storages, key, len, other);
    if (other)
        return pf_fail(err, PINFOLD_ESTART,
                       "workspace %s would use the storage of workspace %s (%s); give each its own",
                       PF_QUOTE(session->id), PF_QUOTE(other->id), root ? PF_QUOTE(root) : key);
    HASH_ADD_KEYPTR(in_storages, storages, key, len, session);
    if (!session->in_storages.tbl)
        return pf_fail_nomem(err);
    session->storage_key = key;
    return 0;
}

int pf_sessions_claim_storage(struct pf_session *session, struct pinfold_error *err)
{
    const char *key = pf_backend_storage_key(session->backend);
    char *copy;
    int r;

    if (!key)
        return 0;
    copy = strdup(key);
    if (!copy)
        return pf_fail_nomem(err);
    pf_sessions_lock();
    r = enter_storage(session, copy, err);
    pf_sessions_unlock();
    if (r < 0)
        free(copy);
    return r;
}

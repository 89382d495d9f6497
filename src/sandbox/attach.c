/* SPDX-License-Identifier: Apache-2.0 */
/* Which agent is attached where. One table for the process: an agent has one sandbox at a time. */
#include "sandbox/sandbox.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/error.h"

struct attachment {
    struct pinfold_sandbox *sandbox; /* identity */
    struct pinfold_attach_request request;
    char *agent_id;
    bool wiring;   /* attach is still at work on it */
    bool unwiring; /* detach is: it leaves the table when that is done, so that nobody finds the
                      agent free, or the sandbox without it, too early */
    struct attachment *prev, *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct attachment *table;

static const char *mode_name(enum pinfold_attach_mode mode)
{
    return mode == PINFOLD_READ_ONLY ? "read_only" : "read_write";
}

static void free_attachment(struct attachment *attachment)
{
    free(attachment->agent_id);
    free(attachment);
}

static struct attachment *find_locked(const void *agent)
{
    struct attachment *attachment;

    DL_FOREACH(table, attachment)
        if (attachment->request.agent == agent)
            return attachment;
    return NULL;
}

/* Enter the table, after a detach under way. Returns 1 (entered), 0 (already attached here in this
 * mode) or an error. */
static int enter(struct pinfold_sandbox *sandbox, struct attachment *fresh,
                 struct pinfold_error *err)
{
    struct attachment *there;
    int r = 1;

    pthread_mutex_lock(&lock);
    while ((there = find_locked(fresh->request.agent)) && there->unwiring)
        pthread_cond_wait(&changed, &lock);
    if (!there)
        DL_APPEND(table, fresh);
    else if (there->sandbox != sandbox)
        r = pf_fail(err, PINFOLD_EATTACH,
                    "agent %s is attached to sandbox %s already; detach it there first",
                    PF_QUOTE(fresh->agent_id), PF_QUOTE(there->sandbox->workspace_id));
    else if (there->request.mode != fresh->request.mode)
        r = pf_fail(err, PINFOLD_EATTACH,
                    "agent %s is attached to sandbox %s as %s; detach it before attaching as %s",
                    PF_QUOTE(fresh->agent_id), PF_QUOTE(sandbox->workspace_id),
                    mode_name(there->request.mode), mode_name(fresh->request.mode));
    else
        r = 0;
    pthread_mutex_unlock(&lock);
    return r;
}

static void leave(struct attachment *attachment)
{
    pthread_mutex_lock(&lock);
    DL_DELETE(table, attachment);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    free_attachment(attachment);
}

static void audit(struct pinfold_sandbox *sandbox, const char *name,
                  const struct attachment *attachment, int r, const struct pinfold_error *err)
{
    struct pinfold_audit_event event = PF_AUDIT_EVENT_INIT(name);

    event.agent_id = attachment->agent_id;
    event.mode = mode_name(attachment->request.mode);
    pf_sandbox_audit(sandbox, NULL, &event, r, err);
}

/* Wire an agent whose entry is in the table. The sandbox is looked at after the entry was made: a
 * stop that comes later finds the entry and waits for it. */
static int wire(struct pinfold_sandbox *sandbox, struct attachment *attachment,
                struct pinfold_error *err)
{
    const struct pinfold_attach_request *request = &attachment->request;
    int r;

    if (!pinfold_sandbox_is_started(sandbox))
        return pf_fail(err, PINFOLD_EATTACH, "attach agent %s: sandbox %s is not started",
                       PF_QUOTE(attachment->agent_id), PF_QUOTE(sandbox->workspace_id));
    r = request->wire ? request->wire(request->agent, request->ctx, err) : 0;
    if (r == 0)
        return 0;
    if (err)
        err->code = PINFOLD_EATTACH;
    return pf_wrap(err, -PINFOLD_EATTACH, "attach agent %s to sandbox %s",
                   PF_QUOTE(attachment->agent_id), PF_QUOTE(sandbox->workspace_id));
}

static struct attachment *new_attachment(struct pinfold_sandbox *sandbox,
                                         const struct pinfold_attach_request *request)
{
    struct attachment *attachment = calloc(1, sizeof(*attachment));

    if (!attachment)
        return NULL;
    attachment->agent_id = strdup(request->agent_id ? request->agent_id : "default");
    if (!attachment->agent_id) {
        free(attachment);
        return NULL;
    }
    attachment->sandbox = sandbox;
    attachment->request = *request;
    attachment->request.agent_id = attachment->agent_id;
    attachment->wiring = true;
    return attachment;
}

int pinfold_sandbox_attach(struct pinfold_sandbox *sandbox,
                           const struct pinfold_attach_request *request, struct pinfold_error *err)
{
    struct pinfold_audit_event event = PF_AUDIT_EVENT_INIT("attach");
    struct pinfold_error wire_error = PINFOLD_ERROR_INIT;
    struct attachment *attachment;
    int r;

    if (request->size != sizeof(*request) || !request->agent)
        return pf_fail(err, PINFOLD_EATTACH, "attach: no agent, or a request of the wrong size");
    event.agent_id = request->agent_id;
    r = pf_view_refuse(sandbox, &event, err);
    if (r < 0)
        return r;
    attachment = new_attachment(sandbox, request);
    if (!attachment)
        return pf_fail_nomem(err);
    r = enter(sandbox, attachment, err);
    if (r <= 0) {
        free_attachment(attachment);
        return r;
    }
    r = wire(sandbox, attachment, &wire_error);
    audit(sandbox, "attach", attachment, r, &wire_error);
    if (r < 0) {
        leave(attachment);
        if (err)
            *err = wire_error;
        return r;
    }
    pthread_mutex_lock(&lock);
    attachment->wiring = false;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return 0;
}

/* Choose one attachment to undo: of this sandbox or (NULL) of any, and of this agent or (NULL) of
 * any. Waits for one that somebody is at work on. The caller gives it to leave(). */
static struct attachment *choose(const struct pinfold_sandbox *sandbox, const void *agent)
{
    struct attachment *attachment;

    pthread_mutex_lock(&lock);
    for (;;) {
        DL_FOREACH(table, attachment)
            if ((!sandbox || attachment->sandbox == sandbox) &&
                (!agent || attachment->request.agent == agent))
                break;
        if (!attachment || !(attachment->wiring || attachment->unwiring))
            break;
        pthread_cond_wait(&changed, &lock);
    }
    if (attachment)
        attachment->unwiring = true;
    pthread_mutex_unlock(&lock);
    return attachment;
}

static bool detach_one(const struct pinfold_sandbox *sandbox, const void *agent)
{
    struct attachment *attachment = choose(sandbox, agent);

    if (!attachment)
        return false;
    if (attachment->request.unwire)
        attachment->request.unwire(attachment->request.agent, attachment->request.ctx);
    audit(attachment->sandbox, "detach", attachment, 0, NULL);
    leave(attachment);
    return true;
}

void pinfold_sandbox_detach(struct pinfold_sandbox *sandbox, void *agent)
{
    if (agent)
        detach_one(sandbox, agent);
}

void pf_sandbox_detach_agent(void *agent)
{
    detach_one(NULL, agent);
}

void pf_sandbox_detach_all(void *ctx)
{
    while (detach_one(ctx, NULL))
        ;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The network in the audit: what a backend tells of its way out, under the session it belongs to.
 */
#include "sandbox/audit.h"
#include "sandbox/session.h"

static const char *or_null(const char *text)
{
    return *text ? text : NULL;
}

/* On a thread of the backend's. The session stays until the backend is closed, and neither its
 * names nor its sink change while it lives: no lock is needed. */
static void audit_network(void *ctx, const struct pinfold_network_event *what)
{
    static const char *const names[] = {
        [PINFOLD_NETWORK_REFUSED] = "sandbox.network_refuse",
        [PINFOLD_NETWORK_FAILED] = "sandbox.network_fail",
        [PINFOLD_NETWORK_OPENED] = "sandbox.network_open",
    };
    const struct pf_session *session = ctx;
    struct pinfold_audit_sink sink = pf_session_audit(session);
    struct pinfold_audit_event event = PF_AUDIT_EVENT_INIT(names[what->outcome]);

    event.workspace_id = pf_session_id(session);
    event.owner_id = pf_session_owner(session);
    event.backend_type = pf_session_backend(session)->ops->type_name;
    event.protocol = or_null(what->protocol);
    event.host = or_null(what->host);
    event.port = what->port ? what->port : -1;
    event.reason = or_null(what->reason);
    event.count = (int64_t)what->count;
    pf_audit_emit(&sink, &event, 0, NULL);
}

void pf_session_watch_network(struct pf_session *session, bool on)
{
    bool wanted = on && pf_session_audit(session).emit;

    pf_backend_watch_network(pf_session_backend(session), wanted ? audit_network : NULL,
                             wanted ? session : NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* In place of the proxy, in programs that are built without it: it refuses. */
#include "base/error.h"
#include "jail/egress.h"

int pf_egress_rules_new(const char *const *allow, struct pf_egress_rules **ret_rules,
                        struct pinfold_error *err)
{
    (void)allow;
    (void)ret_rules;
    return pf_fail(err, PINFOLD_ENOTSUP,
                   "a network of allowed names: this program is built without the proxy");
}

void pf_egress_rules_free(struct pf_egress_rules *rules)
{
    (void)rules; /* there are none */
}

int pf_egress_start(int listen_fd, struct pf_egress_rules *rules, pf_egress_event_fn on_event,
                    void *ctx, struct pf_egress **ret, struct pinfold_error *err)
{
    (void)listen_fd;
    (void)on_event;
    (void)ctx;
    (void)ret;
    return pf_egress_rules_new(NULL, &rules, err);
}

void pf_egress_stop(struct pf_egress *egress)
{
    (void)egress;
}

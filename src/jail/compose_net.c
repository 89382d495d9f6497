/* SPDX-License-Identifier: Apache-2.0 */
/* What a jail shows of its way out: a program that asks the proxy, and ssh told to use it. */
#include "jail/compose.h"

#include <limits.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "proc/launcher.h"

#define CONNECT_NAME "pinfold-connect"

/* ssh reads the file of the user first, so that an agent may say otherwise. */
static const char ssh_config[] = "# The only way out of this sandbox is its proxy.\n"
                                 "Host *\n"
                                 "    ProxyCommand " PF_JAIL_CONNECT " %h %p\n";

int pf_plan_way_out(struct pf_draft *draft, bool own_etc)
{
    char path[PATH_MAX];
    const struct {
        enum pf_op_kind kind;
        mode_t mode;
        const char *target, *text;
    } ops[] = {
        { PF_OP_DIR, 0755, "run/pinfold", "" },
        { PF_OP_FILE, 0755, PF_JAIL_CONNECT, "" },
        { PF_OP_BIND, 0, PF_JAIL_CONNECT, path },
        { PF_OP_DIR, 0755, "etc/ssh", "" },
        { PF_OP_FILE, 0644, "etc/ssh/ssh_config", ssh_config },
    };
    size_t count = own_etc ? PF_COUNT(ops) : 3;
    int r = 0;

    if (!pf_program_find(CONNECT_NAME, path)) {
        pf_log(PINFOLD_LOG_WARNING, "the program " CONNECT_NAME " is neither beside this one nor "
                                    "installed: ssh, and git by ssh, find no way out");
        return 0;
    }
    for (size_t i = 0; r == 0 && i < count; i++)
        r = pf_plan_add(draft, (struct pf_op){ .kind = (uint16_t)ops[i].kind, .mode = ops[i].mode },
                        ops[i].target, ops[i].text, strlen(ops[i].text));
    return r;
}

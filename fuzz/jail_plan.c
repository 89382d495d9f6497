/* SPDX-License-Identifier: Apache-2.0 */
/* What the first process of a jail is told to do: a plan that is taken for whole is one that can be
 * followed, within itself, to its end. */
#include "jail/init.h"
#include "fuzz.h"

static const char *plan_end;
static size_t visited;

static void visit(const struct pf_op *op)
{
    const char *target = init_target(op), *text = init_text(op);

    demand((const char *)op + op->size <= plan_end);
    demand(strlen(target) == op->target_len - 1);
    demand(text + op->text_len <= plan_end && text[op->text_len - 1] == '\0');
    visited += op->size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pf_plan *plan = malloc(size + !size);

    demand(plan != NULL);
    if (size > 0)
        memcpy(plan, data, size);
    if (size >= sizeof(plan->size))
        plan->size = size;
    if (init_plan_is_whole(plan, size)) {
        plan_end = (const char *)plan + size;
        visited = 0;
        init_each(plan, sizeof(*plan), plan->shown_end, visit);
        init_each(plan, plan->shown_end, plan->ops_end, visit);
        demand(visited == plan->ops_end - sizeof(*plan));
        demand(!plan->seed_at ||
               (const char *)plan + plan->seed_at + strlen((const char *)plan + plan->seed_at) <
                       plan_end);
    }
    free(plan);
    return 0;
}

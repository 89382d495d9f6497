/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of the owner: whether it is all there, and its operations one after the other. */
#include "jail/init.h"

#include <string.h>

const char *init_target(const struct pf_op *op)
{
    return (const char *)(op + 1);
}

const char *init_text(const struct pf_op *op)
{
    return init_target(op) + op->target_len;
}

void init_each(const struct pf_plan *plan, size_t from, size_t to,
               void (*use)(const struct pf_op *op))
{
    const char *start = (const char *)plan;

    for (size_t at = from; at < to;) {
        const struct pf_op *op = (const void *)(start + at);
        use(op);
        at += op->size;
    }
}

/* Whether there is an operation with both its texts in the next left bytes. */
static bool is_op(const struct pf_op *op, size_t left)
{
    size_t room;

    if (left < sizeof(*op) || op->size > left || op->size < sizeof(*op) ||
        op->size % _Alignof(struct pf_plan) != 0)
        return false;
    room = op->size - sizeof(*op);
    if (op->target_len == 0 || op->target_len > room || op->text_len == 0 ||
        op->text_len > room - op->target_len)
        return false;
    return strnlen(init_target(op), op->target_len) == op->target_len - 1 &&
           init_text(op)[op->text_len - 1] == '\0';
}

/* Whether operations fill the bytes between two offsets. */
static bool are_ops(const struct pf_plan *plan, size_t from, size_t to)
{
    while (from < to) {
        const struct pf_op *op = (const void *)((const char *)plan + from);
        if (!is_op(op, to - from))
            return false;
        from += op->size;
    }
    return from == to;
}

bool init_plan_is_whole(const struct pf_plan *plan, size_t size)
{
    if (size < sizeof(*plan) || plan->size != size || plan->ops_end > size ||
        plan->shown_end > plan->ops_end || plan->shown_end < sizeof(*plan) || plan->lent > 1)
        return false;
    if (!are_ops(plan, sizeof(*plan), plan->shown_end) ||
        !are_ops(plan, plan->shown_end, plan->ops_end))
        return false;
    return plan->seed_at == 0 || (plan->seed_at >= plan->ops_end && plan->seed_at < size &&
                                  ((const char *)plan)[size - 1] == '\0');
}

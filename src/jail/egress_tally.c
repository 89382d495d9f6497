/* SPDX-License-Identifier: Apache-2.0 */
#include "jail/egress_tally.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

void pf_tally_init(struct pf_tally *tally, pf_egress_event_fn tell, void *ctx, int64_t now)
{
    memset(tally, 0, sizeof *tally);
    tally->tell = tell;
    tally->ctx = ctx;
    tally->tokens = PF_TALLY_BURST;
    tally->filled_at = now;
    tally->due = tally->others_due = PF_NEVER;
}

static bool take_token(struct pf_tally *tally, int64_t now)
{
    int64_t more = (now - tally->filled_at) / PF_NS_PER_SEC;

    if (more > 0) {
        tally->filled_at += more * PF_NS_PER_SEC;
        tally->tokens =
                more > PF_TALLY_BURST - tally->tokens ? PF_TALLY_BURST : tally->tokens + (int)more;
    }
    if (tally->tokens == 0)
        return false;
    tally->tokens--;
    return true;
}

static void note_due(struct pf_tally *tally, int64_t due)
{
    if (due < tally->due)
        tally->due = due;
}

static void tell_slot(struct pf_tally *tally, struct pf_tally_slot *slot)
{
    struct pf_egress_event event = {
        .kind = slot->kind,
        .protocol = slot->protocol,
        .host = slot->host,
        .port = slot->port,
        .reason = slot->reason,
        .count = slot->held,
    };

    slot->held = 0;
    tally->tell(tally->ctx, &event);
}

static void count_other(struct pf_tally *tally, enum pf_egress_event_kind kind, uint64_t count,
                        int64_t now)
{
    tally->others[kind] += count;
    if (tally->others_due == PF_NEVER)
        tally->others_due = now + PF_TALLY_PERIOD_NS;
    note_due(tally, tally->others_due);
}

static void tell_others(struct pf_tally *tally)
{
    for (int kind = 0; kind < PF_EGRESS_KINDS; kind++) {
        struct pf_egress_event event = {
            .kind = (enum pf_egress_event_kind)kind,
            .protocol = "",
            .host = "",
            .reason = "too many, and to too many places, to be told one by one",
            .count = tally->others[kind],
        };

        tally->others[kind] = 0;
        if (event.count > 0)
            tally->tell(tally->ctx, &event);
    }
    tally->others_due = PF_NEVER;
}

static struct pf_tally_slot *find_slot(struct pf_tally *tally, const struct pf_egress_event *event)
{
    struct pf_tally_slot *free_slot = NULL;

    for (size_t i = 0; i < PF_TALLY_SLOTS; i++) {
        struct pf_tally_slot *slot = &tally->slots[i];

        if (!slot->used)
            free_slot = free_slot ? free_slot : slot;
        else if (slot->kind == event->kind && slot->port == event->port &&
                 strcmp(slot->host, event->host) == 0)
            return slot;
    }
    return free_slot;
}

void pf_tally_add(struct pf_tally *tally, const struct pf_egress_event *event, int64_t now)
{
    struct pf_tally_slot *slot;

    if (!tally->tell)
        return;
    slot = find_slot(tally, event);
    if (!slot) {
        count_other(tally, event->kind, event->count, now);
        return;
    }
    if (!slot->used) {
        *slot = (struct pf_tally_slot){ .used = true, .kind = event->kind, .port = event->port };
        snprintf(slot->host, sizeof slot->host, "%s", event->host);
        slot->due = now + PF_TALLY_PERIOD_NS;
        note_due(tally, slot->due);
    }
    if (slot->told < PF_TALLY_EACH && take_token(tally, now)) {
        slot->told++;
        tally->tell(tally->ctx, event);
        return;
    }
    slot->held += event->count;
    slot->protocol = event->protocol;
    snprintf(slot->reason, sizeof slot->reason, "%s", event->reason);
}

/* A destination with nothing to tell is forgotten; one with something goes on being counted. Even
 * the sums are told no faster than one a second: those of many destinations become one. */
static void end_period(struct pf_tally *tally, struct pf_tally_slot *slot, int64_t now)
{
    if (slot->held == 0) {
        slot->used = false;
        return;
    }
    if (take_token(tally, now)) {
        slot->due = now + PF_TALLY_PERIOD_NS;
        tell_slot(tally, slot);
        return;
    }
    count_other(tally, slot->kind, slot->held, now);
    slot->used = false;
}

void pf_tally_tick(struct pf_tally *tally, int64_t now)
{
    if (now < tally->due)
        return;
    for (size_t i = 0; i < PF_TALLY_SLOTS; i++) {
        if (tally->slots[i].used && tally->slots[i].due <= now)
            end_period(tally, &tally->slots[i], now);
    }
    if (tally->others_due <= now)
        tell_others(tally);
    tally->due = tally->others_due;
    for (size_t i = 0; i < PF_TALLY_SLOTS; i++) {
        if (tally->slots[i].used)
            note_due(tally, tally->slots[i].due);
    }
}

void pf_tally_flush(struct pf_tally *tally)
{
    for (size_t i = 0; i < PF_TALLY_SLOTS; i++) {
        if (tally->slots[i].used && tally->slots[i].held > 0)
            tell_slot(tally, &tally->slots[i]);
    }
    tell_others(tally);
    tally->due = PF_NEVER;
}

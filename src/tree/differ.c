/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eugene Myers' algorithm in its linear-space form ("An O(ND) Difference Algorithm and Its
 * Variations", 1986), on numbers that stand for lines. Two things are added. Lines that the other
 * side does not have at all are taken out before: they can only be changed. And a search for the
 * middle of a path that takes too long is cut off, and goes on from the furthest point that was
 * reached: so each piece costs a bounded number of steps and moves on by a piece of that length.
 */
#include "tree/differ.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/random.h"

#include <pinfold/error.h>

enum { MAX_COST = 256 }; /* rounds of one search: the differences in half a piece */

/* ---- lines to numbers ---- */

/* Each different line has a number, the same on both sides. */
struct line_class {
    const char *at;
    size_t len;
    uint64_t hash;
    bool on_old, on_new;
    uint32_t next; /* of the same bucket, plus 1; 0: none */
};

struct classes {
    struct line_class *items;
    size_t count;
    uint32_t *buckets; /* index of the first class, plus 1 */
    size_t mask;
    uint64_t seed; /* so that nobody can write lines that all fall into one bucket */
};

static void classes_done(struct classes *classes)
{
    free(classes->items);
    free(classes->buckets);
}

static int classes_init(struct classes *classes, size_t lines)
{
    char digits[17];
    size_t buckets = 16;

    while (buckets < lines)
        buckets *= 2;
    pf_random_hex(digits, 16);
    classes->seed = strtoull(digits, NULL, 16) | 1;
    classes->mask = buckets - 1;
    classes->items = malloc((lines + 1) * sizeof(*classes->items));
    classes->buckets = calloc(buckets, sizeof(*classes->buckets));
    return classes->items && classes->buckets ? 0 : -PINFOLD_ENOMEM;
}

/* Multiply and fold, eight bytes at a time, from a random start. */
static uint64_t hash_line(uint64_t seed, const char *at, size_t len)
{
    uint64_t hash = seed ^ len, word;

    while (len > 0) {
        size_t n = len < sizeof(word) ? len : sizeof(word);
        unsigned __int128 product;
        word = 0;
        memcpy(&word, at, n);
        product = (unsigned __int128)(hash ^ word) * (seed ^ UINT64_C(0x9e3779b97f4a7c15));
        hash = (uint64_t)product ^ (uint64_t)(product >> 64) ^ word;
        at += n;
        len -= n;
    }
    return hash;
}

static uint32_t classify(struct classes *classes, const char *at, size_t len)
{
    uint64_t hash = hash_line(classes->seed, at, len);
    uint32_t *bucket = &classes->buckets[hash & classes->mask];

    for (uint32_t i = *bucket; i; i = classes->items[i - 1].next) {
        const struct line_class *item = &classes->items[i - 1];
        if (item->hash == hash && item->len == len && memcmp(item->at, at, len) == 0)
            return i - 1;
    }
    classes->items[classes->count] = (struct line_class){
        .at = at,
        .len = len,
        .hash = hash,
        .next = *bucket,
    };
    *bucket = (uint32_t)++classes->count;
    return *bucket - 1;
}

static int split(struct pf_text text, struct pf_lines *lines)
{
    size_t count = 0, at = 0;

    for (size_t next; at < text.len; at = next, count++) {
        const char *end = memchr(text.data + at, '\n', text.len - at);
        next = end ? (size_t)(end - text.data) + 1 : text.len;
    }
    lines->data = text.data;
    lines->count = count;
    lines->starts = malloc((count + 1) * sizeof(*lines->starts));
    lines->changed = calloc(count + 1, sizeof(*lines->changed));
    if (!lines->starts || !lines->changed)
        return -PINFOLD_ENOMEM;
    at = 0;
    for (size_t i = 0; i < count; i++) {
        const char *end = memchr(text.data + at, '\n', text.len - at);
        lines->starts[i] = at;
        at = end ? (size_t)(end - text.data) + 1 : text.len;
    }
    lines->starts[count] = text.len;
    return 0;
}

/* ---- the sequences that are compared ---- */

/* One side without the lines that the other does not have. */
struct side {
    uint32_t *ids;
    size_t *lines; /* where each was */
    size_t count;
    bool *changed; /* of the lines; borrowed */
};

struct comparison {
    struct side a, b;
    ptrdiff_t *forward, *backward; /* the furthest x on each diagonal, which may be negative */
};

static void side_done(struct side *side)
{
    free(side->ids);
    free(side->lines);
}

static int number(struct classes *classes, const struct pf_lines *lines, uint32_t **ret, bool old)
{
    uint32_t *ids = calloc(lines->count + 1, sizeof(*ids));

    if (!ids)
        return -PINFOLD_ENOMEM;
    for (size_t i = 0; i < lines->count; i++) {
        ids[i] = classify(classes, lines->data + lines->starts[i],
                          lines->starts[i + 1] - lines->starts[i]);
        *(old ? &classes->items[ids[i]].on_old : &classes->items[ids[i]].on_new) = true;
    }
    *ret = ids;
    return 0;
}

/* Keep what both sides have, in place; the rest is changed. */
static int thin_out(const struct classes *classes, struct pf_lines *lines, struct side *side)
{
    side->changed = lines->changed;
    side->lines = malloc((lines->count + 1) * sizeof(*side->lines));
    if (!side->lines)
        return -PINFOLD_ENOMEM;
    for (size_t i = 0; i < lines->count; i++) {
        const struct line_class *item = &classes->items[side->ids[i]];
        lines->changed[i] = !(item->on_old && item->on_new);
        if (lines->changed[i])
            continue;
        side->ids[side->count] = side->ids[i];
        side->lines[side->count++] = i;
    }
    return 0;
}

/* ---- the algorithm ---- */

struct box {
    ptrdiff_t a0, a1, b0, b1;
};

struct point {
    ptrdiff_t x, y;
};

/* Diagonals are x - y. One search: two fronts that grow towards each other, each with the range of
 * diagonals that it has reached and that lie in the box. */
struct front {
    ptrdiff_t *v;        /* v[diagonal] is x */
    ptrdiff_t mid;       /* the diagonal of its start */
    ptrdiff_t low, high; /* reached */
};

static const ptrdiff_t nowhere_ahead = -1, nowhere_behind = PTRDIFF_MAX;

/* Widen the range by a diagonal at each end, or narrow it where the box ends: only every second
 * diagonal is looked at in a round. */
static void widen(struct front *front, ptrdiff_t min, ptrdiff_t max, ptrdiff_t outside)
{
    if (front->low > min)
        front->v[--front->low - 1] = outside;
    else
        front->low++;
    if (front->high < max)
        front->v[++front->high + 1] = outside;
    else
        front->high--;
}

/* One round forward. Returns whether it met the other front, at *ret. */
static bool step_forward(const struct comparison *c, const struct box *box, struct front *f,
                         const struct front *other, struct point *ret)
{
    bool odd = (f->mid - other->mid) & 1;

    widen(f, box->a0 - box->b1, box->a1 - box->b0, nowhere_ahead);
    for (ptrdiff_t d = f->high; d >= f->low; d -= 2) {
        ptrdiff_t x = f->v[d - 1] >= f->v[d + 1] ? f->v[d - 1] + 1 : f->v[d + 1], y = x - d;
        while (x < box->a1 && y < box->b1 && c->a.ids[x] == c->b.ids[y])
            x++, y++;
        f->v[d] = x;
        if (odd && other->low <= d && d <= other->high && other->v[d] <= x) {
            *ret = (struct point){ x, y };
            return true;
        }
    }
    return false;
}

static bool step_backward(const struct comparison *c, const struct box *box, struct front *f,
                          const struct front *other, struct point *ret)
{
    bool odd = (f->mid - other->mid) & 1;

    widen(f, box->a0 - box->b1, box->a1 - box->b0, nowhere_behind);
    for (ptrdiff_t d = f->high; d >= f->low; d -= 2) {
        ptrdiff_t x = f->v[d - 1] < f->v[d + 1] ? f->v[d - 1] : f->v[d + 1] - 1, y = x - d;
        while (x > box->a0 && y > box->b0 && c->a.ids[x - 1] == c->b.ids[y - 1])
            x--, y--;
        f->v[d] = x;
        if (!odd && other->low <= d && d <= other->high && x <= other->v[d]) {
            *ret = (struct point){ x, y };
            return true;
        }
    }
    return false;
}

/* How far a front has come at best: the point with the most lines behind it. */
static struct point furthest(const struct box *box, const struct front *front, bool ahead)
{
    struct point best = { ahead ? box->a0 : box->a1, ahead ? box->b0 : box->b1 };

    for (ptrdiff_t d = front->low; d <= front->high; d += 2) {
        ptrdiff_t x = front->v[d], y = x - d;
        if (x < box->a0 || x > box->a1 || y < box->b0 || y > box->b1)
            continue;
        if (ahead ? x + y > best.x + best.y : x + y < best.x + best.y)
            best = (struct point){ x, y };
    }
    return best;
}

/* A point on a shortest path through the box, or on one that is good enough. */
static struct point find_middle(const struct comparison *c, const struct box *box)
{
    struct front forward = { .v = c->forward, .mid = box->a0 - box->b0 };
    struct front backward = { .v = c->backward, .mid = box->a1 - box->b1 };
    struct point middle = { 0, 0 }, ahead, behind;

    forward.low = forward.high = forward.mid;
    backward.low = backward.high = backward.mid;
    forward.v[forward.mid] = box->a0;
    backward.v[backward.mid] = box->a1;
    for (int cost = 0; cost < MAX_COST; cost++)
        if (step_forward(c, box, &forward, &backward, &middle) ||
            step_backward(c, box, &backward, &forward, &middle))
            return middle;
    ahead = furthest(box, &forward, true);
    behind = furthest(box, &backward, false);
    return ahead.x + ahead.y - box->a0 - box->b0 >= box->a1 + box->b1 - behind.x - behind.y
                   ? ahead
                   : behind;
}

static void mark(const struct side *side, ptrdiff_t from, ptrdiff_t to)
{
    for (; from < to; from++)
        side->changed[side->lines[from]] = true;
}

/* Cut off what is equal at both ends. */
static void trim(const struct comparison *c, struct box *box)
{
    while (box->a0 < box->a1 && box->b0 < box->b1 && c->a.ids[box->a0] == c->b.ids[box->b0])
        box->a0++, box->b0++;
    while (box->a0 < box->a1 && box->b0 < box->b1 && c->a.ids[box->a1 - 1] == c->b.ids[box->b1 - 1])
        box->a1--, box->b1--;
}

/* Both parts must be smaller than the whole. They are, as what has no line in common at its ends
 * takes two steps at least; but an endless loop would be the price of an error there. */
static bool is_within(const struct box *box, const struct point *middle)
{
    ptrdiff_t ahead = middle->x - box->a0 + middle->y - box->b0;

    return middle->x >= box->a0 && middle->x <= box->a1 && middle->y >= box->b0 &&
           middle->y <= box->b1 && ahead > 0 && ahead < box->a1 - box->a0 + box->b1 - box->b0;
}

/* The smaller part by recursion and the larger in the loop: the depth is the logarithm of the
 * size. */
static void compare(const struct comparison *c, struct box box)
{
    struct box small, large;
    struct point middle;

    for (;;) {
        trim(c, &box);
        if (box.a0 == box.a1 || box.b0 == box.b1) {
            mark(&c->a, box.a0, box.a1);
            mark(&c->b, box.b0, box.b1);
            return;
        }
        middle = find_middle(c, &box);
        if (!is_within(&box, &middle)) {
            mark(&c->a, box.a0, box.a1);
            mark(&c->b, box.b0, box.b1);
            return;
        }
        small = (struct box){ box.a0, middle.x, box.b0, middle.y };
        large = (struct box){ middle.x, box.a1, middle.y, box.b1 };
        if (small.a1 - small.a0 + small.b1 - small.b0 > large.a1 - large.a0 + large.b1 - large.b0) {
            struct box swap = small;
            small = large;
            large = swap;
        }
        compare(c, small);
        box = large;
    }
}

static int run(struct comparison *c)
{
    size_t diagonals = c->a.count + c->b.count + 3;
    ptrdiff_t *space = malloc(2 * diagonals * sizeof(*space));

    if (!space)
        return -PINFOLD_ENOMEM;
    c->forward = space + c->b.count + 1;
    c->backward = c->forward + diagonals;
    compare(c, (struct box){ 0, (ptrdiff_t)c->a.count, 0, (ptrdiff_t)c->b.count });
    free(space);
    return 0;
}

int pf_diff_texts(struct pf_text old_text, struct pf_text new_text, struct pf_diff *ret)
{
    PF_CLEANUP(classes_done) struct classes classes = { 0 };
    PF_CLEANUP(pf_diff_done) struct pf_diff diff = { 0 };
    struct comparison c = { 0 };
    int r = split(old_text, &diff.old_side);

    if (r == 0)
        r = split(new_text, &diff.new_side);
    if (r == 0)
        r = classes_init(&classes, diff.old_side.count + diff.new_side.count);
    if (r == 0)
        r = number(&classes, &diff.old_side, &c.a.ids, true);
    if (r == 0)
        r = number(&classes, &diff.new_side, &c.b.ids, false);
    if (r == 0)
        r = thin_out(&classes, &diff.old_side, &c.a);
    if (r == 0)
        r = thin_out(&classes, &diff.new_side, &c.b);
    if (r == 0)
        r = run(&c);
    side_done(&c.a);
    side_done(&c.b);
    if (r < 0)
        return r;
    *ret = diff;
    diff = (struct pf_diff){ 0 };
    return 0;
}

static void lines_done(struct pf_lines *lines)
{
    free(lines->starts);
    free(lines->changed);
    *lines = (struct pf_lines){ 0 };
}

void pf_diff_done(struct pf_diff *diff)
{
    lines_done(&diff->old_side);
    lines_done(&diff->new_side);
}

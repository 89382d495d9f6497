/* SPDX-License-Identifier: Apache-2.0 */
/* Any two texts, with a NUL byte between them: their diff, applied to the first, gives the second.
 */
#include "base/cleanup.h"
#include "tree/unified.h"
#include "fuzz.h"

/* What is left of a text. */
struct rest {
    const char *at, *end;
};

static struct rest take_line(struct rest *from)
{
    const char *newline = memchr(from->at, '\n', (size_t)(from->end - from->at));
    struct rest line = { from->at, newline ? newline + 1 : from->end };

    from->at = line.end;
    return line;
}

static void put(struct pf_buf *out, struct rest line)
{
    demand(pf_buf_append(out, line.at, (size_t)(line.end - line.at)) == 0);
}

/* "3,7" or "3", for "3,1". */
static size_t take_range(struct rest *head, size_t *count)
{
    char *end;
    size_t first = strtoul(head->at, &end, 10);

    *count = 1;
    if (*end == ',')
        *count = strtoul(end + 1, &end, 10);
    head->at = end;
    return first;
}

/* A line of a hunk without its sign. One that the text ends with may lack its end. */
static struct rest take_content(struct rest *hunks)
{
    struct rest line = take_line(hunks);

    demand(line.end > line.at && line.end[-1] == '\n');
    line.at++;
    if (hunks->at < hunks->end && *hunks->at == '\\') {
        line.end--;
        take_line(hunks);
    }
    return line;
}

static void apply_hunk(struct rest *hunks, struct rest *from, size_t *line, struct pf_buf *out)
{
    struct rest head = take_line(hunks);
    size_t old_count, new_count, first;

    demand(strncmp(head.at, "@@ -", 4) == 0);
    head.at += 4;
    first = take_range(&head, &old_count);
    demand(strncmp(head.at, " +", 2) == 0);
    head.at += 2;
    take_range(&head, &new_count);
    demand(strncmp(head.at, " @@\n", 4) == 0);
    for (; *line < first + (old_count == 0); ++*line)
        put(out, take_line(from));
    while (old_count > 0 || new_count > 0) {
        char sign = hunks->at < hunks->end ? *hunks->at : '\0';
        struct rest content = take_content(hunks);
        demand(sign == ' ' || sign == '-' || sign == '+');
        if (sign != '+') {
            struct rest old = take_line(from);
            demand(old_count-- > 0 && old.end - old.at == content.end - content.at &&
                   memcmp(old.at, content.at, (size_t)(old.end - old.at)) == 0);
            ++*line;
        }
        if (sign != '-') {
            demand(new_count-- > 0);
            put(out, content);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *middle = size ? memchr(text, '\0', size) : NULL;
    PF_CLEANUP(pf_buf_done) struct pf_buf diff = PF_BUF_INIT(PF_BUF_UNLIMITED);
    PF_CLEANUP(pf_buf_done) struct pf_buf out = PF_BUF_INIT(PF_BUF_UNLIMITED);
    struct pf_diff_file file = { .path = "f", .context = 3 };
    struct rest from, hunks;
    size_t line = 1;

    if (!middle)
        return 0;
    file.old_side = (struct pf_diff_side){ 0100644, { text, (size_t)(middle - text) } };
    file.new_side =
            (struct pf_diff_side){ 0100644, { middle + 1, size - 1 - (size_t)(middle - text) } };
    demand(pf_unified_file(&diff, &file, false) == 0);
    from = (struct rest){ text, middle };
    hunks = (struct rest){ diff.data, diff.data + diff.len };
    take_line(&hunks); /* diff --git */
    if (hunks.at < hunks.end) {
        take_line(&hunks);
        take_line(&hunks);
    }
    while (hunks.at < hunks.end)
        apply_hunk(&hunks, &from, &line, &out);
    put(&out, from);
    demand(out.len == file.new_side.text.len &&
           (out.len == 0 || memcmp(out.data, file.new_side.text.data, out.len) == 0));
    return 0;
}

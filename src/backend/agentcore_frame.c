/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a wrapper prints on the terminal, and reading it again. A command's own output is in files
 * while it runs and in base64 when it is printed, so that nothing in it can be taken for a mark.
 * Who finds out the mark and writes past its streams into the terminal itself, makes one mark too
 * many: then nothing is believed.
 */
#include "backend/agentcore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/error.h"
#include "base/number.h"

#define TEXT_MAX ((size_t)512 << 20)

/* ---- writing ---- */

/* Set $k to how far it came (c: the command ran, f: it refused to begin) and $r to the status. %s
 * is where the streams of the check and of the command go. */
#define RUN(redirection)                                                                       \
    "if %s || (c check) </dev/null" redirection "; then (c) </dev/null" redirection "; r=$?; " \
    "k=c; else r=125; k=f; fi; "

/* No room for files, or nothing to print them with: all goes to the terminal as it is. */
#define MERGED                                                                         \
    "else printf '\\npf-%%s-m\\n' \"$m\"; " RUN("") "printf '\\npf-%%s-n:%%s:%%d\\n' " \
                                                    "\"$m\" \"$k\" \"$r\"; fi; "

#define HEAD                                                                       \
    "m=%s; T=/tmp/pinfold-$m; c() { exec %s \"$@\"; }; "                           \
    "if : | base64 >/dev/null 2>&1 && mkdir -m 700 \"$T\" 2>/dev/null; then " RUN( \
            " >\"$T/o\" 2>\"$T/e\"")

#define PRINT                                                                                  \
    "b() { head -c %zu \"$1\" | base64; }; o=$(wc -c <\"$T/o\"); e=$(wc -c <\"$T/e\"); "       \
    "printf '\\npf-%%s-r:%%s:%%d:%%d:%%d\\n' \"$m\" \"$k\" \"$r\" \"$o\" \"$e\"; b \"$T/o\"; " \
    "printf '\\npf-%%s-e\\n' \"$m\"; b \"$T/e\"; printf '\\npf-%%s-x\\n' \"$m\"; "             \
    "if %s && [ \"$o\" -gt %zu -o \"$e\" -gt %zu ]; then :; else rm -rf \"$T\"; fi; "

static const char *truth(bool is)
{
    return is ? "true" : "false";
}

int pf_ac_wrapper(struct pf_buf *to, const struct pf_ac_wrapper *w)
{
    /* "if true ||": without a check the command begins at once. */
    const char *unchecked = truth(!w->checks);

    return pf_buf_printf(to, HEAD PRINT MERGED "%s; exit \"$r\"", w->mark, w->run, unchecked,
                         w->limit, truth(w->keep), w->limit, w->limit, unchecked, w->forget);
}

int pf_ac_task_wrapper(struct pf_buf *to, const struct pf_ac_wrapper *w)
{
    const char *unchecked = truth(!w->checks);

    return pf_buf_printf(
            to, HEAD "echo \"$k:$r\" >\"$T/t\"; mv -f \"$T/t\" \"$T/s\"; " MERGED "%s; exit \"$r\"",
            w->mark, w->run, unchecked, unchecked, w->forget);
}

/* A command may put a pipe or a link to /dev/zero where its streams are; reading that would not end
 * when its time is up. */
#define REGULAR                                                                             \
    "for n in o e s; do [ -f \"$T/$n\" ] && [ ! -L \"$T/$n\" ] || rm -rf \"$T/$n\"; done; " \
    "true >>\"$T/o\" >>\"$T/e\"; "

int pf_ac_task_printer(struct pf_buf *to, const struct pf_ac_wrapper *w)
{
    return pf_buf_printf(to,
                         "m=%s; T=/tmp/pinfold-$m; k=; r=; [ -d \"$T\" ] || exit 3; " REGULAR
                         "IFS=: read -r k r 2>/dev/null <\"$T/s\" || { k=p; r=0; }; " PRINT
                         "exit 0",
                         w->mark, w->limit, truth(w->keep), w->limit, w->limit);
}

/* ---- reading ---- */

enum { MARKS = 3 };

/* Find every mark. Returns how many there are; the first MARKS are in ret, after their digits. */
static size_t find_marks(const char *text, const char *mark, const char *ret[static MARKS],
                         const char **ret_last)
{
    char wanted[64];
    size_t count = 0, len;

    len = (size_t)snprintf(wanted, sizeof(wanted), "pf-%s-", mark);
    for (const char *at = text ? strstr(text, wanted) : NULL; at; at = strstr(at + len, wanted)) {
        if (count < MARKS)
            ret[count] = at + len;
        *ret_last = at + len;
        count++;
    }
    return count;
}

/* The digits of a number that fits, and what is behind it. */
static bool take_number(const char **at, uint64_t most, char end, uint64_t *ret)
{
    const char *behind = *at;
    uint64_t number;

    if (!pf_take_number(&behind, most, &number) ||
        (end == '\n' ? *behind != '\r' && *behind != '\n' : *behind != end))
        return false;
    *at = behind + 1;
    *ret = number;
    return true;
}

/* "c:0:" */
static bool take_end(const char **at, char end, struct pf_ac_output *ret)
{
    uint64_t status;
    char kind = **at;

    if (kind != 'c' && kind != 'f' && kind != 'p')
        return false;
    if ((*at)[1] != ':')
        return false;
    *at += 2;
    if (!take_number(at, 255, end, &status))
        return false;
    ret->status = (int)status;
    ret->refused = kind == 'f';
    ret->partial = kind == 'p';
    return true;
}

/* The base64 between two marks: from the line after start, until that of the next mark. */
static int decode_between(const char *start, const char *next, uint64_t size, size_t limit,
                          struct pf_buf *ret)
{
    int r;

    start = strchr(start, '\n');
    if (!start || start >= next)
        return -PINFOLD_EBACKEND;
    while (next > start && next[-1] != '\n')
        next--;
    r = pf_base64_decode(start, (size_t)(next - start), ret);
    if (r < 0)
        return r == -PINFOLD_ENOMEM ? r : -PINFOLD_EBACKEND;
    /* All of it, or as much as was wanted: a part must not pass for the whole. */
    return ret->len == (size < limit ? (size_t)size : limit) ? 0 : -PINFOLD_EBACKEND;
}

/* What was printed without the terminal's line ends. */
static int take_merged(const char *start, const char *end, struct pf_buf *ret)
{
    start = strchr(start, '\n');
    for (const char *at = start ? start + 1 : end; at < end; at++)
        if (*at != '\r' || at[1] != '\n')
            if (pf_buf_append(ret, at, 1) < 0)
                return -PINFOLD_ENOMEM;
    if (ret->len > 0 && ret->data[ret->len - 1] == '\n')
        ret->len--; /* that of the mark */
    return 0;
}

/* Here the command's output is on the terminal, with whatever it says about marks; the last one is
 * the wrapper's, for by then the command has ended, and nothing may follow it. */
static int read_merged(const char *first, const char *last, const char *mark,
                       struct pf_ac_output *ret)
{
    const char *at = last + 2, *start;
    size_t tail = strlen("pf-") + strlen(mark) + strlen("-");

    if (*first != 'm' || strncmp(last, "n:", 2) != 0 || !take_end(&at, '\n', ret) || ret->partial)
        return -PINFOLD_EBACKEND;
    if (at[strspn(at, " \r\n")] != '\0')
        return -PINFOLD_EBACKEND;
    start = first;
    if (take_merged(start, last - tail, &ret->out) < 0)
        return -PINFOLD_ENOMEM;
    ret->merged = true;
    ret->out_size = ret->out.len;
    return 0;
}

static int read_apart(const char *const marks[static MARKS], size_t limit, struct pf_ac_output *ret)
{
    const char *at = marks[0] + 2;
    int r;

    if (strncmp(marks[0], "r:", 2) != 0 || *marks[1] != 'e' || *marks[2] != 'x')
        return -PINFOLD_EBACKEND;
    if (!take_end(&at, ':', ret) || !take_number(&at, INT64_MAX, ':', &ret->out_size) ||
        !take_number(&at, INT64_MAX, '\n', &ret->err_size))
        return -PINFOLD_EBACKEND;
    r = decode_between(marks[0], marks[1], ret->out_size, limit, &ret->out);
    return r < 0 ? r : decode_between(marks[1], marks[2], ret->err_size, limit, &ret->errs);
}

int pf_ac_frame_read(const char *text, const char *mark, size_t limit, struct pf_ac_output *ret)
{
    const char *marks[MARKS], *last = NULL;
    size_t count = find_marks(text, mark, marks, &last);

    ret->out.limit = ret->errs.limit = TEXT_MAX;
    if (count >= 2 && *marks[0] == 'm')
        return read_merged(marks[0], last, mark, ret);
    return count == MARKS ? read_apart(marks, limit, ret) : -PINFOLD_EBACKEND;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a person sees of an agent's run. What the model says goes to stdout, as it comes; calls of
 * tools, its thoughts and all else to stderr; the diff to stdout. With --diff that is alone there.
 * Everything that a model or a sandbox wrote is made safe before a terminal sees it.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/agent_brief.h"
#include "cli/agent_out.h"
#include "cli/agent_tell.h"
#include "cli/interrupt.h"
#include "cli/say.h"

/* Colours, by number: see ECMA-48. */
enum style { PLAIN = 0, BOLD = 1, DIM = 2, RED = 31, GREEN = 32, CYAN = 36 };

enum { LINE_MAX_BYTES = 65536 };

struct screen {
    struct pf_teller teller; /* first: the table is handed out, and comes back */
    int text_fd;             /* where the model's words go */
    bool quiet;
    bool colour[3]; /* by descriptor */
    bool thoughts;  /* they are shown */
    bool raw_diff;  /* stdout is no terminal: the diff is for programs */
    bool writes;    /* changes may be written back */
    int open_fd;    /* where a line is begun and not ended; 0: nowhere */
    size_t block;   /* of the reply, that is being written */
    char *line;     /* of the diff, as far as it has come */
    size_t line_len;
    char first; /* byte of the line, when its beginning is printed; else NUL */
};

/* ---- writing ---- */

static int put_styled(struct screen *screen, int fd, enum style style, const char *text)
{
    char begin[16];
    int r = 0;

    if (!*text)
        return 0;
    if (style != PLAIN && screen->colour[fd]) {
        snprintf(begin, sizeof(begin), "\033[%dm", (int)style);
        r = pf_put_or_stop(fd, begin, strlen(begin));
    }
    if (r == 0)
        r = pf_put_or_stop(fd, text, strlen(text));
    /* Also after a failure: a terminal must not stay coloured. */
    if (style != PLAIN && screen->colour[fd])
        pf_put(fd, "\033[0m", 4);
    return r;
}

/* End the line that somebody's words have begun. */
static int close_line(struct screen *screen)
{
    int fd = screen->open_fd;

    screen->open_fd = 0;
    return fd ? pf_put_or_stop(fd, "\n", 1) : 0;
}

/* Words of the model, which go on where the ones before ended. */
static int put_words(struct screen *screen, int fd, enum style style, size_t block,
                     const char *text, size_t len)
{
    char *clean;
    int r = 0;

    if (screen->open_fd && (screen->open_fd != fd || screen->block != block))
        r = close_line(screen);
    clean = pf_clean(text, len, PF_KEEP_LINES, 0);
    if (!clean)
        return ENOMEM;
    screen->block = block;
    if (r == 0)
        r = put_styled(screen, fd, style, clean);
    if (*clean)
        screen->open_fd = clean[strlen(clean) - 1] == '\n' ? 0 : fd;
    free(clean);
    return r;
}

/* ---- the model ---- */

static int start(struct pf_teller *teller, const struct pinfold_model *model,
                 const struct pf_options *options)
{
    (void)teller;
    (void)model;
    (void)options;
    return 0;
}

static int seed(struct pf_teller *teller, const struct pinfold_seed_result *result)
{
    char size[32];

    (void)teller;
    pf_note("%llu files (%s) are in the sandbox, %zu left out",
            (unsigned long long)result->files_seeded, pf_format_size(result->bytes_seeded, size),
            result->skipped_paths.count);
    return 0;
}

static int event(struct pf_teller *teller, const struct pinfold_model_event *event)
{
    struct screen *screen = (struct screen *)teller;

    switch (event->kind) {
    case PINFOLD_MODEL_TEXT:
        return put_words(screen, screen->text_fd, PLAIN, event->block, event->text,
                         event->text_len);
    case PINFOLD_MODEL_REASONING:
        return screen->thoughts ? put_words(screen, STDERR_FILENO, DIM, event->block, event->text,
                                            event->text_len)
                                : 0;
    case PINFOLD_MODEL_RETRY:
        pf_note("%s; trying again in %.1f s", event->error->msg, event->delay_seconds);
        return 0;
    case PINFOLD_MODEL_TOOL_START:
    case PINFOLD_MODEL_TOOL_INPUT:
    case PINFOLD_MODEL_TOOL_COMPLETE:
        break;
    }
    return 0;
}

static int reply(struct pf_teller *teller, const struct pinfold_model_reply *reply)
{
    (void)reply;
    return close_line((struct screen *)teller);
}

static int broke_off(struct pf_teller *teller, const struct pinfold_error *err)
{
    int r = close_line((struct screen *)teller);

    pf_note("the reply broke off (%s); asking for it again", err->msg);
    return r;
}

/* ---- tools ---- */

/* "[12] head: rest", in one line of the terminal. */
static int put_call(struct screen *screen, unsigned number, enum style style, const char *head,
                    const char *rest)
{
    char label[32];
    int r = close_line(screen);

    snprintf(label, sizeof(label), "[%u] ", number);
    if (r == 0)
        r = put_styled(screen, STDERR_FILENO, DIM, label);
    if (r == 0)
        r = put_styled(screen, STDERR_FILENO, style, head);
    if (r == 0 && *rest)
        r = pf_put_or_stop(STDERR_FILENO, ": ", 2);
    if (r == 0)
        r = pf_put_or_stop(STDERR_FILENO, rest, strlen(rest));
    return r ? r : pf_put_or_stop(STDERR_FILENO, "\n", 1);
}

/* How much of a line is left beside a head. */
static size_t room_beside(size_t taken)
{
    size_t width = pf_width(STDERR_FILENO);

    return width > taken + 30 ? width - taken - 10 : 20;
}

static int call(struct pf_teller *teller, unsigned number,
                const struct pinfold_before_tool_call *call)
{
    struct screen *screen = (struct screen *)teller;
    char *name, *input;
    int r = ENOMEM;

    if (screen->quiet)
        return 0;
    name = pf_clean(call->name, strlen(call->name), PF_KEEP_NONE, 40);
    input = pf_brief_input(call, room_beside(name ? strlen(name) : 0));
    if (name && input)
        r = put_call(screen, number, BOLD, name, input);
    free(name);
    free(input);
    return r;
}

static int result(struct pf_teller *teller, unsigned number, double seconds,
                  const struct pinfold_after_tool_call *call)
{
    struct screen *screen = (struct screen *)teller;
    int code = pf_result_exit_code(call), r = ENOMEM;
    bool good = !call->result->is_error && code <= 0;
    char head[64], *brief;

    if (screen->quiet)
        return 0;
    if (code >= 0)
        snprintf(head, sizeof(head), "exit %d, %.1f s", code, seconds);
    else
        snprintf(head, sizeof(head), "%s, %.1f s", good ? "done" : "failed", seconds);
    brief = pf_brief_result(call, room_beside(strlen(head)));
    if (brief)
        r = put_call(screen, number, good ? GREEN : RED, head, brief);
    free(brief);
    return r;
}

/* ---- the diff ---- */

static enum style diff_style(char first)
{
    return first == '+'   ? GREEN
           : first == '-' ? RED
           : first == '@' ? CYAN
           : first == ' ' ? PLAIN
                          : BOLD;
}

/* How much of a line that is cut at len is whole characters. */
static size_t whole_chars(const char *line, size_t len)
{
    for (size_t back = 1; back < 4 && back < len; back++) {
        unsigned char byte = (unsigned char)line[len - back];
        size_t needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;

        if ((byte & 0xc0) != 0x80)
            return needed > back ? len - back : len;
    }
    return len;
}

/* Print so much of the line that has come. */
static int put_line(struct screen *screen, size_t len)
{
    char *clean = pf_clean(screen->line, len, PF_KEEP_LINES, 0);
    int r = ENOMEM;

    if (!screen->first)
        screen->first = screen->line[0];
    if (clean)
        r = put_styled(screen, STDOUT_FILENO, diff_style(screen->first), clean);
    free(clean);
    if (screen->line[len - 1] == '\n')
        screen->first = '\0';
    screen->line_len -= len;
    memmove(screen->line, screen->line + len, screen->line_len + 1); /* with the NUL */
    return r;
}

/* For a terminal, a line at a time: pieces may end within a character. */
static int diff(struct pf_teller *teller, const char *text, size_t len)
{
    struct screen *screen = (struct screen *)teller;
    int r = 0;

    if (screen->raw_diff)
        return pf_put_or_stop(STDOUT_FILENO, text, len);
    if (!screen->line)
        screen->line = malloc(LINE_MAX_BYTES + 1);
    if (!screen->line)
        return ENOMEM;
    for (size_t i = 0; i < len && r == 0; i++) {
        screen->line[screen->line_len++] = text[i];
        screen->line[screen->line_len] = '\0';
        if (text[i] == '\n')
            r = put_line(screen, screen->line_len);
        else if (screen->line_len == LINE_MAX_BYTES)
            r = put_line(screen, whole_chars(screen->line, screen->line_len));
    }
    return r;
}

/* What is worth knowing of a change before it is written back. */
static const char *remark(const struct pinfold_change *change, bool writes)
{
    if (change->seed_changed)
        return "  # you have changed it meanwhile, too";
    if (change->shown == PINFOLD_SHOWN_BINARY && change->kind == PINFOLD_CHANGE_DELETED)
        return writes ? "  # binary; not deleted here: do it yourself" : "  # binary";
    if (change->shown == PINFOLD_SHOWN_BINARY)
        return writes && !change->syncs ? "  # binary; stays in the sandbox" : "  # binary";
    if (change->shown == PINFOLD_SHOWN_TOO_LARGE)
        return "  # too large for the diff";
    if (change->shown == PINFOLD_SHOWN_FAILED)
        return "  # could not be read";
    if (!writes || change->syncs)
        return "";
    return change->kind == PINFOLD_CHANGE_DELETED ? "  # not deleted here: do it yourself"
                                                  : "  # stays in the sandbox";
}

static int changes(struct pf_teller *teller, const struct pinfold_changes *changes)
{
    struct screen *screen = (struct screen *)teller;
    int r = screen->line_len ? put_line(screen, screen->line_len) : 0;

    for (size_t i = 0; i < changes->count && r == 0 && !screen->quiet; i++) {
        const struct pinfold_change *change = &changes->items[i];
        char *path = pf_clean(change->path, strlen(change->path), PF_KEEP_NONE, 0);
        char *line = NULL;

        if (!path || asprintf(&line, "  %-8s  %s%s\n", pinfold_change_kind_name(change->kind), path,
                              remark(change, screen->writes)) < 0)
            line = NULL;
        r = line ? pf_put_or_stop(STDERR_FILENO, line, strlen(line)) : ENOMEM;
        free(path);
        free(line);
    }
    return r;
}

/* ---- the end ---- */

static int sync_done(struct pf_teller *teller, const struct pinfold_sync_result *result)
{
    char size[32];

    (void)teller;
    pf_note("wrote %llu files (%s)", (unsigned long long)result->files_synced,
            pf_format_size(result->bytes_synced, size));
    return 0;
}

static int error(struct pf_teller *teller, const struct pinfold_error *err)
{
    close_line((struct screen *)teller);
    pf_say("%s", err->msg);
    return 0;
}

static int end(struct pf_teller *teller, const struct pf_agent_tally *tally, bool written,
               int status)
{
    const struct pinfold_model_usage *usage = &tally->usage;
    unsigned long long in = usage->input + usage->cache_read + usage->cache_write;
    double seconds = (double)(pf_now_ns() - tally->begun_ns) / 1e9;
    int r = close_line((struct screen *)teller);

    (void)written;
    (void)status;
    if (tally->turns == 0) /* what stopped it was told, and there is nothing to count */
        return r;
    if (!usage->known)
        pf_note("%u replies, %u calls, %.0f s; the tokens were not told", tally->turns,
                tally->calls, seconds);
    else
        pf_note("%u replies, %u calls, %.0f s; tokens: %llu in, %llu of them cached, %llu out",
                tally->turns, tally->calls, seconds, in, (unsigned long long)usage->cache_read,
                (unsigned long long)usage->output);
    return r;
}

static void screen_free(struct pf_teller *teller)
{
    free(((struct screen *)teller)->line);
    free(teller);
}

struct pf_teller *pf_teller_new_screen(const struct pf_options *options)
{
    struct screen *screen = calloc(1, sizeof(*screen));

    if (!screen)
        return NULL;
    screen->teller = (struct pf_teller){
        .start = start,
        .seed = seed,
        .event = event,
        .reply = reply,
        .broke_off = broke_off,
        .call = call,
        .result = result,
        .diff = diff,
        .changes = changes,
        .sync = sync_done,
        .error = error,
        .end = end,
        .free = screen_free,
    };
    screen->text_fd = options->agent.diff ? STDERR_FILENO : STDOUT_FILENO;
    screen->quiet = options->quiet;
    screen->thoughts = isatty(STDERR_FILENO) && !options->quiet;
    screen->writes = options->wants_sync;
    screen->raw_diff = !isatty(STDOUT_FILENO);
    screen->colour[STDOUT_FILENO] = pf_has_colour(STDOUT_FILENO);
    screen->colour[STDERR_FILENO] = pf_has_colour(STDERR_FILENO);
    return &screen->teller;
}

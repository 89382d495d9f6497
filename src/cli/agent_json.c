/* SPDX-License-Identifier: Apache-2.0 */
/* An agent's run for programs: an object a line, each with "event". docs/agents.md has them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/agent_brief.h"
#include "cli/agent_out.h"
#include "cli/agent_tell.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/say.h"

/* An input that is longer is cut: no program that watches wants 10 MB in a line. */
enum { INPUT_MAX = 100000 };

struct lines {
    struct pf_teller teller; /* first: the table is handed out, and comes back */
    char *diff;
    size_t diff_len, diff_room;
};

/* ---- lines ---- */

static json_t *event_of(const char *name)
{
    json_t *object = json_object();

    pf_json_set(object, "event", json_string(name));
    return object;
}

/* JSON leaves DEL as it is, alone of what a terminal may obey; it stands in strings only. Takes
 * text, and returns it or another, NULL when out of memory. */
static char *escape_del(char *text)
{
    size_t dels = 0;
    char *safe, *out;

    for (const char *at = text; at && *at; at++)
        dels += *at == '\x7f';
    if (!dels)
        return text;
    safe = out = malloc(strlen(text) + 5 * dels + 1);
    for (const char *at = text; safe && *at; at++) {
        if (*at == '\x7f')
            out = stpcpy(out, "\\u007f");
        else
            *out++ = *at;
    }
    if (safe)
        *out = '\0';
    free(text);
    return safe;
}

/* Print an object whose members could all be set, and free it. */
static int put(json_t *object, int failures)
{
    const size_t flags = JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9);
    char *text = failures ? NULL : escape_del(json_dumps(object, flags));
    int r = ENOMEM;

    json_decref(object);
    if (text) {
        size_t len = strlen(text);

        text[len] = '\n'; /* in one write, in the place of the NUL */
        r = pf_put_or_stop(STDOUT_FILENO, text, len + 1);
    }
    free(text);
    return r;
}

/* Print an event that has the members of an object, which is taken. */
static int put_members(const char *event, json_t *members)
{
    json_t *line = event_of(event);
    int bad = json_object_update(line, members);

    json_decref(members);
    return put(line, bad);
}

/* Text that may hold anything: what is no UTF-8 is escaped. */
static json_t *any_text(const char *text, size_t len)
{
    json_t *value = json_stringn(text, len);
    char *clean;

    if (value)
        return value;
    clean = pf_clean(text, len, PF_KEEP_LINES, 0);
    value = clean ? json_string(clean) : NULL;
    free(clean);
    return value;
}

static json_t *usage_json(const struct pinfold_model_usage *usage)
{
    json_t *object;
    int bad = 0;

    if (!usage->known)
        return json_null();
    object = json_object();
    bad |= pf_json_set(object, "input", json_integer((json_int_t)usage->input));
    bad |= pf_json_set(object, "output", json_integer((json_int_t)usage->output));
    bad |= pf_json_set(object, "cache_read", json_integer((json_int_t)usage->cache_read));
    bad |= pf_json_set(object, "cache_write", json_integer((json_int_t)usage->cache_write));
    return pf_json_complete(object, bad);
}

const char *pf_stop_word(enum pinfold_stop_reason stop)
{
    switch (stop) {
    case PINFOLD_STOP_END:
        return "end";
    case PINFOLD_STOP_TOOL_USE:
        return "tool_use";
    case PINFOLD_STOP_LENGTH:
        return "length";
    case PINFOLD_STOP_REFUSAL:
        return "refusal";
    case PINFOLD_STOP_SEQUENCE:
        return "stop_sequence";
    case PINFOLD_STOP_PAUSE:
        return "pause";
    }
    return "none";
}

/* ---- the model ---- */

static int start(struct pf_teller *teller, const struct pinfold_model *model,
                 const struct pf_options *options)
{
    json_t *line = event_of("start");
    int bad = 0;

    (void)teller;
    bad |= pf_json_set(line, "provider", json_string(pinfold_model_provider(model)));
    bad |= pf_json_set(line, "model", json_string(pinfold_model_name(model)));
    bad |= pf_json_set(line, "backend",
                       json_string(options->agentcore  ? "agentcore"
                                   : options->daytona  ? "daytona"
                                   : options->isolated ? "isolated"
                                                       : "local"));
    bad |= pf_json_set(line, "read_only", json_boolean(options->agent.read_only));
    bad |= pf_json_set(line, "max_turns", json_integer((json_int_t)options->agent.max_turns));
    return put(line, bad);
}

static int seed(struct pf_teller *teller, const struct pinfold_seed_result *result)
{
    (void)teller;
    return put_members("seed", pf_json_seed(result));
}

static int event(struct pf_teller *teller, const struct pinfold_model_event *event)
{
    json_t *line;
    int bad = 0;

    (void)teller;
    if (event->kind != PINFOLD_MODEL_RETRY)
        return 0; /* told when it is whole */
    line = event_of("retry");
    bad |= pf_json_set(line, "attempt", json_integer(event->attempt));
    bad |= pf_json_set(line, "delay_seconds", json_real(event->delay_seconds));
    bad |= pf_json_set(line, "error", pf_json_error(event->error));
    return put(line, bad);
}

static int put_block(const struct pinfold_block *block)
{
    json_t *line;
    int bad;

    if (block->kind != PINFOLD_BLOCK_TEXT && block->kind != PINFOLD_BLOCK_REASONING)
        return 0;
    line = event_of(block->kind == PINFOLD_BLOCK_TEXT ? "text" : "reasoning");
    bad = pf_json_set(line, "text", any_text(block->text, block->text_len));
    return put(line, bad);
}

static int reply(struct pf_teller *teller, const struct pinfold_model_reply *reply)
{
    json_t *line;
    int bad = 0, r = 0;

    (void)teller;
    for (size_t i = 0; i < reply->message.count && r == 0; i++)
        r = put_block(&reply->message.blocks[i]);
    if (r)
        return r;
    line = event_of("reply");
    bad |= pf_json_set(line, "stop", json_string(pf_stop_word(reply->stop)));
    bad |= pf_json_set(line, "usage", usage_json(&reply->usage));
    return put(line, bad);
}

static int broke_off(struct pf_teller *teller, const struct pinfold_error *err)
{
    json_t *line = event_of("retry");
    int bad = pf_json_set(line, "error", pf_json_error(err));

    (void)teller;
    return put(line, bad);
}

/* ---- tools ---- */

static int call(struct pf_teller *teller, unsigned number,
                const struct pinfold_before_tool_call *call)
{
    json_t *line = event_of("call");
    bool cut = call->input_len > INPUT_MAX;
    json_t *input = cut ? NULL : json_loadb(call->input, call->input_len, JSON_ALLOW_NUL, NULL);
    int bad = 0;

    (void)teller;
    bad |= pf_json_set(line, "number", json_integer(number));
    bad |= pf_json_set(line, "id", any_text(call->tool_use_id, strlen(call->tool_use_id)));
    bad |= pf_json_set(line, "tool", any_text(call->name, strlen(call->name)));
    if (input)
        bad |= pf_json_set(line, "input", input);
    else
        bad |= pf_json_set(line, "raw_input",
                           any_text(call->input, cut ? INPUT_MAX : call->input_len));
    bad |= pf_json_set(line, "input_bytes", json_integer((json_int_t)call->input_len));
    return put(line, bad);
}

static int result(struct pf_teller *teller, unsigned number, double seconds,
                  const struct pinfold_after_tool_call *call)
{
    json_t *line = event_of("result");
    int bad = 0, code = pf_result_exit_code(call);
    size_t len;
    const char *text = pf_result_text(call->result, &len);

    (void)teller;
    bad |= pf_json_set(line, "number", json_integer(number));
    bad |= pf_json_set(line, "error", json_boolean(call->result->is_error));
    bad |= pf_json_set(line, "exit_code", code >= 0 ? json_integer(code) : json_null());
    bad |= pf_json_set(line, "seconds", json_real(seconds));
    bad |= pf_json_set(line, "text", any_text(text, len));
    return put(line, bad);
}

/* ---- changes ---- */

static int diff(struct pf_teller *teller, const char *text, size_t len)
{
    struct lines *lines = (struct lines *)teller;

    if (lines->diff_room - lines->diff_len <= len) {
        size_t room = 2 * (lines->diff_len + len) + 4096;
        char *more = realloc(lines->diff, room);

        if (!more)
            return ENOMEM;
        lines->diff = more;
        lines->diff_room = room;
    }
    memcpy(lines->diff + lines->diff_len, text, len);
    lines->diff_len += len;
    lines->diff[lines->diff_len] = '\0';
    return 0;
}

static json_t *change_json(const struct pinfold_change *change)
{
    json_t *object = json_object();
    int bad = 0;

    bad |= pf_json_set(object, "path", pf_json_name(change->path));
    bad |= pf_json_set(object, "kind", json_string(pinfold_change_kind_name(change->kind)));
    bad |= pf_json_set(object, "old_size", json_integer(change->old_size));
    bad |= pf_json_set(object, "new_size", json_integer(change->new_size));
    bad |= pf_json_set(object, "syncs", json_boolean(change->syncs));
    bad |= pf_json_set(object, "seed_changed", json_boolean(change->seed_changed));
    return pf_json_complete(object, bad);
}

static int changes(struct pf_teller *teller, const struct pinfold_changes *changes)
{
    struct lines *lines = (struct lines *)teller;
    json_t *line = event_of("changes"), *files = json_array();
    int bad = 0;

    for (size_t i = 0; i < changes->count; i++)
        bad |= json_array_append_new(files, change_json(&changes->items[i]));
    bad |= pf_json_set(line, "files", files);
    bad |= pf_json_set(line, "diff_is_whole",
                       json_boolean(!changes->cut && !changes->errors.count));
    bad |= pf_json_set(line, "diff", any_text(lines->diff ? lines->diff : "", lines->diff_len));
    return put(line, bad);
}

static int sync_done(struct pf_teller *teller, const struct pinfold_sync_result *result)
{
    (void)teller;
    return put_members("sync", pf_json_sync(result));
}

/* ---- the end ---- */

static int error(struct pf_teller *teller, const struct pinfold_error *err)
{
    (void)teller;
    pf_say("%s", err->msg);
    return put_members("error", pf_json_error(err));
}

static int end(struct pf_teller *teller, const struct pf_agent_tally *tally, bool written,
               int status)
{
    json_t *line = event_of("end");
    double seconds = (double)(pf_now_ns() - tally->begun_ns) / 1e9;
    int bad = 0;

    (void)teller;
    bad |= pf_json_set(line, "status", json_integer(status));
    bad |= pf_json_set(line, "stop", json_string(pf_stop_word(tally->stop)));
    bad |= pf_json_set(line, "written", json_boolean(written));
    bad |= pf_json_set(line, "turns", json_integer(tally->turns));
    bad |= pf_json_set(line, "calls", json_integer(tally->calls));
    bad |= pf_json_set(line, "usage", usage_json(&tally->usage));
    bad |= pf_json_set(line, "seconds", json_real(seconds));
    return put(line, bad);
}

static void lines_free(struct pf_teller *teller)
{
    free(((struct lines *)teller)->diff);
    free(teller);
}

struct pf_teller *pf_teller_new_json(void)
{
    struct lines *lines = calloc(1, sizeof(*lines));

    if (!lines)
        return NULL;
    lines->teller = (struct pf_teller){
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
        .free = lines_free,
    };
    return &lines->teller;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading scripts. Everything is checked when the script is read: a word that is spelled wrong
 * must not become a turn that waits for nothing.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "agent/model_script.h"
#include "base/cleanup.h"
#include "base/error.h"

/* The script and the place in it that is being read, for errors. */
struct place {
    const char *shown;
    size_t turn;   /* from 1; 0: none */
    char part[64]; /* "reply[2]"; "" for the turn itself */
    struct pinfold_error *err;
};

static int wrong(const struct place *at, const char *what, const char *word)
{
    char turn[32] = "";

    if (at->turn)
        snprintf(turn, sizeof(turn), ": turn %zu", at->turn);
    return pf_fail(at->err, PINFOLD_EVALUE, "script %s%s%s%s: %s%s%s%s", PF_QUOTE(at->shown), turn,
                   at->part[0] ? ": " : "", at->part, what, word ? " \"" : "",
                   word ? PF_QUOTE(word) : "", word ? "\"" : "");
}

enum kind {
    TEXT,   /* a string */
    WORDS,  /* a string, or a list of strings */
    LIST,   /* a list of strings */
    ITEMS,  /* a list */
    COUNT,  /* a whole number, 0 to 1,000,000,000 */
    FLAG,   /* true or false */
    OBJECT, /* an object */
    SPEECH, /* a string, or a list of strings and objects */
};

struct member {
    const char *name;
    enum kind kind;
};

static bool is_list_of_texts(const json_t *value)
{
    const json_t *item;
    size_t i;

    json_array_foreach(value, i, item)
        if (!json_is_string(item))
            return false;
    return json_is_array(value);
}

static bool is_speech(const json_t *value)
{
    const json_t *item;
    size_t i;

    json_array_foreach(value, i, item)
        if (!json_is_string(item) && !json_is_object(item))
            return false;
    return json_is_array(value) || json_is_string(value);
}

static const char *kind_wrong(const json_t *value, enum kind kind)
{
    json_int_t number = json_integer_value(value);

    switch (kind) {
    case TEXT:
        return json_is_string(value) ? NULL : "is no string";
    case WORDS:
        return json_is_string(value) || is_list_of_texts(value) ? NULL
                                                                : "is no string or list of them";
    case LIST:
        return is_list_of_texts(value) ? NULL : "is no list of strings";
    case ITEMS:
        return json_is_array(value) ? NULL : "is no list";
    case COUNT:
        return json_is_integer(value) && number >= 0 && number <= 1000000000
                       ? NULL
                       : "is no whole number from 0 to 1000000000";
    case FLAG:
        return json_is_boolean(value) ? NULL : "is neither true nor false";
    case OBJECT:
        return json_is_object(value) ? NULL : "is no object";
    case SPEECH:
        return is_speech(value) ? NULL : "is no string, nor a list of strings and objects";
    }
    return "is of no kind";
}

/* Check that an object has no members but these, each of its kind. The list ends with NULL. */
static int check_members(const struct place *at, json_t *object, const struct member *members)
{
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value) {
        const struct member *member = members;
        const char *bad;

        while (member->name && strcmp(member->name, key) != 0)
            member++;
        if (!member->name)
            return wrong(at, "there is no such member:", key);
        bad = kind_wrong(value, member->kind);
        if (bad) {
            _cleanup_free_ char *text = NULL;
            if (asprintf(&text, "\"%s\" %s", key, bad) < 0) {
                text = NULL;
                return pf_fail_nomem(at->err);
            }
            return wrong(at, text, NULL);
        }
    }
    return 0;
}

/* ---- the parts of a turn ---- */

static int check_expect(struct place *at, json_t *expect)
{
    static const struct member members[] = {
        { "system", WORDS },  { "first", WORDS },    { "last", WORDS },    { "tools", LIST },
        { "no_tools", LIST }, { "messages", COUNT }, { "results", ITEMS }, { NULL, TEXT },
    };
    static const struct member of_result[] = {
        { "id", TEXT }, { "contains", WORDS }, { "error", FLAG }, { NULL, TEXT }
    };
    json_t *item;
    size_t i;
    int r;

    snprintf(at->part, sizeof(at->part), "expect");
    r = check_members(at, expect, members);
    json_array_foreach(json_object_get(expect, "results"), i, item) {
        snprintf(at->part, sizeof(at->part), "expect.results[%zu]", i);
        if (r == 0 && !json_is_object(item))
            r = wrong(at, "is no object", NULL);
        if (r == 0)
            r = check_members(at, item, of_result);
    }
    at->part[0] = '\0';
    return r;
}

static int check_block(const struct place *at, json_t *block)
{
    static const struct member of_text[] = { { "text", TEXT }, { NULL, TEXT } };
    static const struct member of_reasoning[] = { { "reasoning", TEXT },
                                                  { "opaque", TEXT },
                                                  { NULL, TEXT } };
    static const struct member of_tool[] = {
        { "tool", TEXT }, { "input", OBJECT }, { "raw_input", TEXT }, { "id", TEXT }, { NULL, TEXT }
    };
    const char *tool = pf_json_text(block, "tool", NULL);

    if (json_is_string(block))
        return 0;
    if (json_object_get(block, "text"))
        return check_members(at, block, of_text);
    if (json_object_get(block, "reasoning"))
        return check_members(at, block, of_reasoning);
    if (!json_object_get(block, "tool"))
        return wrong(at, "has none of \"text\", \"reasoning\" and \"tool\"", NULL);
    if (tool && !*tool)
        return wrong(at, "\"tool\" is empty", NULL);
    if (json_object_get(block, "input") && json_object_get(block, "raw_input"))
        return wrong(at, "has both \"input\" and \"raw_input\"", NULL);
    return check_members(at, block, of_tool);
}

static int check_reply(struct place *at, json_t *reply, bool *ret_tools)
{
    json_t *block;
    size_t i;
    int r = 0;

    *ret_tools = false;
    json_array_foreach(reply, i, block) {
        snprintf(at->part, sizeof(at->part), "reply[%zu]", i);
        r = check_block(at, block);
        if (r < 0)
            break;
        *ret_tools = *ret_tools || json_object_get(block, "tool");
    }
    at->part[0] = '\0';
    return r;
}

static int check_error(struct place *at, json_t *error)
{
    static const struct member members[] = {
        { "message", TEXT }, { "status", COUNT }, { "retryable", FLAG }, { NULL, TEXT }
    };
    int r;

    snprintf(at->part, sizeof(at->part), "error");
    r = check_members(at, error, members);
    if (r == 0 && error && !json_object_get(error, "message"))
        r = wrong(at, "has no \"message\"", NULL);
    at->part[0] = '\0';
    return r;
}

static int read_usage(struct place *at, json_t *usage, struct pinfold_model_usage *ret)
{
    static const struct member members[] = { { "input", COUNT },
                                             { "output", COUNT },
                                             { "cache_read", COUNT },
                                             { "cache_write", COUNT },
                                             { NULL, TEXT } };
    int r;

    snprintf(at->part, sizeof(at->part), "usage");
    r = check_members(at, usage, members);
    at->part[0] = '\0';
    *ret = (struct pinfold_model_usage){
        .input = pf_json_count(usage, "input"),
        .output = pf_json_count(usage, "output"),
        .cache_read = pf_json_count(usage, "cache_read"),
        .cache_write = pf_json_count(usage, "cache_write"),
        .known = usage,
    };
    return r;
}

static int read_stop(const struct place *at, const char *word, bool tools,
                     enum pinfold_stop_reason *ret)
{
    static const char *const words[] = {
        [PINFOLD_STOP_END] = "end",
        [PINFOLD_STOP_TOOL_USE] = "tool_use",
        [PINFOLD_STOP_LENGTH] = "length",
        [PINFOLD_STOP_REFUSAL] = "refusal",
        [PINFOLD_STOP_SEQUENCE] = "stop_sequence",
        [PINFOLD_STOP_PAUSE] = "pause",
    };

    *ret = tools ? PINFOLD_STOP_TOOL_USE : PINFOLD_STOP_END;
    if (!word)
        return 0;
    for (size_t i = PINFOLD_STOP_END; i < PF_COUNT(words); i++)
        if (strcmp(words[i], word) == 0) {
            *ret = (enum pinfold_stop_reason)i;
            return 0;
        }
    return wrong(at, "\"stop\" is none of end, tool_use, length, refusal, stop_sequence and pause:",
                 word);
}

static int read_turn(struct place *at, json_t *json, struct pf_script_turn *turn)
{
    static const struct member members[] = {
        { "expect", OBJECT }, { "reply", SPEECH }, { "error", OBJECT }, { "stop", TEXT },
        { "detail", TEXT },   { "usage", OBJECT }, { "chunk", COUNT },  { "delay_ms", COUNT },
        { "times", COUNT },   { "note", TEXT },    { NULL, TEXT },
    };
    json_t *times = json_object_get(json, "times");
    bool tools = false;
    int r = json_is_object(json) ? check_members(at, json, members)
                                 : wrong(at, "is no object", NULL);

    if (r < 0)
        return r;
    turn->expect = json_object_get(json, "expect");
    turn->reply = json_object_get(json, "reply");
    turn->error = json_object_get(json, "error");
    turn->detail = pf_json_text(json, "detail", NULL);
    turn->chunk = (size_t)pf_json_count(json, "chunk");
    turn->delay_ms = (unsigned)pf_json_count(json, "delay_ms");
    turn->left = times ? (unsigned)json_integer_value(times) : 1;
    if (turn->left == 0)
        turn->left = UINT_MAX;
    if (!turn->reply && !turn->error)
        return wrong(at, "has neither \"reply\" nor \"error\"", NULL);
    r = check_expect(at, turn->expect);
    if (r == 0)
        r = check_reply(at, turn->reply, &tools);
    if (r == 0)
        r = check_error(at, turn->error);
    if (r == 0)
        r = read_usage(at, json_object_get(json, "usage"), &turn->usage);
    return r < 0 ? r : read_stop(at, pf_json_text(json, "stop", NULL), tools, &turn->stop);
}

/* ---- the whole ---- */

static int read_top(struct place *at, struct pf_script *script)
{
    static const struct member members[] = { { "name", TEXT },
                                             { "any_order", FLAG },
                                             { "turns", ITEMS },
                                             { "note", TEXT },
                                             { NULL, TEXT } };
    const char *name = pf_json_text(script->json, "name", NULL);
    json_t *turns = json_object_get(script->json, "turns");
    int r = check_members(at, script->json, members);

    if (r < 0)
        return r;
    if (json_array_size(turns) == 0)
        return wrong(at, "there are no \"turns\"", NULL);
    script->name = strdup(name ? name : at->shown);
    script->any_order = json_is_true(json_object_get(script->json, "any_order"));
    script->count = json_array_size(turns);
    script->turns = calloc(script->count, sizeof(*script->turns));
    if (!script->name || !script->turns)
        return pf_fail_nomem(at->err);
    for (size_t i = 0; i < script->count && r == 0; i++) {
        at->turn = i + 1;
        r = read_turn(at, json_array_get(turns, i), &script->turns[i]);
    }
    return r;
}

int pf_script_read(const char *text, size_t len, const char *shown, struct pf_script *ret,
                   struct pinfold_error *err)
{
    struct place at = { .shown = shown, .err = err };
    json_error_t bad = { .line = 0 };

    *ret = (struct pf_script){ .json = json_loadb(text, len,
                                                  JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &bad) };
    if (!ret->json && json_error_code(&bad) == json_error_out_of_memory)
        return pf_fail_nomem(err);
    if (!ret->json)
        return pf_fail(err, PINFOLD_EVALUE, "script %s: line %d, column %d: no JSON: %s",
                       PF_QUOTE(shown), bad.line, bad.column, PF_QUOTE(bad.text));
    if (!json_is_object(ret->json))
        return wrong(&at, "is no JSON object", NULL);
    return read_top(&at, ret);
}

void pf_script_done(struct pf_script *script)
{
    json_decref(script->json);
    free(script->name);
    free(script->turns);
    *script = (struct pf_script){ 0 };
}

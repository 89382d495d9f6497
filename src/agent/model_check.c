/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every provider would refuse, said before anything is sent and in words that name the place:
 * their own refusals often come late, and speak of their own wire format.
 */
#include <math.h>
#include <string.h>

#include "agent/model.h"
#include "agent/model_json.h"
#include "base/error.h"
#include "base/utf8.h"

#define REQUEST "model request: "
#define NAME_MAX_LEN 64

static int check_tool(const struct pinfold_model_request *request, size_t index,
                      struct pinfold_error *err)
{
    static const char allowed[] =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    const struct pinfold_tool_spec *tool = &request->tools[index];
    size_t len = tool->name ? strlen(tool->name) : 0;
    bool nomem = false;
    json_t *schema;

    if (len == 0 || len > NAME_MAX_LEN || tool->name[strspn(tool->name, allowed)])
        return pf_fail(err, PINFOLD_EVALUE,
                       REQUEST "the name of tool %zu, \"%s\", is not 1 to %d of A-Z a-z 0-9 _ -",
                       index, len ? PF_QUOTE(tool->name) : "", NAME_MAX_LEN);
    for (size_t i = 0; i < index; i++)
        if (strcmp(request->tools[i].name, tool->name) == 0)
            return pf_fail(err, PINFOLD_EVALUE, REQUEST "there are two tools \"%s\"", tool->name);
    if (tool->description && !pf_utf8_valid(tool->description, strlen(tool->description), NULL))
        return pf_fail(err, PINFOLD_EVALUE, REQUEST "the description of tool \"%s\" is not UTF-8",
                       tool->name);
    if (!tool->schema)
        return 0;
    schema = pf_json_object_load(tool->schema, strlen(tool->schema), &nomem);
    if (!schema)
        return nomem ? pf_fail_nomem(err)
                     : pf_fail(err, PINFOLD_EVALUE,
                               REQUEST "the schema of tool \"%s\" is no JSON object", tool->name);
    json_decref(schema);
    return 0;
}

/* Whether a block can stand in a message of a role, and has what its kind has. */
static const char *block_wrong(const struct pinfold_block *block, enum pinfold_role role)
{
    bool of_user = block->kind == PINFOLD_BLOCK_TOOL_RESULT;
    bool of_assistant =
            block->kind == PINFOLD_BLOCK_TOOL_USE || block->kind == PINFOLD_BLOCK_REASONING;

    if (block->kind < PINFOLD_BLOCK_TEXT || block->kind > PINFOLD_BLOCK_REASONING)
        return "is of no known kind";
    if (of_user && role != PINFOLD_ROLE_USER)
        return "is the result of a tool, in a message of the assistant";
    if (of_assistant && role != PINFOLD_ROLE_ASSISTANT)
        return "is of an assistant, in a message of the user";
    if (!block->text || !pf_utf8_valid(block->text, block->text_len, NULL))
        return "has no text, or one that is not UTF-8";
    if ((of_user || block->kind == PINFOLD_BLOCK_TOOL_USE) && (!block->id || !block->id[0]))
        return "has no id";
    if (block->kind == PINFOLD_BLOCK_TOOL_USE && (!block->name || !block->name[0]))
        return "has no name";
    return NULL;
}

static int check_message(const struct pinfold_message *message, size_t index,
                         struct pinfold_error *err)
{
    if (message->role != PINFOLD_ROLE_USER && message->role != PINFOLD_ROLE_ASSISTANT)
        return pf_fail(err, PINFOLD_EVALUE, REQUEST "message %zu has no known role", index);
    for (size_t i = 0; i < message->count; i++) {
        const char *wrong = block_wrong(&message->blocks[i], message->role);
        if (wrong)
            return pf_fail(err, PINFOLD_EVALUE, REQUEST "block %zu of message %zu %s", i, index,
                           wrong);
    }
    return 0;
}

/* Messages of one role, one after another: providers take them for one. */
struct run {
    size_t begin, end;
};

static struct run next_run(const struct pinfold_model_request *request, size_t begin)
{
    struct run run = { begin, begin };

    while (run.end < request->message_count &&
           request->messages[run.end].role == request->messages[begin].role)
        run.end++;
    return run;
}

/* How many blocks of a kind with an id there are. */
static size_t count_id(const struct pinfold_model_request *request, struct run run,
                       enum pinfold_block_kind kind, const char *id)
{
    size_t count = 0;

    for (size_t i = run.begin; i < run.end; i++)
        for (size_t j = 0; j < request->messages[i].count; j++) {
            const struct pinfold_block *block = &request->messages[i].blocks[j];
            count += block->kind == kind && strcmp(block->id, id) == 0;
        }
    return count;
}

/* Every block of a kind in one run has one partner in the other. */
static int check_pairs(const struct pinfold_model_request *request, struct run run,
                       enum pinfold_block_kind kind, struct run other, struct pinfold_error *err)
{
    bool calls = kind == PINFOLD_BLOCK_TOOL_USE;
    enum pinfold_block_kind partner = calls ? PINFOLD_BLOCK_TOOL_RESULT : PINFOLD_BLOCK_TOOL_USE;

    for (size_t i = run.begin; i < run.end; i++)
        for (size_t j = 0; j < request->messages[i].count; j++) {
            const struct pinfold_block *block = &request->messages[i].blocks[j];
            size_t count = block->kind == kind ? count_id(request, other, partner, block->id) : 1;
            if (count != 1)
                return pf_fail(
                        err, PINFOLD_EVALUE, REQUEST "the %s \"%s\" of message %zu has %s %s",
                        calls ? "call" : "result", PF_QUOTE(block->id), i,
                        count ? "more than one" : "no",
                        calls ? "result in the message after it" : "call in the message before it");
        }
    return 0;
}

static int check_calls(const struct pinfold_model_request *request, struct pinfold_error *err)
{
    struct run before = { 0, 0 };
    int r = 0;

    for (size_t at = 0; at < request->message_count && r == 0;) {
        struct run run = next_run(request, at);
        if (request->messages[at].role == PINFOLD_ROLE_USER) {
            r = check_pairs(request, before, PINFOLD_BLOCK_TOOL_USE, run, err);
            if (r == 0)
                r = check_pairs(request, run, PINFOLD_BLOCK_TOOL_RESULT, before, err);
        }
        before = run;
        at = run.end;
    }
    return r;
}

static int check_settings(const struct pinfold_model_request *request, struct pinfold_error *err)
{
    if (request->size != sizeof(*request))
        return pf_fail(err, PINFOLD_EVALUE, REQUEST "size is %zu, not %zu", request->size,
                       sizeof(*request));
    if (request->message_count == 0)
        return pf_fail(err, PINFOLD_EVALUE, REQUEST "there are no messages");
    if (request->system && !pf_utf8_valid(request->system, strlen(request->system), NULL))
        return pf_fail(err, PINFOLD_EVALUE, REQUEST "the system prompt is not UTF-8");
    if (request->temperature && !(*request->temperature >= 0 && *request->temperature <= 2))
        return pf_fail(err, PINFOLD_EVALUE, REQUEST "temperature is %g, not 0 to 2",
                       *request->temperature);
    for (const char *const *stop = request->stop_sequences; stop && *stop; stop++)
        if (!(*stop)[0] || !pf_utf8_valid(*stop, strlen(*stop), NULL))
            return pf_fail(err, PINFOLD_EVALUE, REQUEST "a stop sequence is empty, or not UTF-8");
    return 0;
}

int pf_model_check_request(const struct pinfold_model_request *request, struct pinfold_error *err)
{
    int r = check_settings(request, err);

    for (size_t i = 0; i < request->tool_count && r == 0; i++)
        r = check_tool(request, i, err);
    for (size_t i = 0; i < request->message_count && r == 0; i++)
        r = check_message(&request->messages[i], i, err);
    return r < 0 ? r : check_calls(request, err);
}

int pf_model_check_reply(const struct pinfold_model *model, const struct pinfold_model_reply *reply,
                         struct pinfold_error *err)
{
    const char *name = pinfold_model_name(model);

    if (reply->stop < PINFOLD_STOP_END || reply->stop > PINFOLD_STOP_PAUSE)
        return pf_fail(err, PINFOLD_EBACKEND, "model %s: its reply gives no reason to stop",
                       PF_QUOTE(name));
    for (size_t i = 0; i < reply->message.count; i++) {
        const char *wrong = block_wrong(&reply->message.blocks[i], PINFOLD_ROLE_ASSISTANT);
        if (wrong)
            return pf_fail(err, PINFOLD_EBACKEND, "model %s: block %zu of its reply %s",
                           PF_QUOTE(name), i, wrong);
    }
    return 0;
}

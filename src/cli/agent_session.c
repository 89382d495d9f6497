/* SPDX-License-Identifier: Apache-2.0 */
/* The conversation in a file: JSON, for its owner alone to read. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/agent_run.h"
#include "cli/json.h"
#include "cli/say.h"

enum { FORM = 1 };

static const char *const kinds[] = {
    [PINFOLD_BLOCK_TEXT] = "text",
    [PINFOLD_BLOCK_TOOL_USE] = "tool_use",
    [PINFOLD_BLOCK_TOOL_RESULT] = "tool_result",
    [PINFOLD_BLOCK_REASONING] = "reasoning",
};

static int fail(struct pinfold_error *err, int code, const char *what, const char *path,
                const char *why)
{
    err->code = code;
    snprintf(err->msg, sizeof(err->msg), "%s session %s: %s", what, path, why);
    return -code;
}

static int fail_os(struct pinfold_error *err, const char *what, const char *path)
{
    err->sys_errno = errno;
    return fail(err, PINFOLD_EOS, what, path, pf_error_words(err->sys_errno));
}

/* ---- writing ---- */

static json_t *block_json(const struct pinfold_block *block)
{
    json_t *object = json_object();
    int bad = pf_json_set(object, "kind", json_string(kinds[block->kind]));

    bad |= pf_json_set(object, "text", json_stringn(block->text, block->text_len));
    if (block->id)
        bad |= pf_json_set(object, "id", json_string(block->id));
    if (block->name)
        bad |= pf_json_set(object, "name", json_string(block->name));
    if (block->kind == PINFOLD_BLOCK_TOOL_RESULT)
        bad |= pf_json_set(object, "error", json_boolean(block->is_error));
    if (block->opaque)
        bad |= pf_json_set(object, "opaque", json_string(block->opaque));
    return pf_json_complete(object, bad);
}

static json_t *message_json(const struct pinfold_message *message)
{
    json_t *object = json_object(), *blocks = json_array();
    int bad = 0;

    for (size_t i = 0; i < message->count; i++)
        bad |= json_array_append_new(blocks, block_json(&message->blocks[i]));
    bad |= pf_json_set(object, "role",
                       json_string(message->role == PINFOLD_ROLE_USER ? "user" : "assistant"));
    bad |= pf_json_set(object, "blocks", blocks);
    return pf_json_complete(object, bad);
}

static char *conversation_text(struct pinfold_agent *agent)
{
    size_t count;
    const struct pinfold_message *messages = pinfold_agent_messages(agent, &count);
    json_t *all = json_object(), *list = json_array();
    char *text = NULL;
    int bad = 0;

    for (size_t i = 0; i < count; i++)
        bad |= json_array_append_new(list, message_json(&messages[i]));
    bad |= pf_json_set(all, "pinfold_session", json_integer(FORM));
    bad |= pf_json_set(all, "messages", list);
    if (!bad)
        text = json_dumps(all, JSON_INDENT(1));
    json_decref(all);
    return text;
}

/* Into a file of its own first: a session that was there is lost to no full disk. */
static int replace(const char *path, const char *text, struct pinfold_error *err)
{
    char *fresh = NULL;
    int fd, r = 0;

    if (asprintf(&fresh, "%s.XXXXXX", path) < 0)
        return fail(err, PINFOLD_ENOMEM, "write", path, "out of memory");
    fd = mkostemp(fresh, O_CLOEXEC); /* of mode 0600 */
    if (fd < 0) {
        r = fail_os(err, "write", path);
    } else {
        errno = pf_put(fd, text, strlen(text));
        if (errno || fsync(fd) < 0 || rename(fresh, path) < 0) {
            r = fail_os(err, "write", path);
            unlink(fresh);
        }
        close(fd);
    }
    free(fresh);
    return r;
}

int pf_agent_session_save(struct pinfold_agent *agent, const char *path, struct pinfold_error *err)
{
    char *text = conversation_text(agent);
    int r = text ? replace(path, text, err)
                 : fail(err, PINFOLD_ENOMEM, "write", path, "out of memory");

    free(text);
    return r;
}

/* ---- reading ---- */

static const char *text_of(const json_t *object, const char *name, size_t *ret_len)
{
    const json_t *value = json_object_get(object, name);

    if (ret_len)
        *ret_len = json_string_length(value);
    return json_string_value(value) ? json_string_value(value) : "";
}

static int add_block(struct pinfold_message *message, const json_t *json, struct pinfold_error *err)
{
    const char *kind = text_of(json, "kind", NULL), *id = text_of(json, "id", NULL);
    size_t len;
    const char *text = text_of(json, "text", &len);

    if (strcmp(kind, kinds[PINFOLD_BLOCK_TEXT]) == 0)
        return pinfold_message_add_text(message, text, len, err);
    if (strcmp(kind, kinds[PINFOLD_BLOCK_TOOL_USE]) == 0)
        return pinfold_message_add_tool_use(message, id, text_of(json, "name", NULL), text, len,
                                            err);
    if (strcmp(kind, kinds[PINFOLD_BLOCK_TOOL_RESULT]) == 0)
        return pinfold_message_add_tool_result(message, id, text, len,
                                               json_is_true(json_object_get(json, "error")), err);
    if (strcmp(kind, kinds[PINFOLD_BLOCK_REASONING]) == 0)
        return pinfold_message_add_reasoning(
                message, text, len, json_string_value(json_object_get(json, "opaque")), err);
    err->code = PINFOLD_EVALUE;
    snprintf(err->msg, sizeof(err->msg), "there is no kind of block \"%.40s\"", kind);
    return -PINFOLD_EVALUE;
}

static int read_message(const json_t *json, struct pinfold_message *ret, struct pinfold_error *err)
{
    const json_t *blocks = json_object_get(json, "blocks");
    int r = 0;

    ret->role = strcmp(text_of(json, "role", NULL), "assistant") == 0 ? PINFOLD_ROLE_ASSISTANT
                                                                      : PINFOLD_ROLE_USER;
    for (size_t i = 0; i < json_array_size(blocks) && r == 0; i++)
        r = add_block(ret, json_array_get(blocks, i), err);
    return r;
}

static int take_in(struct pinfold_agent *agent, const json_t *list, struct pinfold_error *err)
{
    size_t count = json_array_size(list);
    struct pinfold_message *messages = calloc(count + 1, sizeof(*messages));
    int r = 0;

    if (!messages) {
        err->code = PINFOLD_ENOMEM;
        snprintf(err->msg, sizeof(err->msg), "out of memory");
        return -PINFOLD_ENOMEM;
    }
    for (size_t i = 0; i < count && r == 0; i++)
        r = read_message(json_array_get(list, i), &messages[i], err);
    if (r == 0)
        r = pinfold_agent_set_messages(agent, messages, count, err);
    for (size_t i = 0; i < count; i++)
        pinfold_message_done(&messages[i]);
    free(messages);
    return r;
}

/* A FIFO must not hold us up. Returns NULL with errno. */
static FILE *open_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), saved = 0;
    struct stat st;
    FILE *file;

    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) < 0)
        saved = errno;
    else if (!S_ISREG(st.st_mode))
        saved = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    file = saved ? NULL : fdopen(fd, "r");
    if (file)
        return file;
    saved = saved ? saved : errno;
    close(fd);
    errno = saved;
    return NULL;
}

int pf_agent_session_load(struct pinfold_agent *agent, const char *path, struct pinfold_error *err)
{
    struct pinfold_error inner = PINFOLD_ERROR_INIT;
    json_error_t wrong;
    FILE *file = open_file(path);
    json_t *all;
    int r;

    if (!file)
        return errno == ENOENT ? 0 : fail_os(err, "read", path);
    all = json_loadf(file, JSON_ALLOW_NUL, &wrong);
    (void)fclose(file);
    if (json_integer_value(json_object_get(all, "pinfold_session")) != FORM ||
        !json_is_array(json_object_get(all, "messages")))
        r = fail(err, PINFOLD_EVALUE, "read", path,
                 all ? "it is no session of this version" : wrong.text);
    else
        r = take_in(agent, json_object_get(all, "messages"), &inner);
    if (inner.code)
        r = fail(err, inner.code, "read", path, inner.msg);
    json_decref(all);
    return r;
}

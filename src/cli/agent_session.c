/* SPDX-License-Identifier: Apache-2.0 */
/* The conversation in a file: JSON, for its owner alone to read. What is read may be anything, and
 * is taken whole or not at all. */
#include "cli/agent_session.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/json.h"
#include "cli/say.h"
#include "cli/whole_file.h"

enum { FORM = 1 };
/* More than any model takes in, and less than a machine has. */
#define FILE_MAX ((size_t)256 << 20)

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
    snprintf(err->msg, sizeof(err->msg), "%s session %.150s: %s", what, path, why);
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

char *pf_agent_session_text(struct pinfold_agent *agent)
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

/* Make a file of its own beside it: a session that was there is lost to no full disk. Returns a
 * descriptor, and its name to free(), or a negative code. */
static int make_fresh(const char *path, char **ret_fresh, struct pinfold_error *err)
{
    int fd;

    if (asprintf(ret_fresh, "%s.XXXXXX", path) < 0)
        return fail(err, PINFOLD_ENOMEM, "write", path, "out of memory");
    fd = mkostemp(*ret_fresh, O_CLOEXEC); /* of mode 0600 */
    if (fd >= 0)
        return fd;
    fd = fail_os(err, "write", path);
    free(*ret_fresh);
    return fd;
}

static int replace(const char *path, const char *text, struct pinfold_error *err)
{
    char *fresh;
    int fd = make_fresh(path, &fresh, err), r = 0;

    if (fd < 0)
        return fd;
    errno = pf_put(fd, text, strlen(text));
    if (errno || fsync(fd) < 0 || rename(fresh, path) < 0) {
        r = fail_os(err, "write", path);
        unlink(fresh);
    }
    close(fd);
    free(fresh);
    return r;
}

/* What is there may be of another, in a directory where everybody may replace his own alone. */
static bool is_kept_by_another(const char *path, const struct stat *st)
{
    const char *slash = strrchr(path, '/');
    char directory[PATH_MAX];
    struct stat above;

    snprintf(directory, sizeof(directory), "%.*s", slash ? (int)(slash - path) + 1 : 1,
             slash ? path : ".");
    return geteuid() != 0 && st->st_uid != geteuid() && stat(directory, &above) == 0 &&
           above.st_mode & S_ISVTX && above.st_uid != geteuid();
}

int pf_agent_session_check(const char *path, struct pinfold_error *err)
{
    char *fresh;
    struct stat st;
    int fd, r;

    errno = 0;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        errno = EISDIR;
    else if (lstat(path, &st) == 0)
        errno = is_kept_by_another(path, &st) ? EPERM : 0;
    else if (errno == ENOENT)
        errno = 0; /* or its directory is not there, which is told below */
    if (errno)
        return fail_os(err, "write", path);
    fd = make_fresh(path, &fresh, err);
    if (fd < 0)
        return fd;
    close(fd);
    r = unlink(fresh) < 0 ? fail_os(err, "write", path) : 0;
    free(fresh);
    return r;
}

int pf_agent_session_save(struct pinfold_agent *agent, const char *path, struct pinfold_error *err)
{
    char *text = pf_agent_session_text(agent);
    int r = !text ? fail(err, PINFOLD_ENOMEM, "write", path, "out of memory")
            : strlen(text) > FILE_MAX
                    ? fail(err, PINFOLD_EVALUE, "write", path, "larger than 256 MiB")
                    : replace(path, text, err);

    free(text);
    return r;
}

/* ---- reading ---- */

static int __attribute__((format(printf, 2, 3)))
wrong(struct pinfold_error *err, const char *format, ...)
{
    va_list args;

    err->code = PINFOLD_EVALUE;
    va_start(args, format);
    vsnprintf(err->msg, sizeof(err->msg), format, args);
    va_end(args);
    return -PINFOLD_EVALUE;
}

static int nomem(struct pinfold_error *err)
{
    err->code = PINFOLD_ENOMEM;
    snprintf(err->msg, sizeof(err->msg), "out of memory");
    return -PINFOLD_ENOMEM;
}

/* A word of a block: a text without NUL, or NULL where there is none. Returns false for what is no
 * word. */
static bool take_word(const json_t *object, const char *name, const char **ret)
{
    const json_t *value = json_object_get(object, name);

    *ret = json_string_value(value);
    return !value || (*ret && strlen(*ret) == json_string_length(value));
}

static int add_block(struct pinfold_message *message, const json_t *json, struct pinfold_error *err)
{
    const json_t *text = json_object_get(json, "text"), *error = json_object_get(json, "error");
    const char *kind, *id, *name, *opaque, *value = json_string_value(text);
    size_t len = json_string_length(text);

    if (!take_word(json, "kind", &kind) || !kind)
        return wrong(err, "it has no kind");
    if (!take_word(json, "id", &id) || !take_word(json, "name", &name) ||
        !take_word(json, "opaque", &opaque) || !value || (error && !json_is_boolean(error)))
        return wrong(err, "one of text, id, name, opaque, error is missing or is not what it is "
                          "in sessions");
    if (strcmp(kind, kinds[PINFOLD_BLOCK_TEXT]) == 0)
        return pinfold_message_add_text(message, value, len, err);
    if (strcmp(kind, kinds[PINFOLD_BLOCK_TOOL_USE]) == 0)
        return pinfold_message_add_tool_use(message, id, name, value, len, err);
    if (strcmp(kind, kinds[PINFOLD_BLOCK_TOOL_RESULT]) == 0)
        return pinfold_message_add_tool_result(message, id, value, len, json_is_true(error), err);
    if (strcmp(kind, kinds[PINFOLD_BLOCK_REASONING]) == 0)
        return pinfold_message_add_reasoning(message, value, len, opaque, err);
    return wrong(err, "its kind is none of text, tool_use, tool_result, reasoning");
}

static int read_message(const json_t *json, size_t number, struct pinfold_message *ret,
                        struct pinfold_error *err)
{
    const json_t *blocks = json_object_get(json, "blocks");
    struct pinfold_error inner = PINFOLD_ERROR_INIT;
    const char *role;
    int r = 0;

    if (!take_word(json, "role", &role) || !role ||
        (strcmp(role, "user") != 0 && strcmp(role, "assistant") != 0))
        return wrong(err, "message %zu: its role is neither user nor assistant", number);
    if (!json_is_array(blocks))
        return wrong(err, "message %zu: its blocks are no list", number);
    ret->role = *role == 'u' ? PINFOLD_ROLE_USER : PINFOLD_ROLE_ASSISTANT;
    for (size_t i = 0; i < json_array_size(blocks) && r == 0; i++) {
        r = add_block(ret, json_array_get(blocks, i), &inner);
        if (r < 0) {
            err->code = inner.code;
            snprintf(err->msg, sizeof(err->msg), "message %zu, block %zu: %.150s", number, i + 1,
                     inner.msg);
        }
    }
    return r;
}

/* ---- what no model would take ---- */

/* Messages of one role, one after another: a model takes them for one. */
struct run {
    const struct pinfold_message *messages;
    size_t begin, end;
};

static struct run run_from(const struct pinfold_message *messages, size_t begin, size_t count)
{
    struct run run = { messages, begin, begin };

    while (run.end < count && messages[run.end].role == messages[begin].role)
        run.end++;
    return run;
}

/* How many blocks of a kind with an id there are. */
static size_t count_id(struct run run, enum pinfold_block_kind kind, const char *id)
{
    size_t count = 0;

    for (size_t i = run.begin; i < run.end; i++)
        for (size_t j = 0; j < run.messages[i].count; j++) {
            const struct pinfold_block *block = &run.messages[i].blocks[j];
            count += block->kind == kind && strcmp(block->id, id) == 0;
        }
    return count;
}

/* One block: it is of the role whose message it stands in, and a call has its one result in the
 * messages after it, as a result has its call in those before it. */
static int check_block(const struct pinfold_block *block, enum pinfold_role role, struct run before,
                       struct run after, struct pinfold_error *err)
{
    bool calls = block->kind == PINFOLD_BLOCK_TOOL_USE;
    bool results = block->kind == PINFOLD_BLOCK_TOOL_RESULT;
    size_t count;

    if (results && role != PINFOLD_ROLE_USER)
        return wrong(err,
                     "the result of a tool is the user's, and this is the assistant's message");
    if (!results && block->kind != PINFOLD_BLOCK_TEXT && role == PINFOLD_ROLE_USER)
        return wrong(err, "a %s is the assistant's, and this is the user's message",
                     kinds[block->kind]);
    if (!calls && !results)
        return 0;
    count = calls ? count_id(after, PINFOLD_BLOCK_TOOL_RESULT, block->id)
                  : count_id(before, PINFOLD_BLOCK_TOOL_USE, block->id);
    if (count == 1)
        return 0;
    return wrong(err, "%s %s %s it; mend the file, or name a new one",
                 calls ? "the call of a tool has" : "the result of a tool has",
                 count ? "more than one" : "no",
                 calls ? "result in the message after" : "call in the message before");
}

/* It would be refused when it goes on, by a provider in words of its own. */
static int check_conversation(const struct pinfold_message *messages, size_t count,
                              struct pinfold_error *err)
{
    struct run before = { messages, 0, 0 };
    struct pinfold_error inner = PINFOLD_ERROR_INIT;

    for (size_t at = 0; at < count;) {
        struct run run = run_from(messages, at, count);
        struct run after = run_from(messages, run.end, count);
        for (size_t i = run.begin; i < run.end; i++)
            for (size_t j = 0; j < messages[i].count; j++)
                if (check_block(&messages[i].blocks[j], messages[i].role, before, after, &inner) <
                    0)
                    return wrong(err, "message %zu, block %zu: %.150s", i + 1, j + 1, inner.msg);
        before = run;
        at = run.end;
    }
    return 0;
}

static int take_in(struct pinfold_agent *agent, const json_t *list, struct pinfold_error *err)
{
    size_t count = json_array_size(list);
    struct pinfold_message *messages = calloc(count + 1, sizeof(*messages));
    int r = 0;

    if (!messages)
        return nomem(err);
    for (size_t i = 0; i < count && r == 0; i++)
        r = read_message(json_array_get(list, i), i + 1, &messages[i], err);
    if (r == 0)
        r = check_conversation(messages, count, err);
    if (r == 0)
        r = pinfold_agent_set_messages(agent, messages, count, err);
    for (size_t i = 0; i < count; i++)
        pinfold_message_done(&messages[i]);
    free(messages);
    return r;
}

/* jansson quotes what it stumbled over, which may be no text at all. */
static int no_json(struct pinfold_error *err, const json_error_t *why)
{
    char *text = pf_printable(why->text);
    int r = text ? wrong(err, "line %d: %s", why->line, text) : nomem(err);

    free(text);
    return r;
}

int pf_agent_session_read(struct pinfold_agent *agent, const char *text, size_t len,
                          struct pinfold_error *err)
{
    json_error_t why = { .line = 0 };
    json_t *all = json_loadb(text, len, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &why);
    int r;

    if (all && json_integer_value(json_object_get(all, "pinfold_session")) == FORM &&
        json_is_array(json_object_get(all, "messages")))
        r = take_in(agent, json_object_get(all, "messages"), err);
    else if (all)
        r = wrong(err, "it is no session of this version");
    else if (!why.text[0] || json_error_code(&why) == json_error_out_of_memory)
        r = nomem(err); /* jansson often gives no reason at all then */
    else
        r = no_json(err, &why);
    json_decref(all);
    return r;
}

int pf_agent_session_load(struct pinfold_agent *agent, const char *path, struct pinfold_error *err)
{
    struct pinfold_error inner = PINFOLD_ERROR_INIT;
    struct pf_whole_file file;
    int r;

    errno = pf_whole_file(path, FILE_MAX, &file);
    if (errno)
        return errno == ENOENT ? 0 : fail_os(err, "read", path);
    r = pf_agent_session_read(agent, file.text, file.len, &inner);
    if (r < 0)
        r = fail(err, inner.code, "read", path, inner.msg);
    free(file.text);
    return r;
}

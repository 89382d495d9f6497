/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model_script.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "agent/model.h"
#include "agent/model_reply.h"
#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/utf8.h"

struct scripted {
    struct pf_script script;
    char *shown;
    pthread_mutex_t lock; /* guards what is left of each turn */
};

/* ---- does a request fit? ---- */

/* Why a request does not fit a turn; "" if it does. */
struct misfit {
    char text[200];
};

typedef bool (*has_fn)(const void *where, const char *word, size_t len);

static bool in_block(const void *where, const char *word, size_t len)
{
    const struct pinfold_block *block = where;

    return memmem(block->text, block->text_len, word, len);
}

/* In one of its blocks, of whatever kind. */
static bool in_message(const void *where, const char *word, size_t len)
{
    const struct pinfold_message *message = where;

    for (size_t i = 0; i < message->count; i++)
        if (in_block(&message->blocks[i], word, len))
            return true;
    return false;
}

static bool in_text(const void *where, const char *word, size_t len)
{
    return where && memmem(where, strlen(where), word, len);
}

/* Whether all words, one or a list, are there. */
static bool has_words(const json_t *words, has_fn has, const void *where, const char *what,
                      struct misfit *misfit)
{
    size_t count = json_is_array(words) ? json_array_size(words) : words ? 1 : 0;

    for (size_t i = 0; i < count; i++) {
        const json_t *word = json_is_array(words) ? json_array_get(words, i) : words;
        if (!has(where, json_string_value(word), json_string_length(word))) {
            snprintf(misfit->text, sizeof(misfit->text), "%s does not hold \"%s\"", what,
                     PF_QUOTE(json_string_value(word)));
            return false;
        }
    }
    return true;
}

static bool offers(const struct pinfold_model_request *request, const char *tool)
{
    for (size_t i = 0; i < request->tool_count; i++)
        if (strcmp(request->tools[i].name, tool) == 0)
            return true;
    return false;
}

static bool tools_fit(const json_t *names, bool wanted, const struct pinfold_model_request *request,
                      struct misfit *misfit)
{
    json_t *name;
    size_t i;

    json_array_foreach(names, i, name)
        if (offers(request, json_string_value(name)) != wanted) {
            snprintf(misfit->text, sizeof(misfit->text), "the tool \"%s\" is %soffered",
                     PF_QUOTE(json_string_value(name)), wanted ? "not " : "");
            return false;
        }
    return true;
}

/* The results of tools in the last message, in their order. */
static const struct pinfold_block *result_at(const struct pinfold_message *message, size_t index)
{
    for (size_t i = 0; i < message->count; i++)
        if (message->blocks[i].kind == PINFOLD_BLOCK_TOOL_RESULT && index-- == 0)
            return &message->blocks[i];
    return NULL;
}

static bool result_fits(const json_t *wanted, size_t index, const struct pinfold_block *result,
                        struct misfit *misfit)
{
    const char *id = pf_json_text(wanted, "id", NULL);
    const json_t *error = json_object_get(wanted, "error");
    char what[40];

    snprintf(what, sizeof(what), "result %zu", index);
    if (!result)
        snprintf(misfit->text, sizeof(misfit->text), "there is no %s in the last message", what);
    else if (id && strcmp(result->id, id) != 0)
        snprintf(misfit->text, sizeof(misfit->text), "%s is that of \"%s\", not of \"%s\"", what,
                 PF_QUOTE(result->id), PF_QUOTE(id));
    else if (error && json_is_true(error) != result->is_error)
        snprintf(misfit->text, sizeof(misfit->text), "%s is %s error", what,
                 result->is_error ? "an" : "no");
    else
        return has_words(json_object_get(wanted, "contains"), in_block, result, what, misfit);
    return false;
}

static bool results_fit(const json_t *wanted, const struct pinfold_message *last,
                        struct misfit *misfit)
{
    json_t *item;
    size_t i;

    json_array_foreach(wanted, i, item)
        if (!result_fits(item, i, result_at(last, i), misfit))
            return false;
    if (wanted && result_at(last, json_array_size(wanted))) {
        snprintf(misfit->text, sizeof(misfit->text), "there are more than %zu results",
                 json_array_size(wanted));
        return false;
    }
    return true;
}

static bool fits(const struct pf_script_turn *turn, const struct pinfold_model_request *request,
                 struct misfit *misfit)
{
    const json_t *expect = turn->expect, *messages = json_object_get(expect, "messages");
    const struct pinfold_message *last = &request->messages[request->message_count - 1];

    if (messages && (size_t)json_integer_value(messages) != request->message_count) {
        snprintf(misfit->text, sizeof(misfit->text), "there are %zu messages, not %zu",
                 request->message_count, (size_t)json_integer_value(messages));
        return false;
    }
    return has_words(json_object_get(expect, "system"), in_text, request->system,
                     "the system prompt", misfit) &&
           has_words(json_object_get(expect, "first"), in_message, &request->messages[0],
                     "the first message", misfit) &&
           has_words(json_object_get(expect, "last"), in_message, last, "the last message",
                     misfit) &&
           tools_fit(json_object_get(expect, "tools"), true, request, misfit) &&
           tools_fit(json_object_get(expect, "no_tools"), false, request, misfit) &&
           results_fit(json_object_get(expect, "results"), last, misfit);
}

/* ---- which turn is it? ---- */

static int no_turn(const struct scripted *model, const struct pinfold_model_request *request,
                   const struct misfit *misfit, size_t turn, struct pinfold_error *err)
{
    char shown[PF_QUOTE_MAX];

    pf_quote(model->shown, shown);
    if (turn == 0)
        return pf_fail(err, PINFOLD_EBACKEND,
                       "script %s: its turns are used up (%zu), and the conversation has %zu "
                       "messages",
                       shown, model->script.count, request->message_count);
    if (model->script.any_order)
        return pf_fail(err, PINFOLD_EBACKEND,
                       "script %s: no turn that is left fits; the last of them, %zu: %s", shown,
                       turn, misfit->text);
    return pf_fail(err, PINFOLD_EBACKEND, "script %s: turn %zu does not fit: %s", shown, turn,
                   misfit->text);
}

static int take_turn(struct scripted *model, const struct pinfold_model_request *request,
                     const struct pf_script_turn **ret, struct pinfold_error *err)
{
    struct misfit misfit = { "" };
    size_t tried = 0;
    struct pf_script_turn *found = NULL;

    pthread_mutex_lock(&model->lock);
    for (size_t i = 0; i < model->script.count && !found; i++) {
        struct pf_script_turn *turn = &model->script.turns[i];
        if (turn->left == 0)
            continue;
        tried = i + 1;
        if (fits(turn, request, &misfit))
            found = turn;
        else if (!model->script.any_order)
            break;
    }
    if (found && found->left != UINT_MAX)
        found->left--;
    pthread_mutex_unlock(&model->lock);
    *ret = found;
    return found ? 0 : no_turn(model, request, &misfit, tried, err);
}

/* ---- saying it ---- */

struct speaker {
    const struct pf_script_turn *turn;
    struct pf_reply reply;
    struct pinfold_cancel *cancel;
    struct pinfold_error *err;
};

/* How many bytes the next so many characters are. */
static size_t piece(const char *text, size_t len, size_t chunk)
{
    size_t at = 0;

    if (chunk == 0)
        return len;
    for (; chunk > 0 && at < len; chunk--)
        at += pf_utf8_width(text + at, len - at);
    return at;
}

static int hesitate(const struct speaker *speaker)
{
    return pf_cancel_wait(speaker->cancel, NULL,
                          pf_clock_deadline(speaker->turn->delay_ms * PF_NS_PER_MS), speaker->err);
}

static int say_text(struct speaker *speaker, size_t block, const char *text, size_t len)
{
    int r = 0;

    for (size_t at = 0, n; at < len && r == 0; at += n) {
        n = piece(text + at, len - at, speaker->turn->chunk);
        r = hesitate(speaker);
        if (r == 0)
            r = pf_reply_add(&speaker->reply, block, text + at, n, speaker->err);
    }
    return r;
}

static int say_tool(struct speaker *speaker, const json_t *json)
{
    const json_t *input = json_object_get(json, "input");
    size_t block, len = 0;
    const char *raw = pf_json_text(json, "raw_input", &len);
    _cleanup_free_ char *dumped = input ? json_dumps(input, JSON_COMPACT) : NULL;
    int r;

    if (input && !dumped)
        return pf_fail_nomem(speaker->err);
    r = pf_reply_open(&speaker->reply, PINFOLD_BLOCK_TOOL_USE, pf_json_text(json, "id", NULL),
                      pf_json_text(json, "tool", NULL), &block, speaker->err);
    if (r == 0)
        r = dumped ? say_text(speaker, block, dumped, strlen(dumped))
                   : say_text(speaker, block, raw ? raw : "", len);
    return r < 0 ? r : pf_reply_close(&speaker->reply, block, speaker->err);
}

static int say_block(struct speaker *speaker, const json_t *json)
{
    const char *thought = pf_json_text(json, "reasoning", NULL), *text = thought;
    const char *opaque = pf_json_text(json, "opaque", NULL);
    size_t block, len = json_string_length(json_object_get(json, "reasoning"));
    int r;

    if (json_object_get(json, "tool"))
        return say_tool(speaker, json);
    if (!thought) {
        const json_t *plain = json_is_string(json) ? json : json_object_get(json, "text");
        text = json_string_value(plain);
        len = json_string_length(plain);
    }
    r = pf_reply_open(&speaker->reply, thought ? PINFOLD_BLOCK_REASONING : PINFOLD_BLOCK_TEXT, NULL,
                      NULL, &block, speaker->err);
    if (r == 0)
        r = say_text(speaker, block, text, len);
    if (r == 0 && opaque)
        r = pf_reply_set_opaque(&speaker->reply, block, strdup(opaque), speaker->err);
    return r < 0 ? r : pf_reply_close(&speaker->reply, block, speaker->err);
}

static int say_all(struct speaker *speaker)
{
    json_t *said = speaker->turn->reply, *block;
    size_t i;
    int r = 0;

    if (json_is_string(said))
        return say_block(speaker, said);
    json_array_foreach(said, i, block) {
        r = say_block(speaker, block);
        if (r < 0)
            break;
    }
    return r;
}

static int fail_as_told(const struct scripted *model, const json_t *error,
                        struct pinfold_error *err)
{
    const char *message = pf_json_text(error, "message", NULL);
    char text[sizeof(err->msg)];

    snprintf(text, sizeof(text), "script %s: %s", PF_QUOTE(model->shown), PF_QUOTE(message));
    return pf_model_refused((int)pf_json_count(error, "status"),
                            json_is_true(json_object_get(error, "retryable")), text, err);
}

static int converse(void *state, const struct pinfold_model_request *request,
                    struct pinfold_model_reply *ret, struct pinfold_cancel *cancel,
                    struct pinfold_error *err)
{
    struct scripted *model = state;
    struct speaker speaker = { .reply = { .request = request, .out = ret },
                               .cancel = cancel,
                               .err = err };
    int r = take_turn(model, request, &speaker.turn, err);

    if (r < 0)
        return r;
    r = hesitate(&speaker);
    if (r == 0)
        r = say_all(&speaker);
    if (r == 0 && speaker.turn->error)
        r = fail_as_told(model, speaker.turn->error, err);
    if (r == 0)
        r = pf_reply_finish(&speaker.reply, speaker.turn->stop, speaker.turn->detail, err);
    if (r == 0)
        ret->usage = speaker.turn->usage;
    pf_reply_done(&speaker.reply);
    return r;
}

/* ---- life ---- */

static void scripted_free(void *state)
{
    struct scripted *model = state;

    if (!model)
        return;
    pf_script_done(&model->script);
    pthread_mutex_destroy(&model->lock);
    free(model->shown);
    free(model);
}

static void scripted_freep(struct scripted **model)
{
    scripted_free(*model);
}

static int make(const char *json, size_t len, const char *shown, struct pinfold_model **ret_model,
                struct pinfold_error *err)
{
    static const struct pinfold_model_ops ops = {
        .size = sizeof(ops), .provider = "scripted", .converse = converse, .free = scripted_free
    };
    PF_CLEANUP(scripted_freep) struct scripted *model = calloc(1, sizeof(*model));
    int r;

    if (!model)
        return pf_fail_nomem(err);
    pthread_mutex_init(&model->lock, NULL);
    model->shown = strdup(shown);
    if (!model->shown)
        return pf_fail_nomem(err);
    r = pf_script_read(json, len, shown, &model->script, err);
    if (r == 0)
        r = pinfold_model_new(&ops, model, model->script.name, ret_model, err);
    if (r == 0)
        model = NULL;
    return r;
}

int pinfold_model_scripted_from_memory(const char *json, size_t len,
                                       struct pinfold_model **ret_model, struct pinfold_error *err)
{
    return make(json, len, "in memory", ret_model, err);
}

static int read_all(int fd, const char *path, struct pf_buf *to, struct pinfold_error *err)
{
    ssize_t n = 1;

    while (n > 0) {
        int r = pf_buf_reserve(to, 65536);
        if (r == -PINFOLD_EVALUE)
            return pf_fail(err, PINFOLD_EVALUE, "script %s: larger than %zu bytes", PF_QUOTE(path),
                           PF_SCRIPT_MAX);
        if (r < 0)
            return pf_fail_nomem(err);
        n = TEMP_FAILURE_RETRY(read(fd, to->data + to->len, 65536));
        if (n < 0)
            return pf_fail_os(err, errno, "read script %s", PF_QUOTE(path));
        to->len += (size_t)n;
    }
    return 0;
}

/* A FIFO that nobody writes would hang: it is empty then. Of one that somebody writes, a shell's
 * <(...) say, the end is waited for. */
static int open_script(const char *path)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    return fd >= 0 && fcntl(fd, F_SETFL, 0) == 0 ? TAKE_FD(fd) : -1;
}

int pinfold_model_scripted_new(const char *path, struct pinfold_model **ret_model,
                               struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(PF_SCRIPT_MAX + 65536);
    _cleanup_close_ int fd = open_script(path);
    int r;

    if (fd < 0)
        return pf_fail_os(err, errno, "open script %s", PF_QUOTE(path));
    r = read_all(fd, path, &text, err);
    return r < 0 ? r : make(text.data, text.len, path, ret_model, err);
}

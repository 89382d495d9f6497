/* SPDX-License-Identifier: Apache-2.0 */
/* An agent's conversation. It always has a form that a model can go on with. */
#include "agent/agent.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/utf8.h"

enum { DOCUMENT_MAX = 100000 };

int pf_invoking_begin(struct pinfold_agent *agent, struct pinfold_error *err)
{
    bool busy;

    pthread_mutex_lock(&agent->lock);
    busy = agent->invoking;
    agent->invoking = true;
    pthread_mutex_unlock(&agent->lock);
    return busy ? pf_fail(err, PINFOLD_EBUSY, "agent %s has an invocation under way",
                          PF_QUOTE(agent->id))
                : 0;
}

void pf_invoking_end(struct pinfold_agent *agent)
{
    pthread_mutex_lock(&agent->lock);
    agent->invoking = false;
    pthread_mutex_unlock(&agent->lock);
}

const struct pinfold_message *pinfold_agent_messages(struct pinfold_agent *agent, size_t *ret_count)
{
    *ret_count = agent->message_count;
    return agent->messages;
}

void pf_messages_clear(struct pinfold_agent *agent)
{
    for (size_t i = 0; i < agent->message_count; i++)
        pinfold_message_done(&agent->messages[i]);
    free(agent->messages);
    agent->messages = NULL;
    agent->message_count = agent->message_capacity = 0;
}

static int reserve(struct pinfold_agent *agent, size_t more)
{
    size_t capacity = agent->message_capacity ? agent->message_capacity : 8;
    struct pinfold_message *messages;

    while (capacity < agent->message_count + more)
        capacity *= 2;
    if (capacity == agent->message_capacity)
        return 0;
    messages = reallocarray(agent->messages, capacity, sizeof(*messages));
    if (!messages)
        return -PINFOLD_ENOMEM;
    agent->messages = messages;
    agent->message_capacity = capacity;
    return 0;
}

int pf_messages_add(struct pinfold_agent *agent, struct pinfold_message *message,
                    struct pinfold_error *err)
{
    int r;

    pthread_mutex_lock(&agent->lock);
    r = reserve(agent, 1);
    if (r == 0) {
        agent->messages[agent->message_count++] = *message;
        *message = (struct pinfold_message){ 0 };
    }
    pthread_mutex_unlock(&agent->lock);
    if (r < 0)
        return pf_fail_nomem(err);
    return pf_hooks_message(agent, &agent->messages[agent->message_count - 1], err);
}

int pf_messages_add_prompt(struct pinfold_agent *agent, const char *prompt,
                           struct pinfold_error *err)
{
    struct pinfold_message message = { .role = PINFOLD_ROLE_USER }, *last;
    int r;

    if (agent->message_count > 0) {
        last = &agent->messages[agent->message_count - 1];
        if (last->role == PINFOLD_ROLE_USER) {
            pthread_mutex_lock(&agent->lock);
            r = pinfold_message_add_text(last, prompt, strlen(prompt), err);
            pthread_mutex_unlock(&agent->lock);
            return r < 0 ? r : pf_hooks_message(agent, last, err);
        }
    }
    r = pinfold_message_add_text(&message, prompt, strlen(prompt), err);
    if (r == 0)
        r = pf_messages_add(agent, &message, err);
    pinfold_message_done(&message);
    return r;
}

/* Room for one more, too. */
static int copy_all(const struct pinfold_message *messages, size_t count,
                    struct pinfold_message **ret, struct pinfold_error *err)
{
    struct pinfold_message *copies = calloc(count + 1, sizeof(*copies));
    size_t copied = 0;
    int r = copies ? 0 : pf_fail_nomem(err);

    while (r == 0 && copied < count) {
        r = pinfold_message_copy(&copies[copied], &messages[copied], err);
        copied += r == 0;
    }
    if (r == 0) {
        *ret = copies;
        return 0;
    }
    for (size_t i = 0; i < copied; i++)
        pinfold_message_done(&copies[i]);
    free(copies);
    return r;
}

int pinfold_agent_copy_messages(struct pinfold_agent *agent, struct pinfold_message **ret_messages,
                                size_t *ret_count, struct pinfold_error *err)
{
    int r;

    pthread_mutex_lock(&agent->lock);
    r = copy_all(agent->messages, agent->message_count, ret_messages, err);
    if (r == 0)
        *ret_count = agent->message_count;
    pthread_mutex_unlock(&agent->lock);
    return r;
}

int pinfold_agent_set_messages(struct pinfold_agent *agent, const struct pinfold_message *messages,
                               size_t count, struct pinfold_error *err)
{
    struct pinfold_message *copies;
    int r = pf_invoking_begin(agent, err);

    if (r < 0)
        return r;
    r = copy_all(messages, count, &copies, err);
    if (r == 0) {
        pthread_mutex_lock(&agent->lock);
        pf_messages_clear(agent);
        agent->messages = copies;
        agent->message_count = count;
        agent->message_capacity = count + 1;
        pthread_mutex_unlock(&agent->lock);
    }
    pf_invoking_end(agent);
    return r;
}

/* Whether a document is text that anybody can read. */
static bool is_readable(const struct pinfold_tool_content *content)
{
    static const char *const formats[] = { "txt", "csv", "md", "html", "plain" };

    for (size_t i = 0; content->kind == PINFOLD_TOOL_DOCUMENT && i < PF_COUNT(formats); i++)
        if (strcmp(content->format, formats[i]) == 0)
            return pf_utf8_valid(content->data.data, content->data.len, NULL);
    return false;
}

static int add_document(struct pf_buf *out, const struct pinfold_tool_content *content)
{
    size_t len = content->data.len > DOCUMENT_MAX ? pf_utf8_floor(content->data.data, DOCUMENT_MAX)
                                                  : content->data.len;
    int r = pf_buf_printf(out, "[document: %s, %s]\n", content->format,
                          content->name ? content->name : "document");

    if (r == 0)
        r = pf_buf_append(out, content->data.data, len);
    if (r == 0 && len < content->data.len)
        r = pf_buf_printf(out, "\n[%zu of %zu bytes are shown.]", len, content->data.len);
    return r;
}

/* Results are text to models: what is none is named. */
static int add_content(struct pf_buf *out, const struct pinfold_tool_content *content)
{
    if (content->kind == PINFOLD_TOOL_TEXT || content->kind == PINFOLD_TOOL_JSON)
        return pf_buf_append(out, content->data.data, content->data.len);
    if (is_readable(content))
        return add_document(out, content);
    return pf_buf_printf(out, "[%s: %s, %zu bytes]",
                         content->kind == PINFOLD_TOOL_IMAGE ? "image" : "document",
                         content->format, content->data.len);
}

int pf_message_add_result(struct pinfold_message *message, const char *id,
                          const struct pinfold_tool_result *result, struct pinfold_error *err)
{
    struct pf_buf text = PF_BUF_INIT(PF_BUF_UNLIMITED);
    int r = 0;

    for (size_t i = 0; r == 0 && i < result->count; i++) {
        r = i > 0 ? pf_buf_append(&text, "\n", 1) : 0;
        if (r == 0)
            r = add_content(&text, &result->items[i]);
    }
    r = r < 0 ? pf_fail_nomem(err)
              : pinfold_message_add_tool_result(message, id, text.data ? text.data : "", text.len,
                                                result->is_error, err);
    pf_buf_done(&text);
    return r;
}

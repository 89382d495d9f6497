/* SPDX-License-Identifier: Apache-2.0 */
/* ContextOffloader: what is too long for a conversation is stored, and leaves a preview. */
#include "agent/offload.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/storage.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"

enum { MAX_RESULT_TOKENS = 2500, PREVIEW_TOKENS = 1000, CHARACTERS_PER_TOKEN = 4 };

const char pf_offloader_name[] = "context_offloader";

struct offloader {
    struct pinfold_storage *storage;
    uint32_t max_tokens, preview_tokens;
    bool retrieval;
    char **tool_names; /* NULL: all */
};

/* ---- counting ---- */

static uint64_t count_characters(const struct pinfold_bytes *text)
{
    uint64_t count = 0;

    for (size_t i = 0; i < text->len; i++)
        count += ((unsigned char)text->data[i] & 0xc0) != 0x80;
    return count;
}

uint64_t pf_result_tokens(const struct pinfold_tool_result *result)
{
    uint64_t tokens = 0;

    for (size_t i = 0; i < result->count; i++) {
        const struct pinfold_tool_content *one = &result->items[i];

        if (one->kind == PINFOLD_TOOL_TEXT)
            tokens += (count_characters(&one->data) + 3) / 4;
        else if (one->kind == PINFOLD_TOOL_JSON)
            tokens += (count_characters(&one->data) + 1) / 2;
    }
    return tokens;
}

int pf_append_count(struct pf_buf *out, uint64_t number)
{
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%" PRIu64, number), r = 0;

    for (int i = 0; r == 0 && i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            r = pf_buf_append(out, ",", 1);
        if (r == 0)
            r = pf_buf_append(out, digits + i, 1);
    }
    return r;
}

/* ---- storing ---- */

static bool is_stored(const struct pinfold_tool_content *content)
{
    return content->data.len > 0;
}

static int store_block(struct offloader *offloader, const struct pinfold_after_tool_call *event,
                       size_t index, char **ret_reference, struct pinfold_error *err)
{
    const struct pinfold_tool_content *content = &event->result->items[index];
    _cleanup_free_ char *key = NULL, *type = NULL;
    bool text = content->kind == PINFOLD_TOOL_TEXT, json = content->kind == PINFOLD_TOOL_JSON;

    if (asprintf(&key, "%s_%zu", event->tool_use_id, index) < 0) {
        key = NULL;
        return pf_fail_nomem(err);
    }
    if (asprintf(&type, "%s/%s",
                 text                                  ? "text"
                 : content->kind == PINFOLD_TOOL_IMAGE ? "image"
                                                       : "application",
                 text   ? "plain"
                 : json ? "json"
                        : content->format) < 0) {
        type = NULL;
        return pf_fail_nomem(err);
    }
    return pf_storage_store(offloader->storage, key, &content->data, type, ret_reference,
                            event->token, err);
}

/* One entry for each block, NULL where nothing was stored: so that a reference is always that of
 * its own block. */
static int store_all(struct offloader *offloader, const struct pinfold_after_tool_call *event,
                     char **references, struct pinfold_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < event->result->count; i++)
        if (is_stored(&event->result->items[i]))
            r = store_block(offloader, event, i, &references[i], err);
    return r;
}

/* ---- what takes its place ---- */

/* The first characters of the text and JSON blocks. */
static int add_preview(struct pf_buf *out, const struct pinfold_tool_result *result,
                       uint64_t characters)
{
    bool first = true;
    int r = 0;

    for (size_t i = 0; r == 0 && i < result->count && characters > 0; i++) {
        const struct pinfold_tool_content *one = &result->items[i];
        size_t len = 0;

        if (one->kind != PINFOLD_TOOL_TEXT && one->kind != PINFOLD_TOOL_JSON)
            continue;
        if (!first) {
            r = pf_buf_append(out, "\n", 1);
            characters--;
        }
        first = false;
        for (; len < one->data.len; len++) {
            bool starts = ((unsigned char)one->data.data[len] & 0xc0) != 0x80;

            if (starts && characters == 0)
                break;
            characters -= starts;
        }
        if (r == 0)
            r = pf_buf_append(out, one->data.data, len);
    }
    return r;
}

static int add_reference(struct pf_buf *out, const struct pinfold_tool_content *content,
                         const char *reference)
{
    bool text = content->kind == PINFOLD_TOOL_TEXT;
    int r = pf_buf_printf(out, "  %s (", reference);

    if (r == 0 && content->kind == PINFOLD_TOOL_DOCUMENT)
        r = pf_buf_printf(out, "%s, ", content->name ? content->name : "document");
    else if (r == 0 && content->kind == PINFOLD_TOOL_IMAGE)
        r = pf_buf_printf(out, "image/%s, ", content->format);
    else if (r == 0)
        r = pf_buf_append_text(out, text ? "text, " : "json, ");
    if (r == 0)
        r = pf_append_count(out, text ? count_characters(&content->data) : content->data.len);
    return r < 0 ? r : pf_buf_append_text(out, text ? " chars)\n" : " bytes)\n");
}

static int add_header(struct pf_buf *out, const struct offloader *offloader,
                      const struct pinfold_tool_result *result)
{
    int r = pf_buf_printf(out, "[Offloaded: %zu blocks, ~", result->count);

    if (r == 0)
        r = pf_append_count(out, pf_result_tokens(result));
    if (r == 0)
        r = pf_buf_append_text(out,
                               " tokens]\n"
                               "This result was moved out of the conversation because of its size. "
                               "Work from the preview below where that is enough; your other tools "
                               "reach the data itself where it still is.\n");
    if (r == 0 && offloader->retrieval)
        r = pf_buf_printf(out,
                          "%s fetches what was stored, whole, by lines, or the lines that contain "
                          "a text.\n",
                          pf_retrieval_tool_name);
    return r < 0 ? r : pf_buf_append(out, "\n", 1);
}

static int write_text(struct pf_buf *out, const struct offloader *offloader,
                      const struct pinfold_tool_result *result, char *const *references)
{
    int r = add_header(out, offloader, result);

    if (r == 0)
        r = add_preview(out, result, (uint64_t)offloader->preview_tokens * CHARACTERS_PER_TOKEN);
    if (r == 0)
        r = pf_buf_append_text(out, "\n\n[Stored references:]\n");
    for (size_t i = 0; r == 0 && i < result->count; i++)
        if (references[i])
            r = add_reference(out, &result->items[i], references[i]);
    return r;
}

/* What stands where an image or a document was. */
static int add_placeholder(struct pinfold_tool_result *to,
                           const struct pinfold_tool_content *content, const char *reference)
{
    struct pf_buf text = PF_BUF_INIT(PF_BUF_UNLIMITED);
    bool image = content->kind == PINFOLD_TOOL_IMAGE;
    int r = pf_buf_printf(&text, "[%s: %s, ", image ? "image" : "document", content->format);

    if (r == 0 && !image)
        r = pf_buf_printf(&text, "%s, ", content->name ? content->name : "document");
    if (r == 0)
        r = pf_buf_printf(&text, "%zu bytes%s%s]", content->data.len, reference ? " | ref: " : "",
                          reference ? reference : "");
    if (r == 0)
        r = pf_tool_result_text(to, &text, NULL);
    pf_buf_done(&text);
    return r;
}

static int make_replacement(const struct offloader *offloader,
                            const struct pinfold_tool_result *result, char *const *references,
                            struct pinfold_tool_result *to)
{
    struct pf_buf text = PF_BUF_INIT(PF_BUF_UNLIMITED);
    int r = write_text(&text, offloader, result, references);

    to->is_error = result->is_error;
    if (r == 0)
        r = pf_tool_result_text(to, &text, NULL);
    for (size_t i = 0; r == 0 && i < result->count; i++)
        if (result->items[i].kind == PINFOLD_TOOL_IMAGE ||
            result->items[i].kind == PINFOLD_TOOL_DOCUMENT)
            r = add_placeholder(to, &result->items[i], references[i]);
    pf_buf_done(&text);
    return r;
}

static bool concerns(const struct offloader *offloader, const struct pinfold_after_tool_call *event)
{
    bool listed = !offloader->tool_names;

    if (event->cancel || (offloader->retrieval && strcmp(event->name, pf_retrieval_tool_name) == 0))
        return false;
    for (size_t i = 0; !listed && offloader->tool_names[i]; i++)
        listed = strcmp(offloader->tool_names[i], event->name) == 0;
    return listed && pf_result_tokens(event->result) > offloader->max_tokens;
}

/* Whatever goes wrong here, the model gets the result as it was. */
static int after_tool_call(void *ctx, struct pinfold_after_tool_call *event,
                           struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_tool_result_done) struct pinfold_tool_result replacement = { 0 };
    struct pinfold_error local = PINFOLD_ERROR_INIT;
    struct offloader *offloader = ctx;
    size_t count = event->result->count;
    char **references;
    int r;

    (void)err;
    if (!concerns(offloader, event))
        return 0;
    references = calloc(count + 1, sizeof(*references));
    r = references ? store_all(offloader, event, references, &local) : pf_fail_nomem(&local);
    if (r == 0)
        r = make_replacement(offloader, event->result, references, &replacement);
    if (r == 0) {
        struct pinfold_tool_result old = *event->result;

        *event->result = replacement;
        replacement = old;
    } else {
        pf_log(PINFOLD_LOG_WARNING, "a result of %s could not be offloaded, and stays whole: %s",
               event->name, *local.msg ? local.msg : "out of memory");
    }
    for (size_t i = 0; references && i < count; i++)
        free(references[i]);
    free(references);
    return 0;
}

/* ---- the plugin ---- */

static void free_offloader(void *ctx)
{
    struct offloader *offloader = ctx;

    pinfold_storage_unref(offloader->storage);
    pf_strv_free(offloader->tool_names);
    free(offloader);
}

static int check_policy(const struct pinfold_offload_policy *policy, struct pinfold_error *err)
{
    uint32_t max = policy->max_result_tokens ? policy->max_result_tokens : MAX_RESULT_TOKENS;
    uint32_t preview = policy->preview_tokens == PINFOLD_NO_PREVIEW ? 0
                       : policy->preview_tokens                     ? policy->preview_tokens
                                                                    : PREVIEW_TOKENS;

    if (policy->size != sizeof(*policy))
        return pf_fail(err, PINFOLD_EVALUE, "offload: a policy of %zu bytes, not %zu", policy->size,
                       sizeof(*policy));
    if (!policy->storage)
        return pf_fail(err, PINFOLD_EVALUE, "offload: a storage is required");
    if (preview >= max)
        return pf_fail(err, PINFOLD_EVALUE,
                       "offload: preview_tokens (%" PRIu32 ") must be less than max_result_tokens "
                       "(%" PRIu32 ")",
                       preview, max);
    return 0;
}

static int make_offloader(const struct pinfold_offload_policy *policy, struct offloader **ret)
{
    struct offloader *offloader = calloc(1, sizeof(*offloader));

    if (!offloader)
        return -PINFOLD_ENOMEM;
    offloader->storage = pinfold_storage_ref(policy->storage);
    offloader->max_tokens =
            policy->max_result_tokens ? policy->max_result_tokens : MAX_RESULT_TOKENS;
    offloader->preview_tokens = policy->preview_tokens == PINFOLD_NO_PREVIEW ? 0
                                : policy->preview_tokens ? policy->preview_tokens
                                                         : PREVIEW_TOKENS;
    offloader->retrieval = !policy->no_retrieval_tool;
    if (policy->tool_names) {
        offloader->tool_names = pf_strv_copy(policy->tool_names);
        if (!offloader->tool_names) {
            free_offloader(offloader);
            return -PINFOLD_ENOMEM;
        }
    }
    *ret = offloader;
    return 0;
}

int pinfold_context_offloader_new(const struct pinfold_offload_policy *policy,
                                  struct pinfold_plugin **ret_plugin, struct pinfold_error *err)
{
    PF_CLEANUP(pf_tool_unrefp) struct pinfold_tool *tool = NULL;
    struct pinfold_plugin_options options = PINFOLD_PLUGIN_OPTIONS_INIT;
    struct pinfold_hooks hooks = PINFOLD_HOOKS_INIT;
    struct offloader *offloader = NULL;
    int r = check_policy(policy, err);

    if (r == 0 && !policy->no_retrieval_tool)
        r = pf_retrieval_tool_new(policy->storage, &tool, err);
    if (r < 0)
        return r;
    if (make_offloader(policy, &offloader) < 0)
        return pf_fail_nomem(err);
    hooks.after_tool_call = after_tool_call;
    options.name = pf_offloader_name;
    options.tools = &tool;
    options.tool_count = tool ? 1 : 0;
    options.hooks = &hooks;
    options.ctx = offloader;
    options.free = free_offloader;
    r = pinfold_plugin_new(&options, ret_plugin, err);
    if (r < 0)
        free_offloader(offloader);
    return r;
}

int pf_offload_policy_apply(struct pinfold_agent *agent,
                            const struct pinfold_offload_policy *policy, struct pinfold_error *err)
{
    struct pinfold_offload_policy own = *policy;
    struct pinfold_plugin *plugin = NULL;
    int r;

    if (!own.tool_names)
        own.tool_names = pinfold_sandbox_offload_tool_names;
    r = pinfold_context_offloader_new(&own, &plugin, err);
    if (r < 0)
        return r;
    if (pinfold_agent_has_plugin(agent, pf_offloader_name)) {
        pf_log(PINFOLD_LOG_WARNING,
               "agent %s has a ContextOffloader of its own, which is kept; its "
               "sandbox_output_offload is not used",
               agent->id);
    } else {
        r = pinfold_agent_add_plugin(agent, plugin, err);
        if (r == 0 && own.no_retrieval_tool && pf_storage_is_on_disk(own.storage))
            pf_log(PINFOLD_LOG_WARNING,
                   "agent %s: results are offloaded to files of this host, which workspace tools "
                   "do not reach, and there is no retrieval tool",
                   agent->id);
    }
    pinfold_plugin_unref(plugin);
    return r;
}

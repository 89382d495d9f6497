/* SPDX-License-Identifier: Apache-2.0 */
/* Files of --session, which may have come with a project: a conversation is taken whole, and is the
 * same when it has been written and read once more, or it is refused with a reason, and what there
 * was stays. */
#include "agent/model.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "cli/agent_session.h"
#include "fuzz.h"

static struct pinfold_agent *new_agent(void)
{
    struct pinfold_agent_config config = PINFOLD_AGENT_CONFIG_INIT;
    struct pinfold_agent *agent = NULL;

    demand(pinfold_agent_new(&config, &agent, NULL) == 0);
    return agent;
}

/* What the models rely on: see pinfold/model.h. */
static void check(struct pinfold_agent *agent)
{
    size_t count;
    const struct pinfold_message *messages = pinfold_agent_messages(agent, &count);

    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < messages[i].count; j++) {
            const struct pinfold_block *block = &messages[i].blocks[j];
            bool call = block->kind == PINFOLD_BLOCK_TOOL_USE;

            demand(block->text && block->text[block->text_len] == '\0');
            demand((block->id && block->id[0]) ||
                   (!call && block->kind != PINFOLD_BLOCK_TOOL_RESULT));
            demand((block->name && block->name[0]) || !call);
        }
    }
}

/* What is taken can go on: no model refuses it together with the next task. */
static void check_request(struct pinfold_agent *agent)
{
    size_t count;
    const struct pinfold_message *messages = pinfold_agent_messages(agent, &count);
    _cleanup_free_ struct pinfold_message *all = calloc(count + 1, sizeof(*all));
    struct pinfold_model_request request = PINFOLD_MODEL_REQUEST_INIT;
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    demand(all);
    if (count)
        memcpy(all, messages, count * sizeof(*all));
    all[count] = (struct pinfold_message){ .role = PINFOLD_ROLE_USER };
    demand(pinfold_message_add_text(&all[count], "go on", 5, &err) == 0);
    request.messages = all;
    request.message_count = count + 1;
    demand(pf_model_check_request(&request, &err) == 0);
    pinfold_message_done(&all[count]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char before[] = "{\"pinfold_session\":1,\"messages\":["
                                 "{\"role\":\"user\",\"blocks\":["
                                 "{\"kind\":\"text\",\"text\":\"before\"}]}]}";
    static struct pinfold_agent *agent, *other;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    _cleanup_free_ char *was = NULL, *once = NULL, *twice = NULL;
    int r;

    if (!agent) {
        agent = new_agent();
        other = new_agent();
    }
    demand(pf_agent_session_read(agent, before, sizeof(before) - 1, &err) == 0);
    was = pf_agent_session_text(agent);
    r = pf_agent_session_read(agent, (const char *)data, size, &err);
    demand(r == 0 || (r == -PINFOLD_EVALUE && err.code == PINFOLD_EVALUE && err.msg[0] &&
                      pf_utf8_valid(err.msg, strlen(err.msg), NULL)));
    once = pf_agent_session_text(agent);
    demand(was && once);
    demand(r == 0 || strcmp(was, once) == 0);
    check(agent);
    check_request(agent);
    demand(pf_agent_session_read(other, once, strlen(once), &err) == 0);
    twice = pf_agent_session_text(other);
    demand(twice && strcmp(once, twice) == 0);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The tool read_output, and what it reads. */
#include "mcp/output.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "mcp/state.h"
#include "mcp/tool.h"

/* Outputs that are kept for one client; the oldest goes first. */
enum { OUTPUTS_MAX = 16 };

struct pf_mcp_output {
    char id[PF_MCP_ID_SIZE];
    struct pf_mcp_tape *tape;
    int64_t used_ns;
    unsigned readers;
    bool gone; /* freed by the last reader */
    struct pf_mcp_output *prev, *next;
};

size_t pf_mcp_shown(const struct pf_mcp_session *session)
{
    uint64_t max = session->server->options->max_output_bytes;

    return max ? (size_t)max : PF_MCP_SHOWN;
}

static void free_output(struct pf_mcp_output *output)
{
    pf_mcp_tape_free(output->tape);
    free(output);
}

/* Take one off the list. The lock is held. */
static void drop(struct pf_mcp_session *session, struct pf_mcp_output *output)
{
    DL_DELETE(session->outputs, output);
    output->gone = true;
    if (!output->readers)
        free_output(output);
}

bool pf_mcp_output_keep(struct pf_mcp_session *session, struct pf_mcp_tape *tape,
                        char ret_id[static PF_MCP_ID_SIZE])
{
    struct pf_mcp_output *output = calloc(1, sizeof(*output)), *other;
    int count;

    if (!output) {
        pf_mcp_tape_free(tape);
        return false;
    }
    output->tape = tape;
    output->used_ns = pf_mcp_now();
    pthread_mutex_lock(&session->lock);
    snprintf(output->id, sizeof(output->id), "output-%u", ++session->next_number);
    memcpy(ret_id, output->id, sizeof(output->id));
    DL_APPEND(session->outputs, output);
    DL_COUNT(session->outputs, other, count);
    if (count > OUTPUTS_MAX)
        drop(session, session->outputs);
    pthread_mutex_unlock(&session->lock);
    return true;
}

void pf_mcp_output_expire(struct pf_mcp_session *session, int64_t max_age_ns)
{
    struct pf_mcp_output *output, *next;
    int64_t oldest = pf_mcp_now() - max_age_ns;

    pthread_mutex_lock(&session->lock);
    DL_FOREACH_SAFE(session->outputs, output, next) {
        if (output->used_ns <= oldest)
            drop(session, output);
    }
    pthread_mutex_unlock(&session->lock);
}

static struct pf_mcp_output *borrow(struct pf_mcp_session *session, const char *id)
{
    struct pf_mcp_output *output;

    pthread_mutex_lock(&session->lock);
    DL_FOREACH(session->outputs, output) {
        if (strcmp(output->id, id) == 0)
            break;
    }
    if (output) {
        output->readers++;
        output->used_ns = pf_mcp_now();
    }
    pthread_mutex_unlock(&session->lock);
    return output;
}

static void give_back(struct pf_mcp_session *session, struct pf_mcp_output *output)
{
    bool last;

    pthread_mutex_lock(&session->lock);
    last = --output->readers == 0 && output->gone;
    pthread_mutex_unlock(&session->lock);
    if (last)
        free_output(output);
}

static void show(struct pf_mcp_result *ret, const char *text, size_t len, uint64_t offset,
                 uint64_t total)
{
    uint64_t next = offset + len;

    pf_mcp_add_text(ret, text, len);
    if (next < total)
        pf_mcp_addf(ret,
                    "[Bytes %" PRIu64 " to %" PRIu64 " of %" PRIu64
                    ". Continue with offset=%" PRIu64 ".]",
                    offset, next, total, next);
    else
        pf_mcp_addf(ret, "[Bytes %" PRIu64 " to %" PRIu64 ": the end.]", offset, next);
    pf_mcp_set(ret, "text", pf_mcp_text(text, len));
    pf_mcp_set(ret, "offset", json_integer((json_int_t)offset));
    pf_mcp_set(ret, "next_offset", next < total ? json_integer((json_int_t)next) : json_null());
    pf_mcp_set(ret, "total_bytes", json_integer((json_int_t)total));
}

static int run_read_output(struct pf_mcp_call *call, const json_t *args, struct pf_mcp_result *ret,
                           struct pinfold_error *err)
{
    const char *id = pf_mcp_string(args, "id", NULL), *which = pf_mcp_string(args, "stream", NULL);
    enum pinfold_stream stream =
            which && strcmp(which, "stderr") == 0 ? PINFOLD_STDERR : PINFOLD_STDOUT;
    uint64_t offset = (uint64_t)pf_mcp_integer(args, "offset", 0);
    size_t size = pf_mcp_shown(call->session), len;
    struct pf_mcp_output *output = borrow(call->session, id);
    char *text;

    if (!output)
        return pf_mcp_refuse(err,
                             "no output %.40s is kept: the last %d that were cut are, for half an "
                             "hour; run the command again, with its output into a file",
                             id, OUTPUTS_MAX);
    text = malloc(size);
    if (text) {
        len = pf_mcp_tape_read(output->tape, stream, &offset, text, size);
        show(ret, text, len, offset, pf_mcp_tape_total(output->tape, stream));
    }
    give_back(call->session, output);
    free(text);
    return text ? 0 : pf_mcp_nomem(err);
}

const struct pf_mcp_tool pf_mcp_read_output = {
    .name = "read_output",
    .title = "Read more of a command's output",
    .description =
            "Page through the output of a command that was cut by execute, which then gives an id. "
            "Text is as the command wrote it, by bytes; the result says where to continue. Outputs "
            "are kept for half an hour, the last 16 of them and the last 16 MiB of each stream.",
    .input = "{\"type\":\"object\",\"properties\":{"
             "\"id\":{\"type\":\"string\",\"description\":\"What execute gave as output_id.\"},"
             "\"stream\":{\"enum\":[\"stdout\",\"stderr\"],\"default\":\"stdout\"},"
             "\"offset\":{\"type\":\"integer\",\"minimum\":0,\"default\":0,\"description\":"
             "\"Bytes from the start of the stream.\"}},"
             "\"required\":[\"id\"],\"additionalProperties\":false}",
    .output = "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"},"
              "\"offset\":{\"type\":\"integer\"},\"next_offset\":{\"type\":[\"integer\",\"null\"]},"
              "\"total_bytes\":{\"type\":\"integer\"}},"
              "\"required\":[\"text\",\"offset\",\"next_offset\",\"total_bytes\"]}",
    .traits = PF_MCP_READS | PF_MCP_RUNNER,
    .run = run_read_output,
};

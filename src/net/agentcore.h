/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data plane of Bedrock AgentCore's code interpreter: requests as AWS's own clients send them,
 * signed, sent again only when that cannot run anything twice, and replies read strictly: what was
 * cut short is an error, never a result.
 */
#ifndef PF_NET_AGENTCORE_H
#define PF_NET_AGENTCORE_H

#include <jansson.h>
#include <pinfold/cancel.h>
#include <pinfold/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/aws_credentials.h"
#include "net/event_stream.h"
#include "net/http.h"

/* How long the service lets one call run. A read must wait for longer: nothing is sent before the
 * end. */
#define PF_AGENTCORE_CALL_NS ((15 * 60 + 30) * INT64_C(1000000000))

struct pf_agentcore;

struct pf_agentcore_options {
    const char *region;
    const char *identifier; /* of the code interpreter; must not be empty */
    const char *endpoint;   /* "https://host[:port]", of pf_agentcore_locate() */
    struct pf_http *http;   /* borrowed, as is the next one */
    struct pf_aws_provider *provider;
};

/* How one call is made. */
struct pf_agentcore_call {
    int64_t deadline;                            /* of all attempts together */
    struct pinfold_cancel *cancel, *also_cancel; /* two tokens, each may be NULL */
    const char *trace_id, *trace_parent;         /* may be NULL */
    bool *session_gone; /* may be NULL; set when the service says that there is no such session */
};

/* Where the service is, for these options: given (may be NULL), or as in pf_aws_service_url(), with
 * the same returns. The caller owns the text. */
int pf_agentcore_locate(const struct pf_aws_options *options, const char *given, const char *region,
                        char **ret, struct pinfold_error *err);

/* Make a client; any thread may use it. Returns 0, -PINFOLD_EVALUE (an endpoint that cannot be, an
 * empty identifier) or -PINFOLD_ENOMEM. */
int pf_agentcore_new(const struct pf_agentcore_options *options, struct pf_agentcore **ret,
                     struct pinfold_error *err);
void pf_agentcore_free(struct pf_agentcore *client); /* NULL is fine */

/*
 * The operations. All return 0, -PINFOLD_EBACKEND (the service refused, with err->http_status, or
 * sent what is no reply), -PINFOLD_ETIMEOUT, -PINFOLD_ECANCELLED, -PINFOLD_EOS (the connection), or
 * what getting credentials failed with. err->retryable says that the same call may work later and
 * has run nothing. Replies are objects as the service sent them; the caller owns them.
 */

/* members, borrowed, may be NULL: name, sessionTimeoutSeconds and so on. clientToken is filled in
 * where it is missing. The reply has a sessionId. */
int pf_agentcore_start(struct pf_agentcore *client, json_t *members,
                       const struct pf_agentcore_call *call, json_t **ret,
                       struct pinfold_error *err);
/* token NULL: a random one */
int pf_agentcore_stop(struct pf_agentcore *client, const char *session, const char *token,
                      const struct pf_agentcore_call *call, json_t **ret,
                      struct pinfold_error *err);
int pf_agentcore_get(struct pf_agentcore *client, const char *session,
                     const struct pf_agentcore_call *call, json_t **ret, struct pinfold_error *err);
/* members, may be NULL: maxResults, nextToken, status */
int pf_agentcore_list(struct pf_agentcore *client, json_t *members,
                      const struct pf_agentcore_call *call, json_t **ret,
                      struct pinfold_error *err);

/* What a tool said: all result events of the stream in one. */
struct pf_agentcore_result {
    unsigned events; /* 0: the stream was empty, and the rest means nothing */
    bool is_error;
    bool has_exit_code, has_output; /* exit_code; out or errs were there */
    int exit_code;
    struct pf_buf out, errs;     /* structuredContent's stdout and stderr, joined */
    json_t *content;             /* an array: all blocks */
    char *task_id, *task_status; /* the last ones, or NULL */
    double execution_time;       /* seconds, whatever the documentation says; the last one */
};

/* Call a tool in a session. arguments, borrowed, may be NULL; members that are null are left out.
 * The result is filled on success only. */
int pf_agentcore_invoke(struct pf_agentcore *client, const char *session, const char *tool,
                        json_t *arguments, const struct pf_agentcore_call *call,
                        struct pf_agentcore_result *ret, struct pinfold_error *err);

void pf_agentcore_result_done(struct pf_agentcore_result *result);

/* Append the texts of the content's blocks, each on lines of its own. Returns 0 or
 * -PINFOLD_ENOMEM. */
int pf_agentcore_result_text(const struct pf_agentcore_result *result, struct pf_buf *to);

#endif

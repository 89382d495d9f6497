/* SPDX-License-Identifier: Apache-2.0 */
/* Inside agent/: the halves of the provider of Amazon Bedrock. */
#ifndef PF_AGENT_MODEL_BEDROCK_H
#define PF_AGENT_MODEL_BEDROCK_H

#include "agent/model_http.h"
#include "net/aws_credentials.h"
#include "net/event_stream.h"

struct pf_bedrock {
    struct pf_model_client client;
    struct pf_aws_provider *provider; /* NULL: a bearer token is the key */
    char region[PF_AWS_REGION_MAX];
    char *path;  /* "/model/NAME/converse-stream" */
    char *whole; /* with the path of the base before it, as it is signed */
    char *host;  /* as the header names it */
};

/* The body of a request. NULL: out of memory. */
json_t *pf_bedrock_body(const struct pf_model_client *client,
                        const struct pinfold_model_request *request);

/* The stream of one reply. */
struct pf_bedrock_stream {
    struct pf_bedrock *model;
    struct pf_event_stream events;
    /* The block that is open: they come one after another. */
    bool open;
    json_int_t index;   /* the service's number of it */
    size_t reply_block; /* ours; SIZE_MAX: it has said nothing yet */
    enum pinfold_block_kind kind;
    struct pf_buf signature, redacted; /* of reasoning */
    char *stop;
    struct pinfold_model_usage usage;
    /* of the last attempt */
    struct pf_aws_credentials credentials;
    char date[PF_SIGV4_DATE_MAX];
    bool renewed;
};

int pf_bedrock_take(struct pf_model_call *call, const void *data, size_t len,
                    struct pinfold_error *err);
int pf_bedrock_end(struct pf_model_call *call, struct pinfold_error *err);
void pf_bedrock_reset(struct pf_model_call *call);
void pf_bedrock_refused(struct pf_model_call *call, const struct pf_http_response *response,
                        struct pf_model_trouble *trouble);

#endif

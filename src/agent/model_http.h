/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside agent/: what the providers behind HTTP share. It checks and keeps the options, sends a
 * request, tries again what may be tried again, and words the errors; a provider adds the headers,
 * reads the stream, and knows what its errors mean.
 */
#ifndef PF_AGENT_MODEL_HTTP_H
#define PF_AGENT_MODEL_HTTP_H

#include <pinfold/model.h>

#include "agent/model_json.h"
#include "agent/model_reply.h"
#include "base/buf.h"
#include "net/http.h"

enum { PF_MODEL_HEADERS_MAX = 16 };

/* What a provider begins with; zero means as for any other. */
struct pf_model_defaults {
    const char *provider; /* "anthropic" */
    const char *base_url;
    const char *base_env, *key_env; /* names in the environment */
    const char *trust_env;          /* likewise, see pf_http_new() */
    unsigned max_tokens;            /* 0: none is sent */
};

struct pf_model_client {
    const char *provider;
    struct pf_http *http;
    char *model, *base, *key; /* base without '/' at its end; key NULL: none */
    bool base_is_default;
    bool near; /* base is this machine */
    json_t *extra;
    unsigned max_tokens;
    bool has_temperature;
    double temperature;
    int64_t connect_ns, idle_ns, timeout_ns, backoff_ns;
    unsigned attempts;
    size_t max_reply_bytes;
};

/* Fill a client. Returns 0, -PINFOLD_EVALUE or -PINFOLD_ENOMEM; to be emptied in any case. */
int pf_model_client_init(struct pf_model_client *client, const struct pf_model_defaults *defaults,
                         const struct pinfold_model_options *options, struct pinfold_error *err);
void pf_model_client_done(struct pf_model_client *client); /* wipes the key */

/* The settings of a request, or the client's. */
unsigned pf_model_max_tokens(const struct pf_model_client *client,
                             const struct pinfold_model_request *request);
const double *pf_model_temperature(const struct pf_model_client *client,
                                   const struct pinfold_model_request *request);

struct pf_model_headers {
    struct pf_header list[PF_MODEL_HEADERS_MAX];
    size_t count;
    struct pf_buf secret; /* for the value of one that holds a key; wiped */
};

void pf_model_header(struct pf_model_headers *headers, const char *name, const char *value);
/* "authorization: Bearer KEY". Returns 0 or -PINFOLD_ENOMEM. */
int pf_model_bearer(struct pf_model_headers *headers, const char *key);

/* What a provider says went wrong. Texts are as they came. */
struct pf_model_trouble {
    int status;    /* as of HTTP; 0: none, as in a stream */
    char type[80]; /* "overloaded_error"; "" if none */
    struct pf_buf message;
    bool hopeless; /* trying again cannot help, whatever the status says */
    bool passing;  /* it can */
};

#define PF_MODEL_TROUBLE_INIT         \
    {                                 \
        .message = PF_BUF_INIT(65536) \
    }

/* Note what is wrong; texts may be NULL. */
void pf_model_trouble_set(struct pf_model_trouble *trouble, int status, const char *type,
                          const char *message);

struct pf_model_call;

/* The functions of a provider; all take call->ctx where they need it. */
struct pf_model_wire {
    /* Headers of an attempt. */
    int (*headers)(struct pf_model_call *call, struct pf_model_headers *headers,
                   struct pinfold_error *err);
    /* Bytes of a reply of status 2xx. */
    int (*take)(struct pf_model_call *call, const void *data, size_t len,
                struct pinfold_error *err);
    /* The reply has ended: finish call->reply, or say what is missing. */
    int (*end)(struct pf_model_call *call, struct pinfold_error *err);
    /* Forget what an attempt has read. */
    void (*reset)(struct pf_model_call *call);
    /* Read the body of an error; trouble->status is set. */
    void (*refused)(struct pf_model_call *call, const struct pf_http_response *response,
                    struct pf_model_trouble *trouble);
    /* May the request be mended, as what is wrong asks for? Then it is sent again at once. NULL: it
     * cannot. */
    bool (*mend)(struct pf_model_call *call, const struct pf_model_trouble *trouble);
    const char *request_id; /* the header with it, in lower case */
};

/* One turn under way, through all its attempts. */
struct pf_model_call {
    struct pf_model_client *client;
    const struct pf_model_wire *wire;
    void *ctx;
    struct pf_reply reply;
    const char *path; /* after the base; begins with '/' */
    struct pf_buf body;
    struct pinfold_cancel *cancel;
    int64_t deadline;
    const char *secret; /* set by headers: what is sent beside the client's key; may be NULL */
    bool complete;      /* set by take: nothing can come that matters */
    /* private */
    struct pf_http_request http; /* the one under way */
    bool sent;                   /* it came as far as that */
    size_t bytes;
    struct pinfold_error failed; /* why the stream was given up; code 0: it was not */
    unsigned attempt;
    unsigned mended;
    int64_t asked_ns; /* the provider wants a wait of so long; -1: it says nothing */
};

/* Make the body of a call of json, with the client's extra over it; NULL: there was no memory for
 * it. Returns 0, -PINFOLD_EVALUE (it is too large) or -PINFOLD_ENOMEM. */
int pf_model_call_body(struct pf_model_call *call, json_t *json, struct pinfold_error *err);

/* Have a call answered. Returns 0 or how it failed; the call's reply is in its out. */
int pf_model_call_perform(struct pf_model_call *call, struct pinfold_error *err);
void pf_model_call_done(struct pf_model_call *call);

/* The error of a trouble: "anthropic claude-x: HTTP 529 overloaded_error: Overloaded". request_id
 * may be NULL. */
int pf_model_trouble_fail(const struct pf_model_call *call, const struct pf_model_trouble *trouble,
                          const char *request_id, struct pinfold_error *err);
/* What came is no reply of this API. */
int pf_model_garbled(const struct pf_model_call *call, const char *what, struct pinfold_error *err);

#endif

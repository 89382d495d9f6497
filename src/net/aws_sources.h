/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside net/: the sources of AWS credentials, and what they share. A source returns 1 and
 * credentials, 0 when it has none (it has said why, with pf_aws_nothing()), or a negative code,
 * which ends the search: it is there and wrong, or failed.
 */
#ifndef PF_NET_AWS_SOURCES_H
#define PF_NET_AWS_SOURCES_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "net/aws_credentials.h"
#include "net/aws_ini.h"

#define PF_AWS_FILE_MAX ((size_t)1024 * 1024)
#define PF_AWS_REPLY_MAX ((size_t)64 * 1024)
#define PF_AWS_TOKEN_MAX ((size_t)32 * 1024) /* of a token in a file */
#define PF_AWS_EXPIRY_NS (INT64_C(15) * 60 * 1000000000)

/* One search for credentials. */
struct pf_aws_ask {
    const struct pf_aws_options *options;
    struct pf_http *http;
    int64_t deadline;
    struct pinfold_cancel *cancel;
    struct pf_ini config, shared; /* ~/.aws/config and ~/.aws/credentials */
    const char *profile;          /* the chosen one's name */
    bool profile_named;           /* it was asked for, and must be there */
    char *why;                    /* what has no credentials, and why; PF_AWS_WHY_MAX bytes */
};

#define PF_AWS_WHY_MAX 216 /* it becomes part of one error */

/* ---- aws_secret.c: what is secret, and what must be right about it ---- */

/* A buffer that holds secrets: give it all its room at once, so that growing leaves no copy. */
void pf_aws_wipe(struct pf_buf *buf);
#define _cleanup_wipe_ __attribute__((cleanup(pf_aws_wipe)))
void pf_aws_wipe_text(char **text); /* likewise for a string on the heap */

/* A variable of the environment; NULL when it is unset or empty, or when the program has more
 * rights than whoever started it, as with setuid: then nothing is taken from there. */
const char *pf_aws_env(const char *name);

/* The whole of a regular file. Returns 1, 0 when there is none, or a negative code. */
int pf_aws_read_file(const char *path, size_t max, struct pf_buf *ret, struct pinfold_error *err);
/* A token in a file, which becomes part of a request as it is. Returns 0 or a negative code. */
int pf_aws_read_token(const char *path, struct pf_buf *ret, struct pinfold_error *err);
/* Replace a file, or leave it as it was. Only its owner can read it. */
int pf_aws_write_file(const char *path, const char *data, size_t len, struct pinfold_error *err);

/* Copy keys into ret, when they are such as can be in a header. Returns 1, -PINFOLD_EVALUE or
 * -PINFOLD_ENOMEM. */
int pf_aws_take_keys(const struct pf_aws_keys *keys, int64_t expires, const char *source,
                     struct pf_aws_credentials *ret, struct pinfold_error *err);
int pf_aws_credentials_copy(const struct pf_aws_credentials *from, struct pf_aws_credentials *ret);

/* 2026-11-29T20:54:35.25+00:00 in nanoseconds; a zone, "Z" or "UTC" must be there. Returns 0 or
 * -PINFOLD_EVALUE. */
int pf_aws_time(const char *text, int64_t *ret);
int64_t pf_aws_now(void); /* CLOCK_REALTIME */

/* ---- aws_json.c ---- */

/* An object, or NULL: *ret_wrong, which names no value of it, says why. */
json_t *pf_aws_json_load(const char *data, size_t len, const char **ret_wrong);
void pf_aws_json_free(json_t **json); /* wipes the texts in it */
#define _cleanup_json_ __attribute__((cleanup(pf_aws_json_free)))
const char *pf_aws_json_text(const json_t *json, const char *key); /* NULL: none, or empty */

/* How one service names the parts of credentials. */
struct pf_aws_json_names {
    const char *access_key, *secret_key, *token, *expires;
    bool token_needed, expires_needed;
    bool milliseconds; /* expires is a number of them since 1970 */
};
/* Credentials out of an object. Returns 1, -PINFOLD_EVALUE (what names it) or -PINFOLD_ENOMEM. */
int pf_aws_json_keys(const json_t *json, const struct pf_aws_json_names *names, const char *what,
                     const char *source, struct pf_aws_credentials *ret, struct pinfold_error *err);
/* As containers and machines answer; never names a value in its errors. */
int pf_aws_json_metadata(const struct pf_buf *body, const char *what, const char *source,
                         struct pf_aws_credentials *ret, struct pinfold_error *err);

/* ---- aws_split.c ---- */

/* Split a command as a POSIX shell does, without expanding anything; text is overwritten and is
 * what the words point into. Returns their count, or -PINFOLD_EVALUE (*ret_wrong says why). */
#define PF_AWS_WORDS_MAX 256
int pf_aws_split(char *text, const char *words[static PF_AWS_WORDS_MAX + 1],
                 const char **ret_wrong);

/* ---- aws_config.c: profiles, the region ---- */

int pf_aws_config_load(struct pf_aws_ask *ask, struct pinfold_error *err);
void pf_aws_config_done(struct pf_aws_ask *ask);
bool pf_aws_has_profile(const struct pf_aws_ask *ask, const char *name);
/* A value of a profile, of either file; NULL: none, or empty. Borrowed. */
const char *pf_aws_profile_get(const struct pf_aws_ask *ask, const char *name, const char *key);
/* Likewise, of the file of credentials alone. */
const char *pf_aws_shared_get(const struct pf_aws_ask *ask, const char *name, const char *key);
/* A value of a "[kind name]" of the file of settings. */
const char *pf_aws_config_get(const struct pf_aws_ask *ask, const char *kind, const char *name,
                              const char *key);
bool pf_aws_has_section(const struct pf_aws_ask *ask, const char *kind, const char *name);
/* The region for a request. Returns 0 or -PINFOLD_EVALUE. */
int pf_aws_ask_region(const struct pf_aws_ask *ask, const char *profile,
                      char ret[static PF_AWS_REGION_MAX], struct pinfold_error *err);
/* Whether a region can be part of a host name. */
bool pf_aws_region_fits(const char *region);
/* Append "~/rest" with the home directory. Returns 0, -PINFOLD_EVALUE (no HOME) or
 * -PINFOLD_ENOMEM. */
int pf_aws_home(const char *rest, struct pf_buf *ret, struct pinfold_error *err);

/* ---- aws_endpoint.c ---- */

/* Append the address of a service, without a '/' at its end: the one that is configured, or that of
 * AWS of the kind that is wanted. service is as in "sso_oidc", host as in "portal.sso". */
int pf_aws_endpoint(const struct pf_aws_ask *ask, const char *service, const char *host,
                    const char *region, struct pf_buf *ret, struct pinfold_error *err);

/* ---- aws_url.c ---- */

/* The parts of an address; they point into it. */
struct pf_aws_url {
    bool https;
    const char *authority, *host, *path; /* path is "" or begins with '/' */
    size_t authority_len, host_len;      /* authority without a port that goes without saying */
};
/* Returns 0, or -PINFOLD_EVALUE for what is no plain http address. */
int pf_aws_url_parse(const char *url, struct pf_aws_url *ret);

/* ---- aws_send.c ---- */

/* A request, and how often it is tried. */
struct pf_aws_call {
    const char *what; /* for errors: "STS AssumeRole" */
    const char *method, *url;
    const struct pf_header *headers;
    size_t header_count;
    const char *body;
    size_t body_len;
    int attempts;
    int64_t timeout_ns; /* to connect, and as much again for the answer; of one attempt */
    int64_t pause_ns;   /* between two; 0: a random part of a time that doubles */
    bool once;          /* not again when it may have arrived */
    bool near;          /* a service of this machine: no proxy is asked */
    size_t reply_max;   /* for replies without secrets; 0: PF_AWS_REPLY_MAX */
};
struct pf_aws_reply {
    int status;
    struct pf_buf body;
    struct pf_buf headers; /* as of struct pf_http_response */
};
/* The last header of that name (in lower case), or NULL. */
const char *pf_aws_reply_header(const struct pf_aws_reply *reply, const char *name);

/* Send; any status is success once the attempts for 429 and 5xx are used up. Returns 0 or a
 * negative code; -PINFOLD_ETIMEOUT is the ask's own deadline, what else went wrong on the way is
 * -PINFOLD_EOS or -PINFOLD_EBACKEND. */
int pf_aws_send(const struct pf_aws_ask *ask, const struct pf_aws_call *call,
                struct pf_aws_reply *ret, struct pinfold_error *err);
void pf_aws_reply_done(struct pf_aws_reply *reply); /* wipes */
/* The error for a status that is none of success; detail may be "". */
int pf_aws_refused(const char *what, int status, const char *detail, struct pinfold_error *err);

/* ---- aws_xml.c ---- */

struct pf_aws_xml_field {
    const char *path; /* of the element: "ErrorResponse/Error/Code" */
    char *value;      /* its text, in the document's own memory; NULL: there is none */
};
/* Read a document, which is overwritten. Returns 0, or -PINFOLD_EVALUE for what is no plain XML,
 * has an element twice, or one with more than text in it. */
int pf_aws_xml_read(char *text, size_t len, struct pf_aws_xml_field *fields, size_t count);

/* ---- the sources ---- */

int pf_aws_nothing(struct pf_aws_ask *ask, const char *format, ...) PINFOLD_PRINTF(2, 3);

/* The whole chain: aws_chain.c. Returns 0 or a negative code. */
int pf_aws_resolve(struct pf_aws_ask *ask, struct pf_aws_credentials *ret,
                   struct pinfold_error *err);

struct pf_aws_role {
    const char *profile;                                     /* for the region and the endpoint */
    const char *arn, *session_name, *external_id, *duration; /* all but arn may be NULL */
};
int pf_aws_sts_assume(const struct pf_aws_ask *ask, const struct pf_aws_role *role,
                      const struct pf_aws_credentials *source, struct pf_aws_credentials *ret,
                      struct pinfold_error *err);
int pf_aws_sts_web_identity(const struct pf_aws_ask *ask, const struct pf_aws_role *role,
                            const char *token_file, struct pf_aws_credentials *ret,
                            struct pinfold_error *err);
int pf_aws_sso(struct pf_aws_ask *ask, const char *profile, struct pf_aws_credentials *ret,
               struct pinfold_error *err);
int pf_aws_process(struct pf_aws_ask *ask, const char *profile, struct pf_aws_credentials *ret,
                   struct pinfold_error *err);
int pf_aws_container(struct pf_aws_ask *ask, struct pf_aws_credentials *ret,
                     struct pinfold_error *err);
int pf_aws_imds(struct pf_aws_ask *ask, struct pf_aws_credentials *ret, struct pinfold_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* AgentCoreSandboxTemplate and the backends it builds: configuration, and the life of a session. */
#include "backend/agentcore.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/strings.h"
#include "net/agentcore_request.h"
#include "proc/env.h"

#define START_NS (120 * PF_NS_PER_SEC)
#define STOP_NS (20 * PF_NS_PER_SEC)
enum {
    DEFAULT_TIMEOUT = 900,
    MAX_TIMEOUT = 28800,
    DEFAULT_OUTPUT = 100000,
    NAME_CHARS = 100,
    HOME_MAX = 100
};

static const char class_name[] = "AgentCoreSandboxTemplate";
static const struct pinfold_backend_ops template_ops, session_ops;

/* ---- configuration ---- */

static void wipe(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

static void box_free(void *state)
{
    struct pf_ac_box *box = state;

    if (!box)
        return;
    pf_agentcore_free(box->client);
    pf_aws_provider_free(box->provider);
    pf_http_free(box->http);
    pinfold_cancel_free(box->stop);
    if (box->owner == getpid()) /* in a fork: those who wait for it are not there, and never go */
        pthread_cond_destroy(&box->fewer);
    pthread_mutex_destroy(&box->lock);
    pf_strv_free(box->env);
    wipe(box->access_key);
    wipe(box->secret_key);
    wipe(box->session_token);
    free(box->region);
    free(box->identifier);
    free(box->endpoint);
    free(box->name);
    free(box->profile);
    free(box->session);
    free(box->home);
    free(box->root);
    free(box->storage_key);
    free(box);
}

static void box_freep(struct pf_ac_box **box)
{
    box_free(*box);
}

static struct pf_ac_box *box_new(void)
{
    struct pf_ac_box *box = calloc(1, sizeof(*box));

    if (!box)
        return NULL;
    pf_clock_cond_init(&box->fewer);
    pthread_mutex_init(&box->lock, NULL);
    return box;
}

static bool copy_configuration(struct pf_ac_box *box, const struct pinfold_agentcore_options *from)
{
    const char *identifier = from->identifier ? from->identifier : "aws.codeinterpreter.v1";

    box->session_timeout =
            from->session_timeout_seconds ? from->session_timeout_seconds : DEFAULT_TIMEOUT;
    box->max_output_bytes = from->max_output_bytes ? from->max_output_bytes : DEFAULT_OUTPUT;
    box->tasks = from->long_commands;
    box->timeout_seconds = from->timeout_seconds;
    box->env = pf_strv_copy(from->env);
    return box->env && pf_text_copy(&box->region, from->region) &&
           pf_text_copy(&box->identifier, identifier) &&
           pf_text_copy(&box->endpoint, from->endpoint) && pf_text_copy(&box->name, from->name) &&
           pf_text_copy(&box->profile, from->profile) &&
           pf_text_copy(&box->access_key, from->access_key) &&
           pf_text_copy(&box->secret_key, from->secret_key) &&
           pf_text_copy(&box->session_token, from->session_token);
}

static struct pf_aws_options aws_options(const struct pf_ac_box *box)
{
    return (struct pf_aws_options){ .access_key = box->access_key,
                                    .secret_key = box->secret_key,
                                    .session_token = box->session_token,
                                    .profile = box->profile,
                                    .region = box->region };
}

/* The client; nothing is asked of anybody yet. */
static int connect_box(struct pf_ac_box *box, struct pinfold_error *err)
{
    const struct pf_aws_options aws = aws_options(box);
    struct pf_agentcore_options options = { .region = box->region,
                                            .identifier = box->identifier,
                                            .endpoint = box->endpoint };
    int r = pf_http_new(PF_AWS_CA_BUNDLE, &box->http, err);

    if (r == 0)
        r = pf_aws_provider_new(&aws, box->http, &box->provider, err);
    options.http = box->http;
    options.provider = box->provider;
    return r < 0 ? r : pf_agentcore_new(&options, &box->client, err);
}

static int check_options(const struct pinfold_agentcore_options *options, struct pinfold_error *err)
{
    if (options->size != sizeof(*options))
        return pf_fail(err, PINFOLD_EVALUE, "%s: options of %zu bytes, not %zu", class_name,
                       options->size, sizeof(*options));
    if (options->session_timeout_seconds > MAX_TIMEOUT)
        return pf_fail(err, PINFOLD_EVALUE, "%s: session_timeout_seconds must be 1 to %d, not %u",
                       class_name, MAX_TIMEOUT, options->session_timeout_seconds);
    if (isnan(options->timeout_seconds) || options->timeout_seconds < 0)
        return pf_fail(err, PINFOLD_EVALUE, "%s: timeout must be more than 0 seconds, not %g",
                       class_name, options->timeout_seconds);
    if (!options->access_key != !options->secret_key)
        return pf_fail(err, PINFOLD_EVALUE, "%s: an access key without its secret, or the reverse",
                       class_name);
    if (options->name && (!options->name[0] || strlen(options->name) > NAME_CHARS))
        return pf_fail(err, PINFOLD_EVALUE, "%s: a session's name has 1 to %d characters",
                       class_name, NAME_CHARS);
    return pf_env_check(options->env, err);
}

int pinfold_agentcore_template_new(const struct pinfold_agentcore_options *options,
                                   struct pinfold_backend **ret_backend, struct pinfold_error *err)
{
    static const struct pinfold_agentcore_options defaults = PINFOLD_AGENTCORE_OPTIONS_INIT;
    PF_CLEANUP(box_freep) struct pf_ac_box *box = NULL;
    struct pf_aws_options aws;
    char region[PF_AWS_REGION_MAX], *endpoint;
    int r;

    if (!options)
        options = &defaults;
    r = check_options(options, err);
    if (r < 0)
        return r;
    box = box_new();
    if (!box || !copy_configuration(box, options))
        return pf_fail_nomem(err);
    aws = aws_options(box);
    r = pf_aws_region(&aws, region, err);
    if (r < 0)
        return r;
    free(box->region);
    if (!pf_text_copy(&box->region, region))
        return pf_fail_nomem(err);
    aws = aws_options(box);
    r = pf_agentcore_locate(&aws, options->endpoint, region, &endpoint, err);
    if (r < 0)
        return r;
    free(box->endpoint);
    box->endpoint = endpoint;
    r = connect_box(box, err); /* here, so that what is wrong is told here */
    if (r == 0)
        r = pinfold_backend_new(&template_ops, box, NULL, ret_backend, err);
    if (r == 0)
        (void)TAKE(box);
    return r;
}

/* A name that the service takes, of whatever the workspace is called. */
static char *session_name(const char *workspace_id)
{
    char *name;

    if (asprintf(&name, "pinfold-%.80s", workspace_id) < 0)
        return NULL;
    for (char *at = name; *at; at++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", *at))
            *at = '-';
    return name;
}

static int build_for_session(void *state, const char *workspace_id,
                             struct pinfold_backend **ret_backend, struct pinfold_error *err)
{
    const struct pf_ac_box *from = state;
    PF_CLEANUP(box_freep) struct pf_ac_box *box = box_new();
    const struct pinfold_agentcore_options options = {
        .region = from->region,
        .access_key = from->access_key,
        .secret_key = from->secret_key,
        .session_token = from->session_token,
        .profile = from->profile,
        .identifier = from->identifier,
        .name = from->name,
        .endpoint = from->endpoint,
        .session_timeout_seconds = from->session_timeout,
        .max_output_bytes = from->max_output_bytes,
        .long_commands = from->tasks,
        .timeout_seconds = from->timeout_seconds,
        .env = (const char *const *)from->env,
    };
    int r;

    if (!box || !copy_configuration(box, &options))
        return pf_fail_nomem(err);
    if (!box->name) {
        box->name = session_name(workspace_id);
        if (!box->name)
            return pf_fail_nomem(err);
    }
    r = connect_box(box, err);
    if (r == 0)
        r = pinfold_backend_new(&session_ops, box, NULL, ret_backend, err);
    if (r == 0)
        (void)TAKE(box);
    return r;
}

/* ---- a session ---- */

/* The session's home directory goes into scripts as it is. */
static bool is_plain_path(const char *path)
{
    return path[0] == '/' && strlen(path) < HOME_MAX &&
           strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") ==
                   strlen(path);
}

/* Find out where commands run, once, and make our directories there. */
static int find_home(struct pf_ac_box *box, struct pinfold_cancel *cancel,
                     struct pinfold_error *err)
{
    static const char script[] = "mkdir -p " PF_AC_WORKSPACE " " PF_AC_SCRATCH " && pwd -P";
    struct pf_ac_output output;
    int r = pf_ac_run(box, script, sizeof(script) - 1, 4096, false, NULL, &output, cancel, err);
    char *text = r == 0 ? output.out.data : NULL;

    if (r < 0)
        return r;
    if (text)
        text[strcspn(text, "\r\n")] = '\0';
    if (output.status != 0 || !text) {
        r = pf_fail(err, PINFOLD_EBACKEND, "AgentCore: no workspace can be made in \"%s\": \"%s\"",
                    PF_QUOTE(text ? text : ""), PF_QUOTE(output.errs.data ? output.errs.data : ""));
    } else if (!is_plain_path(text)) {
        r = pf_fail(err, PINFOLD_EBACKEND,
                    "AgentCore: no workspace can be made in %s: the path of the session's home has "
                    "to be absolute, shorter than %d bytes, and of letters, digits, \"-\", \"_\", "
                    "\".\" and \"/\"",
                    PF_QUOTE(text), HOME_MAX);
    } else {
        box->home = strdup(text);
        if (!box->home ||
            asprintf(&box->root, "%s%s" PF_AC_WORKSPACE, text, text[1] ? "/" : "") < 0) {
            box->root = NULL;
            r = pf_fail_nomem(err);
        }
    }
    pf_ac_output_done(&output);
    return r;
}

/* Nobody waits for a session any more that may have been started: ask for it once more, which with
 * the same token is the same one, and stop it. */
static void take_back(struct pf_ac_box *box, json_t *members)
{
    const struct pf_agentcore_call call = { .deadline = pf_clock_deadline(STOP_NS) };
    json_auto_t *reply = NULL, *stopped = NULL;

    if (pf_agentcore_start(box->client, members, &call, &reply, NULL) == 0)
        pf_agentcore_stop(box->client, json_string_value(json_object_get(reply, "sessionId")), NULL,
                          &call, &stopped, NULL);
}

static int start_session(struct pf_ac_box *box, struct pinfold_cancel *cancel,
                         struct pinfold_error *err)
{
    const struct pf_agentcore_call call = { .deadline = pf_clock_deadline(START_NS),
                                            .cancel = cancel };
    char token[PF_UUID_MAX];
    json_auto_t *members = NULL;
    json_auto_t *reply = NULL;
    int r = pf_cancel_check(cancel, err);

    if (r < 0)
        return r;
    pf_agentcore_uuid(token);
    members = json_pack("{s:s, s:i, s:s}", "name", box->name, "sessionTimeoutSeconds",
                        (int)box->session_timeout, "clientToken", token);
    if (!members)
        return pf_fail_nomem(err);
    r = pf_agentcore_start(box->client, members, &call, &reply, err);
    if (r == -PINFOLD_ECANCELLED || r == -PINFOLD_ETIMEOUT)
        take_back(box, members);
    if (r < 0)
        return r;
    box->ends = pf_clock_deadline(box->session_timeout * PF_NS_PER_SEC);
    if (!pf_text_copy(&box->session, json_string_value(json_object_get(reply, "sessionId"))))
        return pf_fail_nomem(err);
    if (asprintf(&box->storage_key, "agentcore:%s:%s:%s", box->region, box->identifier,
                 box->session) < 0) {
        box->storage_key = NULL;
        return pf_fail_nomem(err);
    }
    return 0;
}

/* A session that has ended by itself is one that is stopped. */
static int stop_session(struct pf_ac_box *box, struct pinfold_error *err)
{
    bool gone = false;
    const struct pf_agentcore_call call = { .deadline = pf_clock_deadline(STOP_NS),
                                            .session_gone = &gone };
    json_auto_t *reply = NULL;
    struct pinfold_error why = PINFOLD_ERROR_INIT;
    int r = 0;

    if (box->session && !box->lost)
        r = pf_agentcore_stop(box->client, box->session, NULL, &call, &reply, &why);
    if (r < 0 && !gone) {
        pf_fail(err, (enum pinfold_code)why.code,
                "AgentCore: session %s may run on, and cost, until its time is up: %s",
                box->session, why.msg);
        if (err) {
            err->sys_errno = why.sys_errno;
            err->http_status = why.http_status;
            err->retryable = why.retryable;
        }
    }
    free(TAKE(box->session));
    free(TAKE(box->home));
    free(TAKE(box->root));
    free(TAKE(box->storage_key));
    return gone ? 0 : r;
}

static int box_create(void *state, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pf_ac_box *box = state;
    int r = 0;

    box->owner = getpid();
    pinfold_cancel_free(TAKE(box->stop));
    r = pinfold_cancel_new(&box->stop, err);
    box->stopped = false;
    box->lost = false;
    if (r == 0)
        r = start_session(box, cancel, err);
    if (r == 0)
        r = find_home(box, cancel, err);
    if (r < 0)
        stop_session(box, NULL);
    return r;
}

static int box_stop_commands(void *state, struct pinfold_error *err)
{
    struct pf_ac_box *box = state;

    (void)err;
    if (box->owner != getpid())
        return 0; /* the token is the parent's, too */
    pthread_mutex_lock(&box->lock);
    box->stopped = true;
    pthread_mutex_unlock(&box->lock);
    pinfold_cancel_fire(box->stop);
    return 0;
}

static int box_close(void *state, struct pinfold_error *err)
{
    if (((struct pf_ac_box *)state)->owner != getpid())
        return 0;
    box_stop_commands(state, NULL);
    return stop_session(state, err);
}

static const char *box_root(void *state)
{
    return ((struct pf_ac_box *)state)->root;
}

static const char *box_storage_key(void *state)
{
    return ((struct pf_ac_box *)state)->storage_key;
}

int pinfold_agentcore_session(const struct pinfold_backend *backend, char **ret_id,
                              double *ret_seconds_left, struct pinfold_error *err)
{
    const struct pf_ac_box *box;

    if (backend->ops != &session_ops)
        return pf_fail(err, PINFOLD_ETYPE, "backend %s is no session of AgentCore", backend->id);
    box = backend->state;
    if (!box->session)
        return pf_fail(err, PINFOLD_ESTART, "AgentCore: no session: the sandbox is not started");
    if (!pf_text_copy(ret_id, box->session))
        return pf_fail_nomem(err);
    if (ret_seconds_left) {
        int64_t left = box->ends - pf_clock_now();
        *ret_seconds_left = left > 0 ? (double)left / (double)PF_NS_PER_SEC : 0;
    }
    return 0;
}

/* What a session can do stands in the template's table too, where it fails for want of a session:
 * whoever asks for execute sees what the template builds. */
#define OPERATIONS                                                                                \
    .size = sizeof(struct pinfold_backend_ops), .create = box_create, .close = box_close,         \
    .stop_commands = box_stop_commands, .read_file = pf_ac_read_file,                             \
    .write_file = pf_ac_write_file, .list_dir = pf_ac_list_dir, .remove_file = pf_ac_remove_file, \
    .move_file = pf_ac_move_file, .seed_workspace = pf_ac_seed, .sync_artifacts = pf_ac_sync,     \
    .upload_files = pf_ac_upload, .download_files = pf_ac_download, .execute = pf_ac_execute,     \
    .workspace_root = box_root, .storage_key = box_storage_key, .free = box_free

static const struct pinfold_backend_ops template_ops = {
    .type_name = class_name,
    .build_for_session = build_for_session,
    OPERATIONS,
};

static const struct pinfold_backend_ops session_ops = {
    .type_name = "AgentCoreSandboxBackend",
    OPERATIONS,
};

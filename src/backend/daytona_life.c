/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a sandbox: made, waited for, started again when the service stopped it, deleted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/daytona.h"
#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/log.h"

#define WORKSPACE "workspace"      /* beside what is there from the start */
#define SCRATCH ".pinfold-scratch" /* likewise, for what is on its way */
#define GNU_MARK "has all"         /* of what scripts need */
#define DELETE_NS (60 * PF_NS_PER_SEC)
#define LOOK_NS (30 * PF_NS_PER_SEC)
#define FIRST_POLL_NS (100 * PF_NS_PER_MS)
#define STEADY_NS (5 * PF_NS_PER_SEC) /* so long at the first pace */
enum { MAX_TRIES = 4, UNSEEN_TRIES = 3 };

int pf_dt_fail_start(const struct pf_dt_box *box, struct pinfold_error *err)
{
    return box->root ? 0
                     : pf_fail(err, PINFOLD_ESTART,
                               "Daytona: no sandbox: the workspace is not started");
}

int pf_dt_fail_bare(const struct pf_dt_box *box, struct pinfold_error *err)
{
    return box->bare ? pf_fail(err, PINFOLD_EBACKEND,
                               "Daytona: the sandbox's image has no GNU coreutils, findutils and "
                               "tar: "
                               "commands run, but files need them (Alpine: apk add coreutils "
                               "findutils tar gzip)")
                     : 0;
}

/* ---- states ---- */

static const char *state_of(const json_t *sandbox)
{
    const char *state = json_string_value(json_object_get(sandbox, "state"));

    return state ? state : "unknown";
}

static bool is_one_of(const char *state, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(state, *list) == 0)
            return true;
    return false;
}

static int fail_state(const struct pf_dt_box *box, const json_t *sandbox, struct pinfold_error *err)
{
    const char *reason = json_string_value(json_object_get(sandbox, "errorReason"));

    return pf_fail(err, PINFOLD_EBACKEND, "Daytona: the sandbox is in state \"%s\"%s%s",
                   PF_QUOTE(state_of(sandbox)), reason ? ": " : "",
                   reason ? PF_QUOTE(pf_daytona_words(box->client, reason)) : "");
}

/* How often a wait looks: at a steady pace first, then more and more seldom. */
struct pace {
    int64_t start, ns;
};

static int pace_wait(struct pace *pace, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    if (pace->ns == 0)
        *pace = (struct pace){ pf_clock_now(), FIRST_POLL_NS };
    else if (pf_clock_now() - pace->start > STEADY_NS && pace->ns < PF_NS_PER_SEC)
        pace->ns += pace->ns / 10;
    return pf_cancel_wait(cancel, NULL, pf_clock_deadline(pace->ns), err);
}

static int look(struct pf_dt_box *box, json_t **sandbox, struct pinfold_cancel *cancel,
                struct pinfold_error *err)
{
    const struct pf_daytona_call call = { .deadline = pf_clock_deadline(LOOK_NS),
                                          .cancel = cancel };

    json_decref(TAKE(*sandbox));
    return pf_daytona_get(box->client, box->id, &call, sandbox, err);
}

/* Until it is started. Whatever else happens to it is an error. */
static int wait_started(struct pf_dt_box *box, json_t **sandbox, int64_t deadline,
                        struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    static const char *const dead[] = { "error", "build_failed", "destroyed", "destroying", NULL };
    struct pace pace = { 0 };
    bool late = false;
    int r;

    while (strcmp(state_of(*sandbox), "started") != 0) {
        if (is_one_of(state_of(*sandbox), dead))
            return fail_state(box, *sandbox, err);
        if (late)
            return pf_fail(err, PINFOLD_ETIMEOUT,
                           "Daytona: the sandbox has not started in %u s: it is in state \"%s\" "
                           "(create_timeout_seconds)",
                           box->create_timeout_seconds, PF_QUOTE(state_of(*sandbox)));
        r = pace_wait(&pace, cancel, err);
        late = pf_clock_now() >= deadline; /* then it is looked at once more */
        if (r == 0)
            r = look(box, sandbox, cancel, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int64_t create_deadline(const struct pf_dt_box *box)
{
    return pf_clock_deadline((int64_t)box->create_timeout_seconds * PF_NS_PER_SEC);
}

/* ---- making ---- */

static int set(json_t *body, const char *name, json_t *value)
{
    return json_object_set_new(body, name, value);
}

static int set_optional(json_t *body, const char *name, const char *text)
{
    return text ? set(body, name, json_string(text)) : 0;
}

static json_t *env_object(char *const *env)
{
    json_t *object = json_object();

    for (; object && *env; env++) {
        const char *equals = strchr(*env, '=');
        _cleanup_free_ char *name = strndup(*env, (size_t)(equals - *env));
        if (!name || set(object, name, json_string(equals + 1)) < 0) {
            json_decref(object);
            object = NULL;
        }
    }
    return object;
}

static int set_source(const struct pf_dt_box *box, json_t *body)
{
    _cleanup_free_ char *line = NULL;

    if (!box->image)
        return set_optional(body, "snapshot", box->snapshot);
    if (asprintf(&line, "FROM %s\n", box->image) < 0) {
        line = NULL;
        return -1;
    }
    return set(body, "buildInfo", json_pack("{s:s}", "dockerfileContent", line));
}

/* What is not asked for is left out, as Daytona's own clients do. */
static json_t *create_body(const struct pf_dt_box *box, const char *owner)
{
    json_t *body = json_object(), *labels = pf_dt_labels(box);
    int stop = box->auto_stop_minutes < 0 ? 0 : box->auto_stop_minutes;
    int r = body && labels ? 0 : -1;

    if (r == 0)
        r = set(labels, "code-toolbox-language", json_string("python"));
    if (r == 0)
        r = set(labels, "pinfold-owner", json_string(owner));
    if (r == 0)
        r = set(body, "env", env_object(box->env));
    if (r == 0)
        r = json_object_set(body, "labels", labels);
    if (r == 0)
        r = set_optional(body, "target", box->config.target);
    if (r == 0)
        r = set_source(box, body);
    if (r == 0)
        r = set(body, "autoStopInterval", json_integer(stop));
    if (r == 0)
        r = set(body, "autoDeleteInterval", json_integer(box->auto_delete_minutes));
    if (r == 0 && box->network_block_all)
        r = set(body, "networkBlockAll", json_true());
    if (r == 0)
        r = set_optional(body, "networkAllowList", box->network_allow_list);
    if (r == 0)
        r = set_optional(body, "domainAllowList", box->domain_allow_list);
    json_decref(labels);
    if (r == 0)
        return body;
    json_decref(body);
    return NULL;
}

/* A request that may have reached the service may have made a sandbox; and one that fails to start
 * while the service waits for it is a 400, but there. */
static bool may_exist(const struct pinfold_error *err)
{
    if (err->code == PINFOLD_EBACKEND)
        return err->http_status == 0 || err->http_status >= 500 || err->http_status == 408 ||
               err->http_status == 400;
    return err->code != PINFOLD_ENOMEM && err->code != PINFOLD_EVALUE && !err->retryable;
}

static int ask_for_sandbox(struct pf_dt_box *box, int64_t deadline, json_t **ret,
                           struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    const struct pf_daytona_call call = { .deadline = deadline, .cancel = cancel };
    char owner[PF_DT_OWNER_MAX];
    json_auto_t *body = NULL;
    const char *id;
    int r;

    pf_dt_owner(owner);
    body = create_body(box, owner);
    if (!body)
        return pf_fail(err, PINFOLD_EVALUE,
                       "Daytona: an option is no UTF-8, or there is no memory");
    r = pf_daytona_create(box->client, body, &call, ret, err);
    if (r < 0 && may_exist(err))
        pf_dt_delete_unseen(box, owner, err->http_status == 400 ? 1 : UNSEEN_TRIES);
    if (r < 0)
        return r;
    id = json_string_value(json_object_get(*ret, "id"));
    box->id = strdup(id);
    if (box->id && asprintf(&box->storage_key, "daytona:%s:%s", box->config.api_url, id) >= 0)
        return 0;
    box->storage_key = NULL;
    return pf_fail_nomem(err);
}

/* It goes into scripts as it is. */
static bool is_plain_path(const char *path)
{
    return path[0] == '/' && strlen(path) < 200 &&
           strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") ==
                   strlen(path);
}

/* Find out where the user's files are, and make our directories there. */
static int make_directories(struct pf_dt_box *box, struct pinfold_cancel *cancel,
                            struct pinfold_error *err)
{
    static const char script[] =
            "exec /bin/sh -c 'mkdir -p " WORKSPACE " " SCRATCH " && chmod 700 " SCRATCH
            " && pwd -P || exit; readlink -m / && stat -Lc %s / && find / -maxdepth 0 -printf . && "
            "tar --version | grep GNU && echo \" " GNU_MARK "\"; exit 0' </dev/null 2>/dev/null";
    const struct pf_daytona_call call = { .deadline = pf_clock_deadline(PF_DT_CALL_NS),
                                          .cancel = cancel };
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(64 << 10);
    unsigned tries = 0;
    int status = -1, r;

    do {
        text.len = 0;
        r = pf_daytona_execute(&box->toolbox, script, 60, &call, &status, &text, err);
    } while (r < 0 && pf_dt_again(box, &tries, true, cancel, err));
    if (r < 0)
        return -err->code;
    box->bare = !text.data || !strstr(text.data, GNU_MARK);
    if (text.data)
        text.data[strcspn(text.data, "\r\n")] = '\0';
    if (status != 0 || !text.data || !is_plain_path(text.data))
        return pf_fail(err, PINFOLD_EBACKEND, "Daytona: no workspace can be made there: \"%s\"",
                       PF_QUOTE(text.data ? text.data : ""));
    if (asprintf(&box->root, "%s%s" WORKSPACE, text.data, text.data[1] ? "/" : "") < 0)
        box->root = NULL;
    if (asprintf(&box->scratch, "%s%s" SCRATCH, text.data, text.data[1] ? "/" : "") < 0)
        box->scratch = NULL;
    return box->root && box->scratch ? 0 : pf_fail_nomem(err);
}

static int make_sandbox(struct pf_dt_box *box, struct pinfold_cancel *cancel,
                        struct pinfold_error *err)
{
    int64_t deadline = create_deadline(box);
    const struct pf_daytona_call call = { .deadline = pf_clock_deadline(PF_DT_CALL_NS),
                                          .cancel = cancel };
    json_t *sandbox = NULL;
    int r = ask_for_sandbox(box, deadline, &sandbox, cancel, err);

    if (r == 0)
        r = wait_started(box, &sandbox, deadline, cancel, err);
    if (r == 0)
        r = pf_daytona_toolbox_find(box->client, sandbox, &call, &box->toolbox, err);
    json_decref(sandbox);
    return r < 0 ? r : make_directories(box, cancel, err);
}

int pf_dt_create(struct pf_dt_box *box, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pinfold_error own = PINFOLD_ERROR_INIT;
    int r = pf_dt_delete_orphans(box, cancel, &own);

    if (r == 0)
        r = make_sandbox(box, cancel, &own);
    if (r == 0) {
        pf_dt_keeper_start(box);
        return 0;
    }
    if (err)
        *err = own;
    pf_dt_delete(box, NULL); /* says itself in the log what it could not do */
    return r;
}

/* ---- deleting ---- */

static bool may_pass(const struct pinfold_error *err)
{
    int status = err->http_status;

    /* Before 0.160 a change that is under way was a 400. */
    return status == 409 || status == 400 || status == 429 || status >= 500 ||
           err->code == PINFOLD_EOS || err->code == PINFOLD_ETIMEOUT;
}

static int delete_until_gone(struct pf_dt_box *box, struct pinfold_error *err)
{
    int64_t deadline = pf_clock_deadline(DELETE_NS), pause = PF_NS_PER_SEC / 4;
    int r;

    for (;;) {
        struct pf_daytona_call call = { .deadline = pf_clock_deadline(LOOK_NS) };
        r = pf_daytona_delete(box->client, box->id, &call, err);
        if (r == 0 || !may_pass(err) || pf_clock_now() + pause >= deadline)
            return r;
        pf_cancel_wait(NULL, NULL, pf_clock_deadline(pause), NULL);
        pause = pause < 8 * PF_NS_PER_SEC ? 2 * pause : pause;
    }
}

int pf_dt_delete(struct pf_dt_box *box, struct pinfold_error *err)
{
    struct pinfold_error own = PINFOLD_ERROR_INIT;
    int r = 0;

    pf_dt_keeper_end(box);
    if (box->id) /* also when it seemed to be gone: that costs nothing */
        r = delete_until_gone(box, &own);
    if (r < 0) {
        pf_log(PINFOLD_LOG_ERROR, "Daytona: sandbox %s is left, and may cost money: %s",
               PF_QUOTE(box->id), own.msg);
        if (err)
            *err = own;
    }
    pf_daytona_toolbox_done(&box->toolbox);
    free(TAKE(box->id));
    free(TAKE(box->root));
    free(TAKE(box->scratch));
    free(TAKE(box->storage_key));
    return r;
}

/* ---- starting it again ---- */

static int fail_lost(struct pf_dt_box *box, struct pinfold_error *err)
{
    pthread_mutex_lock(&box->lock);
    box->lost = true;
    pthread_mutex_unlock(&box->lock);
    pf_fail(err, PINFOLD_EBACKEND,
            "Daytona: sandbox %s is gone: its files and processes are lost, start another",
            PF_QUOTE(box->id));
    err->http_status = 404;
    return -PINFOLD_EBACKEND;
}

/* A conflict is a change that is under way: it is waited for. */
static int start_it(struct pf_dt_box *box, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    const struct pf_daytona_call call = { .deadline = pf_clock_deadline(PF_DT_CALL_NS),
                                          .cancel = cancel };
    int r = pf_daytona_start(box->client, box->id, &call, err);

    return r < 0 && err->http_status == 409 ? 0 : r;
}

/* Returns 1 when it had to be started, 0 when it runs, or a negative code. */
static int wake_locked(struct pf_dt_box *box, struct pinfold_cancel *cancel,
                       struct pinfold_error *err)
{
    static const char *const asleep[] = { "stopped", "archived", "archiving", "paused", NULL };
    static const char *const dead[] = { "error", "build_failed", NULL };
    static const char *const gone[] = { "destroyed", "destroying", NULL };
    int64_t deadline = create_deadline(box);
    json_auto_t *sandbox = NULL;
    struct pace pace = { 0 };
    int r, woken = 0;

    for (;;) {
        r = look(box, &sandbox, cancel, err);
        if (r < 0 && err->http_status == 404)
            return fail_lost(box, err);
        if (r < 0)
            return r;
        if (strcmp(state_of(sandbox), "started") == 0)
            return woken;
        if (is_one_of(state_of(sandbox), gone))
            return fail_lost(box, err);
        if (is_one_of(state_of(sandbox), dead) || pf_clock_now() >= deadline)
            return fail_state(box, sandbox, err);
        woken = 1;
        r = is_one_of(state_of(sandbox), asleep) ? start_it(box, cancel, err) : 0;
        if (r == 0)
            r = pace_wait(&pace, cancel, err);
        if (r < 0)
            return r;
    }
}

static int wake(struct pf_dt_box *box, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    int r;

    pthread_mutex_lock(&box->waking);
    r = wake_locked(box, cancel, err);
    pthread_mutex_unlock(&box->waking);
    return r;
}

bool pf_dt_again(struct pf_dt_box *box, unsigned *tries, bool repeatable,
                 struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pinfold_error own = PINFOLD_ERROR_INIT;
    int status = err->http_status, r;
    bool refused = status == 400 || status == 404; /* by the proxy, or by what was asked */

    if ((!refused && status != 502 && status != 503 && status != 504) || (*tries)++ >= MAX_TRIES)
        return false;
    r = wake(box, cancel, &own);
    if (r < 0) {
        *err = own;
        return false;
    }
    if (r == 1)
        pf_log(PINFOLD_LOG_INFO, "Daytona: sandbox %s had been stopped, and runs again",
               PF_QUOTE(box->id));
    if (refused)
        return r == 1;
    if (!repeatable)
        return false;
    r = pf_cancel_wait(cancel, NULL, pf_clock_deadline((PF_NS_PER_SEC / 5) << *tries), &own);
    if (r < 0)
        *err = own;
    return r == 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The provider: credentials that threads share, and their renewal. The lock guards what is here and
 * is never held while anything is asked; a renewal under way is an object of its own, whose
 * descriptor becomes readable for all who wait when it is over, so that each can also wait for its
 * own token of cancellation.
 */
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/poll.h"
#include "net/aws_sources.h"

#define MANDATORY_NS (INT64_C(10) * 60 * PF_NS_PER_SEC)
#define RETRY_NS (60 * PF_NS_PER_SEC) /* after a renewal in good time has failed */

struct renewal {
    int done; /* an eventfd that is never read */
    unsigned users;
    int result;
    struct pinfold_error err;
};

struct pf_aws_provider {
    struct pf_aws_options options; /* its texts are ours */
    struct pf_http *http;
    pthread_mutex_t lock;              /* guards what follows */
    struct pf_aws_credentials current; /* access_key NULL: none yet */
    bool refused;
    struct renewal *running;
    int64_t retry_at; /* monotonic */
};

/* ---- life ---- */

static char *own(const char *text, bool *ok)
{
    char *copy = text && *text ? strdup(text) : NULL;

    *ok = *ok && (copy || !text || !*text);
    return copy;
}

static void wipe(const char *text)
{
    char *ours = (char *)(uintptr_t)text;

    pf_aws_wipe_text(&ours);
}

int pf_aws_provider_new(const struct pf_aws_options *options, struct pf_http *http,
                        struct pf_aws_provider **ret, struct pinfold_error *err)
{
    struct pf_aws_provider *provider;
    bool ok = true;

    if (!options->access_key != !options->secret_key ||
        (options->session_token && !options->access_key))
        return pf_fail(err, PINFOLD_EVALUE,
                       "AWS credentials: access key and secret key are given together or not at "
                       "all, a session token with them");
    if (options->access_key && options->profile)
        return pf_fail(err, PINFOLD_EVALUE, "AWS credentials: give keys or a profile, not both");
    provider = calloc(1, sizeof(*provider));
    if (!provider)
        return pf_fail_nomem(err);
    pthread_mutex_init(&provider->lock, NULL);
    provider->http = http;
    provider->options = (struct pf_aws_options){
        own(options->access_key, &ok),    own(options->secret_key, &ok),
        own(options->session_token, &ok), own(options->profile, &ok),
        own(options->region, &ok),
    };
    if (!ok) {
        pf_aws_provider_free(provider);
        return pf_fail_nomem(err);
    }
    *ret = provider;
    return 0;
}

void pf_aws_provider_free(struct pf_aws_provider *provider)
{
    if (!provider)
        return;
    wipe(provider->options.access_key);
    wipe(provider->options.secret_key);
    wipe(provider->options.session_token);
    wipe(provider->options.profile);
    wipe(provider->options.region);
    pf_aws_credentials_done(&provider->current);
    pthread_mutex_destroy(&provider->lock);
    free(provider);
}

/* ---- what there is ---- */

enum state {
    GOOD,
    AGING, /* renew them when nobody does, and use them all the same */
    OVER,
};

static enum state state_of(const struct pf_aws_provider *provider)
{
    int64_t left;

    if (!provider->current.access_key || provider->refused)
        return OVER;
    if (provider->current.expires == 0)
        return GOOD;
    left = provider->current.expires - pf_aws_now();
    return left < MANDATORY_NS ? OVER : left < PF_AWS_EXPIRY_NS ? AGING : GOOD;
}

static int give(const struct pf_aws_provider *provider, struct pf_aws_credentials *ret,
                struct pinfold_error *err)
{
    return pf_aws_credentials_copy(&provider->current, ret) < 0 ? pf_fail_nomem(err) : 0;
}

/* ---- renewal; the lock is held where not said otherwise ---- */

static int begin(struct pf_aws_provider *provider, struct renewal **ret, struct pinfold_error *err)
{
    struct renewal *renewal = calloc(1, sizeof(*renewal));

    if (!renewal)
        return pf_fail_nomem(err);
    renewal->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (renewal->done < 0) {
        int saved = errno;
        free(renewal);
        return pf_fail_os(err, saved, "renew AWS credentials");
    }
    renewal->users = 1;
    provider->running = renewal;
    *ret = renewal;
    return 0;
}

static void leave(struct renewal *renewal)
{
    if (--renewal->users > 0)
        return;
    close(renewal->done);
    free(renewal);
}

/* Fetch without the lock, and tell everybody. */
static int renew(struct pf_aws_provider *provider, struct renewal *renewal, int64_t deadline,
                 struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pf_aws_ask ask = { .options = &provider->options,
                              .http = provider->http,
                              .deadline = deadline,
                              .cancel = cancel };
    struct pf_aws_credentials fresh = { 0 };
    int r;

    pthread_mutex_unlock(&provider->lock);
    r = pf_aws_resolve(&ask, &fresh, &renewal->err);
    pthread_mutex_lock(&provider->lock);
    if (r == 0) {
        pf_aws_credentials_done(&provider->current);
        provider->current = fresh;
        provider->refused = false;
    }
    provider->retry_at = r == 0 ? 0 : pf_clock_deadline(RETRY_NS);
    provider->running = NULL;
    renewal->result = r;
    if (r < 0 && err)
        *err = renewal->err;
    eventfd_write(renewal->done, 1); /* cannot fail: nobody else has written */
    leave(renewal);
    return r;
}

/* Wait for another thread's renewal. Returns 0 when it is worth looking again, or a negative code:
 * its failure, or that of the wait. */
static int join(struct pf_aws_provider *provider, struct renewal *renewal, int64_t deadline,
                struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pollfd fds[] = { { .fd = renewal->done, .events = POLLIN },
                            { .fd = pf_cancel_fd(cancel), .events = POLLIN } };
    int r = 0, n = 0;

    renewal->users++;
    pthread_mutex_unlock(&provider->lock);
    while (r == 0 && n <= 0) {
        n = pf_poll(fds, 2, pf_clock_poll_ms(deadline));
        r = pf_cancel_check(cancel, err);
        if (r == 0 && n == 0 && pf_clock_now() >= deadline)
            r = pf_fail(err, PINFOLD_ETIMEOUT, "wait for AWS credentials");
    }
    pthread_mutex_lock(&provider->lock);
    /* Who was in a hurry, or called off, has found out nothing for the others. */
    if (r == 0 && renewal->result != -PINFOLD_ECANCELLED && renewal->result != -PINFOLD_ETIMEOUT) {
        r = renewal->result;
        if (r < 0 && err)
            *err = renewal->err;
    }
    leave(renewal);
    return r;
}

/* Renew what is still good: a failure does not matter yet, unless the caller wants to stop. */
static int renew_early(struct pf_aws_provider *provider, int64_t deadline,
                       struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pinfold_error local = PINFOLD_ERROR_INIT;
    struct renewal *renewal = NULL;
    int r = begin(provider, &renewal, &local);

    if (renewal)
        r = renew(provider, renewal, deadline, cancel, &local);
    if (r == -PINFOLD_ECANCELLED) {
        if (err)
            *err = local;
        return r;
    }
    if (r < 0)
        pf_log(PINFOLD_LOG_WARNING, "AWS credentials are not renewed yet: %s", local.msg);
    return 0;
}

/* Have credentials in place. */
static int ready(struct pf_aws_provider *provider, int64_t deadline, struct pinfold_cancel *cancel,
                 struct pinfold_error *err)
{
    struct renewal *renewal = NULL;
    int r = 0;

    for (;;) {
        enum state state = state_of(provider);

        if (state == GOOD)
            return 0;
        if (state == AGING)
            return provider->running || pf_clock_now() < provider->retry_at
                           ? 0
                           : renew_early(provider, deadline, cancel, err);
        if (!provider->running) {
            r = begin(provider, &renewal, err);
            return renewal ? renew(provider, renewal, deadline, cancel, err) : r;
        }
        r = join(provider, provider->running, deadline, cancel, err);
        if (r < 0)
            return r;
    }
}

int pf_aws_provider_get(struct pf_aws_provider *provider, int64_t deadline,
                        struct pf_aws_credentials *ret, struct pinfold_cancel *cancel,
                        struct pinfold_error *err)
{
    int r = pf_cancel_check(cancel, err);

    if (r < 0)
        return r;
    pthread_mutex_lock(&provider->lock);
    r = ready(provider, deadline, cancel, err);
    if (r == 0)
        r = give(provider, ret, err);
    pthread_mutex_unlock(&provider->lock);
    return r;
}

void pf_aws_provider_expire(struct pf_aws_provider *provider,
                            const struct pf_aws_credentials *refused)
{
    pthread_mutex_lock(&provider->lock);
    if (provider->current.access_key &&
        strcmp(provider->current.access_key, refused->access_key) == 0)
        provider->refused = true;
    pthread_mutex_unlock(&provider->lock);
}

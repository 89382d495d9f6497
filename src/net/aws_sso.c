/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials of AWS IAM Identity Center, from the token that "aws sso login" has left. */
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "net/aws_sources.h"
#include "net/uri.h"

#define ATTEMPTS 3
#define TIMEOUT_NS (30 * PF_NS_PER_SEC)
#define CACHE_MAX ((size_t)64 * 1024)

struct sso {
    const char *profile, *session; /* session: NULL for the older form of profiles */
    const char *account, *role, *region, *start_url;
    struct pf_buf cache_path;
};

static int fail_profile(const struct sso *sso, const char *wrong, struct pinfold_error *err)
{
    return pf_fail(err, PINFOLD_EVALUE, "AWS profile %s, SSO: %s", PF_QUOTE(sso->profile), wrong);
}

static int fail_login(const struct sso *sso, const char *wrong, struct pinfold_error *err)
{
    return pf_fail(err, PINFOLD_EVALUE,
                   "AWS profile %s, SSO: %s: log in with aws sso login --profile ...",
                   PF_QUOTE(sso->profile), wrong);
}

/* A setting of the session, which the profile may repeat, but not contradict. */
static const char *session_setting(const struct pf_aws_ask *ask, const struct sso *sso,
                                   const char *key, bool *differs)
{
    const char *own = pf_aws_profile_get(ask, sso->profile, key), *shared = NULL;

    if (!sso->session)
        return own;
    shared = pf_aws_config_get(ask, "sso-session", sso->session, key);
    *differs = *differs || (own && shared && strcmp(own, shared) != 0);
    return shared ? shared : own;
}

static int read_profile(const struct pf_aws_ask *ask, struct sso *sso, struct pinfold_error *err)
{
    bool differs = false;

    sso->session = pf_aws_profile_get(ask, sso->profile, "sso_session");
    if (sso->session && !pf_aws_has_section(ask, "sso-session", sso->session))
        return fail_profile(sso, "there is no such sso-session section", err);
    sso->region = session_setting(ask, sso, "sso_region", &differs);
    sso->start_url = session_setting(ask, sso, "sso_start_url", &differs);
    if (differs)
        return fail_profile(sso, "it differs from its sso-session", err);
    if (!sso->account || !sso->role || !sso->region || !sso->start_url)
        return fail_profile(sso,
                            !sso->account  ? "sso_account_id is missing"
                            : !sso->role   ? "sso_role_name is missing"
                            : !sso->region ? "sso_region is missing"
                                           : "sso_start_url is missing",
                            err);
    if (!pf_aws_region_fits(sso->region))
        return fail_profile(sso, "sso_region is not the name of a region", err);
    return 0;
}

/* The file's name is the SHA-1 of the session's name, or of the start address. */
static int find_cache(struct sso *sso, struct pinfold_error *err)
{
    const char *name = sso->session ? sso->session : sso->start_url;
    unsigned char hash[EVP_MAX_MD_SIZE];
    char rest[64 + 2 * sizeof(hash)];
    unsigned hash_len = 0;
    int len;

    if (EVP_Digest(name, strlen(name), hash, &hash_len, EVP_sha1(), NULL) != 1)
        return fail_profile(sso, "SHA-1, which names the cached token, is not to be had", err);
    len = snprintf(rest, sizeof(rest), "/.aws/sso/cache/");
    for (unsigned i = 0; i < hash_len; i++)
        len += snprintf(rest + len, sizeof(rest) - (size_t)len, "%02x", hash[i]);
    snprintf(rest + len, sizeof(rest) - (size_t)len, ".json");
    return pf_aws_home(rest, &sso->cache_path, err);
}

/* ---- the cached token ---- */

static int load_cache(const struct sso *sso, json_t **ret, struct pinfold_error *err)
{
    _cleanup_wipe_ struct pf_buf text = { 0 };
    const char *wrong;
    int r = pf_aws_read_file(sso->cache_path.data, CACHE_MAX, &text, err);

    if (r < 0)
        return r;
    if (r == 0)
        return fail_login(sso, "nobody has logged in", err);
    *ret = pf_aws_json_load(text.data, text.len, &wrong);
    return *ret ? 0
                : pf_fail(err, PINFOLD_EVALUE, "read %s: %s", PF_QUOTE(sso->cache_path.data),
                          wrong);
}

/* How long the token is good for; negative: no longer. */
static int token_left(const struct sso *sso, const json_t *cache, int64_t *ret,
                      struct pinfold_error *err)
{
    const char *expires = pf_aws_json_text(cache, "expiresAt");
    int64_t when;

    if (!pf_aws_json_text(cache, "accessToken"))
        return fail_login(sso, "the cached login has no accessToken", err);
    if (!expires || pf_aws_time(expires, &when) < 0)
        return fail_login(sso, "the cached login does not say when it expires", err);
    *ret = when - pf_aws_now();
    return 0;
}

static bool can_refresh(const struct sso *sso, const json_t *cache)
{
    const char *until = pf_aws_json_text(cache, "registrationExpiresAt");
    int64_t when;

    return sso->session && pf_aws_json_text(cache, "refreshToken") &&
           pf_aws_json_text(cache, "clientId") && pf_aws_json_text(cache, "clientSecret") &&
           (!until || (pf_aws_time(until, &when) == 0 && when > pf_aws_now()));
}

/* JSON as text in one piece of memory, to be wiped. */
static int dump(const json_t *json, struct pf_buf *ret)
{
    size_t size = json_dumpb(json, NULL, 0, JSON_COMPACT);

    ret->limit = 2 * CACHE_MAX;
    if (size == 0 || pf_buf_reserve(ret, size) < 0)
        return -PINFOLD_ENOMEM;
    ret->len = json_dumpb(json, ret->data, size, JSON_COMPACT);
    return ret->len == size ? 0 : -PINFOLD_ENOMEM;
}

/* The new token is good even when it cannot be kept: then only the next process asks again. */
static void save_cache(const struct sso *sso, const json_t *cache)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    _cleanup_wipe_ struct pf_buf text = { 0 };
    int r = dump(cache, &text);

    if (r < 0)
        pf_fail_nomem(&err);
    else
        r = pf_aws_write_file(sso->cache_path.data, text.data, text.len, &err);
    if (r < 0)
        pf_log(PINFOLD_LOG_WARNING, "the refreshed SSO token is not kept: %s", err.msg);
}

static int set_text(json_t *json, const char *key, const char *value)
{
    json_t *old = json_object_get(json, key);
    int r;

    json_incref(old);
    r = json_object_set_new(json, key, json_string(value));
    if (r == 0 && old)
        pf_aws_json_free(&old);
    else
        json_decref(old);
    return r < 0 ? -PINFOLD_ENOMEM : 0;
}

static int take_token(const struct sso *sso, json_t *cache, const struct pf_aws_reply *reply,
                      struct pinfold_error *err)
{
    const char *wrong, *token, *refresh;
    _cleanup_json_ json_t *json = pf_aws_json_load(reply->body.data, reply->body.len, &wrong);
    const json_t *lasts = json_object_get(json, "expiresIn");
    char expires[32];
    struct tm utc;
    time_t when;

    token = json ? pf_aws_json_text(json, "accessToken") : NULL;
    refresh = json ? pf_aws_json_text(json, "refreshToken") : NULL;
    if (!token || !json_is_integer(lasts) || json_integer_value(lasts) <= 0 ||
        json_integer_value(lasts) > INT32_MAX)
        return pf_fail(err, PINFOLD_EBACKEND, "SSO token refresh: %s",
                       json ? "accessToken or expiresIn is missing" : wrong);
    when = time(NULL) + (time_t)json_integer_value(lasts);
    gmtime_r(&when, &utc);
    (void)strftime(expires, sizeof(expires), "%Y-%m-%dT%H:%M:%SZ", &utc);
    if (set_text(cache, "accessToken", token) < 0 || set_text(cache, "expiresAt", expires) < 0 ||
        (refresh && set_text(cache, "refreshToken", refresh) < 0))
        return pf_fail_nomem(err);
    save_cache(sso, cache);
    return 0;
}

static int refresh_body(const json_t *cache, struct pf_buf *ret)
{
    _cleanup_json_ json_t *json =
            json_pack("{s:s, s:s, s:s, s:s}", "grantType", "refresh_token", "clientId",
                      pf_aws_json_text(cache, "clientId"), "clientSecret",
                      pf_aws_json_text(cache, "clientSecret"), "refreshToken",
                      pf_aws_json_text(cache, "refreshToken"));

    return json ? dump(json, ret) : -PINFOLD_ENOMEM;
}

static int refresh_token(const struct pf_aws_ask *ask, const struct sso *sso, json_t *cache,
                         struct pinfold_error *err)
{
    static const struct pf_header header = { "content-type", "application/json" };
    PF_CLEANUP(pf_aws_reply_done) struct pf_aws_reply reply = { 0 };
    PF_CLEANUP(pf_buf_done) struct pf_buf url = PF_BUF_INIT(8 << 10);
    _cleanup_wipe_ struct pf_buf body = { 0 };
    int r = pf_aws_endpoint(ask, "sso_oidc", "oidc", sso->region, &url, err);

    if (r < 0)
        return r;
    if (pf_buf_append_text(&url, "/token") < 0 || refresh_body(cache, &body) < 0)
        return pf_fail_nomem(err);
    const struct pf_aws_call call = {
        .what = "SSO token refresh",
        .method = "POST",
        .url = url.data,
        .headers = &header,
        .header_count = 1,
        .body = body.data,
        .body_len = body.len,
        .attempts = ATTEMPTS,
        .timeout_ns = TIMEOUT_NS,
        .once = true, /* the refresh token may be good for one answer only */
    };
    r = pf_aws_send(ask, &call, &reply, err);
    if (r < 0)
        return r;
    return reply.status == 200 ? take_token(sso, cache, &reply, err)
                               : pf_aws_refused(call.what, reply.status, "", err);
}

/* Have a token in cache that is good now. */
static int ready_token(const struct pf_aws_ask *ask, const struct sso *sso, json_t *cache,
                       struct pinfold_error *err)
{
    struct pinfold_error local = PINFOLD_ERROR_INIT;
    int64_t left = 0;
    int r = token_left(sso, cache, &left, err);

    if (r < 0 || left >= PF_AWS_EXPIRY_NS)
        return r;
    if (!can_refresh(sso, cache))
        return left > 0 ? 0 : fail_login(sso, "the login has expired", err);
    r = refresh_token(ask, sso, cache, &local);
    if (r == 0)
        return 0;
    if (left > 0 && r != -PINFOLD_ECANCELLED && r != -PINFOLD_ENOMEM && r != -PINFOLD_ETIMEOUT) {
        pf_log(PINFOLD_LOG_WARNING, "%s; the token is still good", local.msg);
        return 0;
    }
    if (err)
        *err = local;
    return r;
}

/* ---- credentials for the token ---- */

static int role_url(const struct pf_aws_ask *ask, const struct sso *sso, struct pf_buf *ret,
                    struct pinfold_error *err)
{
    int r = pf_aws_endpoint(ask, "sso", "portal.sso", sso->region, ret, err);

    if (r < 0)
        return r;
    r = pf_buf_append_text(ret, "/federation/credentials?role_name=");
    if (r == 0)
        r = pf_uri_encode(ret, sso->role, strlen(sso->role), "");
    if (r == 0)
        r = pf_buf_append_text(ret, "&account_id=");
    if (r == 0)
        r = pf_uri_encode(ret, sso->account, strlen(sso->account), "");
    return r < 0 ? pf_fail_nomem(err) : 0;
}

static int take_role(const struct sso *sso, const struct pf_aws_reply *reply,
                     struct pf_aws_credentials *ret, struct pinfold_error *err)
{
    static const struct pf_aws_json_names names = {
        "accessKeyId", "secretAccessKey", "sessionToken", "expiration", true, true, true
    };
    const char *wrong;
    _cleanup_json_ json_t *json = NULL;

    if (reply->status == 401)
        return fail_login(sso, "the service does not take the token", err);
    if (reply->status != 200)
        return pf_aws_refused("SSO credentials", reply->status, "", err);
    json = pf_aws_json_load(reply->body.data, reply->body.len, &wrong);
    if (!json)
        return pf_fail(err, PINFOLD_EVALUE, "SSO credentials: %s", wrong);
    return pf_aws_json_keys(json_object_get(json, "roleCredentials"), &names, "SSO credentials",
                            "profile (SSO)", ret, err);
}

static int ask_portal(const struct pf_aws_ask *ask, const struct sso *sso, const json_t *cache,
                      struct pf_aws_credentials *ret, struct pinfold_error *err)
{
    const struct pf_header header = { "x-amz-sso_bearer_token",
                                      pf_aws_json_text(cache, "accessToken") };
    PF_CLEANUP(pf_aws_reply_done) struct pf_aws_reply reply = { 0 };
    PF_CLEANUP(pf_buf_done) struct pf_buf url = PF_BUF_INIT(8 << 10);
    int r = role_url(ask, sso, &url, err);

    if (r == 0 && strpbrk(header.value, "\r\n"))
        r = fail_login(sso, "the cached token holds a line end", err);
    if (r < 0)
        return r;
    const struct pf_aws_call call = {
        .what = "SSO credentials",
        .method = "GET",
        .url = url.data,
        .headers = &header,
        .header_count = 1,
        .attempts = ATTEMPTS,
        .timeout_ns = TIMEOUT_NS,
    };
    r = pf_aws_send(ask, &call, &reply, err);
    return r < 0 ? r : take_role(sso, &reply, ret, err);
}

static void sso_done(struct sso *sso)
{
    pf_buf_done(&sso->cache_path);
}

int pf_aws_sso(struct pf_aws_ask *ask, const char *profile, struct pf_aws_credentials *ret,
               struct pinfold_error *err)
{
    PF_CLEANUP(sso_done)
    struct sso sso = { .profile = profile, .cache_path = PF_BUF_INIT(64 << 10) };
    _cleanup_json_ json_t *cache = NULL;
    int r;

    sso.account = pf_aws_profile_get(ask, profile, "sso_account_id");
    sso.role = pf_aws_profile_get(ask, profile, "sso_role_name");
    if (!sso.account && !sso.role)
        return 0;
    r = read_profile(ask, &sso, err);
    if (r == 0)
        r = find_cache(&sso, err);
    if (r == 0)
        r = load_cache(&sso, &cache, err);
    if (r == 0)
        r = ready_token(ask, &sso, cache, err);
    return r < 0 ? r : ask_portal(ask, &sso, cache, ret, err);
}

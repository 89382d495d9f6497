/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which sources are asked, which is botocore's, and roles that need other sources. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "net/aws_sources.h"

#define ROLES_MAX 8 /* that lead to one another */

int pf_aws_nothing(struct pf_aws_ask *ask, const char *format, ...)
{
    size_t len = strlen(ask->why);
    va_list args;

    if (len > 0)
        len += (size_t)snprintf(ask->why + len, PF_AWS_WHY_MAX - len, "; ");
    if (len >= PF_AWS_WHY_MAX)
        return 0;
    va_start(args, format);
    vsnprintf(ask->why + len, PF_AWS_WHY_MAX - len, format, args);
    va_end(args);
    return 0;
}

/* ---- keys that are written down ---- */

static int half(const char *where, const char *missing, struct pinfold_error *err)
{
    return pf_fail(err, PINFOLD_EVALUE, "AWS credentials, %s: the key id is there, but no %s",
                   where, missing);
}

static int from_environment(struct pf_aws_ask *ask, struct pf_aws_credentials *ret,
                            struct pinfold_error *err)
{
    const char *token = pf_aws_env("AWS_SECURITY_TOKEN");
    const char *expires = pf_aws_env("AWS_CREDENTIAL_EXPIRATION");
    const struct pf_aws_keys keys = { pf_aws_env("AWS_ACCESS_KEY_ID"),
                                      pf_aws_env("AWS_SECRET_ACCESS_KEY"),
                                      token ? token : pf_aws_env("AWS_SESSION_TOKEN") };
    int64_t when = 0;

    if (!keys.access_key)
        return pf_aws_nothing(ask, "no AWS_ACCESS_KEY_ID");
    if (!keys.secret_key)
        return half("environment", "AWS_SECRET_ACCESS_KEY", err);
    if (expires && pf_aws_time(expires, &when) < 0)
        return pf_fail(err, PINFOLD_EVALUE, "AWS_CREDENTIAL_EXPIRATION is not a time");
    return pf_aws_take_keys(&keys, when, "environment", ret, err);
}

typedef const char *(*lookup_fn)(const struct pf_aws_ask *ask, const char *profile,
                                 const char *key);

static const char *config_profile_get(const struct pf_aws_ask *ask, const char *profile,
                                      const char *key)
{
    return pf_aws_config_get(ask, "profile", profile, key);
}

static int from_file(const struct pf_aws_ask *ask, const char *profile, lookup_fn lookup,
                     const char *source, struct pf_aws_credentials *ret, struct pinfold_error *err)
{
    const char *token = lookup(ask, profile, "aws_security_token");
    const struct pf_aws_keys keys = { lookup(ask, profile, "aws_access_key_id"),
                                      lookup(ask, profile, "aws_secret_access_key"),
                                      token ? token : lookup(ask, profile, "aws_session_token") };

    if (!keys.access_key)
        return 0;
    if (!keys.secret_key)
        return half(source, "aws_secret_access_key", err);
    return pf_aws_take_keys(&keys, 0, source, ret, err);
}

/* ---- what else a profile can say ---- */

static const char *variable_or_profile(const struct pf_aws_ask *ask, const char *variable,
                                       const char *profile, const char *key)
{
    const char *value = variable ? pf_aws_env(variable) : NULL;

    return value ? value : pf_aws_profile_get(ask, profile, key);
}

/* With environment: for the profile that was chosen, whose settings variables override. */
static int from_web_identity(const struct pf_aws_ask *ask, const char *profile, bool environment,
                             struct pf_aws_credentials *ret, struct pinfold_error *err)
{
    const char *file = variable_or_profile(ask, environment ? "AWS_WEB_IDENTITY_TOKEN_FILE" : NULL,
                                           profile, "web_identity_token_file");
    const struct pf_aws_role role = {
        .profile = profile,
        .arn = variable_or_profile(ask, environment ? "AWS_ROLE_ARN" : NULL, profile, "role_arn"),
        .session_name = variable_or_profile(ask, environment ? "AWS_ROLE_SESSION_NAME" : NULL,
                                            profile, "role_session_name"),
    };

    if (!file)
        return 0;
    if (!role.arn)
        return pf_fail(err, PINFOLD_EVALUE,
                       "AWS web identity: there is a token file, but neither AWS_ROLE_ARN nor "
                       "role_arn in profile %s",
                       PF_QUOTE(profile));
    return pf_aws_sts_web_identity(ask, &role, file, ret, err);
}

static int from_login(const struct pf_aws_ask *ask, const char *profile, struct pinfold_error *err)
{
    if (!pf_aws_profile_get(ask, profile, "login_session"))
        return 0;
    return pf_fail(err, PINFOLD_EVALUE,
                   "AWS profile %s: login_session (aws login) is not supported; use SSO, or "
                   "credential_process = aws configure export-credentials ...",
                   PF_QUOTE(profile));
}

/* All that a profile can be but a role. */
static int from_profile(struct pf_aws_ask *ask, const char *profile, bool environment,
                        struct pf_aws_credentials *ret, struct pinfold_error *err)
{
    int r = from_web_identity(ask, profile, environment, ret, err);

    if (r == 0)
        r = pf_aws_sso(ask, profile, ret, err);
    if (r == 0)
        r = from_file(ask, profile, pf_aws_shared_get, "shared credentials file", ret, err);
    if (r == 0)
        r = from_login(ask, profile, err);
    if (r == 0)
        r = pf_aws_process(ask, profile, ret, err);
    if (r == 0)
        r = from_file(ask, profile, config_profile_get, "config file", ret, err);
    return r;
}

/* ---- roles ---- */

/* The profiles that have led here, the one that was asked for first. */
struct trail {
    const char *profiles[ROLES_MAX];
    unsigned count;
};

static int fail_role(const char *profile, const char *wrong, struct pinfold_error *err)
{
    return pf_fail(err, PINFOLD_EVALUE, "AWS profile %s, role: %s", PF_QUOTE(profile), wrong);
}

static bool is_role(const struct pf_aws_ask *ask, const char *profile)
{
    return pf_aws_profile_get(ask, profile, "role_arn") &&
           !pf_aws_profile_get(ask, profile, "web_identity_token_file");
}

static bool has_keys(const struct pf_aws_ask *ask, const char *profile)
{
    return pf_aws_profile_get(ask, profile, "aws_access_key_id") &&
           pf_aws_profile_get(ask, profile, "aws_secret_access_key");
}

static int from_role(struct pf_aws_ask *ask, const char *profile, struct trail *trail,
                     struct pf_aws_credentials *ret, struct pinfold_error *err);

static int from_credential_source(struct pf_aws_ask *ask, const char *profile, const char *source,
                                  struct pf_aws_credentials *ret, struct pinfold_error *err)
{
    int r;

    ask->why[0] = '\0'; /* what was tried before is of no interest now */
    if (strcmp(source, "Environment") == 0)
        r = from_environment(ask, ret, err);
    else if (strcmp(source, "EcsContainer") == 0)
        r = pf_aws_container(ask, ret, err);
    else if (strcmp(source, "Ec2InstanceMetadata") == 0)
        r = pf_aws_imds(ask, ret, err);
    else
        return fail_role(profile,
                         "credential_source is none of Environment, EcsContainer, "
                         "Ec2InstanceMetadata",
                         err);
    if (r != 0)
        return r;
    return pf_fail(err, PINFOLD_EBACKEND, "AWS profile %s, credential_source %s: %s",
                   PF_QUOTE(profile), source, ask->why);
}

/* A profile may name itself when it has keys of its own; otherwise nobody may come twice. */
static int check_trail(const struct pf_aws_ask *ask, const char *profile, const char *source,
                       const struct trail *trail, struct pinfold_error *err)
{
    if (!pf_aws_has_profile(ask, source))
        return fail_role(profile, "there is no profile of the name that source_profile has", err);
    for (unsigned i = 0; i < trail->count; i++)
        if (strcmp(trail->profiles[i], source) == 0 &&
            (strcmp(profile, source) != 0 || !has_keys(ask, source)))
            return fail_role(profile, "source_profile leads back to a profile before it", err);
    return 0;
}

static int from_source_profile(struct pf_aws_ask *ask, const char *profile, const char *source,
                               struct trail *trail, struct pf_aws_credentials *ret,
                               struct pinfold_error *err)
{
    int r = check_trail(ask, profile, source, trail, err);

    if (r < 0)
        return r;
    if (is_role(ask, source) && !has_keys(ask, source))
        return from_role(ask, source, trail, ret, err);
    r = from_profile(ask, source, false, ret, err);
    return r != 0 ? r : fail_role(profile, "its source_profile has no credentials", err);
}

static int from_role(struct pf_aws_ask *ask, const char *profile, struct trail *trail,
                     struct pf_aws_credentials *ret, struct pinfold_error *err)
{
    const struct pf_aws_role role = {
        .profile = profile,
        .arn = pf_aws_profile_get(ask, profile, "role_arn"),
        .session_name = pf_aws_profile_get(ask, profile, "role_session_name"),
        .external_id = pf_aws_profile_get(ask, profile, "external_id"),
        .duration = pf_aws_profile_get(ask, profile, "duration_seconds"),
    };
    const char *source_profile = pf_aws_profile_get(ask, profile, "source_profile");
    const char *source = pf_aws_profile_get(ask, profile, "credential_source");
    PF_CLEANUP(pf_aws_credentials_done) struct pf_aws_credentials own = { 0 };
    int r;

    if (!source_profile == !source)
        return fail_role(profile,
                         source ? "it has both source_profile and credential_source"
                                : "it has neither source_profile nor credential_source",
                         err);
    if (pf_aws_profile_get(ask, profile, "mfa_serial"))
        return fail_role(profile, "it wants a code (mfa_serial), and nobody can be asked for one",
                         err);
    if (trail->count == ROLES_MAX)
        return fail_role(profile, "too many roles lead to one another", err);
    trail->profiles[trail->count++] = profile;
    r = source ? from_credential_source(ask, profile, source, &own, err)
               : from_source_profile(ask, profile, source_profile, trail, &own, err);
    return r < 0 ? r : pf_aws_sts_assume(ask, &role, &own, ret, err);
}

/* ---- the chain ---- */

static int from_chosen_profile(struct pf_aws_ask *ask, struct pf_aws_credentials *ret,
                               struct pinfold_error *err)
{
    struct trail trail = { .count = 0 };
    int r;

    if (is_role(ask, ask->profile))
        return from_role(ask, ask->profile, &trail, ret, err);
    r = from_profile(ask, ask->profile, true, ret, err);
    if (r != 0)
        return r;
    pf_aws_nothing(ask, "no AWS_WEB_IDENTITY_TOKEN_FILE");
    if (!pf_aws_has_profile(ask, ask->profile))
        return pf_aws_nothing(ask, "no profile %.20s", ask->profile);
    return pf_aws_nothing(ask, "profile %.20s has no keys, role, SSO or process", ask->profile);
}

static int chain(struct pf_aws_ask *ask, struct pf_aws_credentials *ret, struct pinfold_error *err)
{
    int r = pf_aws_config_load(ask, err);

    /* Who names a profile in the program wants that one, whatever the environment has. */
    if (r == 0 && !ask->options->profile)
        r = from_environment(ask, ret, err);
    if (r == 0)
        r = from_chosen_profile(ask, ret, err);
    if (r == 0)
        r = pf_aws_container(ask, ret, err);
    if (r == 0)
        r = pf_aws_imds(ask, ret, err);
    return r;
}

int pf_aws_resolve(struct pf_aws_ask *ask, struct pf_aws_credentials *ret,
                   struct pinfold_error *err)
{
    const struct pf_aws_keys given = { ask->options->access_key, ask->options->secret_key,
                                       ask->options->session_token };
    PF_CLEANUP(pf_aws_credentials_done) struct pf_aws_credentials found = { 0 };
    char why[PF_AWS_WHY_MAX] = "";
    int r;

    ask->why = why;
    r = given.access_key ? pf_aws_take_keys(&given, 0, "options", &found, err)
                         : chain(ask, &found, err);
    pf_aws_config_done(ask);
    if (r < 0)
        return r;
    if (r == 0)
        return pf_fail(err, PINFOLD_EBACKEND, "no AWS credentials: %s", why);
    if (found.expires != 0 && found.expires <= pf_aws_now())
        return pf_fail(err, PINFOLD_EBACKEND, "AWS credentials, %s: they have expired",
                       found.source);
    *ret = found;
    found = (struct pf_aws_credentials){ 0 };
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credentials in JSON. Texts are wiped inside the tree that jansson has made, before it is freed.
 * What cannot be reached is the buffer of jansson's own reader, where each text was once on its
 * way; giving jansson an allocator that wipes would change it for the whole process, which is not
 * ours.
 */
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "net/aws_sources.h"

json_t *pf_aws_json_load(const char *data, size_t len, const char **ret_wrong)
{
    json_error_t wrong;
    /* The message of jansson quotes what it stopped at, which may be a secret. */
    json_t *json = json_loadb(data ? data : "", len, JSON_REJECT_DUPLICATES, &wrong);

    *ret_wrong = json_error_code(&wrong) == json_error_out_of_memory ? "no memory for it"
                                                                     : "it is not JSON";
    if (json && !json_is_object(json)) {
        pf_aws_json_free(&json);
        *ret_wrong = "it is not a JSON object";
    }
    return json;
}

static void wipe(json_t *json)
{
    const char *key;
    json_t *value;
    size_t i;

    if (json_is_string(json))
        explicit_bzero((char *)(uintptr_t)json_string_value(json), json_string_length(json));
    json_object_foreach(json, key, value)
        wipe(value);
    json_array_foreach(json, i, value)
        wipe(value);
}

void pf_aws_json_free(json_t **json)
{
    if (*json)
        wipe(*json);
    json_decref(*json);
    *json = NULL;
}

const char *pf_aws_json_text(const json_t *json, const char *key)
{
    const char *text = json_string_value(json_object_get(json, key));

    return text && *text ? text : NULL;
}

static int fail_field(const char *what, const char *field, const char *wrong,
                      struct pinfold_error *err)
{
    return pf_fail(err, PINFOLD_EVALUE, "%s: %s %s", what, field, wrong);
}

/* 0 and the time (0: none is there), or -1. */
static int expiry(const json_t *value, bool milliseconds, int64_t *ret)
{
    *ret = 0;
    if (!value || json_is_null(value))
        return 0;
    if (!milliseconds)
        return json_is_string(value) && pf_aws_time(json_string_value(value), ret) == 0 ? 0 : -1;
    if (!json_is_integer(value) || json_integer_value(value) <= 0)
        return -1;
    *ret = json_integer_value(value) >= INT64_MAX / PF_NS_PER_MS
                   ? INT64_MAX
                   : json_integer_value(value) * PF_NS_PER_MS;
    return 0;
}

/* An optional text: absent and null are the same, another type is not. */
static bool is_text_or_none(const json_t *json, const char *key)
{
    const json_t *value = json_object_get(json, key);

    return !value || json_is_null(value) || json_is_string(value);
}

int pf_aws_json_keys(const json_t *json, const struct pf_aws_json_names *names, const char *what,
                     const char *source, struct pf_aws_credentials *ret, struct pinfold_error *err)
{
    const struct pf_aws_keys keys = { pf_aws_json_text(json, names->access_key),
                                      pf_aws_json_text(json, names->secret_key),
                                      pf_aws_json_text(json, names->token) };
    int64_t expires;

    if (!keys.access_key)
        return fail_field(what, names->access_key, "is missing", err);
    if (!keys.secret_key)
        return fail_field(what, names->secret_key, "is missing", err);
    if (!is_text_or_none(json, names->token) || (names->token_needed && !keys.session_token))
        return fail_field(what, names->token, "is missing, or not a text", err);
    if (expiry(json_object_get(json, names->expires), names->milliseconds, &expires) < 0)
        return fail_field(what, names->expires, "is not a time", err);
    if (names->expires_needed && expires == 0)
        return fail_field(what, names->expires, "is missing", err);
    return pf_aws_take_keys(&keys, expires, source, ret, err);
}

int pf_aws_json_metadata(const struct pf_buf *body, const char *what, const char *source,
                         struct pf_aws_credentials *ret, struct pinfold_error *err)
{
    static const struct pf_aws_json_names names = {
        "AccessKeyId", "SecretAccessKey", "Token", "Expiration", true, true, false
    };
    const char *wrong;
    _cleanup_json_ json_t *json = pf_aws_json_load(body->data, body->len, &wrong);

    if (!json)
        return pf_fail(err, PINFOLD_EVALUE, "%s: %s", what, wrong);
    return pf_aws_json_keys(json, &names, what, source, ret, err);
}

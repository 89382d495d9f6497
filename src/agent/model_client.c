/* SPDX-License-Identifier: Apache-2.0 */
/* Options of the providers behind HTTP: checked when a model is made, not when it is first asked.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/model_http.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/utf8.h"
#include "net/uri.h"

#define CONNECT_SECONDS 10
#define IDLE_SECONDS 300
#define ALL_SECONDS 1800
#define BACKOFF_SECONDS 0.5
#define LONGEST_SECONDS (7 * 24 * 3600.0)
#define ATTEMPTS 5
#define ATTEMPTS_MAX 20
#define REPLY_MAX ((size_t)64 * 1024 * 1024)

static const char *from_env(const char *name)
{
    const char *value = name ? secure_getenv(name) : NULL;

    return value && *value ? value : NULL;
}

/* ---- the address ---- */

static int check_base(struct pf_model_client *client, bool plain_allowed, struct pinfold_error *err)
{
    char *base = client->base;
    bool https = strncasecmp(base, "https://", 8) == 0;
    const char *host = base + (https ? 8 : 7);
    size_t len = strlen(base), host_len;

    while (len > 0 && base[len - 1] == '/')
        base[--len] = '\0';
    if ((!https && strncasecmp(base, "http://", 7) != 0) || strpbrk(base, "?#@\\ \t\r\n") ||
        !pf_utf8_valid(base, len, NULL))
        return pf_fail(err, PINFOLD_EVALUE,
                       "%s model: the base URL \"%s\" is not http(s)://host[:port][/path]",
                       client->provider, PF_QUOTE(base));
    host_len = *host == '[' ? strcspn(host, "]/") + 1 : strcspn(host, ":/");
    if (host_len == 0)
        return pf_fail(err, PINFOLD_EVALUE, "%s model: the base URL \"%s\" names no host",
                       client->provider, PF_QUOTE(base));
    client->near = pf_host_is_near(host, host_len);
    if (!https && client->key && !client->near && !plain_allowed)
        return pf_fail(err, PINFOLD_EVALUE,
                       "%s model: the key would go to %s in plain text: use https, or an empty key "
                       "if the server needs none, or allow plain http",
                       client->provider, PF_QUOTE(base));
    return 0;
}

/* ---- numbers ---- */

static int seconds(const struct pf_model_client *client, const char *what, double given,
                   double otherwise, int64_t *ret_ns, struct pinfold_error *err)
{
    if (given == 0.0) /* means default */
        given = otherwise;
    if (!(given > 0 && given <= LONGEST_SECONDS))
        return pf_fail(err, PINFOLD_EVALUE,
                       "%s model: %s is %g seconds, not more than 0 and a week", client->provider,
                       what, given);
    *ret_ns = (int64_t)(given * (double)PF_NS_PER_SEC);
    return 0;
}

static int take_numbers(struct pf_model_client *client, const struct pinfold_model_options *options,
                        struct pinfold_error *err)
{
    int r = seconds(client, "connect_timeout", options->connect_timeout_seconds, CONNECT_SECONDS,
                    &client->connect_ns, err);

    if (r == 0)
        r = seconds(client, "idle_timeout", options->idle_timeout_seconds, IDLE_SECONDS,
                    &client->idle_ns, err);
    if (r == 0)
        r = seconds(client, "timeout", options->timeout_seconds, ALL_SECONDS, &client->timeout_ns,
                    err);
    if (r == 0)
        r = seconds(client, "backoff", options->backoff_seconds, BACKOFF_SECONDS,
                    &client->backoff_ns, err);
    if (r < 0)
        return r;
    if (options->attempts > ATTEMPTS_MAX)
        return pf_fail(err, PINFOLD_EVALUE, "%s model: attempts is %u, more than %d",
                       client->provider, options->attempts, ATTEMPTS_MAX);
    client->attempts = options->attempts ? options->attempts : ATTEMPTS;
    client->max_reply_bytes = options->max_reply_bytes ? options->max_reply_bytes : REPLY_MAX;
    if (options->max_tokens)
        client->max_tokens = options->max_tokens;
    if (!options->temperature)
        return 0;
    client->has_temperature = true;
    client->temperature = *options->temperature;
    if (client->temperature >= 0 && client->temperature <= 2)
        return 0;
    return pf_fail(err, PINFOLD_EVALUE, "%s model: temperature is %g, not 0 to 2", client->provider,
                   client->temperature);
}

/* ---- texts ---- */

/* Whether a text can be the value of a header. */
static bool is_printable(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text <= ' ' || (unsigned char)*text > '~')
            return false;
    return true;
}

static int take_key(struct pf_model_client *client, const char *given, const char *env,
                    struct pinfold_error *err)
{
    const char *key = given ? given : from_env(env);

    if (!key || !*key)
        return 0;
    if (!is_printable(key))
        return pf_fail(err, PINFOLD_EVALUE,
                       "%s model: the key holds spaces, line ends or what is not ASCII",
                       client->provider);
    client->key = strdup(key);
    return client->key ? 0 : pf_fail_nomem(err);
}

static int take_extra(struct pf_model_client *client, const char *extra, struct pinfold_error *err)
{
    bool nomem = false;

    if (!extra)
        return 0;
    client->extra = pf_json_object_load(extra, strlen(extra), &nomem);
    if (client->extra)
        return 0;
    return nomem ? pf_fail_nomem(err)
                 : pf_fail(err, PINFOLD_EVALUE, "%s model: extra is no JSON object",
                           client->provider);
}

static int take_base(struct pf_model_client *client, const struct pf_model_defaults *defaults,
                     const struct pinfold_model_options *options, struct pinfold_error *err)
{
    const char *env = from_env(defaults->base_env);
    const char *base = options->base_url && *options->base_url ? options->base_url
                       : env                                   ? env
                                                               : defaults->base_url;

    client->base_is_default = base == defaults->base_url;
    client->base = strdup(base);
    return client->base ? check_base(client, options->allow_plain_http, err) : pf_fail_nomem(err);
}

int pf_model_client_init(struct pf_model_client *client, const struct pf_model_defaults *defaults,
                         const struct pinfold_model_options *options, struct pinfold_error *err)
{
    int r;

    *client = (struct pf_model_client){ .provider = defaults->provider,
                                        .max_tokens = defaults->max_tokens };
    if (options->size != sizeof(*options))
        return pf_fail(err, PINFOLD_EVALUE, "%s model: size of the options is %zu, not %zu",
                       client->provider, options->size, sizeof(*options));
    if (!options->model || !options->model[0] ||
        !pf_utf8_valid(options->model, strlen(options->model), NULL))
        return pf_fail(err, PINFOLD_EVALUE, "%s model: there is no name of a model",
                       client->provider);
    client->model = strdup(options->model);
    if (!client->model)
        return pf_fail_nomem(err);
    r = take_numbers(client, options, err);
    if (r == 0)
        r = take_extra(client, options->extra, err);
    if (r == 0)
        r = take_key(client, options->api_key, defaults->key_env, err);
    if (r == 0)
        r = take_base(client, defaults, options, err);
    return r < 0 ? r : pf_http_new(defaults->trust_env, &client->http, err);
}

void pf_model_client_done(struct pf_model_client *client)
{
    pf_http_free(client->http);
    if (client->key)
        explicit_bzero(client->key, strlen(client->key));
    free(client->key);
    free(client->model);
    free(client->base);
    json_decref(client->extra);
    *client = (struct pf_model_client){ .provider = client->provider };
}

unsigned pf_model_max_tokens(const struct pf_model_client *client,
                             const struct pinfold_model_request *request)
{
    return request->max_tokens ? request->max_tokens : client->max_tokens;
}

const double *pf_model_temperature(const struct pf_model_client *client,
                                   const struct pinfold_model_request *request)
{
    if (request->temperature)
        return request->temperature;
    return client->has_temperature ? &client->temperature : NULL;
}

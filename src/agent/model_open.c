/* SPDX-License-Identifier: Apache-2.0 */
/* A file of its own: a program that is linked statically and names its provider takes no other. */
#include <string.h>

#include <pinfold/model.h>

#include "base/cleanup.h"
#include "base/error.h"

typedef int (*new_fn)(const struct pinfold_model_options *options, struct pinfold_model **ret_model,
                      struct pinfold_error *err);

int pinfold_model_open(const char *spec, const struct pinfold_model_options *options,
                       struct pinfold_model **ret_model, struct pinfold_error *err)
{
    static const struct {
        const char *name;
        new_fn make;
    } providers[] = {
        { "bedrock", pinfold_model_bedrock_new },
        { "anthropic", pinfold_model_anthropic_new },
        { "openai", pinfold_model_openai_new },
    };
    struct pinfold_model_options own = PINFOLD_MODEL_OPTIONS_INIT;
    const char *colon = strchr(spec, ':');
    size_t len = colon ? (size_t)(colon - spec) : 0;

    if (options)
        own = *options;
    if (len == 0 || !colon[1])
        return pf_fail(err, PINFOLD_EVALUE,
                       "model \"%s\": is not PROVIDER:NAME, as in \"anthropic:claude-opus-5\"",
                       PF_QUOTE(spec));
    if (len == 8 && memcmp(spec, "scripted", len) == 0)
        return pinfold_model_scripted_new(colon + 1, ret_model, err);
    own.model = colon + 1;
    for (size_t i = 0; i < PF_COUNT(providers); i++)
        if (strlen(providers[i].name) == len && memcmp(spec, providers[i].name, len) == 0)
            return providers[i].make(&own, ret_model, err);
    return pf_fail(
            err, PINFOLD_EVALUE,
            "model \"%s\": there is no provider \"%.*s\", but bedrock, anthropic, openai and "
            "scripted",
            PF_QUOTE(spec), (int)(len < 40 ? len : 40), spec);
}

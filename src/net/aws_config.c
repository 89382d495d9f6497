/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "net/aws_sources.h"

#define NAME_MAX_BYTES 256

/* ---- files ---- */

int pf_aws_home(const char *rest, struct pf_buf *ret, struct pinfold_error *err)
{
    const char *home = pf_aws_env("HOME");

    if (!home)
        return pf_fail(err, PINFOLD_EVALUE, "find ~%s: HOME is not set", rest);
    return pf_buf_printf(ret, "%s%s", home, rest) < 0 ? pf_fail_nomem(err) : 0;
}

/* Without a home there are no files there; one that is named must be possible. */
static int file_path(const char *variable, const char *usual, struct pf_buf *ret,
                     struct pinfold_error *err)
{
    const char *named = pf_aws_env(variable);

    if (named && strncmp(named, "~/", 2) == 0)
        return pf_aws_home(named + 1, ret, err);
    if (named)
        return pf_buf_append_text(ret, named) < 0 ? pf_fail_nomem(err) : 0;
    return pf_aws_env("HOME") ? pf_aws_home(usual, ret, err) : 0;
}

static int load(const char *variable, const char *usual, struct pf_ini *ini,
                struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf path = PF_BUF_INIT(64 << 10);
    int r = file_path(variable, usual, &path, err);

    if (r == 0 && path.len > 0)
        r = pf_aws_read_file(path.data, PF_AWS_FILE_MAX, &ini->text, err);
    return r > 0 ? pf_ini_parse(ini, path.data, err) : r;
}

/* The name that was asked for by whoever comes first, as botocore has it. */
static void choose_profile(struct pf_aws_ask *ask)
{
    ask->profile = ask->options->profile;
    if (!ask->profile)
        ask->profile = pf_aws_env("AWS_DEFAULT_PROFILE");
    if (!ask->profile)
        ask->profile = pf_aws_env("AWS_PROFILE");
    ask->profile_named = ask->profile != NULL;
    if (!ask->profile)
        ask->profile = "default";
}

int pf_aws_config_load(struct pf_aws_ask *ask, struct pinfold_error *err)
{
    int r = load("AWS_CONFIG_FILE", "/.aws/config", &ask->config, err);

    if (r == 0)
        r = load("AWS_SHARED_CREDENTIALS_FILE", "/.aws/credentials", &ask->shared, err);
    choose_profile(ask);
    if (r == 0 && ask->profile_named && !pf_aws_has_profile(ask, ask->profile))
        r = pf_fail(err, PINFOLD_EVALUE,
                    "AWS profile %s: it is in neither the config nor the credentials file",
                    PF_QUOTE(ask->profile));
    return r;
}

void pf_aws_config_done(struct pf_aws_ask *ask)
{
    pf_ini_done(&ask->config);
    pf_ini_done(&ask->shared);
}

/* ---- sections ---- */

/* Whether a heading is 'kind name', the name quoted or not. */
static bool is_section(const char *heading, const char *kind, const char *name)
{
    const char *words[PF_AWS_WORDS_MAX + 1], *wrong;
    char copy[NAME_MAX_BYTES];
    size_t len = strlen(heading);

    if (strncmp(heading, kind, strlen(kind)) != 0 || len >= sizeof(copy))
        return false;
    memcpy(copy, heading, len + 1);
    return pf_aws_split(copy, words, &wrong) == 2 && strcmp(words[0], kind) == 0 &&
           strcmp(words[1], name) == 0;
}

static const struct pf_ini_section *config_section(const struct pf_aws_ask *ask, const char *kind,
                                                   const char *name)
{
    const struct pf_ini *ini = &ask->config;
    bool usual = strcmp(kind, "profile") == 0 && strcmp(name, "default") == 0;

    /* [default] and [profile default] are the same; the later one counts. */
    for (size_t i = ini->section_count; i-- > 0;)
        if ((usual && strcmp(ini->sections[i].name, "default") == 0) ||
            is_section(ini->sections[i].name, kind, name))
            return &ini->sections[i];
    return NULL;
}

static const struct pf_ini_section *shared_section(const struct pf_aws_ask *ask, const char *name)
{
    for (size_t i = 0; i < ask->shared.section_count; i++)
        if (strcmp(ask->shared.sections[i].name, name) == 0)
            return &ask->shared.sections[i];
    return NULL;
}

bool pf_aws_has_profile(const struct pf_aws_ask *ask, const char *name)
{
    return shared_section(ask, name) || config_section(ask, "profile", name);
}

bool pf_aws_has_section(const struct pf_aws_ask *ask, const char *kind, const char *name)
{
    return config_section(ask, kind, name) != NULL;
}

static const char *value_of(const struct pf_ini *ini, const struct pf_ini_section *section,
                            const char *key)
{
    const char *value = section ? pf_ini_get(ini, section, key) : NULL;

    return value && *value ? value : NULL;
}

const char *pf_aws_config_get(const struct pf_aws_ask *ask, const char *kind, const char *name,
                              const char *key)
{
    return value_of(&ask->config, config_section(ask, kind, name), key);
}

const char *pf_aws_shared_get(const struct pf_aws_ask *ask, const char *name, const char *key)
{
    return value_of(&ask->shared, shared_section(ask, name), key);
}

const char *pf_aws_profile_get(const struct pf_aws_ask *ask, const char *name, const char *key)
{
    const char *value = pf_aws_shared_get(ask, name, key);

    return value ? value : pf_aws_config_get(ask, "profile", name, key);
}

/* ---- the region ---- */

static const char *skip_letters(const char *at)
{
    while (*at >= 'a' && *at <= 'z')
        at++;
    return at;
}

/* [a-z]{2,4}(-[a-z]+)+-[0-9]+ */
bool pf_aws_region_fits(const char *region)
{
    const char *at = skip_letters(region);
    unsigned words = 0;

    if (at - region < 2 || at - region > 4 || strlen(region) >= PF_AWS_REGION_MAX)
        return false;
    while (*at == '-' && skip_letters(at + 1) > at + 1) {
        at = skip_letters(at + 1);
        words++;
    }
    if (words == 0 || *at != '-')
        return false;
    at++;
    return *at && at[strspn(at, "0123456789")] == '\0';
}

int pf_aws_ask_region(const struct pf_aws_ask *ask, const char *profile,
                      char ret[static PF_AWS_REGION_MAX], struct pinfold_error *err)
{
    const char *region = ask->options->region;

    if (!region)
        region = pf_aws_env("AWS_REGION");
    if (!region)
        region = pf_aws_env("AWS_DEFAULT_REGION");
    if (!region)
        region = pf_aws_profile_get(ask, profile, "region");
    if (!region)
        return pf_fail(err, PINFOLD_EVALUE,
                       "AWS region: none is given, AWS_REGION and AWS_DEFAULT_REGION are not set, "
                       "and profile %s has none",
                       PF_QUOTE(profile));
    if (!pf_aws_region_fits(region))
        return pf_fail(err, PINFOLD_EVALUE, "AWS region %s: that is not the name of one",
                       PF_QUOTE(region));
    snprintf(ret, PF_AWS_REGION_MAX, "%s", region);
    return 0;
}

int pf_aws_region(const struct pf_aws_options *options, char ret[static PF_AWS_REGION_MAX],
                  struct pinfold_error *err)
{
    PF_CLEANUP(pf_aws_config_done) struct pf_aws_ask ask = { .options = options };
    int r = 0;

    /* Files are read only when they have a say. */
    if (!options->region && !pf_aws_env("AWS_REGION") && !pf_aws_env("AWS_DEFAULT_REGION"))
        r = pf_aws_config_load(&ask, err);
    return r < 0 ? r : pf_aws_ask_region(&ask, ask.profile ? ask.profile : "default", ret, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/clash.h"

#include <stdio.h>
#include <string.h>

#include "cli/extras.h"
#include "cli/place.h"
#include "cli/say.h"

/* Returns true, so that whoever has found something can return it. */
static bool blame(struct pf_clash *ret, const char *option, const char *words, const char *setting)
{
    ret->option = option;
    snprintf(ret->words, sizeof(ret->words), "%s", words);
    snprintf(ret->setting, sizeof(ret->setting), "%s", setting);
    return true;
}

/* ---- seed, sync, workspace ---- */

static bool find_travel(const struct pf_options *options, struct pf_clash *ret)
{
    if (options->agentcore && options->workspace)
        return blame(ret, "workspace",
                     "--workspace is a directory of this machine; with agentcore it is in its "
                     "session",
                     "it is a directory of this machine; with agentcore it is in its session");
    if (options->daytona && options->workspace)
        return blame(ret, "workspace",
                     "--workspace is a directory of this machine; with daytona it is in its "
                     "sandbox",
                     "it is a directory of this machine; with daytona it is in its sandbox");
    if (options->snapshot && options->image)
        return blame(ret, "snapshot", "--snapshot and --image: a sandbox is made of one of them",
                     "there is an image, too, and a sandbox is made of one of them");
    if (options->overlay && !options->isolated)
        return blame(ret, "seed-mode", "--seed-mode overlay needs --backend isolated",
                     "overlay needs backend = \"isolated\"");
    if (options->overlay && !options->seed)
        return blame(ret, "seed-mode", "--seed-mode overlay without --seed has nothing to show",
                     "overlay without a seed has nothing to show: name one in seed, or by --seed");
    if (options->wants_sync && !options->sync && !options->seed)
        return blame(ret, "sync",
                     "--sync without --seed has nowhere to go: name a directory, --sync=DIR",
                     "without a seed it has nowhere to go: name one in seed, or by --seed, or "
                     "have sync name a directory");
    return false;
}

/* ---- backends ---- */

static bool find_backend(const struct pf_options *options, struct pf_clash *ret)
{
    const struct {
        const char *alone, *backend;
        bool chosen;
    } all[] = {
        { options->isolated_alone, "isolated", options->isolated },
        { options->agentcore_alone, "agentcore", options->agentcore },
        { options->daytona_alone, "daytona", options->daytona },
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (!all[i].alone || all[i].chosen)
            continue;
        ret->option = all[i].alone;
        snprintf(ret->words, sizeof(ret->words), "--%s needs --backend %s", all[i].alone,
                 all[i].backend);
        snprintf(ret->setting, sizeof(ret->setting), "it needs backend = \"%s\"", all[i].backend);
        return true;
    }
    return false;
}

bool pf_find_clash(const struct pf_options *options, struct pf_clash *ret)
{
    return find_travel(options, ret) || find_backend(options, ret);
}

/* ---- servers ---- */

static int note_of_http(void *ctx, const char *name, const char *value)
{
    static const char *const of_http[] = { "token", "http-host", "http-anywhere", "http-resume" };
    const char **found = ctx;

    (void)value;
    for (size_t i = 0; i < sizeof(of_http) / sizeof(of_http[0]); i++)
        if (strcmp(of_http[i], name) == 0)
            *found = of_http[i];
    return 0;
}

/* Options for clients over HTTP when there are none: whoever says --token me:read_only must not
 * get a server that writes. In a policy they are for another day. */
static bool find_without_http(const struct pf_command *command, const struct pf_options *options,
                              int argc, char **argv, struct pf_clash *ret)
{
    const char *found = NULL;

    if (!options->http)
        pf_options_each(command, argc, argv, note_of_http, &found);
    if (!found)
        return false;
    blame(ret, found, "", "it goes with http.listen");
    snprintf(ret->words, sizeof(ret->words), "--%s goes with --http%s", found,
             strcmp(found, "token") == 0 ? "; --read-only is for the client that starts this" : "");
    return true;
}

static bool find_open_place(const struct pf_options *options, struct pf_clash *ret)
{
    static const char why[] = "others can reach that, and tokens go unencrypted: put a proxy with "
                              "TLS before 127.0.0.1, or say --http-anywhere";
    struct pf_place place;

    if (!options->http || options->http_anywhere || pf_place_read(options->http, &place) ||
        place.loopback)
        return false;
    blame(ret, "http", "", why);
    snprintf(ret->words, sizeof(ret->words), "--http %.80s: %s", options->http, why);
    return true;
}

static bool find_twins(const struct pf_options *options, struct pf_clash *ret)
{
    for (size_t i = 0; options->tokens[i]; i++) {
        size_t len = strcspn(options->tokens[i], ":") + 1;
        for (size_t j = 0; j < i; j++) {
            if (strncmp(options->tokens[i], options->tokens[j], len) != 0)
                continue;
            blame(ret, "token", "", "");
            snprintf(ret->words, sizeof(ret->words), "--token %.*s: there are two of this name",
                     (int)len - 1, options->tokens[i]);
            snprintf(ret->setting, sizeof(ret->setting), "there are two of the name %.*s",
                     (int)len - 1, options->tokens[i]);
            return true;
        }
    }
    return false;
}

bool pf_find_server_clash(const struct pf_command *command, const struct pf_options *options,
                          int argc, char **argv, struct pf_clash *ret)
{
    return find_travel(options, ret) || find_without_http(command, options, argc, argv, ret) ||
           find_backend(options, ret) || find_open_place(options, ret) || find_twins(options, ret);
}

/* ---- saying it ---- */

static int note_option(void *ctx, const char *name, const char *value)
{
    const char **wanted = ctx;

    (void)value;
    if (*wanted && strcmp(*wanted, name) == 0)
        *wanted = NULL;
    return 0;
}

int pf_clash_error(const struct pf_command *command, const struct pf_options *options, int argc,
                   char **argv, const struct pf_clash *clash)
{
    const char *wanted = clash->option;
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    if (options->words)
        pf_options_each(command, argc, argv, note_option, &wanted);
    if (!options->words || !wanted || !pf_mcp_extras->blame(options->config, clash, &err))
        return pf_usage_error(command, "%s", clash->words);
    pf_say("%s", err.msg);
    return PF_EXIT_FAILED;
}

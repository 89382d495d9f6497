/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/install.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/jsonc.h"
#include "cli/policy.h"
#include "cli/say.h"

/* An agent program, and where it looks for servers. */
static const struct client {
    const char *name;
    const char *project; /* in the current directory */
    const char *user;    /* in the home directory, or in that of the variable */
    const char *variable;
    const char *section;   /* NULL: TOML */
    const char *directory; /* its word for the project's directory; NULL: it starts servers there */
    const char *token; /* its word for a variable in a header; NULL: it has a setting for that */
    bool comments;     /* its JSON may have some */
    bool types;        /* a server says what kind it is */
    bool is_users;     /* its documentation begins with the user's file */
    bool roots;        /* it names the project's directory to a server that asks */
} clients[] = {
    { "claude-code", ".mcp.json", ".claude.json", NULL, "mcpServers", NULL, "${%s}", false, true,
      false, true },
    { "codex", ".codex/config.toml", ".codex/config.toml", "CODEX_HOME", NULL, NULL, NULL, false,
      false, true, false },
    { "cursor", ".cursor/mcp.json", ".cursor/mcp.json", NULL, "mcpServers", "${workspaceFolder}",
      "${env:%s}", false, false, false, true },
    { "vscode", ".vscode/mcp.json", ".config/Code/User/mcp.json", "XDG_CONFIG_HOME", "servers",
      "${workspaceFolder}", "${env:%s}", true, true, false, true },
};

static const struct client *find_client(const char *name)
{
    for (size_t i = 0; i < sizeof(clients) / sizeof(clients[0]); i++)
        if (strcmp(clients[i].name, name) == 0)
            return &clients[i];
    return NULL;
}

/* ---- what to say ---- */

/* Where pinfold itself is: programs with windows have another PATH than shells. NULL: it cannot be
 * found, or out of memory. */
static char *own_path(const char *main_word)
{
    const char *path = getenv("PATH");
    char place[PATH_MAX];

    if (strchr(main_word, '/'))
        return realpath(main_word, NULL);
    while (path && *path) {
        size_t len = strcspn(path, ":");
        if (snprintf(place, sizeof(place), "%.*s/%s", (int)len, path, main_word) <
                    (int)sizeof(place) &&
            access(place, X_OK) == 0)
            return realpath(place, NULL); /* the client works in another directory */
        path += len + (path[len] == ':');
    }
    return strdup(main_word);
}

/* A server that the client starts: the words after "--", or else one that works on the project. */
static json_t *started(const struct client *client, const struct pf_options *options, bool user,
                       const char *main_word)
{
    char *own = own_path(main_word);
    json_t *args = json_pack("[s]", "mcp");
    json_t *value = json_object();

    if (client->types)
        json_object_set_new(value, "type", json_string("stdio"));
    json_object_set_new(value, "command", json_string(own));
    for (char **word = options->command; *word; word++)
        json_array_append_new(args, json_string(*word));
    /* For all projects it is the client's root that is seeded, where it names one. */
    if (!options->command[0] && (!user || !client->roots)) {
        json_array_append_new(args, json_string("--seed"));
        json_array_append_new(args, json_string(client->directory ? client->directory : "."));
    }
    json_object_set_new(value, "args", args);
    free(own);
    return value;
}

/* A server that runs already. */
static json_t *reached(const struct client *client, const struct pf_options *options)
{
    json_t *value = json_object();
    char word[160], header[192];

    if (client->types)
        json_object_set_new(value, "type", json_string("http"));
    json_object_set_new(value, "url", json_string(options->url));
    if (!options->token_env)
        return value;
    if (!client->token) {
        json_object_set_new(value, "bearer_token_env_var", json_string(options->token_env));
        return value;
    }
    /* The word has the form with one "%s": it is from the table. */
    snprintf(word, sizeof(word), "%.*s%s}", (int)strcspn(client->token, "%"), client->token,
             options->token_env);
    snprintf(header, sizeof(header), "Bearer %s", word);
    json_object_set_new(value, "headers", json_pack("{s:s}", "Authorization", header));
    return value;
}

/* ---- where ---- */

/* Where what is of the user begins, with *ret_below it; NULL: nobody says where. */
static const char *users_place(const struct client *client, const char **ret_below)
{
    const char *base = client->variable ? getenv(client->variable) : NULL;

    *ret_below = client->user;
    if (!base || !*base)
        return pf_policy_home();
    *ret_below = strchr(client->user, '/') + 1; /* the variable stands for the first directory */
    return base;
}

static char *file_of(const struct client *client, bool user)
{
    const char *below = NULL;
    const char *base = user ? users_place(client, &below) : NULL;
    char *path = NULL;

    if (!user)
        return strdup(client->project);
    return asprintf(&path, "%s/%s", base, below) < 0 ? NULL : path;
}

/* Whether what lies in a project leads out of it by a link. Who wrote the project says where its
 * links lead, and could have a file changed that this user has elsewhere. What is not there yet is
 * made in its directory, and a link to nothing is replaced. */
static bool leads_out(const char *path)
{
    char here[PATH_MAX], there[PATH_MAX], parent[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t len;

    snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    if (!realpath(".", here))
        return true;
    if (!realpath(path, there) && (errno != ENOENT || !realpath(parent, there)))
        return errno != ENOENT;
    len = strlen(here);
    return strncmp(there, here, len) != 0 ||
           (there[len] != '/' && there[len] != '\0' && here[len - 1] != '/');
}

/* ---- doing it ---- */

static int change(const struct client *client, const struct pf_edit *edit, const char *name,
                  json_t *value, char **ret_text, struct pinfold_error *err)
{
    struct pinfold_error why = PINFOLD_ERROR_INIT;
    int r = client->section ? pf_jsonc_set(edit->text, edit->len, client->comments, client->section,
                                           name, value, ret_text, &why)
                            : pf_install_toml(edit->text, edit->len, name, value, ret_text, &why);

    if (r < 0) {
        *err = (struct pinfold_error){ .code = why.code };
        snprintf(err->msg, sizeof(err->msg),
                 "%.100s: %.80s; left as it is, without --write you see what to add", edit->path,
                 why.msg);
    }
    return r;
}

static int write_file(const struct client *client, const char *path, bool user, const char *name,
                      json_t *value)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    char *text = NULL, *backup = NULL;
    struct pf_edit edit;
    int r;

    if (!user && leads_out(path)) {
        pf_say("%s: a link leads out of the project; left as it is, without --write you see what "
               "to add",
               path);
        return PF_EXIT_FAILED;
    }
    r = pf_edit_open(&edit, path, &err);
    if (r == 0)
        r = change(client, &edit, name, value, &text, &err);
    if (r == 0 && edit.exists && strcmp(text, edit.text) == 0)
        pf_note("%s: it is there already", path);
    else if (r == 0)
        r = pf_edit_save(&edit, text, user ? 0600 : 0644, &backup, &err);
    if (r < 0)
        pf_say("%s", err.msg);
    else if (backup)
        pf_note("%s: written; what was there is in %s", path, backup);
    else if (!edit.exists)
        pf_note("%s: written", path);
    free(text);
    free(backup);
    pf_edit_done(&edit);
    return r < 0 ? PF_EXIT_FAILED : 0;
}

static int print(const struct client *client, const char *path, const char *name, json_t *value)
{
    json_t *whole = client->section ? json_pack("{s:{s:O}}", client->section, name, value) : NULL;
    char *text = client->section ? json_dumps(whole, JSON_INDENT(2))
                                 : pf_install_toml_section(name, value);

    json_decref(whole);
    if (!text) {
        pf_say("out of memory");
        return PF_EXIT_FAILED;
    }
    pf_note("for %s; --write merges it", path);
    printf("%s%s", text, client->section ? "\n" : "");
    free(text);
    return 0;
}

static const char *wrong_with(const struct pf_options *options)
{
    if (options->url && options->command[0])
        return "--url is of a server that runs; the words after -- are for one that is started";
    if (options->token_env && !options->url)
        return "--token-env goes with --url";
    if (options->command[0] && *options->command[0] != '-')
        return "the words after -- are options of 'pinfold mcp', which takes no other";
    return NULL;
}

int pf_install(const struct pf_command *command, const char *name, const struct pf_options *options,
               const char *main_word)
{
    const struct client *client = find_client(name);
    const char *server = options->name ? options->name : "pinfold";
    const char *wrong = wrong_with(options);
    bool user = options->scope_user || (client && client->is_users && !options->scope_project);
    const char *below;
    json_t *value;
    char *path;
    int status;

    if (!client)
        return pf_usage_error(command, "%s: none of claude-code, codex, cursor, vscode", name);
    if (wrong)
        return pf_usage_error(command, "%s", wrong);
    if (user && !users_place(client, &below)) {
        pf_say("HOME is not set to a directory, and the file of %s is there; set it, or give "
               "--scope project",
               client->name);
        return PF_EXIT_FAILED;
    }
    path = file_of(client, user);
    value = options->url ? reached(client, options) : started(client, options, user, main_word);
    if (!path || json_object_size(value) < 1) {
        pf_say("out of memory");
        status = PF_EXIT_FAILED;
    } else if (options->write) {
        status = write_file(client, path, user, server, value);
    } else {
        status = print(client, path, server, value);
    }
    json_decref(value);
    free(path);
    return status;
}

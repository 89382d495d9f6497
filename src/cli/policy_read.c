/* SPDX-License-Identifier: Apache-2.0 */
/* One pinfold.toml: from values with lines to settings. What is not known is an error. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/policy.h"
#include "cli/toml.h"

enum { VALUES_MAX = 1024, PATH_LENGTH = 128 };

/* What has been read and not yet been put: a list comes value by value, a token member by member.
 */
struct reader {
    const struct pf_reading *reading;
    struct pinfold_error *err;
    int key; /* of a list that is being read; -1: of none */
    unsigned line;
    char **values;
    size_t count;
    bool in_token;
    unsigned token_line;
    char *name, *mode, *file, *variable;
    char **tokens;
    size_t token_count;
};

int pf_policy_wrong(const char *file, unsigned line, struct pinfold_error *err, const char *format,
                    ...)
{
    struct pinfold_error told = { .code = PINFOLD_EVALUE };
    va_list args;
    int len = snprintf(told.msg, sizeof(told.msg), "%.100s:%u: ", file, line);

    va_start(args, format);
    vsnprintf(told.msg + len, sizeof(told.msg) - (size_t)len, format, args);
    va_end(args);
    if (err)
        *err = told;
    return -PINFOLD_EVALUE;
}

static int nomem(struct pinfold_error *err)
{
    *err = (struct pinfold_error){ .code = PINFOLD_ENOMEM, .msg = "read a policy: out of memory" };
    return -PINFOLD_ENOMEM;
}

static void free_values(char **values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(values[i]);
    free(values);
}

/* Take value, which may be NULL for want of memory, into a list that grows by doubling. */
static int add(struct reader *reader, char ***values, size_t *count, char *value, unsigned line)
{
    char **more = *values;

    if (*count >= VALUES_MAX) {
        free(value);
        return pf_policy_wrong(reader->reading->file, line, reader->err, "a list has at most %d",
                               VALUES_MAX);
    }
    if ((*count & (*count - 1)) == 0)
        more = realloc(*values, (*count ? 2 * *count : 1) * sizeof(**values));
    if (more)
        *values = more;
    if (!more || !value) {
        free(value);
        return nomem(reader->err);
    }
    (*values)[(*count)++] = value;
    return 0;
}

/* ---- keys that are not known ---- */

static size_t least(size_t a, size_t b, size_t c)
{
    size_t d = a < b ? a : b;

    return d < c ? d : c;
}

/* How many letters have to be put in, left out or exchanged to make one text of the other. */
static size_t distance(const char *a, const char *b)
{
    size_t row[PATH_LENGTH + 1], width = strlen(b);

    if (strlen(a) > PATH_LENGTH || width > PATH_LENGTH)
        return PATH_LENGTH + 1; /* at least */
    for (size_t j = 0; j <= width; j++)
        row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < width; j++) {
            size_t above = row[j + 1];
            row[j + 1] = least(above + 1, row[j] + 1, diagonal + (a[i] != b[j]));
            diagonal = above;
        }
    }
    return row[width];
}

static int unknown(struct reader *reader, const struct pf_toml_item *item)
{
    const char *last = strrchr(item->path, '.');
    size_t nearest = SIZE_MAX;
    const char *meant = NULL;

    for (size_t i = 0; i < pf_key_count; i++) {
        const char *dot = strrchr(pf_keys[i].path, '.');
        size_t whole = distance(item->path, pf_keys[i].path);
        /* The right name in the wrong section, or in none. */
        size_t name = distance(last ? last + 1 : item->path, dot ? dot + 1 : pf_keys[i].path);
        size_t here = whole < name + 1 ? whole : name + 1;
        if (here < nearest) {
            nearest = here;
            meant = pf_keys[i].path;
        }
    }
    if (nearest <= 2)
        return pf_policy_wrong(reader->reading->file, item->line, reader->err,
                               "%.60s: no such setting; %s may be meant", item->path, meant);
    return pf_policy_wrong(reader->reading->file, item->line, reader->err,
                           "%.60s: no such %s; 'pinfold help config' lists what there is",
                           item->path, item->type == PF_TOML_TABLE ? "section" : "setting");
}

/* ---- values ---- */

const char *pf_policy_home(void)
{
    const char *home = getenv("HOME");

    return home && *home == '/' ? home : NULL;
}

/* A path from the home directory, or from the directory of the file. NULL: out of memory. */
static char *resolve(const struct reader *reader, const char *path)
{
    const char *home = pf_policy_home();
    char *whole = NULL;

    if (home && *path == '~' && (path[1] == '/' || !path[1]))
        return asprintf(&whole, "%s%s", home, path + 1) < 0 ? NULL : whole;
    if (*path == '/' || !*path)
        return strdup(path);
    return asprintf(&whole, "%s/%s", reader->reading->directory, path) < 0 ? NULL : whole;
}

static const char *expected(enum pf_form form)
{
    switch (form) {
    case PF_LIST:
    case PF_PATHS:
        return "a list of texts";
    case PF_NUMBER:
        return "a number";
    case PF_SIZE:
        return "a number of bytes, or a text such as \"512M\"";
    case PF_NETWORK:
        return "\"none\", \"host\" or a list of names";
    case PF_SYNC:
        return "true, or the name of a directory";
    case PF_TEXT:
    case PF_PATH:
        break;
    }
    return "a text";
}

static bool fits(enum pf_form form, const struct pf_toml_item *item)
{
    bool is_text = item->type == PF_TOML_STRING;
    bool is_number = item->type == PF_TOML_INTEGER || item->type == PF_TOML_FLOAT;

    switch (form) {
    case PF_TEXT:
    case PF_PATH:
        return is_text;
    case PF_NUMBER:
        return is_number || (is_text && strcmp(item->text, "unlimited") == 0);
    case PF_SIZE:
        return is_text || item->type == PF_TOML_INTEGER;
    case PF_NETWORK:
        return is_text && (strcmp(item->text, "none") == 0 || strcmp(item->text, "host") == 0);
    case PF_SYNC:
        return (is_text && *item->text) || /* no name at all would be the seed */
               (item->type == PF_TOML_BOOLEAN && strcmp(item->text, "true") == 0);
    case PF_LIST:
    case PF_PATHS:
        break;
    }
    return false;
}

static int wrong_type(struct reader *reader, const struct pf_toml_item *item, enum pf_form form)
{
    return pf_policy_wrong(reader->reading->file, item->line, reader->err, "%.60s: not %s",
                           item->path, expected(form));
}

/* Put the list that has ended. */
static int flush(struct reader *reader)
{
    int key = reader->key;
    char **values = reader->values;
    size_t count = reader->count;

    reader->key = -1;
    reader->values = NULL;
    reader->count = 0;
    return key < 0 ? 0
                   : pf_policy_put(reader->reading, key, reader->line, values, count, reader->err);
}

/* One text of a list. */
static int take_element(struct reader *reader, const struct pf_toml_item *item)
{
    enum pf_form form = pf_keys[reader->key].form;
    char *value = NULL;

    if (item->type != PF_TOML_STRING)
        return wrong_type(reader, item, form);
    if (form == PF_PATHS)
        value = resolve(reader, item->text);
    else if (form == PF_NETWORK && asprintf(&value, "allow=%s", item->text) < 0)
        value = NULL;
    else if (form == PF_LIST)
        value = strdup(item->text);
    return add(reader, &reader->values, &reader->count, value, item->line);
}

static int take_scalar(struct reader *reader, const struct pf_toml_item *item, int key)
{
    enum pf_form form = pf_keys[key].form;
    bool bare = form == PF_SYNC && item->type == PF_TOML_BOOLEAN;
    char **values = NULL;
    size_t count = 0;
    int r;

    if (!fits(form, item))
        return wrong_type(reader, item, form);
    r = add(reader, &values, &count,
            bare                                 ? strdup("")
            : form == PF_PATH || form == PF_SYNC ? resolve(reader, item->text)
                                                 : strdup(item->text),
            item->line);
    if (r < 0) {
        free_values(values, count);
        return r;
    }
    return pf_policy_put(reader->reading, key, item->line, values, count, reader->err);
}

/* ---- [env] ---- */

/* Variables are one list of NAME=value, so that each is checked and shown like the others. */
static int take_variable(struct reader *reader, const struct pf_toml_item *item)
{
    char *value = NULL;

    if (item->type != PF_TOML_STRING)
        return pf_policy_wrong(reader->reading->file, item->line, reader->err, "%.60s: not a text",
                               item->path);
    if (strlen(item->key) != item->key_len || strchr(item->key, '='))
        return pf_policy_wrong(reader->reading->file, item->line, reader->err,
                               "%.60s: no variable can have that name", item->path);
    if (asprintf(&value, "%s=%s", item->key, item->text) < 0)
        value = NULL;
    return add(reader, &reader->values, &reader->count, value, item->line);
}

/* ---- [[token]] ---- */

static void forget_token(struct reader *reader)
{
    free(reader->name);
    free(reader->mode);
    free(reader->file);
    free(reader->variable);
    reader->name = reader->mode = reader->file = reader->variable = NULL;
    reader->in_token = false;
}

/* The token that has been read becomes a value of --token. */
static int flush_token(struct reader *reader)
{
    char *value = NULL;
    int r;

    if (!reader->in_token)
        return 0;
    if (!reader->name || !reader->mode)
        r = pf_policy_wrong(reader->reading->file, reader->token_line, reader->err,
                            "token: it takes a name and a mode");
    else if (reader->file && reader->variable)
        r = pf_policy_wrong(reader->reading->file, reader->token_line, reader->err,
                            "token: either a file or a variable has its value");
    else {
        if (asprintf(&value, "%s:%s%s%s", reader->name, reader->mode,
                     reader->file       ? ":file:"
                     : reader->variable ? ":env:"
                                        : "",
                     reader->file       ? reader->file
                     : reader->variable ? reader->variable
                                        : "") < 0)
            value = NULL;
        r = add(reader, &reader->tokens, &reader->token_count, value, reader->token_line);
    }
    forget_token(reader);
    return r;
}

static int take_token(struct reader *reader, const struct pf_toml_item *item)
{
    const char *member = item->path + strlen("token.");
    char **slot = strcmp(member, "name") == 0   ? &reader->name
                  : strcmp(member, "mode") == 0 ? &reader->mode
                  : strcmp(member, "file") == 0 ? &reader->file
                  : strcmp(member, "env") == 0  ? &reader->variable
                                                : NULL;

    if (strcmp(member, "value") == 0 || strcmp(member, "token") == 0)
        return pf_policy_wrong(reader->reading->file, item->line, reader->err,
                               "%s: a secret does not belong here; file names one that has it, "
                               "env a variable",
                               item->path);
    if (!slot)
        return pf_policy_wrong(reader->reading->file, item->line, reader->err,
                               "%.60s: not one of name, mode, file, env", item->path);
    if (item->type != PF_TOML_STRING)
        return wrong_type(reader, item, PF_TEXT);
    if (!*item->text)
        return pf_policy_wrong(reader->reading->file, item->line, reader->err, "%.60s: it is empty",
                               item->path);
    *slot = slot == &reader->file ? resolve(reader, item->text) : strdup(item->text);
    return *slot ? 0 : nomem(reader->err);
}

/* ---- the whole ---- */

static bool is_section(const char *path)
{
    size_t len = strlen(path);

    for (size_t i = 0; i < pf_key_count; i++)
        if (strncmp(pf_keys[i].path, path, len) == 0 && pf_keys[i].path[len] == '.')
            return true;
    return false;
}

static int no_token(struct reader *reader, const struct pf_toml_item *item)
{
    return pf_policy_wrong(reader->reading->file, item->line, reader->err,
                           "token: sections: [[token]], and name, mode below it");
}

static int take_table(struct reader *reader, const struct pf_toml_item *item)
{
    int key = pf_key_of_path(item->path);

    if (strcmp(item->path, "token") == 0 && item->index >= 0) {
        reader->in_token = true;
        reader->token_line = item->line;
        return 0;
    }
    if (strcmp(item->path, "env") == 0) {
        reader->key = key;
        reader->line = item->line;
        return 0;
    }
    if (strcmp(item->path, "token") == 0)
        return no_token(reader, item);
    if (key >= 0)
        return wrong_type(reader, item, pf_keys[key].form);
    return is_section(item->path) ? 0 : unknown(reader, item);
}

static int take_array(struct reader *reader, const struct pf_toml_item *item)
{
    int key = pf_key_of_path(item->path);

    if (is_section(item->path))
        return pf_policy_wrong(reader->reading->file, item->line, reader->err,
                               "%.60s: a section, and there is one", item->path);
    if (key < 0)
        return unknown(reader, item);
    if (strcmp(item->path, "token") == 0)
        return 0;
    if (strcmp(item->path, "env") == 0)
        return pf_policy_wrong(reader->reading->file, item->line, reader->err,
                               "env: a section: [env], and NAME = \"value\" below it");
    if (pf_keys[key].form != PF_LIST && pf_keys[key].form != PF_PATHS &&
        pf_keys[key].form != PF_NETWORK)
        return wrong_type(reader, item, pf_keys[key].form);
    reader->key = key;
    reader->line = item->line;
    return 0;
}

static int take(void *ctx, const struct pf_toml_item *item)
{
    struct reader *reader = ctx;
    bool of_token = strncmp(item->path, "token.", 6) == 0 && reader->in_token;
    bool of_env = strncmp(item->path, "env.", 4) == 0;
    int key, r;

    if (of_token)
        return take_token(reader, item);
    r = flush_token(reader);
    if (r < 0)
        return r;
    if (of_env && reader->key >= 0)
        return take_variable(reader, item);
    if (item->index >= 0 && reader->key >= 0 && strcmp(pf_keys[reader->key].path, item->path) == 0)
        return take_element(reader, item);
    r = flush(reader);
    if (r < 0)
        return r;
    if (item->type == PF_TOML_TABLE)
        return take_table(reader, item);
    if (item->type == PF_TOML_ARRAY)
        return take_array(reader, item);
    key = pf_key_of_path(item->path);
    if (key < 0)
        return unknown(reader, item);
    if (strcmp(item->path, "token") == 0)
        return no_token(reader, item);
    return take_scalar(reader, item, key);
}

int pf_policy_read(const struct pf_reading *reading, const char *text, size_t len,
                   struct pinfold_error *err)
{
    struct reader reader = { .reading = reading, .err = err, .key = -1 };
    int r = pf_toml_read(reading->file, text, len, take, &reader, err);
    unsigned line;

    line = reader.token_line;
    if (r == 0)
        r = flush_token(&reader);
    if (r == 0)
        r = flush(&reader);
    if (r == 0 && reader.token_count) {
        r = pf_policy_put(reading, pf_key_of_path("token"), line, reader.tokens, reader.token_count,
                          err);
        reader.tokens = NULL;
        reader.token_count = 0;
    }
    forget_token(&reader);
    free_values(reader.values, reader.count);
    free_values(reader.tokens, reader.token_count);
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/hint.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/say.h"

/* What the isolated backend shows of the system, and where its PATH leads. */
static const char *const system_dirs[] = { "/usr", "/bin", "/sbin", "/lib", "/lib64" };
#define INSIDE_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static bool is_below(const char *path, const char *dir)
{
    size_t len = strlen(dir);

    return strncmp(path, dir, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

static bool is_shown(const struct pf_options *options, const char *path)
{
    for (size_t i = 0; i < sizeof(system_dirs) / sizeof(system_dirs[0]); i++)
        if (is_below(path, system_dirs[i]))
            return true;
    for (const char **dir = options->ro; *dir; dir++)
        if (is_below(path, *dir))
            return true;
    for (const char **dir = options->rw; *dir; dir++)
        if (is_below(path, *dir))
            return true;
    return false;
}

/* Find a program as a shell does. path has PATH_MAX bytes. */
static bool find(const char *name, const char *search, char *path)
{
    struct stat st;

    for (const char *at = search; at && *at;) {
        size_t len = strcspn(at, ":");
        int n = snprintf(path, PATH_MAX, "%.*s/%s", (int)len, at, name);
        if (len > 0 && *at == '/' && n < PATH_MAX && access(path, X_OK) == 0 &&
            stat(path, &st) == 0 && S_ISREG(st.st_mode))
            return true;
        at += len + (at[len] == ':');
    }
    return false;
}

/* A word as it is typed to a shell, in quotes where it needs them. Returns text to free(), or NULL
 * when out of memory, and for what cannot be typed from what a terminal shows of it. */
static char *shell_word(const char *text)
{
    static const char bare[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "%+,-./:=@_";
    size_t len = 0, step;
    char *word;

    if (!text[strspn(text, bare)])
        return strdup(text);
    word = malloc(4 * strlen(text) + 3);
    if (!word)
        return NULL;
    word[len++] = '\'';
    for (; *text; text += step) {
        step = pf_printable_char(text);
        if (step == 0) {
            free(word);
            return NULL;
        }
        memcpy(word + len, *text == '\'' ? "'\\''" : text, *text == '\'' ? 4 : step);
        len += *text == '\'' ? 4 : step;
    }
    word[len++] = '\'';
    word[len] = '\0';
    return word;
}

/* Say which options would show the program of a word, which is in dir. */
static void tell(const char *word, const char *path, const char *dir)
{
    char variable[PATH_MAX + 64];
    char *shown, *search;

    snprintf(variable, sizeof(variable), "PATH=%s:/usr/local/bin:/usr/bin:/bin", dir);
    shown = shell_word(dir);
    search = shell_word(variable);
    if (!shown || !search)
        pf_note("%s is in %s here, which is not shown to the command", word, dir);
    else if (*word == '/')
        pf_note("%s is not shown to the command; --ro %s would, and what else it needs takes "
                "another --ro",
                path, shown);
    else
        pf_note("%s is in %s here, which is not shown to the command; try --ro %s --env %s, and "
                "another --ro for what else it needs",
                word, dir, shown, search);
    free(shown);
    free(search);
}

/* Whether a word of the command is a program that is here and not inside; then it was said. */
static bool hint_word(const struct pf_options *options, const char *word)
{
    char path[PATH_MAX], dir[PATH_MAX];

    if (*word == '/') {
        if (access(word, X_OK) < 0 || (size_t)snprintf(path, sizeof(path), "%s", word) >= PATH_MAX)
            return false;
    } else if (strchr(word, '/') || find(word, INSIDE_PATH, path) ||
               !find(word, getenv("PATH"), path)) {
        return false;
    }
    if (is_shown(options, path))
        return false;
    snprintf(dir, sizeof(dir), "%s", path);
    *strrchr(dir, '/') = '\0';
    if (!*dir) /* the whole of / is nothing to show */
        return false;
    tell(word, path, dir);
    return true;
}

void pf_hint_missing(const struct pf_options *options)
{
    static const char between[] = " \t\n;|&()<>\"'`$={}";
    char *line, *rest, *word;

    if (options->command[1]) {
        hint_word(options, options->command[0]);
        return;
    }
    line = strdup(options->command[0]);
    if (!line)
        return;
    for (word = strtok_r(line, between, &rest); word; word = strtok_r(NULL, between, &rest))
        if (hint_word(options, word))
            break;
    free(line);
}

void pf_hint_empty(const struct pf_options *options)
{
    if (!options->seed && !options->workspace && isatty(STDERR_FILENO))
        pf_note("the workspace was empty; --seed . copies the current directory in");
}

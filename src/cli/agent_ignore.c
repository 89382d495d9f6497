/* SPDX-License-Identifier: Apache-2.0 */
/* What the project itself calls products, or private: its .gitignore. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pinfold/policy.h>

#include "cli/agent_run.h"
#include "cli/say.h"
#include "cli/whole_file.h"

enum { IGNORE_MAX = 256 * 1024 };

/* The whole file, to free(); NULL when there is none that could be read. */
static char *read_ignore(const char *seed)
{
    struct pf_whole_file file;
    char path[PATH_MAX];
    int error;

    if ((size_t)snprintf(path, sizeof(path), "%s/.gitignore", seed) >= sizeof(path))
        return NULL;
    error = pf_whole_file(path, IGNORE_MAX, &file);
    if (error && error != ENOENT && error != ENOTDIR && error != EISDIR && error != EINVAL)
        pf_note(".gitignore is not used: %s", pf_error_words(error));
    return file.text;
}

/* Cut off blanks at the end, but not one behind a backslash. */
static void trim(char *line)
{
    size_t len = strlen(line);

    while (len && (line[len - 1] == ' ' || line[len - 1] == '\t' || line[len - 1] == '\r') &&
           !(len > 1 && line[len - 2] == '\\'))
        line[--len] = '\0';
}

/* Take the patterns of a text into a list that has room. Returns false when it says what our
 * patterns cannot: what it excepts would be left out as well, and that be seen by nobody. */
static bool take_patterns(char *text, const char **list, size_t count)
{
    char *rest;

    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        trim(line);
        if (!*line || *line == '#')
            continue;
        if (*line == '!')
            return false;
        if (pinfold_patterns_check((const char *const[]){ line, NULL }, NULL) == 0)
            list[count++] = line;
    }
    return true;
}

const char **pf_agent_ignores(const struct pf_options *options, char **ret_text)
{
    char *text = options->seed && !options->agent.all ? read_ignore(options->seed) : NULL;
    size_t given = 0, lines = 1;
    const char **list;

    *ret_text = text;
    while (options->exclude[given])
        given++;
    for (const char *at = text; at && *at; at++)
        lines += *at == '\n';
    list = calloc(given + lines + 1, sizeof(*list));
    if (!list)
        return NULL;
    memcpy(list, options->exclude, given * sizeof(*list));
    if (!text || take_patterns(text, list, given))
        return list;
    pf_note(".gitignore is not used, since it has exceptions ('!'); --exclude says what is not to "
            "come home");
    memset(list + given, 0, lines * sizeof(*list));
    return list;
}

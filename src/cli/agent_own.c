/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are ours and may lie in the project: they are no part of it. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/agent_run.h"

/* The name of a file, when it lies below a directory (both absolute, without links): relative to
 * that, behind the '/' which anchors a pattern; else NULL. */
static const char *below(const char *file, const char *directory)
{
    size_t len = strlen(directory);

    if (strcmp(directory, "/") == 0)
        return file;
    return strncmp(file, directory, len) == 0 && file[len] == '/' ? file + len : NULL;
}

/* A pattern that matches this path and no other. */
static char *pattern_of(const char *path)
{
    char *pattern = malloc(2 * strlen(path) + 1), *out = pattern;

    for (; pattern && *path; path++) {
        if (*path != '/')
            *out++ = '\\';
        *out++ = *path;
    }
    if (pattern)
        *out = '\0';
    return pattern;
}

/* Where one of our streams is a file, its name. path has PATH_MAX bytes. */
static bool stream_path(int fd, char *path)
{
    char link[32];
    struct stat st;
    ssize_t len;

    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return false;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    len = readlink(link, path, PATH_MAX - 1);
    if (len <= 0)
        return false;
    path[len] = '\0';
    return true;
}

/* A file that may not be there yet: its directory is. */
static bool file_path(const char *file, char *path)
{
    const char *slash = file ? strrchr(file, '/') : NULL;
    char directory[PATH_MAX];
    int len;

    if (!file ||
        (size_t)snprintf(directory, sizeof(directory), "%.*s", slash ? (int)(slash - file) + 1 : 1,
                         slash ? file : ".") >= sizeof(directory))
        return false;
    if (!realpath(directory, path))
        return false;
    len = (int)strlen(path);
    return snprintf(path + len, (size_t)(PATH_MAX - len), "%s%s", len > 1 ? "/" : "",
                    slash ? slash + 1 : file) < PATH_MAX - len;
}

const char **pf_agent_excludes(const struct pf_options *options, char **ret_patterns)
{
    char root[PATH_MAX], path[PATH_MAX];
    size_t count = 0, given = 0;
    const char **all;

    while (options->exclude[given])
        given++;
    all = calloc(given + PF_OWN_FILES + 1, sizeof(*all));
    if (!all)
        return NULL;
    memcpy(all, options->exclude, given * sizeof(*all));
    if (!options->seed || !realpath(options->seed, root))
        return all;
    for (int i = 0; i < PF_OWN_FILES; i++) {
        const char *name = NULL;
        bool there = i < 2 ? stream_path(STDOUT_FILENO + i, path)
                           : file_path(options->agent.session, path);
        if (there)
            name = below(path, root);
        if (!name)
            continue;
        all[given + count] = ret_patterns[count] = pattern_of(name);
        count += all[given + count] != NULL;
    }
    return all;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns, one a line, and after a NUL a path. What matches must be findable from its parents; and
 * where a pattern is of one name and without sets, fnmatch(3) has to agree.
 */
#include <fnmatch.h>

#include <pinfold/backend.h>

#include "base/cleanup.h"
#include "tree/glob.h"
#include "fuzz.h"

enum { PATTERNS = 8, STARS = 6, NAME = 100 };

static size_t count_byte(const char *text, char byte)
{
    size_t count = 0;

    for (; *text; text++)
        count += *text == byte;
    return count;
}

static void check_name(const struct pf_globs *globs, const char *pattern, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    /* More stars may take fnmatch(3) very long. */
    if (strpbrk(pattern, "/[") || count_byte(pattern, '*') > STARS || strlen(name) > NAME)
        return;
    demand(pf_globs_match(globs, path, strlen(path), false) == (fnmatch(pattern, name, 0) == 0));
}

static void check_parents(const struct pf_globs *globs, const char *path)
{
    for (const char *slash = path; (slash = strchr(slash, '/')); slash++)
        demand(pf_globs_could_match_below(globs, path, (size_t)(slash - path)));
}

static void fuzz_one(const char *pattern, const char *path)
{
    const char *const list[] = { pattern, NULL };
    PF_CLEANUP(pf_globs_freep) struct pf_globs *globs = NULL;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    int r = pf_globs_new(list, &globs, &err);

    demand(r == 0 || (r == -PINFOLD_EVALUE && err.msg[0]));
    demand(pinfold_patterns_check(list, NULL) == r);
    if (r < 0)
        return;
    check_name(globs, pattern, path);
    /* A directory is matched by all that match a file there, and by more. */
    if (pf_globs_match(globs, path, strlen(path), false))
        demand(pf_globs_match(globs, path, strlen(path), true));
    if (pf_globs_match(globs, path, strlen(path), true))
        check_parents(globs, path);
}

static void fuzz_all(const char *const *list, const char *path)
{
    PF_CLEANUP(pf_globs_freep) struct pf_globs *globs = NULL;
    bool any = false;

    if (pf_globs_new(list, &globs, NULL) < 0)
        return;
    for (size_t i = 0; list[i]; i++) {
        PF_CLEANUP(pf_globs_freep) struct pf_globs *one = NULL;
        demand(pf_globs_new((const char *const[]){ list[i], NULL }, &one, NULL) == 0);
        any = any || pf_globs_match(one, path, strlen(path), true);
    }
    demand(pf_globs_match(globs, path, strlen(path), true) == any);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *text = copy_text(data, size), *path = NULL;
    size_t len = strlen(text), count = 0;
    const char *list[PATTERNS + 1] = { NULL };
    char *rest = text;

    if (len == size ||
        pinfold_path_normalize(text + len + 1, size - len - 1, NULL, &path, NULL) < 0)
        return 0;
    for (char *line; count < PATTERNS && (line = strsep(&rest, "\n"));)
        list[count++] = line;
    for (size_t i = 0; i < count; i++)
        fuzz_one(list[i], path);
    fuzz_all(list, path);
    return 0;
}

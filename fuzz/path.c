/* SPDX-License-Identifier: Apache-2.0 */
/* Paths that agents write: the one form that the tree takes, which cannot leave the root; and the
 * same whether it is written below the root or relative to it. */
#include <limits.h>
#include <stdio.h>

#include <pinfold/backend.h>

#include "base/cleanup.h"
#include "fuzz.h"

#define ROOT "/srv/./some//space/"
#define REAL_ROOT "/srv/some/space"

static void check_normal(const char *path)
{
    demand(*path && strlen(path) < PATH_MAX);
    if (strcmp(path, ".") == 0)
        return;
    for (const char *at = path;; at++) {
        size_t len = strcspn(at, "/");
        demand(len > 0 && !(len == 1 && at[0] == '.') && !(len == 2 && memcmp(at, "..", 2) == 0));
        at += len;
        if (!*at)
            return;
    }
}

/* The same path below the root. */
static void check_absolute(const char *path)
{
    _cleanup_free_ char *absolute = NULL, *again = NULL;
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    demand(asprintf(&absolute, "%s/%s", REAL_ROOT, path) >= 0);
    if (strlen(absolute) >= PATH_MAX)
        return;
    demand(pinfold_path_normalize(absolute, strlen(absolute), ROOT, &again, &err) == 0);
    demand(strcmp(path, again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const roots[] = { NULL, ROOT, "/" };
    _cleanup_free_ char *text = copy_text(data, size);

    for (int i = 0; i < 3; i++) {
        struct pinfold_error err = PINFOLD_ERROR_INIT;
        _cleanup_free_ char *path = NULL, *again = NULL;
        int r = pinfold_path_normalize(text, size, roots[i], &path, &err);

        demand(r == 0 || (r == -PINFOLD_EPATH && !path && err.msg[0]));
        if (r < 0)
            continue;
        check_normal(path);
        demand(pinfold_path_normalize(path, strlen(path), NULL, &again, &err) == 0);
        demand(strcmp(path, again) == 0);
        check_absolute(path);
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Paths that somebody else wrote, made into the one form the rest of the tree room takes. */
#include <pinfold/backend.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"

/* Collapse "//", "." and ".." of path into out, which has room for the path. No '/' at either end.
 * Returns the length, or -1 when ".." goes above the start. */
static ssize_t collapse(const char *path, char *out)
{
    size_t used = 0, len;
    const char *slash;

    for (; *path; path += len) {
        len = strcspn(path, "/");
        if (len == 0) {
            len = 1;
            continue;
        }
        if (len == 1 && path[0] == '.')
            continue;
        if (len == 2 && memcmp(path, "..", 2) == 0) {
            if (used == 0)
                return -1;
            slash = memrchr(out, '/', used);
            used = slash ? (size_t)(slash - out) : 0;
            continue;
        }
        if (used > 0)
            out[used++] = '/';
        memmove(out + used, path, len);
        used += len;
    }
    out[used] = '\0';
    return (ssize_t)used;
}

static int refuse(struct pinfold_error *err, const char *path, const char *root, const char *why)
{
    if (!root)
        return pf_fail(err, PINFOLD_EPATH, "path \"%s\" %s", PF_QUOTE(path), why);
    return pf_fail(err, PINFOLD_EPATH, "path \"%s\" %s: the workspace root is \"%s\"",
                   PF_QUOTE(path), why, PF_QUOTE(root));
}

/* The part of an absolute path that lies under root, both collapsed. NULL: it does not. */
static char *below_root(char *path, const char *root)
{
    size_t len = strlen(root);

    if (len == 0)
        return path; /* the root is "/" */
    if (strncmp(path, root, len) != 0 || (path[len] != '\0' && path[len] != '/'))
        return NULL;
    return path[len] == '/' ? path + len + 1 : path + len;
}

static int strip_root(char *path, const char *text, const char *root, char **ret_rest,
                      struct pinfold_error *err)
{
    _cleanup_free_ char *real_root = NULL;

    if (!root)
        return refuse(err, text, NULL, "is absolute: use a path relative to the workspace root");
    real_root = strdup(root);
    if (!real_root)
        return pf_fail_nomem(err);
    if (root[0] != '/' || collapse(root, real_root) < 0)
        return refuse(err, text, root, "cannot be compared with a root that is not absolute");
    *ret_rest = below_root(path, real_root);
    return *ret_rest ? 0 : refuse(err, text, root, "is absolute and not under the root");
}

int pinfold_path_normalize(const char *path, size_t len, const char *root, char **ret_path,
                           struct pinfold_error *err)
{
    _cleanup_free_ char *text = NULL, *clean = NULL;
    char *rest;
    int r;

    if (len == 0)
        return pf_fail(err, PINFOLD_EPATH, "the path is empty (\".\" is the workspace root)");
    text = strndup(path, len);
    clean = malloc(len + 2); /* room for "." too */
    if (!text || !clean)
        return pf_fail_nomem(err);
    if (strlen(text) < len)
        return refuse(err, text, NULL, "goes on after a NUL byte, which no path can hold");
    if (len > PATH_MAX - 1)
        return pf_fail(err, PINFOLD_EPATH, "path \"%s\" has %zu bytes, more than %d",
                       PF_QUOTE(text), len, PATH_MAX - 1);
    if (collapse(text, clean) < 0)
        return refuse(err, text, root, "leaves the workspace");
    rest = clean;
    if (text[0] == '/') {
        r = strip_root(clean, text, root, &rest, err);
        if (r < 0)
            return r;
    }
    if (rest != clean)
        memmove(clean, rest, strlen(rest) + 1);
    if (clean[0] == '\0')
        memcpy(clean, ".", 2);
    *ret_path = TAKE(clean);
    return 0;
}

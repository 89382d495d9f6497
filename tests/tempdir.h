/* SPDX-License-Identifier: Apache-2.0 */
/* A directory of a test's own, under $TMPDIR. */
#ifndef TESTS_TEMPDIR_H
#define TESTS_TEMPDIR_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Make a directory whose name begins with prefix, and write its path to path. Returns path, or
 * NULL. */
static inline char *test_tempdir(const char *prefix, char *path, size_t size)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(path, size, "%s/%s-XXXXXX", tmp && *tmp ? tmp : "/tmp", prefix);
    return mkdtemp(path);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Counting this process's descriptors, to see that none is left. Include after cmocka.h. */
#ifndef TESTS_DESCRIPTORS_H
#define TESTS_DESCRIPTORS_H

#include <dirent.h>

static inline int count_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;

    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

#endif

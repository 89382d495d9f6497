/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded requests and replies, which lie beside the checkout. Include after cmocka.h. */
#ifndef TESTS_NET_VECTORS_H
#define TESTS_NET_VECTORS_H

#include <fnmatch.h>
#include <jansson.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Call use for each file of a folder whose name matches, and return how many there were. Skips the
 * test when there is no such folder. */
static inline int each_vector(const char *folder, const char *pattern,
                              void (*use)(const char *name, const json_t *vector))
{
    const char *base = getenv("PINFOLD_WIRE");
    char path[PATH_MAX];
    struct dirent *entry;
    DIR *dir;
    int count = 0;

    snprintf(path, sizeof(path), "%s/%s", base ? base : "", folder);
    dir = base ? opendir(path) : NULL;
    if (!dir) {
        print_message("the recordings are not here: %s\n", path);
        skip();
    }
    while ((entry = readdir(dir))) {
        json_error_t wrong;
        json_t *vector;

        if (fnmatch(pattern, entry->d_name, 0) != 0)
            continue;
        snprintf(path, sizeof(path), "%s/%s/%s", base, folder, entry->d_name);
        vector = json_load_file(path, JSON_ALLOW_NUL, &wrong);
        if (!vector)
            fail_msg("%s: %s", path, wrong.text);
        use(entry->d_name, vector);
        json_decref(vector);
        count++;
    }
    closedir(dir);
    return count;
}

static inline const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

/* The bytes of hexadecimal digits; the caller frees them. */
static inline unsigned char *unhex(const char *hex, size_t *ret_len)
{
    unsigned char *data = malloc(strlen(hex) / 2 + 1);

    assert_non_null(data);
    *ret_len = strlen(hex) / 2;
    for (size_t i = 0; i < *ret_len; i++) {
        char digits[3] = { hex[2 * i], hex[2 * i + 1], '\0' };
        data[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    return data;
}

#endif

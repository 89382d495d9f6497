/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/env.h"

#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strings.h"

/* The length of NAME in NAME=value; of the whole entry when there is no '='. */
static size_t name_len(const char *entry)
{
    return strcspn(entry, "=");
}

static uint64_t hash_name(const char *name, size_t len)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(1099511628211);
    return hash;
}

/* Where name is in the table, or would go. The table has free slots. */
static size_t find_slot(const size_t *table, size_t mask, char *const *merged, const char *entry)
{
    size_t len = name_len(entry);
    size_t at = (size_t)hash_name(entry, len) & mask;

    for (; table[at] != 0; at = (at + 1) & mask) {
        const char *other = merged[table[at] - 1];
        if (name_len(other) == len && memcmp(other, entry, len) == 0)
            break;
    }
    return at;
}

char **pf_env_merge(const char *const *const *lists, size_t count)
{
    size_t total = 0, size = 16, used = 0;
    _cleanup_free_ size_t *table = NULL; /* index + 1 into merged */
    _cleanup_strv_ char **merged = NULL;

    for (size_t i = 0; i < count; i++)
        total += pf_strv_count(lists[i]);
    while (size < 2 * total)
        size *= 2;
    table = calloc(size, sizeof(*table));
    merged = calloc(total + 1, sizeof(*merged));
    if (!table || !merged)
        return NULL;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; lists[i] && lists[i][j]; j++) {
            size_t at = find_slot(table, size - 1, merged, lists[i][j]);
            char *copy = strdup(lists[i][j]);
            if (!copy)
                return NULL;
            if (table[at] == 0) {
                merged[used++] = copy;
                table[at] = used;
            } else {
                free(merged[table[at] - 1]);
                merged[table[at] - 1] = copy;
            }
        }
    return TAKE(merged);
}

int pf_env_check(const char *const *list, struct pinfold_error *err)
{
    for (size_t i = 0; list && list[i]; i++) {
        size_t len = name_len(list[i]);
        if (len == 0 || list[i][len] != '=') /* errors reach the audit, and values are secrets */
            return pf_fail(err, PINFOLD_EVALUE,
                           "environment entry %zu is not NAME=value (it may hold a secret and is "
                           "not shown)",
                           i + 1);
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strings.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool pf_text_copy(char **ret, const char *text)
{
    *ret = text ? strdup(text) : NULL;
    return !text || *ret;
}

void pf_text_hide(char *text, const char *secret)
{
    static const char instead[] = "[secret]";
    size_t len = secret ? strlen(secret) : 0, kept = sizeof(instead) - 1;

    while (text && len >= kept && (text = strstr(text, secret))) {
        memcpy(text, instead, kept);
        memmove(text + kept, text + len, strlen(text + len) + 1);
        text += kept;
    }
}

int pf_strings_take(struct pinfold_strings *list, char *text)
{
    size_t capacity = list->capacity ? list->capacity * 2 : 8;
    char **items;

    if (!text)
        return -PINFOLD_ENOMEM;
    if (list->count == list->capacity) {
        items = capacity > SIZE_MAX / sizeof(*items)
                        ? NULL
                        : realloc(list->items, capacity * sizeof(*items));
        if (!items) {
            free(text);
            return -PINFOLD_ENOMEM;
        }
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = text;
    return 0;
}

int pf_strings_add(struct pinfold_strings *list, const char *text)
{
    return pf_strings_take(list, strdup(text));
}

int pf_strings_addf(struct pinfold_strings *list, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    int len;

    va_start(args, format);
    len = vasprintf(&text, format, args);
    va_end(args);
    return pf_strings_take(list, len < 0 ? NULL : text);
}

int pf_strings_copy(struct pinfold_strings *to, const struct pinfold_strings *from)
{
    for (size_t i = 0; i < from->count; i++)
        if (pf_strings_add(to, from->items[i]) < 0)
            return -PINFOLD_ENOMEM;
    return 0;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void pf_strings_sort(struct pinfold_strings *list)
{
    if (list->count > 1)
        qsort(list->items, list->count, sizeof(*list->items), compare);
}

size_t pf_strv_count(const char *const *strv)
{
    size_t count = 0;

    while (strv && strv[count])
        count++;
    return count;
}

char **pf_strv_concat(const char *const *const *lists, size_t count)
{
    size_t total = 0, used = 0;
    char **joined;

    for (size_t i = 0; i < count; i++)
        total += pf_strv_count(lists[i]);
    joined = calloc(total + 1, sizeof(*joined));
    if (!joined)
        return NULL;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; lists[i] && lists[i][j]; j++) {
            joined[used] = strdup(lists[i][j]);
            if (!joined[used++]) {
                pf_strv_free(joined);
                return NULL;
            }
        }
    return joined;
}

char **pf_strv_copy(const char *const *strv)
{
    return pf_strv_concat(&strv, 1);
}

void pf_strv_free(char **strv)
{
    for (size_t i = 0; strv && strv[i]; i++)
        free(strv[i]);
    free(strv);
}

void pf_strv_freep(char ***strv)
{
    pf_strv_free(*strv);
}

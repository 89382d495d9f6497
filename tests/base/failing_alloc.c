/* SPDX-License-Identifier: Apache-2.0 */
#include "failing_alloc.h"

#include <stdarg.h>
#include <stddef.h>

static unsigned left;
static bool hit;

void failing_alloc_set(unsigned nth)
{
    left = nth;
    hit = false;
}

bool failing_alloc_hit(void)
{
    return hit;
}

static bool fails(void)
{
    if (left == 0 || --left > 0)
        return false;
    hit = true;
    return true;
}

/* What the linker's --wrap renames: calls of malloc() come to __wrap_malloc(). */
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
int __real_vasprintf(char **ret, const char *format, va_list args);
int __wrap_vasprintf(char **ret, const char *format, va_list args)
        __attribute__((format(printf, 2, 0)));
/* vasprintf() under _FORTIFY_SOURCE */
int __real___vasprintf_chk(char **ret, int flag, const char *format, va_list args);
int __wrap___vasprintf_chk(char **ret, int flag, const char *format, va_list args)
        __attribute__((format(printf, 3, 0)));

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails() ? NULL : __real_realloc(old, size);
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : __real_strdup(text);
}

/* What *ret holds after a failure is undefined: make it something that hurts. */
int __wrap_vasprintf(char **ret, const char *format, va_list args)
{
    if (fails()) {
        *ret = (char *)1;
        return -1;
    }
    return __real_vasprintf(ret, format, args);
}

int __wrap___vasprintf_chk(char **ret, int flag, const char *format, va_list args)
{
    if (fails()) {
        *ret = (char *)1;
        return -1;
    }
    return __real___vasprintf_chk(ret, flag, format, args);
}

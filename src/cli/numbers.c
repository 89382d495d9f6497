/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/numbers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <pinfold/limits.h>

const char *pf_take_bytes(uint64_t *slot, const char *value)
{
    static const char wrong[] = "not a number of bytes greater than 0, such as 100000, 64K or 1M";
    static const char suffixes[] = "KMG";
    unsigned long long bytes;
    const char *suffix;
    char *end;

    if (*value < '0' || *value > '9')
        return wrong;
    errno = 0;
    bytes = strtoull(value, &end, 10);
    if (errno)
        return "too large";
    if (*end) {
        suffix = strchr(suffixes, *end);
        if (!suffix || end[1])
            return wrong;
        if (__builtin_mul_overflow(bytes, 1ULL << 10 * (suffix - suffixes + 1), &bytes))
            return "too large";
    }
    if (!bytes)
        return wrong;
    *slot = bytes;
    return NULL;
}

const char *pf_take_byte_limit(uint64_t *slot, const char *value)
{
    if (strcmp(value, "unlimited") != 0)
        return pf_take_bytes(slot, value);
    *slot = PINFOLD_UNLIMITED;
    return NULL;
}

const char *pf_take_limit(uint64_t *slot, const char *value)
{
    static const char wrong[] = "not a number greater than 0, nor 'unlimited'";
    unsigned long long number;
    char *end;

    if (strcmp(value, "unlimited") == 0) {
        *slot = PINFOLD_UNLIMITED;
        return NULL;
    }
    if (*value < '0' || *value > '9')
        return wrong;
    errno = 0;
    number = strtoull(value, &end, 10);
    if (errno)
        return "too large";
    if (*end || !number)
        return wrong;
    *slot = number;
    return NULL;
}

const char *pf_take_decimal(double *slot, double most, const char *value)
{
    static const char wrong[] = "not a number greater than 0, such as 2 or 0.5";
    double number;
    char *end;

    /* Digits and a point: strtod() alone would also take "nan", "inf" and "0x1p3". */
    if (!*value || value[strspn(value, "0123456789.")])
        return wrong;
    number = strtod(value, &end);
    if (*end || !(number > 0))
        return wrong;
    if (number > most)
        return "too large";
    *slot = number;
    return NULL;
}

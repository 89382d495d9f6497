/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as JSON has them, and numbers in text. */
#ifndef PF_BASE_NUMBER_H
#define PF_BASE_NUMBER_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether a number has no fraction and is an int64_t. Not by floor(3), for which some compilers
 * want one more library. */
static inline bool pf_is_whole(double number)
{
    double back = fabs(number) < 0x1p63 ? (double)(int64_t)number : 0;

    return fabs(number) < 0x1p63 && !(back < number) && !(back > number);
}

/* Read the digits at *at, which moves behind them. Returns false, and leaves both as they are, when
 * there are none, or they stand for more than most: no sign, no spaces. */
static inline bool pf_take_number(const char **at, uint64_t most, uint64_t *ret)
{
    uint64_t number = 0;
    const char *digit = *at;

    for (; *digit >= '0' && *digit <= '9'; digit++) {
        uint64_t unit = (uint64_t)(*digit - '0');
        if (unit > most || number > (most - unit) / 10)
            return false;
        number = 10 * number + unit;
    }
    if (digit == *at)
        return false;
    *at = digit;
    *ret = number;
    return true;
}

#endif

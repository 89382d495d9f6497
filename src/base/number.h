/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as JSON has them. */
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

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PF_BASE_RANDOM_H
#define PF_BASE_RANDOM_H

#include <stddef.h>

/* Fill text with digits random hexadecimal digits and a NUL. From the kernel's generator. */
void pf_random_hex(char *text, size_t digits);

#endif

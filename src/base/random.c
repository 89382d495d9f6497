/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"

#include <stdlib.h>

void pf_random_hex(char *text, size_t digits)
{
    static const char hex[] = "0123456789abcdef";
    unsigned char bytes[64];

    for (size_t i = 0; i < digits; i++) {
        if (i % sizeof(bytes) == 0)
            arc4random_buf(bytes, sizeof(bytes)); /* glibc's: getrandom(2), cannot fail */
        text[i] = hex[bytes[i % sizeof(bytes)] & 15];
    }
    text[digits] = '\0';
}

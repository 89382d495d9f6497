/* SPDX-License-Identifier: Apache-2.0 */
/* Count lines, words and bytes of stdin. */
#include <ctype.h>
#include <stdio.h>

int main(void)
{
    unsigned long lines = 0, words = 0, bytes = 0;
    int inside = 0;
    int c;

    while ((c = getchar()) != EOF) {
        bytes++;
        lines += c == '\n';
        words += !isspace(c) && !inside;
        inside = !isspace(c);
    }
    printf("%lu %lu %lu\n", lines, words, bytes);
    return 0;
}

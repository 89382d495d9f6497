/* SPDX-License-Identifier: Apache-2.0 */
/* What all targets share: the entry that libFuzzer and replay.c call, and a check that stays in
 * every build. */
#ifndef PF_FUZZ_FUZZ_H
#define PF_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void demand(bool holds)
{
    if (!holds)
        abort();
}

/* A text of its own on the heap, not a byte longer than its NUL: overruns are seen. To free(). */
static inline char *copy_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    demand(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

#endif

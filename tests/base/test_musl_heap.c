/* SPDX-License-Identifier: Apache-2.0 */
/* The heap of the program that starts quickly, here in front of the C library that there is. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BLOCKS = 3000, LARGEST = 20000 };

static uintptr_t misaligned;

/* Of any size, none in particular; filled, and its neighbours looked at later. */
static unsigned char *get(unsigned number, size_t *ret_size)
{
    size_t size = number % 100 == 0 ? LARGEST - number : number * 37 % 150;
    unsigned char *block = number % 2 ? malloc(size) : calloc(size, 1);

    assert_non_null(block);
    misaligned |= (uintptr_t)block % _Alignof(max_align_t);
    for (size_t i = 0; number % 2 == 0 && i < size; i++)
        assert_int_equal(block[i], 0);
    if (number % 3 == 0) {
        block = realloc(block, size * 2 + 1);
        assert_non_null(block);
        size = size * 2 + 1;
    }
    memset(block, (int)(number & 255), size);
    *ret_size = size;
    return block;
}

static void blocks_keep_what_is_in_them_and_do_not_overlap(void **state)
{
    static unsigned char *blocks[BLOCKS];
    static size_t sizes[BLOCKS];

    (void)state;
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = get(i, &sizes[i]);
        if (i % 5 == 0) {
            free(blocks[i]);
            blocks[i] = get(i + 2, &sizes[i]);
            memset(blocks[i], (int)(i & 255), sizes[i]);
        }
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        for (size_t at = 0; at < sizes[i]; at++)
            assert_int_equal(blocks[i][at], i & 255);
        blocks[i] = realloc(blocks[i], 3);
        assert_non_null(blocks[i]);
    }
    for (unsigned i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    assert_int_equal(misaligned, 0);
    free(NULL);
}

static void a_size_that_cannot_be_is_refused(void **state)
{
    volatile size_t half = SIZE_MAX / 2 + 2, most = PTRDIFF_MAX;
    void *volatile got; /* a compiler that sees all of it may leave an allocation out */

    (void)state;
    got = calloc(half, 2);
    assert_null(got);
    got = malloc(most);
    assert_null(got);
    got = realloc(NULL, most);
    assert_null(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_keep_what_is_in_them_and_do_not_overlap),
        cmocka_unit_test(a_size_that_cannot_be_is_refused),
    };

    return cmocka_run_group_tests_name("musl_heap", tests, NULL, NULL);
}

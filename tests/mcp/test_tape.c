/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/tape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char page[PF_MCP_TAPE_MAX];

static int make(void **state)
{
    *state = pf_mcp_tape_new();
    return !*state;
}

static int drop(void **state)
{
    pf_mcp_tape_free(*state);
    return 0;
}

/* Byte n of a stream that is easily told apart from itself moved. */
static char byte_at(uint64_t n)
{
    return (char)('a' + (n * 7 + n / 251) % 26);
}

static void write_until(struct pf_mcp_tape *tape, uint64_t *at, uint64_t end, size_t piece)
{
    char *data = malloc(piece);

    assert_non_null(data);
    while (*at < end) {
        size_t len = end - *at < piece ? (size_t)(end - *at) : piece;
        for (size_t i = 0; i < len; i++)
            data[i] = byte_at(*at + i);
        pf_mcp_tape_write(tape, PINFOLD_STDOUT, data, len);
        *at += len;
    }
    free(data);
}

static void expect_page(struct pf_mcp_tape *tape, uint64_t offset, size_t size, uint64_t from,
                        size_t len)
{
    size_t got = pf_mcp_tape_read(tape, PINFOLD_STDOUT, &offset, page, size);

    assert_int_equal(offset, from);
    assert_int_equal(got, len);
    for (size_t i = 0; i < len; i++)
        assert_int_equal(page[i], byte_at(from + i));
}

static void reads_what_was_written_in_memory_and_in_a_file(void **state)
{
    static const uint64_t ends[] = { 1, 1023, 1024, 1025, 65535, 65536, 65537, 300000 };
    uint64_t at = 0;

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        write_until(*state, &at, ends[i], 777);
        assert_int_equal(pf_mcp_tape_total(*state, PINFOLD_STDOUT), at);
        expect_page(*state, 0, sizeof(page), 0, (size_t)at);
        expect_page(*state, at - 1, 100, at - 1, 1);
        expect_page(*state, at / 2, 10, at / 2, at / 2 + 10 < at ? 10 : (size_t)(at - at / 2));
    }
    expect_page(*state, at, 100, at, 0);
    expect_page(*state, at + 5, 100, at + 5, 0);
    assert_int_equal(pf_mcp_tape_total(*state, PINFOLD_STDERR), 0);
}

static void keeps_the_end_of_what_is_too_long(void **state)
{
    uint64_t at = 0, first;

    write_until(*state, &at, PF_MCP_TAPE_MAX, 262144);
    expect_page(*state, 0, 10, 0, 10);
    write_until(*state, &at, 2 * PF_MCP_TAPE_MAX + 12345, 262144 - 7);
    first = at - PF_MCP_TAPE_MAX;
    expect_page(*state, 0, 1000, first, 1000);
    expect_page(*state, first, sizeof(page), first, sizeof(page));
    /* Across the end of the ring. */
    expect_page(*state, 2 * PF_MCP_TAPE_MAX - 500, 1000, 2 * PF_MCP_TAPE_MAX - 500, 1000);
}

static void keeps_the_streams_apart(void **state)
{
    uint64_t offset = 0;

    pf_mcp_tape_write(*state, PINFOLD_STDOUT, "out", 3);
    pf_mcp_tape_write(*state, PINFOLD_STDERR, "wrong", 5);
    assert_int_equal(pf_mcp_tape_read(*state, PINFOLD_STDERR, &offset, page, 100), 5);
    assert_memory_equal(page, "wrong", 5);
    assert_int_equal(pf_mcp_tape_read(*state, PINFOLD_STDOUT, &offset, page, 100), 3);
}

static void cuts_no_character_but_the_last_that_comes(void **state)
{
    static const char text[] = "a\xe2\x82\xac\xf0\x9f\x98\x80";
    static const size_t whole[] = { 0, 1, 1, 1, 4, 4, 4, 4, 8 };
    uint64_t offset = 0;

    pf_mcp_tape_write(*state, PINFOLD_STDOUT, text, 8);
    for (size_t size = 1; size <= 8; size++)
        assert_int_equal(pf_mcp_tape_read(*state, PINFOLD_STDOUT, &offset, page, size),
                         whole[size]);
    /* Half a character waits for its rest, as long as that may come. */
    pf_mcp_tape_write(*state, PINFOLD_STDOUT, "b\xe2\x82", 3);
    assert_int_equal(pf_mcp_tape_read(*state, PINFOLD_STDOUT, &offset, page, 100), 9);
    pf_mcp_tape_end(*state);
    assert_int_equal(pf_mcp_tape_read(*state, PINFOLD_STDOUT, &offset, page, 100), 11);
}

static void takes_bytes_that_are_no_text(void **state)
{
    uint64_t offset = 0;

    pf_mcp_tape_write(*state, PINFOLD_STDOUT, "\x80\x80\x80\x80\xff\xfe\0x", 8);
    assert_int_equal(pf_mcp_tape_read(*state, PINFOLD_STDOUT, &offset, page, 4), 4);
    assert_int_equal(pf_mcp_tape_read(*state, PINFOLD_STDOUT, &offset, page, 100), 8);
}

static void waits_for_more_for_the_end_or_for_its_time(void **state)
{
    assert_false(pf_mcp_tape_wait(*state, 0, 0, 1000000));
    pf_mcp_tape_write(*state, PINFOLD_STDERR, "x", 1);
    assert_false(pf_mcp_tape_wait(*state, 0, 0, INT64_C(600000000000)));
    pf_mcp_tape_end(*state);
    assert_true(pf_mcp_tape_wait(*state, UINT64_MAX, UINT64_MAX, INT64_C(600000000000)));
}

/* A piece that no ring holds stands for memory and files that cannot be had. */
static void counts_what_it_cannot_keep(void **state)
{
    char *large = calloc(1, PF_MCP_TAPE_MAX + 1);
    uint64_t at = 0, offset = 0;

    assert_non_null(large);
    write_until(*state, &at, 100, 100);
    pf_mcp_tape_write(*state, PINFOLD_STDOUT, large, PF_MCP_TAPE_MAX + 1);
    free(large);
    pf_mcp_tape_write(*state, PINFOLD_STDOUT, "after", 5);
    assert_int_equal(pf_mcp_tape_total(*state, PINFOLD_STDOUT), 100 + PF_MCP_TAPE_MAX + 6);
    assert_int_equal(pf_mcp_tape_read(*state, PINFOLD_STDOUT, &offset, page, 100), 0);
    assert_int_equal(offset, 100 + PF_MCP_TAPE_MAX + 6);
}

#define TAPE_TEST(name) cmocka_unit_test_setup_teardown(name, make, drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TAPE_TEST(reads_what_was_written_in_memory_and_in_a_file),
        TAPE_TEST(keeps_the_end_of_what_is_too_long),
        TAPE_TEST(keeps_the_streams_apart),
        TAPE_TEST(cuts_no_character_but_the_last_that_comes),
        TAPE_TEST(takes_bytes_that_are_no_text),
        TAPE_TEST(waits_for_more_for_the_end_or_for_its_time),
        TAPE_TEST(counts_what_it_cannot_keep),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

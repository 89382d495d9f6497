/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"

static void expect_hash(const void *data, size_t len, const char *expected)
{
    char hex[PF_SHA256_HEX + 1];

    memset(hex, 'z', sizeof(hex));
    pf_sha256_hex(data, len, hex);
    assert_string_equal(hex, expected);
}

/* FIPS 180-4 examples and the NIST long vector. */
static void sha256_gives_the_published_digests(void **state)
{
    char *million = malloc(1000000);

    (void)state;
    expect_hash("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect_hash("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect_hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    assert_non_null(million);
    memset(million, 'a', 1000000);
    expect_hash(million, 1000000,
                "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

static void nul_bytes_count(void **state)
{
    (void)state;
    expect_hash("\0", 1, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d");
}

/* Where the padding fits into the last block just so, or does not; digests by Python's hashlib. */
static void every_length_around_a_block_is_padded_right(void **state)
{
    static const struct {
        size_t len;
        const char *digest;
    } rows[] = {
        { 55, "eb2c86e932179f4ba13fe8715a26124b77d6bad290b9b4c1cc140cf633300c19" },
        { 56, "a5fc6e203a4c2b657d0d153885932414b2ffc6a93f0f8bf8b3183315e5a7212c" },
        { 57, "2dd0a6d14520f410e18bd2f443f0ff2e7389dfaf9242bb9257730fc190e8085d" },
        { 63, "94e419fabac7f930810f9636354042f8c1426d2f834d4ab65c93dc1e69326b13" },
        { 64, "a0fab1377f49a759b57f63318262ebe89fabfc990e8e93ceac2984561482b9d4" },
        { 65, "74b128f30cf83de43ddf4aafc40c7b50a7443d3c73a89a7cfca17e15e43d51ab" },
        { 119, "68297a9eb141ce16bbc0847da1c0c48e2858704feaa13993bde29f87a198a6e1" },
        { 120, "392add47fbaa8197a874ebe770a947a26dd6f2becce5f64688cc4d18c9da93bd" },
        { 128, "70ae1c5307f5250d5cb9e40742ba9613fcdf9b8d9eb6dd393330443b2d5effbd" },
    };
    char bytes[128];

    (void)state;
    memset(bytes, 'b', sizeof(bytes));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        expect_hash(bytes, rows[i].len, rows[i].digest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_gives_the_published_digests),
        cmocka_unit_test(nul_bytes_count),
        cmocka_unit_test(every_length_around_a_block_is_padded_right),
    };

    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}

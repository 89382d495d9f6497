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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_gives_the_published_digests),
        cmocka_unit_test(nul_bytes_count),
    };

    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}

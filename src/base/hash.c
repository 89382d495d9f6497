/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 as FIPS 180-4 has it. Of no use for secrets: nothing here runs in constant time. */
#include "base/hash.h"

#include <stdint.h>
#include <string.h>

enum { BLOCK = 64, LENGTH_AT = 56 };

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t word, unsigned bits)
{
    return word >> bits | word << (32 - bits);
}

static uint32_t load(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void expand(const unsigned char *block, uint32_t words[static 64])
{
    for (size_t i = 0; i < 16; i++)
        words[i] = load(block + 4 * i);
    for (int i = 16; i < 64; i++) {
        uint32_t a = words[i - 15], b = words[i - 2];
        words[i] = words[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + words[i - 7] +
                   (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
}

static void compress(uint32_t state[static 8], const unsigned char *block)
{
    uint32_t words[64];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];

    expand(block, words);
    for (int i = 0; i < 64; i++) {
        uint32_t first = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) +
                         round_constants[i] + words[i];
        uint32_t second =
                (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + first;
        d = c, c = b, b = a, a = first + second;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

/* What is left of the data, a one bit, zeroes, and the number of bits at the end of a block. */
static void compress_end(uint32_t state[static 8], const unsigned char *rest, size_t len,
                         uint64_t total)
{
    unsigned char last[2 * BLOCK] = { 0 };
    size_t blocks = len < LENGTH_AT ? 1 : 2;

    if (len > 0)
        memcpy(last, rest, len);
    last[len] = 0x80;
    for (unsigned i = 0; i < 8; i++)
        last[blocks * BLOCK - 1 - i] = (unsigned char)(total * 8 >> 8 * i);
    for (size_t i = 0; i < blocks; i++)
        compress(state, last + i * BLOCK);
}

void pf_sha256_hex(const void *data, size_t len, char hex[static PF_SHA256_HEX + 1])
{
    static const char digits[] = "0123456789abcdef";
    /* Of the square roots of the first eight primes. */
    uint32_t state[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                          0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
    const unsigned char *at = data;
    size_t left = len;

    for (; left >= BLOCK; at += BLOCK, left -= BLOCK)
        compress(state, at);
    compress_end(state, at, left, len);
    for (int i = 0; i < PF_SHA256_HEX; i++)
        hex[i] = digits[state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    hex[PF_SHA256_HEX] = '\0';
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <sha2.h> /* libmd */

void pf_sha256_hex(const void *data, size_t len, char hex[static PF_SHA256_HEX + 1])
{
    SHA256Data(data, len, hex);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* JSON Schemas and values by them: what is fuzzed is an array of the two. */
#include "agent/schema.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *pair = json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL);
    const json_t *schema = json_array_get(pair, 0), *value = json_array_get(pair, 1);
    struct pf_buf wrong = PF_BUF_INIT(1024 * 1024);
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    if (value && pf_schema_check(schema, &err) == 0)
        (void)pf_schema_validate(schema, value, pf_schema_names_all(schema), &wrong);
    pf_buf_done(&wrong);
    json_decref(pair);
    return 0;
}

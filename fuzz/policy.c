/* SPDX-License-Identifier: Apache-2.0 */
/* pinfold.toml of a project that nobody knows. */
#include "cli/policy.h"
#include "fuzz.h"

/* What a setting may be is not read from bytes: see options.c. */
int pf_policy_put(const struct pf_reading *reading, int key, unsigned line, char **values,
                  size_t count, struct pinfold_error *err)
{
    (void)reading;
    (void)err;
    if (key < 0 || (size_t)key >= pf_key_count || (!line && pf_keys[key].path[0] != 'e'))
        abort();
    for (size_t i = 0; i < count; i++)
        free(values[i]);
    free(values);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pf_reading reading = { .source = PF_FROM_PROJECT,
                                  .file = "pinfold.toml",
                                  .directory = "." };

    pf_policy_read(&reading, (const char *)data, size, &err);
    return 0;
}

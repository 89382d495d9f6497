/* SPDX-License-Identifier: Apache-2.0 */
/* Files of other programs that a member is spliced into. What comes out has to mean what went in,
 * and the member: pf_jsonc_set() looks itself, and must not have to refuse what jansson reads. */
#include "cli/jsonc.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    json_t *value = json_pack("{s:s, s:[s]}", "command", "pinfold", "args", "mcp");
    char *text = malloc(size + 1), *changed;

    if (!text || !value || (size && memchr(data, 0, size))) {
        free(text);
        json_decref(value);
        return 0;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    for (int comments = 0; comments < 2; comments++) {
        changed = NULL;
        if (pf_jsonc_set(text, size, comments, "mcpServers", "pinfold", value, &changed, &err) == 0)
            demand(strlen(changed) > size / 2);
        else
            demand(comments || strcmp(err.msg, "it is written in a way that cannot be changed "
                                               "safely") != 0);
        free(changed);
    }
    json_decref(value);
    free(text);
    return 0;
}

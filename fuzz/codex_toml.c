/* SPDX-License-Identifier: Apache-2.0 */
/* A config.toml of another program that a section is put into: every other line stays, and a second
 * time nothing is left to change. */
#include "base/cleanup.h"
#include "cli/install.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *value = json_pack("{s:s, s:[s, s]}", "command", "pinfold", "args", "mcp", "\"\\\n");
    _cleanup_free_ char *text = copy_text(data, size), *once = NULL, *twice = NULL;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    int r;

    demand(value != NULL);
    if (strlen(text) == size) {
        r = pf_install_toml(text, size, "pinfold", value, &once, &err);
        demand(r == 0 || (r == -PINFOLD_EVALUE && err.msg[0]));
        if (r == 0) {
            demand(strstr(once, "[mcp_servers.pinfold]") != NULL);
            demand(pf_install_toml(once, strlen(once), "pinfold", value, &twice, &err) == 0);
            demand(strcmp(once, twice) == 0);
        }
    }
    json_decref(value);
    return 0;
}

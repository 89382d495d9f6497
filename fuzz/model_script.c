/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts of models, which come with projects: taken whole, or refused with a reason. */
#include "agent/model_script.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pf_script script;
    int r = pf_script_read((const char *)data, size, "s", &script, &err);

    demand(r == 0 || (r == -PINFOLD_EVALUE && err.msg[0]));
    demand(r < 0 || (script.count > 0 && script.name));
    for (size_t i = 0; r == 0 && i < script.count; i++)
        demand(script.turns[i].left > 0 && (script.turns[i].reply || script.turns[i].error));
    pf_script_done(&script);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <pinfold/result.h>

#include "base/buf.h"
#include "base/error.h"

int pinfold_execute_result_format(const struct pinfold_execute_result *result,
                                  struct pinfold_bytes *ret_text, struct pinfold_error *err)
{
    struct pf_buf text = PF_BUF_INIT(PF_BUF_UNLIMITED);
    int r = pf_buf_printf(&text, "exit code: %d\n", result->exit_code);

    /* The output already holds stderr, and the notes on truncation and timeout. */
    if (r == 0)
        r = result->output_len > 0 ? pf_buf_append(&text, result->output, result->output_len)
                                   : pf_buf_append_text(&text, "<no output>");
    if (r == 0)
        r = pf_buf_take(&text, ret_text);
    pf_buf_done(&text);
    return r < 0 ? pf_fail_nomem(err) : 0;
}

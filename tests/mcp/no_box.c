/* SPDX-License-Identifier: Apache-2.0 */
/* In place of the command's part in the server: these tests open no workspace. */
#include "cli/box.h"

int pf_box_open(struct pf_box *box, const struct pf_options *options, const char *workspace,
                struct pinfold_error *err)
{
    (void)box;
    (void)options;
    (void)workspace;
    err->code = PINFOLD_EVALUE;
    return -PINFOLD_EVALUE;
}

int pf_box_close(struct pf_box *box, struct pinfold_error *err)
{
    (void)box;
    (void)err;
    return 0;
}

bool pf_options_remote(const struct pf_options *options)
{
    (void)options;
    return true;
}

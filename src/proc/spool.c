/* SPDX-License-Identifier: Apache-2.0 */
#include <pinfold/result.h>

void pinfold_spool_free(struct pinfold_spool *spool)
{
    (void)spool;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <pinfold/pinfold.h>

#include "pf_config.h"

const char *pinfold_version(void)
{
    return PF_VERSION;
}

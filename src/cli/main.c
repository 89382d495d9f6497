/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include <pinfold/pinfold.h>

int main(void)
{
    puts(pinfold_code_name(0));
    return 0;
}

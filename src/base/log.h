/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PF_BASE_LOG_H
#define PF_BASE_LOG_H

#include <pinfold/log.h>

/* Hand one line to the application's handler, if it has set one. */
void pf_log(enum pinfold_log_level level, const char *format, ...) PINFOLD_PRINTF(2, 3);

#endif

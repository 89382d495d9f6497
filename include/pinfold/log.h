/* SPDX-License-Identifier: Apache-2.0 */
/* Diagnostics: the library never prints; warnings go to the handler that the application sets. */
#ifndef PINFOLD_LOG_H
#define PINFOLD_LOG_H

#include <pinfold/api.h>

PINFOLD_BEGIN_DECLS

enum pinfold_log_level {
    PINFOLD_LOG_DEBUG = 10,
    PINFOLD_LOG_INFO = 20,
    PINFOLD_LOG_WARNING = 30,
    PINFOLD_LOG_ERROR = 40,
};

/* Receives one line without a newline. Called from the thread that had something to say; must not
 * call back into the library. */
typedef void (*pinfold_log_fn)(void *ctx, enum pinfold_log_level level, const char *message);

/**
 * Set the process-wide handler of diagnostics.
 *
 * fn   called for each message; NULL drops them, which is the default
 * ctx  borrowed until another handler is set; passed to fn
 *
 * Threads: any, but set it before other threads use the library.
 */
PINFOLD_API void pinfold_log_set_handler(pinfold_log_fn fn, void *ctx);

PINFOLD_END_DECLS

#endif

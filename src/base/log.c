/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pinfold_log_fn handler;
static void *handler_ctx;

void pinfold_log_set_handler(pinfold_log_fn fn, void *ctx)
{
    pthread_mutex_lock(&lock);
    handler = fn;
    handler_ctx = ctx;
    pthread_mutex_unlock(&lock);
}

void pf_log(enum pinfold_log_level level, const char *format, ...)
{
    char line[512];
    pinfold_log_fn fn;
    va_list args;
    void *ctx;

    pthread_mutex_lock(&lock);
    fn = handler;
    ctx = handler_ctx;
    pthread_mutex_unlock(&lock);
    if (!fn)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    line[pf_utf8_floor(line, strlen(line))] = '\0'; /* a line that was cut ends on a character */
    fn(ctx, level, line);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl's functions, under their own names, so that its header checks the arguments of callers.
 * The names are hidden: whoever else uses libcurl in this process has his own. */
#include "net/curl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>

#include "base/error.h"

#define LIBRARY "libcurl.so.4"
#define FUNCTIONS(X)       \
    X(easy_cleanup)        \
    X(easy_getinfo)        \
    X(easy_init)           \
    X(easy_reset)          \
    X(easy_setopt)         \
    X(easy_strerror)       \
    X(getdate)             \
    X(global_init)         \
    X(multi_add_handle)    \
    X(multi_cleanup)       \
    X(multi_info_read)     \
    X(multi_init)          \
    X(multi_perform)       \
    X(multi_poll)          \
    X(multi_remove_handle) \
    X(slist_append)        \
    X(slist_free_all)

/* The calls below are of pointers, not of macros of libcurl's header. */
#undef curl_easy_getinfo
#undef curl_easy_setopt

#define POINTER(name) __typeof__(curl_##name) *(name);
static struct {
    FUNCTIONS(POINTER)
} lib;

static int fail(struct pinfold_error *err)
{
    const char *why = dlerror(); /* NOLINT(concurrency-mt-unsafe): glibc has one for each thread */

    return pf_fail(err, PINFOLD_ENOTSUP,
                   "services need libcurl (Debian: apt-get install libcurl4 ca-certificates): %s",
                   why ? PF_QUOTE(why) : "it does not start");
}

/* Under the lock. */
static int load(struct pinfold_error *err)
{
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

    if (!handle)
        return fail(err);
#define FIND(name)                                                            \
    lib.name = (__typeof__(lib.name))(uintptr_t)dlsym(handle, "curl_" #name); \
    if (!lib.name)                                                            \
        return fail(err);
    FUNCTIONS(FIND)
    return lib.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? 0 : fail(err);
}

int pf_curl_load(struct pinfold_error *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool loaded;
    int r = 0;

    pthread_mutex_lock(&lock);
    if (!loaded)
        r = load(err);
    loaded = r == 0;
    pthread_mutex_unlock(&lock);
    return r;
}

/* ---- as in curl/curl.h ---- */

CURL *curl_easy_init(void)
{
    return lib.easy_init();
}

void curl_easy_cleanup(CURL *easy)
{
    lib.easy_cleanup(easy);
}

void curl_easy_reset(CURL *easy)
{
    lib.easy_reset(easy);
}

/* The value is a long, a pointer or a curl_off_t: each is one register of 64 bits. */
_Static_assert(sizeof(long) == sizeof(void *) && sizeof(curl_off_t) == sizeof(void *), "64 bits");

CURLcode curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
    va_list values;
    void *value;

    va_start(values, option);
    value = va_arg(values, void *);
    va_end(values);
    return lib.easy_setopt(easy, option, value);
}

CURLcode curl_easy_getinfo(CURL *easy, CURLINFO info, ...)
{
    va_list values;
    void *value;

    va_start(values, info);
    value = va_arg(values, void *);
    va_end(values);
    return lib.easy_getinfo(easy, info, value);
}

const char *curl_easy_strerror(CURLcode code)
{
    return lib.easy_strerror(code);
}

time_t curl_getdate(const char *text, const time_t *unused)
{
    return pf_curl_load(NULL) < 0 ? -1 : lib.getdate(text, unused);
}

CURLM *curl_multi_init(void)
{
    return lib.multi_init();
}

CURLMcode curl_multi_cleanup(CURLM *multi)
{
    return lib.multi_cleanup(multi);
}

CURLMcode curl_multi_add_handle(CURLM *multi, CURL *easy)
{
    return lib.multi_add_handle(multi, easy);
}

CURLMcode curl_multi_remove_handle(CURLM *multi, CURL *easy)
{
    return lib.multi_remove_handle(multi, easy);
}

CURLMcode curl_multi_perform(CURLM *multi, int *running)
{
    return lib.multi_perform(multi, running);
}

CURLMcode curl_multi_poll(CURLM *multi, struct curl_waitfd fds[], unsigned count, int timeout_ms,
                          int *ret_ready)
{
    return lib.multi_poll(multi, fds, count, timeout_ms, ret_ready);
}

CURLMsg *curl_multi_info_read(CURLM *multi, int *left)
{
    return lib.multi_info_read(multi, left);
}

struct curl_slist *curl_slist_append(struct curl_slist *list, const char *text)
{
    return lib.slist_append(list, text);
}

void curl_slist_free_all(struct curl_slist *list)
{
    lib.slist_free_all(list);
}

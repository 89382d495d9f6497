/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "net/curl.h"
#include "net/http.h"

#define LONGEST_SECONDS (366 * 24 * 3600.0)

/* A number of units, in ns; -1 for what is none. */
static int64_t in_ns(const char *text, double unit_ns)
{
    char *end = NULL;
    double number = text ? strtod(text, &end) : -1;

    if (!text || end == text || *end || !(number >= 0))
        return -1;
    if (number * unit_ns > LONGEST_SECONDS * (double)PF_NS_PER_SEC)
        number = LONGEST_SECONDS * (double)PF_NS_PER_SEC / unit_ns;
    return (int64_t)(number * unit_ns);
}

int64_t pf_http_retry_after(const struct pf_http_response *response)
{
    const char *text = pf_http_header(response, "retry-after");
    int64_t ns = in_ns(pf_http_header(response, "retry-after-ms"), (double)PF_NS_PER_MS);
    time_t date;

    if (ns < 0)
        ns = in_ns(text, (double)PF_NS_PER_SEC);
    if (ns >= 0 || !text)
        return ns;
    date = curl_getdate(text, NULL);
    if (date < 0)
        return -1;
    date -= time(NULL);
    return date < 0 ? 0 : date > 366L * 24 * 3600 ? -1 : (int64_t)date * PF_NS_PER_SEC;
}

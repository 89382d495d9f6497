/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl is loaded when it is needed first: it brings thirty other libraries, and most programs
 * never talk to a service. Its functions are called as if it were linked, once this has returned 0.
 */
#ifndef PF_NET_CURL_H
#define PF_NET_CURL_H

#include <curl/curl.h>

#include <pinfold/error.h>

/* Returns 0, or -PINFOLD_ENOTSUP: it is not installed. From any thread, as often as you like. */
int pf_curl_load(struct pinfold_error *err);

#endif

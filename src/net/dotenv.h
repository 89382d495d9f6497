/* SPDX-License-Identifier: Apache-2.0 */
/* Inside net/: files of variables, as ".env" is one. */
#ifndef PF_NET_DOTENV_H
#define PF_NET_DOTENV_H

#include <stddef.h>

#define PF_DOTENV_MAX ((size_t)1024 * 1024)

/* Receives a variable; both texts are valid until it returns. Returns 0, or what pf_dotenv_read()
 * is to return. */
typedef int (*pf_dotenv_fn)(void *ctx, const char *name, const char *value);

/*
 * Read text of len bytes and a NUL, which is changed on the way: lines "NAME=value", "export "
 * before it or not, "#" comments. A value in single quotes is as it is; in double quotes it has \n,
 * \r, \t, \" and \\, and goes over lines; one without quotes ends before " #". Nothing is expanded.
 * A line that is none of these is passed over.
 */
int pf_dotenv_read(char *text, size_t len, pf_dotenv_fn fn, void *ctx);

#endif

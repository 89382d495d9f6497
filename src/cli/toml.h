/* SPDX-License-Identifier: Apache-2.0 */
/* TOML, by toml++: what is in a text, one value after the other, with the lines they are on. */
#ifndef PF_CLI_TOML_H
#define PF_CLI_TOML_H

#include <stdbool.h>
#include <stddef.h>

#include <pinfold/error.h>

#ifdef __cplusplus
extern "C" {
#endif

enum pf_toml_type {
    PF_TOML_STRING,
    PF_TOML_INTEGER,
    PF_TOML_FLOAT,
    PF_TOML_BOOLEAN,
    PF_TOML_DATE, /* dates and times of all kinds */
    PF_TOML_ARRAY,
    PF_TOML_TABLE,
};

/* One value; tables and arrays come before what is in them. Borrowed for the time of the call. */
struct pf_toml_item {
    enum pf_toml_type type;
    const char *path; /* keys with dots between them; those that are not bare stand in quotes. What
                         is in an array has the array's path */
    const char *key;  /* the last key of it as it is, of key_len bytes: it may hold a NUL */
    size_t key_len;
    const char *text; /* a scalar's value, a number as it is in C; "" for the others. No NUL */
    int index;        /* in the innermost array that it is in; -1: in none */
    unsigned line;    /* where it begins, from 1: for a table its header; 0: it has none */
    unsigned last;    /* the line on which it ends */
};

/* Returns 0 to go on, or what pf_toml_read() then returns. */
typedef int (*pf_toml_fn)(void *ctx, const struct pf_toml_item *item);

/* Tell every value of a text, those of one table in the order of their lines. Returns 0,
 * -PINFOLD_EVALUE (not TOML: err.msg is "NAME:LINE: what is wrong"), -PINFOLD_ENOMEM, or what fn
 * returned. */
int pf_toml_read(const char *name, const char *text, size_t len, pf_toml_fn fn, void *ctx,
                 struct pinfold_error *err);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The clients that may come, and what each has to show. */
#ifndef PF_MCP_HTTP_TOKENS_H
#define PF_MCP_HTTP_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

#include <pinfold/sandbox.h>

enum { PF_HTTP_TOKEN_MAX = 256 };

struct pf_http_token {
    char name[65];
    enum pinfold_attach_mode mode;
    bool made; /* here, and so nobody knows it yet */
    char value[PF_HTTP_TOKEN_MAX + 1];
    size_t len;
    /* What the client has open; by the lock of who serves it. */
    unsigned sessions, requests;
};

struct pf_http_tokens {
    struct pf_http_token *items;
    size_t count;
};

/* Read the tokens that options of --token name, NULL-terminated; without one, make one that is
 * named "default". read_only: none may write, whatever its option says. Variables that had values
 * are taken out of the environment. Returns 0, -PINFOLD_EVALUE, -PINFOLD_EOS or -PINFOLD_ENOMEM. */
int pf_http_tokens_load(const char *const *specs, bool read_only, struct pf_http_tokens *ret,
                        struct pinfold_error *err);
void pf_http_tokens_done(struct pf_http_tokens *tokens);

/* The one in an Authorization header, or NULL. Every one is looked at. */
struct pf_http_token *pf_http_tokens_find(const struct pf_http_tokens *tokens,
                                          const char *authorization);

/* Fill text with len random hexadecimal digits, an even number, and a NUL. */
int pf_http_random(char *text, size_t len, struct pinfold_error *err);

#endif

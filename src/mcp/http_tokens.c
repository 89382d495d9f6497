/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/http_tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/say.h"
#include "mcp/http_check.h"

enum { MADE_LENGTH = 64, SHORTEST = 16, SPEC_MAX = 512 };

static int fail(struct pinfold_error *err, int code, int error, const char *what, const char *why)
{
    if (!err)
        return -code;
    *err = (struct pinfold_error){ .code = code, .sys_errno = error };
    snprintf(err->msg, sizeof(err->msg), "token %.150s: %s", what,
             error ? pf_error_words(error) : why);
    return -code;
}

int pf_http_random(char *text, size_t len, struct pinfold_error *err)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[MADE_LENGTH / 2];

    if (getrandom(bytes, len / 2, 0) != (ssize_t)(len / 2))
        return fail(err, PINFOLD_EOS, errno ? errno : EIO, "random", "");
    for (size_t i = 0; i < len / 2; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    text[len] = '\0';
    return 0;
}

/* A value as it can stand in a header, long enough that nobody guesses it. */
static int set_value(struct pf_http_token *token, const char *value, size_t len,
                     struct pinfold_error *err)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                  "-._~+/=";

    while (len && (value[len - 1] == '\n' || value[len - 1] == '\r'))
        len--;
    if (len < SHORTEST || len > PF_HTTP_TOKEN_MAX)
        return fail(err, PINFOLD_EVALUE, 0, token->name, "its value has 16 to 256 characters");
    memcpy(token->value, value, len);
    token->value[len] = '\0';
    token->len = strspn(token->value, letters);
    if (token->len != len)
        return fail(err, PINFOLD_EVALUE, 0, token->name,
                    "its value has letters, digits and -._~+/= alone");
    return 0;
}

static int read_value(struct pf_http_token *token, const char *path, struct pinfold_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char text[PF_HTTP_TOKEN_MAX + 4];
    const char *wrong = NULL;
    struct stat st;
    ssize_t len;
    int r;

    if (fd < 0)
        return fail(err, PINFOLD_EOS, errno, path, "");
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        wrong = st.st_mode & 0077                          ? "others can read it; chmod 600"
                : st.st_uid != geteuid() && st.st_uid != 0 ? "it belongs to another user"
                                                           : NULL;
    if (wrong) {
        close(fd);
        return fail(err, PINFOLD_EVALUE, 0, path, wrong);
    }
    len = read(fd, text, sizeof(text));
    r = len < 0 ? fail(err, PINFOLD_EOS, errno, path, "")
                : set_value(token, text, (size_t)len, err);
    explicit_bzero(text, sizeof(text));
    close(fd);
    return r;
}

static int take_variable(struct pf_http_token *token, const char *name, struct pinfold_error *err)
{
    const char *value = secure_getenv(name);
    int r = value ? set_value(token, value, strlen(value), err)
                  : fail(err, PINFOLD_EVALUE, 0, name, "there is no such variable");

    /* Commands without isolation would inherit it. No thread looks at the environment before the
     * first request. */
    unsetenv(name); /* NOLINT(concurrency-mt-unsafe) */
    return r;
}

/* NAME:MODE, NAME:MODE:file:PATH or NAME:MODE:env:VARIABLE, as the option's check has found it. */
static int load_one(struct pf_http_token *token, const char *spec, struct pinfold_error *err)
{
    size_t len = strcspn(spec, ":");
    const char *mode = spec + len + (spec[len] == ':');
    const char *place = strchr(mode, ':');

    snprintf(token->name, sizeof(token->name), "%.*s", (int)len, spec);
    token->mode = strncmp(mode, "read_only", 9) == 0 ? PINFOLD_READ_ONLY : PINFOLD_READ_WRITE;
    if (place && strncmp(place, ":file:", 6) == 0)
        return read_value(token, place + 6, err);
    if (place && strncmp(place, ":env:", 5) == 0)
        return take_variable(token, place + 5, err);
    token->made = true;
    token->len = MADE_LENGTH;
    return pf_http_random(token->value, MADE_LENGTH, err);
}

int pf_http_tokens_load(const char *const *specs, bool read_only, struct pf_http_tokens *ret,
                        struct pinfold_error *err)
{
    static const char *const without[] = { "default:read_write", NULL };
    int r = 0;

    if (!specs[0])
        specs = without;
    *ret = (struct pf_http_tokens){ 0 };
    while (specs[ret->count])
        ret->count++;
    ret->items = calloc(ret->count, sizeof(*ret->items));
    if (!ret->items)
        return fail(err, PINFOLD_ENOMEM, ENOMEM, "s", "");
    for (size_t i = 0; r == 0 && i < ret->count; i++) {
        struct pf_http_token *token = &ret->items[i];
        r = load_one(token, specs[i], err);
        if (read_only)
            token->mode = PINFOLD_READ_ONLY;
        for (size_t j = 0; r == 0 && j < i; j++)
            if (strcmp(ret->items[j].value, token->value) == 0)
                r = fail(err, PINFOLD_EVALUE, 0, token->name, "another has the same value");
    }
    if (r < 0)
        pf_http_tokens_done(ret);
    return r;
}

void pf_http_tokens_done(struct pf_http_tokens *tokens)
{
    if (tokens->items)
        explicit_bzero(tokens->items, tokens->count * sizeof(*tokens->items));
    free(tokens->items);
    *tokens = (struct pf_http_tokens){ 0 };
}

struct pf_http_token *pf_http_tokens_find(const struct pf_http_tokens *tokens,
                                          const char *authorization)
{
    struct pf_http_token *found = NULL;

    for (size_t i = 0; i < tokens->count; i++)
        if (pf_http_bearer_is(authorization, tokens->items[i].value, tokens->items[i].len))
            found = &tokens->items[i];
    return found;
}

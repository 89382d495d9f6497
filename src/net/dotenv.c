/* SPDX-License-Identifier: Apache-2.0 */
#include "net/dotenv.h"

#include <stdbool.h>
#include <string.h>

static bool is_name(const char *name, size_t len)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

    if (len == 0 || (*name >= '0' && *name <= '9'))
        return false;
    for (size_t i = 0; i < len; i++)
        if (name[i] == '\0' || !strchr(letters, name[i]))
            return false;
    return true;
}

static bool is_closed(const char *at, char quote)
{
    for (; *at && *at != quote; at++)
        if (*at == '\\' && quote == '"' && at[1])
            at++;
    return *at != '\0';
}

/* In place. Returns what follows the closing quote, or NULL when there is none. */
static char *unquote(char *at, char quote)
{
    char *to = at;

    if (!is_closed(at, quote))
        return NULL;
    for (; *at != quote; at++) {
        if (*at == '\\' && quote == '"' && at[1]) {
            at++;
            *to++ = *at == 'n' ? '\n' : *at == 'r' ? '\r' : *at == 't' ? '\t' : *at;
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
    return at + 1;
}

static char *line_end(char *at)
{
    char *end = strchr(at, '\n');

    return end ? end : at + strlen(at);
}

/* Up to the line's end, without a comment and blanks around it. */
static void cut_plain(char *value, char *end)
{
    for (char *at = value; at < end; at++)
        if (*at == '#' && (at == value || at[-1] == ' ' || at[-1] == '\t'))
            end = at;
    while (end > value && strchr(" \t\r", end[-1]))
        end--;
    *end = '\0';
}

/* One line, which may be several. Returns where the next begins, NULL at the end. */
static char *take_line(char *line, const char **ret_name, char **ret_value)
{
    char *end = line_end(line), *next = *end ? end + 1 : NULL, *equals, *value, *rest;
    size_t len;

    line += strspn(line, " \t\r");
    if (strncmp(line, "export ", 7) == 0)
        line += 7 + strspn(line + 7, " \t");
    equals = memchr(line, '=', line < end ? (size_t)(end - line) : 0);
    if (!equals)
        return next;
    len = (size_t)(equals - line);
    while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == '\t'))
        len--;
    if (!is_name(line, len))
        return next;
    value = equals + 1 + strspn(equals + 1, " \t");
    rest = *value == '"' || *value == '\'' ? unquote(value + 1, *value) : NULL;
    if (rest) {
        value++;
        end = line_end(rest);
        next = *end ? end + 1 : NULL;
    } else {
        cut_plain(value, end);
    }
    line[len] = '\0';
    *ret_name = line;
    *ret_value = value;
    return next;
}

int pf_dotenv_read(char *text, size_t len, pf_dotenv_fn fn, void *ctx)
{
    int r = 0;

    if (strlen(text) != len)
        return 0; /* a NUL: no text */
    if (strncmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3;
    while (text && r == 0) {
        const char *name = NULL;
        char *value = NULL;
        text = take_line(text, &name, &value);
        if (name)
            r = fn(ctx, name, value);
    }
    return r;
}

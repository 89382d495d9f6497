/* SPDX-License-Identifier: Apache-2.0 */
#include "jail/egress_reply.h"

#include <string.h>
#include <strings.h>

/* "HTTP/1.1 200 OK" and the status in it, or 0. */
static int parse_status(const char *line, size_t len)
{
    int status = 0;

    if (len < 12 || memcmp(line, "HTTP/1.", 7) != 0 || (line[7] != '0' && line[7] != '1') ||
        line[8] != ' ' || (len > 12 && !strchr(" \r\n", line[12])))
        return 0;
    for (int i = 9; i < 12; i++) {
        if (line[i] < '0' || line[i] > '9')
            return 0;
        status = status * 10 + (line[i] - '0');
    }
    return status;
}

/* The length of the name at the start of a header line; some readers allow blanks before the colon.
 * 0 when there is no colon. */
static size_t name_length(const char *line, size_t len)
{
    const char *colon = memchr(line, ':', len);
    size_t name_len = colon ? (size_t)(colon - line) : 0;

    while (name_len > 0 && (line[name_len - 1] == ' ' || line[name_len - 1] == '\t'))
        name_len--;
    return name_len;
}

/* Whether readers could disagree about where the name ends, or what it is. */
static bool has_odd_name(const char *line, size_t len)
{
    size_t name_len = name_length(line, len);

    for (size_t i = 0; i < name_len; i++) {
        if (line[i] <= ' ' || line[i] >= 0x7f)
            return true;
    }
    return false;
}

static bool is_about_connection(const char *line, size_t len)
{
    static const char *const names[] = { "Connection", "Keep-Alive", "Proxy-Connection" };
    size_t name_len = name_length(line, len);

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (name_len == strlen(names[i]) && strncasecmp(line, names[i], name_len) == 0)
            return true;
    }
    return false;
}

/* Some readers end a line there. */
static bool has_bare_cr(const char *data, size_t len)
{
    const char *end = data + len;

    while ((data = memchr(data, '\r', (size_t)(end - data))) != NULL) {
        if (++data == end || *data != '\n')
            return true;
    }
    return false;
}

static bool is_blank(const char *line, size_t len)
{
    return len == 1 || (len == 2 && line[0] == '\r');
}

const char *pf_egress_reply_rewrite(const char *data, size_t len, char *to, size_t *ret_len,
                                    bool *ret_final)
{
    static const char closes[] = "Connection: close\r\n";
    int status = parse_status(data, len);
    const char *start = data;
    bool dropping = false;
    char *at = to;

    if (status < 100 || memchr(data, 0, len) || has_bare_cr(data, len))
        return "its answer is not one of HTTP/1";
    if (status == 101)
        return "it switches protocols, which it was not asked to";
    *ret_final = status >= 200;
    for (const char *end = data + len; data < end;) {
        size_t line = (size_t)((const char *)memchr(data, '\n', (size_t)(end - data)) - data) + 1;

        if (is_blank(data, line) && *ret_final)
            at = mempcpy(at, closes, sizeof closes - 1);
        /* A line that begins with a blank belongs to the one before. */
        if (*data != ' ' && *data != '\t') {
            if (data > start && has_odd_name(data, line))
                return "a header of its answer has an odd name";
            dropping = is_about_connection(data, line);
        }
        if (!dropping)
            at = mempcpy(at, data, line);
        data += line;
    }
    *ret_len = (size_t)(at - to);
    return NULL;
}

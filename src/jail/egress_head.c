/* SPDX-License-Identifier: Apache-2.0 */
#include "jail/egress_head.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A piece of the head; the head itself is never written to. */
struct span {
    const char *at;
    size_t len;
};

struct request_line {
    struct span method, path, version;
};

static bool is_token(struct span s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.at[i];

        if (c <= ' ' || c >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", c))
            return false;
    }
    return s.len > 0;
}

static bool equals(struct span s, const char *text)
{
    return s.len == strlen(text) && strncasecmp(s.at, text, s.len) == 0;
}

static bool begins(struct span s, const char *text)
{
    return s.len >= strlen(text) && strncasecmp(s.at, text, strlen(text)) == 0;
}

static struct span trim(struct span s)
{
    while (s.len > 0 && (s.at[0] == ' ' || s.at[0] == '\t')) {
        s.at++;
        s.len--;
    }
    while (s.len > 0 && (s.at[s.len - 1] == ' ' || s.at[s.len - 1] == '\t'))
        s.len--;
    return s;
}

/* Cut the part up to a separator off the front of s; all of s when there is none. */
static struct span cut(struct span *s, char separator)
{
    const char *found = memchr(s->at, separator, s->len);
    struct span front = { s->at, found ? (size_t)(found - s->at) : s->len };
    size_t used = front.len + (found ? 1 : 0);

    s->at += used;
    s->len -= used;
    return front;
}

size_t pf_egress_head_end(const char *data, size_t len, size_t *scanned)
{
    while (*scanned < len) {
        const char *lf = memchr(data + *scanned, '\n', len - *scanned);
        size_t next;

        if (!lf) {
            *scanned = len;
            return 0;
        }
        next = (size_t)(lf - data) + 1;
        if (next < len && data[next] == '\n')
            return next + 1;
        if (next + 1 < len && data[next] == '\r' && data[next + 1] == '\n')
            return next + 2;
        /* What follows this line is not here yet: look at it again. */
        if (next == len || (next + 1 == len && data[next] == '\r')) {
            *scanned = next - 1;
            return 0;
        }
        *scanned = next;
    }
    return 0;
}

/* Cut a line off; false unless CR LF ends it and neither is anywhere else in it. */
static bool next_line(struct span *rest, struct span *ret_line)
{
    const char *lf = memchr(rest->at, '\n', rest->len);
    size_t len;

    if (!lf || lf == rest->at || lf[-1] != '\r')
        return false;
    len = (size_t)(lf - rest->at) - 1;
    if (memchr(rest->at, '\r', len))
        return false;
    *ret_line = (struct span){ rest->at, len };
    rest->at += len + 2;
    rest->len -= len + 2;
    return true;
}

static const char *parse_target(struct span target, struct span *ret_path,
                                struct pf_egress_head *head)
{
    const char *fault = NULL;
    size_t host_len = 0;

    for (size_t i = 0; i < target.len; i++) {
        if (target.at[i] <= ' ' || target.at[i] >= 0x7f || target.at[i] == '#')
            return "a byte in the request target that no URL has";
    }
    if (head->connect) {
        pf_egress_authority_parse(target.at, target.len, 0, &head->host, &head->port, &fault);
        return fault;
    }
    if (begins(target, "https://"))
        return "https takes a CONNECT request";
    if (!begins(target, "http://"))
        return "this is a proxy: it takes CONNECT host:port, or a whole http:// URL";
    target.at += 7;
    target.len -= 7;
    while (host_len < target.len && target.at[host_len] != '/' && target.at[host_len] != '?')
        host_len++;
    if (memchr(target.at, '@', host_len))
        return "a user name in the URL";
    *ret_path = (struct span){ target.at + host_len, target.len - host_len };
    pf_egress_authority_parse(target.at, host_len, 80, &head->host, &head->port, &fault);
    return fault;
}

static const char *parse_request_line(struct span rest, struct request_line *ret,
                                      struct pf_egress_head *head)
{
    struct span target;

    ret->method = cut(&rest, ' ');
    target = cut(&rest, ' ');
    ret->version = rest;
    if (!is_token(ret->method))
        return "no method at the start of the request";
    if (rest.len != 8 || memcmp(rest.at, "HTTP/1.", 7) != 0 ||
        (rest.at[7] != '0' && rest.at[7] != '1'))
        return "not a request of HTTP/1.0 or HTTP/1.1";
    head->connect = ret->method.len == 7 && memcmp(ret->method.at, "CONNECT", 7) == 0;
    return parse_target(target, &ret->path, head);
}

/* Split "name: value". No space before the colon, no folded line, no control bytes. */
static const char *parse_field(struct span line, struct span *ret_name, struct span *ret_value)
{
    const char *colon = memchr(line.at, ':', line.len);

    if (line.len > 0 && (line.at[0] == ' ' || line.at[0] == '\t'))
        return "a folded header line";
    if (!colon)
        return "a header line without a colon";
    *ret_name = (struct span){ line.at, (size_t)(colon - line.at) };
    if (!is_token(*ret_name))
        return "a header name with odd bytes";
    *ret_value = trim((struct span){ colon + 1, line.len - ret_name->len - 1 });
    for (size_t i = 0; i < ret_value->len; i++) {
        unsigned char c = (unsigned char)ret_value->at[i];

        if ((c < ' ' && c != '\t') || c == 0x7f)
            return "a control byte in a header";
    }
    return NULL;
}

/* Enough for any client, and little enough that to look through them for each costs nothing. */
#define FIELDS_MAX 128
#define CONNECTION_MAX 256

/* The fields that may be there once only. */
struct once {
    bool host, connection, content_length, transfer_encoding;
};

static const char *parse_length(struct span value, struct pf_egress_head *head)
{
    if (value.len == 0 || value.len > 18)
        return "a Content-Length that is not a number";
    for (size_t i = 0; i < value.len; i++) {
        if (value.at[i] < '0' || value.at[i] > '9')
            return "a Content-Length that is not a number";
        head->content_length = head->content_length * 10 + (uint64_t)(value.at[i] - '0');
    }
    head->framing = PF_EGRESS_LENGTH;
    return NULL;
}

static const char *note_field(struct span name, struct span value, struct once *seen,
                              struct pf_egress_head *head)
{
    if (equals(name, "Host")) {
        if (seen->host)
            return "two Host headers";
        seen->host = true;
    } else if (equals(name, "Connection")) {
        if (seen->connection || value.len > CONNECTION_MAX)
            return "two Connection headers, or a very long one";
        seen->connection = true;
    } else if (equals(name, "Content-Length")) {
        if (seen->content_length)
            return "two Content-Length headers";
        seen->content_length = true;
        return parse_length(value, head);
    } else if (equals(name, "Transfer-Encoding")) {
        if (seen->transfer_encoding)
            return "two Transfer-Encoding headers";
        if (!equals(value, "chunked"))
            return "a Transfer-Encoding other than chunked";
        seen->transfer_encoding = true;
    }
    return NULL;
}

static const char *parse_fields(struct span rest, bool http10, struct pf_egress_head *head)
{
    struct once seen = { 0 };
    struct span line, name, value;
    const char *fault;
    bool ended = false;
    int count = 0;

    while (!ended && next_line(&rest, &line)) {
        if (line.len == 0) {
            ended = true;
            continue;
        }
        if (++count > FIELDS_MAX)
            return "more than 128 header lines";
        fault = parse_field(line, &name, &value);
        if (!fault)
            fault = note_field(name, value, &seen, head);
        if (fault)
            return fault;
    }
    if (!ended || rest.len > 0)
        return "a line that does not end in CR LF";
    if (seen.transfer_encoding && (seen.content_length || http10))
        return "Transfer-Encoding with Content-Length, or in HTTP/1.0";
    if (seen.transfer_encoding)
        head->framing = PF_EGRESS_CHUNKED;
    if (head->connect && (seen.transfer_encoding || head->content_length > 0))
        return "a CONNECT request with a body";
    return NULL;
}

const char *pf_egress_head_parse(const char *data, size_t len, struct pf_egress_head *ret_head)
{
    struct span rest = { data, len };
    struct span first;
    struct request_line line;
    struct pf_egress_head head = { .len = len };
    const char *fault;

    if (memchr(data, 0, len))
        return "a NUL byte in the request";
    if (!next_line(&rest, &first))
        return "a line that does not end in CR LF";
    fault = parse_request_line(first, &line, &head);
    if (!fault)
        fault = parse_fields(rest, line.version.at[7] == '0', &head);
    if (!fault)
        *ret_head = head;
    return fault;
}

/* What is between a client and its proxy, and what is written anew. */
static bool is_dropped(struct span name)
{
    static const char *const dropped[] = { "Host",    "Connection",     "Content-Length",
                                           "Upgrade", "Keep-Alive",     "Transfer-Encoding",
                                           "TE",      "HTTP2-Settings", "Trailer" };

    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++) {
        if (equals(name, dropped[i]))
            return true;
    }
    return begins(name, "Proxy-");
}

/* The value of the Connection header: it names other fields that are for the next hop alone. */
static struct span find_connection(struct span fields)
{
    struct span line, name, value;

    while (next_line(&fields, &line) && line.len > 0) {
        if (!parse_field(line, &name, &value) && equals(name, "Connection"))
            return value;
    }
    return (struct span){ "", 0 };
}

static bool is_nominated(struct span connection, struct span name)
{
    while (connection.len > 0) {
        struct span option = trim(cut(&connection, ','));

        if (option.len == name.len && strncasecmp(option.at, name.at, name.len) == 0)
            return true;
    }
    return false;
}

static char *put(char *to, struct span s)
{
    memcpy(to, s.at, s.len);
    return to + s.len;
}

static char *put_text(char *to, const char *text)
{
    return put(to, (struct span){ text, strlen(text) });
}

static char *put_request_line(char *to, const struct request_line *line)
{
    to = put_text(put(to, line->method), " ");
    if (line->path.len == 0)
        to = put_text(to, equals(line->method, "OPTIONS") ? "*" : "/");
    else if (line->path.at[0] == '?')
        to = put_text(to, "/");
    to = put_text(put(to, line->path), " ");
    return put_text(put(to, line->version), "\r\n");
}

/* Host and framing come from what was understood, not from what was written: nothing that the
 * origin reads differently can reach it. */
static char *put_own_fields(char *to, const struct pf_egress_head *head)
{
    bool v6 = head->host.is_ip && head->host.ip.len == 16;
    char line[64];

    to = put_text(put_text(put_text(to, "Host: "), v6 ? "[" : ""), head->host.text);
    to = put_text(to, v6 ? "]" : "");
    if (head->port != 80) {
        snprintf(line, sizeof line, ":%d", head->port);
        to = put_text(to, line);
    }
    to = put_text(to, "\r\nConnection: close\r\n");
    if (head->framing == PF_EGRESS_CHUNKED)
        return put_text(to, "Transfer-Encoding: chunked\r\n");
    if (head->framing == PF_EGRESS_LENGTH) {
        snprintf(line, sizeof line, "Content-Length: %llu\r\n",
                 (unsigned long long)head->content_length);
        to = put_text(to, line);
    }
    return to;
}

size_t pf_egress_head_rewrite(const char *data, const struct pf_egress_head *head, char *to,
                              size_t size)
{
    struct span rest = { data, head->len };
    struct pf_egress_head again = { 0 };
    struct request_line request;
    struct span line, connection, name, value;
    char *at = to;

    if (head->connect || size < head->len + PF_EGRESS_HEAD_GROWTH || !next_line(&rest, &line) ||
        parse_request_line(line, &request, &again))
        return 0;
    at = put_own_fields(put_request_line(at, &request), head);
    connection = find_connection(rest);
    while (next_line(&rest, &line) && line.len > 0) {
        if (parse_field(line, &name, &value) || is_dropped(name) || is_nominated(connection, name))
            continue;
        /* As it was written: a space of our own for each could outgrow the buffer. */
        at = put_text(put(at, line), "\r\n");
    }
    at = put_text(at, "\r\n");
    return (size_t)(at - to);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The keyword format, of the formats that schemas of tools use. */
#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "agent/schema_parts.h"
#include "base/cleanup.h"

#include <pinfold/error.h>

/* Reading: each takes what it is named for, or leaves at where it was. */
struct reader {
    const char *at, *end;
};

static bool take(struct reader *in, char c)
{
    if (in->at == in->end || *in->at != c)
        return false;
    in->at++;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* A number of just so many digits, or -1. */
static int take_number(struct reader *in, int digits)
{
    int number = 0;

    if (in->end - in->at < digits)
        return -1;
    for (int i = 0; i < digits; i++) {
        if (!is_digit(in->at[i]))
            return -1;
        number = 10 * number + (in->at[i] - '0');
    }
    in->at += digits;
    return number;
}

static size_t take_digits(struct reader *in)
{
    size_t count = 0;

    for (; in->at < in->end && is_digit(*in->at); in->at++)
        count++;
    return count;
}

/* ---- dates and times, of RFC 3339 ---- */

static bool take_date(struct reader *in)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    int year = take_number(in, 4), month, day;

    if (year < 0 || !take(in, '-'))
        return false;
    month = take_number(in, 2);
    if (month < 1 || month > 12 || !take(in, '-'))
        return false;
    day = take_number(in, 2);
    return day >= 1 && day <= days[month - 1] + (month == 2 && year % 4 == 0 &&
                                                 (year % 100 != 0 || year % 400 == 0));
}

/* "Z" or "+02:00"; *ret_minutes is what is to be taken away to have UTC. */
static bool take_zone(struct reader *in, int *ret_minutes)
{
    int sign, hours, minutes;

    *ret_minutes = 0;
    if (take(in, 'Z') || take(in, 'z'))
        return true;
    sign = take(in, '+') ? 1 : take(in, '-') ? -1 : 0;
    hours = sign ? take_number(in, 2) : -1;
    if (hours < 0 || hours > 23 || !take(in, ':'))
        return false;
    minutes = take_number(in, 2);
    *ret_minutes = sign * (60 * hours + minutes);
    return minutes >= 0 && minutes <= 59;
}

static bool take_time(struct reader *in)
{
    int hour = take_number(in, 2), minute, second, zone;

    if (hour < 0 || hour > 23 || !take(in, ':'))
        return false;
    minute = take_number(in, 2);
    if (minute < 0 || minute > 59 || !take(in, ':'))
        return false;
    second = take_number(in, 2);
    if (second < 0 || second > 60 || (take(in, '.') && take_digits(in) == 0) ||
        !take_zone(in, &zone))
        return false;
    /* A leap second is the last one of a day in UTC. */
    return second < 60 || (60 * hour + minute - zone + 2 * 24 * 60) % (24 * 60) == 24 * 60 - 1;
}

static bool take_date_time(struct reader *in)
{
    return take_date(in) && (take(in, 'T') || take(in, 't')) && take_time(in);
}

/* Some of these, each at most once, in order, each after digits. Returns how many. */
static int take_units(struct reader *in, const char *units)
{
    int count = 0;

    while (*units && in->at < in->end && is_digit(*in->at)) {
        const char *unit;

        take_digits(in);
        unit = in->at < in->end ? strchr(units, *in->at) : NULL;
        if (!unit || !*unit)
            return -1;
        /* Of ISO 8601's units none may be left out between two. */
        if (count > 0 && unit != units)
            return -1;
        units = unit + 1;
        in->at++;
        count++;
    }
    return count;
}

static bool take_duration(struct reader *in)
{
    int date, time = 0;

    if (!take(in, 'P'))
        return false;
    if (in->end - in->at >= 2 && in->end[-1] == 'W') {
        bool digits = take_digits(in) > 0;
        return digits && take(in, 'W');
    }
    date = take_units(in, "YMD");
    if (date >= 0 && take(in, 'T')) {
        time = take_units(in, "HMS");
        if (time <= 0)
            return false;
    }
    return date >= 0 && date + time > 0;
}

/* ---- names of hosts, addresses ---- */

static bool is_hostname(const char *text, size_t len)
{
    size_t label = 0;

    if (len == 0 || len > 253)
        return false;
    for (size_t i = 0; i <= len; i++) {
        if (i < len && text[i] != '.') {
            bool inside = label > 0 && i + 1 < len && text[i + 1] != '.';
            if (!is_letter(text[i]) && !is_digit(text[i]) && !(text[i] == '-' && inside))
                return false;
            if (++label > 63)
                return false;
        } else if (label == 0) {
            return false;
        } else {
            label = 0;
        }
    }
    return true;
}

static bool is_address(int family, const char *text, size_t len)
{
    char copy[INET6_ADDRSTRLEN + 1];
    struct in6_addr address;

    if (len >= sizeof(copy) || memchr(text, '\0', len))
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    return inet_pton(family, copy, &address) == 1;
}

/* One that people use, not all that RFC 5321 has: no quotes. */
static bool is_email(const char *text, size_t len)
{
    static const char others[] = "!#$%&'*+/=?^_`{|}~-";
    const char *at = memrchr(text, '@', len), *host = at ? at + 1 : text;
    size_t local = at ? (size_t)(at - text) : 0, host_len = len - (size_t)(host - text);

    if (local == 0 || local > 64 || text[0] == '.' || at[-1] == '.')
        return false;
    for (size_t i = 0; i < local; i++) {
        char c = text[i];
        if (!is_letter(c) && !is_digit(c) && !(c && strchr(others, c)) &&
            !(c == '.' && text[i + 1] != '.'))
            return false;
    }
    if (host_len > 2 && host[0] == '[' && host[host_len - 1] == ']')
        return host_len > 7 && strncasecmp(host + 1, "IPv6:", 5) == 0
                       ? is_address(AF_INET6, host + 6, host_len - 7)
                       : is_address(AF_INET, host + 1, host_len - 2);
    return is_hostname(host, host_len);
}

/* ---- the rest ---- */

/* What RFC 3986 lets be in a URI, with each '%' before two hexadecimal digits. */
static bool has_uri_characters(const char *text, size_t len)
{
    static const char others[] = "-._~:/?#[]@!$&'()*+,;=%";
    bool fragment = false;

    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (!is_letter(c) && !is_digit(c) && (c == '\0' || !strchr(others, c)))
            return false;
        if (c == '%' && (len - i < 3 || !is_hex(text[i + 1]) || !is_hex(text[i + 2])))
            return false;
        if (c == '#' && fragment)
            return false;
        fragment = fragment || c == '#';
    }
    return true;
}

/* Brackets stand around an address of IPv6 and nowhere else. */
static bool has_good_authority(const char *text, size_t len)
{
    const char *start = memmem(text, len, "//", 2), *open, *close;
    size_t authority;

    if (!start)
        return !memchr(text, '[', len) && !memchr(text, ']', len);
    start += 2;
    for (authority = 0; start + authority < text + len; authority++)
        if (strchr("/?#", start[authority]))
            break;
    if (memchr(start, '@', authority)) {
        size_t user = (size_t)((const char *)memchr(start, '@', authority) - start);
        if (memchr(start, '[', user) || memchr(start, ']', user))
            return false;
    }
    open = memchr(text, '[', len);
    close = memchr(text, ']', len);
    if (!open && !close) {
        const char *colon = memrchr(start, ':', authority);
        const char *host = memrchr(start, '@', authority);
        for (const char *c = colon && (!host || colon > host) ? colon + 1 : start + authority;
             c < start + authority; c++)
            if (!is_digit(*c))
                return false;
        return true;
    }
    return open && close && open >= start && close < start + authority &&
           is_address(AF_INET6, open + 1, (size_t)(close - open - 1));
}

static bool is_uri(const char *text, size_t len, bool relative_too)
{
    size_t scheme = 0;

    if (!has_uri_characters(text, len) || !has_good_authority(text, len))
        return false;
    if (len > 0 && is_letter(text[0]))
        while (scheme < len &&
               (is_letter(text[scheme]) || is_digit(text[scheme]) || strchr("+-.", text[scheme])))
            scheme++;
    return relative_too || (scheme > 0 && scheme < len && text[scheme] == ':');
}

static bool is_uuid(const char *text, size_t len)
{
    if (len != 36)
        return false;
    for (size_t i = 0; i < len; i++)
        if (i == 8 || i == 13 || i == 18 || i == 23 ? text[i] != '-' : !is_hex(text[i]))
            return false;
    return true;
}

static bool is_pointer(const char *text, size_t len)
{
    if (len > 0 && text[0] != '/')
        return false;
    for (size_t i = 0; i < len; i++)
        if (text[i] == '~' && (i + 1 == len || (text[i + 1] != '0' && text[i + 1] != '1')))
            return false;
    return true;
}

static bool is_regex(const char *text, size_t len)
{
    char wrong[PF_PATTERN_WRONG_MAX];

    return pf_pattern_check(text, len, wrong) != -PINFOLD_EVALUE;
}

static bool is_whole_of(bool (*take_it)(struct reader *), const char *text, size_t len)
{
    struct reader in = { text, text + len };

    return take_it(&in) && in.at == in.end;
}

bool pf_format_fits(const char *format, const char *text, size_t len)
{
    static const struct {
        const char *name;
        bool (*take_it)(struct reader *);
        bool (*is)(const char *text, size_t len);
    } formats[] = {
        { "date-time", take_date_time, NULL },
        { "date", take_date, NULL },
        { "time", take_time, NULL },
        { "duration", take_duration, NULL },
        { "hostname", NULL, is_hostname },
        { "email", NULL, is_email },
        { "uuid", NULL, is_uuid },
        { "json-pointer", NULL, is_pointer },
        { "regex", NULL, is_regex },
    };

    for (size_t i = 0; i < PF_COUNT(formats); i++)
        if (strcmp(formats[i].name, format) == 0)
            return formats[i].is ? formats[i].is(text, len)
                                 : is_whole_of(formats[i].take_it, text, len);
    if (strcmp(format, "ipv4") == 0 || strcmp(format, "ipv6") == 0)
        return is_address(format[3] == '4' ? AF_INET : AF_INET6, text, len);
    if (strcmp(format, "uri") == 0 || strcmp(format, "uri-reference") == 0)
        return is_uri(text, len, format[3] == '-');
    return true;
}

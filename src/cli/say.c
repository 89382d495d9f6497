/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/say.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_quiet;

void pf_say_set_quiet(bool quiet)
{
    is_quiet = quiet;
}

const char *pf_error_words(int sys_errno)
{
    const char *words = strerrordesc_np(sys_errno);

    return words ? words : "unknown error";
}

int pf_put(int fd, const char *data, size_t len)
{
    while (len) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EAGAIN)
            poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, -1);
        else if (n < 0 && errno != EINTR)
            return errno;
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

/* The direction marks U+061C, U+200E and U+200F, the embeddings, overrides and isolates U+202A to
 * U+202E and U+2066 to U+2069; the byte order mark, which is not to be seen. */
static bool turns_text(unsigned code)
{
    return code == 0x61c || code == 0x200e || code == 0x200f ||
           (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
           code == 0xfeff;
}

/* C0, DEL and C1 are not printable: a file name must not move the cursor of who reads about it, nor
 * turn what stands beside it. */
size_t pf_printable_char(const char *bytes)
{
    const unsigned char *text = (const unsigned char *)bytes;
    unsigned code = text[0];
    size_t len = code < 0x80 ? 1 : code < 0xc2 ? 0 : code < 0xe0 ? 2 : code < 0xf0 ? 3 : 4;
    static const unsigned lowest[] = { 0, 0, 0x80, 0x800, 0x10000 };

    if (len == 0 || code > 0xf4 || code < 0x20 || code == 0x7f)
        return 0;
    if (len == 1)
        return 1;
    code &= 0x7fU >> len;
    for (size_t i = 1; i < len; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3f);
    }
    if (code < lowest[len] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) || code < 0xa0 ||
        turns_text(code))
        return 0;
    return len;
}

/* Copy text to out, which holds four times its length and a NUL. Returns the length. */
static size_t escape(const char *text, bool backslashes, char *out)
{
    static const char hex[] = "0123456789abcdef";
    char *start = out;

    while (*text) {
        size_t len = *text == '\\' && backslashes ? 0 : pf_printable_char(text);
        if (len) {
            memcpy(out, text, len);
            out += len;
            text += len;
        } else {
            *out++ = '\\';
            *out++ = 'x';
            *out++ = hex[(unsigned char)*text >> 4];
            *out++ = hex[*text & 15];
            text++;
        }
    }
    *out = '\0';
    return (size_t)(out - start);
}

char *pf_printable(const char *text)
{
    char *out = malloc(4 * strlen(text) + 1);

    if (out)
        escape(text, true, out);
    return out;
}

static void say(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

static void say(const char *format, va_list args)
{
    static const char prefix[] = "pinfold: ";
    char line[1024];
    char safe[sizeof(prefix) + 4 * sizeof(line) + 1];
    size_t len = sizeof(prefix) - 1;

    vsnprintf(line, sizeof(line), format, args);
    memcpy(safe, prefix, len);
    len += escape(line, false, safe + len);
    safe[len++] = '\n';
    pf_put(STDERR_FILENO, safe, len);
}

void pf_say(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(format, args);
    va_end(args);
}

void pf_note(const char *format, ...)
{
    va_list args;

    if (is_quiet)
        return;
    va_start(args, format);
    say(format, args);
    va_end(args);
}

void pf_say_list(const struct pinfold_strings *lines)
{
    size_t shown = lines->count < 20 ? lines->count : 20;

    for (size_t i = 0; i < shown; i++)
        pf_say("  %s", lines->items[i]);
    if (shown < lines->count)
        pf_say("  and %zu more", lines->count - shown);
}

void pf_say_log(void *ctx, enum pinfold_log_level level, const char *message)
{
    (void)ctx;
    if (level >= PINFOLD_LOG_ERROR)
        pf_say("error: %s", message);
    else if (level >= PINFOLD_LOG_WARNING)
        pf_note("warning: %s", message);
}

const char *pf_format_size(uint64_t bytes, char *buffer)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    uint64_t whole = bytes, rest = 0;
    size_t unit = 0;

    for (; whole >= 1024; unit++) {
        rest = whole % 1024;
        whole /= 1024;
    }
    if (unit && whole < 10)
        snprintf(buffer, 32, "%u.%u %s", (unsigned)whole, (unsigned)(rest * 10 / 1024),
                 units[unit]);
    else
        snprintf(buffer, 32, "%u %s", (unsigned)whole, units[unit]);
    return buffer;
}

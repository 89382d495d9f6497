/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

static const char *const code_names[] = {
    [PINFOLD_OK] = "OK",
    [PINFOLD_EVALUE] = "ValueError",
    [PINFOLD_EPATH] = "SandboxPathError",
    [PINFOLD_EOS] = "OSError",
    [PINFOLD_ENOMEM] = "MemoryError",
    [PINFOLD_ESTART] = "SandboxStartError",
    [PINFOLD_EATTACH] = "SandboxAttachError",
    [PINFOLD_EDETACHED] = "AgentSandboxDetachedError",
    [PINFOLD_EDENIED] = "SandboxMutationDeniedError",
    [PINFOLD_EPREPARE] = "WorkspacePrepareError",
    [PINFOLD_ECANCELLED] = "CancelledError",
    [PINFOLD_ETIMEOUT] = "TimeoutError",
    [PINFOLD_EENCODING] = "UnicodeDecodeError",
    [PINFOLD_ETYPE] = "TypeError",
    [PINFOLD_ENOTSUP] = "NotImplementedError",
    [PINFOLD_EBACKEND] = "RuntimeError",
};

const char *pinfold_code_name(int code)
{
    size_t index = (size_t)(code < 0 ? -(long)code : code);

    return index < PF_COUNT(code_names) ? code_names[index] : "UnknownError";
}

/* A message that was cut by snprintf may end inside a character: drop the fragment. */
static void trim_partial_character(char *text)
{
    text[pf_utf8_floor(text, strlen(text))] = '\0';
}

static void fill(struct pinfold_error *err, enum pinfold_code code, int sys_errno,
                 const char *format, va_list args)
{
    struct pinfold_error filled = { .code = (int)code, .sys_errno = sys_errno };
    size_t used;

    vsnprintf(filled.msg, sizeof(filled.msg), format, args);
    if (sys_errno != 0) {
        used = strlen(filled.msg);
        snprintf(filled.msg + used, sizeof(filled.msg) - used, "%s%s", used ? ": " : "",
                 strerrordesc_np(sys_errno) ? strerrordesc_np(sys_errno) : "unknown error");
    }
    trim_partial_character(filled.msg);
    filled.retryable = sys_errno == EAGAIN || sys_errno == EINTR || sys_errno == EBUSY ||
                       sys_errno == EMFILE || sys_errno == ENFILE;
    *err = filled;
}

int pf_fail(struct pinfold_error *err, enum pinfold_code code, const char *format, ...)
{
    va_list args;

    if (err) {
        va_start(args, format);
        fill(err, code, 0, format, args);
        va_end(args);
    }
    return -(int)code;
}

int pf_fail_os(struct pinfold_error *err, int sys_errno, const char *format, ...)
{
    enum pinfold_code code = sys_errno == ENOMEM ? PINFOLD_ENOMEM : PINFOLD_EOS;
    va_list args;

    if (err) {
        va_start(args, format);
        fill(err, code, sys_errno, format, args);
        va_end(args);
    }
    return -(int)code;
}

int pf_fail_nomem(struct pinfold_error *err)
{
    return pf_fail(err, PINFOLD_ENOMEM, "out of memory");
}

int pf_wrap(struct pinfold_error *err, int result, const char *format, ...)
{
    char inner[sizeof(err->msg)];
    va_list args;
    size_t used;

    if (!err)
        return result;
    memcpy(inner, err->msg, sizeof(inner));
    va_start(args, format);
    vsnprintf(err->msg, sizeof(err->msg), format, args);
    va_end(args);
    used = strlen(err->msg);
    snprintf(err->msg + used, sizeof(err->msg) - used, ": %s", inner);
    trim_partial_character(err->msg);
    return result;
}

/* Append one unit of text, a printable character as it is or one byte as \xNN. Returns how many
 * bytes of text it stands for. out needs 4 bytes of room. */
static size_t escape_unit(const char *text, size_t len, char *out, size_t *out_len)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char first = (unsigned char)*text;
    size_t width = pf_utf8_width(text, len);

    /* C1 controls (U+0080..U+009F) steer terminals too. */
    bool control = first < 0x20 || first == 0x7f ||
                   (width == 2 && first == 0xc2 && (unsigned char)text[1] < 0xa0);
    if (width > 0 && !control && first != '\\') {
        memcpy(out, text, width);
        *out_len = width;
        return width;
    }
    if (first == '\\') {
        memcpy(out, "\\\\", 2);
        *out_len = 2;
        return 1;
    }
    memcpy(out, (char[]){ '\\', 'x', digits[first >> 4], digits[first & 15] }, 4);
    *out_len = 4;
    return 1;
}

const char *pf_quote(const char *text, char buffer[static PF_QUOTE_MAX])
{
    enum { MARK = 3, HEAD = 40 }; /* "..." and what is kept before it */
    size_t len = strlen(text), used = 0, at = 0, unit;
    char escaped[4];

    while (at < len) {
        size_t step = escape_unit(text + at, len - at, escaped, &unit);
        if (used + unit > PF_QUOTE_MAX - 1)
            break;
        memcpy(buffer + used, escaped, unit);
        used += unit;
        at += step;
    }
    buffer[used] = '\0';
    if (at == len)
        return buffer;

    /* Too long: keep the head, then as much of the tail as surely fits when fully escaped. */
    size_t head = pf_utf8_floor(buffer, HEAD);
    while (head > 0 && memchr(buffer + head - (head < 3 ? head : 3), '\\', head < 3 ? head : 3))
        head--; /* never end inside an escape */
    memcpy(buffer + head, "...", MARK);
    used = head + MARK;
    at = len - (PF_QUOTE_MAX - 1 - used) / 4;
    while (at < len && ((unsigned char)text[at] & 0xc0) == 0x80)
        at++; /* do not start inside a character */
    while (at < len) {
        at += escape_unit(text + at, len - at, escaped, &unit);
        memcpy(buffer + used, escaped, unit);
        used += unit;
    }
    buffer[used] = '\0';
    return buffer;
}

char *pf_escape(const char *text)
{
    size_t len = strlen(text), used = 0, unit;
    char *out = malloc(4 * len + 1);

    if (!out)
        return NULL;
    for (size_t at = 0; at < len; used += unit)
        at += escape_unit(text + at, len - at, out + used, &unit);
    out[used] = '\0';
    return out;
}

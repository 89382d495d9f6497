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
    [PINFOLD_EBUSY] = "ConcurrencyException",
};

const char *pinfold_code_name(int code)
{
    size_t index = (size_t)(code < 0 ? -(long)code : code);

    return index < PF_COUNT(code_names) ? code_names[index] : "UnknownError";
}

/* What is said before a cause; longer than struct pinfold_error has room for. */
#define CONTEXT_MAX 768

/* The first offset from at on where a character of text starts. In broken text it moves at most as
 * far as one character is long. */
static size_t next_start(const char *text, size_t len, size_t at)
{
    for (int i = 0; i < 3 && at < len && ((unsigned char)text[at] & 0xc0) == 0x80; i++)
        at++;
    return at;
}

/* Store "context: cause". What is too long loses its middle: the operation stands at the start and
 * the cause at the end, and both matter more than what is between them. cause may be err->msg. */
static void set_message(struct pinfold_error *err, const char *context, const char *cause)
{
    enum { ROOM = sizeof(err->msg) - 1, MARK = 3, HEAD = (ROOM - MARK) / 2 };
    char text[CONTEXT_MAX + 2 + sizeof(err->msg)];
    size_t len, head, at, used = pf_utf8_floor(context, strlen(context)); /* it may have been cut */

    snprintf(text, sizeof(text), "%.*s%s%s", (int)used, context, *context && *cause ? ": " : "",
             cause);
    len = strlen(text);
    if (len <= ROOM) {
        memcpy(err->msg, text, len + 1);
        return;
    }
    head = pf_utf8_floor(text, HEAD);
    at = next_start(text, len, len - (ROOM - MARK - head));
    memcpy(err->msg, text, head);
    memcpy(err->msg + head, "...", MARK);
    memcpy(err->msg + head + MARK, text + at, len - at + 1);
}

/* nonnull: with UBSan gcc follows the branch where format is NULL, and warns of it. */
static void fill(struct pinfold_error *err, enum pinfold_code code, int sys_errno,
                 const char *format, va_list args)
        __attribute__((nonnull(4), format(printf, 4, 0)));
static void fill(struct pinfold_error *err, enum pinfold_code code, int sys_errno,
                 const char *format, va_list args)
{
    struct pinfold_error filled = { .code = (int)code, .sys_errno = sys_errno };
    char context[CONTEXT_MAX];
    const char *cause = sys_errno ? strerrordesc_np(sys_errno) : "";

    vsnprintf(context, sizeof(context), format, args);
    set_message(&filled, context, cause ? cause : "unknown error");
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
    char context[CONTEXT_MAX];
    va_list args;

    if (!err)
        return result;
    va_start(args, format);
    vsnprintf(context, sizeof(context), format, args);
    va_end(args);
    set_message(err, context, err->msg);
    return result;
}

void pf_tell_before(struct pinfold_error *err, const struct pinfold_error *before)
{
    char context[sizeof(err->msg) + 16];

    if (err->code != PINFOLD_ETIMEOUT || before->code == 0 || before->code == PINFOLD_ETIMEOUT)
        return;
    snprintf(context, sizeof(context), "%s; before that", err->msg);
    set_message(err, context, before->msg);
    if (err->http_status == 0)
        err->http_status = before->http_status;
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
        out[0] = out[1] = '\\';
        *out_len = 2;
        return 1;
    }
    memcpy(out, (char[]){ '\\', 'x', digits[first >> 4], digits[first & 15] }, 4);
    *out_len = 4;
    return 1;
}

const char *pf_quote(const char *text, char buffer[static PF_QUOTE_MAX])
{
    enum { ROOM = PF_QUOTE_MAX - 1, HEAD = 40, MARK = 3 };
    size_t len = strlen(text), used = 0, at = 0, head = 0, head_at = 0, cost = 0, room, unit;
    char escaped[4];

    while (at < len) {
        size_t step = escape_unit(text + at, len - at, escaped, &unit);
        if (used + unit > ROOM)
            break;
        memcpy(buffer + used, escaped, unit);
        used += unit;
        at += step;
        if (used <= HEAD) {
            head = used; /* a cut here never splits an escape */
            head_at = at;
        }
    }
    buffer[used] = '\0';
    if (at == len)
        return buffer;

    /* Too long: after the head and "..." comes the longest tail that fits, because the end of a
     * path says most. Start where it would fit if nothing needed escaping, and give up from its
     * front what the escapes cost. */
    room = ROOM - head - MARK;
    at = next_start(text, len, len - head_at > room ? len - room : head_at);
    for (size_t i = at; i < len; cost += unit)
        i += escape_unit(text + i, len - i, escaped, &unit);
    for (; cost > room; cost -= unit)
        at += escape_unit(text + at, len - at, escaped, &unit);
    memcpy(buffer + head, "...", MARK);
    for (used = head + MARK; at < len; used += unit)
        at += escape_unit(text + at, len - at, buffer + used, &unit);
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

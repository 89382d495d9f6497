/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/remote_output.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "proc/env.h"
#include "tree/data.h"

#define WORD_LIMIT ((size_t)128 * 1024)  /* the kernel's, of any word, its NUL included */
#define WORDS_LIMIT ((size_t)1536 << 10) /* and of all together, with room for those there */

enum { LAST_ERRNO = 133 };

static int check_words(const char *what, const char *const *words, size_t *total,
                       struct pinfold_error *err)
{
    for (size_t i = 0; words && words[i]; i++) {
        size_t len = strlen(words[i]) + 1;
        *total += len + sizeof(char *);
        if (len > WORD_LIMIT || *total > WORDS_LIMIT)
            return pf_fail_os(err, E2BIG, "%s %zu, of %zu bytes", what, i + 1, len - 1);
    }
    return 0;
}

const char *pf_remote_run_anyway(const char *program)
{
    return program[0] == '-' || strchr(program, '=') ? " /bin/sh -c 'command -- \"$@\"' sh" : "";
}

int pf_remote_check(const struct pinfold_execute_options *options, const char *const *env,
                    struct pinfold_error *err)
{
    size_t total = 0;
    int r = pf_env_check(options->env, err);

    if (isnan(options->timeout_seconds) || options->timeout_seconds < 0)
        return pf_fail(err, PINFOLD_EVALUE, "timeout must be more than 0 seconds, not %g",
                       options->timeout_seconds);
    if (r == 0)
        r = check_words("pass variable", env, &total, err);
    if (r == 0)
        r = check_words("pass variable", options->env, &total, err);
    return r < 0 ? r : check_words("pass argument", options->argv, &total, err);
}

int pf_remote_errno_of(const char *text)
{
    size_t len = text ? strlen(text) : 0;

    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
        len--;
    for (int number = 1; number <= LAST_ERRNO; number++) {
        const char *words = strerrordesc_np(number); /* as in the locale C */
        size_t tail = words ? strlen(words) : 0;
        if (tail > 0 && len > tail + 2 && memcmp(text + len - tail, words, tail) == 0 &&
            text[len - tail - 2] == ':')
            return number;
    }
    return EIO;
}

int pf_remote_type(const void *data, size_t len, struct pf_buf *script)
{
    int r = pf_buf_append_text(script, "printf %s '");

    if (r == 0)
        r = pf_base64_encode(data, len, script);
    return r < 0 ? r : pf_buf_append_text(script, "' | base64 -d");
}

int pf_remote_unnamed(struct pinfold_error *err)
{
    const char *dir = getenv("TMPDIR");
    int fd = open(dir && *dir ? dir : "/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

    if (fd < 0)
        fd = memfd_create("pinfold", MFD_CLOEXEC);
    return fd < 0 ? pf_fail_os(err, errno, "make a temporary file") : fd;
}

int pf_remote_give(struct pf_capture *capture, int number, const struct pf_buf *data, int fd,
                   struct pinfold_error *err)
{
    struct pf_stream *stream = &capture->streams[number];
    int r;

    stream->fd = fd;
    if (fd < 0) {
        stream->fd = memfd_create("pinfold", MFD_CLOEXEC);
        r = stream->fd < 0 ? -errno
                           : pf_write_all(stream->fd, data->data ? data->data : "", data->len);
        if (r < 0)
            return pf_fail_os(err, -r, "keep the output of the command");
    }
    if (lseek(stream->fd, 0, SEEK_SET) < 0)
        return pf_fail_os(err, errno, "read the output of the command");
    while (stream->fd >= 0) {
        r = pf_capture_read(capture, stream, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/random.h"
#include "net/aws_sources.h"

void pf_aws_wipe(struct pf_buf *buf)
{
    if (buf->data)
        explicit_bzero(buf->data, buf->capacity);
    pf_buf_done(buf);
}

void pf_aws_wipe_text(char **text)
{
    if (*text)
        explicit_bzero(*text, strlen(*text));
    free(TAKE(*text));
}

const char *pf_aws_env(const char *name)
{
    const char *value = secure_getenv(name);

    return value && *value ? value : NULL;
}

/* ---- files ---- */

static int read_all(int fd, size_t size, struct pf_buf *ret, struct pinfold_error *err)
{
    ssize_t n = 1;

    if (pf_buf_reserve(ret, size + 1) < 0)
        return pf_fail_nomem(err);
    while (n > 0 && ret->len <= size) {
        n = read(fd, ret->data + ret->len, size + 1 - ret->len);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n < 0)
            return pf_fail_os(err, errno, "read it");
        else
            ret->len += (size_t)n;
    }
    if (ret->len > size)
        return pf_fail(err, PINFOLD_EVALUE, "it grew while it was read");
    ret->data[ret->len] = '\0';
    return 1;
}

int pf_aws_read_file(const char *path, size_t max, struct pf_buf *ret, struct pinfold_error *err)
{
    /* O_NONBLOCK: a pipe of that name shall not make us wait. */
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;
    int r;

    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (fd < 0 || fstat(fd, &st) < 0)
        return pf_fail_os(err, errno, "open %s", PF_QUOTE(path));
    if (!S_ISREG(st.st_mode))
        return 0; /* /dev/null is how people say that there is none */
    if ((uintmax_t)st.st_size > max)
        return pf_fail(err, PINFOLD_EVALUE, "read %s: it is larger than %zu bytes", PF_QUOTE(path),
                       max);
    if (st.st_mode & (S_IRWXG | S_IRWXO))
        pf_log(PINFOLD_LOG_DEBUG, "other users may open %s", path);
    ret->limit = max + 1;
    r = read_all(fd, (size_t)st.st_size, ret, err);
    return r < 0 ? pf_wrap(err, r, "read %s", PF_QUOTE(path)) : r;
}

int pf_aws_read_token(const char *path, struct pf_buf *ret, struct pinfold_error *err)
{
    int r = pf_aws_read_file(path, PF_AWS_TOKEN_MAX, ret, err);

    if (r < 0)
        return r;
    if (r == 0)
        return pf_fail(err, PINFOLD_EVALUE, "read the token %s: there is no such file",
                       PF_QUOTE(path));
    if (ret->len == 0 || memchr(ret->data, '\0', ret->len))
        return pf_fail(err, PINFOLD_EVALUE, "read the token %s: %s", PF_QUOTE(path),
                       ret->len == 0 ? "it is empty" : "it holds a NUL");
    return 0;
}

static int write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        data += n;
        len -= (size_t)n;
    }
    return fsync(fd) < 0 ? -errno : 0;
}

int pf_aws_write_file(const char *path, const char *data, size_t len, struct pinfold_error *err)
{
    _cleanup_free_ char *temp = NULL;
    _cleanup_close_ int fd = -1;
    char suffix[17];
    int r;

    pf_random_hex(suffix, 16);
    if (asprintf(&temp, "%s.%s", path, suffix) < 0) {
        temp = NULL;
        return pf_fail_nomem(err);
    }
    fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return pf_fail_os(err, errno, "create %s", PF_QUOTE(temp));
    r = write_all(fd, data, len);
    if (r == 0 && rename(temp, path) == 0)
        return 0;
    r = r < 0 ? -r : errno;
    unlink(temp);
    return pf_fail_os(err, r, "write %s", PF_QUOTE(path));
}

/* ---- credentials ---- */

void pf_aws_credentials_done(struct pf_aws_credentials *credentials)
{
    pf_aws_wipe_text(&credentials->access_key);
    pf_aws_wipe_text(&credentials->secret_key);
    pf_aws_wipe_text(&credentials->session_token);
    *credentials = (struct pf_aws_credentials){ 0 };
}

int pf_aws_credentials_copy(const struct pf_aws_credentials *from, struct pf_aws_credentials *ret)
{
    struct pf_aws_credentials copy = { .expires = from->expires, .source = from->source };

    copy.access_key = strdup(from->access_key);
    copy.secret_key = strdup(from->secret_key);
    copy.session_token = from->session_token ? strdup(from->session_token) : NULL;
    if (!copy.access_key || !copy.secret_key || (from->session_token && !copy.session_token)) {
        pf_aws_credentials_done(&copy);
        return -PINFOLD_ENOMEM;
    }
    *ret = copy;
    return 0;
}

/* Visible ASCII: what all of them are made of, and what a header takes unchanged. */
static bool is_plain(const char *text)
{
    if (!*text || strlen(text) > PF_AWS_TOKEN_MAX)
        return false;
    for (; *text; text++)
        if (*text < 0x21 || *text > 0x7e)
            return false;
    return true;
}

int pf_aws_take_keys(const struct pf_aws_keys *keys, int64_t expires, const char *source,
                     struct pf_aws_credentials *ret, struct pinfold_error *err)
{
    /* Only copied from. */
    const struct pf_aws_credentials given = {
        (char *)(uintptr_t)keys->access_key,
        (char *)(uintptr_t)keys->secret_key,
        (char *)(uintptr_t)keys->session_token,
        expires,
        source,
    };
    const char *wrong = !is_plain(keys->access_key)   ? "access key id"
                        : !is_plain(keys->secret_key) ? "secret access key"
                        : keys->session_token && !is_plain(keys->session_token) ? "session token"
                                                                                : NULL;

    if (wrong)
        return pf_fail(err, PINFOLD_EVALUE,
                       "AWS credentials, %s: the %s holds white space or other odd characters",
                       source, wrong);
    return pf_aws_credentials_copy(&given, ret) < 0 ? pf_fail_nomem(err) : 1;
}

/* ---- time ---- */

int64_t pf_aws_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * PF_NS_PER_SEC + now.tv_nsec;
}

/* The number that exactly count digits make; -1: they are none. */
static int digits(const char **at, int count)
{
    int value = 0;

    for (; count > 0; count--, (*at)++) {
        if (**at < '0' || **at > '9')
            return -1;
        value = 10 * value + (**at - '0');
    }
    return value;
}

/* Seconds that the zone is ahead of UTC. */
static int zone(const char *at, int *ret)
{
    int sign = *at == '-' ? -1 : 1, hours, minutes;

    *ret = 0;
    if (strcmp(at, "Z") == 0 || strcmp(at, "UTC") == 0)
        return 0;
    if (*at != '+' && *at != '-')
        return -PINFOLD_EVALUE;
    at++;
    hours = digits(&at, 2);
    at += *at == ':';
    minutes = hours < 0 ? -1 : digits(&at, 2);
    *ret = sign * (hours * 3600 + minutes * 60);
    return hours < 0 || hours > 23 || minutes < 0 || minutes > 59 || *at ? -PINFOLD_EVALUE : 0;
}

int pf_aws_time(const char *text, int64_t *ret)
{
    static const struct {
        int count, least, most;
        char after; /* 0: whatever */
    } parts[] = { { 4, 1970, 9999, '-' }, { 2, 1, 12, '-' }, { 2, 1, 31, 'T' },
                  { 2, 0, 23, ':' },      { 2, 0, 59, ':' }, { 2, 0, 60, 0 } };
    int value[6], ahead;
    struct tm tm = { 0 };
    int64_t seconds;

    for (size_t i = 0; i < PF_COUNT(parts); i++) {
        value[i] = digits(&text, parts[i].count);
        if (value[i] < parts[i].least || value[i] > parts[i].most ||
            (parts[i].after && *text++ != parts[i].after))
            return -PINFOLD_EVALUE;
    }
    if (*text == '.') {
        size_t fraction = strspn(++text, "0123456789");
        if (fraction == 0 || fraction > 9)
            return -PINFOLD_EVALUE;
        text += fraction; /* and is of no importance here */
    }
    if (zone(text, &ahead) < 0)
        return -PINFOLD_EVALUE;
    tm.tm_year = value[0] - 1900;
    tm.tm_mon = value[1] - 1;
    tm.tm_mday = value[2];
    tm.tm_hour = value[3];
    tm.tm_min = value[4];
    tm.tm_sec = value[5];
    seconds = timegm(&tm) - ahead;
    if (tm.tm_mon != value[1] - 1)
        return -PINFOLD_EVALUE; /* the 31st of a month that has none */
    /* Nanoseconds last until 2262; later is as good as that. */
    *ret = seconds >= INT64_MAX / PF_NS_PER_SEC ? INT64_MAX : seconds * PF_NS_PER_SEC;
    return *ret < 0 ? -PINFOLD_EVALUE : 0;
}

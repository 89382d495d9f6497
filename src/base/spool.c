/* SPDX-License-Identifier: Apache-2.0 */
#include "base/spool.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"

struct pinfold_spool {
    int fds[2]; /* by stream */
    uint64_t sizes[2];
    uint64_t shares[2]; /* what each gets, however much the other says */
    uint64_t room;      /* bytes that may still be written */
    int sys_errno;
};

static unsigned slot(enum pinfold_stream stream)
{
    return stream == PINFOLD_STDERR;
}

static bool is_stream(enum pinfold_stream stream)
{
    return stream == PINFOLD_STDOUT || stream == PINFOLD_STDERR;
}

/* A file without a name that only this user may read, even through /proc. */
static int unnamed_file(const char *dir)
{
    char name[PATH_MAX];
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);

    if (fd >= 0)
        return fd;
    if (snprintf(name, sizeof(name), "%s/pinfold-spool-XXXXXX", dir) >= (int)sizeof(name)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(name, O_CLOEXEC);
    if (fd >= 0)
        unlink(name);
    return fd;
}

int pf_spool_new(uint64_t limit, struct pinfold_spool **ret, struct pinfold_error *err)
{
    const char *dir = secure_getenv("TMPDIR");
    struct pinfold_spool *spool = malloc(sizeof(*spool));

    if (!spool)
        return pf_fail_nomem(err);
    if (!dir || dir[0] == '\0')
        dir = "/tmp";
    *spool = (struct pinfold_spool){ .fds = { -1, -1 }, .room = limit };
    spool->shares[slot(PINFOLD_STDERR)] = limit / 4; /* as in the text of a result */
    spool->shares[slot(PINFOLD_STDOUT)] = limit - limit / 4;
    for (int i = 0; i < 2; i++) {
        spool->fds[i] = unnamed_file(dir);
        if (spool->fds[i] < 0) {
            int saved = errno;
            pinfold_spool_free(spool);
            return pf_fail_os(err, saved, "create a spool file in %s", PF_QUOTE(dir));
        }
    }
    *ret = spool;
    return 0;
}

static void fail(struct pinfold_spool *spool, int sys_errno)
{
    spool->sys_errno = sys_errno;
    spool->room = 0;
}

/* Cut off the other stream what it has beyond its share, when this one needs it for its own. What
 * was cut is over: it has its share, and there is no room. */
static void make_room(struct pinfold_spool *spool, unsigned at, uint64_t len)
{
    uint64_t due = spool->shares[at] > spool->sizes[at] ? spool->shares[at] - spool->sizes[at] : 0;
    uint64_t need = len < due ? len : due;
    unsigned other = !at;

    if (need <= spool->room)
        return;
    need -= spool->room;
    if (ftruncate(spool->fds[other], (off_t)(spool->sizes[other] - need)) < 0) {
        fail(spool, errno);
        return;
    }
    spool->sizes[other] -= need;
    spool->room += need;
}

void pf_spool_write(struct pinfold_spool *spool, enum pinfold_stream stream, const char *data,
                    size_t len)
{
    unsigned at = slot(stream);

    if (spool->sys_errno)
        return;
    make_room(spool, at, len);
    if (len > spool->room)
        len = (size_t)spool->room;
    while (len > 0) {
        ssize_t written = pwrite(spool->fds[at], data, len, (off_t)spool->sizes[at]);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            fail(spool, written < 0 ? errno : EIO);
            return;
        }
        data += written;
        len -= (size_t)written;
        spool->sizes[at] += (uint64_t)written;
        spool->room -= (uint64_t)written;
    }
}

bool pf_spool_wants(const struct pinfold_spool *spool, enum pinfold_stream stream)
{
    unsigned at = slot(stream);

    return spool && !spool->sys_errno && (spool->room > 0 || spool->sizes[at] < spool->shares[at]);
}

int pf_spool_errno(const struct pinfold_spool *spool)
{
    return spool->sys_errno;
}

uint64_t pinfold_spool_size(const struct pinfold_spool *spool, enum pinfold_stream stream)
{
    return is_stream(stream) ? spool->sizes[slot(stream)] : 0;
}

ssize_t pinfold_spool_read(const struct pinfold_spool *spool, enum pinfold_stream stream,
                           uint64_t offset, void *buffer, size_t size, struct pinfold_error *err)
{
    unsigned at = slot(stream);
    ssize_t len;

    if (!is_stream(stream))
        return pf_fail(err, PINFOLD_EVALUE,
                       "read the spool: %d is neither PINFOLD_STDOUT nor PINFOLD_STDERR",
                       (int)stream);
    if (offset >= spool->sizes[at])
        return 0;
    if (size > spool->sizes[at] - offset)
        size = (size_t)(spool->sizes[at] - offset);
    do
        len = pread(spool->fds[at], buffer, size, (off_t)offset);
    while (len < 0 && errno == EINTR);
    return len < 0 ? pf_fail_os(err, errno, "read the spool at byte %llu",
                                (unsigned long long)offset)
                   : len;
}

void pinfold_spool_free(struct pinfold_spool *spool)
{
    int saved = errno;

    if (!spool)
        return;
    for (int i = 0; i < 2; i++)
        if (spool->fds[i] >= 0)
            close(spool->fds[i]);
    free(spool);
    errno = saved;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tar archives in GNU's form: what goes to another machine is written here, and what comes from
 * there is read as if an enemy had made it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <pinfold/backend.h>
#include <zlib.h>

#include "backend/remote_archive.h"
#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "tree/beneath.h"
#include "tree/data.h"
#include "tree/place.h"
#include "tree/walk.h"

enum { RECORD = 512, CHUNK = 128 * 1024, LONG_MAX_BYTES = 64 * 1024 };

/* Bytes of holes in one file. Here they are zeros to be packed, hours of it for a file that a
 * command makes in a moment. */
#define HOLES_MAX ((uint64_t)16 << 30)

struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
    char magic[8], user[32], group[32], major[8], minor[8], prefix[155], padding[12];
};
_Static_assert(sizeof(struct header) == RECORD, "a record of tar");

/* The sum of all bytes but its own, which count as spaces. */
static unsigned sum_of(const struct header *header)
{
    const unsigned char *bytes = (const unsigned char *)header;
    size_t from = offsetof(struct header, sum), until = from + sizeof(header->sum);
    unsigned sum = 0;

    for (size_t i = 0; i < RECORD; i++)
        sum += i >= from && i < until ? ' ' : bytes[i];
    return sum;
}

/* ---- packing ---- */

struct packer {
    gzFile gz;
    char *buffer;
    struct pinfold_cancel *cancel;
};

static int put(struct packer *packer, const void *data, size_t len, struct pinfold_error *err)
{
    if (len == 0 || gzwrite(packer->gz, data, (unsigned)len) == (int)len)
        return 0;
    return pf_fail_os(err, errno ? errno : EIO, "pack the seed");
}

static int put_padding(struct packer *packer, uint64_t len, struct pinfold_error *err)
{
    static const char zeros[RECORD];

    return put(packer, zeros, (RECORD - len % RECORD) % RECORD, err);
}

/* More than its eleven digits hold is written in binary, the first bit set. */
static void put_size(struct header *header, uint64_t size)
{
    if (size < UINT64_C(1) << 33) {
        snprintf(header->size, sizeof(header->size), "%011llo", (unsigned long long)size);
        return;
    }
    header->size[0] = (char)0x80;
    for (int i = 0; i < 8; i++)
        header->size[11 - i] = (char)(size >> 8 * i);
}

static int put_header(struct packer *packer, struct header *header, char type, uint64_t size,
                      mode_t mode, struct pinfold_error *err)
{
    header->type = type;
    memcpy(header->magic, "ustar  ", 8);
    snprintf(header->mode, sizeof(header->mode), "%07o", mode & 0777);
    snprintf(header->uid, sizeof(header->uid), "%07o", 0U);
    snprintf(header->gid, sizeof(header->gid), "%07o", 0U);
    snprintf(header->mtime, sizeof(header->mtime), "%011o", 0U);
    put_size(header, size);
    snprintf(header->sum, sizeof(header->sum), "%06o", sum_of(header));
    header->sum[7] = ' ';
    return put(packer, header, RECORD, err);
}

/* A name that is too long comes first, as the content of an entry of its own. */
static int put_name(struct packer *packer, char type, const char *text, size_t len, char *slot,
                    struct pinfold_error *err)
{
    struct header header = { .name = "././@LongLink" };
    int r;

    memcpy(slot, text, len < 100 ? len : 99);
    if (len < 100)
        return 0;
    r = put_header(packer, &header, type, len + 1, 0644, err);
    if (r == 0)
        r = put(packer, text, len + 1, err);
    return r < 0 ? r : put_padding(packer, len + 1, err);
}

static int put_content(struct packer *packer, int fd, uint64_t size, struct pinfold_error *err)
{
    uint64_t left = size;
    int r = 0;

    while (r == 0 && left > 0) {
        size_t want = left < CHUNK ? (size_t)left : CHUNK;
        ssize_t n = pf_read_all(fd, packer->buffer, want);
        if (n < 0)
            return pf_fail_os(err, (int)-n, "pack the seed");
        if ((size_t)n < want)
            return pf_fail_os(err, EIO, "pack the seed");
        r = put(packer, packer->buffer, want, err);
        left -= want;
        if (r == 0)
            r = pf_cancel_check(packer->cancel, err);
    }
    return r < 0 ? r : put_padding(packer, size, err);
}

static bool has_too_many_holes(const struct stat *st)
{
    uint64_t size = (uint64_t)st->st_size, kept = (uint64_t)st->st_blocks * 512;

    return size > kept && size - kept > HOLES_MAX;
}

static int put_file(struct packer *packer, const struct pf_walk_entry *entry, struct header *header,
                    struct pinfold_error *err)
{
    _cleanup_close_ int fd = openat(entry->dir_fd, entry->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    int r;

    if (fd < 0 || fstat(fd, &st) < 0)
        return pf_fail_os(err, errno, "pack \"%s\"", PF_QUOTE(entry->path));
    if (has_too_many_holes(&st))
        return pf_fail_os(err, EFBIG,
                          "pack \"%s\": it is %llu bytes of which hardly any are there, and would "
                          "be sent as zeros; exclude it from the seed",
                          PF_QUOTE(entry->path), (unsigned long long)st.st_size);
    r = put_header(packer, header, '0', (uint64_t)st.st_size, st.st_mode, err);
    return r < 0 ? r : put_content(packer, fd, (uint64_t)st.st_size, err);
}

static int put_link(struct packer *packer, const struct pf_walk_entry *entry, struct header *header,
                    struct pinfold_error *err)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(entry->dir_fd, entry->name, target, sizeof(target) - 1);
    int r;

    if (len < 0)
        return pf_fail_os(err, errno, "pack \"%s\"", PF_QUOTE(entry->path));
    target[len] = '\0';
    r = put_name(packer, 'K', target, (size_t)len, header->link, err);
    return r < 0 ? r : put_header(packer, header, '2', 0, 0777, err);
}

static int put_entry(struct packer *packer, const struct pf_walk_entry *entry,
                     struct pinfold_error *err)
{
    struct header header = { 0 };
    int r;

    if (entry->type == PF_WALK_ERROR) {
        if (err)
            *err = entry->error;
        return -entry->error.code;
    }
    if (entry->type == PF_WALK_DIR_DONE || entry->type == PF_WALK_SPECIAL)
        return 0;
    r = put_name(packer, 'L', entry->path, entry->path_len, header.name, err);
    if (r < 0)
        return r;
    if (entry->type == PF_WALK_DIR)
        return put_header(packer, &header, '5', 0, 0755, err);
    return entry->type == PF_WALK_LINK ? put_link(packer, entry, &header, err)
                                       : put_file(packer, entry, &header, err);
}

static int put_tree(struct packer *packer, int root_fd, struct pinfold_error *err)
{
    PF_CLEANUP(pf_walk_freep) struct pf_walk *walk = NULL;
    struct pf_walk_entry entry;
    static const char end[2 * RECORD];
    int r = pf_walk_new(root_fd, &walk, err);

    while (r == 0) {
        int more = pf_walk_next(walk, &entry);
        if (more < 0)
            return pf_fail_nomem(err);
        if (more == 0)
            return put(packer, end, sizeof(end), err);
        r = put_entry(packer, &entry, err);
    }
    return r;
}

int pf_remote_pack(int root_fd, int fd, uint64_t *ret_size, struct pinfold_cancel *cancel,
                   struct pinfold_error *err)
{
    _cleanup_free_ char *buffer = malloc(CHUNK);
    struct packer packer = { .buffer = buffer, .cancel = cancel };
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 3), r;
    off_t size;

    packer.gz = own < 0 || !buffer ? NULL : gzdopen(own, "wb1");
    if (!packer.gz) {
        if (own >= 0)
            close(own);
        return pf_fail_nomem(err);
    }
    r = put_tree(&packer, root_fd, err);
    if (gzclose(packer.gz) != Z_OK && r == 0)
        r = pf_fail_os(err, errno ? errno : EIO, "pack the seed");
    size = lseek(fd, 0, SEEK_END);
    if (r == 0 && size < 0)
        r = pf_fail_os(err, errno, "pack the seed");
    *ret_size = size < 0 ? 0 : (uint64_t)size;
    return r;
}

/* ---- unpacking ---- */

struct unpacker {
    int fd, root_fd;
    char *name, *link; /* from entries before theirs */
    char *buffer;
    struct pinfold_cancel *cancel;
};

static int fail_archive(struct pinfold_error *err, const char *what)
{
    return pf_fail(err, PINFOLD_EBACKEND, "the archive that was fetched %s", what);
}

static int take(struct unpacker *unpacker, void *data, size_t len, struct pinfold_error *err)
{
    ssize_t n = pf_read_all(unpacker->fd, data, len);

    if (n < 0)
        return pf_fail_os(err, (int)-n, "read what was fetched");
    return (size_t)n < len ? fail_archive(err, "ends too early") : 0;
}

static int skip(struct unpacker *unpacker, uint64_t len, struct pinfold_error *err)
{
    if (len > INT64_MAX || lseek(unpacker->fd, (off_t)len, SEEK_CUR) < 0)
        return fail_archive(err, "ends too early");
    return 0;
}

static uint64_t padding_of(uint64_t size)
{
    return (RECORD - size % RECORD) % RECORD;
}

/* Digits of base eight, or binary when the first bit is set. A field is too short to overflow. */
static bool number_of(const char *field, size_t len, uint64_t *ret)
{
    uint64_t number = 0;

    if ((unsigned char)field[0] == 0x80) {
        for (size_t i = len - 8; i < len; i++)
            number = number << 8 | (unsigned char)field[i];
        *ret = number;
        return number < UINT64_C(1) << 62;
    }
    for (size_t i = 0; i < len && field[i] && field[i] != ' '; i++) {
        if (field[i] < '0' || field[i] > '7')
            return false;
        number = number << 3 | (uint64_t)(field[i] - '0');
    }
    *ret = number;
    return true;
}

static int take_long(struct unpacker *unpacker, uint64_t size, char **slot,
                     struct pinfold_error *err)
{
    int r;

    if (size > LONG_MAX_BYTES)
        return fail_archive(err, "holds a name that is too long");
    free(*slot);
    *slot = calloc(1, size + 1);
    if (!*slot)
        return pf_fail_nomem(err);
    r = take(unpacker, *slot, size, err);
    return r < 0 ? r : skip(unpacker, padding_of(size), err);
}

static int take_content(struct unpacker *unpacker, int fd, uint64_t size, struct pinfold_error *err)
{
    int r = 0, wrong = 0;

    for (uint64_t left = size; r == 0 && left > 0;) {
        size_t len = left < CHUNK ? (size_t)left : CHUNK;
        r = take(unpacker, unpacker->buffer, len, err);
        if (r < 0)
            return r;
        wrong = pf_remote_keep(fd, unpacker->buffer, len);
        if (wrong < 0)
            return pf_fail_os(err, -wrong, "keep what was fetched");
        left -= len;
        r = pf_cancel_check(unpacker->cancel, err);
    }
    if (r == 0 && ftruncate(fd, (off_t)size) < 0)
        return pf_fail_os(err, errno, "keep what was fetched");
    return r < 0 ? r : skip(unpacker, padding_of(size), err);
}

static bool is_dir(int parent, const char *name)
{
    struct stat st;

    return fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Make what is no regular file. A link goes nowhere but into the tree it is in: whoever reads it
 * resolves it beneath that. A device or a pipe becomes a pipe, and a hard link, which the names
 * that were asked for cannot make, too: something special, which no copy takes. Returns 0 or
 * -errno. */
static int make_other(int parent, const char *name, char type, const char *target)
{
    int r = 0;

    if (type == '5')
        r = mkdirat(parent, name, 0755);
    else if (type == '2')
        r = symlinkat(target, parent, name);
    else
        r = mkfifoat(parent, name, 0600);
    return r < 0 && !(type == '5' && errno == EEXIST && is_dir(parent, name)) ? -errno : 0;
}

/* The same name once more: the later one counts, as for tar; a directory stays. */
static void make_way(int parent, const char *name)
{
    (void)unlinkat(parent, name, 0); /* what is wrong is found by making it */
}

static int take_entry(struct unpacker *unpacker, const struct header *header, const char *path,
                      uint64_t size, struct pinfold_error *err)
{
    bool regular = header->type == '0' || header->type == '\0' || header->type == '7';
    char target[sizeof(header->link) + 1] = "";
    _cleanup_close_ int parent = -1;
    _cleanup_close_ int fd = -1;
    const char *name;
    uint64_t mode = 0600;

    parent = pf_beneath_open_parent(unpacker->root_fd, path, true, &name);
    if (parent < 0)
        return pf_fail_at(err, -parent, "unpack", path);
    memcpy(target, header->link, sizeof(header->link));
    number_of(header->mode, sizeof(header->mode), &mode);
    make_way(parent, name);
    if (!regular) {
        int r = make_other(parent, name, header->type, unpacker->link ? unpacker->link : target);
        return r < 0 ? pf_fail_at(err, -r, "unpack", path)
                     : skip(unpacker, size + padding_of(size), err);
    }
    fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || fchmod(fd, (mode_t)(mode & 0777) | 0400) < 0)
        return pf_fail_at(err, errno, "unpack", path);
    return take_content(unpacker, fd, size, err);
}

static int take_record(struct unpacker *unpacker, const struct header *header,
                       struct pinfold_error *err)
{
    char short_name[sizeof(header->name) + 1] = "";
    _cleanup_free_ char *path = NULL;
    const char *name;
    uint64_t size, sum;
    int r;

    if (!number_of(header->size, sizeof(header->size), &size) ||
        !number_of(header->sum, sizeof(header->sum), &sum) || sum != sum_of(header))
        return fail_archive(err, "is broken");
    if (header->type && !strchr("01234567LKxg", header->type))
        return fail_archive(err, "has an entry of no known kind");
    if (header->type == 'L' || header->type == 'K')
        return take_long(unpacker, size, header->type == 'L' ? &unpacker->name : &unpacker->link,
                         err);
    if (header->type == 'x' || header->type == 'g')
        return skip(unpacker, size + padding_of(size), err);
    memcpy(short_name, header->name, sizeof(header->name));
    name = unpacker->name ? unpacker->name : short_name;
    r = pinfold_path_normalize(name, strlen(name), NULL, &path, err);
    if (r == 0)
        r = strcmp(path, ".") == 0 ? skip(unpacker, size + padding_of(size), err)
                                   : take_entry(unpacker, header, path, size, err);
    free(TAKE(unpacker->name));
    free(TAKE(unpacker->link));
    return r;
}

int pf_remote_unpack(int fd, int root_fd, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    _cleanup_free_ char *buffer = malloc(CHUNK);
    struct unpacker unpacker = { .fd = fd, .root_fd = root_fd, .buffer = buffer, .cancel = cancel };
    static const struct header end;
    struct header header;
    int r = 0;

    if (!buffer)
        return pf_fail_nomem(err);
    if (lseek(fd, 0, SEEK_SET) < 0)
        return pf_fail_os(err, errno, "read what was fetched");
    while (r == 0) {
        r = take(&unpacker, &header, sizeof(header), err);
        if (r == 0 && memcmp(&header, &end, sizeof(header)) == 0)
            break;
        if (r == 0)
            r = take_record(&unpacker, &header, err);
    }
    free(unpacker.name);
    free(unpacker.link);
    return r;
}

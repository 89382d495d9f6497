/* SPDX-License-Identifier: Apache-2.0 */
/* Changing a file of somebody else's, whole or not at all. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/install.h"
#include "cli/say.h"
#include "cli/whole_file.h"

enum { FILE_MAX = 8 * 1024 * 1024, BACKUPS_MAX = 100 };

static int fail(struct pinfold_error *err, int code, int error, const char *doing, const char *path,
                const char *what)
{
    *err = (struct pinfold_error){ .code = code, .sys_errno = error };
    snprintf(err->msg, sizeof(err->msg), "%s %.150s: %s", doing, path,
             error ? pf_error_words(error) : what);
    return -code;
}

static struct pf_edit_stamp stamp_of(const struct stat *st)
{
    return (struct pf_edit_stamp){
        .dev = st->st_dev,
        .ino = st->st_ino,
        .size = (uint64_t)st->st_size,
        .mtime_ns = st->st_mtim.tv_sec * INT64_C(1000000000) + st->st_mtim.tv_nsec,
        .mode = st->st_mode & 07777,
    };
}

/* path: the name that was given, which whoever reads of a failure knows. */
static int take_in(struct pf_edit *edit, const char *path, struct pinfold_error *err)
{
    struct pf_whole_file file;
    int error = pf_whole_file(edit->path, FILE_MAX, &file);

    if (error == ENOENT)
        return 0;
    if (error == EISDIR || error == EINVAL || error == EFBIG)
        return fail(err, PINFOLD_EVALUE, 0, "read", path, "not a regular file of at most 8 MiB");
    if (error)
        return fail(err, error == ENOMEM ? PINFOLD_ENOMEM : PINFOLD_EOS, error, "read", path, "");
    free(edit->text);
    edit->text = file.text;
    edit->len = file.len;
    edit->stamp = stamp_of(&file.st);
    edit->exists = true;
    return memchr(file.text, '\0', file.len)
                   ? fail(err, PINFOLD_EVALUE, 0, "read", edit->path, "it holds a NUL byte")
                   : 0;
}

int pf_edit_open(struct pf_edit *edit, const char *path, struct pinfold_error *err)
{
    *edit = (struct pf_edit){ .path = realpath(path, NULL), .text = strdup("") };
    if (!edit->path && errno == ENOENT)
        edit->path = strdup(path);
    else if (!edit->path)
        return fail(err, PINFOLD_EOS, errno, "open", path, "");
    if (!edit->path || !edit->text)
        return fail(err, PINFOLD_ENOMEM, ENOMEM, "open", path, "");
    return take_in(edit, path, err);
}

void pf_edit_done(struct pf_edit *edit)
{
    free(edit->path);
    free(edit->text);
    *edit = (struct pf_edit){ 0 };
}

/* Make what leads to a file: one directory, such as .vscode. */
static int make_parent(const char *path, struct pinfold_error *err)
{
    const char *slash = strrchr(path, '/');
    char parent[PATH_MAX];

    if (!slash || slash == path)
        return 0;
    snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
    if (mkdir(parent, 0777) == 0 || errno == EEXIST)
        return 0;
    return fail(err, PINFOLD_EOS, errno, "make", parent, "");
}

/* Write a new file, all of it to the disk. */
static int write_new(int fd, const char *path, const char *text, unsigned mode,
                     struct pinfold_error *err)
{
    int failed = pf_put(fd, text, strlen(text));

    if (!failed && (fchmod(fd, mode) < 0 || fsync(fd) < 0))
        failed = errno;
    return failed ? fail(err, PINFOLD_EOS, failed, "write", path, "") : 0;
}

/* What was there, under a name that nothing has yet. */
static int keep(const struct pf_edit *edit, char **ret_backup, struct pinfold_error *err)
{
    char *name = NULL;
    int fd = -1, r;

    for (int i = 0; i < BACKUPS_MAX && fd < 0; i++) {
        free(name);
        if (asprintf(&name, i ? "%s.bak%d" : "%s.bak", edit->path, i) < 0)
            return fail(err, PINFOLD_ENOMEM, ENOMEM, "keep", edit->path, "");
        fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    r = fd < 0 ? fail(err, PINFOLD_EOS, errno, "write", name, "")
               : write_new(fd, name, edit->text, edit->stamp.mode, err);
    if (fd >= 0)
        close(fd);
    if (fd >= 0 && r < 0)
        unlink(name);
    if (r == 0)
        *ret_backup = name;
    else
        free(name);
    return r;
}

/* Whether the file is still the one that was read. */
static bool is_same(const struct pf_edit *edit)
{
    struct pf_edit_stamp now;
    struct stat st;

    if (stat(edit->path, &st) < 0)
        return !edit->exists && errno == ENOENT;
    now = stamp_of(&st);
    return edit->exists && now.dev == edit->stamp.dev && now.ino == edit->stamp.ino &&
           now.size == edit->stamp.size && now.mtime_ns == edit->stamp.mtime_ns;
}

int pf_edit_save(const struct pf_edit *edit, const char *text, unsigned mode, char **ret_backup,
                 struct pinfold_error *err)
{
    char *name = NULL;
    int r = make_parent(edit->path, err);
    int fd;

    *ret_backup = NULL;
    if (r < 0)
        return r;
    if (asprintf(&name, "%s.pinfold-XXXXXX", edit->path) < 0)
        return fail(err, PINFOLD_ENOMEM, ENOMEM, "write", edit->path, "");
    fd = mkostemp(name, O_CLOEXEC);
    if (fd < 0) {
        r = fail(err, PINFOLD_EOS, errno, "write", name, "");
        free(name);
        return r;
    }
    r = write_new(fd, name, text, edit->exists ? edit->stamp.mode : mode, err);
    close(fd);
    if (r == 0 && edit->exists)
        r = keep(edit, ret_backup, err);
    /* Some programs write their file every few seconds. */
    if (r == 0 && !is_same(edit))
        r = fail(err, PINFOLD_EBUSY, 0, "write", edit->path,
                 "it has changed meanwhile; nothing was written, try again");
    if (r == 0 && rename(name, edit->path) < 0)
        r = fail(err, PINFOLD_EOS, errno, "write", edit->path, "");
    if (r < 0)
        unlink(name);
    if (r < 0 && *ret_backup)
        unlink(*ret_backup);
    free(name);
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/remote_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/local_files.h"
#include "backend/remote_archive.h"
#include "backend/remote_output.h"
#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "tree/below.h"
#include "tree/beneath.h"
#include "tree/copy.h"
#include "tree/data.h"
#include "tree/glob.h"

#define TEXT_MAX ((size_t)16 << 20)
#define SCRIPT_MAX ((size_t)1 << 20)
#define FLUSH_MAX ((uint64_t)16 << 30)    /* bytes of files that come back at once */
#define GROWTH_MAX ((uint64_t)1 << 30)    /* bytes by which those grow until they do */
#define PATIENCE_NS (900 * PF_NS_PER_SEC) /* of one attempt */
#define NAMES_TYPED ((size_t)30000)       /* bytes of names that cost no request of their own */

enum { CLOSED = 'x' }; /* in a list, beside the types of find: see list_there() */
enum { ERRORS_MAX = 10000 };

void pf_stage_done(struct pf_stage *stage)
{
    if (stage->fd >= 0)
        close(stage->fd);
    if (stage->temp)
        pinfold_temp_workspace_free(stage->temp, NULL);
}

int pf_stage_open(struct pf_stage *stage, struct pinfold_error *err)
{
    int r = pinfold_temp_workspace_new(&stage->temp, err);

    if (r < 0)
        return r;
    stage->fd = open(pinfold_temp_workspace_path(stage->temp), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return stage->fd < 0 ? pf_fail_os(err, errno, "open a temporary directory") : 0;
}

/* ---- in ---- */

/* One line of tar's, "tar: NAME: REASON", becomes an error of the seed, and a file that had been
 * counted less. */
static int note_line(int stage_fd, char *line, struct pinfold_seed_result *result)
{
    static const char start[] = "tar: ";
    char *name = line + strlen(start), *reason;
    struct stat st;

    if (strncmp(line, start, strlen(start)) != 0 || strncmp(name, "Exiting with failure", 20) == 0)
        return 0;
    reason = strstr(name, ": ");
    if (reason) {
        *reason = '\0';
        if (fstatat(stage_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
            result->files_seeded > 0 && result->bytes_seeded >= (uint64_t)st.st_size) {
            result->files_seeded--;
            result->bytes_seeded -= (uint64_t)st.st_size;
        }
        *reason = ':';
    }
    return pf_strings_addf(&result->errors, "seed %s", PF_QUOTE(name));
}

int pf_remote_note_unpacking(int stage_fd, char *text, int status,
                             struct pinfold_seed_result *result, struct pinfold_error *err)
{
    size_t before = result->errors.count;
    char *rest = text;
    int r = 0;

    for (char *line; r == 0 && rest && (line = strsep(&rest, "\r\n"));)
        if (*line)
            r = note_line(stage_fd, line, result);
    if (r == 0 && result->errors.count == before)
        r = pf_strings_addf(&result->errors, "unpack the seed: status %d", status);
    return r < 0 ? pf_fail_nomem(err) : 0;
}

static int unpack_there(const struct pf_remote *remote, const char *name, int stage_fd,
                        struct pinfold_seed_result *result, struct pinfold_cancel *cancel,
                        struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(TEXT_MAX);
    char print[PF_REMOTE_NAME_MAX], script[2 * PF_REMOTE_NAME_MAX + 200];
    int status = -1, r;

    remote->print(remote->box, name, false, print);
    snprintf(script, sizeof(script),
             "export LC_ALL=C; %s | gzip -dc | "
             "tar -xf - -C '%s' --no-same-owner --quoting-style=literal -m",
             print, remote->root);
    r = remote->run(remote->box, script, &status, &text, cancel, err);
    if (r == 0 && status != 0)
        r = pf_remote_note_unpacking(stage_fd, text.data, status, result, err);
    return r;
}

static int send_stage(const struct pf_remote *remote, int stage_fd,
                      struct pinfold_seed_result *result, struct pinfold_cancel *cancel,
                      struct pinfold_error *err)
{
    _cleanup_close_ int fd = pf_remote_unnamed(err);
    char name[PF_REMOTE_NAME_MAX];
    uint64_t size;
    int r;

    if (fd < 0)
        return fd;
    r = pf_remote_pack(stage_fd, fd, &size, cancel, err);
    if (r == 0)
        r = remote->put(remote->box, fd, size, name, cancel, err);
    if (r < 0)
        return r;
    r = unpack_there(remote, name, stage_fd, result, cancel, err);
    if (r < 0)
        remote->forget(remote->box, name);
    return r;
}

int pf_remote_seed(const struct pf_remote *remote, const struct pinfold_seed_request *request,
                   struct pinfold_seed_result *ret_result, struct pinfold_cancel *cancel,
                   struct pinfold_error *err)
{
    PF_CLEANUP(pf_stage_done) struct pf_stage stage = PF_STAGE_INIT;
    int r = pf_stage_open(&stage, err);

    if (r == 0)
        r = pf_local_seed(stage.fd, pinfold_temp_workspace_path(stage.temp), request, ret_result,
                          cancel, err);
    if (r < 0 || request->plan)
        return r;
    return send_stage(remote, stage.fd, ret_result, cancel, err);
}

/* ---- out ---- */

void pf_remote_wanted_done(struct pf_remote_wanted *wanted)
{
    pf_buf_done(&wanted->names);
    pf_buf_done(&wanted->large);
    pf_buf_done(&wanted->closed);
}

/* Whether it is a path below the root, as find prints them: what prints may be another find. */
static bool is_below(const char *path)
{
    size_t len;

    for (;; path += len + 1) {
        len = strcspn(path, "/");
        if (len == 0 || (len <= 2 && strspn(path, ".") >= len))
            return false;
        if (path[len] == '\0')
            return true;
    }
}

/* What a plan says of a path that does not come here for the copier to say so: what it would say
 * itself, of the first directory on the way that it would not enter. */
static int plan_left(const char *path, bool is_dir, const struct pf_globs *include,
                     const struct pf_globs *exclude, struct pinfold_plan *plan)
{
    bool included = false, last = false;

    for (size_t len = 0; !last; len++) {
        const char *reason = NULL;
        len += strcspn(path + len, "/");
        last = path[len] == '\0';
        bool dir = !last || is_dir;
        bool matches = pf_globs_match(include, path, len, dir);
        if (pf_globs_match(exclude, path, len, dir))
            reason = PF_COPY_EXCLUDED;
        else if (!included && !matches && !(dir && pf_globs_could_match_below(include, path, len)))
            reason = PF_COPY_UNMATCHED;
        if (reason) /* of a directory its own record tells */
            return last ? pf_copy_plan_add(plan, path, dir, PINFOLD_PLAN_SKIP, 0, reason) : 0;
        included = included || (dir && matches);
    }
    return 0;
}

/* A directory that nobody could look into: an error where a copy would have entered it. */
static int choose_closed(const char *path, size_t len, const struct pf_globs *include,
                         const struct pf_globs *exclude, struct pf_remote_wanted *wanted)
{
    if (pf_globs_match_whole(exclude, path, len, true) ||
        !(pf_globs_match_whole(include, path, len, true) ||
          pf_globs_could_match_below(include, path, len)))
        return 0;
    return pf_buf_append(&wanted->closed, path, len + 1);
}

/* The copier decides; this only leaves out what it would not take anyway, and what cannot be: the
 * disk there has 10 GB, and who claims more has a file of holes, which would come here as zeros. */
static int choose_file(char type, uint64_t size, const char *path, size_t len,
                       const struct pf_globs *include, const struct pf_globs *exclude,
                       struct pinfold_plan *plan, struct pf_remote_wanted *wanted)
{
    if (!pf_globs_match_whole(include, path, len, false) ||
        pf_globs_match_whole(exclude, path, len, false))
        return 0;
    if (type == 's') /* tar takes none along */
        return plan ? pf_copy_plan_add(plan, path, false, PINFOLD_PLAN_SKIP, 0, PF_COPY_NO_FILE)
                    : 0;
    size = type == 'f' ? size : 0;
    if (size > FLUSH_MAX || wanted->bytes + size > FLUSH_MAX)
        return pf_buf_append(&wanted->large, path, len + 1);
    wanted->bytes += size + 2 * len + (4 << 10);
    return pf_buf_append(&wanted->names, path, len + 1);
}

static int choose(const struct pf_buf *listing, const struct pf_globs *include,
                  const struct pf_globs *exclude, struct pinfold_plan *plan,
                  struct pf_remote_wanted *wanted)
{
    int r = 0;

    for (size_t at = 0, len; r == 0 && at < listing->len; at += len + 1) {
        const char *record = listing->data + at;
        char type = record[0], *path;
        uint64_t size = 0;
        size_t path_len;
        len = strlen(record);
        if (len < 4)
            continue;
        size = strtoull(record + 2, &path, 10);
        if (*path != ' ')
            continue;
        path_len = strlen(++path);
        if (type == CLOSED && strcmp(path, ".") == 0)
            r = pf_buf_append(&wanted->closed, path, path_len + 1);
        if (!is_below(path))
            continue;
        if (plan)
            r = plan_left(path, type == 'd' || type == CLOSED, include, exclude, plan);
        if (r == 0 && type == CLOSED)
            r = choose_closed(path, path_len, include, exclude, wanted);
        else if (r == 0 && type != 'd')
            r = choose_file(type, size, path, path_len, include, exclude, plan, wanted);
    }
    return r;
}

/* Whether it is of the way there, and not of the tree. A status below 400 is of an answer that
 * began well and told its trouble later. A connection may also break without a word, and is given
 * up after minutes; what took longer than those is as slow the next time. */
static bool may_pass(const struct pinfold_error *err, int64_t began)
{
    static const int of_connections[] = {
        EIO,       ECONNRESET,   EPIPE,     ECONNREFUSED, ECONNABORTED, ENOTCONN,
        ETIMEDOUT, EHOSTUNREACH, EHOSTDOWN, ENETUNREACH,  ENETDOWN,     ENETRESET,
    };

    if (err->code == PINFOLD_EBACKEND)
        return err->http_status < 400 || err->http_status >= 500;
    if (err->code == PINFOLD_ETIMEOUT)
        return pf_clock_now() - began < PATIENCE_NS;
    for (size_t i = 0; i < PF_COUNT(of_connections); i++)
        if (err->code == PINFOLD_EOS && err->sys_errno == of_connections[i])
            return true;
    return false;
}

/* After a step of a flush has failed with r: a service runs nothing again by itself whose answer
 * was lost. What is fetched is the work of hours, perhaps, which ends with the sandbox, and
 * fetching it changes nothing of it there. Returns 1 when the step is to be begun again, or a
 * negative code. */
static int begin_again(int r, size_t failures, int64_t began, struct pinfold_cancel *cancel,
                       struct pinfold_error *err)
{
    static const int64_t pauses_ms[] = { 250, 1000, 4000 };

    if (failures >= PF_COUNT(pauses_ms) || !may_pass(err, began))
        return r;
    pf_log(PINFOLD_LOG_WARNING, "%s: trying again", err->msg);
    *err = (struct pinfold_error)PINFOLD_ERROR_INIT;
    r = pf_cancel_wait(cancel, NULL, pf_clock_deadline(pauses_ms[failures] * PF_NS_PER_MS), err);
    return r < 0 ? r : 1;
}

static int fetch(const struct pf_remote *remote, const char *script, uint64_t limit, int fd,
                 struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pinfold_error one = PINFOLD_ERROR_INIT;
    int r = 1;

    for (size_t failures = 0; r == 1; failures++) {
        int64_t began = pf_clock_now();
        r = remote->fetch(remote->box, script, limit, fd, cancel, &one);
        if (r < 0)
            r = begin_again(r, failures, began, cancel, &one);
        if (r == 1 && (ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0))
            r = pf_fail_os(&one, errno, "keep what is fetched");
    }
    if (r < 0 && err)
        *err = one;
    return r;
}

static int put(const struct pf_remote *remote, int fd, uint64_t size,
               char ret_name[static PF_REMOTE_NAME_MAX], struct pinfold_cancel *cancel,
               struct pinfold_error *err)
{
    struct pinfold_error one = PINFOLD_ERROR_INIT;
    int r = 1;

    for (size_t failures = 0; r == 1; failures++) {
        int64_t began = pf_clock_now();
        r = remote->put(remote->box, fd, size, ret_name, cancel, &one);
        if (r < 0)
            r = begin_again(r, failures, began, cancel, &one);
    }
    if (r < 0 && err)
        *err = one;
    return r;
}

/* A directory that cannot be read or searched is one of a kind of its own, CLOSED, which nothing
 * else would tell; so is "." when find fails for more than what was deleted meanwhile, which it
 * tells with status 1: anything may be left out then. Whoever is killed leaves half a record, and
 * the NUL before that one ends it. */
static int list_there(const struct pf_remote *remote, struct pf_buf *ret,
                      struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    _cleanup_close_ int fd = pf_remote_unnamed(err);
    char script[PF_REMOTE_NAME_MAX + 350];
    off_t size;
    ssize_t n;
    int r;

    if (fd < 0)
        return fd;
    snprintf(script, sizeof(script),
             "cd '%s' && { e=$(LC_ALL=C find . -mindepth 1 "
             "-type d \\( ! -readable -o ! -executable \\) -printf '%c 0 %%P\\0' -prune -o "
             "-printf '%%y %%s %%P\\0' 2>&1 >&3); s=$?; [ $s != 1 ] || { printf '%%s\\n' \"$e\" | "
             "grep -qv ': No such file or directory$'; s=$(($? - 1)); }; "
             "[ $s = 0 ] || printf '\\0%c 0 .\\0'; } 3>&1",
             remote->root, CLOSED, CLOSED);
    r = fetch(remote, script, PF_REMOTE_LIST_MAX, fd, cancel, err);
    if (r < 0)
        return r;
    size = lseek(fd, 0, SEEK_END);
    if (size < 0 || lseek(fd, 0, SEEK_SET) < 0 || pf_buf_reserve(ret, (size_t)size) < 0)
        return pf_fail_nomem(err);
    n = pf_read_all(fd, ret->data, (size_t)size);
    if (n < 0)
        return pf_fail_os(err, (int)-n, "read what was fetched");
    ret->len = (size_t)n;
    ret->data[ret->len] = '\0';
    return 0;
}

/* What prints the names: they stand in the script, or are a file there, with a name then. */
static int add_names(const struct pf_remote *remote, const struct pf_buf *names,
                     struct pf_buf *script, char name[static PF_REMOTE_NAME_MAX],
                     struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    _cleanup_close_ int fd = -1;
    char print[PF_REMOTE_NAME_MAX];
    int r;

    name[0] = '\0';
    if (names->len <= NAMES_TYPED)
        return pf_remote_type(names->data, names->len, script) < 0 ? pf_fail_nomem(err) : 0;
    fd = pf_remote_unnamed(err);
    if (fd < 0)
        return fd;
    r = pf_write_all(fd, names->data, names->len);
    if (r < 0)
        return pf_fail_os(err, -r, "keep what is to be sent");
    r = put(remote, fd, names->len, name, cancel, err);
    if (r < 0)
        return r;
    remote->print(remote->box, name, true, print);
    return pf_buf_append_text(script, print) < 0 ? pf_fail_nomem(err) : 0;
}

int pf_remote_fetch(const struct pf_remote *remote, const struct pf_remote_wanted *wanted,
                    bool follow, int stage_fd, struct pinfold_cancel *cancel,
                    struct pinfold_error *err)
{
    static const char inside[] =
            "sort -zu | xargs -0 /bin/sh -c 'for p; do case \"$(readlink -m -- \"$p\")/\" in "
            "\"$PWD\"/*) printf \"%s\\0\" \"$p\";; esac; done' sh | ";
    PF_CLEANUP(pf_buf_done) struct pf_buf script = PF_BUF_INIT(SCRIPT_MAX);
    _cleanup_close_ int fd = pf_remote_unnamed(err);
    char name[PF_REMOTE_NAME_MAX];
    int r;

    if (fd < 0)
        return fd;
    if (pf_buf_printf(&script, "cd '%s' && ", remote->root) < 0)
        return pf_fail_nomem(err);
    r = add_names(remote, &wanted->names, &script, name, cancel, err);
    if (r < 0)
        return r;
    r = pf_buf_printf(&script,
                      " | %star --format=gnu --hard-dereference --no-recursion "
                      "--ignore-failed-read %s --null --verbatim-files-from -T - -cf -; "
                      "[ $? -le 2 ]",
                      follow ? inside : "", follow ? "-h" : "");
    r = r < 0 ? pf_fail_nomem(err)
              : fetch(remote, script.data, wanted->bytes + GROWTH_MAX, fd, cancel, err);
    if (name[0])
        remote->forget(remote->box, name);
    return r < 0 ? r : pf_remote_unpack(fd, stage_fd, cancel, err);
}

bool pf_remote_is_in(int stage_fd, const char *path)
{
    const char *name;
    _cleanup_close_ int parent = pf_beneath_open_parent(stage_fd, path, false, &name);
    struct stat st;

    return parent >= 0 && fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

#define NOT_READ "it could not be read there"

/* A plan has such a path as an entry of its own; nothing else would tell of it. */
static int plan_missing(const struct pf_remote_wanted *wanted, int stage_fd,
                        struct pinfold_plan *plan, struct pinfold_error *err)
{
    int r = 0;

    for (size_t at = 0; r == 0 && at < wanted->names.len; at += strlen(wanted->names.data + at) + 1)
        if (!pf_remote_is_in(stage_fd, wanted->names.data + at))
            r = pf_copy_plan_add(plan, wanted->names.data + at, false, PINFOLD_PLAN_ERROR, 0,
                                 NOT_READ);
    for (size_t at = 0; r == 0 && at < wanted->closed.len;
         at += strlen(wanted->closed.data + at) + 1)
        r = pf_copy_plan_add(plan, wanted->closed.data + at, true, PINFOLD_PLAN_ERROR, 0, NOT_READ);
    for (size_t at = 0; r == 0 && at < wanted->large.len; at += strlen(wanted->large.data + at) + 1)
        r = pf_copy_plan_add(plan, wanted->large.data + at, false, PINFOLD_PLAN_ERROR, 0,
                             "all together it is more than is fetched at once");
    pf_copy_plan_sort(plan);
    return r < 0 ? pf_fail_nomem(err) : 0;
}

/* What was wanted and did not come is an error, not a file less. The list may be anybody's, so
 * there are only so many. */
static int note_missing(const struct pf_remote_wanted *wanted, int stage_fd,
                        struct pinfold_strings *errors, struct pinfold_error *err)
{
    char too_large[80];
    const struct {
        const struct pf_buf *paths;
        const char *why;
    } kinds[] = { { &wanted->names, NOT_READ },
                  { &wanted->closed, NOT_READ },
                  { &wanted->large, too_large } };
    unsigned long long more = 0;

    snprintf(too_large, sizeof(too_large), "all together it is more than %llu bytes",
             (unsigned long long)FLUSH_MAX);
    for (size_t i = 0; i < PF_COUNT(kinds); i++) {
        const struct pf_buf *paths = kinds[i].paths;
        for (size_t at = 0; at < paths->len; at += strlen(paths->data + at) + 1) {
            const char *path = paths->data + at;
            if (paths == &wanted->names && pf_remote_is_in(stage_fd, path))
                continue;
            if (errors->count >= ERRORS_MAX)
                more++;
            else if (pf_strings_addf(errors, "fetch \"%s\": %s", PF_QUOTE(path), kinds[i].why) < 0)
                return pf_fail_nomem(err);
        }
    }
    if (more > 0 && pf_strings_addf(errors, "and %llu more errors", more) < 0)
        return pf_fail_nomem(err);
    return 0;
}

int pf_remote_choose(const struct pf_buf *listing, const struct pinfold_sync_request *request,
                     struct pf_remote_wanted *wanted, struct pinfold_error *err)
{
    PF_CLEANUP(pf_globs_freep) struct pf_globs *include = NULL;
    PF_CLEANUP(pf_globs_freep) struct pf_globs *exclude = NULL;
    int r = pf_globs_new(request->include, &include, err);

    if (r == 0)
        r = pf_globs_new(request->exclude, &exclude, err);
    if (r < 0)
        return r;
    return choose(listing, include, exclude, request->plan, wanted) < 0 ? pf_fail_nomem(err) : 0;
}

int pf_remote_sync(const struct pf_remote *remote, const struct pinfold_sync_request *request,
                   struct pinfold_sync_result *ret_result, struct pinfold_cancel *cancel,
                   struct pinfold_error *err)
{
    PF_CLEANUP(pf_stage_done) struct pf_stage stage = PF_STAGE_INIT;
    PF_CLEANUP(pf_remote_wanted_done)
    struct pf_remote_wanted wanted = PF_REMOTE_WANTED_INIT;
    PF_CLEANUP(pf_buf_done) struct pf_buf listing = PF_BUF_INIT(PF_REMOTE_LIST_MAX);
    int r = pf_stage_open(&stage, err);

    if (r == 0)
        r = list_there(remote, &listing, cancel, err);
    if (r == 0)
        r = pf_remote_choose(&listing, request, &wanted, err);
    if (r == 0 && wanted.names.len > 0)
        r = pf_remote_fetch(remote, &wanted, false, stage.fd, cancel, err);
    if (r == 0)
        r = pf_local_sync(stage.fd, NULL, remote->root, request, ret_result, cancel, err);
    if (r == 0)
        r = request->plan ? plan_missing(&wanted, stage.fd, request->plan, err)
                          : note_missing(&wanted, stage.fd, &ret_result->errors, err);
    return r;
}

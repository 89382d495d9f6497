/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON Lines sink. */
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "sandbox/audit.h"

struct pinfold_audit_file {
    int fd;
    pthread_mutex_t lock; /* guards the first error */
    int first_errno;
    char *path;
};

/* ---- one event as JSON ---- */

static void put_text(json_t *object, const char *key, const char *value, bool *ok)
{
    if (value && json_object_set_new(object, key, json_string(value)) < 0)
        *ok = false;
}

static void put_number(json_t *object, const char *key, int64_t value, bool *ok)
{
    if (value >= 0 && json_object_set_new(object, key, json_integer(value)) < 0)
        *ok = false;
}

static void put_flag(json_t *object, const char *key, int value, bool *ok)
{
    if (value >= 0 && json_object_set_new(object, key, json_boolean(value)) < 0)
        *ok = false;
}

static void put_list(json_t *object, const char *key, const char *const *values, bool *ok)
{
    json_t *array = values ? json_array() : NULL;

    if (!values)
        return;
    for (size_t i = 0; array && values[i]; i++)
        if (json_array_append_new(array, json_string(values[i])) < 0)
            *ok = false;
    if (json_object_set_new(object, key, array) < 0)
        *ok = false;
}

/* 2026-01-31T12:00:00.123456789Z */
static void put_time(json_t *object, int64_t time_ns, bool *ok)
{
    time_t seconds = (time_t)(time_ns / PF_NS_PER_SEC);
    char text[64], day[32] = "";
    struct tm utc;

    if (gmtime_r(&seconds, &utc))
        (void)strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text, sizeof(text), "%s.%09lldZ", day, (long long)(time_ns % PF_NS_PER_SEC));
    put_text(object, "time", text, ok);
}

static bool fill(json_t *object, const struct pinfold_audit_event *event)
{
    bool ok = true;

    put_time(object, event->time_ns, &ok);
    put_text(object, "event", event->event, &ok);
    put_text(object, "workspace_id", event->workspace_id, &ok);
    put_text(object, "owner_id", event->owner_id, &ok);
    put_text(object, "backend_type", event->backend_type, &ok);
    put_text(object, "view", event->view, &ok);
    put_text(object, "agent_id", event->agent_id, &ok);
    put_text(object, "mode", event->mode, &ok);
    put_text(object, "path", event->path, &ok);
    put_list(object, "paths", event->paths, &ok);
    put_text(object, "dest", event->dest, &ok);
    put_number(object, "files", event->files, &ok);
    put_number(object, "bytes", event->bytes, &ok);
    put_number(object, "errors", event->errors, &ok);
    put_number(object, "command_length", event->command_len, &ok);
    put_text(object, "command_sha256", event->command_sha256, &ok);
    put_text(object, "inferred_op", event->inferred_op, &ok);
    put_text(object, "cwd", event->cwd, &ok);
    put_number(object, "exit_code", event->exit_code, &ok);
    put_flag(object, "truncated", event->truncated, &ok);
    put_flag(object, "timed_out", event->timed_out, &ok);
    put_number(object, "duration_ns", event->duration_ns, &ok);
    put_number(object, "cpu_ns", event->cpu_ns, &ok);
    put_number(object, "peak_bytes", event->peak_bytes, &ok);
    put_text(object, "limit", event->limit, &ok);
    put_text(object, "error", event->error, &ok);
    put_text(object, "error_message", event->error_message, &ok);
    put_text(object, "protocol", event->protocol, &ok);
    put_text(object, "host", event->host, &ok);
    put_number(object, "port", event->port, &ok);
    put_text(object, "reason", event->reason, &ok);
    put_number(object, "count", event->count, &ok);
    return ok;
}

int pinfold_audit_event_json(const struct pinfold_audit_event *event, char **ret_json,
                             struct pinfold_error *err)
{
    json_auto_t *object = json_object();
    char *text;

    if (!object || !fill(object, event))
        return pf_fail_nomem(err);
    text = json_dumps(object, JSON_COMPACT);
    if (!text)
        return pf_fail_nomem(err);
    *ret_json = text;
    return 0;
}

/* ---- the file ---- */

static void note_failure(struct pinfold_audit_file *file, int error)
{
    pthread_mutex_lock(&file->lock);
    if (file->first_errno == 0)
        file->first_errno = error;
    pthread_mutex_unlock(&file->lock);
}

/* One write(2) a line, on a descriptor opened for appending: lines of several writers, also in
 * several processes, never mix. */
static void write_event(void *ctx, const struct pinfold_audit_event *event)
{
    struct pinfold_audit_file *file = ctx;
    _cleanup_free_ char *line = NULL;
    size_t len;
    ssize_t n;

    if (pinfold_audit_event_json(event, &line, NULL) < 0) {
        note_failure(file, ENOMEM);
        return;
    }
    len = strlen(line);
    do
        n = writev(file->fd,
                   (struct iovec[]){ { .iov_base = line, .iov_len = len },
                                     { .iov_base = (char[]){ '\n' }, .iov_len = 1 } },
                   2);
    while (n < 0 && errno == EINTR);
    if (n < 0 || (size_t)n < len + 1)
        note_failure(file, n < 0 ? errno : ENOSPC);
}

/* Open it without waiting. A FIFO that nobody reads would hang; one that nobody reads any more
 * would hold up what is audited. Returns a descriptor or a negative code. */
static int open_file(const char *path, struct pinfold_error *err)
{
    static const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY;
    _cleanup_close_ int fd = open(path, flags | O_NONBLOCK, 0600);
    struct stat st;

    if (fd < 0 && errno != ENXIO) /* a FIFO or a socket */
        return pf_fail_os(err, errno, "open audit file %s", PF_QUOTE(path));
    if (fd >= 0 && fstat(fd, &st) < 0)
        return pf_fail_os(err, errno, "look at audit file %s", PF_QUOTE(path));
    if (fd < 0 || (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode)))
        return pf_fail(err, PINFOLD_EVALUE,
                       "open audit file %s: it is neither a regular file nor a character device; "
                       "name a file, and read that",
                       PF_QUOTE(path));
    if (fcntl(fd, F_SETFL, O_APPEND) < 0)
        return pf_fail_os(err, errno, "open audit file %s", PF_QUOTE(path));
    return TAKE_FD(fd);
}

int pinfold_audit_file_open(const char *path, struct pinfold_audit_file **ret_file,
                            struct pinfold_error *err)
{
    _cleanup_free_ struct pinfold_audit_file *file = calloc(1, sizeof(*file));
    _cleanup_free_ char *name = strdup(path);
    _cleanup_close_ int fd = -1;

    if (!file || !name)
        return pf_fail_nomem(err);
    fd = open_file(path, err);
    if (fd < 0)
        return fd;
    pthread_mutex_init(&file->lock, NULL);
    file->fd = TAKE_FD(fd);
    file->path = TAKE(name);
    *ret_file = TAKE(file);
    return 0;
}

struct pinfold_audit_sink pinfold_audit_file_sink(struct pinfold_audit_file *file)
{
    return (struct pinfold_audit_sink){ .emit = write_event, .ctx = file };
}

int pinfold_audit_file_close(struct pinfold_audit_file *file, struct pinfold_error *err)
{
    int r = 0;

    if (!file)
        return 0;
    if (close(file->fd) < 0 && file->first_errno == 0)
        file->first_errno = errno;
    if (file->first_errno != 0)
        r = pf_fail_os(err, file->first_errno, "write audit file %s", PF_QUOTE(file->path));
    pthread_mutex_destroy(&file->lock);
    free(file->path);
    free(file);
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who descends from this process. /proc/<pid>/task/<tid>/children names them directly; kernels
 * without it (CONFIG_PROC_CHILDREN) are asked for the parent of every process.
 */
#include "proc/super.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

struct pids {
    pid_t *items;
    size_t count, max;
};

/* Called with each name of a directory that is a number. */
typedef void (*number_fn)(struct pids *found, pid_t parent, pid_t number);

static void add(struct pids *found, pid_t pid)
{
    if (found->count < found->max)
        found->items[found->count++] = pid;
}

static char *put_text(char *at, const char *text)
{
    size_t len = strlen(text);

    memcpy(at, text, len + 1);
    return at + len;
}

static char *put_number(char *at, pid_t number)
{
    char digits[16];
    size_t len = 0;

    do
        digits[len++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    while (len > 0)
        *at++ = digits[--len];
    *at = '\0';
    return at;
}

/* Returns false when there is no such file. */
static bool read_children(struct pids *found, pid_t parent, pid_t task)
{
    char path[80], text[4096];
    char *at = put_text(put_number(put_text(path, "/proc/"), parent), "/task/");
    pid_t number = 0;
    ssize_t len;

    put_text(put_number(at, task), "/children");
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    while ((len = read(fd, text, sizeof(text))) > 0)
        for (ssize_t i = 0; i < len; i++) {
            if (isdigit((unsigned char)text[i])) {
                number = number * 10 + (text[i] - '0');
            } else if (number > 0) {
                add(found, number);
                number = 0;
            }
        }
    return true;
}

static void each_number(const char *path, struct pids *found, pid_t parent, number_fn use)
{
    _Alignas(struct dirent64) char batch[8192];
    _cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ssize_t len;

    if (fd < 0)
        return;
    while ((len = getdents64(fd, batch, sizeof(batch))) > 0)
        for (ssize_t at = 0; at < len;) {
            const struct dirent64 *entry = (const void *)(batch + at);
            pid_t number = 0;
            for (const char *digit = entry->d_name; isdigit((unsigned char)*digit); digit++)
                number = number * 10 + (*digit - '0');
            if (number > 0)
                use(found, parent, number);
            at += entry->d_reclen;
        }
}

static void add_children_of_task(struct pids *found, pid_t parent, pid_t task)
{
    read_children(found, parent, task);
}

static void add_if_child(struct pids *found, pid_t parent, pid_t pid)
{
    char path[32], text[512];
    const char *at;
    pid_t number = 0;

    put_text(put_number(put_text(path, "/proc/"), pid), "/stat");
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (len <= 0)
        return;
    text[len] = '\0';
    at = strrchr(text, ')'); /* the name before it may hold anything */
    if (!at || strlen(at) < 5)
        return;
    for (at += 4; isdigit((unsigned char)*at); at++) /* ") S 123" */
        number = number * 10 + (*at - '0');
    if (number == parent)
        add(found, pid);
}

bool pf_can_list_children(void)
{
    char self[16], text[16];
    ssize_t len = readlink("/proc/self", text, sizeof(text));
    const char *end = put_number(self, getpid());

    /* One of another process namespace knows this process by another number, or not at all. */
    return len == end - self && memcmp(text, self, (size_t)len) == 0;
}

size_t pf_children(pid_t *pids, size_t max, bool deep)
{
    struct pids found = { .items = pids, .max = max };
    pid_t self = getpid();
    char path[32];

    if (!read_children(&found, self, self)) {
        /* The children of our children become ours when their parents are killed, so that one
         * level is enough to get at all of them in the end. */
        each_number("/proc", &found, self, add_if_child);
        return found.count;
    }
    for (size_t i = 0; deep && i < found.count; i++) {
        put_text(put_number(put_text(path, "/proc/"), found.items[i]), "/task");
        each_number(path, &found, found.items[i], add_children_of_task);
    }
    return found.count;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of jail/ share: a jail with a workspace of its own, and commands in it. */
#ifndef TESTS_JAIL_HARNESS_H
#define TESTS_JAIL_HARNESS_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "descriptors.h"
#include "jail/jail.h"
#include "proc/launcher.h"
#include "proc/wire.h"
#include "tempdir.h"

struct fixture {
    char dir[128];
    struct pf_jail_config config;
    struct pf_jail *jail;
    struct pinfold_error err;
    int descriptors;
    char output[65536]; /* of the last command */
    int status;
    int failed_stage; /* of the last command, that could not be started; -1: it could */
    int failed_errno;
};

/* A command that has been asked for. */
struct asked {
    int control, output;
};

static inline struct asked ask_at(struct fixture *f, const char *cwd, const char *const *argv,
                                  int cwd_fd)
{
    const char *const env[] = { "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
                                "HOME=/home/agent" };
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(PF_WIRE_MAX * sizeof(int))] = { 0 };
    static char blob[65536];
    struct pf_wire_request request = { .deadline = pf_clock_deadline(60 * PF_NS_PER_SEC),
                                       .envc = PF_COUNT(env),
                                       .search = true,
                                       .has_cwd_path = cwd != NULL,
                                       .has_blob = true,
                                       .has_cwd = cwd_fd >= 0 };
    struct iovec iov = { &request, sizeof(request) };
    int pair[2], out[2], count = 2 + PF_WIRE_PIPES;
    char *at = blob;

    if (cwd)
        at = stpcpy(at, cwd) + 1;
    for (; argv[request.argc]; request.argc++)
        at = stpcpy(at, argv[request.argc]) + 1;
    for (size_t i = 0; i < PF_COUNT(env); i++)
        at = stpcpy(at, env[i]) + 1;
    request.blob_len = (size_t)(at - blob);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    int file = pf_sealed_file("request", &(struct iovec){ blob, request.blob_len }, 1);
    assert_true(file >= 0);
    int fds[PF_WIRE_MAX] = { pair[1], out[0], out[0], out[1], out[1], file, cwd_fd };
    if (cwd_fd >= 0)
        count++;
    struct msghdr message = { .msg_iov = &iov,
                              .msg_iovlen = 1,
                              .msg_control = control,
                              .msg_controllen = CMSG_SPACE((size_t)count * sizeof(int)) };
    struct cmsghdr *part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
    memcpy(CMSG_DATA(part), fds, (size_t)count * sizeof(int));
    assert_int_equal(sendmsg(pf_jail_socket(f->jail), &message, MSG_NOSIGNAL), sizeof(request));
    close(pair[1]);
    close(out[1]);
    close(file);
    return (struct asked){ pair[0], out[0] };
}

static inline struct asked ask(struct fixture *f, const char *command)
{
    return ask_at(f, NULL, (const char *const[]){ "/bin/sh", "-c", command, NULL }, -1);
}

/* Wait for its end. Returns its exit code, 128 + the signal that killed it, or -1 when its
 * supervisor is gone without a word. */
static inline int finish(struct fixture *f, struct asked asked)
{
    struct pf_super_message message = { 0 };
    size_t len = 0;
    ssize_t more;
    int result = -1;

    f->failed_stage = -1;
    while (recv(asked.control, &message, sizeof(message), 0) == sizeof(message)) {
        if (message.event == PF_EVENT_FAILED) {
            f->failed_stage = (int)message.stage;
            f->failed_errno = message.sys_errno;
        } else if (message.event == PF_EVENT_EXITED) {
            f->status = message.status;
            result = WIFEXITED(f->status) ? WEXITSTATUS(f->status) : 128 + WTERMSIG(f->status);
            break;
        }
    }
    close(asked.control);
    while (len < sizeof(f->output) - 1 &&
           (more = read(asked.output, f->output + len, sizeof(f->output) - 1 - len)) > 0)
        len += (size_t)more;
    f->output[len] = '\0';
    close(asked.output);
    return result;
}

static inline int run(struct fixture *f, const char *command)
{
    return finish(f, ask(f, command));
}

#define assert_run(f, command, code)                                                    \
    do {                                                                                \
        int result_ = run((f), (command));                                              \
        if (result_ != (code))                                                          \
            fail_msg("%s\ngave %d instead of %d:\n%s", (command), result_, (int)(code), \
                     (f)->output);                                                      \
    } while (0)

#define assert_says(f, command, text)                                                 \
    do {                                                                              \
        run((f), (command));                                                          \
        if (!strstr((f)->output, (text)))                                             \
            fail_msg("%s\ndoes not say %s but:\n%s", (command), (text), (f)->output); \
    } while (0)

static inline void open_jail(struct fixture *f)
{
    if (pf_jail_open(&f->config, &f->jail, &f->err) < 0)
        fail_msg("%s", f->err.msg);
}

/* Put the probe of this build into the workspace. */
static inline void bring_probe(const struct fixture *f)
{
    char self[PATH_MAX], command[2 * PATH_MAX + 64];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

    assert_true(len > 0);
    self[len] = '\0';
    *strrchr(self, '/') = '\0';
    snprintf(command, sizeof(command), "cp '%s/jail/jail_probe' '%s/probe'", self, f->dir);
    assert_int_equal(system(command), 0);
}

static inline int set_up_config(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->descriptors = count_descriptors();
    assert_non_null(test_tempdir("pinfold-jail", f->dir, sizeof(f->dir)));
    f->config.workspace_fd = open(f->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(f->config.workspace_fd >= 0);
    *state = f;
    return 0;
}

static inline int set_up(void **state)
{
    set_up_config(state);
    open_jail(*state);
    return 0;
}

static inline int tear_down(void **state)
{
    struct fixture *f = *state;
    char command[256];

    pf_jail_close(f->jail);
    close(f->config.workspace_fd);
    snprintf(command, sizeof(command), "rm -rf '%s'", f->dir);
    assert_int_equal(system(command), 0);
    assert_int_equal(count_descriptors(), f->descriptors);
    assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
    free(f);
    return 0;
}

#define IN_JAIL(test)                        \
    {                                        \
#test, test, set_up, tear_down, NULL \
    }
#define WITH_CONFIG(test)                           \
    {                                               \
#test, test, set_up_config, tear_down, NULL \
    }

#endif

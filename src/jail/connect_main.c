/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pinfold-connect HOST PORT: standard input and output, connected to HOST through the sandbox's
 * proxy.
 *
 * For programs that run a command to reach a host: ProxyCommand of ssh, and so GIT_SSH_COMMAND. It
 * is bound into sandboxes, so it is static and needs nothing: the proxy is given by address in
 * ALL_PROXY or https_proxy. What no_proxy names, the sandbox's own loopback, is connected directly.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/number.h"

#define HEAD_MAX 16384
#define SCHEME "http://"

static int fail(const char *what, const char *text, int error)
{
    fprintf(stderr, "pinfold-connect: %s%s%s%s\n", what, text, error ? ": " : "",
            error ? strerror(error) : "");
    return -1;
}

static const char *proxy_url(void)
{
    static const char *const names[] = { "ALL_PROXY", "all_proxy", "https_proxy", "HTTPS_PROXY" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *url = getenv(names[i]);

        if (url && strncmp(url, SCHEME, strlen(SCHEME)) == 0)
            return url;
    }
    return NULL;
}

/* Whether no_proxy, a list with commas, names host. */
static bool is_direct(const char *host)
{
    const char *list = getenv("no_proxy");
    size_t len = strlen(host);

    if (!list)
        list = getenv("NO_PROXY");
    while (list && *list) {
        size_t skip, end;

        list += strspn(list, ", ");
        end = strcspn(list, ",");
        skip = end;
        while (end > 0 && list[end - 1] == ' ')
            end--;
        if (end == len && strncasecmp(list, host, len) == 0)
            return true;
        list += skip;
    }
    return false;
}

static int connect_to(const void *address, socklen_t len, const char *what)
{
    int family = ((const struct sockaddr *)address)->sa_family;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, address, len) < 0)
        return fail("connect to ", what, errno);
    return fd;
}

/* An address or localhost: there is no resolver. */
static int connect_direct(const char *host, const char *port)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
    char *end;
    unsigned long number = strtoul(port, &end, 10);

    v4.sin_port = v6.sin6_port = htons((uint16_t)number);
    if (*end || number == 0 || number > UINT16_MAX)
        return fail("not a port: ", port, 0);
    if (strcasecmp(host, "localhost") == 0)
        host = "127.0.0.1";
    if (inet_pton(AF_INET, host, &v4.sin_addr) == 1)
        return connect_to(&v4, sizeof v4, host);
    if (inet_pton(AF_INET6, host, &v6.sin6_addr) == 1)
        return connect_to(&v6, sizeof v6, host);
    return fail("no_proxy names a host that is not an address: ", host, 0);
}

/* Only http://ADDRESS:PORT, and whatever path. */
static int connect_proxy(void)
{
    const char *url = proxy_url();
    struct sockaddr_in to = { .sin_family = AF_INET };
    char address[INET_ADDRSTRLEN] = "";
    const char *at;
    uint64_t port = 0;
    size_t len;

    if (!url)
        return fail("no http:// proxy in ALL_PROXY or https_proxy: this sandbox has no network", "",
                    0);
    at = url + strlen(SCHEME);
    len = strspn(at, "0123456789.");
    if (len < sizeof(address))
        memcpy(address, at, len); /* and otherwise it is no address */
    at += len;
    if (inet_pton(AF_INET, address, &to.sin_addr) != 1 || *at++ != ':' ||
        !pf_take_number(&at, UINT16_MAX, &port) || port == 0)
        return fail("not http://ADDRESS:PORT: ", url, 0);
    to.sin_port = htons((uint16_t)port);
    return connect_to(&to, sizeof to, url);
}

static bool write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t put = write(fd, data, len);

        if (put < 0 && errno != EINTR)
            return false;
        if (put > 0) {
            data += put;
            len -= (size_t)put;
        }
    }
    return true;
}

/* Copy until the end of from. Blocking is right: each direction has a process. */
static bool copy(int from, int to)
{
    char buffer[65536];

    for (;;) {
        ssize_t got = read(from, buffer, sizeof buffer);

        if (got == 0)
            return true;
        if (got < 0 && errno != EINTR)
            return false;
        if (got > 0 && !write_all(to, buffer, (size_t)got))
            return false;
    }
}

/* Ask the proxy. The answer's head is read byte by byte, so that not one byte of what follows is.
 */
static int ask(int fd, const char *host, const char *port)
{
    bool v6 = strchr(host, ':') && host[0] != '[';
    char request[1024], head[HEAD_MAX + 1] = "";
    size_t len = 0;
    int size =
            snprintf(request, sizeof request, "CONNECT %s%s%s:%s HTTP/1.1\r\nHost: pinfold\r\n\r\n",
                     v6 ? "[" : "", host, v6 ? "]" : "", port);

    if (size < 0 || (size_t)size >= sizeof request)
        return fail("too long a host name", "", 0);
    if (!write_all(fd, request, (size_t)size))
        return fail("ask the proxy", "", errno);
    while (len < HEAD_MAX && (len < 4 || memcmp(head + len - 4, "\r\n\r\n", 4) != 0)) {
        ssize_t got = read(fd, head + len, 1);

        if (got == 0)
            return fail("the proxy hung up", "", 0);
        if (got < 0 && errno != EINTR)
            return fail("read from the proxy", "", errno);
        if (got > 0)
            len++;
    }
    if (len > 12 && memcmp(head, "HTTP/1.", 7) == 0 && memcmp(head + 8, " 200", 4) == 0)
        return 0;
    copy(fd, STDERR_FILENO); /* one line that says why, and what would allow it */
    return -1;
}

int main(int argc, char **argv)
{
    int fd;
    pid_t up;
    bool done, direct;

    if (argc != 3) {
        fprintf(stderr, "usage: pinfold-connect HOST PORT\n");
        return 2;
    }
    direct = is_direct(argv[1]);
    fd = direct ? connect_direct(argv[1], argv[2]) : connect_proxy();
    if (fd < 0 || (!direct && ask(fd, argv[1], argv[2]) < 0))
        return 1;
    up = fork();
    if (up < 0) {
        fail("fork", "", errno);
        return 1;
    }
    if (up == 0) {
        /* When nobody takes the output any more, SIGPIPE ends the parent, and this one with it. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(STDOUT_FILENO);
        done = copy(STDIN_FILENO, fd);
        shutdown(fd, SHUT_WR);
        return done ? 0 : 1;
    }
    close(STDIN_FILENO);
    done = copy(fd, STDOUT_FILENO);
    close(STDOUT_FILENO);
    waitpid(up, NULL, 0);
    return done ? 0 : 1;
}

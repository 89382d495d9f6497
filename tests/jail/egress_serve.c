/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proxy alone, for tests that speak to it: egress_serve [--dns SERVER] [--handshake-ms N]
 * [--connect-ms N] [--idle-ms N] [--connections N] [--port N | --fd N] ALLOW... prints "port N"
 * unless it was given the socket, then one line an event, and ends when its standard input does.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "jail/egress.h"

static void on_event(void *ctx, const struct pf_egress_event *event)
{
    static const char *const kinds[] = { "refused", "failed", "allowed", "closed" };

    (void)ctx;
    printf("%s %s %s %d %llu %llu %s\n", kinds[event->kind],
           *event->protocol ? event->protocol : "-", *event->host ? event->host : "-", event->port,
           (unsigned long long)event->sent, (unsigned long long)event->received, event->reason);
    fflush(stdout);
}

static int listen_on_loopback(int port)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons((uint16_t)port);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
    if (fd < 0 || bind(fd, (const struct sockaddr *)&at, len) < 0 || listen(fd, 512) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) < 0) {
        perror("egress_serve");
        exit(1);
    }
    printf("port %d\n", ntohs(at.sin_port));
    fflush(stdout);
    return fd;
}

static char **parse(char **argv, struct pf_egress_tuning *tuning, int *port, int *fd)
{
    for (argv++; argv[0] && argv[1] && strncmp(argv[0], "--", 2) == 0; argv += 2) {
        long value = strtol(argv[1], NULL, 10);

        if (strcmp(argv[0], "--dns") == 0)
            tuning->dns_servers = argv[1];
        else if (strcmp(argv[0], "--handshake-ms") == 0)
            tuning->handshake_ns = value * PF_NS_PER_MS;
        else if (strcmp(argv[0], "--connect-ms") == 0)
            tuning->connect_ns = value * PF_NS_PER_MS;
        else if (strcmp(argv[0], "--idle-ms") == 0)
            tuning->idle_ns = value * PF_NS_PER_MS;
        else if (strcmp(argv[0], "--connections") == 0)
            tuning->connections = (int)value;
        else if (strcmp(argv[0], "--port") == 0)
            *port = (int)value;
        else if (strcmp(argv[0], "--fd") == 0)
            *fd = (int)value;
    }
    return argv;
}

int main(int argc, char **argv)
{
    struct pf_egress_tuning tuning = { 0 };
    struct pf_egress_rules *rules = NULL;
    struct pf_egress *egress = NULL;
    struct pinfold_error error = PINFOLD_ERROR_INIT;
    int port = 0;
    int fd = -1; /* a listening socket that was inherited */
    char **allow = parse(argv, &tuning, &port, &fd);
    char byte;

    (void)argc;
    if (fd < 0)
        fd = listen_on_loopback(port);
    if (pf_egress_rules_new((const char *const *)allow, &rules, &error) < 0 ||
        pf_egress_rules_tune(rules, &tuning, &error) < 0 ||
        pf_egress_start(fd, rules, on_event, NULL, &egress, &error) < 0) {
        fprintf(stderr, "egress_serve: %s\n", error.msg);
        return 1;
    }
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    pf_egress_stop(egress);
    return 0;
}

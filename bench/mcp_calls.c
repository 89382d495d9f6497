/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call costs through the server over stdio, beside the same in C: mcp_calls PINFOLD prints
 * lines of a name and seconds. Both have an isolated sandbox of their own, and take turns.
 */
#include <pinfold/pinfold.h>

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { READS = 3000, COMMANDS = 600, REPLY_MAX = 1 << 16 };

struct server {
    pid_t pid;
    int in; /* of the server, and so ours to write to */
    int out;
};

static double now(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void die(const char *what)
{
    fprintf(stderr, "mcp_calls: %s\n", what);
    exit(1);
}

static void start(const char *program, struct server *ret)
{
    char *argv[] = { strdup(program), strdup("mcp"), strdup("--quiet"), NULL };
    posix_spawn_file_actions_t actions;
    int in[2], out[2];

    if (pipe(in) < 0 || pipe(out) < 0)
        die("pipe");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    for (int i = 0; i < 2; i++) {
        posix_spawn_file_actions_addclose(&actions, in[i]);
        posix_spawn_file_actions_addclose(&actions, out[i]);
    }
    if (posix_spawn(&ret->pid, program, &actions, NULL, argv, environ) != 0)
        die("start the server");
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    ret->in = in[1];
    ret->out = out[0];
    for (int i = 0; i < 3; i++)
        free(argv[i]);
}

/* Send a line, and wait for one. */
static void ask(const struct server *server, const char *line)
{
    static char reply[REPLY_MAX];
    size_t len = 0;

    if (write(server->in, line, strlen(line)) != (ssize_t)strlen(line))
        die("write to the server");
    do {
        ssize_t n = read(server->out, reply + len, sizeof(reply) - len - 1);
        if (n <= 0)
            die("the server has ended");
        len += (size_t)n;
    } while (reply[len - 1] != '\n');
    reply[len] = '\0';
    if (!strstr(reply, "\"result\"") || strstr(reply, "\"isError\":true"))
        die(reply);
}

static void ask_tool(const struct server *server, const char *name, const char *arguments)
{
    char line[4096];

    snprintf(line, sizeof(line),
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"%s\","
             "\"arguments\":{%s}}}\n",
             name, arguments);
    ask(server, line);
}

static void read_file(struct pinfold_sandbox *sandbox)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_bytes text = { 0 };

    if (pinfold_sandbox_read_file(sandbox, "file", &text, NULL, &err) < 0)
        die(err.msg);
    pinfold_bytes_done(&text);
}

static void execute(struct pinfold_sandbox *sandbox)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_execute_result result = { 0 };
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    options.command = "true";
    if (pinfold_sandbox_execute(sandbox, &options, &result, NULL, &err) < 0)
        die(err.msg);
    pinfold_execute_result_done(&result);
}

static void measure(struct pinfold_sandbox *sandbox, const struct server *server)
{
    for (int i = 0; i < READS + COMMANDS; i++) {
        const char *name = i < READS ? "read_file" : "execute";
        const char *arguments = i < READS ? "\"path\":\"file\"" : "\"command\":\"true\"";
        double began = now(), turned;

        if (i < READS)
            read_file(sandbox);
        else
            execute(sandbox);
        turned = now();
        ask_tool(server, name, arguments);
        printf("C-%s %.9f\nMCP-%s %.9f\n", name, turned - began, name, now() - turned);
    }
}

static struct pinfold_sandbox *open_sandbox(struct pinfold_backend **ret_backend)
{
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_sandbox *sandbox;

    if (pinfold_isolated_backend_new(NULL, ret_backend, &err) < 0)
        die(err.msg);
    options.workspace_id = "bench";
    options.backend = *ret_backend;
    options.ttl_seconds = 600;
    if (pinfold_sandbox_new(&options, &sandbox, &err) < 0 ||
        pinfold_sandbox_start(sandbox, NULL, NULL, &err) < 0)
        die(err.msg);
    return sandbox;
}

int main(int argc, char **argv)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_backend *backend = NULL;
    struct pinfold_sandbox *sandbox;
    char text[1025] = { 0 }, arguments[2048];
    struct server server;
    int status;

    if (argc != 2)
        die("usage: mcp_calls PINFOLD");
    memset(text, 'x', sizeof(text) - 1);
    snprintf(arguments, sizeof(arguments), "\"path\":\"file\",\"content\":\"%s\"", text);
    sandbox = open_sandbox(&backend);
    if (pinfold_sandbox_write_file(sandbox, "file", text, sizeof(text) - 1, NULL, &err) < 0)
        die(err.msg);
    start(argv[1], &server);
    ask(&server, "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
                 "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{}}}\n");
    ask_tool(&server, "write_file", arguments);
    ask_tool(&server, "execute", "\"command\":\"true\"");
    execute(sandbox);
    measure(sandbox, &server);
    close(server.in);
    waitpid(server.pid, &status, 0);
    pinfold_sandbox_free(sandbox);
    pinfold_backend_unref(backend);
    return status != 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owner of one sandbox after the other, by the library, for the soak (owner.py does the same by the
 * Python package). Reads a request a line from stdin, OPERATION ARGUMENT..., each argument in
 * hexadecimal digits, "-" for an empty one, and answers with a line of stdout: "ok ARGUMENT..." or
 * "fail TEXT". Whatever else goes wrong, memory for a line say, ends it with status 3.
 *
 *   open BACKEND ROOT SEED DEST ENDPOINT ID   make a sandbox and start it; empty: without
 *   write PATH DATA | read PATH | delete PATH | move FROM TO
 *   run COMMAND                               answers with exit code and stdout
 *   flush                                     a failure names the first path that stayed behind
 *   stop                                      end the sandbox without a flush, and free it
 *   descriptors                               how many are open
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pinfold/agentcore.h>
#include <pinfold/daytona.h>
#include <pinfold/pinfold.h>

enum { ARGUMENTS = 6, GONE_WRONG = 3, OUTPUT = 8 << 20 };

struct argument {
    char *data; /* NUL-terminated besides */
    size_t len;
};

static struct pinfold_sandbox *sandbox;
static struct pinfold_error err;

/* ---- lines ---- */

static void must(bool good)
{
    if (!good)
        _Exit(GONE_WRONG);
}

static unsigned digit(char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a' + 10);
}

/* In place; what is no digit ends it. */
static struct argument decode(char *text)
{
    struct argument argument = { .data = text };

    for (; text[0] && text[0] != '-' && text[1]; text += 2)
        argument.data[argument.len++] = (char)(digit(text[0]) << 4 | digit(text[1]));
    argument.data[argument.len] = '\0';
    return argument;
}

static void say(const void *data, size_t len)
{
    const unsigned char *bytes = data;

    must(putchar(' ') != EOF && (len > 0 || putchar('-') != EOF));
    for (size_t i = 0; i < len; i++)
        must(printf("%02x", bytes[i]) == 2);
}

/* The end of an answer. */
static int answer(int r)
{
    if (r < 0)
        must(printf("fail %s: %s", pinfold_code_name(r), err.msg) > 0);
    must(putchar('\n') != EOF && fflush(stdout) == 0);
    return 0;
}

static int good(void)
{
    must(fputs("ok", stdout) != EOF);
    return 0;
}

/* ---- backends ---- */

static int make_template(const char *name, const char *endpoint, struct pinfold_backend **ret)
{
    struct pinfold_agentcore_options agentcore = PINFOLD_AGENTCORE_OPTIONS_INIT;
    struct pinfold_daytona_options daytona = PINFOLD_DAYTONA_OPTIONS_INIT;

    agentcore.region = "us-west-2";
    agentcore.endpoint = endpoint;
    agentcore.long_commands = strcmp(name, "agentcore-tasks") == 0;
    daytona.api_url = endpoint;
    return strcmp(name, "daytona") == 0 ? pinfold_daytona_template_new(&daytona, ret, &err)
                                        : pinfold_agentcore_template_new(&agentcore, ret, &err);
}

static int make_backend(const char *name, const char *root, const char *endpoint,
                        struct pinfold_backend **ret)
{
    struct pinfold_isolated_options isolated = PINFOLD_ISOLATED_OPTIONS_INIT;
    struct pinfold_local_options local = PINFOLD_LOCAL_OPTIONS_INIT;

    if (*endpoint)
        return make_template(name, endpoint, ret);
    local.workspace_root = root;
    isolated.workspace_root = *root ? root : NULL;
    isolated.limits.workspace_bytes = PINFOLD_UNLIMITED;
    isolated.seed_mode = strcmp(name, "overlay") == 0 ? PINFOLD_SEED_OVERLAY : PINFOLD_SEED_COPY;
    return strcmp(name, "local") == 0 ? pinfold_local_backend_new(&local, ret, &err)
                                      : pinfold_isolated_backend_new(&isolated, ret, &err);
}

/* ---- operations: each says what is good, and returns 0 or a negative code ---- */

static int stop(const struct argument *args)
{
    int r = sandbox ? pinfold_sandbox_stop(sandbox, false, NULL, NULL, &err) : 0;

    (void)args;
    pinfold_sandbox_free(sandbox);
    sandbox = NULL;
    return r < 0 ? r : good();
}

static int open_sandbox(const struct argument *args)
{
    static const char *const includes[] = { "src/**", "*.md", NULL };
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;
    struct pinfold_sync_policy policy = pinfold_default_sync_policy();
    int r = make_backend(args[0].data, args[1].data, args[4].data, &options.backend);

    if (r < 0)
        return r;
    policy.sync_include_patterns = includes;
    options.sync_policy = &policy;
    options.workspace_id = args[5].data;
    options.ttl_seconds = 3600;
    options.seed_from = args[2].len ? args[2].data : NULL;
    options.sync_dest = args[3].len ? args[3].data : NULL;
    r = pinfold_sandbox_new(&options, &sandbox, &err);
    pinfold_backend_unref(options.backend);
    if (r == 0)
        r = pinfold_sandbox_start(sandbox, NULL, NULL, &err);
    if (r == 0)
        return good();
    pinfold_sandbox_free(sandbox);
    sandbox = NULL;
    return r;
}

static int write_file(const struct argument *args)
{
    int r = pinfold_sandbox_write_file(sandbox, args[0].data, args[1].data, args[1].len, NULL,
                                       &err);

    return r < 0 ? r : good();
}

static int read_file(const struct argument *args)
{
    const struct pinfold_download what = { .path = args[0].data };
    struct pinfold_transfer_results got = { 0 };
    int r = pinfold_sandbox_download_files(sandbox, &what, 1, true, &got, NULL, &err);

    if (r == 0) {
        good();
        say(got.items[0].content.data, got.items[0].content.len);
    }
    pinfold_transfer_results_done(&got);
    return r;
}

static int delete_file(const struct argument *args)
{
    int r = pinfold_sandbox_delete(sandbox, args[0].data, 0, NULL, &err);

    return r < 0 ? r : good();
}

static int move_file(const struct argument *args)
{
    int r = pinfold_sandbox_move_file(sandbox, args[0].data, args[1].data, NULL, &err);

    return r < 0 ? r : good();
}

static int run_command(const struct argument *args)
{
    struct pinfold_execute_options what = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_execute_result result = { .exit_code = 0 };
    char code[16];
    int r;

    what.command = args[0].data;
    what.max_output_bytes = OUTPUT;
    r = pinfold_sandbox_execute(sandbox, &what, &result, NULL, &err);
    if (r == 0) {
        good();
        say(code, (size_t)snprintf(code, sizeof(code), "%d", result.exit_code));
        say(result.output, result.stdout_len);
    }
    pinfold_execute_result_done(&result);
    return r;
}

static int flush(const struct argument *args)
{
    struct pinfold_sync_result sync = { 0 };
    int r = pinfold_sandbox_flush(sandbox, NULL, &sync, NULL, &err);

    (void)args;
    if (r >= 0 && sync.errors.count) {
        snprintf(err.msg, sizeof(err.msg), "%zu paths: %s", sync.errors.count,
                 sync.errors.items[0]);
        r = -PINFOLD_EPREPARE;
    }
    pinfold_sync_result_done(&sync);
    return r < 0 ? r : good();
}

static int count_descriptors(const struct argument *args)
{
    DIR *dir = opendir("/proc/self/fd");
    char text[16];
    int count = 0;

    (void)args;
    must(dir != NULL);
    while (readdir(dir))
        count++;
    closedir(dir);
    good();
    say(text, (size_t)snprintf(text, sizeof(text), "%d", count - 3)); /* ".", ".." and its own */
    return 0;
}

static const struct {
    const char *name;
    int (*perform)(const struct argument *args);
    bool anytime; /* with or without a sandbox */
} operations[] = {
    { "open", open_sandbox, true },
    { "stop", stop, true },
    { "write", write_file, false },
    { "read", read_file, false },
    { "delete", delete_file, false },
    { "move", move_file, false },
    { "run", run_command, false },
    { "flush", flush, false },
    { "descriptors", count_descriptors, true },
};

static int perform(char *line)
{
    struct argument args[ARGUMENTS] = { { 0 } };
    char *rest = NULL, *name = strtok_r(line, " \n", &rest), *word;
    size_t i;

    must(name != NULL);
    for (i = 0; i < ARGUMENTS && (word = strtok_r(NULL, " \n", &rest)); i++)
        args[i] = decode(word);
    for (i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
        if (strcmp(operations[i].name, name) == 0 && (sandbox || operations[i].anytime))
            return answer(operations[i].perform(args));
    _Exit(GONE_WRONG);
}

int main(void)
{
    char *line = NULL;
    size_t size = 0;

    signal(SIGXFSZ, SIG_IGN); /* a limit of file sizes is an error to it */
    while (getline(&line, &size, stdin) > 0)
        perform(line);
    free(line);
    pinfold_sandbox_free(sandbox);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The set of host tools: consent, commands, and what the tools are called with. */
#include "agent/host.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/strings.h"
#include "proc/env.h"
#include "tree/file.h"

enum { OUTPUT_MAX = 100000, ANSWER_MAX = 512 };

/* ---- consent ---- */

bool pf_host_switch(const char *name)
{
    const char *value = getenv(name);

    return value && strcasecmp(value, "true") == 0;
}

static bool ask(struct pf_host *host, const struct pf_consent *consent, const char *question,
                char answer[static ANSWER_MAX])
{
    char *end;

    if (!host->options.ask ||
        !host->options.ask(host->options.ask_ctx, consent->tool, question, answer, ANSWER_MAX))
        return false;
    answer[ANSWER_MAX - 1] = '\0';
    if (!consent->strip)
        return true;
    end = answer + strlen(answer);
    while (end > answer && isspace((unsigned char)end[-1]))
        *--end = '\0';
    memmove(answer, answer + strspn(answer, " \t\r\n\f\v"),
            strlen(answer + strspn(answer, " \t\r\n\f\v")) + 1);
    return true;
}

bool pf_host_consent(struct pf_host *host, const struct pf_consent *consent,
                     struct pinfold_tool_result *result)
{
    char answer[ANSWER_MAX] = "";

    if (pf_host_switch("BYPASS_TOOL_CONSENT") ||
        (consent->non_interactive && pf_host_switch("STRANDS_NON_INTERACTIVE")))
        return true;
    if (!host->options.ask) {
        pf_tool_result_fail(result,
                            "%s was refused: it needs the consent of a person, and there is nobody "
                            "to ask. Nothing was done.",
                            consent->tool);
        return false;
    }
    if (!ask(host, consent, consent->question, answer))
        answer[0] = '\0';
    if (strcasecmp(answer, "y") == 0)
        return true;
    if (consent->explain && strcmp(answer, "n") == 0 && !ask(host, consent, "Why not?", answer))
        answer[0] = '\0';
    pf_tool_result_fail(result, "%s was refused by the user. Nothing was done.%s%s", consent->tool,
                        *answer ? " Reason: " : "", answer);
    return false;
}

/* ---- commands ---- */

double pf_host_timeout(void)
{
    const char *text = getenv("SHELL_DEFAULT_TIMEOUT");
    double seconds = text ? strtod(text, NULL) : 0;

    return isfinite(seconds) && seconds > 0 && seconds < 1e9 ? seconds : 900;
}

static bool is_unset(const struct pf_host *host, const char *entry)
{
    size_t len = strcspn(entry, "=");

    for (size_t i = 0; host->unset && host->unset[i]; i++)
        if (strlen(host->unset[i]) == len && memcmp(host->unset[i], entry, len) == 0)
            return true;
    return false;
}

/* This process's environment without what was deleted, and over it what was set. */
static char **command_env(struct pf_host *host)
{
    size_t count = pf_strv_count((const char *const *)environ), kept = 0;
    _cleanup_free_ const char **inherited = calloc(count + 1, sizeof(*inherited));
    char **merged = NULL;

    if (!inherited)
        return NULL;
    pthread_mutex_lock(&host->lock);
    for (size_t i = 0; i < count && environ[i]; i++)
        if (!is_unset(host, environ[i]))
            inherited[kept++] = environ[i];
    merged = pf_env_merge((const char *const *const[]){ inherited, (const char *const *)host->env },
                          2);
    pthread_mutex_unlock(&host->lock);
    return merged;
}

static int get_launcher(struct pf_host *host, struct pf_launcher **ret, struct pinfold_error *err)
{
    int r = 0;

    pthread_mutex_lock(&host->lock);
    if (!host->launcher)
        r = pf_launcher_new(&host->launcher, err);
    *ret = host->launcher;
    pthread_mutex_unlock(&host->lock);
    return r;
}

int pf_host_run(struct pf_host *host, const struct pf_host_command *command,
                struct pinfold_execute_result *ret, struct pinfold_cancel *cancel,
                struct pinfold_error *err)
{
    _cleanup_strv_ char **own = command->env ? NULL : command_env(host);
    const char *const *env = command->env ? command->env : (const char *const *)own;
    _cleanup_free_ char *dir = NULL;
    struct pf_launcher *launcher = NULL;
    _cleanup_close_ int cwd = -1;
    int r;

    if (!env)
        return pf_fail_nomem(err);
    r = pf_path_expand(command->dir ? command->dir : ".", &dir, err);
    if (r < 0)
        return r;
    cwd = pf_root_open(dir, false, NULL, err);
    if (cwd < 0)
        return cwd;
    r = get_launcher(host, &launcher, err);
    if (r < 0)
        return r;
    return pf_run(launcher,
                  &(struct pf_run_request){
                          .command = command->command,
                          .command_len = command->command_len,
                          .argv = command->argv,
                          .envp = env,
                          .cwd_fd = cwd,
                          .timeout_ns = (int64_t)(command->timeout_seconds * (double)PF_NS_PER_SEC),
                          .output_limit = OUTPUT_MAX,
                          .cancel = cancel },
                  ret, err);
}

/* ---- the set ---- */

static const struct host_tool {
    const char *name, *description, *schema;
    pinfold_tool_fn run;
} host_tools[PINFOLD_HOST_TOOLS] = {
    { "shell",
      "Run shell commands (/bin/sh -c) on the host, as this user, without any isolation. Commands "
      "of a list run one after the other, and a leading cd counts for those after it; with "
      "parallel they run at once. A command that fails makes the result an error, unless "
      "ignore_errors is set. stdin is empty, and there is no terminal.",
      "{\"type\":\"object\",\"properties\":{"
      "\"command\":{\"description\":\"One command, or a list of commands; an item may be an object "
      "with command, timeout and work_dir.\",\"anyOf\":[{\"type\":\"string\"},{\"type\":\"array\","
      "\"minItems\":1,\"maxItems\":100,\"items\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":"
      "\"object\",\"properties\":{\"command\":{\"type\":\"string\"},\"timeout\":{\"type\":"
      "\"number\",\"exclusiveMinimum\":0},\"work_dir\":{\"type\":\"string\"}},\"required\":["
      "\"command\"],\"additionalProperties\":false}]}}]},"
      "\"parallel\":{\"type\":\"boolean\",\"default\":false,\"description\":\"Run them at once.\"},"
      "\"ignore_errors\":{\"type\":\"boolean\",\"default\":false,\"description\":\"Go on after a "
      "command that fails.\"},"
      "\"timeout\":{\"type\":\"number\",\"exclusiveMinimum\":0,\"maximum\":86400,\"description\":"
      "\"Seconds for each command. Default: 900.\"},"
      "\"work_dir\":{\"type\":\"string\",\"description\":\"Directory to start in. Default: the "
      "current one.\"}},\"required\":[\"command\"],\"additionalProperties\":false}",
      pf_host_shell },
    { "python_repl",
      "Run Python code on the host, as this user, without any isolation. Imports, functions, "
      "classes and variables that can be pickled are kept for the next call; use print to see "
      "something.",
      "{\"type\":\"object\",\"properties\":{"
      "\"code\":{\"type\":\"string\",\"description\":\"The code to run.\"},"
      "\"interactive\":{\"type\":\"boolean\",\"default\":true,\"description\":\"Without effect: "
      "there is no terminal.\"},"
      "\"reset_state\":{\"type\":\"boolean\",\"default\":false,\"description\":\"Forget what was "
      "kept first.\"}},\"required\":[\"code\"],\"additionalProperties\":false}",
      pf_host_python },
    { "file_read",
      "Read files of the host. path is one path or several separated by commas, with ~ and the "
      "wildcards * ? [...]; mode says what is wanted of them: view (the text), lines (from "
      "start_line to end_line, the first is 1), chunk (chunk_size bytes from chunk_offset), search "
      "(lines that contain search_pattern, with context_lines around), stats (size, lines, time), "
      "preview (the first 50 lines), find (which files there are; directories are listed), diff "
      "(what is different in comparison_path; two files or two directories), time_machine (the "
      "last num_revisions commits of it in git, or with git_history false its dates), document "
      "(the file itself, as a document).",
      "{\"type\":\"object\",\"properties\":{"
      "\"path\":{\"type\":\"string\",\"description\":\"Path or paths.\"},"
      "\"mode\":{\"type\":\"string\",\"enum\":[\"find\",\"view\",\"lines\",\"chunk\",\"search\","
      "\"stats\",\"preview\",\"diff\",\"time_machine\",\"document\"]},"
      "\"start_line\":{\"type\":\"integer\",\"default\":1},"
      "\"end_line\":{\"type\":[\"integer\",\"null\"],\"description\":\"The last line; default: the "
      "last of the file.\"},"
      "\"chunk_size\":{\"type\":\"integer\",\"default\":1024,\"minimum\":1},"
      "\"chunk_offset\":{\"type\":\"integer\",\"default\":0,\"minimum\":0},"
      "\"search_pattern\":{\"type\":\"string\"},"
      "\"context_lines\":{\"type\":\"integer\",\"default\":2,\"minimum\":0},"
      "\"recursive\":{\"type\":\"boolean\",\"default\":true,\"description\":\"find: go into "
      "subdirectories.\"},"
      "\"comparison_path\":{\"type\":\"string\",\"description\":\"diff: the other path.\"},"
      "\"diff_type\":{\"type\":\"string\",\"enum\":[\"unified\"],\"default\":\"unified\"},"
      "\"git_history\":{\"type\":\"boolean\",\"default\":true,\"description\":\"time_machine: "
      "commits; false: dates of the file.\"},"
      "\"num_revisions\":{\"type\":\"integer\",\"default\":5,\"minimum\":1,\"maximum\":100},"
      "\"format\":{\"type\":\"string\",\"enum\":[\"pdf\",\"csv\",\"doc\",\"docx\",\"xls\","
      "\"xlsx\",\"html\",\"txt\",\"md\"],\"description\":\"document: what it is; default: by the "
      "file's name.\"},"
      "\"neutral_name\":{\"type\":\"string\",\"description\":\"document: a name for it; default: "
      "the file's, and something "
      "random.\"}},\"required\":[\"path\",\"mode\"],\"additionalProperties\":false}",
      pf_host_file_read },
    { "file_write",
      "Write a text file of the host: it is created, with its parent directories, or replaced as a "
      "whole.",
      "{\"type\":\"object\",\"properties\":{"
      "\"path\":{\"type\":\"string\",\"description\":\"Path of the file; ~ is the home "
      "directory.\"},"
      "\"content\":{\"type\":\"string\",\"description\":\"The whole text to write.\"}},"
      "\"required\":[\"path\",\"content\"],\"additionalProperties\":false}",
      pf_host_file_write },
    { "environment",
      "Look at environment variables, or change them for the commands of shell and python_repl. "
      "Values that look like secrets are shown as ****.",
      "{\"type\":\"object\",\"properties\":{"
      "\"action\":{\"type\":\"string\",\"enum\":[\"list\",\"get\",\"set\",\"delete\","
      "\"validate\"]},"
      "\"name\":{\"type\":\"string\",\"description\":\"The variable; of all actions but list.\"},"
      "\"value\":{\"type\":\"string\",\"description\":\"set: its value.\"},"
      "\"prefix\":{\"type\":\"string\",\"description\":\"list: only those that begin so.\"}},"
      "\"required\":[\"action\"],\"additionalProperties\":false}",
      pf_host_environment },
};

static void unref_host(void *ctx)
{
    struct pf_host *host = ctx;

    if (__atomic_sub_fetch(&host->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    pf_launcher_free(host->launcher);
    pinfold_temp_workspace_free(host->python, NULL);
    pf_strv_free(host->env);
    pf_strv_free(host->unset);
    pthread_mutex_destroy(&host->python_turn);
    pthread_mutex_destroy(&host->lock);
    free(host);
}

int pinfold_host_tools_new(const struct pinfold_host_tools_options *options,
                           struct pinfold_tool *ret_tools[], struct pinfold_error *err)
{
    static const struct pinfold_host_tools_options defaults = PINFOLD_HOST_TOOLS_OPTIONS_INIT;
    struct pinfold_tool *tools[PINFOLD_HOST_TOOLS] = { 0 };
    struct pf_host *host;
    int r = 0;

    if (!options)
        options = &defaults;
    if (options->size != sizeof(*options))
        return pf_fail(err, PINFOLD_EVALUE, "host tools: options of %zu bytes, not %zu",
                       options->size, sizeof(*options));
    host = calloc(1, sizeof(*host));
    if (!host)
        return pf_fail_nomem(err);
    host->refs = 1; /* ours, until all are made */
    host->options = *options;
    pthread_mutex_init(&host->lock, NULL);
    pthread_mutex_init(&host->python_turn, NULL);
    for (size_t i = 0; r == 0 && i < PINFOLD_HOST_TOOLS; i++) {
        struct pinfold_tool_options tool = PINFOLD_TOOL_OPTIONS_INIT;

        tool.name = host_tools[i].name;
        tool.description = host_tools[i].description;
        tool.input_schema = host_tools[i].schema;
        tool.run = host_tools[i].run;
        tool.ctx = host;
        tool.free = unref_host;
        r = pinfold_tool_new(&tool, &tools[i], err);
        host->refs += r == 0; /* nobody else has it yet */
    }
    unref_host(host);
    for (size_t i = 0; r < 0 && i < PINFOLD_HOST_TOOLS; i++)
        pinfold_tool_unref(tools[i]);
    if (r == 0)
        memcpy(ret_tools, tools, sizeof(tools));
    return r;
}

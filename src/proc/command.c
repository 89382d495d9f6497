/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/command.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "proc/launcher.h"

/* The kernel takes no single argument longer than 32 pages, its NUL included. */
#define MAX_ARGUMENT ((size_t)128 * 1024)

void pf_command_init(struct pf_command *command)
{
    command->script = -1;
    command->copy = NULL;
    memset(command->shell, 0, sizeof(command->shell));
}

void pf_command_done(struct pf_command *command)
{
    free(command->copy);
    if (command->script >= 0)
        close(command->script);
}

struct pf_run_request pf_command_request(const struct pinfold_execute_options *options,
                                         size_t output_limit, struct pinfold_cancel *cancel)
{
    size_t len = options->command_len;

    return (struct pf_run_request){
        .command = options->command,
        .command_len = options->command && len == 0 ? strlen(options->command) : len,
        .argv = options->argv,
        .cwd_fd = -1,
        .output_limit = options->max_output_bytes ? options->max_output_bytes : output_limit,
        .keep_tail = options->keep_tail,
        .discard = options->discard_output,
        .spool_limit = options->spool_bytes,
        .on_output = options->on_output,
        .on_output_ctx = options->on_output_ctx,
        .cancel = cancel,
    };
}

const char *pf_command_nothing(const struct pf_run_request *request)
{
    size_t blank = 0;

    if (request->argv)
        return request->argv[0] ? NULL : "the argument vector is empty";
    while (blank < request->command_len && isspace((unsigned char)request->command[blank]))
        blank++;
    if (blank == request->command_len)
        return "the command is empty";
    return memchr(request->command, '\0', request->command_len) ? "the command holds a NUL byte"
                                                                : NULL;
}

int pf_command_answer_nothing(const char *reason, struct pinfold_execute_result *ret,
                              struct pinfold_error *err)
{
    struct pinfold_execute_result result = { .exit_code = 1 };
    int len = asprintf(&result.output, "[stderr] pinfold: %s: nothing was run\n", reason);

    if (len < 0)
        return pf_fail_nomem(err);
    result.output_len = (size_t)len;
    result.stderr_text = strdup(result.output + strlen("[stderr] "));
    if (!result.stderr_text) {
        free(result.output);
        return pf_fail_nomem(err);
    }
    result.stderr_len = strlen(result.stderr_text);
    *ret = result;
    return 0;
}

/* A command too long for an argument goes into a file that the shell reads as a script with ".": so
 * $0 is the same as for "sh -c" and stdin stays free. Its first words close the descriptor, on the
 * first line so that line numbers in messages are right; the shell has opened the file anew. */
static int prepare_script(const struct pf_run_request *request, struct pf_command *command,
                          struct pinfold_error *err)
{
    static char head[] = "exec 3<&-; ", tail[] = "\n";
    struct iovec parts[] = { { head, sizeof(head) - 1 },
                             { (void *)(uintptr_t)request->command, request->command_len },
                             { tail, sizeof(tail) - 1 } };

    _Static_assert(PF_SCRIPT_FD == 3, "the script closes the descriptor it comes from");
    command->script = pf_sealed_file("pinfold-command", parts, (int)PF_COUNT(parts));
    if (command->script < 0)
        return pf_fail_os(err, -command->script, "write a command of %zu bytes to memory",
                          request->command_len);
    command->shell[0] = "sh";
    command->shell[1] = "-c";
    command->shell[2] = ". /proc/self/fd/3";
    return 0;
}

int pf_command_prepare(const struct pf_run_request *request, struct pf_command *command,
                       struct pinfold_error *err)
{
    char *text = command->small;

    if (request->argv)
        return 0;
    if (request->command_len >= MAX_ARGUMENT)
        return prepare_script(request, command, err);
    if (request->command_len >= sizeof(command->small))
        text = command->copy = malloc(request->command_len + 1);
    if (!text)
        return pf_fail_nomem(err);
    memcpy(text, request->command, request->command_len);
    text[request->command_len] = '\0';
    command->shell[0] = "sh";
    command->shell[1] = "-c";
    command->shell[2] = "--"; /* a command may begin with '-' */
    command->shell[3] = text;
    return 0;
}

int pf_command_explain(const struct pf_super_message *failure, struct pinfold_error *err)
{
    switch ((enum pf_super_stage)failure->stage) {
    case PF_STAGE_FORK:
        return pf_fail_os(err, failure->sys_errno, "fork a process for the command");
    case PF_STAGE_CWD:
        return pf_fail_os(err, failure->sys_errno, "enter the command's working directory");
    case PF_STAGE_STDIO:
        return pf_fail_os(err, failure->sys_errno, "open /dev/null and the command's output");
    case PF_STAGE_SETUP:
        return pf_fail_os(err, failure->sys_errno, "set up the command's supervisor");
    case PF_STAGE_TERMINAL:
        return pf_fail_os(err, failure->sys_errno, "open a terminal for the command (/dev/ptmx)");
    case PF_STAGE_EXEC:
        break;
    }
    if (failure->sys_errno == E2BIG)
        return pf_fail_os(err, E2BIG,
                          "execute the command: an argument or environment entry may have %zu "
                          "bytes, all of them together %ld",
                          MAX_ARGUMENT - 1, sysconf(_SC_ARG_MAX));
    return pf_fail_os(err, failure->sys_errno, "execute the command");
}

int pf_command_exit_code(const struct pf_super_message *exit)
{
    int status = exit->status;

    if (exit->cause == PF_CAUSE_DEADLINE)
        return 124;
    if (exit->cause != PF_CAUSE_NONE)
        return 128 + SIGKILL;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

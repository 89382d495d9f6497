/* SPDX-License-Identifier: Apache-2.0 */
/* pinfold run: seed a workspace, run a command in it, bring the results home. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <pinfold/pinfold.h>

#include "cli/box.h"
#include "cli/clash.h"
#include "cli/extras.h"
#include "cli/hint.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/relay.h"
#include "cli/run.h"
#include "cli/say.h"
#include "cli/stream.h"

#define NO_TIMEOUT_SECONDS 1e9
/* How long the library may take to kill the command at its deadline before a write to a reader
 * that does not read is given up. */
#define GRACE_NS 1000000000LL

/* All that one run holds. */
struct run {
    const struct pf_command *command;
    struct pf_options options;
    struct pf_box box;
    struct pf_outlet out;
    struct pinfold_cancel *cancel;
    struct pf_report *report; /* NULL without --json */
    struct pinfold_execute_result result;
    bool executed;
    bool overlay; /* the workspace is one: its directory has only what was changed */
};

/* Tell what failed. A cancelled call is no failure: who fired the token knows. */
static int failed(struct run *run, const struct pinfold_error *err)
{
    if (err->code == PINFOLD_ECANCELLED && pf_interrupt_signal())
        return PF_EXIT_SIGNAL + pf_interrupt_signal();
    pf_say("%s", err->msg);
    if (run->report)
        run->report->error(run->report, err);
    return PF_EXIT_FAILED;
}

static int start(struct run *run)
{
    __attribute__((cleanup(pinfold_seed_result_done))) struct pinfold_seed_result seed = { 0 };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    char size[32];
    int r;

    pf_progress_begin(&run->box.progress, "seeding", run->options.seed && !run->options.quiet);
    r = pinfold_sandbox_start(run->box.sandbox, &seed, run->cancel, &err);
    pf_progress_end(&run->box.progress);
    if (run->report && run->options.seed)
        run->report->seed(run->report, &seed);
    if (r < 0) {
        int status = failed(run, &err);
        pf_say_list(&seed.errors);
        if (run->options.isolated && err.code == PINFOLD_ENOTSUP)
            pf_doctor_complain(err.msg);
        if (err.code == PINFOLD_EPREPARE)
            pf_say("the command was not run; mend what --seed or --workspace names, or leave out "
                   "what cannot be copied with --exclude");
        return status;
    }
    run->overlay = seed.mode == PINFOLD_SEED_OVERLAY;
    if (run->overlay)
        pf_note("seeded %llu files (%s) by an overlay, %zu hidden",
                (unsigned long long)seed.files_seeded, pf_format_size(seed.bytes_seeded, size),
                seed.skipped_paths.count);
    else if (run->options.seed)
        pf_note("seeded %llu files (%s), %zu skipped", (unsigned long long)seed.files_seeded,
                pf_format_size(seed.bytes_seeded, size), seed.skipped_paths.count);
    return 0;
}

/* Why execute was cancelled: by a signal, by our reader going away, or by a reader that slept. */
static int stopped(struct run *run)
{
    if (pf_interrupt_signal())
        return PF_EXIT_SIGNAL + pf_interrupt_signal();
    if (run->out.failed == EPIPE)
        return PF_EXIT_SIGNAL + SIGPIPE;
    if (run->out.late) {
        pf_note("the command ran out of time and was stopped");
        return PF_EXIT_TIMEOUT;
    }
    pf_say("write to %s: %s; the command was stopped",
           run->out.failed_fd == STDERR_FILENO ? "stderr" : "stdout",
           pf_error_words(run->out.failed));
    return PF_EXIT_FAILED;
}

static const struct {
    const char *what, *remedy;
} notes[PINFOLD_LIMIT_COUNT] = {
    [PINFOLD_LIMIT_MEMORY] = { "it ran out of memory", "--memory" },
    [PINFOLD_LIMIT_PROCESSES] = { "it could not start more processes", "--processes" },
    [PINFOLD_LIMIT_CPU_TIME] = { "it used up its processor time", "--cpu-seconds" },
    [PINFOLD_LIMIT_FILE_SIZE] = { "a file became too large", "--file-size" },
    [PINFOLD_LIMIT_WORKSPACE] = { "the workspace became too large", "--workspace-size" },
    [PINFOLD_LIMIT_DISK] = { "the disk of the workspace is nearly full", "--workspace-size" },
};

/* What ended the command, and what lets it go on. A timeout is told above. */
static void note_limit(const struct pinfold_execute_result *result)
{
    for (int i = 0; i < PINFOLD_LIMIT_COUNT; i++) {
        if (!notes[i].what || !(result->limits_hit & 1U << i))
            continue;
        if (result->limit == (enum pinfold_limit)i)
            pf_note("the command failed: %s; %s gives it more", notes[i].what, notes[i].remedy);
        else
            pf_note("something in the sandbox was stopped: %s; %s gives it more", notes[i].what,
                    notes[i].remedy);
    }
}

static void note_result(const struct run *run)
{
    /* Nothing was run, and nothing streamed: the library says why in place of the command. */
    if (!run->report && run->result.stderr_len)
        pf_put(STDERR_FILENO, run->result.stderr_text, run->result.stderr_len);
    if (run->result.timed_out)
        pf_note("the command ran out of time and was stopped; --timeout gives it more");
    if (run->result.supervisor_lost)
        pf_note("the command was killed: it, or something beside it, killed its supervisor");
    note_limit(&run->result);
    if (run->out.cut || run->result.truncated)
        pf_note("the output was cut; --max-output lets more of it through");
    if (run->options.isolated && run->result.exit_code == 127)
        pf_hint_missing(&run->options);
    else if (run->result.exit_code != 0)
        pf_hint_empty(&run->options);
    if (run->result.background)
        pf_note("%u processes that it left in the background are stopped", run->result.background);
}

static int execute(struct run *run)
{
    struct pinfold_execute_options what = PINFOLD_EXECUTE_OPTIONS_INIT;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    double seconds = pf_options_seconds(&run->options);
    int r;

    if (run->options.command[1])
        what.argv = (const char *const *)run->options.command;
    else
        what.command = run->options.command[0];
    /* Without --timeout it is the service that ends a command. */
    if (run->options.agentcore && !(run->options.timeout_seconds > 0))
        seconds = NO_TIMEOUT_SECONDS;
    what.timeout_seconds = seconds;
    if (run->report) {
        what.max_output_bytes = run->options.max_output_bytes;
    } else {
        run->out.cancel = run->cancel;
        run->out.deadline_ns = pf_now_ns() + (int64_t)(seconds * 1e9) + GRACE_NS;
        run->out.limit = run->options.max_output_bytes;
        what.discard_output = true;
        what.on_output = pf_outlet_write;
        what.on_output_ctx = &run->out;
    }
    r = pinfold_sandbox_execute(run->box.sandbox, &what, &run->result, run->cancel, &err);
    if (run->out.armed || pf_interrupt_signal())
        pf_interrupt_writes_never();
    if (run->report && (r == 0 || r == -PINFOLD_ECANCELLED))
        run->report->execute(run->report, &run->result);
    if (r == -PINFOLD_ECANCELLED)
        return stopped(run);
    /* It ran, and what watched it has died: what it made is not lost. */
    run->executed = r == -PINFOLD_EBACKEND;
    if (r < 0)
        return failed(run, &err);
    run->executed = true;
    note_result(run);
    return run->result.exit_code;
}

static void note_end(const struct pinfold_terminal_exit *end)
{
    if (end->supervisor_lost)
        pf_note("the command was killed: it, or something beside it, killed its supervisor");
    if (end->timed_out)
        pf_note("the time of --timeout is over; everything was stopped");
    else if (notes[end->limit].what)
        pf_note("%s%s; %s gives it more", end->killed ? "everything was stopped: " : "",
                notes[end->limit].what, notes[end->limit].remedy);
}

/* On a terminal in the sandbox, relayed to ours; without a command it is a shell's. */
static int interact(struct run *run)
{
    struct pinfold_terminal_options what = PINFOLD_TERMINAL_OPTIONS_INIT;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_terminal_exit end;
    int r;

    if (run->options.command[0] && run->options.command[1])
        what.argv = (const char *const *)run->options.command;
    else
        what.command = run->options.command[0];
    what.timeout_seconds = run->options.timeout_seconds;
    what.env = run->options.env; /* --env TERM=... is over what our terminal is */
    r = pf_relay(run->box.sandbox, &what, run->cancel, &end, &err);
    run->executed = r == 0 || r == -PINFOLD_EBACKEND;
    if (r < 0)
        return failed(run, &err);
    note_end(&end);
    return end.exit_code;
}

/* What could not be copied back is in the workspace and nowhere else. */
static void keep_workspace(struct run *run)
{
    const char *path = pf_box_keep(&run->box, &run->options, run->overlay);

    if (path && run->report)
        run->report->kept(run->report, path);
}

/* Flush. Returns the exit status of the whole, which was status before. */
static int sync_back(struct run *run, int status)
{
    __attribute__((cleanup(pinfold_sync_result_done))) struct pinfold_sync_result sync = { 0 };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    char size[32];
    int r;

    pf_progress_begin(&run->box.progress, "syncing", !run->options.quiet);
    r = pinfold_sandbox_flush(run->box.sandbox, NULL, &sync, run->cancel, &err);
    pf_progress_end(&run->box.progress);
    if (run->report)
        run->report->sync(run->report, &sync);
    if (r < 0) {
        status = failed(run, &err);
    } else if (sync.errors.count) {
        pf_say("sync: %zu paths could not be copied back; the command itself ended with status %d",
               sync.errors.count, status);
        status = PF_EXIT_FAILED;
    } else {
        pf_note("synced %llu files (%s)", (unsigned long long)sync.files_synced,
                pf_format_size(sync.bytes_synced, size));
    }
    pf_say_list(&sync.errors);
    if ((r < 0 && r != -PINFOLD_ECANCELLED) || sync.errors.count)
        keep_workspace(run);
    return status;
}

static int work(struct run *run)
{
    int status = start(run);

    if (!status)
        status = run->options.tty ? interact(run) : execute(run);
    if (run->executed && run->options.wants_sync)
        status = sync_back(run, status);
    return status;
}

/* Everything between parsing and the exit status; what it makes is cleaned up in any case. */
static int run_in_box(struct run *run)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    const char *workspace = run->options.workspace;
    int status = 0;

    if (pf_interrupt_catch(&run->cancel, &err) < 0)
        return failed(run, &err);
    if (!workspace && !pf_options_remote(&run->options)) {
        if (pinfold_temp_workspace_new(&run->box.temporary, &err) < 0) {
            failed(run, &err);
            pf_say("set TMPDIR, or name a workspace with --workspace");
            return PF_EXIT_FAILED;
        }
        workspace = pinfold_temp_workspace_path(run->box.temporary);
    }
    if (pf_box_open(&run->box, &run->options, workspace, &err) < 0)
        status = failed(run, &err);
    if (!status)
        status = work(run);
    if (pf_interrupt_signal())
        pf_interrupt_writes_never();
    if (pf_box_close(&run->box, &err) < 0)
        status = failed(run, &err);
    return status;
}

static int run_and_report(struct run *run)
{
    if (!run->options.json)
        return run_in_box(run);
    run->report = pf_extras->new_report();
    if (!run->report) {
        pf_say("out of memory");
        return PF_EXIT_FAILED;
    }
    return run->report->print(run->report, run_in_box(run));
}

/* What is wrong with a terminal here, or NULL. */
static const char *check_terminal(const struct pf_options *options)
{
    if (!options->tty)
        return NULL;
    if (options->agentcore)
        return "there are no terminals in sessions of AgentCore; 'pinfold run' needs none";
    if (options->daytona)
        return "--backend daytona has no terminals; 'pinfold run' needs none";
    if (options->json || options->max_output_bytes)
        return "--tty passes on what the command prints: --json and --max-output do not go with it";
    return pf_relay_possible() ? NULL
                               : "stdin is not a terminal; 'pinfold run' without --tty needs none";
}

/* Returns NULL, or what is wrong with the command and its terminal. */
static const char *check(const struct pf_options *options, bool is_shell)
{
    if (is_shell && options->command[0])
        return "it takes no command; 'pinfold run --tty' runs one on a terminal";
    if (!is_shell && !options->command[0])
        return "no command to run";
    return check_terminal(options);
}

int pf_run_command(const struct pf_command *command, int argc, char **argv)
{
    struct run run = { .command = command };
    bool is_shell = !(command->bit & PF_FOR_COMMAND);
    enum pf_program program;
    struct pf_clash clash;
    const char *wrong;
    int status;

    if (!pf_options_parse(command, argc, argv, &run.options, &status))
        return status;
    run.options.tty |= is_shell;
    /* What a policy says is not known yet, and so not whether the options go together. */
    if (run.options.config && pf_hand_over(PF_MCP, argv - 1, &status)) {
        pf_options_done(&run.options);
        return status;
    }
    program = pf_options_remote(&run.options) ? PF_REMOTE
              : run.options.takes_extras      ? PF_FULL
                                              : PF_FRONT;
    wrong = check(&run.options, is_shell);
    if (wrong)
        status = pf_usage_error(command, "%s", wrong);
    else if (pf_find_clash(&run.options, &clash))
        status = pf_clash_error(command, &run.options, argc, argv, &clash);
    else if (!pf_hand_over(program, argv - 1, &status)) {
        pinfold_log_set_handler(pf_say_log, NULL);
        status = run_and_report(&run);
        pinfold_execute_result_done(&run.result);
        pinfold_cancel_free(run.cancel);
    }
    pf_options_done(&run.options);
    return status;
}

const struct pf_command pf_command_run = {
    .name = "run",
    .usage = "[OPTION]... [--] COMMAND...",
    .summary = "run a command in a workspace, and bring the results back",
    .help = "One COMMAND is a line for /bin/sh; several are a program and its arguments.\n"
            "\n"
            "A workspace that --workspace names is kept; without it there is a temporary one\n"
            "under $TMPDIR or /tmp, removed at the end, unless --sync failed and the results are\n"
            "in it alone. --sync copies back what the --include patterns match: by default\n"
            "src/**, tests/**, dist/**, build/**, and *.md, *.py, *.json, *.yaml and *.yml\n"
            "anywhere. Other kinds, *.c or a Makefile say, stay behind unless included. Nothing\n"
            "is ever deleted at the destination. Left out both ways: .git, node_modules,\n"
            "__pycache__, .venv, .env, *.pem, credentials.json, secrets/, and what --exclude\n"
            "adds.\n"
            "\n"
            "A command has no input, and a terminal only with --tty: for full-screen programs, "
            "and\n"
            "for those that ask questions. Every key then is the command's, Ctrl-C included.\n"
            "\n"
            "With --seed-mode overlay nothing is copied in: the command sees the seed, without\n"
            "what is left out, below its own changes, and cannot change it. The seed must belong\n"
            "to you alone, and stay as it is meanwhile. Where the machine cannot do it the seed\n"
            "is copied, with a warning. A workspace then holds what was changed, in changes/.\n"
            "\n"
            "The exit status is the command's; 124 when it ran out of time, 125 when pinfold\n"
            "itself failed, 126 or 127 when the command could not be started or was not found,\n"
            "128+n when signal n ended it, or ended us.\n"
            "\n"
            "The command is contained: it sees a system that is read-only, the workspace at\n"
            "/workspace, no network unless --net opens one, and nothing else of this machine,\n"
            "your home and your environment included; --ro and --env give it more. Where the\n"
            "machine cannot do that nothing is run, and 'pinfold doctor' says how to turn it on.\n"
            "With --backend local the command can do whatever you can do.\n"
            "\n"
            "With --backend agentcore it runs in a session of AWS Bedrock AgentCore's code\n"
            "interpreter, with credentials from where AWS's own tools look for them. The session\n"
            "is stopped at the end. Output comes when the command has ended; with --timeout it is\n"
            "a task, which takes a few calls more; without, the service ends it after 15 minutes.\n"
            "\n"
            "With --backend daytona it runs in a sandbox of Daytona, which is deleted at the end.\n"
            "DAYTONA_API_KEY has the key, or else .env.local or .env in the current directory;\n"
            "DAYTONA_API_URL the address, if it is another. Output comes when the command has\n"
            "ended.\n"
            "\n"
            "What is passed on as it comes fills three quarters of --max-output with stdout at\n"
            "most: the rest is for stderr, which may yet say what failed. With --json stdout has\n"
            "all that stderr has left.\n"
            "\n"
            "Bytes may end in K, M or G, powers of 1024; limits may be 'unlimited'. What no "
            "control\n"
            "group can hold is held for each process, or looked after: 'pinfold doctor' says "
            "which.\n"
            "The workspace is a directory of the host, looked at several times a second: commands\n"
            "are killed when it holds more than --workspace-size, and without that when its disk\n"
            "has less than 1G, or a twentieth, or half of what was free at the start.",
    .bit = PF_FOR_RUN | PF_FOR_COMMAND,
    .run = pf_run_command,
};

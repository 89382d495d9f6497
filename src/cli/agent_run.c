/* SPDX-License-Identifier: Apache-2.0 */
/* A run of an agent: the sandbox, the model, what is told meanwhile, and the end. */
#include "cli/agent_run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pinfold/pinfold.h>

#include "cli/agent_session.h"
#include "cli/extras.h"
#include "cli/interrupt.h"
#include "cli/say.h"

enum { TASK_MAX = 1024 * 1024 };

int pf_agent_worse(int status, int other)
{
    return status > other ? status : other;
}

/* ---- telling ---- */

void pf_agent_told(struct pf_agent_run *run, int sys_errno)
{
    if (!sys_errno || sys_errno == EINTR || run->broken)
        return; /* a signal stops everything by itself */
    run->broken = sys_errno;
    pinfold_cancel_fire(run->cancel);
}

int pf_agent_broken(const struct pf_agent_run *run)
{
    if (run->broken == EPIPE)
        return PF_EXIT_SIGNAL + SIGPIPE;
    pf_say("write the output: %s; the agent was stopped", pf_error_words(run->broken));
    return PF_EXIT_FAILED;
}

int pf_agent_failed(struct pf_agent_run *run, const struct pinfold_error *err)
{
    if (err->code == PINFOLD_ECANCELLED && pf_interrupt_signal())
        return PF_EXIT_SIGNAL + pf_interrupt_signal();
    if (err->code == PINFOLD_ECANCELLED &&
        run->broken) /* what could not be told has cancelled it */
        return pf_agent_broken(run);
    pf_agent_told(run, run->teller->error(run->teller, err));
    return PF_EXIT_FAILED;
}

/* ---- what it takes ---- */

/* Read a task from stdin. Returns text to free(), or NULL after having said why. */
static char *read_task(void)
{
    char *text = malloc(TASK_MAX + 1);
    size_t len = 0;
    ssize_t n = 1;

    while (text && n > 0 && len <= TASK_MAX) {
        n = read(STDIN_FILENO, text + len, TASK_MAX + 1 - len);
        len += n > 0 ? (size_t)n : 0;
    }
    if (text && n == 0 && len > 0 && !memchr(text, '\0', len)) {
        text[len] = '\0';
        return text;
    }
    pf_say("read the task from stdin: %s", !text     ? "out of memory"
                                           : n < 0   ? pf_error_words(errno)
                                           : n > 0   ? "it is longer than 1 MiB"
                                           : len > 0 ? "it holds a NUL byte"
                                                     : "there is none");
    free(text);
    return NULL;
}

/* With the local backend a command sees what the environment has, and there are the keys. */
static const char **modest_env(const char *const *given, char **ret_text)
{
    static const char *const names[] = { "PATH",   "HOME", "LANG",   "LC_ALL",
                                         "TMPDIR", "USER", "LOGNAME" };
    enum { COUNT = sizeof(names) / sizeof(names[0]) };
    size_t count = 0, len = 0;
    const char **env;
    char *text;

    while (given[count])
        count++;
    for (size_t i = 0; i < COUNT; i++)
        len += getenv(names[i]) ? strlen(names[i]) + strlen(getenv(names[i])) + 2 : 0;
    env = calloc(COUNT + count + 1, sizeof(*env));
    text = *ret_text = malloc(len + 1);
    if (!env || !text) {
        free(env);
        return NULL;
    }
    count = 0;
    for (size_t i = 0; i < COUNT; i++) {
        const char *value = getenv(names[i]);
        if (!value)
            continue;
        env[count++] = text;
        text = stpcpy(stpcpy(stpcpy(text, names[i]), "="), value) + 1;
    }
    for (; *given; given++)
        env[count++] = *given;
    return env;
}

static int open_model(struct pf_agent_run *run, struct pinfold_error *err)
{
    struct pinfold_model_options what = PINFOLD_MODEL_OPTIONS_INIT;

    what.base_url = run->options->agent.base_url;
    return pinfold_model_open(run->options->agent.model, &what, &run->model, err);
}

static int start_sandbox(struct pf_agent_run *run)
{
    __attribute__((cleanup(pinfold_seed_result_done))) struct pinfold_seed_result seed = { 0 };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    const char *workspace = run->options->workspace;
    int status, r = 0;

    if (!workspace && !pf_options_remote(run->options)) {
        r = pinfold_temp_workspace_new(&run->box.temporary, &err);
        if (r == 0)
            workspace = pinfold_temp_workspace_path(run->box.temporary);
    }
    if (r == 0)
        r = pf_box_open(&run->box, run->options, workspace, &err);
    if (r < 0)
        return pf_agent_failed(run, &err);
    pf_progress_begin(&run->box.progress, "seeding", run->options->seed && !run->options->quiet);
    r = pinfold_sandbox_start(run->box.sandbox, &seed, run->cancel, &err);
    pf_progress_end(&run->box.progress);
    if (r == 0) {
        run->overlay = seed.mode == PINFOLD_SEED_OVERLAY;
        if (run->options->seed)
            pf_agent_told(run, run->teller->seed(run->teller, &seed));
        return 0;
    }
    status = pf_agent_failed(run, &err);
    pf_say_list(&seed.errors);
    if (run->options->isolated && err.code == PINFOLD_ENOTSUP)
        pf_doctor_complain(err.msg);
    return status;
}

static int make_agent(struct pf_agent_run *run, struct pinfold_error *err)
{
    struct pinfold_agent_config config = PINFOLD_AGENT_CONFIG_INIT;
    struct pinfold_hooks hooks = PINFOLD_HOOKS_INIT;
    const struct pinfold_hooks *list[] = { &hooks };
    char *prompt = pf_agent_prompt(run->options);
    int r;

    if (!prompt) {
        err->code = PINFOLD_ENOMEM;
        snprintf(err->msg, sizeof(err->msg), "out of memory");
        return -PINFOLD_ENOMEM;
    }
    pf_agent_watch(run, &config, &hooks);
    config.agent_id = "agent";
    config.model = run->model;
    config.system_prompt = prompt;
    config.max_turns = (unsigned)run->options->agent.max_turns;
    config.hooks = list;
    config.hook_count = 1;
    config.sandbox = run->box.sandbox;
    config.sandbox_attach_mode =
            run->options->agent.read_only ? PINFOLD_READ_ONLY : PINFOLD_READ_WRITE;
    r = pinfold_agent_new(&config, &run->agent, err);
    free(prompt);
    if (r == 0 && run->options->agent.session)
        r = pf_agent_session_load(run->agent, run->options->agent.session, err);
    return r;
}

/* ---- work ---- */

/* Why the agent was stopped, when it was not by itself. */
static int stopped(struct pf_agent_run *run, const struct pinfold_error *err)
{
    if (pf_interrupt_signal())
        return PF_EXIT_SIGNAL + pf_interrupt_signal();
    if (run->broken)
        return pf_agent_broken(run);
    if (run->over_budget) {
        pf_say("%s; with more of them it would have gone on", err->msg);
        return PF_EXIT_UNFINISHED;
    }
    pf_agent_failed(run, err);
    if (err->http_status == 401 || err->http_status == 403)
        pf_say("the service refused the key; it is taken from the environment: see "
               "'pinfold help agent'");
    return PF_EXIT_FAILED;
}

/* What the end of an invocation means. */
static int judge(const struct pinfold_invocation *done)
{
    if (done->out_of_turns)
        pf_say("the agent was stopped after %u replies and would have gone on; --max-turns gives "
               "it more",
               done->turns);
    else if (done->stop == PINFOLD_STOP_LENGTH)
        pf_say("the last reply was cut: it was longer than the model may answer");
    else if (done->stop == PINFOLD_STOP_REFUSAL)
        pf_say("the model, or a filter before it, refused to go on");
    else
        return 0;
    return PF_EXIT_UNFINISHED;
}

static int work(struct pf_agent_run *run, const char *task)
{
    struct pinfold_invocation done = { 0 };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    int r = make_agent(run, &err), status;

    if (r < 0)
        return pf_agent_failed(run, &err);
    r = pinfold_agent_invoke(run->agent, task, &done, run->cancel, &err);
    status = r < 0 ? stopped(run, &err) : judge(&done);
    pinfold_invocation_done(&done);
    if (pf_interrupt_signal()) {
        run->signal = pf_interrupt_signal();
        status = PF_EXIT_SIGNAL + run->signal;
        /* What comes now is not stopped by what has stopped the agent. */
        if (pf_interrupt_again(&run->cancel, &err) < 0)
            return status;
    }
    /* Of a model that could not even be asked nothing has come. */
    if (!run->broken && !run->options->agent.read_only && (run->tally.calls || !status))
        status = pf_agent_worse(status, pf_agent_home(run));
    if (run->options->agent.session &&
        pf_agent_session_save(run->agent, run->options->agent.session, &err) < 0)
        status = pf_agent_worse(status, pf_agent_failed(run, &err));
    return status;
}

static int run_in_box(struct pf_agent_run *run, const char *task)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    const char *session = run->options->agent.session;
    int status = 0;

    /* First of all: nothing is copied for a model that cannot be asked, and no model is asked whose
     * answers could not be kept. */
    if ((session && pf_agent_session_check(session, &err) < 0) || open_model(run, &err) < 0)
        return pf_agent_failed(run, &err);
    pf_agent_told(run, run->teller->start(run->teller, run->model, run->options));
    status = start_sandbox(run);
    if (!status)
        status = work(run, task);
    if (pf_interrupt_signal())
        pf_interrupt_writes_never();
    /* Before the sandbox, which it is attached to. */
    pinfold_agent_free(run->agent);
    if (pf_box_close(&run->box, &err) < 0)
        status = pf_agent_worse(status, pf_agent_failed(run, &err));
    return status;
}

static int run_and_tell(struct pf_agent_run *run, const char *task)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    int status;

    if (pf_interrupt_catch(&run->cancel, &err) < 0)
        return pf_agent_failed(run, &err);
    status = run_in_box(run, task);
    if (pf_interrupt_signal() && pf_interrupt_again(&run->cancel, &err) < 0)
        return status;
    if (!run->broken && run->teller->end(run->teller, &run->tally, run->written, status))
        status = pf_agent_worse(status, PF_EXIT_FAILED);
    return status;
}

static int run_task(struct pf_agent_run *run)
{
    const char *task = run->options->command[0];
    char *text = strcmp(task, "-") == 0 ? read_task() : strdup(task);
    int status = PF_EXIT_FAILED;

    if (text)
        status = run_and_tell(run, text);
    else if (strcmp(task, "-") != 0)
        pf_say("out of memory");

    free(text);
    return status;
}

static int run_agent(const struct pf_command *command, struct pf_options *options)
{
    struct pf_options own = *options;
    struct pf_agent_run run = { .options = &own, .lock = PTHREAD_MUTEX_INITIALIZER };
    char *patterns[PF_OWN_FILES] = { NULL }, *env_text = NULL, *ignore_text = NULL;
    const char **env = NULL, **excludes;
    int status = PF_EXIT_FAILED;

    (void)command;
    pinfold_log_set_handler(pf_say_log, NULL);
    run.tally.begun_ns = pf_now_ns();
    run.teller = options->json ? pf_teller_new_json() : pf_teller_new_screen(options);
    own.exclude = excludes = pf_agent_excludes(options, patterns);
    if (excludes)
        own.exclude = pf_agent_ignores(&own, &ignore_text);
    if (!options->isolated && !pf_options_remote(options) && !options->no_inherit_env) {
        own.env = env = modest_env(options->env, &env_text);
        own.no_inherit_env = true;
    }
    if (run.teller && own.exclude && own.env)
        status = run_task(&run);
    else
        pf_say("out of memory");
    if (run.teller)
        run.teller->free(run.teller);
    pinfold_model_unref(run.model);
    pinfold_cancel_free(run.cancel);
    for (int i = 0; i < PF_OWN_FILES; i++)
        free(patterns[i]);
    if (excludes)
        free(own.exclude);
    free(excludes);
    free(ignore_text);
    free(env);
    free(env_text);
    return status;
}

int (*const pf_run_agent)(const struct pf_command *command, struct pf_options *options) = run_agent;

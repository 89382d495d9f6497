/* SPDX-License-Identifier: Apache-2.0 */
/* shell and python_repl: commands on the host. */
#include "agent/host.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "tree/file.h"

/* One command of a call, and what came of it. */
struct job {
    struct pf_host *host;
    const char *command;
    size_t len;
    const char *dir; /* NULL: the batch's */
    double timeout;
    bool done;
    int r;
    struct pinfold_execute_result result;
    struct pinfold_error err;
};

struct batch {
    struct pf_host *host;
    struct job *jobs;
    size_t count;
    char *dir; /* where the next one runs; NULL: the current directory */
    struct pinfold_cancel *cancel;
    size_t next; /* atomic, of a parallel batch */
    bool parallel, ignore_errors;
};

static void batch_done(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        pinfold_execute_result_done(&batch->jobs[i].result);
    free(batch->jobs);
    free(batch->dir);
}

/* A command is a text, or an object that holds one. */
static void read_job(struct job *job, const json_t *item, double timeout)
{
    const json_t *text = json_is_object(item) ? json_object_get(item, "command") : item;
    const json_t *own = json_object_get(item, "timeout");

    job->command = json_string_value(text);
    job->len = json_string_length(text);
    job->dir = json_string_value(json_object_get(item, "work_dir"));
    job->timeout = own && json_number_value(own) < 1e9 ? json_number_value(own) : timeout;
}

static int read_batch(struct pf_host *host, struct pinfold_tool_call *call, struct batch *batch,
                      struct pinfold_error *err)
{
    const json_t *command = json_object_get(call->input, "command");
    const char *dir = pinfold_tool_call_string(call, "work_dir", NULL);
    double timeout = pinfold_tool_call_number(call, "timeout", pf_host_timeout());
    size_t count = json_is_array(command) ? json_array_size(command) : 1;

    batch->host = host;
    batch->cancel = call->cancel;
    batch->parallel = pinfold_tool_call_bool(call, "parallel", false);
    batch->ignore_errors = pinfold_tool_call_bool(call, "ignore_errors", false);
    batch->dir = dir ? strdup(dir) : NULL;
    batch->jobs = calloc(count, sizeof(*batch->jobs));
    if (!batch->jobs || (dir && !batch->dir))
        return pf_fail_nomem(err);
    batch->count = count;
    for (size_t i = 0; i < count; i++)
        read_job(&batch->jobs[i], json_is_array(command) ? json_array_get(command, i) : command,
                 timeout);
    return 0;
}

static bool agreed(struct batch *batch, struct pinfold_tool_result *ret)
{
    struct pf_buf question = PF_BUF_INIT(1 << 20);
    bool yes;
    int r = pf_buf_append_text(&question, "Run on this host, without isolation?");

    for (size_t i = 0; r == 0 && i < batch->count; i++)
        r = pf_buf_printf(&question, "\n  %.*s", (int)batch->jobs[i].len, batch->jobs[i].command);
    if (r < 0) {
        pf_buf_done(&question);
        pf_tool_result_fail(ret, "shell was refused: the commands are too long to ask about.");
        return false;
    }
    yes = pf_host_consent(batch->host,
                          &(struct pf_consent){ .tool = "shell",
                                                .question = question.data,
                                                .non_interactive = true },
                          ret);
    pf_buf_done(&question);
    return yes;
}

static void run_job(struct batch *batch, struct job *job)
{
    job->r = pf_host_run(batch->host,
                         &(struct pf_host_command){ .command = job->command,
                                                    .command_len = job->len,
                                                    .dir = job->dir ? job->dir : batch->dir,
                                                    .timeout_seconds = job->timeout },
                         &job->result, batch->cancel, &job->err);
    job->done = true;
}

/* A command that begins with "cd DIR" moves those after it. Only a plain word counts. */
static void follow_cd(struct batch *batch, const struct job *job)
{
    const char *at = job->command + strspn(job->command, " \t");
    _cleanup_free_ char *joined = NULL, *target = NULL;
    struct stat st;
    size_t len;

    if (job->dir || strncmp(at, "cd ", 3) != 0)
        return;
    at += 3 + strspn(at + 3, " \t");
    len = strcspn(at, " \t\n;&|\"'$`\\*?<>()");
    if (len == 0 || !strchr(" \t\n;&", at[len]))
        return;
    target = strndup(at, len);
    if (!target)
        return;
    if (*target == '/' || *target == '~' || !batch->dir)
        joined = strdup(target);
    else if (asprintf(&joined, "%s/%s", batch->dir, target) < 0)
        joined = NULL;
    if (joined && (*joined == '~' || (stat(joined, &st) == 0 && S_ISDIR(st.st_mode)))) {
        free(batch->dir);
        batch->dir = TAKE(joined);
    }
}

static void *run_some(void *ctx)
{
    struct batch *batch = ctx;
    size_t i;

    while ((i = __atomic_fetch_add(&batch->next, 1, __ATOMIC_RELAXED)) < batch->count)
        run_job(batch, &batch->jobs[i]);
    return NULL;
}

static void run_batch(struct batch *batch)
{
    pthread_t threads[7];
    size_t started = 0;

    if (batch->parallel) {
        while (started < PF_COUNT(threads) && started + 1 < batch->count &&
               pthread_create(&threads[started], NULL, run_some, batch) == 0)
            started++;
        run_some(batch);
        for (size_t i = 0; i < started; i++)
            pthread_join(threads[i], NULL);
        return;
    }
    for (size_t i = 0; i < batch->count; i++) {
        run_job(batch, &batch->jobs[i]);
        if (batch->jobs[i].r < 0 || (batch->jobs[i].result.exit_code != 0 && !batch->ignore_errors))
            return;
        follow_cd(batch, &batch->jobs[i]);
    }
}

static int report_job(const struct job *job, struct pinfold_tool_result *ret,
                      struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_bytes_done) struct pinfold_bytes text = { 0 };
    struct pf_buf out = PF_BUF_INIT(PF_BUF_UNLIMITED);
    int r = pf_buf_printf(&out, "$ %.*s\n", (int)job->len, job->command);

    if (r == 0 && !job->done)
        r = pf_buf_append_text(&out, "not run, because one before it failed");
    else if (r == 0 && job->r < 0)
        r = pf_buf_append_text(&out, job->err.msg);
    else if (r == 0)
        r = pinfold_execute_result_format(&job->result, &text, err);
    if (r == 0 && text.data)
        r = pf_buf_append(&out, text.data, text.len);
    r = r < 0 ? pf_fail_nomem(err) : pf_tool_result_text(ret, &out, err);
    pf_buf_done(&out);
    return r;
}

static int report_batch(const struct batch *batch, struct pinfold_tool_result *ret,
                        struct pinfold_error *err)
{
    size_t good = 0, bad = 0;
    char summary[96];
    int r;

    for (size_t i = 0; i < batch->count; i++) {
        const struct job *job = &batch->jobs[i];

        good += job->done && job->r == 0 && job->result.exit_code == 0;
        bad += job->done && (job->r < 0 || job->result.exit_code != 0);
    }
    ret->is_error = bad > 0 && !batch->ignore_errors;
    snprintf(summary, sizeof(summary), "%zu command(s): %zu succeeded, %zu failed", batch->count,
             good, bad);
    r = pinfold_tool_result_add_text(ret, summary, strlen(summary), err);
    for (size_t i = 0; r == 0 && i < batch->count; i++)
        r = report_job(&batch->jobs[i], ret, err);
    return r;
}

int pf_host_shell(void *host, struct pinfold_tool_call *call, struct pinfold_tool_result *ret,
                  struct pinfold_error *err)
{
    PF_CLEANUP(batch_done) struct batch batch = { 0 };
    int r = read_batch(host, call, &batch, err);

    if (r < 0)
        return r;
    if (!agreed(&batch, ret))
        return 0;
    run_batch(&batch);
    return report_batch(&batch, ret, err);
}

/* ---- python_repl ---- */

/* What is kept between calls: the source of imports, functions and classes, because pickle knows
 * those by name alone, and the pickled variables. */
static const char driver[] =
        "import ast, pickle, sys, traceback\n"
        "base = sys.argv[1]\n"
        "code = open(base + '/code', encoding='utf-8').read()\n"
        "try:\n"
        "    defs, kept = pickle.load(open(base + '/state', 'rb'))\n"
        "except FileNotFoundError:\n"
        "    defs, kept = [], {}\n"
        "space = {'__name__': '__main__', '__builtins__': __builtins__}\n"
        "main = sys.modules['__main__'].__dict__\n"
        "for text in defs:\n"
        "    try:\n"
        "        exec(text, space)\n"
        "    except Exception:\n"
        "        pass\n"
        "main.update({k: v for k, v in space.items() if k != '__builtins__'})\n"
        "for name, data in kept.items():\n"
        "    try:\n"
        "        space[name] = pickle.loads(data)\n"
        "    except Exception:\n"
        "        pass\n"
        "status = 0\n"
        "try:\n"
        "    exec(compile(code, '<code>', 'exec'), space)\n"
        "except SystemExit as end:\n"
        "    status = end.code if isinstance(end.code, int) else int(end.code is not None)\n"
        "except BaseException:\n"
        "    traceback.print_exc()\n"
        "    status = 1\n"
        "try:\n"
        "    for node in ast.parse(code).body:\n"
        "        if isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef,\n"
        "                             ast.AsyncFunctionDef)):\n"
        "            defs.append(ast.unparse(node))\n"
        "except (SyntaxError, ValueError):\n"
        "    pass\n"
        "kept = {}\n"
        "main.update({k: v for k, v in space.items() if k != '__builtins__'})\n"
        "for name, value in space.items():\n"
        "    if name.startswith('__') or type(value).__name__ in ('module', 'function', 'type'):\n"
        "        continue\n"
        "    try:\n"
        "        kept[name] = pickle.dumps(value)\n"
        "    except Exception:\n"
        "        pass\n"
        "pickle.dump((defs, kept), open(base + '/state', 'wb'))\n"
        "sys.exit(status)\n";

/* The directory of the state, with the code to run in it. */
static int prepare_python(struct pf_host *host, const char *code, size_t len, bool reset,
                          const char **ret_dir, struct pinfold_error *err)
{
    _cleanup_close_ int dir = -1;
    int r = 0;

    if (!host->python)
        r = pinfold_temp_workspace_new(&host->python, err);
    if (r < 0)
        return r;
    *ret_dir = pinfold_temp_workspace_path(host->python);
    dir = pf_root_open(*ret_dir, false, NULL, err);
    if (dir < 0)
        return dir;
    if (reset)
        (void)pf_file_remove(dir, "state", NULL); /* there may be none */
    return pf_file_write(dir, "code", code, len, false, NULL, err);
}

static int run_python(struct pf_host *host, struct pinfold_tool_call *call,
                      struct pinfold_execute_result *result, struct pinfold_error *err)
{
    const char *dir = NULL;
    size_t len;
    const char *code = pinfold_tool_call_string(call, "code", &len);
    int r = prepare_python(host, code, len, pinfold_tool_call_bool(call, "reset_state", false),
                           &dir, err);

    if (r < 0)
        return r;
    return pf_host_run(host,
                       &(struct pf_host_command){
                               .argv = (const char *const[]){ "python3", "-c", driver, dir, NULL },
                               .timeout_seconds = pf_host_timeout() },
                       result, call->cancel, err);
}

int pf_host_python(void *ctx, struct pinfold_tool_call *call, struct pinfold_tool_result *ret,
                   struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_execute_result_done) struct pinfold_execute_result result = { 0 };
    PF_CLEANUP(pinfold_bytes_done) struct pinfold_bytes text = { 0 };
    struct pf_buf question = PF_BUF_INIT(PF_BUF_UNLIMITED);
    struct pf_host *host = ctx;
    const char *code;
    bool yes;
    int r = pf_tool_call_text(call, "code", &code, err);

    if (r < 0) /* the question would show less than what runs */
        return r;
    r = pf_buf_printf(&question, "Run this Python code on this host, without isolation?\n%s", code);
    yes = r == 0 && pf_host_consent(host,
                                    &(struct pf_consent){ .tool = "python_repl",
                                                          .question = question.data,
                                                          .strip = true,
                                                          .non_interactive = true,
                                                          .explain = true },
                                    ret);
    pf_buf_done(&question);
    if (r < 0)
        return pf_fail_nomem(err);
    if (!yes)
        return 0;
    pthread_mutex_lock(&host->python_turn); /* the code of two calls would share one state */
    r = run_python(host, call, &result, err);
    pthread_mutex_unlock(&host->python_turn);
    if (r == 0)
        r = pinfold_execute_result_format(&result, &text, err);
    ret->is_error = result.exit_code != 0;
    return r < 0 ? r : pinfold_tool_result_add_text(ret, text.data, text.len, err);
}

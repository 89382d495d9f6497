/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The modes of file_read that are more than reading one file: diff, time_machine and document.
 * The first two are the work of diff and git. file_read asks nobody for consent, so that neither
 * may be made to run anything else: not by what the tool environment has set, and not by what a
 * repository's own settings name.
 */
#include "agent/host.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/random.h"
#include "base/strings.h"
#include "proc/env.h"
#include "tree/file.h"

#define RUN_SECONDS 60

enum { REVISIONS = 5, REVISIONS_MAX = 100, COMPARED_MAX = 64 * 1024 * 1024 };

/* Nothing of this process's environment but where programs and settings are. */
static char **quiet_env(void)
{
    static const char *const fixed[] = {
        "LC_ALL=C.UTF-8",
        "GIT_TERMINAL_PROMPT=0",
        "GIT_OPTIONAL_LOCKS=0",
        "GIT_NO_LAZY_FETCH=1",
        "GIT_ALLOW_PROTOCOL=none", /* a partial clone fetches nothing, by whatever helper */
        NULL,
    };
    static const char *const kept[] = { "PATH=", "HOME=", "XDG_CONFIG_HOME=" };
    const char *inherited[PF_COUNT(kept) + 1] = { NULL };
    size_t count = 0;

    for (size_t i = 0; i < PF_COUNT(kept); i++)
        for (char **entry = environ; *entry; entry++)
            if (strncmp(*entry, kept[i], strlen(kept[i])) == 0) {
                inherited[count++] = *entry;
                break;
            }
    return pf_env_merge((const char *const *const[]){ inherited, fixed }, 2);
}

static int run(struct pf_host *host, const char *const *argv, const char *dir,
               struct pinfold_cancel *cancel, struct pinfold_execute_result *ret,
               struct pinfold_error *err)
{
    _cleanup_strv_ char **env = quiet_env();

    if (!env)
        return pf_fail_nomem(err);
    return pf_host_run(host,
                       &(struct pf_host_command){ .argv = argv,
                                                  .env = (const char *const *)env,
                                                  .dir = dir,
                                                  .timeout_seconds = RUN_SECONDS },
                       ret, cancel, err);
}

/* What a program wrote, and whether that is all. */
static int add_output(struct pf_buf *out, const struct pinfold_execute_result *result,
                      const char *nothing)
{
    int r = result->output_len > 0 ? pf_buf_append(out, result->output, result->output_len)
                                   : pf_buf_append_text(out, nothing);

    return r == 0 && result->truncated ? pf_buf_append_text(out, "\n[There is more.]") : r;
}

/* ---- diff ---- */

/* Both must be files, or both directories: what is neither could keep diff waiting. */
static int check_pair(const char *a, const char *b, struct pinfold_error *err)
{
    const char *const paths[] = { a, b };
    struct stat st[2];

    for (size_t i = 0; i < 2; i++) {
        if (stat(paths[i], &st[i]) < 0)
            return pf_fail_os(err, errno, "diff \"%s\"", PF_QUOTE(paths[i]));
        if (S_ISREG(st[i].st_mode) && st[i].st_size > COMPARED_MAX)
            return pf_fail(err, PINFOLD_EVALUE, "diff \"%s\": it has more than %d bytes",
                           PF_QUOTE(paths[i]), COMPARED_MAX);
    }
    if ((S_ISREG(st[0].st_mode) && S_ISREG(st[1].st_mode)) ||
        (S_ISDIR(st[0].st_mode) && S_ISDIR(st[1].st_mode)))
        return 0;
    return pf_fail(err, PINFOLD_EVALUE,
                   "diff: \"%s\" and \"%s\" are neither two files nor two directories", PF_QUOTE(a),
                   PF_QUOTE(b));
}

int pf_host_diff(struct pf_host *host, struct pinfold_tool_call *call, const char *path,
                 struct pf_buf *out, struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_execute_result_done) struct pinfold_execute_result result = { 0 };
    const char *other = pinfold_tool_call_string(call, "comparison_path", NULL);
    _cleanup_free_ char *a = NULL, *b = NULL;
    int r;

    if (!other || !*other)
        return pf_fail(err, PINFOLD_EVALUE, "the mode diff needs a comparison_path");
    r = pf_path_expand(path, &a, err);
    if (r == 0)
        r = pf_path_expand(other, &b, err);
    if (r == 0)
        r = check_pair(a, b, err);
    if (r == 0)
        r = run(host, (const char *const[]){ "diff", "-u", "-r", "--", a, b, NULL }, NULL,
                call->cancel, &result, err);
    if (r < 0)
        return r;
    if (result.exit_code > 1) /* 1: they differ */
        return pf_fail(err, PINFOLD_EVALUE, "diff failed (%d): %s", result.exit_code,
                       PF_QUOTE(result.output));
    return add_output(out, &result, "[There is no difference.]") < 0 ? pf_fail_nomem(err) : 0;
}

/* ---- time_machine ---- */

static int add_time(struct pf_buf *out, const char *what, const struct statx_timestamp *time)
{
    char text[32] = "unknown";
    time_t seconds = (time_t)time->tv_sec;
    struct tm utc;

    if (gmtime_r(&seconds, &utc))
        (void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
    return pf_buf_printf(out, "%s %s\n", what, text);
}

static int show_dates(const char *path, struct pf_buf *out, struct pinfold_error *err)
{
    struct statx st;
    int r;

    if (statx(AT_FDCWD, path, 0, STATX_BASIC_STATS | STATX_BTIME, &st) < 0)
        return pf_fail_os(err, errno, "look at \"%s\"", PF_QUOTE(path));
    r = pf_buf_printf(out, "%" PRIu64 " bytes, mode %04o\n", (uint64_t)st.stx_size,
                      (unsigned)st.stx_mode & 07777u);
    if (r == 0 && (st.stx_mask & STATX_BTIME))
        r = add_time(out, "created ", &st.stx_btime);
    if (r == 0)
        r = add_time(out, "modified", &st.stx_mtime);
    if (r == 0)
        r = add_time(out, "accessed", &st.stx_atime);
    return r < 0 ? pf_fail_nomem(err) : 0;
}

/* Settings of a repository can name programs for a difference, a text of one, a signature, or a
 * submodule: all are off. */
static int run_git(struct pf_host *host, struct pinfold_tool_call *call, const char *dir,
                   const char *name, struct pinfold_execute_result *ret, struct pinfold_error *err)
{
    int64_t revisions = pinfold_tool_call_integer(call, "num_revisions", REVISIONS);
    char count[40];

    snprintf(count, sizeof(count), "--max-count=%" PRId64,
             revisions < REVISIONS_MAX ? revisions : REVISIONS_MAX);
    const char *const argv[] = {
        "git",
        "--no-pager",
        "--literal-pathspecs",
        "-c",
        "core.fsmonitor=false",
        "-c",
        "core.hooksPath=/dev/null",
        "log",
        count,
        "--patch",
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
        "--no-show-signature",
        "--submodule=short",
        "--date=iso-strict",
        "--format=format:commit %h%n%an, %ad%n%n    %s%n",
        "--",
        name,
        NULL,
    };

    return run(host, argv, dir, call->cancel, ret, err);
}

static int show_history(struct pf_host *host, struct pinfold_tool_call *call, const char *path,
                        struct pf_buf *out, struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_execute_result_done) struct pinfold_execute_result result = { 0 };
    _cleanup_free_ char *dir = strdup(path);
    char *slash = dir ? strrchr(dir, '/') : NULL;
    const char *name = path + (slash ? slash + 1 - dir : 0);
    int r;

    if (!dir)
        return pf_fail_nomem(err);
    if (slash)
        slash[slash == dir] = '\0';
    if (access(path, F_OK) < 0)
        return pf_fail_os(err, errno, "look at \"%s\"", PF_QUOTE(path));
    r = run_git(host, call, dir, *name ? name : ".", &result, err);
    if (r < 0)
        return r;
    if (result.exit_code != 0)
        return pf_fail(err, PINFOLD_EVALUE,
                       "git log failed (%d), and without git_history there are dates alone: %s",
                       result.exit_code, PF_QUOTE(result.output));
    return add_output(out, &result, "[git knows nothing of it.]") < 0 ? pf_fail_nomem(err) : 0;
}

int pf_host_history(struct pf_host *host, struct pinfold_tool_call *call, const char *path,
                    struct pf_buf *out, struct pinfold_error *err)
{
    _cleanup_free_ char *expanded = NULL;
    int r = pf_path_expand(path, &expanded, err);

    if (r < 0)
        return r;
    return pinfold_tool_call_bool(call, "git_history", true)
                   ? show_history(host, call, expanded, out, err)
                   : show_dates(expanded, out, err);
}

/* ---- document ---- */

static const char *format_of(const char *path)
{
    static const char *const known[] = { "pdf", "csv", "doc", "docx", "xls", "xlsx" };
    const char *extension = strrchr(path, '.');

    for (size_t i = 0; extension && i < PF_COUNT(known); i++)
        if (strcasecmp(extension + 1, known[i]) == 0)
            return known[i];
    return "txt";
}

/* The file's name without its extension and what services do not take, and something that nobody
 * can foresee: a name is read by the model, too. */
static char *neutral_name(const char *path)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    const char *dot = strrchr(base, '.');
    size_t len = dot && dot > base ? (size_t)(dot - base) : strlen(base);
    char random[9], *name;

    pf_random_hex(random, 8);
    if (asprintf(&name, "%.*s-%s", len > 100 ? 100 : (int)len, base, random) < 0)
        return NULL;
    for (char *at = name; *at; at++)
        if (!strchr(allowed, *at))
            *at = '-';
    return name;
}

int pf_host_document(struct pinfold_tool_call *call, const char *path,
                     struct pinfold_tool_result *ret, struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_bytes_done) struct pinfold_bytes data = { 0 };
    const char *format = pinfold_tool_call_string(call, "format", NULL);
    const char *given = pinfold_tool_call_string(call, "neutral_name", NULL);
    _cleanup_free_ char *own = given && *given ? strdup(given) : neutral_name(path);
    int r = own ? pf_host_read_file(path, &data, call->cancel, err) : pf_fail_nomem(err);

    if (r < 0)
        return r;
    return pinfold_tool_result_add(
            ret,
            &(struct pinfold_tool_content){
                    .kind = PINFOLD_TOOL_DOCUMENT,
                    .data = data,
                    .format = (char *)(uintptr_t)(format ? format : format_of(path)),
                    .name = own },
            err);
}

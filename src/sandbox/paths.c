/* SPDX-License-Identifier: Apache-2.0 */
/* Deleting and moving whatever a path names, a directory too. */
#include <pinfold/changes.h>

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "sandbox/sandbox.h"

static int refuse_root(const char *operation, const char *path, struct pinfold_error *err)
{
    return strcmp(path, ".") == 0
                   ? pf_fail(err, PINFOLD_EPATH, "%s: it is the workspace itself", operation)
                   : 0;
}

/* ---- by a command, on a backend that has no function for it ---- */

/* What a script exits with, and the error that says. Numbers that the tools do not use. */
static const struct {
    int status, sys_errno;
} outcomes[] = {
    { 101, ENOENT }, { 102, EEXIST }, { 103, EISDIR }, { 104, ENOTEMPTY }, { 105, EINVAL },
};

static int run(struct pinfold_backend *backend, const char *operation, const char *script,
               const char *const operands[3], struct pinfold_cancel *cancel,
               struct pinfold_error *err)
{
    PF_CLEANUP(pinfold_execute_result_done) struct pinfold_execute_result result = { 0 };
    const char *const argv[] = { "/bin/sh",   "-c",        script,      "sh",
                                 operands[0], operands[1], operands[2], NULL };
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;
    int r;

    options.argv = argv;
    r = PF_BACKEND_CALL(backend, err, execute, &options, &result, cancel, err);
    if (r < 0 || result.exit_code == 0)
        return r;
    for (size_t i = 0; i < PF_COUNT(outcomes); i++)
        if (result.exit_code == outcomes[i].status)
            return pf_fail_os(err, outcomes[i].sys_errno, "%s \"%s\"", operation,
                              PF_QUOTE(operands[0]));
    return pf_fail(err, PINFOLD_EBACKEND, "%s \"%s\": status %d: %s", operation,
                   PF_QUOTE(operands[0]), result.exit_code,
                   PF_QUOTE(result.stderr_text ? result.stderr_text : ""));
}

static int remove_dir(struct pinfold_backend *backend, const char *path, bool recursive,
                      struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    static const char one[] = "[ -d \"./$1\" ] || exit 101\n"
                              "[ -z \"$(ls -A \"./$1\")\" ] || exit 104\n"
                              "exec rmdir \"./$1\"";
    static const char tree[] = "[ -d \"./$1\" ] || exit 101\nexec rm -rf \"./$1\"";

    if (backend->ops->remove_dir)
        return backend->ops->remove_dir(backend->state, path, recursive, cancel, err);
    return run(backend, "remove", recursive ? tree : one, (const char *const[3]){ path, "", "" },
               cancel, err);
}

static int move_by_command(struct pinfold_backend *backend, const char *src, const char *dest,
                           bool no_replace, struct pinfold_cancel *cancel,
                           struct pinfold_error *err)
{
    static const char script[] =
            "[ -e \"./$1\" ] || [ -L \"./$1\" ] || exit 101\n"
            "if [ \"$1\" = \"$2\" ]; then [ -z \"$3\" ] && exit 0 || exit 102; fi\n"
            "case \"$2/\" in \"$1\"/*) exit 105;; esac\n"
            "if [ -e \"./$2\" ] || [ -L \"./$2\" ]; then\n"
            "    [ -z \"$3\" ] || exit 102\n"
            "    ! [ -d \"./$2\" ] || [ -L \"./$2\" ] || exit 103\n"
            "fi\n"
            "case $2 in */*) mkdir -p \"./${2%/*}\" || exit;; esac\n"
            "exec mv -fT \"./$1\" \"./$2\"";

    return run(backend, "move", script, (const char *const[3]){ src, dest, no_replace ? "1" : "" },
               cancel, err);
}

static int move_path(struct pinfold_backend *backend, const char *src, const char *dest,
                     bool no_replace, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    bool runs = backend->ops->execute;
    struct pinfold_error one = PINFOLD_ERROR_INIT;
    int r;

    if (!backend->ops->move_path)
        return runs || no_replace
                       ? move_by_command(backend, src, dest, no_replace, cancel, err)
                       : PF_BACKEND_CALL(backend, err, move_file, src, dest, cancel, err);
    r = backend->ops->move_path(backend->state, src, dest, no_replace, cancel, &one);
    if (r == -PINFOLD_EOS && one.sys_errno == EXDEV && runs)
        return move_by_command(backend, src, dest, no_replace, cancel, err);
    if (r < 0 && err)
        *err = one;
    return r;
}

/* ---- the operations ---- */

static int delete_path(struct pinfold_backend *backend, const char *path, bool recursive,
                       struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pinfold_error one = PINFOLD_ERROR_INIT;
    int r = refuse_root("delete", path, err);

    if (r < 0)
        return r;
    r = PF_BACKEND_CALL(backend, &one, remove_file, path, cancel, &one);
    if (r < 0 && one.sys_errno == EISDIR)
        r = remove_dir(backend, path, recursive, cancel, &one);
    if (r < 0 && one.sys_errno == ENOTEMPTY && !recursive)
        pf_fail_os(&one, ENOTEMPTY, "delete \"%s\" without all that is in it", PF_QUOTE(path));
    if (r < 0 && err)
        *err = one;
    return r;
}

int pinfold_sandbox_delete(struct pinfold_sandbox *sandbox, const char *path, unsigned flags,
                           struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pinfold_audit_event event = PF_AUDIT_EVENT_INIT("sandbox.delete_files");
    _cleanup_operation_ struct pf_session *session = NULL;
    struct pinfold_error local = PINFOLD_ERROR_INIT;
    _cleanup_free_ char *normalised = NULL;
    int r;

    if (flags & ~(unsigned)PINFOLD_DELETE_RECURSIVE)
        return pf_fail(err, PINFOLD_EVALUE, "delete: unknown flags %#x", flags);
    event.path = path;
    r = pf_sandbox_begin_change(sandbox, &event, &session, err);
    if (r < 0)
        return r;
    r = pf_sandbox_path(session, path, &normalised, &local);
    if (r == 0)
        r = delete_path(pf_session_backend(session), normalised, flags & PINFOLD_DELETE_RECURSIVE,
                        cancel, &local);
    event.path = normalised ? normalised : path;
    pf_sandbox_audit(sandbox, session, &event, r, &local);
    if (r < 0 && err)
        *err = local;
    return r;
}

int pinfold_sandbox_move(struct pinfold_sandbox *sandbox, const char *src, const char *dest,
                         unsigned flags, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pinfold_audit_event event = PF_AUDIT_EVENT_INIT("sandbox.move_file");
    _cleanup_operation_ struct pf_session *session = NULL;
    struct pinfold_error local = PINFOLD_ERROR_INIT;
    _cleanup_free_ char *from = NULL, *to = NULL;
    int r;

    if (flags & ~(unsigned)PINFOLD_MOVE_NO_REPLACE)
        return pf_fail(err, PINFOLD_EVALUE, "move: unknown flags %#x", flags);
    event.path = src;
    event.dest = dest;
    r = pf_sandbox_begin_change(sandbox, &event, &session, err);
    if (r < 0)
        return r;
    r = pf_sandbox_path(session, src, &from, &local);
    if (r == 0)
        r = pf_sandbox_path(session, dest, &to, &local);
    if (r == 0)
        r = refuse_root("move", from, &local);
    if (r == 0)
        r = refuse_root("move", to, &local);
    if (r == 0)
        r = move_path(pf_session_backend(session), from, to, flags & PINFOLD_MOVE_NO_REPLACE,
                      cancel, &local);
    pf_sandbox_audit(sandbox, session, &event, r, &local);
    if (r < 0 && err)
        *err = local;
    return r;
}

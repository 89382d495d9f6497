/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/sandbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"

/* What the audit knows of a command: an argument vector counts as its words joined by blanks. */
int pf_sandbox_describe_command(const char *command, size_t command_len, const char *const *argv,
                                struct pinfold_audit_event *event,
                                char hash[static PF_AUDIT_HASH_DIGITS + 1])
{
    struct pf_buf joined = PF_BUF_INIT(PF_BUF_UNLIMITED);
    const char *text = command ? command : "";
    size_t len = command_len ? command_len : strlen(text);
    int r = 0;

    for (size_t i = 0; argv && argv[i] && r == 0; i++) {
        r = i > 0 ? pf_buf_append_text(&joined, " ") : 0;
        if (r == 0)
            r = pf_buf_append_text(&joined, argv[i]);
    }
    if (argv) {
        text = joined.data ? joined.data : "";
        len = joined.len;
    }
    if (r == 0) {
        event->command_len = (int64_t)len;
        pf_audit_hash(text, len, hash);
        event->command_sha256 = hash;
        event->inferred_op = pf_audit_infer(text, len);
    }
    pf_buf_done(&joined);
    return r;
}

static void audit_execute(struct pinfold_sandbox *sandbox, const struct pf_session *session,
                          const struct pinfold_execute_options *options,
                          const struct pinfold_execute_result *result, int r,
                          const struct pinfold_error *err)
{
    struct pinfold_audit_event event = PF_AUDIT_EVENT_INIT("sandbox.execute");
    char hash[PF_AUDIT_HASH_DIGITS + 1];

    if (!sandbox->audit.emit) /* hashing a large command for nobody is wasted time */
        return;
    /* No memory: the event lacks the hash. */
    (void)pf_sandbox_describe_command(options->command, options->command_len, options->argv, &event,
                                      hash);
    event.cwd = options->cwd ? options->cwd : ".";
    if (r == 0 || r == -PINFOLD_ECANCELLED) {
        event.exit_code = result->exit_code;
        event.truncated = result->truncated;
        event.timed_out = result->timed_out;
        event.duration_ns = result->duration_ns;
        if (result->peak_bytes > 0) { /* else nobody counted, and 0 would be a lie */
            event.cpu_ns = result->cpu_ns;
            event.peak_bytes = (int64_t)result->peak_bytes;
        }
        event.limit = result->limit ? pinfold_limit_name(result->limit) : NULL;
        event.bytes = (int64_t)(result->stdout_bytes + result->stderr_bytes);
    }
    pf_sandbox_audit(sandbox, session, &event, r, err);
}

int pinfold_sandbox_execute(struct pinfold_sandbox *sandbox,
                            const struct pinfold_execute_options *options,
                            struct pinfold_execute_result *ret_result,
                            struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    _cleanup_operation_ struct pf_session *session = NULL;
    struct pinfold_execute_options normalised = *options;
    struct pinfold_error local = PINFOLD_ERROR_INIT;
    _cleanup_free_ char *cwd = NULL;
    int r;

    memset(ret_result, 0, sizeof(*ret_result));
    if (options->size != sizeof(*options))
        return pf_fail(err, PINFOLD_EVALUE, "execute: options of %zu bytes, not %zu", options->size,
                       sizeof(*options));
    if (!options->command == !options->argv)
        return pf_fail(err, PINFOLD_EVALUE, "execute: give either a command or an argv");
    r = pf_sandbox_begin(sandbox, &session, err);
    if (r < 0)
        return r;
    if (options->cwd)
        r = pf_sandbox_path(session, options->cwd, &cwd, &local);
    normalised.cwd = cwd;
    if (r == 0)
        r = PF_BACKEND_CALL(pf_sandbox_reader(sandbox, session), &local, execute, &normalised,
                            ret_result, cancel, &local);
    audit_execute(sandbox, session, options, ret_result, r, &local);
    if (r < 0 && err)
        *err = local;
    return r;
}

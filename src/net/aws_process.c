/* SPDX-License-Identifier: Apache-2.0 */
/* credential_process: a command of the profile's that prints credentials. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "net/aws_sources.h"
#include "proc/run.h"

#define STDERR_MAX 256

/* What the command says. */
struct output {
    struct pf_buf out; /* has all its room from the start */
    struct pf_buf complaint;
    bool too_large;
};

static int take_output(void *ctx, enum pinfold_stream stream, const char *data, size_t len)
{
    struct output *output = ctx;

    if (stream == PINFOLD_STDERR) {
        size_t room = output->complaint.limit - output->complaint.len;
        pf_buf_append(&output->complaint, data, len < room ? len : room);
        return 0;
    }
    output->too_large = pf_buf_append(&output->out, data, len) < 0;
    return output->too_large ? -1 : 0;
}

static void output_done(struct output *output)
{
    pf_aws_wipe(&output->out);
    pf_aws_wipe(&output->complaint);
}

static int fail(const char *profile, const char *wrong, struct pinfold_error *err)
{
    return pf_fail(err, PINFOLD_EVALUE, "AWS profile %s, credential_process: %s", PF_QUOTE(profile),
                   wrong);
}

/* The command's exit code and the first line of what it complained of. */
static int fail_exit(const char *profile, int code, const struct output *output,
                     struct pinfold_error *err)
{
    const char *said = output->complaint.data ? output->complaint.data : "";
    char line[PF_QUOTE_MAX];

    snprintf(line, sizeof(line), "%.*s", (int)strcspn(said, "\r\n"), said);
    return pf_fail(err, PINFOLD_EBACKEND, "AWS profile %s, credential_process: exit code %d%s%s",
                   PF_QUOTE(profile), code, *line ? ": " : "", PF_QUOTE(line));
}

static int take_credentials(const char *profile, const struct output *output,
                            struct pf_aws_credentials *ret, struct pinfold_error *err)
{
    static const struct pf_aws_json_names names = {
        "AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration", false, false, false
    };
    const char *wrong;
    _cleanup_json_ json_t *json = pf_aws_json_load(output->out.data, output->out.len, &wrong);
    const json_t *version = json_object_get(json, "Version");

    if (!json)
        return fail(profile, wrong, err);
    if (!json_is_integer(version) || json_integer_value(version) != 1)
        return fail(profile, "Version is not 1", err);
    return pf_aws_json_keys(json, &names, "credential_process", "profile (process)", ret, err);
}

static int run(const struct pf_aws_ask *ask, const char *const *words, struct output *output,
               struct pinfold_execute_result *result, struct pinfold_error *err)
{
    struct pf_launcher *launcher = NULL;
    int64_t left = ask->deadline == PF_NEVER ? PF_NEVER : ask->deadline - pf_clock_now();
    const struct pf_run_request request = {
        .argv = words,
        .envp = (const char *const *)environ,
        .cwd_fd = -1,
        .timeout_ns = left > 0 ? left : 1,
        .discard = true,
        .secret = true,
        .on_output = take_output,
        .on_output_ctx = output,
        .cancel = ask->cancel,
    };
    int r = pf_launcher_new(&launcher, err);

    if (r == 0)
        r = pf_run(launcher, &request, result, err);
    pf_launcher_free(launcher); /* and what the command has left running */
    return r;
}

static void wipe_path(char **text)
{
    free(TAKE(*text));
}

int pf_aws_process(struct pf_aws_ask *ask, const char *profile, struct pf_aws_credentials *ret,
                   struct pinfold_error *err)
{
    const char *command = pf_aws_profile_get(ask, profile, "credential_process");
    const char *words[PF_AWS_WORDS_MAX + 1], *wrong = NULL;
    PF_CLEANUP(wipe_path) char *copy = NULL;
    PF_CLEANUP(output_done)
    struct output output = { PF_BUF_INIT(PF_AWS_REPLY_MAX), PF_BUF_INIT(STDERR_MAX), false };
    PF_CLEANUP(pinfold_execute_result_done) struct pinfold_execute_result result = { 0 };
    int r;

    if (!command)
        return 0;
    copy = strdup(command);
    if (!copy || pf_buf_reserve(&output.out, PF_AWS_REPLY_MAX) < 0)
        return pf_fail_nomem(err);
    r = pf_aws_split(copy, words, &wrong);
    if (r <= 0)
        return fail(profile, r < 0 ? wrong : "it is empty", err);
    r = run(ask, words, &output, &result, err);
    if (output.too_large)
        return fail(profile, "it prints more than credentials can be", err);
    if (r < 0)
        return pf_wrap(err, r, "credential_process");
    if (result.timed_out)
        return pf_fail(err, PINFOLD_ETIMEOUT,
                       "AWS profile %s, credential_process: it has not ended in time",
                       PF_QUOTE(profile));
    if (result.exit_code != 0)
        return fail_exit(profile, result.exit_code, &output, err);
    return take_credentials(profile, &output, ret, err);
}

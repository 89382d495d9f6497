/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/look.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strings.h"

static int fetch(struct pf_look *look, const struct pf_session *session,
                 const struct pf_sync_config *config, enum pf_look_scope scope,
                 struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    static const char *const all[] = { "*", NULL }, *const none[] = { NULL };
    PF_CLEANUP(pinfold_sync_result_done) struct pinfold_sync_result result = { 0 };
    struct pinfold_sync_request request = {
        .size = sizeof(request),
        .links = true,
        .include = scope != PF_LOOK_SYNCED ? all : (const char *const *)config->include,
        .exclude = scope == PF_LOOK_EVERYTHING ? none : (const char *const *)config->exclude,
    };
    int r = pinfold_temp_workspace_new(&look->copy, err);

    if (r < 0)
        return r;
    look->fetched = true;
    request.dest = pinfold_temp_workspace_path(look->copy);
    r = PF_BACKEND_CALL(pf_session_backend(session), err, sync_artifacts, &request, &result, cancel,
                        err);
    if (r < 0)
        return pf_wrap(err, r, "fetch the workspace");
    look->errors = result.errors;
    result.errors = (struct pinfold_strings){ .items = NULL };
    look->root_fd = open(request.dest, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return look->root_fd < 0 ? pf_fail_os(err, errno, "open what was fetched") : 0;
}

static int read_policy(struct pf_look *look, const struct pf_session *session,
                       struct pf_sync_config *config, struct pinfold_error *err)
{
    int r = pf_session_override_sync(session, NULL, NULL, config, err);

    if (r == 0)
        r = pf_globs_new((const char *const *)config->include, &look->include, err);
    return r == 0 ? pf_globs_new((const char *const *)config->exclude, &look->exclude, err) : r;
}

int pf_look_open(struct pf_look *look, const struct pf_session *session, enum pf_look_scope scope,
                 struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_sync_config_done) struct pf_sync_config config = { 0 };
    struct pinfold_backend *backend = pf_session_backend(session);
    int r = read_policy(look, session, &config, err);

    if (r < 0)
        return r;
    if (!backend->ops->open_root)
        return fetch(look, session, &config, scope, cancel, err);
    return backend->ops->open_root(backend->state, &look->root_fd, &look->upper_fd, cancel, err);
}

int pf_look_keep(struct pf_look *look, const struct pf_session *session, struct pinfold_kept **ret,
                 struct pinfold_error *err)
{
    struct pinfold_kept *kept;

    *ret = NULL;
    if (!look->fetched)
        return 0;
    kept = calloc(1, sizeof(*kept));
    if (!kept)
        return pf_fail_nomem(err);
    kept->session_id = strdup(pf_session_id(session));
    if (!kept->session_id) {
        free(kept);
        return pf_fail_nomem(err);
    }
    kept->copy = TAKE(look->copy);
    kept->errors = look->errors;
    look->errors = (struct pinfold_strings){ .items = NULL };
    *ret = kept;
    return 0;
}

int pf_look_open_kept(struct pf_look *look, const struct pf_session *session,
                      const struct pinfold_kept *kept, struct pinfold_error *err)
{
    PF_CLEANUP(pf_sync_config_done) struct pf_sync_config config = { 0 };
    int r = pf_kept_check(kept, session, err);

    if (r == 0)
        r = read_policy(look, session, &config, err);
    if (r < 0)
        return r;
    if (pf_strings_copy(&look->errors, &kept->errors) < 0)
        return pf_fail_nomem(err);
    look->fetched = true;
    look->root_fd =
            open(pinfold_temp_workspace_path(kept->copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return look->root_fd < 0 ? pf_fail_os(err, errno, "open what was fetched") : 0;
}

void pf_kept_free(struct pinfold_kept *kept)
{
    if (!kept)
        return;
    free(kept->session_id);
    pinfold_temp_workspace_free(kept->copy, NULL);
    pinfold_strings_done(&kept->errors);
    free(kept);
}

void pf_look_done(struct pf_look *look)
{
    if (look->root_fd >= 0)
        close(look->root_fd);
    if (look->upper_fd >= 0)
        close(look->upper_fd);
    pf_globs_free(look->include);
    pf_globs_free(look->exclude);
    pinfold_strings_done(&look->errors);
    pinfold_temp_workspace_free(look->copy, NULL);
    *look = (struct pf_look)PF_LOOK_INIT;
}

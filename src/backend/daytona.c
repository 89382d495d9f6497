/* SPDX-License-Identifier: Apache-2.0 */
/* DaytonaSandboxTemplate and the backends it builds: configuration, and the tables. */
#include "backend/daytona.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strings.h"
#include "proc/env.h"

enum { AUTO_STOP = 15, AUTO_DELETE = 1440, CREATE = 60, CREATE_IMAGE = 600, OUTPUT = 100000 };
#define TIMEOUT 900.0

static const char class_name[] = "DaytonaSandboxTemplate";
static const struct pinfold_backend_ops template_ops, sandbox_ops;

static void box_free(void *state)
{
    struct pf_dt_box *box = state;

    if (!box)
        return;
    pf_daytona_toolbox_done(&box->toolbox);
    pf_daytona_free(box->client);
    pf_http_free(box->http);
    pf_daytona_config_done(&box->config);
    pinfold_cancel_free(box->stop);
    if (!box->kept) /* in a fork: the keeper, which is not there, still waits for it */
        pthread_cond_destroy(&box->changed);
    pthread_mutex_destroy(&box->lock);
    pthread_mutex_destroy(&box->waking);
    pf_strv_free(box->env);
    pf_strv_free(box->labels);
    free(box->workspace_id);
    free(box->snapshot);
    free(box->image);
    free(box->network_allow_list);
    free(box->domain_allow_list);
    free(box->id);
    free(box->root);
    free(box->scratch);
    free(box->storage_key);
    free(box);
}

static void box_freep(struct pf_dt_box **box)
{
    box_free(*box);
}

static struct pf_dt_box *box_new(void)
{
    struct pf_dt_box *box = calloc(1, sizeof(*box));

    if (!box)
        return NULL;
    pf_clock_cond_init(&box->changed);
    pthread_mutex_init(&box->lock, NULL);
    pthread_mutex_init(&box->waking, NULL);
    return box;
}

static bool copy_options(struct pf_dt_box *box, const struct pinfold_daytona_options *from)
{
    unsigned create = from->image ? CREATE_IMAGE : CREATE;

    box->timeout_seconds = from->timeout_seconds > 0 ? from->timeout_seconds : TIMEOUT;
    box->auto_stop_minutes = from->auto_stop_minutes ? from->auto_stop_minutes : AUTO_STOP;
    box->auto_delete_minutes = from->auto_delete_minutes ? from->auto_delete_minutes : AUTO_DELETE;
    box->create_timeout_seconds =
            from->create_timeout_seconds ? from->create_timeout_seconds : create;
    box->network_block_all = from->network_block_all;
    box->max_output_bytes = from->max_output_bytes ? from->max_output_bytes : OUTPUT;
    box->env = pf_strv_copy(from->env);
    box->labels = pf_strv_copy(from->labels);
    return box->env && box->labels && pf_text_copy(&box->snapshot, from->snapshot) &&
           pf_text_copy(&box->image, from->image) &&
           pf_text_copy(&box->network_allow_list, from->network_allow_list) &&
           pf_text_copy(&box->domain_allow_list, from->domain_allow_list);
}

static int check_options(const struct pinfold_daytona_options *options, struct pinfold_error *err)
{
    const char *image = options->image;
    int r;

    if (options->size != sizeof(*options))
        return pf_fail(err, PINFOLD_EVALUE, "%s: options of %zu bytes, not %zu", class_name,
                       options->size, sizeof(*options));
    if (isnan(options->timeout_seconds) || options->timeout_seconds < 0)
        return pf_fail(err, PINFOLD_EVALUE, "%s: timeout must be more than 0 seconds, not %g",
                       class_name, options->timeout_seconds);
    if (options->auto_stop_minutes < -1 || options->auto_delete_minutes < -1)
        return pf_fail(err, PINFOLD_EVALUE, "%s: an interval of less than -1 minutes", class_name);
    if (options->snapshot && image)
        return pf_fail(err, PINFOLD_EVALUE, "%s: a snapshot and an image: only one can be",
                       class_name);
    /* It becomes a line of a Dockerfile. */
    if (image && (!*image || strpbrk(image, " \t\r\n\\#")))
        return pf_fail(err, PINFOLD_EVALUE, "%s: no image: \"%s\"", class_name, PF_QUOTE(image));
    r = pf_env_check(options->env, err);
    return r < 0 ? r : pf_env_check(options->labels, err);
}

/* Everything but what the service says later. */
static int box_make(const struct pinfold_daytona_options *options, struct pf_dt_box **ret,
                    struct pinfold_error *err)
{
    PF_CLEANUP(box_freep) struct pf_dt_box *box = box_new();
    const struct pf_daytona_options daytona = {
        .api_key = options->api_key,
        .api_url = options->api_url,
        .jwt_token = options->jwt_token,
        .organization_id = options->organization_id,
        .target = options->target,
    };
    int r;

    if (!box || !copy_options(box, options))
        return pf_fail_nomem(err);
    r = pf_daytona_configure(&daytona, &box->config, err);
    if (r == 0)
        r = pf_http_new(NULL, &box->http, err);
    if (r == 0)
        r = pf_daytona_new(&box->config, box->http, &box->client, err);
    if (r == 0)
        *ret = TAKE(box);
    return r;
}

int pinfold_daytona_template_new(const struct pinfold_daytona_options *options,
                                 struct pinfold_backend **ret_backend, struct pinfold_error *err)
{
    static const struct pinfold_daytona_options defaults = PINFOLD_DAYTONA_OPTIONS_INIT;
    PF_CLEANUP(box_freep) struct pf_dt_box *box = NULL;
    int r;

    if (!options)
        options = &defaults;
    r = check_options(options, err);
    if (r == 0)
        r = box_make(options, &box, err);
    if (r == 0)
        r = pinfold_backend_new(&template_ops, box, NULL, ret_backend, err);
    if (r == 0)
        (void)TAKE(box);
    return r;
}

static int build_for_session(void *state, const char *workspace_id,
                             struct pinfold_backend **ret_backend, struct pinfold_error *err)
{
    const struct pf_dt_box *from = state;
    PF_CLEANUP(box_freep) struct pf_dt_box *box = NULL;
    const struct pf_daytona_config *config = &from->config;
    const struct pinfold_daytona_options options = {
        .api_key = config->organization ? NULL : config->token,
        .jwt_token = config->organization ? config->token : NULL,
        .organization_id = config->organization,
        .api_url = config->api_url,
        .target = config->target,
        .snapshot = from->snapshot,
        .image = from->image,
        .env = (const char *const *)from->env,
        .labels = (const char *const *)from->labels,
        .timeout_seconds = from->timeout_seconds,
        .auto_stop_minutes = from->auto_stop_minutes,
        .auto_delete_minutes = from->auto_delete_minutes,
        .create_timeout_seconds = from->create_timeout_seconds,
        .network_block_all = from->network_block_all,
        .network_allow_list = from->network_allow_list,
        .domain_allow_list = from->domain_allow_list,
        .max_output_bytes = from->max_output_bytes,
    };
    int r = box_make(&options, &box, err);

    if (r == 0 && !pf_text_copy(&box->workspace_id, workspace_id))
        r = pf_fail_nomem(err);
    if (r == 0)
        r = pinfold_backend_new(&sandbox_ops, box, NULL, ret_backend, err);
    if (r == 0)
        (void)TAKE(box);
    return r;
}

/* ---- life ---- */

static int box_create(void *state, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pf_dt_box *box = state;
    int r;

    if (!box->workspace_id)
        return pf_fail(err, PINFOLD_ESTART, "%s: it is a template: build_for_session() first",
                       class_name);
    box->owner = getpid();
    pinfold_cancel_free(TAKE(box->stop));
    r = pinfold_cancel_new(&box->stop, err);
    box->stopped = box->lost = box->ending = false;
    return r < 0 ? r : pf_dt_create(box, cancel, err);
}

static int box_stop_commands(void *state, struct pinfold_error *err)
{
    struct pf_dt_box *box = state;

    (void)err;
    if (box->owner != getpid() || !box->stop)
        return 0; /* the token is the parent's, too */
    pthread_mutex_lock(&box->lock);
    box->stopped = true;
    pthread_mutex_unlock(&box->lock);
    pinfold_cancel_fire(box->stop);
    return 0;
}

static int box_close(void *state, struct pinfold_error *err)
{
    struct pf_dt_box *box = state;

    if (box->owner != getpid())
        return 0;
    box_stop_commands(state, NULL);
    return pf_dt_delete(box, err);
}

static const char *box_root(void *state)
{
    return ((struct pf_dt_box *)state)->root;
}

static const char *box_storage_key(void *state)
{
    return ((struct pf_dt_box *)state)->storage_key;
}

int pinfold_daytona_sandbox(const struct pinfold_backend *backend, char **ret_id,
                            struct pinfold_error *err)
{
    const struct pf_dt_box *box;

    if (backend->ops != &sandbox_ops)
        return pf_fail(err, PINFOLD_ETYPE, "backend %s is no sandbox of Daytona", backend->id);
    box = backend->state;
    if (!box->id)
        return pf_dt_fail_start(box, err);
    return pf_text_copy(ret_id, box->id) ? 0 : pf_fail_nomem(err);
}

/* What a sandbox can do stands in the template's table too, where it fails for want of one: whoever
 * asks for execute sees what the template builds. */
#define OPERATIONS                                                                                \
    .size = sizeof(struct pinfold_backend_ops), .create = box_create, .close = box_close,         \
    .stop_commands = box_stop_commands, .read_file = pf_dt_read_file,                             \
    .write_file = pf_dt_write_file, .list_dir = pf_dt_list_dir, .remove_file = pf_dt_remove_file, \
    .move_file = pf_dt_move_file, .seed_workspace = pf_dt_seed, .sync_artifacts = pf_dt_sync,     \
    .upload_files = pf_dt_upload, .download_files = pf_dt_download, .execute = pf_dt_execute,     \
    .workspace_root = box_root, .storage_key = box_storage_key, .free = box_free

static const struct pinfold_backend_ops template_ops = {
    .type_name = class_name,
    .build_for_session = build_for_session,
    OPERATIONS,
};

static const struct pinfold_backend_ops sandbox_ops = {
    .type_name = "DaytonaSandboxBackend",
    OPERATIONS,
};

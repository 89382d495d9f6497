/* SPDX-License-Identifier: Apache-2.0 */
/* Values that sessions and sandboxes keep: where artifacts go, and what a seeding gave. */
#include "sandbox/session.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strings.h"

int pf_sync_config_init(struct pf_sync_config *config, const char *dest,
                        const struct pinfold_sync_policy *policy, struct pinfold_error *err)
{
    struct pinfold_sync_policy used = policy ? *policy : pinfold_default_sync_policy();
    const char *const *lists[2] = { pinfold_default_seed_excludes, used.exclude_patterns };
    int r;

    /* The names of secrets are excluded whatever the policy says: see docs/decisions.md. */
    if (!used.exclude_patterns)
        lists[1] = pinfold_default_policy_excludes;
    if (!used.sync_include_patterns)
        used.sync_include_patterns = pinfold_default_sync_includes;
    r = pinfold_patterns_check(lists[1], err);
    if (r == 0)
        r = pinfold_patterns_check(used.sync_include_patterns, err);
    if (r < 0)
        return r;
    config->dest = dest ? strdup(dest) : NULL;
    config->include = pf_strv_copy(used.sync_include_patterns);
    config->exclude = pf_strv_concat(lists, 2);
    if ((dest && !config->dest) || !config->include || !config->exclude) {
        pf_sync_config_done(config);
        return pf_fail_nomem(err);
    }
    return 0;
}

int pf_sync_config_copy(struct pf_sync_config *to, const struct pf_sync_config *from)
{
    *to = *from;
    to->copy = NULL;
    to->dest = from->dest ? strdup(from->dest) : NULL;
    to->include = pf_strv_copy((const char *const *)from->include);
    to->exclude = pf_strv_copy((const char *const *)from->exclude);
    if ((!from->dest || to->dest) && to->include && to->exclude)
        return 0;
    pf_sync_config_done(to);
    return -PINFOLD_ENOMEM;
}

void pf_sync_config_done(struct pf_sync_config *config)
{
    free(config->dest);
    pf_strv_free(config->include);
    pf_strv_free(config->exclude);
    *config = (struct pf_sync_config){ 0 };
}

int pf_seed_result_copy(struct pinfold_seed_result *to, const struct pinfold_seed_result *from)
{
    to->files_seeded = from->files_seeded;
    to->bytes_seeded = from->bytes_seeded;
    to->mode = from->mode;
    if (from->fallback) {
        to->fallback = strdup(from->fallback);
        if (!to->fallback)
            return -PINFOLD_ENOMEM;
    }
    if (pf_strings_copy(&to->skipped_paths, &from->skipped_paths) < 0)
        return -PINFOLD_ENOMEM;
    return pf_strings_copy(&to->errors, &from->errors);
}

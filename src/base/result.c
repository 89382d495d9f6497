/* SPDX-License-Identifier: Apache-2.0 */
/* Freeing result structs. */
#include <pinfold/result.h>

#include <stdlib.h>
#include <string.h>

void pinfold_bytes_done(struct pinfold_bytes *bytes)
{
    free(bytes->data);
    memset(bytes, 0, sizeof(*bytes));
}

void pinfold_strings_done(struct pinfold_strings *strings)
{
    for (size_t i = 0; i < strings->count; i++)
        free(strings->items[i]);
    free(strings->items);
    memset(strings, 0, sizeof(*strings));
}

bool pinfold_execute_result_success(const struct pinfold_execute_result *result)
{
    return result->exit_code == 0;
}

void pinfold_execute_result_done(struct pinfold_execute_result *result)
{
    free(result->output);
    free(result->stderr_text);
    pinfold_spool_free(result->spool);
    memset(result, 0, sizeof(*result));
}

void pinfold_file_infos_done(struct pinfold_file_infos *infos)
{
    for (size_t i = 0; i < infos->count; i++)
        free(infos->items[i].path);
    free(infos->items);
    memset(infos, 0, sizeof(*infos));
}

void pinfold_transfer_results_done(struct pinfold_transfer_results *results)
{
    for (size_t i = 0; i < results->count; i++) {
        free(results->items[i].path);
        pinfold_bytes_done(&results->items[i].content);
    }
    free(results->items);
    memset(results, 0, sizeof(*results));
}

void pinfold_seed_result_done(struct pinfold_seed_result *result)
{
    free(result->fallback);
    pinfold_strings_done(&result->skipped_paths);
    pinfold_strings_done(&result->errors);
    memset(result, 0, sizeof(*result));
}

void pinfold_sync_result_done(struct pinfold_sync_result *result)
{
    pinfold_strings_done(&result->errors);
    memset(result, 0, sizeof(*result));
}

void pinfold_plan_done(struct pinfold_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        free(plan->items[i].path);
    free(plan->items);
    memset(plan, 0, sizeof(*plan));
}

void pinfold_sandbox_ref_done(struct pinfold_sandbox_ref *ref)
{
    free(ref->workspace_id);
    free(ref->backend_type);
    free(ref->manager_id);
    memset(ref, 0, sizeof(*ref));
}

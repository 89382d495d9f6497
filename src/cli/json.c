/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/json.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/say.h"

int pf_json_set(json_t *object, const char *key, json_t *value)
{
    /* Fails for NULL on either side, and always takes value: errors add up to the caller's. */
    return json_object_set_new(object, key, value);
}

json_t *pf_json_name(const char *bytes)
{
    char *text = pf_printable(bytes);
    json_t *value = text ? json_string(text) : NULL;

    free(text);
    return value;
}

static json_t *names(const struct pinfold_strings *strings)
{
    json_t *array = json_array();

    for (size_t i = 0; i < strings->count; i++) {
        if (json_array_append_new(array, pf_json_name(strings->items[i])) < 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

json_t *pf_json_complete(json_t *json, int failures)
{
    if (!failures)
        return json;
    json_decref(json);
    return NULL;
}

static json_t *limits_hit(unsigned hit)
{
    json_t *array = json_array();
    int bad = 0;

    for (int i = 0; i < PINFOLD_LIMIT_COUNT; i++)
        if (hit & 1U << i)
            bad |= json_array_append_new(array,
                                         json_string(pinfold_limit_name((enum pinfold_limit)i)));
    return pf_json_complete(array, bad);
}

/* The limits that are in force, and what holds each. */
static json_t *holders(const enum pinfold_holder *holders)
{
    json_t *object = json_object();
    int bad = 0;

    for (int i = 0; i < PINFOLD_LIMIT_COUNT; i++)
        if (holders[i] != PINFOLD_HOLDER_NONE)
            bad |= pf_json_set(object, pinfold_limit_name((enum pinfold_limit)i),
                               json_string(pinfold_holder_name(holders[i])));
    return pf_json_complete(object, bad);
}

json_t *pf_json_execute(const struct pinfold_execute_result *result)
{
    json_t *object = json_object();
    int bad = 0;

    bad |= pf_json_set(object, "exit_code", json_integer(result->exit_code));
    bad |= pf_json_set(object, "success", json_boolean(pinfold_execute_result_success(result)));
    bad |= pf_json_set(object, "output",
                       json_stringn(result->output ? result->output : "", result->output_len));
    bad |= pf_json_set(
            object, "stderr",
            json_stringn(result->stderr_text ? result->stderr_text : "", result->stderr_len));
    bad |= pf_json_set(object, "truncated", json_boolean(result->truncated));
    bad |= pf_json_set(object, "timed_out", json_boolean(result->timed_out));
    bad |= pf_json_set(object, "supervisor_lost", json_boolean(result->supervisor_lost));
    bad |= pf_json_set(object, "duration_seconds", json_real((double)result->duration_ns / 1e9));
    bad |= pf_json_set(object, "stdout_bytes", json_integer((json_int_t)result->stdout_bytes));
    bad |= pf_json_set(object, "stderr_bytes", json_integer((json_int_t)result->stderr_bytes));
    bad |= pf_json_set(object, "background_processes", json_integer(result->background));
    bad |= pf_json_set(object, "cpu_seconds", json_real((double)result->cpu_ns / 1e9));
    bad |= pf_json_set(object, "peak_bytes", json_integer((json_int_t)result->peak_bytes));
    bad |= pf_json_set(object, "sandbox_peak_bytes",
                       result->sandbox_peak_bytes
                               ? json_integer((json_int_t)result->sandbox_peak_bytes)
                               : json_null());
    bad |= pf_json_set(object, "limit",
                       result->limit ? json_string(pinfold_limit_name(result->limit))
                                     : json_null());
    bad |= pf_json_set(object, "limits_hit", limits_hit(result->limits_hit));
    bad |= pf_json_set(object, "limits_held_by", holders(result->holders));
    return pf_json_complete(object, bad);
}

json_t *pf_json_seed(const struct pinfold_seed_result *result)
{
    json_t *object = json_object();
    int bad = 0;

    bad |= pf_json_set(object, "files_seeded", json_integer((json_int_t)result->files_seeded));
    bad |= pf_json_set(object, "bytes_seeded", json_integer((json_int_t)result->bytes_seeded));
    bad |= pf_json_set(object, "mode",
                       json_string(result->mode == PINFOLD_SEED_OVERLAY ? "overlay" : "copy"));
    if (result->fallback)
        bad |= pf_json_set(object, "fallback", pf_json_name(result->fallback));
    bad |= pf_json_set(object, "skipped_paths", names(&result->skipped_paths));
    bad |= pf_json_set(object, "errors", names(&result->errors));
    return pf_json_complete(object, bad);
}

json_t *pf_json_sync(const struct pinfold_sync_result *result)
{
    json_t *object = json_object();
    int bad = 0;

    bad |= pf_json_set(object, "files_synced", json_integer((json_int_t)result->files_synced));
    bad |= pf_json_set(object, "bytes_synced", json_integer((json_int_t)result->bytes_synced));
    bad |= pf_json_set(object, "errors", names(&result->errors));
    return pf_json_complete(object, bad);
}

const char *pf_plan_word(enum pinfold_plan_action action)
{
    switch (action) {
    case PINFOLD_PLAN_COPY:
        return "copy";
    case PINFOLD_PLAN_OVERWRITE:
        return "overwrite";
    case PINFOLD_PLAN_IDENTICAL:
        return "identical";
    case PINFOLD_PLAN_SKIP:
        return "skip";
    case PINFOLD_PLAN_ERROR:
        break;
    }
    return "error";
}

static json_t *plan_entry(const struct pinfold_plan_entry *entry)
{
    json_t *object = json_object();
    int bad = 0;

    bad |= pf_json_set(object, "path", pf_json_name(entry->path));
    bad |= pf_json_set(object, "action", json_string(pf_plan_word(entry->action)));
    bad |= pf_json_set(object, "size", json_integer(entry->size));
    bad |= pf_json_set(object, "reason", json_string(entry->reason));
    return pf_json_complete(object, bad);
}

json_t *pf_json_plan(const struct pinfold_plan *plan)
{
    json_t *object = json_object();
    json_t *entries = json_array();
    int bad = 0;

    for (size_t i = 0; i < plan->count; i++)
        bad |= json_array_append_new(entries, plan_entry(&plan->items[i]));
    bad |= pf_json_set(object, "files", json_integer((json_int_t)plan->files));
    bad |= pf_json_set(object, "bytes", json_integer((json_int_t)plan->bytes));
    bad |= pf_json_set(object, "entries", entries);
    return pf_json_complete(object, bad);
}

json_t *pf_json_error(const struct pinfold_error *err)
{
    json_t *object = json_object();
    int bad = 0;

    bad |= pf_json_set(object, "type", json_string(pinfold_code_name(err->code)));
    bad |= pf_json_set(object, "message", json_string(err->msg));
    return pf_json_complete(object, bad);
}

int pf_json_print(json_t *object)
{
    char *text = json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    int failed = 0;

    json_decref(object);
    if (!text) {
        pf_say("print the results: out of memory");
        return PF_EXIT_FAILED;
    }
    failed = pf_put(STDOUT_FILENO, text, strlen(text));
    if (!failed)
        failed = pf_put(STDOUT_FILENO, "\n", 1);
    free(text);
    if (failed == EPIPE)
        return PF_EXIT_SIGNAL + SIGPIPE;
    if (failed)
        pf_say("write to stdout: %s", pf_error_words(failed));
    return failed ? PF_EXIT_FAILED : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report.h"

#include <stdbool.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/json.h"
#include "cli/say.h"

struct json_report {
    struct pf_report report; /* first: the table is handed out, and comes back */
    json_t *object;
    bool broken; /* something could not be put into it */
};

static void put(struct pf_report *report, const char *key, json_t *value)
{
    struct json_report *own = (struct json_report *)report;

    if (pf_json_set(own->object, key, value) < 0)
        own->broken = true;
}

static void put_seed(struct pf_report *report, const struct pinfold_seed_result *result)
{
    put(report, "seed", pf_json_seed(result));
}

static void put_execute(struct pf_report *report, const struct pinfold_execute_result *result)
{
    put(report, "execute", pf_json_execute(result));
}

static void put_sync(struct pf_report *report, const struct pinfold_sync_result *result)
{
    put(report, "sync", pf_json_sync(result));
}

static void put_error(struct pf_report *report, const struct pinfold_error *err)
{
    put(report, "error", pf_json_error(err));
}

static void put_kept(struct pf_report *report, const char *workspace)
{
    put(report, "kept_workspace", pf_json_name(workspace));
}

static int print(struct pf_report *report, int status)
{
    struct json_report *own = (struct json_report *)report;
    bool broken = own->broken;
    int r = pf_json_print(own->object);

    free(own);
    if (broken)
        pf_say("out of memory: the report is not complete; the status was %d", status);
    return broken ? PF_EXIT_FAILED : r ? r : status;
}

struct pf_report *pf_report_new_json(void)
{
    struct json_report *own = malloc(sizeof(*own));

    if (!own)
        return NULL;
    *own = (struct json_report){
        .report = { put_seed, put_execute, put_sync, put_error, put_kept, print },
        .object = json_object(),
    };
    if (own->object)
        return &own->report;
    free(own);
    return NULL;
}

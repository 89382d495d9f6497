/* SPDX-License-Identifier: Apache-2.0 */
/* What --json prints at the end of a run. A table, so that a run without it links no JSON. */
#ifndef PF_CLI_REPORT_H
#define PF_CLI_REPORT_H

#include <pinfold/error.h>
#include <pinfold/result.h>

struct pf_report {
    void (*seed)(struct pf_report *report, const struct pinfold_seed_result *result);
    void (*execute)(struct pf_report *report, const struct pinfold_execute_result *result);
    void (*sync)(struct pf_report *report, const struct pinfold_sync_result *result);
    void (*error)(struct pf_report *report, const struct pinfold_error *err);
    void (*kept)(struct pf_report *report, const char *workspace);
    /* Print to stdout, and free. Returns status, or that of pf_json_print() when it could not. */
    int (*print)(struct pf_report *report, int status);
};

/* One in JSON, or NULL when out of memory. */
struct pf_report *pf_report_new_json(void);

#endif

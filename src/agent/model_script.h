/* SPDX-License-Identifier: Apache-2.0 */
/* Inside agent/: scripts, as they are read from a file. docs/models.md has their form. */
#ifndef PF_AGENT_MODEL_SCRIPT_H
#define PF_AGENT_MODEL_SCRIPT_H

#include <pinfold/model.h>

#include "agent/model_json.h"
#include "base/buf.h"

#define PF_SCRIPT_MAX ((size_t)64 * 1024 * 1024)

/* Strings and lists are borrowed from the script's JSON; NULL where there is none. */
struct pf_script_turn {
    json_t *expect; /* an object */
    json_t *reply;  /* a string, or an array of strings and objects */
    json_t *error;  /* an object: how it fails after the reply */
    enum pinfold_stop_reason stop;
    const char *detail;
    struct pinfold_model_usage usage;
    size_t chunk;      /* characters an event; 0: each text whole */
    unsigned delay_ms; /* before each event */
    unsigned left;     /* how often it may still be used; UINT_MAX: for ever */
};

struct pf_script {
    json_t *json;
    char *name;
    bool any_order;
    struct pf_script_turn *turns;
    size_t count;
};

/* Read a script. shown is what errors call it. Returns 0, -PINFOLD_EVALUE or -PINFOLD_ENOMEM; ret
 * is to be emptied in any case. */
int pf_script_read(const char *text, size_t len, const char *shown, struct pf_script *ret,
                   struct pinfold_error *err);
void pf_script_done(struct pf_script *script);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run that dies leaves its sandbox, which costs money. Its labels name the workspace and the
 * process it was made for; the next start of the same workspace deletes it. A process of this
 * machine is known to be gone. Of one elsewhere that cannot be known: but whoever lives keeps his
 * sandbox awake, so one that is stopped is an orphan.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/daytona.h"
#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/number.h"
#include "base/random.h"

#define WORKSPACE_LABEL "pinfold-workspace"
#define OWNER_LABEL "pinfold-owner"
#define LIST_NS (30 * PF_NS_PER_SEC)
enum { MACHINE_DIGITS = 16 };

/* ---- processes ---- */

/* The same text for all processes that see each other's numbers, until the machine boots anew. */
static void machine_id(char ret[static MACHINE_DIGITS + 1])
{
    char text[256] = "", hex[PF_SHA256_HEX + 1];
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    size_t len = file ? fread(text, 1, 64, file) : 0;
    ssize_t more = readlink("/proc/self/ns/pid", text + len, sizeof(text) - 1 - len);

    if (file)
        (void)fclose(file);
    pf_sha256_hex(text, len + (more > 0 ? (size_t)more : 0), hex);
    memcpy(ret, hex, MACHINE_DIGITS);
    ret[MACHINE_DIGITS] = '\0';
}

/* When a process began, in ticks since the boot; 0: there is none. */
static uint64_t start_of(pid_t pid)
{
    char path[64], text[1024] = "";
    const char *at;
    uint64_t start = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    file = fopen(path, "re");
    if (!file)
        return 0;
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    (void)fclose(file);
    at = strrchr(text, ')'); /* a name may hold anything; the 20th field behind it is the one */
    for (int field = 0; at && field < 20; field++)
        at = strchr(at + 1, ' ');
    return at && *at++ == ' ' && pf_take_number(&at, UINT64_MAX, &start) ? start : 0;
}

void pf_dt_owner(char ret[static PF_DT_OWNER_MAX])
{
    char machine[MACHINE_DIGITS + 1], chance[9];

    machine_id(machine);
    pf_random_hex(chance, 8);
    snprintf(ret, PF_DT_OWNER_MAX, "%s-%d-%" PRIu64 "-%s", machine, getpid(), start_of(getpid()),
             chance);
}

enum owner { DEAD, ALIVE, UNKNOWN };

static enum owner look_for_owner(const char *label)
{
    char machine[MACHINE_DIGITS + 1];
    uint64_t pid, start, found;

    machine_id(machine);
    if (!label || strncmp(label, machine, MACHINE_DIGITS) != 0)
        return UNKNOWN;
    label += MACHINE_DIGITS;
    if (*label++ != '-' || !pf_take_number(&label, INT_MAX, &pid) || pid == 0 || *label++ != '-' ||
        !pf_take_number(&label, UINT64_MAX, &start))
        return UNKNOWN;
    found = start_of((pid_t)pid);
    /* A /proc that is mounted with hidepid shows only one's own. */
    if (found == 0 && (kill((pid_t)pid, 0) == 0 || errno != ESRCH))
        return UNKNOWN;
    return found == start ? ALIVE : DEAD;
}

/* ---- labels ---- */

json_t *pf_dt_labels(const struct pf_dt_box *box)
{
    json_t *labels = json_object();
    int r = labels ? 0 : -1;

    for (size_t i = 0; r == 0 && box->labels[i]; i++) {
        const char *equals = strchr(box->labels[i], '=');
        _cleanup_free_ char *name = strndup(box->labels[i], (size_t)(equals - box->labels[i]));
        r = name ? json_object_set_new(labels, name, json_string(equals + 1)) : -1;
    }
    if (r == 0)
        r = json_object_set_new(labels, WORKSPACE_LABEL, json_string(box->workspace_id));
    if (r == 0)
        return labels;
    json_decref(labels);
    return NULL;
}

static bool has_labels(const json_t *sandbox, const json_t *wanted)
{
    const json_t *labels = json_object_get(sandbox, "labels"), *value;
    const char *name;

    json_object_foreach((json_t *)(uintptr_t)wanted, name, value) {
        if (!json_equal(json_object_get(labels, name), value))
            return false;
    }
    return json_is_object(labels);
}

static bool is_orphan(const json_t *sandbox, const json_t *wanted)
{
    static const char *const unused[] = { "stopped", "archived",     "archiving", "paused",
                                          "error",   "build_failed", "stopping" };
    const char *state = json_string_value(json_object_get(sandbox, "state"));
    const char *label =
            json_string_value(json_object_get(json_object_get(sandbox, "labels"), OWNER_LABEL));
    enum owner owner = look_for_owner(label);

    /* The service may not know how to look for labels, and list everything. */
    if (!has_labels(sandbox, wanted) || owner == ALIVE)
        return false;
    if (owner == DEAD)
        return !state || (strcmp(state, "destroyed") != 0 && strcmp(state, "destroying") != 0);
    for (size_t i = 0; state && i < PF_COUNT(unused); i++)
        if (strcmp(state, unused[i]) == 0)
            return true;
    return false;
}

/* ---- deleting ---- */

/* Lists may be old: what the service says of the one sandbox counts. */
static int delete_orphan(struct pf_dt_box *box, const char *id, const json_t *wanted,
                         const struct pf_daytona_call *call, struct pinfold_error *err)
{
    json_auto_t *sandbox = NULL;
    int r = pf_daytona_get(box->client, id, call, &sandbox, err);

    if (r < 0)
        return err->http_status == 404 ? 0 : r;
    if (!is_orphan(sandbox, wanted))
        return 0;
    r = pf_daytona_delete(box->client, id, call, err);
    if (r == 0)
        pf_log(PINFOLD_LOG_INFO, "Daytona: deleted sandbox %s, which an earlier run had left",
               PF_QUOTE(id));
    return r;
}

int pf_dt_delete_orphans(struct pf_dt_box *box, struct pinfold_cancel *cancel,
                         struct pinfold_error *err)
{
    const struct pf_daytona_call call = { .deadline = pf_clock_deadline(LIST_NS),
                                          .cancel = cancel };
    json_auto_t *wanted = pf_dt_labels(box), *list = NULL;
    struct pinfold_error one = PINFOLD_ERROR_INIT;
    const json_t *item;
    size_t i;
    int r;

    if (!wanted)
        return pf_fail_nomem(err);
    r = pf_daytona_list(box->client, wanted, &call, &list, &one);
    json_array_foreach(list, i, item) {
        const char *id = json_string_value(json_object_get(item, "id"));
        if (r == 0 && id && is_orphan(item, wanted))
            r = delete_orphan(box, id, wanted, &call, &one);
    }
    /* A service that is not there, or wants other credentials, is told once, by what follows. */
    if (r < 0 && one.code != PINFOLD_EOS && one.http_status != 401 && one.http_status != 403 &&
        one.http_status != 404)
        pf_log(PINFOLD_LOG_WARNING, "Daytona: sandboxes of earlier runs may be left: %s", one.msg);
    if (r != -PINFOLD_ECANCELLED && r != -PINFOLD_ENOMEM)
        return 0;
    if (err)
        *err = one;
    return r;
}

static int delete_listed(struct pf_dt_box *box, const json_t *wanted, bool *ret_found,
                         struct pinfold_error *err)
{
    const struct pf_daytona_call call = { .deadline = pf_clock_deadline(LIST_NS) };
    json_auto_t *list = NULL;
    const json_t *item;
    size_t i;
    int r = pf_daytona_list(box->client, wanted, &call, &list, err);

    json_array_foreach(list, i, item) {
        const char *id = json_string_value(json_object_get(item, "id"));
        if (r < 0 || !id || !has_labels(item, wanted))
            continue;
        *ret_found = true;
        r = pf_daytona_delete(box->client, id, &call, err);
    }
    return r;
}

void pf_dt_delete_unseen(struct pf_dt_box *box, const char *owner, int tries)
{
    json_auto_t *wanted = json_pack("{s:s}", OWNER_LABEL, owner);
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    bool found = false;
    int r = 0;

    for (int i = 0; wanted && !found && i < tries; i++) {
        if (i > 0)
            pf_cancel_wait(NULL, NULL, pf_clock_deadline(PF_NS_PER_SEC), NULL);
        r = delete_listed(box, wanted, &found, &err);
    }
    if (r < 0)
        pf_log(PINFOLD_LOG_WARNING,
               "Daytona: a sandbox may be left, labelled " OWNER_LABEL "=%s: %s", owner, err.msg);
}

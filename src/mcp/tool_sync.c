/* SPDX-License-Identifier: Apache-2.0 */
/* diff and sync: what has changed since the workspace was seeded, and taking it home. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pinfold/changes.h>

#include "cli/json.h"
#include "cli/say.h"
#include "cli/text_stream.h"
#include "mcp/output.h"
#include "mcp/state.h"
#include "mcp/tape.h"
#include "mcp/tool.h"

/* Paths that are listed at most. */
enum { LISTED = 500, LEFT_OUT = 50 };

/* ---- diff ---- */

static int take_diff(void *ctx, const char *text, size_t len)
{
    pf_mcp_tape_write(ctx, PINFOLD_STDOUT, text, len);
    return 0;
}

static json_t *change_of(const struct pinfold_change *change, const char *path)
{
    json_t *object = json_object();
    int bad = pf_mcp_put(object, "path", json_string(path));

    bad |= pf_mcp_put(object, "change", json_string(pinfold_change_kind_name(change->kind)));
    bad |= pf_mcp_put(object, "syncs", json_boolean(change->syncs));
    return pf_mcp_whole(object, bad);
}

/* One line for each change, and the list of them. */
static void list_changes(const struct pinfold_changes *changes, FILE *to, struct pf_mcp_result *ret)
{
    json_t *list = json_array();
    size_t i;

    for (i = 0; i < changes->count && i < LISTED; i++) {
        const struct pinfold_change *change = &changes->items[i];
        char *path = pf_printable(change->path);

        if (!path) {
            ret->bad = -1;
            break;
        }
        fprintf(to, "%s %s%s%s\n", pinfold_change_kind_name(change->kind), path,
                change->syncs ? "" : "  (sync leaves it)",
                change->seed_changed ? "  (the seed has changed here too)" : "");
        ret->bad |= pf_mcp_push(list, change_of(change, path));
        free(path);
    }
    if (i < changes->count)
        fprintf(to, "[%zu of %zu changes are listed.]\n", i, changes->count);
    if (!changes->count && !changes->errors.count)
        fputs("[Nothing has changed.]\n", to);
    if (changes->seed_changes.count)
        fprintf(to, "[%zu files of the seed have changed there since, and not here.]\n",
                changes->seed_changes.count);
    for (i = 0; i < changes->errors.count && i < 10; i++)
        fprintf(to, "[%s]\n", changes->errors.items[i]);
    pf_mcp_set(ret, "changes", list);
    pf_mcp_set(ret, "count", json_integer((json_int_t)changes->count));
}

/* Whether a path is of what nobody wants to hear of: .git, node_modules and their like. */
static bool is_excluded(const struct pf_options *options, const char *path)
{
    return pinfold_patterns_match(pinfold_default_seed_excludes, path, false, NULL) > 0 ||
           pinfold_patterns_match(options->exclude, path, false, NULL) > 0;
}

/* Changes that a sync leaves alone are not in the diff, but are not to be missed either: a user may
 * wonder why a Makefile does not come home. */
static int list_left_out(struct pf_mcp_call *call, struct pinfold_sandbox *sandbox,
                         const char *path, struct pf_mcp_result *ret, struct pinfold_error *err)
{
    __attribute__((cleanup(pinfold_changes_done))) struct pinfold_changes changes = { 0 };
    struct pinfold_changes_options options = PINFOLD_CHANGES_OPTIONS_INIT;
    const struct pf_options *policy = call->session->server->options;
    json_t *list = json_array();
    size_t count = 0;
    int r = 0;

    options.path = path;
    options.everything = true;
    /* What is elsewhere would be fetched a second time for that. */
    if (pf_options_remote(policy)) {
        pf_mcp_addf(ret, "[What sync leaves alone was not looked for; everything=true shows it.]");
        json_decref(list);
        return 0;
    }
    r = pinfold_sandbox_changes(sandbox, &options, &changes, call->cancel, err);
    for (size_t i = 0; i < changes.count; i++) {
        const struct pinfold_change *change = &changes.items[i];

        if (change->syncs || change->kind == PINFOLD_CHANGE_DELETED ||
            is_excluded(policy, change->path) || count++ >= LEFT_OUT)
            continue;
        ret->bad |= pf_mcp_push(list, pf_json_name(change->path));
    }
    if (count)
        pf_mcp_addf(ret,
                    "[%zu more files have changed that sync leaves alone, because they are not of "
                    "the kinds that come home, or settings of other programs; everything=true "
                    "shows them.]",
                    count);
    pf_mcp_set(ret, "left_out", list);
    return r;
}

/* The diff, or its start; the rest is kept for read_output. Takes tape. */
static int show_diff(struct pf_mcp_session *session, struct pf_mcp_tape *tape,
                     struct pf_mcp_result *ret, struct pinfold_error *err)
{
    size_t size = pf_mcp_shown(session), len;
    char id[PF_MCP_ID_SIZE], *text = malloc(size);
    uint64_t offset = 0, total;

    pf_mcp_tape_end(tape);
    if (!text) {
        pf_mcp_tape_free(tape);
        return pf_mcp_nomem(err);
    }
    len = pf_mcp_tape_read(tape, PINFOLD_STDOUT, &offset, text, size);
    total = pf_mcp_tape_total(tape, PINFOLD_STDOUT);
    if (len)
        pf_mcp_add_text(ret, text, len);
    pf_mcp_set(ret, "diff", pf_mcp_text(text, len));
    pf_mcp_set(ret, "truncated", json_boolean(offset + len < total));
    free(text);
    if (offset + len >= total) {
        pf_mcp_tape_free(tape);
        return 0;
    }
    if (!pf_mcp_output_keep(session, tape, id))
        return pf_mcp_nomem(err);
    pf_mcp_addf(ret,
                "[The diff was cut: it has %" PRIu64 " bytes. read_output with id=\"%s\" and "
                "offset=%zu shows the rest.]",
                total, id, len);
    pf_mcp_set(ret, "output_id", json_string(id));
    return 0;
}

static int show_changes(struct pf_mcp_session *session, const struct pinfold_changes *changes,
                        struct pf_mcp_tape *tape, struct pf_mcp_result *ret,
                        struct pinfold_error *err)
{
    char *text = NULL;
    size_t len = 0;
    FILE *to = pf_text_stream(&text, &len);

    if (!to) {
        pf_mcp_tape_free(tape);
        return pf_mcp_nomem(err);
    }
    list_changes(changes, to, ret);
    if (ferror(to) | fclose(to))
        ret->bad = -1;
    pf_mcp_add_text(ret, text, len);
    free(text);
    return show_diff(session, tape, ret, err);
}

static int run_diff(struct pf_mcp_call *call, const json_t *args, struct pf_mcp_result *ret,
                    struct pinfold_error *err)
{
    __attribute__((cleanup(pinfold_changes_done))) struct pinfold_changes changes = { 0 };
    struct pinfold_changes_options options = PINFOLD_CHANGES_OPTIONS_INIT;
    const char *path = pf_mcp_path(args, "path", ".", err);
    struct pf_mcp_tape *tape;
    struct pinfold_sandbox *sandbox;
    int r = path ? pf_mcp_workspace_begin(call->session, call->cancel, &sandbox, err) : -err->code;

    if (r < 0)
        return r;
    tape = pf_mcp_tape_new();
    options.path = strcmp(path, ".") == 0 ? NULL : path;
    options.everything = pf_mcp_flag(args, "everything", false);
    options.context_lines = (unsigned)pf_mcp_integer(args, "context_lines", 3);
    options.on_diff = pf_mcp_flag(args, "list_only", false) ? NULL : take_diff;
    options.on_diff_ctx = tape;
    r = tape ? pinfold_sandbox_changes(sandbox, &options, &changes, call->cancel, err)
             : pf_mcp_nomem(err);
    if (r == 0)
        r = show_changes(call->session, &changes, tape, ret, err);
    else
        pf_mcp_tape_free(tape);
    if (r == 0 && !options.everything)
        r = list_left_out(call, sandbox, options.path, ret, err);
    pf_mcp_workspace_end(call->session);
    return r;
}

const struct pf_mcp_tool pf_mcp_diff = {
    .name = "diff",
    .title = "Show what has changed",
    .description =
            "Show what has changed in the workspace since it was seeded: a line for each path "
            "(added, modified, deleted, mode, type), and a unified diff that git apply takes. It "
            "has the kinds of files that sync writes back; how many others have changed is said, "
            "and everything=true shows them too.",
    .input = "{\"type\":\"object\",\"properties\":{"
             "\"path\":{\"type\":[\"string\",\"null\"],\"description\":\"Only this file, or what "
             "is in this directory.\"},"
             "\"everything\":{\"type\":\"boolean\",\"default\":false,\"description\":\"Also what "
             "sync leaves alone: other kinds of files, and what is excluded.\"},"
             "\"list_only\":{\"type\":\"boolean\",\"default\":false,\"description\":\"The paths "
             "without the diff.\"},"
             "\"context_lines\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":100,\"default\":"
             "3}},\"additionalProperties\":false}",
    .output = "{\"type\":\"object\",\"properties\":{"
              "\"changes\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"
              "\"path\":{\"type\":\"string\"},\"change\":{\"enum\":[\"added\",\"modified\","
              "\"deleted\",\"mode\",\"type\",\"unknown\"]},\"syncs\":{\"type\":\"boolean\"}},"
              "\"required\":[\"path\",\"change\",\"syncs\"]}},"
              "\"count\":{\"type\":\"integer\"},\"diff\":{\"type\":\"string\"},"
              "\"truncated\":{\"type\":\"boolean\"},\"output_id\":{\"type\":\"string\"},"
              "\"left_out\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}},"
              "\"required\":[\"changes\",\"count\",\"diff\",\"truncated\"]}",
    .traits = PF_MCP_READS,
    .run = run_diff,
};

/* ---- sync ---- */

static void list_errors(const struct pinfold_strings *errors, struct pf_mcp_result *ret)
{
    json_t *list = json_array();

    for (size_t i = 0; i < errors->count && i < LISTED; i++)
        ret->bad |= pf_mcp_push(list, pf_mcp_text(errors->items[i], strlen(errors->items[i])));
    pf_mcp_set(ret, "errors", list);
}

/* What would be written, a line for each path; what would be left alone is only counted. */
static void show_plan(const struct pinfold_plan *plan, struct pf_mcp_result *ret)
{
    json_t *errors = json_array();
    char *text = NULL;
    size_t len = 0, listed = 0, left = 0;
    FILE *to = pf_text_stream(&text, &len);

    for (size_t i = 0; to && i < plan->count; i++) {
        const struct pinfold_plan_entry *entry = &plan->items[i];
        char *path;

        if (entry->action == PINFOLD_PLAN_IDENTICAL || entry->action == PINFOLD_PLAN_SKIP ||
            listed++ >= LISTED) {
            left++;
            continue;
        }
        path = pf_printable(entry->path);
        fprintf(to, "%s %s%s%s\n", pf_plan_word(entry->action), path ? path : "?",
                *entry->reason ? "  # " : "", entry->reason);
        if (entry->action == PINFOLD_PLAN_ERROR)
            ret->bad |=
                    pf_mcp_push(errors, json_sprintf("%s: %s", path ? path : "?", entry->reason));
        free(path);
    }
    if (to) {
        fprintf(to,
                "[Dry run: %" PRIu64 " files (%" PRIu64 " bytes) would be written; %zu paths "
                "are left alone or not listed.]\n",
                plan->files, plan->bytes, left);
        ret->bad |= ferror(to) | fclose(to);
        pf_mcp_add_text(ret, text, len);
    } else {
        ret->bad = -1;
    }
    free(text);
    pf_mcp_set(ret, "dry_run", json_true());
    pf_mcp_set(ret, "files", json_integer((json_int_t)plan->files));
    pf_mcp_set(ret, "bytes", json_integer((json_int_t)plan->bytes));
    pf_mcp_set(ret, "errors", errors);
}

static void show_sync(const struct pinfold_sync_result *sync, struct pf_mcp_result *ret)
{
    pf_mcp_addf(ret, "Wrote %" PRIu64 " files (%" PRIu64 " bytes) back.", sync->files_synced,
                sync->bytes_synced);
    for (size_t i = 0; i < sync->errors.count && i < 20; i++)
        pf_mcp_addf(ret, "Not written: %s", sync->errors.items[i]);
    if (sync->errors.count > 20)
        pf_mcp_addf(ret, "[and %zu more that could not be written]", sync->errors.count - 20);
    pf_mcp_set(ret, "dry_run", json_false());
    pf_mcp_set(ret, "files", json_integer((json_int_t)sync->files_synced));
    pf_mcp_set(ret, "bytes", json_integer((json_int_t)sync->bytes_synced));
    list_errors(&sync->errors, ret);
}

static int run_sync(struct pf_mcp_call *call, const json_t *args, struct pf_mcp_result *ret,
                    struct pinfold_error *err)
{
    __attribute__((cleanup(pinfold_sync_result_done))) struct pinfold_sync_result sync = { 0 };
    __attribute__((cleanup(pinfold_plan_done))) struct pinfold_plan plan = { 0 };
    bool dry = pf_mcp_flag(args, "dry_run", false);
    struct pinfold_sandbox *sandbox;
    int r = pf_mcp_workspace_begin(call->session, call->cancel, &sandbox, err);

    if (r < 0)
        return r;
    r = dry ? pinfold_sandbox_plan_flush(sandbox, NULL, &plan, call->cancel, err)
            : pinfold_sandbox_flush(sandbox, NULL, &sync, call->cancel, err);
    pf_mcp_workspace_end(call->session);
    if (r == 0)
        return pf_mcp_refuse(err, "there is nowhere to write to: the workspace has no seed");
    if (r > 0 && dry)
        show_plan(&plan, ret);
    else if (r > 0)
        show_sync(&sync, ret);
    return r < 0 ? r : 0;
}

const struct pf_mcp_tool pf_mcp_sync = {
    .name = "sync",
    .title = "Write the changes back",
    .description =
            "Write the workspace's results back to the user's own directory, outside the sandbox: "
            "files of the kinds that the user lets through, those that are new or differ. Nothing "
            "is deleted there. dry_run lists what would be written and changes nothing. Do this "
            "only when the user wants the results.",
    .input = "{\"type\":\"object\",\"properties\":{"
             "\"dry_run\":{\"type\":\"boolean\",\"default\":false}},"
             "\"additionalProperties\":false}",
    .output = "{\"type\":\"object\",\"properties\":{\"dry_run\":{\"type\":\"boolean\"},"
              "\"files\":{\"type\":\"integer\"},\"bytes\":{\"type\":\"integer\"},"
              "\"errors\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}},"
              "\"required\":[\"dry_run\",\"files\",\"bytes\",\"errors\"]}",
    .traits = PF_MCP_DESTROYS | PF_MCP_IDEMPOTENT | PF_MCP_OUTSIDE | PF_MCP_SYNCER,
    .run = run_sync,
};

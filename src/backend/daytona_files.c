/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single files. Each operation is a script that looks whether it may be done, and tells why not in
 * the system's words, and then one of the service's own operations, which carries the bytes but
 * knows neither links nor reasons.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/daytona.h"
#include "base/base64.h"
#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/utf8.h"
#include "tree/file.h"
#include "tree/place.h"

#define LISTING_MAX ((size_t)256 << 20)
#define REPLACEMENT "\xef\xbf\xbd" /* what the service makes of a byte that is no UTF-8 */

/* A path as a word that no command takes for an option. */
static char *word(const char *path)
{
    char *text;

    return asprintf(&text, "./%s", path) < 0 ? NULL : text;
}

static char *whole_path(const struct pf_dt_box *box, const char *path)
{
    char *text;

    return asprintf(&text, "%s/%s", box->root, path) < 0 ? NULL : text;
}

/* What the service's status means for a file. */
static int fail_status(struct pinfold_error *err, const struct pinfold_error *own,
                       const char *operation, const char *path)
{
    int status = own->http_status;
    int number = status == 404 ? ENOENT : status == 403 ? EACCES : status == 409 ? EEXIST : 0;

    if (number)
        return pf_fail_at(err, number, operation, path);
    if (err)
        *err = *own;
    return pf_wrap(err, -own->code, "%s \"%s\"", operation, PF_QUOTE(path));
}

static struct pf_daytona_call call_for(int64_t ns, struct pinfold_cancel *cancel)
{
    return (struct pf_daytona_call){ .deadline = pf_clock_deadline(ns),
                                     .idle_ns = PF_DT_IDLE_NS,
                                     .cancel = cancel };
}

/* ---- reading ---- */

static int take_bytes(void *ctx, const void *data, size_t len, struct pinfold_error *err)
{
    int r = pf_buf_append(ctx, data, len);

    if (r == -PINFOLD_ENOMEM)
        return pf_fail_nomem(err);
    return r < 0 ? pf_fail_os(err, EFBIG, "download") : 0;
}

int pf_dt_read_file(void *state, const char *path, struct pinfold_bytes *ret_content,
                    struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pf_dt_box *box = state;
    PF_CLEANUP(pf_buf_done) struct pf_buf content = PF_BUF_INIT(PINFOLD_READ_MAX_BYTES);
    const struct pf_daytona_call call = call_for(PF_DT_TRANSFER_NS, cancel);
    struct pinfold_error own = PINFOLD_ERROR_INIT;
    struct pf_dt_verdict verdict;
    _cleanup_free_ char *whole = NULL;
    int r = pf_dt_look(box, &path, 1, &verdict, cancel, err);

    if (r < 0)
        return r;
    if (verdict.sys_errno)
        return pf_fail_at(err, verdict.sys_errno, "read", path);
    if (verdict.size > PINFOLD_READ_MAX_BYTES)
        return pf_file_too_large(path, PINFOLD_READ_MAX_BYTES, err);
    whole = whole_path(box, path);
    if (!whole)
        return pf_fail_nomem(err);
    r = pf_daytona_file_get(&box->toolbox, whole, PF_BUF_UNLIMITED, &call, take_bytes, &content,
                            &own);
    if (r < 0)
        return fail_status(err, &own, "read", path);
    return pf_buf_take(&content, ret_content) < 0 ? pf_fail_nomem(err) : 0;
}

/* ---- writing ---- */

int pf_dt_write_file(void *state, const char *path, const void *data, size_t len, bool exclusive,
                     struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    struct pf_dt_box *box = state;
    char scratch[PF_DT_PATH_MAX];
    const char *source = scratch, *mode = "";
    struct pf_dt_verdict verdict;
    int r = pf_dt_fail_start(box, err);

    if (r < 0)
        return r;
    if (strcmp(path, ".") == 0)
        return pf_fail_at(err, EISDIR, "write", path);
    pf_dt_scratch(box, scratch);
    r = pf_dt_put_bytes(box, scratch, data, len, cancel, err);
    if (r < 0)
        return pf_wrap(err, r, "write \"%s\"", PF_QUOTE(path));
    r = pf_dt_place(box, &path, &source, &mode, 1, exclusive, &verdict, cancel, err);
    if (r < 0 || verdict.sys_errno)
        pf_dt_forget(box, scratch);
    return r == 0 && verdict.sys_errno ? pf_fail_at(err, verdict.sys_errno, "write", path) : r;
}

/* ---- names ---- */

/* Run a script that says "native" when the service is to do the rest itself. Returns 1 then. */
static int ask(struct pf_dt_box *box, const char *script, const char *a, const char *b, bool again,
               const char *operation, struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(LISTING_MAX);
    _cleanup_free_ char *first = word(a), *second = b ? word(b) : NULL;
    int r;

    if (!first || (b && !second))
        return pf_fail_nomem(err);
    r = pf_dt_script(box, script, (const char *const[]){ first, second, NULL }, again, operation, a,
                     &text, cancel, err);
    return r < 0 ? r : text.data && strncmp(text.data, "native", 6) == 0;
}

int pf_dt_remove_file(void *state, const char *path, struct pinfold_cancel *cancel,
                      struct pinfold_error *err)
{
    static const char script[] =
            "w \"${1%/*}\"; if [ -L \"$1\" ]; then unlink -- \"$1\" 2>&1 || exit 9; exit 0; fi; "
            "stat -- \"$1\" 2>&1 >/dev/null || exit 9; [ ! -d \"$1\" ] || f 'Is a directory'; "
            "[ -w \"${1%/*}\" ] || f 'Permission denied'; echo native";
    struct pf_dt_box *box = state;
    const struct pf_daytona_call call = call_for(PF_DT_CALL_NS, cancel);
    struct pinfold_error own = PINFOLD_ERROR_INIT;
    _cleanup_free_ char *whole = NULL;
    int r = ask(box, script, path, NULL, false, "delete", cancel, err);

    if (r <= 0)
        return r;
    whole = whole_path(box, path);
    if (!whole)
        return pf_fail_nomem(err);
    r = pf_daytona_file_delete(&box->toolbox, whole, false, &call, &own);
    return r < 0 ? fail_status(err, &own, "delete", path) : 0;
}

/* The service moves to where nothing is, and follows links when it looks for what it moves. What it
 * does not do is done by mv, which replaces in one step. */
int pf_dt_move_file(void *state, const char *src, const char *dest, struct pinfold_cancel *cancel,
                    struct pinfold_error *err)
{
    static const char script[] =
            "w \"${1%/*}\"; stat -- \"$1\" 2>&1 >/dev/null || exit 9; "
            "if [ -d \"$1\" ] && [ ! -L \"$1\" ]; then f 'Is a directory'; fi; m \"$2\" 2>&1; "
            "if [ -d \"$2\" ] && [ ! -L \"$2\" ]; then f 'Is a directory'; fi; "
            "if [ ! -L \"$1\" ] && [ ! -L \"$2\" ] && [ \"$1\" -ef \"$2\" ]; then exit 0; fi; "
            "if [ ! -L \"$1\" ] && [ ! -L \"$2\" ] && [ ! -e \"$2\" ] && "
            "[ -w \"${1%/*}\" ] && [ -w \"${2%/*}\" ]; then echo native; exit 0; fi; "
            "mv -fT -- \"$1\" \"$2\" 2>&1 || exit 9";
    static const char replace[] = "mv -fT -- \"$1\" \"$2\" 2>&1 || exit 9";
    struct pf_dt_box *box = state;
    const struct pf_daytona_call call = call_for(PF_DT_CALL_NS, cancel);
    struct pinfold_error own = PINFOLD_ERROR_INIT;
    _cleanup_free_ char *from = NULL, *to = NULL;
    int r = ask(box, script, src, dest, false, "move", cancel, err);

    if (r <= 0)
        return r;
    from = whole_path(box, src);
    to = whole_path(box, dest);
    if (!from || !to)
        return pf_fail_nomem(err);
    r = pf_daytona_file_move(&box->toolbox, from, to, &call, &own);
    if (r < 0 && own.http_status == 409) /* somebody made it meanwhile */
        return ask(box, replace, src, dest, false, "move", cancel, err);
    return r < 0 ? fail_status(err, &own, "move", src) : 0;
}

/* ---- listing ---- */

/* Names of a directory, with the service's word on what is there, or ours where it has none. */
struct listing {
    struct pinfold_file_infos infos;
    size_t capacity;
    const char *dir;
};

static int add_entry(struct listing *listing, const char *name, char type, int64_t size)
{
    bool top = strcmp(listing->dir, ".") == 0;
    struct pinfold_file_infos *infos = &listing->infos;
    struct pinfold_file_info info = { .is_dir = type == 'd', .size = type == 'f' ? size : -1 };

    if (!*name || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return -PINFOLD_EBACKEND;
    if (infos->count == listing->capacity) {
        size_t capacity = listing->capacity ? 2 * listing->capacity : 64;
        void *grown = reallocarray(infos->items, capacity, sizeof(*infos->items));
        if (!grown)
            return -PINFOLD_ENOMEM;
        infos->items = grown;
        listing->capacity = capacity;
    }
    if (asprintf(&info.path, "%s%s%s", top ? "" : listing->dir, top ? "" : "/", name) < 0)
        return -PINFOLD_ENOMEM;
    infos->items[infos->count++] = info;
    return 0;
}

/* Records "TYPE SIZE NAME" and a NUL, in base64. */
static int take_ours(struct listing *listing, const struct pf_buf *text)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf records = PF_BUF_INIT(LISTING_MAX);
    int r = pf_base64_decode(text->data ? text->data : "", text->len, &records);

    for (size_t at = 0; r == 0 && at < records.len; at += strlen(records.data + at) + 1) {
        const char *record = records.data + at;
        char *rest;
        int64_t size;
        if (strlen(record) < 5)
            return -PINFOLD_EBACKEND;
        size = strtoll(record + 2, &rest, 10);
        r = *rest == ' ' ? add_entry(listing, rest + 1, record[0], size) : -PINFOLD_EBACKEND;
    }
    return r == -PINFOLD_EVALUE ? -PINFOLD_EBACKEND : r;
}

/* The last one, when it is among those before: links, sorted, of which we know more. */
static void drop_link(struct listing *listing, size_t links)
{
    const struct pinfold_file_infos known = { .items = listing->infos.items, .count = links };
    struct pinfold_file_info *last = &listing->infos.items[listing->infos.count - 1];

    if (!pf_infos_find(&known, last->path))
        return;
    free(last->path);
    listing->infos.count--;
}

/* Returns 1 when a name cannot be told, or is not what it was. */
static int take_theirs(struct listing *listing, const json_t *entries)
{
    const size_t links = listing->infos.count;
    const json_t *entry;
    size_t i;
    int r;

    pf_infos_sort(&listing->infos);

    json_array_foreach(entries, i, entry) {
        const char *name = json_string_value(json_object_get(entry, "name"));
        const char *mode = json_string_value(json_object_get(entry, "mode"));
        bool is_dir = json_is_true(json_object_get(entry, "isDir"));
        char type = is_dir ? 'd' : !mode || mode[0] == '-' ? 'f' : 'o';
        json_int_t size;
        if (!name || strlen(name) != json_string_length(json_object_get(entry, "name")))
            return -PINFOLD_EBACKEND;
        if (strstr(name, REPLACEMENT))
            return 1;
        size = json_integer_value(json_object_get(entry, "size"));
        r = add_entry(listing, name, type, size < 0 ? -1 : size);
        if (r < 0)
            return r;
        drop_link(listing, links);
    }
    return 0;
}

/* $2 chooses: "-type l" or nothing. A link is what it leads to inside the root, else itself. */
static int list_ours(struct pf_dt_box *box, struct listing *listing, const char *filter,
                     struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    static const char script[] =
            "w \"$1\"; stat -- \"$1/.\" 2>&1 >/dev/null || exit 9; "
            "[ -r \"$1\" ] && [ -x \"$1\" ] || f 'Permission denied'; cd -- \"$1\" || exit 9; "
            "find . -mindepth 1 -maxdepth 1 $2 -exec /bin/sh -c 'for p; do "
            "q=$(readlink -m -- \"$p\"); t=o; s=0; case \"$q/\" in \"$R\"/*) "
            "if [ -d \"$p\" ]; then t=d; elif [ -f \"$p\" ]; then t=f; "
            "s=$(stat -Lc %s -- \"$p\"); fi;; esac; printf \"%s %s %s\\0\" \"$t\" \"$s\" "
            "\"${p#./}\"; done' sh {} + 2>/dev/null | base64";
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(LISTING_MAX);
    _cleanup_free_ char *name = word(listing->dir);
    int r;

    if (!name)
        return pf_fail_nomem(err);
    r = pf_dt_script(box, script, (const char *const[]){ name, filter, NULL }, true, "list",
                     listing->dir, &text, cancel, err);
    if (r < 0)
        return r;
    r = take_ours(listing, &text);
    if (r == -PINFOLD_ENOMEM)
        return pf_fail_nomem(err);
    return r < 0 ? pf_fail(err, PINFOLD_EBACKEND, "list \"%s\": it did not come back whole",
                           PF_QUOTE(listing->dir))
                 : 0;
}

/* Returns 1 when the service cannot tell the names, which may be any bytes. */
static int list_theirs(struct pf_dt_box *box, struct listing *listing,
                       struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    const struct pf_daytona_call call = call_for(PF_DT_CALL_NS, cancel);
    struct pinfold_error own = PINFOLD_ERROR_INIT;
    _cleanup_free_ char *whole = whole_path(box, listing->dir);
    json_auto_t *entries = NULL;
    int r;

    if (!whole)
        return pf_fail_nomem(err);
    if (!pf_utf8_valid(whole, strlen(whole), NULL))
        return 1;
    r = pf_daytona_files_list(&box->toolbox, whole, &call, &entries, &own);
    if (r < 0)
        return fail_status(err, &own, "list", listing->dir);
    r = take_theirs(listing, entries);
    if (r == -PINFOLD_ENOMEM)
        return pf_fail_nomem(err);
    return r < 0 ? pf_fail(err, PINFOLD_EBACKEND, "list \"%s\": the reply is no list of files",
                           PF_QUOTE(listing->dir))
                 : r;
}

static void listing_done(struct listing *listing)
{
    pinfold_file_infos_done(&listing->infos);
    listing->capacity = 0;
}

int pf_dt_list_dir(void *state, const char *path, struct pinfold_file_infos *ret_infos,
                   struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    PF_CLEANUP(listing_done) struct listing listing = { .dir = path };
    int r = list_ours(state, &listing, "-type l", cancel, err);

    if (r == 0)
        r = list_theirs(state, &listing, cancel, err);
    if (r == 1) {
        listing_done(&listing);
        r = list_ours(state, &listing, "", cancel, err);
    }
    if (r < 0)
        return r;
    pf_infos_sort(&listing.infos);
    *ret_infos = listing.infos;
    listing.infos = (struct pinfold_file_infos){ 0 };
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/search.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/strings.h"
#include "tree/below.h"
#include "tree/beneath.h"
#include "tree/copy_job.h"
#include "tree/file.h"
#include "tree/unified.h"
#include "tree/walk.h"

enum {
    RESULTS = 1000,
    FILE_BYTES = 10 << 20,
    LIST_MAX = 1000,         /* lines of errors */
    FILES_MAX = 1000 * 1000, /* names kept at once */
};

struct search {
    const struct pf_search_request *request;
    struct pinfold_search_result *ret;
    struct pf_matcher *matcher;   /* NULL: names alone */
    struct pinfold_strings files; /* to be looked at */
    uint64_t max_results;
};

static int note(struct search *search, const char *text, struct pinfold_error *err)
{
    if (search->ret->errors.count < LIST_MAX && pf_strings_add(&search->ret->errors, text) < 0)
        return pf_fail_nomem(err);
    return 0;
}

/* ---- which files ---- */

static bool is_wanted(const struct search *search, const struct pf_walk_entry *entry)
{
    const struct pf_search_request *request = search->request;
    const struct pf_copy_options choice = { .exclude = request->exclude };

    if (!pf_is_at_or_below(entry->path, request->path) || pf_copy_excluded(&choice, entry))
        return false;
    return !request->names ||
           pf_globs_match_whole(request->names, entry->path, entry->path_len, false);
}

static bool leads_on(const struct search *search, const struct pf_walk_entry *entry)
{
    const struct pf_search_request *request = search->request;

    return (pf_is_at_or_below(entry->path, request->path) ||
            pf_is_at_or_below(request->path, entry->path)) &&
           !(request->exclude &&
             pf_globs_match(request->exclude, entry->path, entry->path_len, true));
}

static int visit(struct search *search, struct pf_walk *walk, const struct pf_walk_entry *entry,
                 struct pinfold_error *err)
{
    if (entry->type == PF_WALK_ERROR)
        return note(search, entry->error.msg, err);
    if (entry->type == PF_WALK_DIR && !leads_on(search, entry))
        pf_walk_skip(walk);
    if (entry->type != PF_WALK_FILE && (entry->type != PF_WALK_LINK || search->matcher))
        return 0;
    if (!is_wanted(search, entry))
        return 0;
    if (search->files.count == FILES_MAX) {
        search->ret->truncated = true;
        return 0;
    }
    return pf_strings_add(&search->files, entry->path) < 0 ? pf_fail_nomem(err) : 0;
}

static int list_files(struct search *search, struct pinfold_error *err)
{
    const struct pf_search_request *request = search->request;
    PF_CLEANUP(pf_walk_freep) struct pf_walk *walk = NULL;
    struct pf_walk_entry entry;
    int r = pf_walk_new(request->root_fd, &walk, err);

    while (r == 0 && (r = pf_walk_next(walk, &entry)) > 0) {
        r = pf_cancel_check(request->cancel, err);
        if (r == 0)
            r = visit(search, walk, &entry, err);
    }
    pf_strings_sort(&search->files);
    return r == -PINFOLD_ENOMEM ? pf_fail_nomem(err) : r;
}

static int check_there(const struct pf_search_request *request, struct pinfold_error *err)
{
    int fd = pf_beneath_open(request->root_fd, request->path, O_PATH | O_NOFOLLOW, 0);

    if (fd >= 0)
        close(fd);
    return fd < 0 ? pf_fail_os(err, -fd, "search %s", PF_QUOTE(request->path)) : 0;
}

/* ---- what is in them ---- */

static uint64_t limit_of_file(const struct search *search)
{
    uint64_t left = search->max_results - search->ret->matches;
    uint64_t own = search->request->options->max_per_file;

    return own && own < left ? own : left;
}

/* Returns 1 to go on, 0 at a limit, or a negative code. */
static int search_text(struct search *search, const char *path, const struct pinfold_bytes *text,
                       struct pinfold_error *err)
{
    struct pinfold_search_result *ret = search->ret;
    uint64_t max = limit_of_file(search), matches;
    int r;

    if (pf_text_is_binary((struct pf_text){ text->data, text->len })) {
        ret->skipped_binary++;
        return 1;
    }
    ret->files_searched++;
    r = pf_search_file(search->matcher, search->request->options, path, text->data, text->len, max,
                       ret, &matches);
    if (r < 0)
        return pf_fail_nomem(err);
    ret->matches += matches;
    ret->files += matches > 0;
    ret->skipped_hard += r == PF_MATCH_TOO_HARD;
    ret->truncated |= r != PF_MATCH_NONE;
    if (r == PF_MATCH_NO_TIME) {
        r = pf_cancel_check(search->request->cancel, err);
        return r;
    }
    return r != PF_MATCH_FOUND || ret->matches < search->max_results;
}

static int search_file(struct search *search, const char *path, struct pinfold_error *err)
{
    const struct pf_search_request *request = search->request;
    PF_CLEANUP(pinfold_bytes_done) struct pinfold_bytes text = { 0 };
    struct pinfold_error one = PINFOLD_ERROR_INIT;
    size_t limit = request->options->max_file_bytes ? request->options->max_file_bytes : FILE_BYTES;
    int r = pf_file_read(request->root_fd, path, limit, &text, request->cancel, &one);

    if (r == 0)
        return search_text(search, path, &text, err);
    if (r == -PINFOLD_ECANCELLED || r == -PINFOLD_ENOMEM) {
        if (err)
            *err = one;
        return r;
    }
    if (one.sys_errno == EFBIG)
        search->ret->skipped_large++;
    else if (one.sys_errno != ENOENT && one.sys_errno != ENOTDIR) /* it is gone meanwhile */
        r = note(search, one.msg, err);
    return r == -PINFOLD_ENOMEM ? r : 1;
}

/* Returns as search_text(). */
static int add_name(struct search *search, const char *path, struct pinfold_error *err)
{
    struct pinfold_search_result *ret = search->ret;
    struct pinfold_search_match match = { .path = strdup(path), .text = strdup("") };

    if (ret->matches == search->max_results) {
        ret->truncated = true;
    } else if (match.path && match.text && pf_search_add(ret, &match) == 0) {
        ret->matches++;
        ret->files++;
        return 1;
    }
    free(match.path);
    free(match.text);
    return ret->truncated ? 0 : pf_fail_nomem(err);
}

static int look(struct search *search, struct pinfold_error *err)
{
    int r = 1;

    for (size_t i = 0; r > 0 && i < search->files.count; i++) {
        r = pf_cancel_check(search->request->cancel, err);
        if (r == 0)
            r = search->matcher ? search_file(search, search->files.items[i], err)
                                : add_name(search, search->files.items[i], err);
    }
    return r < 0 ? r : 0;
}

int pf_search(const struct pf_search_request *request, struct pinfold_search_result *ret,
              struct pinfold_error *err)
{
    struct search search = {
        .request = request,
        .ret = ret,
        .max_results = request->options->max_results ? request->options->max_results : RESULTS,
    };
    int r = check_there(request, err);

    if (r == 0 && request->options->text)
        r = pf_matcher_new(request->options, request->cancel, &search.matcher, err);
    if (r == 0)
        r = list_files(&search, err);
    if (r == 0)
        r = look(&search, err);
    pf_matcher_free(search.matcher);
    pinfold_strings_done(&search.files);
    return r;
}

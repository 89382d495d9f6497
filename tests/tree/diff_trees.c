/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_trees OLD NEW: print the diff of two directories as pinfold_sandbox_changes() gives it, for
 * test_diff_oracle.py. With -l names and kinds instead.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tree/changes.h"

static int print(void *ctx, const char *text, size_t len)
{
    return fwrite(text, 1, len, ctx) == len ? 0 : -1;
}

static void list(const struct pinfold_changes *changes)
{
    for (size_t i = 0; i < changes->count; i++)
        printf("%s %06o %06o %s%c", pinfold_change_kind_name(changes->items[i].kind),
               changes->items[i].old_mode, changes->items[i].new_mode, changes->items[i].path, 0);
}

int main(int argc, char **argv)
{
    static const char *const all[] = { "*", NULL }, *const none[] = { NULL };
    struct pinfold_changes_options options = PINFOLD_CHANGES_OPTIONS_INIT;
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pinfold_changes changes = { 0 };
    struct pf_seed_mark mark = { 0 };
    struct pf_globs *include = NULL, *exclude = NULL;
    struct pf_changes_request request = { .upper_fd = -1, .path = ".", .fetched = true };
    bool lists = argc == 4 && strcmp(argv[1], "-l") == 0;
    int r;

    if (argc != 3 + lists)
        return 2;
    request.root_fd = open(argv[2 + lists], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    options.on_diff = lists ? NULL : print;
    options.on_diff_ctx = stdout;
    options.max_file_bytes = 64 << 20;
    options.max_diff_bytes = 256 << 20;
    r = pf_globs_new(all, &include, &err);
    if (r == 0)
        r = pf_globs_new(none, &exclude, &err);
    if (r == 0)
        r = pf_seed_mark_begin(&mark, argv[1 + lists], none, -1) < 0 ? -PINFOLD_ENOMEM : 0;
    mark.began_ns = mark.ended_ns = INT64_MAX; /* nothing has changed since */
    request.include = include;
    request.exclude = request.seed_exclude = exclude;
    request.options = &options;
    request.mark = &mark;
    if (r == 0)
        r = pf_changes_find(&request, &changes, &err);
    if (r == 0)
        r = pf_changes_write(&request, &changes, &err);
    if (r == 0 && lists)
        list(&changes);
    for (size_t i = 0; i < changes.errors.count; i++)
        fprintf(stderr, "%s\n", changes.errors.items[i]);
    if (r < 0)
        fprintf(stderr, "%s\n", err.msg);
    pinfold_changes_done(&changes);
    pf_seed_mark_done(&mark);
    pf_globs_free(include);
    pf_globs_free(exclude);
    close(request.root_fd);
    return r < 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copytree SOURCE DEST: copy a tree as seeding does, without patterns. Prints what was done, and
 * the seconds that the copy alone took.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "tree/copy.h"
#include "tree/file.h"

int main(int argc, char **argv)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pf_copy_result result = { .files = 0 };
    struct pf_copy_options options = { .empty_dirs = true, .links = true };
    struct rusage usage;
    int64_t start;

    if (argc != 3) {
        fprintf(stderr, "usage: copytree SOURCE DEST\n");
        return 2;
    }
    options.src_name = argv[1];
    options.dst_name = argv[2];
    options.src_fd = pf_root_open(argv[1], false, NULL, &err);
    options.dst_fd = options.src_fd < 0 ? -1 : pf_root_open(argv[2], true, NULL, &err);
    start = pf_clock_now();
    if (options.dst_fd < 0 || pf_copy_tree(&options, &result, &err) < 0) {
        fprintf(stderr, "copytree: %s\n", err.msg);
        return 1;
    }
    getrusage(RUSAGE_SELF, &usage);
    printf("%llu files, %llu bytes, %zu skipped, %zu errors, %.4f s, peak %ld KiB\n",
           (unsigned long long)result.files, (unsigned long long)result.bytes, result.skipped.count,
           result.errors.count, (double)(pf_clock_now() - start) / (double)PF_NS_PER_SEC,
           usage.ru_maxrss);
    for (size_t i = 0; i < result.errors.count; i++)
        fprintf(stderr, "copytree: %s\n", result.errors.items[i]);
    pinfold_strings_done(&result.errors);
    pinfold_strings_done(&result.skipped);
    close(options.src_fd);
    close(options.dst_fd);
    return 0;
}

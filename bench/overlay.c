/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overlay SEED WORK: what an overlay on SEED costs, with its layers in the empty directory WORK.
 * Prints milliseconds: of the walk that counts and hides, of a jail that shows WORK itself, and of
 * one that shows the overlay. The difference of the two is what the mount costs.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "jail/jail.h"
#include "tree/file.h"
#include "tree/hide.h"

enum { ROUNDS = 30 };

static int fail(const struct pinfold_error *err)
{
    fprintf(stderr, "overlay: %s\n", err->msg);
    return 1;
}

static double ms(int64_t ns)
{
    return (double)ns / (double)PF_NS_PER_MS;
}

/* The fastest of some starts. Returns a negative code, or what pf_jail_open() says. */
static int fastest_start(int work_fd, const char *seed, int seed_fd, int64_t *ret_ns,
                         struct pinfold_error *err)
{
    struct pf_jail_config config = { .workspace_fd = work_fd, .seed = seed, .seed_fd = seed_fd };

    *ret_ns = INT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        struct pf_jail *jail;
        int64_t start = pf_clock_now(), took;
        int r = pf_jail_open(&config, &jail, err);
        if (r != 0)
            return r;
        took = pf_clock_now() - start;
        if (took < *ret_ns)
            *ret_ns = took;
        pf_jail_close(jail);
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const layers[] = { "changes", "hidden", "work" };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct pf_copy_result seen = { .files = 0 };
    PF_CLEANUP(pf_globs_freep) struct pf_globs *exclude = NULL;
    int64_t start, walk, plain, overlay;
    char why[256] = "";

    if (argc != 3) {
        fprintf(stderr, "usage: overlay SEED WORK\n");
        return 2;
    }
    _cleanup_close_ int seed_fd = pf_root_open(argv[1], false, NULL, &err);
    _cleanup_close_ int work_fd = pf_root_open(argv[2], false, NULL, &err);
    if (seed_fd < 0 || work_fd < 0 ||
        pf_globs_new(pinfold_default_seed_excludes, &exclude, &err) < 0)
        return fail(&err);
    for (size_t i = 0; i < PF_COUNT(layers); i++)
        if (mkdirat(work_fd, layers[i], 0700) < 0) {
            perror(layers[i]);
            return 1;
        }
    _cleanup_close_ int hidden_fd = openat(work_fd, "hidden", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    start = pf_clock_now();
    if (pf_hide_tree(&(struct pf_copy_options){ .src_fd = seed_fd,
                                                .dst_fd = hidden_fd,
                                                .src_name = argv[1],
                                                .exclude = exclude },
                     &seen, why, sizeof(why), &err) != 0) {
        fprintf(stderr, "overlay: %s%s\n", why, err.msg);
        return 1;
    }
    walk = pf_clock_now() - start;
    if (fastest_start(work_fd, NULL, -1, &plain, &err) != 0 ||
        fastest_start(work_fd, argv[1], seed_fd, &overlay, &err) != 0)
        return fail(&err);
    printf("%llu files: walk %.2f ms, jail %.3f ms, jail with overlay %.3f ms, mount %.3f ms\n",
           (unsigned long long)seen.files, ms(walk), ms(plain), ms(overlay), ms(overlay - plain));
    pinfold_strings_done(&seen.skipped);
    pinfold_strings_done(&seen.errors);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/quota.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "proc/launcher.h"
#include "tree/usage.h"

#define RESERVE_BYTES (1ULL << 30)
#define LOOK_NS (200 * PF_NS_PER_MS) /* between two looks */
#define CLOSE_LOOK_NS (50 * PF_NS_PER_MS)
#define SUM_SHARE 20 /* adding up takes at most this part of the time */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static int measure_free(const struct pf_quota *quota, struct statvfs *ret)
{
    return fstatvfs(quota->root_fd, ret) < 0 ? -errno : 0;
}

static int set_reserve(struct pf_quota *quota)
{
    struct statvfs fs;
    int r = measure_free(quota, &fs);

    if (r < 0)
        return r;
    quota->free_bytes = fs.f_bavail * fs.f_frsize;
    quota->free_inodes = fs.f_favail;
    quota->reserve_bytes =
            least(least(RESERVE_BYTES, fs.f_blocks * fs.f_frsize / 20), quota->free_bytes / 2);
    /* Some file systems have no fixed number of them, and say 0. */
    quota->reserve_inodes = least(fs.f_files / 20, quota->free_inodes / 2);
    return 0;
}

int pf_quota_init(struct pf_quota *quota, int root_fd, uint64_t workspace_bytes,
                  struct pinfold_error *err)
{
    int r;

    memset(quota, 0, sizeof(*quota));
    quota->root_fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
    if (quota->root_fd < 0)
        return pf_fail_os(err, errno, "keep hold of the workspace");
    quota->limit_bytes = workspace_bytes ? workspace_bytes : PINFOLD_UNLIMITED;
    quota->owner = getpid();
    pthread_mutex_init(&quota->lock, NULL);
    pf_clock_cond_init(&quota->wake);
    if (workspace_bytes == PINFOLD_UNLIMITED)
        return 0;
    quota->looked_at = pf_clock_now();
    r = set_reserve(quota);
    return r < 0 ? pf_fail_os(err, -r, "ask how much space the workspace has") : 0;
}

void pf_quota_hold(const struct pf_quota *quota, enum pinfold_holder *holders)
{
    if (quota->limit_bytes != PINFOLD_UNLIMITED)
        holders[PINFOLD_LIMIT_WORKSPACE] = PINFOLD_HOLDER_OWNER;
    if (quota->reserve_bytes > 0)
        holders[PINFOLD_LIMIT_DISK] = PINFOLD_HOLDER_OWNER;
}

static bool is_off(const struct pf_quota *quota)
{
    return quota->owner == 0 ||
           (quota->limit_bytes == PINFOLD_UNLIMITED && quota->reserve_bytes == 0);
}

/* ---- looking ---- */

/* A limit that somebody has set is worth more looks than space that hardly ever runs out. */
static int64_t look_ns(const struct pf_quota *quota)
{
    return quota->over || quota->limit_bytes != PINFOLD_UNLIMITED ? CLOSE_LOOK_NS : LOOK_NS;
}

/* Add up what is there, unless that was done too recently for what it costs. Enough is well above
 * the limit: how far it is over counts too. */
static void sum_up(struct pf_quota *quota)
{
    uint64_t enough = quota->limit_bytes + quota->limit_bytes / 2, used;
    int64_t began = pf_clock_now();

    if (quota->limit_bytes == PINFOLD_UNLIMITED || began < quota->next_sum)
        return;
    if (pf_tree_usage(quota->root_fd, enough, &used, NULL) == 0)
        quota->used_bytes = used;
    quota->next_sum = pf_clock_deadline(SUM_SHARE * (pf_clock_now() - began));
}

/* Under the lock. Returns whether a limit is exceeded by something that has grown since the last
 * look: what shrinks is being mended. */
static bool look(struct pf_quota *quota)
{
    uint64_t used = quota->used_bytes, free_bytes = quota->free_bytes;
    uint64_t free_inodes = quota->free_inodes;
    struct statvfs fs;

    sum_up(quota);
    if (measure_free(quota, &fs) == 0) {
        quota->free_bytes = fs.f_bavail * fs.f_frsize;
        quota->free_inodes = fs.f_favail;
    }
    quota->looked_at = pf_clock_now();
    if (quota->used_bytes > quota->limit_bytes) {
        quota->over = PINFOLD_LIMIT_WORKSPACE;
        return quota->used_bytes > used;
    }
    if (quota->free_bytes < quota->reserve_bytes || quota->free_inodes < quota->reserve_inodes) {
        quota->over = PINFOLD_LIMIT_DISK;
        return quota->free_bytes < free_bytes || quota->free_inodes < free_inodes;
    }
    quota->over = PINFOLD_LIMIT_NONE;
    return false;
}

/* Under the lock. Sleep while nothing runs that could write; what wakes us is a command that runs
 * for long, or leaves something running. That finds us awake only if we shall still see it run:
 * first we are asleep, then we look whether we may be. */
static void sleep_while_idle(struct pf_quota *quota)
{
    quota->awake = false;
    while (!quota->stopping && quota->running == 0 && pf_launcher_count(quota->launcher) == 0)
        pthread_cond_wait(&quota->wake, &quota->lock);
    quota->awake = true;
}

static void *watch(void *arg)
{
    struct pf_quota *quota = arg;

    pthread_mutex_lock(&quota->lock);
    while (!quota->stopping) {
        int64_t until;
        sleep_while_idle(quota);
        if (look(quota)) {
            quota->killed_for = quota->over;
            quota->kills++;
            pf_launcher_kill(quota->launcher);
        }
        until = pf_clock_deadline(look_ns(quota));
        pthread_cond_timedwait(&quota->wake, &quota->lock,
                               &(struct timespec){ .tv_sec = until / PF_NS_PER_SEC,
                                                   .tv_nsec = until % PF_NS_PER_SEC });
    }
    pthread_mutex_unlock(&quota->lock);
    return NULL;
}

/* A command that runs for long makes it worth a thread, which then stays. While it does not look
 * there is still the look at the end of each command. */
static void start_watching(void *ctx)
{
    struct pf_quota *quota = ctx;
    sigset_t all, before;

    if (quota->awake) /* perhaps adding up, which takes time and the lock */
        return;
    pthread_mutex_lock(&quota->lock);
    if (!quota->watching && !quota->stopping) {
        /* The owner's signals are for the owner's threads. */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        quota->watching = pthread_create(&quota->thread, NULL, watch, quota) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_cond_broadcast(&quota->wake);
    pthread_mutex_unlock(&quota->lock);
}

void pf_quota_done(struct pf_quota *quota)
{
    if (quota->owner == 0)
        return;
    if (quota->owner == getpid()) {
        pthread_mutex_lock(&quota->lock);
        quota->stopping = true;
        pthread_cond_broadcast(&quota->wake);
        pthread_mutex_unlock(&quota->lock);
        if (quota->watching)
            pthread_join(quota->thread, NULL);
        pthread_cond_destroy(&quota->wake);
        pthread_mutex_destroy(&quota->lock);
    }
    close(quota->root_fd);
    memset(quota, 0, sizeof(*quota));
}

/* ---- commands ---- */

void pf_quota_attach(struct pf_quota *quota, struct pf_run_request *request)
{
    if (is_off(quota))
        return;
    quota->running++;
    request->slow_ns = quota->over ? 0 : look_ns(quota);
    request->on_slow = start_watching;
    request->on_slow_ctx = quota;
    request->kills = &quota->kills;
    request->kills_before = quota->kills;
}

enum pinfold_limit pf_quota_detach(struct pf_quota *quota, const struct pf_run_request *request,
                                   bool lingers)
{
    if (!request->kills)
        return PINFOLD_LIMIT_NONE;
    quota->running--;
    if (lingers)
        start_watching(quota);
    if (quota->kills != request->kills_before)
        return (enum pinfold_limit)quota->killed_for;
    /* Many short commands are looked after like a long one. */
    if (quota->awake)
        return PINFOLD_LIMIT_NONE;
    if (quota->over || pf_clock_now() - quota->looked_at >= look_ns(quota)) {
        pthread_mutex_lock(&quota->lock);
        look(quota);
        pthread_mutex_unlock(&quota->lock);
    }
    return PINFOLD_LIMIT_NONE;
}

static int fail_full(uint64_t used, uint64_t limit, struct pinfold_error *err)
{
    return pf_fail_os(err, EDQUOT,
                      "the workspace holds %" PRIu64 " bytes, and its limit is %" PRIu64
                      "; delete files, or give it more",
                      used, limit);
}

int pf_quota_admit(struct pf_quota *quota, uint64_t bytes, struct pinfold_error *err)
{
    bool disk, full;
    uint64_t used;

    /* A command may start a little beyond the limit: it may be the one that removes something. */
    if (is_off(quota) || (bytes == 0 && !quota->over))
        return 0;
    pthread_mutex_lock(&quota->lock);
    look(quota);
    used = quota->used_bytes;
    full = used > quota->limit_bytes || bytes > quota->limit_bytes - used;
    if (full && bytes == 0)
        full = used - quota->limit_bytes > quota->limit_bytes / 8;
    disk = quota->free_bytes < (bytes ? quota->reserve_bytes : quota->reserve_bytes / 2);
    if (!full && !disk)
        quota->used_bytes += bytes; /* until it is added up anew */
    pthread_mutex_unlock(&quota->lock);
    if (full)
        return fail_full(used, quota->limit_bytes, err);
    if (disk)
        return pf_fail_os(err, ENOSPC, "the disk of the workspace must keep %" PRIu64 " bytes free",
                          quota->reserve_bytes);
    return 0;
}

void pf_quota_shrunk(struct pf_quota *quota)
{
    if (is_off(quota))
        return;
    pthread_mutex_lock(&quota->lock);
    /* Not for a workspace with room: whoever deletes much would add up as often. */
    if (quota->used_bytes > quota->limit_bytes - quota->limit_bytes / 8)
        quota->next_sum = 0;
    pthread_mutex_unlock(&quota->lock);
}

int pf_quota_seeded(struct pf_quota *quota, struct pinfold_error *err)
{
    uint64_t used;

    if (is_off(quota))
        return 0;
    pthread_mutex_lock(&quota->lock);
    set_reserve(quota);
    quota->next_sum = 0;
    sum_up(quota);
    used = quota->used_bytes;
    pthread_mutex_unlock(&quota->lock);
    return used > quota->limit_bytes ? fail_full(used, quota->limit_bytes, err) : 0;
}

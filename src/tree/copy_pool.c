/* SPDX-License-Identifier: Apache-2.0 */
#include "tree/copy_job.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/strings.h"
#include "tree/data.h"

enum {
    ENOUGH_FILES = 128, /* before that starting threads costs more than it brings */
    PROGRESS_MS = 50,
    STACK_BYTES =
            1 << 20, /* of a thread: the defaults of C libraries range from 128 KiB to 8 MiB */
};

/* Which bits a new file loses. umask(2) can only be read by changing it, for all threads. When it
 * cannot be known: all, and every file's mode is set. */
static mode_t read_umask(void)
{
    char text[512], *line;
    _cleanup_close_ int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

    if (len < 0)
        return 0777;
    text[len] = '\0';
    line = strstr(text, "\nUmask:");
    return line ? (mode_t)strtoul(line + strlen("\nUmask:"), NULL, 8) & 0777 : 0777;
}

int pf_copy_job_init(struct pf_copy_job *job, const struct pf_copy_options *options)
{
    struct stat st = { .st_ino = 0 };

    *job = (struct pf_copy_job){ .options = options, .umask = read_umask() };
    if (options->dst_fd >= 0 && fstat(options->dst_fd, &st) == 0) {
        job->dst_dev = st.st_dev;
        job->dst_ino = st.st_ino;
    }
    job->buffer = malloc(PF_DATA_BUFFER);
    if (!job->buffer)
        return -PINFOLD_ENOMEM;
    pthread_mutex_init(&job->lock, NULL); /* these cannot fail on Linux */
    pthread_cond_init(&job->changed, NULL);
    return 0;
}

static void free_batches(struct pf_copy_batch *batch)
{
    while (batch) {
        struct pf_copy_batch *next = batch->next;

        pf_copy_dir_unref(batch->dir);
        free(batch);
        batch = next;
    }
}

void pf_copy_job_done(struct pf_copy_job *job)
{
    free_batches(job->first);
    free_batches(job->spare);
    pinfold_strings_done(&job->errors);
    pinfold_strings_done(&job->skipped);
    if (!job->buffer)
        return;
    pthread_cond_destroy(&job->changed);
    pthread_mutex_destroy(&job->lock);
    free(job->buffer);
}

void pf_copy_no_memory(struct pf_copy_job *job)
{
    atomic_store(&job->no_memory, true);
    atomic_store(&job->stopped, true);
}

/* Keep a line, or count it. */
static void add_error(struct pf_copy_job *job, char *line)
{
    bool kept = line && job->errors.count < PF_COPY_MAX_ERRORS;
    int r = 0;

    if (kept)
        r = pf_strings_take(&job->errors, line);
    else
        free(line);
    if (!line || r < 0)
        pf_copy_no_memory(job);
    job->errors_dropped += !kept;
}

void pf_copy_refuse(struct pf_copy_job *job, const char *dir, const char *name, const char *why)
{
    char *path = NULL, *line = NULL;

    if (asprintf(&path, "%s%s%s", dir, dir[0] && name[0] ? "/" : "", name) < 0)
        path = NULL;
    if (path && asprintf(&line, "copy \"%s\": %s", PF_QUOTE(path[0] ? path : "."), why) < 0)
        line = NULL;
    free(path);
    pthread_mutex_lock(&job->lock);
    add_error(job, line);
    pthread_mutex_unlock(&job->lock);
}

void pf_copy_fail(struct pf_copy_job *job, const char *dir, const char *name, const char *step,
                  int sys_errno)
{
    const char *cause = sys_errno == ESTALE ? "it was moved meanwhile" : strerrordesc_np(sys_errno);
    char why[128];

    if (sys_errno == ENOMEM) {
        pf_copy_no_memory(job);
        return;
    }
    snprintf(why, sizeof(why), "%s: %s", step, cause ? cause : "unknown error");
    pf_copy_refuse(job, dir, name, why);
    if ((sys_errno == ENOSPC || sys_errno == EDQUOT) &&
        atomic_fetch_add(&job->full_errors, 1) + 1 == PF_COPY_MAX_FULL) {
        atomic_store(&job->disk_full, true);
        atomic_store(&job->stopped, true);
    }
}

void pf_copy_skipped(struct pf_copy_job *job, const char *dir, const char *name, bool is_dir)
{
    int r;

    pthread_mutex_lock(&job->lock);
    r = pf_strings_addf(&job->skipped, "%s%s%s%s", dir, dir[0] ? "/" : "", name, is_dir ? "/" : "");
    pthread_mutex_unlock(&job->lock);
    if (r < 0)
        pf_copy_no_memory(job);
}

struct pf_copy_dir *pf_copy_dir_new(struct pf_copy_job *job, int src_fd, int dst_fd,
                                    const char *path, size_t path_len)
{
    struct pf_copy_dir *dir = calloc(1, sizeof(*dir) + path_len + 1);

    if (!dir) {
        pf_copy_no_memory(job);
        return NULL;
    }
    atomic_init(&dir->refs, 1);
    memcpy(dir->path, path, path_len);
    dir->src_fd = fcntl(src_fd, F_DUPFD_CLOEXEC, 0);
    dir->dst_fd = fcntl(dst_fd, F_DUPFD_CLOEXEC, 0);
    if (dir->src_fd >= 0 && dir->dst_fd >= 0)
        return dir;
    pf_copy_fail(job, dir->path, "", "open the directory", errno);
    pf_copy_dir_unref(dir);
    return NULL;
}

void pf_copy_dir_unref(struct pf_copy_dir *dir)
{
    if (!dir || atomic_fetch_sub(&dir->refs, 1) > 1)
        return;
    if (dir->src_fd >= 0)
        close(dir->src_fd);
    if (dir->dst_fd >= 0)
        close(dir->dst_fd);
    free(dir);
}

bool pf_copy_tick(struct pf_copy_worker *worker)
{
    struct pf_copy_job *job = worker->job;
    const struct pf_copy_options *options = job->options;
    int64_t now;

    if (pinfold_cancel_fired(options->cancel))
        atomic_store(&job->stopped, true);
    if (worker->caller && options->on_progress) {
        now = pf_clock_now();
        if (now >= job->next_progress) {
            job->next_progress = now + PROGRESS_MS * PF_NS_PER_MS;
            options->on_progress(options->on_progress_ctx, atomic_load(&job->files),
                                 atomic_load(&job->moved));
        }
    }
    return atomic_load(&job->stopped);
}

int pf_copy_tick_read(void *worker, uint64_t bytes)
{
    (void)bytes;
    return pf_copy_tick(worker) ? -ECANCELED : 0;
}

static struct pf_copy_worker caller_of(struct pf_copy_job *job)
{
    return (struct pf_copy_worker){ .job = job, .buffer = job->buffer, .caller = true };
}

/* Take the first batch that waits. The lock is held. */
static struct pf_copy_batch *take(struct pf_copy_job *job)
{
    struct pf_copy_batch *batch = job->first;

    if (!batch)
        return NULL;
    job->first = batch->next;
    if (!job->first)
        job->last = NULL;
    return batch;
}

static void work_off(struct pf_copy_worker *worker, struct pf_copy_batch *batch)
{
    struct pf_copy_job *job = worker->job;
    const char *name = batch->names;

    for (unsigned i = 0; i < batch->count && !pf_copy_tick(worker); i++) {
        pf_copy_file(worker, batch->dir, name);
        name += strlen(name) + 1;
    }
    pf_copy_dir_unref(batch->dir);
    batch->dir = NULL;
    pthread_mutex_lock(&job->lock);
    batch->next = job->spare;
    job->spare = batch;
    pthread_cond_broadcast(&job->changed);
    pthread_mutex_unlock(&job->lock);
}

static void *run_thread(void *arg)
{
    struct pf_copy_job *job = arg;
    struct pf_copy_worker worker = { .job = job, .buffer = malloc(PF_DATA_BUFFER) };
    struct pf_copy_batch *batch;

    if (!worker.buffer)
        return NULL; /* the others do the work */
    for (;;) {
        pthread_mutex_lock(&job->lock);
        while (!(batch = take(job)) && !job->closing)
            pthread_cond_wait(&job->changed, &job->lock);
        pthread_mutex_unlock(&job->lock);
        if (!batch)
            break;
        work_off(&worker, batch);
    }
    free(worker.buffer);
    return NULL;
}

/* One thread a processor. The signals of the program are none of their business. When one cannot
 * be started, there are fewer. */
static void start_threads(struct pf_copy_job *job)
{
    unsigned wanted = 2;
    pthread_attr_t attributes;
    sigset_t all, before;
    cpu_set_t cpus;

    if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
        wanted = (unsigned)CPU_COUNT(&cpus);
    if (wanted > PF_COPY_MAX_THREADS)
        wanted = PF_COPY_MAX_THREADS;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (job->thread_count < wanted &&
           pthread_create(&job->threads[job->thread_count], &attributes, run_thread, job) == 0)
        job->thread_count++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

struct pf_copy_batch *pf_copy_batch_new(struct pf_copy_job *job, struct pf_copy_dir *dir)
{
    struct pf_copy_worker caller = caller_of(job);
    struct pf_copy_batch *batch = NULL, *waiting;

    while (!batch) {
        pthread_mutex_lock(&job->lock);
        batch = job->spare;
        if (batch)
            job->spare = batch->next;
        /* All are in use: help. When none waits any more the threads will soon give one back. */
        waiting = batch || job->batch_count < PF_COPY_MAX_BATCHES ? NULL : take(job);
        if (!batch && !waiting && job->batch_count == PF_COPY_MAX_BATCHES)
            pthread_cond_wait(&job->changed, &job->lock);
        pthread_mutex_unlock(&job->lock);
        if (waiting)
            work_off(&caller, waiting);
        else if (!batch && job->batch_count < PF_COPY_MAX_BATCHES) {
            batch = malloc(sizeof(*batch));
            if (!batch) {
                pf_copy_no_memory(job);
                return NULL;
            }
            job->batch_count++;
        }
    }
    atomic_fetch_add(&dir->refs, 1);
    batch->next = NULL;
    batch->dir = dir;
    batch->count = 0;
    batch->used = 0;
    return batch;
}

bool pf_copy_batch_add(struct pf_copy_batch *batch, const char *name)
{
    size_t len = strlen(name) + 1;

    if (batch->count == PF_COPY_BATCH_FILES || batch->used + len > sizeof(batch->names))
        return false;
    memcpy(batch->names + batch->used, name, len);
    batch->used += len;
    batch->count++;
    return true;
}

void pf_copy_submit(struct pf_copy_job *job, struct pf_copy_batch *batch)
{
    pthread_mutex_lock(&job->lock);
    if (job->last)
        job->last->next = batch;
    else
        job->first = batch;
    job->last = batch;
    job->queued_files += batch->count;
    pthread_cond_signal(&job->changed);
    pthread_mutex_unlock(&job->lock);
    if (job->thread_count == 0 && job->queued_files >= ENOUGH_FILES)
        start_threads(job);
}

void pf_copy_finish(struct pf_copy_job *job)
{
    struct pf_copy_worker caller = caller_of(job);
    struct pf_copy_batch *batch;

    do {
        pthread_mutex_lock(&job->lock);
        job->closing = true;
        batch = take(job);
        pthread_cond_broadcast(&job->changed);
        pthread_mutex_unlock(&job->lock);
        if (batch)
            work_off(&caller, batch);
    } while (batch);
    for (unsigned i = 0; i < job->thread_count; i++) {
        struct timespec until;

        /* Wake up now and then to report what the threads do. */
        do {
            pf_copy_tick(&caller);
            clock_gettime(CLOCK_REALTIME, &until); /* the clock that the join is made for */
            until.tv_nsec += PROGRESS_MS * PF_NS_PER_MS;
            until.tv_sec += until.tv_nsec / PF_NS_PER_SEC;
            until.tv_nsec %= PF_NS_PER_SEC;
        } while (pthread_timedjoin_np(job->threads[i], NULL, &until) == ETIMEDOUT);
    }
    job->thread_count = 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "spec.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>

static pthread_mutex_t events_lock = PTHREAD_MUTEX_INITIALIZER;

static void copy_text(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from ? from : "");
}
#define COPY(to, from) copy_text(to, sizeof(to), from)

static void record(void *ctx, const struct pinfold_audit_event *event)
{
    struct spec *s = ctx;

    pthread_mutex_lock(&events_lock);
    if (s->event_count < sizeof(s->events) / sizeof(s->events[0])) {
        struct spec_event *e = &s->events[s->event_count++];
        COPY(e->event, event->event);
        COPY(e->path, event->path);
        COPY(e->dest, event->dest);
        COPY(e->cwd, event->cwd);
        COPY(e->error, event->error);
        COPY(e->agent_id, event->agent_id);
        COPY(e->mode, event->mode);
        COPY(e->view, event->view);
        COPY(e->sha256, event->command_sha256);
        COPY(e->inferred_op, event->inferred_op);
        COPY(e->owner_id, event->owner_id);
        COPY(e->workspace_id, event->workspace_id);
        COPY(e->backend_type, event->backend_type);
        e->command_len = event->command_len;
        e->duration_ns = event->duration_ns;
        e->files = event->files;
        e->bytes = event->bytes;
        e->errors = event->errors;
        e->exit_code = event->exit_code;
        e->truncated = event->truncated;
        e->timed_out = event->timed_out;
        if (pinfold_audit_event_json(event, &e->json, NULL) < 0)
            e->json = NULL;
    }
    pthread_mutex_unlock(&events_lock);
}

const struct spec_event *spec_event(struct spec *s, const char *name)
{
    for (size_t i = s->event_count; i > 0; i--)
        if (strcmp(s->events[i - 1].event, name) == 0)
            return &s->events[i - 1];
    return NULL;
}

unsigned spec_event_count(struct spec *s, const char *name)
{
    unsigned count = 0;

    for (size_t i = 0; i < s->event_count; i++)
        count += strcmp(s->events[i].event, name) == 0;
    return count;
}

int spec_setup(void **state)
{
    struct spec *s = calloc(1, sizeof(*s));
    const char *base = getenv("TMPDIR");

    if (!s)
        return -1;
    if (!base || strlen(base) > 40)
        base = "/tmp";
    snprintf(s->dir, sizeof(s->dir), "%s/pinfold-spec-XXXXXX", base);
    if (!mkdtemp(s->dir)) {
        free(s);
        return -1;
    }
    *state = s;
    spec_dir(s, "seed");
    spec_dir(s, "dest");
    spec_local(s, NULL);
    return 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)ftw;
    return type == FTW_DP || type == FTW_DNR ? rmdir(path) : unlink(path);
}

static int open_up(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)ftw;
    if ((type == FTW_D || type == FTW_DNR) && (st->st_mode & 0700) != 0700)
        return chmod(path, 0700);
    return 0;
}

int spec_teardown(void **state)
{
    struct spec *s = *state;
    int r;

    pinfold_sandbox_free(s->sandbox);
    pinfold_sandbox_free(s->other);
    pinfold_manager_unref(s->manager);
    pinfold_backend_unref(s->backend);
    pinfold_backend_unref(s->below);
    pinfold_seed_result_done(&s->seed);
    pinfold_sync_result_done(&s->sync);
    pinfold_execute_result_done(&s->run);
    pinfold_bytes_done(&s->text);
    pinfold_strings_done(&s->paths);
    for (size_t i = 0; i < s->event_count; i++)
        free(s->events[i].json);
    nftw(s->dir, open_up, 16, FTW_PHYS);
    r = nftw(s->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(s);
    return r;
}

int spec_check_ok(struct spec *s, int r, const char *call, int line)
{
    if (r < 0) {
        print_error("line %d: %s: %s: %s\n", line, call, pinfold_code_name(r), s->err.msg);
        _fail(__FILE__, line);
    }
    return r;
}

void spec_check_refused(struct spec *s, enum pinfold_code code, int r, const char *call, int line)
{
    if (r != -(int)code || s->err.code != (int)code || s->err.msg[0] == '\0') {
        print_error("line %d: %s: wanted %s, returned %d (%s), filled %s: \"%s\"\n", line, call,
                    pinfold_code_name((int)code), r, pinfold_code_name(r),
                    pinfold_code_name(s->err.code), s->err.msg);
        _fail(__FILE__, line);
    }
}

bool spec_is_overlay(void)
{
    const char *name = getenv("PINFOLD_SPEC_BACKEND");

    return name && strcmp(name, "overlay") == 0;
}

/* The descriptor through which the library, in this process, works on an overlay: the root of a
 * file system of that type. -1: there is none, not yet or not any more. */
static int overlay_root(void)
{
    struct dirent *entry;
    DIR *dir = opendir("/proc/self/fd");
    int found = -1;

    assert_non_null(dir);
    while (found < 0 && (entry = readdir(dir))) {
        struct statfs fs;
        char link[300], target[2] = "";
        int fd = atoi(entry->d_name);
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        if (fd > 2 && fstatfs(fd, &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC &&
            readlink(link, target, sizeof(target)) == 1 && target[0] == '/')
            found = fd;
    }
    closedir(dir);
    return found;
}

static bool is_agentcore(void)
{
    const char *name = getenv("PINFOLD_SPEC_BACKEND");

    return name && strncmp(name, "agentcore", strlen("agentcore")) == 0;
}

static bool is_daytona(void)
{
    const char *name = getenv("PINFOLD_SPEC_BACKEND");

    return name && strcmp(name, "daytona") == 0;
}

/* The fake services have their sessions on this machine, where commands say they are. */
static bool put_session(struct spec *s, const char *path, char *slot, size_t size)
{
    const struct pinfold_backend_ops *ops = s->backend ? pinfold_backend_get_ops(s->backend) : NULL;
    const char *below = path + strlen("ws"), *root;

    if ((!is_agentcore() && !is_daytona()) || !ops || strncmp(path, "ws", 2) != 0 ||
        (*below && *below != '/'))
        return false;
    root = ops->workspace_root(pinfold_backend_get_state(s->backend));
    if (root)
        snprintf(slot, size, "%s%s", root, below);
    return root;
}

/* With an overlay the directory "ws" has its layers, and what commands see is elsewhere. */
static bool put_seen(struct spec *s, const char *path, char *slot, size_t size)
{
    const char *below = path + strlen("ws");
    struct stat st;
    int fd;

    if (s->seed.mode != PINFOLD_SEED_OVERLAY || strncmp(path, "ws", 2) != 0 ||
        (*below && *below != '/'))
        return false;
    fd = overlay_root();
    if (fd >= 0) {
        if (fstat(fd, &st) == 0)
            s->overlay_dev = st.st_dev;
        snprintf(slot, size, "/proc/self/fd/%d/.%s", fd, below);
    } else {
        snprintf(slot, size, "%s/ws/changes%s", s->dir, below);
    }
    return true;
}

const char *spec_at(struct spec *s, const char *path)
{
    static char slots[8][1200];
    static unsigned next;
    char *slot = slots[next++ % 8];

    if (!put_session(s, path, slot, sizeof(slots[0])) && !put_seen(s, path, slot, sizeof(slots[0])))
        snprintf(slot, sizeof(slots[0]), "%s/%s", s->dir, path);
    return slot;
}

static void make_parents(struct spec *s, const char *path)
{
    char copy[1024];

    copy_text(copy, sizeof(copy), path);
    for (char *at = strchr(copy, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        mkdir(spec_at(s, copy), 0755);
        *at = '/';
    }
}

void spec_dir(struct spec *s, const char *path)
{
    make_parents(s, path);
    if (mkdir(spec_at(s, path), 0755) < 0)
        assert_int_equal(errno, EEXIST);
}

void spec_put_bytes(struct spec *s, const char *path, const void *data, size_t len)
{
    FILE *file;

    make_parents(s, path);
    file = fopen(spec_at(s, path), "we");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

void spec_put(struct spec *s, const char *path, const char *text)
{
    spec_put_bytes(s, path, text, strlen(text));
}

void spec_link(struct spec *s, const char *target, const char *path)
{
    make_parents(s, path);
    assert_int_equal(symlink(target, spec_at(s, path)), 0);
}

void spec_mode(struct spec *s, const char *path, mode_t mode)
{
    assert_int_equal(chmod(spec_at(s, path), mode), 0);
}

bool spec_exists(struct spec *s, const char *path)
{
    struct stat st;

    return lstat(spec_at(s, path), &st) == 0;
}

void spec_is_bytes(struct spec *s, const char *path, const void *data, size_t len)
{
    FILE *file = fopen(spec_at(s, path), "re");
    char *content = malloc(len + 2);

    if (!file)
        print_error("%s: %s\n", path, strerror(errno));
    assert_non_null(file);
    assert_non_null(content);
    size_t got = fread(content, 1, len + 1, file);
    fclose(file);
    bool same = got == len && memcmp(content, data, len) == 0;
    if (!same)
        print_error("%s holds \"%.*s\"\n", path, (int)(got < 200 ? got : 200), content);
    free(content);
    assert_true(same);
}

void spec_is(struct spec *s, const char *path, const char *text)
{
    spec_is_bytes(s, path, text, strlen(text));
}

void spec_missing(struct spec *s, const char *path)
{
    if (spec_exists(s, path))
        fail_msg("%s exists", path);
    assert_int_equal(errno, ENOENT);
}

struct stat spec_stat(struct spec *s, const char *path)
{
    struct stat st = { 0 };

    assert_int_equal(lstat(spec_at(s, path), &st), 0);
    return st;
}

unsigned spec_entries(struct spec *s, const char *path)
{
    DIR *dir = opendir(spec_at(s, path));
    unsigned count = 0;

    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 2; /* "." and ".." */
}

/* The same in the terms of the isolated backend. */
static void make_isolated(struct spec *s, const struct pinfold_local_options *local)
{
    struct pinfold_isolated_options isolated = PINFOLD_ISOLATED_OPTIONS_INIT;

    isolated.workspace_root = local->workspace_root;
    isolated.timeout_seconds = local->timeout_seconds;
    isolated.max_output_bytes = local->max_output_bytes;
    isolated.env = local->env;
    if (spec_is_overlay())
        isolated.seed_mode = PINFOLD_SEED_OVERLAY;
    spec_ok(s, pinfold_isolated_backend_new(&isolated, &s->backend, &s->err));
}

static void make_agentcore(struct spec *s, const struct pinfold_local_options *local)
{
    struct pinfold_agentcore_options options = PINFOLD_AGENTCORE_OPTIONS_INIT;
    struct pinfold_backend *from;

    options.region = "us-west-2";
    options.endpoint = getenv("PINFOLD_AGENTCORE_ENDPOINT");
    options.access_key = "AKIAFAKEFAKEFAKEFAKE";
    options.secret_key = "fakeSecretKey/Example+0123456789ABCDEFGH";
    options.max_output_bytes = local->max_output_bytes;
    options.env = local->env;
    options.long_commands = !spec_lacks("timeouts");
    spec_ok(s, pinfold_agentcore_template_new(&options, &from, &s->err));
    spec_ok(s, pinfold_backend_get_ops(from)->build_for_session(pinfold_backend_get_state(from),
                                                                "spec", &s->backend, &s->err));
    pinfold_backend_unref(from);
}

/* The service beside the test is in the environment. */
static void make_daytona(struct spec *s, const struct pinfold_local_options *local)
{
    struct pinfold_daytona_options options = PINFOLD_DAYTONA_OPTIONS_INIT;
    struct pinfold_backend *from;

    options.timeout_seconds = local->timeout_seconds;
    options.max_output_bytes = local->max_output_bytes;
    options.env = local->env;
    spec_ok(s, pinfold_daytona_template_new(&options, &from, &s->err));
    spec_ok(s, pinfold_backend_get_ops(from)->build_for_session(pinfold_backend_get_state(from),
                                                                "spec", &s->backend, &s->err));
    pinfold_backend_unref(from);
}

const char *spec_backend_type(void)
{
    return is_agentcore()       ? "AgentCoreSandboxBackend"
           : is_daytona()       ? "DaytonaSandboxBackend"
           : spec_is_isolated() ? "IsolatedSandboxBackend"
                                : "LocalSandboxBackend";
}

static struct spec *to_seed;

static int put_and_seed(void *state, const struct pinfold_seed_request *request,
                        struct pinfold_seed_result *ret, struct pinfold_cancel *cancel,
                        struct pinfold_error *err)
{
    for (size_t i = 0; i < 8 && to_seed->before_seed[i].path; i++)
        spec_put(to_seed, to_seed->before_seed[i].path, to_seed->before_seed[i].text);
    return pinfold_backend_get_ops(to_seed->below)
            ->seed_workspace(state, request, ret, cancel, err);
}

void spec_put_before_seed(struct spec *s, const char *path, const char *text)
{
    static struct pinfold_backend_ops ops;
    size_t i = 0;

    if (!spec_lacks("host directory")) {
        spec_put(s, path, text);
        return;
    }
    if (!s->below) {
        struct pinfold_backend *backend = NULL;
        spec_copy_table(s, &ops);
        ops.seed_workspace = put_and_seed;
        spec_ok(s, pinfold_backend_new(&ops, pinfold_backend_get_state(s->backend), NULL, &backend,
                                       &s->err));
        s->below = s->backend;
        s->backend = backend;
        to_seed = s;
    }
    while (s->before_seed[i].path)
        i++;
    assert_true(i < 7);
    s->before_seed[i].path = path;
    s->before_seed[i].text = text;
}

bool spec_is_isolated(void)
{
    const char *name = getenv("PINFOLD_SPEC_BACKEND");

    return spec_is_overlay() || (name && strcmp(name, "isolated") == 0);
}

const char *spec_inside(struct spec *s, const char *path)
{
    static char text[300];
    const char *below = path + strlen("ws");

    if (!spec_is_isolated())
        return spec_at(s, path);
    snprintf(text, sizeof(text), "/workspace%s", below);
    return text;
}

unsigned spec_lines(const struct spec *s)
{
    unsigned lines = 0;

    for (size_t i = 0; i < s->run.stdout_len; i++)
        lines += s->run.output[i] == '\n';
    return lines;
}

const char *spec_real(struct spec *s, const char *path)
{
    static char real[PATH_MAX];

    if (spec_is_isolated())
        return spec_inside(s, path);
    assert_non_null(realpath(spec_at(s, path), real));
    return real;
}

void spec_local(struct spec *s, const struct pinfold_local_options *options)
{
    struct pinfold_local_options local = PINFOLD_LOCAL_OPTIONS_INIT;

    if (options)
        local = *options;
    if (!local.workspace_root)
        local.workspace_root = spec_at(s, "ws");
    pinfold_backend_unref(s->backend);
    s->backend = NULL;
    if (spec_is_isolated())
        make_isolated(s, &local);
    else if (is_agentcore())
        make_agentcore(s, &local);
    else if (is_daytona())
        make_daytona(s, &local);
    else
        spec_ok(s, pinfold_local_backend_new(&local, &s->backend, &s->err));
}

struct pinfold_sandbox_options spec_options(struct spec *s)
{
    return (struct pinfold_sandbox_options){
        .size = sizeof(struct pinfold_sandbox_options),
        .workspace_id = "spec",
        .backend = s->backend,
        .ttl_seconds = 3600,
        .audit = { record, s },
    };
}

/* A sandbox without a seed gets one that is empty, so that its workspace is an overlay too. */
void spec_new(struct spec *s, const struct pinfold_sandbox_options *options)
{
    struct pinfold_sandbox_options seeded = *options;

    if (spec_is_overlay() && !options->seed_from) {
        spec_dir(s, "blank");
        seeded.seed_from = spec_at(s, "blank");
        options = &seeded;
    }
    pinfold_sandbox_free(s->sandbox);
    s->sandbox = NULL;
    spec_ok(s, pinfold_sandbox_new(options, &s->sandbox, &s->err));
}

void spec_start(struct spec *s, const struct pinfold_sandbox_options *options)
{
    spec_new(s, options);
    pinfold_seed_result_done(&s->seed);
    spec_ok(s, pinfold_sandbox_start(s->sandbox, &s->seed, NULL, &s->err));
    assert_int_equal(s->seed.errors.count, 0);
}

void spec_start_plain(struct spec *s)
{
    struct pinfold_sandbox_options options = spec_options(s);

    spec_start(s, &options);
}

void spec_start_seeded(struct spec *s)
{
    struct pinfold_sandbox_options options = spec_options(s);

    options.seed_from = spec_at(s, "seed");
    spec_start(s, &options);
}

void spec_flush(struct spec *s)
{
    pinfold_sync_result_done(&s->sync);
    assert_int_equal(spec_ok(s, pinfold_sandbox_flush(s->sandbox, spec_at(s, "dest"), &s->sync,
                                                      NULL, &s->err)),
                     1);
    if (s->sync.errors.count > 0)
        fail_msg("flush: %s", s->sync.errors.items[0]);
}

void spec_stop(struct spec *s)
{
    spec_ok(s, pinfold_sandbox_stop(s->sandbox, false, NULL, NULL, &s->err));
}

void spec_run_with(struct spec *s, const struct pinfold_execute_options *options)
{
    pinfold_execute_result_done(&s->run);
    spec_ok(s, pinfold_sandbox_execute(s->sandbox, options, &s->run, NULL, &s->err));
}

struct pinfold_execute_options spec_shell(const char *command, double timeout)
{
    return (struct pinfold_execute_options){ .size = sizeof(struct pinfold_execute_options),
                                             .command = command,
                                             .timeout_seconds = timeout };
}

void *spec_call(void *call)
{
    struct spec_call *it = call;

    it->r = pinfold_sandbox_execute(it->s->sandbox, &it->options, &it->result, it->cancel,
                                    &it->err);
    return NULL;
}

void spec_run(struct spec *s, const char *command)
{
    struct pinfold_execute_options options = PINFOLD_EXECUTE_OPTIONS_INIT;

    options.command = command;
    options.timeout_seconds = 60;
    spec_run_with(s, &options);
}

static void text_is(const char *what, const char *data, size_t len, const char *text)
{
    if (len != strlen(text) || memcmp(data, text, len) != 0)
        fail_msg("%s is \"%.*s\", not \"%s\"", what, (int)len, data, text);
}

void spec_stdout_is(struct spec *s, const char *text)
{
    text_is("stdout", s->run.output, s->run.stdout_len, text);
}

void spec_stderr_is(struct spec *s, const char *text)
{
    text_is("stderr", s->run.stderr_text, s->run.stderr_len, text);
}

bool spec_has(const struct pinfold_strings *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], text) == 0)
            return true;
    return false;
}

bool spec_any_contains(const struct pinfold_strings *list, const char *part)
{
    for (size_t i = 0; i < list->count; i++)
        if (strstr(list->items[i], part))
            return true;
    return false;
}

void spec_copy_table(struct spec *s, struct pinfold_backend_ops *table)
{
    *table = *pinfold_backend_get_ops(s->backend);
    table->free = NULL; /* the state stays s->backend's */
}

void spec_sleep(double seconds)
{
    struct timespec left = { .tv_sec = (time_t)seconds,
                             .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9) };

    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

#define PATIENCE 2000 /* times 10 ms */

void spec_wait_for(struct spec *s, const char *path)
{
    for (int i = 0; i < PATIENCE && !spec_exists(s, path); i++)
        spec_sleep(0.01);
    assert_true(spec_exists(s, path));
}

pid_t spec_pid(struct spec *s, const char *path)
{
    long pid = 0;
    char end = '\0';

    for (int i = 0; i < PATIENCE && end != '\n'; i++) {
        FILE *file = fopen(spec_at(s, path), "re");
        if (file && fscanf(file, "%ld%c", &pid, &end) != 2)
            end = '\0';
        if (file)
            fclose(file);
        if (end != '\n')
            spec_sleep(0.01);
    }
    assert_int_equal(end, '\n');
    assert_true(pid > 1);
    return (pid_t)pid;
}

/* Whether a file of /proc holds all of three texts. */
static bool proc_file_has(const char *pid, const char *file, const char *text, const char *more)
{
    char path[300], content[65536];
    int fd;
    ssize_t len = -1;

    snprintf(path, sizeof(path), "/proc/%s/%s", pid, file);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    len = read(fd, content, sizeof(content) - 1);
    close(fd);
    content[len < 0 ? 0 : len] = '\0';
    return strstr(content, text) && strstr(content, more);
}

/* A process is known by its number inside, and by the workspace that is mounted there. */
static bool alive_inside(struct spec *s, pid_t pid)
{
    char number[32], workspace[200];
    struct dirent *entry;
    bool found = false;
    DIR *proc = opendir("/proc");

    assert_non_null(proc);
    snprintf(number, sizeof(number), "\t%d\nNSpgid", (int)pid);
    if (s->overlay_dev)
        snprintf(workspace, sizeof(workspace), " %u:%u / /workspace", major(s->overlay_dev),
                 minor(s->overlay_dev));
    else
        snprintf(workspace, sizeof(workspace), "%s/ws /workspace", strrchr(s->dir, '/'));
    while (!found && (entry = readdir(proc)))
        found = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
                proc_file_has(entry->d_name, "status", number, "NSpid") &&
                proc_file_has(entry->d_name, "mountinfo", workspace, "/workspace");
    closedir(proc);
    return found;
}

bool spec_alive(struct spec *s, pid_t pid)
{
    if (spec_is_isolated())
        return alive_inside(s, pid);
    return kill(pid, 0) == 0 || errno == EPERM;
}

bool spec_gone_soon(struct spec *s, pid_t pid)
{
    for (int i = 0; i < PATIENCE && spec_alive(s, pid); i++)
        spec_sleep(0.01);
    return !spec_alive(s, pid);
}

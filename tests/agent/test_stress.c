/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fifty agents on one sandbox, attaching, working, detaching and stopping at random, and a thread
 * that stops and starts the sandbox meanwhile. What is looked at: nothing hangs or breaks, every
 * call says what became of it in one of the ways it may, and nothing is left running.
 * PF_STRESS_SECONDS is how long; the order of things is the machine's. Once on a backend in memory,
 * and once on each of the real ones of this machine.
 */
#include "agents.h"

#include <pthread.h>
#include <stdatomic.h>

enum { AGENTS = 50, THREADS = 10 };

static struct {
    char dir[64];
    struct pinfold_backend *backend;
    struct pinfold_sandbox *sandbox;
    struct pinfold_agent *agents[AGENTS];
    atomic_bool stop;
    atomic_int executing; /* in the backend in memory */
    atomic_ulong attached, worked, refused;
} t;

/* A small generator of each thread's own: rand() is one for all. */
static unsigned next(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static _Noreturn void fail_now(const char *what, int r, const struct pinfold_error *err)
{
    fprintf(stderr, "%s: %d %s\n", what, r, err->msg);
    abort(); /* cmocka cannot be told from another thread */
}

/* Attach, and whatever may have come between. */
static void attach(struct pinfold_agent *agent, unsigned random)
{
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    enum pinfold_attach_mode mode = random % 4 == 0 ? PINFOLD_READ_ONLY : PINFOLD_READ_WRITE;
    int r = pinfold_agent_attach(agent, t.sandbox, mode, &err);

    if (r != 0 && r != -PINFOLD_EATTACH)
        fail_now("attach", r, &err);
    atomic_fetch_add(&t.attached, r == 0);
}

/* Use the workspace by a tool or a helper. Agents that are detached meanwhile are told so. */
static void work(struct pinfold_agent *agent, unsigned random)
{
    static const struct {
        const char *tool, *input;
    } calls[] = {
        { "execute", "{\"command\":\"echo x >> log\"}" },
        { "execute", "{\"command\":\"sleep 0.05; echo done\"}" },
        { "write_file", "{\"path\":\"f\",\"content\":\"text\"}" },
        { "read_file", "{\"path\":\"f\"}" },
        { "list_dir", "{\"path\":\".\"}" },
    };
    struct pinfold_tool_result result = { 0 };
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    size_t which = random % 5;
    int r = pinfold_agent_call_tool(agent, calls[which].tool, calls[which].input,
                                    strlen(calls[which].input), &result, NULL, &err);

    if (r != 0 && r != -PINFOLD_ECANCELLED)
        fail_now(calls[which].tool, r, &err);
    if (r == 0 && result.count == 0)
        fail_now("a result without a block", 0, &err);
    atomic_fetch_add(r == 0 && !result.is_error ? &t.worked : &t.refused, 1);
    pinfold_tool_result_done(&result);
    r = pinfold_write_workspace_file(agent, "g", "x", 1, NULL, &err);
    if (r != 0 && r != -PINFOLD_EDETACHED && r != -PINFOLD_EDENIED && r != -PINFOLD_ESTART &&
        r != -PINFOLD_ECANCELLED)
        fail_now("write", r, &err);
}

static void *be_agents(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;

    while (!atomic_load(&t.stop)) {
        struct pinfold_agent *agent = t.agents[next(&seed) % AGENTS];

        switch (next(&seed) % 8) {
        case 0:
        case 1:
            attach(agent, next(&seed));
            break;
        case 2:
            pinfold_agent_detach(agent);
            break;
        case 3:
            pinfold_sandbox_detach(t.sandbox, agent);
            break;
        case 4:
            pinfold_agent_cancel(agent);
            break;
        default:
            work(agent, next(&seed));
        }
    }
    return NULL;
}

static void *be_owner(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;

    while (!atomic_load(&t.stop)) {
        struct pinfold_error err = PINFOLD_ERROR_INIT;
        int r;

        pause_ms((long)(next(&seed) % 60));
        r = pinfold_sandbox_stop(t.sandbox, false, NULL, NULL, &err);
        if (r < 0)
            fail_now("stop", r, &err);
        r = pinfold_sandbox_start(t.sandbox, NULL, NULL, &err);
        if (r < 0)
            fail_now("start", r, &err);
    }
    return NULL;
}

/* ---- a workspace in memory: one file, and commands that only take time ---- */

static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;
static size_t memory_len; /* of the file */

static int memory_read(void *state, const char *path, struct pinfold_bytes *ret,
                       struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    (void)state;
    (void)path;
    (void)cancel;
    (void)err;
    pthread_mutex_lock(&memory_lock);
    ret->data = calloc(1, memory_len + 1);
    ret->len = memory_len;
    memset(ret->data, 'x', memory_len);
    pthread_mutex_unlock(&memory_lock);
    return 0;
}

static int memory_write(void *state, const char *path, const void *data, size_t len, bool exclusive,
                        struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    (void)state;
    (void)path;
    (void)data;
    (void)exclusive;
    (void)cancel;
    (void)err;
    pthread_mutex_lock(&memory_lock);
    memory_len = len;
    pthread_mutex_unlock(&memory_lock);
    return 0;
}

static int memory_list(void *state, const char *path, struct pinfold_file_infos *ret,
                       struct pinfold_cancel *cancel, struct pinfold_error *err)
{
    (void)state;
    (void)path;
    (void)cancel;
    (void)err;
    ret->items = calloc(1, sizeof(*ret->items));
    ret->items[0] = (struct pinfold_file_info){ .path = strdup("f"), .size = 1 };
    ret->count = 1;
    return 0;
}

static int memory_execute(void *state, const struct pinfold_execute_options *options,
                          struct pinfold_execute_result *ret, struct pinfold_cancel *cancel,
                          struct pinfold_error *err)
{
    int r = 0;

    (void)state;
    (void)options;
    atomic_fetch_add(&t.executing, 1);
    for (int i = 0; r == 0 && i < 20; i++) {
        pause_ms(1);
        if (pinfold_cancel_fired(cancel)) {
            *err = (struct pinfold_error){ .code = PINFOLD_ECANCELLED };
            r = -PINFOLD_ECANCELLED;
        }
    }
    atomic_fetch_sub(&t.executing, 1);
    ret->output = strdup("alive\n");
    ret->output_len = 6;
    ret->stderr_text = strdup("");
    return r;
}

/* Detaching and closing wait for operations: none may be under way here. */
static int memory_close(void *state, struct pinfold_error *err)
{
    (void)state;
    if (atomic_load(&t.executing) != 0)
        fail_now("closed under a command", 0, err);
    return 0;
}

static struct pinfold_backend *memory_backend(void)
{
    static const struct pinfold_backend_ops ops = { .size = sizeof(ops),
                                                    .type_name = "MemoryBackend",
                                                    .close = memory_close,
                                                    .read_file = memory_read,
                                                    .write_file = memory_write,
                                                    .list_dir = memory_list,
                                                    .execute = memory_execute };
    struct pinfold_backend *backend = NULL;

    assert_int_equal(pinfold_backend_new(&ops, NULL, NULL, &backend, NULL), 0);
    return backend;
}

/* ---- the test ---- */

static double seconds_since(const struct timespec *began)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - began->tv_sec) + (double)(now.tv_nsec - began->tv_nsec) / 1e9;
}

typedef struct pinfold_backend *(*backend_fn)(const char *root);

static struct pinfold_backend *memory_of(const char *root)
{
    (void)root;
    return memory_backend();
}

static struct pinfold_backend *local_of(const char *root)
{
    return local_backend(root);
}

static struct pinfold_backend *isolated_of(const char *root)
{
    struct pinfold_isolated_options options = PINFOLD_ISOLATED_OPTIONS_INIT;
    struct pinfold_backend *backend = NULL;

    options.workspace_root = root;
    assert_int_equal(pinfold_isolated_backend_new(&options, &backend, NULL), 0);
    return backend;
}

static void begin(backend_fn make_backend)
{
    struct pinfold_sandbox_options options = PINFOLD_SANDBOX_OPTIONS_INIT;
    char id[16], ws[96];

    assert_non_null(test_tempdir("stress", t.dir, sizeof(t.dir)));
    snprintf(ws, sizeof(ws), "%s/ws", t.dir);
    t.backend = make_backend(ws);
    options.workspace_id = "stress";
    options.backend = t.backend;
    options.ttl_seconds = 3600;
    assert_int_equal(pinfold_sandbox_new(&options, &t.sandbox, NULL), 0);
    assert_int_equal(pinfold_sandbox_start(t.sandbox, NULL, NULL, NULL), 0);
    for (int i = 0; i < AGENTS; i++) {
        snprintf(id, sizeof(id), "agent-%d", i);
        t.agents[i] = plain_agent(id);
    }
}

/* A large process does not fork its supervisors itself, but has a helper do it; ThreadSanitizer is
 * lost in a fork of a process with threads. */
static void be_large(void)
{
#ifdef __SANITIZE_THREAD__
    enum { LARGE = 48 * 1024 * 1024 };
    static char *ballast;

    if (!ballast) {
        ballast = malloc(LARGE);
        assert_non_null(ballast);
        memset(ballast, 1, LARGE);
    }
#endif
}

static void run(backend_fn make_backend)
{
    const char *seconds = getenv("PF_STRESS_SECONDS");
    double wanted = seconds ? strtod(seconds, NULL) : 1;
    pthread_t threads[THREADS + 1];
    struct pinfold_error err = PINFOLD_ERROR_INIT;
    struct timespec began;

    memset(&t, 0, sizeof(t));
    be_large();
    begin(make_backend);
    clock_gettime(CLOCK_MONOTONIC, &began);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, be_agents, (void *)(i + 1)), 0);
    assert_int_equal(pthread_create(&threads[THREADS], NULL, be_owner, (void *)(uintptr_t)77), 0);
    /* At least so long, and until everything has happened: on a busy machine that takes longer. */
    while (seconds_since(&began) < wanted || atomic_load(&t.worked) < 20 ||
           atomic_load(&t.attached) < 20 || atomic_load(&t.refused) < 5) {
        assert_true(seconds_since(&began) < wanted + 200);
        pause_ms(10);
    }
    atomic_store(&t.stop, true);
    for (int i = 0; i <= THREADS; i++)
        pthread_join(threads[i], NULL);

    /* Everything still works. */
    assert_true(pinfold_sandbox_is_started(t.sandbox));
    for (int i = 0; i < AGENTS; i++) {
        pinfold_agent_detach(t.agents[i]);
        assert_int_equal(pinfold_agent_attach(t.agents[i], t.sandbox, PINFOLD_READ_WRITE, &err), 0);
    }
    assert_string_equal(ask_tool(t.agents[7], "execute", "{\"command\":\"echo alive\"}"),
                        "exit code: 0\nalive\n");
    /* Half of them are freed while attached, and half when the sandbox is gone. */
    for (int i = 0; i < AGENTS; i += 2)
        pinfold_agent_free(t.agents[i]);
    pinfold_sandbox_free(t.sandbox);
    for (int i = 1; i < AGENTS; i += 2) {
        assert_false(pinfold_agent_is_attached(t.agents[i]));
        pinfold_agent_free(t.agents[i]);
    }
    pinfold_backend_unref(t.backend);
    remove_tree(t.dir);
    if (seconds)
        print_message("attached %lu times, worked %lu times, refused %lu times\n",
                      atomic_load(&t.attached), atomic_load(&t.worked), atomic_load(&t.refused));
}

static void fifty_agents_come_and_go_in_memory(void **state)
{
    (void)state;
    run(memory_of);
}

static void fifty_agents_come_and_go_on_the_host(void **state)
{
    (void)state;
    run(local_of);
}

static void fifty_agents_come_and_go_in_isolation(void **state)
{
    (void)state;
    run(isolated_of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fifty_agents_come_and_go_in_memory),
        cmocka_unit_test(fifty_agents_come_and_go_on_the_host),
        cmocka_unit_test(fifty_agents_come_and_go_in_isolation),
    };

    return cmocka_run_group_tests_name("stress", tests, NULL, NULL);
}

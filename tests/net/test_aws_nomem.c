/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking for credentials with each allocation failing in turn: out of memory, or credentials all
 * the same, and nothing lost; and whatever our own code frees meanwhile holds no secret any more.
 * The service is a process of its own, for the count is of this one's.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/failing_alloc.h"
#include "net/aws_fixture.h"

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#else
#define VALGRIND_MAKE_MEM_DEFINED(at, size) (void)0
#endif

/* ---- what is freed ---- */

/* volatile: compilers know that free() looks at nothing */
static volatile bool watching;
static volatile unsigned leaks; /* blocks that were freed with a secret in them */

void __real_free(void *block);
void __wrap_free(void *block);

void __wrap_free(void *block)
{
    static const char *const secrets[] = { "SECRETWORD", "ststoken" };
    size_t size = watching && block ? malloc_usable_size(block) : 0;

    if (size > 0)
        (void)VALGRIND_MAKE_MEM_DEFINED(block, size);
    for (size_t i = 0; size > 0 && i < sizeof(secrets) / sizeof(secrets[0]); i++)
        leaks += memmem(block, size, secrets[i], strlen(secrets[i])) != NULL;
    __real_free(block);
}

static void the_watch_sees_a_secret(void **state)
{
    char *text = malloc(100);

    (void)state;
    memcpy(text, "...SECRETWORD", 14);
    __asm__ volatile("" : : "r"(text) : "memory"); /* the compiler shall not drop it */
    watching = true;
    free(text);
    watching = false;
    assert_int_equal(leaks, 1);
    leaks = 0;
}

/* ---- the services ---- */

/* Requests of all kinds get the answer that fits. */
static char *say(void *ctx, const char *request)
{
    (void)ctx;
    if (strncmp(request, "POST /token", 11) == 0)
        return aws_reply(200, "{\"accessToken\":\"SECRETWORD\",\"expiresIn\":60}");
    if (strncmp(request, "GET /federation", 15) == 0)
        return aws_reply(200, "{\"roleCredentials\":{\"accessKeyId\":\"SSO\",\"secretAccessKey\":"
                              "\"SECRETWORD\",\"sessionToken\":\"SECRETWORD\","
                              "\"expiration\":9999999999000}}");
    if (strstr(request, "WebIdentity&"))
        return aws_sts_reply("AssumeRoleWithWebIdentity", "WEB", 3600);
    if (strncmp(request, "POST /", 6) == 0)
        return aws_sts_reply("AssumeRole", "ROLE", 3600);
    if (strncmp(request, "PUT /", 5) == 0)
        return aws_reply(200, "SECRETWORD");
    if (strstr(request, "credentials/ HTTP"))
        return aws_reply(200, "role");
    return aws_metadata_reply("META", "SECRETWORD", 3600);
}

struct surroundings {
    struct aws_fixture f;
    pid_t server;
};

static int set_up(void **state)
{
    struct surroundings *s = calloc(1, sizeof(*s));
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct aws_server server = { .answer = say };
    socklen_t len = sizeof(address);

    assert_int_equal(pf_http_new(NULL, &s->f.http, &s->f.err), 0);
    assert_non_null(test_tempdir("pinfold-aws", s->f.dir, sizeof(s->f.dir)));
    server.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server.listener, (void *)&address, sizeof(address)), 0);
    assert_int_equal(listen(server.listener, 64), 0);
    assert_int_equal(getsockname(server.listener, (void *)&address, &len), 0);
    snprintf(s->f.url, sizeof(s->f.url), "http://127.0.0.1:%d", ntohs(address.sin_port));
    s->server = fork();
    if (s->server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pthread_mutex_init(&server.lock, NULL);
        server.count = REQUESTS_MAX; /* nobody looks at them */
        aws_serve(&server);
        _exit(0);
    }
    close(server.listener);
    aws_environment(&s->f);
    s->f.descriptors = count_descriptors();
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct surroundings *s = *state;

    pf_aws_credentials_done(&s->f.got);
    pf_http_free(s->f.http);
    kill(s->server, SIGKILL);
    waitpid(s->server, NULL, 0);
    nftw(s->f.dir, aws_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(s);
    return 0;
}

/* Until a search gets through without a failure. A failure inside libcurl's callbacks, or of what
 * is only kept for later, need not end the search. */
static void fail_everywhere(struct aws_fixture *f, const char *id)
{
    unsigned nth = 0, failures = 0;
    bool hit = true;

    while (hit) {
        int r;

        watching = true;
        failing_alloc_set(++nth);
        r = aws_get(f, NULL);
        hit = failing_alloc_hit();
        failing_alloc_set(0);
        if (r != 0 && r != -PINFOLD_ENOMEM)
            fail_msg("allocation %u: %d, %s", nth, r, f->err.msg);
        if (r != 0) {
            assert_true(hit);
            assert_int_equal(f->err.code, PINFOLD_ENOMEM);
            assert_null(f->got.access_key);
            failures++;
        } else {
            assert_string_equal(f->got.access_key, id);
        }
        pf_aws_credentials_done(&f->got);
        watching = false;
        if (leaks > 0)
            fail_msg("allocation %u: a secret was freed and not wiped", nth);
    }
    assert_true(failures >= 3);
}

#define KEYS "aws_access_key_id = A\naws_secret_access_key = SECRETWORD\n"

static void a_profile_without_memory(void **state)
{
    struct surroundings *s = *state;

    aws_file(&s->f, ".aws/config", "[default]\n" KEYS);
    fail_everywhere(&s->f, "A");
}

static void a_role_without_memory(void **state)
{
    struct surroundings *s = *state;

    aws_file(&s->f, ".aws/config",
             "[default]\nrole_arn = arn:r\nsource_profile = a\n[profile a]\n" KEYS);
    fail_everywhere(&s->f, "ROLE");
}

static void a_web_identity_without_memory(void **state)
{
    struct surroundings *s = *state;
    char path[400];

    aws_file(&s->f, "token", "SECRETWORD");
    snprintf(path, sizeof(path), "%s/token", s->f.dir);
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", path, 1);
    setenv("AWS_ROLE_ARN", "arn:r", 1);
    fail_everywhere(&s->f, "WEB");
}

static void a_login_without_memory(void **state)
{
    struct surroundings *s = *state;

    /* A token that is good for a minute, and refreshed to another of that kind each time. */
    aws_file(&s->f, ".aws/config",
             "[default]\nsso_session = corp\nsso_account_id = 1\nsso_role_name = r\n"
             "[sso-session corp]\nsso_region = us-west-2\nsso_start_url = u\n");
    aws_file(&s->f, ".aws/sso/cache/ee0bfd2552fbd840c02cc48b6e823320543c450f.json",
             "{\"accessToken\":\"SECRETWORD\",\"expiresAt\":\"2020-01-01T00:00:00Z\",\"clientId\":"
             "\"c\","
             "\"clientSecret\":\"SECRETWORD\",\"refreshToken\":\"SECRETWORD\"}");
    fail_everywhere(&s->f, "SSO");
}

static void a_process_without_memory(void **state)
{
    struct surroundings *s = *state;
    char config[400];

    aws_file(&s->f, "said",
             "{\"Version\":1,\"AccessKeyId\":\"P\",\"SecretAccessKey\":\"SECRETWORD\"}");
    snprintf(config, sizeof(config), "[default]\ncredential_process = cat %s/said\n", s->f.dir);
    aws_file(&s->f, ".aws/config", config);
    fail_everywhere(&s->f, "P");
    assert_int_equal(count_descriptors(), s->f.descriptors);
}

static void a_container_without_memory(void **state)
{
    struct surroundings *s = *state;
    char url[100];

    snprintf(url, sizeof(url), "%s/creds", s->f.url);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url, 1);
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "SECRETWORD", 1);
    fail_everywhere(&s->f, "META");
}

static void a_machine_without_memory(void **state)
{
    struct surroundings *s = *state;

    setenv("AWS_EC2_METADATA_DISABLED", "", 1);
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", s->f.url, 1);
    fail_everywhere(&s->f, "META");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_watch_sees_a_secret),
        TEST(a_profile_without_memory),
        TEST(a_role_without_memory),
        TEST(a_web_identity_without_memory),
        TEST(a_login_without_memory),
        TEST(a_process_without_memory),
        TEST(a_container_without_memory),
        TEST(a_machine_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole memory of this process is searched for a secret, as whoever has a core dump of it
 * would: while it is in use it is there, and afterwards it is nowhere. The test itself knows it
 * only with all bits turned round.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/random.h"
#include "tempdir.h"
#include "net/agentcore_server.h"

enum { SECRET_LEN = 40, BLOCK = 1 << 20 };

static unsigned char turned[SECRET_LEN];

static void turn(char *text)
{
    for (int i = 0; i < SECRET_LEN; i++)
        turned[i] = (unsigned char)~text[i];
}

/* The secret, for a moment; the caller wipes it. */
static void turn_back(char text[static SECRET_LEN + 1])
{
    for (int i = 0; i < SECRET_LEN; i++)
        text[i] = (char)~turned[i];
    text[SECRET_LEN] = '\0';
}

static unsigned find_in(const unsigned char *data, size_t len)
{
    unsigned found = 0;

    for (size_t at = 0; at + SECRET_LEN <= len; at++) {
        size_t same = 0;
        while (same < SECRET_LEN && (unsigned char)~data[at + same] == turned[same])
            same++;
        found += same == SECRET_LEN;
    }
    return found;
}

/* How often it is in all that can be written to, but for the mapping that we read into, and what is
 * so large that it is a sanitizer's shadow. */
static unsigned search_memory(void)
{
    unsigned char *block =
            mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FILE *maps = fopen("/proc/self/maps", "re");
    int mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    unsigned found = 0;
    char line[600];

    assert_true(block != MAP_FAILED && maps && mem >= 0);
    while (fgets(line, sizeof(line), maps)) {
        unsigned long start, end;
        char rights[8];
        if (sscanf(line, "%lx-%lx %7s", &start, &end, rights) != 3 || rights[1] != 'w' ||
            end - start > 1UL << 30)
            continue;
        for (unsigned long at = start; at < end; at += BLOCK - SECRET_LEN) {
            size_t want = end - at < BLOCK ? end - at : BLOCK;
            ssize_t n;
            if (at <= (unsigned long)block + BLOCK && at + want >= (unsigned long)block)
                continue;
            n = pread(mem, block, want, (off_t)at);
            found += n > 0 ? find_in(block, (size_t)n) : 0;
        }
    }
    explicit_bzero(block, BLOCK);
    munmap(block, BLOCK);
    fclose(maps);
    close(mem);
    return found;
}

/* Sign requests with a secret, and put everything away. */
static void use_secret(const struct pf_aws_options *keys, unsigned *ret_in_use)
{
    struct pf_aws_provider *provider = NULL;
    struct pf_agentcore *client = NULL;
    char endpoint[64];
    struct pf_agentcore_options options = { .region = "us-west-2",
                                            .identifier = "aws.codeinterpreter.v1",
                                            .endpoint = endpoint,
                                            .http = f->http };
    json_t *reply = NULL;

    snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%d", f->server.port);
    assert_int_equal(pf_aws_provider_new(keys, f->http, &provider, &f->err), 0);
    options.provider = provider;
    assert_int_equal(pf_agentcore_new(&options, &client, &f->err), 0);
    f->server.replies[0] = BROKEN;
    f->server.replies[1] = OK_START;
    assert_int_equal(pf_agentcore_start(client, NULL, &f->call, &reply, &f->err), 0);
    json_decref(reply);
    *ret_in_use = search_memory();
    pf_agentcore_free(client);
    pf_aws_provider_free(provider);
}

static void a_secret_of_the_program_is_gone_when_it_is_no_longer_used(void **state)
{
    char secret[SECRET_LEN + 1];
    const struct pf_aws_options keys = { .access_key = "AKIAFAKEFAKEFAKEFAKE",
                                         .secret_key = secret };
    unsigned in_use = 0;

    (void)state;
    pf_random_hex(secret, SECRET_LEN);
    turn(secret);
    use_secret(&keys, &in_use);
    explicit_bzero(secret, sizeof(secret));
    assert_true(in_use >= 2); /* ours and the provider's: the search finds what is there */
    assert_int_equal(search_memory(), 0);
}

static void a_secret_of_a_file_is_gone_when_it_is_no_longer_used(void **state)
{
    char secret[SECRET_LEN + 1], text[200], dir[200], path[220];
    const struct pf_aws_options profile = { .profile = "p" };
    int fd, len;
    unsigned in_use = 0;

    (void)state;
    assert_non_null(test_tempdir("pinfold-secret", dir, sizeof(dir)));
    snprintf(path, sizeof(path), "%s/credentials", dir);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    pf_random_hex(secret, SECRET_LEN);
    turn(secret);
    explicit_bzero(secret, sizeof(secret));
    turn_back(secret);
    len = snprintf(text, sizeof(text), "[p]\naws_access_key_id = A\naws_secret_access_key = %s\n",
                   secret);
    assert_int_equal(write(fd, text, (size_t)len), len);
    close(fd);
    explicit_bzero(secret, sizeof(secret));
    explicit_bzero(text, sizeof(text));
    setenv("AWS_SHARED_CREDENTIALS_FILE", path, 1);
    setenv("AWS_CONFIG_FILE", "/dev/null", 1);
    use_secret(&profile, &in_use);
    unlink(path);
    rmdir(dir);
    unsetenv("AWS_SHARED_CREDENTIALS_FILE");
    assert_true(in_use >= 1);
    assert_int_equal(search_memory(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SERVER(a_secret_of_the_program_is_gone_when_it_is_no_longer_used),
        WITH_SERVER(a_secret_of_a_file_is_gone_when_it_is_no_longer_used),
    };

    return cmocka_run_group_tests_name("aws_memory", tests, NULL, NULL);
}

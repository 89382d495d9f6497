/* SPDX-License-Identifier: Apache-2.0 */
/* Where the address and the credential come from. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tempdir.h"
#include "net/daytona_config.h"

static const char *const variables[] = { "DAYTONA_API_KEY",    "DAYTONA_API_URL",
                                         "DAYTONA_SERVER_URL", "DAYTONA_JWT_TOKEN",
                                         "DAYTONA_TARGET",     "DAYTONA_ORGANIZATION_ID" };

static void in_file(const char *name, const char *text)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void configures(const struct pf_daytona_options *options, const char *url, const char *token,
                       const char *organization, const char *target)
{
    struct pf_daytona_config config = { 0 };
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    if (pf_daytona_configure(options, &config, &err) < 0)
        fail_msg("%s", err.msg);
    assert_string_equal(config.api_url, url);
    assert_string_equal(config.token, token);
    assert_string_equal(config.organization ? config.organization : "-", organization);
    assert_string_equal(config.target ? config.target : "-", target);
    pf_daytona_config_done(&config);
}

static void refuses(const struct pf_daytona_options *options)
{
    struct pf_daytona_config config = { 0 };
    struct pinfold_error err = PINFOLD_ERROR_INIT;

    assert_int_equal(pf_daytona_configure(options, &config, &err), -PINFOLD_EVALUE);
    assert_null(strstr(err.msg, "secret"));
}

static void options_win_over_the_environment_and_that_over_files(void **state)
{
    const char *standard = "https://app.daytona.io/api";
    char dir[200];
    int before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    for (size_t i = 0; i < PF_COUNT(variables); i++)
        unsetenv(variables[i]);
    assert_non_null(test_tempdir("pinfold-test", dir, sizeof(dir)));
    assert_int_equal(chdir(dir), 0);
    refuses(&(struct pf_daytona_options){ 0 });
    in_file(".env", "DAYTONA_API_KEY=from-env\nDAYTONA_TARGET=eu\nOTHER=x\n"
                    "DAYTONA_API_URL=https://evil.example\n");
    configures(&(struct pf_daytona_options){ 0 }, standard, "from-env", "-", "eu");
    in_file(".env.local", "DAYTONA_API_KEY='from-local'\n");
    configures(&(struct pf_daytona_options){ 0 }, standard, "from-local", "-", "eu");
    setenv("DAYTONA_API_KEY", "from-environment", 1);
    setenv("DAYTONA_TARGET", "", 1); /* empty is unset */
    configures(&(struct pf_daytona_options){ 0 }, standard, "from-environment", "-", "eu");
    configures(&(struct pf_daytona_options){ .api_key = "k",
                                             .api_url = "http://h:1/x//",
                                             .target = "us" },
               "http://h:1/x", "k", "-", "us");
    setenv("DAYTONA_SERVER_URL", "https://old.example", 1);
    refuses(&(struct pf_daytona_options){ .api_key = "secret" }); /* the file says otherwise */
    unlink(".env");
    configures(&(struct pf_daytona_options){ 0 }, "https://old.example", "from-environment", "-",
               "-");
    /* An organization counts with a JWT only, and a JWT needs one. */
    refuses(&(struct pf_daytona_options){ .jwt_token = "secret" });
    configures(&(struct pf_daytona_options){ .jwt_token = "jwt", .organization_id = "o" },
               "https://old.example", "jwt", "o", "-");
    configures(&(struct pf_daytona_options){ .api_key = "k", .organization_id = "o" },
               "https://old.example", "k", "-", "-");
    refuses(&(struct pf_daytona_options){ .api_key = "secret\r\nX: y" });
    refuses(&(struct pf_daytona_options){ .api_url = "ftp://h" });
    refuses(&(struct pf_daytona_options){ .api_url = "https://user:secret@h" });
    refuses(&(struct pf_daytona_options){ .api_key = "k", .api_url = "dtn_secret" });
    refuses(&(struct pf_daytona_options){ .api_key = "k", .api_url = "app.daytona.io/api" });
    refuses(&(struct pf_daytona_options){ .api_key = "k", .api_url = "https://h/?k=secret" });
    unlink(".env.local");
    rmdir(dir);
    assert_int_equal(fchdir(before), 0);
    close(before);
    for (size_t i = 0; i < PF_COUNT(variables); i++)
        unsetenv(variables[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_win_over_the_environment_and_that_over_files),
    };

    return cmocka_run_group_tests_name("daytona_config", tests, NULL, NULL);
}

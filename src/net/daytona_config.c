/* SPDX-License-Identifier: Apache-2.0 */
#include "net/daytona_config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/log.h"
#include "net/dotenv.h"

#define DEFAULT_URL "https://app.daytona.io/api"

enum variable { KEY, URL, OLD_URL, JWT, ORGANIZATION, TARGET, VARIABLES };

static const char *const names[VARIABLES] = {
    [KEY] = "DAYTONA_API_KEY",
    [URL] = "DAYTONA_API_URL",
    [OLD_URL] = "DAYTONA_SERVER_URL",
    [JWT] = "DAYTONA_JWT_TOKEN",
    [ORGANIZATION] = "DAYTONA_ORGANIZATION_ID",
    [TARGET] = "DAYTONA_TARGET",
};

/* What the files say; the first that says something counts. */
struct files {
    char *values[VARIABLES];
};

static void wipe(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

static void files_done(struct files *files)
{
    for (int i = 0; i < VARIABLES; i++)
        wipe(files->values[i]);
}

/* A later line of one file wins, an earlier file does. */
struct reading {
    struct files *files;
    bool ours[VARIABLES]; /* set by this file */
};

static int take(void *ctx, const char *name, const char *value)
{
    struct reading *reading = ctx;

    for (int i = 0; i < VARIABLES; i++) {
        char **slot = &reading->files->values[i];
        if (strcmp(name, names[i]) != 0 || !*value || (*slot && !reading->ours[i]))
            continue;
        wipe(*slot);
        *slot = strdup(value);
        reading->ours[i] = true;
        if (!*slot)
            return -PINFOLD_ENOMEM;
    }
    return 0;
}

static int read_file(struct files *files, const char *path, struct pinfold_error *err)
{
    PF_CLEANUP(pf_buf_done) struct pf_buf text = PF_BUF_INIT(PF_DOTENV_MAX);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct reading reading = { .files = files };
    struct stat st;
    ssize_t n = 1;
    int r;

    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (fd < 0 || fstat(fd, &st) < 0)
        return pf_fail_os(err, errno, "Daytona: read %s", path);
    if (!S_ISREG(st.st_mode))
        return 0; /* a directory of that name, say of a virtual environment */
    if (st.st_size < 0 || (size_t)st.st_size > PF_DOTENV_MAX)
        return pf_fail_os(err, EFBIG, "Daytona: read %s", path);
    if (pf_buf_reserve(&text, (size_t)st.st_size) < 0)
        return pf_fail_nomem(err);
    while (n > 0 && text.len < (size_t)st.st_size) {
        n = read(fd, text.data + text.len, (size_t)st.st_size - text.len);
        if (n < 0)
            return pf_fail_os(err, errno, "Daytona: read %s", path);
        text.len += (size_t)n;
    }
    if (text.data)
        text.data[text.len] = '\0';
    r = text.data ? pf_dotenv_read(text.data, text.len, take, &reading) : 0;
    if (text.data)
        explicit_bzero(text.data, text.len);
    return r < 0 ? pf_fail_nomem(err) : 0;
}

static const char *or_nothing(const char *text)
{
    return text && *text ? text : NULL;
}

static const char *environment(enum variable variable)
{
    return or_nothing(secure_getenv(names[variable]));
}

/* ---- the address ---- */

static bool is_url(const char *url)
{
    const char *host = strncmp(url, "https://", 8) == 0  ? url + 8
                       : strncmp(url, "http://", 7) == 0 ? url + 7
                                                         : NULL;

    return host && *host && *host != '/' && !strpbrk(host, "?#@ \t\r\n\\\"");
}

/* What a file says of the address is not used, and not passed over in silence. */
static int check_files(const struct files *files, const char *url, bool from_environment,
                       struct pinfold_error *err)
{
    const char *said = files->values[URL] ? files->values[URL] : files->values[OLD_URL];

    if (!said || strcmp(said, url) == 0)
        return 0;
    if (from_environment)
        return pf_fail(err, PINFOLD_EVALUE,
                       "Daytona: the environment and a .env file name different addresses: say "
                       "which with api_url");
    pf_log(PINFOLD_LOG_WARNING,
           "Daytona: the address in a .env file is not used: set DAYTONA_API_URL or api_url");
    return 0;
}

static int choose_url(const struct pf_daytona_options *options, const struct files *files,
                      char **ret, struct pinfold_error *err)
{
    const char *given = or_nothing(options->api_url), *url = given;
    size_t len;
    int r;

    if (!url)
        url = environment(URL);
    if (!url && (url = environment(OLD_URL)))
        pf_log(PINFOLD_LOG_WARNING, "Daytona: DAYTONA_SERVER_URL is old: use DAYTONA_API_URL");
    r = check_files(files, url ? url : DEFAULT_URL, !given && url, err);
    if (r < 0)
        return r;
    url = url ? url : DEFAULT_URL;
    /* It is not shown: a password may stand in it, or the key, in the wrong variable. */
    if (!is_url(url))
        return pf_fail(err, PINFOLD_EVALUE,
                       "Daytona: %s is no address: it must be https://HOST/PATH, or http://, "
                       "without a user, a query or blanks",
                       given ? "api_url" : "what DAYTONA_API_URL says");
    len = strlen(url);
    while (len > 0 && url[len - 1] == '/')
        len--;
    *ret = strndup(url, len);
    return *ret ? 0 : pf_fail_nomem(err);
}

/* ---- the rest ---- */

static const char *choose(const char *given, enum variable variable, const struct files *files)
{
    const char *value = or_nothing(given);

    if (!value)
        value = environment(variable);
    return value ? value : files->values[variable];
}

/* The key, or the JWT with its organization. Whoever gives a JWT in the program means it. */
static int choose_credential(const struct pf_daytona_options *options, const struct files *files,
                             const char **ret_token, const char **ret_organization,
                             struct pinfold_error *err)
{
    bool jwt_given = or_nothing(options->jwt_token) && !or_nothing(options->api_key);
    const char *key = jwt_given ? NULL : choose(options->api_key, KEY, files);
    const char *jwt = choose(options->jwt_token, JWT, files);
    const char *organization = choose(options->organization_id, ORGANIZATION, files);

    if (!key && !jwt)
        return pf_fail(err, PINFOLD_EVALUE,
                       "Daytona: no credentials: set api_key or DAYTONA_API_KEY, or a JWT with its "
                       "organization");
    if (!key && !organization)
        return pf_fail(err, PINFOLD_EVALUE,
                       "Daytona: a JWT needs organization_id or DAYTONA_ORGANIZATION_ID");
    *ret_token = key ? key : jwt;
    *ret_organization = key ? NULL : organization;
    if (strpbrk(*ret_token, "\r\n") || (*ret_organization && strpbrk(*ret_organization, "\r\n")))
        return pf_fail(err, PINFOLD_EVALUE, "Daytona: a credential holds a line end");
    return 0;
}

static int configure(const struct pf_daytona_options *options, const struct files *files,
                     struct pf_daytona_config *config, struct pinfold_error *err)
{
    const char *token = NULL, *organization = NULL;
    const char *target = choose(options->target, TARGET, files);
    int r = choose_url(options, files, &config->api_url, err);

    if (r == 0)
        r = choose_credential(options, files, &token, &organization, err);
    if (r < 0)
        return r;
    config->token = strdup(token);
    config->organization = organization ? strdup(organization) : NULL;
    config->target = target ? strdup(target) : NULL;
    if (!config->token || (organization && !config->organization) || (target && !config->target))
        return pf_fail_nomem(err);
    return 0;
}

int pf_daytona_configure(const struct pf_daytona_options *options, struct pf_daytona_config *ret,
                         struct pinfold_error *err)
{
    PF_CLEANUP(files_done) struct files files = { 0 };
    struct pf_daytona_config config = { 0 };
    int r = read_file(&files, ".env.local", err);

    if (r == 0)
        r = read_file(&files, ".env", err);
    if (r == 0)
        r = configure(options, &files, &config, err);
    if (r == 0)
        *ret = config;
    else
        pf_daytona_config_done(&config);
    return r;
}

void pf_daytona_config_done(struct pf_daytona_config *config)
{
    free(config->api_url);
    wipe(config->token);
    free(config->organization);
    free(config->target);
    *config = (struct pf_daytona_config){ 0 };
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Which files and variables a policy is read from. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/policy.h"
#include "cli/say.h"
#include "cli/whole_file.h"

#define FILE_NAME "pinfold.toml"

enum { FILE_MAX = 256 * 1024 };

static int fail(struct pinfold_error *err, int code, int error, const char *path, const char *what)
{
    *err = (struct pinfold_error){ .code = code, .sys_errno = error };
    snprintf(err->msg, sizeof(err->msg), "read %.150s: %s", path,
             error ? pf_error_words(error) : what);
    return -code;
}

/* Who can write to a policy decides what the sandbox lets through. Group write is left alone: where
 * each user has a group of their own it is the default. */
static const char *distrust(const struct stat *st)
{
    if (st->st_uid != geteuid() && st->st_uid != 0)
        return "it belongs to another user, who could change the policy";
    if (st->st_mode & S_IWOTH)
        return "everybody can write to it; chmod o-w";
    return NULL;
}

/* Whether a file that may not be opened is no policy of ours: HOME is somebody else's, as after su
 * without a login. The first directory on the way to it that may be looked at says whose it is. */
static bool of_another(const char *path)
{
    char above[PATH_MAX];
    struct stat st;
    char *slash;

    snprintf(above, sizeof(above), "%s", path);
    while ((slash = strrchr(above, '/')) && slash != above) {
        *slash = '\0';
        if (stat(above, &st) == 0)
            return st.st_uid != geteuid();
    }
    return false;
}

/* Read a whole file. Returns 0 with ret->text to free(); 1 when it is not there, or nobody has
 * named it and it is no policy of ours. */
static int read_file(const char *path, bool named, struct pf_whole_file *ret,
                     struct pinfold_error *err)
{
    int error = pf_whole_file(path, FILE_MAX, ret);
    const char *wrong;

    if (error == ENOENT || error == ENOTDIR || (error == EACCES && !named && of_another(path)))
        return 1;
    if (error == EISDIR || error == EINVAL)
        wrong = "not a regular file";
    else if (error == EFBIG)
        wrong = "larger than 256 KiB";
    else
        wrong = error ? NULL : distrust(&ret->st);
    if (!wrong && !error)
        return 0;
    free(ret->text);
    return wrong ? fail(err, PINFOLD_EVALUE, 0, path, wrong)
                 : fail(err, error == ENOMEM ? PINFOLD_ENOMEM : PINFOLD_EOS, error, path, "");
}

/* Read a file, which is taken, into the policy. Returns 0, also when it is not there and need not
 * be. */
static int load_file(struct pf_policy *policy, char *path, enum pf_source source,
                     struct pinfold_error *err)
{
    struct pf_policy_file *file = &policy->files[policy->file_count];
    struct pf_reading reading = { .policy = policy, .source = source, .file = path };
    char directory[PATH_MAX];
    const char *slash;
    struct pf_whole_file whole;
    int r;

    if (!path)
        return fail(err, PINFOLD_ENOMEM, ENOMEM, FILE_NAME, "");
    *file = (struct pf_policy_file){ .path = path, .source = source };
    policy->file_count++;
    r = read_file(path, source == PF_FROM_NAMED, &whole, err);
    if (r == 1 && source == PF_FROM_NAMED)
        return fail(err, PINFOLD_EOS, ENOENT, path, "");
    if (r)
        return r < 0 ? r : 0;
    file->found = true;
    slash = strrchr(path, '/');
    snprintf(directory, sizeof(directory), "%.*s", slash ? (int)(slash - path) : 1,
             slash ? path : ".");
    reading.directory = slash == path ? "" : directory;
    r = pf_policy_read(&reading, whole.text, whole.len, err);
    free(whole.text);
    return r;
}

/* Returns -1 when out of memory, else 0, with NULL where the user has no place for it. */
static int user_file(char **ret)
{
    const char *base = getenv("XDG_CONFIG_HOME");
    const char *home = pf_policy_home();

    *ret = NULL;
    if (base && *base == '/')
        return asprintf(ret, "%s/pinfold/" FILE_NAME, base) < 0 ? -1 : 0;
    return home && asprintf(ret, "%s/.config/pinfold/" FILE_NAME, home) < 0 ? -1 : 0;
}

static bool same_file(const char *one, const char *other)
{
    struct stat a, b;

    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* The user's file, and what lies in the current directory. */
static int search(struct pf_policy *policy, struct pinfold_error *err)
{
    char *users = NULL;
    int r = 0;

    if (user_file(&users) < 0)
        return fail(err, PINFOLD_ENOMEM, ENOMEM, FILE_NAME, "");
    if (users)
        r = load_file(policy, users, PF_FROM_USER, err);
    if (r == 0 && !(users && same_file(users, FILE_NAME)))
        r = load_file(policy, strdup(FILE_NAME), PF_FROM_PROJECT, err);
    return r;
}

/* PINFOLD_MAX_OUTPUT for --max-output. Lists have none. */
static int load_variable(struct pf_policy *policy, int key, struct pinfold_error *err)
{
    struct pf_reading reading = { .policy = policy, .source = PF_FROM_ENVIRONMENT };
    enum pf_form form = pf_keys[key].form;
    char name[64];
    size_t len = (size_t)snprintf(name, sizeof(name), "PINFOLD_%s", pf_keys[key].option);
    const char *value;
    char **values;

    for (size_t i = 0; i < len; i++)
        name[i] = name[i] == '-' ? '_' : (char)toupper(name[i]);
    value = form == PF_LIST || form == PF_PATHS ? NULL : secure_getenv(name);
    if (!value)
        return 0;
    values = calloc(1, sizeof(*values));
    if (values)
        values[0] = strdup(value);
    if (!values || !values[0]) {
        free(values);
        return fail(err, PINFOLD_ENOMEM, ENOMEM, name, "");
    }
    return pf_policy_put(&reading, key, 0, values, 1, err);
}

int pf_policy_load(const char *named, bool only_named, struct pf_policy *ret,
                   struct pinfold_error *err)
{
    int r = 0;

    *ret = (struct pf_policy){ .settings = calloc(pf_key_count, sizeof(*ret->settings)) };
    if (!ret->settings)
        return fail(err, PINFOLD_ENOMEM, ENOMEM, FILE_NAME, "");
    if (!named && !only_named)
        named = secure_getenv("PINFOLD_CONFIG");
    if (named && !*named) { /* of the option an empty one is refused before */
        *err = (struct pinfold_error){
            .code = PINFOLD_EVALUE,
            .msg = "the variable PINFOLD_CONFIG: an empty name; give a file, or unset it"
        };
        return -PINFOLD_EVALUE;
    }
    if (named)
        r = load_file(ret, strdup(named), PF_FROM_NAMED, err);
    else if (!only_named)
        r = search(ret, err);
    for (size_t i = 0; r == 0 && i < pf_key_count; i++)
        r = load_variable(ret, (int)i, err);
    return r;
}

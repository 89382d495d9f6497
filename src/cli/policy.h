/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy: what a pinfold.toml says, and the environment, before the options of the command
 * line. A setting is a value for an option, so that one table checks all of them (flags.c).
 */
#ifndef PF_CLI_POLICY_H
#define PF_CLI_POLICY_H

#include <stdbool.h>
#include <stddef.h>

#include <pinfold/error.h>

#include "cli/command.h"

/* Where a value came from, the weakest first. */
enum pf_source {
    PF_FROM_DEFAULT,
    PF_FROM_USER,    /* the user's pinfold.toml */
    PF_FROM_PROJECT, /* a pinfold.toml that lay in the current directory: it may only tighten */
    PF_FROM_NAMED,   /* the file of --config or PINFOLD_CONFIG, instead of these two */
    PF_FROM_ENVIRONMENT,
    PF_FROM_OPTION,
};

/* How a file that nobody chose may change a setting. */
enum pf_tightening {
    PF_MAY_NOT,
    PF_MAY_LOWER,  /* to a smaller number */
    PF_MAY_ADD,    /* to a list that leaves out more */
    PF_MAY_NARROW, /* the network */
};

enum pf_form { PF_TEXT, PF_LIST, PF_NUMBER, PF_SIZE, PF_PATH, PF_PATHS, PF_NETWORK, PF_SYNC };

/* What can be set. */
struct pf_key {
    const char *path;      /* in the file: "limits.memory" */
    const char *option;    /* of the command line, which also names the variable: PINFOLD_MEMORY */
    const char *otherwise; /* what holds when nobody sets it, in words */
    enum pf_form form;
    enum pf_tightening tightening;
    const char
            *backend; /* the one backend that it is for; of others it is passed over. NULL: all */
};

extern const struct pf_key pf_keys[];
extern const size_t pf_key_count;

/* One setting. */
struct pf_setting {
    enum pf_source source; /* PF_FROM_DEFAULT: nobody has set it */
    char *file;            /* NULL: of none */
    unsigned line;
    char **values; /* as the option takes them; several for a list, which may be empty */
    size_t count;
};

struct pf_policy {
    struct pf_setting *settings; /* one for each of pf_keys */
    struct pf_policy_file {
        char *path;
        enum pf_source source;
        bool found;
    } files[2];
    size_t file_count;
};

/* What a setting is for the reader of a file: its values as written, and where they stand. */
struct pf_reading {
    struct pf_policy *policy; /* filled by pf_policy_put() */
    enum pf_source source;
    const char *file;
    const char *directory; /* what relative paths begin at */
};

/* Read a policy: the file that is named, or that PINFOLD_CONFIG names, or else the user's and the
 * one in the current directory; then the environment. With only_named no file is looked for.
 * Returns 0, -PINFOLD_EVALUE (something in it is wrong: err has file and line), -PINFOLD_EOS or
 * -PINFOLD_ENOMEM. pf_policy_done() is right in either case. */
int pf_policy_load(const char *named, bool only_named, struct pf_policy *ret,
                   struct pinfold_error *err);
void pf_policy_done(struct pf_policy *policy);

/* The directory that HOME names, or NULL. One that does not begin with a slash is none: it would be
 * below the current directory, where what lies is a project's and not the user's. */
const char *pf_policy_home(void);

/* The place of a key in pf_keys by its path in a file, or by its option; -1: there is none. */
int pf_key_of_path(const char *path);
int pf_key_of_option(const char *option);

/* Read one file's text into reading->policy. Returns as pf_policy_load(). */
int pf_policy_read(const struct pf_reading *reading, const char *text, size_t len,
                   struct pinfold_error *err);

/* Set what key names to count values, which are taken, if the source may. Returns as above. */
int pf_policy_put(const struct pf_reading *reading, int key, unsigned line, char **values,
                  size_t count, struct pinfold_error *err);

/* The words of the command line, and before them those of the settings that it does not override:
 * one allocation, NULL-terminated, to free(); those of argv are borrowed. given says which options
 * it has. Returns NULL when out of memory. */
char **pf_policy_words(const struct pf_policy *policy, int argc, char **argv,
                       bool (*given)(const void *ctx, const char *option), const void *ctx,
                       bool (*takes)(const void *ctx, const char *option));

/* "a user's file", say. */
const char *pf_source_word(enum pf_source source);

/* Complain about a place in a file. Returns -PINFOLD_EVALUE. */
int pf_policy_wrong(const char *file, unsigned line, struct pinfold_error *err, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has changed in a workspace since it was seeded, as a list and as a diff that git apply and
 * patch -p1 take.
 *
 * Changes are differences from the seed folder as it is now: no second copy of it is kept. What
 * somebody has changed in that folder since the sandbox was seeded is noticed by its times, and
 * told apart from what was changed in the workspace.
 */
#ifndef PINFOLD_CHANGES_H
#define PINFOLD_CHANGES_H

#include <pinfold/sandbox.h>

PINFOLD_BEGIN_DECLS

enum pinfold_change_kind {
    PINFOLD_CHANGE_ADDED = 1,
    PINFOLD_CHANGE_MODIFIED, /* other bytes, and perhaps another mode; a link: another target */
    PINFOLD_CHANGE_DELETED,
    PINFOLD_CHANGE_MODE, /* only whether the owner may execute it */
    PINFOLD_CHANGE_TYPE, /* a link became a file, or a file a link */
};

/* What the diff has of a change. */
enum pinfold_change_shown {
    PINFOLD_SHOWN_NOT = 0,   /* no diff was asked for */
    PINFOLD_SHOWN_TEXT,      /* all of it */
    PINFOLD_SHOWN_BINARY,    /* a line that it is binary: git apply refuses that file */
    PINFOLD_SHOWN_TOO_LARGE, /* a remark instead: the file or its diff is larger than
                                max_file_bytes, or all diffs together than max_diff_bytes */
    PINFOLD_SHOWN_FAILED,    /* a remark instead: it could not be read, see errors */
};

/* Modes are those of git: 0100644, 0100755, 0120000 (a symbolic link), 0 (not there). Sizes are in
 * bytes, of a link those of its target's name; -1: not there. */
struct pinfold_change {
    char *path; /* relative to the workspace root */
    enum pinfold_change_kind kind;
    enum pinfold_change_shown shown;
    unsigned old_mode, new_mode;
    int64_t old_size, new_size;
    bool syncs;        /* pinfold_sandbox_flush() would write it. A flush writes no new links and no
                          mode alone, and deletes nothing */
    bool seed_changed; /* the seed has changed here too: the old side is what it is now, and not
                          what the workspace was made from */
};

struct pinfold_changes {
    struct pinfold_change *items; /* sorted by path, bytewise */
    size_t count;
    size_t capacity; /* private */
    bool seeded;     /* false: there was no seed, and everything counts as added */
    bool cut;        /* some diff was not shown, because of a limit or an error */
    uint64_t diff_bytes;
    /* Paths that differ because the seed has changed since, and not the workspace; sorted, at most
     * PINFOLD_CHANGES_LIST_MAX. After a copy a flush would write the older files back; after an
     * overlay it leaves them alone. */
    struct pinfold_strings seed_changes;
    struct pinfold_strings errors; /* one line each, of what could not be looked at */
    /* Those of which, besides, a flush could write over what somebody has changed in the seed: a
     * path stands for all below it, "." for everything; sorted, at most PINFOLD_CHANGES_LIST_MAX.
     */
    struct pinfold_strings unknown;
    struct pinfold_kept *kept; /* opaque: the files that were looked at, with keep; else NULL */
};

#define PINFOLD_CHANGES_LIST_MAX 1000 /* lines of seed_changes, of errors, and of unknown */

/* Receives the text of a diff in pieces, raw as the files have it (escape it for a terminal), from
 * the thread that called. Return 0 to go on; anything else ends the call as a cancellation does. */
typedef int (*pinfold_diff_fn)(void *ctx, const char *text, size_t len);

struct pinfold_changes_options {
    size_t size;
    const char *path; /* only what is there, or below it; NULL: everything */
    bool everything;  /* also what a flush would leave out by its include and exclude patterns.
                         What was left out when the workspace was seeded counts as added then */
    pinfold_diff_fn on_diff; /* NULL: no diff */
    void *on_diff_ctx;
    uint64_t max_file_bytes; /* the larger of the two sides, and the text of its diff; 0: 1 MiB */
    uint64_t max_diff_bytes; /* of all text together; 0: 16 MiB */
    unsigned context_lines;  /* around changes; 0: 3 */
    bool keep; /* what was fetched for this stays on this machine until pinfold_changes_done(), for
                  pinfold_sandbox_flush_changes(). A workspace that is here has nothing to keep */
    struct pinfold_changes *again; /* with keep: what these have kept is not fetched once more but
                                      compared with the seed as it is now, and goes over to what
                                      is returned, unless the call fails. NULL: nothing */
};

#define PINFOLD_CHANGES_OPTIONS_INIT PINFOLD_SIZED(struct pinfold_changes_options)

/**
 * List what has changed in a workspace since it was seeded, and write the diff of it.
 *
 * By default that is what the sync policy takes: its include patterns and its excludes. FIFOs,
 * sockets and devices are passed over, and so are empty directories. With an overlay only what was
 * changed is looked at. On a backend without a directory on this machine the files are fetched
 * once, as a flush would, and links as they are; what a flush cannot fetch is in errors and not
 * counted as deleted. Works on views, changes nothing.
 *
 * The text of a file is never cut in its middle: a diff that is too large is left out, with a line
 * "# ..." in its place, which git apply and patch skip, so that the rest can be applied.
 *
 * sandbox  borrowed, started
 * options  borrowed; NULL for defaults
 * ret      receives the changes; the caller owns them, pinfold_changes_done()
 * cancel   borrowed, may be NULL
 * err      borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EPATH (path), -PINFOLD_EVALUE (options), -PINFOLD_EPREPARE (the seed folder
 * is gone, or another directory has its name), -PINFOLD_ESTART, -PINFOLD_ECANCELLED (also when
 * on_diff ended it), -PINFOLD_EOS, -PINFOLD_ENOMEM or what the backend returned.
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_changes(struct pinfold_sandbox *sandbox,
                                        const struct pinfold_changes_options *options,
                                        struct pinfold_changes *ret, struct pinfold_cancel *cancel,
                                        struct pinfold_error *err);

/**
 * As pinfold_sandbox_flush_except(), but what pinfold_sandbox_changes() has looked at: what was
 * fetched for it is written, not fetched once more. A sandbox elsewhere may answer differently the
 * second time, and then what was shown to somebody is not what comes home. Where the workspace is
 * on this machine this is pinfold_sandbox_flush_except(), and pinfold_sandbox_stop_commands()
 * before both calls does the same.
 *
 * What could not be fetched is in the errors of the result.
 *
 * sandbox     borrowed; of these changes
 * dest        as there
 * changes     borrowed; of all of the workspace that a flush takes (neither path nor everything),
 *             made with keep
 * except      as there
 * ret_result  as there
 * cancel      borrowed, may be NULL
 * err         borrowed, may be NULL
 *
 * Returns as pinfold_sandbox_flush_except(), or -PINFOLD_EVALUE (other changes than these).
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_flush_changes(struct pinfold_sandbox *sandbox, const char *dest,
                                              const struct pinfold_changes *changes,
                                              const char *const *except,
                                              struct pinfold_sync_result *ret_result,
                                              struct pinfold_cancel *cancel,
                                              struct pinfold_error *err);

/**
 * Name a kind: "added", "modified", "deleted", "mode" or "type".
 *
 * kind  one of the enumeration; others give "unknown"
 *
 * Returns a static string, never NULL.
 * Threads: any.
 */
PINFOLD_API const char *pinfold_change_kind_name(enum pinfold_change_kind kind);

/* Empties what it is given: borrowed struct, owned contents; a zeroed struct is fine.
 * Threads: one at a time per struct. */
PINFOLD_API void pinfold_changes_done(struct pinfold_changes *changes);

/* ---- changing files ---- */

struct pinfold_edit_options {
    size_t size;
    const char *path;
    const char *old_text; /* exact bytes; not empty */
    size_t old_len;       /* 0: old_text is NUL-terminated */
    const char *new_text; /* may be empty */
    size_t new_len;       /* 0: new_text is NUL-terminated */
    bool replace_all;     /* false: there must be exactly one */
};

#define PINFOLD_EDIT_OPTIONS_INIT PINFOLD_SIZED(struct pinfold_edit_options)

struct pinfold_edit_result {
    uint64_t replaced; /* how many; when it failed because there are several: how many there are */
    uint64_t line;     /* of the first, from 1; 0: there is none */
    uint64_t bytes;    /* of the file now */
};

/**
 * Replace an exact text in a file. The file is replaced atomically and keeps its mode. When it
 * changes while that is done the edit fails and can be tried again (retryable).
 *
 * sandbox  borrowed
 * options  borrowed
 * ret      receives what was done, also on -PINFOLD_EVALUE; may be NULL
 * cancel   borrowed, may be NULL
 * err      borrowed, may be NULL; says on which lines, when the text is there more than once
 *
 * Returns 0, -PINFOLD_EVALUE (the text is missing, not unique, empty, or equal to the new one),
 * -PINFOLD_EPATH, -PINFOLD_EOS (ENOENT, EISDIR, EFBIG, ...; EAGAIN: the file was changed
 * meanwhile), -PINFOLD_EDENIED (a view), -PINFOLD_ESTART, -PINFOLD_ECANCELLED or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_edit(struct pinfold_sandbox *sandbox,
                                     const struct pinfold_edit_options *options,
                                     struct pinfold_edit_result *ret, struct pinfold_cancel *cancel,
                                     struct pinfold_error *err);

enum pinfold_delete_flags {
    PINFOLD_DELETE_RECURSIVE = 1, /* a directory with all that is in it */
};

/**
 * Delete a file, a symbolic link (which is not followed), or an empty directory; with
 * PINFOLD_DELETE_RECURSIVE a whole tree. The workspace root itself is refused.
 *
 * sandbox  borrowed
 * path     borrowed
 * flags    enum pinfold_delete_flags, or 0
 * cancel   borrowed, may be NULL; not looked at in the middle of a tree
 * err      borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (flags), -PINFOLD_EPATH (the root, or outside), -PINFOLD_EOS (ENOENT;
 * ENOTEMPTY: a directory that is not empty, without the flag), -PINFOLD_EDENIED (a view),
 * -PINFOLD_ENOTSUP (directories, on a backend that can neither delete one nor run commands),
 * -PINFOLD_ESTART, -PINFOLD_ECANCELLED or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_delete(struct pinfold_sandbox *sandbox, const char *path,
                                       unsigned flags, struct pinfold_cancel *cancel,
                                       struct pinfold_error *err);

enum pinfold_move_flags {
    PINFOLD_MOVE_NO_REPLACE = 1, /* EEXIST when something is there */
};

/**
 * Move or rename a file, a symbolic link or a directory. Parents of dest are created. A file that
 * is there is replaced, unless the flags say no; a directory never is.
 *
 * sandbox  borrowed
 * src      borrowed
 * dest     borrowed; the new name itself, not the directory to move into
 * flags    enum pinfold_move_flags, or 0
 * cancel   borrowed, may be NULL
 * err      borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (flags), -PINFOLD_EPATH (the root, or outside), -PINFOLD_EOS (ENOENT;
 * EEXIST; EISDIR: dest is a directory; EINVAL: into itself; EXDEV: a directory of an overlay's
 * seed, which only copying can move), -PINFOLD_EDENIED (a view), -PINFOLD_ENOTSUP (directories, or
 * no-replace, on a backend that can neither do that nor run commands), -PINFOLD_ESTART,
 * -PINFOLD_ECANCELLED or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_sandbox_move(struct pinfold_sandbox *sandbox, const char *src,
                                     const char *dest, unsigned flags,
                                     struct pinfold_cancel *cancel, struct pinfold_error *err);

PINFOLD_END_DECLS

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Terminals: a command on a pseudo-terminal of its own, for shells, full-screen programs, and
 * whatever asks whether it talks to a terminal. pinfold_sandbox_open_terminal() starts one; it
 * lives until it is closed.
 *
 * Bytes pass as they are, both ways: what the command prints may hold any escape sequence, and a
 * host that shows it to a person lets the command do to that person's screen what escape sequences
 * can (titles, colours, the clipboard where a terminal program allows it). Input is typed: the
 * command's terminal is in the usual modes at first, in which it echoes, "\r" ends a line, 3 is an
 * interrupt and 4 the end of a file.
 *
 * Somebody has to read: a command that prints waits once the terminal holds some 64 KiB.
 */
#ifndef PINFOLD_TERMINAL_H
#define PINFOLD_TERMINAL_H

#include <stdint.h>
#include <sys/types.h>

#include <pinfold/cancel.h>
#include <pinfold/error.h>
#include <pinfold/limits.h>

PINFOLD_BEGIN_DECLS

struct pinfold_terminal;

/* What to run. Zero means default in every field. */
struct pinfold_terminal_options {
    size_t size;             /* sizeof(struct pinfold_terminal_options) */
    const char *command;     /* a shell command line, run by /bin/sh -c */
    size_t command_len;      /* bytes of command; 0: it is NUL-terminated */
    const char *const *argv; /* instead of command: an argument vector, NULL-terminated; neither:
                                an interactive shell */
    const char *cwd;         /* inside the workspace; NULL: its root */
    const char *const *env;  /* NULL-terminated "NAME=value" entries that win over all others */
    const char *term;        /* the kind of terminal, TERM; NULL: the backend's env, else
                                "xterm-256color" */
    uint16_t rows, cols;     /* characters; 0: 24 and 80 */
    double timeout_seconds;  /* wall clock from the start; 0: none; < 0: refused */
};

#define PINFOLD_TERMINAL_OPTIONS_INIT PINFOLD_SIZED(struct pinfold_terminal_options)

/* How the command ended. */
struct pinfold_terminal_exit {
    int exit_code; /* 0..255; 124 on timeout, 137 when it was killed, 128+n after signal n, 126/127
                      as shells use them */
    bool timed_out;
    bool supervisor_lost; /* as struct pinfold_execute_result has it */
    bool killed; /* by pinfold_terminal_kill(), because the sandbox was stopped, for a limit that
                    the owner looks after, or by its supervisor, when something in the sandbox had
                    kept that from hearing of any of these */
    enum pinfold_limit limit; /* that ended the command: time, workspace, disk, cpu time or file
                                 size; memory when the kernel counted a kill for it meanwhile and
                                 the command ended with 137. NONE: none did, or it cannot be told,
                                 as after the sandbox was stopped */
    uint64_t output_bytes;    /* read so far */
    int64_t duration_ns;      /* from the start to its end, CLOCK_MONOTONIC */
    int64_t cpu_ns;           /* as struct pinfold_execute_result has it */
    uint64_t peak_bytes;      /* likewise */
};

/* The functions of a kind of terminal, for those who make backends. All are needed. What each does
 * is said at the function of its name below; they are called with valid arguments only. A time to
 * wait is never NaN; below 0 it has no limit. */
struct pinfold_terminal_ops {
    size_t size; /* sizeof(struct pinfold_terminal_ops) */
    ssize_t (*read)(void *state, void *buffer, size_t size, double timeout_seconds,
                    struct pinfold_cancel *cancel, struct pinfold_error *err);
    ssize_t (*write)(void *state, const void *data, size_t len, double timeout_seconds,
                     struct pinfold_cancel *cancel, struct pinfold_error *err);
    int (*resize)(void *state, uint16_t rows, uint16_t cols, struct pinfold_error *err);
    int (*signal)(void *state, int signal, struct pinfold_error *err);
    void (*kill)(void *state);
    int (*wait)(void *state, double timeout_seconds, struct pinfold_terminal_exit *ret_exit,
                struct pinfold_cancel *cancel, struct pinfold_error *err);
    int (*fd)(void *state);
    void (*close)(void *state); /* frees state too */
};

/**
 * Make a terminal from a table and a state, for those who make backends.
 *
 * ops           borrowed for ever: static storage
 * state         owned by the terminal from success on; ops->close releases it
 * ret_terminal  receives the terminal; the caller owns it, pinfold_terminal_close()
 * err           borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (a table of the wrong size, or with holes) or -PINFOLD_ENOMEM.
 * Threads: any.
 */
PINFOLD_API int pinfold_terminal_new(const struct pinfold_terminal_ops *ops, void *state,
                                     struct pinfold_terminal **ret_terminal,
                                     struct pinfold_error *err);

/**
 * Read what the command prints: waits until there is something, and gives what there is. The
 * output ends when the command's first process has ended and all that it printed was read;
 * processes in the background that still hold the terminal do not keep it open.
 *
 * terminal         borrowed
 * buffer           borrowed, receives up to size bytes
 * timeout_seconds  how long to wait; 0: not at all; < 0: no limit
 * cancel           borrowed, may be NULL; stops the wait, and not the command
 * err              borrowed, may be NULL
 *
 * Returns the number of bytes, 0 at the end, -PINFOLD_ETIMEOUT (nothing yet), -PINFOLD_EVALUE
 * (size is 0, or a time that is no number), -PINFOLD_ECANCELLED or -PINFOLD_EOS.
 * Threads: any; two that read at once share the bytes out.
 */
PINFOLD_API ssize_t pinfold_terminal_read(struct pinfold_terminal *terminal, void *buffer,
                                          size_t size, double timeout_seconds,
                                          struct pinfold_cancel *cancel, struct pinfold_error *err);

/**
 * Type: waits while the terminal takes no more because the command does not read.
 *
 * terminal         borrowed
 * data             borrowed, len bytes
 * timeout_seconds  how long to wait; 0: not at all; < 0: no limit
 * cancel           borrowed, may be NULL; stops the wait, and not the command
 * err              borrowed, may be NULL
 *
 * Returns the number of bytes taken, which is less than len when what follows struck after some:
 * -PINFOLD_ETIMEOUT, -PINFOLD_EVALUE (a time that is no number), -PINFOLD_ECANCELLED or
 * -PINFOLD_EOS (EPIPE: the command has ended).
 * Threads: any; bytes of two that write at once may mix.
 */
PINFOLD_API ssize_t pinfold_terminal_write(struct pinfold_terminal *terminal, const void *data,
                                           size_t len, double timeout_seconds,
                                           struct pinfold_cancel *cancel,
                                           struct pinfold_error *err);

/**
 * Give the terminal another size; the job in its foreground gets SIGWINCH. Does not wait.
 *
 * terminal    borrowed
 * rows, cols  characters; 0 says that it is not known
 * err         borrowed, may be NULL
 *
 * Returns 0 or -PINFOLD_EOS.
 * Threads: any.
 */
PINFOLD_API int pinfold_terminal_resize(struct pinfold_terminal *terminal, uint16_t rows,
                                        uint16_t cols, struct pinfold_error *err);

/**
 * Send a signal to the job in the foreground, as a key would, whatever the modes of the terminal.
 * Does not wait.
 *
 * terminal  borrowed
 * signal    SIGINT, SIGQUIT or SIGTSTP
 * err       borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_EVALUE (another signal) or -PINFOLD_EOS.
 * Threads: any.
 */
PINFOLD_API int pinfold_terminal_signal(struct pinfold_terminal *terminal, int signal,
                                        struct pinfold_error *err);

/**
 * Begin to kill the command with everything that it started, processes in the background and
 * daemons included: SIGHUP and SIGTERM, and half a second later SIGKILL. Does not wait:
 * pinfold_terminal_wait() does. What was printed can still be read.
 *
 * terminal  borrowed, NULL is fine
 *
 * Threads: any.
 */
PINFOLD_API void pinfold_terminal_kill(struct pinfold_terminal *terminal);

/**
 * Wait until the command's first process has ended; when the command was killed, until everything
 * that it started has. Somebody else should read meanwhile.
 *
 * terminal         borrowed
 * timeout_seconds  how long to wait; 0: not at all; < 0: no limit
 * ret_exit         receives how it ended; untouched on failure
 * cancel           borrowed, may be NULL; stops the wait, and not the command
 * err              borrowed, may be NULL
 *
 * Returns 0, -PINFOLD_ETIMEOUT (it still runs), -PINFOLD_EVALUE (a time that is no number),
 * -PINFOLD_ECANCELLED or -PINFOLD_EBACKEND (what watched it has died, with the sandbox or outside
 * one).
 * Threads: any; also after the end, as often as wanted.
 */
PINFOLD_API int pinfold_terminal_wait(struct pinfold_terminal *terminal, double timeout_seconds,
                                      struct pinfold_terminal_exit *ret_exit,
                                      struct pinfold_cancel *cancel, struct pinfold_error *err);

/**
 * A descriptor for poll(2) and event loops: readable when pinfold_terminal_read() would not wait,
 * or when the command has ended. It may wake for nothing; then a read with no time to wait says
 * -PINFOLD_ETIMEOUT. Only to be polled.
 *
 * terminal  borrowed
 *
 * Returns a descriptor that lives as long as the terminal, or -1 when this kind has none.
 * Threads: any.
 */
PINFOLD_API int pinfold_terminal_fd(struct pinfold_terminal *terminal);

/**
 * Kill what still runs, wait until it is gone, free the terminal. Allowed after the sandbox was
 * stopped, which has killed the command; not after the sandbox was freed.
 *
 * terminal  owned, NULL is fine
 *
 * Threads: one, the last.
 */
PINFOLD_API void pinfold_terminal_close(struct pinfold_terminal *terminal);

PINFOLD_END_DECLS

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Call is one operation of the library with its arguments, its cancellation token and later its
 * outcome. It is made by a method of a handle, and then either
 *
 *   call.run()             runs it here and now, and returns its value; or
 *   call.submit(mailbox, loop, audited)
 *                          has a thread run it, which puts it into the mailbox when it is done; the
 *                          owner of the mailbox takes it out and asks for call.result().
 *
 * A call that was submitted is kept alive until it has been done and taken out.
 */
#ifndef PF_PYTHON_CALL_H
#define PF_PYTHON_CALL_H

#include "module.h"

/* How an operation runs, and what becomes of its outcome. args is zeroed memory of this size. */
struct pf_operation {
    const char *name;
    size_t size;
    /* Without the GIL. */
    int (*run)(void *args, struct pinfold_cancel *cancel, struct pinfold_error *err);
    /* With the GIL: a new reference, or NULL with an exception. NULL function: None. */
    PyObject *(*convert)(void *args, int r);
    /* With the GIL, after a failure: what the exception carries as its result. NULL: nothing. */
    PyObject *(*partial)(void *args);
    /* Empties args. */
    void (*done)(void *args);
    bool ends;  /* gives back what a process may be out of: where there is no descriptor or memory
                   for a token it runs all the same, and cannot be cancelled; it runs when it was
                   cancelled before it could begin; and it does not wait for a thread until those
                   that it ends have given theirs back */
    bool nests; /* Python code that it calls makes calls of its own, and waits for them: it gets a
                   thread that is not of the pool's limited number */
};

struct pf_call;

/* Make a call. owner is a Python object that must live as long as the call does: the handle. */
struct pf_call *pf_call_new(const struct pf_operation *operation, PyObject *owner);
void *pf_call_args(struct pf_call *call);
PyObject *pf_call_object(struct pf_call *call);
/* What a method returns: the call, or NULL when its arguments were not understood. */
PyObject *pf_call_finish(struct pf_call *call, bool ok);

/* Of a call that is never run: the arguments of a function that does not wait live in one. */
extern const struct pf_operation pf_no_operation;

/* Keep an object until the call is gone; takes over the reference, also when it fails. -1: no
 * memory, with an exception. */
int pf_call_keep(struct pf_call *call, PyObject *object);

/* What a caller gives, as C wants it, kept; name is the parameter's, for the exception when it is
 * something else: TypeError, or ValueError for what has no bytes, holds a NUL or is out of range.
 */

/* The bytes of a str, bytes or os.PathLike as a path of the file system. NULL: exception. A NUL
 * byte is a SandboxPathError. */
const char *pf_call_path(struct pf_call *call, const char *name, PyObject *path);
/* The same; None gives NULL with *ret set. */
int pf_call_path_or_none(struct pf_call *call, const char *name, PyObject *path, const char **ret);
/* A str, as UTF-8. */
const char *pf_call_text(struct pf_call *call, const char *name, PyObject *text);
int pf_call_text_or_none(struct pf_call *call, const char *name, PyObject *text, const char **ret);
/* The bytes of a str (as UTF-8) or a bytes-like object; may hold NUL bytes. */
const char *pf_call_data(struct pf_call *call, const char *name, PyObject *data,
                         Py_ssize_t *ret_len);
/* A NULL-terminated vector of the strings of an iterable. 0 or -1. */
int pf_call_vector(struct pf_call *call, const char *name, PyObject *strings,
                   const char *const **ret);
/* The same; None gives NULL. */
int pf_call_strv(struct pf_call *call, const char *name, PyObject *strings,
                 const char *const **ret);
/* A command: a text for the shell, or words. 0 or -1. */
int pf_call_command(struct pf_call *call, PyObject *command, const char **ret, size_t *ret_len,
                    const char *const **ret_argv);

/* The same for what needs no keeping. pf_text_of() lives as long as the str. */
const char *pf_text_of(const char *name, PyObject *text);
bool pf_whole_of(const char *name, PyObject *number, uint64_t least, uint64_t most, uint64_t *ret);
bool pf_flag_of(const char *name, PyObject *flag, int *ret);
/* More than 0; None leaves *ret as it is. */
bool pf_seconds_of(const char *name, PyObject *seconds, double *ret);
/* Where some lines begin, and how many there are at the most; None: all. */
bool pf_lines_of(PyObject *offset, PyObject *limit, int64_t *ret_offset, int64_t *ret_limit);

/* Memory that lives as long as the call, zeroed. NULL: exception. */
void *pf_call_alloc(struct pf_call *call, size_t count, size_t size);

/* Have streamed output go to the call's consumer: set up by execute. */
int pf_call_output(void *call, enum pinfold_stream stream, const char *data, size_t len);

/* The call that this thread is at, or NULL; borrowed. */
PyObject *pf_call_current(void);

/* Where audit events go: into the list of the call of this thread, else straight to the hook. */
void pf_call_audit(void *ctx, const struct pinfold_audit_event *event);

/* Have the pool call fn(arg), for what must not wait in a destructor. Without a thread: here. */
void pf_call_later(void (*fn)(void *arg), void *arg);

#endif

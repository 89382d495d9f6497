/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside proc/: collecting the output of a command in bounded memory. What a stream says is
 * decoded as it comes; its head (up to the whole budget) is kept, and with keep_tail a ring of the
 * last half of the budget. How the two streams share the budget is decided at the end.
 */
#ifndef PF_PROC_CAPTURE_H
#define PF_PROC_CAPTURE_H

#include "base/buf.h"
#include "base/utf8.h"
#include "proc/run.h"

struct pf_stream {
    int fd; /* owned; -1 after the end */
    enum pinfold_stream id;
    bool busy;   /* worth a large pipe and large reads */
    bool full;   /* the head took what it can: nothing goes there any more */
    bool failed; /* out of memory */
    bool sated;  /* the callback wants no more of it */
    uint64_t raw_bytes;
    uint64_t text_bytes; /* decoded so far; what was spliced away is not in it */
    struct pf_utf8 utf8;
    struct pf_buf head;
    char *ring; /* of what came after the head */
    size_t ring_size;
};

struct pf_capture {
    struct pf_stream streams[2];
    const struct pf_run_request *request;
    bool keep_tail;
    bool declined; /* the callback has stopped the command */
    char *block;   /* for large reads */
    int null;      /* /dev/null, to splice to */
    struct pinfold_spool *spool;
    struct pinfold_error spool_error;
};

/* The owner sets the descriptors of the streams afterwards. Never fails: a spool that cannot be
 * made becomes a note. */
void pf_capture_init(struct pf_capture *capture, const struct pf_run_request *request);
void pf_capture_done(struct pf_capture *capture);

/* Take what a readable stream holds now; closes it at its end. Returns 0, -PINFOLD_ECANCELLED (the
 * callback said so; reading may go on), -PINFOLD_ENOMEM or -PINFOLD_EOS. */
int pf_capture_read(struct pf_capture *capture, struct pf_stream *stream,
                    struct pinfold_error *err);

/* The stream has ended, and holds nothing. */
void pf_capture_close(struct pf_stream *stream);

/* The streams are over: a character that was cut short becomes U+FFFD. */
void pf_capture_end_text(struct pf_capture *capture);

/* Compose ret's texts and counts; notes, one per line, are added at the end. Returns 0 or
 * -PINFOLD_ENOMEM. */
int pf_capture_finish(struct pf_capture *capture, const char *notes,
                      struct pinfold_execute_result *ret, struct pinfold_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside agent/: a reply under construction. Providers say what arrived; this puts the message
 * together, tells the caller's on_event, and keeps both in step.
 */
#ifndef PF_AGENT_MODEL_REPLY_H
#define PF_AGENT_MODEL_REPLY_H

#include <pinfold/model.h>

#include "base/buf.h"

#define PF_REPLY_BLOCKS_MAX 4096

struct pf_reply_part {
    struct pf_buf text;
    bool closed;
    bool silent; /* a tool that got no input */
};

struct pf_reply {
    const struct pinfold_model_request *request; /* borrowed */
    struct pinfold_model_reply *out;             /* borrowed; its message has no texts yet */
    struct pf_reply_part *parts;                 /* one for each block of out */
    size_t capacity;
    bool told; /* on_event has heard of this reply: it cannot begin again */
};

/* All return 0, -PINFOLD_ECANCELLED (on_event wants no more), -PINFOLD_EBACKEND (too many blocks)
 * or -PINFOLD_ENOMEM, with err filled. Text is valid UTF-8. */

/* Begin a block. id and name are those of a tool; an id that is NULL, empty or there already is
 * replaced by a random one. */
int pf_reply_open(struct pf_reply *reply, enum pinfold_block_kind kind, const char *id,
                  const char *name, size_t *ret_block, struct pinfold_error *err);
/* The next piece of it. */
int pf_reply_add(struct pf_reply *reply, size_t block, const char *text, size_t len,
                 struct pinfold_error *err);
/* What its provider wants back; taken, even on failure. NULL is -PINFOLD_ENOMEM. */
int pf_reply_set_opaque(struct pf_reply *reply, size_t block, char *opaque,
                        struct pinfold_error *err);
/* The block is whole. Closing it twice does nothing. */
int pf_reply_close(struct pf_reply *reply, size_t block, struct pinfold_error *err);
/* Some servers say that they are done, and have called tools, or the other way round: what the
 * blocks say counts. */
enum pinfold_stop_reason pf_reply_stop(const struct pf_reply *reply, enum pinfold_stop_reason told);
/* The reply is whole: closes what is open. detail is copied, and may be NULL. */
int pf_reply_finish(struct pf_reply *reply, enum pinfold_stop_reason stop, const char *detail,
                    struct pinfold_error *err);

/* Tell of a retry. */
int pf_reply_retry(struct pf_reply *reply, const struct pinfold_error *why, unsigned attempt,
                   int64_t delay_ns, struct pinfold_error *err);

/* How many bytes the block has so far. */
size_t pf_reply_len(const struct pf_reply *reply, size_t block);

/* Forget everything: also to begin again. out is emptied unless the reply was finished. */
void pf_reply_done(struct pf_reply *reply);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "mailbox.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct pf_mailbox {
    pthread_mutex_t lock;
    struct pf_letter *first, **last;
    bool abandoned;
    pid_t owner; /* in a fork a thread of the parent may hold the lock for ever */
    unsigned refs;
    int fd;
};

static struct pf_mailbox orphans = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .last = &orphans.first, .refs = 1, .fd = -1
};

struct pf_mailbox *pf_mailbox_new(void)
{
    struct pf_mailbox *mailbox = calloc(1, sizeof(*mailbox));

    if (!mailbox)
        return NULL;
    mailbox->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (mailbox->fd < 0) {
        free(mailbox);
        return NULL;
    }
    pthread_mutex_init(&mailbox->lock, NULL);
    mailbox->last = &mailbox->first;
    mailbox->owner = getpid();
    mailbox->refs = 1;
    return mailbox;
}

struct pf_mailbox *pf_mailbox_ref(struct pf_mailbox *mailbox)
{
    __atomic_fetch_add(&mailbox->refs, 1, __ATOMIC_RELAXED);
    return mailbox;
}

void pf_mailbox_unref(struct pf_mailbox *mailbox)
{
    if (!mailbox || __atomic_sub_fetch(&mailbox->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    close(mailbox->fd);
    pthread_mutex_destroy(&mailbox->lock);
    free(mailbox);
}

int pf_mailbox_fd(const struct pf_mailbox *mailbox)
{
    return mailbox->fd;
}

/* Under the lock. */
static void append(struct pf_mailbox *mailbox, struct pf_letter *letter)
{
    if (letter->queued)
        return;
    if (!mailbox->first && mailbox->fd >= 0)
        (void)!write(mailbox->fd, &(uint64_t){ 1 }, sizeof(uint64_t));
    letter->queued = true;
    letter->next = NULL;
    *mailbox->last = letter;
    mailbox->last = &letter->next;
}

bool pf_mailbox_put(struct pf_mailbox *mailbox, struct pf_letter *letter, bool done)
{
    bool abandoned;

    pthread_mutex_lock(&mailbox->lock);
    abandoned = mailbox->abandoned;
    letter->done = done;
    if (!abandoned)
        append(mailbox, letter);
    pthread_mutex_unlock(&mailbox->lock);
    if (!abandoned || !done)
        return !abandoned;
    pthread_mutex_lock(&orphans.lock);
    append(&orphans, letter);
    pthread_mutex_unlock(&orphans.lock);
    return false;
}

void pf_mailbox_abandon(struct pf_mailbox *mailbox)
{
    if (mailbox->owner != getpid())
        return;
    pthread_mutex_lock(&mailbox->lock);
    mailbox->abandoned = true;
    pthread_mutex_unlock(&mailbox->lock);
}

static struct pf_letter *take(struct pf_mailbox *mailbox, bool *ret_done)
{
    struct pf_letter *letter;
    uint64_t count;

    pthread_mutex_lock(&mailbox->lock);
    letter = mailbox->first;
    if (letter) {
        mailbox->first = letter->next;
        letter->queued = false;
        *ret_done = letter->done;
    }
    if (!mailbox->first) {
        mailbox->last = &mailbox->first;
        if (mailbox->fd >= 0)
            (void)!read(mailbox->fd, &count, sizeof(count));
    }
    pthread_mutex_unlock(&mailbox->lock);
    return letter;
}

struct pf_letter *pf_mailbox_take(struct pf_mailbox *mailbox, bool *ret_done)
{
    return mailbox->owner == getpid() ? take(mailbox, ret_done) : NULL;
}

struct pf_letter *pf_mailbox_take_orphan(void)
{
    bool done;

    return take(&orphans, &done);
}

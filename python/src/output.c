/* SPDX-License-Identifier: Apache-2.0 */
#include "output.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 1 << 20 };

struct chunk {
    struct chunk *next;
    enum pinfold_stream stream;
    size_t len;
    char data[];
};

struct pf_output {
    pthread_mutex_t lock;
    pthread_cond_t room;
    struct chunk *first, **last;
    size_t bytes;
    struct pf_mailbox *mailbox;
    struct pf_letter *letter;
    struct pinfold_cancel *cancel;
};

struct pf_output *pf_output_new(void)
{
    struct pf_output *output = calloc(1, sizeof(*output));

    if (!output)
        return NULL;
    pthread_mutex_init(&output->lock, NULL);
    pthread_cond_init(&output->room, NULL);
    output->last = &output->first;
    return output;
}

void pf_output_free(struct pf_output *output)
{
    if (!output)
        return;
    while (output->first) {
        struct chunk *chunk = output->first;
        output->first = chunk->next;
        free(chunk);
    }
    pthread_cond_destroy(&output->room);
    pthread_mutex_destroy(&output->lock);
    free(output);
}

void pf_output_deliver_to(struct pf_output *output, struct pf_mailbox *mailbox,
                          struct pf_letter *letter, struct pinfold_cancel *cancel)
{
    if (!output)
        return;
    output->mailbox = mailbox;
    output->letter = letter;
    output->cancel = cancel;
}

int pf_output_put(struct pf_output *output, enum pinfold_stream stream, const char *data,
                  size_t len)
{
    struct chunk *chunk = malloc(sizeof(*chunk) + len);

    if (!chunk)
        return 1;
    *chunk = (struct chunk){ .stream = stream, .len = len };
    memcpy(chunk->data, data, len);
    pthread_mutex_lock(&output->lock);
    while (output->mailbox && output->bytes >= MAX_BYTES && !pinfold_cancel_fired(output->cancel))
        pthread_cond_wait(&output->room, &output->lock);
    *output->last = chunk;
    output->last = &chunk->next;
    output->bytes += len;
    pthread_mutex_unlock(&output->lock);
    if (output->mailbox)
        (void)pf_mailbox_put(output->mailbox, output->letter, false);
    return 0;
}

void pf_output_wake(struct pf_output *output)
{
    if (!output)
        return;
    pthread_mutex_lock(&output->lock);
    pthread_cond_broadcast(&output->room);
    pthread_mutex_unlock(&output->lock);
}

PyObject *pf_output_take(struct pf_output *output)
{
    PyObject *list = PyList_New(0);
    struct chunk *chunk, *next;

    if (!list || !output)
        return list;
    pthread_mutex_lock(&output->lock);
    chunk = output->first;
    output->first = NULL;
    output->last = &output->first;
    output->bytes = 0;
    pthread_cond_broadcast(&output->room);
    pthread_mutex_unlock(&output->lock);
    for (; chunk; chunk = next) {
        PyObject *pair =
                list ? Py_BuildValue("iy#", (int)chunk->stream, chunk->data, (Py_ssize_t)chunk->len)
                     : NULL;
        if (list && (!pair || PyList_Append(list, pair) < 0))
            Py_CLEAR(list);
        Py_XDECREF(pair);
        next = chunk->next;
        free(chunk);
    }
    return list;
}

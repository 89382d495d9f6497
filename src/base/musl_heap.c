/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first allocations of a program that is over in a millisecond. musl maps memory for each size
 * that it is asked for, and faults twice on it: a dozen system calls and as many faults in a run
 * that needs ten kilobytes altogether. Here these follow one another in memory that the program
 * has anyway; what does not fit, or comes later, is musl's. The linker lets every call of malloc()
 * and so on, the C library's own included, come here first (--wrap).
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *pf_heap_malloc(size_t size) __asm__("__wrap_malloc");
void *pf_heap_calloc(size_t count, size_t size) __asm__("__wrap_calloc");
void *pf_heap_realloc(void *old, size_t size) __asm__("__wrap_realloc");
void pf_heap_free(void *memory) __asm__("__wrap_free");

void *musl_malloc(size_t size) __asm__("__real_malloc");
void *musl_calloc(size_t count, size_t size) __asm__("__real_calloc");
void *musl_realloc(void *old, size_t size) __asm__("__real_realloc");
void musl_free(void *memory) __asm__("__real_free");

/* Before each block; as large as the alignment that malloc() promises. */
struct head {
    _Alignas(16) size_t size; /* of the block, without this */
};

enum { HEAP = 48 * 1024, LARGEST = 8 * 1024 };

static _Alignas(16) char heap[HEAP];
static atomic_size_t used;

static bool is_here(const void *memory)
{
    return (uintptr_t)memory - (uintptr_t)heap < HEAP;
}

static struct head *head_of(void *memory)
{
    return (struct head *)memory - 1;
}

void *pf_heap_malloc(size_t size)
{
    size_t at = atomic_load_explicit(&used, memory_order_relaxed), whole;
    struct head *head;

    if (size > LARGEST)
        return musl_malloc(size);
    /* Never nothing: that would lie behind the heap when it is the last. */
    size = ((size ? size : 1) + sizeof(*head) - 1) & ~(sizeof(*head) - 1);
    whole = size + sizeof(*head);
    do
        if (at > HEAP - whole)
            return musl_malloc(size);
    while (!atomic_compare_exchange_weak(&used, &at, at + whole));
    head = (struct head *)(void *)(heap + at);
    head->size = size;
    return head + 1;
}

/* Only the last block can be used again. */
void pf_heap_free(void *memory)
{
    size_t at, end;

    if (!is_here(memory)) {
        musl_free(memory);
        return;
    }
    at = (size_t)((char *)head_of(memory) - heap);
    end = at + sizeof(struct head) + head_of(memory)->size;
    atomic_compare_exchange_strong(&used, &end, at);
}

void *pf_heap_calloc(size_t count, size_t size)
{
    void *memory;

    /* musl's knows what is zero already, but only of its own. */
    if (size > 0 && count > LARGEST / size)
        return musl_calloc(count, size);
    memory = pf_heap_malloc(count * size);
    return memory ? memset(memory, 0, count * size) : NULL;
}

void *pf_heap_realloc(void *old, size_t size)
{
    void *memory;

    if (!old)
        return pf_heap_malloc(size);
    if (!is_here(old))
        return musl_realloc(old, size);
    if (size <= head_of(old)->size)
        return old;
    memory = pf_heap_malloc(size);
    if (!memory)
        return NULL;
    memcpy(memory, old, head_of(old)->size);
    pf_heap_free(old);
    return memory;
}

/* failing_malloc.h - a malloc that fails on demand, and counts what is live. Sanitizers
 * replace malloc too: under those REPLACES_MALLOC is 0 and nothing is defined. */
#ifndef VT_TESTS_FAILING_MALLOC_H
#define VT_TESTS_FAILING_MALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "sanitized.h"

#if defined(__GLIBC__) && !SANITIZED
#define REPLACES_MALLOC 1
#else
#define REPLACES_MALLOC 0
#endif

#if REPLACES_MALLOC

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void __libc_free(void *p);

static long calls, live;
static long fail_at; /* 0: never */
static bool for_good;

static bool fails(void)
{
    calls++;
    return fail_at > 0 && (for_good ? calls >= fail_at : calls == fail_at);
}

/* Seen by libc too, whose strdup() and the like allocate: the rest of the tree hides
 * its symbols. */
#pragma GCC visibility push(default)

void *malloc(size_t size)
{
    void *p = fails() ? NULL : __libc_malloc(size);

    live += p != NULL;
    return p;
}

void *calloc(size_t n, size_t size)
{
    void *p = fails() ? NULL : __libc_calloc(n, size);

    live += p != NULL;
    return p;
}

void *realloc(void *old, size_t size)
{
    void *p = fails() ? NULL : __libc_realloc(old, size);

    live += p != NULL && old == NULL;
    return p;
}

void free(void *p)
{
    live -= p != NULL;
    __libc_free(p);
}

#pragma GCC visibility pop

#endif
#endif

/* arena.c - memory that is freed all at once, arrays that grow, and large tables.
 *
 * Chunks double, so that a reader that resets its arena once per line soon owns one
 * chunk large enough for any line and stops asking the system. */
#define _DEFAULT_SOURCE /* mmap's anonymous memory, madvise */

#include <sys/mman.h>

#include "base/base.h"

enum { ALIGN = 16, FIRST_CHUNK = 4096, LARGE_TABLE = 4 << 20 };
#define MAX_CHUNK ((size_t)64 << 20)

struct vt_arena_chunk {
    struct vt_arena_chunk *next;
    size_t cap, used;
    char pad[8]; /* keeps what follows aligned */
};
_Static_assert(sizeof(struct vt_arena_chunk) % ALIGN == 0, "chunk data is aligned");

static char *chunk_data(struct vt_arena_chunk *c)
{
    return (char *)(c + 1);
}

void *vt_arena_alloc(struct vt_arena *a, size_t size)
{
    struct vt_arena_chunk *c = a->chunk;
    size_t cap;
    char *p;

    if (size > SIZE_MAX / 4)
        return NULL;
    size = size ? (size + ALIGN - 1) & ~(size_t)(ALIGN - 1) : ALIGN;
    if (!c || c->cap - c->used < size) {
        cap = c ? 2 * c->cap : FIRST_CHUNK;
        cap = cap < MAX_CHUNK ? cap : MAX_CHUNK;
        cap = cap > size ? cap : size;
        /* calloc, because the system hands out large blocks already zeroed. */
        c = calloc(1, sizeof(*c) + cap);
        if (!c)
            return NULL;
        c->cap = cap;
        c->next = a->chunk;
        a->chunk = c;
    }
    p = chunk_data(c) + c->used;
    c->used += size;
    a->used_bytes += size;
    return p;
}

char *vt_arena_copy(struct vt_arena *a, const char *text, size_t len)
{
    char *copy = len < SIZE_MAX ? vt_arena_alloc(a, len + 1) : NULL;

    if (copy && len > 0)
        memcpy(copy, text, len);
    return copy;
}

int vt_arena_text(struct vt_arena *a, const char *text, const char **out,
                  struct vt_err *err)
{
    *out = text ? vt_arena_copy(a, text, strlen(text)) : NULL;
    return text && !*out ? vt_nomem(err) : VT_OK;
}

void vt_arena_reset(struct vt_arena *a)
{
    struct vt_arena_chunk *keep = a->chunk, *next;

    for (struct vt_arena_chunk *c = a->chunk; c; c = c->next)
        if (c->cap > keep->cap)
            keep = c;
    for (struct vt_arena_chunk *c = a->chunk; c; c = next) {
        next = c->next;
        if (c != keep)
            free(c);
    }
    if (keep) {
        memset(chunk_data(keep), 0, keep->used);
        keep->used = 0;
        keep->next = NULL;
    }
    a->chunk = keep;
    a->used_bytes = 0;
}

void vt_arena_free(struct vt_arena *a)
{
    struct vt_arena_chunk *next;

    for (struct vt_arena_chunk *c = a->chunk; c; c = next) {
        next = c->next;
        free(c);
    }
    *a = (struct vt_arena){0};
}

int vt_grow_more(void *array_ptr, size_t *cap, size_t need, size_t cell,
                 struct vt_err *err)
{
    size_t want = *cap < 8 ? 8 : *cap;
    void *array;

    while (want < need) {
        if (want > SIZE_MAX / 4)
            return vt_nomem(err);
        want *= 2;
    }
    if (want > (SIZE_MAX / 2) / cell)
        return vt_nomem(err);
    /* memcpy, since the caller's pointer has a type of its own. */
    memcpy(&array, array_ptr, sizeof(array));
    array = realloc(array, want * cell);
    if (!array)
        return vt_nomem(err);
    memcpy(array_ptr, &array, sizeof(array));
    *cap = want;
    return VT_OK;
}

void vt_shrink_more(void *array_ptr, size_t *cap, size_t used, size_t cell)
{
    size_t want = *cap;
    void *array, *smaller;

    while (used < want / 4 && want * cell > VT_SMALL_ARRAY)
        want /= 2;
    memcpy(&array, array_ptr, sizeof(array));
    smaller = realloc(array, want * cell);
    if (!smaller)
        return;
    memcpy(array_ptr, &smaller, sizeof(smaller));
    *cap = want;
}

void *vt_table_alloc(size_t n, size_t cell)
{
    void *table;

    if (cell > 0 && n > SIZE_MAX / cell)
        return NULL;
    if (n * cell < LARGE_TABLE)
        return calloc(n, cell);
    table = mmap(NULL, n * cell, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                 -1, 0);
    if (table == MAP_FAILED)
        return NULL;
    (void)madvise(table, n * cell,
                  MADV_HUGEPAGE); /* a wish; without it, it is slower */
    return table;
}

void vt_table_free(void *table, size_t n, size_t cell)
{
    if (n * cell < LARGE_TABLE)
        free(table);
    else if (table)
        (void)munmap(table, n * cell);
}

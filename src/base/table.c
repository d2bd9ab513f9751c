/* table.c - memory for large tables. */
#define _DEFAULT_SOURCE /* mmap's anonymous memory, madvise */

#include <sys/mman.h>

#include "base/base.h"

enum { LARGE = 4 << 20 };

void *vt_table_alloc(size_t n, size_t cell)
{
    void *table;

    if (cell > 0 && n > SIZE_MAX / cell)
        return NULL;
    if (n * cell < LARGE)
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
    if (n * cell < LARGE)
        free(table);
    else if (table != NULL)
        (void)munmap(table, n * cell);
}

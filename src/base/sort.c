/* sort.c - ascending doubles, by their bits. */
#include "base/base.h"

enum { RADIX = 256, PASSES = 8, SMALL = 256 };

/* Flips a double's bits so that unsigned order is numeric order: -0 comes before 0,
 * and NaNs go to the ends. A total order, so equal inputs give equal outputs. */
static uint64_t key_of(double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof(bits));
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

static int by_key(const void *a, const void *b)
{
    uint64_t x = key_of(*(const double *)a), y = key_of(*(const double *)b);

    return (x > y) - (x < y);
}

static void radix_sort(double *v, size_t n, uint64_t *room)
{
    uint64_t *from = room, *to = room + n;
    size_t count[PASSES][RADIX] = {{0}};

    for (size_t i = 0; i < n; i++) {
        from[i] = key_of(v[i]);
        for (int pass = 0; pass < PASSES; pass++)
            count[pass][from[i] >> (8 * pass) & 0xff]++;
    }
    for (int pass = 0; pass < PASSES; pass++) {
        size_t at[RADIX], sum = 0;
        uint64_t *swap = from;

        if (count[pass][from[0] >> (8 * pass) & 0xff] == n)
            continue; /* all share this digit */
        for (int d = 0; d < RADIX; d++) {
            at[d] = sum;
            sum += count[pass][d];
        }
        for (size_t i = 0; i < n; i++)
            to[at[from[i] >> (8 * pass) & 0xff]++] = from[i];
        from = to;
        to = swap;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = from[i] >> 63 ? from[i] & ~(UINT64_C(1) << 63) : ~from[i];

        memcpy(&v[i], &bits, sizeof(bits));
    }
}

void vt_sort_f64(double *v, size_t n)
{
    uint64_t *room = NULL;

    if (n > SMALL && n < SIZE_MAX / (4 * sizeof(*room)))
        room = malloc(2 * n * sizeof(*room));
    if (room)
        radix_sort(v, n, room);
    else if (n > 1)
        qsort(v, n, sizeof(*v), by_key); /* small, or no memory for the fast way */
    free(room);
}

/* sorted.c - sequences in the order of words, and which of those in a row comes first.
 */
#include "wire/script/parts.h"

#include <assert.h>

/* ---- sequences -------------------------------------------------------- */

size_t script_common(struct script_sequence a, struct script_sequence b)
{
    enum { AT_ONCE = 64 };
    const char *p = a.at, *q = b.at;
    size_t n = a.n < b.n ? a.n : b.n, cell = a.cell, i = 0;

    while (n - i >= AT_ONCE && memcmp(p + i * cell, q + i * cell, AT_ONCE * cell) == 0)
        i += AT_ONCE;
    while (i < n && memcmp(p + i * cell, q + i * cell, cell) == 0)
        i++;
    return i;
}

/* The order of elements is that of their bytes: any would do. */
static int compare(struct script_sequence a, struct script_sequence b)
{
    size_t i = script_common(a, b);

    if (i == a.n || i == b.n)
        return a.n < b.n ? -1 : a.n > b.n;
    return memcmp((const char *)a.at + i * a.cell, (const char *)b.at + i * a.cell,
                  a.cell);
}

static int by_sequence(const void *pa, const void *pb)
{
    const struct script_entry *a = pa, *b = pb;
    int order = compare(a->sequence, b->sequence);

    return order != 0 ? order : a->number < b->number ? -1 : 1;
}

/* ---- trees of minima -------------------------------------------------- */

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The leaves, from n on, are the numbers by place. NULL: out of memory. */
static uint32_t *make_tree(const struct script_sorted *s)
{
    uint32_t *node = malloc(2 * s->n * sizeof(*node));

    for (size_t i = 0; node && i < s->n; i++)
        node[s->n + i] = s->entry[i].number;
    for (size_t i = s->n - 1; node && i >= 1; i--)
        node[i] = smaller(node[2 * i], node[2 * i + 1]);
    return node;
}

uint32_t script_sorted_first(const struct script_sorted *s, size_t lo, size_t hi,
                             bool also_served)
{
    const uint32_t *node = also_served ? s->all : s->fresh;
    uint32_t best = SCRIPT_NONE;

    for (lo += s->n, hi += s->n; lo < hi; lo /= 2, hi /= 2) {
        if (lo & 1)
            best = smaller(best, node[lo++]);
        if (hi & 1)
            best = smaller(best, node[--hi]);
    }
    return best;
}

void script_sorted_serve(struct script_sorted *s, uint32_t number)
{
    size_t i = s->n + s->place[number];

    for (s->fresh[i] = SCRIPT_NONE, i /= 2; i >= 1; i /= 2)
        s->fresh[i] = smaller(s->fresh[2 * i], s->fresh[2 * i + 1]);
}

/* ---- the whole -------------------------------------------------------- */

int script_sorted_init(struct script_sorted *s, size_t most, struct vt_err *err)
{
    *s = (struct script_sorted){
        .entry = malloc(most * sizeof(*s->entry)),
        .place = malloc(most * sizeof(*s->place)),
    };
    return s->entry && s->place ? VT_OK : vt_nomem(err);
}

int script_sorted_sort(struct script_sorted *s, struct vt_err *err)
{
    assert(s->n > 0);
    qsort(s->entry, s->n, sizeof(*s->entry), by_sequence);
    for (size_t i = 0; i < s->n; i++)
        s->place[s->entry[i].number] = (uint32_t)i;
    s->fresh = make_tree(s);
    s->all = make_tree(s);
    return s->fresh && s->all ? VT_OK : vt_nomem(err);
}

void script_sorted_free(struct script_sorted *s)
{
    free(s->entry);
    free(s->place);
    free(s->fresh);
    free(s->all);
    *s = (struct script_sorted){0};
}

size_t script_sorted_end(const struct script_sorted *s, struct script_sequence q,
                         enum script_side side)
{
    size_t lo = 0, hi = s->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        struct script_sequence at = s->entry[mid].sequence;
        int order = compare(at, q);

        if (order < 0 || (side >= SCRIPT_EQUAL && order == 0) ||
            (side == SCRIPT_GOING_ON && script_common(at, q) == q.n))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* pick.c - a tree of minima over places. */
#include "wire/script/parts.h"

#include <assert.h>

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

int script_pick_init(struct script_pick *p, const uint32_t *number, size_t n,
                     struct vt_err *err)
{
    *p = (struct script_pick){.size = n > 0 ? n : 1};
    p->node = malloc(2 * p->size * sizeof(*p->node));
    if (!p->node)
        return vt_nomem(err);
    p->node[p->size] = SCRIPT_NONE;
    for (size_t i = 0; i < n; i++)
        p->node[p->size + i] = number[i];
    for (size_t i = p->size - 1; i >= 1; i--)
        p->node[i] = smaller(p->node[2 * i], p->node[2 * i + 1]);
    return VT_OK;
}

void script_pick_free(struct script_pick *p)
{
    free(p->node);
    *p = (struct script_pick){0};
}

void script_pick_remove(struct script_pick *p, size_t place)
{
    size_t i = p->size + place;

    assert(place < p->size);
    for (p->node[i] = SCRIPT_NONE, i /= 2; i >= 1; i /= 2)
        p->node[i] = smaller(p->node[2 * i], p->node[2 * i + 1]);
}

uint32_t script_pick_first(const struct script_pick *p, size_t lo, size_t hi)
{
    uint32_t best = SCRIPT_NONE;

    for (lo += p->size, hi += p->size; lo < hi; lo /= 2, hi /= 2) {
        if (lo & 1)
            best = smaller(best, p->node[lo++]);
        if (hi & 1)
            best = smaller(best, p->node[--hi]);
    }
    return best;
}

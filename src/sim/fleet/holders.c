/* holders.c - which instances may have prompts that begin with a block: asked instead
 * of every instance. */
#include <stdlib.h>
#include <string.h>

#include "sim/fleet/parts.h"

/* ---- sets of instances by key -------------------------------------------- */

/* Where the instance is in the set, or belongs. */
static uint32_t place_in(const struct holder_set *s, uint32_t instance)
{
    uint32_t lo = 0, hi = s->n;

    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;

        if (s->holder[mid].instance < instance)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* An empty set; NULL: out of memory. Its memory may be of one that was. */
static struct holder_set *new_set(struct holders *h)
{
    if (h->unused != 0) {
        struct holder_set *s = &h->set[h->unused - 1];

        h->unused = s->next;
        return s;
    }
    if (vt_grow(&h->set, &h->cap_sets, h->n_sets + 1, sizeof(*h->set), NULL) != VT_OK)
        return NULL;
    h->set[h->n_sets] = (struct holder_set){0};
    return &h->set[h->n_sets++];
}

static struct holder_set *set_of(struct holders *h, uint64_t key)
{
    uint64_t *at = vt_map_get(&h->map, key);
    struct holder_set *s;

    if (at)
        return &h->set[*at - 1];
    s = new_set(h);
    at = s ? vt_map_put(&h->map, key) : NULL;
    if (!at)
        return NULL;
    *at = (uint64_t)(s - h->set) + 1;
    return s;
}

struct holder *holders_put(struct holders *h, uint64_t key, uint32_t instance)
{
    struct holder_set *s = set_of(h, key);
    uint32_t i = s ? place_in(s, instance) : 0;

    if (!s)
        return NULL;
    if (i < s->n && s->holder[i].instance == instance)
        return &s->holder[i];
    if (vt_grow(&s->holder, &s->cap, (size_t)s->n + 1, sizeof(*s->holder), NULL) !=
        VT_OK)
        return NULL;
    memmove(&s->holder[i + 1], &s->holder[i], (s->n - i) * sizeof(*s->holder));
    s->n++;
    s->holder[i] = (struct holder){.instance = instance};
    return &s->holder[i];
}

static void take_out(struct holder_set *s, uint32_t i)
{
    s->n--;
    memmove(&s->holder[i], &s->holder[i + 1], (s->n - i) * sizeof(*s->holder));
}

void holders_drop(struct holders *h, uint64_t key, uint32_t instance)
{
    uint64_t *at = vt_map_get(&h->map, key);
    struct holder_set *s = at ? &h->set[*at - 1] : NULL;
    uint32_t i = s ? place_in(s, instance) : 0;

    if (!s || i == s->n || s->holder[i].instance != instance ||
        --s->holder[i].times > 0)
        return;
    take_out(s, i);
    if (s->n > 0)
        return;
    s->next = h->unused;
    h->unused = (uint32_t)*at;
    vt_map_drop(&h->map, at);
}

void holders_forget(struct holders *h, uint32_t instance)
{
    for (size_t k = 0; k < h->n_sets; k++) {
        struct holder_set *s = &h->set[k];
        uint32_t i = place_in(s, instance);

        /* One that is left empty keeps its key: it gets others, or is one of few. */
        if (i < s->n && s->holder[i].instance == instance)
            take_out(s, i);
    }
    for (size_t i = h->head; i < h->n_gone; i++)
        if (h->gone[i].instance == instance)
            h->gone[i].key = 0;
}

const struct holder *holders_of(const struct holders *h, uint64_t key, uint32_t *n)
{
    const uint64_t *at = vt_map_get(&h->map, key);

    *n = at ? h->set[*at - 1].n : 0;
    return *n > 0 ? h->set[*at - 1].holder : NULL;
}

void holders_free(struct holders *h)
{
    for (size_t i = 0; i < h->n_sets; i++)
        free(h->set[i].holder);
    free(h->set);
    free(h->gone);
    vt_map_free(&h->map);
    *h = (struct holders){0};
}

/* ---- what caches tell ------------------------------------------------------ */

static bool note_gone(struct holders *h, const struct key_told *t, uint32_t instance)
{
    if (h->head > 0 && 2 * h->head > h->n_gone) {
        h->n_gone -= h->head;
        memmove(h->gone, h->gone + h->head, h->n_gone * sizeof(*h->gone));
        h->head = 0;
    }
    if (vt_grow(&h->gone, &h->cap_gone, h->n_gone + 1, sizeof(*h->gone), NULL) != VT_OK)
        return false;
    h->gone[h->n_gone++] = (struct holder_gone){t->at, t->key, instance};
    return true;
}

bool holders_hear(struct holders *h, struct key_view *v, uint32_t instance)
{
    for (size_t i = 0; i < v->n_firsts; i++) {
        const struct key_told *t = &v->first[i];
        struct holder *x;

        if (t->change != 1) {
            if (!note_gone(h, t, instance))
                return false;
            continue;
        }
        x = holders_put(h, t->key, instance);
        if (!x)
            return false;
        x->times++;
    }
    v->n_firsts = 0;
    return true;
}

void holders_expire(struct holders *h, vt_ns until)
{
    for (; h->head < h->n_gone && h->gone[h->head].at <= until; h->head++)
        if (h->gone[h->head].key != 0)
            holders_drop(h, h->gone[h->head].key, h->gone[h->head].instance);
}

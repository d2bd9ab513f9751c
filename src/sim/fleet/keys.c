/* keys.c - sets of block keys: what a router sent where, and what it was told of
 * caches. */
#include <stdlib.h>
#include <string.h>

#include "sim/fleet/parts.h"

/* ---- sent there lately ------------------------------------------------ */

uint32_t key_lru_match(const struct key_lru *l, const uint64_t *key, uint32_t n)
{
    uint32_t i = 0;

    while (i < n && vt_map_get(&l->map, key[i]))
        i++;
    return i;
}

static void unlink_link(struct key_lru *l, uint32_t i)
{
    struct key_link *x = &l->link[i];

    *(x->prev != 0 ? &l->link[x->prev].next : &l->newest) = x->next;
    *(x->next != 0 ? &l->link[x->next].prev : &l->oldest) = x->prev;
}

/* The oldest key goes. */
static void drop_key(struct key_lru *l, uint64_t key)
{
    vt_map_drop(&l->map, vt_map_get(&l->map, key));
    if (l->index)
        holders_drop(l->index, key, l->instance);
}

static bool note_one(struct key_lru *l, uint64_t key)
{
    uint64_t *at = vt_map_get(&l->map, key);
    uint32_t i = at ? (uint32_t)*at : l->n < l->cap ? ++l->n : l->oldest;
    bool linked = at || i == l->oldest;
    struct key_link *x = &l->link[i];

    if (linked)
        unlink_link(l, i);
    if (!at) {
        if (linked)
            drop_key(l, x->key);
        x->key = key;
        at = vt_map_put(&l->map, key);
        if (!at)
            return false;
        *at = i;
    }
    x->prev = 0;
    x->next = l->newest;
    *(l->newest != 0 ? &l->link[l->newest].prev : &l->oldest) = i;
    l->newest = i;
    return true;
}

static bool note_first(const struct key_lru *l, uint64_t key)
{
    struct holder *x = holders_put(l->index, key, l->instance);

    if (x)
        x->times = 1;
    return x != NULL;
}

bool key_lru_note(struct key_lru *l, const uint64_t *key, uint32_t n)
{
    bool good = true;

    if (!l->link)
        l->link = calloc((size_t)l->cap + 1, sizeof(*l->link));
    if (!l->link)
        return false;
    /* The first block last: a prefix goes only after all that builds on it. */
    for (uint32_t i = n; i-- > 0 && good;)
        good = note_one(l, key[i]);
    return good && n > 0 && l->index ? note_first(l, key[0]) : good;
}

void key_lru_free(struct key_lru *l)
{
    vt_map_free(&l->map);
    free(l->link);
    *l = (struct key_lru){.cap = l->cap, .instance = l->instance, .index = l->index};
}

/* ---- told of late ----------------------------------------------------- */

static bool count_change(struct key_view *v, uint64_t key, uint32_t change)
{
    uint64_t *net = vt_map_put(&v->late, key);

    if (!net)
        return false;
    *net = (uint32_t)(*net + change);
    if (*net == 0)
        vt_map_drop(&v->late, net);
    return true;
}

/* Events of so long ago are no longer late. */
static bool expire_events(struct key_view *v, vt_ns now)
{
    bool good = true;

    for (; v->head < v->n && v->told[v->head].at <= now - v->delay && good; v->head++)
        if (v->head < v->counted)
            good = count_change(v, v->told[v->head].key, 0u - v->told[v->head].change);
    if (v->counted < v->head)
        v->counted = v->head;
    return good;
}

bool key_view_see(struct key_view *v, vt_ns now)
{
    bool good = expire_events(v, now);

    for (; v->counted < v->n && good; v->counted++)
        good = count_change(v, v->told[v->counted].key, v->told[v->counted].change);
    return good;
}

/* A fleet's caches are never cleared. What is not kept was never there, and routers see
 * what GPUs hold. */
static bool is_change(const struct vt_kv_event *e, uint32_t group)
{
    return e->kind != VT_KV_CLEARED && e->group == group && e->key != 0 &&
           e->medium == VT_MEDIUM_GPU;
}

static bool tell_first(struct key_view *v, vt_ns at, uint64_t key, uint32_t change)
{
    if (vt_grow(&v->first, &v->cap_firsts, v->n_firsts + 1, sizeof(*v->first), NULL) !=
        VT_OK)
        return false;
    v->first[v->n_firsts++] = (struct key_told){at, key, change};
    return true;
}

/* The first block of a prompt that comes when none was there, or the last one of its
 * content that goes. */
static bool follow_first(struct key_view *v, vt_ns at, const struct vt_kv_event *e)
{
    uint64_t *there = vt_map_get(&v->firsts, e->key);

    if (e->kind == VT_KV_STORED) {
        if (e->part ? e->index + 1 != v->units : e->index > 0)
            return true;
        if (!there)
            there = vt_map_put(&v->firsts, e->key);
        return there && ((*there)++ > 0 || tell_first(v, at, e->key, 1));
    }
    if (!there || --*there > 0)
        return true;
    vt_map_drop(&v->firsts, there);
    return tell_first(v, at, e->key, UINT32_MAX);
}

bool key_view_tell(struct key_view *v, vt_ns at, const struct vt_kv_event *e,
                   uint32_t n)
{
    if (!expire_events(v, at))
        return false;
    if (2 * v->head > v->n) {
        memmove(v->told, v->told + v->head, (v->n - v->head) * sizeof(*v->told));
        v->n -= v->head;
        v->counted -= v->head;
        v->head = 0;
    }
    if (vt_grow(&v->told, &v->cap, v->n + n, sizeof(*v->told), NULL) != VT_OK)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (!is_change(&e[i], v->group))
            continue;
        v->told[v->n++] =
            (struct key_told){at, e[i].key, e[i].kind == VT_KV_STORED ? 1 : UINT32_MAX};
        if (!follow_first(v, at, &e[i]))
            return false;
    }
    return true;
}

bool key_view_had(const struct key_view *v, uint64_t key, uint32_t blocks)
{
    const uint64_t *net = vt_map_get(&v->late, key);

    return blocks != (net ? *net : 0);
}

void key_view_clear(struct key_view *v)
{
    vt_map_clear(&v->late);
    vt_map_clear(&v->firsts);
    v->head = v->n = v->counted = v->n_firsts = 0;
}

void key_view_free(struct key_view *v)
{
    vt_map_free(&v->late);
    vt_map_free(&v->firsts);
    free(v->told);
    free(v->first);
    *v = (struct key_view){.delay = v->delay, .group = v->group, .units = v->units};
}

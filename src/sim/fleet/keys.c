/* router_keys.c - sets of block keys: what a router sent where, and what it was told of
 * caches. */
#include <stdlib.h>
#include <string.h>

#include "sim/fleet/parts.h"

/* ---- keys to numbers -------------------------------------------------- */

/* The cell that holds the key, or the empty one where it would go. */
static size_t cell_of(const struct keymap *m, uint64_t key)
{
    size_t c = (size_t)key & m->mask;

    while (m->cell[c].key != 0 && m->cell[c].key != key)
        c = (c + 1) & m->mask;
    return c;
}

static bool widen(struct keymap *m)
{
    struct keymap old = *m;
    size_t size = old.cell != NULL ? 2 * (old.mask + 1) : 1024;

    m->cell = calloc(size, sizeof(*m->cell));
    if (m->cell == NULL) {
        *m = old;
        return false;
    }
    m->mask = size - 1;
    for (size_t i = 0; old.cell != NULL && i <= old.mask; i++)
        if (old.cell[i].key != 0)
            m->cell[cell_of(m, old.cell[i].key)] = old.cell[i];
    free(old.cell);
    return true;
}

uint32_t *keymap_find(const struct keymap *m, uint64_t key)
{
    size_t c;

    if (m->cell == NULL)
        return NULL;
    c = cell_of(m, key);
    return m->cell[c].key != 0 ? &m->cell[c].v : NULL;
}

uint32_t *keymap_put(struct keymap *m, uint64_t key)
{
    size_t c;

    if ((m->cell == NULL || 2 * m->n > m->mask) && !widen(m))
        return NULL;
    c = cell_of(m, key);
    if (m->cell[c].key == 0) {
        m->cell[c] = (struct keycell){.key = key};
        m->n++;
    }
    return &m->cell[c].v;
}

/* Closes the gap, so that no probe sequence is cut. */
void keymap_erase(struct keymap *m, uint64_t key)
{
    size_t gap, c;

    if (keymap_find(m, key) == NULL)
        return;
    gap = c = cell_of(m, key);
    for (;;) {
        size_t want;

        c = (c + 1) & m->mask;
        if (m->cell[c].key == 0)
            break;
        want = (size_t)m->cell[c].key & m->mask;
        if (((c - want) & m->mask) >= ((c - gap) & m->mask)) {
            m->cell[gap] = m->cell[c];
            gap = c;
        }
    }
    m->cell[gap].key = 0;
    m->n--;
}

void keymap_clear(struct keymap *m)
{
    if (m->cell != NULL)
        memset(m->cell, 0, (m->mask + 1) * sizeof(*m->cell));
    m->n = 0;
}

void keymap_free(struct keymap *m)
{
    free(m->cell);
    *m = (struct keymap){0};
}

/* ---- sent there lately ------------------------------------------------ */

uint32_t key_lru_match(const struct key_lru *l, const uint64_t *key, uint32_t n)
{
    uint32_t i = 0;

    while (i < n && keymap_find(&l->map, key[i]) != NULL)
        i++;
    return i;
}

static void unlink_link(struct key_lru *l, uint32_t i)
{
    struct key_link *x = &l->link[i];

    *(x->prev != 0 ? &l->link[x->prev].next : &l->newest) = x->next;
    *(x->next != 0 ? &l->link[x->next].prev : &l->oldest) = x->prev;
}

static void link_newest(struct key_lru *l, uint32_t i)
{
    struct key_link *x = &l->link[i];

    x->prev = 0;
    x->next = l->newest;
    *(l->newest != 0 ? &l->link[l->newest].prev : &l->oldest) = i;
    l->newest = i;
}

/* A link for a new key: a fresh one, or the oldest key's. */
static uint32_t take_link(struct key_lru *l)
{
    uint32_t i = l->oldest;

    if (l->n < l->cap)
        return ++l->n;
    unlink_link(l, i);
    keymap_erase(&l->map, l->link[i].key);
    return i;
}

static bool note_one(struct key_lru *l, uint64_t key)
{
    uint32_t *at = keymap_find(&l->map, key), i;

    if (at != NULL) {
        i = *at;
        unlink_link(l, i);
    } else {
        i = take_link(l);
        l->link[i].key = key;
        at = keymap_put(&l->map, key);
        if (at == NULL)
            return false;
        *at = i;
    }
    link_newest(l, i);
    return true;
}

bool key_lru_note(struct key_lru *l, const uint64_t *key, uint32_t n)
{
    bool good = true;

    if (l->link == NULL)
        l->link = calloc((size_t)l->cap + 1, sizeof(*l->link));
    if (l->link == NULL)
        return false;
    /* The first block last: a prefix goes only after all that builds on it. */
    for (uint32_t i = n; i-- > 0 && good;)
        good = note_one(l, key[i]);
    return good;
}

void key_lru_free(struct key_lru *l)
{
    keymap_free(&l->map);
    free(l->link);
    *l = (struct key_lru){.cap = l->cap};
}

/* ---- told of late ----------------------------------------------------- */

static bool count(struct key_view *v, uint64_t key, uint32_t change)
{
    uint32_t *net = keymap_put(&v->late, key);

    if (net == NULL)
        return false;
    *net += change;
    if (*net == 0)
        keymap_erase(&v->late, key);
    return true;
}

/* Events of so long ago are no longer late. */
static bool pass(struct key_view *v, vt_ns now)
{
    bool good = true;

    for (; v->head < v->n && v->told[v->head].at <= now - v->delay && good; v->head++)
        if (v->head < v->counted)
            good = count(v, v->told[v->head].key, 0u - v->told[v->head].change);
    if (v->counted < v->head)
        v->counted = v->head;
    return good;
}

bool key_view_see(struct key_view *v, vt_ns now)
{
    bool good = pass(v, now);

    for (; v->counted < v->n && good; v->counted++)
        good = count(v, v->told[v->counted].key, v->told[v->counted].change);
    return good;
}

static void close_up(struct key_view *v)
{
    memmove(v->told, v->told + v->head, (v->n - v->head) * sizeof(*v->told));
    v->n -= v->head;
    v->counted -= v->head;
    v->head = 0;
}

bool key_view_tell(struct key_view *v, vt_ns at, const struct vt_kv_event *e,
                   uint32_t n)
{
    if (!pass(v, at))
        return false;
    if (2 * v->head > v->n)
        close_up(v);
    if (vt_grow(&v->told, &v->cap, v->n + n, sizeof(*v->told), NULL) != VT_OK)
        return false;
    for (uint32_t i = 0; i < n; i++) /* a fleet's caches are never cleared */
        if (e[i].kind != VT_KV_CLEARED)
            v->told[v->n++] = (struct key_told){
                at, e[i].key, e[i].kind == VT_KV_STORED ? 1 : UINT32_MAX};
    return true;
}

bool key_view_had(const struct key_view *v, uint64_t key, uint32_t blocks)
{
    const uint32_t *net = keymap_find(&v->late, key);

    return blocks - (net != NULL ? *net : 0) != 0;
}

void key_view_clear(struct key_view *v)
{
    keymap_clear(&v->late);
    v->head = v->n = v->counted = 0;
}

void key_view_free(struct key_view *v)
{
    keymap_free(&v->late);
    free(v->told);
    *v = (struct key_view){.delay = v->delay};
}

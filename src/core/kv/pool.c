#include "core/kv/kv.h"

#include <assert.h>

int pool_init(struct pool *p, uint32_t n, uint32_t first, bool caching, bool log_events,
              struct vt_err *err)
{
    uint32_t size = 16;

    memset(p, 0, sizeof(*p));
    while (size < 2 * (uint64_t)n)
        size *= 2;
    p->n = n;
    p->mask = size - 1;
    p->block = vt_table_alloc(n, sizeof(*p->block));
    p->front = vt_table_alloc(n, sizeof(*p->front));
    p->queue = vt_table_alloc(size, sizeof(*p->queue));
    p->table = caching ? vt_table_alloc(size, sizeof(*p->table)) : NULL;
    if (!p->block || !p->front || !p->queue || (caching && !p->table)) {
        pool_free(p);
        return vt_nomem(err);
    }
    p->queue_mask = p->mask;
    p->fresh = first;
    p->n_free = n - first;
    p->caching = caching;
    p->log_events = log_events;
    return VT_OK;
}

int pool_tell_groups(struct pool *p, struct vt_err *err)
{
    p->group = vt_table_alloc(p->n, sizeof(*p->group));
    return p->group ? VT_OK : vt_nomem(err);
}

void pool_free(struct pool *p)
{
    size_t size = (size_t)p->mask + 1;

    vt_table_free(p->block, p->n, sizeof(*p->block));
    vt_table_free(p->front, p->n, sizeof(*p->front));
    vt_table_free(p->group, p->n, sizeof(*p->group));
    vt_table_free(p->queue, size, sizeof(*p->queue));
    vt_table_free(p->table, size, sizeof(*p->table));
    free(p->event);
    vt_table_free(p->alias_of, p->n, sizeof(*p->alias_of));
    free(p->alias);
    memset(p, 0, sizeof(*p));
}

/* ---- the free list ---------------------------------------------------- */

static void push_front(struct pool *p, uint32_t b)
{
    p->front[p->n_front++] = b;
    p->n_free++;
}

/* Moves the queue together. It has twice the room that all blocks need, so this comes
 * after at least as many pushes as there are blocks. */
static void close_gaps(struct pool *p)
{
    uint32_t to = p->head;

    for (uint32_t at = p->head; at != p->tail; at++) {
        uint32_t b = p->queue[at & p->queue_mask];

        if (b == 0)
            continue;
        p->queue[to & p->queue_mask] = b;
        p->block[b].at = to++;
    }
    p->tail = to;
}

static inline void push_back(struct pool *p, uint32_t b)
{
    if (p->tail - p->head > p->queue_mask)
        close_gaps(p);
    p->block[b].at = p->tail;
    p->queue[p->tail++ & p->queue_mask] = b;
    p->n_free++;
}

static void leave_queue(struct pool *p, uint32_t b)
{
    p->queue[p->block[b].at & p->queue_mask] = 0;
    p->n_free--;
}

/* ---- content ---------------------------------------------------------- */

/* The cell that holds the key, or the empty one where it would go. */
static uint32_t find_cell(const struct pool *p, uint64_t key)
{
    uint32_t low = (uint32_t)key, c = low & p->mask;

    for (; p->table[c].block != 0; c = (c + 1) & p->mask)
        if (p->table[c].low == low && p->block[p->table[c].block].key == key)
            break;
    return c;
}

/* Closes the gap so that no probe sequence is cut (no tombstones, so lookups stay
 * short however long a run is). */
static void erase_cell(struct pool *p, uint32_t gap)
{
    uint32_t c = gap;

    for (;;) {
        uint32_t want;

        c = (c + 1) & p->mask;
        if (p->table[c].block == 0)
            break;
        want = p->table[c].low & p->mask;
        if (((c - want) & p->mask) >= ((c - gap) & p->mask)) {
            p->table[gap] = p->table[c];
            gap = c;
        }
    }
    p->table[gap].block = 0;
}

static void log_event(struct pool *p, struct vt_kv_event e)
{
    if (vt_grow(&p->event, &p->cap_events, p->n_events + 1, sizeof(e), NULL) != VT_OK) {
        p->failed = true;
        return;
    }
    p->event[p->n_events++] = e;
}

static void log_removed(struct pool *p, uint32_t b)
{
    struct vt_kv_event e = {.kind = VT_KV_REMOVED, .group = p->group ? p->group[b] : 0};

    e.key = pool_key(p->block[b].key, e.group);
    log_event(p, e);
    for (uint32_t i = p->alias_of ? p->alias_of[b] : 0, next; i != 0; i = next) {
        struct pool_alias *a = &p->alias[i - 1];

        e.key = a->key;
        log_event(p, e);
        next = a->next;
        a->next = p->unused_alias;
        p->unused_alias = i;
    }
    if (p->alias_of)
        p->alias_of[b] = 0;
}

/* A place for one more; 0: no memory. */
static uint32_t take_alias(struct pool *p)
{
    uint32_t i = p->unused_alias;

    if (i != 0)
        p->unused_alias = p->alias[i - 1].next;
    else if (vt_grow(&p->alias, &p->cap_aliases, p->n_aliases + 1, sizeof(*p->alias),
                     NULL) == VT_OK)
        i = (uint32_t)++p->n_aliases;
    return i;
}

bool pool_add_alias(struct pool *p, uint32_t b, uint64_t key)
{
    uint32_t i;

    assert(p->log_events && p->block[b].key != 0);
    if (!p->alias_of)
        p->alias_of = vt_table_alloc(p->n, sizeof(*p->alias_of));
    for (i = p->alias_of ? p->alias_of[b] : 0; i != 0; i = p->alias[i - 1].next)
        if (p->alias[i - 1].key == key)
            return false;
    i = p->alias_of ? take_alias(p) : 0;
    if (i == 0) {
        p->failed = true;
        return false;
    }
    p->alias[i - 1] = (struct pool_alias){key, p->alias_of[b]};
    p->alias_of[b] = i;
    return true;
}

static inline void forget(struct pool *p, uint32_t b, bool tell)
{
    struct pool_block *x = &p->block[b];
    uint32_t cell = find_cell(p, x->key);
    bool found = p->table[cell].block != 0;

    assert(found || p->latest_only);
    if (tell && p->log_events && found)
        log_removed(p, b);
    if (!found) {
        /* another block with that key was taken before */
    } else if (p->latest_only || x->same_next == b) {
        erase_cell(p, cell);
    } else {
        p->block[x->same_prev].same_next = x->same_next;
        p->block[x->same_next].same_prev = x->same_prev;
        if (p->table[cell].block == b)
            p->table[cell].block = x->same_next;
    }
    x->key = 0;
}

uint32_t pool_lookup(const struct pool *p, uint64_t key, uint32_t group)
{
    return p->table[find_cell(p, pool_key(key, group))].block;
}

/* Apart from pool_register(), which is quicker without it. */
static __attribute__((noinline)) void forget_old(struct pool *p, uint32_t b)
{
    forget(p, b, !p->latest_only);
}

void pool_forget(struct pool *p, uint32_t b)
{
    if (p->block[b].key != 0)
        forget_old(p, b);
}

void pool_register(struct pool *p, uint32_t b, uint64_t key, uint32_t group)
{
    struct pool_block *x = &p->block[b];
    uint32_t cell, oldest;

    if (x->key != 0)
        forget_old(p, b);
    x->key = pool_key(key, group);
    if (p->group) {
        p->group[b] = (uint8_t)group;
        x->key += x->key == 0; /* which means no content */
    }
    cell = find_cell(p, x->key);
    oldest = p->table[cell].block;
    if (oldest == 0 || p->latest_only) {
        p->table[cell] = (struct pool_cell){(uint32_t)x->key, b};
        x->same_prev = x->same_next = b;
        return;
    }
    x->same_next = oldest;
    x->same_prev = p->block[oldest].same_prev;
    p->block[x->same_prev].same_next = b;
    p->block[oldest].same_prev = b;
}

void pool_tell(struct pool *p, struct vt_kv_event e)
{
    if (p->log_events)
        log_event(p, e);
}

void pool_stored(struct pool *p, struct vt_kv_event e)
{
    e.kind = VT_KV_STORED;
    pool_tell(p, e);
}

void pool_clear(struct pool *p)
{
    for (uint32_t b = 0; b < p->n; b++)
        p->block[b].key = 0;
    if (p->caching)
        memset(p->table, 0, ((size_t)p->mask + 1) * sizeof(*p->table));
    if (p->alias_of)
        memset(p->alias_of, 0, p->n * sizeof(*p->alias_of));
    p->n_aliases = p->unused_alias = 0;
    if (p->log_events)
        log_event(p, (struct vt_kv_event){.kind = VT_KV_CLEARED});
}

/* ---- holders ---------------------------------------------------------- */

/* GCC takes a function that does nothing else for one without effect, and drops its
 * calls: the empty statement is one. */
static inline void ask_for(const void *memory)
{
    __builtin_prefetch(memory, 1);
    __asm__ volatile("");
}

static void expect(const struct pool *p, uint64_t key)
{
    ask_for(&p->table[(uint32_t)key & p->mask]);
}

void pool_expect(const struct pool *p, uint64_t key, uint32_t group)
{
    expect(p, pool_key(key, group));
}

/* In a large pool every block is cold when its turn comes: its memory is asked for some
 * takes ahead, and what its content leads to a little later. */
static void warm_queue(const struct pool *p)
{
    enum { FAR = 24, NEAR = 12 };
    const struct pool_block *x = &p->block[p->queue[(p->head + NEAR) & p->queue_mask]];

    ask_for(&p->block[p->queue[(p->head + FAR) & p->queue_mask]]);
    if (p->caching)
        expect(p, x->key);
}

static uint32_t pop_queue(struct pool *p)
{
    uint32_t b;

    do
        b = p->queue[p->head++ & p->queue_mask];
    while (b == 0);
    warm_queue(p);
    return b;
}

uint32_t pool_take(struct pool *p)
{
    uint32_t b = p->n_front > 0    ? p->front[--p->n_front]
                 : p->fresh < p->n ? p->fresh++
                                   : pop_queue(p);

    assert(p->n_free > 0 && p->block[b].ref == 0);
    p->n_free--;
    if (p->block[b].key != 0)
        forget(p, b, true);
    p->block[b].ref = 1;
    return b;
}

void pool_touch(struct pool *p, uint32_t b)
{
    if (p->block[b].ref == 0)
        leave_queue(p, b);
    p->block[b].ref++;
}

void pool_give(struct pool *p, const uint32_t *blocks, uint32_t n, uint32_t n_keyed)
{
    for (uint32_t i = n; i-- > 0;) {
        struct pool_block *x = &p->block[blocks[i]];

        if (blocks[i] != 0 && --x->ref == 0 && x->key != 0)
            push_back(p, blocks[i]);
    }
    /* Ascending, so that the last block ends up in front of all. */
    for (uint32_t i = n_keyed; i < n; i++)
        if (blocks[i] != 0 && p->block[blocks[i]].ref == 0 &&
            p->block[blocks[i]].key == 0)
            push_front(p, blocks[i]);
}

void pool_give_back(struct pool *p, const uint32_t *blocks, uint32_t n)
{
    for (uint32_t i = n; i-- > 0;)
        if (blocks[i] != 0 && --p->block[blocks[i]].ref == 0)
            push_back(p, blocks[i]);
}

#include "core/pool.h"

/* List heads live behind the blocks: FRONT's list is taken before the unused range,
 * BACK's after it. */
#define FRONT(p) ((p)->n)
#define BACK(p)  ((p)->n + 1)

int pool_init(struct pool *p, uint32_t n, uint32_t first, bool caching, bool log_events,
              struct vt_err *err)
{
    uint32_t size = 16;

    memset(p, 0, sizeof(*p));
    while (size < 2 * (uint64_t)n)
        size *= 2;
    p->block = calloc((size_t)n + 2, sizeof(*p->block));
    p->table = caching ? calloc(size, sizeof(*p->table)) : NULL;
    if (p->block == NULL || (caching && p->table == NULL)) {
        pool_free(p);
        return vt_nomem(err);
    }
    p->mask = size - 1;
    p->n = n;
    p->fresh = first;
    p->n_free = n - first;
    p->caching = caching;
    p->log_events = log_events;
    p->block[FRONT(p)].prev = p->block[FRONT(p)].next = FRONT(p);
    p->block[BACK(p)].prev = p->block[BACK(p)].next = BACK(p);
    return VT_OK;
}

void pool_free(struct pool *p)
{
    free(p->block);
    free(p->table);
    free(p->event);
    memset(p, 0, sizeof(*p));
}

/* ---- the free list ---------------------------------------------------- */

static void list_remove(struct pool *p, uint32_t b)
{
    p->block[p->block[b].prev].next = p->block[b].next;
    p->block[p->block[b].next].prev = p->block[b].prev;
    p->n_free--;
}

static void list_insert(struct pool *p, uint32_t b, uint32_t prev, uint32_t next)
{
    p->block[b].prev = prev;
    p->block[b].next = next;
    p->block[prev].next = b;
    p->block[next].prev = b;
    p->n_free++;
}

static void push_front(struct pool *p, uint32_t b)
{
    list_insert(p, b, FRONT(p), p->block[FRONT(p)].next);
}

static void push_back(struct pool *p, uint32_t b)
{
    list_insert(p, b, p->block[BACK(p)].prev, BACK(p));
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

static void forget(struct pool *p, uint32_t b)
{
    struct pool_block *x = &p->block[b];
    uint32_t cell = find_cell(p, x->key);

    if (p->log_events)
        log_event(p, (struct vt_kv_event){.kind = VT_KV_REMOVED, .key = x->key});
    if (x->same_next == b) {
        erase_cell(p, cell);
    } else {
        p->block[x->same_prev].same_next = x->same_next;
        p->block[x->same_next].same_prev = x->same_prev;
        if (p->table[cell].block == b)
            p->table[cell].block = x->same_next;
    }
    x->key = 0;
}

uint32_t pool_lookup(const struct pool *p, uint64_t key)
{
    return p->table[find_cell(p, key)].block;
}

void pool_register(struct pool *p, uint32_t b, uint64_t key)
{
    uint32_t cell = find_cell(p, key), oldest = p->table[cell].block;
    struct pool_block *x = &p->block[b];

    x->key = key;
    if (oldest == 0) {
        p->table[cell] = (struct pool_cell){(uint32_t)key, b};
        x->same_prev = x->same_next = b;
        return;
    }
    x->same_next = oldest;
    x->same_prev = p->block[oldest].same_prev;
    p->block[x->same_prev].same_next = b;
    p->block[oldest].same_prev = b;
}

void pool_stored(struct pool *p, uint64_t tag, uint32_t index, uint64_t key, bool joins)
{
    if (p->log_events)
        log_event(p, (struct vt_kv_event){.kind = VT_KV_STORED,
                                          .tag = tag,
                                          .index = index,
                                          .key = key,
                                          .joins = joins});
}

void pool_clear(struct pool *p)
{
    for (uint32_t b = 0; b < p->n; b++)
        p->block[b].key = 0;
    if (p->caching)
        memset(p->table, 0, ((size_t)p->mask + 1) * sizeof(*p->table));
    if (p->log_events)
        log_event(p, (struct vt_kv_event){.kind = VT_KV_CLEARED});
}

/* ---- holders ---------------------------------------------------------- */

void pool_expect(const struct pool *p, uint64_t key)
{
    __builtin_prefetch(&p->table[(uint32_t)key & p->mask], 1);
}

/* In a large pool every block is cold when its turn comes. Its successor's memory is
 * asked for now, so that the next take finds it there. */
static void warm_next(const struct pool *p, uint32_t b)
{
    const struct pool_block *x = &p->block[b];

    __builtin_prefetch(&p->block[x->next], 1);
    if (x->key != 0)
        pool_expect(p, x->key);
}

uint32_t pool_take(struct pool *p)
{
    uint32_t b = p->block[FRONT(p)].next;

    if (b != FRONT(p)) {
        list_remove(p, b);
    } else if (p->fresh < p->n) {
        b = p->fresh++;
        p->n_free--;
    } else {
        b = p->block[BACK(p)].next;
        list_remove(p, b);
        warm_next(p, p->block[BACK(p)].next);
    }
    if (p->block[b].key != 0)
        forget(p, b);
    p->block[b].ref = 1;
    return b;
}

void pool_touch(struct pool *p, uint32_t b)
{
    if (p->block[b].ref == 0)
        list_remove(p, b);
    p->block[b].ref++;
}

void pool_give(struct pool *p, const uint32_t *blocks, uint32_t n, uint32_t n_keyed)
{
    for (uint32_t i = n; i-- > 0;) {
        struct pool_block *x = &p->block[blocks[i]];

        if (--x->ref == 0 && x->key != 0)
            push_back(p, blocks[i]);
    }
    /* Ascending, so that the last block ends up in front of all. */
    for (uint32_t i = n_keyed; i < n; i++)
        if (p->block[blocks[i]].ref == 0 && p->block[blocks[i]].key == 0)
            push_front(p, blocks[i]);
}

void pool_give_back(struct pool *p, const uint32_t *blocks, uint32_t n)
{
    for (uint32_t i = n; i-- > 0;)
        if (--p->block[blocks[i]].ref == 0)
            push_back(p, blocks[i]);
}

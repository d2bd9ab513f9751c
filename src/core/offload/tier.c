#include "core/offload/tier.h"

#include <assert.h>

/* ---- life ------------------------------------------------------------- */

int tier_init(struct tier *t, const struct vt_offload *c, struct vt_err *err)
{
    memset(t, 0, sizeof(*t));
    t->cap = c->num_cpu_blocks;
    t->arc = c->eviction_policy == VT_EVICT_ARC;
    t->freed = vt_table_alloc(t->cap, sizeof(*t->freed));
    if (!t->freed || vt_grow(&t->node, &t->cap_nodes, 16, sizeof(*t->node), NULL)) {
        tier_free(t);
        return vt_nomem(err);
    }
    t->n_nodes = 1; /* 0 is none */
    return VT_OK;
}

void tier_free(struct tier *t)
{
    vt_table_free(t->freed, t->cap, sizeof(*t->freed));
    free(t->node);
    free(t->victim);
    vt_map_free(&t->by_key);
    memset(t, 0, sizeof(*t));
}

/* ---- lists ------------------------------------------------------------ */

static void leave(struct tier *t, struct tier_node *x)
{
    struct tier_ends *l = &t->ends[x->list];

    if (x->prev != 0)
        t->node[x->prev].next = x->next;
    else
        l->head = x->next;
    if (x->next != 0)
        t->node[x->next].prev = x->prev;
    else
        l->tail = x->prev;
    l->n--;
    x->list = IN_NONE;
}

static void append(struct tier *t, struct tier_node *x, enum tier_list list)
{
    struct tier_ends *l = &t->ends[list];
    uint32_t i = tier_index(t, x);

    x->list = (uint8_t)list;
    x->prev = l->tail;
    x->next = 0;
    if (l->tail != 0)
        t->node[l->tail].next = i;
    else
        l->head = i;
    l->tail = i;
    l->n++;
}

static void move(struct tier *t, struct tier_node *x, enum tier_list list)
{
    leave(t, x);
    append(t, x, list);
}

static struct tier_node *find(const struct tier *t, uint64_t key)
{
    const uint64_t *place = vt_map_get(&t->by_key, key);

    return place ? &t->node[*place] : NULL;
}

static bool is_ghost(const struct tier_node *x)
{
    return x->list == GHOST_ONCE || x->list == GHOST_OFTEN;
}

static void drop(struct tier *t, struct tier_node *x)
{
    vt_map_drop(&t->by_key, vt_map_get(&t->by_key, x->key));
    x->next = t->unused;
    t->unused = tier_index(t, x);
}

struct tier_node *tier_get(const struct tier *t, uint64_t key)
{
    struct tier_node *x = find(t, key);

    return x && !is_ghost(x) ? x : NULL;
}

/* ---- what is worth keeping -------------------------------------------- */

/* What was given up is asked for again: its list should have been longer. */
static void meet_ghost(struct tier *t, struct tier_node *x)
{
    bool once = x->list == GHOST_ONCE;
    double mine = t->ends[once ? GHOST_ONCE : GHOST_OFTEN].n;
    double other = t->ends[once ? GHOST_OFTEN : GHOST_ONCE].n;
    double by = other / mine > 1.0 ? other / mine : 1.0;

    t->target += once ? by : -by;
    if (t->target > t->cap)
        t->target = t->cap;
    if (t->target < 0)
        t->target = 0;
    move(t, x, (enum tier_list)x->list);
}

void tier_touch(struct tier *t, uint64_t key)
{
    struct tier_node *x = find(t, key);

    if (!x)
        return;
    if (is_ghost(x))
        meet_ghost(t, x);
    else if (!t->arc && x->ref == 0)
        move(t, x, IN_ONCE);
    else if (t->arc) /* what is being written has not been asked for again */
        move(t, x, x->list == IN_ONCE && x->ref < 0 ? IN_ONCE : IN_OFTEN);
}

void tier_miss(struct tier *t, uint64_t key)
{
    struct tier_node *x = t->arc ? find(t, key) : NULL;

    if (x && is_ghost(x))
        meet_ghost(t, x);
}

void tier_done(struct tier *t, uint64_t key, bool stored, bool found)
{
    struct tier_node *x = tier_get(t, key);

    if (!x)
        return;
    if (!t->arc)
        move(t, x, IN_ONCE);
    else if (stored && !found)
        move(t, x, (enum tier_list)x->list);
    else if (found)
        move(t, x, IN_OFTEN);
}

/* ---- giving up -------------------------------------------------------- */

void tier_protect_none(struct tier *t)
{
    t->call++;
}

void tier_protect(struct tier *t, uint64_t key)
{
    struct tier_node *x = find(t, key);

    if (x)
        x->offered = t->call;
}

/* The first from `at` on that could go; 0: none. */
static uint32_t next_victim(const struct tier *t, uint32_t at)
{
    while (at != 0 && (t->node[at].ref != 0 || t->node[at].offered == t->call))
        at = t->node[at].next;
    return at;
}

static uint32_t choose(const struct tier *t, uint32_t once, uint32_t often,
                       uint32_t n_once)
{
    bool long_enough = !t->arc || n_once >= (uint32_t)t->target;

    if (long_enough && once != 0)
        return once;
    if (often != 0 || !t->by_request)
        return often;
    return long_enough ? 0 : once;
}

static void trim_ghosts(struct tier *t, enum tier_list list)
{
    while (t->ends[list].n > t->cap) {
        struct tier_node *x = &t->node[t->ends[list].head];

        leave(t, x);
        drop(t, x);
    }
}

static void give_up(struct tier *t, struct tier_node *x)
{
    enum tier_list ghost = x->list == IN_ONCE ? GHOST_ONCE : GHOST_OFTEN;

    t->freed[t->n_freed++] = x->block;
    t->n_idle--;
    leave(t, x);
    if (t->arc)
        append(t, x, ghost);
    else
        drop(t, x);
}

bool tier_make_room(struct tier *t, uint32_t n, uint32_t *n_out, bool *tried)
{
    uint32_t room = t->n_freed + t->cap - t->fresh, more;
    uint32_t once = t->ends[IN_ONCE].head, often = t->ends[IN_OFTEN].head;
    uint32_t n_once = t->ends[IN_ONCE].n;

    *n_out = 0;
    *tried = false;
    if (n <= room)
        return true;
    more = n - room;
    if (more > t->n_idle)
        return false;
    *tried = true;
    if (vt_grow(&t->victim, &t->cap_victims, more, sizeof(*t->victim), NULL)) {
        t->failed = true;
        return false;
    }
    for (uint32_t i = 0; i < more; i++) {
        uint32_t x;

        once = next_victim(t, once);
        often = next_victim(t, often);
        x = choose(t, once, often, n_once);
        if (x == 0)
            return false;
        t->victim[i] = x;
        if (x == once) {
            once = t->node[x].next;
            n_once--;
        } else {
            often = t->node[x].next;
        }
    }
    for (uint32_t i = 0; i < more; i++)
        give_up(t, &t->node[t->victim[i]]);
    trim_ghosts(t, GHOST_ONCE);
    trim_ghosts(t, GHOST_OFTEN);
    *n_out = more;
    return true;
}

/* ---- taking and using ------------------------------------------------- */

static struct tier_node *take_node(struct tier *t, uint64_t key)
{
    uint32_t i = t->unused;
    uint64_t *place;

    if (i != 0)
        t->unused = t->node[i].next;
    else if (vt_grow(&t->node, &t->cap_nodes, t->n_nodes + 1, sizeof(*t->node), NULL) ==
             VT_OK)
        i = (uint32_t)t->n_nodes++;
    place = i != 0 ? vt_map_put(&t->by_key, key) : NULL;
    if (!place) {
        t->failed = true;
        return NULL;
    }
    *place = i;
    return &t->node[i];
}

struct tier_node *tier_add(struct tier *t, uint64_t key)
{
    struct tier_node *x = find(t, key);

    assert(!x || is_ghost(x));
    if (x)
        leave(t, x);
    else
        x = take_node(t, key);
    if (!x)
        return NULL;
    *x = (struct tier_node){.key = key, .ref = -1};
    x->block = t->fresh < t->cap ? t->fresh++ : t->freed[--t->n_freed];
    append(t, x, IN_ONCE);
    t->n_written++;
    return x;
}

static void rest(struct tier *t, struct tier_node *x)
{
    t->n_idle++;
    if (!t->arc && !t->by_request)
        move(t, x, IN_ONCE);
}

void tier_written(struct tier *t, struct tier_node *x)
{
    assert(x->ref < 0);
    x->ref = 0;
    t->n_written--;
    rest(t, x);
}

void tier_use(struct tier *t, struct tier_node *x)
{
    assert(x->ref >= 0);
    if (x->ref++ == 0)
        t->n_idle--;
}

void tier_unuse(struct tier *t, struct tier_node *x)
{
    assert(x->ref > 0);
    if (--x->ref == 0)
        rest(t, x);
}

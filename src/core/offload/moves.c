/* moves.c - what a step's plan moves between the two tiers. */
#include "core/offload/parts.h"

/* ---- loads ------------------------------------------------------------ */

/* The first block that holds nothing yet. */
static uint32_t first_empty(const struct offload *o, const struct off_request *r,
                            uint32_t g, const struct off_table *t, uint32_t n)
{
    uint32_t bs = o->kind[g].is.block_size;
    uint32_t i = o->rules.offload_windows ? (r->local + bs - 1) / bs : 0;

    while (i < n && (t->block[i] == 0 || o->pool->block[t->block[i]].key != 0))
        i++;
    return i < n ? i : n;
}

static void note(struct off_part *p, uint32_t i, bool found)
{
    p->fate[i] |= SEEN;
    if (found && !(p->fate[i] & STORED))
        p->fate[i] |= FOUND;
}

static bool add_node(struct offload *o, struct job *j, const struct tier_node *x)
{
    uint32_t n = j->n_nodes;

    if (!off_room(o, &j->node, &j->cap_nodes, n + 1, sizeof(*j->node)) ||
        !off_room(o, &j->cpu, &j->cap_cpu, n + 1, sizeof(*j->cpu)))
        return false;
    j->node[n] = tier_index(&o->tier, x);
    j->cpu[n] = x->block;
    j->n_nodes++;
    return true;
}

static bool add_block(struct offload *o, struct job *j, uint32_t block)
{
    if (!off_room(o, &j->gpu, &j->cap_gpu, (size_t)j->is.n_gpu + 1, sizeof(*j->gpu)))
        return false;
    j->gpu[j->is.n_gpu++] = block;
    return true;
}

static bool load_group(struct offload *o, struct off_request *r, struct job *j,
                       uint32_t g, const struct off_table *t, uint32_t tokens)
{
    const struct off_kind *k = &o->kind[g];
    struct off_part *p = &r->part[g];
    uint32_t bs = k->is.block_size, n = (tokens + bs - 1) / bs;
    uint32_t end = (tokens + k->chunk - 1) / k->chunk;
    uint32_t first = first_empty(o, r, g, t, n);

    for (uint32_t i = 0; i < t->n; i++)
        off_took(o, t->block[i]);
    for (uint32_t i = first / o->c.blocks_per_chunk;
         first < n && i < end && i < p->n_keys; i++) {
        struct tier_node *x = tier_get(&o->tier, p->key[i]);

        if (!x) /* windows need not have all */
            continue;
        tier_use(&o->tier, x);
        x->loading = o->caching;
        note(p, i, true);
        if (!add_node(o, j, x))
            return false;
    }
    for (uint32_t i = first; i < n; i++)
        if (!add_block(o, j, t->block[i]))
            return false;
    j->per_group[g] = n - first;
    j->first[g] = first;
    p->next = end;
    return true;
}

void offload_load(struct offload *o, struct off_request *r,
                  const struct off_table *table, uint32_t tokens)
{
    struct job *j = off_job(o, r, false);

    if (!j)
        return;
    for (uint32_t g = 0; g < o->n_groups; g++)
        if (!load_group(o, r, j, g, &table[g], r->local + tokens))
            return;
    if (off_room(o, &o->load, &o->cap_load, o->n_load + 1, sizeof(*o->load)))
        o->load[o->n_load++] = (uint32_t)(j - o->job);
}

/* ---- a plan ----------------------------------------------------------- */

void offload_told(struct offload *o, struct off_request *r, const struct off_view *v,
                  const struct off_table *table, bool again)
{
    off_make_keys(o, r, v);
    r->prompt = v->prompt;
    for (uint32_t g = 0; g < o->n_groups; g++) {
        struct off_part *p = &r->part[g];

        if (again)
            p->n_blocks = 0;
        p->n_told = p->n_blocks;
        if (table[g].n == p->n_blocks)
            continue;
        if (!off_room(o, &p->block, &p->cap_blocks, table[g].n, sizeof(*p->block)))
            return;
        for (; p->n_blocks < table[g].n; p->n_blocks++) {
            p->block[p->n_blocks] = table[g].block[p->n_blocks];
            off_took(o, p->block[p->n_blocks]);
        }
    }
}

/* Blocks behind a window may be somebody else's by now. Those that no store asks for
 * are not looked at. */
static void drop_taken(struct offload *o, struct off_request *r)
{
    for (uint32_t i = o->n_groups - o->n_windows; i < o->n_groups; i++) {
        struct off_part *p = &r->part[o->order[i]];
        uint32_t k = p->next * o->c.blocks_per_chunk, end = p->n_told;
        uint32_t most = r->prompt / o->kind[o->order[i]].is.block_size;

        if (!o->c.offload_generated && end > most)
            end = most;
        for (; k < end; k++)
            if (off_was_taken(o, p->block[k]))
                p->block[k] = 0;
        p->n_told = p->n_blocks;
    }
}

void offload_look(struct offload *o)
{
    if (o->n_windows > 0 && o->n_taken > 0)
        for (struct off_request *r = o->known; r; r = r->next)
            drop_taken(o, r);
    for (size_t i = 0; i < o->n_taken; i++)
        for (uint32_t w = o->watch_of[o->taken[i]]; w != 0; w = o->watch[w].next)
            off_flush(o, &o->job[o->watch[w].job]);
}

/* ---- stores ----------------------------------------------------------- */

/* Tokens whose blocks may be stored. */
static uint32_t storable(const struct offload *o, const struct off_request *r,
                         const struct off_view *v)
{
    uint32_t n = v->computed;

    if (r->over && !r->aborted)
        /* The last token was sampled and never computed, which 0.26 does not see. */
        n = !o->rules.offload_commits     ? v->n_tokens
            : v->n_tokens - 1 > v->prompt ? v->n_tokens - 1
                                          : v->prompt;
    else if (r->over && !o->rules.offload_hears_ends && v->computed >= v->prompt)
        n = v->n_tokens;
    n = n < v->n_tokens ? n : v->n_tokens;
    return !o->c.offload_generated && n > v->prompt ? v->prompt : n;
}

static uint32_t whole_chunks(const struct offload *o, const struct off_request *r,
                             uint32_t g, uint32_t tokens)
{
    const struct off_part *p = &r->part[g];
    uint32_t n = tokens / o->kind[g].chunk, held = p->n_blocks / o->c.blocks_per_chunk;

    n = n < held ? n : held;
    return n < p->n_keys ? n : p->n_keys;
}

/* Whether a later request could use chunk i of a group with a window. */
static bool is_wanted(const struct offload *o, const struct off_view *v, uint32_t g,
                      uint32_t i)
{
    const struct off_kind *k = &o->kind[g];
    uint32_t bs = k->is.block_size, bpc = o->c.blocks_per_chunk, need, per;
    bool dense = o->retention == VT_RETENTION_DENSE;

    if (!o->rules.offload_windows)
        return k->segment == 0 || i % k->segment >= k->segment - k->window;
    if (k->is.type != VT_ATTENTION_SLIDING || o->aligned == 0 || o->aligned % bs != 0)
        return true;
    need = (k->is.window - 1 + bs - 1) / bs;
    per = (dense ? o->aligned : o->retention) / bs;
    if (per > 0 && need >= per)
        return true;
    for (uint32_t b = i * bpc; b < (i + 1) * bpc; b++) {
        const uint32_t at[] = {v->prompt - 1, v->junction};

        if (per > 0 && b % per >= per - need)
            return true;
        for (uint32_t e = 0; e < VT_COUNT(at) && !dense; e++) {
            uint32_t end = at[e] / o->aligned * o->aligned / bs;

            if (b < end && b + need >= end)
                return true;
        }
    }
    return false;
}

/* Collects what is complete now; keys go to o->offer, their groups and places to
 * o->offer_at. */
static uint32_t collect(struct offload *o, const struct off_request *r,
                        const struct off_view *v, uint32_t tokens)
{
    uint32_t bpc = o->c.blocks_per_chunk, n = 0;

    for (uint32_t g = 0; g < o->n_groups; g++) {
        const struct off_part *p = &r->part[g];
        uint32_t end = whole_chunks(o, r, g, tokens);

        for (uint32_t i = p->next; i < end; i++) {
            if (p->block[i * bpc + bpc - 1] == 0 || !is_wanted(o, v, g, i))
                continue;
            if (!off_room(o, &o->offer, &o->cap_offers, n + 1, sizeof(*o->offer)) ||
                !off_room(o, &o->offer_at, &o->cap_offers_at, 2 * ((size_t)n + 1),
                          sizeof(*o->offer_at)))
                return 0;
            o->offer[n] = p->key[i];
            o->offer_at[2 * n] = g;
            o->offer_at[2 * n + 1] = i;
            n++;
        }
    }
    return n;
}

static void keep_offer(struct offload *o, uint32_t *n, uint32_t i)
{
    o->offer[*n] = o->offer[i];
    o->offer_at[2 * *n] = o->offer_at[2 * i];
    o->offer_at[2 * *n + 1] = o->offer_at[2 * i + 1];
    (*n)++;
}

/* Whether content was asked for often enough; 0.26 counts looks, later ones offers. */
static bool is_popular(const struct offload *o, uint64_t key)
{
    return o->tracker.most == 0 ||
           tracker_count(&o->tracker, key) >= o->c.store_threshold;
}

/* A miss is told once for each request, tail first. */
static void tell_misses(struct offload *o, struct off_request *r, uint32_t n)
{
    for (uint32_t i = n; i-- > 0;) {
        uint8_t *fate = &r->part[o->offer_at[2 * i]].fate[o->offer_at[2 * i + 1]];

        if (!(*fate & MISSED))
            tier_miss(&o->tier, o->offer[i]);
        *fate |= MISSED;
    }
}

/* What of the n offers is to be stored: it is not there, and popular. All that is
 * offered stays; before offers were counted, the unpopular were not even that. */
static uint32_t sift(struct offload *o, struct off_request *r, uint32_t n)
{
    bool counts = o->rules.offload_counts_offers;
    uint32_t kept = 0;

    if (o->tracker.most > 0 && counts)
        tracker_offer(&o->tracker, o->offer, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct tier_node *x = tier_get(&o->tier, o->offer[i]);
        struct off_part *p = &r->part[o->offer_at[2 * i]];
        bool popular = is_popular(o, o->offer[i]);

        o->skipped += !popular && (!counts || !x);
        if (!popular && !counts)
            continue;
        tier_protect(&o->tier, o->offer[i]);
        if (x && x->ref >= 0)
            note(p, o->offer_at[2 * i + 1], true);
        if (x || !popular)
            continue;
        note(p, o->offer_at[2 * i + 1], false);
        keep_offer(o, &kept, i);
    }
    if (o->rules.offload_by_request)
        tell_misses(o, r, kept);
    return kept;
}

/* In one message for each group, as they come. */
static void tell_removed(struct offload *o, uint32_t n)
{
    bool told[VT_KV_GROUPS] = {false};

    for (uint32_t k = 0; k < n && o->log_events; k++) {
        uint32_t g = o->tier.node[o->tier.victim[k]].group;

        for (uint32_t i = k; i < n && !told[g]; i++) {
            const struct tier_node *x = &o->tier.node[o->tier.victim[i]];

            if (x->group != g)
                continue;
            if (!off_room(o, &o->event, &o->cap_events, o->n_events + 1,
                          sizeof(*o->event)))
                return;
            o->event[o->n_events++] = (struct off_event){.key = x->key,
                                                         .tag = x->tag,
                                                         .index = x->index,
                                                         .group = x->group,
                                                         .removed = true,
                                                         .joins = i > k};
        }
        told[g] = true;
    }
}

static bool make_room(struct offload *o, uint32_t n)
{
    uint32_t n_out;
    bool tried, ok = tier_make_room(&o->tier, n, &n_out, &tried);

    if (off_room(o, &o->asked.size, &o->asked.cap, o->asked.n + 1,
                 sizeof(*o->asked.size)))
        o->asked.size[o->asked.n++] = n;
    o->no_room += !ok && tried;
    if (!ok ||
        !off_room(o, &o->evict, &o->cap_evict, o->n_evict + n_out, sizeof(*o->evict)))
        return false;
    for (uint32_t i = 0; i < n_out; i++)
        o->evict[o->n_evict++] = o->tier.node[o->tier.victim[i]].block;
    tell_removed(o, n_out);
    return true;
}

static void pass_chunks(struct offload *o, struct off_request *r, uint32_t tokens)
{
    for (uint32_t g = 0; g < o->n_groups; g++) {
        uint32_t end = whole_chunks(o, r, g, tokens);

        if (r->part[g].next < end)
            r->part[g].next = end;
    }
}

static bool store_chunk(struct offload *o, struct off_request *r, struct job *j,
                        uint32_t g, uint32_t i)
{
    struct off_part *p = &r->part[g];
    uint32_t bpc = o->c.blocks_per_chunk;
    struct tier_node *x = tier_add(&o->tier, p->key[i]);

    if (!x || !add_node(o, j, x))
        return false;
    x->tag = r->tag;
    x->index = i;
    x->group = (uint8_t)g;
    p->fate[i] |= STORED;
    if (o->log_events && o->c.self_describing_kv_events && o->kind[g].window == 0 &&
        !vt_map_put(&o->described, p->key[i]))
        o->failed = true;
    for (uint32_t b = i * bpc; b < (i + 1) * bpc; b++) {
        if (p->block[b] == 0)
            continue;
        if (j->per_group[g]++ == 0)
            j->first[g] = b;
        if (!add_block(o, j, p->block[b]))
            return false;
    }
    return true;
}

static void make_store(struct offload *o, struct off_request *r, uint32_t n)
{
    struct job *j = off_job(o, r, true);

    if (!j)
        return;
    memset(j->per_group, 0, sizeof(j->per_group));
    memset(j->first, 0, sizeof(j->first));
    for (uint32_t i = 0; i < n; i++)
        if (!store_chunk(o, r, j, o->offer_at[2 * i], o->offer_at[2 * i + 1]))
            return;
    off_watch(o, j, true);
    if (r->over) { /* nobody holds its blocks any more */
        off_watch(o, j, false);
        j->watched = true;
        for (uint32_t i = 0, g = 0, left = j->per_group[0]; i < j->is.n_gpu; i++) {
            while (left == 0)
                left = j->per_group[++g];
            if (o->kind[g].window == 0 && off_was_taken(o, j->gpu[i]))
                off_flush(o, j);
            left--;
        }
    }
    if (off_room(o, &o->store, &o->cap_store, o->n_store + 1, sizeof(*o->store)))
        o->store[o->n_store++] = (uint32_t)(j - o->job);
}

void offload_store(struct offload *o, struct off_request *r, const struct off_view *v)
{
    uint32_t tokens = storable(o, r, v), n = collect(o, r, v, tokens);

    tier_protect_none(&o->tier);
    if (n > 0) {
        n = sift(o, r, n);
        if (n > 0 && !make_room(o, n))
            return; /* tried again with its next step */
    }
    if (n > 0) {
        make_store(o, r, n);
        off_touch(o, r);
    }
    pass_chunks(o, r, tokens);
}

/* ---- what the plan says ----------------------------------------------- */

/* Chunks of a request that has ended, by place, the last first: they are as new as
 * that. */
static void settle_order(struct offload *o, struct off_request *r)
{
    uint32_t at[VT_KV_GROUPS];

    for (uint32_t g = 0; g < o->n_groups; g++)
        at[g] = r->part[g].n_keys;
    for (;;) {
        uint32_t last = o->n_groups;

        for (uint32_t g = 0; g < o->n_groups; g++)
            if (at[g] > 0 &&
                (last == o->n_groups || (uint64_t)at[g] * o->kind[g].chunk >=
                                            (uint64_t)at[last] * o->kind[last].chunk))
                last = g;
        if (last == o->n_groups)
            return;
        at[last]--;
        if (r->part[last].fate[at[last]] & SEEN) {
            uint8_t fate = r->part[last].fate[at[last]];

            tier_done(&o->tier, r->part[last].key[at[last]], fate & STORED,
                      fate & FOUND);
        }
    }
}

static void end_requests(struct offload *o)
{
    for (size_t i = 0; i < o->n_ended; i++) {
        struct off_request *r = o->ended[i];

        if (o->rules.offload_by_request)
            settle_order(o, r);
        r->told = true;
        if (r->first_job == 0)
            off_forget(o, r);
    }
    o->n_ended = 0;
}

static void put_out(struct offload *o, const uint32_t *jobs, size_t n, size_t at)
{
    for (size_t i = 0; i < n; i++) {
        struct job *j = &o->job[jobs[i]];

        j->is.gpu = j->gpu;
        j->is.cpu = j->cpu;
        j->is.n_cpu = j->n_nodes;
        j->is.per_group = j->per_group;
        j->is.first = j->first;
        o->out[at + i] = j->is;
    }
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

const struct vt_kv_moves *offload_plan(struct offload *o)
{
    struct vt_kv_moves *m = &o->moves;

    for (size_t i = 0; i < o->n_ended; i++)
        offload_store(o, o->ended[i], &o->ended[i]->last);
    end_requests(o);
    if (!off_room(o, &o->out, &o->cap_out, o->n_load + o->n_store, sizeof(*o->out)))
        return NULL;
    put_out(o, o->load, o->n_load, 0);
    put_out(o, o->store, o->n_store, o->n_load);
    if (o->n_flush > 1)
        qsort(o->flush, o->n_flush, sizeof(*o->flush), by_number);
    *m = (struct vt_kv_moves){
        .load = o->out,
        .n_load = (uint32_t)o->n_load,
        .store = o->n_store > 0 ? o->out + o->n_load : NULL,
        .n_store = (uint32_t)o->n_store,
        .flush = o->flush,
        .n_flush = (uint32_t)o->n_flush,
        .evicted = o->evict,
        .n_evicted = (uint32_t)o->n_evict,
        .no_room = o->no_room,
    };
    o->n_load = o->n_store = o->n_flush = o->n_evict = o->n_taken = 0;
    o->no_room = 0;
    o->plan++;
    return offload_failed(o) ? NULL : m;
}

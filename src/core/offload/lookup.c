/* lookup.c - which of a request's chunks the host's memory holds. */
#include "core/offload/parts.h"

void off_make_keys(struct offload *o, struct off_request *r, const struct off_view *v)
{
    for (uint32_t g = 0; g < o->n_groups; g++) {
        const struct off_kind *k = &o->kind[g];
        struct off_part *p = &r->part[g];
        uint32_t n = v->n_tokens / k->chunk;

        if (n <= p->n_keys)
            continue;
        if (!off_room(o, &p->key, &p->cap_keys, n, sizeof(*p->key)) ||
            !off_room(o, &p->fate, &p->cap_fates, n, sizeof(*p->fate)))
            return;
        for (uint32_t i = p->n_keys; i < n; i++) {
            uint64_t key;

            if (!content_key(v->content, (i + 1) * k->units - 1, o->unit, &key)) {
                o->failed = true;
                return;
            }
            p->key[i] = pool_key(key, g);
            p->fate[i] = 0;
        }
        p->n_keys = n;
    }
}

enum found { MISS, HIT, BEING_WRITTEN };

static enum found look(struct offload *o, uint64_t key)
{
    const struct tier_node *x = tier_get(&o->tier, key);

    if (o->tracker.most > 0 && !o->rules.offload_counts_offers)
        tracker_look(&o->tracker, key);
    return !x ? MISS : x->ref < 0 ? BEING_WRITTEN : HIT;
}

#define WAIT UINT32_MAX

/* Leading ones of the n keys. */
static uint32_t look_from_left(struct offload *o, const uint64_t *key, uint32_t n)
{
    bool wait = false;
    uint32_t i = 0;

    for (; i < n; i++) {
        enum found f = look(o, key[i]);

        if (f == MISS)
            break;
        wait |= f == BEING_WRITTEN;
    }
    return wait ? WAIT : i;
}

/* Up to where keys are there, with as many before it as a window spans: `first` at the
 * end of all, `window` elsewhere; or all from the beginning. */
static uint32_t look_from_right(struct offload *o, const uint64_t *key, uint32_t n,
                                uint32_t window, uint32_t first)
{
    uint32_t run = 0, need = first;
    bool wait = false;

    for (uint32_t i = n; i-- > 0;) {
        enum found f = look(o, key[i]);

        if (f == MISS) {
            run = 0;
            need = window;
            wait &= !o->rules.offload_windows;
        } else {
            run++;
            wait |= f == BEING_WRITTEN;
        }
        if (run == need)
            return wait ? WAIT : i + need;
    }
    return wait ? WAIT : run;
}

/* Chunks that the window needs when n tokens are there: a last one that is not full
 * adds to it. */
static uint32_t window_at(const struct offload *o, const struct off_kind *k, uint32_t n)
{
    uint32_t rest = (k->chunk - n % k->chunk) % k->chunk, more;

    if (k->is.type != VT_ATTENTION_SLIDING || !o->rules.offload_windows)
        return k->window;
    more = (k->is.window - 1 + rest + k->chunk - 1) / k->chunk;
    return more > k->window ? more : k->window;
}

static uint32_t up(uint32_t n, uint32_t by)
{
    return (n + by - 1) / by;
}

struct search {
    struct offload *o;
    const struct off_request *r;
    uint32_t local, top, hit;
    bool wait;
};

/* Shortens what groups before it have found; false: nothing is left. */
static bool look_at_group(struct search *x, uint32_t g)
{
    const struct off_kind *k = &x->o->kind[g];
    const struct off_part *p = &x->r->part[g];
    uint32_t start = x->local / k->chunk, end, found;

    if (x->top > p->n_keys * k->chunk)
        x->top = p->n_keys * k->chunk;
    if (x->top < x->local + k->chunk)
        return false;
    end = up(x->top, k->chunk);
    end = end < p->n_keys ? end : p->n_keys;
    if (k->window == 0) {
        found = look_from_left(x->o, p->key + start, end - start);
    } else {
        uint32_t n = x->top < end * k->chunk ? x->top : end * k->chunk;

        found = look_from_right(x->o, p->key + start, end - start, k->window,
                                window_at(x->o, k, n));
    }
    if (found == 0)
        return false;
    if (found == WAIT)
        x->wait = true;
    else if (x->top > k->chunk * (start + found))
        x->top = k->chunk * (start + found);
    return x->top >= x->local + k->chunk;
}

/* Until no group shortens what the others found. */
static bool look_at_groups(struct search *x)
{
    const struct offload *o = x->o;
    uint32_t from = 0, wholes = o->n_groups - o->n_windows;
    bool again = true;

    while (again) {
        bool window_seen = false;
        uint32_t first = from;

        again = false;
        for (uint32_t i = first; i < o->n_groups; i++) {
            uint32_t hit;

            if (!look_at_group(x, o->order[i]))
                return false;
            hit = x->top - x->local;
            if (hit < x->hit && x->wait) {
                x->wait = false;
                again = true;
                from = 0;
            } else if (hit < x->hit && window_seen && !again) {
                again = true;
                from = wholes;
            }
            window_seen |= i >= wholes;
            x->hit = hit;
        }
    }
    return true;
}

/* Whether a part of it is on its way to the GPU for another request, where it could be
 * shared. */
static bool is_loading(const struct search *x)
{
    const struct offload *o = x->o;

    for (uint32_t g = 0; g < o->n_groups && o->caching; g++) {
        const struct off_kind *k = &o->kind[g];
        const struct off_part *p = &x->r->part[g];
        uint32_t end = up(x->local + x->hit, k->chunk), i = x->local / k->chunk;
        uint32_t window = window_at(o, k, x->local + x->hit);

        end = end < p->n_keys ? end : p->n_keys;
        if (k->window > 0 && end > window + i)
            i = end - window;
        for (; i < end; i++) {
            const struct tier_node *n = tier_get(&o->tier, p->key[i]);

            if (n && n->loading)
                return true;
        }
    }
    return false;
}

void off_touch(struct offload *o, const struct off_request *r)
{
    if (o->rules.offload_by_request)
        return;
    for (uint32_t g = 0; g < o->n_groups; g++) {
        const struct off_part *p = &r->part[g];
        uint32_t w = o->kind[g].window;
        uint32_t first = w > 0 && p->n_hit > w ? p->n_hit - w : 0;

        for (uint32_t i = p->n_keys; i > first; i--)
            tier_touch(&o->tier, p->key[i - 1]);
    }
}

uint32_t offload_match(struct offload *o, struct off_request *r,
                       const struct off_view *v, uint32_t local, bool *wait)
{
    struct search x = {.o = o, .r = r, .local = local};

    *wait = false;
    for (uint32_t g = 0; g < o->n_groups; g++)
        r->part[g].n_blocks = r->part[g].n_told = 0;
    if (r->first_job != 0) { /* of an earlier life */
        *wait = true;
        return 0;
    }
    off_make_keys(o, r, v);
    r->local = local;
    x.top = v->n_tokens - (o->n_windows > 0);
    o->lookups += !v->skip_cache;
    if (v->skip_cache || !look_at_groups(&x)) {
        x.hit = 0;
    } else if (x.wait || is_loading(&x)) {
        *wait = true;
        x.hit = 0;
    }
    for (uint32_t g = 0; g < o->n_groups; g++)
        r->part[g].n_hit = (local + x.hit) / o->kind[g].chunk;
    off_touch(o, r);
    return x.hit;
}

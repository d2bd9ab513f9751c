#include "core/offload/tracker.h"

void tracker_free(struct tracker *t)
{
    vt_map_free(&t->by_key);
    free(t->node);
    *t = (struct tracker){.most = t->most};
}

static struct tracked *find(const struct tracker *t, uint64_t key)
{
    const uint64_t *place = vt_map_get(&t->by_key, key);

    return place ? &t->node[*place] : NULL;
}

uint32_t tracker_count(const struct tracker *t, uint64_t key)
{
    const struct tracked *x = find(t, key);

    return x ? x->count : 0;
}

static void leave(struct tracker *t, const struct tracked *x)
{
    if (x->prev != 0)
        t->node[x->prev].next = x->next;
    else
        t->head = x->next;
    if (x->next != 0)
        t->node[x->next].prev = x->prev;
    else
        t->tail = x->prev;
}

static void append(struct tracker *t, struct tracked *x)
{
    uint32_t i = (uint32_t)(x - t->node);

    x->prev = t->tail;
    x->next = 0;
    if (t->tail != 0)
        t->node[t->tail].next = i;
    else
        t->head = i;
    t->tail = i;
}

static bool count_known(struct tracker *t, uint64_t key)
{
    struct tracked *x = find(t, key);

    if (!x)
        return false;
    leave(t, x);
    append(t, x);
    x->count++;
    x->seen = t->call;
    return true;
}

/* In place of the one that was unseen for longest, where there are enough. */
static void count_new(struct tracker *t, uint64_t key)
{
    uint32_t i = t->head;
    uint64_t *place;

    if (t->by_key.n < t->most) {
        t->n += t->n == 0; /* 0 is none */
        if (vt_grow(&t->node, &t->cap, t->n + 1, sizeof(*t->node), NULL) != VT_OK) {
            t->failed = true;
            return;
        }
        i = (uint32_t)t->n++;
    } else {
        leave(t, &t->node[i]);
        vt_map_drop(&t->by_key, vt_map_get(&t->by_key, t->node[i].key));
    }
    place = vt_map_put(&t->by_key, key);
    if (!place) {
        t->failed = true;
        return;
    }
    *place = i;
    t->node[i] = (struct tracked){.key = key, .count = 1, .seen = t->call};
    append(t, &t->node[i]);
}

void tracker_look(struct tracker *t, uint64_t key)
{
    if (!count_known(t, key))
        count_new(t, key);
}

void tracker_offer(struct tracker *t, const uint64_t *key, uint32_t n)
{
    t->call++;
    for (uint32_t i = 0; i < n; i++)
        (void)count_known(t, key[i]);
    for (uint32_t i = 0; i < n && !t->failed; i++) {
        bool full = t->by_key.n >= t->most;

        if (!find(t, key[i]) && !(full && t->node[t->head].seen == t->call))
            count_new(t, key[i]);
    }
}

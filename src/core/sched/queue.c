/* queue.c - waiting requests: a linked list in arrival order, or a binary heap by
 * (priority, arrival, id). Removal from the middle is cheap in both, because aborts
 * come in any order. */
#include "core/sched/sched.h"

int queue_reserve(struct queue *q, uint32_t n, struct vt_err *err)
{
    if (!q->by_priority)
        return VT_OK;
    return vt_grow(&q->heap, &q->cap_heap, n, sizeof(*q->heap), err);
}

static bool goes_before(const struct vt_sched *s, uint32_t a, uint32_t b)
{
    const struct slot *x = &s->slot[a], *y = &s->slot[b];
    int order;

    if (x->priority != y->priority)
        return x->priority < y->priority;
    if (x->arrival != y->arrival)
        return x->arrival < y->arrival;
    order = x->id && y->id ? strcmp(x->id, y->id) : 0;
    return order != 0 ? order < 0 : x->tag < y->tag;
}

static struct queue *queue_of(struct vt_sched *s, uint32_t slot)
{
    return s->slot[slot].apart ? &s->apart : &s->waiting;
}

static void heap_put(struct vt_sched *s, const struct queue *q, uint32_t at,
                     uint32_t slot)
{
    q->heap[at] = slot;
    s->slot[slot].prev = at;
}

static void heap_up(struct vt_sched *s, const struct queue *q, uint32_t at,
                    uint32_t slot)
{
    while (at > 0 && goes_before(s, slot, q->heap[(at - 1) / 2])) {
        heap_put(s, q, at, q->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    heap_put(s, q, at, slot);
}

static void heap_down(struct vt_sched *s, const struct queue *q, uint32_t at,
                      uint32_t slot)
{
    for (;;) {
        uint32_t child = 2 * at + 1;

        if (child + 1 < q->n && goes_before(s, q->heap[child + 1], q->heap[child]))
            child++;
        if (child >= q->n || !goes_before(s, q->heap[child], slot))
            break;
        heap_put(s, q, at, q->heap[child]);
        at = child;
    }
    heap_put(s, q, at, slot);
}

static void link_between(struct vt_sched *s, struct queue *q, uint32_t slot,
                         uint32_t prev, uint32_t next)
{
    s->slot[slot].prev = prev;
    s->slot[slot].next = next;
    if (prev != NO_SLOT)
        s->slot[prev].next = slot;
    else
        q->head = slot;
    if (next != NO_SLOT)
        s->slot[next].prev = slot;
    else
        q->tail = slot;
}

void queue_push(struct vt_sched *s, uint32_t slot)
{
    struct queue *q = &s->waiting;

    s->slot[slot].apart = false;
    q->n++;
    if (q->by_priority)
        heap_up(s, q, q->n - 1, slot);
    else
        link_between(s, q, slot, q->n > 1 ? q->tail : NO_SLOT, NO_SLOT);
}

void queue_push_front(struct vt_sched *s, uint32_t slot, bool apart)
{
    struct queue *q = apart ? &s->apart : &s->waiting;

    s->slot[slot].apart = apart;
    q->n++;
    if (q->by_priority)
        heap_up(s, q, q->n - 1, slot);
    else
        link_between(s, q, slot, NO_SLOT, q->n > 1 ? q->head : NO_SLOT);
}

static uint32_t first_of(const struct queue *q)
{
    return q->by_priority ? q->heap[0] : q->head;
}

uint32_t queue_first(const struct vt_sched *s)
{
    if (s->apart.n == 0)
        return s->waiting.n > 0 ? first_of(&s->waiting) : NO_SLOT;
    if (s->waiting.n > 0 && s->waiting.by_priority && !s->rules.aside_is_waiting &&
        goes_before(s, first_of(&s->waiting), first_of(&s->apart)))
        return first_of(&s->waiting);
    return first_of(&s->apart);
}

static void heap_remove(struct vt_sched *s, const struct queue *q, uint32_t at)
{
    uint32_t last = q->heap[q->n]; /* n is already one less */

    if (at == q->n)
        return;
    if (at > 0 && goes_before(s, last, q->heap[(at - 1) / 2]))
        heap_up(s, q, at, last);
    else
        heap_down(s, q, at, last);
}

void queue_remove(struct vt_sched *s, uint32_t slot)
{
    struct queue *q = queue_of(s, slot);
    uint32_t prev = s->slot[slot].prev, next = s->slot[slot].next;

    q->n--;
    if (q->by_priority) {
        heap_remove(s, q, prev);
        return;
    }
    if (prev != NO_SLOT)
        s->slot[prev].next = next;
    else
        q->head = next;
    if (next != NO_SLOT)
        s->slot[next].prev = prev;
    else
        q->tail = prev;
}

/* Insertion sort: only views for logs and tests come here. */
static void sort_slots(const struct vt_sched *s, uint32_t *slots, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        uint32_t slot = slots[i], j = i;

        for (; j > 0 && goes_before(s, slot, slots[j - 1]); j--)
            slots[j] = slots[j - 1];
        slots[j] = slot;
    }
}

/* Adds to n slots that are there; by priority the order is whole only if all fit. */
static uint32_t add_slots(const struct vt_sched *s, const struct queue *q,
                          uint32_t *slots, uint32_t n, uint32_t max)
{
    uint32_t i = q->head;

    for (uint32_t k = 0; k < q->n && n < max; k++) {
        slots[n++] = q->by_priority ? q->heap[k] : i;
        if (!q->by_priority)
            i = s->slot[i].next;
    }
    return n;
}

uint32_t queue_list(const struct vt_sched *s, uint32_t *slots, uint32_t max)
{
    uint32_t apart = add_slots(s, &s->apart, slots, 0, max);
    uint32_t n = add_slots(s, &s->waiting, slots, apart, max);

    if (s->waiting.by_priority && s->rules.aside_is_waiting) {
        sort_slots(s, slots, apart);
        if (n > apart) /* slots is NULL where nobody is asked for */
            sort_slots(s, slots + apart, n - apart);
    } else if (s->waiting.by_priority) {
        sort_slots(s, slots, n);
    }
    return sched_n_waiting(s);
}

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

static void heap_put(struct vt_sched *s, uint32_t at, uint32_t slot)
{
    s->waiting.heap[at] = slot;
    s->slot[slot].prev = at;
}

static void heap_up(struct vt_sched *s, uint32_t at, uint32_t slot)
{
    while (at > 0 && goes_before(s, slot, s->waiting.heap[(at - 1) / 2])) {
        heap_put(s, at, s->waiting.heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    heap_put(s, at, slot);
}

static void heap_down(struct vt_sched *s, uint32_t at, uint32_t slot)
{
    const struct queue *q = &s->waiting;

    for (;;) {
        uint32_t child = 2 * at + 1;

        if (child + 1 < q->n && goes_before(s, q->heap[child + 1], q->heap[child]))
            child++;
        if (child >= q->n || !goes_before(s, q->heap[child], slot))
            break;
        heap_put(s, at, q->heap[child]);
        at = child;
    }
    heap_put(s, at, slot);
}

static void link_between(struct vt_sched *s, uint32_t slot, uint32_t prev,
                         uint32_t next)
{
    s->slot[slot].prev = prev;
    s->slot[slot].next = next;
    if (prev != NO_SLOT)
        s->slot[prev].next = slot;
    else
        s->waiting.head = slot;
    if (next != NO_SLOT)
        s->slot[next].prev = slot;
    else
        s->waiting.tail = slot;
}

void queue_push(struct vt_sched *s, uint32_t slot)
{
    struct queue *q = &s->waiting;

    q->n++;
    if (q->by_priority)
        heap_up(s, q->n - 1, slot);
    else
        link_between(s, slot, q->n > 1 ? q->tail : NO_SLOT, NO_SLOT);
}

void queue_push_front(struct vt_sched *s, uint32_t slot)
{
    struct queue *q = &s->waiting;

    uint32_t prev = NO_SLOT, next = q->n > 0 ? q->head : NO_SLOT;

    q->n++;
    if (q->by_priority) {
        heap_up(s, q->n - 1, slot);
        return;
    }
    while (next != NO_SLOT && s->slot[next].aside && !s->rules.aside_is_waiting) {
        prev = next;
        next = s->slot[next].next;
    }
    link_between(s, slot, prev, next);
}

uint32_t queue_after(const struct vt_sched *s, uint32_t slot)
{
    return s->slot[slot].next;
}

uint32_t queue_first(const struct vt_sched *s)
{
    return s->waiting.by_priority ? s->waiting.heap[0] : s->waiting.head;
}

static void heap_remove(struct vt_sched *s, uint32_t at)
{
    struct queue *q = &s->waiting;
    uint32_t last = q->heap[q->n]; /* n is already one less */

    if (at == q->n)
        return;
    if (at > 0 && goes_before(s, last, q->heap[(at - 1) / 2]))
        heap_up(s, at, last);
    else
        heap_down(s, at, last);
}

void queue_remove(struct vt_sched *s, uint32_t slot)
{
    struct queue *q = &s->waiting;
    uint32_t prev = s->slot[slot].prev, next = s->slot[slot].next;

    q->n--;
    if (q->by_priority) {
        heap_remove(s, prev);
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

uint32_t queue_list(const struct vt_sched *s, uint32_t *slots, uint32_t max)
{
    const struct queue *q = &s->waiting;
    uint32_t n = 0, i = q->head;

    if (q->by_priority) {
        n = max < q->n ? max : q->n;
        if (n > 0)
            memcpy(slots, q->heap, n * sizeof(*slots));
        sort_slots(s, slots, n);
        return q->n;
    }
    for (; n < max && n < q->n; i = s->slot[i].next)
        slots[n++] = i;
    return q->n;
}

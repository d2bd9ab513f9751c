/* seats.c - numbers that are taken and given back, low ones first. */
#include <assert.h>

#include "base/base.h"

#define TAKEN UINT32_MAX /* as `next`; no seat has that number */

static bool is_free(const struct vt_seats *s, uint32_t seat)
{
    return s->link[seat].next != TAKEN;
}

/* Links of free seats make a ring, so that none is a special case. */
static void link_behind(struct vt_seats *s, uint32_t seat, uint32_t prev)
{
    uint32_t next = s->link[prev].next;

    s->link[seat] = (struct vt_seat){prev, next};
    s->link[prev].next = seat;
    s->link[next].prev = seat;
}

static void unlink_seat(struct vt_seats *s, uint32_t seat)
{
    struct vt_seat at = s->link[seat];

    if (s->first == seat)
        s->first = at.next;
    s->link[at.prev].next = at.next;
    s->link[at.next].prev = at.prev;
    s->link[seat].next = TAKEN;
}

int vt_seats_take(struct vt_seats *s, uint32_t *seat, struct vt_err *err)
{
    int rc = VT_OK;

    if (s->n_taken < s->n) {
        *seat = s->first;
        unlink_seat(s, *seat);
    } else {
        rc = vt_grow(&s->link, &s->cap, (size_t)s->n + 1, sizeof(*s->link), err);
        if (rc != VT_OK)
            return rc;
        *seat = s->n++;
        s->link[*seat].next = TAKEN;
    }
    s->n_taken++;
    return VT_OK;
}

void vt_seats_give(struct vt_seats *s, uint32_t seat)
{
    assert(seat < s->n && !is_free(s, seat));
    s->n_taken--;
    if (s->n_taken + 1 == s->n) { /* the only one */
        s->link[seat] = (struct vt_seat){seat, seat};
        s->first = seat;
        return;
    }
    link_behind(s, seat, s->link[s->first].prev);
    /* One that would stay if all the others moved up is used again first. */
    if (seat < s->n_taken)
        s->first = seat;
}

uint32_t vt_seats_cut(struct vt_seats *s, uint32_t keep, uint32_t most)
{
    uint32_t before = s->n;

    if (s->n <= keep || s->n_taken > s->n / 4)
        return 0;
    while (s->n > keep && before - s->n < most && is_free(s, s->n - 1)) {
        unlink_seat(s, s->n - 1);
        s->n--;
    }
    vt_shrink(&s->link, &s->cap, s->n, sizeof(*s->link));
    return before - s->n;
}

void vt_seats_free(struct vt_seats *s)
{
    free(s->link);
    *s = (struct vt_seats){0};
}

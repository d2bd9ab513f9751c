/* late.c - blocks that come back late: with steps in flight a connector may still write
 * to those that were given back. */
#include "core/sched/sched.h"

void late_plan(struct vt_sched *s, const struct vt_step_plan *p)
{
    s->late.scheduled += p->n > 0;
    for (uint32_t i = 0; i < p->n; i++) {
        struct slot *r = &s->slot[p->item[i].slot];

        r->last_seq = s->late.scheduled;
        sched_set_prefills(s, r, r->prefills && r->chunk);
    }
}

void late_update(struct vt_sched *s, const struct vt_step_plan *p)
{
    struct late *l = &s->late;
    size_t parts = 0, blocks = 0;

    l->done += p->n > 0;
    for (; parts < l->n_parts && l->part[parts].seq <= l->done; parts++) {
        kv_give(s, l->block + blocks, l->part[parts].n);
        blocks += l->part[parts].n;
    }
    if (parts == 0)
        return;
    l->n_parts -= parts;
    l->n_blocks -= blocks;
    memmove(l->part, l->part + parts, l->n_parts * sizeof(*l->part));
    memmove(l->block, l->block + blocks, l->n_blocks * sizeof(*l->block));
}

bool late_release(struct vt_sched *s, const struct slot *r)
{
    struct late *l = &s->late;
    uint32_t n = 0;

    if (!l->on || r->last_seq <= l->done)
        return false;
    for (uint32_t g = 0; g < s->groups.n; g++)
        n += r->held[g].n;
    if (n == 0)
        return true;
    if (vt_grow(&l->block, &l->cap_blocks, l->n_blocks + n, sizeof(*l->block), NULL) ||
        vt_grow(&l->part, &l->cap_parts, l->n_parts + 1, sizeof(*l->part), NULL)) {
        s->failed = true;
        return false;
    }
    for (uint32_t g = 0; g < s->groups.n; g++) {
        if (r->held[g].n > 0)
            memcpy(l->block + l->n_blocks, r->held[g].block,
                   r->held[g].n * sizeof(*l->block));
        l->n_blocks += r->held[g].n;
    }
    l->part[l->n_parts++] = (struct late_part){l->scheduled, n};
    return true;
}

/* tiers.c - the scheduler and its second tier: what it is told of requests and plans.
 */
#include "core/sched/sched.h"

static struct off_view view_of(struct slot *r)
{
    return (struct off_view){.n_tokens = r->n_tokens,
                             .prompt = r->prompt,
                             .computed = r->computed,
                             .junction = r->junction,
                             .skip_cache = r->skip_cache,
                             .content = &r->content};
}

static void tables_of(const struct vt_sched *s, const struct slot *r,
                      struct off_table table[VT_KV_GROUPS])
{
    for (uint32_t g = 0; g < s->groups.n; g++)
        table[g] = (struct off_table){r->held[g].block, r->held[g].n};
}

uint32_t tiers_match(struct vt_sched *s, struct slot *r, uint32_t hit, bool *wait)
{
    struct off_view v = view_of(r);

    return offload_match(s->off, r->off, &v, hit, wait);
}

void tiers_load(struct vt_sched *s, struct slot *r, uint32_t tokens)
{
    struct off_table table[VT_KV_GROUPS];

    tables_of(s, r, table);
    offload_load(s->off, r->off, table, tokens);
}

void tiers_end(struct vt_sched *s, struct slot *r, bool aborted)
{
    struct off_view v = view_of(r);

    offload_end(s->off, r->off, &v, aborted);
    r->off = NULL;
}

void tiers_plan(struct vt_sched *s, struct vt_step_plan *p)
{
    struct off_table table[VT_KV_GROUPS];

    for (uint32_t i = 0; i < p->n; i++) {
        struct slot *r = &s->slot[p->item[i].slot];
        struct off_view v = view_of(r);

        tables_of(s, r, table);
        offload_told(s->off, r->off, &v, table, p->item[i].origin == VT_RESUMED);
    }
    offload_look(s->off);
    for (uint32_t i = 0; i < p->n; i++) {
        struct slot *r = &s->slot[p->item[i].slot];
        struct off_view v = view_of(r);

        offload_store(s->off, r->off, &v);
    }
    p->moves = offload_plan(s->off);
    s->failed |= !p->moves;
}

struct vt_host_state vt_sched_host(struct vt_sched *s)
{
    return s->off ? offload_state(s->off) : (struct vt_host_state){0};
}

/* ---- results ---------------------------------------------------------- */

int vt_sched_moved(struct vt_sched *s, const uint64_t *jobs, uint32_t n,
                   struct vt_err *err)
{
    int rc = vt_grow(&s->moved, &s->cap_moved, s->n_moved + n, sizeof(*jobs), err);

    for (uint32_t i = 0; rc == VT_OK && i < n; i++)
        s->moved[s->n_moved++] = jobs[i];
    return rc;
}

void tiers_end_update(struct vt_sched *s)
{
    for (size_t i = 0; i < s->n_moved; i++) {
        struct slot *r;
        uint32_t slot;

        if (!offload_done(s->off, s->moved[i], &slot))
            continue;
        r = &s->slot[slot];
        if (r->status == S_PARKED)
            sched_unpark(s, slot);
        else
            r->loaded = true;
    }
    s->n_moved = 0;
    offload_tell(s->off, &s->pool);
}

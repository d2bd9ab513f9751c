/* remote.c - prompts that one engine computes and another decodes, as vLLM's
 * NixlConnector has it: who decodes takes blocks for the whole prompt and waits while
 * they are filled; who computed it keeps its blocks until that has been done. */
#include "core/sched/sched.h"

uint32_t remote_backoff(const struct vt_sched *s)
{
    for (uint32_t g = 0; g < s->groups.n; g++)
        if (s->groups.group[g].is.type == VT_ATTENTION_MAMBA)
            return 1; /* who decodes has to make the last state himself */
    return 0;
}

uint32_t remote_match(const struct vt_sched *s, const struct slot *r, uint32_t hit)
{
    uint32_t back = remote_backoff(s), end = r->prompt > back ? r->prompt - back : 1;

    if (r->remote != VT_DECODE_ONLY || r->skip_cache)
        return 0;
    return end > hit ? end - hit : 0;
}

static uint32_t empty_blocks(const struct vt_sched *s, const struct slot *r)
{
    uint32_t n = 0;

    for (uint32_t g = 0; g < s->groups.n; g++)
        for (uint32_t i = r->held[g].n_seen; i < r->held[g].n; i++)
            n += r->held[g].block[i] != 0;
    return n;
}

void remote_pull(struct vt_sched *s, struct vt_step_plan *p, struct slot *r)
{
    struct plan_buf *pb = &s->plan[(s->turn - 1) & 1];

    if (vt_grow(&p->pull, &pb->cap_pulls, (size_t)p->n_pulls + 1, sizeof(*p->pull),
                NULL) != VT_OK) {
        s->failed = true;
        return;
    }
    p->pull[p->n_pulls++] =
        (struct vt_kv_pull){r->tag, r->status == S_LOADING ? empty_blocks(s, r) : 0,
                            r->unsure && r->status == S_LOADING};
    r->remote = VT_TOGETHER;
}

/* ---- ends ------------------------------------------------------------- */

bool remote_keeps(const struct vt_sched *s, const struct slot *r, bool aborted)
{
    return s->c.remote.on && !aborted && r->remote == VT_PREFILL_ONLY;
}

void remote_park(struct vt_sched *s, uint32_t slot)
{
    uint64_t *place = vt_map_put(&s->kept, s->slot[slot].tag);

    if (place)
        *place = slot;
    else
        s->failed = true;
}

bool vt_sched_keeps(const struct vt_sched *s, uint64_t tag)
{
    return vt_map_get(&s->kept, tag) != NULL;
}

int vt_sched_settled(struct vt_sched *s, uint64_t tag, bool failed, struct vt_err *err)
{
    int rc = vt_grow(&s->settled, &s->cap_settled, s->n_settled + 1,
                     sizeof(*s->settled), err);

    if (rc == VT_OK)
        s->settled[s->n_settled++] = (struct settled){tag, failed};
    return rc;
}

/* What was found here is still good, where one table says which blocks that is. */
static void compute_instead(const struct vt_sched *s, struct slot *r)
{
    r->computed = s->groups.n > 1 ? 0 : r->computed - r->first_external;
    r->loaded = true;
}

/* The row has room: see vt_sched_update(). */
static void fail_request(struct vt_sched *s, uint32_t slot)
{
    struct slot *r = &s->slot[slot];

    s->update.row[s->update.n_rows++] =
        (struct vt_row){.tag = r->tag, .slot = slot, .finish = VT_FAILED};
    r->loaded = true; /* nothing is on its way to its blocks */
    queue_remove(s, slot);
    sched_end(s, slot, true);
}

void remote_end_update(struct vt_sched *s)
{
    for (size_t i = 0; i < s->n_settled; i++) {
        uint64_t tag = s->settled[i].tag, *kept = vt_map_get(&s->kept, tag);
        const uint64_t *place = vt_map_get(&s->by_tag, tag);

        if (kept) {
            uint32_t slot = (uint32_t)*kept;

            vt_map_drop(&s->kept, kept);
            sched_unpark(s, slot);
        } else if (!place || s->slot[*place].status != S_LOADING) {
            continue;
        } else if (!s->settled[i].failed) {
            s->slot[*place].loaded = true;
        } else if (s->c.remote.recomputes) {
            compute_instead(s, &s->slot[*place]);
        } else {
            fail_request(s, (uint32_t)*place);
        }
    }
    s->n_settled = 0;
}

struct vt_fetches vt_sched_fetches(const struct vt_sched *s)
{
    struct vt_fetches n = {0};

    for (uint32_t i = 0; s->connected && i < s->seats.n; i++) {
        const struct slot *r = &s->slot[i];
        bool waits = r->status == S_WAITING || r->status == S_PREEMPTED;

        n.waiting +=
            waits && r->computed == 0 && (r->fetches || r->remote == VT_DECODE_ONLY);
        n.pulling += r->status == S_LOADING && !r->loaded;
        n.pulled += (r->status == S_LOADING && r->loaded) || (waits && r->computed > 0);
    }
    return n;
}

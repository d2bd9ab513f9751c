/* update.c - what a step's result changes: tokens, finishes, drafts, registered blocks.
 */
#include "core/sched/sched.h"

static enum vt_finish finish_of(const struct vt_sched *s, const struct slot *r)
{
    uint32_t n_out = r->n_tokens - r->prompt;

    if (r->n_tokens < r->stop_from || (n_out < r->min_tokens && !s->rules.stops_early))
        return VT_RUNNING_ON;
    if (n_out - 1 == r->eos_at)
        return VT_STOPPED_EOS;
    if (n_out - 1 == r->stop_at)
        return VT_STOPPED_TOKEN;
    if (r->n_tokens >= s->c.max_model_len || n_out >= r->max_tokens)
        return VT_LENGTH;
    return VT_RUNNING_ON;
}

static void note_first(struct vt_sched *s, struct slot *r)
{
    struct vt_update *u = &s->update;
    uint32_t done = kv_findable(s, r);

    if (vt_grow(&u->first, &s->cap_first, (size_t)u->n_first + 1, sizeof(*u->first),
                NULL) != VT_OK) {
        s->failed = true;
        return;
    }
    if (done > r->prompt)
        done = r->prompt;
    u->looked_up += r->prompt;
    u->found += r->first_cached;
    u->found_outside += r->first_external;
    u->first[u->n_first++] = (struct vt_first){
        .tag = r->tag,
        .prompt_tokens = r->prompt,
        .cached_tokens = r->first_cached,
        .external_tokens = r->first_external,
        .cache_creation_tokens = done > r->first_cached ? done - r->first_cached : 0,
    };
}

/* Drafts that were not accepted take their KV slots back. */
static void reject_drafts(struct slot *r, uint32_t spec, uint32_t sampled)
{
    uint32_t rejected = spec - (sampled - 1);

    if (r->computed > 0)
        r->computed -= rejected;
    if (r->placeholders > 0)
        r->placeholders -= (int32_t)rejected;
}

/* Whether the result is from before a preemption; *thrown: and is thrown away. Where
 * these are not marked, r->stale counts results instead of tokens. */
static bool is_stale(const struct vt_sched *s, struct slot *r, const struct vt_item *it,
                     uint32_t sampled, bool *thrown)
{
    *thrown = false;
    if (r->stale == 0)
        return false;
    if (s->rules.marks_stale)
        r->stale -= it->tokens;
    else
        r->stale -= sampled > 0;
    *thrown = r->drops_stale;
    return true;
}

/* Returns true if the request is over. */
static bool take_result(struct vt_sched *s, const struct vt_item *it, uint32_t sampled)
{
    struct slot *r = &s->slot[it->slot];
    struct vt_row *row = &s->update.row[s->update.n_rows];
    enum vt_finish fin = VT_RUNNING_ON;
    uint32_t before = r->n_tokens, kept;
    bool thrown, stale = is_stale(s, r, it, sampled, &thrown);

    if (sampled == 0 || thrown)
        return false;
    if (it->spec > 0 && !stale)
        reject_drafts(r, it->spec, sampled);
    for (uint32_t k = 0; k < sampled && fin == VT_RUNNING_ON; k++) {
        r->n_tokens++;
        fin = finish_of(s, r);
    }
    kept = r->n_tokens - before;
    if (s->c.async_scheduling) {
        if (!stale)
            r->placeholders -= (int32_t)kept;
        if (r->status == S_RUNNING)
            kv_register(s, r, (uint32_t)((int64_t)r->computed - r->placeholders));
    }
    *row = (struct vt_row){
        .tag = r->tag,
        .slot = it->slot,
        .first_index = before - r->prompt,
        .new_tokens = kept,
        .finish = (uint8_t)fin,
        .first = !r->had_output,
    };
    if (!r->had_output)
        note_first(s, r);
    r->had_output = true;
    s->update.n_rows++;
    return fin != VT_RUNNING_ON;
}

/* One more token of a request that goes on as it is, which nearly all do; false: there
 * is more to it, and nothing was done. */
static inline bool take_token(const struct vt_sched *s, const struct vt_item *it,
                              struct slot *r, struct vt_row *row, bool async)
{
    uint32_t known = r->computed + 1 - (uint32_t)r->placeholders;

    if (it->spec > 0 || r->stale > 0 || r->n_tokens + 1 >= r->stop_from ||
        !r->had_output ||
        (async ? r->status != S_RUNNING || known >= r->next_cache
               : s->c.num_spec_tokens > 0))
        return false;
    *row = (struct vt_row){.tag = r->tag,
                           .slot = it->slot,
                           .first_index = r->n_tokens - r->prompt,
                           .new_tokens = 1};
    r->n_tokens++;
    r->placeholders -= async;
    return true;
}

static void leave(struct vt_sched *s, uint32_t slot, bool *from_running)
{
    if (s->slot[slot].status == S_RUNNING)
        *from_running = true;
    else
        queue_remove(s, slot);
    sched_end(s, slot, false);
}

static void compact_running(struct vt_sched *s)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n_running; i++)
        if (s->slot[s->running[i]].status == S_RUNNING)
            s->running[n++] = s->running[i];
    s->n_running = n;
}

const struct vt_update *vt_sched_update(struct vt_sched *s,
                                        const struct vt_step_plan *p,
                                        const uint32_t *sampled)
{
    struct vt_update *u = &s->update;
    bool from_running = false, async = s->c.async_scheduling;
    uint32_t n_items = p->n;

    u->n_rows = u->n_first = 0;
    u->looked_up = u->found = u->found_outside = 0;
    if (vt_grow(&u->row, &s->cap_rows, p->n + s->n_settled, sizeof(*u->row), NULL) !=
        VT_OK)
        return NULL;
    if (s->connected)
        late_update(s, p);
    for (uint32_t i = 0; i < n_items; i++) {
        const struct vt_item *it = &p->item[i];
        struct slot *r = &s->slot[it->slot];
        uint32_t n = sampled ? sampled[i] : it->samples;

        if (it->slot >= s->seats.n || r->gen != it->gen || r->status == S_FREE ||
            r->status == S_PARKED)
            continue;
        r->in_flight -= it->tokens;
        if (n == 1 && take_token(s, it, r, &u->row[u->n_rows], async))
            u->n_rows++;
        else if (take_result(s, it, n))
            leave(s, it->slot, &from_running);
        else if (n > 0 && !s->c.async_scheduling && !r->chunk)
            r->n_spec = s->c.num_spec_tokens;
    }
    if (from_running)
        compact_running(s);
    if (s->off)
        tiers_end_update(s);
    if (s->n_settled > 0)
        remote_end_update(s);
    if (s->connected) { /* else it is never counted */
        u->external = s->external;
        s->external = (struct vt_cache_stats){0};
    }
    u->cache = s->cache;
    s->cache = (struct vt_cache_stats){0};
    return s->failed || s->pool.failed ? NULL : u;
}

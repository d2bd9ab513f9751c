/* plan.c - compares what was scheduled and what its result changed. */
#include "sim/oracle/replay.h"

/* ---- the plan --------------------------------------------------------- */

static void put_sched(struct vt_buf *b, const struct vt_plan *p, bool only_spec)
{
    bool any = false;

    vt_buf_char(b, '[');
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t n = only_spec ? p->item[i].spec : p->item[i].tokens;

        if (only_spec && n == 0)
            continue;
        put_comma(b, any);
        any = true;
        vt_buf_printf(b, "[%llu,%u]", (unsigned long long)p->item[i].tag, n);
    }
    vt_buf_char(b, ']');
}

/* [request, computed, blocks] of new requests; with a resumed flag for the others. */
static void put_items(struct replay *r, const struct vt_plan *p, bool fresh)
{
    struct vt_buf *b = &r->mine;
    bool any = false;

    vt_buf_char(b, '[');
    for (int resumed = 0; resumed <= (fresh ? 0 : 1); resumed++) {
        for (uint32_t i = 0; i < p->n; i++) {
            const struct vt_item *it = &p->item[i];
            int want = fresh ? VT_NEW : resumed ? VT_RESUMED : VT_WAS_RUNNING;
            const uint32_t *blocks;
            uint32_t n;

            if (it->origin != want)
                continue;
            put_comma(b, any);
            any = true;
            vt_buf_printf(b, "[%llu,", (unsigned long long)it->tag);
            if (!fresh)
                vt_buf_printf(b, "%d,", resumed);
            vt_buf_printf(b, "%u,", it->computed);
            blocks = vt_sched_blocks(r->s, it->slot, &n);
            put_u32s(b, blocks + (n - it->n_new_blocks), it->n_new_blocks);
            vt_buf_char(b, ']');
        }
    }
    vt_buf_char(b, ']');
}

static void put_slots(struct replay *r, const uint32_t *slots, uint32_t n)
{
    vt_buf_char(&r->mine, '[');
    for (uint32_t i = 0; i < n; i++) {
        put_comma(&r->mine, i > 0);
        vt_buf_u64(&r->mine, vt_sched_tag(r->s, slots[i]));
    }
    vt_buf_char(&r->mine, ']');
}

static int by_tag(const void *a, const void *b)
{
    uint64_t x, y;

    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return x < y ? -1 : x > y;
}

static int compare_plan(struct replay *r, const struct vt_plan *p,
                        const struct vt_node *rec, struct vt_err *err)
{
    const struct vt_node *wait = vt_get(rec, "wait");
    uint32_t n_running, n_waiting = vt_sched_waiting(r->s, r->scratch, r->c->n_req);
    const uint32_t *running = vt_sched_running(r->s, &n_running);
    int rc;

    put_sched(&r->mine, p, false);
    if ((rc = same(r, rec, "sched", "[]", err)) ||
        (rc = same_number(r, rec, "total",
                          (uint64_t)p->decode_tokens + p->prefill_tokens, err)))
        return rc;
    put_items(r, p, true);
    if ((rc = same(r, rec, "new", "[]", err)))
        return rc;
    put_items(r, p, false);
    if ((rc = same(r, rec, "cached", "[]", err)))
        return rc;
    put_tags(&r->mine, p->preempted, p->n_preempted);
    if ((rc = same(r, rec, "preempt", "[]", err)))
        return rc;
    if (p->n_finished > 0)
        qsort(p->finished, p->n_finished, sizeof(*p->finished), by_tag);
    put_tags(&r->mine, p->finished, p->n_finished);
    if ((rc = same(r, rec, "finished_sent", "[]", err)))
        return rc;
    put_sched(&r->mine, p, true);
    if ((rc = same(r, rec, "spec", "[]", err)))
        return rc;
    put_slots(r, running, n_running);
    if ((rc = same(r, rec, "run", "[]", err)))
        return rc;
    if (wait && wait->kind == VT_MAP) { /* a long queue: its length and first entries */
        vt_buf_printf(&r->mine, "{\"n\":%u,\"head\":", n_waiting);
        put_slots(r, r->scratch, n_waiting < 64 ? n_waiting : 64);
        vt_buf_char(&r->mine, '}');
    } else {
        put_slots(r, r->scratch, n_waiting);
    }
    if ((rc = same(r, rec, "wait", "[]", err)) ||
        (rc = same_number(r, rec, "free", vt_sched_free_blocks(r->s), err)))
        return rc;
    if (!r->c->is_026)
        return VT_OK;
    return same_number(r, rec, "common_prefix_blocks",
                       vt_sched_common_prefix_blocks(r->s), err);
}

/* What the recorded run's stand-in for a model returned. */
static void sample(struct replay *r, struct flight *f)
{
    for (uint32_t i = 0; i < f->plan->n; i++) {
        const struct vt_item *it = &f->plan->item[i];
        struct oracle_request *q = &r->c->req[it->tag];

        f->sampled[i] = 0;
        if (!it->samples)
            continue;
        f->sampled[i] = 1;
        if (it->spec > 0)
            f->sampled[i] +=
                (uint32_t)((it->tag * 7 + (uint64_t)q->sampled * 3) % (it->spec + 1u));
        q->sampled += f->sampled[i];
    }
}

int replay_schedule(struct replay *r, const struct vt_node *rec, struct vt_err *err)
{
    bool throttle = r->c->interval > 1 && r->step % r->c->interval != 0;
    struct flight *f = &r->flight[r->n_flights];
    int rc;

    if (r->n_flights == IN_FLIGHT)
        return vt_fail(err, VT_EINPUT, "line %u: more than %d steps in flight",
                       rec->line, IN_FLIGHT);
    f->plan = vt_sched_schedule(r->s, throttle);
    if (!f->plan)
        return vt_nomem(err);
    rc = compare_plan(r, f->plan, rec, err);
    if (rc == VT_OK)
        rc = vt_grow(&f->sampled, &f->cap, (size_t)f->plan->n + 1, sizeof(*f->sampled),
                     err);
    if (rc != VT_OK)
        return rc;
    sample(r, f);
    r->n_flights++;
    return VT_OK;
}

/* ---- the update ------------------------------------------------------- */

static void put_rows(struct replay *r, const struct vt_update *u)
{
    struct vt_buf *b = &r->mine;

    vt_buf_char(b, '[');
    for (uint32_t i = 0; i < u->n_rows; i++) {
        const struct vt_row *row = &u->row[i];
        uint32_t tag = (uint32_t)row->tag;

        put_comma(b, i > 0);
        vt_buf_printf(b, "[%u,[", tag);
        for (uint32_t k = 0; k < row->new_tokens; k++) {
            put_comma(b, k > 0);
            vt_buf_u64(b, oracle_output_token(r->c, tag, row->first_index + k));
        }
        vt_buf_str(b, "],");
        if (row->finish == VT_STOPPED_EOS)
            vt_buf_str(b, "0,null]");
        else if (row->finish == VT_STOPPED_TOKEN)
            vt_buf_printf(b, "0,%u]", r->c->stop_token);
        else
            vt_buf_str(b, row->finish == VT_LENGTH ? "1,null]" : "null,null]");
    }
    vt_buf_char(b, ']');
}

static void put_first(struct vt_buf *b, const struct vt_update *u)
{
    vt_buf_char(b, '[');
    for (uint32_t i = 0; i < u->n_first; i++) {
        const struct vt_first *f = &u->first[i];

        put_comma(b, i > 0);
        vt_buf_printf(b,
                      "[%llu,{\"num_prompt_tokens\":%u,\"num_computed_tokens\":%u,"
                      "\"num_cached_tokens\":%u,\"num_local_cached_tokens\":%u,"
                      "\"num_external_cached_tokens\":0,"
                      "\"num_cache_creation_tokens\":%u}]",
                      (unsigned long long)f->tag, f->prompt_tokens,
                      f->prompt_tokens - f->cached_tokens, f->cached_tokens,
                      f->cached_tokens, f->cache_creation_tokens);
    }
    vt_buf_char(b, ']');
}

int replay_update(struct replay *r, const struct vt_node *upd, struct vt_err *err)
{
    struct flight f = r->flight[0];
    const struct vt_update *u;
    uint32_t n_running;
    int rc;

    if (r->n_flights == 0)
        return vt_fail(err, VT_EINPUT, "line %u: a result without a step", upd->line);
    u = vt_sched_update(r->s, f.plan, f.sampled);
    r->n_flights--;
    r->flight[0] = r->flight[1];
    r->flight[1] = f; /* keeps its memory */
    if (!u)
        return vt_nomem(err);
    (void)vt_sched_running(r->s, &n_running);
    put_rows(r, u);
    if ((rc = same(r, upd, "out", "[]", err)))
        return rc;
    put_first(&r->mine, u);
    if ((rc = same(r, upd, "prefill", "[]", err)) ||
        (rc = same_number(r, upd, "run", n_running, err)) ||
        (rc =
             same_number(r, upd, "wait", vt_sched_waiting(r->s, r->scratch, 0), err)) ||
        (rc = same_number(r, upd, "free", vt_sched_free_blocks(r->s), err)))
        return rc;
    vt_buf_f64(&r->mine, vt_sched_kv_usage(r->s));
    if ((rc = same(r, upd, "usage", "0", err)) || !r->c->is_026)
        return rc;
    vt_buf_printf(
        &r->mine,
        "{\"reset\":%s,\"requests\":%llu,\"queries\":%llu,\"hits\":%llu,"
        "\"preempted_requests\":%llu,\"preempted_queries\":%llu,"
        "\"preempted_hits\":%llu}",
        u->cache.reset ? "true" : "false", (unsigned long long)u->cache.requests,
        (unsigned long long)u->cache.queries, (unsigned long long)u->cache.hits,
        (unsigned long long)u->cache.preempted_requests,
        (unsigned long long)u->cache.preempted_queries,
        (unsigned long long)u->cache.preempted_hits);
    return same(r, upd, "pc", "", err);
}

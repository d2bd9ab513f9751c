/* plan.c - compares what was scheduled and what its result changed. */
#include "sim/oracle/replay.h"

/* ---- the plan --------------------------------------------------------- */

static void put_sched(struct vt_jw *j, const struct vt_step_plan *p, bool only_spec)
{
    vt_jw_list(j, NULL);
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t n = only_spec ? p->item[i].spec : p->item[i].tokens;

        if (!only_spec || n > 0)
            vt_jw_printf(j, NULL, "[%llu,%u]", (unsigned long long)p->item[i].tag, n);
    }
    vt_jw_end(j);
}

/* The blocks of a request from the given ones on: of its one group, or a list for each.
 * By group, no new block at all is null. */
static void put_blocks(struct replay *r, uint32_t slot, const uint32_t *from)
{
    struct vt_jw *j = &r->out;
    bool any = !r->c->by_group;
    uint32_t n;

    for (uint32_t g = 0; g < r->n_groups; g++) {
        (void)vt_sched_blocks(r->s, slot, g, &n);
        any |= n > from[g];
    }
    if (!any) {
        vt_jw_null(j, NULL);
        return;
    }
    if (r->c->by_group)
        vt_jw_list(j, NULL);
    for (uint32_t g = 0; g < r->n_groups; g++) {
        const uint32_t *blocks = vt_sched_blocks(r->s, slot, g, &n);

        vt_jw_u32_list(j, NULL, n > 0 ? blocks + from[g] : NULL, n - from[g]);
    }
    if (r->c->by_group)
        vt_jw_end(j);
}

/* Of an item: those that it had not when it was last in a plan. */
static void put_new_blocks(struct replay *r, const struct vt_item *it)
{
    uint32_t *told = &r->n_told[it->tag * r->n_groups];

    if (it->origin != VT_WAS_RUNNING)
        memset(told, 0, r->n_groups * sizeof(*told));
    put_blocks(r, it->slot, told);
    for (uint32_t g = 0; g < r->n_groups; g++)
        (void)vt_sched_blocks(r->s, it->slot, g, &told[g]);
}

static void put_tables(struct replay *r)
{
    static const uint32_t none[VT_KV_GROUPS];
    uint32_t n;
    const uint32_t *running = vt_sched_running(r->s, &n);

    vt_jw_list(&r->out, NULL);
    for (uint32_t i = 0; i < n; i++) {
        vt_jw_list(&r->out, NULL);
        vt_jw_u64(&r->out, NULL, vt_sched_tag(r->s, running[i]));
        put_blocks(r, running[i], none);
        vt_jw_end(&r->out);
    }
    vt_jw_end(&r->out);
}

static int check_common_prefix(struct replay *r, const struct vt_node *rec,
                               struct vt_err *err)
{
    struct vt_buf none = {0};
    int rc;

    if (!r->c->by_group)
        return check_number(r, rec, "common_prefix_blocks",
                            vt_sched_common_prefix_blocks(r->s, 0), err);
    vt_jw_list(&r->out, NULL);
    for (uint32_t g = 0; g < r->n_groups; g++) {
        vt_jw_u64(&r->out, NULL, vt_sched_common_prefix_blocks(r->s, g));
        vt_buf_str(&none, g > 0 ? ",0" : "[0");
    }
    vt_jw_end(&r->out);
    vt_buf_str(&none, "]");
    rc = none.failed ? vt_nomem(err)
                     : check_field(r, rec, "common_prefix_blocks", none.data, err);
    vt_buf_free(&none);
    return rc;
}

/* [request, computed, blocks] of new requests; with a resumed flag for the others. */
static void put_items(struct replay *r, const struct vt_step_plan *p, bool fresh)
{
    struct vt_jw *j = &r->out;

    vt_jw_list(j, NULL);
    for (unsigned resumed = 0; resumed <= (fresh ? 0 : 1); resumed++) {
        for (uint32_t i = 0; i < p->n; i++) {
            const struct vt_item *it = &p->item[i];
            int want = fresh ? VT_NEW : resumed ? VT_RESUMED : VT_WAS_RUNNING;

            if (it->origin != want)
                continue;
            vt_jw_list(j, NULL);
            vt_jw_u64(j, NULL, it->tag);
            if (!fresh)
                vt_jw_u64(j, NULL, resumed);
            vt_jw_u64(j, NULL, it->computed);
            put_new_blocks(r, it);
            vt_jw_end(j);
        }
    }
    vt_jw_end(j);
}

static void put_slots(struct replay *r, const char *key, const uint32_t *slots,
                      uint32_t n)
{
    vt_jw_list(&r->out, key);
    for (uint32_t i = 0; i < n; i++)
        vt_jw_u64(&r->out, NULL, vt_sched_tag(r->s, slots[i]));
    vt_jw_end(&r->out);
}

static int by_tag(const void *a, const void *b)
{
    uint64_t x, y;

    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return x < y ? -1 : x > y;
}

/* Waiting requests, and those put aside. With adapters one list has both, in the order
 * in which they will be looked at. */
static int check_queue(struct replay *r, const struct vt_node *rec, struct vt_err *err)
{
    uint32_t apart = vt_sched_apart(r->s);
    uint32_t n = vt_sched_waiting(r->s, r->scratch, r->c->n_req);
    const uint32_t *rest = r->scratch + apart;
    const struct vt_node *wait = vt_get(rec, "wait");
    int rc;

    if (vt_get(rec, "queue")) {
        put_slots(r, NULL, r->scratch, n);
        return check_field(r, rec, "queue", "[]", err);
    }
    if (wait && wait->kind == VT_MAP) { /* a long one: its length and first entries */
        vt_jw_map(&r->out, NULL);
        vt_jw_u64(&r->out, "n", n - apart);
        put_slots(r, "head", rest, n - apart < 64 ? n - apart : 64);
        vt_jw_end(&r->out);
    } else {
        put_slots(r, NULL, rest, n - apart);
    }
    if ((rc = check_field(r, rec, "wait", "[]", err)))
        return rc;
    put_slots(r, NULL, r->scratch, apart);
    return check_field(r, rec, "skip", "[]", err);
}

static int compare_plan(struct replay *r, const struct vt_step_plan *p,
                        const struct vt_node *rec, struct vt_err *err)
{
    uint32_t n_running;
    const uint32_t *running = vt_sched_running(r->s, &n_running);
    int rc;

    put_sched(&r->out, p, false);
    if ((rc = check_field(r, rec, "sched", "[]", err)) ||
        (rc = check_number(r, rec, "total",
                           (uint64_t)p->decode_tokens + p->prefill_tokens, err)))
        return rc;
    put_items(r, p, true);
    if ((rc = check_field(r, rec, "new", "[]", err)))
        return rc;
    put_items(r, p, false);
    if ((rc = check_field(r, rec, "cached", "[]", err)))
        return rc;
    put_tags(r, p->preempted, p->n_preempted);
    if ((rc = check_field(r, rec, "preempt", "[]", err)))
        return rc;
    if (p->n_finished > 0)
        qsort(p->finished, p->n_finished, sizeof(*p->finished), by_tag);
    put_tags(r, p->finished, p->n_finished);
    if ((rc = check_field(r, rec, "finished_sent", "[]", err)))
        return rc;
    put_sched(&r->out, p, true);
    if ((rc = check_field(r, rec, "spec", "[]", err)))
        return rc;
    put_slots(r, NULL, running, n_running);
    if ((rc = check_field(r, rec, "run", "[]", err)))
        return rc;
    if ((rc = check_queue(r, rec, err)) ||
        (rc = check_number(r, rec, "free", vt_sched_free_blocks(r->s), err)))
        return rc;
    if (vt_get(rec, "tables")) {
        put_tables(r);
        if ((rc = check_field(r, rec, "tables", "", err)))
            return rc;
    }
    return r->c->config.vllm < 32 ? check_common_prefix(r, rec, err) : VT_OK;
}

/* What the recorded run's stand-in for a model returned: it goes on where the request's
 * output ends when the step's result is taken. */
static void sample(const struct replay *r, struct flight *f)
{
    for (uint32_t i = 0; i < f->plan->n; i++) {
        const struct vt_item *it = &f->plan->item[i];
        const struct oracle_request *q = &r->c->req[it->tag];

        f->sampled[i] = 0;
        if (!it->samples)
            continue;
        f->sampled[i] = 1;
        if (it->spec > 0)
            f->sampled[i] +=
                (uint32_t)((it->tag * 7 + (uint64_t)q->produced * 3) % (it->spec + 1u));
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
        rc = replay_moves(r, rec, f, err);
    if (rc == VT_OK)
        rc = vt_grow(&f->sampled, &f->cap, (size_t)f->plan->n + 1, sizeof(*f->sampled),
                     err);
    if (rc != VT_OK)
        return rc;
    r->n_flights++;
    return VT_OK;
}

/* ---- the update ------------------------------------------------------- */

static void put_rows(struct replay *r, const struct vt_update *u)
{
    struct vt_jw *j = &r->out;

    vt_jw_list(j, NULL);
    for (uint32_t i = 0; i < u->n_rows; i++) {
        const struct vt_row *row = &u->row[i];
        uint32_t tag = (uint32_t)row->tag;

        vt_jw_list(j, NULL);
        vt_jw_u64(j, NULL, tag);
        vt_jw_list(j, NULL);
        for (uint32_t k = 0; k < row->new_tokens; k++)
            vt_jw_u64(j, NULL, oracle_output_token(r->c, tag, row->first_index + k));
        vt_jw_end(j);
        r->c->req[tag].produced = row->first_index + row->new_tokens;
        if (row->finish == VT_STOPPED_EOS)
            vt_jw_printf(j, NULL, "0,null");
        else if (row->finish == VT_STOPPED_TOKEN)
            vt_jw_printf(j, NULL, "0,%u", r->c->stop_token);
        else
            vt_jw_printf(j, NULL, row->finish == VT_LENGTH ? "1,null" : "null,null");
        vt_jw_end(j);
    }
    vt_jw_end(j);
}

static void put_first(struct vt_jw *j, const struct vt_update *u)
{
    vt_jw_list(j, NULL);
    for (uint32_t i = 0; i < u->n_first; i++) {
        const struct vt_first *f = &u->first[i];

        vt_jw_printf(j, NULL,
                     "[%llu,{\"num_prompt_tokens\":%u,\"num_computed_tokens\":%u,"
                     "\"num_cached_tokens\":%u,\"num_local_cached_tokens\":%u,"
                     "\"num_external_cached_tokens\":%u,"
                     "\"num_cache_creation_tokens\":%u}]",
                     (unsigned long long)f->tag, f->prompt_tokens,
                     f->prompt_tokens - f->cached_tokens, f->cached_tokens,
                     f->cached_tokens - f->external_tokens, f->external_tokens,
                     f->cache_creation_tokens);
    }
    vt_jw_end(j);
}

/* Where all are in one list, all are counted. */
static int check_waiting(struct replay *r, const struct vt_node *upd,
                         struct vt_err *err)
{
    uint32_t n = vt_sched_waiting(r->s, r->scratch, 0), apart = vt_sched_apart(r->s);
    int rc;

    if (r->c->config.offload.num_cpu_blocks == 0)
        return check_number(r, upd, "wait", n, err);
    rc = check_number(r, upd, "wait", n - apart, err);
    return rc == VT_OK ? check_number(r, upd, "skip", apart, err) : rc;
}

static void put_cache_stats(struct replay *r, const struct vt_cache_stats *c,
                            bool external)
{
    uint64_t from_host = external ? c->hits : 0;

    vt_jw_printf(&r->out, NULL,
                 "{\"reset\":%s,\"requests\":%llu,\"queries\":%llu,\"hits\":%llu,"
                 "\"preempted_requests\":%llu,\"preempted_queries\":%llu,"
                 "\"preempted_hits\":%llu",
                 c->reset ? "true" : "false", (unsigned long long)c->requests,
                 (unsigned long long)c->queries, (unsigned long long)c->hits,
                 (unsigned long long)c->preempted_requests,
                 (unsigned long long)c->preempted_queries,
                 (unsigned long long)c->preempted_hits);
    if (from_host > 0 && r->c->config.vllm >= 32)
        vt_buf_printf(&r->mine, ",\"hits_by_source\":{\"host\":%llu}",
                      (unsigned long long)from_host);
    else if (r->c->config.vllm >= 32)
        vt_buf_str(&r->mine, ",\"hits_by_source\":{}");
    vt_buf_str(&r->mine, "}");
}

int replay_update(struct replay *r, const struct vt_node *upd, struct vt_err *err)
{
    struct flight f = r->flight[0];
    const struct vt_update *u;
    uint32_t n_running;
    int rc;

    if (r->n_flights == 0)
        return vt_fail(err, VT_EINPUT, "line %u: a result without a step", upd->line);
    sample(r, &f);
    if ((rc = replay_moved(r, &f, err)))
        return rc;
    u = vt_sched_update(r->s, f.plan, f.sampled);
    r->n_flights--;
    r->flight[0] = r->flight[1];
    r->flight[1] = f; /* keeps its memory */
    if (!u)
        return vt_nomem(err);
    (void)vt_sched_running(r->s, &n_running);
    put_rows(r, u);
    if ((rc = check_field(r, upd, "out", "[]", err)))
        return rc;
    put_first(&r->out, u);
    if ((rc = check_field(r, upd, "prefill", "[]", err)) ||
        (rc = check_number(r, upd, "run", n_running, err)) ||
        (rc = check_waiting(r, upd, err)) ||
        (rc = check_number(r, upd, "free", vt_sched_free_blocks(r->s), err)))
        return rc;
    vt_jw_f64(&r->out, NULL, vt_sched_kv_usage(r->s));
    if ((rc = check_field(r, upd, "usage", "0", err)))
        return rc;
    put_cache_stats(r, &u->cache, false);
    if ((rc = check_field(r, upd, "pc", "", err)) || !vt_get(upd, "cpc"))
        return rc;
    put_cache_stats(r, &u->external, true);
    return check_field(r, upd, "cpc", "", err);
}

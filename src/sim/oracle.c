/* oracle.c - replays a recorded run of vLLM's scheduler and compares step for step.
 *
 * Both sides of a comparison are written as compact JSON, so that one function
 * compares every field and a difference can be shown as it is. */
#include "sim/oracle.h"

#define IN_FLIGHT 2

struct flight {
    const struct vt_plan *plan;
    uint32_t *sampled;
    size_t cap;
};

struct known_hash { /* of a block that was stored */
    uint64_t key, hash;
};

struct replay {
    struct oracle_case *c;
    struct vt_sched *s;
    struct flight flight[IN_FLIGHT];
    uint32_t n_flights;
    uint32_t step;
    uint32_t next_event; /* of the recorded KV events */
    struct known_hash *hashes;
    size_t n_hashes, cap_hashes;
    struct vt_buf mine, theirs;
    uint32_t *scratch; /* one cell for each request */
};

/* ---- text ------------------------------------------------------------- */

static void put_node(struct vt_buf *b, const struct vt_node *n)
{
    switch (n->kind) {
    case VT_NULL:
        vt_buf_str(b, "null");
        break;
    case VT_BOOL:
        vt_buf_str(b, n->u.boolean ? "true" : "false");
        break;
    case VT_INT:
        if (n->is_u64)
            vt_buf_u64(b, (uint64_t)n->u.integer);
        else
            vt_buf_i64(b, n->u.integer);
        break;
    case VT_REAL:
        vt_buf_f64(b, n->u.real);
        break;
    case VT_STR:
        vt_buf_json_str(b, n->u.str, n->n);
        break;
    default:
        vt_buf_char(b, n->kind == VT_LIST ? '[' : '{');
        for (uint32_t i = 0; i < n->n; i++) {
            const struct vt_node *x = &n->u.item[i];

            if (i > 0)
                vt_buf_char(b, ',');
            if (n->kind == VT_MAP) {
                vt_buf_json_str(b, x->key, strlen(x->key));
                vt_buf_char(b, ':');
            }
            put_node(b, x);
        }
        vt_buf_char(b, n->kind == VT_LIST ? ']' : '}');
    }
}

static void comma(struct vt_buf *b, bool needed)
{
    if (needed)
        vt_buf_char(b, ',');
}

static void put_u32s(struct vt_buf *b, const uint32_t *v, uint32_t n)
{
    vt_buf_char(b, '[');
    for (uint32_t i = 0; i < n; i++) {
        comma(b, i > 0);
        vt_buf_u64(b, v[i]);
    }
    vt_buf_char(b, ']');
}

static void put_tags(struct vt_buf *b, const uint64_t *v, uint32_t n)
{
    vt_buf_char(b, '[');
    for (uint32_t i = 0; i < n; i++) {
        comma(b, i > 0);
        vt_buf_u64(b, v[i]);
    }
    vt_buf_char(b, ']');
}

/* Compares r->mine, which the caller has just filled, with a recorded field. */
static int same(struct replay *r, const struct vt_node *rec, const char *field,
                const char *if_absent, struct vt_err *err)
{
    const struct vt_node *n = vt_get(rec, field);

    vt_buf_clear(&r->theirs);
    if (n != NULL)
        put_node(&r->theirs, n);
    else
        vt_buf_str(&r->theirs, if_absent);
    if (r->mine.failed || r->theirs.failed)
        return vt_nomem(err);
    if (r->mine.len == r->theirs.len &&
        memcmp(r->mine.data, r->theirs.data, r->mine.len) == 0) {
        vt_buf_clear(&r->mine);
        return VT_OK;
    }
    return vt_fail(err, VT_ECHECK,
                   "%s: step %u: field '%s' differs: got %.120s, recorded %.120s",
                   r->c->name, r->step, field, r->mine.data, r->theirs.data);
}

static int same_number(struct replay *r, const struct vt_node *rec, const char *field,
                       uint64_t v, struct vt_err *err)
{
    vt_buf_u64(&r->mine, v);
    return same(r, rec, field, "0", err);
}

/* ---- the plan --------------------------------------------------------- */

static void put_sched(struct vt_buf *b, const struct vt_plan *p, bool only_spec)
{
    bool any = false;

    vt_buf_char(b, '[');
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t n = only_spec ? p->item[i].spec : p->item[i].tokens;

        if (only_spec && n == 0)
            continue;
        comma(b, any);
        any = true;
        vt_buf_printf(b, "[%llu,%u]", (unsigned long long)p->item[i].tag, n);
    }
    vt_buf_char(b, ']');
}

static void put_new_blocks(struct replay *r, const struct vt_item *it)
{
    uint32_t n;
    const uint32_t *blocks = vt_sched_blocks(r->s, it->slot, &n);

    put_u32s(&r->mine, blocks + (n - it->n_new_blocks), it->n_new_blocks);
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

            if (it->origin != want)
                continue;
            comma(b, any);
            any = true;
            vt_buf_printf(b, "[%llu,", (unsigned long long)it->tag);
            if (!fresh)
                vt_buf_printf(b, "%d,", resumed);
            vt_buf_printf(b, "%u,", it->computed);
            put_new_blocks(r, it);
            vt_buf_char(b, ']');
        }
    }
    vt_buf_char(b, ']');
}

static void put_slots(struct replay *r, const uint32_t *slots, uint32_t n)
{
    vt_buf_char(&r->mine, '[');
    for (uint32_t i = 0; i < n; i++) {
        comma(&r->mine, i > 0);
        vt_buf_u64(&r->mine, vt_sched_tag(r->s, slots[i]));
    }
    vt_buf_char(&r->mine, ']');
}

/* Long queues are recorded as their length and first entries. */
static int same_waiting(struct replay *r, const struct vt_node *rec, struct vt_err *err)
{
    const struct vt_node *w = vt_get(rec, "wait");
    uint32_t n = vt_sched_waiting(r->s, r->scratch, r->c->n_req);

    if (w != NULL && w->kind == VT_MAP) {
        vt_buf_printf(&r->mine, "{\"n\":%u,\"head\":", n);
        put_slots(r, r->scratch, n < 64 ? n : 64);
        vt_buf_char(&r->mine, '}');
    } else {
        put_slots(r, r->scratch, n);
    }
    return same(r, rec, "wait", "[]", err);
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
    uint32_t n_running;
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
    if ((rc = same(r, rec, "run", "[]", err)) || (rc = same_waiting(r, rec, err)) ||
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

static int do_schedule(struct replay *r, const struct vt_node *rec, struct vt_err *err)
{
    bool throttle = r->c->interval > 1 && r->step % r->c->interval != 0;
    struct flight *f = &r->flight[r->n_flights];
    int rc;

    if (r->n_flights == IN_FLIGHT)
        return vt_fail(err, VT_EINPUT, "line %u: more than %d steps in flight",
                       rec->line, IN_FLIGHT);
    f->plan = vt_sched_schedule(r->s, throttle);
    if (f->plan == NULL)
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

        comma(b, i > 0);
        vt_buf_printf(b, "[%u,[", tag);
        for (uint32_t k = 0; k < row->new_tokens; k++) {
            comma(b, k > 0);
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

        comma(b, i > 0);
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

static void put_cache_stats(struct vt_buf *b, const struct vt_cache_stats *c)
{
    vt_buf_printf(b,
                  "{\"reset\":%s,\"requests\":%llu,\"queries\":%llu,\"hits\":%llu,"
                  "\"preempted_requests\":%llu,\"preempted_queries\":%llu,"
                  "\"preempted_hits\":%llu}",
                  c->reset ? "true" : "false", (unsigned long long)c->requests,
                  (unsigned long long)c->queries, (unsigned long long)c->hits,
                  (unsigned long long)c->preempted_requests,
                  (unsigned long long)c->preempted_queries,
                  (unsigned long long)c->preempted_hits);
}

static int do_update(struct replay *r, const struct vt_node *upd, struct vt_err *err)
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
    if (u == NULL)
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
    put_cache_stats(&r->mine, &u->cache);
    return same(r, upd, "pc", "", err);
}

/* ---- KV events -------------------------------------------------------- */

static int note_hash(struct replay *r, uint64_t key, uint64_t hash, struct vt_err *err)
{
    int rc =
        vt_grow(&r->hashes, &r->cap_hashes, r->n_hashes + 1, sizeof(*r->hashes), err);

    if (rc == VT_OK)
        r->hashes[r->n_hashes++] = (struct known_hash){key, hash};
    return rc;
}

static uint64_t hash_of(const struct replay *r, uint64_t key)
{
    for (size_t i = r->n_hashes; i-- > 0;)
        if (r->hashes[i].key == key)
            return r->hashes[i].hash;
    return 0;
}

static void put_stored_rest(struct replay *r, uint32_t i, uint32_t first, uint32_t n)
{
    uint32_t bs = r->c->config.block_size;
    struct vt_buf *b = &r->mine;

    vt_buf_str(b, ",\"token_ids\":[");
    for (uint32_t k = first * bs; k < (first + n) * bs; k++) {
        comma(b, k > first * bs);
        vt_buf_u64(b, oracle_token(r->c, i, k));
    }
    vt_buf_printf(b,
                  "],\"block_size\":%u,\"lora_id\":null,\"medium\":\"GPU\","
                  "\"lora_name\":null,\"extra_keys\":[",
                  bs);
    for (uint32_t k = first; k < first + n; k++) {
        const char *salt = k == 0 ? r->c->req[i].salt : NULL;

        comma(b, k > first);
        if (salt == NULL) {
            vt_buf_str(b, "null");
            continue;
        }
        vt_buf_char(b, '[');
        vt_buf_json_str(b, salt, strlen(salt));
        vt_buf_char(b, ']');
    }
    vt_buf_str(b, "],\"group_idx\":0,\"kv_cache_spec_kind\":\"full_attention\","
                  "\"kv_cache_spec_sliding_window\":null,\"locality\":null,"
                  "\"type\":\"BlockStored\"}");
}

/* One message for n blocks that were stored together. */
static int put_stored(struct replay *r, const struct vt_kv_event *e, uint32_t n,
                      struct vt_err *err)
{
    uint32_t i = (uint32_t)e->tag;
    uint64_t hash = 0;
    int rc = VT_OK;

    vt_buf_str(&r->mine, "{\"block_hashes\":[");
    for (uint32_t k = 0; k < n && rc == VT_OK; k++) {
        rc = oracle_block_hash(r->c, i, e[k].index, &hash, err);
        if (rc == VT_OK)
            rc = note_hash(r, e[k].key, hash, err);
        comma(&r->mine, k > 0);
        vt_buf_u64(&r->mine, hash);
    }
    vt_buf_str(&r->mine, "],\"parent_block_hash\":");
    if (rc == VT_OK && e->index > 0) {
        rc = oracle_block_hash(r->c, i, e->index - 1, &hash, err);
        vt_buf_u64(&r->mine, hash);
    } else {
        vt_buf_str(&r->mine, "null");
    }
    put_stored_rest(r, i, e->index, n);
    return rc;
}

static int put_event(struct replay *r, const struct vt_kv_event *e, uint32_t n,
                     struct vt_err *err)
{
    switch (e->kind) {
    case VT_KV_STORED:
        return put_stored(r, e, n, err);
    case VT_KV_REMOVED:
        vt_buf_printf(&r->mine,
                      "{\"block_hashes\":[%llu],\"medium\":\"GPU\",\"group_idx\":0,"
                      "\"locality\":null,\"type\":\"BlockRemoved\"}",
                      (unsigned long long)hash_of(r, e->key));
        return VT_OK;
    default:
        vt_buf_str(&r->mine, "{\"type\":\"AllBlocksCleared\"}");
        return VT_OK;
    }
}

/* The next recorded event, as a one-field map so that same() can compare it. */
static int same_event(struct replay *r, struct vt_err *err)
{
    const struct vt_node *list = r->c->kv_events, *e;
    struct vt_node cell, rec = {.kind = VT_MAP, .n = 1, .u = {.item = &cell}};

    if (r->next_event >= list->n)
        return vt_fail(err, VT_ECHECK,
                       "%s: step %u: field 'kv_events' differs: got %.120s, "
                       "recorded no more",
                       r->c->name, r->step, r->mine.data);
    e = &list->u.item[r->next_event++];
    if (e->kind != VT_LIST || e->n != 2 || e->u.item[0].kind != VT_INT)
        return vt_fail(err, VT_EINPUT, "line %u: not a [step, event] pair", e->line);
    if (e->u.item[0].u.integer != r->step)
        return vt_fail(
            err, VT_ECHECK,
            "%s: step %u: field 'kv_events' differs: got %.120s, recorded at "
            "step %lld",
            r->c->name, r->step, r->mine.data, (long long)e->u.item[0].u.integer);
    cell = e->u.item[1];
    cell.key = "kv_events";
    return same(r, &rec, "kv_events", "null", err);
}

static int compare_events(struct replay *r, struct vt_err *err)
{
    uint32_t n, i = 0, k;
    const struct vt_kv_event *e = vt_sched_kv_events(r->s, &n);
    int rc = VT_OK;

    for (; i < n && rc == VT_OK && r->c->kv_events != NULL; i += k) {
        for (k = 1; i + k < n && e[i + k].joins; k++)
            ;
        rc = put_event(r, &e[i], k, err);
        if (rc == VT_OK)
            rc = same_event(r, err);
    }
    vt_sched_kv_events_clear(r->s);
    return rc;
}

static int all_events_seen(struct replay *r, struct vt_err *err)
{
    if (r->c->kv_events == NULL || r->next_event == r->c->kv_events->n)
        return VT_OK;
    return vt_fail(err, VT_ECHECK,
                   "%s: step %u: field 'kv_events' differs: got %u events, "
                   "recorded %u",
                   r->c->name, r->step, r->next_event, r->c->kv_events->n);
}

/* ---- one recorded step ------------------------------------------------ */

static int request_index(const struct replay *r, const struct vt_node *n, uint32_t *i,
                         struct vt_err *err)
{
    if (n->kind != VT_INT || n->u.integer < 0 || n->u.integer >= r->c->n_req)
        return vt_fail(err, VT_EINPUT, "line %u: no such request", n->line);
    *i = (uint32_t)n->u.integer;
    return VT_OK;
}

static int do_add(struct replay *r, uint32_t i, struct vt_err *err)
{
    struct vt_segment *seg = NULL;
    struct vt_request q;
    int rc;

    if (r->c->req[i].added)
        return vt_fail(err, VT_EINPUT, "step %u: request %u is added twice", r->step,
                       i);
    rc = oracle_request(r->c, i, &q, &seg, err);
    if (rc == VT_OK)
        rc = vt_sched_add(r->s, &q, &r->c->req[i].slot, err);
    r->c->req[i].added = rc == VT_OK;
    free(seg);
    return rc;
}

/* An abort may come after the request has ended. */
static int do_abort(struct replay *r, uint32_t i, struct vt_err *err)
{
    uint32_t n, *list = r->scratch;
    const uint32_t *running = vt_sched_running(r->s, &n);

    (void)err;
    for (uint32_t k = 0; k < n; k++)
        if (vt_sched_tag(r->s, running[k]) == i) {
            vt_sched_abort(r->s, running[k]);
            return VT_OK;
        }
    n = vt_sched_waiting(r->s, list, r->c->n_req);
    for (uint32_t k = 0; k < n; k++)
        if (vt_sched_tag(r->s, list[k]) == i) {
            vt_sched_abort(r->s, list[k]);
            return VT_OK;
        }
    return VT_OK;
}

static int do_each(struct replay *r, const struct vt_node *rec, const char *field,
                   int (*act)(struct replay *, uint32_t, struct vt_err *),
                   struct vt_err *err)
{
    const struct vt_node *list = vt_get(rec, field);
    int rc = VT_OK;

    for (uint32_t k = 0; list != NULL && list->kind == VT_LIST && k < list->n; k++) {
        uint32_t i = 0;

        rc = request_index(r, &list->u.item[k], &i, err);
        if (rc == VT_OK)
            rc = act(r, i, err);
        if (rc != VT_OK)
            return rc;
    }
    return rc;
}

static int do_reset(struct replay *r, const struct vt_node *rec, bool preempt,
                    struct vt_err *err)
{
    const uint64_t *tags = NULL;
    uint32_t n;
    bool ok = vt_sched_reset_cache(r->s, preempt, &tags, &n);
    int rc;

    vt_buf_str(&r->mine, ok ? "true" : "false");
    rc = same(r, rec, "action_result", "", err);
    if (rc != VT_OK)
        return rc;
    put_tags(&r->mine, tags, n);
    return same(r, rec, "action_preempt", "[]", err);
}

static int do_action(struct replay *r, const struct vt_node *rec, struct vt_err *err)
{
    const char *a = NULL;
    int rc = vt_get_str(rec, "action", VT_OPTIONAL, &a, err);

    if (rc != VT_OK || a == NULL)
        return rc;
    if (strcmp(a, "pause_new") == 0)
        vt_sched_pause(r->s, VT_PAUSE_NEW);
    else if (strcmp(a, "pause_all") == 0)
        vt_sched_pause(r->s, VT_PAUSE_ALL);
    else if (strcmp(a, "unpause") == 0)
        vt_sched_pause(r->s, VT_RUN);
    else if (strcmp(a, "reset_prefix_cache") == 0)
        return do_reset(r, rec, false, err);
    else if (strcmp(a, "reset_prefix_cache_preempt") == 0)
        return do_reset(r, rec, true, err);
    else
        return vt_fail(err, VT_EINPUT, "line %u: unknown action '%s'", rec->line, a);
    return VT_OK;
}

static int do_step(struct replay *r, const struct vt_node *rec, struct vt_err *err)
{
    const struct vt_node *upd = vt_get(rec, "upd");
    int rc = vt_get_u32(rec, "step", VT_REQUIRED, 0, UINT32_MAX, &r->step, err);

    if (rc == VT_OK)
        rc = do_each(r, rec, "add", do_add, err);
    if (rc == VT_OK)
        rc = do_each(r, rec, "abort", do_abort, err);
    if (rc == VT_OK)
        rc = do_action(r, rec, err);
    if (rc == VT_OK && vt_get(rec, "sched") != NULL)
        rc = do_schedule(r, rec, err);
    if (rc == VT_OK && upd != NULL && upd->kind == VT_MAP)
        rc = vt_within(err, do_update(r, upd, err), "result");
    if (rc == VT_OK)
        rc = compare_events(r, err);
    return rc;
}

static int replay_case(struct replay *r, struct vt_err *err)
{
    int rc = vt_sched_new(&r->s, &r->c->config, err);

    r->scratch = calloc(r->c->n_req, sizeof(*r->scratch));
    if (rc == VT_OK && r->scratch == NULL)
        rc = vt_nomem(err);
    for (uint32_t i = 0; i < r->c->steps->n && rc == VT_OK; i++)
        rc = do_step(r, &r->c->steps->u.item[i], err);
    if (rc == VT_OK)
        rc = all_events_seen(r, err);
    return rc;
}

static int check_case(const char *path, const char *text, size_t len,
                      struct vt_oracle_result *out, struct vt_err *err)
{
    struct oracle_case c;
    struct replay r = {.c = &c};
    int rc = oracle_load(&c, path, text, len, err);

    if (rc != VT_OK)
        return rc;
    rc = vt_within(err, replay_case(&r, err), "%s", path);
    (void)snprintf(out->name, sizeof(out->name), "%s", c.name);
    out->steps = c.steps->n;
    out->requests = c.n_req;
    vt_sched_free(r.s);
    for (int i = 0; i < IN_FLIGHT; i++)
        free(r.flight[i].sampled);
    free(r.hashes);
    free(r.scratch);
    vt_buf_free(&r.mine);
    vt_buf_free(&r.theirs);
    oracle_free(&c);
    return rc;
}

int vt_oracle_check(const char *path, struct vt_oracle_result *out, struct vt_err *err)
{
    return check_case(path, NULL, 0, out, err);
}

int vt_oracle_check_text(const char *name, const char *text, size_t len,
                         struct vt_oracle_result *out, struct vt_err *err)
{
    return check_case(name, text, len, out, err);
}

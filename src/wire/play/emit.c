/* emit.c - finished steps become messages: all rows of a step that leave at one
 * time to one client in one message, with the statistics in the first. */
#include "wire/play/engines.h"

#include <string.h>

/* ---- statistics ------------------------------------------------------- */

struct wire_stats engines_stats(const struct play_engines *k, const struct rank *r)
{
    const struct vt_sched *s = vt_engine_sched(r->core);
    uint32_t blocks = k->p->engine.num_gpu_blocks - 1, running;
    struct wire_stats t = {
        .waiting = vt_sched_waiting(s, NULL, 0),
        .fetches = vt_sched_fetches(s),
        .current_wave = r->wave,
        .step_counter = r->step_counter,
        .kv_usage = vt_sched_kv_usage(s),
    };

    (void)vt_sched_running(s, &running);
    t.running = running + (uint32_t)r->replays.n;
    t.kv_usage += (double)r->replay_blocks / (blocks > 0 ? blocks : 1);
    if (t.kv_usage > 1)
        t.kv_usage = 1;
    return t;
}

/* How many drafts were made, and how far they were right. */
static void add_spec(const struct play_engines *k, const struct vt_step *s,
                     struct wire_stats *t)
{
    uint32_t n = k->p->engine.num_spec_tokens;

    if (n == 0 || !s->sampled)
        return;
    t->has_spec = true;
    t->spec = (struct wire_spec){.num_spec_tokens = n,
                                 .accepted_at = k->accepted,
                                 .n_accepted_at = n,
                                 .drafted_at = k->drafted,
                                 .n_drafted_at = n};
    memset(k->accepted, 0, n * sizeof(*k->accepted));
    memset(k->drafted, 0, n * sizeof(*k->drafted));
    for (uint32_t i = 0; i < s->plan->n; i++) {
        uint32_t drafts = s->plan->item[i].spec;
        uint32_t right = s->sampled[i] > 1 ? s->sampled[i] - 1 : 0;

        if (drafts == 0 || s->sampled[i] == 0)
            continue;
        t->spec.drafts++;
        t->spec.draft_tokens += drafts;
        t->spec.accepted_tokens += right;
        for (uint32_t j = 0; j < drafts && j < n; j++) {
            k->drafted[j]++;
            k->accepted[j] += j < right;
        }
    }
}

static void add_iteration(const struct play_engines *k, const struct vt_step *s,
                          struct wire_stats *t)
{
    const struct vt_step_plan *plan = s->plan;

    if (!k->p->c->iteration_details)
        return;
    t->has_iteration = true;
    t->iteration = (struct wire_iteration){
        .index = s->number,
        .prefills = plan->n_prefills,
        .prefill_tokens = plan->prefill_tokens,
        .decodes = plan->n_decodes,
        .decode_tokens = plan->decode_tokens,
        .elapsed_ms = (double)(s->done_ns - s->sched_ns) / 1e6 / k->p->c->time_scale,
    };
}

/* For --step-stats-out: the statistics as a message, which intake turns to text. */
static void note_stats(struct play_engines *k, struct rank *r, vt_ns at,
                       const struct wire_stats *t)
{
    struct wire_outputs o = {
        .engine_index = r->index,
        .has_stats = true,
        .stats = *t,
        .wave_complete = -1,
        .start_wave = -1,
    };
    struct note *n;

    vt_buf_clear(&k->values);
    wire_outputs_write(&k->values, r->line, &o);
    n = note_with(NOTE_STATS, r->index, k->values.data, k->values.len);
    if (n)
        n->at_ns = at;
    play_send_note(k->p, &k->p->to_intake, n);
}

/* ---- events ----------------------------------------------------------- */

static void note_event(void *request, bool preempted, const struct vt_step *s)
{
    struct play_request *q = request;

    play_request_event(q, preempted ? WIRE_PREEMPTED : WIRE_SCHEDULED,
                       play_timestamp(q->play, s->sched_ns));
    spans_stage(q, preempted ? EXPORT_PREEMPTED : EXPORT_SCHEDULED, s->sched_ns,
                s->number);
}

/* ---- rows ------------------------------------------------------------- */

static int finish_of(const struct play_request *q, uint8_t finish)
{
    switch (finish) {
    case VT_STOPPED_EOS:
    case VT_STOPPED_TOKEN:
        return WIRE_STOP;
    case VT_LENGTH:
        return q->script.finish >= 0 ? q->script.finish : WIRE_LENGTH;
    case VT_FAILED:
        return WIRE_ERROR;
    default:
        return WIRE_UNFINISHED;
    }
}

struct row { /* what a message says of one request */
    struct play_request *q;
    uint32_t first_index, n_tokens;
    uint8_t finish;               /* enum vt_finish */
    uint32_t slot;                /* the scheduler's, if it has one */
    const struct vt_first *first; /* with its first output */
};

/* Those of its values that are kept encoded: in k->values, which moves as it grows, so
 * that they are named at the end. */
static int add_values(struct play_engines *k, const struct rank *r, const struct row *w,
                      struct wire_output *o, struct vt_err *err)
{
    const struct play_request *q = w->q;
    struct logprobs_ask ask = {
        .k = q->logprobs,
        .vocab_size = k->p->c->vocab_size,
        .key = q->script.key,
        .greedy = q->greedy,
        .prompt_fields = r->line->minor >= 29 ? 5 : 4,
    };
    struct vt_buf *b = &k->values;
    size_t stop_end, logprobs_end;
    int rc = VT_OK;

    vt_buf_clear(b);
    if (w->finish == VT_STOPPED_TOKEN)
        mp_put_u64(b, q->script.stop_token);
    stop_end = b->len;
    if (q->logprobs != INT32_MIN)
        rc = logprobs_put(b, &k->aux, &ask, o->token, o->n_tokens, w->first_index, err);
    logprobs_end = b->len;
    ask.k = q->prompt_logprobs;
    if (rc == VT_OK && w->first && ask.k != INT32_MIN && q->blocks.prompt)
        rc = logprobs_put_prompt(b, &k->aux, &ask, q->blocks.prompt, q->blocks.n_prompt,
                                 err);
    o->stop_reason = wire_part(b, 0, stop_end);
    o->logprobs = wire_part(b, stop_end, logprobs_end);
    o->prompt_logprobs = wire_part(b, logprobs_end, b->len);
    return rc;
}

/* What is said of a prompt whose blocks are kept for another engine: a value. */
static int put_kept(struct play_engines *k, const struct rank *r, const struct row *w,
                    struct vt_buf *out, struct vt_err *err)
{
    const struct vt_sched *s = vt_engine_sched(r->core);
    const struct vt_node *root;
    struct vt_arena arena = {0};
    struct vt_buf text = {0};
    struct vt_jw json;
    int rc = vt_peers_keep(k->peers, w->q->id, w->q->tag, err);

    vt_jw_init(&json, &text, NULL);
    vt_kv_put_kept(&json, NULL, &k->p->c->side, r->release, s, w->slot, w->q->id,
                   w->first);
    if (rc == VT_OK)
        rc = text.failed ? vt_nomem(err)
                         : vt_json_parse(&arena, text.data, text.len, 1, &root, err);
    if (rc == VT_OK)
        mp_put_node(out, root);
    vt_arena_free(&arena);
    vt_buf_free(&text);
    return rc == VT_OK && out->failed ? vt_nomem(err) : rc;
}

static int write_row(struct play_engines *k, struct rank *r, const struct row *w,
                     struct vt_err *err)
{
    struct play_request *q = w->q;
    struct wire_output o = {
        .id = play_request_id(q),
        .n_tokens = w->n_tokens,
        .finish = finish_of(q, w->finish),
        .event = q->event,
        .n_events = k->p->c->log_stats ? q->n_events : 0,
        .has_prefill = w->first,
    };
    int rc = vt_grow(&k->token, &k->cap_tokens, w->n_tokens, sizeof(*k->token), err);

    if (rc != VT_OK)
        return rc;
    for (uint32_t i = 0; i < w->n_tokens; i++)
        k->token[i] = script_token(&q->script, w->first_index + i);
    o.token = k->token;
    if (w->first)
        o.prefill = (struct wire_prefill){
            .prompt = w->first->prompt_tokens,
            .computed = w->first->prompt_tokens - w->first->cached_tokens,
            .cached = w->first->cached_tokens,
            .local_cached = w->first->cached_tokens - w->first->external_tokens,
            .external_cached = w->first->external_tokens,
            .cache_creation = w->first->cache_creation_tokens,
        };
    if (w->finish == VT_STOPPED_TOKEN || q->logprobs != INT32_MIN ||
        q->prompt_logprobs != INT32_MIN)
        rc = add_values(k, r, w, &o, err);
    if (rc == VT_OK && k->peers && w->finish != VT_RUNNING_ON &&
        vt_sched_keeps(vt_engine_sched(r->core), q->tag)) {
        vt_buf_clear(&k->kept);
        rc = put_kept(k, r, w, &k->kept, err);
        o.kv_transfer = wire_part(&k->kept, 0, k->kept.len);
    }
    wire_output_write(&k->message, r->line, &o);
    q->n_events = 0;
    q->told = w->first_index + w->n_tokens;
    k->sums.tokens += w->n_tokens;
    return rc;
}

static void end_request(struct play_engines *k, struct play_request *q, int finish)
{
    k->sums.finished++;
    if (k->p->c->log_requests)
        play_log(k->p, "finished %s: %u tokens, %s", q->id, q->told,
                 wire_finish_name(finish));
    engines_forget(k, q);
    play_request_free(q);
}

/* ---- messages --------------------------------------------------------- */

/* Of n rows, which are to be written next; what it says beside them. stats: NULL for
 * none. */
static struct wire_outputs begin_message(struct play_engines *k, const struct rank *r,
                                         vt_ns at, uint32_t n,
                                         const struct wire_stats *stats)
{
    struct wire_outputs o = {
        .n_outputs = n,
        .has_stats = stats,
        .weight_version = engines_weight_version(r),
        .wave_complete = -1,
        .start_wave = -1,
    };

    if (stats)
        o.stats = *stats;
    engines_begin(k, r, &o, at);
    return o;
}

/* By when they leave, to whom, and as the step has them. */
static int by_leaving(const void *pa, const void *pb)
{
    const struct outgoing *a = pa, *b = pb;

    if (a->row->at != b->row->at)
        return a->row->at < b->row->at ? -1 : 1;
    if (a->q->client != b->q->client)
        return a->q->client < b->q->client ? -1 : 1;
    return a->row < b->row ? -1 : 1;
}

/* Rows of requests that are still known, in the order of leaving, which in most steps
 * is that of the step. */
static int order_rows(struct play_engines *k, const struct vt_step *s, size_t *n,
                      struct vt_err *err)
{
    bool sorted = true;
    int rc = vt_grow(&k->order, &k->cap_order, (size_t)s->n_rows + 1, sizeof(*k->order),
                     err);

    *n = 0;
    for (uint32_t i = 0; rc == VT_OK && i < s->n_rows; i++) {
        struct play_request *q = vt_driver_find(k->driver, s->row[i].tag);

        if (!q)
            continue;
        k->order[*n] = (struct outgoing){&s->row[i], q};
        sorted =
            sorted && (*n == 0 || by_leaving(&k->order[*n - 1], &k->order[*n]) < 0);
        ++*n;
    }
    if (!sorted)
        qsort(k->order, *n, sizeof(*k->order), by_leaving);
    return rc;
}

/* Requests that end with a message are told once more in it where ranks share the
 * load: their frontends count by it. */
static int list_ended(struct play_engines *k, const struct rank *r, size_t from,
                      size_t to, struct wire_outputs *o, struct vt_err *err)
{
    if (!r->coordinator)
        return VT_OK;
    if (vt_grow(&k->ended, &k->cap_ended, to - from + 1, sizeof(*k->ended), err) !=
        VT_OK)
        return VT_ENOMEM;
    for (size_t i = from; i < to; i++)
        if (k->order[i].row->finish != VT_RUNNING_ON)
            k->ended[o->n_finished++] = play_request_id(k->order[i].q);
    o->finished = o->n_finished > 0 ? k->ended : NULL;
    return VT_OK;
}

/* One message: the rows [from, to) of the order. */
static int emit_group(struct play_engines *k, struct rank *r, const struct vt_step *s,
                      size_t from, size_t to, const struct wire_stats *stats,
                      struct vt_err *err)
{
    vt_ns at = k->order[from].row->at;
    struct wire_outputs o = begin_message(k, r, at, (uint32_t)(to - from), stats);
    int rc = list_ended(k, r, from, to, &o, err);
    uint32_t hint = 0;

    for (size_t i = from; rc == VT_OK && i < to; i++) {
        const struct vt_row *row = k->order[i].row;
        struct row w = {
            .q = k->order[i].q,
            .first_index = row->first_index,
            .n_tokens = row->new_tokens,
            .finish = row->finish,
            .slot = row->slot,
            .first = row->first ? vt_step_first(s, row->tag, &hint) : NULL,
        };

        rc = write_row(k, r, &w, err);
    }
    if (rc == VT_OK)
        rc = engines_post(k, r, k->order[from].q->client, at, &o, err);
    for (size_t i = from; rc == VT_OK && i < to; i++) {
        struct play_request *q = k->order[i].q;
        uint8_t finish = k->order[i].row->finish;

        if (finish != VT_RUNNING_ON)
            end_request(k, q, finish_of(q, finish));
    }
    return rc;
}

int engines_emit(struct play_engines *k, struct rank *r, const struct vt_step *s,
                 struct vt_err *err)
{
    bool log_stats = k->p->c->log_stats;
    struct wire_stats stats = {0};
    size_t n, from = 0;
    int rc = order_rows(k, s, &n, err);

    k->sums.steps += s->plan->n > 0;
    r->step_counter += k->p->c->waves; /* dense ranks do not count */
    if (log_stats) {
        vt_driver_tell_plan(k->driver, s, note_event);
        stats = engines_stats(k, r);
        stats.skipped_waiting = vt_sched_apart(vt_engine_sched(r->core));
        stats.waiting -= stats.skipped_waiting;
        stats.cache = s->cache;
        stats.has_external = s->offload || s->remote;
        stats.external = s->external;
        *(s->remote ? &stats.p2p_hits : &stats.host_hits) = s->external.hits;
        stats.connector = engines_connector_stats(k, r, s);
        add_spec(k, s, &stats);
        add_iteration(k, s, &stats);
    }
    if (k->p->c->step_stats_out)
        note_stats(k, r, s->done_ns, &stats);
    if (rc == VT_OK && n == 0 && log_stats) {
        struct wire_outputs o = begin_message(k, r, s->done_ns, 0, &stats);

        return engines_post(k, r, 0, s->done_ns, &o, err);
    }
    while (rc == VT_OK && from < n) {
        const struct outgoing *head = &k->order[from];
        size_t to = from + 1;

        while (to < n && k->order[to].row->at == head->row->at &&
               k->order[to].q->client == head->q->client)
            to++;
        rc = emit_group(k, r, s, from, to, from == 0 && log_stats ? &stats : NULL, err);
        from = to;
    }
    return rc;
}

int engines_emit_chunk(struct play_engines *k, struct rank *r, struct play_request *q,
                       uint32_t n_tokens, bool first, bool last, vt_ns at,
                       struct vt_err *err)
{
    const struct vt_record *rec = q->script.steps;
    struct vt_first prefill = {
        .prompt_tokens = q->blocks.n_prompt,
        .cached_tokens =
            rec->cached_tokens < q->blocks.n_prompt ? rec->cached_tokens : 0,
    };
    struct row w = {
        .q = q,
        .first_index = q->told,
        .n_tokens = n_tokens,
        .finish = last ? VT_LENGTH : VT_RUNNING_ON,
        .first = first ? &prefill : NULL,
    };
    struct wire_stats stats = engines_stats(k, r);
    struct mp_span id = play_request_id(q);
    struct wire_outputs o;
    int rc;

    if (last && q->script.eos_at == q->told + n_tokens - 1)
        w.finish = VT_STOPPED_EOS;
    else if (last && q->script.stop_at == q->told + n_tokens - 1)
        w.finish = VT_STOPPED_TOKEN;
    if (first)
        stats.cache = (struct vt_cache_stats){.requests = 1,
                                              .queries = prefill.prompt_tokens,
                                              .hits = prefill.cached_tokens};
    o = begin_message(k, r, at, 1, k->p->c->log_stats ? &stats : NULL);
    rc = write_row(k, r, &w, err);
    if (last && r->coordinator) {
        o.finished = &id;
        o.n_finished = 1;
    }
    if (rc == VT_OK)
        rc = engines_post(k, r, q->client, at, &o, err);
    if (rc == VT_OK && last)
        end_request(k, q, finish_of(q, w.finish));
    return rc;
}

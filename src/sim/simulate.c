/* simulate.c - an engine under a virtual clock, and the books of every run. */
#include <math.h>

#include "sim/fleet/fleet.h"

#define NO_GAPS UINT32_MAX

/* ---- gap lists -------------------------------------------------------- */

static int gaps_open(struct sim_run *r, uint32_t *index, struct vt_err *err)
{
    int rc;

    if (r->n_spare > 0) {
        *index = r->spare_gaps[--r->n_spare];
        r->gaps[*index].n = 0;
        r->gaps[*index].bursts = false;
        return VT_OK;
    }
    if ((rc = vt_grow(&r->gaps, &r->cap_gaps, r->n_gaps + 1, sizeof(*r->gaps), err)) ||
        (rc = vt_grow(&r->spare_gaps, &r->cap_spare, r->n_gaps + 1,
                      sizeof(*r->spare_gaps), err)))
        return rc;
    memset(&r->gaps[r->n_gaps], 0, sizeof(*r->gaps));
    *index = (uint32_t)r->n_gaps++;
    return VT_OK;
}

/* What goes with each gap is kept only if somebody will be told. */
static int gaps_grow(struct gaps *g, bool context, struct vt_err *err)
{
    size_t cap[4] = {g->cap, g->cap, g->cap, g->cap}, need = g->cap + 1;

    if (vt_grow(&g->gap, &cap[0], need, sizeof(*g->gap), err) ||
        (context && (vt_grow(&g->tokens, &cap[1], need, sizeof(*g->tokens), err) ||
                     vt_grow(&g->running, &cap[2], need, sizeof(*g->running), err) ||
                     vt_grow(&g->prefill, &cap[3], need, sizeof(*g->prefill), err))))
        return VT_ENOMEM;
    g->cap = cap[0];
    return VT_OK;
}

static int gaps_add(struct sim_run *r, struct gaps *g, vt_ns gap, uint32_t tokens,
                    const struct vt_step_plan *p, struct vt_err *err)
{
    if (g->n == g->cap && gaps_grow(g, r->tell_requests, err) != VT_OK)
        return VT_ENOMEM;
    g->gap[g->n] = gap;
    if (r->tell_requests) {
        g->tokens[g->n] = tokens;
        g->running[g->n] = p->running;
        g->prefill[g->n] = p->prefill_tokens;
        g->bursts |= tokens != 1;
    }
    g->n++;
    return VT_OK;
}

int run_flush_gaps(struct sim_run *r, struct vt_err *err)
{
    int rc = VT_OK;

    if (r->n_same_gaps > 0)
        rc = vt_timings_gap(r->timings, r->same_gap, r->n_same_gaps, err);
    r->n_same_gaps = 0;
    return rc;
}

/* ---- requests --------------------------------------------------------- */

/* Engines know adapters by number. Equal names have equal ones in all pieces of a long
 * workload, which a count of them would not give. */
static uint32_t lora_number(uint64_t hash)
{
    uint32_t n = (uint32_t)(hash >> 32);

    return n > 0 ? n : 1;
}

struct vt_request run_request(const struct vt_workload *w, const struct vt_work *q,
                              size_t tag)
{
    uint64_t adapter = q->lora ? vt_hash_bytes(q->lora, strlen(q->lora), 0) : 0;

    return (struct vt_request){
        .tag = tag,
        .prompt_tokens = q->prompt_tokens,
        .max_tokens = q->max_tokens,
        .eos_at = q->max_tokens > q->output_tokens ? q->output_tokens - 1 : VT_NO_STOP,
        .stop_at = VT_NO_STOP,
        .priority = q->priority,
        .id = q->id,
        .segment = &w->segment[q->first_segment],
        .n_segments = q->n_segments,
        .output_content = q->output_content,
        .salt = adapter, /* its KV cache is of no use to others */
        .lora = q->lora ? lora_number(adapter) : 0,
    };
}

struct vt_request run_hand_over(struct sim_run *r, size_t req)
{
    struct vt_request q;

    window_live(&r->window, req)->engines++;
    q = run_request(window_piece(&r->window, req)->w, window_work(&r->window, req),
                    req);
    if (r->spec->cached_as_measured) {
        uint32_t cached = r->w->measured[req].cached_tokens;

        q.skip_cache = true;
        q.given_tokens = cached < q.prompt_tokens ? cached : q.prompt_tokens - 1;
    }
    return q;
}

static int let_go_if_over(struct sim_run *r, size_t req, struct vt_err *err)
{
    const struct live *l = window_live(&r->window, req);
    struct run_later *later = r->later;
    int rc;

    if (!l->ended || l->engines > 0)
        return VT_OK;
    if (!later) {
        window_let_go(&r->window, req);
        return VT_OK;
    }
    rc = vt_grow(&later->over, &later->cap_over, later->n_over + 1,
                 sizeof(*later->over), err);
    if (rc == VT_OK)
        later->over[later->n_over++] = req;
    return rc;
}

int run_part(struct sim_run *r, size_t req, struct vt_err *err)
{
    struct parting *p = r->from;
    int rc = vt_grow(&p->tag, &p->cap, p->n + 1, sizeof(*p->tag), err);

    if (rc == VT_OK)
        p->tag[p->n++] = req;
    return rc;
}

/* Those that left with the step before: this one has been noted. */
static int part_for_good(struct sim_run *r, struct vt_err *err)
{
    struct parting *p = r->from;
    int rc = VT_OK;

    for (size_t i = 0; i < p->n && rc == VT_OK; i++) {
        window_live(&r->window, p->tag[i])->engines--;
        rc = let_go_if_over(r, p->tag[i], err);
    }
    p->n = 0;
    return rc;
}

vt_ns run_due(const struct sim_run *r)
{
    vt_ns comes = source_due(&r->source), passes = clock_due(&r->clock);

    return passes < comes ? passes : comes;
}

int run_arrive(struct sim_run *r, vt_ns now, size_t *req, vt_ns *on, struct vt_err *err)
{
    struct live *l;
    int rc;

    if (clock_due(&r->clock) <= now) {
        if (!clock_work(&r->clock, req, on))
            *on = VT_NEVER;
        return VT_OK;
    }
    if ((rc = source_take(&r->source, req, err)))
        return rc;
    r->in_flight++;
    l = window_live(&r->window, *req);
    *l = (struct live){
        .arrival = now,
        .queue = -1,
        .concurrency = r->in_flight,
        .gaps = NO_GAPS,
    };
    if (r->keep_gaps && (rc = gaps_open(r, &l->gaps, err)))
        return rc;
    if (r->spec->patience && r->spec->patience[*req] != VT_NEVER &&
        (rc = vt_agenda_push(&r->leaving, now + r->spec->patience[*req], *req, err)))
        return rc;
    return clock_come(&r->clock, *req, window_work(&r->window, *req)->prompt_tokens,
                      r->in_flight, now, on, err);
}

static int tell_served(struct sim_run *r, size_t i, uint8_t finish, struct vt_err *err)
{
    const struct piece *p = window_piece(&r->window, i);
    const struct live *l = window_live(&r->window, i);
    const struct gaps *g = &r->gaps[l->gaps];
    struct vt_served s = {
        .workload = p->w,
        .req = window_work(&r->window, i),
        .index = i,
        .arrival_ns = l->arrival,
        .ttft_ns = l->tokens > 0 ? l->first - l->arrival : -1,
        .gap = g->gap,
        .gap_tokens = g->bursts ? g->tokens : NULL,
        /* The list may have been another's: what it had does not show. */
        .gap_running = g->n > 0 ? g->running : NULL,
        .gap_prefill = g->n > 0 ? g->prefill : NULL,
        .n_gaps = g->n,
        .output_tokens = l->tokens,
        .cached_tokens = l->cached,
        .concurrency = l->concurrency,
        .preemptions = l->preemptions,
        .queue_ns = l->queue,
        .finish_reason = finish == VT_LENGTH    ? "length"
                         : finish == VT_ABORTED ? "abort"
                                                : "stop",
        .instance = r->spec->fleet ? &l->instance : NULL,
    };

    return r->spec->sink->request(r->spec->sink->user, &s, err);
}

/* Who is kept by a client counts by when he was to come. */
static inline bool is_counted(const struct sim_run *r, const struct live *l, size_t i)
{
    const struct vt_sim_spec *s = r->spec;
    vt_ns due;

    if (r->counts_all)
        return true;
    due = s->held_to > 0 ? window_work(&r->window, i)->arrival_ns : l->arrival;
    return due >= s->count_from && (s->count_until == 0 || due < s->count_until);
}

int run_book_end(struct sim_run *r, const struct run_end *e, struct vt_err *err)
{
    int rc = r->tell_requests ? tell_served(r, e->req, e->how, err) : VT_OK;

    if (r->keep_gaps)
        r->spare_gaps[r->n_spare++] = window_live(&r->window, e->req)->gaps;
    r->finished++;
    r->in_flight--;
    return rc ? rc : source_ended(&r->source, e->req, e->end_ns, e->pause, err);
}

int run_hang_up(struct sim_run *r, size_t *req, struct vt_err *err)
{
    vt_ns now = r->leaving.due[0].at;
    size_t i = r->leaving.due[0].item, lost;
    struct live *l = window_live(&r->window, i);
    int rc;

    vt_agenda_remove(&r->leaving, 0);
    *req = SIZE_MAX;
    if (l->ended)
        return VT_OK;
    l->ended = true;
    if (l->engines > 0) /* else a frontend has it */
        *req = i;
    if (r->tell_requests && (rc = tell_served(r, i, VT_ABORTED, err)))
        return rc;
    if (r->keep_gaps)
        r->spare_gaps[r->n_spare++] = l->gaps;
    r->in_flight--;
    rc = source_dropped(&r->source, i, now, &lost, err);
    r->finished += 1 + lost;
    return rc;
}

static int leave_for_later(struct sim_run *r, struct run_end *e, struct vt_err *err)
{
    struct run_later *l = r->later;
    int rc = vt_grow(&l->end, &l->cap_ends, l->n_ends + 1, sizeof(*l->end), err);

    e->due = l->due;
    e->order = (uint32_t)l->n_ends;
    r->finished++;
    if (rc == VT_OK)
        l->end[l->n_ends++] = *e;
    return rc;
}

static int end_request(struct sim_run *r, size_t i, uint8_t how,
                       const struct vt_step_plan *p, struct vt_err *err)
{
    struct live *l = window_live(&r->window, i);
    struct run_end e = {
        .end_ns = l->last + r->post_ns, .req = i, .instance = r->instance, .how = how};
    struct vt_timing t = {
        .arrival_ns = l->arrival,
        .ttft_ns = l->first - l->arrival,
        .e2e_ns = e.end_ns - l->arrival,
        .queue_ns = l->queue,
        .prompt_tokens = window_work(&r->window, i)->prompt_tokens,
        .cached_tokens = l->cached,
        .output_tokens = l->tokens,
    };
    int rc = is_counted(r, l, i) ? vt_timings_add(r->timings, &t, err) : VT_OK;

    l->ended = true;
    e.pause = clock_pause(&r->clock, r->model, p->n, i, t.prompt_tokens);
    if (rc || (rc = run_part(r, i, err)))
        return rc;
    /* To BLIS's clients a request ends with its step, whatever its tokens and its end
     * take beyond that. */
    if (r->spec->engine.compat == VT_COMPAT_BLIS)
        e.end_ns = r->step_done_ns;
    return r->later ? leave_for_later(r, &e, err) : run_book_end(r, &e, err);
}

/* ---- steps ------------------------------------------------------------ */

static int note_row(struct sim_run *r, const struct vt_row *row,
                    const struct vt_step_plan *p, struct vt_err *err)
{
    struct live *l = window_live(&r->window, row->tag);
    vt_ns at = row->at + r->clock.out_ns;
    int rc = VT_OK;

    /* Messages stay in order, but for one that starts over: BLIS's tokens leave later
     * than its clock, by what each of them took outside the steps. */
    if (at < l->last && !row->first)
        at = l->last;
    if (row->first) {
        if (l->tokens > 0) { /* starts over (BLIS): takes its gaps back */
            struct gaps *g = &r->gaps[l->gaps];

            rc = run_flush_gaps(r, err);
            for (uint32_t i = 0; i < g->n && rc == VT_OK && is_counted(r, l, row->tag);
                 i++)
                rc = vt_timings_ungap(r->timings, g->gap[i], err);
            g->n = 0;
            l->tokens = 0;
        }
        l->first = at;
    } else {
        vt_ns gap = at - l->last;
        bool counted = is_counted(r, l, row->tag);

        if (counted && gap != r->same_gap) {
            rc = run_flush_gaps(r, err);
            r->same_gap = gap;
        }
        r->n_same_gaps += counted;
        if (r->keep_gaps && rc == VT_OK)
            rc = gaps_add(r, &r->gaps[l->gaps], gap, row->new_tokens, p, err);
    }
    l->last = at;
    l->tokens += row->new_tokens;
    if (row->finish != VT_RUNNING_ON && rc == VT_OK)
        rc = end_request(r, row->tag, row->finish, p, err);
    return rc;
}

static void note_admissions(struct sim_run *r, const struct vt_step *s)
{
    const struct vt_step_plan *p = s->plan;

    for (uint32_t i = 0; p->n_prefills > 0 && i < p->n; i++) {
        struct live *l;

        if (p->item[i].origin != VT_NEW)
            continue;
        l = window_live(&r->window, p->item[i].tag);
        if (l->queue < 0)
            l->queue = s->sched_ns - l->arrival;
    }
    for (uint32_t i = 0; i < p->n_preempted; i++)
        window_live(&r->window, p->preempted[i])->preemptions++;
    for (uint32_t i = 0; !r->kv_given && i < s->n_first; i++)
        window_live(&r->window, s->first[i].tag)->cached = s->first[i].cached_tokens;
}

static int tell_step(struct sim_run *r, const struct vt_step *s, struct vt_err *err)
{
    const struct vt_step_plan *p = s->plan;
    struct vt_step_line line = {
        .step = s->number,
        .sched_ns = s->sched_ns,
        .sched_end_ns = s->sched_end_ns,
        .out_ns = s->out_ns,
        .done_ns = s->done_ns,
        .decodes = p->n_decodes,
        .decode_ctx = p->decode_ctx,
        .waiting = p->waiting,
        .running = p->running,
        .kv_usage = p->kv_usage,
        .n_preempted = p->n_preempted,
        .instance = r->spec->fleet ? &r->instance : NULL,
    };
    int rc;

    if ((rc = vt_grow(&r->prefill, &r->cap_prefill, p->n_prefills, sizeof(*r->prefill),
                      err)) ||
        (rc = vt_grow(&r->preempted, &r->cap_preempted, p->n_preempted,
                      sizeof(*r->preempted), err)))
        return rc;
    for (uint32_t i = 0; i < p->n; i++) {
        const struct vt_item *it = &p->item[i];

        if (it->prefill)
            r->prefill[line.n_prefill++] =
                (struct vt_step_prefill){window_work(&r->window, it->tag)->id,
                                         it->computed, it->tokens, it->known};
    }
    for (uint32_t i = 0; i < p->n_preempted; i++)
        r->preempted[i] = window_work(&r->window, p->preempted[i])->id;
    line.prefill = r->prefill;
    line.preempted = r->preempted;
    return r->spec->sink->step(r->spec->sink->user, &line, err);
}

int run_note_step(struct sim_run *r, const struct vt_step *s, struct vt_err *err)
{
    int rc = VT_OK;

    note_admissions(r, s);
    if (r->spec->sink && r->spec->sink->step && s->plan->n > 0)
        rc = tell_step(r, s, err);
    return rc ? rc : part_for_good(r, err);
}

int run_take_step(struct sim_run *r, const struct vt_step *s, struct vt_err *err)
{
    int rc = run_note_step(r, s, err);

    clock_step(&r->clock, s);
    r->step_done_ns = s->done_ns;
    for (uint32_t i = 0; i < s->n_rows && rc == VT_OK; i++)
        rc = note_row(r, &s->row[i], s->plan, err);
    return rc;
}

/* ---- the run ---------------------------------------------------------- */

int run_look_up(const struct sim_run *r, vt_ns now, struct vt_err *err)
{
    const struct vt_sim_sink *sink = r->spec->sink;

    if (sink && sink->progress)
        sink->progress(sink->user, r->finished, r->w->n, now);
    if (r->spec->stopped && r->spec->stopped(r->spec->user))
        return vt_fail(err, VT_ECHECK, "stopped after %zu of %zu requests", r->finished,
                       r->w->n);
    return vt_stopped(err);
}

static int run_one(struct sim_run *r, struct vt_engine_totals *t, struct vt_err *err)
{
    enum { LOOK_EVERY = 8192 };
    const struct vt_sim_spec *spec = r->spec;
    int rc;

    r->model = spec->model;
    r->post_ns = vt_ns_from_us(spec->model->post_us);
    r->from = &r->parting;
    /* Before anything runs all requests are checked, so that no result is half-made. */
    if ((rc = run_check_requests(r->w, &spec->engine, err)) ||
        (rc = vt_engine_new(&r->engine, &spec->engine, spec->model, err)))
        return rc;
    for (uint64_t n = 1; r->finished < r->w->n && rc == VT_OK; n++) {
        vt_ns arrival = run_due(r), due = vt_engine_due(r->engine), on;
        vt_ns leaves = run_leaves(r);
        const struct vt_step *done;
        struct vt_request q;
        size_t i;

        if (leaves < arrival && leaves < due) {
            rc = run_hang_up(r, &i, err);
            if (i != SIZE_MAX) /* it may have ended with a step that is under way */
                (void)vt_engine_abort(r->engine, leaves, i);
            continue;
        }
        if (arrival == VT_NEVER && due == VT_NEVER)
            return vt_fail(err, VT_EINPUT, "%zu of %zu requests can't be scheduled",
                           r->w->n - r->finished, r->w->n);
        if (arrival <= due) {
            if ((rc = run_arrive(r, arrival, &i, &on, err)))
                return rc;
            if (on == VT_NEVER || run_is_over(r, i))
                continue;
            q = run_hand_over(r, i);
            q.arrival = window_live(&r->window, i)->arrival;
            rc = vt_engine_add(r->engine, on, &q, err);
            continue;
        }
        rc = vt_engine_step(r->engine, due, &done, err);
        if (rc == VT_OK && done)
            rc = run_take_step(r, done, err);
        if (n % LOOK_EVERY == 0 && rc == VT_OK)
            rc = run_look_up(r, due, err);
    }
    *t = vt_engine_totals(r->engine);
    return rc;
}

static int open_run(struct sim_run *r, struct vt_err *err)
{
    const struct vt_sim_spec *spec = r->spec;
    int rc;

    r->tell_requests = spec->sink && spec->sink->request;
    r->counts_all = spec->count_from <= 0 && spec->count_until == 0;
    r->keep_gaps = r->tell_requests || spec->engine.compat == VT_COMPAT_BLIS;
    r->same_gap = -1;
    clock_open(&r->clock, spec);
    if ((rc = vt_timings_new(&r->timings, err)) ||
        (rc = window_open(&r->window, spec->workload, err)))
        return rc;
    return source_init(&r->source, spec, &r->window, err);
}

static void close_run(struct sim_run *r)
{
    for (size_t i = 0; i < r->n_gaps; i++) {
        free(r->gaps[i].gap);
        free(r->gaps[i].tokens);
        free(r->gaps[i].running);
        free(r->gaps[i].prefill);
    }
    free(r->gaps);
    free(r->spare_gaps);
    free(r->parting.tag);
    vt_agenda_free(&r->leaving);
    free(r->prefill);
    free(r->preempted);
    clock_close(&r->clock);
    source_free(&r->source);
    window_close(&r->window);
    vt_engine_free(r->engine);
    vt_timings_free(r->timings);
}

int vt_sim_run(const struct vt_sim_spec *spec, struct vt_summary *out,
               struct vt_err *err)
{
    struct sim_run r = {.spec = spec, .w = spec->workload};
    struct vt_engine_totals t = {0};
    bool blis = spec->engine.compat == VT_COMPAT_BLIS;
    int rc, ended;

    if (spec->patience && (vt_workload_streamed(r.w) || r.w->forked ||
                           (spec->fleet && spec->fleet->prefill_instances > 0)))
        return vt_fail(
            err, VT_EINPUT,
            "clients that hang up: not with streamed workloads, sessions that "
            "are trees, or prefill and decode apart");
    if ((rc = open_run(&r, err)))
        goto out;
    ended = spec->fleet ? fleet_simulate(&r, &t, err) : run_one(&r, &t, err);
    rc = ended == VT_ECHECK ? VT_OK : ended;
    if (rc || (rc = run_flush_gaps(&r, err)))
        goto out;
    *out = (struct vt_summary){
        .vllm = blis ? 0 : spec->engine.vllm,
        .extent = t.extent,
        .preemptions = t.preemptions,
        .steps = t.steps,
        .kv_usage_peak = t.kv_usage_peak,
        .prefix_hit_rate =
            t.cache_queries > 0 ? (double)t.cache_hits / (double)t.cache_queries : 0.0,
        .offloads = spec->engine.offload.num_cpu_blocks > 0,
        .host_hit_rate = t.cache_queries > 0
                             ? (double)t.offload.found / (double)t.cache_queries
                             : 0.0,
        .offload = t.offload,
    };
    if (!blis)
        vt_kv_groups_text(&spec->engine, out->kv_groups, sizeof(out->kv_groups));
    /* BLIS counts from zero to its last event, not to the last token out. */
    rc = vt_timings_summarise(r.timings, blis ? t.last_ns : 0, out, err);
    rc = rc == VT_OK ? ended : rc;
out:
    close_run(&r);
    return rc;
}

/* data.c - captures to rows: one for each step, one or two for each request. */
#include "fit/regress/regress.h"

#include <math.h>

const char *const vt_regress_names[] = {"alpha, QUEUED to SCHEDULED",
                                        "arrive, ARRIVED to QUEUED", "beta, a step"};
const char *const vt_rule_names[] = {"", "warm-up", "preemption", "stall", "aborted"};

/* A step is a stall if it took so many times as long as the median of its like, of
 * which there must be so many. */
static const double STALL = 3;
enum { LEAST_LIKE = 20 };

int vt_regress_data_new(struct vt_regress_data **out, uint32_t warmup,
                        struct vt_err *err)
{
    struct vt_regress_data *d = calloc(1, sizeof(*d));

    *out = d;
    if (!d)
        return vt_nomem(err);
    d->warmup = warmup;
    return VT_OK;
}

void vt_regress_data_free(struct vt_regress_data *d)
{
    if (!d)
        return;
    for (size_t t = 0; t < VT_REGRESS_TARGETS; t++)
        free(d->table[t].row);
    free(d->capture);
    vt_arena_free(&d->arena);
    free(d);
}

size_t vt_regress_data_rows(const struct vt_regress_data *d, enum vt_regress_target t)
{
    return d->table[t].n;
}

void regress_values(double v[VT_FEATURES], const struct vt_regress_data *d,
                    const struct regress_row *r)
{
    memcpy(v, d->capture[r->capture].engine, VT_FEATURES * sizeof(*v));
    memcpy(v, r->v, sizeof(r->v));
}

static int add_row(struct vt_regress_data *d, enum vt_regress_target t,
                   const struct regress_row *r, struct vt_err *err)
{
    struct regress_table *to = &d->table[t];
    int rc = vt_grow(&to->row, &to->cap, to->n + 1, sizeof(*r), err);

    if (rc != VT_OK)
        return rc;
    to->row[to->n++] = *r;
    d->capture[r->capture].n[t]++;
    return VT_OK;
}

/* ---- steps ---------------------------------------------------------------- */

/* What the tracer said of that step; NULL: nothing. */
static const struct vt_otlp_batch *batch_of(const struct vt_otlp_capture *c,
                                            uint64_t step)
{
    size_t lo = 0, hi = c ? c->n_batches : 0;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (c->batch[mid].step < step)
            lo = mid + 1;
        else
            hi = mid;
    }
    return c && lo < c->n_batches && c->batch[lo].step == step ? &c->batch[lo] : NULL;
}

static struct vt_step_batch batch_from(const struct vt_step_line *s,
                                       const struct vt_otlp_batch *told,
                                       uint32_t num_gpu_blocks)
{
    struct vt_step_batch b = {
        .prefills = s->n_prefill,
        .decodes = s->decodes,
        .decode_tokens = s->decodes,
        .decode_context = (double)s->decode_ctx,
        .kv_ratio = s->kv_usage,
        .kv_blocks = num_gpu_blocks > 1 ? s->kv_usage * (num_gpu_blocks - 1.0) : 0,
        .running = s->running,
        .waiting = s->waiting,
    };

    for (uint32_t i = 0; i < s->n_prefill; i++) {
        b.prefill_tokens += s->prefill[i].tokens;
        b.prefill_context += s->prefill[i].tokens *
                             (s->prefill[i].computed + 0.5 * s->prefill[i].tokens);
    }
    /* Drafts are scheduled tokens, too. */
    if (told && told->tokens > b.prefill_tokens + b.decodes && b.decodes > 0)
        b.decode_tokens = told->tokens - b.prefill_tokens;
    if (told && told->blocks > 0 && told->free_blocks <= told->blocks)
        b.kv_blocks = told->blocks - told->free_blocks;
    return b;
}

static int add_steps(struct vt_regress_data *d, uint32_t capture,
                     const struct vt_regress_engine *e, const struct vt_steps *steps,
                     const struct vt_otlp_capture *spans, struct vt_err *err)
{
    vt_ns before = INT64_MIN;
    int rc = VT_OK;

    for (size_t i = 0; i < steps->n && rc == VT_OK; i++) {
        const struct vt_step_line *s = &steps->step[i];
        struct vt_step_batch b =
            batch_from(s, batch_of(spans, s->step), e->num_gpu_blocks);
        struct regress_row r = {
            .capture = capture, .step = s->step, .arrive_us = NAN, .handoff_us = NAN};
        double v[VT_FEATURES] = {0};
        vt_ns from = s->sched_ns > before ? s->sched_ns : before;

        before = s->out_ns;
        if (s->out_ns <= from || b.prefill_tokens + b.decodes == 0)
            continue;
        vt_features_of_step(v, &b);
        memcpy(r.v, v, sizeof(r.v));
        r.y_us = 1e-3 * (double)(s->out_ns - from);
        r.left_out = i < d->warmup        ? VT_ROW_WARMUP
                     : s->n_preempted > 0 ? VT_ROW_PREEMPTION
                                          : VT_ROW_KEPT;
        rc = add_row(d, VT_REGRESS_STEP, &r, err);
    }
    return rc;
}

/* ---- stalls --------------------------------------------------------------- */

struct like {
    uint64_t key;
    double y;
    size_t row;
};

static uint64_t magnitude(double x) /* 0, 1, 2-3, 4-7, ... */
{
    return x < 1 ? 0 : 1 + (uint64_t)ilogb(x);
}

static int by_key(const void *pa, const void *pb)
{
    const struct like *a = pa, *b = pb;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    if (a->y < b->y || a->y > b->y)
        return a->y < b->y ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

/* Alike are steps of a capture with as many prompts, and with tokens of prompts and
 * decoding requests of the same power of two. */
static int find_stalls(struct vt_regress_data *d, const struct regress_capture *c,
                       struct vt_err *err)
{
    size_t n = c->n[VT_REGRESS_STEP], kept = 0;
    struct regress_row *row;
    struct like *like;

    if (n == 0)
        return VT_OK;
    row = d->table[VT_REGRESS_STEP].row + c->first[VT_REGRESS_STEP];
    like = malloc((n + 1) * sizeof(*like));
    if (!like)
        return vt_nomem(err);
    for (size_t i = 0; i < n; i++)
        if (row[i].left_out == VT_ROW_KEPT)
            like[kept++] =
                (struct like){(uint64_t)row[i].v[VT_F_NUM_PREFILL] << 16 |
                                  magnitude(row[i].v[VT_F_PREFILL_TOKENS]) << 8 |
                                  magnitude(row[i].v[VT_F_NUM_DECODE]),
                              row[i].y_us, i};
    qsort(like, kept, sizeof(*like), by_key);
    for (size_t from = 0, to; from < kept; from = to) {
        double median;

        for (to = from; to < kept && like[to].key == like[from].key; to++)
            ;
        median = like[from + (to - from) / 2].y;
        for (size_t i = from; i < to && to - from >= LEAST_LIKE; i++)
            if (like[i].y > STALL * median)
                row[like[i].row].left_out = VT_ROW_STALL;
    }
    free(like);
    return VT_OK;
}

/* ---- requests -------------------------------------------------------------- */

/* The scheduler's last word before that time; NULL: it had said nothing. */
static const struct vt_otlp_batch *state_at(const struct vt_otlp_capture *c, vt_ns at)
{
    size_t lo = 0, hi = c->n_batches;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (c->batch[mid].start_ns <= at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo > 0 ? &c->batch[lo - 1] : NULL;
}

static double us_between(vt_ns from, vt_ns to)
{
    return from == VT_NEVER || to == VT_NEVER ? NAN : 1e-3 * (double)(to - from);
}

static uint32_t most_running(const struct vt_otlp_capture *c)
{
    uint32_t most = 1;

    for (size_t i = 0; i < c->n_batches; i++)
        most = c->batch[i].running > most ? c->batch[i].running : most;
    return most;
}

static struct regress_row request_row(const struct vt_journey *j,
                                      const struct vt_otlp_batch *state, double seats)
{
    struct regress_row r = {.arrive_us = us_between(j->arrived_ns, j->handoff_ns),
                            .handoff_us = us_between(j->handoff_ns, j->queued_ns)};

    r.v[VT_F_PROMPT_TOKENS] = j->prompt_tokens;
    r.v[VT_F_PREFIX_HIT_RATIO] =
        j->prompt_tokens > 0 ? (double)j->cached_tokens / j->prompt_tokens : 0;
    if (!state)
        return r;
    r.v[VT_F_QUEUE_DEPTH] = state->waiting;
    r.v[VT_F_RUNNING_DEPTH] = state->running;
    r.v[VT_F_KV_RATIO] = state->kv_usage;
    r.v[VT_F_BATCH_FULLNESS] = state->running / seats;
    r.v[VT_F_SINCE_SCHED_MS] = 1e-6 * (double)(j->queued_ns - state->start_ns);
    return r;
}

static int add_request(struct vt_regress_data *d, const struct regress_row *like,
                       const struct vt_journey *j, struct vt_err *err)
{
    struct regress_row r = *like;
    int rc = VT_OK;

    r.y_us = us_between(j->queued_ns, j->scheduled_ns);
    if (r.y_us >= 0)
        rc = add_row(d, VT_REGRESS_QUEUE, &r, err);
    r.y_us = us_between(j->arrived_ns, j->queued_ns);
    /* Without the API server's span arrival is the queueing itself. */
    if (rc == VT_OK && (r.y_us > 0 || (r.y_us >= 0 && j->handoff_ns != VT_NEVER)))
        rc = add_row(d, VT_REGRESS_ARRIVE, &r, err);
    return rc;
}

static int add_requests(struct vt_regress_data *d, uint32_t capture,
                        const struct vt_regress_engine *e,
                        const struct vt_otlp_capture *c, struct vt_err *err)
{
    double seats = e->max_num_seqs > 0 ? e->max_num_seqs : most_running(c);
    vt_ns warm = c->n_batches > d->warmup ? c->batch[d->warmup].start_ns : INT64_MIN;
    int rc = VT_OK;

    for (size_t i = 0; i < c->n_journeys && rc == VT_OK; i++) {
        const struct vt_journey *j = &c->journey[i];
        struct regress_row r;

        if (j->queued_ns == VT_NEVER)
            continue;
        r = request_row(j, state_at(c, j->queued_ns), seats);
        r.capture = capture;
        r.step = i;
        r.left_out = j->queued_ns < warm  ? VT_ROW_WARMUP
                     : j->preemptions > 0 ? VT_ROW_PREEMPTION
                     : j->finish && strcmp(j->finish, "aborted") == 0 ? VT_ROW_ABORTED
                                                                      : VT_ROW_KEPT;
        rc = add_request(d, &r, j, err);
    }
    return rc;
}

/* ---- captures --------------------------------------------------------------- */

static const char *attention_of(const struct vt_arch *a)
{
    if (!a)
        return "";
    if (a->kv_lora_rank > 0)
        return "MLA";
    return a->kv_heads == 1 && a->heads > 1 ? "MQA"
           : a->kv_heads < a->heads         ? "GQA"
                                            : "MHA";
}

int vt_regress_data_add(struct vt_regress_data *d, const char *name,
                        const struct vt_regress_engine *e, const struct vt_steps *steps,
                        const struct vt_otlp_capture *spans, struct vt_err *err)
{
    uint32_t number = (uint32_t)d->n;
    struct regress_capture *c;
    int rc = vt_grow(&d->capture, &d->cap, d->n + 1, sizeof(*c), err);

    if (rc != VT_OK)
        return rc;
    c = &d->capture[d->n++];
    *c = (struct regress_capture){.tp = e->tp, .attention = attention_of(e->arch)};
    for (size_t t = 0; t < VT_REGRESS_TARGETS; t++)
        c->first[t] = d->table[t].n;
    vt_features_of_engine(c->engine, e->arch, e->hardware, e->tp);
    if ((rc = vt_arena_text(&d->arena, name, &c->name, err)) ||
        (rc = vt_arena_text(&d->arena, e->model ? e->model : "", &c->model, err)) ||
        (rc = vt_arena_text(&d->arena, e->gpu ? e->gpu : "", &c->gpu, err)) ||
        (steps && (rc = add_steps(d, number, e, steps, spans, err))) ||
        (rc = find_stalls(d, &d->capture[number], err)))
        return rc;
    return spans ? add_requests(d, number, e, spans, err) : VT_OK;
}

/* match_load.c - one load: what was measured of it, and the same of a simulation. */
#include "fit/match.h"
#include "report/report.h"
#include "sim/sim.h"

#include <math.h>

/* ---- numbers ------------------------------------------------------------ */

enum sample { TTFT, TPOT, ITL, E2E, N_SAMPLES };
enum stat { MEAN, P10, P50, P90, P99 };
enum { FEW = 10, ENOUGH_FOR_P99 = 50, ENOUGH_IN_CLASS = 5 };

/* What of each sample counts, and how much, if there are enough of them. Means and 99th
 * percentiles are what a prediction is judged by; quantiles between them are not moved
 * by a stall. The first ones are named in match.h. */
static const struct {
    enum sample of;
    enum stat stat;
    double weight;
    size_t enough;
} numbers[] = {
    [MATCH_TTFT] = {TTFT, MEAN, 1, 1},
    [MATCH_TTFT_P99] = {TTFT, P99, 0.5, ENOUGH_FOR_P99},
    [MATCH_ITL] = {ITL, MEAN, 1, 1},
    [MATCH_ITL_P99] = {ITL, P99, 0.5, ENOUGH_FOR_P99},
    [MATCH_E2E] = {E2E, MEAN, 1, 1},
    [MATCH_E2E_P99] = {E2E, P99, 0.5, ENOUGH_FOR_P99},
    [MATCH_SPAN] = {E2E, MEAN, 1, 1}, /* from the first arrival to the last token */
    {TTFT, P10, 0.5, FEW},
    {TTFT, P50, 1, 1},
    {TTFT, P90, 1, FEW},
    {TPOT, P10, 0.5, FEW},
    {TPOT, P50, 1, 1},
    {TPOT, P90, 1, FEW},
    {ITL, P50, 1, 1},
    {ITL, P90, 0.5, FEW},
    {E2E, P50, 1, 1},
    {E2E, P90, 1, FEW},
};
enum { N_STATS = VT_COUNT(numbers), CLASS_0 = N_STATS };
_Static_assert((int)N_STATS + (int)MATCH_CLASSES <= (int)MATCH_NUMBERS, "room for all");

struct samples {
    double *v[N_SAMPLES];
    size_t n[N_SAMPLES], cap[N_SAMPLES];
    double class_sum[MATCH_CLASSES];
    size_t class_n[MATCH_CLASSES];
    vt_ns first, last;         /* arrival, output */
    double decode_ms, decoded; /* over all requests: time, tokens */
};

static int add_sample(struct samples *s, enum sample of, double ms, struct vt_err *err)
{
    int rc = vt_grow(&s->v[of], &s->cap[of], s->n[of] + 1, sizeof(*s->v[of]), err);

    if (rc == VT_OK)
        s->v[of][s->n[of]++] = ms;
    return rc;
}

struct seen { /* one request */
    vt_ns arrival, ttft, e2e;
    uint32_t output_tokens;
    const vt_ns *gap;
    uint32_t n_gaps;
};

static int add_request(struct samples *s, const struct match_load *l, size_t i,
                       const struct seen *q, struct vt_err *err)
{
    double ttft = (double)q->ttft / 1e6, e2e = (double)q->e2e / 1e6;
    int rc;

    if (s->first > q->arrival)
        s->first = q->arrival;
    if (s->last < q->arrival + q->e2e)
        s->last = q->arrival + q->e2e;
    if (l->left_out[i])
        return VT_OK;
    if ((rc = add_sample(s, TTFT, ttft, err)) || (rc = add_sample(s, E2E, e2e, err)))
        return rc;
    if (q->output_tokens > 1)
        rc = add_sample(s, TPOT, (e2e - ttft) / (q->output_tokens - 1), err);
    for (uint32_t k = 0; l->gaps_known && k < q->n_gaps && rc == VT_OK; k++)
        rc = add_sample(s, ITL, (double)q->gap[k] / 1e6, err);
    s->class_sum[l->class[i]] += ttft;
    s->class_n[l->class[i]]++;
    s->decode_ms += e2e - ttft;
    s->decoded += q->output_tokens > 0 ? q->output_tokens - 1 : 0;
    return rc;
}

static double stat_of(const struct samples *s, enum sample of, enum stat stat)
{
    static const double percent[] = {[P10] = 10, [P50] = 50, [P90] = 90, [P99] = 99};
    size_t n = s->n[of];
    double sum = 0;

    if (of == ITL && stat == MEAN) /* whole requests tell it, too */
        return s->decoded > 0 ? s->decode_ms / s->decoded : NAN;
    if (n == 0)
        return NAN;
    if (stat != MEAN)
        return vt_quantile(s->v[of], n, percent[stat]);
    for (size_t i = 0; i < n; i++)
        sum += s->v[of][i];
    return sum / (double)n;
}

static void sum_up(struct samples *s, struct match_numbers *out)
{
    for (size_t i = 0; i < MATCH_NUMBERS; i++)
        out->v[i] = NAN;
    for (enum sample of = TTFT; of < N_SAMPLES; of++)
        vt_sort_f64(s->v[of], s->n[of]);
    for (size_t i = 0; i < N_STATS; i++)
        if (i != MATCH_SPAN)
            out->v[i] = stat_of(s, numbers[i].of, numbers[i].stat);
    for (size_t i = 0; i < MATCH_CLASSES; i++)
        if (s->class_n[i] > 0)
            out->v[CLASS_0 + i] = s->class_sum[i] / (double)s->class_n[i];
    out->v[MATCH_SPAN] = (double)(s->last - s->first) / 1e6;
}

static void samples_free(struct samples *s)
{
    for (enum sample of = TTFT; of < N_SAMPLES; of++)
        free(s->v[of]);
}

/* ---- as measured -------------------------------------------------------- */

static void weigh(struct match_load *l, const struct samples *s)
{
    double sum = 0;

    for (size_t i = 0; i < MATCH_NUMBERS; i++) {
        double w = 0;

        if (i < N_STATS)
            w = s->n[numbers[i].of] >= numbers[i].enough || numbers[i].enough == 1
                    ? numbers[i].weight
                    : 0;
        else if (i < CLASS_0 + MATCH_CLASSES)
            w = s->class_n[i - CLASS_0] >= ENOUGH_IN_CLASS ? 0.7 : 0;
        l->weight[i] = isnan(l->measured.v[i]) ? 0 : w;
        sum += l->weight[i] * l->weight[i];
    }
    for (size_t i = 0; i < MATCH_NUMBERS; i++)
        l->weight[i] /= sqrt(sum);
}

int match_load_measure(struct match_load *l, struct vt_err *err)
{
    const struct vt_workload *w = l->w;
    struct samples s = {.first = VT_NEVER};
    int rc = VT_OK;

    for (size_t i = 0; i < w->n && rc == VT_OK; i++) {
        const struct vt_measured *m = &w->measured[i];
        struct seen q = {
            w->req[i].arrival_ns,  m->ttft_ns, m->e2e_ns, w->req[i].output_tokens,
            &w->gap[m->first_gap], m->n_gaps};

        rc = add_request(&s, l, i, &q, err);
    }
    if (rc == VT_OK) {
        sum_up(&s, &l->measured);
        weigh(l, &s);
    }
    samples_free(&s);
    return rc;
}

static int make_classes(struct match_load *l, struct vt_err *err)
{
    const struct vt_workload *w = l->w;
    double *length = malloc((w->n + 1) * sizeof(*length)), limit[MATCH_CLASSES];

    l->class = calloc(w->n + 1, 1);
    l->left_out = calloc(w->n + 1, sizeof(*l->left_out));
    if (!length || !l->class || !l->left_out) {
        free(length);
        return vt_nomem(err);
    }
    for (size_t i = 0; i < w->n; i++) {
        length[i] = w->req[i].prompt_tokens;
        l->mean_prompt += length[i] / (double)w->n;
    }
    vt_sort_f64(length, w->n);
    for (size_t k = 1; k < MATCH_CLASSES; k++)
        limit[k] = vt_quantile(length, w->n, 100.0 * (double)k / MATCH_CLASSES);
    for (size_t i = 0; i < w->n; i++)
        for (uint8_t k = 1; k < MATCH_CLASSES; k++)
            if (w->req[i].prompt_tokens > limit[k])
                l->class[i] = k;
    free(length);
    return VT_OK;
}

static int compare_ns(const void *a, const void *b)
{
    vt_ns x = *(const vt_ns *)a, y = *(const vt_ns *)b;

    return x < y ? -1 : x > y;
}

/* In a closed loop every arrival answers the ending just before it: the median of what
 * lies between, which a few late ones don't move. */
static int find_pause(struct match_load *l, struct vt_err *err)
{
    const struct vt_workload *w = l->w;
    vt_ns *end;
    double *pause;
    size_t n = 0;

    if (w->arrivals != VT_ARRIVALS_CLOSED)
        return VT_OK;
    end = malloc((w->n + 1) * sizeof(*end));
    pause = malloc((w->n + 1) * sizeof(*pause));
    for (size_t i = 0; end && i < w->n; i++)
        end[i] = w->req[i].arrival_ns + w->measured[i].e2e_ns;
    if (end)
        qsort(end, w->n, sizeof(*end), compare_ns);
    /* The i-th arrival after the first ones answers the i-th ending. */
    for (size_t i = w->concurrency; end && pause && i < w->n; i++)
        pause[n++] = fmax((double)(w->req[i].arrival_ns - end[i - w->concurrency]), 0);
    if (n > 0) {
        vt_sort_f64(pause, n);
        l->pause_us = vt_quantile(pause, n, 50) / 1e3;
    }
    free(pause);
    free(end);
    return end && pause ? VT_OK : vt_nomem(err);
}

/* ---- what the prefix cache is of no use to ------------------------------- */

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* No two prompts begin alike. */
static int begin_apart(const struct vt_workload *w, bool *out, struct vt_err *err)
{
    uint64_t *first = malloc((w->n + 1) * sizeof(*first));

    *out = false;
    if (!first)
        return vt_nomem(err);
    for (size_t i = 0; i < w->n; i++) {
        const struct vt_segment *s = &w->segment[w->req[i].first_segment];

        first[i] = w->req[i].n_segments > 0 ? vt_hash2(s->content, s->offset) : i;
    }
    qsort(first, w->n, sizeof(*first), compare_u64);
    *out = true;
    for (size_t i = 1; i < w->n; i++)
        *out &= first[i] != first[i - 1];
    free(first);
    return VT_OK;
}

/* Where nothing is shared and nobody can lose a place, and so meet what it had computed
 * before, a simulation without the cache gives the same and costs less. */
static int go_without_cache(struct match_load *l, struct vt_err *err)
{
    const struct vt_workload *w = l->w;
    struct vt_engine_config *c = &l->engine;
    double at_once =
        w->concurrency > 0 && w->concurrency < w->n ? w->concurrency : (double)w->n;
    bool apart;
    int rc = begin_apart(w, &apart, err);

    if (rc == VT_OK && apart && c->n_kv_groups <= 1 &&
        w->arrivals != VT_ARRIVALS_SESSION &&
        at_once * (longest_request(w) + c->block_size) <
            ((double)c->num_gpu_blocks - 1) * c->block_size)
        c->enable_prefix_caching = false;
    return rc;
}

int match_load_open(struct match_load *l, const char *name, const struct vt_workload *w,
                    struct vt_err *err)
{
    int rc;

    *l = (struct match_load){.w = w};
    if (!w->measured || w->n == 0)
        return vt_fail(err, VT_EINPUT, "%s: no timings to fit", name);
    if ((rc = limits_engine(&l->engine, w, &l->shown, err)))
        return vt_within(err, rc, "%s", name);
    l->unlimited_blocks = l->engine.num_gpu_blocks;
    if (w->meta.num_gpu_blocks > 0 && (rc = go_without_cache(l, err)))
        return rc;
    l->gaps_known = tokens_are_timed(w);
    for (size_t i = 0; i < w->n; i++)
        l->cached |= w->measured[i].cached_tokens > 0;
    l->name = strdup(name);
    rc = l->name ? make_classes(l, err) : vt_nomem(err);
    if (rc || (rc = find_pause(l, err)) || (rc = match_load_measure(l, err)))
        match_load_close(l);
    return rc;
}

void match_load_close(struct match_load *l)
{
    free(l->name);
    free(l->class);
    free(l->left_out);
    *l = (struct match_load){0};
}

/* ---- as simulated ------------------------------------------------------- */

struct run {
    const struct match_load *l;
    struct samples s;
    struct match_ends *ends; /* NULL: nobody asks */
};

static int take_served(void *user, const struct vt_served *v, struct vt_err *err)
{
    struct run *r = user;
    struct seen q = {v->arrival_ns,    v->ttft_ns, v->ttft_ns,
                     v->output_tokens, v->gap,     v->n_gaps};

    for (uint32_t i = 0; i < v->n_gaps; i++)
        q.e2e += v->gap[i];
    if (r->ends)
        r->ends[v->index] =
            (struct match_ends){(double)q.ttft / 1e6, (double)q.e2e / 1e6};
    return add_request(&r->s, r->l, v->index, &q, err);
}

int match_load_run(const struct match_load *l, const struct vt_latency *model,
                   const struct vt_front *front, struct match_numbers *out,
                   struct match_ends *ends, struct vt_err *err)
{
    struct run r = {.l = l, .s = {.first = VT_NEVER}, .ends = ends};
    struct vt_sim_sink sink = {.user = &r, .request = take_served};
    struct vt_sim_spec spec = {.workload = l->w,
                               .engine = l->engine,
                               .model = model,
                               .arrivals = l->w->arrivals,
                               .concurrency = l->w->concurrency,
                               .cached_as_measured = l->cached,
                               .clock = VT_CLOCK_CLIENT,
                               .frontend = front,
                               .sink = &sink};
    struct vt_summary summary;
    int rc = vt_sim_run(&spec, &summary, err);

    if (rc == VT_OK)
        sum_up(&r.s, out);
    samples_free(&r.s);
    return limits_refuse(rc, err);
}

/* summary.c - what a run amounts to: vLLM's definitions first, then ours. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "load/summary.h"

void vt_load_asks_init(struct vt_load_asks *a)
{
    *a = (struct vt_load_asks){.percentile = {99},
                               .n_percentiles = 1,
                               .slo_ttft_ms = -1,
                               .slo_tpot_ms = -1,
                               .slo_e2el_ms = -1};
}

/* ---- distributions ----------------------------------------------------- */

/* Pairwise: a sum over millions keeps its digits. */
static double sum_of(const double *v, size_t n)
{
    double s = 0;

    if (n > 128)
        return sum_of(v, n / 2) + sum_of(v + n / 2, n - n / 2);
    for (size_t i = 0; i < n; i++)
        s += v[i];
    return s;
}

/* In: seconds; out: milliseconds, as vLLM turns the one into the other: last. */
void vt_load_dist_of(struct vt_load_dist *d, double *v, size_t n,
                     const struct vt_load_asks *a)
{
    *d = (struct vt_load_dist){.n = n};
    if (n == 0)
        return;
    d->mean = sum_of(v, n) / (double)n;
    vt_sort_f64(v, n);
    d->min = v[0] * 1e3;
    d->max = v[n - 1] * 1e3;
    d->median = n % 2 ? v[n / 2] * 1e3 : (v[n / 2 - 1] + v[n / 2]) / 2 * 1e3;
    d->p50 = vt_quantile(v, n, 50) * 1e3;
    d->p90 = vt_quantile(v, n, 90) * 1e3;
    d->p99 = vt_quantile(v, n, 99) * 1e3;
    for (size_t i = 0; i < a->n_percentiles; i++)
        d->p[i] = vt_quantile(v, n, a->percentile[i]) * 1e3;
    for (size_t i = 0; i < n; i++)
        v[i] = (v[i] - d->mean) * (v[i] - d->mean);
    d->std = sqrt(sum_of(v, n) / (double)n) * 1e3;
    d->mean *= 1e3;
}

/* ---- one request ------------------------------------------------------- */

static double seconds(vt_ns ns)
{
    return (double)ns / 1e9;
}

double vt_load_ttft_s(const struct vt_load_record *r)
{
    return r->first > 0 ? seconds(r->first - r->begun) : 0;
}

static double e2el_s(const struct vt_load_record *r, enum vt_load_backend b)
{
    vt_ns end = b == VT_LOAD_CHAT && r->last_event > r->last ? r->last_event : r->last;

    return end > 0 ? seconds(end - r->begun) : 0;
}

static double tpot_s(const struct vt_load_record *r, enum vt_load_backend b)
{
    if (r->output_tokens <= 1)
        return 0;
    return (e2el_s(r, b) - vt_load_ttft_s(r)) / (double)(r->output_tokens - 1);
}

/* ---- when tokens came ------------------------------------------------- */

/* A chat begins with an event that only names the role, and some servers end with one
 * that only says why: neither is a token. */
struct stamps stamps_of(const struct vt_load_record *q, enum vt_load_backend backend)
{
    struct stamps s = {.at = q->stamp, .n = q->n_stamps};

    if (backend == VT_LOAD_CHAT && s.n > q->output_tokens && s.n > 1 &&
        s.at[0] <= q->first_text) {
        s.at++;
        s.n--;
    }
    if (s.n == q->output_tokens + 1 && q->output_tokens > 0)
        s.n--;
    return s;
}

bool stamps_are_tokens(const struct stamps *s, const struct vt_load_record *q)
{
    return s->n > 0 && s->n <= q->output_tokens;
}

uint32_t stamps_tokens(const struct stamps *s, const struct vt_load_record *q,
                       uint32_t i)
{
    uint64_t all = q->output_tokens;

    return (uint32_t)(all * (i + 1) / s->n - all * i / s->n);
}

/* ---- vLLM's ----------------------------------------------------------- */

static bool is_good(const struct vt_load_record *q, const struct vt_load_asks *a)
{
    return q->ok &&
           (a->slo_ttft_ms < 0 || vt_load_ttft_s(q) <= a->slo_ttft_ms / 1000) &&
           (a->slo_tpot_ms < 0 || tpot_s(q, a->backend) <= a->slo_tpot_ms / 1000) &&
           (a->slo_e2el_ms < 0 || e2el_s(q, a->backend) <= a->slo_e2el_ms / 1000);
}

static void sum_up(struct vt_load_summary *s, const struct vt_load_records *r,
                   const struct vt_load_asks *a)
{
    double d = s->duration_s = seconds(r->end);
    size_t good = 0;

    for (size_t i = 0; i < r->n; i++) {
        const struct vt_load_record *q = &r->record[i];

        s->failures[q->failure]++;
        good += is_good(q, a);
        if (q->ok) {
            s->completed++;
            s->total_input += q->prompt_tokens;
            s->total_output += q->output_tokens;
            s->cached_tokens += q->cached_tokens;
        } else if (q->failure == VT_LOAD_STOPPED) {
            s->unfinished++;
        } else {
            s->failed++;
            if (!s->first_error)
                s->first_error = q->detail ? q->detail : q->error;
        }
    }
    if (!(d > 0))
        return;
    s->request_throughput = (double)s->completed / d;
    s->output_throughput = (double)s->total_output / d;
    s->total_throughput = (double)(s->total_input + s->total_output) / d;
    if (a->slo_ttft_ms >= 0 || a->slo_tpot_ms >= 0 || a->slo_e2el_ms >= 0)
        s->request_goodput = (double)good / d;
}

/* Peaks: of whole seconds since the first request began. */
static int find_peaks(struct vt_load_summary *s, const struct vt_load_records *r,
                      const struct vt_load_asks *a, struct vt_err *err)
{
    vt_ns from = VT_NEVER, to = 0;
    struct {
        uint64_t tokens;
        uint32_t requests;
    } *second;
    size_t n;

    for (size_t i = 0; i < r->n; i++) {
        const struct vt_load_record *q = &r->record[i];
        vt_ns end = q->begun + (vt_ns)(e2el_s(q, a->backend) * 1e9);

        if (q->ok && q->begun < from)
            from = q->begun;
        if (q->ok && end > to)
            to = end;
    }
    if (from == VT_NEVER)
        return VT_OK;
    n = (size_t)((to - from + VT_SEC - 1) / VT_SEC) + 1;
    second = calloc(n, sizeof(*second));
    if (!second)
        return vt_nomem(err);
    for (size_t i = 0; i < r->n; i++) {
        const struct vt_load_record *q = &r->record[i];
        vt_ns end = q->begun + (vt_ns)(e2el_s(q, a->backend) * 1e9);

        for (uint32_t k = 0; q->ok && k < q->n_stamps; k++)
            second[(q->stamp[k] - from) / VT_SEC].tokens++;
        for (vt_ns at = (q->begun - from) / VT_SEC;
             q->ok && at <= (end - from) / VT_SEC; at++)
            second[at].requests++;
    }
    for (size_t i = 0; i < n; i++) {
        if ((double)second[i].tokens > s->max_output_per_s)
            s->max_output_per_s = (double)second[i].tokens;
        if (second[i].requests > s->max_concurrent)
            s->max_concurrent = second[i].requests;
    }
    free(second);
    return VT_OK;
}

/* ---- latencies -------------------------------------------------------- */

static double latency_of(const struct vt_load_record *q, enum load_latency what,
                         enum vt_load_backend b)
{
    switch (what) {
    case LOAD_TTFT:
        return vt_load_ttft_s(q);
    case LOAD_TPOT:
        return q->output_tokens > 1 ? tpot_s(q, b) : NAN;
    case LOAD_E2EL:
        return e2el_s(q, b);
    case LOAD_TTFT_PLANNED:
        return q->first > 0 ? seconds(q->first - q->planned) : NAN;
    case LOAD_TTFT_SENT:
        return q->first > 0 ? seconds(q->first - q->sent) : NAN;
    case LOAD_TEXT_SENT:
        return q->first_text > 0 ? seconds(q->first_text - q->sent) : NAN;
    case LOAD_E2EL_PLANNED:
        return e2el_s(q, b) + seconds(q->begun - q->planned);
    default:
        return seconds(q->begun - q->planned);
    }
}

void load_spread(struct vt_load_dist *d, const struct vt_load_records *r,
                 const struct load_slice *s, const struct vt_load_asks *a,
                 enum load_latency what, double *v)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n; i++) {
        const struct vt_load_record *q = &r->record[i];

        if (!q->ok || !(s->all_turns || q->turn == s->turn) || q->begun < s->from ||
            q->begun >= s->to)
            continue;
        if (what == LOAD_ITL) {
            for (uint32_t k = 1; k < q->n_stamps; k++)
                v[n++] = seconds(q->stamp[k] - q->stamp[k - 1]);
        } else {
            v[n] = latency_of(q, what, a->backend);
            n += isnan(v[n]) ? 0 : 1;
        }
    }
    vt_load_dist_of(d, v, n, a);
}

double *load_room(const struct vt_load_records *r)
{
    size_t n = r->n + r->n_probes + 1;

    for (size_t i = 0; i < r->n; i++)
        n += r->record[i].n_stamps;
    return malloc(n * sizeof(double));
}

/* ---- the part at full concurrency ------------------------------------- */

struct edge {
    vt_ns at;
    int change;
};

static int by_time(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->change - y->change; /* ends before starts */
}

static bool find_window(struct vt_load_steady *s, const struct vt_load_records *r,
                        vt_ns *from, vt_ns *to)
{
    struct edge *edge = malloc((r->n > 0 ? r->n : 1) * 2 * sizeof(*edge));
    uint32_t level = 0;
    size_t n = 0;

    if (!edge)
        return false; /* no window: all else stays true */
    *from = *to = -1;
    for (size_t i = 0; i < r->n; i++) {
        edge[n++] = (struct edge){r->record[i].begun, 1};
        edge[n++] = (struct edge){r->record[i].ended, -1};
    }
    qsort(edge, n, sizeof(*edge), by_time);
    for (size_t i = 0; i < n; i++) {
        bool above = level >= s->threshold;

        level += (uint32_t)edge[i].change;
        if (level > s->observed_peak)
            s->observed_peak = level;
        if (level >= s->threshold && *from < 0)
            *from = edge[i].at;
        if (above && level < s->threshold)
            *to = edge[i].at;
    }
    free(edge);
    return *from >= 0 && *to > *from;
}

/* With a limit and no rate, a run begins with a rush and ends with a tail that is half
 * empty; both tell little of a server under that load. The window goes from the first
 * moment at which 95 % of the places are taken to the last one at which they are. */
static void find_steady(struct vt_load_steady *s, const struct vt_load_records *r,
                        const struct vt_load_asks *a, double *v)
{
    struct load_slice window;
    vt_ns from, to;

    if (a->steady_concurrency == 0)
        return;
    s->target = a->steady_concurrency;
    s->threshold = (uint32_t)ceil(0.95 * (double)a->steady_concurrency);
    s->found = find_window(s, r, &from, &to);
    if (!s->found)
        return;
    s->start_s = (double)from / 1e9;
    s->end_s = (double)to / 1e9;
    s->duration_s = (double)(to - from) / 1e9;
    s->is_short = to - from < 10 * VT_SEC || to - from < r->end / 10;
    for (size_t i = 0; i < r->n; i++) {
        const struct vt_load_record *q = &r->record[i];
        bool started = q->ok && q->begun >= from && q->begun < to;

        s->completed += q->ok && q->ended >= from && q->ended < to;
        s->started += started;
        s->input_tokens += started ? q->prompt_tokens : 0;
        for (uint32_t k = 0; q->ok && k < q->n_stamps; k++)
            s->tokens += q->stamp[k] >= from && q->stamp[k] < to;
    }
    window = (struct load_slice){.all_turns = true, .from = from, .to = to};
    load_spread(&s->ttft, r, &window, a, LOAD_TTFT, v);
    load_spread(&s->tpot, r, &window, a, LOAD_TPOT, v);
    s->request_throughput = (double)s->completed / s->duration_s;
    s->input_throughput = (double)s->input_tokens / s->duration_s;
    s->output_throughput = (double)s->tokens / s->duration_s;
}

static int sum_latencies(struct vt_load_summary *s, const struct vt_load_records *r,
                         const struct vt_load_asks *a, struct vt_err *err)
{
    struct vt_load_dist *const to[] = {
        [LOAD_TTFT] = &s->ttft,
        [LOAD_TPOT] = &s->tpot,
        [LOAD_ITL] = &s->itl,
        [LOAD_E2EL] = &s->e2el,
        [LOAD_TTFT_PLANNED] = &s->ttft_planned,
        [LOAD_TTFT_SENT] = &s->ttft_sent,
        [LOAD_TEXT_SENT] = &s->ttft_text,
        [LOAD_E2EL_PLANNED] = &s->e2el_planned,
        [LOAD_WAITED] = &s->waited,
    };
    const struct load_slice whole_run = {
        .all_turns = true, .from = INT64_MIN, .to = INT64_MAX};
    struct vt_load_dist probes;
    double *v = load_room(r);

    if (!v)
        return vt_nomem(err);
    for (size_t i = 0; i < VT_COUNT(to); i++)
        load_spread(to[i], r, &whole_run, a, (enum load_latency)i, v);
    find_steady(&s->steady, r, a, v);
    for (size_t i = 0; i < r->n_probes; i++)
        v[i] = seconds(r->probe[i]);
    vt_load_dist_of(&probes, v, r->n_probes, a);
    s->probe_median_ms = probes.median;
    s->probe_p99_ms = probes.p99;
    s->probe_max_ms = probes.max;
    s->probe_completed = r->n_probes;
    s->probe_failed = r->probes_failed;
    free(v);
    return VT_OK;
}

int vt_load_summarize(struct vt_load_summary *s, const struct vt_load_records *r,
                      const struct vt_load_asks *a, struct vt_err *err)
{
    int rc;

    *s = (struct vt_load_summary){.peak_concurrency = r->peak_concurrency};
    sum_up(s, r, a);
    rc = find_peaks(s, r, a, err);
    return rc == VT_OK ? sum_latencies(s, r, a, err) : rc;
}

/* crossval.c - leave one capture out, fit on the others, predict it. */
#include "fit/internal.h"
#include "report/report.h"
#include "sim/sim.h"

#include <math.h>

void vt_crossval_fill(struct vt_crossval_row *row, const struct vt_summary *predicted,
                      const struct vt_summary *measured)
{
    const struct vt_summary *p = predicted, *m = measured;

    row->e2e = percent_off(p->e2e.mean, m->e2e.mean);
    row->ttft = percent_off(p->ttft.mean, m->ttft.mean);
    row->ttft_p99 = percent_off(p->ttft.p99, m->ttft.p99);
    row->itl = percent_off(p->itl.mean, m->itl.mean);
    row->itl_p99 = percent_off(p->itl.p99, m->itl.p99);
    row->throughput = percent_off(p->req_per_s, m->req_per_s);
}

static double cached_share(const struct vt_summary *s)
{
    return s->prompt_tokens > 0 ? (double)s->cached_tokens / (double)s->prompt_tokens
                                : 0;
}

double vt_unanswered_percent(const struct vt_workload *w)
{
    return 100 * (double)w->n_unanswered / (double)(w->n + w->n_unanswered);
}

/* Beyond this, %, requests waited longer than a simulation explains. */
static const double WAITED_LONGER = -30;

/* Simulates what the trace asked for, and compares with what it measured. */
static int predict_by(struct vt_sim_spec *spec, const struct vt_summary *real,
                      struct vt_crossval_row *row, struct vt_err *err)
{
    struct vt_summary sim = {0};
    int rc;

    spec->cached_as_measured = false;
    if ((rc = vt_sim_run(spec, &sim, err)))
        return limits_refuse(rc, err);
    row->foreign_hits = 100 * (cached_share(real) - cached_share(&sim));
    if (row->foreign_hits >
        VT_FOREIGN_HITS) { /* what came before is not in the trace */
        spec->cached_as_measured = true;
        if ((rc = vt_sim_run(spec, &sim, err)))
            return limits_refuse(rc, err);
    }
    vt_crossval_fill(row, &sim, real);
    return VT_OK;
}

/* The same with limits that the trace does not state, but that show in what waited. */
static int predict_limited(struct vt_sim_spec *spec, const struct limits *shown,
                           const struct vt_summary *real, struct vt_crossval_row *row,
                           struct vt_err *err)
{
    struct vt_crossval_row limited = *row;
    int rc;

    if (shown->seats > 0)
        spec->engine.max_num_seqs = limited.found_seqs = shown->seats;
    if (shown->tokens > 0) {
        limits_pool(&spec->engine,
                    fmax(shown->tokens, longest_request(spec->workload)));
        limited.found_blocks = spec->engine.num_gpu_blocks;
    }
    rc = predict_by(spec, real, &limited, err);
    if (rc == VT_OK && fabs(limited.ttft) < fabs(row->ttft))
        *row = limited;
    return rc;
}

static int predict(const struct capture *c, const struct vt_latency *model,
                   const struct vt_workload *trace, struct vt_crossval_row *row,
                   struct vt_err *err)
{
    struct vt_sim_spec spec = {.workload = trace,
                               .model = model,
                               .arrivals = trace->arrivals,
                               .concurrency = trace->concurrency};
    struct vt_summary real = {0};
    struct limits shown;
    int rc;

    if ((rc = limits_engine(&spec.engine, trace, &shown, err)) ||
        (rc = vt_summary_measured(&real, trace, err)))
        return rc;
    vt_engine_config_replay(&spec.engine, trace);
    /* A log is the engine's, whoever took the trace's times; without one these were
     * taken for the engine's own, and are predicted as such. */
    if (!c->rebuilt) {
        spec.clock = trace->meta.clock;
        spec.frontend = vt_front_find(VT_DEFAULT_FRONT);
    }
    row->block_size = spec.engine.block_size;
    row->unanswered = vt_unanswered_percent(trace);
    rc = predict_by(&spec, &real, row, err);
    if (rc == VT_OK && row->ttft < WAITED_LONGER && (shown.seats || shown.tokens > 0))
        rc = predict_limited(&spec, &shown, &real, row, err);
    return rc;
}

static int predict_calm(const struct capture *c, const struct vt_latency *model,
                        const struct vt_workload *trace, struct vt_crossval_row *row,
                        struct vt_err *err)
{
    struct vt_workload calm;
    int rc = clean_trace(c, trace, &calm, err);

    if (rc != VT_OK)
        return rc;
    rc = predict(c, model, &calm, row, err);
    clean_trace_free(&calm);
    return rc;
}

int vt_crossval_in_sample(struct vt_fit *f, size_t i, const char *model,
                          const struct vt_workload *trace, struct vt_crossval_row *row,
                          struct vt_crossval_row *calm, struct vt_err *err)
{
    const struct capture *c = &f->capture[i];
    struct vt_buf b = {0};
    struct vt_profile p = {0};
    int rc;

    clean_captures(f);
    /* By way of the profile that it would be written to. */
    vt_buf_printf(&b, "{\"name\": \"fitted\", \"model\": %s}", model);
    rc = b.failed ? vt_nomem(err) : vt_profile_parse(&p, "fitted", b.data, b.len, err);
    vt_buf_free(&b);
    if (rc != VT_OK)
        return rc;
    *row = (struct vt_crossval_row){.name = c->name};
    rc = predict(c, p.model, trace, row, err);
    if (calm)
        *calm = *row;
    if (rc == VT_OK && calm && c->n_stalls > 0)
        rc = predict_calm(c, p.model, trace, calm, err);
    vt_profile_close(&p);
    return vt_within(err, rc, "%s", c->name);
}

int vt_crossval_one(struct vt_fit *f, size_t i, const struct vt_workload *trace,
                    struct vt_crossval_row *row, struct vt_crossval_row *calm,
                    struct vt_err *err)
{
    struct vt_step_params params;
    struct vt_buf model = {0};
    int rc = capture_without(f, i, &params, err);

    if (rc != VT_OK)
        return rc;
    vt_fit_step_model(&model, &params);
    rc = model.failed ? vt_nomem(err)
                      : vt_crossval_in_sample(f, i, model.data, trace, row, calm, err);
    vt_buf_free(&model);
    return rc;
}

/* ---- over all --------------------------------------------------------- */

static double *error_at(struct vt_crossval_row *r, enum vt_trust i)
{
    double *const all[VT_TRUSTS] = {&r->e2e, &r->ttft,    &r->ttft_p99,
                                    &r->itl, &r->itl_p99, &r->throughput};

    return all[i];
}

double vt_crossval_at(const struct vt_crossval_row *r, enum vt_trust i)
{
    struct vt_crossval_row copy = *r;

    return *error_at(&copy, i);
}

/* One column of them. v: room for n numbers. */
static void sum_column(const struct vt_crossval_row *row, size_t n, enum vt_trust k,
                       double *v, double *median, double *mean)
{
    size_t known = 0;

    for (size_t i = 0; i < n; i++)
        if (!isnan(vt_crossval_at(&row[i], k)))
            v[known++] = vt_crossval_at(&row[i], k);
    *mean = known > 0 || n == 0 ? 0 : NAN;
    for (size_t i = 0; i < known; i++) {
        *mean += v[i] / (double)known;
        v[i] = fabs(v[i]);
    }
    vt_sort_f64(v, known);
    *median = known > 0 || n == 0 ? vt_quantile(v, known, 50) : NAN;
}

void vt_crossval_sum(const struct vt_crossval_row *row, size_t n,
                     struct vt_crossval_row *median, struct vt_crossval_row *mean)
{
    double *room = malloc((n + 1) * sizeof(*room));

    *median = (struct vt_crossval_row){.name = "median size"};
    *mean = (struct vt_crossval_row){.name = "mean"};
    for (enum vt_trust k = VT_TRUST_E2E; k < VT_TRUSTS && room; k++)
        sum_column(row, n, k, room, error_at(median, k), error_at(mean, k));
    free(room);
}

/* Of n exchangeable errors the k-th smallest is above a next one with a chance of k in
 * n + 1, so that is the k to take; between two of them, in proportion. */
double vt_covering(double *v, size_t n)
{
    static const double COVERED = 0.83;

    vt_sort_f64(v, n);
    return n > 1   ? vt_quantile(v, n,
                                 100 * (COVERED * (double)(n + 1) - 1) / (double)(n - 1))
           : n > 0 ? v[0]
                   : NAN;
}

void vt_crossval_expect(const struct vt_crossval_row *row, size_t n,
                        struct vt_crossval_row *expected)
{
    enum { FEWEST = 3 }; /* the largest of fewer is kept in less than 75 % */
    double *room = malloc((n + 1) * sizeof(*room));

    *expected = (struct vt_crossval_row){.name = "expected"};
    for (enum vt_trust k = VT_TRUST_E2E; k < VT_TRUSTS; k++) {
        size_t known = 0;

        for (size_t i = 0; room && i < n; i++)
            if (!isnan(vt_crossval_at(&row[i], k)))
                room[known++] = fabs(vt_crossval_at(&row[i], k));
        *error_at(expected, k) = known >= FEWEST ? vt_covering(room, known) : NAN;
    }
    free(room);
}

/* ---- verdict ----------------------------------------------------------- */

/* A second run of the same load differs by 4, 5, 5 and 1 % in the middle and by 9, 13,
 * 9 and 3 at worst: what is wrong by twice the worst, and tails apart, is not noise. */
static const struct limit {
    const char *what;
    double most;
} limits[] = {{"E2E", 20}, {"TTFT", 40}, {"ITL", 20}, {"req/s", 15}};

bool vt_crossval_bad(const struct vt_crossval_row *median, char *why, size_t cap)
{
    const double error[] = {median->e2e, median->ttft, median->itl, median->throughput};

    *why = '\0';
    for (size_t i = 0; i < VT_COUNT(limits); i++)
        if (!(error[i] <= limits[i].most)) { /* NaN too */
            (void)snprintf(why, cap, "%s is off by %.0f %%, and %.0f is the most",
                           limits[i].what, error[i], limits[i].most);
            return true;
        }
    return false;
}

/* ---- for people ------------------------------------------------------- */

void vt_crossval_head(struct vt_buf *b, int width)
{
    vt_buf_printf(b, "%-*s %8s %8s %8s %8s %8s %8s\n", width, "", "E2E", "TTFT",
                  "TTFT p99", "ITL", "ITL p99", "req/s");
}

void vt_crossval_put(struct vt_buf *b, int width, const struct vt_crossval_row *r,
                     const char *note)
{
    vt_buf_printf(b, "%-*s", width, r->name);
    for (enum vt_trust k = VT_TRUST_E2E; k < VT_TRUSTS; k++) {
        double e = vt_crossval_at(r, k);

        if (isnan(e))
            vt_buf_printf(b, " %8s", "-");
        else
            vt_buf_printf(b, " %+8.1f", e);
    }
    vt_buf_printf(b, "%s\n", note);
}

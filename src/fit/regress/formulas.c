/* formulas.c - what the formulas make of a capture's requests, beside what was measured
 * and what the simulation makes of them. */
#include "fit/regress/regress.h"
#include "report/report.h"
#include "sim/sim.h"

#include <math.h>

enum { QUEUE, TTFT, ITL, E2E, ROWS };
enum { MEASURED, FORMULA, SIMULATED, COLUMNS };

struct samples { /* milliseconds */
    double *v;
    size_t n, cap;
};

struct formulas {
    const struct vt_formulas *f;
    const struct vt_otlp_capture *c;
    size_t capture;
    struct samples of[COLUMNS][ROWS];
    /* Of each step: when it began (after the one before had ended), and the sum of what
     * is predicted of all steps before it. */
    vt_ns *began;
    double *sum_us; /* n + 1 */
    size_t next_row;
};

static int add_sample(struct formulas *x, int column, int row, double ms,
                      struct vt_err *err)
{
    struct samples *s = &x->of[column][row];
    int rc = vt_grow(&s->v, &s->cap, s->n + 1, sizeof(*s->v), err);

    if (rc == VT_OK)
        s->v[s->n++] = ms;
    return rc;
}

/* ---- steps ------------------------------------------------------------------ */

/* Rows of the data set, in order; steps that gave none count nothing. */
static int sum_steps(struct formulas *x, struct vt_err *err)
{
    const struct vt_regress_data *d = x->f->data;
    const struct regress_capture *own = &d->capture[x->capture];
    const struct regress_row *row =
        d->table[VT_REGRESS_STEP].row + own->first[VT_REGRESS_STEP];
    size_t n = x->c->steps.n, r = 0;
    vt_ns before = INT64_MIN;

    x->began = malloc((n + 1) * sizeof(*x->began));
    x->sum_us = malloc((n + 1) * sizeof(*x->sum_us));
    if (!x->began || !x->sum_us)
        return vt_nomem(err);
    x->sum_us[0] = 0;
    for (size_t i = 0; i < n; i++) {
        const struct vt_step_line *s = &x->c->steps.step[i];
        double v[VT_FEATURES], us = 0;

        if (r < own->n[VT_REGRESS_STEP] && row[r].step == s->step) {
            regress_values(v, d, &row[r++]);
            us = vt_regress_predict(x->f->step, v);
        }
        x->began[i] = s->sched_ns > before ? s->sched_ns : before;
        before = s->out_ns;
        x->sum_us[i + 1] = x->sum_us[i] + us;
    }
    return VT_OK;
}

/* The first step that began, or was scheduled, at that time or later. */
static size_t first_began(const struct formulas *x, vt_ns at)
{
    size_t lo = 0, hi = x->c->steps.n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (x->began[mid] < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static size_t first_scheduled(const struct formulas *x, vt_ns at)
{
    size_t lo = 0, hi = x->c->steps.n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (x->c->steps.step[mid].sched_end_ns < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static double sum_between(const struct formulas *x, size_t from, size_t to)
{
    return to > from ? x->sum_us[to] - x->sum_us[from] : 0;
}

/* ---- requests ----------------------------------------------------------------- */

static double predict_of(const struct formulas *x, const struct vt_regress *r,
                         enum vt_regress_target t, size_t journey, double otherwise)
{
    const struct vt_regress_data *d = x->f->data;
    const struct regress_capture *own = &d->capture[x->capture];
    const struct regress_row *row = d->table[t].row + own->first[t];
    size_t lo = 0, hi = own->n[t];
    double v[VT_FEATURES];

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (row[mid].step < journey)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (!r || lo == own->n[t] || row[lo].step != journey)
        return otherwise;
    regress_values(v, d, &row[lo]);
    return vt_regress_predict(r, v);
}

static bool is_whole(const struct vt_journey *j)
{
    return j->arrived_ns != VT_NEVER && j->queued_ns != VT_NEVER &&
           j->scheduled_ns != VT_NEVER && j->first_token_ns != VT_NEVER &&
           j->finished_ns != VT_NEVER && j->output_tokens > 0;
}

static double ms(vt_ns from, vt_ns to)
{
    return 1e-6 * (double)(to - from);
}

static int add_journey(struct formulas *x, size_t i, struct vt_err *err)
{
    const struct vt_journey *j = &x->c->journey[i];
    double queue = 1e-3 * (predict_of(x, x->f->queue, VT_REGRESS_QUEUE, i, 0) +
                           predict_of(x, x->f->arrive, VT_REGRESS_ARRIVE, i, 0));
    size_t first = first_scheduled(x, j->scheduled_ns),
           decode = first_began(x, j->first_token_ns),
           end = first_began(x, j->finished_ns);
    double ttft = queue + 1e-3 * sum_between(x, first, decode), itl, tokens;
    int rc;

    if ((rc =
             add_sample(x, MEASURED, QUEUE, ms(j->arrived_ns, j->scheduled_ns), err)) ||
        (rc = add_sample(x, FORMULA, QUEUE, queue, err)) ||
        (rc = add_sample(x, MEASURED, TTFT, ms(j->arrived_ns, j->first_token_ns),
                         err)) ||
        (rc = add_sample(x, FORMULA, TTFT, ttft, err)) ||
        (rc = add_sample(x, MEASURED, E2E, ms(j->arrived_ns, j->finished_ns), err)))
        return rc;
    if (j->output_tokens < 2)
        return add_sample(x, FORMULA, E2E, ttft, err);
    /* The mean of its decode steps over the tokens that it gets of each. */
    tokens = j->output_tokens - 1.0;
    itl = 1e-3 * sum_between(x, decode, end) / tokens;
    if ((rc = add_sample(x, MEASURED, ITL,
                         ms(j->first_token_ns, j->finished_ns) / tokens, err)) ||
        (rc = add_sample(x, FORMULA, ITL, itl, err)))
        return rc;
    return add_sample(x, FORMULA, E2E, ttft + tokens * itl, err);
}

/* ---- the simulation -------------------------------------------------------------- */

static int take_served(void *user, const struct vt_served *s, struct vt_err *err)
{
    struct formulas *x = user;
    vt_ns decode = 0;
    int rc;

    for (uint32_t i = 0; i < s->n_gaps; i++)
        decode += s->gap[i];
    if ((rc = add_sample(x, SIMULATED, QUEUE, ms(0, s->queue_ns), err)) ||
        (rc = add_sample(x, SIMULATED, TTFT, ms(0, s->ttft_ns), err)) ||
        (rc = add_sample(x, SIMULATED, E2E, ms(0, s->ttft_ns + decode), err)))
        return rc;
    return s->output_tokens < 2
               ? VT_OK
               : add_sample(x, SIMULATED, ITL, ms(0, decode) / (s->output_tokens - 1.0),
                            err);
}

static int simulate(struct formulas *x, struct vt_err *err)
{
    const struct vt_workload *w = &x->c->work;
    struct vt_sim_sink sink = {.request = take_served, .user = x};
    struct vt_sim_spec spec = {.workload = w,
                               .arrivals = w->arrivals,
                               .concurrency = w->concurrency,
                               .cached_as_measured = true,
                               .sink = &sink};
    struct vt_summary ignored = {0};
    struct limits shown;
    struct vt_profile p;
    struct vt_buf text = {0};
    int rc;

    vt_buf_printf(&text, "{\"name\": \"regression\", \"model\": %s}", x->f->model);
    rc = text.failed ? vt_nomem(err)
                     : vt_profile_parse(&p, "regression", text.data, text.len, err);
    vt_buf_free(&text);
    if (rc != VT_OK)
        return rc;
    spec.model = p.model;
    if (!(rc = limits_engine(&spec.engine, w, &shown, err))) {
        vt_engine_config_replay(&spec.engine, w);
        rc = limits_refuse(vt_sim_run(&spec, &ignored, err), err);
    }
    vt_profile_close(&p);
    return rc;
}

/* ---- the table ---------------------------------------------------------------------
 */

static void put_cell(struct vt_buf *b, const struct samples *s, double p)
{
    double v = 0;

    for (size_t i = 0; p < 0 && i < s->n; i++)
        v += s->v[i] / (double)s->n;
    if (s->n == 0)
        vt_buf_printf(b, " %11s", "-");
    else
        vt_buf_printf(b, " %11.3f", p < 0 ? v : vt_quantile(s->v, s->n, p));
}

static void put_table(struct vt_buf *b, struct formulas *x)
{
    static const char *const names[] = {"queue", "TTFT", "ITL", "E2E"};
    static const struct {
        const char *name;
        double p; /* -1: the mean */
    } parts[] = {{"mean", -1}, {"p50", 50}, {"p99", 99}};

    vt_buf_printf(b, "%s: %zu requests, ms\n", x->c->name, x->of[MEASURED][QUEUE].n);
    vt_buf_printf(b, "  %-12s %11s %11s %11s\n", "", "measured", "formula",
                  "simulated");
    for (int r = 0; r < ROWS; r++) {
        for (int c = 0; c < COLUMNS; c++)
            vt_sort_f64(x->of[c][r].v, x->of[c][r].n);
        for (size_t k = 0; k < VT_COUNT(parts); k++) {
            vt_buf_printf(b, "  %-5s %-6s", names[r], parts[k].name);
            for (int c = 0; c < COLUMNS; c++)
                put_cell(b, &x->of[c][r], parts[k].p);
            vt_buf_char(b, '\n');
        }
    }
}

int vt_formulas_put(struct vt_buf *b, const struct vt_formulas *f, size_t capture,
                    const struct vt_otlp_capture *c, struct vt_err *err)
{
    struct formulas x = {.f = f, .c = c, .capture = capture};
    int rc = sum_steps(&x, err);

    for (size_t i = 0; i < c->n_journeys && rc == VT_OK; i++)
        if (is_whole(&c->journey[i]))
            rc = add_journey(&x, i, err);
    if (rc == VT_OK && c->work.n > 0)
        rc = simulate(&x, err);
    if (rc == VT_OK && x.of[MEASURED][QUEUE].n > 0)
        put_table(b, &x);
    for (int i = 0; i < COLUMNS; i++)
        for (int k = 0; k < ROWS; k++)
            free(x.of[i][k].v);
    free(x.began);
    free(x.sum_us);
    return rc;
}

/* match.c - a model by simulation: residuals, the search, cross-validation, refusals.
 */
#include "fit/match.h"
#include "report/report.h"

#include <math.h>

/* Times below this are as good as equal, ms. */
static const double LEAST_MS = 0.05;
/* Errors beyond this, of the logarithm, count less and less. */
static const double SOFT = 0.1;
/* A simulation has steps: slopes are taken over so much of a logarithm, coarse first.
 */
static const double slopes[] = {0.1, 0.03, 0.01, 0.003};
enum { MOST_STEPS = 30 };

/* ---- loads -------------------------------------------------------------- */

int vt_match_new(struct vt_match **out, const struct vt_fit_shape *shape,
                 struct vt_err *err)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return vt_nomem(err);
    (*out)->shape = *shape;
    return VT_OK;
}

void vt_match_free(struct vt_match *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n; i++)
        match_load_close(&m->load[i]);
    free(m->load);
    free(m);
}

int vt_match_add(struct vt_match *m, const char *name, const struct vt_workload *w,
                 struct vt_err *err)
{
    int rc = vt_grow(&m->load, &m->cap, m->n + 1, sizeof(*m->load), err);

    if (rc == VT_OK)
        rc = match_load_open(&m->load[m->n], name, w, err);
    if (rc == VT_OK)
        m->n++;
    return rc;
}

/* ---- one fit ------------------------------------------------------------ */

struct attempt { /* one kind of model on some of the loads */
    const struct vt_match *m;
    const struct match_kind *kind;
    struct match_hints hints;
    struct match_term term[MATCH_TERMS];
    size_t n_terms;
    const double *load_weight; /* 0: left out */
    double x[MATCH_TERMS];     /* logarithms */
    double cost;
    struct vt_err err; /* of a simulation that failed */
};

static int open_model(const struct match_kind *k, const struct match_hints *h,
                      const double *x, size_t n, struct vt_profile *p,
                      struct vt_err *err)
{
    double value[MATCH_TERMS];
    struct vt_buf b = {0};
    int rc;

    for (size_t i = 0; i < n; i++)
        value[i] = exp(x[i]);
    vt_buf_str(&b, "{\"name\": \"matched\", \"model\": ");
    k->write(h, value, &b);
    vt_buf_str(&b, "}");
    rc = b.failed ? vt_nomem(err) : vt_profile_parse(p, "matched", b.data, b.len, err);
    vt_buf_free(&b);
    return rc;
}

static int simulate(struct attempt *a, const double *x, size_t load,
                    struct match_numbers *out, struct vt_summary *summary,
                    struct vt_err *err)
{
    const struct match_load *l = &a->m->load[load];
    struct vt_profile p;
    int rc = open_model(a->kind, &a->hints, x, a->n_terms, &p, err);

    if (rc != VT_OK)
        return rc;
    p.model->turnaround_us = l->pause_us;
    rc = match_load_run(l, p.model, out, summary, err);
    vt_profile_close(&p);
    return rc;
}

static double softened(double e)
{
    double a = e / SOFT;

    return copysign(SOFT * sqrt(2 * (sqrt(1 + a * a) - 1)), e);
}

static double error_of(double simulated, double measured)
{
    return log((simulated + LEAST_MS) / (measured + LEAST_MS));
}

static void residuals(void *user, const double *x, double *r)
{
    struct attempt *a = user;
    size_t n = 0;

    for (size_t i = 0; i < a->m->n; i++) {
        const struct match_load *l = &a->m->load[i];
        struct match_numbers s;
        bool failed;

        if (a->load_weight[i] <= 0)
            continue;
        failed = a->err.code != VT_OK || simulate(a, x, i, &s, NULL, &a->err) != VT_OK;
        for (size_t k = 0; k < MATCH_NUMBERS; k++)
            r[n++] = l->weight[k] <= 0 ? 0
                     : failed          ? 10
                                       : l->weight[k] * a->load_weight[i] *
                                    softened(error_of(s.v[k], l->measured.v[k]));
    }
    for (size_t i = 0; i < a->n_terms; i++)
        r[n++] = a->term[i].pull * (x[i] - log(a->term[i].start));
}

static size_t n_residuals(const struct attempt *a)
{
    size_t n = a->n_terms;

    for (size_t i = 0; i < a->m->n; i++)
        n += a->load_weight[i] > 0 ? MATCH_NUMBERS : 0;
    return n;
}

static int solve(struct attempt *a, struct vt_err *err)
{
    struct lm_problem lm = {.m = a->n_terms,
                            .n = n_residuals(a),
                            .residuals = residuals,
                            .user = a,
                            .max_steps = MOST_STEPS,
                            .tolerance = 1e-2,
                            .most_damping = 100};
    int rc = VT_OK;

    a->err = (struct vt_err){0};
    for (size_t i = 0; i < VT_COUNT(slopes) && rc == VT_OK; i++) {
        lm.step = slopes[i];
        rc = lm_solve(&lm, a->x, &a->cost, err);
    }
    if (rc == VT_OK && a->err.code != VT_OK)
        rc = vt_fail(err, a->err.code, "%s", a->err.msg);
    return rc;
}

/* ---- a first look ------------------------------------------------------- */

static struct match_hints look(const struct vt_match *m)
{
    struct match_hints h = {
        .itl_us = INFINITY, .ttft_us = INFINITY, .shape = &m->shape};

    for (size_t i = 0; i < m->n; i++) {
        const struct vt_summary *s = m->load[i].summary;
        double tokens = (double)s->prompt_tokens / (double)s->requests;

        if (s->tpot.n > 0)
            h.itl_us = fmin(h.itl_us, 1e3 * s->tpot.p50);
        if (1e3 * s->ttft.p50 >= h.ttft_us)
            continue;
        h.ttft_us = 1e3 * s->ttft.p50;
        h.token_us = 0.5 * h.ttft_us / fmax(tokens, 1);
    }
    if (!isfinite(h.itl_us) || h.itl_us <= 0)
        h.itl_us = fmax(h.ttft_us, 1);
    return h;
}

static void attempt_init(struct attempt *a, const struct vt_match *m,
                         const struct match_kind *k, const double *load_weight)
{
    *a = (struct attempt){
        .m = m, .kind = k, .hints = look(m), .load_weight = load_weight};
    a->n_terms = k->terms(&a->hints, a->term);
    for (size_t i = 0; i < a->n_terms; i++)
        a->x[i] = log(a->term[i].start);
}

/* ---- errors as people read them ----------------------------------------- */

static double percent(double predicted, double measured)
{
    return measured > 0 ? 100 * (predicted / measured - 1) : 0;
}

static int judge_load(struct attempt *a, size_t i, struct vt_crossval_row *row,
                      struct vt_err *err)
{
    const struct vt_summary *real = a->m->load[i].summary;
    struct match_numbers unused;
    struct vt_summary sim = {0};
    int rc = simulate(a, a->x, i, &unused, &sim, err);

    *row = (struct vt_crossval_row){
        .name = a->m->load[i].name,
        .e2e = percent(sim.e2e.mean, real->e2e.mean),
        .ttft = percent(sim.ttft.mean, real->ttft.mean),
        .ttft_p99 = percent(sim.ttft.p99, real->ttft.p99),
        .itl = percent(sim.itl.mean, real->itl.mean),
        .itl_p99 = a->m->load[i].gaps_known ? percent(sim.itl.p99, real->itl.p99) : 0,
        .throughput = percent(sim.req_per_s, real->req_per_s),
    };
    return rc;
}

/* What a set of errors amounts to: of two kinds of model the smaller one stays. */
static double badness(const struct vt_crossval_row *r)
{
    return fabs(r->e2e) + fabs(r->ttft) + fabs(r->itl) + fabs(r->throughput) +
           0.3 * (fabs(r->ttft_p99) + fabs(r->itl_p99));
}

/* ---- leave one out ------------------------------------------------------ */

static int cross_validate(const struct attempt *whole, struct vt_crossval_row *row,
                          struct vt_err *err)
{
    const struct vt_match *m = whole->m;
    double *weight = malloc((m->n + 1) * sizeof(*weight));
    int rc = weight ? VT_OK : vt_nomem(err);

    for (size_t i = 0; i < m->n && rc == VT_OK; i++) {
        struct attempt a = *whole;

        memcpy(weight, whole->load_weight, m->n * sizeof(*weight));
        weight[i] = 0;
        a.load_weight = weight;
        if ((rc = solve(&a, err)) == VT_OK)
            rc = judge_load(&a, i, &row[i], err);
    }
    free(weight);
    return rc;
}

/* ---- all of it ---------------------------------------------------------- */

struct search {
    const struct vt_match *m;
    const struct vt_match_options *o;
    double *load_weight;
    struct vt_crossval_row *row; /* of the kind that is tried */
    struct attempt best;
    double least;
};

static int try_kind(struct search *s, const struct match_kind *k,
                    struct vt_match_result *r, struct vt_err *err)
{
    struct vt_crossval_row median, mean;
    struct attempt a;
    double score;
    int rc;

    attempt_init(&a, s->m, k, s->load_weight);
    if ((rc = solve(&a, err)))
        return rc;
    if (!s->o->no_cv && s->m->n > 1) {
        if ((rc = cross_validate(&a, s->row, err)))
            return rc;
        vt_crossval_sum(s->row, s->m->n, &median, &mean);
        score = badness(&median);
    } else {
        score = a.cost;
    }
    if (score >= s->least)
        return VT_OK;
    s->least = score;
    s->best = a;
    for (size_t i = 0; i < s->m->n; i++)
        r->load[i].out = s->row[i];
    return VT_OK;
}

static int finish(struct search *s, struct vt_match_result *r, struct vt_err *err)
{
    struct vt_crossval_row unused;
    double value[MATCH_TERMS];
    int rc = VT_OK;

    for (size_t i = 0; i < s->m->n && rc == VT_OK; i++) {
        rc = judge_load(&s->best, i, &r->load[i].in, err);
        s->row[i] = r->load[i].in;
    }
    vt_crossval_sum(s->row, s->m->n, &r->in, &unused);
    for (size_t i = 0; i < s->m->n; i++)
        s->row[i] = r->load[i].out;
    vt_crossval_sum(s->row, s->m->n, &r->out, &unused);
    for (size_t i = 0; i < s->best.n_terms; i++)
        value[i] = exp(s->best.x[i]);
    r->kind = s->best.kind->name;
    s->best.kind->write(&s->best.hints, value, &r->model);
    return rc != VT_OK ? rc : r->model.failed ? vt_nomem(err) : VT_OK;
}

int vt_match_solve(const struct vt_match *m, const struct vt_match_options *o,
                   struct vt_match_result *r, struct vt_err *err)
{
    struct search s = {.m = m, .o = o, .least = INFINITY};
    int rc = VT_OK;

    *r = (struct vt_match_result){.n = m->n};
    if (m->n == 0)
        return vt_fail(err, VT_EINPUT, "there are no loads to fit");
    r->load = calloc(m->n, sizeof(*r->load));
    s.row = calloc(m->n, sizeof(*s.row));
    s.load_weight = calloc(m->n, sizeof(*s.load_weight));
    if (!r->load || !s.row || !s.load_weight)
        rc = vt_nomem(err);
    for (size_t i = 0; i < m->n && rc == VT_OK; i++)
        s.load_weight[i] = 1;
    for (size_t i = 0; i < match_n_kinds && rc == VT_OK; i++) {
        const struct match_kind *k = &match_kinds[i];

        if (o->kind && strcmp(o->kind, k->name) != 0)
            continue;
        if (o->tell)
            o->tell(o->user, k->name, i, match_n_kinds);
        rc = try_kind(&s, k, r, err);
    }
    if (rc == VT_OK && !s.best.kind)
        rc = vt_fail(err, VT_EINPUT, "no kind of model '%s' can be matched", o->kind);
    if (rc == VT_OK)
        rc = finish(&s, r, err);
    free(s.row);
    free(s.load_weight);
    if (rc != VT_OK)
        vt_match_result_free(r);
    return rc;
}

int vt_match_check(const struct vt_match_result *r, struct vt_err *err)
{
    return r->refusal[0] ? vt_fail(err, VT_ECHECK, "%s", r->refusal) : VT_OK;
}

void vt_match_result_free(struct vt_match_result *r)
{
    free(r->load);
    vt_buf_free(&r->model);
    *r = (struct vt_match_result){0};
}

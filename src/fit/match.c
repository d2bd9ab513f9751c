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
static const double slopes[] = {0.1, 0.03, 0.01, 0.003, 0.1, 0.03, 0.01, 0.003};
static const double fine_slopes[] = {0.03, 0.01};
enum { MOST_STEPS = 30 };
/* What a slope has to win, of the cost. */
static const double WORTHWHILE = 0.01;
/* A kind whose cost is that many times the best one's is not cross-validated. */
static const double HOPELESS = 8;
/* A score as good as a second run of the same loads would have: what costs more to try
 * has nothing to win. */
static const double AS_GOOD_AS_CAN_BE = 4;
/* Of a load's errors in percent, together: more does not count. */
static const double FAR_OFF = 200;
/* A request that took e^0.5 times as long as its like was stalled, one whose first
 * token came in a third of the time was cached, unless more than such a share of the
 * load was. */
static const double STALL = 0.5, CACHED = 1.1, FEW_STALLED = 0.15;
/* A load is odd if errors (of logarithms) are larger than this, and without it the
 * others' cost falls below this share: of two odd ones each is about half of it. */
static const double UNLIKE = 0.12, LESS_WITHOUT = 0.65;
/* A pool that nobody states is there if with it the cost falls below this share. */
static const double FALLS_INTO_PLACE = 0.5;
/* Loads that differ less are alike. */
static const double VARIED = 1.5;
/* Percent; a second run of the same load differs by 4. */
static const double TOO_FAR = 15;

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
    double plain[MATCH_TERMS]; /* what hints point to, if to anything */
    struct vt_step_params rebuilt;
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
                    struct match_numbers *out, struct match_ends *ends,
                    struct vt_err *err)
{
    const struct match_load *l = &a->m->load[load];
    const struct vt_front front = {.name = "none",
                                   .client_us = l->pause_us,
                                   .read_us = a->m->read_us,
                                   .pass_us = a->m->pass_us};
    struct vt_profile p;
    int rc = open_model(a->kind, &a->hints, x, a->n_terms, &p, err);

    if (rc != VT_OK)
        return rc;
    rc = match_load_run(l, p.model, &front, out, ends, err);
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

static int solve(struct attempt *a, const double *slope, size_t n, struct vt_err *err)
{
    struct lm_problem lm = {.m = a->n_terms,
                            .n = n_residuals(a),
                            .residuals = residuals,
                            .user = a,
                            .max_steps = MOST_STEPS,
                            .tolerance = 1e-2,
                            .most_damping = 100};
    double before = INFINITY;
    int rc = VT_OK, in_vain = 0;

    a->err = (struct vt_err){0};
    /* The second half is a second try: it ends where two slopes won nothing. */
    for (size_t i = 0; i < n && (in_vain < 2 || i < n / 2) && rc == VT_OK; i++) {
        lm.step = slope[i];
        rc = lm_solve(&lm, a->x, &a->cost, err);
        in_vain = a->cost > (1 - WORTHWHILE) * before ? in_vain + 1 : 0;
        before = a->cost;
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
    double pauses = 0, loops = 0;

    for (size_t i = 0; i < m->n; i++) {
        const struct match_load *l = &m->load[i];
        double itl = 1e3 * l->measured.v[MATCH_ITL];
        double ttft = 1e3 * l->measured.v[MATCH_TTFT];

        if (itl > 0)
            h.itl_us = fmin(h.itl_us, itl);
        if (ttft < h.ttft_us) {
            h.ttft_us = ttft;
            h.token_us = 0.5 * ttft / l->mean_prompt;
        }
        if (l->w->arrivals == VT_ARRIVALS_CLOSED) {
            pauses += l->pause_us;
            loops++;
        }
    }
    h.pause_us = loops > 0 ? pauses / loops : 0;
    if (!isfinite(h.itl_us))
        h.itl_us = fmax(h.ttft_us, 1);
    return h;
}

/* Whose times all loads have; unstated: they differ. */
static enum vt_clock look_clock(const struct vt_match *m)
{
    enum vt_clock clock = m->load[0].w->meta.clock;

    for (size_t i = 1; i < m->n; i++)
        if (m->load[i].w->meta.clock != clock)
            clock = VT_CLOCK_UNSTATED;
    return clock;
}

/* Hints point into the attempt itself, which may have been copied. */
static void point_hints(struct attempt *a)
{
    a->hints.plain = a->kind->starts == MATCH_WIDER ? a->plain : NULL;
    a->hints.rebuilt = a->kind->starts == MATCH_REBUILT ? &a->rebuilt : NULL;
}

struct tried { /* what a kind came to */
    bool found;
    double x[MATCH_TERMS];
};

/* *found is false: the loads do not have what the kind starts from. `plainer` is of the
 * kind before it, if there is one. */
static int attempt_init(struct attempt *a, const struct vt_match *m,
                        const struct match_kind *k, const double *load_weight,
                        const struct tried *plainer, bool *found, struct vt_err *err)
{
    int rc = VT_OK;

    *a = (struct attempt){
        .m = m, .kind = k, .hints = look(m), .load_weight = load_weight};
    *found = true;
    if (k->starts == MATCH_REBUILT)
        rc = match_rebuild(m, load_weight, &a->rebuilt, found, err);
    if (rc != VT_OK || !*found)
        return rc;
    for (size_t i = 0; plainer && i < MATCH_TERMS; i++)
        a->plain[i] = exp(plainer->x[i]);
    point_hints(a);
    a->n_terms = k->terms(&a->hints, a->term);
    for (size_t i = 0; i < a->n_terms; i++)
        a->x[i] = log(a->term[i].start);
    return VT_OK;
}

/* ---- errors as people read them ----------------------------------------- */

static void fill_row(const struct match_load *l, const struct match_numbers *s,
                     struct vt_crossval_row *row)
{
    const double *m = l->measured.v, *v = s->v;

    *row = (struct vt_crossval_row){
        .name = l->name,
        .e2e = percent_off(v[MATCH_E2E], m[MATCH_E2E]),
        .ttft = percent_off(v[MATCH_TTFT], m[MATCH_TTFT]),
        .ttft_p99 = percent_off(v[MATCH_TTFT_P99], m[MATCH_TTFT_P99]),
        .itl = percent_off(v[MATCH_ITL], m[MATCH_ITL]),
        .itl_p99 =
            l->gaps_known ? percent_off(v[MATCH_ITL_P99], m[MATCH_ITL_P99]) : NAN,
        .throughput = percent_off(m[MATCH_SPAN], v[MATCH_SPAN]),
    };
}

static int judge_load(struct attempt *a, size_t i, struct vt_crossval_row *row,
                      struct vt_err *err)
{
    struct match_numbers s;
    int rc = simulate(a, a->x, i, &s, NULL, err);

    if (rc == VT_OK)
        fill_row(&a->m->load[i], &s, row);
    return rc;
}

/* What a set of errors amounts to: of two kinds of model the smaller one stays. */
static double badness(const struct vt_crossval_row *r)
{
    return fabs(r->e2e) + fabs(r->ttft) + fabs(r->itl) + fabs(r->throughput) +
           0.3 * (fabs(r->ttft_p99) + (isnan(r->itl_p99) ? 0 : fabs(r->itl_p99)));
}

/* ---- leave one out ------------------------------------------------------ */

struct search {
    struct vt_match *m;
    const struct vt_match_options *o;
    double *load_weight;
    struct vt_crossval_row *row; /* of the kind that is tried: without each load */
    double *cost_without;
    struct attempt best;
    double least;
    double *best_without;
    struct tried *tried; /* of each kind: in this round, or else in one before */
    bool form_sought;
    double pool_tokens; /* of a KV cache that nobody states; 0: none shows */
};

static bool counts(const struct search *s, size_t i)
{
    return s->load_weight[i] > 0;
}

static size_t n_counting(const struct search *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->m->n; i++)
        n += counts(s, i);
    return n;
}

/* From where the whole fit ended: what the load alone had to say is forgotten on the
 * way. A load that does not count is predicted by the whole fit. */
static int leave_out(struct search *s, const struct attempt *whole, size_t i,
                     double *weight, struct vt_err *err)
{
    struct attempt a = *whole;
    bool found = true;
    int rc = VT_OK;

    memcpy(weight, whole->load_weight, s->m->n * sizeof(*weight));
    weight[i] = 0;
    a.load_weight = weight;
    point_hints(&a);
    if (a.hints.rebuilt && counts(s, i))
        rc = match_rebuild(s->m, weight, &a.rebuilt, &found, err);
    if (!found) /* it alone told of tokens */
        a.rebuilt = whole->rebuilt;
    if (rc == VT_OK && counts(s, i))
        rc = solve(&a, fine_slopes, VT_COUNT(fine_slopes), err);
    s->cost_without[i] = a.cost;
    return rc ? rc : judge_load(&a, i, &s->row[i], err);
}

/* ---- the best kind ------------------------------------------------------ */

/* More numbers have to earn their keep: of models that predict about as well the
 * plainer one is likelier to be right about loads that are unlike all of these. `sum`
 * is of the badness of loads that were left out. */
static double score_of(const struct search *s, const struct attempt *a, double sum)
{
    double n = (double)n_counting(s);

    return (sum / n + 100 * sqrt(a->cost / n) + 0.5) * (1 + 0.01 * (double)a->n_terms);
}

struct turn { /* of a load to be left out */
    size_t load;
    double badness; /* where it is fitted; -1: it does not count */
};

static int by_badness(const void *a, const void *b)
{
    const struct turn *x = a, *y = b;

    if (x->badness != y->badness)
        return x->badness > y->badness ? -1 : 1;
    return x->load < y->load ? -1 : x->load > y->load;
}

static int order_loads(struct search *s, struct attempt *whole, struct turn *turn,
                       struct vt_err *err)
{
    struct vt_crossval_row row;
    int rc = VT_OK;

    for (size_t i = 0; i < s->m->n && rc == VT_OK; i++) {
        turn[i] = (struct turn){i, -1};
        if (!counts(s, i) || (rc = judge_load(whole, i, &row, err)))
            continue;
        turn[i].badness = badness(&row);
    }
    if (rc == VT_OK)
        qsort(turn, s->m->n, sizeof(*turn), by_badness);
    return rc;
}

/* Ends early where the score, which only grows, is no better than the best one: the
 * worst loads come first. */
static int cross_validate(struct search *s, struct attempt *whole, double *score,
                          struct vt_err *err)
{
    double *weight = malloc((s->m->n + 1) * sizeof(*weight)), sum = 0;
    struct turn *turn = malloc((s->m->n + 1) * sizeof(*turn));
    int rc = weight && turn ? order_loads(s, whole, turn, err) : vt_nomem(err);

    *score = score_of(s, whole, sum);
    for (size_t i = 0; rc == VT_OK && i < s->m->n && *score < s->least; i++) {
        size_t load = turn[i].load;

        rc = leave_out(s, whole, load, weight, err);
        if (counts(s, load))
            sum += fmin(badness(&s->row[load]), FAR_OFF);
        *score = score_of(s, whole, sum);
    }
    free(turn);
    free(weight);
    return rc;
}

/* Where nothing is left out: what more numbers win has to be worth them (Schwarz). */
static double score_in_sample(const struct search *s, const struct attempt *a)
{
    double n = (double)(n_counting(s) * MATCH_NUMBERS);

    return n * log(a->cost + 1e-9) + (double)a->n_terms * log(n);
}

/* From where the kind ended in the round before, if there was one: only a few requests
 * or one load were left out since. */
static int solve_again(struct attempt *a, struct tried *before, struct vt_err *err)
{
    int rc;

    if (before->found)
        memcpy(a->x, before->x, sizeof(a->x));
    rc = before->found ? solve(a, fine_slopes, VT_COUNT(fine_slopes), err)
                       : solve(a, slopes, VT_COUNT(slopes), err);
    before->found = rc == VT_OK;
    memcpy(before->x, a->x, sizeof(a->x));
    return rc;
}

static int try_kind(struct search *s, const struct match_kind *k,
                    struct vt_match_result *r, struct vt_err *err)
{
    struct tried *before = &s->tried[k - match_kinds];
    struct attempt a;
    double score;
    bool found;
    int rc;

    rc = attempt_init(&a, s->m, k, s->load_weight, k > match_kinds ? before - 1 : NULL,
                      &found, err);
    if (rc != VT_OK || !found)
        return rc;
    if ((rc = solve_again(&a, before, err)))
        return rc;
    score = score_in_sample(s, &a);
    if (!s->o->no_cv && n_counting(s) > 1) {
        if (s->best.kind && a.cost > HOPELESS * s->best.cost)
            return VT_OK;
        if ((rc = cross_validate(s, &a, &score, err)))
            return rc;
    }
    if (score >= s->least)
        return VT_OK;
    s->least = score;
    s->best = a;
    point_hints(&s->best);
    memcpy(s->best_without, s->cost_without, s->m->n * sizeof(*s->best_without));
    for (size_t i = 0; i < s->m->n; i++)
        r->load[i].out = s->row[i];
    return VT_OK;
}

static int tell_and_try(struct search *s, size_t kind, struct vt_match_result *r,
                        struct vt_err *err)
{
    const struct match_kind *k = &match_kinds[kind];

    if (s->o->kind && strcmp(s->o->kind, k->name) != 0)
        return VT_OK;
    if (s->o->tell)
        s->o->tell(s->o->user, k->name, kind, match_n_kinds);
    return try_kind(s, k, r, err);
}

static bool cannot_be_better(const struct search *s)
{
    return !s->o->no_cv && s->least < AS_GOOD_AS_CAN_BE;
}

/* Once, where steps are tried at all and nobody says what model it is. */
static int seek_form(struct search *s, const struct match_kind *k, struct vt_err *err)
{
    const struct vt_fit_shape *shape = &s->m->shape;

    if (k->starts != MATCH_REBUILT || s->form_sought || shape->experts > 0 ||
        shape->context_us > 0 || (s->o->kind && strcmp(s->o->kind, k->name) != 0))
        return VT_OK;
    s->form_sought = true;
    return match_find_form(s->m, s->load_weight, err);
}

/* The best one of the round before is the first: others give up sooner. */
static int find_best(struct search *s, struct vt_match_result *r, struct vt_err *err)
{
    const struct match_kind *first = s->best.kind;
    int rc = VT_OK;

    s->least = INFINITY;
    s->best.kind = NULL;
    if (first)
        rc = tell_and_try(s, (size_t)(first - match_kinds), r, err);
    for (size_t i = 0; i < match_n_kinds && rc == VT_OK; i++) {
        const struct match_kind *k = &match_kinds[i];

        if (k == first || k->starts == MATCH_WIDER)
            continue;
        if (k->starts != MATCH_ALONE && cannot_be_better(s))
            break;
        rc = seek_form(s, k, err);
        if (rc == VT_OK)
            rc = tell_and_try(s, i, r, err);
    }
    if (rc == VT_OK && !s->best.kind)
        rc =
            vt_fail(err, VT_EINPUT, "no kind of model '%s' can be matched", s->o->kind);
    return rc;
}

/* Those with the most numbers come last, when it is clear which loads count: they cost
 * most, and would explain stalls and odd loads rather than leave them out. */
static int widen(struct search *s, struct vt_match_result *r, struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t i = 1; i < match_n_kinds && rc == VT_OK; i++)
        if (match_kinds[i].starts == MATCH_WIDER && s->tried[i - 1].found &&
            !cannot_be_better(s))
            rc = tell_and_try(s, i, r, err);
    return rc;
}

/* ---- what no model is to explain ---------------------------------------- */

/* Median, and how far a deviation may be from it: at least *limit. */
static double usual(double *v, size_t n, double *limit)
{
    double median;

    vt_sort_f64(v, n);
    median = vt_quantile(v, n, 50);
    for (size_t i = 0; i < n; i++)
        v[i] = fabs(v[i] - median);
    vt_sort_f64(v, n);
    *limit = fmax(*limit, 9 * vt_quantile(v, n, 50));
    return median;
}

/* Requests that took far longer than their like were stalled by something; those whose
 * first token came far too soon met a prefix cache that older traffic had filled. When
 * they are many it is the model that is wrong. */
static int mark_stalled(struct match_load *l, const struct match_ends *sim,
                        double *cell, size_t *n, struct vt_err *err)
{
    const struct vt_workload *w = l->w;
    double ttft, ttft_limit = CACHED, e2e, e2e_limit = STALL;
    bool *mark = calloc(w->n + 1, sizeof(*mark));

    *n = 0;
    if (!mark)
        return vt_nomem(err);
#define TTFT_OF(i) error_of((double)w->measured[i].ttft_ns / 1e6, sim[i].ttft)
#define E2E_OF(i)  error_of((double)w->measured[i].e2e_ns / 1e6, sim[i].e2e)
    for (size_t i = 0; i < w->n; i++)
        cell[i] = TTFT_OF(i);
    ttft = usual(cell, w->n, &ttft_limit);
    for (size_t i = 0; i < w->n; i++)
        cell[i] = E2E_OF(i);
    e2e = usual(cell, w->n, &e2e_limit);
    for (size_t i = 0; i < w->n; i++) {
        bool late = E2E_OF(i) - e2e > e2e_limit;
        bool early = TTFT_OF(i) - ttft < -ttft_limit &&
                     w->req[i].prompt_tokens > 0.5 * l->mean_prompt;

        mark[i] = late || early;
        *n += mark[i];
    }
#undef TTFT_OF
#undef E2E_OF
    if (*n == 0 || (double)*n > FEW_STALLED * (double)w->n) {
        *n = 0;
        free(mark);
        return VT_OK;
    }
    free(l->left_out);
    l->left_out = mark;
    return match_load_measure(l, err);
}

static int leave_stalls_out(struct search *s, struct vt_match_result *r, bool *any,
                            struct vt_err *err)
{
    int rc = VT_OK;

    *any = false;
    for (size_t i = 0; i < s->m->n && rc == VT_OK; i++) {
        struct match_load *l = &s->m->load[i];
        struct match_ends *ends = calloc(l->w->n + 1, sizeof(*ends));
        double *cell = calloc(l->w->n + 1, sizeof(*cell));
        struct match_numbers unused;

        rc = !ends || !cell ? vt_nomem(err)
                            : simulate(&s->best, s->best.x, i, &unused, ends, err);
        if (rc == VT_OK)
            rc = mark_stalled(l, ends, cell, &r->load[i].stalled, err);
        *any |= r->load[i].stalled > 0;
        free(ends);
        free(cell);
    }
    return rc;
}

/* The root of the mean square of a load's errors, not softened. */
static int load_error(struct attempt *a, size_t i, double *out, struct vt_err *err)
{
    const struct match_load *l = &a->m->load[i];
    struct match_numbers s;
    int rc = simulate(a, a->x, i, &s, NULL, err);

    *out = 0;
    for (size_t k = 0; k < MATCH_NUMBERS && rc == VT_OK; k++)
        if (l->weight[k] > 0)
            *out += pow(l->weight[k] * error_of(s.v[k], l->measured.v[k]), 2);
    *out = sqrt(*out);
    return rc;
}

/* A load that no fit of all can match, and without which the others fall into place:
 * more than without most others. */
static int find_odd(struct search *s, size_t *odd, struct vt_err *err)
{
    double worst = 0, least = INFINITY, *without;
    size_t n = 0;
    int rc = VT_OK;

    *odd = SIZE_MAX;
    if (s->o->no_cv || n_counting(s) < 3)
        return VT_OK;
    without = malloc(s->m->n * sizeof(*without));
    if (!without)
        return vt_nomem(err);
    for (size_t i = 0; i < s->m->n && rc == VT_OK; i++) {
        double e;

        if (!counts(s, i))
            continue;
        rc = load_error(&s->best, i, &e, err);
        worst = fmax(worst, e);
        without[n++] = s->best_without[i];
        if (s->best_without[i] < least) {
            least = s->best_without[i];
            *odd = i;
        }
    }
    vt_sort_f64(without, n);
    if (worst < UNLIKE || least > LESS_WITHOUT * s->best.cost ||
        least > LESS_WITHOUT * vt_quantile(without, n, 50))
        *odd = SIZE_MAX;
    free(without);
    return rc;
}

/* ---- refusals ----------------------------------------------------------- */

static double at_once(const struct match_load *l) /* requests, on average */
{
    return (double)l->w->n * l->measured.v[MATCH_E2E] / l->measured.v[MATCH_SPAN];
}

/* What the loads cannot tell, whatever was fitted. */
static void refuse_poor_loads(const struct search *s, struct vt_match_result *r)
{
    double least = INFINITY, most = 0, shortest = INFINITY, longest = 0;

    for (size_t i = 0; i < s->m->n; i++) {
        const struct match_load *l = &s->m->load[i];

        if (!counts(s, i))
            continue;
        least = fmin(least, at_once(l));
        most = fmax(most, at_once(l));
        for (size_t k = 0; k < l->w->n; k++) {
            shortest = fmin(shortest, l->w->req[k].prompt_tokens);
            longest = fmax(longest, l->w->req[k].prompt_tokens);
        }
    }
    if (n_counting(s) < 2)
        (void)snprintf(r->refusal, sizeof(r->refusal),
                       "one load cannot be checked against another: it takes two or "
                       "more, of different concurrency");
    else if (most < VARIED * least)
        (void)snprintf(r->refusal, sizeof(r->refusal),
                       "all loads have about %.0f requests at once: they do not tell "
                       "what a larger batch costs",
                       most);
    else if (longest < VARIED * shortest)
        (void)snprintf(r->refusal, sizeof(r->refusal),
                       "all prompts have about %.0f tokens: they do not tell what a "
                       "longer one costs",
                       longest);
}

static void refuse_bad_fits(const struct search *s, struct vt_match_result *r)
{
    const struct vt_match_load *worst = NULL;

    for (size_t i = 0; i < s->m->n; i++)
        if (counts(s, i) && (!worst || fabs(r->load[i].in.e2e) > fabs(worst->in.e2e)))
            worst = &r->load[i];
    if (worst && fabs(worst->in.e2e) > TOO_FAR)
        (void)snprintf(
            r->refusal, sizeof(r->refusal),
            "no model matches all loads: E2E of %s is %+.0f %% off where it "
            "was fitted; they contradict each other, or are not of one server",
            worst->in.name, worst->in.e2e);
    else if (r->out.e2e > TOO_FAR || r->out.ttft > 2 * TOO_FAR)
        (void)snprintf(
            r->refusal, sizeof(r->refusal),
            "loads that were left out are predicted badly: E2E %.0f %%, TTFT "
            "%.0f %% off",
            r->out.e2e, r->out.ttft);
}

/* ---- limits that nobody states ------------------------------------------ */

/* No request may need more than there is. */
static double longest_of_all(const struct vt_match *m)
{
    double most = 0;

    for (size_t i = 0; i < m->n; i++)
        most = fmax(most, longest_request(m->load[i].w));
    return most;
}

/* For so many tokens. */
static void set_pool(struct vt_match *m, struct vt_match_result *r, double tokens)
{
    for (size_t i = 0; i < m->n; i++) {
        struct vt_engine_config *c = &m->load[i].engine;

        c->block_size = m->load[0].engine.block_size;
        limits_pool(c, fmax(tokens, longest_of_all(m)));
    }
    r->block_size = m->load[0].engine.block_size;
    r->num_gpu_blocks = m->load[0].engine.num_gpu_blocks;
}

static void find_limits(struct search *s, struct vt_match_result *r)
{
    struct vt_match *m = s->m;
    bool seats_stated = false, pool_stated = false;
    double tokens = 0;

    for (size_t i = 0; i < m->n; i++) {
        const struct limits *l = &m->load[i].shown;

        seats_stated |= m->load[i].w->meta.max_num_seqs > 0;
        pool_stated |= m->load[i].w->meta.num_gpu_blocks > 0;
        r->load[i].waited = l->waited;
        if (l->seats > r->max_num_seqs)
            r->max_num_seqs = l->seats;
        tokens = fmax(tokens, l->tokens);
    }
    if (seats_stated)
        r->max_num_seqs = 0;
    for (size_t i = 0; i < m->n && r->max_num_seqs > 0; i++)
        m->load[i].engine.max_num_seqs = r->max_num_seqs;
    s->pool_tokens = pool_stated ? 0 : tokens;
}

static int pool_error(struct search *s, double *sum, struct vt_err *err)
{
    int rc = VT_OK;

    *sum = 0;
    for (size_t i = 0; i < s->m->n && rc == VT_OK; i++) {
        double e = 0;

        if (counts(s, i))
            rc = load_error(&s->best, i, &e, err);
        *sum += e * e;
    }
    return rc;
}

/* What shows of the pool is about right: of sizes around it the one stays with which
 * the loads come out best. */
static int scan_pool(struct search *s, struct vt_match_result *r, struct vt_err *err)
{
    static const double around[] = {0.06, 0.015};
    double found = s->pool_tokens;

    for (size_t i = 0; i < VT_COUNT(around); i++) {
        double middle = found, least = INFINITY;

        for (int k = -5; k <= 5; k++) {
            double tokens = middle * (1 + k * around[i]), e;
            int rc;

            set_pool(s->m, r, tokens);
            if ((rc = pool_error(s, &e, err)))
                return rc;
            if (e < least) {
                least = e;
                found = tokens;
            }
        }
    }
    set_pool(s->m, r, found);
    return VT_OK;
}

/* A pool is only believed in if loads in which requests waited come out wrong without
 * it, and all far better with it. */
static int find_pool(struct search *s, struct vt_match_result *r, struct vt_err *err)
{
    double worst = 0, without = s->best.cost;
    int rc = VT_OK;

    for (size_t i = 0; i < s->m->n && s->pool_tokens > 0 && rc == VT_OK; i++) {
        double e = 0;

        if (counts(s, i) && r->load[i].waited)
            rc = load_error(&s->best, i, &e, err);
        worst = fmax(worst, e);
    }
    if (rc != VT_OK || worst < UNLIKE)
        return rc;
    set_pool(s->m, r, s->pool_tokens);
    if ((rc = find_best(s, r, err)) || (rc = scan_pool(s, r, err)) ||
        (rc = find_best(s, r, err)) || s->best.cost < FALLS_INTO_PLACE * without)
        return rc;
    for (size_t i = 0; i < s->m->n; i++) {
        struct match_load *l = &s->m->load[i];

        l->engine.num_gpu_blocks = l->unlimited_blocks;
    }
    r->num_gpu_blocks = r->block_size = 0;
    return find_best(s, r, err);
}

/* ---- frontends that read bursts first ----------------------------------- */

/* Python's does, as it was measured. It is believed in if all loads come out far better
 * with it: many that come together have their first tokens later than any engine
 * explains. Only a client sees it. */
static int find_reading(struct search *s, struct vt_match_result *r, struct vt_err *err)
{
    static const double SHOWS = 0.8;
    const struct match_kind *kind = s->best.kind;
    const struct vt_front *python = vt_front_find("python");
    struct attempt a = s->best;
    int rc;

    if (look_clock(s->m) != VT_CLOCK_CLIENT)
        return VT_OK;
    s->m->read_us = python->read_us;
    s->m->pass_us = python->pass_us;
    point_hints(&a);
    rc = solve(&a, fine_slopes, VT_COUNT(fine_slopes), err);
    if (rc != VT_OK || a.cost > SHOWS * s->best.cost) {
        s->m->read_us = s->m->pass_us = 0;
        return rc;
    }
    r->read_us = s->m->read_us;
    r->pass_us = s->m->pass_us;
    s->least = INFINITY;
    return tell_and_try(s, (size_t)(kind - match_kinds), r, err);
}

/* ---- requests that nobody answered -------------------------------------- */

/* Where requests failed or were aborted before a token the others had to share the
 * engine with more than can be simulated: other loads tell better, if there are. */
static void leave_unanswered_out(struct search *s, struct vt_match_result *r)
{
    size_t whole = 0;

    for (size_t i = 0; i < s->m->n; i++) {
        r->load[i].unanswered = vt_unanswered_percent(s->m->load[i].w);
        whole += r->load[i].unanswered <= VT_UNANSWERED;
    }
    for (size_t i = 0; i < s->m->n && whole > 1; i++) {
        r->load[i].odd = r->load[i].unanswered > VT_UNANSWERED;
        s->load_weight[i] = r->load[i].odd ? 0 : 1;
    }
}

static void refuse_unanswered(const struct search *s, struct vt_match_result *r)
{
    for (size_t i = 0; i < s->m->n && !r->refusal[0]; i++)
        if (counts(s, i) && r->load[i].unanswered > VT_UNANSWERED)
            (void)snprintf(r->refusal, sizeof(r->refusal),
                           "%s: %.0f %% of its requests failed or were aborted before "
                           "a token: what they cost the others is not known",
                           s->m->load[i].name, r->load[i].unanswered);
}

/* Whether requests of a load waited much longer than anything explains, and a limit
 * that is not stated could. */
static bool waits_for_nothing(const struct match_load *m, const struct vt_match_load *l)
{
    static const double MOST = -50; /* % */
    const struct vt_meta *told = &m->w->meta;

    return l->waited && l->in.ttft < MOST &&
           (told->max_num_seqs == 0 || told->num_gpu_blocks == 0);
}

static void refuse_waiting(const struct search *s, struct vt_match_result *r)
{
    for (size_t i = 0; i < s->m->n && !r->refusal[0]; i++)
        if (waits_for_nothing(&s->m->load[i], &r->load[i]))
            (void)snprintf(r->refusal, sizeof(r->refusal),
                           "%s: its requests wait or lose their places, and no limit "
                           "that is stated or shows explains it; does its meta line "
                           "lack num_gpu_blocks or max_num_seqs?",
                           s->m->load[i].name);
}

/* ---- all of it ---------------------------------------------------------- */

static int search_rounds(struct search *s, struct vt_match_result *r,
                         struct vt_err *err)
{
    size_t odd, most_odd = s->m->n / 3;
    bool stalls = false;
    int rc = find_best(s, r, err);

    if (rc == VT_OK)
        rc = find_pool(s, r, err);
    if (rc == VT_OK)
        rc = leave_stalls_out(s, r, &stalls, err);
    if (rc == VT_OK && stalls)
        rc = find_best(s, r, err);
    for (size_t i = 0; i < most_odd && rc == VT_OK; i++) {
        if ((rc = find_odd(s, &odd, err)) || odd == SIZE_MAX)
            break;
        s->load_weight[odd] = 0;
        r->load[odd].odd = true;
        rc = find_best(s, r, err);
    }
    if (rc == VT_OK)
        rc = widen(s, r, err);
    return rc == VT_OK ? find_reading(s, r, err) : rc;
}

static void put_medians(struct search *s, struct vt_match_result *r)
{
    struct vt_crossval_row unused;
    size_t n = 0;

    for (size_t i = 0; i < s->m->n; i++)
        if (counts(s, i))
            s->row[n++] = r->load[i].in;
    vt_crossval_sum(s->row, n, &r->in, &unused);
    n = 0;
    for (size_t i = 0; i < s->m->n; i++)
        if (counts(s, i))
            s->row[n++] = r->load[i].out;
    vt_crossval_sum(s->row, n, &r->out, &unused);
}

static int finish(struct search *s, struct vt_match_result *r, struct vt_err *err)
{
    double value[MATCH_TERMS];
    int rc = VT_OK;

    for (size_t i = 0; i < s->m->n && rc == VT_OK; i++) {
        rc = judge_load(&s->best, i, &r->load[i].in, err);
        r->load[i].out.name = s->m->load[i].name;
    }
    put_medians(s, r);
    r->pause_us = look(s->m).pause_us;
    r->clock = look_clock(s->m);
    refuse_poor_loads(s, r);
    refuse_unanswered(s, r);
    refuse_waiting(s, r);
    if (!r->refusal[0])
        refuse_bad_fits(s, r);
    for (size_t i = 0; i < s->best.n_terms; i++)
        value[i] = exp(s->best.x[i]);
    r->kind = s->best.kind->name;
    s->best.kind->write(&s->best.hints, value, &r->model);
    return rc != VT_OK ? rc : r->model.failed ? vt_nomem(err) : VT_OK;
}

int vt_match_solve(struct vt_match *m, const struct vt_match_options *o,
                   struct vt_match_result *r, struct vt_err *err)
{
    struct search s = {.m = m, .o = o};
    double *cells = calloc(3 * m->n + 1, sizeof(*cells));
    int rc = VT_OK;

    *r = (struct vt_match_result){.n = m->n};
    r->load = calloc(m->n + 1, sizeof(*r->load));
    s.row = calloc(m->n + 1, sizeof(*s.row));
    s.tried = calloc(match_n_kinds, sizeof(*s.tried));
    if (!r->load || !s.row || !s.tried || !cells)
        rc = vt_nomem(err);
    else if (m->n == 0)
        rc = vt_fail(err, VT_EINPUT, "there are no loads to fit");
    s.load_weight = cells;
    s.cost_without = s.load_weight + m->n;
    s.best_without = s.cost_without + m->n;
    for (size_t i = 0; i < m->n && rc == VT_OK; i++)
        s.load_weight[i] = 1;
    if (rc == VT_OK) {
        leave_unanswered_out(&s, r);
        find_limits(&s, r);
    }
    if (rc == VT_OK)
        rc = search_rounds(&s, r, err);
    if (rc == VT_OK)
        rc = finish(&s, r, err);
    free(s.row);
    free(s.tried);
    free(cells);
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

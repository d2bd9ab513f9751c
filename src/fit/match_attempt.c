/* match_attempt.c - one kind of model on some of the loads: where it starts, its fit,
 * and its errors. */
#include "fit/match_search.h"

#include <math.h>

/* Times below this are as good as equal, ms. */
static const double LEAST_MS = 0.05;
/* Errors beyond this, of the logarithm, count less and less. */
static const double SOFT = 0.1;
enum { MOST_STEPS = 30 };
/* What a slope has to win, of the cost. */
static const double WORTHWHILE = 0.01;

/* ---- one fit ------------------------------------------------------------ */

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

int match_simulate(struct attempt *a, const double *x, size_t load,
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

double match_log_error(double simulated, double measured)
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
        failed =
            a->err.code != VT_OK || match_simulate(a, x, i, &s, NULL, &a->err) != VT_OK;
        for (size_t k = 0; k < MATCH_NUMBERS; k++)
            r[n++] = l->weight[k] <= 0 ? 0
                     : failed          ? 10
                                       : l->weight[k] * a->load_weight[i] *
                                    softened(match_log_error(s.v[k], l->measured.v[k]),
                                             SOFT);
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

int match_fit(struct attempt *a, const double *slope, size_t n, struct vt_err *err)
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

struct match_hints match_look(const struct vt_match *m)
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

enum vt_clock match_look_clock(const struct vt_match *m)
{
    enum vt_clock clock = m->load[0].w->meta.clock;

    for (size_t i = 1; i < m->n; i++)
        if (m->load[i].w->meta.clock != clock)
            clock = VT_CLOCK_UNSTATED;
    return clock;
}

void match_point_hints(struct attempt *a)
{
    a->hints.plain = a->kind->starts == MATCH_WIDER ? a->plain : NULL;
    a->hints.rebuilt = a->kind->starts == MATCH_REBUILT ? &a->rebuilt : NULL;
}

int match_attempt(struct attempt *a, const struct vt_match *m,
                  const struct match_kind *k, const double *load_weight,
                  const struct tried *plainer, bool *found, struct vt_err *err)
{
    int rc = VT_OK;

    *a = (struct attempt){
        .m = m, .kind = k, .hints = match_look(m), .load_weight = load_weight};
    *found = true;
    if (k->starts == MATCH_REBUILT)
        rc = match_rebuild(m, load_weight, &a->rebuilt, found, err);
    if (rc != VT_OK || !*found)
        return rc;
    for (size_t i = 0; plainer && i < MATCH_TERMS; i++)
        a->plain[i] = exp(plainer->x[i]);
    match_point_hints(a);
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

int match_judge(struct attempt *a, size_t i, struct vt_crossval_row *row,
                struct vt_err *err)
{
    struct match_numbers s;
    int rc = match_simulate(a, a->x, i, &s, NULL, err);

    if (rc == VT_OK)
        fill_row(&a->m->load[i], &s, row);
    return rc;
}

double match_badness(const struct vt_crossval_row *r)
{
    return fabs(r->e2e) + fabs(r->ttft) + fabs(r->itl) + fabs(r->throughput) +
           0.3 * (fabs(r->ttft_p99) + (isnan(r->itl_p99) ? 0 : fabs(r->itl_p99)));
}

int match_error(struct attempt *a, size_t i, double *out, struct vt_err *err)
{
    const struct match_load *l = &a->m->load[i];
    struct match_numbers s;
    int rc = match_simulate(a, a->x, i, &s, NULL, err);

    *out = 0;
    for (size_t k = 0; k < MATCH_NUMBERS && rc == VT_OK; k++)
        if (l->weight[k] > 0)
            *out += pow(l->weight[k] * match_log_error(s.v[k], l->measured.v[k]), 2);
    *out = sqrt(*out);
    return rc;
}

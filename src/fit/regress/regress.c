/* regress.c - terms chosen, coefficients found, and how well they predict rows that
 * they were not found from. */
#include "fit/regress/regress.h"

#include <math.h>

const char *const vt_learner_names[] = {"linear", "ridge", "lasso", "nonnegative",
                                        NULL};

enum { BLOCKS = 5, LAMBDAS = 13 };

/* What the rows of a document's tables are. */
static const char *const default_terms[] = {
    [VT_REGRESS_QUEUE] = "prompt_tokens,queue_depth,running_depth,kv_ratio",
    [VT_REGRESS_ARRIVE] = "prompt_tokens",
    [VT_REGRESS_STEP] = "num_prefill,num_decode,prefill_tokens,decode_tokens,kv_ratio",
};

/* ---- terms ------------------------------------------------------------------ */

static bool same_term(const struct vt_term *a, const struct vt_term *b)
{
    char x[VT_TERM_NAME], y[VT_TERM_NAME];

    vt_term_name(x, a);
    vt_term_name(y, b);
    return strcmp(x, y) == 0;
}

static int add_term(struct vt_terms *s, const struct vt_term *t, struct vt_err *err)
{
    for (size_t i = 0; i < s->n; i++)
        if (same_term(&s->term[i], t))
            return VT_OK;
    if (s->n == VT_TERMS)
        return vt_fail(err, VT_EINPUT, "more than %d terms", VT_TERMS);
    s->term[s->n++] = *t;
    return VT_OK;
}

static int add_powers(struct vt_terms *s, uint32_t degree, struct vt_err *err)
{
    size_t n = s->n;
    int rc = VT_OK;

    for (size_t i = 0; i < n; i++)
        for (uint32_t k = 2; k <= degree && rc == VT_OK; k++) {
            struct vt_term t = s->term[i];

            if (t.n != 1 || t.factor[0].power != 1)
                continue;
            t.factor[0].power = (uint8_t)k;
            rc = add_term(s, &t, err);
        }
    return rc;
}

static int choose_terms(struct vt_terms *s, enum vt_regress_target target,
                        const struct vt_regress_options *o, struct vt_err *err)
{
    const char *text = o->terms ? o->terms : default_terms[target];
    unsigned of = target == VT_REGRESS_STEP ? VT_OF_STEP : VT_OF_REQUEST;
    int rc = VT_OK;

    *s = (struct vt_terms){0};
    while (rc == VT_OK && *text) {
        size_t len = strcspn(text, ",");
        struct vt_term t;

        rc = vt_term_parse(&t, text, len, err);
        if (rc == VT_OK && !(vt_term_of(&t) & of))
            rc = vt_fail(err, VT_EINPUT, "'%.*s' is not known of %s", (int)len, text,
                         of == VT_OF_STEP ? "a step" : "a request that is queued");
        if (rc == VT_OK)
            rc = add_term(s, &t, err);
        text += len + (text[len] == ',');
    }
    return rc ? rc : add_powers(s, o->degree, err);
}

/* ---- which rows ---------------------------------------------------------------- */

struct job {
    const struct vt_regress_data *d;
    enum vt_regress_target target;
    const struct vt_regress_options *o;
    struct vt_terms terms; /* without coefficients */
    double scale[VT_TERMS];
};

/* A part of the rows: of one capture, of all of one model or GPU, of a block of time.
 */
enum pick_by { ALL, CAPTURE, MODEL, GPU, BLOCK, HELD };
struct pick {
    enum pick_by by;
    size_t which;
    bool without; /* all others */
};

static double place(const struct job *j, size_t i) /* within its capture: 0 to 1 */
{
    const struct regress_row *r = &j->d->table[j->target].row[i];
    const struct regress_capture *c = &j->d->capture[r->capture];

    return (double)(i - c->first[j->target]) / (double)c->n[j->target];
}

static bool is_picked(const struct job *j, size_t i, const struct pick *p)
{
    const struct vt_regress_data *d = j->d;
    const struct regress_row *r = &d->table[j->target].row[i];
    const struct regress_capture *c = &d->capture[r->capture];
    bool in = true;

    if (r->left_out != VT_ROW_KEPT)
        return false;
    if (p->by == CAPTURE)
        in = r->capture == p->which;
    else if (p->by == MODEL)
        in = strcmp(c->model, d->capture[p->which].model) == 0;
    else if (p->by == GPU)
        in = strcmp(c->gpu, d->capture[p->which].gpu) == 0;
    else if (p->by == BLOCK) /* of what is not held out */
        in = (size_t)(BLOCKS * place(j, i) / (1 - j->o->hold_out)) == p->which;
    else if (p->by == HELD)
        in = j->o->hold_out > 0 && place(j, i) >= 1 - j->o->hold_out;
    return in != p->without;
}

static void find_scales(struct job *j)
{
    const struct regress_table *t = &j->d->table[j->target];
    double v[VT_FEATURES];

    for (size_t k = 0; k < j->terms.n; k++)
        j->scale[k] = 0;
    for (size_t i = 0; i < t->n; i++) {
        regress_values(v, j->d, &t->row[i]);
        for (size_t k = 0; k < j->terms.n; k++)
            j->scale[k] = fmax(j->scale[k], fabs(vt_term_value(&j->terms.term[k], v)));
    }
    for (size_t k = 0; k < j->terms.n; k++)
        j->scale[k] = j->scale[k] > 0 ? j->scale[k] : 1;
}

static void sum_rows(const struct job *j, const struct pick *p, struct moments *m)
{
    const struct regress_table *t = &j->d->table[j->target];
    double v[VT_FEATURES], x[VT_TERMS];

    *m = (struct moments){.p = j->terms.n};
    for (size_t i = 0; i < t->n; i++) {
        if (!is_picked(j, i, p))
            continue;
        regress_values(v, j->d, &t->row[i]);
        for (size_t k = 0; k < m->p; k++)
            x[k] = vt_term_value(&j->terms.term[k], v) / j->scale[k];
        moments_add(m, x, t->row[i].y_us);
    }
}

/* ---- how strong a penalty -------------------------------------------------------- */

/* The one with which blocks of time are predicted best by the others. */
static int find_lambda(const struct job *j, const struct pick *among, double *out,
                       struct vt_err *err)
{
    bool lasso = j->o->learner == VT_LEARN_LASSO;
    struct moments *all = calloc(2 + BLOCKS, sizeof(*all)), *block, *rest;
    double lowest = INFINITY;

    if (!all)
        return vt_nomem(err);
    rest = all + 1;
    block = all + 2;
    sum_rows(j, among, all);
    for (size_t k = 0; k < BLOCKS; k++)
        sum_rows(j, &(struct pick){BLOCK, k, false}, &block[k]);
    for (int i = 0; i < LAMBDAS; i++) {
        double lambda = pow(10, lasso ? -i / 3.0 : 1 - i / 2.0), misfit = 0;

        for (size_t k = 0; k < BLOCKS; k++) {
            struct solution s;

            if (block[k].n < 1 || all->n - block[k].n <= (double)all->p + 1)
                continue;
            *rest = *all;
            moments_subtract(rest, &block[k]);
            regress_solve(rest, j->o->learner, lambda, &s);
            misfit += block[k].n * regress_misfit(&block[k], &s);
        }
        if (misfit < lowest) {
            lowest = misfit;
            *out = lambda;
        }
    }
    free(all);
    return VT_OK;
}

/* ---- one fit -----------------------------------------------------------------------
 */

struct fitted {
    struct vt_terms terms;
    struct solution s;
};

/* False: too few rows. */
static bool fit_rows(const struct job *j, const struct pick *p, double lambda,
                     struct moments *m, struct fitted *out)
{
    sum_rows(j, p, m);
    if (m->n <= (double)j->terms.n + 1)
        return false;
    regress_solve(m, j->o->learner, lambda, &out->s);
    out->terms = j->terms;
    out->terms.intercept = out->s.intercept;
    for (size_t k = 0; k < j->terms.n; k++)
        out->terms.coefficient[k] = out->s.b[k] / j->scale[k];
    return true;
}

static struct vt_score score_rows(const struct job *j, const struct pick *p,
                                  const struct vt_terms *terms)
{
    const struct regress_table *t = &j->d->table[j->target];
    double v[VT_FEATURES], y = 0, off = 0, all = 0, mean, relative = 0;
    struct vt_score s = {.r2 = NAN, .mae_us = NAN, .mape = NAN};
    size_t n_relative = 0;

    for (size_t i = 0; i < t->n; i++)
        if (is_picked(j, i, p)) {
            y += t->row[i].y_us;
            s.n++;
        }
    if (s.n == 0)
        return s;
    mean = y / (double)s.n;
    s.mae_us = 0;
    for (size_t i = 0; i < t->n; i++) {
        double e;

        if (!is_picked(j, i, p))
            continue;
        regress_values(v, j->d, &t->row[i]);
        e = vt_terms_value(terms, v) - t->row[i].y_us;
        s.mae_us += fabs(e) / (double)s.n;
        off += e * e;
        all += (t->row[i].y_us - mean) * (t->row[i].y_us - mean);
        if (t->row[i].y_us >= 1) {
            relative += fabs(e) / t->row[i].y_us;
            n_relative++;
        }
    }
    if (all > 0)
        s.r2 = 1 - off / all;
    if (n_relative > 0)
        s.mape = 100 * relative / (double)n_relative;
    return s;
}

/* ---- left out and predicted
 * ---------------------------------------------------------- */

/* Whether the capture is the first of its model or GPU. */
static bool is_first(const struct vt_regress_data *d, size_t i, enum pick_by by)
{
    for (size_t k = 0; k < i; k++)
        if (by == CAPTURE ? false
            : by == MODEL ? strcmp(d->capture[k].model, d->capture[i].model) == 0
                          : strcmp(d->capture[k].gpu, d->capture[i].gpu) == 0)
            return false;
    return true;
}

static void leave_out(const struct job *j, enum pick_by by, struct moments *m,
                      struct vt_regress *r)
{
    static const char *const kinds[] = {
        [CAPTURE] = "capture", [MODEL] = "model", [GPU] = "GPU"};
    const struct vt_regress_data *d = j->d;
    size_t groups = 0;

    for (size_t i = 0; i < d->n; i++)
        groups += is_first(d, i, by) && d->capture[i].n[j->target] > 0;
    for (size_t i = 0; groups > 1 && i < d->n; i++) {
        struct pick others = {by, i, true}, own = {by, i, false};
        struct vt_regress_group *g = &r->group[r->n_groups];
        struct fitted f;

        if (!is_first(d, i, by) || d->capture[i].n[j->target] == 0 ||
            !fit_rows(j, &others, r->lambda, m, &f))
            continue;
        *g = (struct vt_regress_group){kinds[by],
                                       by == CAPTURE ? d->capture[i].name
                                       : by == MODEL ? d->capture[i].model
                                                     : d->capture[i].gpu,
                                       score_rows(j, &own, &f.terms)};
        r->n_groups += g->score.n > 0;
    }
}

/* ---- all of it
 * ------------------------------------------------------------------------- */

static void look_at_rows(const struct job *j, struct vt_regress *r)
{
    const struct regress_table *t = &j->d->table[j->target];

    r->rows = t->n;
    r->least_us = INFINITY;
    for (size_t i = 0; i < t->n; i++) {
        const double *v = t->row[i].v;
        struct vt_extent x = {.step_tokens = (uint32_t)v[VT_F_SCHEDULED_TOKENS],
                              .running = (uint32_t)v[VT_F_RUNNING_DEPTH],
                              .context = (uint64_t)v[VT_F_DECODE_CONTEXT]};

        r->left_out[t->row[i].left_out]++;
        if (t->row[i].left_out != VT_ROW_KEPT)
            continue;
        r->least_us = fmin(r->least_us, t->row[i].y_us);
        vt_extent_join(&r->seen, &x);
    }
}

static int solve(struct job *j, struct moments *m, struct vt_regress *r,
                 struct vt_err *err)
{
    bool penalised = j->o->learner == VT_LEARN_RIDGE || j->o->learner == VT_LEARN_LASSO;
    struct pick all = {ALL, 0, false}, early = {HELD, 0, true}, late = {HELD, 0, false};
    struct fitted f;
    int rc;

    find_scales(j);
    r->lambda = penalised ? j->o->lambda : 0;
    if (penalised && isnan(r->lambda) && (rc = find_lambda(j, &early, &r->lambda, err)))
        return rc;
    if (!fit_rows(j, &all, r->lambda, m, &f))
        return vt_fail(err, VT_EINPUT,
                       "%s: %zu rows are too few for %zu terms (%zu were left out)",
                       vt_regress_names[j->target], r->left_out[VT_ROW_KEPT],
                       j->terms.n, r->rows - r->left_out[VT_ROW_KEPT]);
    r->terms = f.terms;
    memcpy(r->standard, f.s.standard, sizeof(r->standard));
    memcpy(r->state, f.s.state, sizeof(r->state));
    r->in_sample = score_rows(j, &all, &f.terms);
    if (j->o->hold_out > 0 && fit_rows(j, &early, r->lambda, m, &f))
        r->held_out = score_rows(j, &late, &f.terms);
    leave_out(j, CAPTURE, m, r);
    leave_out(j, MODEL, m, r);
    leave_out(j, GPU, m, r);
    return VT_OK;
}

int vt_regress_solve(struct vt_regress *out, const struct vt_regress_data *d,
                     enum vt_regress_target t, const struct vt_regress_options *o,
                     struct vt_err *err)
{
    struct job j = {.d = d, .target = t, .o = o};
    struct moments *m;
    int rc;

    *out = (struct vt_regress){.target = t, .learner = o->learner};
    if ((rc = choose_terms(&j.terms, t, o, err)))
        return rc;
    look_at_rows(&j, out);
    out->group = calloc(3 * d->n + 1, sizeof(*out->group));
    m = malloc(sizeof(*m));
    rc = m && out->group ? solve(&j, m, out, err) : vt_nomem(err);
    free(m);
    if (rc != VT_OK)
        vt_regress_free(out);
    return rc;
}

void vt_regress_free(struct vt_regress *r)
{
    free(r->group);
    *r = (struct vt_regress){0};
}

double vt_regress_predict(const struct vt_regress *r, const double v[VT_FEATURES])
{
    return fmax(vt_terms_value(&r->terms, v),
                r->target == VT_REGRESS_STEP ? r->least_us : 0);
}

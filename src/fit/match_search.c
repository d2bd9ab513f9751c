/* match_search.c - the kind of model that predicts best what it was not fitted to. */
#include "fit/match_search.h"

#include <math.h>

/* A simulation has steps: slopes are taken over so much of a logarithm, coarse first.
 */
static const double slopes[] = {0.1, 0.03, 0.01, 0.003, 0.1, 0.03, 0.01, 0.003};
const double match_fine_slopes[MATCH_FINE] = {0.03, 0.01};
/* A kind whose cost is that many times the best one's is not cross-validated. */
static const double HOPELESS = 8;
/* A score as good as a second run of the same loads would have: what costs more to try
 * has nothing to win. */
static const double AS_GOOD_AS_CAN_BE = 4;
/* Of a load's errors in percent, together: more does not count. */
static const double FAR_OFF = 200;

/* ---- leave one out ------------------------------------------------------ */

bool match_counts(const struct search *s, size_t i)
{
    return s->load_weight[i] > 0;
}

size_t match_counting(const struct search *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->m->n; i++)
        n += match_counts(s, i);
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
    match_point_hints(&a);
    if (a.hints.rebuilt && match_counts(s, i))
        rc = match_rebuild(s->m, weight, &a.rebuilt, &found, err);
    if (!found) /* it alone told of tokens */
        a.rebuilt = whole->rebuilt;
    if (rc == VT_OK && match_counts(s, i))
        rc = match_fit(&a, match_fine_slopes, MATCH_FINE, err);
    s->cost_without[i] = a.cost;
    return rc ? rc : match_judge(&a, i, &s->row[i], err);
}

/* ---- the best kind ------------------------------------------------------ */

/* More numbers have to earn their keep: of models that predict about as well the
 * plainer one is likelier to be right about loads that are unlike all of these. `sum`
 * is of the badness of loads that were left out. */
static double score_of(const struct search *s, const struct attempt *a, double sum)
{
    double n = (double)match_counting(s);

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
        if (!match_counts(s, i) || (rc = match_judge(whole, i, &row, err)))
            continue;
        turn[i].badness = match_badness(&row);
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
        if (match_counts(s, load))
            sum += fmin(match_badness(&s->row[load]), FAR_OFF);
        *score = score_of(s, whole, sum);
    }
    free(turn);
    free(weight);
    return rc;
}

/* Where nothing is left out: what more numbers win has to be worth them (Schwarz). */
static double score_in_sample(const struct search *s, const struct attempt *a)
{
    double n = (double)(match_counting(s) * MATCH_NUMBERS);

    return n * log(a->cost + 1e-9) + (double)a->n_terms * log(n);
}

/* From where the kind ended in the round before, if there was one: only a few requests
 * or one load were left out since. */
static int solve_again(struct attempt *a, struct tried *before, struct vt_err *err)
{
    int rc;

    if (before->found)
        memcpy(a->x, before->x, sizeof(a->x));
    rc = before->found ? match_fit(a, match_fine_slopes, MATCH_FINE, err)
                       : match_fit(a, slopes, VT_COUNT(slopes), err);
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

    rc = match_attempt(&a, s->m, k, s->load_weight, k > match_kinds ? before - 1 : NULL,
                       &found, err);
    if (rc != VT_OK || !found)
        return rc;
    if ((rc = solve_again(&a, before, err)))
        return rc;
    score = score_in_sample(s, &a);
    if (!s->o->no_cv && match_counting(s) > 1) {
        if (s->best.kind && a.cost > HOPELESS * s->best.cost)
            return VT_OK;
        if ((rc = cross_validate(s, &a, &score, err)))
            return rc;
    }
    if (score >= s->least)
        return VT_OK;
    s->least = score;
    s->best = a;
    match_point_hints(&s->best);
    memcpy(s->best_without, s->cost_without, s->m->n * sizeof(*s->best_without));
    for (size_t i = 0; i < s->m->n; i++)
        r->load[i].out = s->row[i];
    return VT_OK;
}

int match_try(struct search *s, size_t kind, struct vt_match_result *r,
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
int match_best(struct search *s, struct vt_match_result *r, struct vt_err *err)
{
    const struct match_kind *first = s->best.kind;
    int rc = VT_OK;

    s->least = INFINITY;
    s->best.kind = NULL;
    if (first)
        rc = match_try(s, (size_t)(first - match_kinds), r, err);
    for (size_t i = 0; i < match_n_kinds && rc == VT_OK; i++) {
        const struct match_kind *k = &match_kinds[i];

        if (k == first || k->starts == MATCH_WIDER)
            continue;
        if (k->starts != MATCH_ALONE && cannot_be_better(s))
            break;
        rc = seek_form(s, k, err);
        if (rc == VT_OK)
            rc = match_try(s, i, r, err);
    }
    if (rc == VT_OK && !s->best.kind)
        rc =
            vt_fail(err, VT_EINPUT, "no kind of model '%s' can be matched", s->o->kind);
    return rc;
}

int match_widen(struct search *s, struct vt_match_result *r, struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t i = 1; i < match_n_kinds && rc == VT_OK; i++)
        if (match_kinds[i].starts == MATCH_WIDER && s->tried[i - 1].found &&
            !cannot_be_better(s))
            rc = match_try(s, i, r, err);
    return rc;
}

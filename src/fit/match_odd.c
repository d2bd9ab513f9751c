/* match_odd.c - requests and loads that no model is to explain. */
#include "fit/match_search.h"

#include <math.h>

/* A request that took e^0.5 times as long as its like was stalled, one whose first
 * token came in a third of the time was cached, unless more than such a share of the
 * load was. */
static const double STALL = 0.5, CACHED = 1.1, FEW_STALLED = 0.15;
/* A load is odd if without it the others' cost falls below this share: of two odd ones
 * each is about half of it. */
static const double LESS_WITHOUT = 0.65;

/* ---- requests that nobody answered -------------------------------------- */

/* Where requests failed or were aborted before a token the others had to share the
 * engine with more than can be simulated: other loads tell better, if there are. */
void match_leave_unanswered_out(struct search *s, struct vt_match_result *r)
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
#define TTFT_OF(i) match_log_error((double)w->measured[i].ttft_ns / 1e6, sim[i].ttft)
#define E2E_OF(i)  match_log_error((double)w->measured[i].e2e_ns / 1e6, sim[i].e2e)
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

int match_leave_stalls_out(struct search *s, struct vt_match_result *r, bool *any,
                           struct vt_err *err)
{
    int rc = VT_OK;

    *any = false;
    for (size_t i = 0; i < s->m->n && rc == VT_OK; i++) {
        struct match_load *l = &s->m->load[i];
        struct match_ends *ends = calloc(l->w->n + 1, sizeof(*ends));
        double *cell = calloc(l->w->n + 1, sizeof(*cell));
        struct match_numbers unused;

        rc = !ends || !cell
                 ? vt_nomem(err)
                 : match_simulate(&s->best, s->best.x, i, &unused, ends, err);
        if (rc == VT_OK)
            rc = mark_stalled(l, ends, cell, &r->load[i].stalled, err);
        *any |= r->load[i].stalled > 0;
        free(ends);
        free(cell);
    }
    return rc;
}

/* A load that no fit of all can match, and without which the others fall into place:
 * more than without most others. */
int match_find_odd(struct search *s, size_t *odd, struct vt_err *err)
{
    double worst = 0, least = INFINITY, *without;
    size_t n = 0;
    int rc = VT_OK;

    *odd = SIZE_MAX;
    if (s->o->no_cv || match_counting(s) < 3)
        return VT_OK;
    without = malloc(s->m->n * sizeof(*without));
    if (!without)
        return vt_nomem(err);
    for (size_t i = 0; i < s->m->n && rc == VT_OK; i++) {
        double e;

        if (!match_counts(s, i))
            continue;
        rc = match_error(&s->best, i, &e, err);
        worst = fmax(worst, e);
        without[n++] = s->best_without[i];
        if (s->best_without[i] < least) {
            least = s->best_without[i];
            *odd = i;
        }
    }
    vt_sort_f64(without, n);
    if (worst < MATCH_UNLIKE || least > LESS_WITHOUT * s->best.cost ||
        least > LESS_WITHOUT * vt_quantile(without, n, 50))
        *odd = SIZE_MAX;
    free(without);
    return rc;
}

/* seeds.c - several runs of one load: whether they agree, and who does not. */
#include <math.h>

#include "report/stats.h"

static bool is_between(double v, const struct vt_again *a, int i)
{
    return v >= a->lo[i] && v <= a->hi[i];
}

/* Neither could be a second run of the other. */
static bool disagree_in(const struct vt_seed *a, const struct vt_seed *b, int m, int i)
{
    return !is_between(a->spread[m][i], &b->again[m], i) &&
           !is_between(b->spread[m][i], &a->again[m], i);
}

static bool disagree(const struct vt_seed *a, const struct vt_seed *b)
{
    for (int m = 0; m < VT_N_METRICS; m++)
        for (int i = 0; i < SPREAD; i++)
            if (disagree_in(a, b, m, i))
                return true;
    return false;
}

static void count_disputes(struct vt_seed *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        s[i].disputes = 0;
        for (size_t k = 0; k < n; k++)
            s[i].disputes += k != i && !s[k].odd && disagree(&s[i], &s[k]);
    }
}

/* Where it is farthest from those that are not odd, and what these say. */
static void find_reason(struct vt_seed *s, size_t n, size_t which)
{
    struct vt_seed *odd = &s[which];
    double most = -1;

    for (int m = 0; m < VT_N_METRICS; m++)
        for (int i = 0; i < SPREAD; i++) {
            double lo = INFINITY, hi = 0, mine = odd->spread[m][i], off;
            bool disputed = false;

            for (size_t k = 0; k < n; k++) {
                if (k == which || s[k].odd)
                    continue;
                lo = fmin(lo, s[k].spread[m][i]);
                hi = fmax(hi, s[k].spread[m][i]);
                disputed = disputed || disagree_in(odd, &s[k], m, i);
            }
            off = mine < lo ? lo / mine : mine / hi;
            if (disputed && off > most) {
                most = off;
                odd->metric = metric_text[m].name;
                odd->part = spread_part[i];
                odd->mine = mine;
                odd->lo = lo;
                odd->hi = hi;
            }
        }
}

/* Who most others speak against, if those who are left are more. */
static void name_odd(struct vt_seeds *x)
{
    x->n_odd = 0;
    for (size_t i = 0; i < x->n; i++)
        x->n_odd += 2 * (size_t)x->seed[i].disputes > x->n - 1;
    if (2 * x->n_odd >= x->n)
        x->n_odd = 0;
    for (size_t i = 0; i < x->n && x->n_odd > 0; i++)
        x->seed[i].odd = 2 * (size_t)x->seed[i].disputes > x->n - 1;
}

int vt_seeds_judge(struct vt_seeds *x, struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t i = 0; i < x->n; i++)
        for (int m = 0; m < VT_N_METRICS && rc == VT_OK; m++) {
            double *ms = NULL;
            size_t n = 0;

            rc = vt_view_samples(x->seed[i].view, (enum vt_metric)m, &ms, &n, err);
            if (rc == VT_OK)
                spread_of(ms, n, x->seed[i].spread[m]);
            free(ms);
            if (rc == VT_OK)
                rc = vt_again(x->seed[i].view, (enum vt_metric)m, &x->seed[i].again[m],
                              err);
        }
    if (rc != VT_OK)
        return rc;
    count_disputes(x->seed, x->n);
    name_odd(x);
    count_disputes(x->seed, x->n);
    x->agree = true;
    for (size_t i = 0; i < x->n; i++) {
        x->agree = x->agree && (x->seed[i].odd || x->seed[i].disputes == 0);
        if (x->seed[i].disputes > 0)
            find_reason(x->seed, x->n, i);
    }
    return VT_OK;
}

/* ---- text ------------------------------------------------------------- */

static void put_reason(struct vt_buf *b, const struct vt_seed *s)
{
    vt_buf_printf(b, "%s %s is %.3f ms, ", s->metric, s->part, s->mine);
    if (s->hi > s->lo)
        vt_buf_printf(b, "%.3f to %.3f ms in the others\n", s->lo, s->hi);
    else
        vt_buf_printf(b, "%.3f ms in the other\n", s->lo);
}

void vt_seeds_table(struct vt_buf *b, const struct vt_seeds *x)
{
    int width = 7;

    for (size_t i = 0; i < x->n; i++) {
        int len = (int)strlen(x->seed[i].view->label);

        width = len > width ? len : width;
    }
    vt_buf_printf(b, "%-*s %8s %29s %26s %32s\n", width, "capture", "requests",
                  "TTFT p50, p90, p99 (ms)", "ITL p50, p90, p99 (ms)",
                  "decode p50, p90, p99 (ms)");
    for (size_t i = 0; i < x->n; i++) {
        const struct vt_seed *s = &x->seed[i];

        vt_buf_printf(b, "%-*s %8zu", width, s->view->label, s->view->n);
        for (int k = 0; k < SPREAD; k++)
            vt_buf_printf(b, " %9.3f", s->spread[VT_TTFT][k]);
        for (int k = 0; k < SPREAD; k++)
            vt_buf_printf(b, " %8.3f", s->spread[VT_ITL][k]);
        for (int k = 0; k < SPREAD; k++)
            vt_buf_printf(b, " %10.3f", s->spread[VT_DECODE][k]);
        vt_buf_char(b, '\n');
    }
    vt_buf_char(b, '\n');
    for (size_t i = 0; i < x->n; i++) {
        const struct vt_seed *s = &x->seed[i];

        if (s->disputes == 0)
            continue;
        vt_buf_printf(b, "%s: %s: ", s->odd ? "odd" : "in doubt", s->view->label);
        put_reason(b, s);
    }
    if (x->n_odd > 0)
        vt_buf_printf(b, "verdict: %zu of %zu odd, the others %s: FAIL\n", x->n_odd,
                      x->n, x->agree ? "agree" : "disagree, too");
    else if (!x->agree)
        vt_buf_printf(b, "verdict: they disagree, and %s: FAIL\n",
                      x->n < 3 ? "a third would tell who is odd"
                               : "not most with one another");
    else
        vt_buf_printf(b, "verdict: %zu captures agree: PASS\n", x->n);
}

void vt_seeds_json(struct vt_buf *b, const struct vt_seeds *x)
{
    struct vt_jw j;

    vt_jw_init(&j, b, &vt_json_pretty);
    vt_jw_map(&j, NULL);
    vt_jw_list(&j, "captures");
    for (size_t i = 0; i < x->n; i++) {
        const struct vt_seed *s = &x->seed[i];

        vt_jw_row(&j, NULL);
        vt_jw_str(&j, "capture", s->view->label);
        vt_jw_u64(&j, "requests", s->view->n);
        for (int m = 0; m < VT_N_METRICS; m++)
            spread_json(&j, metric_text[m].key, s->spread[m]);
        vt_jw_u64(&j, "disputes", s->disputes);
        vt_jw_bool(&j, "odd", s->odd);
        vt_jw_end(&j);
    }
    vt_jw_end(&j);
    vt_jw_bool(&j, "pass", x->n_odd == 0 && x->agree);
    vt_jw_end(&j);
    vt_buf_char(b, '\n');
}

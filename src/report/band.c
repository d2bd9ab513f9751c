/* band.c - the long gaps of decoding requests that others' prompts hold up.
 *
 * A survival curve of gaps falls off where plain decoding ends, and goes on in two
 * shelves: steps that are bound by their launch or by the rest of a prompt, and steps
 * that are full of prompt tokens. How many gaps lie on them, where, and how far spread
 * is what schedulers and step times make together. */
#include <math.h>

#include "report/again.h"

static const char *const names[VT_BAND_PARTS] = {"band", "lower shelf", "upper shelf"};
static const double tenths[SPREAD] = {0.1, 0.5, 0.9};
/* A gap of two usual ones: something else was in the step. */
static const double LONG = 2;
enum { LEAST = 20 }; /* gaps, of which a shelf can be told */

/* By how much two runs of one load differ where they are, however long: launches are
 * the host's, full steps the GPU's (docs/accuracy.md). */
static const double apart[VT_BAND_PARTS] = {0.33, 0.33, 0.12};

/* What is judged: its mass, its place, and by both ends its width. */
enum { MASS, P10, P50, P90 };
static const char *const judged_name[VT_BAND_JUDGED] = {"mass", "p10", "p50", "p90"};
static const char *const judged_key[VT_BAND_JUDGED] = {"mass", "p10_ms", "p50_ms",
                                                       "p90_ms"};

/* ---- where it is ------------------------------------------------------ */

static size_t first_above(const struct again *a, double ms)
{
    size_t lo = 0, hi = a->n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (a->sample[mid].ms > ms)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

/* Parts gaps in two so that both sides are as narrow as can be, in their logarithm
 * (Otsu's threshold). */
static double find_cut(const struct again_sample *s, size_t n)
{
    double all = 0, left = 0, best = -1, cut = s[0].ms;

    for (size_t i = 0; i < n; i++)
        all += log(s[i].ms);
    for (size_t i = 1; i < n; i++) {
        double a, b, between;

        left += log(s[i - 1].ms);
        a = left / (double)i;
        b = (all - left) / (double)(n - i);
        between = (double)i * (double)(n - i) * (b - a) * (b - a);
        if (between > best && s[i].ms > s[i - 1].ms) {
            best = between;
            cut = sqrt(s[i - 1].ms * s[i].ms);
        }
    }
    return cut;
}

/* ---- what is in it ---------------------------------------------------- */

static struct vt_band_look look_at(const struct again *a, double from, double to,
                                   uint64_t all)
{
    double q[SPREAD] = {0};
    uint64_t n =
        again_quantiles(a, first_above(a, from), first_above(a, to), tenths, q);

    return (struct vt_band_look){.mass = all > 0 ? (double)n / (double)all : 0,
                                 .p10 = q[0],
                                 .p50 = q[1],
                                 .p90 = q[2]};
}

static void take_judged(const struct vt_band_look *l, double out[VT_BAND_JUDGED])
{
    out[MASS] = l->mass;
    out[P10] = l->p10;
    out[P50] = l->p50;
    out[P90] = l->p90;
}

static uint64_t count_all(const struct again *a)
{
    uint64_t all = 0;

    for (size_t i = 0; i < a->n; i++)
        all += a->times[a->sample[i].request];
    return all;
}

/* A step's launch ends the gap before it, and the GPU's rest of it is the next: what
 * launches take longer than in the other run is missing on the upper shelf. */
static double missing_there(const struct vt_band *b, size_t which)
{
    return which == VT_BAND_UPPER
               ? apart[VT_BAND_LOWER] * b->part[VT_BAND_LOWER].captured.p50
               : 0;
}

static void judge(struct vt_band_part *p, size_t which, double more_ms,
                  double (*drawn)[AGAIN_DRAWS])
{
    double seen[VT_BAND_JUDGED], modelled[VT_BAND_JUDGED];

    take_judged(&p->captured, seen);
    take_judged(&p->modelled, modelled);
    p->pass = true;
    for (int i = MASS; i < VT_BAND_JUDGED; i++) {
        struct again_range r = again_range(seen[i], drawn[i]);
        double off = i == MASS ? 0 : apart[which], more = i == MASS ? 0 : more_ms;

        p->lo[i] = r.lo * (1 - off) - more;
        p->hi[i] = r.hi / (1 - off) + more;
        p->beyond[i] = !(modelled[i] >= p->lo[i] && modelled[i] <= p->hi[i]);
        p->pass = p->pass && !p->beyond[i];
    }
}

static void ends_of(const struct vt_band *b, int which, double *from, double *to)
{
    *from = which == VT_BAND_UPPER ? b->cut_ms : b->edge_ms;
    *to = which == VT_BAND_LOWER ? b->cut_ms : INFINITY;
}

static void fill(struct vt_band *b, struct again *captured, struct again *modelled,
                 double (*drawn)[VT_BAND_JUDGED][AGAIN_DRAWS])
{
    double from, to, one[VT_BAND_JUDGED];

    for (int k = 0; k < VT_BAND_PARTS; k++) {
        ends_of(b, k, &from, &to);
        b->part[k].name = names[k];
        b->part[k].captured = look_at(captured, from, to, captured->n);
        b->part[k].modelled = look_at(modelled, from, to, modelled->n);
    }
    for (size_t d = 0; d < AGAIN_DRAWS; d++) {
        uint64_t all;

        again_draw(captured);
        all = count_all(captured);
        for (int k = 0; k < VT_BAND_PARTS; k++) {
            struct vt_band_look l;

            ends_of(b, k, &from, &to);
            l = look_at(captured, from, to, all);
            take_judged(&l, one);
            for (int i = MASS; i < VT_BAND_JUDGED; i++)
                drawn[k][i][d] = one[i];
        }
    }
    b->pass = true;
    for (size_t k = 0; k < VT_BAND_PARTS; k++) {
        judge(&b->part[k], k, missing_there(b, k), drawn[k]);
        b->pass = b->pass && b->part[k].pass;
    }
}

int vt_band(struct vt_band *b, const struct vt_view *captured,
            const struct vt_view *modelled, struct vt_err *err)
{
    double (*drawn)[VT_BAND_JUDGED][AGAIN_DRAWS] =
        malloc(VT_BAND_PARTS * sizeof(*drawn));
    double usual[SPREAD] = {0};
    struct again c = {0}, m = {0};
    size_t first, n;
    int rc = drawn ? again_open(&c, captured, VT_ITL, err) : vt_nomem(err);

    *b = (struct vt_band){.kind = captured->label, .modelled = modelled->label};
    if (rc == VT_OK)
        rc = again_open(&m, modelled, VT_ITL, err);
    if (rc == VT_OK) {
        again_quantiles(&c, 0, c.n, tenths, usual);
        b->edge_ms = LONG * usual[1];
        first = first_above(&c, b->edge_ms);
        n = c.n - first;
        if (n < LEAST)
            rc = vt_fail(err, VT_EINPUT,
                         "no band: %zu of %zu gaps are longer than two usual ones, "
                         "%.3f ms",
                         n, c.n, b->edge_ms);
        else
            b->cut_ms = find_cut(&c.sample[first], n);
    }
    if (rc == VT_OK)
        fill(b, &c, &m, drawn);
    again_close(&c);
    again_close(&m);
    free(drawn);
    return rc;
}

/* ---- text ------------------------------------------------------------- */

void vt_band_table(struct vt_buf *b, const struct vt_band *x)
{
    char who[64];

    vt_buf_printf(b,
                  "%s: %s\nmodelled: %s\n\n"
                  "gaps beyond %.3f ms, two usual ones; the shelves part at %.3f ms\n",
                  x->kind, x->captured, x->modelled, x->edge_ms, x->cut_ms);
    vt_buf_printf(b, "%-22s %8s %9s %9s %9s\n", "", "mass", "p10 (ms)", "p50 (ms)",
                  "p90 (ms)");
    for (int k = 0; k < VT_BAND_PARTS; k++) {
        const struct vt_band_part *p = &x->part[k];
        const struct vt_band_look *l[] = {&p->captured, &p->modelled};

        for (int i = 0; i < 2; i++) {
            snprintf(who, sizeof(who), "%s %s", p->name, i == 0 ? x->kind : "modelled");
            vt_buf_printf(b, "%-22s %6.2f %% %9.3f %9.3f %9.3f\n", who,
                          100 * l[i]->mass, l[i]->p10, l[i]->p50, l[i]->p90);
        }
        for (int i = 0; i < 2; i++) {
            const double *end = i == 0 ? p->lo : p->hi;

            vt_buf_printf(b, "%-22s %6.2f %% %9.3f %9.3f %9.3f\n",
                          i == 0 ? "  a second run, from" : "                to",
                          100 * end[MASS], end[P10], end[P50], end[P90]);
        }
    }
    vt_buf_printf(b, "\nverdict: %.2f %% of gaps in the band, %.2f %% modelled",
                  100 * x->part[VT_BAND_ALL].captured.mass,
                  100 * x->part[VT_BAND_ALL].modelled.mass);
    if (x->pass)
        vt_buf_str(b, ", as far as a second run would be: PASS\n");
    else
        vt_buf_str(b, ";");
    for (int k = 0, any = 0; k < VT_BAND_PARTS && !x->pass; k++)
        for (int i = MASS; i < VT_BAND_JUDGED; i++)
            if (x->part[k].beyond[i])
                vt_buf_printf(b, "%s %s's %s", any++ ? "," : "", names[k],
                              judged_name[i]);
    if (!x->pass)
        vt_buf_str(b, " farther than a second run would be: FAIL\n");
}

static void look_json(struct vt_jw *j, const char *key, const struct vt_band_look *l)
{
    vt_jw_row(j, key);
    vt_jw_f64(j, "mass", l->mass);
    vt_jw_f64(j, "p10_ms", l->p10);
    vt_jw_f64(j, "p50_ms", l->p50);
    vt_jw_f64(j, "p90_ms", l->p90);
    vt_jw_end(j);
}

void vt_band_json(struct vt_buf *b, const struct vt_band *x)
{
    static const char *const key[VT_BAND_PARTS] = {"band", "lower_shelf",
                                                   "upper_shelf"};
    struct vt_jw j;

    vt_jw_init(&j, b, &vt_json_pretty);
    vt_jw_map(&j, NULL);
    vt_jw_str(&j, x->kind, x->captured);
    vt_jw_str(&j, "modelled", x->modelled);
    vt_jw_f64(&j, "edge_ms", x->edge_ms);
    vt_jw_f64(&j, "cut_ms", x->cut_ms);
    for (int k = 0; k < VT_BAND_PARTS; k++) {
        const struct vt_band_part *p = &x->part[k];

        vt_jw_map(&j, key[k]);
        look_json(&j, x->kind, &p->captured);
        look_json(&j, "modelled", &p->modelled);
        vt_jw_row(&j, "second_run");
        for (int i = MASS; i < VT_BAND_JUDGED; i++) {
            const double range[] = {p->lo[i], p->hi[i]};

            vt_jw_f64_list(&j, judged_key[i], range, 2);
        }
        vt_jw_end(&j);
        vt_jw_bool(&j, "pass", p->pass);
        vt_jw_end(&j);
    }
    vt_jw_bool(&j, "pass", x->pass);
    vt_jw_end(&j);
    vt_buf_char(b, '\n');
}

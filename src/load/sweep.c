/* sweep.c - runs at one load after another: which of them were too much, and what they
 * measured, as a table, as CSV, as JSON and as a picture. */
#include <math.h>
#include <stdlib.h>

#include "load/load.h"
#include "report/report.h"

enum { NOISE_MS = 10 };

void vt_sweep_free(struct vt_sweep *w)
{
    free(w->point);
    *w = (struct vt_sweep){0};
}

/* ---- loads ----------------------------------------------------------- */

static bool parse_load(const char *text, size_t len, enum vt_sweep_of of, double *out)
{
    uint64_t whole;

    if (of == VT_SWEEP_CONCURRENCY) {
        if (!vt_parse_u64(text, len, &whole) || whole == 0 || whole > 1000000)
            return false;
        *out = (double)whole;
        return true;
    }
    if (len == 3 && memcmp(text, "inf", 3) == 0) {
        *out = INFINITY;
        return true;
    }
    return vt_parse_f64(text, len, out) && *out > 0 && *out <= 1e6;
}

int vt_sweep_parse(const char *text, enum vt_sweep_of of, double **out, size_t *n,
                   struct vt_err *err)
{
    size_t cap = 0;

    *out = NULL;
    *n = 0;
    for (const char *at = text;; at++) {
        size_t len = strcspn(at, ",");
        int rc = vt_grow(out, &cap, *n + 1, sizeof(**out), err);

        if (rc == VT_OK && !parse_load(at, len, of, &(*out)[*n]))
            rc = vt_fail(err, VT_EINPUT, "'%.*s' is no %s", (int)len, at,
                         of == VT_SWEEP_RATE ? "rate: a number above 0, or inf"
                                             : "number of requests at a time");
        if (rc != VT_OK) {
            free(*out);
            *out = NULL;
            return rc;
        }
        ++*n;
        at += len;
        if (*at == '\0')
            return VT_OK;
    }
}

/* ---- saturation ------------------------------------------------------ */

/* The middle of the last third is beyond what was usual in the first, and by more than
 * the machine's own noise. Looked at are first tokens of first turns, with what they
 * waited in the client, in the order in which they were due: later turns take longer by
 * themselves. */
static int is_growing(const struct vt_load_records *r, bool *out, struct vt_err *err)
{
    double *v = malloc((r->n + 1) * sizeof(*v)), early, usual, late;
    size_t n = 0, third;

    if (!v)
        return vt_nomem(err);
    for (size_t i = 0; i < r->n; i++)
        if (r->record[i].ok && r->record[i].turn == 0)
            v[n++] = (double)(r->record[i].first - r->record[i].planned) / 1e6;
    third = n / 3;
    *out = false;
    if (third > 0) {
        vt_sort_f64(v, third);
        vt_sort_f64(v + n - third, third);
        early = vt_quantile(v, third, 50);
        usual = vt_quantile(v, third, 95);
        late = vt_quantile(v + n - third, third, 50);
        *out = late > 1.5 * early && late > usual && late > early + NOISE_MS;
    }
    free(v);
    return VT_OK;
}

/* The second run at one load has a number, and so on. */
static void name_point(const struct vt_sweep *w, struct vt_sweep_point *p)
{
    const char *what = w->of == VT_SWEEP_RATE ? "rate" : "concurrency";
    size_t again = 0;

    for (size_t i = 0; i < w->n; i++)
        again += w->point[i].load >= p->load && w->point[i].load <= p->load ? 1 : 0;
    if (again > 1)
        snprintf(p->file, sizeof(p->file), "%s-%g-%zu.json", what, p->load, again);
    else
        snprintf(p->file, sizeof(p->file), "%s-%g.json", what, p->load);
}

int vt_sweep_add(struct vt_sweep *w, double load, const struct vt_load_summary *s,
                 const struct vt_load_records *r, struct vt_err *err)
{
    const struct vt_sweep_point *before;
    struct vt_sweep_point *p;
    size_t sessions = 0;
    bool growing = false;
    int rc = vt_grow(&w->point, &w->cap, w->n + 1, sizeof(*w->point), err);

    if (rc == VT_OK)
        rc = is_growing(r, &growing, err);
    if (rc != VT_OK)
        return rc;
    for (size_t i = 0; i < r->n; i++)
        sessions += r->record[i].turn == 0 ? 1 : 0;
    p = &w->point[w->n];
    before = w->n > 0 ? p - 1 : NULL;
    *p = (struct vt_sweep_point){.load = load,
                                 .s = *s,
                                 .turns = sessions > 0 ? (double)r->n / (double)sessions
                                                       : 1};
    p->s.first_error = NULL; /* the records may go */
    if (w->of == VT_SWEEP_RATE)
        p->saturated =
            growing && (isinf(load) || s->request_throughput < 0.9 * load * p->turns);
    else
        p->saturated = before && load > before->load &&
                       s->output_throughput < 1.03 * before->s.output_throughput &&
                       s->ttft.median > before->s.ttft.median;
    w->n++;
    name_point(w, p);
    return VT_OK;
}

static const char *variable(const struct vt_sweep *w)
{
    return w->of == VT_SWEEP_RATE ? "request_rate" : "max_concurrency";
}

static const char *load_name(const struct vt_sweep *w)
{
    if (w->of == VT_SWEEP_CONCURRENCY)
        return "concurrency";
    return w->n > 0 && w->point[0].turns > 1 ? "sessions/s" : "asked req/s";
}

/* ---- table ----------------------------------------------------------- */

void vt_sweep_table(struct vt_buf *b, const struct vt_sweep *w)
{
    const struct vt_sweep_point *best = NULL;

    vt_buf_printf(b, "%11s %9s %6s %9s %10s %21s %17s %17s %11s\n", "", "", "", "req/s",
                  "output", "TTFT (ms)", "TPOT (ms)", "ITL (ms)", "E2EL (ms)");
    vt_buf_printf(b, "%11s %9s %6s %9s %10s %10s %10s %8s %8s %8s %8s %11s\n",
                  load_name(w), "completed", "failed", "served", "tok/s", "p50", "p99",
                  "p50", "p99", "p50", "p99", "p99");
    for (size_t i = 0; i < w->n; i++) {
        const struct vt_sweep_point *p = &w->point[i];
        const struct vt_load_summary *s = &p->s;

        vt_buf_printf(b, "%11g %9zu %6zu %9.2f %10.1f", p->load, s->completed,
                      s->failed, s->request_throughput, s->output_throughput);
        vt_buf_printf(b, " %10.2f %10.2f", s->ttft.median, s->ttft.p99);
        vt_buf_printf(b, " %8.2f %8.2f", s->tpot.median, s->tpot.p99);
        vt_buf_printf(b, " %8.2f %8.2f", s->itl.median, s->itl.p99);
        vt_buf_printf(b, " %11.2f%s\n", s->e2el.p99, p->saturated ? "  saturated" : "");
        if (!best || s->request_throughput > best->s.request_throughput)
            best = p;
    }
    if (best)
        vt_buf_printf(b, "highest throughput: %.2f requests/s, %.1f tokens/s at %g\n",
                      best->s.request_throughput, best->s.output_throughput,
                      best->load);
}

/* ---- members --------------------------------------------------------- */

/* What both files tell of a run, by the names of its result. */
enum kind { REAL, SIZE, U64, U32 };
static const struct column {
    const char *name;
    enum kind kind;
    size_t at; /* in the summary */
} columns[] = {
#define AT(field) offsetof(struct vt_load_summary, field)
#define LATENCY(metric)                                     \
    {"mean_" #metric "_ms", REAL, AT(metric.mean)},         \
        {"median_" #metric "_ms", REAL, AT(metric.median)}, \
        {"p90_" #metric "_ms", REAL, AT(metric.p90)},       \
    {                                                       \
        "p99_" #metric "_ms", REAL, AT(metric.p99)          \
    }
    {"duration", REAL, AT(duration_s)},
    {"completed", SIZE, AT(completed)},
    {"failed", SIZE, AT(failed)},
    {"total_input_tokens", U64, AT(total_input)},
    {"total_output_tokens", U64, AT(total_output)},
    {"request_throughput", REAL, AT(request_throughput)},
    {"request_goodput", REAL, AT(request_goodput)},
    {"output_throughput", REAL, AT(output_throughput)},
    {"total_token_throughput", REAL, AT(total_throughput)},
    {"max_output_tokens_per_s", REAL, AT(max_output_per_s)},
    {"max_concurrent_requests", U32, AT(max_concurrent)},
    LATENCY(ttft),
    LATENCY(tpot),
    LATENCY(itl),
    LATENCY(e2el),
};

static double value_of(const struct column *c, const struct vt_load_summary *s)
{
    const void *at = (const char *)s + c->at;

    switch (c->kind) {
    case SIZE:
        return (double)*(const size_t *)at;
    case U64:
        return (double)*(const uint64_t *)at;
    case U32:
        return *(const uint32_t *)at;
    default:
        return *(const double *)at;
    }
}

void vt_sweep_csv(struct vt_buf *b, const struct vt_sweep *w)
{
    vt_buf_str(b, variable(w));
    for (size_t i = 0; i < VT_COUNT(columns); i++)
        vt_buf_printf(b, ",%s", columns[i].name);
    vt_buf_str(b, ",saturated,result\n");
    for (size_t k = 0; k < w->n; k++) {
        vt_buf_printf(b, "%g", w->point[k].load);
        for (size_t i = 0; i < VT_COUNT(columns); i++) {
            double v = value_of(&columns[i], &w->point[k].s);

            vt_buf_char(b, ',');
            if (isfinite(v))
                vt_buf_f64(b, v);
        }
        vt_buf_printf(b, ",%s,%s\n", w->point[k].saturated ? "true" : "false",
                      w->point[k].file);
    }
}

void vt_sweep_json(struct vt_buf *b, const struct vt_sweep *sweep)
{
    struct vt_json_style style = vt_json_spaced;
    struct vt_jw w;

    style.indent = " ";
    vt_jw_init(&w, b, &style);
    vt_jw_list(&w, NULL);
    for (size_t k = 0; k < sweep->n; k++) {
        const struct vt_sweep_point *p = &sweep->point[k];

        vt_jw_row(&w, NULL);
        if (isinf(p->load))
            vt_jw_str(&w, variable(sweep), "inf");
        else
            vt_jw_f64(&w, variable(sweep), p->load);
        for (size_t i = 0; i < VT_COUNT(columns); i++)
            vt_jw_f64(&w, columns[i].name, value_of(&columns[i], &p->s));
        vt_jw_bool(&w, "saturated", p->saturated);
        vt_jw_str(&w, "result", p->file);
        vt_jw_end(&w);
    }
    vt_jw_end(&w);
    vt_buf_char(b, '\n');
}

/* ---- picture --------------------------------------------------------- */

static int by_load(const void *pa, const void *pb)
{
    const struct vt_load_point *a = pa, *b = pb;

    return a->load < b->load ? -1 : a->load > b->load;
}

/* What both figures show; the caller frees its points. */
static int make_curve(const struct vt_sweep *w, struct vt_load_curve *c,
                      struct vt_err *err)
{
    struct vt_load_point *point = malloc((w->n + 1) * sizeof(*point));

    *c = (struct vt_load_curve){.point = point};
    if (!point)
        return vt_nomem(err);
    for (size_t i = 0; i < w->n; i++) {
        const struct vt_sweep_point *p = &w->point[i];

        if (p->s.completed > 0)
            point[c->n++] = (struct vt_load_point){
                .load = p->load,
                .ttft = {p->s.ttft.median, p->s.ttft.p99},
                .tpot = {p->s.tpot.median, p->s.tpot.p99},
                .itl = {p->s.itl.median, p->s.itl.p99},
                .req_per_s = p->s.request_throughput,
                .output_tok_per_s = p->s.output_throughput,
                .saturated = p->saturated,
            };
    }
    qsort(point, c->n, sizeof(*point), by_load);
    c->axis = w->of != VT_SWEEP_RATE              ? VT_LOAD_BY_CONCURRENCY
              : w->n > 0 && w->point[0].turns > 1 ? VT_LOAD_BY_SESSION_RATE
                                                  : VT_LOAD_BY_RATE;
    return VT_OK;
}

int vt_sweep_draw(const struct vt_sweep *w, const char *title, const char *scratch,
                  const char *path, struct vt_err *err)
{
    struct vt_load_curve c;
    int rc = make_curve(w, &c, err);

    c.title = title;
    c.scratch = scratch;
    if (rc == VT_OK)
        rc = vt_load_curve_draw(&c, path, err);
    free((void *)(uintptr_t)c.point);
    return rc;
}

int vt_sweep_page(struct vt_buf *b, const struct vt_sweep *w, struct vt_err *err)
{
    struct vt_load_curve c;
    int rc = make_curve(w, &c, err);

    if (rc == VT_OK)
        rc = vt_load_curve_page(b, &c, err);
    free((void *)(uintptr_t)c.point);
    return rc;
}

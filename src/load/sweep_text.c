/* sweep_text.c - a sweep as a table, as CSV and as JSON. */
#include <math.h>

#include "load/load.h"

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

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

static void put_row(struct vt_buf *b, const struct vt_sweep_point *p)
{
    const struct vt_load_summary *s = &p->s;

    vt_buf_printf(b, "%11g %9zu %6zu %9.2f %10.1f", p->load, s->completed, s->failed,
                  s->request_throughput, s->output_throughput);
    vt_buf_printf(b, " %10.2f %10.2f", s->ttft.median, s->ttft.p99);
    vt_buf_printf(b, " %8.2f %8.2f", s->tpot.median, s->tpot.p99);
    vt_buf_printf(b, " %8.2f %8.2f", s->itl.median, s->itl.p99);
    vt_buf_printf(b, " %11.2f%s\n", s->e2el.p99, p->saturated ? "  saturated" : "");
}

void vt_sweep_table(struct vt_buf *b, const struct vt_sweep *w)
{
    const struct vt_sweep_point *best = NULL;

    vt_buf_printf(b, "%11s %9s %6s %9s %10s %21s %17s %17s %11s\n", "", "", "", "req/s",
                  "output", "TTFT (ms)", "TPOT (ms)", "ITL (ms)", "E2EL (ms)");
    vt_buf_printf(b, "%11s %9s %6s %9s %10s %10s %10s %8s %8s %8s %8s %11s\n",
                  load_name(w), "completed", "failed", "served", "tok/s", "p50", "p99",
                  "p50", "p99", "p50", "p99", "p99");
    for (size_t i = 0; i < w->n; i++) {
        put_row(b, &w->point[i]);
        if (!best || w->point[i].s.request_throughput > best->s.request_throughput)
            best = &w->point[i];
    }
    if (best)
        vt_buf_printf(b, "highest throughput: %.2f requests/s, %.1f tokens/s at %g\n",
                      best->s.request_throughput, best->s.output_throughput,
                      best->load);
}

/* ---- members --------------------------------------------------------- */

/* What both files tell of a run, by the names of its result. */
struct column {
    const char *name;
    double (*value)(const struct vt_load_summary *s);
};

#define COLUMN(field, expression)                              \
    static double get_##field(const struct vt_load_summary *s) \
    {                                                          \
        return (double)(expression);                           \
    }
#define LATENCY(metric)                       \
    COLUMN(mean_##metric, s->metric.mean)     \
    COLUMN(median_##metric, s->metric.median) \
    COLUMN(p90_##metric, s->metric.p90)       \
    COLUMN(p99_##metric, s->metric.p99)
#define LATENCY_ROWS(metric)                            \
    {"mean_" #metric "_ms", get_mean_##metric},         \
        {"median_" #metric "_ms", get_median_##metric}, \
        {"p90_" #metric "_ms", get_p90_##metric},       \
    {                                                   \
        "p99_" #metric "_ms", get_p99_##metric          \
    }

COLUMN(duration, s->duration_s)
COLUMN(completed, s->completed)
COLUMN(failed, s->failed)
COLUMN(input, s->total_input)
COLUMN(output, s->total_output)
COLUMN(req, s->request_throughput)
COLUMN(goodput, s->request_goodput)
COLUMN(tok, s->output_throughput)
COLUMN(total, s->total_throughput)
COLUMN(peak, s->max_output_per_s)
COLUMN(concurrent, s->max_concurrent)
LATENCY(ttft)
LATENCY(tpot)
LATENCY(itl)
LATENCY(e2el)

static const struct column columns[] = {
    {"duration", get_duration},
    {"completed", get_completed},
    {"failed", get_failed},
    {"total_input_tokens", get_input},
    {"total_output_tokens", get_output},
    {"request_throughput", get_req},
    {"request_goodput", get_goodput},
    {"output_throughput", get_tok},
    {"total_token_throughput", get_total},
    {"max_output_tokens_per_s", get_peak},
    {"max_concurrent_requests", get_concurrent},
    LATENCY_ROWS(ttft),
    LATENCY_ROWS(tpot),
    LATENCY_ROWS(itl),
    LATENCY_ROWS(e2el),
};

void vt_sweep_csv(struct vt_buf *b, const struct vt_sweep *w)
{
    vt_buf_str(b, variable(w));
    for (size_t i = 0; i < VT_COUNT(columns); i++)
        vt_buf_printf(b, ",%s", columns[i].name);
    vt_buf_str(b, ",saturated,result\n");
    for (size_t k = 0; k < w->n; k++) {
        vt_buf_printf(b, "%g", w->point[k].load);
        for (size_t i = 0; i < VT_COUNT(columns); i++) {
            double v = columns[i].value(&w->point[k].s);

            vt_buf_char(b, ',');
            if (isfinite(v))
                vt_buf_f64(b, v);
        }
        vt_buf_printf(b, ",%s,%s\n", w->point[k].saturated ? "true" : "false",
                      w->point[k].file);
    }
}

static void json_point(struct vt_buf *b, const struct vt_sweep *w,
                       const struct vt_sweep_point *p)
{
    vt_buf_printf(b, "{\"%s\": ", variable(w));
    if (isinf(p->load))
        vt_buf_str(b, "\"inf\"");
    else
        vt_buf_f64(b, p->load);
    for (size_t i = 0; i < VT_COUNT(columns); i++) {
        vt_buf_printf(b, ", \"%s\": ", columns[i].name);
        vt_buf_f64(b, columns[i].value(&p->s));
    }
    vt_buf_printf(b, ", \"saturated\": %s, \"result\": \"%s\"}",
                  p->saturated ? "true" : "false", p->file);
}

void vt_sweep_json(struct vt_buf *b, const struct vt_sweep *w)
{
    vt_buf_char(b, '[');
    for (size_t i = 0; i < w->n; i++) {
        vt_buf_str(b, i > 0 ? ",\n " : "\n ");
        json_point(b, w, &w->point[i]);
    }
    vt_buf_str(b, "\n]\n");
}

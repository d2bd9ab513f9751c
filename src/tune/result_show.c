/* result_show.c - what a search found: for people, for programs, as a picture. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune/tune_search.h"

/* ---- JSON ------------------------------------------------------------ */

static void put_number(struct vt_buf *b, const char *key, double v)
{
    vt_buf_printf(b, "\"%s\": ", key);
    if (isinf(v))
        vt_buf_str(b, "\"inf\"");
    else
        vt_buf_f64(b, v);
    vt_buf_str(b, ", ");
}

static void put_text(struct vt_buf *b, const char *key, const char *text)
{
    vt_buf_printf(b, "\"%s\": ", key);
    vt_buf_json_str(b, text, strlen(text));
}

static void put_setting(struct vt_buf *b, const struct vt_setting *s)
{
    vt_buf_printf(b, "\"max_num_seqs\": %u, \"max_num_batched_tokens\": %u, ",
                  s->max_num_seqs, s->max_num_batched_tokens);
    put_number(b, "gpu_memory_utilization", s->gpu_memory_utilization);
    vt_buf_printf(b, "\"tensor_parallel_size\": %u, \"data_parallel_size\": %u, ",
                  s->tp, s->dp);
    if (s->dp > 1) {
        put_text(b, "routing", s->routing);
        vt_buf_str(b, ", ");
    }
    vt_buf_printf(b, "\"num_speculative_tokens\": %u, \"prefix_caching\": %s, ",
                  s->spec_tokens, s->prefix_caching ? "true" : "false");
}

static void put_tuned(struct vt_buf *b, const struct vt_setting *s,
                      const struct vt_tuned *t)
{
    const struct {
        const char *key;
        double v;
    } row[] = {
        {"kv_cache_gib", t->kv_gib},
        {"num_gpu_blocks", t->num_gpu_blocks},
        {"request_rate", t->rate},
        {"failed_rate", t->failed_rate},
        {"req_per_s", t->at.req_per_s},
        {"output_tok_per_s", t->at.output_tok_per_s},
        {"goodput", t->goodput},
        {"ttft_p99_ms", t->at.ttft.p99},
        {"tpot_p99_ms", t->at.tpot.p99},
        {"itl_p99_ms", t->at.itl.p99},
        {"e2e_p99_ms", t->at.e2e.p99},
        {"prefix_hit_rate", t->at.prefix_hit_rate},
        {"runs", t->runs},
    };

    vt_buf_char(b, '{');
    put_setting(b, s);
    vt_buf_printf(b, "\"meets\": %s, ", t->meets ? "true" : "false");
    for (size_t i = 0; i < VT_COUNT(row); i++)
        put_number(b, row[i].key, row[i].v);
    put_text(b, "binding", t->binding);
    vt_buf_str(b, ", ");
    put_text(b, "problem", t->problem);
    vt_buf_char(b, '}');
}

static void put_pareto(struct vt_buf *b, const struct vt_tune_spec *spec,
                       const struct vt_tune_result *r)
{
    size_t *front = calloc(r->n + 1, sizeof(*front));
    size_t n = front != NULL ? vt_tune_pareto(spec, r, front) : 0;

    vt_buf_str(b, "  \"pareto\": [");
    for (size_t i = 0; i < n; i++) {
        struct vt_setting s = vt_tune_space_at(&spec->space, front[i]);

        vt_buf_str(b, i == 0 ? "\n    " : ",\n    ");
        put_tuned(b, &s, &r->tuned[front[i]]);
    }
    vt_buf_str(b, n > 0 ? "\n  ],\n" : "],\n");
    free(front);
}

static void put_best(struct vt_buf *b, const struct vt_tune_spec *spec,
                     const struct vt_tune_result *r)
{
    struct vt_setting s;

    vt_buf_str(b, "  \"best\": ");
    if (r->best == r->n) {
        vt_buf_str(b, "null,\n");
        return;
    }
    s = vt_tune_space_at(&spec->space, r->best);
    put_tuned(b, &s, &r->tuned[r->best]);
    vt_buf_str(b, ",\n");
}

void vt_tune_json(struct vt_buf *b, const struct vt_tune_spec *spec,
                  const struct vt_tune_result *r, const char *profile)
{
    bool first = true;

    vt_buf_str(b, "{\n  ");
    put_text(b, "profile", profile);
    vt_buf_str(b, ",\n  ");
    put_text(b, "workload", spec->workload);
    vt_buf_str(b, ",\n  ");
    put_text(b, "objective",
             spec->goal == VT_TUNE_CAPACITY ? "capacity" : "throughput");
    vt_buf_printf(b,
                  ",\n  \"seed\": %llu,\n  \"configurations\": %zu,\n"
                  "  \"trials\": %zu,\n  \"runs\": %zu,\n",
                  (unsigned long long)spec->seed, r->n, r->trials, r->runs);
    put_best(b, spec, r);
    put_pareto(b, spec, r);
    vt_buf_str(b, "  \"tried\": [");
    for (size_t i = 0; i < r->n; i++) {
        struct vt_setting s = vt_tune_space_at(&spec->space, i);

        if (!r->tuned[i].tried)
            continue;
        vt_buf_str(b, first ? "\n    " : ",\n    ");
        first = false;
        put_tuned(b, &s, &r->tuned[i]);
    }
    vt_buf_str(b, "\n  ]\n}\n");
}

/* ---- the table ------------------------------------------------------- */

struct order { /* for qsort(), which hands on no context */
    const struct vt_tune_spec *spec;
    const struct vt_tune_result *r;
    size_t i;
};

static int by_worth(const void *x, const void *y)
{
    const struct order *a = x, *b = y;

    return vt_tune_better(a->spec, a->r, a->i, b->i) ? -1 : 1;
}

static void put_row(struct vt_buf *b, const struct vt_setting *s,
                    const struct vt_tuned *t)
{
    char rate[32];

    snprintf(rate, sizeof(rate), isinf(t->rate) ? "inf" : "%.2f", t->rate);
    vt_buf_printf(b, "%5u %7u %5.2f %3u %3u %4u %5s %8.2f %6s", s->max_num_seqs,
                  s->max_num_batched_tokens, s->gpu_memory_utilization, s->tp, s->dp,
                  s->spec_tokens, s->prefix_caching ? "on" : "off", t->kv_gib,
                  t->meets ? rate : "-");
    if (t->problem[0] != '\0')
        vt_buf_printf(b, "  %s\n", t->problem);
    else if (!t->meets)
        vt_buf_printf(b, "  above %s at every rate\n", t->binding);
    else
        vt_buf_printf(b, " %8.2f %9.0f %9.1f %9.0f  %s%s%s\n", t->at.req_per_s,
                      t->at.ttft.p99, t->at.tpot.p99, t->at.e2e.p99, t->binding,
                      s->dp > 1 ? "  " : "", s->dp > 1 ? s->routing : "");
}

void vt_tune_table(struct vt_buf *b, const struct vt_tune_spec *spec,
                   const struct vt_tune_result *r, size_t most)
{
    struct order *o = calloc(r->n + 1, sizeof(*o));
    size_t n = 0;

    for (size_t i = 0; o != NULL && i < r->n; i++)
        if (r->tuned[i].tried)
            o[n++] = (struct order){spec, r, i};
    if (n > 1)
        qsort(o, n, sizeof(*o), by_worth);
    vt_buf_printf(b, "%5s %7s %5s %3s %3s %4s %5s %8s %6s %8s %9s %9s %9s  %s\n",
                  "seqs", "batched", "mem", "TP", "DP", "spec", "cache", "KV GiB",
                  "rate", "req/s", "TTFT p99", "TPOT p99", "E2E p99", "limit above");
    for (size_t i = 0; i < n && i < most; i++) {
        struct vt_setting s = vt_tune_space_at(&spec->space, o[i].i);

        put_row(b, &s, &r->tuned[o[i].i]);
    }
    if (n > most)
        vt_buf_printf(b, "... and %zu more\n", n - most);
    free(o);
}

/* ---- the picture ----------------------------------------------------- */

struct points {
    double *x, *y; /* heap */
    size_t n;
};

static void point_add(struct points *p, const struct vt_tune_spec *spec,
                      const struct vt_tuned *t)
{
    p->x[p->n] = result_throughput(spec, t);
    p->y[p->n++] = result_latency(spec, t);
}

static int draw(const struct vt_tune_spec *spec, const struct vt_tune_result *r,
                size_t *front, struct points *p, struct vt_chart *c, const char *path,
                struct vt_err *err)
{
    struct vt_series s[3] = {
        {.name = "within the limits", .style = VT_SERIES_POINTS, .grey = true},
        {.name = "no other is better in both", .style = VT_SERIES_LINE},
        {.name = "recommended", .style = VT_SERIES_MARK},
    };
    size_t n = vt_tune_pareto(spec, r, front);

    for (size_t i = 0; i < r->n; i++)
        if (r->tuned[i].meets)
            point_add(&p[0], spec, &r->tuned[i]);
    for (size_t i = 0; i < n; i++)
        point_add(&p[1], spec, &r->tuned[front[i]]);
    if (r->best < r->n)
        point_add(&p[2], spec, &r->tuned[r->best]);
    for (int i = 0; i < 3; i++) {
        s[i].x = p[i].x;
        s[i].y = p[i].y;
        s[i].n = p[i].n;
    }
    c->series = s;
    c->n = 3;
    return vt_chart_draw(c, path, err);
}

int vt_tune_plot(const struct vt_tune_spec *spec, const struct vt_tune_result *r,
                 const char *title, const char *scratch, const char *path,
                 struct vt_err *err)
{
    bool capacity = spec->goal == VT_TUNE_CAPACITY;
    struct vt_chart c = {
        .limit = capacity ? spec->slo.tpot_p99 : spec->slo.e2e_p99,
        .heading = "Throughput against latency",
        .title = title,
        .x_label =
            capacity ? "highest request rate within the limits" : "requests per second",
        .y_label = capacity ? "TPOT p99 (ms)" : "E2E p99 (ms)",
        .scratch = scratch,
    };
    size_t *front = calloc(r->n + 1, sizeof(*front));
    struct points p[3] = {0};
    int rc = front != NULL ? VT_OK : vt_nomem(err);

    for (int i = 0; i < 3 && rc == VT_OK; i++) {
        p[i].x = calloc(r->n + 1, sizeof(double));
        p[i].y = calloc(r->n + 1, sizeof(double));
        rc = p[i].x != NULL && p[i].y != NULL ? VT_OK : vt_nomem(err);
    }
    if (rc == VT_OK)
        rc = draw(spec, r, front, p, &c, path, err);
    for (int i = 0; i < 3; i++) {
        free(p[i].x);
        free(p[i].y);
    }
    free(front);
    return rc;
}

/* result.c - what a search found: vLLM's result.txt, CSV, JSON and a table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune/tune_search.h"

/* ---- result.txt ----------------------------------------------------- */

/* bench serve prints its figures with two digits; auto_tune copies them. */
static void put_combination(struct vt_buf *b, const struct vt_tune_spec *spec,
                            const struct vt_setting *s, const struct vt_tuned *t)
{
    vt_buf_printf(b, "max_num_seqs: %u, max_num_batched_tokens: %u", s->max_num_seqs,
                  s->max_num_batched_tokens);
    if (!t->meets) {
        vt_buf_str(b, " does not meet latency requirement ");
        vt_buf_f64(b, spec->slo.e2e_p99 > 0 ? spec->slo.e2e_p99 : 100000000000.0);
        vt_buf_char(b, '\n');
        return;
    }
    vt_buf_str(b, ", request_rate: ");
    if (isinf(t->rate))
        vt_buf_str(b, "inf");
    else
        vt_buf_f64(b, t->rate);
    vt_buf_printf(b, ", e2el: %.2f, throughput: %.2f, goodput: %.2f\n", t->at.e2e.p99,
                  t->at.req_per_s, t->goodput);
}

void vt_tune_result_txt(struct vt_buf *b, const struct vt_tune_spec *spec,
                        const struct vt_tune_result *r, const char *hash,
                        const char *saved_in)
{
    struct vt_setting best = {0};
    double throughput = 0;

    vt_buf_printf(b, "hash:%s\n", hash);
    for (size_t i = 0; i < r->n; i++) {
        struct vt_setting s = vt_tune_space_at(&spec->space, i);

        if (r->tuned[i].tried)
            put_combination(b, spec, &s, &r->tuned[i]);
    }
    if (r->best < r->n) {
        best = vt_tune_space_at(&spec->space, r->best);
        throughput = r->tuned[r->best].at.req_per_s;
    }
    vt_buf_printf(b,
                  "best_max_num_seqs: %u, best_num_batched_tokens: %u, "
                  "best_throughput: %.2f, profile saved in: %s\n",
                  best.max_num_seqs, best.max_num_batched_tokens, throughput, saved_in);
}

/* ---- CSV ------------------------------------------------------------- */

static void put_csv_row(struct vt_buf *b, const struct vt_setting *s,
                        const struct vt_tuned *t)
{
    const double v[] = {
        t->kv_gib,
        t->num_gpu_blocks,
        t->meets,
        t->rate,
        t->failed_rate,
        t->at.req_per_s,
        t->at.output_tok_per_s,
        t->goodput,
        t->at.ttft.p99,
        t->at.tpot.p99,
        t->at.itl.p99,
        t->at.e2e.p99,
        t->at.prefix_hit_rate,
        (double)t->at.preemptions,
        t->runs,
    };

    vt_buf_printf(b, "%u,%u,", s->max_num_seqs, s->max_num_batched_tokens);
    vt_buf_f64(b, s->gpu_memory_utilization);
    vt_buf_printf(b, ",%u,%u,", s->tp, s->dp);
    vt_buf_csv(b, s->dp > 1 ? s->routing : "", true);
    vt_buf_printf(b, ",%u,%d,%s", s->spec_tokens, s->prefix_caching,
                  vt_setting_kv_dtype(s));
    for (size_t i = 0; i < VT_COUNT(v); i++) {
        vt_buf_char(b, ',');
        if (isinf(v[i]))
            vt_buf_str(b, "inf");
        else
            vt_buf_f64(b, v[i]);
    }
    vt_buf_printf(b, ",%s,", t->binding);
    vt_buf_csv(b, t->problem, true);
    vt_buf_char(b, '\n');
}

void vt_tune_csv(struct vt_buf *b, const struct vt_tune_spec *spec,
                 const struct vt_tune_result *r)
{
    vt_buf_str(b,
               "max_num_seqs,max_num_batched_tokens,gpu_memory_utilization,"
               "tensor_parallel_size,data_parallel_size,routing,num_speculative_tokens,"
               "prefix_caching,kv_cache_dtype,kv_cache_gib,num_gpu_blocks,meets,"
               "request_rate,"
               "failed_rate,req_per_s,output_tok_per_s,goodput,ttft_p99_ms,tpot_p99_ms,"
               "itl_p99_ms,e2e_p99_ms,prefix_hit_rate,preemptions,runs,binding,"
               "problem\n");
    for (size_t i = 0; i < r->n; i++) {
        struct vt_setting s = vt_tune_space_at(&spec->space, i);

        if (r->tuned[i].tried)
            put_csv_row(b, &s, &r->tuned[i]);
    }
}

/* ---- which are worth a look ------------------------------------------ */

double result_throughput(const struct vt_tune_spec *spec, const struct vt_tuned *t)
{
    return spec->goal == VT_TUNE_CAPACITY ? t->rate : t->at.req_per_s;
}

double result_latency(const struct vt_tuned *t, const char *name)
{
    return vt_slo_value(&t->at, vt_slo_find(name));
}

const char *vt_tune_latency(const struct vt_tune_spec *spec,
                            const struct vt_tune_result *r, double *limit)
{
    static const size_t order[] = {VT_SLO_E2E, VT_SLO_TTFT, VT_SLO_TPOT, VT_SLO_ITL};
    size_t found = vt_slo_find(r->best < r->n ? r->tuned[r->best].binding : "");

    for (size_t i = 0; i < VT_COUNT(order) && found == VT_SLO_LIMITS; i++)
        if (vt_slo_at(&spec->slo, order[i]) > 0)
            found = order[i];
    if (found == VT_SLO_LIMITS)
        found = VT_SLO_E2E;
    *limit = vt_slo_at(&spec->slo, found);
    return vt_slo_rows[found].name;
}

struct ranked {
    double throughput, latency;
    size_t i;
};

static int by_throughput(const void *x, const void *y)
{
    const struct ranked *a = x, *b = y;

    if (a->throughput < b->throughput || a->throughput > b->throughput)
        return a->throughput < b->throughput ? 1 : -1;
    if (a->latency < b->latency || a->latency > b->latency)
        return a->latency < b->latency ? -1 : 1;
    return a->i < b->i ? -1 : 1;
}

/* From the highest throughput down: each that is faster than all before it. */
size_t vt_tune_pareto(const struct vt_tune_spec *spec, const struct vt_tune_result *r,
                      size_t *out)
{
    struct ranked *all = calloc(r->n + 1, sizeof(*all));
    double fastest = INFINITY, limit;
    const char *latency = vt_tune_latency(spec, r, &limit);
    size_t n = 0, m = 0;

    for (size_t i = 0; all && i < r->n; i++)
        if (r->tuned[i].meets)
            all[n++] = (struct ranked){result_throughput(spec, &r->tuned[i]),
                                       result_latency(&r->tuned[i], latency), i};
    if (n > 0)
        qsort(all, n, sizeof(*all), by_throughput);
    for (size_t i = 0; i < n; i++) {
        if (!(all[i].latency < fastest))
            continue;
        fastest = all[i].latency;
        out[m++] = all[i].i;
    }
    free(all);
    return m;
}

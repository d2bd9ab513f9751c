/* table.c - summaries for people. */
#include <inttypes.h>
#include <math.h>

#include "report/report.h"

static void put_transfers(struct vt_buf *b, const char *what, uint64_t n,
                          uint64_t bytes, vt_ns ns)
{
    vt_buf_printf(b, "  %-10s %" PRIu64 " of %.2f MiB and %.3f ms on average\n", what,
                  n, n > 0 ? (double)bytes / 0x1p20 / (double)n : 0,
                  n > 0 ? (double)ns / 1e6 / (double)n : 0);
}

static void put_offload(struct vt_buf *b, const struct vt_summary *s)
{
    const struct vt_offload_totals *t = &s->offload;

    vt_buf_printf(b, "  on the GPU %.2f %%, in host memory %.2f %%\n",
                  100 * (s->prefix_hit_rate - s->host_hit_rate),
                  100 * s->host_hit_rate);
    put_transfers(b, "loads", t->loads, t->load_bytes, t->load_ns);
    put_transfers(b, "stores", t->stores, t->store_bytes, t->store_ns);
    vt_buf_printf(b, "  given up   %" PRIu64 " chunks of %" PRIu64 "\n",
                  t->evicted_chunks, t->stored_chunks);
    if (t->no_room > 0)
        vt_buf_printf(b, "  no room    for %" PRIu64 " stores\n", t->no_room);
}

void vt_summary_table(struct vt_buf *b, const struct vt_summary *s)
{
    if (s->workload)
        vt_buf_printf(b, "workload     %s, seed %" PRIu64 "\n", s->workload, s->seed);
    if (s->profile)
        vt_buf_printf(b, "profile      %s\n", s->profile);
    if (s->vllm > 0)
        vt_buf_printf(b, "scheduler    vLLM 0.%u\n", s->vllm);
    if (s->clock)
        vt_buf_printf(b, "clock        the %s's, frontend %s\n", s->clock, s->frontend);
    if (s->kv_groups[0] != '\0')
        vt_buf_printf(b, "KV groups    %s\n", s->kv_groups);
    vt_buf_printf(b, "requests     %" PRIu64 "\n", s->requests);
    vt_buf_printf(b, "duration     %.3f s\n", s->duration_s);
    vt_buf_printf(b, "throughput   %.3f req/s, %.1f output tok/s, %.1f tok/s in all\n",
                  s->req_per_s, s->output_tok_per_s, s->total_tok_per_s);
    vt_buf_printf(b, "tokens       %" PRIu64 " prompt, %" PRIu64 " output\n",
                  s->prompt_tokens, s->output_tokens);
    vt_buf_str(b, "\nms     ");
    for (size_t p = 0; p < VT_N_PARTS; p++)
        vt_buf_printf(b, " %12s", vt_parts[p].key);
    vt_buf_char(b, '\n');
    for (size_t row = 0; row < VT_N_STATS; row++) {
        vt_buf_printf(b, "%-7s", vt_stat_rows[row].label);
        for (size_t p = 0; p < VT_N_PARTS; p++)
            vt_buf_printf(b, " %12.3f", vt_part_of(vt_stat_of(s, row), p));
        vt_buf_char(b, '\n');
    }
    vt_buf_printf(b, "\npreemptions  %" PRIu64 "\n", s->preemptions);
    vt_buf_printf(b, "prefix hits  %.2f %% of prompt tokens\n",
                  100 * s->prefix_hit_rate);
    if (s->offloads)
        put_offload(b, s);
    vt_buf_printf(b, "peak KV use  %.2f %%\n", 100 * s->kv_usage_peak);
    vt_buf_printf(b, "steps        %" PRIu64 "\n", s->steps);
}

static void put_compared(struct vt_buf *b, const char *label, const char *part,
                         const char *unit, double predicted, double measured)
{
    double error = vt_error_percent(predicted, measured);

    vt_buf_printf(b, "%-11s %-4s %-5s %14.3f %14.3f ", label, part, unit, predicted,
                  measured);
    if (isnan(error))
        vt_buf_printf(b, "%10s\n", "-");
    else
        vt_buf_printf(b, "%+9.2f%%\n", error);
}

void vt_compare_table(struct vt_buf *b, const struct vt_summary *predicted,
                      const struct vt_summary *measured)
{
    vt_buf_printf(b, "%-22s %14s %14s %10s\n", "metric", "predicted",
                  measured->simulated ? "simulated" : "measured", "error");
    for (size_t row = 0; row < vt_stats_measured(measured); row++)
        for (size_t p = 0; p < VT_N_PARTS; p++)
            put_compared(b, vt_stat_rows[row].label, vt_parts[p].key, "ms",
                         vt_part_of(vt_stat_of(predicted, row), p),
                         vt_part_of(vt_stat_of(measured, row), p));
    for (size_t i = 0; i < VT_N_SCALARS; i++)
        put_compared(b, vt_scalars[i].label, "", vt_scalars[i].unit,
                     vt_scalars[i].scale * vt_scalar_of(predicted, i),
                     vt_scalars[i].scale * vt_scalar_of(measured, i));
    if (predicted->in_sample)
        vt_buf_printf(b, "in-sample: %s was fitted on this capture\n",
                      predicted->profile ? predicted->profile : "the model");
}

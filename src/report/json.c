/* json.c - summaries for programs. Keys and their order are a promise: add at the
 * end of a group, never rename (tests/e2e/json.sh holds the list). */
#include <math.h>

#include "report/report.h"

/* Six decimals: of milliseconds that is the nanosecond, and of rates more would be
 * noise. Values too large to have a sixth decimal stay as they are. */
static void put_number(struct vt_jw *j, const char *key, double v)
{
    vt_jw_f64(j, key, fabs(v) < 1e9 ? nearbyint(v * 1e6) / 1e6 : v);
}

/* With `measured`, the errors against it. */
static void put_parts(struct vt_jw *j, size_t row, const struct vt_summary *s,
                      const struct vt_summary *measured)
{
    vt_jw_row(j, vt_stat_rows[row].key);
    for (size_t p = 0; p < VT_N_PARTS; p++) {
        double v = vt_part_of(vt_stat_of(s, row), p);

        if (measured)
            v = vt_error_percent(v, vt_part_of(vt_stat_of(measured, row), p));
        put_number(j, vt_parts[p].key, v);
    }
    vt_jw_end(j);
}

/* What a trace does not tell is left out, not written as zero. */
void vt_release_json(struct vt_jw *j, uint32_t vllm)
{
    if (vllm > 0)
        vt_jw_printf(j, "vllm_version", "\"0.%u\"", vllm);
}

static void put_offload(struct vt_jw *j, const struct vt_summary *s)
{
    const struct vt_offload_totals *t = &s->offload;

    vt_jw_map(j, "offload");
    put_number(j, "gpu_hit_rate", s->prefix_hit_rate - s->host_hit_rate);
    put_number(j, "host_hit_rate", s->host_hit_rate);
    vt_jw_u64(j, "loads", t->loads);
    vt_jw_u64(j, "load_bytes", t->load_bytes);
    put_number(j, "load_ms", (double)t->load_ns / 1e6);
    vt_jw_u64(j, "loaded_chunks", t->loaded_chunks);
    vt_jw_u64(j, "stores", t->stores);
    vt_jw_u64(j, "store_bytes", t->store_bytes);
    put_number(j, "store_ms", (double)t->store_ns / 1e6);
    vt_jw_u64(j, "stored_chunks", t->stored_chunks);
    vt_jw_u64(j, "evicted_chunks", t->evicted_chunks);
    vt_jw_u64(j, "stores_without_room", t->no_room);
    vt_jw_end(j);
}

static void put_members(struct vt_jw *j, const struct vt_summary *s, bool measured)
{
    vt_jw_u64(j, "requests", s->requests);
    vt_jw_f64(j, "duration_s", s->duration_s); /* nine decimals are the nanosecond */
    put_number(j, "req_per_s", s->req_per_s);
    put_number(j, "output_tok_per_s", s->output_tok_per_s);
    put_number(j, "total_tok_per_s", s->total_tok_per_s);
    vt_jw_u64(j, "prompt_tokens", s->prompt_tokens);
    vt_jw_u64(j, "output_tokens", s->output_tokens);
    for (size_t row = 0; row < (measured ? vt_stats_measured(s) : VT_N_STATS); row++)
        put_parts(j, row, s, NULL);
    if (measured) {
        put_number(j, "prefix_hit_rate", s->prefix_hit_rate);
        vt_jw_str(j, "workload", s->workload);
        return;
    }
    vt_jw_u64(j, "preemptions", s->preemptions);
    put_number(j, "prefix_hit_rate", s->prefix_hit_rate);
    put_number(j, "kv_usage_peak", s->kv_usage_peak);
    if (s->offloads)
        put_offload(j, s);
    vt_jw_u64(j, "steps", s->steps);
    vt_jw_str(j, "workload", s->workload);
    vt_jw_str(j, "profile", s->profile);
    vt_jw_u64(j, "seed", s->seed);
    vt_jw_str(j, "version", s->version);
    vt_release_json(j, s->vllm);
    if (s->kv_groups[0] != '\0')
        vt_jw_str(j, "kv_groups", s->kv_groups);
    if (s->clock) {
        vt_jw_str(j, "clock", s->clock);
        vt_jw_str(j, "frontend", s->frontend);
    }
}

void vt_summary_members(struct vt_jw *j, const struct vt_summary *s)
{
    put_members(j, s, false);
}

void vt_compare_json(struct vt_buf *b, const struct vt_summary *predicted,
                     const struct vt_summary *measured)
{
    struct vt_jw j;

    vt_jw_init(&j, b, &vt_json_pretty);
    vt_jw_map(&j, NULL);
    vt_jw_map(&j, "predicted");
    put_members(&j, predicted, false);
    vt_jw_end(&j);
    vt_jw_map(&j, measured->simulated ? "simulated" : "measured");
    put_members(&j, measured, true);
    vt_jw_end(&j);
    if (predicted->in_sample)
        vt_jw_bool(&j, "in_sample", true);
    vt_jw_map(&j, "error_percent");
    for (size_t row = 0; row < vt_stats_measured(measured); row++)
        put_parts(&j, row, predicted, measured);
    for (size_t i = 0; i < VT_N_SCALARS; i++)
        put_number(
            &j, vt_scalars[i].key,
            vt_error_percent(vt_scalar_of(predicted, i), vt_scalar_of(measured, i)));
    vt_jw_end(&j);
    vt_jw_end(&j);
    vt_buf_char(b, '\n');
}

/* own.c - what a result says beyond vLLM's: how far it can be relied on. */
#include <string.h>

#include "load/result.h"

const char *vt_load_failure_name(enum vt_load_failure f)
{
    static const char *const names[VT_LOAD_FAILURES] = {
        [VT_LOAD_FINE] = "",
        [VT_LOAD_CONNECT] = "no connection",
        [VT_LOAD_TLS] = "no TLS",
        [VT_LOAD_CLOSED] = "connection closed early",
        [VT_LOAD_TIMEOUT] = "timeout",
        [VT_LOAD_STATUS] = "HTTP status",
        [VT_LOAD_MALFORMED] = "malformed response",
        [VT_LOAD_TOLD] = "error in the stream",
        [VT_LOAD_EMPTY] = "no token came",
        [VT_LOAD_STOPPED] = "stopped",
    };

    return f < VT_LOAD_FAILURES ? names[f] : "";
}

/* ---- JSON -------------------------------------------------------------- */

static void put_dist(struct vt_jw *w, const char *key, const struct vt_load_dist *d)
{
    vt_jw_map(w, key);
    vt_jw_f64(w, "mean", d->mean);
    vt_jw_f64(w, "p50", d->p50);
    vt_jw_f64(w, "p90", d->p90);
    vt_jw_f64(w, "p99", d->p99);
    vt_jw_f64(w, "max", d->max);
    vt_jw_end(w);
}

/* In the shape that vLLM's own Rust benchmark has for it. */
void load_steady_json(struct vt_jw *w, const struct vt_load_steady *s, size_t total,
                      const struct vt_load_asks *a)
{
    if (!s->found)
        return;
    vt_jw_map(w, "steady_state");
    vt_jw_map(w, "window");
    vt_jw_f64(w, "start_s", s->start_s);
    vt_jw_f64(w, "end_s", s->end_s);
    vt_jw_f64(w, "duration_s", s->duration_s);
    vt_jw_u64(w, "target_concurrency", s->target);
    vt_jw_f64(w, "threshold", 0.95);
    vt_jw_u64(w, "threshold_abs", s->threshold);
    vt_jw_u64(w, "observed_peak", s->observed_peak);
    vt_jw_u64(w, "requests_started_in_window", s->started);
    vt_jw_u64(w, "requests_completed_in_window", s->completed);
    vt_jw_u64(w, "requests_total", total);
    vt_jw_str(w, "warning",
              s->is_short ? "shorter than 10 s or a tenth of the run" : NULL);
    vt_jw_end(w);
    vt_jw_f64(w, "request_throughput", s->request_throughput);
    vt_jw_f64(w, "input_throughput", s->input_throughput);
    vt_jw_f64(w, "output_throughput", s->output_throughput);
    vt_jw_f64(w, "total_token_throughput", s->input_throughput + s->output_throughput);
    vt_jw_f64(w, "mean_ttft_ms", s->ttft.mean);
    vt_jw_f64(w, "median_ttft_ms", s->ttft.median);
    vt_jw_list(w, "percentiles_ttft_ms");
    for (size_t i = 0; i < a->n_percentiles; i++) {
        vt_jw_list(w, NULL);
        vt_jw_f64(w, NULL, a->percentile[i]);
        vt_jw_f64(w, NULL, s->ttft.p[i]);
        vt_jw_end(w);
    }
    vt_jw_end(w);
    vt_jw_f64(w, "mean_tpot_ms", s->tpot.mean);
    vt_jw_f64(w, "median_tpot_ms", s->tpot.median);
    vt_jw_f64(w, "p90_tpot_ms", s->tpot.p90);
    vt_jw_f64(w, "p99_tpot_ms", s->tpot.p99);
    vt_jw_end(w);
}

void load_own_json(struct vt_jw *w, const struct vt_load_summary *s,
                   const struct vt_load_records *r)
{
    vt_jw_map(w, "vtwin");
    vt_jw_str(w, "version", VT_VERSION);
    vt_jw_bool(w, "interrupted", r->interrupted);
    vt_jw_u64(w, "unfinished", s->unfinished);
    vt_jw_f64(w, "start_unix_s", r->start_unix_s);
    vt_jw_u64(w, "peak_concurrency", s->peak_concurrency);
    vt_jw_u64(w, "connections", r->connections);
    vt_jw_u64(w, "cached_tokens", s->cached_tokens);
    vt_jw_map(w, "send_lag_ms");
    vt_jw_f64(w, "p50", (double)r->lag_p50 / 1e6);
    vt_jw_f64(w, "p99", (double)r->lag_p99 / 1e6);
    vt_jw_f64(w, "max", (double)r->lag_max / 1e6);
    vt_jw_end(w);
    vt_jw_u64(w, "stalls", r->stalls);
    vt_jw_f64(w, "stalled_ms", (double)r->stalled / 1e6);
    put_dist(w, "ttft_from_planned_ms", &s->ttft_planned);
    put_dist(w, "ttft_from_sent_ms", &s->ttft_sent);
    put_dist(w, "first_text_from_sent_ms", &s->ttft_text);
    put_dist(w, "e2el_from_planned_ms", &s->e2el_planned);
    put_dist(w, "client_queue_ms", &s->waited);
    vt_jw_map(w, "failures");
    for (int k = VT_LOAD_FINE + 1; k < VT_LOAD_STOPPED; k++)
        if (s->failures[k] > 0)
            vt_jw_u64(w, vt_load_failure_name((enum vt_load_failure)k), s->failures[k]);
    vt_jw_end(w);
    vt_jw_end(w);
}

/* ---- the table --------------------------------------------------------- */

static void put_row(struct vt_buf *b, const char *label, const struct vt_load_dist *d)
{
    vt_buf_printf(b, "%-34s %9.2f %9.2f %9.2f\n", label, d->p50, d->p99, d->max);
}

static void table_steady(struct vt_buf *b, const struct vt_load_steady *s)
{
    if (s->target == 0)
        return;
    if (!s->found) {
        vt_buf_printf(b, "Steady state: none; %u of %u places were never taken\n",
                      (unsigned)s->threshold, (unsigned)s->target);
        return;
    }
    vt_buf_printf(b,
                  "Steady state (>= %u of %u in flight): %.2f s to %.2f s, %.2f req/s, "
                  "%.2f tok/s\n",
                  (unsigned)s->threshold, (unsigned)s->target, s->start_s, s->end_s,
                  s->request_throughput, s->output_throughput);
    put_row(b, "  TTFT in it", &s->ttft);
    put_row(b, "  TPOT in it", &s->tpot);
    if (s->is_short)
        vt_buf_str(b, "  it is shorter than 10 s or a tenth of the run\n");
}

void vt_load_own_table(struct vt_buf *b, const struct vt_load_summary *s,
                       const struct vt_load_records *r)
{
    load_title(b, " vtwin: the same, looked at closely ", '-');
    vt_buf_printf(b, "%-34s %9s %9s %9s\n", "Milliseconds", "P50", "P99", "Max");
    put_row(b, "TTFT from when it was planned", &s->ttft_planned);
    put_row(b, "TTFT from when it was sent", &s->ttft_sent);
    put_row(b, "First text from when it was sent", &s->ttft_text);
    put_row(b, "E2EL from when it was planned", &s->e2el_planned);
    put_row(b, "Waited in the client for a place", &s->waited);
    vt_buf_printf(b, "%-34s %9.3f %9.3f %9.3f\n", "Send lag", (double)r->lag_p50 / 1e6,
                  (double)r->lag_p99 / 1e6, (double)r->lag_max / 1e6);
    vt_buf_printf(b, "Generator stood still (> 5 ms): %u times, %.1f ms in all\n",
                  (unsigned)r->stalls, (double)r->stalled / 1e6);
    if (r->stalled > r->end / 100 || r->lag_p99 > 10 * VT_MS)
        vt_buf_str(b, "WARNING: the generator was late itself; figures above may be "
                      "its own\n");
    vt_buf_printf(b, "In flight at one moment, at most: %u; connections: %u\n",
                  (unsigned)s->peak_concurrency, (unsigned)r->connections);
    table_steady(b, &s->steady);
    if (s->unfinished > 0)
        vt_buf_printf(b, "Cut off by the stop, left out: %zu\n", s->unfinished);
    for (int k = VT_LOAD_FINE + 1; k < VT_LOAD_STOPPED; k++)
        if (s->failures[k] > 0)
            vt_buf_printf(b, "Failed, %s: %zu\n",
                          vt_load_failure_name((enum vt_load_failure)k),
                          s->failures[k]);
    if (s->first_error && *s->first_error)
        vt_buf_printf(b, "First failure: %.300s\n", s->first_error);
}

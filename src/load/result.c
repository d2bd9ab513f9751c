/* result.c - a run as `vllm bench serve` tells of it: the file of --save-result and the
 * table on the console. Scripts that read one read the other. What we say beyond it
 * comes after: how far the figures can be relied on. */
#include <math.h>
#include <string.h>

#include "load/summary.h"

/* ---- which metrics ----------------------------------------------------- */

static const struct metric {
    const char *key, *name, *title;
    size_t at; /* of the distribution, in the summary */
} metrics[] = {
    {"ttft", "TTFT", "Time to First Token", offsetof(struct vt_load_summary, ttft)},
    {"tpot", "TPOT", "Time per Output Token (excl. 1st token)",
     offsetof(struct vt_load_summary, tpot)},
    {"itl", "ITL", "Inter-token Latency", offsetof(struct vt_load_summary, itl)},
    {"e2el", "E2EL", "End-to-end Latency", offsetof(struct vt_load_summary, e2el)},
};

static const struct vt_load_dist *dist_of(const struct vt_load_summary *s,
                                          const struct metric *m)
{
    return (const struct vt_load_dist *)(const void *)((const char *)s + m->at);
}

static bool is_wanted(const char *list, const char *key)
{
    size_t len = strlen(key);

    for (const char *p = list; *p;) {
        size_t n = strcspn(p, ",");

        if (n == len && memcmp(p, key, n) == 0)
            return true;
        p += n + (p[n] == ',');
    }
    return false;
}

/* 99 and 99.9, as Python's str() has them. */
static void name_percent(char *out, size_t cap, double p)
{
    struct vt_buf b = {0};

    if (p == floor(p))
        vt_buf_i64(&b, (int64_t)p);
    else
        vt_buf_py_f64(&b, p);
    snprintf(out, cap, "%s", b.data ? b.data : "");
    vt_buf_free(&b);
}

/* ---- JSON -------------------------------------------------------------- */

static void put_setup(struct vt_jw *w, const struct vt_load_about *a)
{
    vt_jw_str(w, "date", a->date);
    vt_jw_str(w, "endpoint_type", a->backend);
    vt_jw_str(w, "backend", a->backend);
    vt_jw_str(w, "label", a->label);
    vt_jw_str(w, "model_id", a->model);
    vt_jw_str(w, "tokenizer_id", a->tokenizer);
    vt_jw_u64(w, "num_prompts", a->num_prompts);
    for (size_t i = 0; i < a->n_metadata; i++)
        vt_jw_str(w, a->metadata[i].key, a->metadata[i].value);
    if (isinf(a->rate))
        vt_jw_str(w, "request_rate", "inf");
    else
        vt_jw_f64(w, "request_rate", a->rate);
    vt_jw_f64(w, "burstiness", a->burstiness);
    if (a->max_concurrency > 0)
        vt_jw_u64(w, "max_concurrency", a->max_concurrency);
    else
        vt_jw_null(w, "max_concurrency");
    if (a->ramp == VT_RAMP_NONE)
        return;
    vt_jw_str(w, "ramp_up_strategy",
              a->ramp == VT_RAMP_LINEAR ? "linear" : "exponential");
    vt_jw_u64(w, "ramp_up_start_rps", a->ramp_start);
    vt_jw_u64(w, "ramp_up_end_rps", a->ramp_end);
}

/* ---- one value for each request --------------------------------------- */

enum detail { INPUTS, OUTPUTS, TTFTS, ITLS, STARTS, TEXTS, ERRORS, DETAILS };
static const char *const details[DETAILS] = {
    "input_lens",  "output_lens",     "ttfts", "itls",
    "start_times", "generated_texts", "errors"};

static void put_detail(struct vt_jw *w, const struct vt_load_records *r,
                       const struct vt_load_record *q, int which)
{
    switch (which) {
    case INPUTS:
        vt_jw_u64(w, NULL, q->prompt_tokens);
        break;
    case OUTPUTS:
        vt_jw_u64(w, NULL, q->ok ? q->output_tokens : 0);
        break;
    case TTFTS:
        vt_jw_f64(w, NULL, vt_load_ttft_s(q));
        break;
    case ITLS:
        vt_jw_list(w, NULL);
        for (uint32_t k = 1; k < q->n_stamps; k++)
            vt_jw_f64(w, NULL, (double)(q->stamp[k] - q->stamp[k - 1]) / 1e9);
        vt_jw_end(w);
        break;
    case STARTS:
        vt_jw_f64(w, NULL, r->start_unix_s + (double)q->begun / 1e9);
        break;
    case TEXTS:
        vt_jw_strn(w, NULL, q->text ? q->text : "", q->text ? q->text_len : 0);
        break;
    default:
        vt_jw_str(w, NULL, q->error ? q->error : "");
        break;
    }
}

/* ---- the rest --------------------------------------------------------- */

static double acceptance_rate(const struct vt_load_spec *s)
{
    return (double)s->accepted_tokens / (double)s->draft_tokens * 100;
}

static double acceptance_length(const struct vt_load_spec *s)
{
    return s->drafts ? 1 + (double)s->accepted_tokens / (double)s->drafts : 0;
}

static void put_spec(struct vt_jw *w, const struct vt_load_spec *s)
{
    if (!s->on)
        return;
    vt_jw_f64(w, "spec_decode_acceptance_rate", acceptance_rate(s));
    vt_jw_f64(w, "spec_decode_acceptance_length", acceptance_length(s));
    vt_jw_u64(w, "spec_decode_num_drafts", s->drafts);
    vt_jw_u64(w, "spec_decode_draft_tokens", s->draft_tokens);
    vt_jw_u64(w, "spec_decode_accepted_tokens", s->accepted_tokens);
    vt_jw_list(w, "spec_decode_per_position_acceptance_rates");
    for (size_t i = 0; s->drafts > 0 && i < s->n_positions; i++)
        vt_jw_f64(w, NULL, (double)s->position[i] / (double)s->drafts);
    vt_jw_end(w);
}

void load_dist_json(struct vt_jw *w, const char *metric, const struct vt_load_dist *d,
                    const struct vt_load_asks *asks)
{
    const struct {
        const char *name;
        double v;
    } each[] = {{"mean", d->mean}, {"median", d->median}, {"std", d->std}};
    char key[64];

    for (size_t i = 0; i < VT_COUNT(each); i++) {
        snprintf(key, sizeof(key), "%s_%s_ms", each[i].name, metric);
        vt_jw_f64(w, key, each[i].v);
    }
    for (size_t i = 0; i < asks->n_percentiles; i++) {
        char percent[32];

        name_percent(percent, sizeof(percent), asks->percentile[i]);
        snprintf(key, sizeof(key), "p%s_%s_ms", percent, metric);
        vt_jw_f64(w, key, d->p[i]);
    }
}

/* ---- beyond vLLM's: how far it can be relied on ------------------------ */

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
static void put_steady(struct vt_jw *w, const struct vt_load_steady *s, size_t total,
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

static void put_own(struct vt_jw *w, const struct vt_load_summary *s,
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

void vt_load_result_json(struct vt_buf *b, const struct vt_load_about *about,
                         const struct vt_load_asks *asks,
                         const struct vt_load_summary *s,
                         const struct vt_load_records *r)
{
    struct vt_jw w;

    vt_jw_init(&w, b, &vt_json_python);
    vt_jw_map(&w, NULL);
    put_setup(&w, about);
    vt_jw_f64(&w, "duration", s->duration_s);
    vt_jw_u64(&w, "completed", s->completed);
    vt_jw_u64(&w, "failed", s->failed);
    vt_jw_u64(&w, "total_input_tokens", s->total_input);
    vt_jw_u64(&w, "total_output_tokens", s->total_output);
    vt_jw_f64(&w, "request_throughput", s->request_throughput);
    if (about->goodput)
        vt_jw_f64(&w, "request_goodput", s->request_goodput);
    else
        vt_jw_null(&w, "request_goodput");
    vt_jw_f64(&w, "output_throughput", s->output_throughput);
    vt_jw_f64(&w, "total_token_throughput", s->total_throughput);
    for (int k = 0; k < DETAILS && about->detailed; k++) {
        vt_jw_list(&w, details[k]);
        for (size_t i = 0; i < r->n; i++)
            put_detail(&w, r, &r->record[i], k);
        vt_jw_end(&w);
    }
    vt_jw_f64(&w, "max_output_tokens_per_s", s->max_output_per_s);
    vt_jw_u64(&w, "max_concurrent_requests", s->max_concurrent);
    vt_jw_f64(&w, "rtfx", 0);
    if (s->probe_completed > 0) {
        vt_jw_u64(&w, "probe_completed", s->probe_completed);
        vt_jw_u64(&w, "probe_failed", s->probe_failed);
        vt_jw_f64(&w, "probe_median_e2el_ms", s->probe_median_ms);
        vt_jw_f64(&w, "probe_p99_e2el_ms", s->probe_p99_ms);
        vt_jw_f64(&w, "probe_max_e2el_ms", s->probe_max_ms);
    }
    if (about->ramp_events)
        vt_jw_printf(&w, "rps_change_events", "%s", about->ramp_events);
    put_spec(&w, &s->spec);
    for (size_t i = 0; i < VT_COUNT(metrics); i++)
        if (is_wanted(about->metrics, metrics[i].key))
            load_dist_json(&w, metrics[i].key, dist_of(s, &metrics[i]), asks);
    if (about->more)
        vt_buf_str(b, about->more);
    put_steady(&w, &s->steady, r->n, asks);
    put_own(&w, s, r);
    vt_jw_end(&w);
}

/* ---- the table -------------------------------------------------------- */

static void table_title(struct vt_buf *b, const char *title, char fill)
{
    int len = (int)strlen(title), left = (50 - len) / 2;

    for (int i = 0; i < left; i++)
        vt_buf_char(b, fill);
    vt_buf_str(b, title);
    for (int i = left + len; i < 50; i++)
        vt_buf_char(b, fill);
    vt_buf_char(b, '\n');
}

static void table_number(struct vt_buf *b, const char *label, double v)
{
    vt_buf_printf(b, "%-40s %-10.2f\n", label, v);
}

static void table_count(struct vt_buf *b, const char *label, uint64_t n)
{
    vt_buf_printf(b, "%-40s %-10llu\n", label, (unsigned long long)n);
}

static void table_metric(struct vt_buf *b, const struct metric *m,
                         const struct vt_load_dist *d, const struct vt_load_asks *asks)
{
    char label[64];

    table_title(b, m->title, '-');
    snprintf(label, sizeof(label), "Mean %s (ms):", m->name);
    table_number(b, label, d->mean);
    snprintf(label, sizeof(label), "Median %s (ms):", m->name);
    table_number(b, label, d->median);
    for (size_t i = 0; i < asks->n_percentiles; i++) {
        char percent[32];

        name_percent(percent, sizeof(percent), asks->percentile[i]);
        snprintf(label, sizeof(label), "P%s %s (ms):", percent, m->name);
        table_number(b, label, d->p[i]);
    }
}

static void table_spec(struct vt_buf *b, const struct vt_load_spec *s)
{
    char label[48];

    if (!s->on)
        return;
    table_title(b, "Speculative Decoding", '-');
    table_number(b, "Acceptance rate (%):", acceptance_rate(s));
    table_number(b, "Acceptance length:", acceptance_length(s));
    table_count(b, "Drafts:", s->drafts);
    table_count(b, "Draft tokens:", s->draft_tokens);
    table_count(b, "Accepted tokens:", s->accepted_tokens);
    if (s->drafts == 0 || s->n_positions == 0)
        return;
    vt_buf_str(b, "Per-position acceptance (%):\n");
    for (size_t i = 0; i < s->n_positions; i++) {
        snprintf(label, sizeof(label), "  Position %zu:", i);
        table_number(b, label, (double)s->position[i] / (double)s->drafts * 100);
    }
}

void vt_load_result_table(struct vt_buf *b, const struct vt_load_about *about,
                          const struct vt_load_asks *asks,
                          const struct vt_load_summary *s)
{
    table_title(b, " Serving Benchmark Result ", '=');
    table_count(b, "Successful requests:", s->completed);
    table_count(b, "Failed requests:", s->failed);
    if (about->max_concurrency > 0)
        table_count(b, "Maximum request concurrency:", about->max_concurrency);
    if (!isinf(about->rate))
        table_number(b, "Request rate configured (RPS):", about->rate);
    table_number(b, "Benchmark duration (s):", s->duration_s);
    table_count(b, "Total input tokens:", s->total_input);
    table_count(b, "Total generated tokens:", s->total_output);
    table_number(b, "Request throughput (req/s):", s->request_throughput);
    if (about->goodput)
        table_number(b, "Request goodput (req/s):", s->request_goodput);
    table_number(b, "Output token throughput (tok/s):", s->output_throughput);
    table_number(b, "Peak output token throughput (tok/s):", s->max_output_per_s);
    table_number(b, "Peak concurrent requests:", s->max_concurrent);
    table_number(b, "Total token throughput (tok/s):", s->total_throughput);
    if (s->probe_completed > 0) {
        table_title(b, "Probe Requests", '-');
        table_count(b, "Probe requests completed:", s->probe_completed);
        table_count(b, "Probe requests failed:", s->probe_failed);
        table_number(b, "Median probe E2EL (ms):", s->probe_median_ms);
        table_number(b, "P99 probe E2EL (ms):", s->probe_p99_ms);
        table_number(b, "Max probe E2EL (ms):", s->probe_max_ms);
    }
    for (size_t i = 0; i < VT_COUNT(metrics); i++)
        if (is_wanted(about->metrics, metrics[i].key))
            table_metric(b, &metrics[i], dist_of(s, &metrics[i]), asks);
    table_spec(b, &s->spec);
    table_title(b, "", '=');
}

static void table_dist(struct vt_buf *b, const char *label,
                       const struct vt_load_dist *d)
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
    table_dist(b, "  TTFT in it", &s->ttft);
    table_dist(b, "  TPOT in it", &s->tpot);
    if (s->is_short)
        vt_buf_str(b, "  it is shorter than 10 s or a tenth of the run\n");
}

void vt_load_own_table(struct vt_buf *b, const struct vt_load_summary *s,
                       const struct vt_load_records *r)
{
    table_title(b, " vtwin: the same, looked at closely ", '-');
    vt_buf_printf(b, "%-34s %9s %9s %9s\n", "Milliseconds", "P50", "P99", "Max");
    table_dist(b, "TTFT from when it was planned", &s->ttft_planned);
    table_dist(b, "TTFT from when it was sent", &s->ttft_sent);
    table_dist(b, "First text from when it was sent", &s->ttft_text);
    table_dist(b, "E2EL from when it was planned", &s->e2el_planned);
    table_dist(b, "Waited in the client for a place", &s->waited);
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

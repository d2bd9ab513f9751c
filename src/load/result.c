/* result.c - a run as `vllm bench serve` tells of it: the file of --save-result and the
 * table on the console. Scripts that read one read the other. */
#include <math.h>
#include <string.h>

#include "load/result.h"

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
    load_steady_json(&w, &s->steady, r->n, asks);
    load_own_json(&w, s, r);
    vt_jw_end(&w);
}

/* ---- the table -------------------------------------------------------- */

void load_title(struct vt_buf *b, const char *title, char fill)
{
    int len = (int)strlen(title), left = (50 - len) / 2;

    for (int i = 0; i < left; i++)
        vt_buf_char(b, fill);
    vt_buf_str(b, title);
    for (int i = left + len; i < 50; i++)
        vt_buf_char(b, fill);
    vt_buf_char(b, '\n');
}

void load_row(struct vt_buf *b, const char *label, double v)
{
    vt_buf_printf(b, "%-40s %-10.2f\n", label, v);
}

void load_row_n(struct vt_buf *b, const char *label, uint64_t n)
{
    vt_buf_printf(b, "%-40s %-10llu\n", label, (unsigned long long)n);
}

static void table_totals(struct vt_buf *b, const struct vt_load_about *a,
                         const struct vt_load_summary *s)
{
    load_row_n(b, "Successful requests:", s->completed);
    load_row_n(b, "Failed requests:", s->failed);
    if (a->max_concurrency > 0)
        load_row_n(b, "Maximum request concurrency:", a->max_concurrency);
    if (!isinf(a->rate))
        load_row(b, "Request rate configured (RPS):", a->rate);
    load_row(b, "Benchmark duration (s):", s->duration_s);
    load_row_n(b, "Total input tokens:", s->total_input);
    load_row_n(b, "Total generated tokens:", s->total_output);
    load_row(b, "Request throughput (req/s):", s->request_throughput);
    if (a->goodput)
        load_row(b, "Request goodput (req/s):", s->request_goodput);
    load_row(b, "Output token throughput (tok/s):", s->output_throughput);
    load_row(b, "Peak output token throughput (tok/s):", s->max_output_per_s);
    load_row(b, "Peak concurrent requests:", s->max_concurrent);
    load_row(b, "Total token throughput (tok/s):", s->total_throughput);
}

static void table_metric(struct vt_buf *b, const struct metric *m,
                         const struct vt_load_dist *d, const struct vt_load_asks *asks)
{
    char label[64];

    load_title(b, m->title, '-');
    snprintf(label, sizeof(label), "Mean %s (ms):", m->name);
    load_row(b, label, d->mean);
    snprintf(label, sizeof(label), "Median %s (ms):", m->name);
    load_row(b, label, d->median);
    for (size_t i = 0; i < asks->n_percentiles; i++) {
        char percent[32];

        name_percent(percent, sizeof(percent), asks->percentile[i]);
        snprintf(label, sizeof(label), "P%s %s (ms):", percent, m->name);
        load_row(b, label, d->p[i]);
    }
}

static void table_spec(struct vt_buf *b, const struct vt_load_spec *s)
{
    char label[48];

    if (!s->on)
        return;
    load_title(b, "Speculative Decoding", '-');
    load_row(b, "Acceptance rate (%):", acceptance_rate(s));
    load_row(b, "Acceptance length:", acceptance_length(s));
    load_row_n(b, "Drafts:", s->drafts);
    load_row_n(b, "Draft tokens:", s->draft_tokens);
    load_row_n(b, "Accepted tokens:", s->accepted_tokens);
    if (s->drafts == 0 || s->n_positions == 0)
        return;
    vt_buf_str(b, "Per-position acceptance (%):\n");
    for (size_t i = 0; i < s->n_positions; i++) {
        snprintf(label, sizeof(label), "  Position %zu:", i);
        load_row(b, label, (double)s->position[i] / (double)s->drafts * 100);
    }
}

void vt_load_result_table(struct vt_buf *b, const struct vt_load_about *about,
                          const struct vt_load_asks *asks,
                          const struct vt_load_summary *s)
{
    load_title(b, " Serving Benchmark Result ", '=');
    table_totals(b, about, s);
    if (s->probe_completed > 0) {
        load_title(b, "Probe Requests", '-');
        load_row_n(b, "Probe requests completed:", s->probe_completed);
        load_row_n(b, "Probe requests failed:", s->probe_failed);
        load_row(b, "Median probe E2EL (ms):", s->probe_median_ms);
        load_row(b, "P99 probe E2EL (ms):", s->probe_p99_ms);
        load_row(b, "Max probe E2EL (ms):", s->probe_max_ms);
    }
    for (size_t i = 0; i < VT_COUNT(metrics); i++)
        if (is_wanted(about->metrics, metrics[i].key))
            table_metric(b, &metrics[i], dist_of(s, &metrics[i]), asks);
    table_spec(b, &s->spec);
    load_title(b, "", '=');
}

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
static void put_percent(struct vt_buf *b, double p)
{
    if (p == floor(p))
        vt_buf_i64(b, (int64_t)p);
    else
        vt_buf_py_f64(b, p);
}

/* ---- JSON -------------------------------------------------------------- */

void load_key(struct vt_buf *b, const char *key)
{
    if (b->len > 0 && b->data[b->len - 1] != '{')
        vt_buf_str(b, ", ");
    vt_buf_json_ascii(b, key, strlen(key));
    vt_buf_str(b, ": ");
}

void load_put_f64(struct vt_buf *b, const char *key, double v)
{
    load_key(b, key);
    vt_buf_py_f64(b, v);
}

void load_put_u64(struct vt_buf *b, const char *key, uint64_t v)
{
    load_key(b, key);
    vt_buf_u64(b, v);
}

void load_put_str(struct vt_buf *b, const char *key, const char *v)
{
    load_key(b, key);
    if (v)
        vt_buf_json_ascii(b, v, strlen(v));
    else
        vt_buf_str(b, "null");
}

static void put_setup(struct vt_buf *b, const struct vt_load_about *a)
{
    load_put_str(b, "date", a->date);
    load_put_str(b, "endpoint_type", a->backend);
    load_put_str(b, "backend", a->backend);
    load_put_str(b, "label", a->label);
    load_put_str(b, "model_id", a->model);
    load_put_str(b, "tokenizer_id", a->tokenizer);
    load_put_u64(b, "num_prompts", a->num_prompts);
    for (size_t i = 0; i < a->n_metadata; i++)
        load_put_str(b, a->metadata[i].key, a->metadata[i].value);
    if (isinf(a->rate))
        load_put_str(b, "request_rate", "inf");
    else
        load_put_f64(b, "request_rate", a->rate);
    load_put_f64(b, "burstiness", a->burstiness);
    load_key(b, "max_concurrency");
    if (a->max_concurrency > 0)
        vt_buf_u64(b, a->max_concurrency);
    else
        vt_buf_str(b, "null");
    if (a->ramp == VT_RAMP_NONE)
        return;
    load_put_str(b, "ramp_up_strategy",
                 a->ramp == VT_RAMP_LINEAR ? "linear" : "exponential");
    load_put_u64(b, "ramp_up_start_rps", a->ramp_start);
    load_put_u64(b, "ramp_up_end_rps", a->ramp_end);
}

static void put_totals(struct vt_buf *b, const struct vt_load_about *a,
                       const struct vt_load_summary *s)
{
    load_put_f64(b, "duration", s->duration_s);
    load_put_u64(b, "completed", s->completed);
    load_put_u64(b, "failed", s->failed);
    load_put_u64(b, "total_input_tokens", s->total_input);
    load_put_u64(b, "total_output_tokens", s->total_output);
    load_put_f64(b, "request_throughput", s->request_throughput);
    if (a->goodput)
        load_put_f64(b, "request_goodput", s->request_goodput);
    else
        load_put_str(b, "request_goodput", NULL);
    load_put_f64(b, "output_throughput", s->output_throughput);
    load_put_f64(b, "total_token_throughput", s->total_throughput);
}

/* ---- one value for each request --------------------------------------- */

static void put_gaps(struct vt_buf *b, const struct vt_load_record *q)
{
    vt_buf_char(b, '[');
    for (uint32_t k = 1; k < q->n_stamps; k++) {
        vt_buf_str(b, k > 1 ? ", " : "");
        vt_buf_py_f64(b, (double)(q->stamp[k] - q->stamp[k - 1]) / 1e9);
    }
    vt_buf_char(b, ']');
}

enum detail { INPUTS, OUTPUTS, TTFTS, ITLS, STARTS, TEXTS, ERRORS, DETAILS };

static void put_detail(struct vt_buf *b, const struct vt_load_records *r,
                       const struct vt_load_record *q, int which)
{
    const char *text = which == TEXTS ? q->text : q->error;

    switch (which) {
    case INPUTS:
        vt_buf_u64(b, q->prompt_tokens);
        break;
    case OUTPUTS:
        vt_buf_u64(b, q->ok ? q->output_tokens : 0);
        break;
    case TTFTS:
        vt_buf_py_f64(b, vt_load_ttft_s(q));
        break;
    case ITLS:
        put_gaps(b, q);
        break;
    case STARTS:
        vt_buf_py_f64(b, r->start_unix_s + (double)q->begun / 1e9);
        break;
    default:
        vt_buf_json_ascii(b, text ? text : "",
                          !text            ? 0
                          : which == TEXTS ? q->text_len
                                           : strlen(text));
        break;
    }
}

static void put_details(struct vt_buf *b, const struct vt_load_records *r)
{
    static const char *const keys[DETAILS] = {
        "input_lens",  "output_lens",     "ttfts", "itls",
        "start_times", "generated_texts", "errors"};

    for (int k = 0; k < DETAILS; k++) {
        load_key(b, keys[k]);
        vt_buf_char(b, '[');
        for (size_t i = 0; i < r->n; i++) {
            vt_buf_str(b, i > 0 ? ", " : "");
            put_detail(b, r, &r->record[i], k);
        }
        vt_buf_char(b, ']');
    }
}

/* ---- the rest --------------------------------------------------------- */

static void put_spec(struct vt_buf *b, const struct vt_load_spec *s)
{
    if (!s->on)
        return;
    load_put_f64(b, "spec_decode_acceptance_rate",
                 (double)s->accepted_tokens / (double)s->draft_tokens * 100);
    load_put_f64(b, "spec_decode_acceptance_length",
                 s->drafts ? 1 + (double)s->accepted_tokens / (double)s->drafts : 0);
    load_put_u64(b, "spec_decode_num_drafts", s->drafts);
    load_put_u64(b, "spec_decode_draft_tokens", s->draft_tokens);
    load_put_u64(b, "spec_decode_accepted_tokens", s->accepted_tokens);
    load_key(b, "spec_decode_per_position_acceptance_rates");
    vt_buf_char(b, '[');
    for (size_t i = 0; s->drafts > 0 && i < s->n_positions; i++) {
        vt_buf_str(b, i > 0 ? ", " : "");
        vt_buf_py_f64(b, (double)s->position[i] / (double)s->drafts);
    }
    vt_buf_char(b, ']');
}

static void put_metric(struct vt_buf *b, const struct metric *m,
                       const struct vt_load_dist *d, const struct vt_load_asks *asks)
{
    vt_buf_printf(b, ", \"mean_%s_ms\": ", m->key);
    vt_buf_py_f64(b, d->mean);
    vt_buf_printf(b, ", \"median_%s_ms\": ", m->key);
    vt_buf_py_f64(b, d->median);
    vt_buf_printf(b, ", \"std_%s_ms\": ", m->key);
    vt_buf_py_f64(b, d->std);
    for (size_t i = 0; i < asks->n_percentiles; i++) {
        vt_buf_str(b, ", \"p");
        put_percent(b, asks->percentile[i]);
        vt_buf_printf(b, "_%s_ms\": ", m->key);
        vt_buf_py_f64(b, d->p[i]);
    }
}

static void put_probes(struct vt_buf *b, const struct vt_load_summary *s)
{
    if (s->probe_completed == 0)
        return;
    load_put_u64(b, "probe_completed", s->probe_completed);
    load_put_u64(b, "probe_failed", s->probe_failed);
    load_put_f64(b, "probe_median_e2el_ms", s->probe_median_ms);
    load_put_f64(b, "probe_p99_e2el_ms", s->probe_p99_ms);
    load_put_f64(b, "probe_max_e2el_ms", s->probe_max_ms);
}

void vt_load_result_json(struct vt_buf *b, const struct vt_load_about *about,
                         const struct vt_load_asks *asks,
                         const struct vt_load_summary *s,
                         const struct vt_load_records *r)
{
    vt_buf_char(b, '{');
    put_setup(b, about);
    put_totals(b, about, s);
    if (about->detailed)
        put_details(b, r);
    load_put_f64(b, "max_output_tokens_per_s", s->max_output_per_s);
    load_put_u64(b, "max_concurrent_requests", s->max_concurrent);
    load_put_f64(b, "rtfx", 0);
    put_probes(b, s);
    if (about->ramp_events) {
        load_key(b, "rps_change_events");
        vt_buf_str(b, about->ramp_events);
    }
    put_spec(b, &s->spec);
    for (size_t i = 0; i < VT_COUNT(metrics); i++)
        if (is_wanted(about->metrics, metrics[i].key))
            put_metric(b, &metrics[i], dist_of(s, &metrics[i]), asks);
    if (about->more)
        vt_buf_str(b, about->more);
    load_steady_json(b, &s->steady, r->n, asks);
    load_own_json(b, s, r);
    vt_buf_char(b, '}');
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

static void table_probes(struct vt_buf *b, const struct vt_load_summary *s)
{
    if (s->probe_completed == 0)
        return;
    load_title(b, "Probe Requests", '-');
    load_row_n(b, "Probe requests completed:", s->probe_completed);
    load_row_n(b, "Probe requests failed:", s->probe_failed);
    load_row(b, "Median probe E2EL (ms):", s->probe_median_ms);
    load_row(b, "P99 probe E2EL (ms):", s->probe_p99_ms);
    load_row(b, "Max probe E2EL (ms):", s->probe_max_ms);
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
        struct vt_buf p = {0};

        put_percent(&p, asks->percentile[i]);
        snprintf(label, sizeof(label), "P%s %s (ms):", p.data ? p.data : "", m->name);
        load_row(b, label, d->p[i]);
        vt_buf_free(&p);
    }
}

static void table_spec(struct vt_buf *b, const struct vt_load_spec *s)
{
    char label[48];

    if (!s->on)
        return;
    load_title(b, "Speculative Decoding", '-');
    load_row(b, "Acceptance rate (%):",
             (double)s->accepted_tokens / (double)s->draft_tokens * 100);
    load_row(b, "Acceptance length:",
             s->drafts ? 1 + (double)s->accepted_tokens / (double)s->drafts : 0);
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
    table_probes(b, s);
    for (size_t i = 0; i < VT_COUNT(metrics); i++)
        if (is_wanted(about->metrics, metrics[i].key))
            table_metric(b, &metrics[i], dist_of(s, &metrics[i]), asks);
    table_spec(b, &s->spec);
    load_title(b, "", '=');
}

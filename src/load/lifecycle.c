/* lifecycle.c - inference-perf's lifecycle reports: which files, and how a stage sums
 * up. Members that its earlier releases wrote (prompt_len, info.output_token_times)
 * stand beside the present ones, because those who read such files know the former. */
#include <math.h>
#include <stdlib.h>

#include "load/summary.h"

/* What one window, a stage or all of them, amounts to. */
struct window {
    const struct vt_load_stage *stage; /* n of them */
    size_t n;
    bool is_stage; /* tells of rates, too */
    double zero; /* of all times, by the clock of the day: exact to the ns from there */
};

/* A list of samples in the making. */
struct samples {
    double *v; /* heap */
    size_t n, cap;
};

/* ---- samples --------------------------------------------------------- */

enum lifecycle_of {
    OF_LATENCY,
    OF_NTPOT,
    OF_TPOT,
    OF_TTFT,
    OF_PROMPT,
    OF_OUTPUT,
    OF_DELAY, /* of those that failed, too, like the next two */
    OF_FAILED_LATENCY,
    OF_FAILED_PROMPT,
    N_OF
};

struct sums {
    size_t n, ok;
    uint64_t prompt, cached, output, failed_prompt;
    size_t unsaid;                 /* counted here, not by the server */
    double first, last_sent, last; /* seconds */
    struct samples of[N_OF], gaps;
    int rc; /* of adding to them */
    struct vt_err *err;
};

static void samples_add(struct sums *a, struct samples *s, double v)
{
    if (a->rc == VT_OK)
        a->rc = vt_grow(&s->v, &s->cap, s->n + 1, sizeof(*s->v), a->err);
    if (a->rc == VT_OK)
        s->v[s->n++] = v;
}

/* Members of the map that is open. */
static void put_dist_members(struct vt_jw *w, struct samples *s)
{
    static const double percent[] = {0.1, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9};
    double sum = 0;
    char key[16];

    if (s->n == 0)
        return;
    vt_sort_f64(s->v, s->n);
    for (size_t i = 0; i < s->n; i++)
        sum += s->v[i];
    vt_jw_f64(w, "mean", sum / (double)s->n);
    vt_jw_f64(w, "min", s->v[0]);
    vt_jw_f64(w, "max", s->v[s->n - 1]);
    for (size_t i = 0; i < VT_COUNT(percent); i++) {
        snprintf(key, sizeof(key), "p%g", percent[i]);
        vt_jw_f64(w, percent[i] == 50 ? "median" : key,
                  vt_quantile(s->v, s->n, percent[i]));
    }
}

/* null without a sample. */
static void put_dist(struct vt_jw *w, const char *key, struct samples *s)
{
    if (s->n == 0) {
        vt_jw_null(w, key);
        return;
    }
    vt_jw_row(w, key);
    put_dist_members(w, s);
    vt_jw_end(w);
}

/* Since the window's zero; stages follow each other on the clock of the day. */
static double seconds_of(const struct window *w, const struct vt_load_stage *s,
                         vt_ns at)
{
    return s->records->start_unix_s - w->zero + (double)at / 1e9;
}

/* ---- what requests amount to ----------------------------------------- */

static void add_good(struct sums *a, const struct vt_load_stage *s,
                     const struct vt_load_record *q)
{
    struct stamps t = stamps_of(q, s->origin->backend);
    double latency = (double)(q->ended - q->begun) / 1e9, tokens = q->output_tokens;

    a->ok++;
    a->prompt += q->prompt_tokens;
    a->cached += q->cached_tokens;
    a->output += q->output_tokens;
    a->unsaid += q->counted_by_server ? 0 : 1;
    samples_add(a, &a->of[OF_LATENCY], latency);
    samples_add(a, &a->of[OF_NTPOT], tokens > 0 ? latency / tokens : 0);
    samples_add(a, &a->of[OF_PROMPT], q->prompt_tokens);
    samples_add(a, &a->of[OF_OUTPUT], tokens);
    if (t.n > 1)
        samples_add(a, &a->of[OF_TTFT], (double)(t.at[0] - q->begun) / 1e9);
    if (t.n > 1 && tokens > 1)
        samples_add(a, &a->of[OF_TPOT],
                    (double)(t.at[t.n - 1] - t.at[0]) / 1e9 / (tokens - 1));
    for (uint32_t i = 1; i < t.n; i++)
        samples_add(a, &a->gaps, (double)(t.at[i] - t.at[i - 1]) / 1e9);
}

static void add_request(struct sums *a, const struct window *w,
                        const struct vt_load_stage *s, const struct vt_load_record *q)
{
    double from = seconds_of(w, s, q->begun), to = seconds_of(w, s, q->ended);

    samples_add(a, &a->of[OF_DELAY], (double)(q->begun - q->planned) / 1e9);
    a->first = a->n == 0 || from < a->first ? from : a->first;
    a->last_sent = a->n == 0 || from > a->last_sent ? from : a->last_sent;
    a->last = a->n == 0 || to > a->last ? to : a->last;
    a->n++;
    if (q->ok) {
        add_good(a, s, q);
        return;
    }
    a->failed_prompt += q->prompt_tokens;
    samples_add(a, &a->of[OF_FAILED_LATENCY], (double)(q->ended - q->begun) / 1e9);
    samples_add(a, &a->of[OF_FAILED_PROMPT], q->prompt_tokens);
}

/* ---- JSON ------------------------------------------------------------ */

static void put_load(struct vt_jw *w, struct sums *a, const struct window *of)
{
    const struct vt_load_origin *o = of->stage[0].origin;
    double took = a->last_sent - a->first;
    double achieved = took > 0 ? (double)a->n / took : 0;

    vt_jw_row(w, "load_summary");
    vt_jw_u64(w, "count", a->n);
    put_dist(w, "schedule_delay", &a->of[OF_DELAY]);
    if (of->is_stage) {
        vt_jw_f64(w, "send_duration", took);
        /* Without a rate of its own a stage asks for what it gets. */
        vt_jw_f64(w, "requested_rate", isinf(o->rate) ? achieved : o->rate);
        vt_jw_f64(w, "achieved_rate", achieved);
        if (o->max_concurrency > 0)
            vt_jw_u64(w, "concurrency", o->max_concurrency);
    }
    vt_jw_end(w);
}

/* A total, and how it is spread over requests. */
static void put_prompts(struct vt_jw *w, uint64_t total, uint64_t cached,
                        struct samples *s)
{
    vt_jw_row(w, "prompt_tokens");
    vt_jw_u64(w, "total", total);
    vt_jw_u64(w, "cached", cached);
    vt_jw_u64(w, "uncached", total > cached ? total - cached : 0);
    put_dist_members(w, s);
    vt_jw_end(w);
}

static void put_successes(struct vt_jw *w, struct sums *a)
{
    double s = a->last > a->first ? a->last - a->first : INFINITY;

    vt_jw_map(w, "successes");
    vt_jw_u64(w, "count", a->ok);
    vt_jw_map(w, "latency");
    put_dist(w, "request_latency", &a->of[OF_LATENCY]);
    put_dist(w, "normalized_time_per_output_token", &a->of[OF_NTPOT]);
    put_dist(w, "time_per_output_token", &a->of[OF_TPOT]);
    put_dist(w, "time_to_first_token", &a->of[OF_TTFT]);
    put_dist(w, "inter_token_latency", &a->gaps);
    vt_jw_end(w);
    vt_jw_row(w, "throughput");
    vt_jw_f64(w, "input_tokens_per_sec", (double)a->prompt / s);
    vt_jw_f64(w, "output_tokens_per_sec", (double)a->output / s);
    vt_jw_f64(w, "total_tokens_per_sec", (double)(a->prompt + a->output) / s);
    vt_jw_f64(w, "requests_per_sec", (double)a->ok / s);
    vt_jw_end(w);
    put_prompts(w, a->prompt, a->cached, &a->of[OF_PROMPT]);
    vt_jw_row(w, "output_tokens");
    vt_jw_u64(w, "total", a->output);
    put_dist_members(w, &a->of[OF_OUTPUT]);
    vt_jw_end(w);
    put_dist(w, "prompt_len", &a->of[OF_PROMPT]);
    put_dist(w, "output_len", &a->of[OF_OUTPUT]);
    vt_jw_row(w, "client_fallback_requests");
    vt_jw_u64(w, "prompt", a->unsaid);
    vt_jw_u64(w, "output", a->unsaid);
    vt_jw_end(w);
    vt_jw_end(w);
}

/* ---- failures -------------------------------------------------------- */

/* "HTTP Error 503", "TimeoutError", ...: as inference-perf names it. */
static void error_type(const struct vt_load_record *q, char *out, size_t size)
{
    if (q->failure == VT_LOAD_STATUS)
        snprintf(out, size, "HTTP Error %d", q->status);
    else
        snprintf(out, size, "%s", vt_load_failure_name(q->failure));
}

/* Kinds of failures are few: a list will do. */
enum { MOST_LABELS = 64 };
struct labels {
    char name[MOST_LABELS][48];
    size_t count[MOST_LABELS];
    const char *example[MOST_LABELS];
    size_t n;
};

static void count_label(struct labels *l, const struct vt_load_record *q)
{
    char name[48];
    size_t i = 0;

    error_type(q, name, sizeof(name));
    while (i < l->n && strcmp(l->name[i], name) != 0)
        i++;
    if (i == MOST_LABELS)
        return;
    if (i == l->n) {
        memcpy(l->name[l->n++], name, sizeof(name));
        l->example[i] = q->detail ? q->detail : q->error;
    }
    l->count[i]++;
}

static void put_labels(struct vt_jw *w, const struct window *of)
{
    struct labels l = {.n = 0};

    for (size_t k = 0; k < of->n; k++)
        for (size_t i = 0; i < of->stage[k].records->n; i++)
            if (!of->stage[k].records->record[i].ok)
                count_label(&l, &of->stage[k].records->record[i]);
    vt_jw_map(w, "by_label");
    for (size_t i = 0; i < l.n; i++) {
        vt_jw_map(w, l.name[i]);
        vt_jw_u64(w, "count", l.count[i]);
        vt_jw_list(w, "messages");
        if (l.example[i]) {
            vt_jw_map(w, NULL);
            vt_jw_str(w, "message", l.example[i]);
            vt_jw_end(w);
        }
        vt_jw_end(w);
        vt_jw_end(w);
    }
    vt_jw_end(w);
}

static int write_summary(const struct window *of, const char *dir, const char *name,
                         struct vt_err *err)
{
    struct vt_buf b = {0};
    struct sums a = {.err = err};
    struct vt_jw w;

    for (size_t k = 0; k < of->n; k++)
        for (size_t i = 0; i < of->stage[k].records->n; i++)
            add_request(&a, of, &of->stage[k], &of->stage[k].records->record[i]);
    if (a.rc == VT_OK) {
        vt_jw_init(&w, &b, &vt_json_pretty);
        vt_jw_map(&w, NULL);
        vt_jw_f64(&w, "benchmark_time_seconds", a.last - a.first);
        put_load(&w, &a, of);
        put_successes(&w, &a);
        vt_jw_row(&w, "failures");
        vt_jw_u64(&w, "count", a.n - a.ok);
        put_dist(&w, "request_latency", &a.of[OF_FAILED_LATENCY]);
        put_prompts(&w, a.failed_prompt, 0, &a.of[OF_FAILED_PROMPT]);
        put_dist(&w, "prompt_len", &a.of[OF_FAILED_PROMPT]);
        put_labels(&w, of);
        vt_jw_end(&w);
        vt_jw_end(&w);
        vt_buf_char(&b, '\n');
        a.rc = vt_write_file_in(dir, name, &b, err);
    }
    vt_buf_free(&b);
    for (int i = 0; i < N_OF; i++)
        free(a.of[i].v);
    free(a.gaps.v);
    return a.rc;
}

/* ---- single requests ------------------------------------------------- */

static void put_info(struct vt_jw *w, const struct window *of,
                     const struct vt_load_stage *s, const struct vt_load_record *q)
{
    struct stamps t = stamps_of(q, s->origin->backend);

    vt_jw_map(w, "info");
    vt_jw_u64(w, "input_tokens", q->prompt_tokens);
    vt_jw_u64(w, "output_tokens", q->output_tokens);
    vt_jw_map(w, "request_metrics");
    vt_jw_map(w, "text");
    vt_jw_u64(w, "input_tokens", q->prompt_tokens);
    vt_jw_end(w);
    vt_jw_end(w);
    vt_jw_map(w, "response_metrics");
    vt_jw_u64(w, "output_tokens", q->output_tokens);
    if (q->counted_by_server) {
        vt_jw_map(w, "server_usage");
        vt_jw_u64(w, "prompt_tokens", q->prompt_tokens);
        vt_jw_u64(w, "completion_tokens", q->output_tokens);
        vt_jw_u64(w, "total_tokens", q->prompt_tokens + q->output_tokens);
        vt_jw_map(w, "prompt_tokens_details");
        vt_jw_u64(w, "cached_tokens", q->cached_tokens);
        vt_jw_end(w);
        vt_jw_end(w);
    } else {
        vt_jw_null(w, "server_usage");
    }
    vt_jw_end(w);
    vt_jw_list(w, "output_token_times");
    for (uint32_t i = 0; i < t.n; i++) {
        uint32_t tokens = stamps_are_tokens(&t, q) ? stamps_tokens(&t, q, i) : 1;

        for (uint32_t k = 0; k < tokens; k++)
            vt_jw_f64(w, NULL, seconds_of(of, s, t.at[i]));
    }
    vt_jw_end(w);
    vt_jw_end(w);
}

static void put_content(struct vt_jw *w, const char *key, const char *text, size_t len)
{
    if (text)
        vt_jw_strn(w, key, text, len);
    else
        vt_jw_null(w, key);
}

static void put_request(struct vt_jw *w, const struct window *of, size_t stage,
                        const struct vt_load_record *q)
{
    const struct vt_load_stage *s = &of->stage[stage];
    const struct vt_load_session *talk = load_session_of(s->origin->plan, q);
    const struct vt_load_turn *t =
        talk && q->turn < talk->n_turns ? &talk->turn[q->turn] : NULL;
    char type[48];

    vt_jw_row(w, NULL);
    vt_jw_u64(w, "stage_id", stage);
    vt_jw_f64(w, "scheduled_time", seconds_of(of, s, q->planned));
    vt_jw_f64(w, "start_time", seconds_of(of, s, q->begun));
    vt_jw_f64(w, "end_time", seconds_of(of, s, q->ended));
    if (talk && talk->n_turns > 1 && talk->id)
        vt_jw_str(w, "session_id", talk->id);
    else if (talk && talk->n_turns > 1)
        vt_jw_printf(w, "session_id", "\"%u\"", q->session);
    put_content(w, "request", t ? t->text : NULL, t ? t->text_len : 0);
    put_content(w, "response", q->text, q->text_len);
    put_info(w, of, s, q);
    if (q->ok) {
        vt_jw_null(w, "error");
    } else {
        error_type(q, type, sizeof(type));
        vt_jw_map(w, "error");
        vt_jw_str(w, "error_type", type);
        vt_jw_str(w, "error_msg", q->detail ? q->detail : q->error ? q->error : "");
        vt_jw_end(w);
    }
    vt_jw_end(w);
}

static int write_requests(const struct window *of, const char *path, struct vt_err *err)
{
    struct vt_json_style style = vt_json_spaced;
    struct vt_buf b = {0};
    struct vt_out *o;
    struct vt_jw w;
    int rc = vt_out_open(&o, path, err);

    if (rc != VT_OK)
        return rc;
    style.indent = ""; /* a line each */
    vt_jw_init(&w, &b, &style);
    vt_jw_list(&w, NULL);
    for (size_t k = 0; k < of->n; k++)
        for (size_t i = 0; i < of->stage[k].records->n && rc == VT_OK; i++) {
            put_request(&w, of, k, &of->stage[k].records->record[i]);
            rc = vt_out_flush(o, &b, false, err);
        }
    vt_jw_end(&w);
    vt_buf_char(&b, '\n');
    if (rc == VT_OK)
        rc = vt_out_flush(o, &b, true, err);
    vt_buf_free(&b);
    return vt_out_end(o, rc, err);
}

/* ---- files ----------------------------------------------------------- */

int vt_load_write_lifecycle(const struct vt_load_stage *stage, size_t n,
                            const char *dir, struct vt_err *err)
{
    struct window all = {
        .stage = stage, .n = n, .zero = n > 0 ? stage[0].records->start_unix_s : 0};
    struct vt_buf path = {0};
    char name[64];
    int rc = vt_make_dirs(dir, NULL, err);

    if (rc == VT_OK)
        rc = write_summary(&all, dir, "summary_lifecycle_metrics.json", err);
    for (size_t i = 0; i < n && rc == VT_OK; i++) {
        struct window one = {
            .stage = &stage[i], .n = 1, .is_stage = true, .zero = all.zero};

        snprintf(name, sizeof(name), "stage_%zu_lifecycle_metrics.json", i);
        rc = write_summary(&one, dir, name, err);
    }
    vt_buf_printf(&path, "%s/per_request_lifecycle_metrics.json", dir);
    if (rc == VT_OK)
        rc = path.failed ? vt_nomem(err) : write_requests(&all, path.data, err);
    vt_buf_free(&path);
    return rc;
}

/* bench_job.c - one job of vtwin bench: made from flags, run, told of. */
#define _GNU_SOURCE /* localtime_r, RLIMIT_NOFILE */
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "cli/cmd/bench.h"
#include "cli/signals.h"
#include "live/live.h"

/* ---- progress ---------------------------------------------------------- */

static void show_progress(void *user, const struct vt_load_progress *p)
{
    struct bench_progress *g = user;
    double passed = (double)(p->now - g->at) / 1e9;

    if (!g->on || passed < 0.5)
        return;
    fprintf(stderr,
            "\r\033[K%zu of %zu done, %zu failed, %u in flight, %u waiting, "
            "%.0f tok/s, %.0f s",
            p->done, p->planned, p->failed, (unsigned)p->in_flight,
            (unsigned)p->waiting, (double)(p->tokens - g->tokens) / passed,
            (double)p->now / 1e9);
    fflush(stderr);
    g->shown = true;
    g->at = p->now;
    g->tokens = p->tokens;
}

/* ---- the model --------------------------------------------------------- */

static int find_model(struct bench_job *j, struct vt_err *err)
{
    const char *model = j->o->model, *served = j->o->served_model_name;
    struct vt_load_model found;
    int rc;

    if (model || !j->asked_server) {
        j->about.model = model ? model : "model";
        j->config.model = served ? served : j->about.model;
        return VT_OK;
    }
    rc = vt_load_find_model(&j->config, &j->arena, &found, err);
    if (rc != VT_OK)
        return rc;
    j->config.model = found.id;
    j->about.model = found.root;
    bench_tell("model %s, the first that the server has", j->config.model);
    return VT_OK;
}

/* ---- the tokenizer ---------------------------------------------------- */

static int open_tokenizer(struct bench_job *j, struct vt_err *err)
{
    const char *path = j->o->what.tokenizer, *model = j->o->model;
    char file[4096];
    int rc;

    if (!path && model &&
        snprintf(file, sizeof(file), "%s/tokenizer.json", model) < (int)sizeof(file) &&
        access(file, F_OK) == 0)
        path = model;
    j->about.tokenizer = path ? path : j->about.model;
    if (!path) {
        j->own_tokenizer = true;
        return vt_tokenizer_builtin(&j->tokenizer, err);
    }
    rc = vt_tokenizer_open(&j->tokenizer, path, err);
    if (rc != VT_OK)
        return vt_within(err, rc, "--tokenizer");
    j->config.tokenizer = j->tokenizer;
    return VT_OK;
}

/* ---- the plan --------------------------------------------------------- */

static int make_plan(struct bench_job *j, struct vt_err *err)
{
    struct vt_load_data d = bench_data(j);
    struct vt_load_multiturn m = j->o->what.turns;
    int rc;

    if (strcmp(d.name, "multi-turn") == 0) {
        m.path = d.path;
        m.seed = d.seed;
        return vt_load_multiturn(&j->plan, &m, j->tokenizer, err);
    }
    if (strcmp(d.name, "timed_trace") == 0 && j->config.backend != VT_LOAD_COMPLETIONS)
        return vt_fail(err, VT_EINPUT,
                       "timed_trace sends token ids: --backend openai or "
                       "vllm");
    rc = vt_load_data_make(&j->plan, &d, err);
    if (rc == VT_OK && j->asked_server && !d.token_ids &&
        (strcmp(d.name, "random") == 0 || strcmp(d.name, "prefix_repetition") == 0))
        rc = bench_align(j, err);
    return rc;
}

int bench_job_open(struct bench_job *j, const struct opt_args *a, struct vt_err *err)
{
    const struct bench_options *o = a->options;
    int rc;

    *j = (struct bench_job){.args = a, .o = o, .asked_server = !o->dry_run};
    j->progress.on = !o->disable_tqdm && (o->progress || isatty(STDERR_FILENO));
    if ((rc = bench_configure(j, err)))
        return rc;
    j->config.stopped = cli_stopped;
    j->config.progress = show_progress;
    j->config.user = &j->progress;
    if ((rc = find_model(j, err)) || (rc = open_tokenizer(j, err)) ||
        (rc = make_plan(j, err)))
        return rc;
    if (opt_given(a, &o->self_timed) && !j->plan.timed)
        return vt_fail(err, VT_EINPUT, "--self-timed: this dataset has no times");
    j->plan.timed = j->plan.timed && o->self_timed;
    j->about.num_prompts = j->plan.n_turns;
    if (isinf(j->arrivals.rate) && j->arrivals.ramp == VT_RAMP_NONE && !j->plan.timed)
        j->asks.steady_concurrency = j->config.max_concurrency;
    return VT_OK;
}

void bench_job_close(struct bench_job *j)
{
    vt_load_plan_free(&j->plan);
    vt_tokenizer_close(j->tokenizer);
    vt_arena_free(&j->arena);
}

/* ---- before it -------------------------------------------------------- */

/* The first request n times. */
static int send_first(struct bench_job *j, size_t n, struct vt_load_records *r,
                      struct vt_err *err)
{
    struct vt_load_session first = j->plan.session[0];
    struct vt_load_plan plan = {.ignore_eos = j->plan.ignore_eos};
    struct vt_load_config c = j->config;
    int rc = VT_OK;

    first.n_turns = 1;
    first.next = first.root = 0;
    c.progress = NULL;
    c.keep_texts = false;
    c.probe_rate = 0;
    for (size_t i = 0; i < n && rc == VT_OK; i++)
        rc = vt_load_plan_add(&plan, &first, err);
    if (rc == VT_OK)
        rc = vt_load_run(r, &plan, NULL, &c, err);
    vt_load_plan_free(&plan);
    return rc;
}

static bool is_ready(struct bench_job *j, struct vt_err *err)
{
    struct vt_load_records r = {0};
    int rc = send_first(j, 1, &r, err);
    bool ok = rc == VT_OK && r.n > 0 && r.record[0].ok;

    if (rc == VT_OK && !ok && r.n > 0)
        (void)vt_fail(err, VT_EIO, "the first request fails: %s",
                      r.record[0].detail ? r.record[0].detail : r.record[0].error);
    vt_load_records_free(&r);
    return ok;
}

int bench_job_warm(struct bench_job *j, struct vt_err *err)
{
    uint32_t limit_s = j->o->ready_timeout_s;
    vt_ns until = vt_wall_ns() + (vt_ns)limit_s * VT_SEC;
    struct vt_load_records r = {0};
    int rc = VT_OK;

    while (limit_s > 0 && !is_ready(j, err)) {
        if (vt_wall_ns() >= until || cli_signal_caught())
            return vt_within(err, VT_EIO, "not ready in %u s", (unsigned)limit_s);
        vt_sleep_ns(200 * VT_MS);
    }
    if (j->o->warmups > 0 && !cli_signal_caught())
        rc = send_first(j, j->o->warmups, &r, err);
    vt_load_records_free(&r);
    return rc;
}

/* ---- the run ---------------------------------------------------------- */

static void raise_files(const struct bench_job *j)
{
    size_t need = j->plan.n + 64;
    struct rlimit l;

    if (j->config.max_concurrency > 0 && need > j->config.max_concurrency + 64)
        need = j->config.max_concurrency + 64;
    if (getrlimit(RLIMIT_NOFILE, &l) != 0 || l.rlim_cur >= need)
        return;
    l.rlim_cur = need < l.rlim_max ? (rlim_t)need : l.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &l);
}

static void read_spec(struct bench_job *j, struct vt_load_spec *s)
{
    const struct vt_load_call call = {.path = "/metrics", .timeout_ns = 5 * VT_SEC};
    struct vt_buf reply = {0};
    struct vt_err err;
    int status = 0;

    *s = (struct vt_load_spec){0};
    if (vt_load_call(&j->config, &call, &status, &reply, &err) == VT_OK &&
        status == 200)
        vt_load_spec_read(s, reply.data ? reply.data : "", reply.len);
    vt_buf_free(&reply);
}

/* When the rate, in whole numbers, rose: as vLLM notes it. */
static void note_ramp(struct bench_job *j, const vt_ns *at, double start)
{
    struct vt_buf b = {0};
    int64_t last = (int64_t)j->arrivals.ramp_start - 1;

    if (j->arrivals.ramp == VT_RAMP_NONE)
        return;
    vt_buf_char(&b, '[');
    for (size_t i = 0; i < j->plan.n; i++) {
        int64_t rate = (int64_t)vt_load_rate_at(&j->arrivals, i, j->plan.n);
        double when = start + (i > 0 ? (double)at[i] / 1e9 : 0);
        time_t whole = (time_t)when;
        char text[40];
        struct tm tm;

        for (; last < rate && localtime_r(&whole, &tm); last++) {
            strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
            vt_buf_printf(&b, "%s{\"rps\": %lld, \"timestamp\": \"%s.%06d\"}",
                          b.len > 1 ? ", " : "", (long long)(last + 1), text,
                          (int)((when - (double)whole) * 1e6));
        }
    }
    vt_buf_char(&b, ']');
    j->about.ramp_events = b.failed ? NULL : vt_arena_copy(&j->arena, b.data, b.len);
    vt_buf_free(&b);
}

int bench_job_times(const struct bench_job *j, vt_ns *at, struct vt_err *err)
{
    double share = j->plan.n_turns > 0
                       ? (double)vt_load_plan_starts(&j->plan) / (double)j->plan.n_turns
                       : 1;
    struct vt_load_arrivals a = j->arrivals;

    a.rate *= share;
    a.ramp_start *= share;
    a.ramp_end *= share;
    return vt_load_arrivals_make(&a, at, j->plan.n, err);
}

int bench_job_run(struct bench_job *j, struct vt_load_records *r,
                  struct vt_load_summary *s, struct vt_err *err)
{
    vt_ns *at = malloc((j->plan.n + 1) * sizeof(*at));
    struct vt_load_spec before = {0};
    char date[40] = "";
    time_t now;
    struct tm tm;
    int rc = at ? bench_job_times(j, at, err) : vt_nomem(err);

    if (rc != VT_OK)
        goto out;
    raise_files(j);
    read_spec(j, &before);
    rc = vt_load_run(r, &j->plan, j->plan.timed ? NULL : at, &j->config, err);
    if (j->progress.shown)
        fputs("\r\033[K", stderr);
    j->progress = (struct bench_progress){.on = j->progress.on};
    if (rc || (rc = vt_load_summarize(s, r, &j->asks, err)))
        goto out;
    if (before.on && !r->interrupted) {
        read_spec(j, &s->spec);
        vt_load_spec_minus(&s->spec, &before);
    }
    note_ramp(j, at, r->start_unix_s);
    now = time(NULL);
    if (localtime_r(&now, &tm))
        strftime(date, sizeof(date), "%Y%m%d-%H%M%S", &tm);
    j->about.date = vt_arena_copy(&j->arena, date, strlen(date));
out:
    free(at);
    return rc;
}

int bench_job_check(const struct vt_load_records *r, const struct vt_load_summary *s,
                    struct vt_err *err)
{
    if (s->completed > 0 || r->interrupted)
        return VT_OK;
    return vt_fail(err, VT_EIO, "none of %zu requests succeeded: %s", r->n,
                   s->first_error ? s->first_error : "nothing is known of why");
}

struct vt_load_origin bench_job_origin(const struct bench_job *j)
{
    return (struct vt_load_origin){
        .model = j->about.model,
        .name = j->about.label,
        .plan = &j->plan,
        .tokenizer = j->tokenizer,
        .backend = j->config.backend,
        .max_concurrency = j->config.max_concurrency,
        .rate = j->arrivals.rate,
        .seed = j->config.seed,
    };
}

int bench_write_trace(const struct vt_load_records *r, const struct vt_load_origin *o,
                      const char *path, struct vt_err *err)
{
    size_t left_out = 0;
    int rc = vt_load_write_trace(r, o, path, &left_out, err);

    if (rc == VT_OK && left_out > 0)
        bench_tell("%zu requests without a token are not in %s", left_out, path);
    return rc;
}

void bench_job_json(const struct bench_job *j, const struct vt_load_records *r,
                    const struct vt_load_summary *s, const struct vt_buf *twin,
                    struct vt_buf *b)
{
    struct vt_load_about about = j->about;
    struct vt_buf more = {0};
    struct vt_err err;

    if (j->plan.n_turns > j->plan.n) {
        vt_buf_str(&more, ", \"per_turn_metrics\": ");
        if (vt_load_turns_json(&more, r, &j->asks, &err) != VT_OK)
            vt_buf_clear(&more);
    }
    if (twin && twin->len > 0) {
        vt_buf_str(&more, ", \"twin\": ");
        vt_buf_add(&more, twin->data, twin->len);
    }
    if (more.len > 0 && !more.failed)
        about.more = more.data;
    vt_load_result_json(b, &about, &j->asks, s, r);
    vt_buf_free(&more);
}

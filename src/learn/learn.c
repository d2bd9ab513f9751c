/* learn.c - the way from a server to a profile: ask, look, load, fit, predict, measure.
 *
 * Whatever is found on the way that would make a profile of something else than this
 * server ends it with a sentence. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "learn/budget.h"
#include "learn/predict.h"

static const double TOO_FAST_MS = 0.5; /* a token: a client's clock is no finer */
static const double PACE_CHANGE = 0.2;
/* A load that takes so many times longer than it was made for is cut off, but none is
 * before the whole budget's quarter has passed. */
static const double OVER = 4, OVER_SHARE = 0.25;

struct walk { /* of one run */
    struct vt_learn *l;
    const struct vt_learn_config *c;
    const struct vt_learn_site *site;
    double began;
    struct plan_rough rough;
    struct plan_sizes sizes;
    struct vt_profile fitted; /* once there is one */
    struct vt_match *match;
};

static void tell(const struct walk *w, const char *fmt, ...) VT_PRINTF(2, 3);

static void tell(const struct walk *w, const char *fmt, ...)
{
    char line[400];
    va_list ap;

    if (!w->c->tell)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    w->c->tell(w->c->user, line);
}

/* ---- one load ----------------------------------------------------------- */

static const char *const folders[] = {[VT_LEARN_CHECK] = "/checks",
                                      [VT_LEARN_FITTED] = "",
                                      [VT_LEARN_UNSEEN] = "/unseen"};

static int new_load(struct walk *w, const char *name, const char *about,
                    enum vt_learn_part part, struct vt_learn_load **out,
                    struct vt_err *err)
{
    struct vt_learn *l = w->l;
    int rc = vt_grow(&l->load, &l->cap, l->n + 1, sizeof(*l->load), err);

    if (rc != VT_OK)
        return rc;
    *out = &l->load[l->n];
    **out = (struct vt_learn_load){.part = part};
    if ((rc = vt_arena_text(&l->arena, name, &(*out)->name, err)) ||
        (rc = vt_arena_text(&l->arena, about, &(*out)->about, err)))
        return rc;
    l->n++;
    return VT_OK;
}

/* What makes times worthless, whatever they are. */
static int check_done(const struct vt_learn_load *q, double most_s, struct vt_err *err)
{
    const struct vt_learn_done *d = &q->done;

    if (d->failed > 0)
        return vt_fail(err, VT_EIO, "%zu of %zu requests failed: %s", d->failed,
                       d->sent, d->error);
    if (d->cut)
        return vt_fail(err, VT_ECHECK,
                       "cut off after %.3g s: the time is too short for a server as "
                       "slow as this",
                       most_s);
    if (d->told && (d->others > 0 || d->others_now > 0))
        return vt_fail(err, VT_ECHECK,
                       "the server has other requests, too (%lld ended meanwhile, %u "
                       "are there still): nothing it does is ours alone",
                       (long long)(d->others > 0 ? d->others : 0),
                       (unsigned)d->others_now);
    if (d->drafts)
        return vt_fail(err, VT_ECHECK,
                       "the server drafts tokens ahead, and how many are taken hangs "
                       "on what people write");
    return VT_OK;
}

/* Answers must be as long as they were asked for, token by token. */
static int check_lengths(const struct vt_learn_load *q, struct vt_err *err)
{
    const struct vt_workload *asked = &q->planned, *got = &q->measured;
    uint64_t wanted = 0, came = 0;

    if (got->n != asked->n || !got->measured)
        return vt_fail(err, VT_ECHECK, "%zu of %zu answers have no token",
                       asked->n - got->n, asked->n);
    for (size_t i = 0; i < asked->n; i++) {
        wanted += asked->req[i].output_tokens;
        came += got->req[i].output_tokens;
    }
    if (came != wanted)
        return vt_fail(err, VT_ECHECK,
                       "%llu tokens were asked for and %llu came: the server does not "
                       "heed ignore_eos",
                       (unsigned long long)wanted, (unsigned long long)came);
    return VT_OK;
}

static int measure(struct walk *w, struct vt_learn_load *q, bool watch,
                   struct vt_err *err)
{
    struct vt_meta engine = w->l->engine;
    struct vt_buf path = {0};
    struct vt_learn_ask ask = {
        .load = &q->planned,
        .engine = &engine,
        .most_s = fmax(OVER * w->sizes.seconds, OVER_SHARE * w->c->seconds),
        .watch = watch};
    int rc;

    if (w->c->stopped && w->c->stopped(w->c->user))
        return vt_fail(err, VT_EIO, "stopped");
    engine.workload_name = q->name;
    vt_buf_printf(&path, "%s%s/%s.trace.jsonl.gz", w->c->dir, folders[q->part],
                  q->name);
    ask.path = path.data;
    rc = path.failed ? vt_nomem(err)
                     : w->site->measure(w->site->user, &ask, &q->done, err);
    if (rc == VT_OK)
        rc = check_done(q, ask.most_s, err);
    if (rc == VT_OK)
        rc = vt_trace_load(&q->measured, path.data, err);
    if (rc == VT_OK)
        rc = check_lengths(q, err);
    if (rc == VT_OK)
        rc = vt_summary_measured(&q->real, &q->measured, err);
    vt_buf_free(&path);
    if (rc == VT_OK)
        tell(w,
             "%-18s %5zu requests in %5.1f s: TTFT %.1f ms, ITL %.2f ms, E2E %.0f ms",
             q->name, q->measured.n, q->real.duration_s, q->real.ttft.mean,
             q->real.itl.mean, q->real.e2e.mean);
    return vt_within(err, rc, "%s", q->name);
}

/* A check with requests that are all alike. */
static int check_load(struct walk *w, const char *name, const char *about, uint32_t n,
                      uint32_t concurrency, uint32_t prompt, uint32_t output,
                      struct vt_learn_load **out, struct vt_err *err)
{
    struct vt_buf b = {0};
    int rc = new_load(w, name, about, VT_LEARN_CHECK, out, err);

    vt_buf_printf(&b,
                  "name: %s\nrequests: %u\narrival: {process: closed, concurrency: "
                  "%u}\nprompt: %u\noutput: %u\n",
                  name, (unsigned)n, (unsigned)concurrency, (unsigned)prompt,
                  (unsigned)output);
    if (rc == VT_OK)
        rc = b.failed ? vt_nomem(err)
                      : vt_workload_generate_text(
                            &(*out)->planned, name, b.data, b.len,
                            (int64_t)(vt_hash2(w->c->seed, w->l->n) & INT64_MAX), err);
    vt_buf_free(&b);
    return rc == VT_OK ? measure(w, *out, concurrency > 1, err) : rc;
}

/* ---- a first look ------------------------------------------------------- */

/* How fast one stream is: it should be so from beginning to end. */
static int find_pace(struct walk *w, int which, struct vt_err *err)
{
    static const char *const name[] = {"pace-1", "pace-2", "pace-3"};
    enum { TIMES = 4, PROMPT = 16, LEAST = 12, MOST = 48 };
    double fits = 0.012 * 1e3 * w->c->seconds / TIMES / w->rough.itl_ms;
    uint32_t output = fits < LEAST ? LEAST : fits > MOST ? MOST : (uint32_t)fits;
    struct vt_learn_load *q;
    int rc = check_load(w, name[which], "one stream, always the same", TIMES, 1, PROMPT,
                        output, &q, err);

    if (rc != VT_OK)
        return rc;
    w->l->pace_ms[which] = q->real.tpot.p50;
    w->l->fastest_ms = w->l->fastest_ms > 0 ? fmin(w->l->fastest_ms, q->real.itl.mean)
                                            : q->real.itl.mean;
    w->l->slowest_ms = fmax(w->l->slowest_ms, q->real.itl.mean);
    return VT_OK;
}

double vt_learn_speed_change(const struct vt_learn *l)
{
    return l->fastest_ms > 0 ? 100 * (l->slowest_ms / l->fastest_ms - 1) : 0;
}

static int check_pace(struct walk *w, int which, struct vt_err *err)
{
    double *pace = w->l->pace_ms;
    int rc = VT_OK;

    /* Once may be a neighbour's noise. */
    for (int i = 0; i < 2; i++) {
        if ((rc = find_pace(w, which, err)) ||
            fabs(pace[which] / pace[0] - 1) < PACE_CHANGE)
            return rc;
    }
    return vt_fail(
        err, VT_ECHECK,
        "the server's speed changed: one stream had a token every %.2f ms at "
        "first, and every %.2f ms later",
        pace[0], pace[which]);
}

static int look_at_streams(struct walk *w, struct vt_err *err)
{
    enum { SHORT = 16, OUTPUT = 12, LONG = 1024 };
    uint32_t room = w->l->engine.max_model_len > 0 ? w->l->engine.max_model_len : 2048;
    uint32_t prompt = LONG + OUTPUT < room ? LONG : room / 2;
    struct vt_learn_load *q;
    double short_ms;
    int rc = check_load(w, "short", "short prompts, one after the other", 4, 1, SHORT,
                        OUTPUT, &q, err);

    if (rc != VT_OK)
        return rc;
    short_ms = q->real.ttft.p50;
    w->rough = (struct plan_rough){.itl_ms = q->real.tpot.p50, .ttft_ms = short_ms};
    if (!(w->rough.itl_ms > TOO_FAST_MS))
        return vt_fail(err, VT_ECHECK,
                       "a token every %.3f ms: too fast for a client's clock to learn "
                       "from",
                       w->rough.itl_ms);
    rc = check_load(w, "prompts", "longer prompts, one after the other", 3, 1, prompt,
                    4, &q, err);
    if (rc == VT_OK)
        w->rough.token_us =
            fmax(1e3 * (q->real.ttft.p50 - short_ms) / (prompt - SHORT), 0.01);
    return rc;
}

/* Twice, where that takes little: a server's first long prompt meets kernels that are
 * compiled only then, and tells nothing. */
static int find_budget(struct walk *w, double apart_s, uint32_t prompt, uint32_t least,
                       uint32_t stream, struct vt_err *err)
{
    static const double LITTLE = 0.04; /* of all the time */
    static const char *const name[] = {"budget", "budget-again"};
    int rc = VT_OK;

    for (size_t i = 0; i < VT_COUNT(name) && rc == VT_OK; i++) {
        struct vt_learn_load *q;

        if ((rc = new_load(w, name[i], "a stream, and prompts beside it",
                           VT_LEARN_CHECK, &q, err)) ||
            (rc = budget_plan(&q->planned, apart_s, prompt, least, stream, err)) ||
            (rc = measure(w, q, false, err)))
            return rc;
        rc = budget_find(&q->measured, prompt, least,
                         &w->l->engine.max_num_batched_tokens, err);
        if (1e-9 * (double)q->measured.measured[BUDGET_STREAM].e2e_ns >
            LITTLE * w->c->seconds)
            break;
    }
    return rc;
}

static int look_for_budget(struct walk *w, struct vt_err *err)
{
    /* LEAST_APART: tokens of the stream between the others, TAIL: beside the long one
     * and after it. */
    enum { MOST = 20000, LEAST = 1500, SHORT = 900, LEAST_APART = 12 };
    enum { LEAST_STREAM = 48, TAIL = 24 };
    static const double MOST_STREAM = 96;
    struct vt_meta *m = &w->l->engine;
    double pool = (double)m->num_gpu_blocks * m->block_size;
    double prompt = fmin(m->max_model_len > 0 ? m->max_model_len - 3 : 0, MOST);
    double itl_ms = w->rough.itl_ms, least, apart;
    double stream = floor(fmin(MOST_STREAM, 0.06 * 1e3 * w->c->seconds / itl_ms));

    if (pool > 0)
        prompt = fmin(prompt, pool - 4 * m->block_size - stream - SHORT);
    prompt = floor(fmin(prompt, 1e6 * 0.03 * w->c->seconds / w->rough.token_us));
    /* The short one is launched as the long one is, and over when that comes. */
    apart = 2 * SHORT * 1e-3 * w->rough.token_us / itl_ms;
    apart = fmax(fmin(apart, floor((stream - TAIL) / 2)), LEAST_APART);
    least = 1e3 * apart / 2 * itl_ms / w->rough.token_us;
    least = floor(fmin(fmin(SHORT, prompt / 2), least));
    if (m->max_num_batched_tokens > 0 || prompt < LEAST || least < 1 ||
        w->c->max_concurrency < BUDGET_REQUESTS || stream < LEAST_STREAM)
        return VT_OK;
    return find_budget(w, 1e-3 * (w->rough.ttft_ms + apart * itl_ms), (uint32_t)prompt,
                       (uint32_t)least, (uint32_t)stream, err);
}

/* As many as may be, at once: how many of them run. */
static int look_at_crowd(struct walk *w, struct vt_err *err)
{
    enum { PROMPT = 16, LEAST = 8, MOST = 64 };
    struct vt_meta *m = &w->l->engine;
    uint32_t crowd = w->c->max_concurrency, running = crowd;
    double fits = 0.04 * 1e3 * w->c->seconds / w->rough.itl_ms;
    uint32_t output = fits < LEAST ? LEAST : fits > MOST ? MOST : (uint32_t)fits;
    struct vt_learn_load *q;
    int rc;

    if (crowd < 2)
        return VT_OK;
    rc = check_load(w, "crowd", "as many as may be, at once", crowd, crowd, PROMPT,
                    output, &q, err);
    if (rc != VT_OK)
        return rc;
    if (m->max_num_seqs == 0 && q->done.waiting > 0 && q->done.preemptions == 0 &&
        q->done.running < crowd)
        m->max_num_seqs = q->done.running;
    if (m->max_num_seqs > 0 && m->max_num_seqs < running)
        running = m->max_num_seqs;
    if (running > 1)
        w->rough.decode_us =
            fmax(1e3 * (q->real.tpot.p50 - w->rough.itl_ms) / (running - 1), 0.01);
    return VT_OK;
}

/* Somewhat more than can run at once, so that some wait. */
static uint32_t find_top(const struct walk *w)
{
    uint32_t most = w->c->max_concurrency, seqs = w->l->engine.max_num_seqs;

    return seqs > 0 && seqs + seqs / 4 + 1 < most ? seqs + seqs / 4 + 1 : most;
}

static int look_at_server(struct walk *w, struct vt_err *err)
{
    struct vt_learn *l = w->l;
    struct vt_meta *m = &l->engine;
    int rc;

    *m = (struct vt_meta){.async_scheduling = -1, .enable_prefix_caching = -1};
    if ((rc = w->site->ask(w->site->user, &l->arena, m, err)))
        return rc;
    l->seqs_told = m->max_num_seqs > 0;
    l->budget_told = m->max_num_batched_tokens > 0;
    tell(w, "%s, vLLM %s: %u KV blocks of %u tokens, %u tokens at most",
         m->model ? m->model : "a model", m->vllm_version ? m->vllm_version : "?",
         (unsigned)m->num_gpu_blocks, (unsigned)m->block_size,
         (unsigned)m->max_model_len);
    if ((rc = look_at_streams(w, err)) || (rc = look_for_budget(w, err)) ||
        (rc = look_at_crowd(w, err)))
        return rc;
    tell(w,
         "one stream: TTFT %.1f ms, a token every %.2f ms; %.1f us a prompt token; "
         "max_num_seqs %u, max_num_batched_tokens %u (0: not known)",
         w->rough.ttft_ms, w->rough.itl_ms, w->rough.token_us,
         (unsigned)m->max_num_seqs, (unsigned)m->max_num_batched_tokens);
    if ((rc = plan_sizes(&w->sizes, &w->rough, m, w->c, find_top(w), err)))
        return rc;
    return find_pace(w, 0, err);
}

/* ---- loads of the plan -------------------------------------------------- */

static bool has_load(const struct vt_learn *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->load[i].name, name) == 0)
            return true;
    return false;
}

static int plan_one(struct walk *w, const struct plan_row *p,
                    const struct vt_latency *model, struct vt_learn_load **out,
                    struct vt_err *err)
{
    char name[64];
    int rc;

    (void)snprintf(name, sizeof(name), p->how == PLAN_CLOSED ? "%s-%u" : "%s", p->name,
                   (unsigned)plan_concurrency(p, &w->sizes));
    *out = NULL;
    if (!plan_has(p, &w->sizes) || has_load(w->l, name))
        return VT_OK;
    rc = new_load(w, name, p->about, p->part, out, err);
    return rc != VT_OK ? rc
                       : predict_size(&(*out)->planned, p, &w->sizes, &w->l->engine,
                                      model, vt_hash2(w->c->seed, w->l->n), err);
}

static int measure_fitted(struct walk *w, struct vt_err *err)
{
    struct vt_latency *model = NULL;
    char text[200];
    int rc;

    plan_rough_model(&w->rough, text, sizeof(text));
    rc = vt_model_open_inline(&model, text, err);
    for (size_t i = 0; i < plan_n_rows && rc == VT_OK; i++) {
        struct vt_learn_load *q = NULL;

        if (plan_rows[i].part != VT_LEARN_FITTED)
            continue;
        rc = plan_one(w, &plan_rows[i], model, &q, err);
        if (rc == VT_OK && q)
            rc = measure(w, q, false, err);
    }
    vt_latency_close(model);
    return rc;
}

/* Predicted first: nothing that is measured here can have found its way into it. */
static int measure_unseen(struct walk *w, struct vt_err *err)
{
    const struct vt_latency *model = w->fitted.model;
    int rc = VT_OK;

    for (size_t i = 0; i < plan_n_rows && rc == VT_OK; i++) {
        struct vt_learn_load *q = NULL;

        if (plan_rows[i].part != VT_LEARN_UNSEEN)
            continue;
        if ((rc = plan_one(w, &plan_rows[i], model, &q, err)) || !q ||
            (rc = predict(&q->planned, &w->l->engine, model, &w->fitted.frontend,
                          &q->predicted, err)) ||
            (rc = measure(w, q, false, err)))
            continue;
        q->error.name = q->name;
        vt_crossval_fill(&q->error, &q->predicted, &q->real);
        tell(w, "%-18s predicted: TTFT %+.1f %%, ITL %+.1f %%, E2E %+.1f %%", "",
             q->error.ttft, q->error.itl, q->error.e2e);
    }
    return rc;
}

/* ---- the fit ------------------------------------------------------------ */

/* What the model says of the loads that it was made from. */
static int look_back(struct walk *w, struct vt_err *err)
{
    struct vt_learn *l = w->l;
    int rc = VT_OK;

    for (size_t i = 0, k = 0; i < l->n && rc == VT_OK; i++) {
        struct vt_learn_load *q = &l->load[i];

        if (q->part != VT_LEARN_FITTED)
            continue;
        q->error = l->fit.load[k].in;
        q->error.name = q->name;
        q->odd = l->fit.load[k++].odd;
        rc = predict(&q->planned, &l->engine, w->fitted.model, &w->fitted.frontend,
                     &q->predicted, err);
    }
    return rc;
}

static int fit_loads(struct walk *w, struct vt_err *err)
{
    const struct vt_fit_shape nothing = {0};
    const struct vt_match_options o = {.kind = w->c->kind};
    struct vt_learn *l = w->l;
    struct vt_buf b = {0};
    int rc = vt_match_new(&w->match, &nothing, err);

    for (size_t i = 0; i < l->n && rc == VT_OK; i++)
        if (l->load[i].part == VT_LEARN_FITTED)
            rc = vt_match_add(w->match, l->load[i].name, &l->load[i].measured, err);
    if (rc != VT_OK || (rc = vt_match_solve(w->match, &o, &l->fit, err)))
        return rc;
    vt_buf_printf(&b,
                  "{\"name\": \"learned\", \"clock\": \"%s\", \"frontend\": "
                  "{\"kind\": \"none\", \"client_us\": %.1f, \"read_us\": %.1f, "
                  "\"pass_us\": %.1f}, \"model\": ",
                  vt_clock_name(l->fit.clock), l->fit.pause_us, l->fit.read_us,
                  l->fit.pass_us);
    vt_buf_str(&b, l->fit.model.data);
    vt_buf_str(&b, "}");
    rc = b.failed ? vt_nomem(err)
                  : vt_profile_parse(&w->fitted, "learned", b.data, b.len, err);
    vt_buf_free(&b);
    return rc == VT_OK ? look_back(w, err) : rc;
}

/* The first reason comes first: of a server that changes nothing better can be learned.
 */
static void refuse(struct vt_learn *l, const char *why)
{
    double change = vt_learn_speed_change(l);
    char first[160] = "";

    if (change > VT_LEARN_STEADY)
        (void)snprintf(first, sizeof(first),
                       "the server's speed changed while it learned: one stream had a "
                       "token every %.3g to %.3g ms, %.0f %% apart; ",
                       l->fastest_ms, l->slowest_ms, change);
    (void)snprintf(l->refusal, sizeof(l->refusal), "%s%s", first, why);
}

static void judge_errors(struct vt_learn *l, double tolerance)
{
    char why[200];

    (void)snprintf(why, sizeof(why),
                   "what it predicts of loads that it has not seen is off by %.1f %% "
                   "(E2E), %.1f %% (TTFT), %.1f %% (ITL); %g %% would do",
                   l->median.e2e, l->median.ttft, l->median.itl, tolerance);
    if (l->median.e2e > tolerance || l->median.ttft > tolerance ||
        l->median.itl > tolerance)
        refuse(l, why);
    else if (l->fit.refusal[0])
        refuse(l, l->fit.refusal);
}

static void judge(struct vt_learn *l, double tolerance)
{
    struct vt_crossval_row row[16], mean;
    size_t n = 0;

    for (size_t i = 0; i < l->n && n < VT_COUNT(row); i++)
        if (l->load[i].part == VT_LEARN_UNSEEN)
            row[n++] = l->load[i].error;
    vt_crossval_sum(row, n, &l->median, &mean);
    vt_crossval_expect(row, n, &l->expected);
    l->worst = (struct vt_crossval_row){.name = "largest"};
    for (size_t i = 0; i < n; i++) {
        l->worst.e2e = fmax(l->worst.e2e, fabs(row[i].e2e));
        l->worst.ttft = fmax(l->worst.ttft, fabs(row[i].ttft));
        l->worst.ttft_p99 = fmax(l->worst.ttft_p99, fabs(row[i].ttft_p99));
        l->worst.itl = fmax(l->worst.itl, fabs(row[i].itl));
        l->worst.itl_p99 = fmax(l->worst.itl_p99, fabs(row[i].itl_p99));
        l->worst.throughput = fmax(l->worst.throughput, fabs(row[i].throughput));
    }
    judge_errors(l, tolerance);
}

/* ---- all of it ---------------------------------------------------------- */

static int make_folders(const struct vt_learn_config *c, struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t i = 0; i < VT_COUNT(folders) && rc == VT_OK; i++) {
        struct vt_buf b = {0};

        vt_buf_printf(&b, "%s%s", c->dir, folders[i]);
        rc = b.failed ? vt_nomem(err) : vt_make_dirs(b.data, NULL, err);
        vt_buf_free(&b);
    }
    return rc;
}

int vt_learn_run(struct vt_learn *l, const struct vt_learn_config *c,
                 const struct vt_learn_site *site, struct vt_err *err)
{
    struct walk w = {.l = l, .c = c, .site = site, .began = site->seconds(site->user)};
    int rc = make_folders(c, err);

    if (rc || (rc = look_at_server(&w, err)) || (rc = measure_fitted(&w, err)) ||
        (rc = check_pace(&w, 1, err)))
        goto out;
    tell(&w, "fitting");
    if ((rc = fit_loads(&w, err)))
        goto out;
    tell(&w,
         "a %s model; errors of what it was made from: TTFT %.1f %%, ITL %.1f %%, "
         "E2E %.1f %%",
         l->fit.kind, l->fit.in.ttft, l->fit.in.itl, l->fit.in.e2e);
    if ((rc = measure_unseen(&w, err)) || (rc = check_pace(&w, 2, err)))
        goto out;
    judge(l, c->tolerance);
out:
    l->seconds = site->seconds(site->user) - w.began;
    vt_profile_close(&w.fitted);
    vt_match_free(w.match);
    return rc;
}

void vt_learn_free(struct vt_learn *l)
{
    for (size_t i = 0; i < l->n; i++) {
        vt_workload_free(&l->load[i].planned);
        vt_workload_free(&l->load[i].measured);
    }
    free(l->load);
    vt_match_result_free(&l->fit);
    vt_arena_free(&l->arena);
    *l = (struct vt_learn){0};
}

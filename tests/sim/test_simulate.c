/* Whole runs under the virtual clock: arrivals, invariants, and how close they come to
 * captures of a real engine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "model/model.h"
#include "report/report.h"
#include "sim/sim.h"

#define DATA VT_TEST_DIR "/sim/data/"

/* ---- a small bench ---------------------------------------------------- */

struct bench {
    struct vt_workload w;
    struct vt_latency *model;
    struct vt_sim_spec spec;
    struct vt_sim_sink sink;
    struct vt_summary sum;
    /* seen by the sink */
    uint32_t requests, steps, bursts, preempted;
    uint64_t tokens;
    vt_ns last_out_ns;
    vt_ns start[4096], end[4096]; /* by index of the request */
    uint32_t in_flight_peak;
};

static int see_request(void *user, const struct vt_served *s, struct vt_err *err)
{
    struct bench *b = user;
    size_t i = (size_t)(s->req - b->w.req);
    vt_ns end = s->arrival_ns + s->ttft_ns;
    uint32_t tokens = s->output_tokens;

    (void)err;
    assert_true(s->queue_ns >= 0 && s->ttft_ns > s->queue_ns);
    assert_true(s->cached_tokens < s->req->prompt_tokens);
    for (uint32_t k = 0; k < s->n_gaps; k++) {
        assert_true(s->gap[k] > 0);
        end += s->gap[k];
        tokens -= s->gap_tokens != NULL ? s->gap_tokens[k] : 1;
    }
    assert_true(tokens >= 1); /* those of the first chunk */
    assert_int_equal(s->output_tokens, s->req->output_tokens);
    b->requests++;
    b->tokens += s->output_tokens;
    b->bursts += s->gap_tokens != NULL;
    b->preempted += s->preemptions;
    if (i < VT_COUNT(b->start)) {
        b->start[i] = s->arrival_ns;
        b->end[i] = end;
    }
    if (s->concurrency > b->in_flight_peak)
        b->in_flight_peak = s->concurrency;
    return VT_OK;
}

static int see_step(void *user, const struct vt_step_line *s, struct vt_err *err)
{
    struct bench *b = user;

    (void)err;
    assert_true(s->sched_ns <= s->sched_end_ns && s->sched_end_ns <= s->out_ns &&
                s->out_ns <= s->done_ns);
    assert_true(s->out_ns > b->last_out_ns);
    assert_true(s->kv_usage > 0 && s->kv_usage <= 1);
    b->last_out_ns = s->out_ns;
    b->steps++;
    return VT_OK;
}

static void bench_run(struct bench *b)
{
    struct vt_err err = {0};

    b->sink = (struct vt_sim_sink){.user = b, .request = see_request, .step = see_step};
    b->spec.workload = &b->w;
    b->spec.model = b->model;
    b->spec.sink = &b->sink;
    if (vt_sim_run(&b->spec, &b->sum, &err) != VT_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(b->requests, b->w.n);
    assert_int_equal(b->sum.requests, b->w.n);
    assert_int_equal(b->sum.output_tokens, b->tokens);
    assert_int_equal(b->sum.steps, b->steps);
    assert_int_equal(b->sum.preemptions, b->preempted);
}

static void bench_model(struct bench *b, const char *model)
{
    struct vt_err err = {0};

    if (vt_model_open_inline(&b->model, model, &err) != VT_OK)
        fail_msg("%s", err.msg);
}

static struct bench *bench_workload(const char *yaml, const char *model)
{
    struct bench *b = calloc(1, sizeof(*b));
    struct vt_err err = {0};

    assert_non_null(b);
    if (vt_workload_generate_text(&b->w, "test", yaml, strlen(yaml), -1, &err) != VT_OK)
        fail_msg("%s", err.msg);
    bench_model(b, model);
    vt_engine_config_init(&b->spec.engine);
    b->spec.arrivals = b->w.arrivals;
    b->spec.concurrency = b->w.concurrency;
    return b;
}

static void bench_free(struct bench *b)
{
    vt_latency_close(b->model);
    vt_workload_free(&b->w);
    free(b);
}

#define LINEAR "linear:base=1000,prefill_token=2,decode=20"

/* ---- arrivals --------------------------------------------------------- */

static const char closed[] = "requests: 200\n"
                             "arrival: {process: closed, concurrency: 7}\n"
                             "prompt: {dist: uniform, min: 10, max: 300}\n"
                             "output: {dist: uniform, min: 1, max: 40}\n";

static void closed_arrivals_keep_the_concurrency(void **state)
{
    struct bench *b = bench_workload(closed, LINEAR);

    (void)state;
    bench_run(b);
    assert_int_equal(b->in_flight_peak, 7);
    for (size_t i = 7; i < b->w.n; i++) { /* each starts when some earlier one ends */
        bool found = false;

        for (size_t k = 0; k < b->w.n && !found; k++)
            found = b->end[k] == b->start[i];
        assert_true(found);
        assert_true(b->start[i] >= b->start[i - 1]); /* in list order */
    }
    bench_free(b);
}

static const char sessions[] = "requests: 60\n"
                               "arrival: {process: poisson, rate: 20}\n"
                               "prompt: {dist: constant, value: 50}\n"
                               "output: {dist: constant, value: 20}\n"
                               "sessions: {turns: 4, starters: 2, think_time_s: 0.25,\n"
                               "  starter: {dist: constant, value: 400}}\n";

/* As vLLM's benchmark with a rate and a concurrency: who has no place waits with the
 * client, whose times begin when it is sent. */
static void clients_hold_back_what_is_above_their_limit(void **state)
{
    static const char open[] = "requests: 300\n"
                               "arrival: {process: poisson, rate: 200}\n"
                               "prompt: {dist: uniform, min: 10, max: 300}\n"
                               "output: {dist: uniform, min: 1, max: 40}\n";
    struct bench *b = bench_workload(open, LINEAR);
    size_t held = 0;

    (void)state;
    b->spec.held_to = 5;
    bench_run(b);
    assert_int_equal(b->in_flight_peak, 5);
    for (size_t i = 0; i < b->w.n; i++) {
        assert_true(b->start[i] >= b->w.req[i].arrival_ns);
        assert_true(i == 0 || b->start[i] >= b->start[i - 1]);
        held += b->start[i] > b->w.req[i].arrival_ns;
    }
    assert_in_range(held, 100, 299);
    bench_free(b);
}

static void a_turn_starts_its_think_time_after_the_one_before_it(void **state)
{
    struct bench *b = bench_workload(sessions, LINEAR);
    size_t later = 0;

    (void)state;
    bench_run(b);
    for (size_t i = 0; i < b->w.n; i++) {
        uint32_t next = b->w.req[i].next_turn;

        if (next == VT_NO_TURN)
            continue;
        assert_int_equal(b->start[next] - b->end[i], 250 * VT_MS);
        later++;
    }
    assert_true(later > 30);
    assert_true(b->sum.prefix_hit_rate > 0.7); /* turns hit what came before */
    bench_free(b);
}

/* Sessions whose first turn came at or before `at` and whose last turn ends after it.
 */
static uint32_t sessions_open(const struct bench *b, vt_ns at)
{
    uint32_t n = 0;

    for (size_t i = 0; i < b->w.n; i++) {
        size_t last = i;

        if (!b->w.req[i].first_turn || b->start[i] > at)
            continue;
        while (b->w.req[last].next_turn != VT_NO_TURN)
            last = b->w.req[last].next_turn;
        n += b->end[last] > at;
    }
    return n;
}

static void sessions_in_flight_are_limited_when_asked(void **state)
{
    struct bench *b = bench_workload(sessions, LINEAR);
    uint32_t peak = 0;

    (void)state;
    b->spec.concurrency = 3;
    bench_run(b);
    for (size_t i = 0; i < b->w.n; i++) {
        uint32_t n = sessions_open(b, b->start[i]);

        peak = n > peak ? n : peak;
    }
    assert_int_equal(peak, 3);
    bench_free(b);
}

/* ---- the engine in a run ---------------------------------------------- */

static const char mixed[] =
    "requests: 300\n"
    "arrival: {process: poisson, rate: 150}\n"
    "prompt: {dist: lognormal, median: 200, sigma: 0.8, min: 4,\n"
    "  max: 900}\n"
    "output: {dist: uniform, min: 1, max: 120}\n"
    "prefix: {groups: 3, share: 0.5,\n"
    "  tokens: {dist: constant, value: 64}}\n";

static struct variant {
    const char *name;
    bool sync, priority, no_cache, eagle;
    uint32_t blocks, spec, threshold, budget;
} variants[] = {
    {.name = "asynchronous scheduling", .blocks = 4000},
    {.name = "synchronous scheduling", .sync = true, .blocks = 4000},
    {.name = "a small cache preempts", .blocks = 120},
    {.name = "a small cache preempts, synchronous", .blocks = 120, .sync = true},
    {.name = "priority with a small cache", .blocks = 120, .priority = true},
    {.name = "no prefix cache", .blocks = 4000, .no_cache = true},
    {.name = "speculation with look-ahead", .blocks = 4000, .spec = 4, .eagle = true},
    {.name = "speculation and preemption", .blocks = 140, .spec = 3},
    {.name = "long-prefill threshold", .blocks = 4000, .threshold = 64},
    {.name = "a small budget", .blocks = 4000, .budget = 48},
};

static void every_request_gets_its_tokens(void **state)
{
    const struct variant *v = *state;
    struct bench *b = bench_workload(mixed, LINEAR);
    struct vt_engine_config *c = &b->spec.engine;

    c->num_gpu_blocks = v->blocks;
    c->max_model_len = 2048;
    c->async_scheduling = !v->sync;
    c->policy = v->priority ? VT_PRIORITY : VT_FCFS;
    c->enable_prefix_caching = !v->no_cache;
    c->num_spec_tokens = v->spec;
    c->use_eagle = v->eagle;
    c->spec_acceptance = 0.7;
    c->long_prefill_token_threshold = v->threshold;
    if (v->budget > 0)
        c->max_num_batched_tokens = v->budget;
    bench_run(b);
    assert_int_equal(b->sum.preemptions > 0, v->blocks < 1000);
    assert_int_equal(b->bursts > 0, v->spec > 0);
    assert_int_equal(b->sum.prefix_hit_rate > 0, !v->no_cache);
    bench_free(b);
}

static void speculation_saves_steps_as_its_acceptance_says(void **state)
{
    double per_step[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct bench *b = bench_workload("requests: 1\n"
                                         "arrival: {process: constant, rate: 1}\n"
                                         "prompt: {dist: constant, value: 16}\n"
                                         "output: {dist: constant, value: 20000}\n",
                                         LINEAR);

        b->spec.engine.num_spec_tokens = i == 0 ? 0 : 3;
        b->spec.engine.spec_acceptance = 0.6;
        bench_run(b);
        per_step[i] = 20000.0 / (double)b->sum.steps;
        bench_free(b);
    }
    assert_true(fabs(per_step[0] - 1.0) < 1e-3);
    /* 1 + a + a^2 + a^3 */
    assert_true(fabs(per_step[1] - 2.176) < 0.03);
}

static void the_same_seed_gives_the_same_numbers(void **state)
{
    struct bench *b[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        b[i] = bench_workload(mixed,
                              "knob:time_to_first_token=50,"
                              "time_to_first_token_std_dev=20,"
                              "inter_token_latency=9,inter_token_latency_std_dev=2");
        b[i]->spec.engine.seed = i == 2 ? 5 : 1;
        bench_run(b[i]);
    }
    assert_memory_equal(b[0]->end, b[1]->end, sizeof(b[0]->end));
    assert_true(memcmp(b[0]->end, b[2]->end, sizeof(b[0]->end)) != 0);
    for (int i = 0; i < 3; i++)
        bench_free(b[i]);
}

/* ---- against a real engine -------------------------------------------- */

static struct capture {
    const char *name;            /* file in tests/sim/data */
    double e2e, ttft, itl, rate; /* largest error of the mean, share */
} captures[] = {
    /* Its first burst met an engine that had never held as many prompts. */
    {"closed-c16", 0.08, 0.12, 0.08, 0.08},
    {"poisson-r18", 0.08, 0.25, 0.08, 0.02},
    {"mt-warm-r4", 0.05, 0.10, 0.05, 0.02},
    {"K-closed-c64", 0.15, 0.20, 0.15, 0.15},
};

static void error_within(const char *what, double got, double want, double share)
{
    if (fabs(got / want - 1) > share)
        fail_msg("%s: predicted %.3f, measured %.3f: off by %+.1f %%", what, got, want,
                 100 * (got / want - 1));
}

static void prediction_is_close_to_the_capture(void **state)
{
    const struct capture *cap = *state;
    struct bench *b = calloc(1, sizeof(*b));
    struct vt_engine_config *c = &b->spec.engine;
    struct vt_timings *t;
    struct vt_summary real = {0};
    struct vt_profile p;
    struct vt_err err = {0};
    char path[512];

    assert_non_null(b);
    (void)snprintf(path, sizeof(path), DATA "%s.trace.jsonl.gz", cap->name);
    if (vt_trace_load(&b->w, path, &err) != VT_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(vt_profile_open(&p, VT_DEFAULT_PROFILE, &err), VT_OK);
    vt_engine_config_init(c);
    assert_int_equal(vt_profile_limits(&p, c, &err), VT_OK);
    c->num_gpu_blocks = b->w.meta.num_gpu_blocks;
    b->spec.arrivals = b->w.arrivals;
    b->spec.concurrency = b->w.concurrency;
    b->model = p.model;
    bench_run(b);
    assert_int_equal(vt_timings_new(&t, &err), VT_OK);
    assert_int_equal(vt_timings_add_measured(t, &b->w, &err), VT_OK);
    assert_int_equal(vt_timings_summarise(t, 0, &real, &err), VT_OK);
    error_within("E2E", b->sum.e2e.mean, real.e2e.mean, cap->e2e);
    error_within("TTFT", b->sum.ttft.mean, real.ttft.mean, cap->ttft);
    error_within("ITL", b->sum.itl.mean, real.itl.mean, cap->itl);
    error_within("req/s", b->sum.req_per_s, real.req_per_s, cap->rate);
    vt_timings_free(t);
    vt_workload_free(&b->w);
    vt_profile_close(&p);
    free(b);
}

/* ---- refusals --------------------------------------------------------- */

static void a_request_that_cannot_fit_is_named_before_anything_runs(void **state)
{
    struct bench *b = bench_workload(mixed, LINEAR);
    struct vt_err err = {0};

    (void)state;
    b->spec.workload = &b->w;
    b->spec.model = b->model;
    b->spec.engine.max_model_len = 64;
    assert_int_equal(vt_sim_run(&b->spec, &b->sum, &err), VT_EINPUT);
    assert_non_null(strstr(err.msg, "test: "));
    assert_non_null(strstr(err.msg, "leaves no room for output in max-model-len 64"));
    bench_free(b);
}

/* ---- clients that hang up ---------------------------------------------- */

struct hung_up {
    uint32_t served, aborted;
    uint32_t tokens; /* of those that were aborted */
};

static int see_end(void *user, const struct vt_served *s, struct vt_err *err)
{
    struct hung_up *h = user;
    bool aborted = strcmp(s->finish_reason, "abort") == 0;

    (void)err;
    h->aborted += aborted;
    h->served += !aborted;
    h->tokens += aborted ? s->output_tokens : 0;
    assert_int_equal(s->ttft_ns < 0, s->output_tokens == 0);
    return VT_OK;
}

/* One token takes 10 ms, and one request runs at a time: of those that come together
 * the first is done after 1 s. */
static void impatient_clients_free_the_engine(void **state)
{
    static const char yaml[] = "requests: 4\narrival: {process: poisson, rate: 1e6}\n"
                               "prompt: {dist: uniform, min: 16, max: 16}\n"
                               "output: {dist: uniform, min: 100, max: 100}\n";
    static const struct {
        vt_ns patience[4];
        uint32_t served, tokens; /* tokens of those that were given up */
        const char *fleet;
        bool blis;
    } row[] = {
        {{VT_NEVER, VT_NEVER, VT_NEVER, VT_NEVER}, 4, 0, NULL, false},
        {{505 * VT_MS, VT_NEVER, VT_NEVER, VT_NEVER}, 3, 50, NULL, false},
        {{VT_NEVER, 900 * VT_MS, 2050 * VT_MS, 2050 * VT_MS}, 2, 5, NULL, false},
        {{505 * VT_MS, VT_NEVER, VT_NEVER, VT_NEVER}, 3, 50, NULL, true},
        {{VT_NEVER, 900 * VT_MS, 2050 * VT_MS, 2050 * VT_MS}, 2, 5, NULL, true},
        {{505 * VT_MS, 505 * VT_MS, VT_NEVER, VT_NEVER}, 2, 100, "round-robin", false},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        struct bench *b = bench_workload(
            yaml, row[i].blis ? "blackbox:alpha=0,0,0,beta=10000,0,0"
                              : "linear:base=10000,prefill_token=0,decode=0");
        struct hung_up h = {0};
        const struct vt_fleet fleet = {.instances = 2, .routing = row[i].fleet};
        struct vt_err err = {0};

        b->sink = (struct vt_sim_sink){.user = &h, .request = see_end};
        b->spec.workload = &b->w;
        b->spec.model = b->model;
        b->spec.sink = &b->sink;
        b->spec.patience = row[i].patience;
        b->spec.engine.max_num_seqs = 1;
        b->spec.engine.async_scheduling = false;
        b->spec.engine.compat = row[i].blis ? VT_COMPAT_BLIS : VT_COMPAT_VLLM;
        b->spec.fleet = row[i].fleet ? &fleet : NULL;
        if (vt_sim_run(&b->spec, &b->sum, &err) != VT_OK)
            fail_msg("row %zu: %s", i, err.msg);
        assert_int_equal(h.served, row[i].served);
        assert_int_equal(h.served + h.aborted, 4);
        if (h.tokens + 2 < row[i].tokens || h.tokens > row[i].tokens + 2)
            fail_msg("row %zu: %u tokens", i, h.tokens);
        assert_int_equal(b->sum.requests, row[i].served);
        bench_free(b);
    }
}

/* Nothing more comes of a session that was given up. */
static void an_impatient_user_does_not_come_back(void **state)
{
    static const char yaml[] = "requests: 12\narrival: {process: poisson, rate: 1}\n"
                               "prompt: {dist: uniform, min: 16, max: 16}\n"
                               "output: {dist: uniform, min: 100, max: 100}\n"
                               "session: {turns: {dist: uniform, min: 4, max: 4}, "
                               "think_s: 1}\n";
    struct bench *b =
        bench_workload(yaml, "linear:base=10000,prefill_token=0,decode=0");
    vt_ns patience[64];
    struct hung_up h = {0};
    struct vt_err err = {0};
    size_t gone = SIZE_MAX;

    (void)state;
    assert_true(b->w.n <= VT_COUNT(patience));
    for (size_t i = 0; i < b->w.n; i++) {
        bool give_up = gone == SIZE_MAX && b->w.req[i].turn == 1;

        patience[i] = give_up ? 500 * VT_MS : VT_NEVER;
        gone = give_up ? i : gone;
    }
    assert_true(gone != SIZE_MAX && b->w.req[gone].next_turn != VT_NO_TURN);
    b->sink = (struct vt_sim_sink){.user = &h, .request = see_end};
    b->spec.workload = &b->w;
    b->spec.model = b->model;
    b->spec.sink = &b->sink;
    b->spec.patience = patience;
    if (vt_sim_run(&b->spec, &b->sum, &err) != VT_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(h.aborted, 1);
    assert_int_equal(h.served, b->w.n - 3); /* it, and two turns after it */
    bench_free(b);
}

int main(void)
{
    enum { V = VT_COUNT(variants), C = VT_COUNT(captures), REST = 6 };
    struct CMUnitTest tests[REST + V + C] = {
        cmocka_unit_test(closed_arrivals_keep_the_concurrency),
        cmocka_unit_test(clients_hold_back_what_is_above_their_limit),
        cmocka_unit_test(a_turn_starts_its_think_time_after_the_one_before_it),
        cmocka_unit_test(sessions_in_flight_are_limited_when_asked),
        cmocka_unit_test(speculation_saves_steps_as_its_acceptance_says),
        cmocka_unit_test(the_same_seed_gives_the_same_numbers),
        cmocka_unit_test(a_request_that_cannot_fit_is_named_before_anything_runs),
        cmocka_unit_test(impatient_clients_free_the_engine),
        cmocka_unit_test(an_impatient_user_does_not_come_back),
    };

    for (size_t i = 0; i < V; i++)
        tests[REST + i] =
            (struct CMUnitTest){.name = variants[i].name,
                                .test_func = every_request_gets_its_tokens,
                                .initial_state = &variants[i]};
    for (size_t i = 0; i < C; i++)
        tests[REST + V + i] =
            (struct CMUnitTest){.name = captures[i].name,
                                .test_func = prediction_is_close_to_the_capture,
                                .initial_state = &captures[i]};
    return cmocka_run_group_tests_name("simulate", tests, NULL, NULL);
}

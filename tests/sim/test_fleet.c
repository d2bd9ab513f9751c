/* Many engines in one virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "model/model.h"
#include "sim/fleet/parts.h"

#define CASES    VT_TEST_DIR "/cases/blis/"
#define LINEAR   "linear:base=1000,prefill_token=2,decode=20"
#define PREFILLS "linear:base=1000,prefill_token=10,decode=20"

enum { MOST = 8, MOST_REQUESTS = 4096 };

/* ---- a small bench ---------------------------------------------------- */

struct seen_request {
    vt_ns arrival, ttft, e2e;
    uint32_t instance, cached, n;
};

struct bench {
    struct vt_workload w;
    struct vt_latency *model;
    struct vt_fleet fleet;
    struct vt_replica_summary replica[MOST];
    struct vt_sim_spec spec;
    struct vt_sim_sink sink;
    struct vt_summary sum;
    struct seen_request req[MOST_REQUESTS];
    uint64_t steps[MOST];
    vt_ns last_out[MOST];
};

static int see_request(void *user, const struct vt_served *s, struct vt_err *err)
{
    struct bench *b = user;
    struct seen_request *q = &b->req[s->req - b->w.req];

    (void)err;
    assert_int_equal(s->output_tokens, s->req->output_tokens);
    assert_true(s->queue_ns >= 0 && s->ttft_ns > s->queue_ns);
    q->n++;
    q->arrival = s->arrival_ns;
    q->ttft = q->e2e = s->ttft_ns;
    for (uint32_t i = 0; i < s->n_gaps; i++)
        q->e2e += s->gap[i];
    q->cached = s->cached_tokens;
    q->instance = s->instance != NULL ? *s->instance : UINT32_MAX;
    return VT_OK;
}

static int see_step(void *user, const struct vt_step_line *s, struct vt_err *err)
{
    struct bench *b = user;
    uint32_t i = s->instance != NULL ? *s->instance : 0;

    (void)err;
    assert_true(s->out_ns > b->last_out[i]);
    b->last_out[i] = s->out_ns;
    b->steps[i]++;
    return VT_OK;
}

static void bench_init(struct bench *b, const char *model)
{
    struct vt_err err = {0};

    if (vt_model_open_inline(&b->model, model, &err) != VT_OK)
        fail_msg("%s", err.msg);
    vt_engine_config_init(&b->spec.engine);
    b->spec.arrivals = b->w.arrivals;
    b->spec.concurrency = b->w.concurrency;
    b->spec.workload = &b->w;
    b->spec.model = b->model;
    b->spec.sink = &b->sink;
    b->spec.replica = b->replica;
    b->sink = (struct vt_sim_sink){.user = b, .request = see_request, .step = see_step};
}

static struct vt_remote link_of(double gbs, double setup_us, uint64_t token_bytes)
{
    return (struct vt_remote){.on = true,
                              .pulls = true,
                              .lease_s = 30,
                              .gbs = gbs,
                              .setup_us = setup_us,
                              .block_bytes = 16 * token_bytes};
}

static struct bench *bench_new(const char *yaml, const char *model)
{
    struct bench *b = calloc(1, sizeof(*b));
    struct vt_err err = {0};

    assert_non_null(b);
    if (vt_workload_generate_text(&b->w, "test", yaml, strlen(yaml), -1, &err) != VT_OK)
        fail_msg("%s", err.msg);
    bench_init(b, model);
    return b;
}

/* Every request ends once, on an engine that says so. */
static void check_books(const struct bench *b)
{
    uint64_t ended[MOST] = {0}, preemptions = 0, steps = 0;

    for (size_t i = 0; i < b->w.n; i++) {
        assert_int_equal(b->req[i].n, 1);
        assert_in_range(b->req[i].instance, 0, MOST - 1);
        ended[b->req[i].instance]++;
    }
    for (uint32_t i = 0; i < MOST; i++) {
        const struct vt_replica_summary *r = &b->replica[i];

        if (i >= b->fleet.prefill_instances)
            assert_int_equal(r->requests, ended[i]);
        assert_int_equal(r->steps, b->steps[i]);
        assert_true(r->busy_s * 1e9 <= (double)(r->to_ns - r->from_ns) + 1);
        preemptions += r->preemptions;
        steps += r->steps;
    }
    assert_int_equal(b->sum.requests, b->w.n);
    assert_int_equal(b->sum.preemptions, preemptions);
    assert_int_equal(b->sum.steps, steps);
}

static int bench_try(struct bench *b, struct vt_err *err)
{
    memset(b->req, 0, sizeof(b->req));
    memset(b->steps, 0, sizeof(b->steps));
    memset(b->last_out, 0, sizeof(b->last_out));
    memset(b->replica, 0, sizeof(b->replica));
    assert_true(b->w.n <= MOST_REQUESTS);
    b->spec.fleet = &b->fleet;
    return vt_sim_run(&b->spec, &b->sum, err);
}

static void bench_run(struct bench *b)
{
    struct vt_err err = {0};

    if (bench_try(b, &err) != VT_OK)
        fail_msg("%s", err.msg);
    check_books(b);
}

static void bench_free(struct bench *b)
{
    vt_latency_close(b->model);
    vt_workload_free(&b->w);
    free(b);
}

/* ---- all policies ------------------------------------------------------ */

static const char shared[] = "requests: 600\n"
                             "arrival: {process: poisson, rate: 60}\n"
                             "prompt: {dist: uniform, min: 20, max: 300}\n"
                             "output: {dist: uniform, min: 1, max: 40}\n"
                             "sessions: {turns: 3, starters: 12, think_time_s: 0.1,\n"
                             "  starter: {dist: constant, value: 1200}}\n";

static const char *const every[] = {
    "round-robin",
    "random",
    "least-loaded",
    "always-busiest",
    "power-of-two",
    "vllm-dp",
    "session-affinity",
    "queue-depth",
    "kv-utilization",
    "prefix-affinity",
    "precise-prefix-cache",
    "running-requests",
    "load-balance",
    "active-requests",
    "load-aware",
    "no-hit-lru",
    "weighted",
    "precise-prefix-cache:2,queue-depth:1,session-affinity:0.5",
};

static void nothing_is_lost_and_runs_repeat(void **state)
{
    (void)state;
    for (size_t i = 0; i < VT_COUNT(every); i++) {
        struct bench *b = bench_new(shared, LINEAR);
        struct seen_request *first = malloc(sizeof(b->req));

        assert_non_null(first);
        b->spec.engine.num_gpu_blocks = 300; /* it preempts */
        b->fleet = (struct vt_fleet){.instances = 5, .routing = every[i], .seed = 3};
        b->fleet.staleness_ns = i % 2 ? 50 * VT_MS : 0;
        bench_run(b);
        memcpy(first, b->req, sizeof(b->req));
        bench_run(b);
        assert_memory_equal(first, b->req, sizeof(b->req));
        free(first);
        bench_free(b);
    }
}

static void one_instance_is_as_none(void **state)
{
    static const enum vt_compat compat[] = {VT_COMPAT_VLLM, VT_COMPAT_BLIS};

    (void)state;
    for (size_t c = 0; c < VT_COUNT(compat); c++) {
        struct bench *b = bench_new(shared, LINEAR);
        struct seen_request *alone = malloc(sizeof(b->req));
        struct vt_summary sum;
        struct vt_err err;

        assert_non_null(alone);
        b->spec.engine.num_gpu_blocks = 600;
        b->spec.engine.compat = compat[c];
        assert_int_equal(vt_sim_run(&b->spec, &sum, &err), VT_OK);
        memcpy(alone, b->req, sizeof(b->req));
        b->fleet =
            (struct vt_fleet){.instances = 1, .routing = "weighted", .staleness_ns = 1};
        bench_run(b);
        for (size_t i = 0; i < b->w.n; i++) {
            assert_int_equal(alone[i].instance, UINT32_MAX);
            alone[i].instance = 0;
        }
        assert_memory_equal(alone, b->req, sizeof(b->req));
        assert_memory_equal(&sum, &b->sum, sizeof(sum));
        free(alone);
        bench_free(b);
    }
}

/* Groups with blocks of two sizes, or one. */
static double hits_of(const char *routing, vt_ns staleness, bool grouped)
{
    struct bench *b = bench_new(shared, LINEAR);
    double rate;

    if (grouped) {
        b->spec.engine.n_kv_groups = 2;
        b->spec.engine.kv_group[0] =
            (struct vt_kv_group){VT_ATTENTION_SLIDING, 16, 128, 1, 1024};
        b->spec.engine.kv_group[1] =
            (struct vt_kv_group){VT_ATTENTION_FULL, 32, 0, 1, 1024};
    }
    b->fleet = (struct vt_fleet){
        .instances = 6, .routing = routing, .staleness_ns = staleness};
    b->spec.engine.num_gpu_blocks = 700; /* a cache holds some starters, not all */
    bench_run(b);
    rate = b->sum.prefix_hit_rate;
    bench_free(b);
    return rate;
}

static double hits(const char *routing, vt_ns staleness)
{
    return hits_of(routing, staleness, false);
}

static void routing_by_prefix_finds_more_of_it(void **state)
{
    double blind = hits("round-robin", 0), precise = hits("weighted", 0);

    (void)state;
    assert_true(precise > blind + 0.1);
    assert_true(hits("prefix-affinity", 0) > blind + 0.1);
    assert_true(hits("session-affinity", 0) > blind);
    /* What it does not yet know of, it can't send requests to. */
    assert_true(hits("weighted", 2 * VT_SEC) < precise);
}

static void prefixes_are_found_in_engines_with_groups(void **state)
{
    double blind = hits_of("round-robin", 0, true);
    double precise = hits_of("weighted", 0, true);

    (void)state;
    assert_true(precise > blind + 0.1);
    assert_true(hits_of("weighted", 1, true) > precise - 0.02);
    assert_true(hits_of("weighted", 2 * VT_SEC, true) < precise);
}

static void a_session_keeps_its_instance(void **state)
{
    struct bench *b = bench_new(shared, LINEAR);

    (void)state;
    b->fleet = (struct vt_fleet){.instances = 5, .routing = "session-affinity"};
    bench_run(b);
    for (size_t i = 0; i < b->w.n; i++)
        if (b->w.req[i].next_turn != VT_NO_TURN)
            assert_int_equal(b->req[i].instance,
                             b->req[b->w.req[i].next_turn].instance);
    bench_free(b);
}

static void a_slower_replica_gets_less(void **state)
{
    struct bench *b = bench_new(shared, LINEAR);
    struct vt_latency *slow;
    struct vt_replica kind[3];

    (void)state;
    assert_int_equal(vt_model_open_inline(
                         &slow, "linear:base=20000,prefill_token=20,decode=200", NULL),
                     VT_OK);
    for (size_t i = 0; i < VT_COUNT(kind); i++)
        kind[i] = (struct vt_replica){b->spec.engine, i == 1 ? slow : b->model};
    b->fleet =
        (struct vt_fleet){.instances = 3, .routing = "least-loaded", .replica = kind};
    bench_run(b);
    assert_true(b->replica[1].requests < b->replica[0].requests / 2);
    assert_true(b->replica[1].requests < b->replica[2].requests / 2);
    vt_latency_close(slow);
    bench_free(b);
}

/* ---- ranks in lockstep --------------------------------------------------- */

static const char steady[] = "requests: 300\n"
                             "arrival: {process: poisson, rate: 80}\n"
                             "prompt: {dist: uniform, min: 20, max: 900}\n"
                             "output: {dist: uniform, min: 1, max: 60}\n";

static struct vt_ranks_totals run_ranks(struct bench *b, uint32_t instances,
                                        uint32_t ranks)
{
    struct vt_ranks_totals t = {0};

    b->spec.lockstep = &t;
    b->fleet =
        (struct vt_fleet){.instances = instances, .ranks = ranks, .routing = "vllm-dp"};
    bench_run(b);
    return t;
}

static void ranks_in_lockstep_are_as_slow_as_the_slowest(void **state)
{
    struct bench *b = bench_new(steady, PREFILLS);
    double itl[3], ttft[3];
    struct vt_ranks_totals t[3];
    static const uint32_t ranks[] = {1, 2, 4};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(ranks); i++) {
        t[i] = run_ranks(b, 4, ranks[i]);
        itl[i] = b->sum.itl.mean;
        ttft[i] = b->sum.ttft.mean;
    }
    assert_int_equal(t[0].waves + t[0].passes + t[0].dummies, 0);
    for (size_t i = 1; i < VT_COUNT(ranks); i++) {
        assert_true(itl[i] > 1.1 * itl[i - 1]);
        assert_true(ttft[i] > ttft[i - 1]);
        assert_true(t[i].waited_ns > 0 && t[i].waited_ns < t[i].rank_ns);
    }
    /* Every pass is one of each rank: a step of its own, or a dummy. */
    assert_true(t[2].dummies > 0);
    assert_int_equal(4 * t[2].passes, b->sum.steps + t[2].dummies);
    bench_free(b);
}

/* The last steps of a run may be in flight when its last token is out. */
static void deployments_do_not_wait_for_each_other(void **state)
{
    struct bench *b = bench_new(steady, PREFILLS);
    struct vt_ranks_totals t = run_ranks(b, 6, 2);

    (void)state;
    assert_in_range(2 * t.passes, b->sum.steps + t.dummies,
                    b->sum.steps + t.dummies + 12);
    assert_true(t.waves > 3); /* each of the three has its own */
    bench_free(b);
}

static struct lockstep_row {
    const char *name;
    uint32_t vllm, drafts, prefill_instances;
    bool async;
    uint32_t cpu_blocks;
} lockstep_rows[] = {
    {"lockstep: nothing is lost and runs repeat with 0.26", 26, 0, 0, true},
    {"lockstep: and with 0.32", 32, 0, 0, true},
    {"lockstep: and one step at a time", 32, 0, 0, false},
    {"lockstep: and with drafts", 32, 3, 0, true},
    {"lockstep: and with prefill apart", 32, 0, 2, true},
    {"lockstep: and with blocks in the host's memory", 26, 0, 0, true, 2000},
    {"lockstep: and these one step at a time", 32, 0, 0, false, 2000},
};

static void runs_in_lockstep_repeat(void **state)
{
    const struct lockstep_row *row = *state;
    struct bench *b = bench_new(shared, LINEAR);
    struct seen_request *first = malloc(sizeof(b->req));
    struct vt_ranks_totals t, again;

    assert_non_null(first);
    b->spec.engine.num_gpu_blocks = 300; /* it preempts */
    b->spec.engine.vllm = row->vllm;
    b->spec.engine.async_scheduling = row->async;
    b->spec.engine.num_spec_tokens = row->drafts;
    b->spec.engine.spec_acceptance = 0.7;
    b->fleet = (struct vt_fleet){.instances = 4,
                                 .ranks = 2,
                                 .routing = "vllm-dp",
                                 .prefill_instances = row->prefill_instances};
    if (row->prefill_instances > 0)
        b->spec.engine.remote = link_of(10, 0, 1000);
    b->spec.engine.offload = (struct vt_offload){.num_cpu_blocks = row->cpu_blocks,
                                                 .load_gbs = 10,
                                                 .store_gbs = 10,
                                                 .block_bytes = 100000};
    b->spec.lockstep = &t;
    bench_run(b);
    memcpy(first, b->req, sizeof(b->req));
    b->spec.lockstep = &again;
    bench_run(b);
    assert_memory_equal(first, b->req, sizeof(b->req));
    assert_memory_equal(&t, &again, sizeof(t));
    assert_true(t.dummies > 0);
    assert_int_equal(b->sum.offload.loads > 0, row->cpu_blocks > 0);
    free(first);
    bench_free(b);
}

static void held_back_prefills_let_decodes_go_on(void **state)
{
    struct bench *b = bench_new(steady, PREFILLS);
    double at_once;

    (void)state;
    (void)run_ranks(b, 4, 4);
    at_once = b->sum.itl.mean;
    b->spec.engine.prefill_schedule_interval = 8;
    (void)run_ranks(b, 4, 4);
    assert_true(b->sum.itl.mean < 0.95 * at_once);
    bench_free(b);
}

/* ---- BLIS's clusters ---------------------------------------------------- */

/* Round robin in arrival order makes independent engines of a cluster: instance k must
 * do to the microsecond what one engine does with every fourth request. Single runs
 * agree with BLIS's own (test_blis.c). */
static void round_robin_splits_a_blis_run(void **state)
{
    static const char *const cases[] = {"c1-blackbox-steady",
                                        "c2-blackbox-burst-chunked"};
    enum { INSTANCES = 4 };

    (void)state;
    for (size_t c = 0; c < VT_COUNT(cases); c++) {
        struct bench *b = calloc(1, sizeof(*b)), *one = calloc(1, sizeof(*one));
        struct vt_err err = {0};
        double longest = 0;
        char path[512];

        assert_true(b != NULL && one != NULL);
        (void)snprintf(path, sizeof(path), CASES "%s/requests.csv", cases[c]);
        assert_int_equal(vt_requests_load(&b->w, path, &err), VT_OK);
        bench_init(b, "blackbox:alpha=1000,1,500,beta=5000,10,20");
        b->spec.engine.compat = VT_COMPAT_BLIS;
        b->spec.engine.num_gpu_blocks = 10000;
        b->spec.engine.max_num_seqs = c == 0 ? 256 : 4;
        b->spec.engine.max_num_batched_tokens = 2048;
        b->spec.engine.max_model_len = 8192;
        b->fleet = (struct vt_fleet){.instances = INSTANCES};
        bench_run(b);
        for (size_t k = 0; k < INSTANCES; k++) {
            assert_int_equal(vt_requests_load(&one->w, path, &err), VT_OK);
            one->spec = b->spec;
            one->spec.fleet = NULL;
            one->spec.workload = &one->w;
            one->spec.sink = &one->sink;
            one->sink = b->sink;
            one->sink.user = one;
            one->sink.step = NULL;
            for (size_t i = k, n = 0; i < b->w.n; i += INSTANCES, one->w.n = n)
                one->w.req[n++] = b->w.req[i];
            assert_int_equal(vt_sim_run(&one->spec, &one->sum, &err), VT_OK);
            for (size_t i = 0; i < one->w.n; i++) {
                const struct seen_request *q = &b->req[k + INSTANCES * i];

                assert_int_equal(q->instance, k);
                assert_int_equal(q->ttft, one->req[i].ttft);
                assert_int_equal(q->e2e, one->req[i].e2e);
            }
            longest = fmax(longest, one->sum.duration_s);
            vt_workload_free(&one->w);
        }
        assert_true(b->sum.duration_s == longest);
        bench_free(b);
        free(one);
    }
}

/* ---- prefill and decode apart ------------------------------------------- */

/* One request: 1000 prompt tokens cost 1000 + 2 * 1000 us, a decode 1000 + 20 us, and
 * computing the last prompt token again 1000 + 2 us. */
static const char single[] = "requests: 1\n"
                             "arrival: {process: constant, rate: 1}\n"
                             "prompt: {dist: constant, value: 1000}\n"
                             "output: {dist: constant, value: 5}\n";

static void times_of_a_transfer_add_up(void **state)
{
    struct bench *b = bench_new(single, LINEAR);

    (void)state;
    b->spec.engine.async_scheduling = false;
    b->fleet = (struct vt_fleet){.instances = 2, .prefill_instances = 1};
    b->spec.engine.remote = link_of(25, 50, 147456);
    bench_run(b);
    /* 63 blocks of 16 tokens: 1008 * 147456 B / 25 GB/s = 5945.42592 us */
    assert_int_equal(b->req[0].ttft, (3000 + 50 + 1002) * VT_US + 5945426);
    assert_int_equal(b->req[0].e2e, b->req[0].ttft + 4 * 1020 * VT_US);
    assert_int_equal(b->req[0].instance, 1);
    assert_int_equal(b->replica[0].requests, 1);
    assert_int_equal(b->replica[0].steps, 1);
    assert_int_equal(b->replica[1].steps, 5);
    bench_free(b);
}

static void decodes_are_not_held_up_by_prompts(void **state)
{
    struct bench *b = bench_new(shared, LINEAR);
    double together;

    (void)state;
    b->fleet = (struct vt_fleet){.instances = 4, .routing = "least-loaded"};
    bench_run(b);
    together = b->sum.itl.p99;
    b->fleet.prefill_instances = 2;
    b->spec.engine.remote = link_of(100, 0, 100000);
    bench_run(b);
    assert_true(b->sum.itl.p99 < together);
    assert_int_equal(b->replica[0].requests + b->replica[1].requests, b->w.n);
    assert_int_equal(b->replica[2].requests + b->replica[3].requests, b->w.n);
    bench_free(b);
}

/* Too few blocks to decode: requests are preempted and compute their prompts again. */
static void a_preempted_decode_recomputes_its_prompt(void **state)
{
    static const char burst[] = "requests: 12\n"
                                "arrival: {process: constant, rate: 1000}\n"
                                "prompt: {dist: constant, value: 160}\n"
                                "output: {dist: constant, value: 160}\n";
    struct bench *b = bench_new(burst, LINEAR);

    (void)state;
    b->spec.engine.num_gpu_blocks = 100;
    b->fleet = (struct vt_fleet){.instances = 2, .prefill_instances = 1};
    b->spec.engine.remote = link_of(1000, 0, 1);
    bench_run(b);
    assert_true(b->replica[1].preemptions > 0);
    bench_free(b);
}

/* ---- autoscaling --------------------------------------------------------- */

/* 20 s of little, 20 s of much, 40 s of little. */
static const char surge[] =
    "arrival: {process: poisson}\n"
    "stages: [{rate: 5, duration_s: 20}, {rate: 120, duration_s: 20},\n"
    "  {rate: 5, duration_s: 40}]\n"
    "prompt: {dist: constant, value: 400}\n"
    "output: {dist: constant, value: 100}\n";

static void a_surge_brings_engines_and_takes_them_back(void **state)
{
    struct bench *b = bench_new(surge, "linear:base=10000,prefill_token=10,decode=200");
    uint32_t later = 0;

    (void)state;
    b->spec.engine.num_gpu_blocks = 2000;
    b->fleet = (struct vt_fleet){.instances = 1, .routing = "least-loaded"};
    b->fleet.autoscale = (struct vt_autoscale){.least = 1,
                                               .most = 6,
                                               .interval_ns = VT_SEC,
                                               .startup_ns = 3 * VT_SEC,
                                               .up = 0.8,
                                               .down = 0.4,
                                               .down_window_ns = 2 * VT_SEC};
    bench_run(b);
    for (uint32_t i = 1; i < 6; i++) {
        const struct vt_replica_summary *r = &b->replica[i];

        if (r->requests == 0)
            continue;
        later++;
        assert_true(r->from_ns >= 23 * VT_SEC && r->from_ns < 45 * VT_SEC);
        assert_int_equal(r->from_ns % VT_SEC, 0); /* a look and the start-up later */
        assert_true(r->to_ns > r->from_ns && r->to_ns < 75 * VT_SEC);
    }
    assert_true(later >= 1);
    assert_true(b->replica[0].from_ns == 0 && b->replica[0].to_ns > 75 * VT_SEC);
    bench_free(b);
}

static void nothing_starts_before_its_window(void **state)
{
    struct bench *b = bench_new(surge, "linear:base=10000,prefill_token=10,decode=200");

    (void)state;
    b->spec.engine.num_gpu_blocks = 2000;
    b->fleet = (struct vt_fleet){.instances = 1};
    b->fleet.autoscale = (struct vt_autoscale){.least = 1,
                                               .most = 6,
                                               .interval_ns = VT_SEC,
                                               .up = 0.8,
                                               .down = 0.4,
                                               .up_window_ns = 1000 * VT_SEC};
    bench_run(b);
    assert_int_equal(b->replica[0].requests, b->w.n);
    bench_free(b);
}

static const char lone[] = "requests: 30\n"
                           "arrival: {process: closed, concurrency: 1}\n"
                           "prompt: {dist: constant, value: 16}\n"
                           "output: {dist: constant, value: 600}\n";

/* ---- bad fleets ---------------------------------------------------------- */

static void impossible_fleets_are_refused(void **state)
{
    const struct vt_autoscale scale = {
        .least = 2, .most = 4, .interval_ns = 1, .up = 0.8, .down = 0.4};
    const struct {
        struct vt_fleet fleet;
        const char *says;
    } bad[] = {
        {{.instances = 0}, "0 instances"},
        {{.instances = 2, .routing = "nowhere"}, "unknown routing 'nowhere'"},
        {{.instances = 2, .prefill_instances = 2}, "leave none to decode"},
        {{.instances = 2, .prefill_instances = 1}, "need a connector"},
        {{.instances = 1, .autoscale = scale}, "autoscaling keeps 2 to 4"},
        {{.instances = 3, .prefill_instances = 1, .autoscale = scale}, "not modelled"},
        {{.instances = 5, .ranks = 2}, "not whole deployments of 2 ranks"},
        {{.instances = 2, .ranks = 2, .autoscale = scale}, "one by one"},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(bad); i++) {
        struct bench *b = bench_new(single, LINEAR);
        struct vt_err err = {0};

        b->fleet = bad[i].fleet;
        assert_int_equal(bench_try(b, &err), VT_EINPUT);
        if (strstr(err.msg, bad[i].says) == NULL)
            fail_msg("%s", err.msg);
        bench_free(b);
    }
}

static bool at_once(void *user)
{
    ++*(uint32_t *)user;
    return true;
}

static void a_run_can_be_stopped(void **state)
{
    for (uint32_t instances = 0; instances < 3; instances += 2) {
        struct bench *b = bench_new(lone, LINEAR);
        struct vt_err err = {0};
        uint32_t asked = 0;

        (void)state;
        b->fleet.instances = instances;
        b->spec.fleet = instances > 0 ? &b->fleet : NULL;
        b->spec.stopped = at_once;
        b->spec.user = &asked;
        assert_int_equal(vt_sim_run(&b->spec, &b->sum, &err), VT_ECHECK);
        assert_int_equal(asked, 1);
        bench_free(b);
    }
}

/* ---- speculation ----------------------------------------------------------- */

static double tokens_per_step(struct bench *b)
{
    struct vt_err err = {0};

    assert_int_equal(vt_sim_run(&b->spec, &b->sum, &err), VT_OK);
    return (double)b->sum.output_tokens / (double)b->sum.steps;
}

static void acceptance_falls_by_position(void **state)
{
    struct bench *b = bench_new(lone, LINEAR);
    struct vt_engine_config *c = &b->spec.engine;
    double even;

    (void)state;
    b->spec.sink = NULL;
    c->num_spec_tokens = 3;
    c->spec_acceptance = 0.8;
    even = tokens_per_step(b);
    c->n_spec_positions = 3;
    for (uint32_t i = 0; i < 3; i++)
        c->spec_position[i] = 0.8;
    assert_true(tokens_per_step(b) == even);
    c->spec_position[1] = 0.75;
    c->spec_position[2] = 0.5;
    /* 1 + 0.8 + 0.8 * 0.75 + 0.8 * 0.75 * 0.5 = 2.7 a step, but for the ends. */
    assert_true(fabs(tokens_per_step(b) - 2.7) < 0.06);
    c->n_spec_positions = 2; /* the last one holds on: 1 + 0.8 + 0.6 + 0.45 */
    assert_true(fabs(tokens_per_step(b) - 2.85) < 0.06);
    bench_free(b);
}

static void drafts_cost_time_in_every_step(void **state)
{
    struct bench *b = bench_new(lone, LINEAR);
    struct vt_engine_config *c = &b->spec.engine;
    double free_of_charge;

    (void)state;
    c->num_spec_tokens = 3;
    c->spec_acceptance = 0.5;
    c->async_scheduling = false;
    b->fleet = (struct vt_fleet){.instances = 1};
    bench_run(b);
    free_of_charge = b->sum.duration_s;
    c->spec_draft_us = 200;
    bench_run(b);
    assert_true(fabs(b->sum.duration_s - free_of_charge -
                     600e-6 * (double)b->sum.steps) < 1e-6);
    bench_free(b);
}

int main(void)
{
    const struct CMUnitTest plain[] = {
        cmocka_unit_test(nothing_is_lost_and_runs_repeat),
        cmocka_unit_test(one_instance_is_as_none),
        cmocka_unit_test(routing_by_prefix_finds_more_of_it),
        cmocka_unit_test(prefixes_are_found_in_engines_with_groups),
        cmocka_unit_test(a_session_keeps_its_instance),
        cmocka_unit_test(a_slower_replica_gets_less),
        cmocka_unit_test(ranks_in_lockstep_are_as_slow_as_the_slowest),
        cmocka_unit_test(deployments_do_not_wait_for_each_other),
        cmocka_unit_test(held_back_prefills_let_decodes_go_on),
        cmocka_unit_test(round_robin_splits_a_blis_run),
        cmocka_unit_test(times_of_a_transfer_add_up),
        cmocka_unit_test(decodes_are_not_held_up_by_prompts),
        cmocka_unit_test(a_preempted_decode_recomputes_its_prompt),
        cmocka_unit_test(a_surge_brings_engines_and_takes_them_back),
        cmocka_unit_test(nothing_starts_before_its_window),
        cmocka_unit_test(impossible_fleets_are_refused),
        cmocka_unit_test(a_run_can_be_stopped),
        cmocka_unit_test(acceptance_falls_by_position),
        cmocka_unit_test(drafts_cost_time_in_every_step),
    };
    struct CMUnitTest tests[VT_COUNT(plain) + VT_COUNT(lockstep_rows)];
    size_t n = 0;

    for (size_t i = 0; i < VT_COUNT(plain); i++)
        tests[n++] = plain[i];
    for (size_t i = 0; i < VT_COUNT(lockstep_rows); i++)
        tests[n++] = (struct CMUnitTest){.name = lockstep_rows[i].name,
                                         .test_func = runs_in_lockstep_repeat,
                                         .initial_state = &lockstep_rows[i]};
    return cmocka_run_group_tests_name("fleet", tests, NULL, NULL);
}

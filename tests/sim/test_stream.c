/* Streamed workloads: every line and figure of a run as if the workload were whole, and
 * no more requests in hand than are under way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/model.h"
#include "sim/run.h"

static struct vt_err err;

#define SHAPE                                      \
    "prompt: {dist: uniform, min: 16, max: 600}\n" \
    "output: {dist: uniform, min: 1, max: 120}\n"

static const struct scene {
    const char *name, *spec;
    enum vt_arrivals arrivals;
    uint32_t concurrency;
    bool together;
    uint32_t blocks; /* few of them: preemptions */
    enum vt_policy policy;
    enum vt_compat compat;
    const char *routing; /* NULL: one engine */
    uint32_t prefill;
    bool autoscale;
} scenes[] = {
    {.name = "one engine",
     .spec = "requests: 1500\narrival: {process: poisson, rate: 30}\n" SHAPE,
     .blocks = 4000},
    {.name = "preemptions",
     .spec = "requests: 1500\narrival: {process: poisson, rate: 60}\n" SHAPE,
     .blocks = 120},
    {.name = "some wait for long",
     .spec = "requests: 1500\narrival: {process: poisson, rate: 60}\n"
             "priority: {dist: uniform, min: 0, max: 3}\n" SHAPE,
     .blocks = 150,
     .policy = VT_PRIORITY},
    {.name = "prefix groups",
     .spec = "requests: 1000\narrival: {process: gamma, rate: 40, burstiness: 0.3}\n"
             "prefix: {groups: 5, tokens: 200, share: 0.7}\n" SHAPE,
     .blocks = 600},
    {.name = "a closed loop",
     .spec = "requests: 1000\narrival: {process: closed, concurrency: 9}\n" SHAPE,
     .arrivals = VT_ARRIVALS_CLOSED,
     .concurrency = 9,
     .blocks = 4000},
    {.name = "times of its own made a closed loop",
     .spec = "requests: 1000\narrival: {process: poisson, rate: 30}\n" SHAPE,
     .arrivals = VT_ARRIVALS_CLOSED,
     .concurrency = 300,
     .together = true,
     .blocks = 4000},
    {.name = "BLIS's rules",
     .spec = "requests: 1000\narrival: {process: poisson, rate: 60}\n" SHAPE,
     .blocks = 120,
     .compat = VT_COMPAT_BLIS},
    {.name = "a fleet",
     .spec = "requests: 1500\narrival: {process: poisson, rate: 90}\n"
             "prefix: {groups: 9, tokens: 200}\n" SHAPE,
     .blocks = 120,
     .routing = "precise-prefix-cache:2,queue-depth:1"},
    {.name = "sessions",
     .spec = "requests: 1500\narrival: {process: poisson, rate: 20}\n"
             "sessions: {turns: {dist: uniform, min: 1, max: 7}, starters: 3,\n"
             "  starter: 300, think_time_s: {dist: uniform, min: 0, max: 5}}\n" SHAPE,
     .arrivals = VT_ARRIVALS_SESSION,
     .blocks = 4000},
    {.name = "so many sessions at a time",
     .spec = "requests: 1500\narrival: {process: closed, concurrency: 9}\n"
             "sessions: {turns: 40, think_time_s: 0.2}\n"
             "prompt: {dist: uniform, min: 16, max: 40}\noutput: 5\n",
     .arrivals = VT_ARRIVALS_SESSION,
     .concurrency = 9,
     .blocks = 4000},
    {.name = "a fleet that knows its sessions",
     .spec = "requests: 1500\narrival: {process: poisson, rate: 20}\n"
             "sessions: {turns: 5, starters: 3, starter: 100, think_time_s: 1}\n" SHAPE,
     .arrivals = VT_ARRIVALS_SESSION,
     .blocks = 1200,
     .routing = "session-affinity"},
    {.name = "prefill and decode apart",
     .spec = "requests: 1500\narrival: {process: poisson, rate: 60}\n" SHAPE,
     .blocks = 120,
     .routing = "least-loaded",
     .prefill = 1},
    {.name = "engines that come and go",
     .spec = "requests: 1500\narrival: {process: poisson, rate: 60}\n" SHAPE,
     .blocks = 150,
     .routing = "round-robin",
     .autoscale = true},
};

/* ---- whole and streamed ----------------------------------------------- */

struct told {
    struct vt_buf lines;
    size_t preempted;
};

static int tell_request(void *user, const struct vt_served *s, struct vt_err *why)
{
    struct told *t = user;

    (void)why;
    vt_buf_printf(&t->lines, "%zu ", s->index);
    vt_trace_write(&t->lines, s);
    return VT_OK;
}

static int tell_step(void *user, const struct vt_step_line *s, struct vt_err *why)
{
    struct told *t = user;

    (void)why;
    t->preempted += s->n_preempted;
    vt_steps_write(&t->lines, s);
    return VT_OK;
}

static struct vt_summary run_scene(const struct scene *c, const struct vt_workload *w,
                                   struct told *told)
{
    struct vt_sim_sink sink = {
        .user = told, .request = tell_request, .step = tell_step};
    struct vt_fleet fleet = {
        .instances = 3,
        .routing = c->routing,
        .staleness_ns = 5 * VT_MS,
        .prefill_instances = c->prefill,
        .seed = 3,
    };
    struct vt_sim_spec spec = {
        .workload = w,
        .arrivals = c->arrivals,
        .concurrency = c->concurrency,
        .start_together = c->together,
        .sink = &sink,
        .fleet = c->routing ? &fleet : NULL,
    };
    struct vt_summary s = {0};
    struct vt_latency *model;

    if (c->autoscale)
        fleet.autoscale = (struct vt_autoscale){.least = 1,
                                                .most = 4,
                                                .interval_ns = VT_SEC,
                                                .startup_ns = VT_SEC,
                                                .up = 0.5,
                                                .down = 0.2};
    assert_int_equal(vt_model_open_inline(
                         &model, "linear:base=5000,prefill_token=20,decode=30", &err),
                     VT_OK);
    vt_engine_config_init(&spec.engine);
    spec.engine.num_gpu_blocks = c->blocks;
    spec.engine.max_num_seqs = 64;
    spec.engine.policy = c->policy;
    if (c->prefill > 0)
        spec.engine.remote = (struct vt_remote){
            .on = true, .pulls = true, .gbs = 10, .block_bytes = 1600000};
    spec.engine.compat = c->compat;
    spec.engine.async_scheduling = c->compat == VT_COMPAT_VLLM;
    spec.model = model;
    assert_int_equal(vt_sim_run(&spec, &s, &err), VT_OK);
    vt_latency_close(model);
    return s;
}

static void a_streamed_run_tells_the_same(void **state)
{
    const struct scene *c = *state;
    struct vt_input in = {VT_INPUT_SPEC, c->name, c->spec, strlen(c->spec), .seed = 5};
    struct told told[2] = {{{0}, 0}, {{0}, 0}};
    struct vt_summary sum[2];

    for (int streamed = 0; streamed < 2; streamed++) {
        struct vt_workload w;

        assert_int_equal(vt_workload_read(&w, &in, streamed ? 10 : VT_WHOLE, &err),
                         VT_OK);
        assert_int_equal(vt_workload_streamed(&w), streamed);
        sum[streamed] = run_scene(c, &w, &told[streamed]);
        assert_int_equal(sum[streamed].requests, w.n);
        vt_workload_free(&w);
    }
    assert_memory_equal(&sum[0], &sum[1], sizeof(sum[0]));
    assert_int_equal(told[0].lines.len, told[1].lines.len);
    assert_memory_equal(told[0].lines.data, told[1].lines.data, told[0].lines.len);
    if (c->blocks <= 150 && c->compat == VT_COMPAT_VLLM && !c->autoscale)
        assert_true(told[0].preempted > 0);
    vt_buf_free(&told[0].lines);
    vt_buf_free(&told[1].lines);
}

/* ---- what is in hand -------------------------------------------------- */

static const char many[] =
    "requests: 50000\narrival: {process: poisson, rate: 30}\n" SHAPE;

static void what_is_over_is_not_in_hand(void **state)
{
    enum { IN_FLIGHT = 40 };
    struct vt_input in = {VT_INPUT_SPEC, "many", many, sizeof(many) - 1, .seed = 5};
    struct vt_workload w;
    struct window x;

    (void)state;
    assert_int_equal(vt_workload_read(&w, &in, 10, &err), VT_OK);
    assert_int_equal(window_open(&x, &w, &err), VT_OK);
    for (size_t i = 0; i < w.n; i++) {
        assert_int_equal(window_reach(&x, i, &err), VT_OK);
        assert_true(window_work(&x, i)->prompt_tokens >= 16);
        if (i > IN_FLIGHT)
            window_let_go(&x, i - IN_FLIGHT);
    }
    assert_int_equal(x.n_read, w.n);
    /* The first one is not over, and its piece with it; the places between are empty.
     */
    assert_string_equal(window_work(&x, 0)->id, "request-0");
    assert_true(window_piece(&x, w.n / 2) == NULL);
    window_close(&x);
    vt_workload_free(&w);
}

static void places_are_reused(void **state)
{
    struct vt_input in = {VT_INPUT_SPEC, "many", many, sizeof(many) - 1, .seed = 5};
    struct vt_workload w;
    struct window x;

    (void)state;
    assert_int_equal(vt_workload_read(&w, &in, 10, &err), VT_OK);
    assert_int_equal(window_open(&x, &w, &err), VT_OK);
    for (size_t i = 0; i < w.n; i++) {
        assert_int_equal(window_reach(&x, i, &err), VT_OK);
        window_let_go(&x, i);
    }
    assert_true(x.mask < 512);
    assert_null(x.spare ? x.spare->next : NULL); /* one piece was all it took */
    window_close(&x);
    vt_workload_free(&w);
}

/* ---- checks ----------------------------------------------------------- */

static void one_that_never_fits_is_named_before_the_run(void **state)
{
    static const char spec[] = "requests: 3000\narrival: {process: poisson, rate: 30}\n"
                               "prompt: {dist: lognormal, median: 100, sigma: 1}\n"
                               "output: 3\n";
    struct vt_input in = {VT_INPUT_SPEC, "long", spec, sizeof(spec) - 1, .seed = 5};
    struct vt_err said[2] = {{0}, {0}};
    struct vt_engine_config c;

    (void)state;
    vt_engine_config_init(&c);
    c.max_model_len = 1000;
    for (int streamed = 0; streamed < 2; streamed++) {
        struct vt_workload w;

        assert_int_equal(vt_workload_read(&w, &in, streamed ? 10 : VT_WHOLE, &err),
                         VT_OK);
        c.max_model_len = 1000;
        assert_int_equal(run_check_requests(&w, &c, &said[streamed]), VT_EINPUT);
        c.max_model_len = 100000;
        assert_int_equal(run_check_requests(&w, &c, &err), VT_OK);
        vt_workload_free(&w);
    }
    assert_string_equal(said[0].msg, said[1].msg);
    assert_non_null(strstr(said[0].msg, "long: request 'request-"));
}

int main(void)
{
    static const struct CMUnitTest plain[] = {
        cmocka_unit_test(what_is_over_is_not_in_hand),
        cmocka_unit_test(places_are_reused),
        cmocka_unit_test(one_that_never_fits_is_named_before_the_run),
    };
    struct CMUnitTest tests[VT_COUNT(scenes) + VT_COUNT(plain)];

    for (size_t i = 0; i < VT_COUNT(scenes); i++)
        tests[i] = (struct CMUnitTest){
            .name = scenes[i].name,
            .test_func = a_streamed_run_tells_the_same,
            .initial_state = (void *)(uintptr_t)&scenes[i],
        };
    memcpy(tests + VT_COUNT(scenes), plain, sizeof(plain));
    return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}

/* The same run by the clocks of the engine, of a recorder and of a client. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/model.h"
#include "report/report.h"
#include "sim/sim.h"

#define DATA VT_TEST_DIR "/sim/clock/"

/* ---- what a frontend adds ---------------------------------------------- */

/* A step takes 10 ms and is handed out after 1 ms. */
static void ten_ms(const struct vt_latency *m, const struct vt_step_shape *s,
                   struct vt_step_cost *cost)
{
    (void)m;
    (void)s;
    cost->gpu_us = 10000;
    cost->done_us = 1000;
}

static const struct vt_latency_ops ten_ms_ops = {.name = "ten", .step = ten_ms};
static const struct vt_latency ten = {.ops = &ten_ms_ops, .turnaround_us = 5000};

static const struct vt_front front = {.name = "test",
                                      .in_us = 2000,
                                      .in_ktoken_us = 1000,
                                      .tap_us = 1500,
                                      .tap_row_us = 100,
                                      .out_us = 3000,
                                      .out_row_us = 200,
                                      .client_us = 400,
                                      .next_us = 50};

static const struct clock_row {
    const char *name;
    enum vt_clock clock;
    const struct vt_front *front;
    double ttft, itl, duration; /* ms, of two requests of one client */
} clock_rows[] = {
    /* 10 + 1; then 10; a pause of 5 */
    {"the engine's", VT_CLOCK_ENGINE, &front, 11, 10, 47},
    {"is meant where nothing is said", VT_CLOCK_UNSTATED, &front, 11, 10, 47},
    /* 10 + 1.6; the client's pause and the frontend's two ways: 3.2 + 0.4 + 3 */
    {"a recorder's", VT_CLOCK_TAP, &front, 11.6, 10, 49.8},
    /* 3 + 10 + 1.6 + 3.2, and a pause of 0.4 */
    {"a client's", VT_CLOCK_CLIENT, &front, 17.8, 10, 56},
    {"without a frontend a client sees the engine's", VT_CLOCK_CLIENT, NULL, 11, 10,
     42},
};

static void clocks_see_what_the_frontend_adds(void **state)
{
    static const char text[] =
        "{requests: 2, arrival: {process: closed, concurrency: 1}, prompt: {dist: "
        "constant, value: 1000}, output: {dist: constant, value: 2}}";

    (void)state;
    for (size_t i = 0; i < VT_COUNT(clock_rows); i++) {
        const struct clock_row *r = &clock_rows[i];
        struct vt_workload w = {0};
        struct vt_sim_spec spec = {.workload = &w,
                                   .model = &ten,
                                   .clock = r->clock,
                                   .frontend = r->front,
                                   .arrivals = VT_ARRIVALS_CLOSED,
                                   .concurrency = 1};
        struct vt_summary s;
        struct vt_err err = {0};

        assert_int_equal(
            vt_workload_generate_text(&w, "test", text, sizeof(text) - 1, -1, &err),
            VT_OK);
        vt_engine_config_init(&spec.engine);
        if (vt_sim_run(&spec, &s, &err) != VT_OK)
            fail_msg("%s: %s", r->name, err.msg);
        if (fabs(s.ttft.mean - r->ttft) > 1e-6 || fabs(s.itl.mean - r->itl) > 1e-6 ||
            fabs(s.duration_s * 1e3 - r->duration) > 1e-6)
            fail_msg("%s: TTFT %g, ITL %g, %g ms in all", r->name, s.ttft.mean,
                     s.itl.mean, s.duration_s * 1e3);
        vt_workload_free(&w);
    }
}

/* ---- requests that come together ---------------------------------------- */

/* A step takes next to nothing: first tokens tell when requests reached the engine. */
static void no_time(const struct vt_latency *m, const struct vt_step_shape *s,
                    struct vt_step_cost *cost)
{
    (void)m;
    (void)s;
    cost->gpu_us = 0.001;
}

static const struct vt_latency_ops no_time_ops = {.name = "none", .step = no_time};
static const struct vt_latency none = {.ops = &no_time_ops};
static const struct vt_front reader = {
    .name = "test", .in_us = 2000, .read_us = 1000, .pass_us = 500};

enum { BURST = 70 };

struct ways {
    double ms[2 * BURST];
};

static int note_way(void *user, const struct vt_served *q, struct vt_err *err)
{
    struct ways *w = user;

    (void)err;
    w->ms[q->index] = (double)q->ttft_ns / 1e6;
    return VT_OK;
}

/* Reading takes 1 ms, passing on 0.5, and another 0.5 of the way are nobody else's. */
static struct burst_row {
    const char *name;
    enum vt_clock clock;
    uint32_t size, n;     /* of a burst; of them all */
    double first, second; /* ms on their way, of the last burst */
    double last;
    bool fleet;
} burst_rows[] = {
    {"a request alone takes its way in", VT_CLOCK_CLIENT, 1, 2, 2, 2, 2, false},
    {"all are read before the first goes on", VT_CLOCK_CLIENT, 10, 20, 11, 11.5, 15.5,
     false},
    {"of new connections eight are read ahead", VT_CLOCK_CLIENT, 10, 10, 9, 10.5, 15.5,
     false},
    {"fewer on new connections are all read", VT_CLOCK_CLIENT, 3, 3, 4, 4.5, 5, false},
    {"no more than 64 are read ahead", VT_CLOCK_CLIENT, 70, 140, 65, 66.5, 105.5,
     false},
    {"a fleet has one frontend", VT_CLOCK_CLIENT, 10, 20, 11, 11.5, 15.5, true},
    {"the engine's clock has no part in it", VT_CLOCK_ENGINE, 10, 20, 0, 0, 0, false},
};

static void requests_that_come_together_wait_for_each_other(void **state)
{
    const struct burst_row *r = *state;
    static const struct vt_fleet pair = {.instances = 2, .routing = "round-robin"};
    struct ways ways;
    const struct vt_sim_sink sink = {.user = &ways, .request = note_way};
    struct vt_workload w = {0};
    struct vt_sim_spec spec = {.workload = &w,
                               .model = &none,
                               .clock = r->clock,
                               .frontend = &reader,
                               .sink = &sink,
                               .fleet = r->fleet ? &pair : NULL};
    struct vt_summary s;
    struct vt_err err = {0};
    const double *last = &ways.ms[r->n - r->size];
    char text[200];

    snprintf(text, sizeof(text),
             "{requests: %u, arrival: {process: burst, size: %u, interval_s: 1}, "
             "prompt: 10, output: 1}",
             (unsigned)r->n, (unsigned)r->size);
    if (vt_workload_generate_text(&w, "test", text, strlen(text), -1, &err) != VT_OK)
        fail_msg("%s", err.msg);
    spec.arrivals = w.arrivals;
    vt_engine_config_init(&spec.engine);
    if (vt_sim_run(&spec, &s, &err) != VT_OK)
        fail_msg("%s", err.msg);
    assert_float_equal(last[0], r->first, 1e-3);
    assert_float_equal(last[r->size > 1 ? 1 : 0], r->second, 1e-3);
    assert_float_equal(last[r->size - 1], r->last, 1e-3);
    vt_workload_free(&w);
}

/* ---- a recorded session ------------------------------------------------- */

/* c16: a closed loop of 16 clients with equal lengths behind vllm-rs: those whose
 * answers come a step before the others' are scheduled first, and more join them with
 * every round, because the loop sleeps while they are on their way. http-c1: one client
 * of vLLM's own HTTP server, 3 ms of whose first tokens are the server's. */
static const struct recorded_row {
    const char *name;
    enum vt_clock clock;
    const char *front; /* NULL: the profile's */
    double tail;       /* how far TTFT's p99 may be off: of ten it is one */
} recorded_rows[] = {
    {DATA "c16.tap.jsonl.gz", VT_CLOCK_TAP, NULL, 0.08},
    {DATA "c16.client.jsonl.gz", VT_CLOCK_CLIENT, NULL, 0.08},
    {DATA "http-c1.client.jsonl.gz", VT_CLOCK_CLIENT, "python", 0.15},
};

static void a_recorded_closed_loop_is_predicted(void **state)
{
    struct vt_profile p;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(vt_profile_open(&p, DATA "profile.json", &err), VT_OK);
    assert_string_equal(p.frontend.name, "vllm-rs");
    for (size_t i = 0; i < VT_COUNT(recorded_rows); i++) {
        const struct recorded_row *r = &recorded_rows[i];
        struct vt_workload w = {0};
        struct vt_sim_spec spec = {.workload = &w,
                                   .model = p.model,
                                   .frontend = r->front ? vt_front_find(r->front)
                                                        : &p.frontend};
        struct vt_summary real, sim;

        assert_int_equal(vt_trace_load(&w, r->name, &err), VT_OK);
        assert_int_equal(w.meta.clock, r->clock);
        assert_int_equal(vt_summary_measured(&real, &w, &err), VT_OK);
        vt_engine_config_init(&spec.engine);
        vt_engine_config_take(&spec.engine, &w.meta);
        spec.engine.seed = 1;
        spec.clock = w.meta.clock;
        spec.arrivals = w.arrivals;
        spec.concurrency = w.concurrency;
        assert_int_equal(vt_sim_run(&spec, &sim, &err), VT_OK);
        if (fabs(sim.ttft.mean / real.ttft.mean - 1) > 0.08 ||
            fabs(sim.ttft.p99 / real.ttft.p99 - 1) > r->tail ||
            fabs(sim.e2e.mean / real.e2e.mean - 1) > 0.06)
            fail_msg("%s: TTFT %.1f not %.1f, p99 %.1f not %.1f, E2E %.1f not %.1f",
                     r->name, sim.ttft.mean, real.ttft.mean, sim.ttft.p99,
                     real.ttft.p99, sim.e2e.mean, real.e2e.mean);
        vt_workload_free(&w);
    }
    vt_profile_close(&p);
}

int main(void)
{
    enum { BURSTS = VT_COUNT(burst_rows), ONES = 2 };
    struct CMUnitTest tests[ONES + BURSTS] = {
        cmocka_unit_test(clocks_see_what_the_frontend_adds),
        cmocka_unit_test(a_recorded_closed_loop_is_predicted),
    };

    for (size_t i = 0; i < BURSTS; i++)
        tests[ONES + i] = (struct CMUnitTest){
            .name = burst_rows[i].name,
            .test_func = requests_that_come_together_wait_for_each_other,
            .initial_state = &burst_rows[i]};
    return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}

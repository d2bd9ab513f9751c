/* The same run by the clocks of the engine, of a recorder and of a client. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_see_what_the_frontend_adds),
        cmocka_unit_test(a_recorded_closed_loop_is_predicted),
    };

    return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}

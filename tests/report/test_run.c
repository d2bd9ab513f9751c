/* Runs in buckets of time, and what pages show of them. */
#include "report/run.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct vt_run *new_run(uint32_t instances)
{
    struct vt_run *r;
    struct vt_err err;

    assert_int_equal(vt_run_new(&r, instances, &err), VT_OK);
    return r;
}

static void add_step(struct vt_run *r, vt_ns from, vt_ns to, uint32_t running,
                     const uint32_t *instance)
{
    const struct vt_step_prefill prefill = {.id = "a", .tokens = 10};
    const struct vt_step_line s = {.sched_ns = from,
                                   .out_ns = to,
                                   .decodes = running,
                                   .prefill = &prefill,
                                   .n_prefill = 1,
                                   .running = running,
                                   .waiting = 1,
                                   .kv_usage = 0.5,
                                   .instance = instance};
    struct vt_err err;

    assert_int_equal(vt_run_step(r, &s, &err), VT_OK);
}

/* However long a run is, integrals and counts are kept, and buckets stay few. */
static void buckets_grow_wider(void **state)
{
    static const vt_ns lengths[] = {VT_MS, 5 * VT_MS, VT_SEC, 100 * VT_SEC};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(lengths); i++) {
        struct vt_run *r = new_run(0);
        double running = 0, tokens = 0;

        for (vt_ns k = 0; k < 1000; k++) /* half of the time it runs */
            add_step(r, VT_SEC + k * lengths[i],
                     VT_SEC + k * lengths[i] + lengths[i] / 2, 4, NULL);
        run_settle(r);
        assert_true(r->all.n <= RUN_BUCKETS);
        for (size_t k = 0; k < r->all.n; k++) {
            running += r->all.bucket[k].running.sum_ns;
            tokens += r->all.bucket[k].batch_tokens;
        }
        assert_true(fabs((running) - (4 * 500.0 * (double)lengths[i])) <= 1);
        assert_true(fabs((tokens) - (14000)) <= 1e-6);
        vt_run_free(r);
    }
}

/* With async scheduling steps overlap: the later one's counts hold. */
static void steps_overlap(void **state)
{
    struct vt_run *r = new_run(0);
    double sum = 0;

    (void)state;
    add_step(r, 0, 20 * VT_MS, 1, NULL);
    add_step(r, 10 * VT_MS, 30 * VT_MS, 3, NULL);
    run_settle(r);
    for (size_t k = 0; k < r->all.n; k++)
        sum += r->all.bucket[k].running.sum_ns;
    assert_true(fabs((sum) - (10e6 * 1 + 20e6 * 3)) <= 1);
    vt_run_free(r);
}

static void engines_have_lanes(void **state)
{
    struct vt_run *r = new_run(2);
    const uint32_t engine[] = {0, 1, 2};
    const struct vt_step_line beyond = {.instance = &engine[2]};
    struct vt_err err;

    (void)state;
    add_step(r, 0, 10 * VT_MS, 1, &engine[0]);
    add_step(r, 5 * VT_MS, 10 * VT_MS, 2, &engine[1]);
    run_settle(r);
    assert_true(fabs((r->lane[0].bucket[0].running.most) - (1)) <= 0);
    assert_true(fabs((r->lane[1].bucket[6].running.most) - (2)) <= 0);
    assert_true(fabs((r->all.bucket[6].running.sum_ns) - (3e6)) <= 1e-3);
    assert_int_equal(vt_run_step(r, &beyond, &err), VT_EINPUT);
    vt_run_free(r);
}

static struct vt_run *served_run(void)
{
    static const vt_ns at[] = {100 * VT_MS, 150 * VT_MS, 200 * VT_MS};
    struct vt_run *r = new_run(0);
    struct vt_err err;

    for (vt_ns i = 0; i < 50; i++) {
        const struct vt_run_tokens t = {i * 20 * VT_MS, at, 3, 3};

        assert_int_equal(vt_run_tokens(r, &t, &err), VT_OK);
    }
    return r;
}

static void requests_are_counted(void **state)
{
    struct vt_run *r = served_run();
    double tokens = 0, in_flight = 0, ended = 0, out[2];
    const double percentile[] = {50, 100};
    uint64_t samples;
    struct vt_err err;

    (void)state;
    for (size_t k = 0; k < r->all.n; k++) {
        tokens += r->all.bucket[k].output_tokens;
        in_flight += r->all.bucket[k].in_flight_ns;
        ended += r->all.bucket[k].ended;
    }
    assert_true(fabs((tokens) - (150)) <= 1e-9);
    assert_true(fabs((ended) - (50)) <= 0);
    assert_true(fabs((in_flight) - (50 * 200e6)) <= 1);
    assert_int_equal(
        vt_timings_quantiles(r->timings, 2, percentile, 2, out, &samples, &err), VT_OK);
    assert_int_equal(samples, 100);
    assert_true(fabs((out[0]) - (50)) <= 0);
    assert_true(fabs((out[1]) - (50)) <= 0);
    vt_run_free(r);
}

static void charts_show_what_is_known(void **state)
{
    struct vt_run *measured = served_run(), *simulated = served_run();
    struct vt_shown_run shown[] = {{"measured", true, measured},
                                   {"simulated", false, simulated}};
    const struct vt_latency_limit limit = {0, 500, "limit"};
    struct vt_buf b = {0};
    struct vt_err err;

    (void)state;
    add_step(simulated, 0, VT_SEC, 3, NULL);
    assert_int_equal(vt_page_latencies(&b, shown, 2, &limit, 1, &err), VT_OK);
    assert_non_null(strstr(b.data, "id=\"cdf-ttft_ms\""));
    assert_non_null(strstr(b.data, "{\"axis\":\"x\",\"at\":500,\"label\":\"limit\"}"));
    assert_non_null(strstr(b.data, "\"name\":\"measured\""));
    vt_buf_clear(&b);
    assert_int_equal(vt_page_timelines(&b, &shown[1], 1, &err), VT_OK);
    assert_non_null(strstr(b.data, "id=\"queues\""));
    assert_null(strstr(b.data, "id=\"preempted\"")); /* there are none */
    vt_buf_clear(&b);
    assert_int_equal(vt_page_timelines(&b, shown, 2, &err), VT_OK);
    assert_null(
        strstr(b.data, "id=\"both-queues\"")); /* nobody knows the measured one's */
    assert_non_null(strstr(b.data, "id=\"both-in-flight\""));
    assert_null(strstr(b.data, "null"));
    vt_buf_free(&b);
    vt_run_free(measured);
    vt_run_free(simulated);
}

/* Nothing happened: there is nothing to show, and nothing breaks. */
static void empty_runs(void **state)
{
    struct vt_run *r = new_run(3);
    const struct vt_shown_run shown = {"simulated", false, r};
    struct vt_buf b = {0};
    struct vt_err err;

    (void)state;
    assert_int_equal(vt_page_latencies(&b, &shown, 1, NULL, 0, &err), VT_OK);
    assert_int_equal(vt_page_timelines(&b, &shown, 1, &err), VT_OK);
    assert_null(strstr(b.data, "nan"));
    vt_buf_free(&b);
    vt_run_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_grow_wider),
        cmocka_unit_test(steps_overlap),
        cmocka_unit_test(engines_have_lanes),
        cmocka_unit_test(requests_are_counted),
        cmocka_unit_test(charts_show_what_is_known),
        cmocka_unit_test(empty_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

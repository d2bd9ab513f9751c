/* What a run amounts to, by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "load/load.h"

static void near(double got, double want)
{
    if (fabs(got - want) > 1e-9 * (1 + fabs(want)))
        fail_msg("%.17g, not %.17g", got, want);
}

/* numpy.percentile([1, 2, 4, 8], [0, 10, 50, 90, 100]) and so on. */
static void percentiles_are_numpys(void **state)
{
    static const double v[] = {1, 2, 4, 8}, one[] = {7};

    (void)state;
    near(vt_quantile(v, 4, 0), 1);
    near(vt_quantile(v, 4, 10), 1.3);
    near(vt_quantile(v, 4, 50), 3);
    near(vt_quantile(v, 4, 90), 6.8);
    near(vt_quantile(v, 4, 100), 8);
    near(vt_quantile(one, 1, 99), 7);
}

static void spreads_are_of_the_whole_population(void **state)
{
    double v[] = {0.004, 0.001, 0.003, 0.002};
    struct vt_load_asks a;
    struct vt_load_dist d;

    (void)state;
    vt_load_asks_init(&a);
    vt_load_dist_of(&d, v, 4, &a);
    near(d.mean, 2.5);
    near(d.median, 2.5);
    near(d.std, sqrt(1.25));
    near(d.p99, 3.97);
    near(d.min, 1);
    near(d.max, 4);
    vt_load_dist_of(&d, v, 0, &a);
    near(d.mean, 0);
}

/* ---- three requests --------------------------------------------------- */

static const vt_ns stamps_a[] = {100 * VT_MS, 110 * VT_MS, 130 * VT_MS};
static const vt_ns stamps_b[] = {1500 * VT_MS};
static const vt_ns stamps_c[] = {300 * VT_MS, 300 * VT_MS, 400 * VT_MS};

static struct vt_load_record records[] = {
    {.planned = 0,
     .begun = 20 * VT_MS,
     .sent = 21 * VT_MS,
     .first = 100 * VT_MS,
     .first_text = 110 * VT_MS,
     .last = 130 * VT_MS,
     .last_event = 140 * VT_MS,
     .ended = 141 * VT_MS,
     .stamp = stamps_a,
     .n_stamps = 3,
     .prompt_tokens = 10,
     .output_tokens = 3,
     .cached_tokens = 4,
     .ok = true},
    {.planned = 1000 * VT_MS,
     .begun = 1000 * VT_MS,
     .sent = 1001 * VT_MS,
     .first = 1500 * VT_MS,
     .first_text = 1500 * VT_MS,
     .last = 1500 * VT_MS,
     .last_event = 1500 * VT_MS,
     .ended = 2000 * VT_MS,
     .stamp = stamps_b,
     .n_stamps = 1,
     .prompt_tokens = 20,
     .output_tokens = 1,
     .ok = true},
    {.planned = 100 * VT_MS,
     .begun = 100 * VT_MS,
     .first = 300 * VT_MS,
     .last = 400 * VT_MS,
     .ended = 500 * VT_MS,
     .stamp = stamps_c,
     .n_stamps = 3,
     .failure = VT_LOAD_CLOSED,
     .error = "connection closed early"},
    {.planned = 1000 * VT_MS, .begun = 1000 * VT_MS, .failure = VT_LOAD_STOPPED},
};
static const struct vt_load_records run = {
    .record = records, .n = 4, .end = 2 * VT_SEC};

static void summarize(struct vt_load_summary *s, struct vt_load_asks *a)
{
    struct vt_err err = {0};

    assert_int_equal(vt_load_summarize(s, &run, a, &err), VT_OK);
}

static void only_what_succeeded_counts(void **state)
{
    struct vt_load_summary s;
    struct vt_load_asks a;

    (void)state;
    vt_load_asks_init(&a);
    summarize(&s, &a);
    assert_int_equal(s.completed, 2);
    assert_int_equal(s.failed, 1);
    assert_int_equal(s.unfinished, 1);
    assert_int_equal(s.failures[VT_LOAD_CLOSED], 1);
    assert_string_equal(s.first_error, "connection closed early");
    assert_int_equal(s.total_input, 30);
    assert_int_equal(s.total_output, 4);
    assert_int_equal(s.cached_tokens, 4);
    near(s.request_throughput, 1);
    near(s.output_throughput, 2);
    near(s.total_throughput, 17);
    assert_int_equal(s.itl.n, 2);
    near(s.itl.mean, 15);
    assert_int_equal(s.tpot.n, 1); /* one token has no gap */
    near(s.tpot.mean, 15);
    near(s.ttft.mean, (80 + 500) / 2.0);
    near(s.e2el.mean, (110 + 500) / 2.0);
}

static void a_chat_ends_with_its_usage(void **state)
{
    struct vt_load_summary s;
    struct vt_load_asks a;

    (void)state;
    vt_load_asks_init(&a);
    a.backend = VT_LOAD_CHAT;
    summarize(&s, &a);
    near(s.e2el.mean, (120 + 500) / 2.0);
    near(s.tpot.mean, 20);
}

static void ours_tell_client_from_server(void **state)
{
    struct vt_load_summary s;
    struct vt_load_asks a;

    (void)state;
    vt_load_asks_init(&a);
    summarize(&s, &a);
    near(s.ttft_planned.max, 500);
    near(s.ttft_planned.min, 100);
    near(s.ttft_sent.min, 79);
    near(s.ttft_text.min, 89);
    near(s.e2el_planned.min, 130);
    near(s.waited.max, 20);
}

/* Seconds count from the first request that succeeded: 0.02 s. */
static void peaks_are_of_whole_seconds(void **state)
{
    struct vt_load_summary s;
    struct vt_load_asks a;

    (void)state;
    vt_load_asks_init(&a);
    summarize(&s, &a);
    near(s.max_output_per_s, 3);
    assert_int_equal(s.max_concurrent, 2);
}

static struct slo {
    const char *name;
    double ttft, tpot, e2el, want;
} slos[] = {
    {"none asked for", -1, -1, -1, 0},
    {"one is fast enough", 80, -1, -1, 0.5},
    {"no gap is no gap too long", -1, 0, -1, 0.5},
    {"both", 500, 15, 500, 1},
    {"all must hold", 500, 15, 499, 0.5},
};

static void goodput(void **state)
{
    const struct slo *w = *state;
    struct vt_load_summary s;
    struct vt_load_asks a;

    vt_load_asks_init(&a);
    a.slo_ttft_ms = w->ttft;
    a.slo_tpot_ms = w->tpot;
    a.slo_e2el_ms = w->e2el;
    summarize(&s, &a);
    near(s.request_goodput, w->want);
}

static void nothing_at_all_is_no_trouble(void **state)
{
    const struct vt_load_records none = {0};
    struct vt_load_summary s;
    struct vt_load_asks a;
    struct vt_err err;

    (void)state;
    vt_load_asks_init(&a);
    a.steady_concurrency = 4;
    assert_int_equal(vt_load_summarize(&s, &none, &a, &err), VT_OK);
    assert_int_equal(s.completed, 0);
    assert_false(s.steady.found);
}

/* ---- the steady state ------------------------------------------------- */

/* Two places: 0-1 and 0-2, then 1-3 and 2-3, then one alone to 5. */
static void steady_is_where_places_are_taken(void **state)
{
    static const vt_ns times[][2] = {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 5}};
    struct vt_load_record record[5] = {0};
    vt_ns stamp[5];
    const struct vt_load_records r = {.record = record, .n = 5, .end = 5 * VT_SEC};
    struct vt_load_summary s;
    struct vt_load_asks a;
    struct vt_err err;

    (void)state;
    for (int i = 0; i < 5; i++) {
        stamp[i] = times[i][1] * VT_SEC - 1;
        record[i] = (struct vt_load_record){.begun = times[i][0] * VT_SEC,
                                            .first = stamp[i],
                                            .last = stamp[i],
                                            .ended = times[i][1] * VT_SEC,
                                            .stamp = &stamp[i],
                                            .n_stamps = 1,
                                            .prompt_tokens = 9,
                                            .output_tokens = 1,
                                            .ok = true};
    }
    vt_load_asks_init(&a);
    a.steady_concurrency = 2;
    assert_int_equal(vt_load_summarize(&s, &r, &a, &err), VT_OK);
    assert_true(s.steady.found);
    assert_int_equal(s.steady.threshold, 2);
    assert_int_equal(s.steady.observed_peak, 2);
    near(s.steady.start_s, 0);
    near(s.steady.end_s, 3);
    assert_int_equal(s.steady.started, 4);
    assert_int_equal(s.steady.completed, 2); /* at 3 it is over */
    assert_int_equal(s.steady.tokens, 4);
    near(s.steady.input_throughput, 4 * 9 / 3.0);
    near(s.steady.output_throughput, 4 / 3.0);
    assert_true(s.steady.is_short);
    a.steady_concurrency = 3;
    assert_int_equal(vt_load_summarize(&s, &r, &a, &err), VT_OK);
    assert_false(s.steady.found);
}

int main(void)
{
    enum { N = VT_COUNT(slos) };
    const struct CMUnitTest fixed[] = {
        cmocka_unit_test(percentiles_are_numpys),
        cmocka_unit_test(spreads_are_of_the_whole_population),
        cmocka_unit_test(only_what_succeeded_counts),
        cmocka_unit_test(a_chat_ends_with_its_usage),
        cmocka_unit_test(ours_tell_client_from_server),
        cmocka_unit_test(peaks_are_of_whole_seconds),
        cmocka_unit_test(nothing_at_all_is_no_trouble),
        cmocka_unit_test(steady_is_where_places_are_taken),
    };
    struct CMUnitTest tests[VT_COUNT(fixed) + N];

    for (size_t i = 0; i < VT_COUNT(fixed); i++)
        tests[i] = fixed[i];
    for (size_t i = 0; i < N; i++)
        tests[VT_COUNT(fixed) + i] = (struct CMUnitTest){
            .name = slos[i].name, .test_func = goodput, .initial_state = &slos[i]};
    return cmocka_run_group_tests_name("summary", tests, NULL, NULL);
}

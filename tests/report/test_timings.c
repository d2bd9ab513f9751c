/* Summaries of collected timings: definitions, empty sets, and quantiles against the
 * plain way of computing them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "report/report.h"

static struct vt_err err;

static struct vt_summary summarise(struct vt_timings *t, vt_ns duration_ns)
{
    struct vt_summary s = {0};

    assert_int_equal(vt_timings_summarise(t, duration_ns, &s, &err), VT_OK);
    vt_timings_free(t);
    return s;
}

static struct vt_timings *timings(void)
{
    struct vt_timings *t;

    assert_int_equal(vt_timings_new(&t, &err), VT_OK);
    return t;
}

static void add(struct vt_timings *t, struct vt_timing one)
{
    assert_int_equal(vt_timings_add(t, &one, &err), VT_OK);
}

static void gap(struct vt_timings *t, vt_ns ns, uint32_t count)
{
    assert_int_equal(vt_timings_gap(t, ns, count, &err), VT_OK);
}

static void ungap(struct vt_timings *t, vt_ns ns)
{
    assert_int_equal(vt_timings_ungap(t, ns, &err), VT_OK);
}

static void nothing_gives_zeros(void **state)
{
    struct vt_summary s = summarise(timings(), 0);

    (void)state;
    assert_int_equal(s.requests, 0);
    assert_true(s.duration_s == 0 && s.req_per_s == 0 && s.output_tok_per_s == 0);
    assert_true(s.ttft.mean == 0 && s.itl.p99 == 0 && s.tpot.p50 == 0 &&
                s.queue.p90 == 0);
}

static void one_request_is_its_own_quantile(void **state)
{
    struct vt_timings *t = timings();
    struct vt_summary s;

    (void)state;
    add(t, (struct vt_timing){.arrival_ns = 5 * VT_SEC,
                              .ttft_ns = 20 * VT_MS,
                              .e2e_ns = 120 * VT_MS,
                              .queue_ns = VT_MS,
                              .prompt_tokens = 30,
                              .cached_tokens = 16,
                              .output_tokens = 11});
    s = summarise(t, 0);
    assert_true(s.ttft.mean == 20 && s.ttft.p50 == 20 && s.ttft.p99 == 20);
    assert_true(s.tpot.mean == 10 && s.queue.p95 == 1 && s.e2e.p90 == 120);
    assert_true(s.duration_s == 0.12); /* first arrival to last token */
    assert_int_equal(s.cached_tokens, 16);
    assert_true(s.output_tok_per_s == 11 / 0.12 && s.total_tok_per_s == 41 / 0.12);
}

static void unknown_parts_are_no_samples(void **state)
{
    struct vt_timings *t = timings();
    struct vt_summary s;

    (void)state;
    add(t,
        (struct vt_timing){
            .e2e_ns = VT_SEC, .ttft_ns = VT_SEC, .queue_ns = -1, .output_tokens = 1});
    s = summarise(t, 4 * VT_SEC);
    assert_int_equal(s.tpot.n, 0); /* one token has no time per further token */
    assert_int_equal(s.queue.n, 0);
    assert_int_equal(s.e2e.n, 1);
    assert_true(s.duration_s == 4 && s.req_per_s == 0.25);
}

static void gaps_count_as_often_as_told(void **state)
{
    struct vt_timings *t = timings();
    struct vt_summary s;

    (void)state;
    gap(t, 10 * VT_MS, 0);
    gap(t, 10 * VT_MS, 98);
    gap(t, 10 * VT_MS, 1);
    gap(t, 1010 * VT_MS, 1);
    s = summarise(t, 0);
    assert_int_equal(s.itl.n, 100);
    assert_true(s.itl.mean == 20 && s.itl.p95 == 10);
    assert_true(s.itl.p99 == 20); /* position 98.01: a hundredth of the last gap */
}

static void gaps_can_be_taken_back(void **state)
{
    struct vt_timings *t = timings(), *all = timings();
    struct vt_summary s;

    (void)state;
    gap(t, 10 * VT_MS, 2);
    gap(t, 30 * VT_MS, 1);
    ungap(t, 10 * VT_MS);
    ungap(t, 99 * VT_MS); /* there is none */
    s = summarise(t, 0);
    assert_int_equal(s.itl.n, 2);
    assert_true(s.itl.mean == 20 && s.itl.p50 == 20);
    gap(all, VT_MS, 1);
    ungap(all, VT_MS);
    s = summarise(all, 0);
    assert_true(s.itl.n == 0 && s.itl.mean == 0 && s.itl.p99 == 0);
}

static void counts_beyond_32_bits_add_up(void **state)
{
    struct vt_timings *t = timings();
    struct vt_summary s;

    (void)state;
    for (int i = 0; i < 3; i++)
        gap(t, 7 * VT_MS, UINT32_MAX);
    s = summarise(t, 0);
    assert_true(s.itl.n == 3 * (uint64_t)UINT32_MAX);
    assert_true(s.itl.mean == 7 && s.itl.p50 == 7 && s.itl.p99 == 7);
}

static void sums_beyond_64_bits_keep_their_mean(void **state)
{
    struct vt_timings *t = timings();

    (void)state;
    for (int i = 0; i < 4; i++)
        add(t, (struct vt_timing){.e2e_ns = INT64_MAX / 2});
    assert_true(summarise(t, 1).e2e.mean == (double)(INT64_MAX / 2) / 1e6);
}

/* Rows of the comparison with sort-and-interpolate. */
static struct spread {
    const char *name;
    size_t cells;
    uint64_t below; /* values are drawn from [0, below) */
    uint32_t max_count;
} spreads[] = {
    {"two samples", 2, 1000, 1},
    {"three samples", 3, 1000, 1},
    {"ten samples", 10, 1000, 1},
    {"eleven samples", 11, 1000, 1},
    {"many equal values", 5000, 7, 9},
    {"nanoseconds", 4000, 4096, 1},
    {"one digit more", 4000, 4097, 3},
    {"milliseconds", 20000, 40000000, 50},
    {"seconds", 20000, UINT64_C(90000000000), 3},
    {"the whole axis", 3000, UINT64_C(1) << 52, 2},
    {"more than are sorted at a time", 700000, 60000, 2},
    {"many, and nearly all different", 700000, UINT64_C(50000000000), 1},
};

static void check_part(double got, const double *sorted, size_t n, double p)
{
    double want = vt_quantile(sorted, n, p), slack = 0.5 + want * 1e-15;

    assert_true(got * 1e6 >= want - slack - 1e-3 && got * 1e6 <= want + slack + 1e-3);
}

static void quantiles_are_exact(void **state)
{
    const struct spread *row = *state;
    struct vt_timings *t = timings();
    double *all = calloc(row->cells * row->max_count, sizeof(*all));
    struct vt_rng rng;
    struct vt_stat itl;
    size_t n = 0;

    assert_non_null(all);
    vt_rng_init(&rng, 1, row->name);
    for (size_t i = 0; i < row->cells; i++) {
        vt_ns v = (vt_ns)vt_rng_below(&rng, row->below);
        uint32_t count = 1 + (uint32_t)vt_rng_below(&rng, row->max_count);

        gap(t, v, count);
        for (uint32_t k = 0; k < count; k++)
            all[n++] = (double)v;
    }
    vt_sort_f64(all, n);
    itl = summarise(t, 0).itl;
    assert_int_equal(itl.n, n);
    check_part(itl.p50, all, n, 50);
    check_part(itl.p90, all, n, 90);
    check_part(itl.p95, all, n, 95);
    check_part(itl.p99, all, n, 99);
    free(all);
}

static void measured_requests_use_the_same_definitions(void **state)
{
    struct vt_work req[2] = {
        {.id = "a", .arrival_ns = 0, .prompt_tokens = 100, .output_tokens = 3},
        {.id = "b", .arrival_ns = VT_SEC, .prompt_tokens = 60, .output_tokens = 5},
    };
    struct vt_measured measured[2] = {
        {.ttft_ns = 30 * VT_MS,
         .e2e_ns = 50 * VT_MS,
         .first_gap = 0,
         .n_gaps = 2,
         .queue_ns = -1},
        {.ttft_ns = 50 * VT_MS,
         .e2e_ns = 70 * VT_MS,
         .first_gap = 2,
         .n_gaps = 1, /* a chunk of four tokens is one gap */
         .cached_tokens = 48,
         .queue_ns = 3 * VT_MS},
    };
    vt_ns gaps[3] = {8 * VT_MS, 12 * VT_MS, 20 * VT_MS};
    struct vt_workload w = {
        .req = req, .n = 2, .measured = measured, .gap = gaps, .n_gaps = 3};
    struct vt_timings *t = timings();
    struct vt_summary s;

    (void)state;
    assert_int_equal(vt_timings_add_measured(t, &w, &err), VT_OK);
    s = summarise(t, 0);
    assert_int_equal(s.requests, 2);
    assert_int_equal(s.itl.n, 3);
    assert_true(s.ttft.mean == 40 && s.e2e.mean == 60 && s.itl.p50 == 12);
    assert_true(s.tpot.mean == 7.5); /* 10 and 5 */
    assert_true(s.duration_s == 1.07);
    assert_int_equal(s.queue.n, 1); /* of the other it is not known */
    assert_true(s.queue.mean == 3);
    assert_int_equal(s.cached_tokens, 48);
}

static void a_trace_without_times_is_refused(void **state)
{
    struct vt_workload w = {.source = "plan.jsonl"};
    struct vt_timings *t = timings();

    (void)state;
    assert_int_equal(vt_timings_add_measured(t, &w, &err), VT_EINPUT);
    assert_non_null(strstr(err.msg, "plan.jsonl"));
    vt_timings_free(t);
}

int main(void)
{
    static const struct CMUnitTest plain[] = {
        cmocka_unit_test(nothing_gives_zeros),
        cmocka_unit_test(one_request_is_its_own_quantile),
        cmocka_unit_test(unknown_parts_are_no_samples),
        cmocka_unit_test(gaps_count_as_often_as_told),
        cmocka_unit_test(gaps_can_be_taken_back),
        cmocka_unit_test(counts_beyond_32_bits_add_up),
        cmocka_unit_test(sums_beyond_64_bits_keep_their_mean),
        cmocka_unit_test(measured_requests_use_the_same_definitions),
        cmocka_unit_test(a_trace_without_times_is_refused),
    };
    struct CMUnitTest tests[VT_COUNT(spreads)];
    int failed;

    for (size_t i = 0; i < VT_COUNT(spreads); i++)
        tests[i] = (struct CMUnitTest){
            .name = spreads[i].name,
            .test_func = quantiles_are_exact,
            .initial_state = &spreads[i],
        };
    failed = cmocka_run_group_tests_name("timings", plain, NULL, NULL);
    return failed + cmocka_run_group_tests_name("quantiles", tests, NULL, NULL);
}

/* Capacity of an engine whose answer is known: one request at a time, 200 ms each, so
 * 5 a second, and not one more. */
#include <math.h>

#include "testing.h"

#define EVEN                                             \
    "requests: 400\n"                                    \
    "arrival: {process: constant, rate: 3}\nprompt: 8\n" \
    "output: 1\n"
#define RANDOM                                          \
    "requests: 400\n"                                   \
    "arrival: {process: poisson, rate: 3}\nprompt: 8\n" \
    "output: 1\n"

#define STEP "linear:base=200000"

static int find(struct toy *t, struct vt_capacity_spec spec, struct vt_capacity *c,
                struct vt_err *err)
{
    spec.trial = t->trial;
    return vt_capacity_find(c, &spec, err);
}

static const struct {
    const char *workload;
    struct vt_capacity_spec spec;
    double low, high; /* of the answer */
    const char *binding;
} rows[] = {
    /* Evenly spaced: nothing waits up to 5, and then ever longer. */
    {EVEN, {.slo = {.ttft_p99 = 400}}, 4.85, 5.05, "TTFT p99"},
    {EVEN, {.slo = {.ttft_p99 = 400}, .tolerance = 0.001}, 4.975, 5.025, "TTFT p99"},
    {EVEN, {.slo = {.ttft_p99 = 400}, .low = 4.5, .high = 5.5}, 4.9, 5.05, "TTFT p99"},
    {EVEN, {.slo = {.ttft_p99 = 400}, .low = 0.5}, 4.85, 5.05, "TTFT p99"},
    {EVEN, {.slo = {.e2e_p99 = 400}, .seeds = 1}, 4.85, 5.05, "E2E p99"},
    /* Without limits it is the rate itself that is no longer borne: 98 %, or, of 400
     * requests and no more, 95 %. */
    {EVEN, {.seeds = 2}, 5, 5.15, "rate"},
    {EVEN, {.seeds = 2, .how = VT_CAPACITY_ONCE}, 5.1, 5.3, "rate"},
    {EVEN,
     {.slo = {.ttft_p99 = 400}, .how = VT_CAPACITY_ROUGH},
     4.65,
     5.05,
     "TTFT p99"},
    /* Nothing is served within 100 ms. */
    {EVEN, {.slo = {.ttft_p99 = 100}}, 0, 0, "TTFT p99"},
    /* Chance arrivals queue below 5: one in a hundred waits for nine others and more
     * at a load of 0.7735 (M/D/1, by Erlang's formula). */
    {RANDOM, {.slo = {.ttft_p99 = 2000}, .seeds = 5}, 3.75, 3.985, "TTFT p99"},
};

static void the_answer_is_what_can_be_served(void **state)
{
    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct vt_capacity_spec spec = rows[i].spec;
        struct vt_capacity c;
        struct vt_err err = {0};
        struct toy t;

        toy_open_paced(&t, rows[i].workload, STEP);
        spec.workers = 1;
        assert_int_equal(find(&t, spec, &c, &err), VT_OK);
        assert_true(c.rate >= rows[i].low && c.rate <= rows[i].high);
        assert_string_equal(c.binding, rows[i].binding);
        assert_true(c.failed > c.rate);
        assert_true(c.trials >= c.n);
        if (rows[i].spec.seeds != 1 && spec.how != VT_CAPACITY_ROUGH)
            assert_true(c.low <= c.rate && c.rate <= c.high);
        assert_true((c.requests == 0) == (spec.how == VT_CAPACITY_ONCE));
        for (size_t k = 1; k < c.n; k++)
            assert_true(c.point[k].rate > c.point[k - 1].rate);
        vt_capacity_free(&c);
        toy_close(&t);
    }
}

/* A request list of n lines, at chance distances; each is served in 200 ms. */
static char *recorded(size_t n)
{
    struct vt_buf b = {0};
    struct vt_rng rng;
    double us = 0;

    vt_rng_init(&rng, 7, "recorded");
    vt_buf_str(&b, "id,arrival_us,input_tokens,output_tokens\n");
    for (size_t i = 0; i < n; i++) {
        us += vt_rng_exp(&rng) * 1e5;
        vt_buf_printf(&b, "r%zu,%.0f,8,1\n", i, us);
    }
    return b.data;
}

static double capacity_of(const char *workload, const char *name)
{
    struct vt_capacity_spec spec = {.slo.ttft_p99 = 2000, .seeds = 3, .workers = 1};
    struct vt_capacity c;
    struct vt_err err = {0};
    char path[80];
    struct toy t;
    double rate;

    toy_open_paced(&t, workload, STEP);
    (void)snprintf(path, sizeof(path), "%s%s", t.path, name);
    assert_int_equal(rename(t.path, path), 0);
    t.trial.workload = path;
    assert_int_equal(find(&t, spec, &c, &err), VT_OK);
    rate = c.rate;
    assert_true(c.span_s > 600); /* whatever the file has */
    vt_capacity_free(&c);
    toy_close(&t);
    unlink(path);
    return rate;
}

/* The same traffic, cut to 60, 300, 1,500 and 6,000 seconds. */
static void the_answer_does_not_depend_on_how_long_the_file_is(void **state)
{
    static const unsigned seconds[] = {60, 300, 1500, 6000};
    double first[2] = {0};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(seconds); i++) {
        char spec[160], *list = recorded(10 * (size_t)seconds[i]);
        double rate[2];

        (void)snprintf(spec, sizeof(spec),
                       "duration_s: %u\narrival: {process: poisson, rate: 10}\n"
                       "prompt: 8\noutput: 1\n",
                       seconds[i]);
        rate[0] = capacity_of(spec, ".yaml");
        rate[1] = capacity_of(list, ".csv");
        free(list);
        for (int k = 0; k < 2; k++) {
            if (i == 0)
                first[k] = rate[k];
            assert_true(fabs(rate[k] / first[k] - 1) <= 0.03);
        }
    }
}

/* 400 requests at 5.15 a second are over before anybody has waited for long. */
static void a_rate_that_is_too_high_is_found_out_after_the_file_is_over(void **state)
{
    static const double rate[] = {4.95, 5.15};
    struct vt_capacity_spec spec = {
        .slo.ttft_p99 = 5000, .rate = rate, .n_rates = 2, .seeds = 1};
    struct vt_capacity c;
    struct vt_err err = {0};
    struct toy t;

    (void)state;
    toy_open_paced(&t, EVEN, STEP);
    spec.how = VT_CAPACITY_ONCE;
    assert_int_equal(find(&t, spec, &c, &err), VT_OK);
    assert_true(c.rate == 5.15 && c.failed == 0);
    vt_capacity_free(&c);
    spec.how = VT_CAPACITY_SURE;
    assert_int_equal(find(&t, spec, &c, &err), VT_OK);
    assert_true(c.rate == 4.95 && c.failed == 5.15);
    assert_string_equal(c.binding, "TTFT p99");
    assert_true(c.point[1].saturated && c.point[1].achieved < 5.05);
    vt_capacity_free(&c);
    toy_close(&t);
}

static void given_rates_are_tried_and_no_others(void **state)
{
    static const double rate[] = {1, 3, 4.95, 6, 15};
    struct vt_capacity_spec spec = {
        .slo.ttft_p99 = 400, .rate = rate, .n_rates = VT_COUNT(rate), .seeds = 2};
    struct vt_capacity c;
    struct vt_err err = {0};
    struct toy t;

    (void)state;
    toy_open_paced(&t, EVEN, STEP);
    assert_int_equal(find(&t, spec, &c, &err), VT_OK);
    assert_int_equal(c.n, VT_COUNT(rate));
    for (size_t i = 0; i < c.n; i++) {
        bool kept = rate[i] <= 5;

        assert_true(c.point[i].rate == rate[i]);
        assert_int_equal(c.point[i].passed, kept ? 2 : 0);
        assert_true(c.point[i].saturated == !kept);
        assert_true((c.point[i].broken == NULL) == kept);
    }
    assert_true(c.rate == 4.95 && c.failed == 6);
    vt_capacity_free(&c);
    toy_close(&t);
}

static void workers_change_nothing(void **state)
{
    static const uint32_t workers[] = {1, 2, 4, 0};
    struct vt_capacity first = {0};
    struct toy t;

    (void)state;
    toy_open_paced(&t, RANDOM, STEP);
    for (size_t i = 0; i < VT_COUNT(workers); i++) {
        struct vt_capacity_spec spec = {
            .slo.ttft_p99 = 2000, .seeds = 4, .workers = workers[i], .tolerance = 0.05};
        struct vt_capacity c;
        struct vt_err err = {0};

        assert_int_equal(find(&t, spec, &c, &err), VT_OK);
        if (i == 0) {
            first = c;
            continue;
        }
        assert_int_equal(c.n, first.n);
        assert_true(c.rate == first.rate && c.failed == first.failed);
        assert_true(c.low == first.low && c.high == first.high);
        for (size_t k = 0; k < c.n; k++) {
            assert_true(c.point[k].rate == first.point[k].rate);
            assert_true(c.point[k].achieved == first.point[k].achieved);
            assert_memory_equal(&c.point[k].mean, &first.point[k].mean,
                                sizeof(c.point[k].mean));
        }
        vt_capacity_free(&c);
    }
    vt_capacity_free(&first);
    toy_close(&t);
}

static void how_far_the_answer_went_comes_back_from_workers(void **state)
{
    static const uint32_t workers[] = {1, 3};
    struct toy t;

    (void)state;
    toy_open_paced(&t, RANDOM, STEP);
    for (size_t i = 0; i < VT_COUNT(workers); i++) {
        struct vt_capacity_spec spec = {
            .slo.ttft_p99 = 2000, .seeds = 2, .workers = workers[i]};
        struct vt_capacity c;
        struct vt_err err = {0};

        assert_int_equal(find(&t, spec, &c, &err), VT_OK);
        assert_int_equal(c.extent.running, 1); /* max_num_seqs */
        assert_true(c.extent.step_tokens > 0);
        for (size_t k = 0; k < c.n; k++)
            assert_int_equal(c.point[k].mean.extent.running, 1);
        vt_capacity_free(&c);
    }
    toy_close(&t);
}

static void seeds_that_differ_widen_the_interval(void **state)
{
    struct vt_capacity even, chance;
    struct vt_err err = {0};
    struct toy t;

    (void)state;
    toy_open_paced(&t, EVEN, STEP);
    assert_int_equal(
        find(&t, (struct vt_capacity_spec){.slo.ttft_p99 = 400}, &even, &err), VT_OK);
    toy_close(&t);
    toy_open_paced(&t, RANDOM, STEP);
    assert_int_equal(
        find(&t, (struct vt_capacity_spec){.slo.ttft_p99 = 2000}, &chance, &err),
        VT_OK);
    toy_close(&t);
    assert_true(even.high - even.low < 0.02 * even.rate);
    assert_true(chance.high - chance.low > 2 * (even.high - even.low));
    vt_capacity_free(&even);
    vt_capacity_free(&chance);
}

/* With one place nobody waits in the engine: what ends it is the rate itself. */
static void a_client_that_keeps_requests_does_not_hide_the_end(void **state)
{
    struct vt_capacity_spec spec = {
        .slo.ttft_p99 = 400, .seeds = 1, .workers = 1, .how = VT_CAPACITY_SURE};
    struct vt_capacity c;
    struct vt_err err = {0};
    struct toy t;

    (void)state;
    toy_open_paced(&t, EVEN, STEP);
    t.trial.engine.max_num_seqs = 8;
    t.trial.concurrency = 1;
    assert_int_equal(find(&t, spec, &c, &err), VT_OK);
    assert_true(c.rate >= 4.9 && c.rate <= 5.15);
    assert_string_equal(c.binding, "rate");
    vt_capacity_free(&c);
    toy_close(&t);
}

/* Five sixths of the requests come at one rate, the rest five times as fast: at a mean
 * of 1.154 these come as fast as they are served. A run of the first ones alone would
 * find 5. */
static void stages_are_judged_whole(void **state)
{
    struct vt_capacity_spec spec = {.slo.ttft_p99 = 400, .seeds = 1, .workers = 1};
    struct vt_capacity c;
    struct vt_err err = {0};
    struct toy t;

    (void)state;
    toy_open_paced(&t,
                   "arrival: {process: constant}\nprompt: 8\noutput: 1\n"
                   "stages: [{rate: 1, requests: 2500}, {rate: 5, requests: 500}]\n",
                   STEP);
    if (find(&t, spec, &c, &err) != VT_OK)
        fail_msg("%s", err.msg);
    assert_true(c.rate >= 1.12 && c.rate <= 1.17);
    assert_string_equal(c.binding, "TTFT p99");
    assert_int_equal(c.requests % 3000, 0);
    vt_capacity_free(&c);
    toy_close(&t);
}

static void stages_that_are_too_long_are_said(void **state)
{
    struct vt_capacity c;
    struct vt_err err = {0};
    struct toy t;

    (void)state;
    toy_open_paced(&t,
                   "arrival: {process: constant}\nprompt: 8\noutput: 400\n"
                   "stages: [{rate: 1, requests: 50000}, {rate: 5, requests: 9000}]\n",
                   STEP);
    assert_int_equal(find(&t, (struct vt_capacity_spec){.low = 1}, &c, &err),
                     VT_EINPUT);
    assert_non_null(strstr(err.msg, "its stages have 59000 requests"));
    toy_close(&t);
}

static void a_failing_trial_is_the_answer(void **state)
{
    struct vt_capacity c;
    struct vt_err err = {0};
    struct toy t;

    (void)state;
    toy_open_paced(&t,
                   "requests: 4\narrival: {process: constant, rate: 1}\nprompt: 5000\n"
                   "output: 1\n",
                   STEP); /* more than max_model_len */
    assert_int_equal(find(&t, (struct vt_capacity_spec){.seeds = 2}, &c, &err),
                     VT_EINPUT);
    assert_true(err.msg[0] != '\0');
    vt_capacity_free(&c);
    toy_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_answer_is_what_can_be_served),
        cmocka_unit_test(the_answer_does_not_depend_on_how_long_the_file_is),
        cmocka_unit_test(a_rate_that_is_too_high_is_found_out_after_the_file_is_over),
        cmocka_unit_test(given_rates_are_tried_and_no_others),
        cmocka_unit_test(workers_change_nothing),
        cmocka_unit_test(how_far_the_answer_went_comes_back_from_workers),
        cmocka_unit_test(seeds_that_differ_widen_the_interval),
        cmocka_unit_test(a_client_that_keeps_requests_does_not_hide_the_end),
        cmocka_unit_test(stages_are_judged_whole),
        cmocka_unit_test(stages_that_are_too_long_are_said),
        cmocka_unit_test(a_failing_trial_is_the_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

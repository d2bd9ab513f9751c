/* When requests are sent. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "load/load.h"

enum { MANY = 200000 };

static vt_ns at[MANY];

static void make(const struct vt_load_arrivals *a, size_t n)
{
    struct vt_err err = {0};

    if (vt_load_arrivals_make(a, at, n, &err) != VT_OK)
        fail_msg("%s", err.msg);
    for (size_t i = 1; i < n; i++)
        assert_true(at[i] >= at[i - 1]);
}

static void last_send_is_exactly_n_over_rate(void **state)
{
    static const double rates[] = {0.5, 3, 8, 1000};
    static const double shapes[] = {0.2, 1, 5};

    (void)state;
    for (size_t r = 0; r < VT_COUNT(rates); r++)
        for (size_t s = 0; s < VT_COUNT(shapes); s++) {
            struct vt_load_arrivals a = {
                .rate = rates[r], .burstiness = shapes[s], .seed = r + s};

            make(&a, 40);
            assert_int_equal(at[39], (vt_ns)llround(40 / rates[r] * 1e9));
            assert_true(at[0] > 0);
        }
}

static void everything_at_once_without_a_rate(void **state)
{
    struct vt_load_arrivals a = {.rate = INFINITY, .burstiness = 1};

    (void)state;
    make(&a, 100);
    assert_int_equal(at[99], 0);
}

static void even_without_bursts(void **state)
{
    struct vt_load_arrivals a = {.rate = 4, .burstiness = INFINITY};

    (void)state;
    make(&a, 8);
    for (int i = 0; i < 8; i++)
        assert_int_equal(at[i], (i + 1) * 250 * VT_MS);
}

/* Gaps are gamma(k) with mean 1 / rate, and so with variance 1 / (k rate^2). */
static void gaps_have_the_gamma_moments(void **state)
{
    static const double shapes[] = {0.5, 1, 4};

    (void)state;
    for (size_t s = 0; s < VT_COUNT(shapes); s++) {
        struct vt_load_arrivals a = {.rate = 10, .burstiness = shapes[s], .seed = 3};
        double sum = 0, squares = 0, mean, variance;

        make(&a, MANY);
        for (size_t i = 0; i < MANY; i++) {
            double gap = (double)(at[i] - (i > 0 ? at[i - 1] : 0)) / 1e9;

            sum += gap;
            squares += gap * gap;
        }
        mean = sum / MANY;
        variance = squares / MANY - mean * mean;
        assert_true(fabs(mean - 0.1) < 1e-9);
        assert_true(fabs(variance * shapes[s] * 100 - 1) < 0.05);
    }
}

static void a_seed_gives_the_same_times_again(void **state)
{
    struct vt_load_arrivals a = {.rate = 10, .burstiness = 1, .seed = 7};
    vt_ns before;

    (void)state;
    make(&a, 50);
    before = at[20];
    make(&a, 50);
    assert_int_equal(at[20], before);
    a.seed = 8;
    make(&a, 50);
    assert_int_not_equal(at[20], before);
}

static void ramps_go_from_start_to_end(void **state)
{
    struct vt_load_arrivals linear = {.burstiness = INFINITY,
                                      .ramp = VT_RAMP_LINEAR,
                                      .ramp_start = 2,
                                      .ramp_end = 10};
    struct vt_load_arrivals power = {.burstiness = INFINITY,
                                     .ramp = VT_RAMP_EXPONENTIAL,
                                     .ramp_start = 1,
                                     .ramp_end = 16};

    (void)state;
    assert_true(vt_load_rate_at(&linear, 0, 5) == 2);
    assert_true(vt_load_rate_at(&linear, 2, 5) == 6);
    assert_true(vt_load_rate_at(&linear, 4, 5) == 10);
    assert_true(fabs(vt_load_rate_at(&power, 2, 5) - 4) < 1e-12);
    make(&linear, 5);
    assert_int_equal(at[0], 500 * VT_MS);
    assert_int_equal(at[4] - at[3], 100 * VT_MS);
    make(&power, 5);
    assert_int_equal(at[0], VT_SEC);
    assert_int_equal(at[4] - at[3], VT_SEC / 16);
}

static void a_ramp_from_zero_begins(void **state)
{
    struct vt_load_arrivals a = {
        .burstiness = INFINITY, .ramp = VT_RAMP_LINEAR, .ramp_start = 0, .ramp_end = 4};

    (void)state;
    make(&a, 5);
    assert_int_equal(at[0], VT_SEC);
}

static void nonsense_is_refused(void **state)
{
    static const struct vt_load_arrivals bad[] = {
        {.rate = 0, .burstiness = 1},
        {.rate = -1, .burstiness = 1},
        {.rate = 1, .burstiness = 0},
        {.rate = NAN, .burstiness = 1},
        {.burstiness = 1, .ramp = VT_RAMP_EXPONENTIAL, .ramp_start = 0, .ramp_end = 1},
        {.burstiness = 1, .ramp = VT_RAMP_LINEAR, .ramp_start = 1, .ramp_end = 0},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(bad); i++) {
        struct vt_err err = {0};

        assert_int_equal(vt_load_arrivals_make(&bad[i], at, 3, &err), VT_EINPUT);
        assert_true(err.msg[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(last_send_is_exactly_n_over_rate),
        cmocka_unit_test(everything_at_once_without_a_rate),
        cmocka_unit_test(even_without_bursts),
        cmocka_unit_test(gaps_have_the_gamma_moments),
        cmocka_unit_test(a_seed_gives_the_same_times_again),
        cmocka_unit_test(ramps_go_from_start_to_end),
        cmocka_unit_test(a_ramp_from_zero_begins),
        cmocka_unit_test(nonsense_is_refused),
    };

    return cmocka_run_group_tests_name("arrival", tests, NULL, NULL);
}

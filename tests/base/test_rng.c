#include "testing.h"

#include <math.h>

/* The generator's published test vector, and SplitMix64's first output for seed 0. */
static void known_answers(void **state)
{
    static const uint64_t want[] = {41943041, 58720359, UINT64_C(3588806011781223),
                                    UINT64_C(3591011842654386),
                                    UINT64_C(9228616714210784205)};
    struct vt_rng r = {{1, 2, 3, 4}};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(want); i++)
        assert_true(vt_rng_u64(&r) == want[i]);
    assert_true(vt_mix64(UINT64_C(0x9e3779b97f4a7c15)) == UINT64_C(0xe220a8397b1dcdaf));
    assert_true(vt_mix64(0) == 0);
}

/* Pinned: a change here changes every simulation that draws. */
static void streams_are_pinned(void **state)
{
    static const struct {
        uint64_t seed;
        const char *stream;
        uint64_t want[2];
    } rows[] = {
        {1, "arrivals", {UINT64_C(0x056c3e69d3bcf066), UINT64_C(0xb3d6ad2bf6fce853)}},
        {2, "arrivals", {UINT64_C(0x798c8cbb7a7ffc0b), UINT64_C(0xb495538faf0b30ed)}},
        {1, "lengths", {UINT64_C(0xe07a23eda80b255c), UINT64_C(0x350079af863a62ad)}},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct vt_rng r;

        vt_rng_init(&r, rows[i].seed, rows[i].stream);
        assert_true(vt_rng_u64(&r) == rows[i].want[0]);
        assert_true(vt_rng_u64(&r) == rows[i].want[1]);
    }
}

static void hashes_are_pinned(void **state)
{
    (void)state;
    assert_true(vt_hash_bytes("", 0, 0) == UINT64_C(0xa706dd2f4d197e6f));
    assert_true(vt_hash_bytes("a", 1, 0) == UINT64_C(0x38aa22b6a27ffd45));
    assert_true(vt_hash_bytes("abcdefgh", 8, 0) == UINT64_C(0xaa643c51ea1578be));
    assert_true(vt_hash_bytes("abcdefghi", 9, 7) == UINT64_C(0xc0ceb099f9c5954b));
    assert_true(vt_hash_bytes("a\0", 2, 0) != vt_hash_bytes("a", 1, 0));
}

static void addressed_draws_are_pinned(void **state)
{
    (void)state;
    assert_true(vt_draw_f64(0, 0, 0) == 0x1.c4415072f63b9p-1);
    assert_true(vt_draw_f64(1, 2, 3) == 0x1.f133c32ec4aa0p-2);
    assert_true(vt_draw_f64(1, 3, 2) == 0x1.15d9df2855da4p-2);
    assert_true(vt_draw_f64(UINT64_MAX, 5, 9) == 0x1.bbe5bc1f10acdp-1);
}

enum { N = 200000 };
typedef double (*draw_fn)(struct vt_rng *r, uint64_t i);

static double unit(struct vt_rng *r, uint64_t i)
{
    (void)i;
    return vt_rng_f64(r);
}

static double normal(struct vt_rng *r, uint64_t i)
{
    (void)i;
    return vt_rng_normal(r);
}

static double exponential(struct vt_rng *r, uint64_t i)
{
    (void)i;
    return vt_rng_exp(r);
}

static double gamma_quarter(struct vt_rng *r, uint64_t i)
{
    (void)i;
    return vt_rng_gamma(r, 0.25);
}

static double gamma_four(struct vt_rng *r, uint64_t i)
{
    (void)i;
    return vt_rng_gamma(r, 4);
}

static double addressed_unit(struct vt_rng *r, uint64_t i)
{
    (void)r;
    return vt_draw_f64(7, i / 10, i % 10);
}

static double addressed_normal(struct vt_rng *r, uint64_t i)
{
    (void)r;
    return vt_draw_normal(7, i / 10, i % 10);
}

static double below_seven(struct vt_rng *r, uint64_t i)
{
    (void)i;
    return (double)vt_rng_below(r, 7);
}

static struct row {
    const char *name;
    draw_fn draw;
    double mean, variance, fourth; /* fourth: central moment */
} rows[] = {
    {"uniform has the right moments", unit, 0.5, 1.0 / 12, 1.0 / 80},
    {"normal has the right moments", normal, 0, 1, 3},
    {"exponential has the right moments", exponential, 1, 1, 9},
    {"gamma(0.25) has the right moments", gamma_quarter, 0.25, 0.25, 1.6875},
    {"gamma(4) has the right moments", gamma_four, 4, 4, 72},
    {"below(7) has the right moments", below_seven, 3, 4, 28},
    {"addressed uniform has the right moments", addressed_unit, 0.5, 1.0 / 12,
     1.0 / 80},
    {"addressed normal has the right moments", addressed_normal, 0, 1, 3},
};

/* Mean and variance within five standard errors. */
static void moments(void **state)
{
    const struct row *r = *state;
    double sum = 0, squares = 0, mean, variance;
    struct vt_rng rng;

    vt_rng_init(&rng, 42, r->name);
    for (uint64_t i = 0; i < N; i++) {
        double v = r->draw(&rng, i) - r->mean;

        sum += v;
        squares += v * v;
    }
    mean = sum / N;
    variance = squares / N;
    assert_true(fabs(mean) < 5 * sqrt(r->variance / N));
    assert_true(fabs(variance - r->variance) <
                5 * sqrt((r->fourth - r->variance * r->variance) / N));
}

static void draws_stay_in_range(void **state)
{
    struct vt_rng r;

    (void)state;
    vt_rng_init(&r, 3, "");
    for (int i = 0; i < 10000; i++) {
        uint64_t big = (UINT64_C(1) << 63) + 1;
        double u = vt_rng_f64(&r);

        assert_true(u >= 0 && u < 1);
        assert_true(vt_rng_below(&r, big) < big);
        assert_int_equal(vt_rng_below(&r, 1), 0);
        assert_true(vt_rng_exp(&r) >= 0);
        assert_true(vt_rng_gamma(&r, 0.01) >= 0);
    }
    assert_int_equal(vt_rng_below(&r, 0), 0);
    assert_true(vt_rng_gamma(&r, 0) == 0);
    assert_true(vt_rng_gamma(&r, -1) == 0);
    assert_true(vt_rng_gamma(&r, (double)NAN) == 0);
}

/* Neighbouring keys must not give neighbouring draws. */
static void addressed_draws_are_uncorrelated(void **state)
{
    double by_item = 0, by_k = 0, by_seed = 0, limit = 5.0 / 12 / sqrt(N);

    (void)state;
    for (uint64_t i = 0; i < N; i++) {
        double here = vt_draw_f64(1, i, 0) - 0.5;

        by_item += here * (vt_draw_f64(1, i + 1, 0) - 0.5);
        by_k += here * (vt_draw_f64(1, i, 1) - 0.5);
        by_seed += here * (vt_draw_f64(2, i, 0) - 0.5);
    }
    assert_true(fabs(by_item / N) < limit);
    assert_true(fabs(by_k / N) < limit);
    assert_true(fabs(by_seed / N) < limit);
}

static void nobody_repeats_entropy(void **state)
{
    uint8_t one[32] = {0}, two[32] = {0};

    (void)state;
    assert_true(vt_entropy(one, sizeof(one)));
    assert_true(vt_entropy(two, sizeof(two)));
    assert_memory_not_equal(one, two, sizeof(one));
}

int main(void)
{
    static const struct CMUnitTest more[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(streams_are_pinned),
        cmocka_unit_test(hashes_are_pinned),
        cmocka_unit_test(addressed_draws_are_pinned),
        cmocka_unit_test(draws_stay_in_range),
        cmocka_unit_test(addressed_draws_are_uncorrelated),
        cmocka_unit_test(nobody_repeats_entropy),
    };
    struct CMUnitTest tests[VT_COUNT(rows)];
    int failed;

    for (size_t i = 0; i < VT_COUNT(rows); i++)
        tests[i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = moments, .initial_state = &rows[i]};
    failed = cmocka_run_group_tests_name("rng moments", tests, NULL, NULL);
    return failed + cmocka_run_group_tests_name("rng", more, NULL, NULL);
}

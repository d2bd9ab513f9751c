#include "testing.h"

#include <float.h>
#include <math.h>

static void formats_and_reads_back(void **state)
{
    static const struct {
        double v;
        const char *text;
    } rows[] = {
        {0, "0"},
        {-0.0, "-0"},
        {1, "1"},
        {-1.5, "-1.5"},
        {0.1, "0.1"},
        {0.001, "0.001"},
        {0.0001, "0.0001"},
        {0.00001, "1e-05"},
        {123.456, "123.456"},
        {1234.567891, "1234.567891"},
        {999999999.999999, "999999999.999999"},
        {1e9, "1000000000"},
        {1e14, "100000000000000"},
        {1e15, "1e+15"},
        {1.0 / 3, "0.3333333333333333"},
        {0.1 + 0.2, "0.30000000000000004"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {DBL_TRUE_MIN, "5e-324"},
        {INFINITY, "null"},
        {NAN, "null"},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        char text[32];

        assert_int_equal(vt_fmt_f64(text, rows[i].v), strlen(rows[i].text));
        assert_string_equal(text, rows[i].text);
    }
}

static bool same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

static void assert_round_trip(double v)
{
    char text[32];
    double back = 0;
    size_t n = vt_fmt_f64(text, v);

    assert_true(n < sizeof(text) && text[n] == '\0');
    assert_true(vt_parse_f64(text, n, &back));
    assert_true(same_bits(v, back));
    assert_true(same_bits(v, strtod(text, NULL)));
}

static void random_doubles_round_trip(void **state)
{
    struct vt_rng r;

    (void)state;
    vt_rng_init(&r, 1, "round trip");
    for (int i = 0; i < 60000; i++) {
        uint64_t bits = vt_rng_u64(&r);
        double v;

        memcpy(&v, &bits, sizeof(v));
        if (isfinite(v))
            assert_round_trip(v);
        assert_round_trip(vt_rng_f64(&r) * 1e4);
        assert_round_trip(-vt_rng_f64(&r));
    }
}

/* The quick way of writing must not be visible in the text. */
static void short_decimals_look_as_printf_writes_them(void **state)
{
    struct vt_rng r;

    (void)state;
    vt_rng_init(&r, 1, "decimals");
    for (int i = 0; i < 60000; i++) {
        int64_t r6 = (int64_t)vt_rng_below(&r, UINT64_C(1) << (1 + i % 50));
        double v = (double)(i % 2 ? r6 : -r6) / (i % 3 ? 1e6 : 1e3);
        char got[32], want[32];

        vt_fmt_f64(got, v);
        snprintf(want, sizeof(want), "%.15g", v);
        if (strtod(want, NULL) == v)
            assert_string_equal(got, want);
    }
}

/* Every path through decimal.c against the C library's conversion. */
static void parses_as_strtod_does(void **state)
{
    struct vt_rng r;

    (void)state;
    vt_rng_init(&r, 1, "parse");
    for (int i = 0; i < 200000; i++) {
        char text[64];
        uint64_t digits = vt_rng_u64(&r) >> vt_rng_below(&r, 64);
        int frac = (int)vt_rng_below(&r, 25), n;
        double got = -1, want;

        if (i % 2)
            n = snprintf(text, sizeof(text), "%llu.%0*llu",
                         (unsigned long long)(digits >> 40), frac + 1,
                         (unsigned long long)(digits & 0xffffffffff));
        else
            n = snprintf(text, sizeof(text), "-%llue%d", (unsigned long long)digits,
                         frac - 24 - (int)vt_rng_below(&r, 8));
        want = strtod(text, NULL);
        assert_true(vt_parse_f64(text, (size_t)n, &got));
        assert_true(same_bits(got, want));
    }
}

static void parses_hard_cases_as_strtod_does(void **state)
{
    static const char *const rows[] = {
        "9007199254740993",
        "9007199254740992.5",
        "9007199254740993.0",
        "9007199254740993.00000000000000000001",
        "0.5000000000000000277",
        "0.000000000000000000000000000001",
        "2.2250738585072011e-308",
        "2.2250738585072014e-308",
        "1.7976931348623158e308",
        "18446744073709551615.0",
        "18446744073709551616.0",
        "1844674407370955161.5",
        "999999999999999999.9",
        "9999999999999999999.",
        "1e22",
        "1e23",
        "9007199254740991e22",
        "0e999999999",
        "0.0000e-5",
        "1e-400",
        "+1",
        ".5",
        "5.",
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        double got = -1;

        assert_true(vt_parse_f64(rows[i], strlen(rows[i]), &got));
        assert_true(same_bits(got, strtod(rows[i], NULL)));
    }
}

static void refuses_what_is_no_number(void **state)
{
    static const char *const rows[] = {"",    " ",   "-",     "+",   ".",     "e5",
                                       "1e",  "1e+", "1 ",    " 1",  "1,5",   "0x10",
                                       "inf", "nan", "1e999", "--1", "1.2.3", "1d"};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        double v;

        assert_false(vt_parse_f64(rows[i], strlen(rows[i]), &v));
    }
}

static void times_name_their_unit_or_count_the_one_that_is_meant(void **state)
{
    static const struct {
        const char *text;
        vt_ns unit;
        bool good;
        double want;
    } rows[] = {
        {"500", VT_MS, true, 500},   {"500ms", VT_MS, true, 500},
        {"0.5s", VT_MS, true, 500},  {"500ms", VT_SEC, true, 0.5},
        {"450us", VT_MS, true, .45}, {"2e3us", VT_US, true, 2000},
        {"0s", VT_MS, true, 0},      {"-1s", VT_MS, true, -1000},
        {"s", VT_MS, false, 0},      {"ms", VT_MS, false, 0},
        {"5 ms", VT_MS, false, 0},   {"5m", VT_MS, false, 0},
        {"5mss", VT_MS, false, 0},   {"", VT_MS, false, 0},
        {"infs", VT_MS, false, 0},   {"5MS", VT_MS, false, 0},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        double got = -1;
        bool good =
            vt_parse_time(rows[i].text, strlen(rows[i].text), rows[i].unit, &got);

        assert_int_equal(good, rows[i].good);
        if (good)
            assert_true(same_bits(got, rows[i].want));
    }
}

static void integers_stop_at_their_edges(void **state)
{
    static const struct {
        const char *text;
        bool i64, u64;
        int64_t want_i64;
        uint64_t want_u64;
    } rows[] = {
        {"0", true, true, 0, 0},
        {"-0", true, false, 0, 0},
        {"+5", true, true, 5, 5},
        {"0000000000000000000000007", true, true, 7, 7},
        {"9223372036854775807", true, true, INT64_MAX, INT64_MAX},
        {"9223372036854775808", false, true, 0, UINT64_C(9223372036854775808)},
        {"-9223372036854775808", true, false, INT64_MIN, 0},
        {"-9223372036854775809", false, false, 0, 0},
        {"18446744073709551615", false, true, 0, UINT64_MAX},
        {"18446744073709551616", false, false, 0, 0},
        {"99999999999999999999999", false, false, 0, 0},
        {"1.0", false, false, 0, 0},
        {"1e3", false, false, 0, 0},
        {"", false, false, 0, 0},
        {"x", false, false, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        int64_t s = 0;
        uint64_t u = 0;

        assert_int_equal(vt_parse_i64(rows[i].text, strlen(rows[i].text), &s),
                         rows[i].i64);
        assert_true(s == rows[i].want_i64);
        assert_int_equal(vt_parse_u64(rows[i].text, strlen(rows[i].text), &u),
                         rows[i].u64);
        assert_true(u == rows[i].want_u64);
    }
}

static void milliseconds_are_exact(void **state)
{
    static const struct {
        vt_ns t;
        const char *text;
    } rows[] = {
        {0, "0"},
        {1, "0.000001"},
        {-1, "-0.000001"},
        {1500000, "1.5"},
        {2000000, "2"},
        {1234567, "1.234567"},
        {-1230000, "-1.23"},
        {INT64_MAX, "9223372036854.775807"},
        {INT64_MIN, "-9223372036854.775808"},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        char text[32];

        *vt_ms_at(text, rows[i].t) = '\0';
        assert_string_equal(text, rows[i].text);
    }
    assert_int_equal(vt_ns_from_ms(1.5), 1500000);
    assert_int_equal(vt_ns_from_ms(-0.0000006), -1);
    assert_int_equal(vt_ns_from_us(2.0004), 2000);
}

static void quantiles_interpolate(void **state)
{
    static const double v[] = {1, 2, 3, 4, 10};
    static const struct {
        double p, want;
    } rows[] = {{0, 1},     {25, 2},   {50, 3},     {75, 4}, {90, 7.6},
                {99, 9.76}, {100, 10}, {12.5, 1.5}, {-5, 1}, {200, 10}};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++)
        assert_true(fabs(vt_quantile(v, 5, rows[i].p) - rows[i].want) < 1e-12);
    assert_true(vt_quantile(v, 0, 50) == 0);
    assert_true(vt_quantile(v, 1, 99) == 1);
    assert_true(vt_quantile(v, 2, 50) == 1.5);
}

/* numpy.percentile([0.1, 0.7], [40, 50, 60]) has these bits: above the middle it counts
 * back from the upper neighbour. */
static void quantiles_have_numpys_bits(void **state)
{
    static const double v[] = {0.1, 0.7}, many[] = {INFINITY, INFINITY};

    (void)state;
    assert_true(vt_quantile(v, 2, 40) == 0.1 + (0.7 - 0.1) * 0.4);
    assert_true(vt_quantile(v, 2, 50) == 0.7 - (0.7 - 0.1) * 0.5);
    assert_true(vt_quantile(v, 2, 60) == 0.7 - (0.7 - 0.1) * (1 - 0.6));
    assert_true(vt_quantile(many, 2, 50) == (double)INFINITY);
}

static void sorts_ascending(void **state)
{
    static const size_t sizes[] = {0, 1, 2, 100, 256, 257, 10000};
    struct vt_rng r;

    (void)state;
    vt_rng_init(&r, 1, "sort");
    for (size_t k = 0; k < VT_COUNT(sizes); k++) {
        size_t n = sizes[k];
        double *v = calloc(n + 1, sizeof(*v)), sum = 0, after = 0;

        assert_non_null(v);
        for (size_t i = 0; i < n; i++) {
            v[i] = (double)vt_rng_below(&r, 1000) - 500; /* exact sums */
            sum += v[i];
        }
        vt_sort_f64(v, n);
        for (size_t i = 0; i < n; i++) {
            after += v[i];
            assert_true(i == 0 || v[i - 1] <= v[i]);
        }
        assert_true(sum == after);
        free(v);
    }
}

static void sorts_signs_and_infinities(void **state)
{
    double v[600];

    (void)state;
    for (size_t i = 0; i < VT_COUNT(v); i += 6) {
        const double some[] = {INFINITY, -0.0, 1e-300, 0, -INFINITY, -1e300};

        memcpy(v + i, some, sizeof(some));
    }
    vt_sort_f64(v, VT_COUNT(v));
    assert_true(v[0] == -INFINITY && v[99] == -INFINITY);
    assert_true(v[100] == -1e300 && v[199] == -1e300);
    assert_true(signbit(v[200]) && signbit(v[299]) && !signbit(v[300]));
    assert_true(v[400] == 1e-300 && v[500] == INFINITY);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_and_reads_back),
        cmocka_unit_test(random_doubles_round_trip),
        cmocka_unit_test(short_decimals_look_as_printf_writes_them),
        cmocka_unit_test(parses_as_strtod_does),
        cmocka_unit_test(parses_hard_cases_as_strtod_does),
        cmocka_unit_test(refuses_what_is_no_number),
        cmocka_unit_test(times_name_their_unit_or_count_the_one_that_is_meant),
        cmocka_unit_test(integers_stop_at_their_edges),
        cmocka_unit_test(milliseconds_are_exact),
        cmocka_unit_test(quantiles_interpolate),
        cmocka_unit_test(quantiles_have_numpys_bits),
        cmocka_unit_test(sorts_ascending),
        cmocka_unit_test(sorts_signs_and_infinities),
    };

    return cmocka_run_group_tests_name("numbers", tests, NULL, NULL);
}

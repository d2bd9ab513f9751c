/* What a second run would be: gates of calibrations and bands, and odd captures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "report/report.h"

#define CASES VT_TEST_DIR "/cases/band/"

/* ---- made-up runs ----------------------------------------------------- */

enum { REQUESTS = 120, GAPS = 50 };

/* What gap k of a request takes, in milliseconds. */
typedef double gap_fn(struct vt_rng *r, int k);

static double plain_gap(struct vt_rng *r, int k)
{
    (void)k;
    return 8 + 0.2 * vt_rng_normal(r);
}

/* Of 50 gaps five are held up by the rest of a prompt and two by a full step. */
static double shelved_gap(struct vt_rng *r, int k)
{
    return k % 10 == 3   ? 30 + vt_rng_f64(r)
           : k % 25 == 7 ? 200 + 10 * vt_rng_f64(r)
                         : plain_gap(r, k);
}

static double low_gap(struct vt_rng *r, int k)
{
    return k % 25 == 7 ? plain_gap(r, k) : shelved_gap(r, k);
}

static double far_gap(struct vt_rng *r, int k)
{
    double ms = shelved_gap(r, k);

    return ms > 100 ? 2 * ms : ms;
}

static double wide_gap(struct vt_rng *r, int k)
{
    return k % 25 == 7 ? 110 + 200 * vt_rng_f64(r) : shelved_gap(r, k);
}

static double slow_gap(struct vt_rng *r, int k)
{
    return 1.6 * plain_gap(r, k);
}

static void make_run(struct vt_view *v, gap_fn *gap, uint64_t seed, const char *label)
{
    struct vt_err err = {0};
    struct vt_rng r;
    vt_ns ns[GAPS];

    *v = (struct vt_view){.label = label};
    vt_rng_init(&r, seed, "test");
    assert_int_equal(vt_view_reserve(v, REQUESTS, &err), VT_OK);
    for (size_t i = 0; i < REQUESTS; i++) {
        struct vt_work work = {.prompt_tokens = 100};
        struct vt_served s = {.req = &work, .gap = ns, .n_gaps = GAPS};

        s.ttft_ns = vt_ns_from_ms(60 + 10 * vt_rng_f64(&r));
        for (int k = 0; k < GAPS; k++)
            ns[k] = vt_ns_from_ms(gap(&r, k));
        assert_int_equal(vt_view_served(v, i, &s, &err), VT_OK);
    }
}

/* ---- a second run ----------------------------------------------------- */

static void equal_samples_leave_what_machines_differ_by(void **state)
{
    static const struct {
        enum vt_metric metric;
        double ms, apart[3];
    } row[] = {{VT_TTFT, 20, {0.20, 0.20, 0.13}},
               {VT_ITL, 5, {0.09, 0.09, 0.33}},
               {VT_DECODE, 10, {0.09, 0.09, 0.09}}};
    static const vt_ns gap[] = {5 * VT_MS, 5 * VT_MS};
    struct vt_record rec[3];
    struct vt_records r = {.rec = rec, .n = VT_COUNT(rec), .source = "f"};
    struct vt_view v = {0};
    struct vt_again a;
    struct vt_err err = {0};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rec); i++)
        rec[i] = (struct vt_record){.id = "x",
                                    .ttft_ns = 20 * VT_MS,
                                    .output_tokens = 3,
                                    .gap = gap,
                                    .n_gaps = 2};
    assert_int_equal(vt_view_records(&v, &r, &err), VT_OK);
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        assert_int_equal(vt_again(&v, row[i].metric, &a, &err), VT_OK);
        for (int k = 0; k < 3; k++) {
            assert_true(fabs(a.lo[k] - row[i].ms * (1 - row[i].apart[k])) < 1e-9);
            assert_true(fabs(a.hi[k] - row[i].ms / (1 - row[i].apart[k])) < 1e-9);
        }
    }
    vt_view_free(&v);
}

/* Requests of one token have no gap, and then there is nothing to draw. */
static void without_samples_there_is_no_range(void **state)
{
    struct vt_record rec = {.id = "x", .ttft_ns = VT_MS, .output_tokens = 1};
    struct vt_records r = {.rec = &rec, .n = 1, .source = "f"};
    struct vt_view v = {0};
    struct vt_again a;
    struct vt_calibration c;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(vt_view_records(&v, &r, &err), VT_OK);
    assert_int_equal(vt_again(&v, VT_ITL, &a, &err), VT_OK);
    assert_true(a.hi[0] == 0);
    assert_int_equal(vt_calibrate(&c, &v, &v, -1, &err), VT_OK);
    assert_true(c.pass);
    vt_view_free(&v);
}

static void load_case(struct vt_records *r, struct vt_view *v, const char *path)
{
    struct vt_err err = {0};

    *v = (struct vt_view){.label = path};
    if (vt_records_load(r, path, &err) != VT_OK || vt_view_records(v, r, &err) != VT_OK)
        fail_msg("%s", err.msg);
}

/* The same load on another machine, really: each is a second run of the other. */
static void a_real_second_run_passes(void **state)
{
    struct vt_records ra, rb;
    struct vt_view a, b;
    const struct vt_view *both[] = {&a, &b};
    struct vt_seed seed[] = {{.view = &a}, {.view = &b}};
    struct vt_seeds x = {.seed = seed, .n = 2};
    struct vt_err err = {0};

    (void)state;
    load_case(&ra, &a, CASES "closed-c64.trace.jsonl.gz");
    load_case(&rb, &b, CASES "closed-c64-again.trace.jsonl.gz");
    assert_int_equal(vt_seeds_judge(&x, &err), VT_OK);
    for (int i = 0; i < 2; i++)
        for (int m = 0; m < VT_N_METRICS; m++) {
            struct vt_again again;

            assert_int_equal(vt_again(both[i], (enum vt_metric)m, &again, &err), VT_OK);
            for (int k = 0; k < 3; k++)
                assert_true(seed[1 - i].spread[m][k] >= again.lo[k] &&
                            seed[1 - i].spread[m][k] <= again.hi[k]);
        }
    assert_true(x.agree && x.n_odd == 0);
    vt_view_free(&a);
    vt_view_free(&b);
    vt_records_free(&ra);
    vt_records_free(&rb);
}

static void the_gate_tells_what_is_beyond(void **state)
{
    struct vt_view a, same, slow;
    struct vt_calibration c;
    struct vt_buf text = {0};
    struct vt_err err = {0};

    (void)state;
    make_run(&a, plain_gap, 1, "captured");
    make_run(&same, plain_gap, 2, "same");
    make_run(&slow, slow_gap, 3, "slow");
    assert_int_equal(vt_calibrate(&c, &a, &same, -1, &err), VT_OK);
    assert_true(c.pass);
    assert_int_equal(vt_calibrate(&c, &a, &slow, -1, &err), VT_OK);
    assert_false(c.pass);
    assert_false(c.beyond[VT_TTFT][0]);
    assert_true(c.beyond[VT_ITL][0] && c.beyond[VT_DECODE][2]);
    vt_calibration_table(&text, &c);
    assert_non_null(strstr(text.data, "; ITL p50, ITL p90, ITL p99, decode p50, decode "
                                      "p90, decode p99 farther than a second run would "
                                      "be: FAIL\n"));
    vt_buf_clear(&text);
    vt_calibration_json(&text, &c);
    assert_non_null(strstr(text.data, "\"second_run\": {"));
    assert_null(strstr(text.data, "\"tolerance\""));
    vt_buf_free(&text);
    vt_view_free(&a);
    vt_view_free(&same);
    vt_view_free(&slow);
}

/* ---- the band --------------------------------------------------------- */

static void a_band_has_mass_place_and_shelves(void **state)
{
    struct vt_view a;
    struct vt_band b;
    struct vt_err err = {0};

    (void)state;
    make_run(&a, shelved_gap, 1, "captured");
    assert_int_equal(vt_band(&b, &a, &a, &err), VT_OK);
    assert_true(fabs(b.edge_ms - 16) < 0.2);
    assert_true(b.cut_ms > 31 && b.cut_ms < 200);
    assert_true(fabs(b.part[VT_BAND_ALL].captured.mass - 0.14) < 1e-12);
    assert_true(fabs(b.part[VT_BAND_LOWER].captured.mass - 0.10) < 1e-12);
    assert_true(fabs(b.part[VT_BAND_UPPER].captured.mass - 0.04) < 1e-12);
    assert_true(fabs(b.part[VT_BAND_LOWER].captured.p50 - 30.5) < 0.2);
    assert_true(fabs(b.part[VT_BAND_UPPER].captured.p50 - 205) < 2);
    assert_true(b.pass);
    vt_view_free(&a);
}

static void each_way_to_miss_a_band_is_named(void **state)
{
    static const struct {
        gap_fn *gap;
        const char *want; /* NULL: it passes */
    } row[] = {
        {shelved_gap, NULL},
        {low_gap, "upper shelf's mass"},
        {far_gap, "upper shelf's p50"},
        {wide_gap, "upper shelf's p10"},
        {plain_gap, "band's mass"},
    };
    struct vt_view a, m;
    struct vt_band b;
    struct vt_buf text = {0};
    struct vt_err err = {0};

    (void)state;
    make_run(&a, shelved_gap, 1, "captured");
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        make_run(&m, row[i].gap, 2, "m");
        assert_int_equal(vt_band(&b, &a, &m, &err), VT_OK);
        vt_buf_clear(&text);
        vt_band_table(&text, &b);
        assert_int_equal(b.pass, row[i].want == NULL);
        assert_non_null(strstr(text.data, row[i].want ? row[i].want : "PASS\n"));
        vt_buf_clear(&text);
        vt_band_json(&text, &b);
        assert_non_null(strstr(text.data, "\"lower_shelf\": {"));
        vt_view_free(&m);
    }
    vt_buf_free(&text);
    vt_view_free(&a);
}

static void plain_decoding_has_no_band(void **state)
{
    struct vt_view a;
    struct vt_band b;
    struct vt_err err = {0};

    (void)state;
    make_run(&a, plain_gap, 1, "captured");
    assert_int_equal(vt_band(&b, &a, &a, &err), VT_EINPUT);
    assert_non_null(strstr(err.msg, "no band: 0 of 6000 gaps"));
    vt_view_free(&a);
}

/* ---- several runs ----------------------------------------------------- */

static void an_odd_one_among_several_is_named(void **state)
{
    static const struct {
        const char *slow; /* s: slower, f: longest gaps twice as long, ' ': as usual */
        size_t n_odd;
        int odd; /* -1: nobody */
        bool agree;
        const char *want;
    } row[] = {
        {"   ", 0, -1, true, "verdict: 3 captures agree: PASS"},
        {"  s", 1, 2, true, "odd: c: "},
        {" s  ", 1, 1, true, "verdict: 1 of 4 odd, the others agree: FAIL"},
        {" s", 0, -1, false, "a third would tell who is odd: FAIL"},
        {" sf", 0, -1, false, "not most with one another: FAIL"},
        {"  s f", 2, 2, true, "verdict: 2 of 5 odd, the others agree: FAIL"},
    };
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    struct vt_buf text = {0};
    struct vt_err err = {0};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        struct vt_view v[5];
        struct vt_seed seed[5] = {0};
        struct vt_seeds x = {.seed = seed, .n = strlen(row[i].slow)};

        for (size_t k = 0; k < x.n; k++) {
            char how = row[i].slow[k];

            make_run(&v[k],
                     how == 's'   ? slow_gap
                     : how == 'f' ? far_gap
                                  : plain_gap,
                     k + 1, names[k]);
            seed[k].view = &v[k];
        }
        assert_int_equal(vt_seeds_judge(&x, &err), VT_OK);
        assert_int_equal(x.n_odd, row[i].n_odd);
        assert_int_equal(x.agree, row[i].agree);
        for (size_t k = 0; k < x.n && row[i].n_odd == 1; k++)
            assert_int_equal(seed[k].odd, (int)k == row[i].odd);
        vt_buf_clear(&text);
        vt_seeds_table(&text, &x);
        assert_non_null(strstr(text.data, row[i].want));
        for (size_t k = 0; k < x.n; k++)
            vt_view_free(&v[k]);
    }
    vt_buf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_samples_leave_what_machines_differ_by),
        cmocka_unit_test(without_samples_there_is_no_range),
        cmocka_unit_test(a_real_second_run_passes),
        cmocka_unit_test(the_gate_tells_what_is_beyond),
        cmocka_unit_test(a_band_has_mass_place_and_shelves),
        cmocka_unit_test(each_way_to_miss_a_band_is_named),
        cmocka_unit_test(plain_decoding_has_no_band),
        cmocka_unit_test(an_odd_one_among_several_is_named),
    };

    return cmocka_run_group_tests_name("again", tests, NULL, NULL);
}

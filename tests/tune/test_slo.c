/* Limits: which one is broken, and by how much. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tune/tune.h"

static const struct {
    struct vt_slo slo;
    double ttft, tpot, itl, e2e; /* p99 */
    const char *broken, *nearest;
    double by; /* of the nearest */
} rows[] = {
    {{1000, 60, 0, 0}, 500, 30, 900, 9e9, NULL, "TTFT p99", 0.5},
    {{1000, 60, 0, 0}, 500, 59, 0, 0, NULL, "TPOT p99", 59.0 / 60},
    {{1000, 60, 0, 0}, 1000, 60, 0, 0, NULL, "TTFT p99", 1}, /* at the limit is within
                                                              */
    {{1000, 60, 0, 0}, 1200, 66, 0, 0, "TTFT p99", "TTFT p99", 1.2},
    {{1000, 60, 0, 0}, 1100, 90, 0, 0, "TPOT p99", "TPOT p99", 1.5},
    {{0, 0, 100, 0}, 9e9, 9e9, 150, 0, "ITL p99", "ITL p99", 1.5},
    {{0, 0, 0, 25000}, 9e9, 9e9, 0, 50000, "E2E p99", "E2E p99", 2},
    {{0, 0, 0, 0}, 9e9, 9e9, 9e9, 9e9, NULL, NULL, 0},
};

static void the_limit_that_is_broken_most_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct vt_summary s = {0};
        const char *broken, *nearest;
        double by = -1, broken_by = -1;

        s.ttft.p99 = rows[i].ttft;
        s.tpot.p99 = rows[i].tpot;
        s.itl.p99 = rows[i].itl;
        s.e2e.p99 = rows[i].e2e;
        broken = vt_slo_broken(&rows[i].slo, &s, &broken_by);
        nearest = vt_slo_nearest(&rows[i].slo, &s, &by);
        assert_true((broken == NULL) == (rows[i].broken == NULL));
        assert_true(broken == NULL || strcmp(broken, rows[i].broken) == 0);
        assert_true((nearest == NULL) == (rows[i].nearest == NULL));
        assert_true(nearest == NULL || strcmp(nearest, rows[i].nearest) == 0);
        assert_true(by == rows[i].by);
        assert_true(broken_by == (rows[i].broken != NULL ? rows[i].by : 1));
        assert_true(vt_slo_broken(&rows[i].slo, &s, NULL) == broken);
    }
}

/* A request of four tokens, the first after 100 ms. */
static const struct {
    struct vt_slo slo;
    vt_ns gap[3];
    bool keeps;
} single[] = {
    {{0, 0, 0, 0}, {1 * VT_SEC, 1, 1}, true},
    {{100, 0, 0, 0}, {1, 1, 1}, true},
    {{99, 0, 0, 0}, {1, 1, 1}, false},
    {{0, 20, 0, 0}, {30 * VT_MS, 10 * VT_MS, 20 * VT_MS}, true},
    {{0, 20, 0, 0}, {30 * VT_MS, 11 * VT_MS, 20 * VT_MS}, false},
    {{0, 0, 20, 0}, {20 * VT_MS, 20 * VT_MS, 20 * VT_MS}, true},
    {{0, 0, 20, 0}, {20 * VT_MS, 21 * VT_MS, 1}, false},
    {{0, 0, 0, 160}, {20 * VT_MS, 20 * VT_MS, 20 * VT_MS}, true},
    {{0, 0, 0, 160}, {20 * VT_MS, 20 * VT_MS, 21 * VT_MS}, false},
};

static void a_request_keeps_limits_by_itself(void **state)
{
    (void)state;
    for (size_t i = 0; i < VT_COUNT(single); i++) {
        struct vt_served s = {.ttft_ns = 100 * VT_MS,
                              .gap = single[i].gap,
                              .n_gaps = 3,
                              .output_tokens = 4};

        if (vt_slo_keeps(&single[i].slo, &s) != single[i].keeps)
            fail_msg("row %zu", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limit_that_is_broken_most_is_named),
        cmocka_unit_test(a_request_keeps_limits_by_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The parts of a fit: least squares, robust lines, memory that runs out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "fit/internal.h"

#include "../failing_malloc.h"

/* ---- Levenberg-Marquardt ----------------------------------------------- */

/* y = a e^(-b t) at t = 0 .. 9 with a = 5, b = 0.3; x holds logarithms. */
static void decay(void *user, const double *x, double *r)
{
    (void)user;
    for (int i = 0; i < 10; i++)
        r[i] = exp(x[0]) * exp(-exp(x[1]) * i) - 5 * exp(-0.3 * i);
}

static void lm_finds_the_minimum(void **state)
{
    struct lm_problem p = {.m = 2, .n = 10, .residuals = decay, .max_steps = 100};
    double x[2] = {log(1), log(1)}, cost;

    (void)state;
    assert_int_equal(lm_solve(&p, x, &cost, NULL), VT_OK);
    assert_float_equal(exp(x[0]), 5, 1e-3);
    assert_float_equal(exp(x[1]), 0.3, 1e-4);
    assert_true(cost < 1e-6);
}

static void lm_stops_after_as_many_steps_as_it_may_take(void **state)
{
    struct lm_problem p = {.m = 2, .n = 10, .residuals = decay, .max_steps = 0};
    double x[2] = {log(1), log(1)}, cost;

    (void)state;
    assert_int_equal(lm_solve(&p, x, &cost, NULL), VT_OK);
    assert_float_equal(x[0], 0, 1e-12);
    assert_true(cost > 1);
}

/* ---- what is read off --------------------------------------------------- */

/* 200 decode steps of an engine whose schedule call takes 0.2 ms and 0.01 ms for each
 * request; every twentieth is stalled. */
static void fill(struct capture *c, bool stalls)
{
    struct vt_step_params shape;
    struct vt_err err = {0};
    double at = 0;

    vt_step_params_init(&shape);
    c->meta.max_num_seqs = 256;
    c->meta.async_scheduling = 1;
    for (uint32_t i = 0; i < 200; i++) {
        uint32_t n = 1 + i % 40;
        double sched = 0.2 + 0.01 * n + (stalls && i % 20 == 7 ? 30 : 0);
        struct vt_step_prefill p = {"x", 0, 700, 700};
        struct vt_step_line s = {.decodes = n, .running = n, .prefill = &p};

        s.n_prefill = i % 9 == 5;
        s.sched_ns = (vt_ns)(at * 1e6);
        s.sched_end_ns = s.sched_ns + (vt_ns)(sched * 1e6);
        at += 8 + sched;
        s.out_ns = (vt_ns)((at + 7) * 1e6);
        s.done_ns = s.out_ns + 100000;
        assert_int_equal(capture_add_step(c, &shape, &s, &err), VT_OK);
    }
    c->span = 1000;
}

static void stalls_of_the_host_do_not_tilt_its_line(void **state)
{
    struct capture c = {0};
    struct vt_fit f = {.capture = &c, .n = 1};
    struct vt_step_params p;
    struct vt_err err = {0};

    fill(&c, *(bool *)*state);
    vt_step_params_init(&p);
    assert_int_equal(host_costs(&f, VT_FIT_ALL, &p, &err), VT_OK);
    assert_float_equal(p.host_sched_request, 10, 0.01);
    assert_float_equal(p.host_done, 100, 0.01);
    free(c.step);
}

/* ---- factors -------------------------------------------------------------- */

static void more_work_never_takes_less_time(void **state)
{
    struct vt_step_params p;
    double cost[VT_STEP_GRAPH_KNOTS], both;

    (void)state;
    vt_step_params_init(&p);
    p.base = 10;
    p.graph_token = 10;
    p.graph_factor[2] = 0.2; /* of 4 tokens: less than 2 take */
    vt_step_knot_costs(&p, VT_STEP_GRAPH, cost);
    both = 0.5 * (cost[1] + 0.2 * cost[2]);
    vt_step_make_monotone(&p);
    for (int i = 1; i < VT_STEP_GRAPH_KNOTS; i++)
        assert_true(p.graph_factor[i] * cost[i] >=
                    p.graph_factor[i - 1] * cost[i - 1] - 1e-9);
    assert_float_equal(p.graph_factor[0], 1, 1e-12);
    assert_true(fabs(p.graph_factor[1] * cost[1] - both) < 1e-9);
    assert_true(fabs(p.graph_factor[2] * cost[2] - both) < 1e-9);
    assert_float_equal(p.graph_factor[3], 1, 1e-12);
}

/* ---- memory --------------------------------------------------------------- */

#if REPLACES_MALLOC

/* Each allocation fails once: the fit says so, or gives what it gives otherwise. */
static void a_fit_without_memory_says_so_and_gives_no_other_profile(void **state)
{
    struct capture c = {0};
    struct vt_fit f = {.capture = &c, .n = 1};
    struct vt_step_params want, got;
    long before;

    (void)state;
    fill(&c, false);
    before = calls;
    assert_int_equal(vt_fit_solve(&f, VT_FIT_ALL, &want, NULL, NULL), VT_OK);
    before = calls - before;
    assert_true(before > 8);
    for (long k = 1; k <= before; k++) {
        int rc;

        fail_at = calls + k;
        rc = vt_fit_solve(&f, VT_FIT_ALL, &got, NULL, NULL);
        fail_at = 0;
        if (rc != VT_ENOMEM &&
            (rc != VT_OK || memcmp(&got, &want, sizeof(got)) != 0)) /* sorting can do */
            fail_msg("allocation %ld of %ld: %d", k, before, rc);
    }
    free(c.step);
}

#endif

int main(void)
{
    static bool yes = true, no = false;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lm_finds_the_minimum),
        cmocka_unit_test(lm_stops_after_as_many_steps_as_it_may_take),
        cmocka_unit_test_prestate(stalls_of_the_host_do_not_tilt_its_line, &yes),
        cmocka_unit_test_prestate(stalls_of_the_host_do_not_tilt_its_line, &no),
        cmocka_unit_test(more_work_never_takes_less_time),
#if REPLACES_MALLOC
        cmocka_unit_test(a_fit_without_memory_says_so_and_gives_no_other_profile),
#endif
    };

    return cmocka_run_group_tests_name("solve", tests, NULL, NULL);
}

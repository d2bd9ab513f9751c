/* Stalls are found before anything is learned, and nothing is learned from them. */
#include "twin.h"

#include "fit/internal.h"

static void what_made_stalled_captures_is_found_back(void **state)
{
    struct captures c;
    struct vt_step_params p;
    struct vt_fit_quality q;
    struct vt_err err = {0};
    double seconds = 0;

    (void)state;
    make_captures(&c, TRUTH, &(struct mishaps){.stall = first_uses, .n = N_FIRST_USES});
    assert_int_equal(vt_fit_solve(c.fit, VT_FIT_ALL, &p, &q, &err), VT_OK);
    assert_int_equal(q.stalls, N_FIRST_USES);
    assert_int_equal(vt_fit_look(c.fit, 0).stalls, 4);
    assert_int_equal(vt_fit_look(c.fit, 2).stalls, 0);
    for (int i = 0; i < N_LOADS; i++)
        seconds += vt_fit_look(c.fit, (size_t)i).stall_seconds;
    near("seconds", seconds, 8.62, 0.03);
    assert_true(q.median_error < 0.005);
    near("base", p.base, 6000, 0.02);
    near("eager_token", p.eager_token, 30, 0.1);
    near("launch_mixed", p.host_launch_mixed, 9000, 0.05);
    near("launch_eager", p.host_launch_eager, 21000, 0.05);
    near("sched", p.host_sched, 200, 0.05);
    near("turnaround", p.host_turnaround, 1500, 0.05);
    near("arrive", p.host_arrive, 1000, 0.05);
    free_captures(&c);
}

/* The truth holds them and no model foresees them: both errors are told. */
static void a_stall_is_no_silent_error_of_the_model(void **state)
{
    struct captures c;
    struct vt_crossval_row row, calm;
    struct vt_err err = {0};

    (void)state;
    make_captures(&c, TRUTH, &(struct mishaps){.stall = first_uses, .n = N_FIRST_USES});
    assert_int_equal(vt_crossval_one(c.fit, 0, &c.w[0], &row, &calm, &err), VT_OK);
    assert_true(row.e2e < -30 && row.throughput > 30);
    if (fabs(calm.e2e) > 3 || fabs(calm.itl) > 3 || fabs(calm.throughput) > 3 ||
        fabs(calm.ttft) > 10)
        fail_msg("E2E %.1f, ITL %.1f, req/s %.1f, TTFT %.1f", calm.e2e, calm.itl,
                 calm.throughput, calm.ttft);
    assert_int_equal(vt_crossval_one(c.fit, 2, &c.w[2], &row, &calm, &err), VT_OK);
    assert_true(row.e2e == calm.e2e && row.ttft_p99 == calm.ttft_p99);
    free_captures(&c);
}

static void long_steps_are_no_stalls(void **state)
{
    struct captures c;

    make_captures(&c, *state, &(struct mishaps){0});
    clean_captures(c.fit);
    for (int i = 0; i < N_LOADS; i++)
        assert_int_equal(vt_fit_look(c.fit, (size_t)i).stalls, 0);
    free_captures(&c);
}

/* Who lost its place computes again what it had, of which a trace does not tell: no
 * stall, and nothing to learn a step's time from. */
static void who_comes_back_after_a_preemption_is_no_stall(void **state)
{
    struct recorder r;
    struct vt_workload w;
    struct vt_fit_shape shape = {0};
    struct vt_fit *f;
    struct vt_fit_quality q;
    struct vt_step_params p;
    struct vt_latency *m;
    struct vt_buf notes = {0};
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(vt_model_open_inline(&m, TRUTH, &err), VT_OK);
    assert_true(record_in(&r, &w, m,
                          "{requests: 60, arrival: {process: closed, concurrency: 24}, "
                          "prompt: {dist: uniform, min: 500, max: 900}, output: {dist: "
                          "uniform, min: 150, max: 300}}",
                          (struct circumstances){.blocks = 700}) > 10);
    assert_int_equal(vt_fit_new(&f, &shape, &err), VT_OK);
    assert_int_equal(vt_fit_add(f, "full", NULL, &w, &err), VT_OK);
    assert_int_equal(vt_fit_solve(f, VT_FIT_ALL, &p, &q, &err), VT_OK);
    assert_int_equal(q.stalls, 0);
    assert_true(q.median_error < 0.01);
    vt_fit_thin(f, &notes);
    assert_non_null(strstr(notes.data, "full: in "));
    assert_non_null(strstr(notes.data, " steps preempted requests came back"));
    vt_buf_free(&notes);
    vt_fit_free(f);
    vt_latency_close(m);
    vt_steps_free(&r.steps);
    vt_workload_free(&w);
}

int main(void)
{
    static char truth[] = TRUTH, other[] = "blackbox:beta=6000,18,30,alpha=1000,2,3",
                linear[] =
                    "linear:base=4000,request=25,prefill_token=8,context_token=0.02",
                constant[] = "knob:time_to_first_token=132,inter_token_latency=11";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_made_stalled_captures_is_found_back),
        cmocka_unit_test(a_stall_is_no_silent_error_of_the_model),
        cmocka_unit_test(who_comes_back_after_a_preemption_is_no_stall),
        cmocka_unit_test_prestate(long_steps_are_no_stalls, truth),
        cmocka_unit_test_prestate(long_steps_are_no_stalls, other),
        cmocka_unit_test_prestate(long_steps_are_no_stalls, linear),
        cmocka_unit_test_prestate(long_steps_are_no_stalls, constant),
    };

    return cmocka_run_group_tests_name("clean", tests, NULL, NULL);
}

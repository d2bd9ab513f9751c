/* How requests come to the scheduler is found back from which calls took them. */
#include "twin.h"

#define WAY                                                                        \
    "step:base=3000,graph_token=20,mixed=1500,mixed_token=15,eager=1000,"          \
    "eager_token=30,host_sched=150,host_lead=300,host_launch_graph=300,"           \
    "host_launch_mixed=4000,host_launch_eager=9000,host_done=80,host_done_end=60," \
    "host_arrive=350,"                                                             \
    "host_intake=200,host_intake_ktoken=300,host_wake=450,host_nap=900,"           \
    "host_turnaround=500,host_turnaround_next=120"

/* A closed loop of equal lengths comes back before the engine can rest; light traffic
 * finds it at rest; heavy traffic never does. */
static const char *const traffic[] = {
    "{requests: 240, arrival: {process: closed, concurrency: 12}, prompt: {dist: "
    "constant, value: 400}, output: {dist: constant, value: 20}}",
    "{requests: 80, arrival: {process: poisson, rate: 3}, prompt: {dist: uniform, min: "
    "50, max: 6000}, output: {dist: constant, value: 8}}",
    "{requests: 600, arrival: {process: poisson, rate: 40}, prompt: {dist: uniform, "
    "min: 20, max: 700}, output: {dist: uniform, min: 5, max: 60}}",
};
enum { N = VT_COUNT(traffic) };

static void the_way_into_the_queue_is_found_back(void **state)
{
    struct recorder r[N];
    struct vt_workload w[N];
    struct vt_fit_shape shape = {0};
    struct vt_step_params p;
    struct vt_latency *m;
    struct vt_fit *f;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(vt_model_open_inline(&m, WAY, &err), VT_OK);
    assert_int_equal(vt_fit_new(&f, &shape, &err), VT_OK);
    for (int i = 0; i < N; i++) {
        record(&r[i], &w[i], m, traffic[i]);
        assert_int_equal(vt_fit_add(f, "traffic", &r[i].steps, &w[i], &err), VT_OK);
    }
    assert_int_equal(vt_fit_solve(f, VT_FIT_ALL, &p, NULL, &err), VT_OK);
    near("arrive and intake", p.host_arrive + p.host_intake, 550, 0.1);
    near("intake_ktoken", p.host_intake_ktoken, 300, 0.2);
    near("wake", p.host_wake, 450, 0.15);
    near("nap", p.host_nap, 900, 0.1);
    near("done_end", p.host_done_end, 60, 0.1);
    near("turnaround", p.host_turnaround, 500, 0.1);
    near("turnaround_next", p.host_turnaround_next, 120, 0.1);
    for (int i = 0; i < N; i++) {
        vt_steps_free(&r[i].steps);
        vt_workload_free(&w[i]);
    }
    vt_fit_free(f);
    vt_latency_close(m);
}

/* A client on a busy machine pauses for half a millisecond or for seconds. */
static void wild_pauses_leave_a_profile_that_can_be_read(void **state)
{
    static const char one[] =
        "{requests: 40, arrival: {process: closed, concurrency: 1}, prompt: {dist: "
        "uniform, min: 20, max: 900}, output: {dist: constant, value: 8}}";
    struct vt_fit_shape shape = {0};
    struct vt_step_params p;
    struct vt_workload w;
    struct vt_latency *m;
    struct recorder r;
    struct vt_fit *f;
    struct vt_err err = {0};
    vt_ns shift = 0;

    (void)state;
    assert_int_equal(vt_model_open_inline(&m, WAY, &err), VT_OK);
    record(&r, &w, m, one);
    for (size_t i = 0; i < w.n; i++) {
        shift += i % 2 == 1 ? 2 * VT_SEC : 0;
        w.req[i].arrival_ns += shift;
    }
    assert_int_equal(vt_fit_new(&f, &shape, &err), VT_OK);
    assert_int_equal(vt_fit_add(f, "one", NULL, &w, &err), VT_OK);
    if (vt_fit_solve(f, VT_FIT_ALL, &p, NULL, &err) != VT_OK)
        fail_msg("%s", err.msg);
    assert_true(p.turnaround_noise > 2 && p.turnaround_noise <= 3);
    vt_steps_free(&r.steps);
    vt_workload_free(&w);
    vt_fit_free(f);
    vt_latency_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_way_into_the_queue_is_found_back),
        cmocka_unit_test(wild_pauses_leave_a_profile_that_can_be_read),
    };

    return cmocka_run_group_tests_name("arrive", tests, NULL, NULL);
}

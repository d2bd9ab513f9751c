/* A fit replays logs by the pipeline that engines run by: what an engine has logged is
 * predicted to the nanosecond that the log was rounded to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "fit/internal.h"
#include "report/report.h"
#include "sim/sim.h"

/* Graphs, pieces of graphs and kernel by kernel, all with costs of their own. */
#define MODEL                                                                      \
    "step:base=6000,graph_token=25,context_ktoken=40,mixed=1500,mixed_token=15,"   \
    "eager=1000,eager_token=30,prefill=50,depth_mtoken=800,host_sched=200,"        \
    "host_sched_request=10,host_lead=700,host_launch_graph=900,host_launch_mixed=" \
    "9000,host_launch_eager=21000,host_launch_request=7,row=12,host_tail=2500,"    \
    "host_done=100,host_done_request=5"

static const char *const loads[] = {
    "{requests: 40, arrival: {process: closed, concurrency: 8}, prompt: {dist: "
    "uniform, "
    "min: 10, max: 3000}, output: {dist: uniform, min: 5, max: 60}}",
    "{requests: 40, arrival: {process: poisson, rate: 3}, prompt: {dist: uniform, "
    "min: 10, max: 3000}, output: {dist: uniform, min: 5, max: 60}}",
};

struct log {
    struct capture c;
    struct vt_step_params p;
};

static int keep_step(void *user, const struct vt_step_line *s, struct vt_err *err)
{
    struct log *l = user;

    return capture_add_step(&l->c, &l->p, s, err);
}

struct worst {
    double ms;
    size_t windows, points;
};

static void look(void *user, struct window w)
{
    struct worst *x = user;

    x->ms = fmax(x->ms, fabs(w.predicted - w.measured));
    x->windows += !w.point;
    x->points += w.point;
}

static void params_of(struct vt_step_params *p)
{
    vt_step_params_init(p);
    p->base = 6000;
    p->graph_token = 25;
    p->context_ktoken = 40;
    p->mixed = 1500;
    p->mixed_token = 15;
    p->eager = 1000;
    p->eager_token = 30;
    p->prefill = 50;
    p->depth_mtoken = 800;
    p->host_sched = 200;
    p->host_sched_request = 10;
    p->host_lead = 700;
    p->host_launch_graph = 900;
    p->host_launch_mixed = 9000;
    p->host_launch_eager = 21000;
    p->host_launch_request = 7;
    p->row = 12;
    p->host_tail = 2500;
    p->host_done = 100;
    p->host_done_request = 5;
}

static void an_engine_is_replayed_as_it_ran(void **state)
{
    const char *yaml = *state;
    struct log l = {.c.meta.max_num_seqs = 64, .c.meta.async_scheduling = 1};
    struct vt_sim_sink sink = {.user = &l, .step = keep_step};
    struct vt_workload w = {0};
    struct vt_sim_spec spec = {.workload = &w, .sink = &sink};
    struct vt_latency *m;
    struct vt_summary sum;
    struct worst worst = {0};
    struct vt_err err = {0};

    params_of(&l.p);
    assert_int_equal(vt_model_open_inline(&m, MODEL, &err), VT_OK);
    assert_int_equal(
        vt_workload_generate_text(&w, "test", yaml, strlen(yaml), -1, &err), VT_OK);
    vt_engine_config_init(&spec.engine);
    spec.engine.max_num_seqs = 64;
    spec.model = m;
    spec.arrivals = w.arrivals;
    spec.concurrency = w.concurrency;
    assert_int_equal(vt_sim_run(&spec, &sum, &err), VT_OK);
    replay(&l.c, &l.p, look, &worst);
    assert_true(worst.windows > 10 && worst.points > 10);
    if (worst.ms > 1e-3)
        fail_msg("%.6f ms apart", worst.ms);
    free(l.c.step);
    vt_latency_close(m);
    vt_workload_free(&w);
}

int main(void)
{
    struct CMUnitTest tests[VT_COUNT(loads)];

    for (size_t i = 0; i < VT_COUNT(loads); i++)
        tests[i] = (struct CMUnitTest){.name = "an_engine_is_replayed_as_it_ran",
                                       .test_func = an_engine_is_replayed_as_it_ran,
                                       .initial_state = (void *)(uintptr_t)loads[i]};
    return cmocka_run_group_tests_name("replay", tests, NULL, NULL);
}

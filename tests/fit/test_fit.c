/* A fit finds back what made its captures, and predicts captures it has not seen. */
#include "twin.h"

#define DATA VT_TEST_DIR "/sim/data/"

/* ---- captures of the twin itself -------------------------------------- */

struct own_captures {
    struct recorder r[N_LOADS];
    struct vt_workload w[N_LOADS];
    struct vt_fit *fit;
};

static struct own_captures *make_own_of(const char *truth, const char *const *yaml,
                                        const struct vt_fit_shape *shape,
                                        bool with_steps)
{
    struct own_captures *c = calloc(1, sizeof(*c));
    struct vt_latency *m;
    struct vt_err err = {0};

    assert_non_null(c);
    assert_int_equal(vt_model_open_inline(&m, truth, &err), VT_OK);
    assert_int_equal(vt_fit_new(&c->fit, shape, &err), VT_OK);
    for (int i = 0; i < N_LOADS; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "load-%d", i);
        record(&c->r[i], &c->w[i], m, yaml[i]);
        if (vt_fit_add(c->fit, name, with_steps ? &c->r[i].steps : NULL, &c->w[i],
                       &err) != VT_OK)
            fail_msg("%s", err.msg);
    }
    vt_latency_close(m);
    return c;
}

static struct own_captures *make_own(bool with_steps)
{
    return make_own_of(TRUTH, loads, &(struct vt_fit_shape){.context_us = 38},
                       with_steps);
}

static void free_own(struct own_captures *c)
{
    for (int i = 0; i < N_LOADS; i++) {
        vt_steps_free(&c->r[i].steps);
        vt_workload_free(&c->w[i]);
    }
    vt_fit_free(c->fit);
    free(c);
}

static void what_made_the_step_logs_is_found_back(void **state)
{
    struct own_captures *c = make_own(true);
    struct vt_step_params p;
    struct vt_fit_quality q;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(vt_fit_solve(c->fit, VT_FIT_ALL, &p, &q, &err), VT_OK);
    assert_true(q.windows > 300);
    assert_true(q.median_error < 0.005);
    near("base", p.base, 6000, 0.02);
    near("graph_token", p.graph_token, 25, 0.15);
    near("context", p.context_ktoken, 40, 0.05);
    near("eager_token", p.eager_token, 30, 0.1);
    near("launch_mixed", p.host_launch_mixed, 9000, 0.05);
    near("launch_eager", p.host_launch_eager, 21000, 0.05);
    near("sched", p.host_sched, 200, 0.05);
    near("sched_request", p.host_sched_request, 10, 0.05);
    near("done_request", p.host_done_request, 5, 0.05);
    near("turnaround", p.host_turnaround, 1500, 0.05);
    /* Of what leads into the queue few requests tell the parts, but all the sum. */
    near("arrive",
         p.host_arrive + p.host_intake + 0.4 * p.host_intake_ktoken + p.host_wake, 1000,
         0.1);
    free_own(c);
}

static void a_load_left_out_is_predicted(void **state)
{
    bool with_steps = *(bool *)*state;
    struct own_captures *c = make_own(with_steps);
    struct vt_crossval_row row[N_LOADS], median, mean;
    struct vt_err err = {0};
    size_t n = 0;

    for (size_t i = 0; i < N_LOADS; i += 2)
        if (vt_crossval_one(c->fit, i, &c->w[i], &row[n++], NULL, &err) != VT_OK)
            fail_msg("%s", err.msg);
    vt_crossval_sum(row, n, &median, &mean);
    assert_true(median.e2e < 1.5);
    assert_true(median.itl < 1.5);
    assert_true(median.ttft < 5);
    assert_true(fabs(mean.e2e) < 2);
    free_own(c);
}

static struct architecture {
    const char *name, *truth;
    struct vt_fit_shape shape;
} architectures[] = {
    {"sliding windows",
     TRUTH ",window=300,window_share=0.8",
     {.context_us = 38, .reads = {.window = 300, .window_share = 0.8}}},
    {"a mixture of experts",
     TRUTH ",experts=64,experts_per_token=6,expert=9000",
     {.context_us = 38, .experts = 64, .experts_per_token = 6, .expert_us = 8500}},
    {"a mixture that uses half of its experts",
     TRUTH ",experts=64,experts_per_token=6,expert=9000,expert_spread=0.5",
     {.context_us = 38, .experts = 64, .experts_per_token = 6, .expert_us = 8500}},
    {"a small model behind a slow host",
     "step:base=1500,graph_token=3,context_ktoken=5,mixed=300,mixed_token=3,eager=300,"
     "eager_token=2,prefill=20,depth_mtoken=100,host_arrive=1000,host_sched=200,"
     "host_sched_request=10,host_lead=700,host_launch_graph=1800,host_launch_request="
     "15,host_launch_mixed=9000,host_launch_eager=21000,host_tail=2500,host_done=100,"
     "host_done_request=5,host_turnaround=1500",
     {.context_us = 5}},
    {"kernels with tiles to fill",
     TRUTH ",fill_row=40",
     {.context_us = 38, .fill_us = 25}},
    {"larger graphs than usual",
     TRUTH ",graph_limit=1024",
     {.context_us = 38, .graph_limit = 1024}},
};

static void every_architecture_is_found_back(void **state)
{
    const struct architecture *a = *state;
    struct own_captures *c = make_own_of(a->truth, short_loads, &a->shape, true);
    struct vt_err err = {0};

    for (size_t i = 1; i < N_LOADS; i += 3) {
        struct vt_crossval_row row;

        if (vt_crossval_one(c->fit, i, &c->w[i], &row, NULL, &err) != VT_OK)
            fail_msg("%s", err.msg);
        if (fabs(row.e2e) > 3 || fabs(row.itl) > 3 || fabs(row.ttft) > 6)
            fail_msg("%s, load %zu: E2E %+.1f, ITL %+.1f, TTFT %+.1f %%", a->name, i,
                     row.e2e, row.itl, row.ttft);
    }
    free_own(c);
}

static void the_same_captures_give_the_same_profile(void **state)
{
    struct vt_buf text[2] = {{0}, {0}};
    struct vt_fit_about about = {.name = "twice"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct own_captures *c = make_own(true);
        struct vt_step_params p;
        struct vt_fit_quality q;
        struct vt_profile profile;
        struct vt_err err = {0};

        struct vt_buf model = {0};

        assert_int_equal(vt_fit_solve(c->fit, VT_FIT_ALL, &p, &q, &err), VT_OK);
        vt_fit_step_model(&model, &p);
        vt_fit_profile(&text[i], c->fit, model.data, &q, &about);
        vt_buf_free(&model);
        if (vt_profile_parse(&profile, "twice", text[i].data, text[i].len, &err) !=
            VT_OK)
            fail_msg("%s", err.msg);
        vt_profile_close(&profile);
        free_own(c);
    }
    assert_string_equal(text[0].data, text[1].data);
    vt_buf_free(&text[0]);
    vt_buf_free(&text[1]);
}

/* ---- captures of a real engine ---------------------------------------- */

static void real_captures_are_predicted_from_the_others(void **state)
{
    static const char *const names[] = {"K-closed-c64", "closed-c16", "mt-warm-r4",
                                        "poisson-r18"};
    enum { N = VT_COUNT(names) };
    struct vt_fit_shape shape = {.context_us = 30.7};
    struct vt_crossval_row row[N], median, mean;
    struct vt_workload w[N];
    struct vt_fit *f;
    struct vt_err err = {0};
    size_t n = 0;

    (void)state;
    memset(w, 0, sizeof(w));
    assert_int_equal(vt_fit_new(&f, &shape, &err), VT_OK);
    for (int i = 0; i < N; i++) {
        char path[512];

        (void)snprintf(path, sizeof(path), DATA "%s.trace.jsonl.gz", names[i]);
        assert_int_equal(vt_trace_load(&w[i], path, &err), VT_OK);
        assert_int_equal(vt_fit_add(f, names[i], NULL, &w[i], &err), VT_OK);
    }
    for (size_t i = 0; i < N; i += 2) /* every second one: a fit takes a second */
        assert_int_equal(vt_crossval_one(f, i, &w[i], &row[n++], NULL, &err), VT_OK);
    vt_crossval_sum(row, n, &median, &mean);
    if (median.e2e > 7 || median.itl > 7 || median.ttft > 18 || median.throughput > 5)
        fail_msg("median errors: E2E %.1f, ITL %.1f, TTFT %.1f, req/s %.1f %%",
                 median.e2e, median.itl, median.ttft, median.throughput);
    for (int i = 0; i < N; i++)
        vt_workload_free(&w[i]);
    vt_fit_free(f);
}

static void captures_without_steps_are_refused(void **state)
{
    struct vt_fit_shape shape = {0};
    struct vt_step_params p;
    struct vt_steps none = {0};
    struct vt_fit *f;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(vt_fit_new(&f, &shape, &err), VT_OK);
    assert_int_equal(vt_fit_add(f, "empty", &none, NULL, &err), VT_OK);
    assert_int_equal(vt_fit_solve(f, VT_FIT_ALL, &p, NULL, &err), VT_EINPUT);
    assert_string_equal(err.msg, "the captures hold no steps to fit");
    vt_fit_free(f);
}

int main(void)
{
    static bool steps = true, rebuilt = false;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_made_the_step_logs_is_found_back),
        cmocka_unit_test_prestate(a_load_left_out_is_predicted, &steps),
        cmocka_unit_test_prestate(a_load_left_out_is_predicted, &rebuilt),
        cmocka_unit_test_prestate(every_architecture_is_found_back, &architectures[0]),
        cmocka_unit_test_prestate(every_architecture_is_found_back, &architectures[1]),
        cmocka_unit_test_prestate(every_architecture_is_found_back, &architectures[2]),
        cmocka_unit_test_prestate(every_architecture_is_found_back, &architectures[3]),
        cmocka_unit_test_prestate(every_architecture_is_found_back, &architectures[4]),
        cmocka_unit_test(the_same_captures_give_the_same_profile),
        cmocka_unit_test(real_captures_are_predicted_from_the_others),
        cmocka_unit_test(captures_without_steps_are_refused),
    };

    return cmocka_run_group_tests_name("fit", tests, NULL, NULL);
}

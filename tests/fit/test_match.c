/* What a client saw of a few loads becomes a model that predicts others. */
#include "twin.h"

#define PROMPTS "prompt: {dist: lognormal, median: 300, sigma: 0.8, min: 8, max: 3000}"

static const char *const mine[] = {
    "{requests: 12, arrival: {process: closed, concurrency: 1}, " PROMPTS
    ", output: {dist: uniform, min: 5, max: 40}}",
    "{requests: 60, arrival: {process: closed, concurrency: 12}, " PROMPTS
    ", output: {dist: uniform, min: 5, max: 60}}",
    "{requests: 120, arrival: {process: closed, concurrency: 60}, " PROMPTS
    ", output: {dist: uniform, min: 10, max: 80}}",
    "{requests: 60, arrival: {process: poisson, rate: 9}, " PROMPTS
    ", output: {dist: uniform, min: 10, max: 80}}",
};
enum { N_MINE = VT_COUNT(mine) };

/* Not one of those above: longer prompts and outputs, another concurrency. */
static const char unseen[] =
    "{requests: 100, seed: 9, arrival: {process: closed, concurrency: 30}, prompt: "
    "{dist: lognormal, median: 600, sigma: 0.6, min: 8, max: 4000}, output: {dist: "
    "uniform, min: 20, max: 120}}";

/* Keeps the first token's time and the last one's. */
static void keep_ends_only(struct vt_workload *w)
{
    for (size_t i = 0; i < w->n; i++) {
        const struct vt_measured *m = &w->measured[i];
        vt_ns left = m->e2e_ns - m->ttft_ns;

        for (uint32_t k = 0; k < m->n_gaps; k++) {
            w->gap[m->first_gap + k] = left / (m->n_gaps - k);
            left -= w->gap[m->first_gap + k];
        }
    }
    w->n_by_mean = w->n;
}

struct bed {
    struct vt_workload w[N_MINE + 1]; /* the last one is not fitted */
    struct vt_match *m;
};

static void record_all(struct bed *b, const char *truth)
{
    struct vt_latency *model;
    struct vt_err err = {0};

    assert_int_equal(vt_model_open_inline(&model, truth, &err), VT_OK);
    for (size_t i = 0; i <= N_MINE; i++) {
        struct recorder r;

        record(&r, &b->w[i], model, i < N_MINE ? mine[i] : unseen);
        vt_steps_free(&r.steps);
        if (i < N_MINE)
            keep_ends_only(&b->w[i]);
    }
    vt_latency_close(model);
}

static void bed_free(struct bed *b)
{
    vt_match_free(b->m);
    for (size_t i = 0; i <= N_MINE; i++)
        vt_workload_free(&b->w[i]);
}

static void add_all(struct bed *b)
{
    struct vt_fit_shape shape = {0};
    struct vt_err err = {0};

    assert_int_equal(vt_match_new(&b->m, &shape, &err), VT_OK);
    for (size_t i = 0; i < N_MINE; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "load-%zu", i);
        if (vt_match_add(b->m, name, &b->w[i], &err) != VT_OK)
            fail_msg("%s", err.msg);
    }
}

static void predict(const struct vt_match_result *r, const struct vt_workload *w,
                    struct vt_summary *out)
{
    struct vt_sim_spec spec = {
        .workload = w, .arrivals = w->arrivals, .concurrency = w->concurrency};
    struct vt_buf b = {0};
    struct vt_profile p;
    struct vt_err err = {0};

    vt_buf_printf(&b, "{\"name\": \"x\", \"model\": %s}", r->model.data);
    if (vt_profile_parse(&p, "x", b.data, b.len, &err) != VT_OK)
        fail_msg("%s", err.msg);
    vt_engine_config_init(&spec.engine);
    vt_engine_config_take(&spec.engine, &w->meta);
    spec.model = p.model;
    if (vt_sim_run(&spec, out, &err) != VT_OK)
        fail_msg("%s", err.msg);
    vt_profile_close(&p);
    vt_buf_free(&b);
}

static struct truth {
    const char *name, *model, *kind;
} truths[] = {
    {"linear",
     "linear:queue=900,base=4000,prefill_token=30,decode=25,context_token=0.05",
     "linear"},
    {"blackbox", "blackbox:alpha=1500,2,200,beta=6000,25,30", "blackbox"},
};

static void what_ends_of_requests_tell_predicts_an_unseen_load(void **state)
{
    const struct truth *t = *state;
    struct vt_match_options o = {.kind = t->kind};
    struct vt_match_result r;
    struct vt_summary sim, real;
    struct bed b = {0};
    struct vt_err err = {0};

    record_all(&b, t->model);
    add_all(&b);
    if (vt_match_solve(b.m, &o, &r, &err) != VT_OK)
        fail_msg("%s", err.msg);
    if (vt_match_check(&r, &err) != VT_OK)
        fail_msg("%s", err.msg);
    predict(&r, &b.w[N_MINE], &sim);
    assert_int_equal(vt_summary_measured(&real, &b.w[N_MINE], &err), VT_OK);
    near("E2E", sim.e2e.mean, real.e2e.mean, 0.03);
    near("TTFT", sim.ttft.mean, real.ttft.mean, 0.03);
    near("ITL", sim.itl.mean, real.itl.mean, 0.03);
    near("ITL p99", sim.itl.p99, real.itl.p99, 0.08);
    near("throughput", sim.req_per_s, real.req_per_s, 0.03);
    vt_match_result_free(&r);
    bed_free(&b);
}

static void a_load_without_times_is_refused(void **state)
{
    struct vt_fit_shape shape = {0};
    struct vt_workload w = {0};
    struct vt_match *m;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(vt_match_new(&m, &shape, &err), VT_OK);
    assert_int_equal(vt_match_add(m, "x", &w, &err), VT_EINPUT);
    assert_string_equal(err.msg, "x: no timings to fit");
    vt_match_free(m);
}

int main(void)
{
    struct CMUnitTest tests[VT_COUNT(truths) + 1] = {
        cmocka_unit_test(a_load_without_times_is_refused),
    };

    for (size_t i = 0; i < VT_COUNT(truths); i++)
        tests[1 + i] = (struct CMUnitTest){
            .name = truths[i].name,
            .test_func = what_ends_of_requests_tell_predicts_an_unseen_load,
            .initial_state = &truths[i],
        };
    return cmocka_run_group_tests_name("match", tests, NULL, NULL);
}

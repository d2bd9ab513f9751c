/* Which captures are believed, what is refused, and that what is not refused is right.
 */
#include "twin.h"

#include "fit/internal.h"

/* ---- limits ------------------------------------------------------------- */

struct stated {
    uint32_t blocks, seqs;
    const char *gpu;
};

static struct limits_row {
    const char *name;
    struct stated said[4]; /* by captures a, b, c and d; all zero: there is none */
    const char *from;
    struct stated want;
    const char *note, *refusal; /* what is said; NULL: nothing */
} limits[] = {
    {"what captures agree on holds",
     {{3000, 256, "H200"}, {3000, 256, "H200"}},
     .want = {3000, 256, "H200"}},
    {"who does not say it does not count",
     {{0, 256, NULL}, {3000, 0, "H200"}},
     .want = {3000, 256, "H200"}},
    {"most are right and the odd one is named, wherever it stands",
     {{3000, 256, "H200"}, {45781, 256, "H200"}, {45781, 256, "H200"}},
     .want = {45781, 256, "H200"},
     .note = "a: num_gpu_blocks is 3000, the profile states 45781 as the others do"},
    {"two that differ are refused",
     {{3000, 256, "H200"}, {45781, 256, "H200"}},
     .refusal = "captures differ in num_gpu_blocks: a says 3000, b 45781; --limits-of "
                "NAME says which is right"},
    {"two GPUs are refused",
     {{3000, 256, "H200"}, {3000, 256, "H100"}},
     .refusal = "captures differ in gpu: a says H200, b H100; --limits-of NAME says "
                "which is right"},
    {"the user's word beats theirs",
     {{3000, 128, "H200"}, {45781, 256, "H200"}, {45781, 256, "H200"}},
     .from = "a",
     .want = {3000, 128, "H200"},
     .note = "b: max_num_seqs is 256, the profile states 128"},
    {"a name that no capture has is refused",
     {{3000, 128, "H200"}},
     .from = "e",
     .refusal = "there is no capture 'e'"},
};

static void captures_state_one_engine(void **state)
{
    const struct limits_row *r = *state;
    struct vt_fit_shape shape = {0};
    struct vt_steps none = {0};
    struct vt_buf notes = {0};
    struct vt_err err = {0};
    struct vt_fit *f;
    int rc;

    assert_int_equal(vt_fit_new(&f, &shape, &err), VT_OK);
    for (int i = 0; i < 4 && (r->said[i].blocks > 0 || r->said[i].seqs > 0); i++) {
        const char name[] = {(char)('a' + i), '\0'};
        struct vt_workload w = {.meta = {.num_gpu_blocks = r->said[i].blocks,
                                         .max_num_seqs = r->said[i].seqs,
                                         .gpu = r->said[i].gpu}};

        assert_int_equal(vt_fit_add(f, name, &none, &w, &err), VT_OK);
    }
    rc = vt_fit_agree(f, r->from, &notes, &err);
    assert_int_equal(rc, r->refusal ? VT_EINPUT : VT_OK);
    if (r->refusal) {
        assert_string_equal(err.msg, r->refusal);
    } else {
        const struct vt_meta *m = vt_fit_engine(f);

        assert_int_equal(m->num_gpu_blocks, r->want.blocks);
        assert_int_equal(m->max_num_seqs, r->want.seqs);
        assert_string_equal(m->gpu, r->want.gpu);
    }
    assert_true(r->note ? notes.len > 0 && strstr(notes.data, r->note) != NULL
                        : notes.len == 0);
    vt_buf_free(&notes);
    vt_fit_free(f);
}

/* ---- whom to believe ------------------------------------------------------ */

/* What the fitted model says of a load that it never saw, beside what made the
 * captures. */
static void predict(const struct vt_latency *m, struct vt_summary *out)
{
    static const char unseen[] =
        "{requests: 150, arrival: {process: poisson, rate: 7}, prompt: {dist: "
        "lognormal, "
        "median: 500, sigma: 0.8, min: 8, max: 6000}, output: {dist: uniform, min: 20, "
        "max: 120}}";
    struct vt_workload w = {0};
    struct vt_sim_spec spec = {.workload = &w, .model = m};
    struct vt_err err = {0};

    assert_int_equal(
        vt_workload_generate_text(&w, "unseen", unseen, strlen(unseen), -1, &err),
        VT_OK);
    vt_engine_config_init(&spec.engine);
    spec.engine.max_num_seqs = 256;
    spec.arrivals = w.arrivals;
    if (vt_sim_run(&spec, out, &err) != VT_OK)
        fail_msg("%s", err.msg);
    vt_workload_free(&w);
}

/* Captures of another kind of model, with stalls and one run of a slower machine. */
static void what_others_made_is_found_in_spite_of_stalls_and_an_odd_run(void **state)
{
    const char *truth = *state;
    const struct mishaps mishaps = {first_uses, N_FIRST_USES, .pace = 1.8, .odd = 2,
                                    .brief = true};
    struct captures c;
    struct vt_step_params p;
    struct vt_summary real, fitted;
    struct vt_latency *m;
    struct vt_buf notes = {0};
    struct vt_err err = {0};

    make_captures(&c, truth, &mishaps);
    assert_int_equal(vt_fit_sort_out(c.fit, &notes, &err), VT_OK);
    assert_true(notes.len > 0);
    if (strncmp(notes.data, "load-2: took 1.", 15) != 0 ||
        strchr(notes.data, '\n') != notes.data + notes.len - 1)
        fail_msg("%s", notes.data);
    assert_true(vt_fit_look(c.fit, 2).odd && !vt_fit_look(c.fit, 1).odd);
    assert_int_equal(vt_fit_solve(c.fit, VT_FIT_ALL, &p, NULL, &err), VT_OK);
    assert_int_equal(vt_fit_check_params(c.fit, &p, &err), VT_OK);
    assert_int_equal(vt_model_open_inline(&m, truth, &err), VT_OK);
    predict(m, &real);
    vt_latency_close(m);
    assert_int_equal(vt_step_open(&m, &p, &err), VT_OK);
    predict(m, &fitted);
    vt_latency_close(m);
    near("E2E", fitted.e2e.mean, real.e2e.mean, 0.05);
    near("ITL", fitted.itl.mean, real.itl.mean, 0.05);
    near("TTFT", fitted.ttft.mean, real.ttft.mean, 0.1);
    near("req/s", fitted.req_per_s, real.req_per_s, 0.02);
    vt_buf_free(&notes);
    free_captures(&c);
}

/* No two moments of a real machine are quite alike: every 200 ms have a pace of their
 * own. */
static double usual_pace(vt_ns slot)
{
    return 0.92 + 0.16 * vt_draw_f64(11, 1, (uint64_t)slot);
}

static vt_ns wobbly(const void *user, vt_ns t)
{
    const vt_ns slot = 200 * VT_MS;
    double at = (double)(t % slot) * usual_pace(t / slot);

    (void)user;
    for (vt_ns i = 0; i < t / slot; i++)
        at += (double)slot * usual_pace(i);
    return (vt_ns)at;
}

/* The only one with many requests at once: the model can bend to it and still suit the
 * others about as well as their noise allows. */
static void an_odd_run_is_found_among_noise(void **state)
{
    struct vt_fit_shape shape = {0};
    struct captures c;
    struct vt_buf notes = {0};
    struct vt_err err = {0};

    (void)state;
    make_captures(&c, TRUTH, &(struct mishaps){.pace = 1.5, .odd = 2, .brief = true});
    vt_fit_free(c.fit);
    assert_int_equal(vt_fit_new(&c.fit, &shape, &err), VT_OK);
    for (int i = 0; i < N_LOADS; i++) {
        change_times(&c.r[i], wobbly, NULL);
        assert_int_equal(
            vt_fit_add(c.fit, i == 2 ? "odd" : "usual", &c.r[i].steps, &c.w[i], &err),
            VT_OK);
    }
    assert_int_equal(vt_fit_sort_out(c.fit, &notes, &err), VT_OK);
    for (size_t i = 0; i < N_LOADS; i++)
        assert_int_equal(vt_fit_look(c.fit, i).odd, i == 2);
    assert_non_null(strstr(notes.data, "odd: took 1."));
    vt_buf_free(&notes);
    free_captures(&c);
}

/* Of three, one is of another machine: each pair of them has its own truth. */
static void three_that_contradict_each_other_are_told_without_a_name(void **state)
{
    struct vt_fit_shape shape = {0};
    struct captures c;
    struct vt_buf notes = {0};
    struct vt_err err = {0};

    (void)state;
    make_captures(&c, TRUTH, &(struct mishaps){.brief = true});
    vt_fit_free(c.fit);
    assert_int_equal(vt_fit_new(&c.fit, &shape, &err), VT_OK);
    change_pace(&c.r[1], 0.3);
    change_pace(&c.r[2], 2.5);
    for (int i = 0; i < 3; i++)
        assert_int_equal(vt_fit_add(c.fit, "one", &c.r[i].steps, &c.w[i], &err), VT_OK);
    assert_int_equal(vt_fit_sort_out(c.fit, &notes, &err), VT_OK);
    for (size_t i = 0; i < 3; i++)
        assert_false(vt_fit_look(c.fit, i).odd);
    assert_true(notes.len == 0 || strstr(notes.data, "no majority can tell"));
    vt_buf_free(&notes);
    free_captures(&c);
}

static void captures_of_one_machine_are_all_believed(void **state)
{
    struct captures c;
    struct vt_buf notes = {0};
    struct vt_err err = {0};

    make_captures(&c, *state, &(struct mishaps){.pace = 1.08, .odd = 1, .brief = true});
    assert_int_equal(vt_fit_sort_out(c.fit, &notes, &err), VT_OK);
    assert_int_equal(notes.len, 0);
    free_captures(&c);
}

/* The only one with long contexts may be what the model can't say: nobody else knows.
 */
static void the_only_capture_of_its_kind_contradicts_nobody(void **state)
{
    static const char longer[] =
        "{requests: 12, arrival: {process: closed, concurrency: 4}, prompt: {dist: "
        "uniform, min: 9000, max: 12000}, output: {dist: uniform, min: 60, max: 90}}";
    struct vt_fit_shape shape = {0};
    struct captures c;
    struct vt_latency *m;
    struct vt_buf notes = {0};
    struct vt_err err = {0};

    (void)state;
    make_captures(&c, TRUTH, &(struct mishaps){.brief = true});
    vt_steps_free(&c.r[1].steps);
    vt_workload_free(&c.w[1]);
    assert_int_equal(vt_model_open_inline(&m, TRUTH, &err), VT_OK);
    record(&c.r[1], &c.w[1], m, longer);
    vt_latency_close(m);
    change_pace(&c.r[1], 1.8);
    vt_fit_free(c.fit);
    assert_int_equal(vt_fit_new(&c.fit, &shape, &err), VT_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(
            vt_fit_add(c.fit, i == 1 ? "long" : "short", &c.r[i].steps, &c.w[i], &err),
            VT_OK);
    assert_int_equal(vt_fit_sort_out(c.fit, &notes, &err), VT_OK);
    assert_true(notes.len == 0 || strncmp(notes.data, "long", 4) != 0);
    assert_false(vt_fit_look(c.fit, 1).odd);
    vt_buf_free(&notes);
    free_captures(&c);
}

/* ---- what no GPU and no engine does --------------------------------------- */

static struct physics_row {
    const char *name;
    struct vt_fit_physics least;
    const char *refusal; /* how it begins; NULL: fine */
} physics[] = {
    {"steps slower than the weights' bytes", {"a GPU", 5500, 20}, NULL},
    {"decode steps faster than the weights can be read",
     {"a GPU", 9500, 0},
     "load-0: decode steps take "},
    {"prompts faster than the GPU computes", {"a GPU", 0, 400}, "load-0: "},
    {"nothing is known", {"a GPU", 0, 0}, NULL},
};

static void captures_faster_than_physics_are_refused(void **state)
{
    const struct physics_row *r = *state;
    struct captures c;
    struct vt_err err = {0};
    int rc;

    make_captures(&c, TRUTH, &(struct mishaps){.brief = true});
    rc = vt_fit_check_captures(c.fit, &r->least, &err);
    assert_int_equal(rc, r->refusal ? VT_ECHECK : VT_OK);
    if (r->refusal && strncmp(err.msg, r->refusal, strlen(r->refusal)) != 0)
        fail_msg("%s", err.msg);
    free_captures(&c);
}

/* A launch that no host takes, in one capture of five: it is found and named. */
static void a_capture_that_makes_absurd_costs_is_named(void **state)
{
    static const char absurd[] =
        "step:base=6000,graph_token=25,eager_token=30,host_launch_mixed=9000,"
        "host_launch_eager=900000";
    struct captures c;
    struct vt_step_params p;
    struct vt_fit_shape shape = {0};
    struct vt_fit *alone;
    struct vt_latency *m;
    struct vt_err err = {0};

    (void)state;
    make_captures(&c, TRUTH, &(struct mishaps){.brief = true});
    assert_int_equal(vt_model_open_inline(&m, absurd, &err), VT_OK);
    vt_steps_free(&c.r[1].steps);
    vt_workload_free(&c.w[1]);
    record(&c.r[1], &c.w[1], m, short_loads[1]);
    vt_latency_close(m);
    assert_int_equal(vt_fit_new(&alone, &shape, &err), VT_OK);
    assert_int_equal(vt_fit_add(alone, "slow", &c.r[1].steps, &c.w[1], &err), VT_OK);
    assert_int_equal(vt_fit_solve(alone, VT_FIT_ALL, &p, NULL, &err), VT_OK);
    assert_int_equal(vt_fit_check_params(alone, &p, &err), VT_ECHECK);
    if (strncmp(err.msg, "slow: launch kernel by kernel of ", 33) != 0)
        fail_msg("%s", err.msg);
    assert_int_equal(vt_fit_solve(c.fit, VT_FIT_ALL, &p, NULL, &err), VT_OK);
    assert_int_equal(vt_fit_check_params(c.fit, &p, &err), VT_OK);
    p.base = NAN;
    assert_int_equal(vt_fit_check_params(c.fit, &p, &err), VT_ECHECK);
    vt_fit_free(alone);
    free_captures(&c);
}

/* ---- verdicts --------------------------------------------------------------- */

static struct verdict_row {
    const char *name;
    struct vt_crossval_row median;
    const char *why; /* NULL: good */
} verdicts[] = {
    {"as a second run would be", {NULL, 4, 5, 15, 5, 10, 1}, NULL},
    {"tails are not judged", {NULL, 4, 5, 90, 5, 90, 1}, NULL},
    {"E2E", {NULL, 21, 5, 15, 5, 10, 1}, "E2E is off by 21 %, and 20 is the most"},
    {"TTFT", {NULL, 4, 335, 15, 5, 10, 1}, "TTFT is off by 335 %, and 40 is the most"},
    {"ITL", {NULL, 4, 5, 15, 34, 10, 1}, "ITL is off by 34 %, and 20 is the most"},
    {"throughput",
     {NULL, 4, 5, 15, 5, 10, 16},
     "req/s is off by 16 %, and 15 is the most"},
};

static void errors_beyond_noise_are_bad(void **state)
{
    const struct verdict_row *r = *state;
    char why[128];

    assert_int_equal(vt_crossval_bad(&r->median, why, sizeof(why)), r->why != NULL);
    assert_string_equal(why, r->why ? r->why : "");
}

/* Prompts that were cached before the capture began are computed in a prediction. */
static void hits_that_the_capture_does_not_explain_are_told(void **state)
{
    struct captures c;
    struct vt_buf model = {0};
    struct vt_crossval_row row;
    struct vt_step_params p;
    struct vt_err err = {0};

    (void)state;
    make_captures(&c, TRUTH, &(struct mishaps){.brief = true});
    assert_int_equal(vt_fit_solve(c.fit, VT_FIT_ALL, &p, NULL, &err), VT_OK);
    vt_fit_step_model(&model, &p);
    for (size_t i = 0; i < c.w[1].n; i++)
        c.w[1].measured[i].cached_tokens = c.w[1].req[i].prompt_tokens / 2;
    assert_int_equal(
        vt_crossval_in_sample(c.fit, 1, model.data, &c.w[1], &row, NULL, &err), VT_OK);
    assert_true(fabs(row.foreign_hits - 50) < 1);
    /* Those that earlier requests of the capture explain are none of them. */
    assert_int_equal(
        vt_crossval_in_sample(c.fit, 4, model.data, &c.w[4], &row, NULL, &err), VT_OK);
    assert_true(c.w[4].measured[c.w[4].n - 1].cached_tokens > 0);
    assert_true(fabs(row.foreign_hits) < VT_FOREIGN_HITS);
    vt_buf_free(&model);
    free_captures(&c);
}

/* What the step log tells of is the engine; a trace beside it may be a client's. */
static void a_capture_is_predicted_by_its_trace_s_clock(void **state)
{
    static const struct {
        enum vt_clock clock;
        double least_ms, most_ms; /* that first tokens come later */
    } rows[] = {
        {VT_CLOCK_UNSTATED, 0, 0}, {VT_CLOCK_TAP, 0.01, 1}, {VT_CLOCK_CLIENT, 0.7, 3}};
    struct captures c;
    struct vt_buf model = {0};
    struct vt_crossval_row engine, row;
    struct vt_summary real;
    struct vt_step_params p;
    struct vt_err err = {0};
    enum { POISSON = 3 };

    (void)state;
    make_captures(&c, TRUTH, &(struct mishaps){.brief = true});
    assert_int_equal(vt_fit_solve(c.fit, VT_FIT_ALL, &p, NULL, &err), VT_OK);
    vt_fit_step_model(&model, &p);
    assert_int_equal(vt_summary_measured(&real, &c.w[POISSON], &err), VT_OK);
    c.w[POISSON].meta.clock = VT_CLOCK_ENGINE;
    assert_int_equal(vt_crossval_in_sample(c.fit, POISSON, model.data, &c.w[POISSON],
                                           &engine, NULL, &err),
                     VT_OK);
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        double later_ms;

        c.w[POISSON].meta.clock = rows[i].clock;
        assert_int_equal(vt_crossval_in_sample(c.fit, POISSON, model.data,
                                               &c.w[POISSON], &row, NULL, &err),
                         VT_OK);
        later_ms = (row.ttft - engine.ttft) / 100 * real.ttft.mean;
        if (later_ms < rows[i].least_ms || later_ms > rows[i].most_ms)
            fail_msg("%s: %g ms later", vt_clock_name(rows[i].clock), later_ms);
    }
    vt_buf_free(&model);
    free_captures(&c);
}

/* Times that follow from nothing in the log: every 40 ms run at a speed of their own.
 */
static double own_pace(vt_ns slot)
{
    return 0.1 + 6 * vt_draw_f64(7, 1, (uint64_t)slot);
}

static vt_ns scattered(const void *user, vt_ns t)
{
    const vt_ns slot = 40000000;
    double at = (double)(t % slot) * own_pace(t / slot);

    (void)user;
    for (vt_ns i = 0; i < t / slot; i++)
        at += (double)slot * own_pace(i);
    return (vt_ns)at;
}

static void garbage_does_not_cross_validate(void **state)
{
    enum { N = 3 };
    struct captures c;
    struct vt_crossval_row row, calm[N], median, mean;
    struct vt_fit_shape shape = {0};
    struct vt_err err = {0};
    char why[128];

    (void)state;
    make_captures(&c, TRUTH, &(struct mishaps){.brief = true});
    vt_fit_free(c.fit);
    assert_int_equal(vt_fit_new(&c.fit, &shape, &err), VT_OK);
    for (int i = 0; i < N; i++) {
        change_pace(&c.r[i], i == 0 ? 9 : i == 1 ? 1 : 4);
        change_times(&c.r[i], scattered, NULL);
        assert_int_equal(vt_fit_add(c.fit, "garbage", &c.r[i].steps, &c.w[i], &err),
                         VT_OK);
    }
    for (size_t i = 0; i < N; i++)
        assert_int_equal(vt_crossval_one(c.fit, i, &c.w[i], &row, &calm[i], &err),
                         VT_OK);
    vt_crossval_sum(calm, N, &median, &mean);
    assert_true(vt_crossval_bad(&median, why, sizeof(why)));
    free_captures(&c);
}

/* ---- what one more is expected to be off by ------------------------------ */

/* Errors with long tails, and as few of them as a folder of captures has. */
static void an_expected_error_is_kept_in_75_to_90_percent(void **state)
{
    enum { MOST = 12, TURNS = 4000 };
    struct vt_rng rng;

    (void)state;
    vt_rng_init(&rng, 1, "errors");
    for (size_t n = 3; n <= MOST; n++) {
        struct vt_crossval_row row[MOST] = {0}, expected;
        double kept = 0;

        for (int turn = 0; turn < TURNS; turn++) {
            for (size_t i = 0; i < n; i++)
                row[i].itl = 3 * vt_rng_normal(&rng) * vt_rng_exp(&rng);
            vt_crossval_expect(row, n, &expected);
            kept += fabs(3 * vt_rng_normal(&rng) * vt_rng_exp(&rng)) <= expected.itl;
        }
        if (kept < 0.74 * TURNS || kept > 0.90 * TURNS)
            fail_msg("of %zu: kept in %.1f %%", n, 100 * kept / TURNS);
    }
}

static void what_was_not_judged_three_times_is_not_promised(void **state)
{
    struct vt_crossval_row row[4] = {{.e2e = -1, .ttft = 1, .ttft_p99 = NAN},
                                     {.e2e = 2, .ttft = 1, .ttft_p99 = NAN},
                                     {.e2e = -3, .ttft = NAN, .ttft_p99 = NAN},
                                     {.e2e = 0, .ttft = NAN, .ttft_p99 = NAN}};
    struct vt_crossval_row expected;

    (void)state;
    vt_crossval_expect(row, 4, &expected);
    assert_float_equal(expected.e2e, 3, 1e-9);
    assert_true(isnan(expected.ttft) && isnan(expected.ttft_p99));
    vt_crossval_expect(row, 2, &expected);
    assert_true(isnan(expected.e2e));
}

int main(void)
{
    static char blackbox[] = "blackbox:alpha=1000,1,0,beta=6000,30,40",
                linear[] =
                    "linear:base=5000,request=25,prefill_token=20,context_token=0.04",
                step[] = TRUTH;
    struct CMUnitTest tests[64];
    size_t n = 0;

#define ROWS(table, test)                        \
    for (size_t i = 0; i < VT_COUNT(table); i++) \
    tests[n++] = (struct CMUnitTest){            \
        .name = (table)[i].name, .test_func = (test), .initial_state = &(table)[i]}
#define ONE(test, with)               \
    tests[n++] = (struct CMUnitTest){ \
        .name = #test, .test_func = (test), .initial_state = (with)}
    ROWS(limits, captures_state_one_engine);
    ONE(what_others_made_is_found_in_spite_of_stalls_and_an_odd_run, blackbox);
    ONE(what_others_made_is_found_in_spite_of_stalls_and_an_odd_run, linear);
    ONE(an_odd_run_is_found_among_noise, NULL);
    ONE(three_that_contradict_each_other_are_told_without_a_name, NULL);
    ONE(captures_of_one_machine_are_all_believed, step);
    ONE(the_only_capture_of_its_kind_contradicts_nobody, NULL);
    ROWS(physics, captures_faster_than_physics_are_refused);
    ONE(a_capture_that_makes_absurd_costs_is_named, NULL);
    ROWS(verdicts, errors_beyond_noise_are_bad);
    ONE(an_expected_error_is_kept_in_75_to_90_percent, NULL);
    ONE(what_was_not_judged_three_times_is_not_promised, NULL);
    ONE(hits_that_the_capture_does_not_explain_are_told, NULL);
    ONE(a_capture_is_predicted_by_its_trace_s_clock, NULL);
    ONE(garbage_does_not_cross_validate, NULL);
    return _cmocka_run_group_tests("judge", tests, n, NULL, NULL);
}

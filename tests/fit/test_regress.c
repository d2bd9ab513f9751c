/* Regression over steps and requests: what made the rows is found back, by each
 * learner, also where another kind of model made them; rules, tables, and the model. */
#include "twin.h"

enum { WARMUP = 10 };

static struct vt_regress_data *data_of(const struct captures *c, int from, int to)
{
    struct vt_regress_engine e = {
        .tp = 1, .max_num_seqs = 256, .num_gpu_blocks = 20001};
    struct vt_regress_data *d;
    struct vt_err err = {0};

    assert_int_equal(vt_regress_data_new(&d, WARMUP, &err), VT_OK);
    for (int i = from; i < to; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "load-%d", i);
        assert_int_equal(vt_regress_data_add(d, name, &e, &c->r[i].steps, NULL, &err),
                         VT_OK);
    }
    return d;
}

static struct vt_regress solved(const struct vt_regress_data *d,
                                struct vt_regress_options o)
{
    struct vt_regress r;
    struct vt_err err = {0};

    o.degree = o.degree > 0 ? o.degree : 1;
    if (vt_regress_solve(&r, d, VT_REGRESS_STEP, &o, &err) != VT_OK)
        fail_msg("%s", err.msg);
    return r;
}

static double coefficient(const struct vt_regress *r, const char *name)
{
    for (size_t i = 0; i < r->terms.n; i++) {
        char own[VT_TERM_NAME];

        vt_term_name(own, &r->terms.term[i]);
        if (strcmp(own, name) == 0)
            return r->terms.coefficient[i];
    }
    fail_msg("no term %s", name);
    return 0;
}

/* ---- what went in comes out ------------------------------------------------ */

#define LINEAR \
    "linear:base=4000,request=25,prefill_token=8,decode=30,context_token=0.02"

static const struct found_back {
    const char *name;
    enum vt_learner learner;
    double lambda, within;
} learners[] = {
    {"linear finds the coefficients", VT_LEARN_LINEAR, NAN, 1e-4},
    {"ridge finds them with next to no penalty", VT_LEARN_RIDGE, 1e-7, 1e-2},
    {"lasso finds them with next to no penalty", VT_LEARN_LASSO, 1e-6, 1e-2},
    {"non-negative finds them, since none is below 0", VT_LEARN_NONNEGATIVE, NAN, 1e-4},
};

static struct captures made;

static void coefficients_are_found_back(void **state)
{
    const struct found_back *f = *state;
    struct vt_regress_data *d = data_of(&made, 0, N_LOADS);
    struct vt_regress r =
        solved(d, (struct vt_regress_options){
                      .learner = f->learner,
                      .lambda = f->lambda,
                      .terms = "num_prefill,num_decode,prefill_tokens,decode_context"});

    near("base", r.terms.intercept, 4000, f->within);
    near("a prompt", coefficient(&r, "num_prefill"), 25, 20 * f->within);
    near("a decode", coefficient(&r, "num_decode"), 55, 20 * f->within);
    near("a token", coefficient(&r, "prefill_tokens"), 8, f->within);
    near("context", coefficient(&r, "decode_context"), 0.02, 20 * f->within);
    assert_true(r.in_sample.r2 > 0.9999);
    vt_regress_free(&r);
    vt_regress_data_free(d);
}

static void a_found_lambda_does_as_well(void **state)
{
    static const enum vt_learner kinds[] = {VT_LEARN_RIDGE, VT_LEARN_LASSO};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(kinds); i++) {
        struct vt_regress_data *d = data_of(&made, 0, N_LOADS);
        struct vt_regress r =
            solved(d, (struct vt_regress_options){
                          .learner = kinds[i],
                          .lambda = NAN,
                          .hold_out = 0.2,
                          .terms = "num_prefill,num_decode,prefill_tokens,"
                                   "decode_context"});

        assert_true(r.lambda > 0 && r.lambda <= 10);
        near("base", r.terms.intercept, 4000, 0.05);
        assert_true(r.held_out.n > 0 && r.held_out.r2 > 0.99);
        vt_regress_free(&r);
        vt_regress_data_free(d);
    }
}

static void lasso_leaves_out_what_does_not_matter(void **state)
{
    struct vt_regress_data *d = data_of(&made, 0, N_LOADS);
    struct vt_regress r = solved(
        d, (struct vt_regress_options){
               .learner = VT_LEARN_LASSO,
               .lambda = 0.02,
               .terms = "prefill_tokens,num_decode,decode_context,queue_depth^2"});

    (void)state;
    assert_true(coefficient(&r, "prefill_tokens") > 7);
    assert_true(fabs(coefficient(&r, "queue_depth^2")) < 1e-12);
    assert_int_equal(r.state[3], VT_TERM_ZERO);
    vt_regress_free(&r);
    vt_regress_data_free(d);
}

/* ---- terms -------------------------------------------------------------------- */

static void same_and_constant_terms_are_named(void **state)
{
    struct vt_regress_data *d = data_of(&made, 0, N_LOADS);
    struct vt_regress r =
        solved(d, (struct vt_regress_options){.terms = "num_decode,decode_tokens,tp"});
    struct vt_buf b = {0};

    (void)state;
    assert_int_equal(r.state[0], VT_TERM_USED);
    assert_int_equal(r.state[1], VT_TERM_EXPLAINED);
    assert_int_equal(r.state[2], VT_TERM_CONSTANT);
    vt_regress_put(&b, &r);
    assert_non_null(strstr(b.data, "decode_tokens"));
    assert_non_null(strstr(b.data, "explained by terms above"));
    assert_non_null(strstr(b.data, "us/request"));
    vt_buf_free(&b);
    vt_regress_free(&r);
    vt_regress_data_free(d);
}

static void powers_and_products_come_by_name(void **state)
{
    struct vt_regress_data *d = data_of(&made, 0, N_LOADS);
    struct vt_regress r =
        solved(d, (struct vt_regress_options){
                      .degree = 2, .terms = "num_decode,prefill_tokens*num_decode"});

    (void)state;
    assert_int_equal(r.terms.n, 3); /* the product has no powers of its own */
    (void)coefficient(&r, "num_decode^2");
    (void)coefficient(&r, "prefill_tokens*num_decode");
    vt_regress_free(&r);
    vt_regress_data_free(d);
}

static const struct refused {
    const char *terms, *why;
} refused[] = {
    {"num_decod", "unknown feature 'num_decod' (did you mean 'num_decode'?)"},
    {"num_decode^9", "'num_decode^9': a power is 1 to 8"},
    {"prompt_tokens", "'prompt_tokens' is not known of a step"},
    {"tp*num_decode*kv_ratio*kv_blocks*num_prefill", "too many factors"},
    {"num_decode,,tp", "unknown feature ''"},
};

static void bad_terms_are_refused(void **state)
{
    struct vt_regress_data *d = data_of(&made, 0, 1);

    (void)state;
    for (size_t i = 0; i < VT_COUNT(refused); i++) {
        struct vt_regress_options o = {.degree = 1, .terms = refused[i].terms};
        struct vt_err err = {0};
        struct vt_regress r;

        assert_int_equal(vt_regress_solve(&r, d, VT_REGRESS_STEP, &o, &err), VT_EINPUT);
        if (!strstr(err.msg, refused[i].why))
            fail_msg("'%s', not '%s'", err.msg, refused[i].why);
    }
    vt_regress_data_free(d);
}

/* ---- rules ----------------------------------------------------------------------- */

static vt_ns later(vt_ns t, vt_ns from, vt_ns by)
{
    return t >= from ? t + by : t;
}

static void a_stall_is_no_lesson(void **state)
{
    struct vt_steps *steps = &made.r[2].steps;
    size_t odd = steps->n / 2;
    vt_ns at, by = 900 * VT_MS;
    struct vt_regress_data *d;
    struct vt_regress r;

    (void)state;
    while (steps->step[odd].n_prefill > 0) /* of pure decodes there are many alike */
        odd++;
    at = steps->step[odd].out_ns;
    for (size_t i = odd; i < steps->n; i++) {
        struct vt_step_line *s = &steps->step[i];

        s->sched_ns = later(s->sched_ns, at, by);
        s->out_ns = later(s->out_ns, at, by);
    }
    d = data_of(&made, 0, N_LOADS);
    r = solved(d, (struct vt_regress_options){
                      .terms = "num_prefill,num_decode,prefill_tokens,decode_context"});
    assert_int_equal(r.left_out[VT_ROW_STALL], 1);
    assert_int_equal(r.left_out[VT_ROW_WARMUP], WARMUP * N_LOADS);
    near("base", r.terms.intercept, 4000, 1e-3);
    vt_regress_free(&r);
    vt_regress_data_free(d);
    for (size_t i = odd; i < steps->n; i++) {
        struct vt_step_line *s = &steps->step[i];

        s->sched_ns = later(s->sched_ns, at + by, -by);
        s->out_ns = later(s->out_ns, at + by, -by);
    }
}

/* ---- judged on what another kind made ----------------------------------------------
 */

static const struct crossed {
    const char *name, *truth, *terms;
    enum vt_learner learner;
    double r2; /* at least, of captures that were left out */
} crossed[] = {
    {"linear on blackbox", "blackbox:alpha=1000,0,0,beta=5000,10,20", NULL,
     VT_LEARN_LINEAR, 0.999},
    {"non-negative on linear", LINEAR,
     "num_prefill,num_decode,prefill_tokens,decode_context", VT_LEARN_NONNEGATIVE,
     0.999},
    {"ridge on regression with a product",
     "regression:intercept=3000,prefill_tokens=9,num_decode*decode_context=0.0002",
     "num_prefill,num_decode,prefill_tokens,num_decode*decode_context", VT_LEARN_RIDGE,
     0.99},
    {"lasso on step", TRUTH,
     "num_prefill,num_decode,prefill_tokens,decode_context,prefill_context",
     VT_LEARN_LASSO, 0.6},
    {"non-negative on step", TRUTH,
     "num_prefill,num_decode,prefill_tokens,decode_context,prefill_context",
     VT_LEARN_NONNEGATIVE, 0.6},
};

static void each_learner_predicts_what_another_kind_made(void **state)
{
    const struct crossed *x = *state;
    struct captures c;
    struct vt_regress_data *d;
    struct vt_regress r;
    double r2 = 0;
    size_t n = 0;

    make_captures(&c, x->truth, &(struct mishaps){.brief = true});
    d = data_of(&c, 0, N_LOADS);
    r = solved(d, (struct vt_regress_options){
                      .learner = x->learner, .lambda = NAN, .terms = x->terms});
    assert_int_equal(r.n_groups, N_LOADS);
    for (size_t i = 0; i < r.n_groups; i++)
        if (isfinite(r.group[i].score.r2)) {
            r2 += r.group[i].score.r2;
            n++;
        }
    if (!(r2 / (double)n >= x->r2))
        fail_msg("R2 %.4f, not %.4f", r2 / (double)n, x->r2);
    vt_regress_free(&r);
    vt_regress_data_free(d);
    free_captures(&c);
}

/* ---- across models and GPUs
 * ---------------------------------------------------------- */

/* Two models on two GPUs whose steps are what the peaks allow, twice over: times these,
 * coefficients found on some hold for the one that was left out. */
static void coefficients_hold_for_other_engines(void **state)
{
    static const char *const model[] = {"qwen3-8b", "llama-3.1-8b-instruct",
                                        "qwen3-0.6b"};
    static const char *const gpu[] = {"H100", "H200", "A100-80"};
    struct vt_regress_data *d;
    struct vt_regress r;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(vt_regress_data_new(&d, 0, &err), VT_OK);
    for (int i = 0; i < 9; i++) {
        struct vt_step_line line[60];
        struct vt_step_prefill prompt = {"x", 0, 0, 0};
        struct vt_step_prefill prompts[60];
        struct vt_steps steps = {.step = line, .n = VT_COUNT(line)};
        double v[VT_FEATURES] = {0};
        struct vt_arch arch;
        struct vt_gpu g;
        struct vt_regress_engine e = {.model = model[i % 3],
                                      .gpu = gpu[i / 3],
                                      .arch = &arch,
                                      .hardware = &g,
                                      .tp = 1};
        vt_ns at = 0;
        char name[32];

        assert_int_equal(vt_arch_load(&arch, e.model, &err), VT_OK);
        assert_int_equal(vt_gpu_find(&g, e.gpu, NULL, &err), VT_OK);
        vt_features_of_engine(v, &arch, &g, 1);
        for (uint32_t k = 0; k < VT_COUNT(line); k++) {
            double us;

            prompts[k] = prompt;
            prompts[k].tokens = prompts[k].prompt_tokens = k % 7 * 100;
            line[k] = (struct vt_step_line){.step = k,
                                            .sched_ns = at,
                                            .decodes = 1 + k % 11,
                                            .decode_ctx = 1000 + k * 37 % 5000,
                                            .prefill = &prompts[k],
                                            .n_prefill = k % 7 > 0};
            us = 500 + 2 * v[VT_F_WEIGHTS_US] +
                 2 * v[VT_F_TOKEN_US] * prompts[k].tokens +
                 2 * v[VT_F_CONTEXT_US] * (double)line[k].decode_ctx;
            line[k].out_ns = at += vt_ns_from_us(us);
        }
        (void)snprintf(name, sizeof(name), "c%d", i);
        assert_int_equal(vt_regress_data_add(d, name, &e, &steps, NULL, &err), VT_OK);
    }
    r = solved(d, (struct vt_regress_options){.terms =
                                                  "weights_us,prefill_tokens*token_us,"
                                                  "decode_context*context_us"});
    near("base", r.terms.intercept, 500, 1e-3);
    near("weights", coefficient(&r, "weights_us"), 2, 1e-3);
    near("tokens", coefficient(&r, "prefill_tokens*token_us"), 2, 1e-3);
    assert_int_equal(r.n_groups, 9 + 3 + 3);
    for (size_t i = 0; i < r.n_groups; i++)
        if (!(r.group[i].score.mape < 0.1))
            fail_msg("%s %s: MAPE %g %%", r.group[i].kind, r.group[i].name,
                     r.group[i].score.mape);
    vt_regress_free(&r);
    vt_regress_data_free(d);
}

/* ---- the model
 * ------------------------------------------------------------------------ */

static void the_model_simulates_what_was_learned(void **state)
{
    struct vt_regress_data *d = data_of(&made, 0, N_LOADS);
    struct vt_regress r =
        solved(d, (struct vt_regress_options){
                      .terms = "num_prefill,num_decode,prefill_tokens,decode_context"});
    struct vt_buf model = {0}, profile = {0};
    struct recorder again;
    struct vt_workload w;
    struct vt_profile p;
    struct vt_err err = {0};

    (void)state;
    vt_regress_model(&model, d, &r, NULL);
    vt_buf_printf(&profile, "{\"name\": \"r\", \"model\": %s}", model.data);
    if (vt_profile_parse(&p, "r", profile.data, profile.len, &err) != VT_OK)
        fail_msg("%s", err.msg);
    record(&again, &w, p.model, short_loads[1]);
    assert_int_equal(again.steps.n, made.r[1].steps.n);
    near("the end", (double)again.steps.step[again.steps.n - 1].out_ns,
         (double)made.r[1].steps.step[again.steps.n - 1].out_ns, 1e-3);
    vt_steps_free(&again.steps);
    vt_workload_free(&w);
    vt_profile_close(&p);
    vt_buf_free(&model);
    vt_buf_free(&profile);
    vt_regress_free(&r);
    vt_regress_data_free(d);
}

/* ---- tables
 * ------------------------------------------------------------------------------ */

static void the_table_has_the_columns_of_the_document(void **state)
{
    struct vt_regress_data *d = data_of(&made, 0, 1);
    struct vt_buf b = {0};
    size_t lines = 0;

    (void)state;
    vt_regress_data_beta_csv(d, &b);
    assert_memory_equal(b.data,
                        "step_duration_us,num_prefill,num_decode,prefill_tokens,"
                        "decode_tokens,kv_ratio,model_type,hw,tp,",
                        95);
    for (size_t i = 0; i < b.len; i++)
        lines += b.data[i] == '\n';
    assert_int_equal(lines, 1 + vt_regress_data_rows(d, VT_REGRESS_STEP));
    vt_buf_free(&b);
    vt_regress_data_free(d);
}

int main(void)
{
    const struct CMUnitTest plain[] = {
        cmocka_unit_test(a_found_lambda_does_as_well),
        cmocka_unit_test(lasso_leaves_out_what_does_not_matter),
        cmocka_unit_test(same_and_constant_terms_are_named),
        cmocka_unit_test(powers_and_products_come_by_name),
        cmocka_unit_test(bad_terms_are_refused),
        cmocka_unit_test(a_stall_is_no_lesson),
        cmocka_unit_test(coefficients_hold_for_other_engines),
        cmocka_unit_test(the_model_simulates_what_was_learned),
        cmocka_unit_test(the_table_has_the_columns_of_the_document),
    };
    struct CMUnitTest back[VT_COUNT(learners)], others[VT_COUNT(crossed)];
    int failed;

    make_captures(&made, LINEAR, &(struct mishaps){.brief = true});
    for (size_t i = 0; i < VT_COUNT(learners); i++)
        back[i] = (struct CMUnitTest){.name = learners[i].name,
                                      .test_func = coefficients_are_found_back,
                                      .initial_state = (void *)(uintptr_t)&learners[i]};
    for (size_t i = 0; i < VT_COUNT(crossed); i++)
        others[i] = (struct CMUnitTest){
            .name = crossed[i].name,
            .test_func = each_learner_predicts_what_another_kind_made,
            .initial_state = (void *)(uintptr_t)&crossed[i]};
    failed = cmocka_run_group_tests_name("learners", back, NULL, NULL);
    failed += cmocka_run_group_tests_name("others", others, NULL, NULL);
    failed += cmocka_run_group_tests_name("regress", plain, NULL, NULL);
    free_captures(&made);
    return failed;
}

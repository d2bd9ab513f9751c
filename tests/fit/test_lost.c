/* Captures that do not tell all: of requests that were given up, of an engine that ran
 * out of KV blocks, of what was cached before they began. */
#include "twin.h"

/* Steps of the twin with mishaps, as logs or rebuilt from their traces. */
struct bed {
    struct recorder r[3];
    struct vt_workload w[3];
    struct vt_fit *fit;
};

static void make_bed(struct bed *b, struct circumstances how, bool with_steps)
{
    struct vt_fit_shape shape = {.context_us = 38};
    struct vt_latency *m;
    struct vt_err err = {0};

    memset(b, 0, sizeof(*b));
    assert_int_equal(vt_model_open_inline(&m, TRUTH, &err), VT_OK);
    assert_int_equal(vt_fit_new(&b->fit, &shape, &err), VT_OK);
    for (size_t i = 0; i < VT_COUNT(b->w); i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "load-%zu", i);
        (void)record_in(&b->r[i], &b->w[i], m, short_loads[i + 1], how);
        if (vt_fit_add(b->fit, name, with_steps ? &b->r[i].steps : NULL, &b->w[i],
                       &err) != VT_OK)
            fail_msg("%s", err.msg);
    }
    vt_latency_close(m);
}

static void free_bed(struct bed *b)
{
    for (size_t i = 0; i < VT_COUNT(b->w); i++) {
        vt_steps_free(&b->r[i].steps);
        vt_workload_free(&b->w[i]);
    }
    vt_fit_free(b->fit);
}

/* An eighth of the requests: what their prompts cost is in the log, and in a trace it
 * is time that nothing explains. */
static void requests_that_were_given_up_skew_no_step(void **state)
{
    bool with_steps = *(bool *)*state;
    struct vt_crossval_row row;
    struct vt_step_params p;
    struct bed b;
    struct vt_err err = {0};

    make_bed(&b, (struct circumstances){.give_up_every = 8}, with_steps);
    assert_int_equal(vt_fit_solve(b.fit, VT_FIT_ALL, &p, NULL, &err), VT_OK);
    near("base", p.base, 6000, 0.03);
    near("eager_token", p.eager_token, 30, with_steps ? 0.1 : 0.25);
    near("launch_eager", p.host_launch_eager, 21000, with_steps ? 0.1 : 0.25);
    /* The prediction is of a lighter load, and says so. */
    assert_int_equal(vt_crossval_one(b.fit, 0, &b.w[0], &row, NULL, &err), VT_OK);
    near("unanswered", row.unanswered, 12.5, 0.1);
    assert_true(row.unanswered > VT_UNANSWERED);
    free_bed(&b);
}

/* Nobody states how small the KV cache was; that requests waited for room in it is not
 * the model's fault. */
static void an_unstated_cache_is_found_for_the_prediction(void **state)
{
    enum { BLOCKS = 560 };
    struct vt_crossval_row row;
    struct bed b;
    struct vt_err err = {0};

    (void)state;
    make_bed(&b, (struct circumstances){.blocks = BLOCKS}, true);
    if (vt_crossval_one(b.fit, 1, &b.w[1], &row, NULL, &err) != VT_OK)
        fail_msg("%s", err.msg);
    near("blocks", row.found_blocks, BLOCKS, 0.15);
    if (fabs(row.e2e) > 6 || fabs(row.ttft) > 12)
        fail_msg("E2E %+.1f, TTFT %+.1f %%", row.e2e, row.ttft);
    b.w[1].meta.num_gpu_blocks = BLOCKS; /* what is stated is not looked for */
    assert_int_equal(vt_crossval_one(b.fit, 1, &b.w[1], &row, NULL, &err), VT_OK);
    assert_int_equal(row.found_blocks, 0);
    free_bed(&b);
}

/* What came before the capture is not in it: simulated alone it would compute prompts
 * that were cached. */
static void hits_from_earlier_traffic_are_predicted_as_recorded(void **state)
{
    bool with_steps = *(bool *)*state;
    struct vt_crossval_row row;
    struct bed b;
    struct vt_err err = {0};

    make_bed(&b, (struct circumstances){.warm = true}, with_steps);
    for (size_t i = 0; i < 2; i++) {
        if (vt_crossval_one(b.fit, i, &b.w[i], &row, NULL, &err) != VT_OK)
            fail_msg("%s", err.msg);
        assert_true(row.foreign_hits > 20);
        if (fabs(row.e2e) > 4 || fabs(row.ttft) > 12)
            fail_msg("E2E %+.1f, TTFT %+.1f %%", row.e2e, row.ttft);
    }
    free_bed(&b);
}

/* With what it states of its engine a capture's requests could not have been served. */
static void requests_that_never_finish_are_refused(void **state)
{
    static const struct {
        uint32_t blocks, len, seqs;
        const char *why;
    } row[] = {
        {40, 0, 256, "never finish, and they did: request 'request-"},
        {0, 100, 256, "leaves no room for output in max-model-len 100"},
        {0, 0, 1u << 31, "simulated, its requests never finish: max-num-seqs is "},
    };
    struct bed b;
    struct vt_buf model = {0};
    struct vt_err err = {0};

    (void)state;
    make_bed(&b, (struct circumstances){0}, true);
    vt_buf_str(&model, "{\"kind\": \"linear\", \"params\": {\"base\": 6000}}");
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        struct vt_fit_shape shape = {0};
        struct vt_crossval_row got;
        struct vt_match *match;

        b.w[0].meta.num_gpu_blocks = row[i].blocks;
        b.w[0].meta.max_model_len = row[i].len;
        b.w[0].meta.max_num_seqs = row[i].seqs;
        assert_int_equal(
            vt_crossval_in_sample(b.fit, 0, model.data, &b.w[0], &got, NULL, &err),
            VT_ECHECK);
        if (!strstr(err.msg, row[i].why) || strncmp(err.msg, "load-0: ", 8) != 0)
            fail_msg("says \"%s\"", err.msg);
        if (row[i].seqs > 256) /* that is found when it runs */
            continue;
        assert_int_equal(vt_match_new(&match, &shape, &err), VT_OK);
        assert_int_equal(vt_match_add(match, "load-0", &b.w[0], &err), VT_ECHECK);
        vt_match_free(match);
    }
    vt_buf_free(&model);
    free_bed(&b);
}

int main(void)
{
    static bool logged = true, rebuilt = false;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(requests_that_were_given_up_skew_no_step, &logged),
        cmocka_unit_test_prestate(requests_that_were_given_up_skew_no_step, &rebuilt),
        cmocka_unit_test_prestate(hits_from_earlier_traffic_are_predicted_as_recorded,
                                  &logged),
        cmocka_unit_test_prestate(hits_from_earlier_traffic_are_predicted_as_recorded,
                                  &rebuilt),
        cmocka_unit_test(requests_that_never_finish_are_refused),
        cmocka_unit_test(an_unstated_cache_is_found_for_the_prediction),
    };

    return cmocka_run_group_tests_name("lost", tests, NULL, NULL);
}

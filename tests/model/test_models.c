/* What each model charges, and how inline specs and profiles are read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <unistd.h>

#include "model/model.h"
#include "plans.h"

/* ---- costs ------------------------------------------------------------ */

static struct cost_row {
    const char *name;
    const char *model;
    struct vt_item item[3];
    uint32_t n;
    uint32_t max_num_seqs;
    double gpu_us, sched_us, done_us, launch_us;
} costs[] = {
    {"null costs nothing",
     "null:",
     {{.tokens = 5, .prefill = true}},
     1,
     256,
     0,
     0,
     0,
     0},
    {"blackbox charges prompt tokens and decodes",
     "blackbox:alpha=1,2,3,beta=100,2,7",
     {{.tokens = 50, .prefill = true}, {.tokens = 1}, {.tokens = 1}},
     3,
     256,
     214,
     0,
     0,
     0},
    {"linear charges requests and context",
     "linear:base=10,request=1,prefill_token=2,decode=3,context_token=0.5",
     {{.tokens = 4, .prefill = true}, {.tokens = 1, .computed = 8}},
     2,
     256,
     27,
     0,
     0,
     0},
    {"knob charges nothing for a prompt alone",
     "knob:inter_token_latency=10",
     {{.tokens = 100, .prefill = true}},
     1,
     256,
     0,
     0,
     0,
     0},
    {"knob charges one latency for all decodes",
     "knob:inter-token-latency=10",
     {{.tokens = 1}, {.tokens = 1}},
     2,
     256,
     10000,
     0,
     0,
     0},
    {"knob grows with load",
     "knob:inter_token_latency=10,time_factor_under_load=3",
     {{.tokens = 1}, {.tokens = 1}},
     2,
     3,
     20000,
     0,
     0,
     0},
    {"step pads a small batch to its graph",
     "step:base=100,graph_token=10,host_launch_graph=3",
     {{.tokens = 1}, {.tokens = 1}, {.tokens = 1}},
     3,
     256,
     140,
     0,
     0,
     3},
    {"step knows batches with a prompt",
     "step:mixed=100,mixed_token=2,host_launch_mixed=4,prefill=7",
     {{.tokens = 9, .prefill = true}, {.tokens = 1}},
     2,
     256,
     139,
     0,
     0,
     4},
    {"step goes eager above twice max-num-seqs",
     "step:mixed=100,eager=1000,eager_token=2,host_launch_eager=5",
     {{.tokens = 17, .prefill = true}},
     1,
     8,
     1034,
     0,
     0,
     5},
    {"step knows no graph above its limit",
     "step:eager_token=2,graph_limit=512",
     {{.tokens = 513, .prefill = true}},
     1,
     1024,
     1026,
     0,
     0,
     0},
    {"step charges the depth of a prompt chunk",
     "step:depth_mtoken=1000000",
     {{.tokens = 10, .computed = 20, .prefill = true}},
     1,
     256,
     250,
     0,
     0,
     0},
    {"step pays for the experts it touches",
     "step:expert=1000,experts=4,experts_per_token=2",
     {{.tokens = 1}, {.tokens = 1}},
     2,
     256,
     750,
     0,
     0,
     0},
    {"step's factors lie between their knots",
     "step:base=100,graph_factor=1,1,1,2,4,1,1,1,1,1",
     {{.tokens = 12, .computed = 5}},
     1,
     256,
     400,
     0,
     0,
     0},
    {"rows missing to a full tile of FP8 kernels are paid for",
     "step:eager_token=1,fill_row=2",
     {{.tokens = 1034, .prefill = true}},
     1,
     256,
     1034 + 2 * 246,
     0,
     0,
     0},
    {"tiles of FP8 kernels are smaller for few rows",
     "step:graph_token=1,fill_row=2",
     {{.tokens = 72, .computed = 5}},
     1,
     256,
     72 + 2 * 56,
     0,
     0,
     0},
    {"a full tile has nothing to fill",
     "step:graph_token=1,fill_row=2",
     {{.tokens = 128, .computed = 5}},
     1,
     256,
     128,
     0,
     0,
     0},
    {"step pads in steps of 16 above 256",
     "step:graph_token=1",
     {{.tokens = 257}},
     1,
     256,
     272,
     0,
     0,
     0},
    {"step pads to the next of the sizes that are stated",
     "step:graph_token=1,graph_sizes=1,24,100",
     {{.tokens = 25}},
     1,
     256,
     100,
     0,
     0,
     0},
    {"a size that is there needs no padding",
     "step:graph_token=1,graph_sizes=1,24,100",
     {{.tokens = 24}},
     1,
     256,
     24,
     0,
     0,
     0},
    {"step knows no graph above the sizes that are stated",
     "step:eager_token=2,graph_token=1,graph_sizes=24",
     {{.tokens = 25}},
     1,
     256,
     50,
     0,
     0,
     0},
    {"a model may ask for larger graphs than vLLM makes",
     "step:mixed_token=1,eager_token=9,graph_limit=1024",
     {{.tokens = 1000, .prefill = true}},
     1,
     8,
     1008,
     0,
     0,
     0},
    {"step charges requests beside a prompt",
     "step:row=5,prefill=7,host_launch_mixed=3,host_launch_request=2",
     {{.tokens = 9, .prefill = true}, {.tokens = 1}},
     2,
     256,
     17,
     0,
     0,
     7},
    {"a window bounds what decoding reads",
     "step:context_ktoken=1000,window=100,window_share=0.75",
     {{.tokens = 1, .computed = 500}, {.tokens = 1, .computed = 60}},
     2,
     256,
     260,
     0,
     0,
     0},
    {"a window bounds how far a prompt looks back",
     "step:depth_mtoken=1000000,window=12,window_share=0.5",
     {{.tokens = 10, .computed = 8, .prefill = true}},
     1,
     256,
     121,
     0,
     0,
     0},
    {"few requests read their context less well",
     "step:context_ktoken=1000,context_factor=1,1,2,2,4,1,1,1,1",
     {{.tokens = 1, .computed = 100},
      {.tokens = 1, .computed = 100},
      {.tokens = 1, .computed = 100}},
     3,
     256,
     600,
     0,
     0,
     0},
    {"experts that nothing is sent to are not read",
     "step:expert=1000,experts=8,experts_per_token=2,expert_spread=0.5",
     {{.tokens = 1}, {.tokens = 1}},
     2,
     256,
     375,
     0,
     0,
     0},
    {"step charges the host by requests",
     "step:host_sched=5,host_sched_request=2,host_done=1,host_done_request=3",
     {{.tokens = 1}, {.tokens = 1}},
     2,
     256,
     0,
     9,
     7,
     0},
};

static void step_costs(void **state)
{
    struct cost_row *r = *state;
    struct vt_step_plan p = plan_of(r->item, r->n);
    struct vt_step_shape s = {.plan = &p,
                              .max_num_seqs = r->max_num_seqs,
                              .most_decode_tokens = r->max_num_seqs};
    struct vt_step_cost c = {0};
    struct vt_latency *m;
    struct vt_err err = {0};

    if (vt_model_open_inline(&m, r->model, &err) != VT_OK)
        fail_msg("%s", err.msg);
    m->ops->step(m, &s, &c);
    assert_float_equal(c.gpu_us, r->gpu_us, 1e-9);
    assert_float_equal(c.sched_us, r->sched_us, 1e-9);
    assert_float_equal(c.done_us, r->done_us, 1e-9);
    assert_float_equal(c.launch_us, r->launch_us, 1e-9);
    vt_latency_close(m);
}

/* ---- bad specs -------------------------------------------------------- */

static struct bad_row {
    const char *spec, *want;
} bad[] = {
    {"blackbix:alpha=1,2,3", "unknown model 'blackbix' (did you mean 'blackbox'?)"},
    {"blackbox:alpha=1,2,3",
     "model blackbox: field 'beta' must be a list of 3 numbers"},
    {"blackbox:alpha=1,2,beta=1,2,3",
     "model blackbox: field 'alpha' must be a list of 3 numbers"},
    {"blackbox:alpha=1,2,-3,beta=1,2,3",
     "model blackbox: field 'alpha': element 2 must be 0 to 1e+12"},
    {"blackbox:alpha=1,2,nan,beta=1,2,3",
     "model blackbox: field 'alpha': 'nan' is not a finite number"},
    {"blackbox:alpha=1,2,3,alpha=1,2,3,beta=1,2,3", "'alpha' is given twice"},
    {"linear:5", "'5' is not key=value"},
    {"linear:bas=5", "model linear: unknown field 'bas' (did you mean 'base'?)"},
    {"linear:base=1e999", "model linear: field 'base': '1e999' is not a finite number"},
    {"linear:base=", "model linear: field 'base': '' is not a finite number"},
    {"knob:time_factor_under_load=0.5",
     "model knob: field 'time_factor_under_load' must be from 1 to 1000000, not 0.5"},
};

static void is_refused(void **state)
{
    const struct bad_row *r = *state;
    struct vt_latency *m = NULL;
    struct vt_err err = {0};

    assert_int_equal(vt_model_open_inline(&m, r->spec, &err), VT_EINPUT);
    assert_null(m);
    assert_string_equal(err.msg, r->want);
}

/* ---- the rest --------------------------------------------------------- */

static void every_model_opens_by_its_example(void **state)
{
    size_t n;
    const struct vt_model_kind *const *kinds = vt_model_kinds(&n);

    (void)state;
    assert_true(n >= 10);
    assert_int_equal(chdir(VT_TEST_DIR "/.."),
                     0); /* files in them are the repository's */
    for (size_t i = 0; i < n; i++) {
        struct vt_latency *m = NULL;
        struct vt_err err = {0};

        if (vt_model_open_inline(&m, kinds[i]->example, &err) != VT_OK)
            fail_msg("%s: %s", kinds[i]->example, err.msg);
        assert_string_equal(m->ops->name, kinds[i]->name);
        vt_latency_close(m);
    }
}

static void knob_draws_stay_within_their_clamp_and_have_their_mean(void **state)
{
    enum { DRAWS = 20000 };
    struct vt_step_plan p = {.running = 1, .n_decodes = 1, .n = 1};
    struct vt_latency *m;
    double sum = 0;

    (void)state;
    assert_int_equal(vt_model_open_inline(&m,
                                          "knob:inter_token_latency=10,"
                                          "inter_token_latency_std_dev=2,"
                                          "time_to_first_token=100,"
                                          "time_to_first_token_std_dev=200",
                                          NULL),
                     VT_OK);
    for (uint64_t i = 0; i < DRAWS; i++) {
        struct vt_step_shape s = {.plan = &p, .step = i, .max_num_seqs = 4, .seed = 1};
        struct vt_step_cost c = {0};
        double first = m->ops->first_token_us(m, &s, i, 10, 10);

        m->ops->step(m, &s, &c);
        assert_true(c.gpu_us >= 3000 && c.gpu_us <= 17000);
        assert_true(first >= 30000 - 1e-6 && first <= 170000 + 1e-6);
        sum += c.gpu_us;
    }
    assert_true(fabs(sum / DRAWS - 10000) < 60);
    vt_latency_close(m);
}

static void knob_transfers_prompts_that_were_computed_elsewhere(void **state)
{
    struct vt_step_plan p = {.running = 9, .n_decodes = 1, .n = 1};
    struct vt_step_shape s = {.plan = &p, .max_num_seqs = 10};
    struct vt_latency *m;

    (void)state;
    assert_int_equal(
        vt_model_open_inline(&m,
                             "knob:time_to_first_token=100,remote_prefill=1,"
                             "time_factor_under_load=5,"
                             "kv_cache_transfer_time_per_token=0.02",
                             NULL),
        VT_OK);
    assert_float_equal(m->ops->first_token_us(m, &s, 1, 500, 20), 10000, 1e-6);
    vt_latency_close(m);
}

static void every_builtin_profile_opens_and_states_its_limits(void **state)
{
    size_t n, profiles = 0;
    const struct vt_builtin *b = vt_builtins(&n);

    (void)state;
    for (size_t i = 0; i < n; i++) {
        struct vt_engine_config c;
        struct vt_profile p;
        struct vt_err err = {0};
        char name[128];
        size_t len = strlen(b[i].name);

        if (!vt_builtin_is_profile(&b[i]))
            continue;
        (void)snprintf(name, sizeof(name), "%.*s", (int)(len - 5), b[i].name);
        if (vt_profile_open(&p, name, &err) != VT_OK)
            fail_msg("%s", err.msg);
        assert_string_equal(p.name, name);
        vt_engine_config_init(&c);
        assert_int_equal(vt_profile_limits(&p, &c, &err), VT_OK);
        assert_int_equal(vt_engine_config_check(&c, &err), VT_OK);
        vt_profile_close(&p);
        profiles++;
    }
    assert_true(profiles >= 3);
    assert_non_null(vt_builtin_find(VT_DEFAULT_WORKLOAD ".yaml"));
}

/* Decode batches, then prompts alone, of every size; of FP8 kernels those that fill
 * their tiles. */
static void more_work_never_takes_less_time(void **state)
{
    static const char *const names[] = {"qwen3-8b-h200", "qwen3-30b-a3b-h200",
                                        "llama-70b-fp8-h200"};
    static const uint32_t tiles[] = {1, 1, 256};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(names); i++) {
        struct vt_profile p;
        double before = 0;

        assert_int_equal(vt_profile_open(&p, names[i], NULL), VT_OK);
        for (uint32_t n = tiles[i]; n <= 2048; n += tiles[i]) {
            struct vt_item one = {.tokens = n > 256 ? n - 256 : 0, .prefill = true};
            struct vt_step_plan plan = {.n_decodes = n <= 256 ? n : 0,
                                        .decode_tokens = n <= 256 ? n : 0,
                                        .n_prefills = n > 256,
                                        .prefill_tokens = one.tokens,
                                        .item = &one,
                                        .n = n > 256};
            struct vt_step_shape s = {
                .plan = &plan, .max_num_seqs = 256, .most_decode_tokens = 256};
            struct vt_step_cost c = {0};

            p.model->ops->step(p.model, &s, &c);
            before = n > 256 && n - tiles[i] <= 256 ? 0 : before;
            if (c.gpu_us < 0.995 * before)
                fail_msg("%s: size %u takes %.1f us, the one before %.1f us", names[i],
                         n, c.gpu_us, before);
            before = c.gpu_us > before ? c.gpu_us : before;
        }
        vt_profile_close(&p);
    }
}

static void an_unknown_profile_is_named(void **state)
{
    struct vt_profile p;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(vt_profile_open(&p, "qwen9", &err), VT_EINPUT);
    assert_string_equal(err.msg, "no profile 'qwen9'; `vtwin profile list` shows the "
                                 "built-in ones");
}

int main(void)
{
    enum { C = VT_COUNT(costs), B = VT_COUNT(bad), REST = 6 };
    struct CMUnitTest tests[C + B + REST] = {
        cmocka_unit_test(every_model_opens_by_its_example),
        cmocka_unit_test(knob_draws_stay_within_their_clamp_and_have_their_mean),
        cmocka_unit_test(every_builtin_profile_opens_and_states_its_limits),
        cmocka_unit_test(knob_transfers_prompts_that_were_computed_elsewhere),
        cmocka_unit_test(more_work_never_takes_less_time),
        cmocka_unit_test(an_unknown_profile_is_named),
    };

    for (size_t i = 0; i < C; i++)
        tests[REST + i] = (struct CMUnitTest){
            .name = costs[i].name, .test_func = step_costs, .initial_state = &costs[i]};
    for (size_t i = 0; i < B; i++)
        tests[REST + C + i] = (struct CMUnitTest){
            .name = bad[i].spec, .test_func = is_refused, .initial_state = &bad[i]};
    return cmocka_run_group_tests_name("models", tests, NULL, NULL);
}

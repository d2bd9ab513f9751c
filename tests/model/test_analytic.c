/* What BLIS's analytic models charge, worked out by hand for a tiny model on a GPU that
 * does 1,000 FLOP and moves 1,000 bytes in a microsecond. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "model/model.h"
#include "plans.h"

#define DENSE                                                                      \
    "\"hf_config\":{\"num_hidden_layers\":1,\"hidden_size\":4,"                    \
    "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"intermediate_size\":8," \
    "\"vocab_size\":10,\"torch_dtype\":\"bfloat16\"},"
#define MOE                                                                        \
    "\"hf_config\":{\"num_hidden_layers\":2,\"hidden_size\":4,"                    \
    "\"num_attention_heads\":2,\"num_key_value_heads\":2,\"intermediate_size\":8," \
    "\"num_local_experts\":4,\"num_experts_per_tok\":2,"                           \
    "\"vocab_size\":10,\"torch_dtype\":\"bfloat16\"},"
#define INTERLEAVED                                                                \
    "\"hf_config\":{\"num_hidden_layers\":4,\"hidden_size\":4,"                    \
    "\"num_attention_heads\":2,\"num_key_value_heads\":2,\"intermediate_size\":8," \
    "\"num_local_experts\":4,\"num_experts_per_tok\":1,"                           \
    "\"interleave_moe_layer_step\":1,"                                             \
    "\"vocab_size\":10,\"torch_dtype\":\"bfloat16\"},"
#define UNIT "\"gpu\":\"unit\",\"hw\":\"" VT_TEST_DIR "/model/data/hw.json\""

static struct row {
    const char *name, *kind, *params;
    struct vt_item item[2];
    uint32_t n;
    double us;
} rows[] = {
    /* 288 + 144 FLOP of attention, 384 of MLP, 114 of vectors; 64 + 224 bytes */
    {"roofline computes a prompt",
     "roofline",
     DENSE UNIT,
     {{.tokens = 3, .computed = 2, .prefill = true}},
     1,
     0.930},
    /* 96 + 7 * 16 + 128, 7 * 10 + 8 FLOP at half the peak */
    {"roofline computes a decode at its own utilisation",
     "roofline",
     DENSE UNIT,
     {{.tokens = 1, .computed = 7}},
     1,
     0.828},
    /* the same FLOP on an H100 are nothing; 8 + 56 + 8 + 224 bytes */
    {"roofline reads weights and context",
     "roofline",
     DENSE "\"gpu\":\"H100\"",
     {{.tokens = 1, .computed = 7}},
     1,
     296 / 3.35e6},
    /* of 4 experts 2 tokens that pick 2 each meet 3; half of everything on each GPU */
    {"roofline reads the experts that are met",
     "roofline",
     MOE "\"gpu\":\"H100\",\"tp\":2",
     {{.tokens = 1}, {.tokens = 1}},
     2,
     (2 * 64 + 2 * 64 * 3) / 3.35e6 + 48 / 3.35e6},
    {"crossmodel charges decodes by their KV width",
     "crossmodel",
     DENSE UNIT ",\"beta\":[100,1e6,5,7]",
     {{.tokens = 1}, {.tokens = 1}},
     2,
     104},
    {"crossmodel charges mixtures and peers",
     "crossmodel",
     MOE UNIT ",\"beta\":[0,0,5,7],\"tp\":2",
     {{.tokens = 9, .prefill = true}, {.tokens = 1}},
     2,
     57},
    /* 288 + 16 * 3 * 6.5 + 576 FLOP; 96 + 192 bytes of weights */
    {"trained-roofline takes the whole prompt for context",
     "trained-roofline",
     DENSE UNIT ",\"beta\":[1,1,1,0,0,0,0]",
     {{.tokens = 3, .known = 5, .prefill = true}},
     1,
     1.464},
    {"trained-roofline charges layers, requests and steps",
     "trained-roofline",
     MOE UNIT ",\"beta\":[0,0,0,0,10,100,1000]",
     {{.tokens = 1}, {.tokens = 1}},
     2,
     1220},
    /* 2 * (128 + n * 96) elements of two bytes */
    {"trained-roofline reads experts until all are met",
     "trained-roofline",
     MOE UNIT ",\"beta\":[0,0,1,0,0,0,0]",
     {{.tokens = 1}},
     1,
     2 * (64 + 2 * 96) * 2e-3},
    {"trained-physics takes the larger base with 7 coefficients",
     "trained-physics",
     DENSE UNIT ",\"beta\":[1,1,1,0,0,0,0]",
     {{.tokens = 3, .known = 5, .prefill = true}},
     1,
     1.464},
    /* 96 + 192 + 16 * 7 FLOP; 8 * 8 bytes */
    {"trained-physics splits a decode with 10",
     "trained-physics",
     DENSE UNIT ",\"beta\":[0,2,0,0,0,0,0,0,0,10]",
     {{.tokens = 1, .computed = 7}},
     1,
     2 * 0.400 + 10 * 0.064},
    {"trained-physics reads all experts",
     "trained-physics",
     MOE UNIT ",\"beta\":[0,0,1,0,0,0,0]",
     {{.tokens = 1}},
     1,
     2 * (64 + 4 * 96) * 2e-3},
    /* 2 layers reduce attention, 2 their experts: 4 * 4 * 2 * 2 / 2 bytes a token */
    {"trained-physics reduces over peers",
     "trained-physics",
     MOE UNIT ",\"tp\":2,\"beta\":[0,0,0,1,0,0,0]",
     {{.tokens = 5, .prefill = true}},
     1,
     5 * 0.032},
    {"trained-physics sends tokens to experts of other ranks",
     "trained-physics",
     MOE UNIT ",\"dp\":2,\"beta\":[0,0,0,0,0,0,0,0,0,0,1]",
     {{.tokens = 10, .prefill = true}},
     1,
     0.080},
    {"trained-physics sends them to each expert",
     "trained-physics",
     MOE UNIT
     ",\"dp\":2,\"moe_comm_backend\":\"pplx\",\"beta\":[0,0,0,0,0,0,0,0,0,0,1]",
     {{.tokens = 10, .prefill = true}},
     1,
     0.160},
    {"trained-physics charges interleaved layers",
     "trained-physics",
     INTERLEAVED UNIT ",\"beta\":[0,0,0,0,10,0,0,1000]",
     {{.tokens = 1}},
     1,
     2040},
};

static void open_profile(struct vt_profile *p, const char *kind, const char *params)
{
    struct vt_err err = {0};
    char text[2048];
    int n = snprintf(text, sizeof(text),
                     "{\"name\":\"t\",\"model\":{\"kind\":\"%s\",\"params\":{%s}}}",
                     kind, params);

    if (vt_profile_parse(p, "test", text, (size_t)n, &err) != VT_OK)
        fail_msg("%s", err.msg);
}

static void step_costs(void **state)
{
    struct row *r = *state;
    struct vt_step_plan plan = plan_of(r->item, r->n);
    struct vt_step_shape s = {.plan = &plan, .max_num_seqs = 8};
    struct vt_step_cost c = {0};
    struct vt_profile p;

    open_profile(&p, r->kind, r->params);
    p.model->ops->step(p.model, &s, &c);
    if (fabs(c.gpu_us - r->us) > 1e-9 * r->us)
        fail_msg("got %.12g, want %.12g", c.gpu_us, r->us);
    vt_profile_close(&p);
}

/* ---- the rest --------------------------------------------------------- */

static void alphas_mean_what_their_model_says(void **state)
{
    struct vt_profile p;

    (void)state;
    open_profile(&p, "roofline", DENSE UNIT ",\"alpha\":[10,2,3]");
    assert_true(p.model->ops->arrival_us(p.model, 100) == 210);
    assert_true(p.model->token_us == 3 && p.model->post_us == 0);
    vt_profile_close(&p);
    open_profile(&p, "trained-physics", DENSE UNIT ",\"alpha\":[10,2,3]");
    assert_true(p.model->ops->arrival_us(p.model, 100) == 10);
    assert_true(p.model->token_us == 3 && p.model->post_us == 2);
    vt_profile_close(&p);
}

static void a_profile_that_names_model_and_gpu_knows_its_blocks(void **state)
{
    struct vt_engine_config c;
    struct vt_profile p;
    struct vt_err err = {0};

    (void)state;
    open_profile(&p, "roofline", "\"hf_config\":\"qwen3-8b\",\"gpu\":\"H200\"");
    vt_engine_config_init(&c);
    c.max_num_seqs = 256;
    assert_int_equal(vt_profile_limits(&p, &c, &err), VT_OK);
    assert_in_range(c.num_gpu_blocks, 49500, 49700);
    vt_profile_close(&p);
}

static struct bad_row {
    const char *spec, *want;
} bad[] = {
    {"roofline:gpu=H100",
     "model roofline: field 'hf_config' is missing: a config.json or a known model"},
    {"roofline:hf_config=qwen3-8b", "model roofline: field 'gpu' is missing"},
    {"roofline:hf_config=qwen3-8b,gpu=H100,tp=3",
     "model roofline: 32 attention heads can't be shared by 3 GPUs"},
    {"roofline:hf_config=qwen3-8b,gpu=H100,tp=x",
     "model roofline: field 'tp' is not a whole number"},
    {"roofline:hf_config=qwen3-8b,gpu=H100,beta=1,2",
     "model roofline: unknown field 'beta'"},
    {"roofline:hf_config=qwen3-8b,gpu=5",
     "model roofline: field 'gpu' is not a string"},
    {"roofline:hf_config=qwen3-30b-a3b,gpu=H100,dp=2",
     "model roofline: field 'dp' must be 1: only trained-physics knows data "
     "parallelism, "
     "of mixtures of experts"},
    {"crossmodel:hf_config=qwen3-8b,gpu=H100,beta=1,2,3",
     "model crossmodel: field 'beta' must be a list of 4 numbers"},
    {"trained-physics:hf_config=qwen3-8b,gpu=H100,beta=1,2,3",
     "model trained-physics: field 'beta' must be a list of 7 to 11 numbers"},
    {"trained-physics:hf_config=qwen3-8b,gpu=H100,beta=1,2,3,4,5,6,x",
     "model trained-physics: field 'beta': 'x' is not a finite number"},
    {"trained-physics:hf_config=qwen3-8b,gpu=H100,moe_comm_backend=tin",
     "model trained-physics: unknown moe_comm_backend 'tin'"},
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

int main(void)
{
    enum { N = VT_COUNT(rows), B = VT_COUNT(bad), REST = 2 };
    struct CMUnitTest tests[N + B + REST] = {
        cmocka_unit_test(alphas_mean_what_their_model_says),
        cmocka_unit_test(a_profile_that_names_model_and_gpu_knows_its_blocks),
    };

    for (size_t i = 0; i < N; i++)
        tests[REST + i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = step_costs, .initial_state = &rows[i]};
    for (size_t i = 0; i < B; i++)
        tests[REST + N + i] = (struct CMUnitTest){
            .name = bad[i].spec, .test_func = is_refused, .initial_state = &bad[i]};
    return cmocka_run_group_tests_name("analytic", tests, NULL, NULL);
}

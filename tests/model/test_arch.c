/* What a config.json says: sizes, experts, number formats, and what they add up to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "arch_testing.h"

#define LLAMA                                                                      \
    "\"num_hidden_layers\":32,\"hidden_size\":4096,\"num_attention_heads\":32,"    \
    "\"num_key_value_heads\":8,\"intermediate_size\":14336,\"vocab_size\":128256," \
    "\"torch_dtype\":\"bfloat16\""
#define QUANT(text) "{" LLAMA ",\"quantization_config\":{" text "}}"
#define SMALL                                                               \
    "\"num_hidden_layers\":4,\"hidden_size\":64,\"num_attention_heads\":4," \
    "\"intermediate_size\":256,\"vocab_size\":1000"
#define MOE SMALL ",\"num_experts\":8,\"num_experts_per_tok\":2"

static void near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance)) /* cmocka's own compares floats */
        fail_msg("got %.9g, want %.9g", got, want);
}

/* ---- models whose size is public -------------------------------------- */

static struct known_row {
    const char *name;
    double params, active; /* billions */
    double weights_gib;    /* in the format of the file, one GPU */
    double kv_bytes;       /* each token, one GPU */
} known[] = {
    {"Qwen/Qwen3-8B", 8.19, 8.19, 15.26, 147456},
    {"qwen3-30b-a3b", 30.53, 3.35, 56.87, 98304},
    {"llama-3.1-8b-instruct", 8.03, 8.03, 14.96, 131072},
    {"meta-llama/Llama-3.3-70B-Instruct", 70.55, 70.55, 131.42, 327680},
    {"llama-70b-fp8", 70.55, 70.55, 67.67, 327680},
    {"mixtral-8x7b-instruct-v0.1", 46.70, 12.88, 86.99, 131072},
    {"llama-4-scout-17b-16e-instruct", 107.77, 17.17, 200.74, 196608},
    {"llama-4-maverick-17b-128e-instruct-fp8", 400.71, 17.18, 375.13, 196608},
    {"gpt-oss-120b", 116.79, 5.71, 60.69, 73728},
    {"qwen2.5-3b-instruct", 3.09, 3.09, 5.75, 36864},
};

static void known_model_has_its_size(void **state)
{
    const struct known_row *r = *state;
    struct vt_arch a;
    struct vt_err err = {0};

    if (vt_arch_load(&a, r->name, &err) != VT_OK)
        fail_msg("%s", err.msg);
    near(vt_arch_params(&a) * 1e-9, r->params, 0.005);
    near(vt_arch_active_params(&a) * 1e-9, r->active, 0.005);
    near(vt_arch_weight_bytes(&a, 1) / 0x1p30, r->weights_gib, 0.005);
    near(vt_arch_kv_bytes(&a, 1, a.kv_bytes), r->kv_bytes, 1e-6);
}

/* ---- fields ----------------------------------------------------------- */

static struct field_row {
    const char *name, *text;
    size_t offset;
    uint32_t want;
} fields[] = {
#define AT(field) offsetof(struct vt_arch, field)
    {"KV heads default to heads", "{" SMALL "}", AT(kv_heads), 4},
    {"null is absent", "{" SMALL ",\"num_key_value_heads\":null}", AT(kv_heads), 4},
    {"multi_query leaves one KV head", "{" SMALL ",\"multi_query\":true}", AT(kv_heads),
     1},
    {"head_dim defaults to a share", "{" SMALL "}", AT(head_dim), 16},
    {"head_dim may be wider", "{" SMALL ",\"head_dim\":128}", AT(head_dim), 128},
    {"numbers may be written with a point", "{" SMALL ",\"head_dim\":32.0}",
     AT(head_dim), 32},
    {"text_config goes first", "{" SMALL ",\"text_config\":{\"num_hidden_layers\":7}}",
     AT(layers), 7},
    {"the top level fills it up",
     "{" SMALL ",\"text_config\":{\"num_hidden_layers\":7}}", AT(hidden), 64},
    {"other families' names",
     "{\"n_layer\":3,\"n_embd\":64,\"n_head\":4,\"vocab_size\":10}", AT(ffn), 256},
    {"a model without experts", "{" SMALL "}", AT(experts), 0},
    {"one expert is none", "{" SMALL ",\"num_local_experts\":1}", AT(experts), 0},
    {"experts are as wide as the layer", "{" MOE "}", AT(expert_ffn), 256},
    {"experts of their own width", "{" MOE ",\"moe_intermediate_size\":32}",
     AT(expert_ffn), 32},
    {"every layer has experts", "{" MOE "}", AT(moe_layers), 4},
    {"the first layers are dense", "{" MOE ",\"first_k_dense_replace\":3}",
     AT(moe_layers), 1},
    {"every second layer has experts", "{" MOE ",\"decoder_sparse_step\":2}",
     AT(moe_layers), 2},
    {"Llama 4 counts the same", "{" MOE ",\"interleave_moe_layer_step\":2}",
     AT(moe_layers), 2},
    {"some layers are listed as dense", "{" MOE ",\"mlp_only_layers\":[0,2]}",
     AT(moe_layers), 2},
    {"some layers are listed as mixtures", "{" MOE ",\"moe_layers\":[1,2,3]}",
     AT(moe_layers), 3},
    {"shared experts by their width",
     "{" MOE ",\"shared_expert_intermediate_size\":99}", AT(shared_ffn), 99},
    {"shared experts by their number", "{" MOE ",\"n_shared_experts\":2}",
     AT(shared_ffn), 512},
    {"Llama 4 always shares one", "{" MOE ",\"model_type\":\"llama4_text\"}",
     AT(shared_ffn), 256},
#undef AT
};

static void field_is_read(void **state)
{
    const struct field_row *r = *state;
    struct vt_arch a;
    struct vt_err err = {0};
    uint32_t got;

    if (read_text(r->text, &a, &err) != VT_OK)
        fail_msg("%s", err.msg);
    memcpy(&got, (char *)&a + r->offset, sizeof(got));
    assert_int_equal(got, r->want);
}

/* ---- number formats --------------------------------------------------- */

static struct format_row {
    const char *name, *text;
    double weight, scale, kv; /* bytes */
} formats[] = {
    {"bfloat16", "{" LLAMA "}", 2, 0, 2},
    {"no format is 16 bits", "{" SMALL "}", 2, 0, 2},
    {"float32 is served in 16 bits", "{" SMALL ",\"dtype\":\"torch.float32\"}", 4, 0,
     2},
    {"fp8", QUANT("\"quant_method\":\"fp8\""), 1, 0, 2},
    {"gptq, groups of 128",
     QUANT("\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":128"), 0.5, 2.5 / 128,
     2},
    {"awq as its own tool writes it", QUANT("\"w_bit\":4,\"q_group_size\":64"), 0.5,
     2.5 / 64, 2},
    {"gptq, 8 bits, whole columns",
     QUANT("\"quant_method\":\"gptq\",\"bits\":8,\"group_size\":-1"), 1, 0, 2},
    {"compressed-tensors int4",
     QUANT("\"quant_method\":\"compressed-tensors\",\"config_groups\":{\"group_0\":"
           "{\"weights\":{\"num_bits\":4,\"group_size\":128,\"type\":\"int\"}}}"),
     0.5, 2.0 / 128, 2},
    {"compressed-tensors with an 8-bit KV cache",
     QUANT(
         "\"quant_method\":\"compressed-tensors\",\"kv_cache_scheme\":{\"num_bits\":8},"
         "\"config_groups\":{\"a\":{\"weights\":null},\"b\":{\"weights\":"
         "{\"num_bits\":8,\"group_size\":null}}}"),
     1, 0, 1},
    {"ModelOpt FP8 with an FP8 KV cache",
     QUANT("\"quant_method\":\"modelopt\",\"quant_algo\":\"FP8\","
           "\"kv_cache_quant_algo\":\"FP8\""),
     1, 0, 1},
    {"ModelOpt NVFP4", QUANT("\"quant_method\":\"modelopt\",\"quant_algo\":\"NVFP4\""),
     0.5, 1.0 / 16, 2},
    {"mxfp4", QUANT("\"quant_method\":\"mxfp4\""), 0.5, 1.0 / 32, 2},
    {"bitsandbytes", QUANT("\"quant_method\":\"bitsandbytes\",\"load_in_8bit\":true"),
     1, 0, 2},
};

static void format_is_read(void **state)
{
    const struct format_row *r = *state;
    struct vt_arch a;
    struct vt_err err = {0};

    if (read_text(r->text, &a, &err) != VT_OK)
        fail_msg("%s", err.msg);
    near(a.weight_bytes, r->weight, 1e-12);
    near(a.scale_bytes, r->scale, 1e-12);
    near(a.kv_bytes, r->kv, 1e-12);
}

/* ---- refused ---------------------------------------------------------- */

static struct bad_row {
    const char *text, *want;
} bad[] = {
    {"[]", "a model's config is an object"},
    {"{}", "field 'num_hidden_layers' is missing"},
    {"{" SMALL ",\"text_config\":{\"vocab_size\":0}}",
     "line 1: field 'vocab_size' must be from 1 to 67108864, not 0"},
    {"{" SMALL ",\"head_dim\":\"x\"}",
     "line 1: field 'head_dim' is not a whole number"},
    {"{" SMALL ",\"num_key_value_heads\":5}", "5 KV heads for 4 heads"},
    {"{" SMALL ",\"num_experts\":8}",
     "8 experts, but field 'num_experts_per_tok' is missing"},
    {"{" MOE ",\"mlp_only_layers\":[0,1,2,3,4]}",
     "field 'mlp_only_layers' is no list of layers"},
    {"{" SMALL ",\"num_experts\":8,\"num_experts_per_tok\":9}",
     "9 of 8 experts for each token"},
    {"{" SMALL ",\"torch_dtype\":\"decimal\"}",
     "field 'torch_dtype': unknown number format 'decimal'"},
    {QUANT("\"quant_method\":\"magic\""),
     "field 'quantization_config': unknown quant_method 'magic' without bits"},
    {QUANT("\"bits\":-4"), "line 1: field 'bits' must be from 1 to 32, not -4"},
};

static void is_refused(void **state)
{
    const struct bad_row *r = *state;
    struct vt_arch a;
    struct vt_err err = {0};

    assert_int_equal(read_text(r->text, &a, &err), VT_EINPUT);
    assert_string_equal(err.msg, r->want);
}

/* ---- the rest --------------------------------------------------------- */

static void latent_attention_is_small_and_whole_on_every_gpu(void **state)
{
    struct vt_arch a;
    struct vt_err err = {0};

    (void)state; /* DeepSeek-V3 */
    assert_int_equal(
        read_text("{\"num_hidden_layers\":61,\"hidden_size\":7168,"
                  "\"num_attention_heads\":128,\"num_key_value_heads\":128,"
                  "\"intermediate_size\":18432,\"moe_intermediate_size\":2048,"
                  "\"n_routed_experts\":256,\"num_experts_per_tok\":8,"
                  "\"n_shared_experts\":1,\"first_k_dense_replace\":3,"
                  "\"vocab_size\":129280,\"q_lora_rank\":1536,\"kv_lora_rank\":512,"
                  "\"qk_rope_head_dim\":64,\"qk_nope_head_dim\":128,"
                  "\"v_head_dim\":128,\"torch_dtype\":\"bfloat16\","
                  "\"quantization_config\":{\"quant_method\":\"fp8\"}}",
                  &a, &err),
        VT_OK);
    near(vt_arch_params(&a) * 1e-9, 671.0, 0.1);
    near(vt_arch_active_params(&a) * 1e-9, 37.5, 0.1);
    near(vt_arch_kv_bytes(&a, 1, 2), 61 * 576 * 2, 1e-6);
    near(vt_arch_kv_bytes(&a, 8, 2), 61 * 576 * 2, 1e-6);
}

static void more_gpus_share_weights_and_kv_heads(void **state)
{
    struct vt_arch a;
    struct vt_err err = {0};
    double one;

    (void)state;
    assert_int_equal(read_text("{" LLAMA "}", &a, &err), VT_OK);
    one = vt_arch_weight_bytes(&a, 1);
    assert_true(fabs(vt_arch_weight_bytes(&a, 4) / one - 0.25) < 1e-3);
    near(vt_arch_kv_bytes(&a, 4, 2), 32768, 1e-6);
    near(vt_arch_kv_bytes(&a, 16, 2), 16384, 1e-6); /* one head each */
    assert_int_equal(vt_arch_check_tp(&a, 16, &err), VT_OK);
    assert_int_equal(vt_arch_check_tp(&a, 3, &err), VT_EINPUT);
    assert_string_equal(err.msg, "32 attention heads can't be shared by 3 GPUs");
}

int main(void)
{
    struct CMUnitTest tests[VT_COUNT(known) + VT_COUNT(fields) + VT_COUNT(formats) +
                            VT_COUNT(bad) + 2] = {
        cmocka_unit_test(latent_attention_is_small_and_whole_on_every_gpu),
        cmocka_unit_test(more_gpus_share_weights_and_kv_heads),
    };
    size_t n = 2;

    ADD(known, known_model_has_its_size);
    ADD(fields, field_is_read);
    ADD(formats, format_is_read);
    ADD(bad, is_refused);
    return cmocka_run_group_tests_name("arch", tests, NULL, NULL);
}

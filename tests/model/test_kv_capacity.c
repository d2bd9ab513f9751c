/* KV blocks against what vLLM found room for, and what moves them; GPUs by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "model/model.h"

static void near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance)) /* cmocka's own compares floats */
        fail_msg("got %.9g, want %.9g", got, want);
}

#define CASE(name) VT_TEST_DIR "/cases/models/" name ".json"

/* ---- vLLM 0.26.0 on one H200, from its logs --------------------------- */

static struct log_row {
    const char *name, *model;
    uint64_t tokens; /* "GPU KV cache size" */
    uint32_t blocks;
    double weights, cache; /* GiB: "Model loading took", "Available KV cache memory" */
    const char *draft;
    double element_bytes, utilization;
    uint32_t seqs, batched;
} logs[] = {
    {"dense 0.6B", CASE("qwen3-0.6b"), 1162352, 72647, 1.12, 124.15},
    {"dense 8B", "qwen3-8b", 794016, 49626, 15.27, 109.04},
    {"dense 8B, compiled at an earlier start", "qwen3-8b", 797680, 49855, 15.27,
     109.55},
    {"dense 8B, other layers", "llama-3.1-8b-instruct", 896912, 56057, 15.0, 109.49},
    {"dense 32B", CASE("qwen3-32b"), 257856, 16116, 61.03, 62.96},
    {"dense 70B in FP8", "llama-70b-fp8", 182272, 11392, 67.7, 55.63},
    {"FP8 weights by channel", CASE("qwen3-8b-fp8"), 840848, 52553, 8.8, 115.47},
    {"FP8 KV cache", "qwen3-8b", 1588032, 99252, 15.27, 109.04, .element_bytes = 1},
    {"twice the budget, half the requests, more memory", "qwen3-8b", 842704, 52669,
     15.27, 115.73, .utilization = 0.95, .seqs = 128, .batched = 16384},
    {"an EAGLE head beside it", "qwen3-8b", 764832, 47802, 15.77, 107.95,
     .draft = CASE("qwen3-8b-eagle3-draft")},
    {"mixture of 30B", "qwen3-30b-a3b", 732496, 45781, 56.88, 67.06},
    {"mixture with windows", CASE("gpt-oss-20b"), 3219676, 302729, 13.03, 110.86},
    {"the same, built in", "openai/gpt-oss-20b", 3219676, 302729, 13.03, 110.86},
    {"five windows to one", CASE("gemma-3-12b"), 452218, 103408, 22.62, 100.98},
};

static void ask(const char *model, const char *gpu, struct vt_arch *a, struct vt_gpu *g,
                struct vt_kv_query *q)
{
    struct vt_err err = {0};

    vt_kv_query_init(q);
    if (vt_arch_load(a, model, &err) != VT_OK ||
        vt_gpu_find(g, gpu, NULL, &err) != VT_OK)
        fail_msg("%s", err.msg);
    q->kv.arch = a;
    q->gpu = g;
}

static uint32_t blocks(const struct vt_kv_query *q)
{
    struct vt_kv_capacity room;
    struct vt_err err = {0};

    if (vt_kv_capacity(q, &room, &err) != VT_OK)
        fail_msg("%s", err.msg);
    return room.engine.num_gpu_blocks;
}

static double off(double got, double want)
{
    return fabs(got / want - 1);
}

static void agrees_with_the_log(void **state)
{
    const struct log_row *r = *state;
    struct vt_kv_capacity room;
    struct vt_kv_query q;
    struct vt_arch a, draft;
    struct vt_gpu g;
    struct vt_err err = {0};

    ask(r->model, "H200", &a, &g, &q);
    q.engine.vllm = 26;
    q.kv.element_bytes = r->element_bytes;
    if (r->utilization > 0)
        q.gpu_memory_utilization = r->utilization;
    if (r->seqs > 0)
        q.engine.max_num_seqs = r->seqs;
    if (r->batched > 0)
        q.engine.max_num_batched_tokens = r->batched;
    if (r->draft) {
        assert_int_equal(vt_arch_load(&draft, r->draft, &err), VT_OK);
        q.kv.draft = &draft;
    }
    if (vt_kv_capacity(&q, &room, &err) != VT_OK)
        fail_msg("%s", err.msg);
    near(room.weights, r->weights, 0.25);
    assert_true(off(room.cache, r->cache) < 0.01);
    assert_true(off(room.engine.num_gpu_blocks, r->blocks) < 0.01);
    assert_true(off((double)room.tokens, (double)r->tokens) < 0.01);
    near(room.budget, 139.8 * q.gpu_memory_utilization, 1e-9);
    /* With as many blocks as it has, the tokens are exactly the log's. */
    room.engine.num_gpu_blocks = r->blocks;
    assert_int_equal(vt_kv_facts(&room.engine).tokens, r->tokens);
}

/* ---- what moves them -------------------------------------------------- */

static void blocks_follow_what_is_asked(void **state)
{
    struct vt_kv_query q;
    struct vt_arch a;
    struct vt_gpu g;
    uint32_t base;

    (void)state;
    ask("qwen3-8b", "H200", &a, &g, &q);
    base = blocks(&q);
    q.kv.element_bytes = 1;
    assert_true(blocks(&q) / 2 == base || blocks(&q) / 2 == base + 1);
    q.kv.element_bytes = 0;
    q.engine.block_size = 32;
    assert_int_equal(blocks(&q), base / 2);
    q.engine.block_size = 16;
    q.gpu_memory_utilization = 0.8;
    assert_true(blocks(&q) < base);
    q.gpu_memory_utilization = 0.9;
    q.engine.max_num_batched_tokens = 65536;
    assert_true(blocks(&q) < base);
    q.engine.max_num_batched_tokens = 8192;
    q.engine.max_num_seqs = 2048;
    assert_true(blocks(&q) < base);
    q.engine.max_num_seqs = 256;
    q.kv.tp = 2;
    assert_true(blocks(&q) > 2 * base);
}

static void a_model_that_does_not_fit_is_refused_with_the_reason(void **state)
{
    struct vt_kv_capacity room;
    struct vt_kv_query q;
    struct vt_arch a;
    struct vt_gpu g;
    struct vt_err err = {0};

    (void)state;
    ask("llama-3.3-70b-instruct", "H100", &a, &g, &q);
    assert_int_equal(vt_kv_capacity(&q, &room, &err), VT_EINPUT);
    assert_non_null(strstr(err.msg, "no room for a KV cache"));
    assert_non_null(strstr(err.msg, "weights take 131.45"));
    q.kv.tp = 3;
    assert_int_equal(vt_kv_capacity(&q, &room, &err), VT_EINPUT);
    assert_non_null(strstr(err.msg, "can't be shared by 3 GPUs"));
    q.kv.tp = 4;
    assert_int_equal(vt_kv_capacity(&q, &room, &err), VT_OK);
}

static void blis_counts_a_mixtures_ranks_together(void **state)
{
    struct vt_kv_query q;
    struct vt_arch a;
    struct vt_gpu g;

    (void)state;
    ask("mixtral-8x7b-instruct-v0.1", "H100", &a, &g, &q);
    q.kv.tp = 2;
    q.compat = VT_COMPAT_BLIS;
    assert_int_equal(blocks(&q), 48956);
    q.dp = 2;
    assert_int_equal(blocks(&q), 2 * 48956);
}

/* Whole ones or a part of each: a rank holds its share, and has room for more. */
static void a_mixtures_ranks_share_its_experts_out(void **state)
{
    struct vt_kv_capacity one, eight;
    struct vt_kv_query q;
    struct vt_arch a;
    struct vt_gpu g;
    struct vt_err err = {0};

    (void)state;
    ask("deepseek-ai/DeepSeek-V3", "H200", &a, &g, &q);
    assert_int_equal(vt_kv_capacity(&q, &one, &err), VT_EINPUT);
    q.dp = 8;
    assert_int_equal(vt_kv_capacity(&q, &eight, &err), VT_OK);
    assert_true(eight.weights > vt_arch_weight_bytes(&a, 1) / 0x1p30 / 8);
    ask("meta-llama/Llama-3.1-8B", "H200", &a, &g, &q);
    assert_int_equal(vt_kv_capacity(&q, &one, &err), VT_OK);
    q.dp = 8;
    assert_int_equal(vt_kv_capacity(&q, &eight, &err), VT_OK);
    assert_int_equal(eight.tokens, one.tokens);
}

/* ---- GPUs ------------------------------------------------------------- */

static struct gpu_row {
    const char *asked, *name;
    double usable_gib, tflops;
} gpu_names[] = {
    {"H200", "H200", 139.8, 989.5},
    {"h100", "H100", 79.11, 989.5},
    {"NVIDIA H100 80GB HBM3", "H100", 79.11, 989.5},
    {"H100-SXM5", "H100", 79.11, 989.5},
    {"h100_pcie", "H100-PCIe", 79.11, 756},
    {"A100", "A100-80", 79.15, 312},
    {"NVIDIA A100-SXM4-40GB", "A100-40", 39.39, 312},
    {"l40s", "L40S", 44.4, 362.05},
    {"L4", "L4", 22.03, 121},
    {"b200", "B200", 178.35, 2250},
    {"AMD Instinct MI300X", "MI300X", 191.69, 1307.4},
    {"NVIDIA H100 PCIe", "H100-PCIe", 79.11, 756},
    {"NVIDIA H100 NVL", "H100-NVL", 93.12, 835.5},
    {"a100-80", "A100-80", 79.15, 312},
    {"A100-SXM4-80GB", "A100-80", 79.15, 312},
    {"NVIDIA A100 80GB PCIe", "A100-80-PCIe", 79.15, 312},
    {"NVIDIA A100-PCIE-40GB", "A100-40-PCIe", 39.39, 312},
    {"NVIDIA A10G", "A10G", 22.06, 70},
    {"a10", "A10", 22.06, 125},
    {"RTX 4090", "RTX-4090", 23.64, 165.2},
    {"NVIDIA GeForce RTX 4090", "RTX-4090", 23.64, 165.2},
    {"rtx_pro_6000", "RTX-PRO-6000", 94.97, 503.8},
    {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX-PRO-6000", 94.97, 503.8},
    {"GB200", "GB200", 184.3, 2500},
    {"NVIDIA B300", "B300", 267.6, 2250},
};

/* As get_batch_defaults() of vLLM's arg_utils.py decides for its server. */
static struct limits_row {
    const char *gpu;
    uint32_t vllm, seqs, tokens;
} gpu_limits[] = {
    {"H100", 32, 1024, 8192},        {"H200", 26, 1024, 8192},
    {"A100-80", 32, 256, 2048},      {"A100-40", 32, 256, 2048},
    {"A100-80-PCIe", 32, 256, 2048}, {"L40S", 32, 256, 2048},
    {"RTX-4090", 32, 256, 2048},     {"RTX-PRO-6000", 32, 1024, 8192},
    {"B200", 28, 1024, 16384},       {"B200", 27, 1024, 8192},
    {"MI300X", 32, 1024, 16384},     {"MI300X", 26, 1024, 8192},
};

static void limits_are_those_that_vllm_takes_on_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < VT_COUNT(gpu_limits); i++) {
        const struct limits_row *r = &gpu_limits[i];
        struct vt_engine_config c;
        struct vt_gpu g;
        struct vt_err err = {0};

        vt_engine_config_init(&c);
        c.vllm = r->vllm;
        assert_int_equal(vt_gpu_find(&g, r->gpu, NULL, &err), VT_OK);
        vt_gpu_limits(&g, &c);
        if (c.max_num_seqs != r->seqs || c.max_num_batched_tokens != r->tokens)
            fail_msg("%s, 0.%u: %u requests, %u tokens", r->gpu, r->vllm,
                     c.max_num_seqs, c.max_num_batched_tokens);
    }
}

static void gpu_answers_to(void **state)
{
    const struct gpu_row *r = *state;
    struct vt_gpu g;
    struct vt_err err = {0};

    if (vt_gpu_find(&g, r->asked, NULL, &err) != VT_OK)
        fail_msg("%s", err.msg);
    assert_string_equal(g.name, r->name);
    near(g.usable_gib, r->usable_gib, 1e-9);
    near(g.fp16_tflops, r->tflops, 1e-9);
}

static void a_file_adds_and_overrides_gpus(void **state)
{
    const char *file = VT_TEST_DIR "/model/data/hw.json";
    struct vt_gpu g;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(vt_gpu_find(&g, "unit", file, &err), VT_OK);
    near(g.bandwidth_tbs, 0.001, 0);
    near(g.usable_gib, 98.9, 1e-9);
    assert_int_equal(vt_gpu_find(&g, "h100", file, &err), VT_OK);
    near(g.fp16_tflops, 989.5, 0);
    near(g.blis_gib, 96, 0);
    near(g.usable_gib, 0.989 * 96, 1e-9);
    assert_int_equal(vt_gpu_find(&g, "A100-80", file, &err), VT_OK);
    near(g.fp16_tflops, 300, 0);
    near(g.usable_gib, 78, 0);
    assert_int_equal(vt_gpu_find(&g, "L4", file, &err), VT_OK);
    assert_int_equal(vt_gpu_find(&g, "L5", file, &err), VT_EINPUT);
    assert_non_null(strstr(err.msg, "unknown GPU 'L5'"));
    assert_int_equal(vt_gpu_find(&g, "unit", VT_TEST_DIR "/model/data", &err),
                     VT_EINPUT);
}

int main(void)
{
    enum { L = VT_COUNT(logs), G = VT_COUNT(gpu_names), REST = 5 };
    struct CMUnitTest tests[L + G + REST] = {
        cmocka_unit_test(blocks_follow_what_is_asked),
        cmocka_unit_test(a_model_that_does_not_fit_is_refused_with_the_reason),
        cmocka_unit_test(limits_are_those_that_vllm_takes_on_it),
        cmocka_unit_test(blis_counts_a_mixtures_ranks_together),
        cmocka_unit_test(a_mixtures_ranks_share_its_experts_out),
        cmocka_unit_test(a_file_adds_and_overrides_gpus),
    };

    for (size_t i = 0; i < L; i++)
        tests[REST + i] = (struct CMUnitTest){.name = logs[i].name,
                                              .test_func = agrees_with_the_log,
                                              .initial_state = &logs[i]};
    for (size_t i = 0; i < G; i++)
        tests[REST + L + i] = (struct CMUnitTest){.name = gpu_names[i].asked,
                                                  .test_func = gpu_answers_to,
                                                  .initial_state = &gpu_names[i]};
    return cmocka_run_group_tests_name("kv_capacity", tests, NULL, NULL);
}

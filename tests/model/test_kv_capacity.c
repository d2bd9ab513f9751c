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

/* ---- vLLM 0.26.0 on one H200, from its logs --------------------------- */

static struct log_row {
    const char *name, *model;
    uint32_t blocks;
    double weights, cache; /* GiB */
} logs[] = {
    {"dense 8B", "qwen3-8b", 49626, 15.27, 109.04},
    {"dense 8B, compiled at an earlier start", "qwen3-8b", 49855, 15.27, 109.55},
    {"mixture of 30B", "qwen3-30b-a3b", 45781, 56.88, 67.06},
    {"dense 70B in FP8", "llama-70b-fp8", 11392, 67.7, 55.63},
};

static void ask(const char *model, const char *gpu, struct vt_arch *a, struct vt_gpu *g,
                struct vt_kv_query *q)
{
    struct vt_err err = {0};

    vt_kv_query_init(q);
    if (vt_arch_load(a, model, &err) != VT_OK ||
        vt_gpu_find(g, gpu, NULL, &err) != VT_OK)
        fail_msg("%s", err.msg);
    q->arch = a;
    q->gpu = g;
}

static uint32_t blocks(const struct vt_kv_query *q)
{
    struct vt_kv_capacity room;
    struct vt_err err = {0};

    if (vt_kv_capacity(q, &room, &err) != VT_OK)
        fail_msg("%s", err.msg);
    return room.num_gpu_blocks;
}

static void agrees_with_the_log(void **state)
{
    const struct log_row *r = *state;
    struct vt_kv_capacity room;
    struct vt_kv_query q;
    struct vt_arch a;
    struct vt_gpu g;
    struct vt_err err = {0};

    ask(r->model, "H200", &a, &g, &q);
    assert_int_equal(vt_kv_capacity(&q, &room, &err), VT_OK);
    near(room.weights, r->weights, 0.05);
    assert_true(fabs(room.cache / r->cache - 1) < 0.006);
    assert_true(fabs((double)room.num_gpu_blocks / r->blocks - 1) < 0.006);
    near(room.budget, 125.82, 1e-9);
    assert_int_equal(room.tokens, 16ull * room.num_gpu_blocks);
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
    q.kv_element_bytes = 1;
    assert_true(blocks(&q) / 2 == base || blocks(&q) / 2 == base + 1);
    q.kv_element_bytes = 0;
    q.block_size = 32;
    assert_int_equal(blocks(&q), base / 2);
    q.block_size = 16;
    q.gpu_memory_utilization = 0.8;
    assert_true(blocks(&q) < base);
    q.gpu_memory_utilization = 0.9;
    q.max_num_batched_tokens = 65536;
    assert_true(blocks(&q) < base);
    q.max_num_batched_tokens = 8192;
    q.max_num_seqs = 2048;
    assert_true(blocks(&q) < base);
    q.max_num_seqs = 256;
    q.tp = 2;
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
    assert_non_null(strstr(err.msg, "weights take 131.42"));
    q.tp = 3;
    assert_int_equal(vt_kv_capacity(&q, &room, &err), VT_EINPUT);
    assert_non_null(strstr(err.msg, "can't be shared by 3 GPUs"));
    q.tp = 4;
    assert_int_equal(vt_kv_capacity(&q, &room, &err), VT_OK);
}

static void blis_counts_a_mixtures_ranks_together(void **state)
{
    struct vt_kv_query q;
    struct vt_arch a;
    struct vt_gpu g;

    (void)state;
    ask("mixtral-8x7b-instruct-v0.1", "H100", &a, &g, &q);
    q.tp = 2;
    q.compat = VT_COMPAT_BLIS;
    assert_int_equal(blocks(&q), 48956);
    q.dp = 2;
    assert_int_equal(blocks(&q), 2 * 48956);
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
};

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
    enum { L = VT_COUNT(logs), G = VT_COUNT(gpu_names), REST = 4 };
    struct CMUnitTest tests[L + G + REST] = {
        cmocka_unit_test(blocks_follow_what_is_asked),
        cmocka_unit_test(a_model_that_does_not_fit_is_refused_with_the_reason),
        cmocka_unit_test(blis_counts_a_mixtures_ranks_together),
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

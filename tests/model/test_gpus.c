/* profiles/gpus.json: what tools/learn_gpus makes of measured kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/model.h"

static const char *const ratios[] = {
    "attn_mfu",    "bw",           "bw8",       "int4_bw", "int4_mfu",
    "int4_own_bw", "kv_bw",        "kv_bw8",    "layer",   "mfu16",
    "mfu8",        "int4_own_mfu", "mla_bw",    "mla_mfu", "moe_bw",
    "moe_bw8",     "moe_mfu8",     "moe_mfu16", "mx_bw",   "mx_mfu",
};

static const struct vt_node *load(struct vt_arena *arena)
{
    const struct vt_builtin *f = vt_builtin_find("gpus.json");
    const struct vt_node *root = NULL;
    struct vt_err err = {0};

    assert_non_null(f);
    if (vt_json_parse(arena, f->text, f->len, 1, &root, &err) != VT_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(root->kind, VT_MAP);
    assert_true(root->n >= 12);
    return root;
}

static double number(const struct vt_node *gpu, const char *key)
{
    struct vt_err err = {0};
    double v = 0;

    if (vt_get_f64(gpu, key, VT_REQUIRED, 0, 1e6, &v, &err) != VT_OK)
        fail_msg("%s: %s", gpu->key, err.msg);
    return v;
}

static void every_gpu_has_every_ratio_within_reason(void **state)
{
    struct vt_arena arena = {0};
    const struct vt_node *root = load(&arena);

    (void)state;
    for (uint32_t i = 0; i < root->n; i++)
        for (size_t k = 0; k < VT_COUNT(ratios); k++) {
            double v = number(&root->u.item[i], ratios[k]);

            if (v < 0.25 || v > 2.5)
                fail_msg("%s of %s is %g", ratios[k], root->u.item[i].key, v);
        }
    vt_arena_free(&arena);
}

static void reference_is_one(void **state)
{
    struct vt_arena arena = {0};
    const struct vt_node *h200 = vt_get(load(&arena), "H200");

    (void)state;
    for (size_t k = 0; k < VT_COUNT(ratios); k++)
        if (!strstr(ratios[k], "own"))
            assert_float_equal(number(h200, ratios[k]), 1, 0);
    vt_arena_free(&arena);
}

/* A share means nothing without the peak that it is a share of. */
static void peaks_are_those_of_the_gpu_table(void **state)
{
    struct vt_arena arena = {0};
    const struct vt_node *root = load(&arena);

    (void)state;
    for (uint32_t i = 0; i < root->n; i++) {
        const struct vt_node *gpu = &root->u.item[i];
        struct vt_err err = {0};
        struct vt_gpu g;

        if (vt_gpu_find(&g, gpu->key, NULL, &err) != VT_OK)
            fail_msg("%s", err.msg);
        assert_string_equal(g.name, gpu->key);
        if (number(gpu, "tb_s") != g.bandwidth_tbs ||
            number(gpu, "tflops16") != g.fp16_tflops ||
            number(gpu, "tflops8") != g.fp8_tflops)
            fail_msg("%s has other peaks than %s", gpu->key, g.name);
    }
    vt_arena_free(&arena);
}

static void more_gpus_reduce_no_faster_than_two_on_a_bus(void **state)
{
    struct vt_arena arena = {0};
    const struct vt_node *root = load(&arena);

    (void)state;
    for (uint32_t i = 0; i < root->n; i++) {
        const struct vt_node *gpu = &root->u.item[i];
        const struct vt_node *us = vt_get(gpu, "allreduce_us");
        const struct vt_node *gbs = vt_get(gpu, "allreduce_gbs");

        assert_true(number(us, "2") <= number(us, "4") * 1.001);
        assert_true(number(us, "4") <= number(us, "8") * 1.001);
        if (vt_get(gpu, "nvlink")->u.boolean)
            assert_true(number(gbs, "8") > 50);
        else
            assert_true(number(gbs, "8") < number(gbs, "2"));
    }
    vt_arena_free(&arena);
}

static void constants_are_no_profile(void **state)
{
    struct vt_buf text = {0};
    struct vt_err err = {0};
    bool found = true;

    (void)state;
    assert_false(vt_builtin_is_profile(vt_builtin_find("gpus.json")));
    assert_int_equal(vt_profile_text("gpus", &text, &found, &err), VT_OK);
    assert_false(found);
    vt_buf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_gpu_has_every_ratio_within_reason),
        cmocka_unit_test(reference_is_one),
        cmocka_unit_test(peaks_are_those_of_the_gpu_table),
        cmocka_unit_test(more_gpus_reduce_no_faster_than_two_on_a_bus),
        cmocka_unit_test(constants_are_no_profile),
    };

    return cmocka_run_group_tests_name("gpus", tests, NULL, NULL);
}

/* How far times are to be trusted: what profiles and estimates say of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/model.h"

#define PROFILE(rest) "{\"name\":\"p\",\"model\":{\"kind\":\"step\"}" rest "}"

static int parse(struct vt_profile *p, const char *text, struct vt_err *err)
{
    return vt_profile_parse(p, "p", text, strlen(text), err);
}

static void basis_of(struct vt_basis *b, const char *text)
{
    struct vt_profile p;
    struct vt_err err = {0};

    if (parse(&p, text, &err) != VT_OK || vt_basis_of_profile(b, &p, &err) != VT_OK)
        fail_msg("%s", err.msg);
    vt_profile_close(&p);
}

static void a_fit_is_measured_and_off_by_what_it_says(void **state)
{
    struct vt_basis b;
    struct vt_buf text = {0};

    (void)state;
    basis_of(&b, PROFILE(",\"expected_error_pct\":{\"e2e\":3.8,\"itl\":2}"));
    assert_int_equal(b.kind, VT_MEASURED);
    assert_float_equal(b.expected[VT_TRUST_E2E], 3.8, 1e-9);
    vt_basis_table(&text, &b); /* and nothing of what it does not say */
    vt_buf_char(&text, '\0');
    assert_string_equal(text.data, "basis        measured; within E2E 4 %, ITL 2 %\n");
    vt_buf_free(&text);
}

/* How much larger than a median an error may be is not guessed. */
static void a_fit_that_states_medians_alone_promises_nothing(void **state)
{
    struct vt_basis b;
    struct vt_buf text = {0};

    (void)state;
    basis_of(&b, PROFILE(",\"provenance\":{\"median_error_percent\":{"
                         "\"in_sample\":{\"e2e\":1},\"out_of_sample\":{\"e2e\":2}}}"));
    assert_int_equal(b.kind, VT_MEASURED);
    assert_false(b.has_expected);
    vt_basis_table(&text, &b);
    vt_buf_char(&text, '\0');
    assert_string_equal(text.data,
                        "basis        measured; how far it may be off is not known\n");
    vt_buf_free(&text);
}

static void a_profile_may_say_all_of_it(void **state)
{
    struct vt_basis b;

    (void)state;
    basis_of(&b, PROFILE(",\"basis\":\"estimated\",\"expected_error_pct\":{\"itl\":7},"
                         "\"outside\":[\"one\",\"two\"]"));
    assert_int_equal(b.kind, VT_ESTIMATED);
    assert_true(b.expected[VT_TRUST_ITL] > 6.9 && b.expected[VT_TRUST_ITL] < 7.1);
    assert_int_equal(b.n_outside, 2);
    assert_string_equal(b.outside[1], "two");
}

static void other_kinds_of_models_claim_nothing(void **state)
{
    struct vt_basis b;
    struct vt_buf text = {0};

    (void)state;
    basis_of(&b, "{\"name\":\"p\",\"model\":{\"kind\":\"null\"}}");
    assert_int_equal(b.kind, VT_BASIS_UNKNOWN);
    vt_basis_table(&text, &b);
    assert_int_equal(text.len, 0);
    vt_buf_free(&text);
}

static void what_is_no_basis_is_refused(void **state)
{
    static const char *const bad[][2] = {
        {PROFILE(",\"basis\":\"guessed\""), "'guessed' is none of measured"},
        {PROFILE(",\"outside\":\"x\""), "field 'outside' is no list"},
        {PROFILE(",\"outside\":[1]"), "field 'outside': 0 is no text"},
        {PROFILE(",\"expected_error_pct\":{\"e2e\":-1}"), "expected_error_pct"},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(bad); i++) {
        struct vt_profile p;
        struct vt_err err = {0};

        assert_int_equal(parse(&p, bad[i][0], &err), VT_EINPUT);
        if (!strstr(err.msg, bad[i][1]))
            fail_msg("not '%s' in: %s", bad[i][1], err.msg);
    }
}

static void an_estimate_says_what_it_is_off_by_and_what_is_outside(void **state)
{
    struct vt_arch arch;
    struct vt_gpu h200, a100;
    struct vt_estimate e;
    struct vt_estimate_query q = {.arch = &arch, .gpu = &h200, .tp = 1};
    struct vt_basis near, far;
    struct vt_buf text = {0};
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(vt_arch_load(&arch, "llama-3.1-8b", &err), VT_OK);
    assert_int_equal(vt_gpu_find(&h200, "H200", NULL, &err), VT_OK);
    assert_int_equal(vt_gpu_find(&a100, "A100-80", NULL, &err), VT_OK);
    assert_int_equal(vt_estimate(&e, &q, &err), VT_OK);
    vt_basis_of_estimate(&near, &e);
    q.gpu = &a100;
    assert_int_equal(vt_estimate(&e, &q, &err), VT_OK);
    vt_basis_of_estimate(&far, &e);
    assert_int_equal(near.kind, VT_ESTIMATED);
    assert_true(near.expected[VT_TRUST_E2E] > 0);
    assert_true(far.expected[VT_TRUST_E2E] >= near.expected[VT_TRUST_E2E]);
    assert_true(far.n_outside > near.n_outside);
    vt_basis_table(&text, &far);
    vt_buf_char(&text, '\0');
    assert_non_null(strstr(text.data, "basis        estimated; within E2E "));
    assert_non_null(strstr(text.data, "outside      A100-80: "));
    vt_buf_free(&text);
}

/* ---- what makes a profile another model's ---------------------------------- */

static void a_model_is_the_same_by_its_shapes_and_formats_alone(void **state)
{
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        {"Qwen/Qwen3-8B", "qwen3-8b", true},
        {"Qwen/Qwen3-8B", "Qwen/Qwen3-8B-Base", true}, /* but for its length */
        {"llama-3.1-8b", "DeepSeek-R1-Distill-Llama-8B", true},
        {"Qwen/Qwen3-8B", "Qwen/Qwen3-8B-FP8", false},
        {"Qwen/Qwen3-8B", "Qwen/Qwen3-14B", false},
        {"mistral-7b-v0.1", "mistral-7b-instruct-v0.2", false}, /* a window */
        {"llama-3.1-70b", "llama-2-70b-hf", false},             /* the vocabulary */
        {"Qwen/Qwen2.5-7B", "Qwen/Qwen3-8B", false},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct vt_arch a, b;
        struct vt_err err = {0};

        if (vt_arch_load(&a, rows[i].a, &err) || vt_arch_load(&b, rows[i].b, &err))
            fail_msg("%s", err.msg);
        if (vt_arch_same(&a, &b) != rows[i].same)
            fail_msg("%s and %s", rows[i].a, rows[i].b);
    }
}

static void flags_change_number_formats_where_vllm_would(void **state)
{
    static const struct {
        const char *model, *quantization, *dtype;
        double bytes; /* of a weight; 0: refused */
    } rows[] = {
        {"qwen3-8b", NULL, NULL, 2},        {"qwen3-8b", "auto", "auto", 2},
        {"qwen3-8b", "fp8", NULL, 1},       {"qwen3-8b", "bitsandbytes", NULL, 0.5},
        {"qwen3-8b", NULL, "half", 2},      {"qwen3-8b", "gptq", NULL, 0},
        {"qwen3-8b-awq", "awq", NULL, 0.5}, {"qwen3-8b-awq", "awq_marlin", NULL, 0.5},
        {"qwen3-8b-awq", "fp8", NULL, 0},   {"qwen3-8b-fp8", "fp8", "float16", 1},
        {"qwen3-8b", NULL, "float32", 0},   {"qwen3-8b", NULL, "words", 0},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct vt_arch a;
        struct vt_err err = {0};
        bool good;

        assert_int_equal(vt_arch_load(&a, rows[i].model, &err), VT_OK);
        good = vt_arch_quantize(&a, rows[i].quantization, &err) == VT_OK &&
               vt_arch_set_dtype(&a, rows[i].dtype, &err) == VT_OK;
        if (good != (rows[i].bytes > 0) ||
            (good && !(a.weight_bytes > 0.99 * rows[i].bytes &&
                       a.weight_bytes < 1.01 * rows[i].bytes)))
            fail_msg("%zu: %s %g %s", i, rows[i].model, a.weight_bytes, err.msg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fit_is_measured_and_off_by_what_it_says),
        cmocka_unit_test(a_fit_that_states_medians_alone_promises_nothing),
        cmocka_unit_test(a_profile_may_say_all_of_it),
        cmocka_unit_test(other_kinds_of_models_claim_nothing),
        cmocka_unit_test(what_is_no_basis_is_refused),
        cmocka_unit_test(an_estimate_says_what_it_is_off_by_and_what_is_outside),
        cmocka_unit_test(a_model_is_the_same_by_its_shapes_and_formats_alone),
        cmocka_unit_test(flags_change_number_formats_where_vllm_would),
    };

    return cmocka_run_group_tests_name("basis", tests, NULL, NULL);
}

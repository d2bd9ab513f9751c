/* Models known by name: as large as their makers say, found however they are spelt. */
#include "../place.h"

#include <math.h>

#include <stdlib.h>

#include "arch_testing.h"

/* ---- sizes that makers publish ------------------------------------------ */

/* Billions, as model cards and the weights' own indices state them. Where only the
 * language part of a larger model is served, that part's. Some makers leave embeddings
 * out of what a token meets: `left_out` matrices of them. */
static struct published {
    const char *name;
    double total, active; /* active 0: dense, or not published */
    unsigned left_out;
} published[] = {
    {"meta-llama/Llama-2-7b-hf", 6.74, 0, 0},
    {"meta-llama/Llama-2-13b-chat-hf", 13.02, 0, 0},
    {"meta-llama/Llama-2-70b-hf", 68.98, 0, 0},
    {"meta-llama/Meta-Llama-3-8B-Instruct", 8.03, 0, 0},
    {"meta-llama/Llama-3.1-70B-Instruct", 70.6, 0, 0},
    {"meta-llama/Llama-3.1-405B", 405.9, 0, 0},
    {"meta-llama/Llama-3.2-1B", 1.24, 0, 0},
    {"meta-llama/Llama-3.2-3B-Instruct", 3.21, 0, 0},
    {"meta-llama/Llama-4-Scout-17B-16E-Instruct", 107.8, 17.2, 0},
    {"meta-llama/Llama-4-Maverick-17B-128E-Instruct", 400.7, 17.2, 0},
    {"codellama/CodeLlama-34b-Instruct-hf", 33.7, 0, 0},
    {"TinyLlama/TinyLlama-1.1B-Chat-v1.0", 1.1, 0, 0},
    {"Qwen/Qwen2.5-0.5B", 0.494, 0, 0},
    {"Qwen/Qwen2.5-1.5B-Instruct", 1.54, 0, 0},
    {"Qwen/Qwen2.5-3B", 3.09, 0, 0},
    {"Qwen/Qwen2.5-7B-Instruct", 7.62, 0, 0},
    {"Qwen/Qwen2.5-14B-Instruct", 14.8, 0, 0},
    {"Qwen/Qwen2.5-32B-Instruct", 32.8, 0, 0},
    {"Qwen/Qwen2.5-72B-Instruct", 72.7, 0, 0},
    {"Qwen/Qwen1.5-MoE-A2.7B", 14.3, 2.7, 0},
    {"deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", 1.78, 0, 0},
    {"Qwen/Qwen3-0.6B", 0.596, 0, 0},
    {"Qwen/Qwen3-1.7B", 1.72, 0, 0},
    {"Qwen/Qwen3-4B", 4.02, 0, 0},
    {"Qwen/Qwen3-8B", 8.19, 0, 0},
    {"Qwen/Qwen3-14B", 14.8, 0, 0},
    {"Qwen/Qwen3-32B", 32.8, 0, 0},
    {"Qwen/Qwen3-30B-A3B", 30.5, 3.3, 0},
    {"Qwen/Qwen3-235B-A22B", 235.1, 22.2, 0},
    {"Qwen/Qwen3-Coder-480B-A35B-Instruct", 480, 35.5, 0},
    {"Qwen/Qwen3-Next-80B-A3B-Instruct", 79.7, 3.87, 0},
    {"Qwen/Qwen3.5-27B", 26.9, 0, 0},
    {"Qwen/Qwen3.5-122B-A10B", 122, 9.8, 0},
    {"Qwen/Qwen3.5-397B-A17B", 397, 17.3, 0},
    {"mistralai/Mistral-7B-Instruct-v0.2", 7.24, 0, 0},
    {"mistralai/Mistral-7B-Instruct-v0.3", 7.25, 0, 0},
    {"mistralai/Mistral-Nemo-Instruct-2407", 12.2, 0, 0},
    {"mistralai/Mistral-Small-Instruct-2409", 22.2, 0, 0},
    {"mistralai/Mistral-Small-24B-Instruct-2501", 23.6, 0, 0},
    {"mistralai/Mistral-Large-Instruct-2407", 122.6, 0, 0},
    {"mistralai/Mixtral-8x7B-Instruct-v0.1", 46.7, 12.9, 0},
    {"mistralai/Mixtral-8x22B-Instruct-v0.1", 140.6, 39.1, 0},
    {"google/gemma-2-2b-it", 2.61, 0, 0},
    {"google/gemma-2-9b-it", 9.24, 0, 0},
    {"google/gemma-2-27b-it", 27.2, 0, 0},
    {"google/gemma-3-270m-it", 0.268, 0, 0},
    {"google/gemma-3-1b-it", 1.0, 0, 0},
    {"google/gemma-3-4b-it", 3.88, 0, 0},
    {"google/gemma-3-12b-it", 11.8, 0, 0},
    {"google/gemma-3-27b-it", 27.0, 0, 0},
    {"google/gemma-4-26B-A4B-it", 25.2, 3.8, 0},
    {"google/gemma-4-31B-it", 30.7, 0, 0},
    {"microsoft/Phi-3-mini-4k-instruct", 3.82, 0, 0},
    {"microsoft/Phi-3-medium-128k-instruct", 14.0, 0, 0},
    {"microsoft/Phi-3.5-MoE-instruct", 41.9, 6.6, 0},
    {"microsoft/Phi-4-mini-instruct", 3.84, 0, 0},
    {"microsoft/phi-4", 14.7, 0, 0},
    {"openai/gpt-oss-20b", 20.9, 3.6, 1},
    {"openai/gpt-oss-120b", 116.8, 5.1, 1},
    {"deepseek-ai/DeepSeek-V2-Lite", 15.7, 2.4, 1},
    {"deepseek-ai/DeepSeek-V2", 236, 21, 0},
    {"deepseek-ai/DeepSeek-V3-0324", 671, 37, 0},
    {"deepseek-ai/DeepSeek-R1", 671, 37, 0},
    {"deepseek-ai/deepseek-llm-67b-chat", 67.4, 0, 0},
    {"deepseek-ai/deepseek-coder-33b-instruct", 33.3, 0, 0},
    {"moonshotai/Moonlight-16B-A3B-Instruct", 16.0, 2.9, 0},
    {"moonshotai/Kimi-K2-Instruct", 1026, 32.9, 0},
    {"zai-org/GLM-4-9B-0414", 9.4, 0, 0},
    {"zai-org/GLM-4-32B-0414", 32.6, 0, 0},
    {"zai-org/GLM-4.5", 355, 32, 2},
    {"zai-org/GLM-4.5-Air", 106, 12, 2},
    {"MiniMaxAI/MiniMax-M2", 228.7, 11, 0},
    {"MiniMaxAI/MiniMax-Text-01", 456, 45.9, 2},
    {"ibm-granite/granite-3.1-2b-instruct", 2.53, 0, 0},
    {"ibm-granite/granite-3.1-8b-instruct", 8.17, 0, 0},
    {"ibm-granite/granite-3.1-1b-a400m-instruct", 1.33, 0.43, 0},
    {"ibm-granite/granite-3.1-3b-a800m-instruct", 3.3, 0.88, 0},
    {"HuggingFaceTB/SmolLM2-135M", 0.135, 0, 0},
    {"HuggingFaceTB/SmolLM2-360M", 0.362, 0, 0},
    {"HuggingFaceTB/SmolLM2-1.7B", 1.71, 0, 0},
    {"HuggingFaceTB/SmolLM3-3B", 3.08, 0, 0},
    {"allenai/OLMoE-1B-7B-0924-Instruct", 6.92, 1.3, 0},
    {"allenai/OLMo-2-1124-7B-Instruct", 7.3, 0, 0},
    {"allenai/OLMo-2-0325-32B-Instruct", 32.2, 0, 0},
    {"ByteDance-Seed/Seed-OSS-36B-Instruct", 36.2, 0, 0},
    {"CohereLabs/c4ai-command-r-v01", 35.0, 0, 0},
    {"CohereLabs/c4ai-command-r-plus-08-2024", 103.8, 0, 0},
    {"CohereLabs/c4ai-command-r7b-12-2024", 8.03, 0, 0},
    {"01-ai/Yi-1.5-34B-Chat", 34.4, 0, 0},
    {"tiiuae/Falcon3-7B-Instruct", 7.46, 0, 0},
    {"nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 31.6, 3.6, 0},
};

static void within(const char *what, double got, double want, double tolerance)
{
    if (!(fabs(got / want - 1) <= tolerance))
        fail_msg("%s: %.4g B, published are %.4g B", what, got, want);
}

static void has_the_published_size(void **state)
{
    const struct published *r = *state;
    struct vt_arch a;
    struct vt_err err = {0};

    if (vt_arch_load(&a, r->name, &err) != VT_OK)
        fail_msg("%s", err.msg);
    within("all", vt_arch_params(&a) * 1e-9, r->total, r->total < 300 ? 0.01 : 0.02);
    if (r->active > 0)
        within("for a token",
               (vt_arch_active_params(&a) - 1.0 * r->left_out * a.vocab * a.hidden) *
                   1e-9,
               r->active, 0.025);
    assert_true((a.experts > 0) == (r->active > 0));
    assert_string_equal(a.puzzle, "");
}

/* ---- quantised ones ------------------------------------------------------ */

static struct variant {
    const char *name, *of;
    double bytes; /* of a parameter, about */
} variants[] = {
    {"Qwen/Qwen3-8B-FP8", "Qwen/Qwen3-8B", 1.15},
    {"Qwen/Qwen3-32B-AWQ", "Qwen/Qwen3-32B", 0.59},
    {"Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8", "Qwen/Qwen2.5-7B-Instruct", 1.16},
    {"RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16", "meta-llama/Llama-3.1-8B",
     0.71},
    {"nvidia/Llama-3.3-70B-Instruct-NVFP4", "meta-llama/Llama-3.3-70B-Instruct", 0.61},
    {"meta-llama/Llama-3.1-405B-FP8", "meta-llama/Llama-3.1-405B", 1.01},
    {"openai/gpt-oss-120b", "openai/gpt-oss-120b", 0.56},
    {"moonshotai/Kimi-K2-Thinking", "moonshotai/Kimi-K2-Instruct", 0.585},
    {"nvidia/DeepSeek-R1-NVFP4", "deepseek-ai/DeepSeek-R1", 0.595},
};

static void is_smaller_in_bytes_alone(void **state)
{
    const struct variant *r = *state;
    struct vt_arch a, of;
    struct vt_err err = {0};

    if (vt_arch_load(&a, r->name, &err) != VT_OK ||
        vt_arch_load(&of, r->of, &err) != VT_OK)
        fail_msg("%s", err.msg);
    within("parameters", vt_arch_params(&a), vt_arch_params(&of), 1e-9);
    within("bytes", vt_arch_weight_bytes(&a, 1) / vt_arch_params(&a), r->bytes, 0.02);
}

/* ---- the table as a whole -------------------------------------------------- */

struct census {
    char (*name)[96]; /* sorted afterwards */
    size_t n;
};

static int count_name(void *user, const char *name, const struct vt_arch *a,
                      struct vt_err *err)
{
    struct census *c = user;

    (void)err;
    assert_true(c->n < 1000);
    assert_true(strlen(name) < sizeof(c->name[0]));
    assert_true(vt_arch_params(a) > 1e8);
    assert_true(a->max_len >= 2048);
    snprintf(c->name[c->n++], sizeof(c->name[0]), "%s", name);
    return VT_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void every_line_is_read_and_no_name_comes_twice(void **state)
{
    static char names[1000][96];
    struct census c = {.name = names};
    struct vt_err err = {0};

    (void)state;
    if (vt_arch_each_known(count_name, &c, &err) != VT_OK)
        fail_msg("%s", err.msg);
    assert_true(c.n >= 300);
    qsort(names, c.n, sizeof(names[0]), by_name);
    for (size_t i = 1; i < c.n; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            fail_msg("%s comes twice", names[i]);
}

/* ---- names ----------------------------------------------------------------- */

static struct spelling {
    const char *name;
    bool known;
} spellings[] = {
    {"meta-llama/Llama-3.1-8B", true},
    {"META-LLAMA/llama-3.1-8b", true},
    {"llama-3.1-8b", true},
    {"other/llama-3.1-8b", false}, /* might be anything */
    {"llama-3.1-8", false},
    {"", false},
};

static void is_known_or_not(void **state)
{
    const struct spelling *r = *state;

    assert_true(vt_arch_is_known(r->name) == r->known);
}

static void a_format_may_stand_behind_a_name(void **state)
{
    struct vt_arch plain, fp8;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(vt_arch_load(&plain, "meta-llama/Llama-3.1-70B", &err), VT_OK);
    assert_int_equal(vt_arch_load(&fp8, "meta-llama/Llama-3.1-70B (fp8)", &err), VT_OK);
    assert_float_equal(vt_arch_dense_bytes(&plain), 2, 1e-9);
    assert_float_equal(vt_arch_dense_bytes(&fp8), 1, 1e-9);
    assert_int_equal(vt_arch_load(&fp8, "meta-llama/Llama-3.1-70B (odd)", &err),
                     VT_EINPUT);
    assert_int_equal(vt_arch_load(&fp8, "nobody/knows-it (fp8)", &err), VT_EINPUT);
}

static struct unknown {
    const char *asked, *nearest;
} unknowns[] = {
    {"meta-llama/Llama-3.1-9B", "meta-llama/Llama-3.1-8B,"},
    {"llama-8b", "meta-llama/Llama-3.1-8B,"},
    {"qwen-3-8b", "Qwen/Qwen3-8B,"},
    {"gpt-oss", "openai/gpt-oss-20b,"},
    {"mixtral", "mistralai/Mixtral-8x7B-v0.1,"},
    {"zai-org/GLM-4.5-air-fp16", "zai-org/GLM-4.5-Air"},
    {"-", "the nearest known are "},
};

static void is_told_the_nearest(void **state)
{
    const struct unknown *r = *state;
    struct vt_arch a;
    struct vt_err err = {0};

    assert_int_equal(vt_arch_load(&a, r->asked, &err), VT_EINPUT);
    assert_non_null(strstr(err.msg, "is neither a known model nor a config.json"));
    assert_non_null(strstr(err.msg, "any other by the path of its config.json"));
    if (!strstr(err.msg, r->nearest))
        fail_msg("not %s in: %s", r->nearest, err.msg);
}

/* ---- files ----------------------------------------------------------------- */

#define SMALL                                                                \
    "{\"num_hidden_layers\":4,\"hidden_size\":64,\"num_attention_heads\":4," \
    "\"intermediate_size\":256,\"vocab_size\":1000}"

static void a_directory_will_do_and_its_number_format_counts(void **state)
{
    struct vt_arch a;
    struct vt_err err = {0};
    struct place p;
    const char *file;

    (void)state;
    place_begin(&p);
    file = place_put(&p, "config.json", SMALL);
    assert_int_equal(vt_arch_load(&a, file, &err), VT_OK);
    assert_int_equal(vt_arch_load(&a, p.directory, &err), VT_OK);
    assert_int_equal(a.layers, 4);
    assert_true(a.weight_bytes > 1.9);
    (void)place_put(&p, "hf_quant_config.json",
                    "{\"quantization\":{\"quant_algo\":\"NVFP4\","
                    "\"kv_cache_quant_algo\":\"FP8\"}}");
    assert_int_equal(vt_arch_load(&a, p.directory, &err), VT_OK);
    assert_true(a.weight_bytes < 0.51);
    assert_true(a.kv_bytes < 1.1);
    place_end(&p);
}

static void a_path_that_is_not_there_is_a_file_that_is_missing(void **state)
{
    struct vt_arch a;
    struct vt_err err = {0};

    (void)state;
    assert_int_not_equal(vt_arch_load(&a, "nowhere/config.json", &err), VT_OK);
    assert_string_equal(err.msg, "nowhere/config.json: No such file or directory");
}

int main(void)
{
    struct CMUnitTest tests[VT_COUNT(published) + VT_COUNT(variants) +
                            VT_COUNT(spellings) + VT_COUNT(unknowns) + 4] = {
        cmocka_unit_test(every_line_is_read_and_no_name_comes_twice),
        cmocka_unit_test(a_directory_will_do_and_its_number_format_counts),
        cmocka_unit_test(a_path_that_is_not_there_is_a_file_that_is_missing),
        cmocka_unit_test(a_format_may_stand_behind_a_name),
    };
    size_t n = 4;

    ADD(published, has_the_published_size);
    ADD(variants, is_smaller_in_bytes_alone);
    ADD(spellings, is_known_or_not);
    ADD(unknowns, is_told_the_nearest);
    return cmocka_run_group_tests_name("known models", tests, NULL, NULL);
}

/* Estimates of engines that nobody measured: what must hold whatever its constants
 * are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "model/model.h"

static struct vt_arch arch_of(const char *name)
{
    struct vt_arch a;
    struct vt_err err;

    assert_int_equal(vt_arch_load(&a, name, &err), VT_OK);
    return a;
}

static struct vt_gpu gpu_of(const char *name)
{
    struct vt_gpu g;
    struct vt_err err;

    assert_int_equal(vt_gpu_find(&g, name, NULL, &err), VT_OK);
    return g;
}

static const struct vt_graphs no_graphs = {.none = true};

struct load { /* a step */
    uint32_t decodes, context, prompt;
};

/* GPU time of a step, us. */
static double step_us(const struct vt_estimate *e, struct load l)
{
    struct vt_item item[513] = {0};
    struct vt_step_plan plan = {.item = item,
                                .n = l.decodes + (l.prompt > 0),
                                .n_decodes = l.decodes,
                                .n_prefills = l.prompt > 0,
                                .decode_tokens = l.decodes,
                                .prefill_tokens = l.prompt,
                                .decode_ctx = (uint64_t)l.decodes * l.context,
                                .running = l.decodes + (l.prompt > 0)};
    struct vt_step_features f;
    struct vt_step_cost cost = {0};

    for (uint32_t i = 0; i < l.decodes; i++)
        item[i] = (struct vt_item){.computed = l.context, .tokens = 1};
    if (l.prompt > 0)
        item[l.decodes] = (struct vt_item){.prefill = true, .tokens = l.prompt};
    vt_step_features(&e->params, &plan, 256, &f);
    vt_step_cost(&e->params, &f, &cost);
    return cost.gpu_us;
}

static struct vt_estimate estimate(const struct vt_estimate_query *q)
{
    struct vt_estimate e;
    struct vt_err err;

    assert_int_equal(vt_estimate(&e, q, &err), VT_OK);
    return e;
}

static const struct load loads[] = {
    {1, 500, 0},   {16, 1000, 0},   {128, 2000, 0},
    {256, 500, 0}, {16, 1000, 200}, {0, 0, 8192},
};

static const char *const some_models[] = {
    "meta-llama/Llama-3.1-8B-Instruct",
    "Qwen/Qwen3-32B",
    "Qwen/Qwen3-30B-A3B",
    "openai/gpt-oss-120b",
    "google/gemma-3-27b-it",
    "deepseek-ai/DeepSeek-V2-Lite",
};

static const char *const all_sorts[] = {
    "meta-llama/Llama-3.1-8B-Instruct",
    "Qwen/Qwen3-32B (fp8)",
    "Qwen/Qwen3-30B-A3B",
    "Qwen/Qwen3-30B-A3B (fp8)",
    "openai/gpt-oss-120b",
    "google/gemma-3-27b-it",
    "deepseek-ai/DeepSeek-V3",
    "Qwen/Qwen3-Next-80B-A3B-Instruct",
};

/* The same kernels on more of everything take no longer. Other makes have kernels of
 * their own, which were measured: a few of an L40S, with hardly any work, come out
 * before those of larger GPUs. And where bandwidth is the same, a size's factor, which
 * holds for attention too, hangs on the peak. */
static double slack(const struct vt_gpu *slow, const struct vt_gpu *fast)
{
    bool blackwell = slow->capability / 10 == 10 && fast->capability / 10 == 10;

    if (slow->capability != fast->capability && !blackwell)
        return 0.12;
    return fast->bandwidth_tbs > slow->bandwidth_tbs ? 1e-9 : 0.08;
}

static void check_pair(const char *model, const struct vt_arch *a, uint32_t tp,
                       const struct vt_gpu *slow, const struct vt_gpu *fast)
{
    struct vt_estimate s =
        estimate(&(struct vt_estimate_query){.arch = a, .gpu = slow, .tp = tp});
    struct vt_estimate f =
        estimate(&(struct vt_estimate_query){.arch = a, .gpu = fast, .tp = tp});
    double most = 1 + slack(slow, fast);

    for (uint32_t n = 0; n <= 256; n = n > 0 ? 4 * n : 1)
        for (uint32_t context = 100; context <= 25600; context *= 256)
            for (uint32_t prompt = 0; prompt <= 16384;
                 prompt = prompt > 0 ? 4 * prompt : 16) {
                const struct load at = {n, context, prompt};

                if (n + prompt > 0 && !(step_us(&f, at) <= most * step_us(&s, at)))
                    fail_msg("%s x %u, %u of %u, prompt of %u: %s takes %.0f us, "
                             "%s %.0f",
                             model, tp, n, context, prompt, slow->name, step_us(&s, at),
                             fast->name, step_us(&f, at));
            }
}

static void a_gpu_with_more_of_everything_is_never_slower(void **state)
{
    struct vt_gpu slow, fast;

    (void)state;
    for (size_t m = 0; m < VT_COUNT(all_sorts); m++) {
        struct vt_arch a = arch_of(all_sorts[m]);

        for (size_t i = 0; vt_gpu_next(&i, &slow);)
            for (size_t k = 0; vt_gpu_next(&k, &fast);)
                for (uint32_t tp = 1; tp <= 8 && strcmp(slow.name, fast.name) != 0 &&
                                      vt_gpu_dominates(&fast, &slow);
                     tp *= 2)
                    check_pair(all_sorts[m], &a, tp, &slow, &fast);
    }
}

static void more_bandwidth_and_arithmetic_are_never_slower(void **state)
{
    (void)state;

    static const char *const slower[][2] = {
        {"L4", "L40S"},   {"A10", "A100-40"},    {"A100-80", "H100"},
        {"H100", "H200"}, {"H200", "B200"},      {"A100-40", "A100-80"},
        {"A10", "L40S"},  {"H100-PCIe", "H100"},
    };

    for (size_t m = 0; m < VT_COUNT(some_models); m++) {
        struct vt_arch a = arch_of(some_models[m]);

        for (size_t i = 0; i < VT_COUNT(slower); i++) {
            struct vt_gpu slow = gpu_of(slower[i][0]), fast = gpu_of(slower[i][1]);
            struct vt_estimate s =
                estimate(&(struct vt_estimate_query){.arch = &a, .gpu = &slow});
            struct vt_estimate f =
                estimate(&(struct vt_estimate_query){.arch = &a, .gpu = &fast});

            for (size_t k = 0; k < VT_COUNT(loads); k++)
                if (!(step_us(&s, loads[k]) >= step_us(&f, loads[k])))
                    fail_msg("%s, load %zu: %s takes %.0f us, %s %.0f", some_models[m],
                             k, slow.name, step_us(&s, loads[k]), fast.name,
                             step_us(&f, loads[k]));
        }
    }
}

static void twice_the_gpus_take_less_and_not_half(void **state)
{
    (void)state;

    struct vt_arch a = arch_of("meta-llama/Llama-3.1-70B");
    struct vt_gpu g = gpu_of("H100");
    const struct load load = {16, 1000, 0};
    double before = INFINITY;

    for (uint32_t tp = 1; tp <= 8; tp *= 2) {
        struct vt_estimate e =
            estimate(&(struct vt_estimate_query){.arch = &a, .gpu = &g, .tp = tp});
        double us = step_us(&e, load);

        assert_true(us < before);
        assert_true(tp == 1 || us > 0.5 * before);
        before = us;
    }
}

static void more_work_takes_more_time(void **state)
{
    (void)state;

    struct vt_gpu g = gpu_of("H200");

    for (size_t m = 0; m < VT_COUNT(some_models); m++) {
        struct vt_arch a = arch_of(some_models[m]);
        struct vt_estimate e =
            estimate(&(struct vt_estimate_query){.arch = &a, .gpu = &g});
        double before = 0;

        for (uint32_t n = 1; n <= 512; n *= 2) {
            double us = step_us(&e, (struct load){n, 0, 0});

            assert_true(us > (1 - 1e-9) * before);
            before = us;
        }
        for (uint32_t n = 64; n <= 16384; n *= 2)
            assert_true(step_us(&e, (struct load){4, 1000, n}) <
                        step_us(&e, (struct load){4, 1000, 2 * n}));
    }
}

/* Of these no measured rows are at hand: stages, shared-out experts, steps without
 * graphs, sparse attention, layers with states. What holds of all others holds of them.
 */
static const struct unmeasured {
    const char *model;
    uint32_t tp, pp, dp;
    bool expert_parallel, eager;
} unmeasured[] = {
    {"meta-llama/Llama-3.1-70B", 4, 2, 0, false, false},
    {"meta-llama/Llama-3.1-70B", 1, 4, 0, false, false},
    {"Qwen/Qwen3-30B-A3B", 1, 2, 0, false, false},
    {"Qwen/Qwen3-30B-A3B", 1, 0, 4, true, false},
    {"Qwen/Qwen3-30B-A3B", 2, 0, 2, false, false},
    {"deepseek-ai/DeepSeek-V3", 1, 0, 16, true, false},
    {"deepseek-ai/DeepSeek-V3", 8, 0, 0, true, false},
    {"meta-llama/Llama-3.1-8B", 1, 0, 0, false, true},
    {"Qwen/Qwen3-30B-A3B", 1, 0, 0, false, true},
    {"Qwen/Qwen3-Next-80B-A3B-Instruct", 2, 0, 0, false, false},
    {"Qwen/Qwen3-Next-80B-A3B-Instruct", 2, 0, 0, false, true},
};

static struct vt_estimate estimate_unmeasured(const struct unmeasured *u,
                                              const struct vt_arch *a,
                                              const struct vt_gpu *g)
{
    return estimate(
        &(struct vt_estimate_query){.arch = a,
                                    .gpu = g,
                                    .tp = u->tp,
                                    .pp = u->pp,
                                    .dp = u->dp,
                                    .expert_parallel = u->expert_parallel,
                                    .graphs = u->eager ? &no_graphs : NULL});
}

static void unmeasured_engines_are_monotone(void **state)
{
    struct vt_gpu g = gpu_of("H200");

    (void)state;
    for (size_t m = 0; m < VT_COUNT(unmeasured); m++) {
        struct vt_arch a = arch_of(unmeasured[m].model);
        struct vt_estimate e = estimate_unmeasured(&unmeasured[m], &a, &g);
        double before = 0;

        /* Few requests read weights and context less well than many: up to eight take
         * about the same, and with stages, which share a token's cost out, a few more.
         */
        for (uint32_t n = 1; n <= 512; n *= 2) {
            double us = step_us(&e, (struct load){n, 1000, 0});

            if (!(us > (n <= 8 * fmax(1, unmeasured[m].pp) ? 0.99 : 1 - 1e-9) * before))
                fail_msg("%s (%zu): %u requests take %.1f us, half of them %.1f",
                         unmeasured[m].model, m, n, us, before);
            before = us;
        }
        for (uint32_t n = 512; n <= 65536; n *= 2)
            assert_true(step_us(&e, (struct load){16, n, 0}) <=
                        (1 + 1e-9) * step_us(&e, (struct load){16, 2 * n, 0}));
        for (uint32_t n = 64; n <= 16384; n *= 2)
            assert_true(step_us(&e, (struct load){4, 1000, n}) <
                        step_us(&e, (struct load){4, 1000, 2 * n}));
    }
}

/* vLLM 0.28 makes them up to 1024 tokens on a B200, for as many as can decode. */
static void large_graphs_are_made_where_vllm_makes_them(void **state)
{
    static const struct {
        const char *gpu;
        uint32_t vllm, most_decode;
        double limit;
    } row[] = {
        {"B200", 26, 1024, 512}, {"B200", 28, 1024, 1024},
        {"GB300", 32, 400, 800}, {"B200", 32, 128, 512},
        {"H200", 32, 1024, 512}, {"RTX-PRO-6000", 32, 1024, 512},
    };
    struct vt_arch a = arch_of("meta-llama/Llama-3.1-8B");

    (void)state;
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        struct vt_gpu g = gpu_of(row[i].gpu);
        struct vt_estimate_query q = {.arch = &a,
                                      .gpu = &g,
                                      .vllm = row[i].vllm,
                                      .most_decode = row[i].most_decode};

        assert_float_equal(estimate(&q).params.graph_limit, row[i].limit, 0.5);
    }
}

/* Launches kernel by kernel take no less of the host than a graph. */
static void a_step_without_graphs_is_not_launched_sooner(void **state)
{
    struct vt_gpu g = gpu_of("H200");

    (void)state;
    for (size_t m = 0; m < VT_COUNT(some_models); m++) {
        struct vt_arch a = arch_of(some_models[m]);
        struct vt_estimate_query q = {.arch = &a, .gpu = &g};
        struct vt_estimate with = estimate(&q), without;

        q.graphs = &no_graphs;
        without = estimate(&q);
        assert_true(without.params.host_launch_eager >= with.params.host_launch_graph);
        assert_true(without.params.graph_limit < 1);
    }
}

static void smaller_elements_are_read_sooner(void **state)
{
    (void)state;

    struct vt_gpu g = gpu_of("H200");
    struct vt_arch full = arch_of("meta-llama/Llama-3.1-8B-Instruct");
    struct vt_arch half = full, quarter = full;
    const struct load one = {1, 100, 0}, deep = {64, 8000, 0};

    half.weight_bytes = 1;
    quarter.weight_bytes = 0.5;
    quarter.scale_bytes = 2.0 / 128;
    struct vt_estimate e16 =
        estimate(&(struct vt_estimate_query){.arch = &full, .gpu = &g});
    struct vt_estimate e8 =
        estimate(&(struct vt_estimate_query){.arch = &half, .gpu = &g});
    struct vt_estimate e4 =
        estimate(&(struct vt_estimate_query){.arch = &quarter, .gpu = &g});
    struct vt_estimate kv8 =
        estimate(&(struct vt_estimate_query){.arch = &full, .gpu = &g, .kv_bytes = 1});

    assert_true(step_us(&e8, one) < step_us(&e16, one));
    assert_true(step_us(&e4, one) < step_us(&e8, one));
    assert_true(step_us(&kv8, deep) < step_us(&e16, deep));
}

/* An indexer looks at all tokens, attention at 2048 of them: up to there it is the same
 * model with more to do, and beyond it contexts cost a fraction. */
static void sparse_attention_reads_what_its_indexer_chose(void **state)
{
    struct vt_gpu g = gpu_of("H200");
    struct vt_arch dense = arch_of("deepseek-ai/DeepSeek-V3"),
                   sparse = arch_of("deepseek-ai/DeepSeek-V3.2");
    struct vt_estimate_query q = {.arch = &dense, .gpu = &g, .tp = 8};
    struct vt_estimate d = estimate(&q), s;
    double before = 0;

    (void)state;
    q.arch = &sparse;
    s = estimate(&q);
    assert_true(vt_arch_kv_bytes(&sparse, 8, 2) == 61 * (2 * 576 + 132));
    assert_true(vt_arch_kv_bytes(&sparse, 8, 1) == 61 * (656 + 132));
    for (uint32_t n = 128; n <= 131072; n *= 2) {
        const struct load at = {32, n, 0};

        assert_true(step_us(&s, at) > before);
        before = step_us(&s, at);
        if (n <= 2048)
            assert_true(before > step_us(&d, at));
        if (n >= 16384)
            assert_true(before < step_us(&d, at));
    }
    assert_true(step_us(&s, (struct load){32, 131072, 0}) -
                    step_us(&s, (struct load){32, 65536, 0}) <
                0.2 * (step_us(&d, (struct load){32, 131072, 0}) -
                       step_us(&d, (struct load){32, 65536, 0})));
    assert_true(s.n_outside > d.n_outside);
    /* By itself a long prompt is done sooner; an indexer is not shared out. */
    q.tp = 1;
    s = estimate(&q);
    q.arch = &dense;
    d = estimate(&q);
    assert_true(step_us(&s, (struct load){0, 0, 65536}) <
                step_us(&d, (struct load){0, 0, 65536}));
}

/* A state is read and written in every step of each request, however long that is, and
 * costs by its bytes. */
static void states_cost_by_requests_and_bytes_and_not_by_context(void **state)
{
    static const char *const models[] = {"Qwen/Qwen3-Next-80B-A3B-Instruct",
                                         "MiniMaxAI/MiniMax-Text-01"};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(models); i++) {
        struct vt_gpu g = gpu_of("H200");
        struct vt_arch a = arch_of(models[i]), larger = a, none = a;
        struct vt_estimate_query q = {.arch = &a, .gpu = &g, .tp = 8};
        struct vt_estimate e = estimate(&q), wide, bare;
        double before = 0, per_request;

        assert_true(vt_arch_state_layers(&a) > 0);
        larger.state.bytes *= 2;
        none.state.elements = none.state.width = none.state.group_width = 0;
        q.arch = &larger;
        wide = estimate(&q);
        q.arch = &none;
        bare = estimate(&q);
        for (uint32_t n = 1; n <= 512; n *= 2) {
            const struct load at = {n, 1000, 0};

            assert_true(step_us(&e, at) > before);
            assert_true(step_us(&wide, at) > step_us(&e, at));
            assert_true(step_us(&e, at) > step_us(&bare, at));
            before = step_us(&e, at);
        }
        for (uint32_t n = 64; n <= 16384; n *= 2)
            assert_true(step_us(&e, (struct load){4, 1000, n}) <
                        step_us(&e, (struct load){4, 1000, 2 * n}));
        /* Many requests pay about what their states' bytes take. */
        per_request = (step_us(&e, (struct load){512, 0, 0}) -
                       step_us(&bare, (struct load){512, 0, 0})) /
                      512;
        assert_in_range((uint64_t)(100 * per_request * 1e6 * g.bandwidth_tbs /
                                   (2 * vt_arch_state_bytes(&a, 8))),
                        80, 140);
        q.arch = &a;
        q.tp = 4; /* fewer GPUs share them */
        assert_true(step_us(&e, (struct load){64, 1000, 0}) <
                    step_us(&(struct vt_estimate){.params = estimate(&q).params},
                            (struct load){64, 1000, 0}));
    }
}

/* A step is launched kernel by kernel beyond the largest graph, whoever decides on it.
 */
static void a_stated_graph_size_is_the_largest_graph(void **state)
{
    static const struct {
        uint32_t size; /* 0: vLLM's */
        uint32_t tokens, most_decode;
        bool graph;
    } rows[] = {
        {0, 512, 256, true},     {0, 513, 256, false},     {0, 300, 16, false},
        {512, 300, 16, true},    {64, 64, 256, true},      {64, 65, 256, false},
        {2048, 2048, 256, true}, {2048, 2049, 256, false},
    };
    struct vt_arch a = arch_of("Qwen/Qwen3-8B");
    struct vt_gpu g = gpu_of("H200");

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct vt_estimate e = estimate(&(struct vt_estimate_query){
            .arch = &a,
            .gpu = &g,
            .graphs = &(const struct vt_graphs){.most = rows[i].size}});
        struct vt_item item = {.prefill = true, .tokens = rows[i].tokens};
        struct vt_step_plan plan = {.item = &item,
                                    .n = 1,
                                    .n_prefills = 1,
                                    .prefill_tokens = rows[i].tokens,
                                    .running = 1};
        struct vt_step_features f;

        vt_step_features(&e.params, &plan, rows[i].most_decode, &f);
        if ((f.mode != VT_STEP_EAGER) != rows[i].graph)
            fail_msg("row %zu", i);
    }
}

static struct vt_graphs graphs_of(const uint32_t *size, uint32_t n)
{
    struct vt_graphs g = {.n = n};
    struct vt_err err;

    memcpy(g.size, size, n * sizeof(*size));
    assert_int_equal(vt_graphs_settle(&g, &err), VT_OK);
    return g;
}

/* Padding is work: of two lists with the same largest graph, the one that leaves sizes
 * out is no faster, and vLLM's own list is as good as none. (FP8 kernels are no part of
 * it: they take longer for a tile that is not full. Factors that are interpolated
 * cost a thousandth.) */
static void coarser_graphs_are_never_faster(void **state)
{
    static const uint32_t coarse[] = {512, 1, 64}, coarser[] = {512, 512};
    struct vt_graphs own = {0}, some, one;

    (void)state;
    for (uint32_t size = 1; size <= 512;
         size = size < 8 ? 2 * size : size + (size < 256 ? 8 : 16))
        own.size[own.n++] = size;
    own.most = 512;
    some = graphs_of(coarse, VT_COUNT(coarse));
    one = graphs_of(coarser, VT_COUNT(coarser));
    assert_int_equal(one.n, 1);
    for (size_t m = 0; m < VT_COUNT(some_models); m++) {
        struct vt_arch a = arch_of(some_models[m]);
        struct vt_gpu g = gpu_of("H200");
        struct vt_estimate_query q = {.arch = &a, .gpu = &g};
        struct vt_estimate free = estimate(&q), e[3];
        const struct vt_graphs *lists[] = {&own, &some, &one};
        bool slower = false;

        for (size_t i = 0; i < VT_COUNT(e); i++) {
            q.graphs = lists[i];
            e[i] = estimate(&q);
        }
        for (uint32_t n = 1; n <= 512; n++)
            for (uint32_t prompt = 0; n + prompt <= 512; prompt += 1 + n) {
                const struct load at = {n, 500, prompt};
                double us[] = {step_us(&e[0], at), step_us(&e[1], at),
                               step_us(&e[2], at)};

                assert_float_equal(us[0], step_us(&free, at), 1e-9);
                if (!(us[1] >= 0.999 * us[0] && us[2] >= us[1]))
                    fail_msg("%s: %u + %u: %.1f, %.1f, %.1f us", some_models[m], n,
                             prompt, us[0], us[1], us[2]);
                slower = slower || us[2] > 1.02 * us[0];
            }
        assert_true(slower);
    }
}

static void graphs_beyond_the_budget_are_not_made(void **state)
{
    static const uint32_t sizes[] = {1, 64, 4096};
    struct vt_graphs listed = graphs_of(sizes, VT_COUNT(sizes)), odd = {.n = 1};
    struct vt_arch a = arch_of("Qwen/Qwen3-8B");
    struct vt_gpu g = gpu_of("H200");
    struct vt_estimate_query q = {.arch = &a, .gpu = &g, .graphs = &listed};
    struct vt_err err;

    (void)state;
    assert_true(estimate(&q).params.graph_limit == 4096);
    q.budget = 2048;
    assert_true(estimate(&q).params.graph_limit == 64);
    listed.size[0] = 4096; /* all of them */
    listed.n = 1;
    assert_true(estimate(&q).params.graph_limit == 0);
    odd.size[0] = 64;
    odd.most = 128;
    assert_int_equal(vt_graphs_settle(&odd, &err), VT_EINPUT);
    assert_non_null(strstr(err.msg, "consistent"));
}

static void an_estimate_says_what_it_stands_on(void **state)
{
    (void)state;

    struct vt_arch dense = arch_of("Qwen/Qwen3-32B"),
                   moe = arch_of("Qwen/Qwen3-30B-A3B");
    struct vt_gpu h200 = gpu_of("H200"), h100 = gpu_of("H100"), l4 = gpu_of("MI300X");
    struct vt_estimate d =
        estimate(&(struct vt_estimate_query){.arch = &dense, .gpu = &h200});
    struct vt_estimate m =
        estimate(&(struct vt_estimate_query){.arch = &moe, .gpu = &h200});
    struct vt_estimate other =
        estimate(&(struct vt_estimate_query){.arch = &dense, .gpu = &h100, .tp = 2});
    struct vt_estimate sheet =
        estimate(&(struct vt_estimate_query){.arch = &dense, .gpu = &l4});

    assert_int_equal(d.n_outside, 0);
    assert_int_equal(m.n_outside, 0);
    assert_int_equal(other.n_outside, 2);
    assert_true(strstr(other.outside[0], "H100") != NULL);
    assert_true(strstr(sheet.outside[0], "data sheet") != NULL);
    assert_string_equal(sheet.class, "unmeasured_gpu");
    for (enum vt_trust k = VT_TRUST_E2E; k < VT_TRUSTS; k++) {
        assert_true(d.expected[k] > 0);
        assert_true(m.expected[k] > 0);
        assert_true(other.expected[k] >= d.expected[k]);
    }
    assert_true(m.expected[VT_TRUST_E2E] > d.expected[VT_TRUST_E2E]);
}

static struct vt_source source_of(const char *profile)
{
    struct vt_source s = {0};
    struct vt_profile p;
    struct vt_err err = {0};

    if (vt_profile_open(&p, profile, &err) || vt_source_of(&s, &p, NULL, &err))
        fail_msg("%s", err.msg);
    vt_profile_close(&p);
    return s;
}

/* A profile on its own GPU stays what it is; on a slower one every step takes longer,
 * by as much as the law says. */
static void what_was_measured_is_carried_over_by_the_laws_ratio(void **state)
{
    struct vt_arch a = arch_of("Qwen/Qwen3-8B");
    struct vt_gpu h200 = gpu_of("H200"), a100 = gpu_of("A100-80");
    struct vt_estimate_query there = {.arch = &a, .gpu = &h200, .tp = 1};
    struct vt_estimate_query here = {.arch = &a, .gpu = &a100, .tp = 1};
    struct vt_estimate measured = {0}, same, moved, slow, fast;
    struct vt_source from = source_of("qwen3-8b-h200");
    struct vt_err err;

    (void)state;
    measured.params = from.params;
    assert_int_equal(vt_estimate_from(&same, &from, &there, &err), VT_OK);
    assert_int_equal(vt_estimate_from(&moved, &from, &here, &err), VT_OK);
    fast = estimate(&there);
    slow = estimate(&here);
    for (size_t k = 0; k < VT_COUNT(loads); k++) {
        double was = step_us(&measured, loads[k]), will = step_us(&moved, loads[k]);
        double ratio = step_us(&slow, loads[k]) / step_us(&fast, loads[k]);

        assert_true(fabs(step_us(&same, loads[k]) / was - 1) < 0.03);
        assert_true(fabs(will / was / ratio - 1) < 0.10);
    }
    assert_int_equal(same.n_outside, 0);
    assert_int_equal(moved.n_outside, 1);
    assert_string_equal(moved.from, "qwen3-8b-h200");
}

static void heads_that_cannot_be_shared_out_are_refused(void **state)
{
    (void)state;

    struct vt_arch a = arch_of("Qwen/Qwen3-32B");
    struct vt_gpu g = gpu_of("H200");
    struct vt_estimate e;
    struct vt_err err;

    assert_true(vt_estimate(&e,
                            &(struct vt_estimate_query){.arch = &a, .gpu = &g, .tp = 3},
                            &err) == VT_EINPUT);
}

/* ---- what was found of each kind ------------------------------------------ */

static const struct vt_node *builtin(struct vt_arena *a, const char *name)
{
    const struct vt_builtin *f = vt_builtin_find(name);
    const struct vt_node *root = NULL;
    struct vt_err err;

    assert_non_null(f);
    assert_false(vt_builtin_is_profile(f));
    assert_int_equal(vt_json_parse(a, f->text, f->len, 1, &root, &err), VT_OK);
    return root;
}

/* errors.json and estimate.json are made one after the other: of the same captures. */
static void errors_are_of_the_captures_that_were_learned_from(void **state)
{
    struct vt_arena a = {0};
    const struct vt_node *models = vt_get(builtin(&a, "estimate.json"), "models");
    uint32_t captures = 0, judged = 0;
    struct vt_err err;

    (void)state;
    for (uint32_t i = 0; i < models->n; i++)
        captures += vt_get(&models->u.item[i], "captures")->n;
    assert_int_equal(vt_get_u32(builtin(&a, "errors.json"), "captures", VT_REQUIRED, 1,
                                1000000, &judged, &err),
                     VT_OK);
    assert_int_equal(judged, captures);
    vt_arena_free(&a);
}

static double error_of(const char *kind, const char *what, enum vt_trust metric)
{
    struct vt_kind_error row[VT_MOST_KIND_ERRORS];
    struct vt_err err;
    size_t n;

    assert_int_equal(vt_kind_errors(row, &n, &err), VT_OK);
    for (size_t i = 0; i < n; i++)
        if (strcmp(row[i].kind, kind) == 0 && strcmp(row[i].what, what) == 0)
            return row[i].median[metric];
    fail_msg("%s, %s: no errors", kind, what);
    return NAN;
}

static void measured_beats_estimated_beats_formulas(void **state)
{
    static const char *const formulas[] = {"roofline", "crossmodel", "trained-roofline",
                                           "trained-physics"};
    double measured = error_of("step", "measured", VT_TRUST_E2E),
           dense = error_of("step", "estimated, dense", VT_TRUST_E2E),
           mixture = error_of("step", "estimated, mixture", VT_TRUST_E2E);

    (void)state;
    assert_true(measured > 0 && measured < dense && measured < mixture);
    for (size_t i = 0; i < VT_COUNT(formulas); i++) {
        assert_true(dense < error_of(formulas[i], "dense", VT_TRUST_E2E));
        assert_true(mixture < error_of(formulas[i], "mixture", VT_TRUST_E2E));
    }
}

/* Of other GPUs no tails were judged. */
static void a_tail_is_no_surer_than_its_mean(void **state)
{
    struct vt_arch arch = arch_of("meta-llama/Llama-3.1-8B");
    static const char *const gpus[] = {"H100", "A100-80", "L4", "B200"};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(gpus); i++) {
        struct vt_gpu gpu = gpu_of(gpus[i]);
        struct vt_estimate e =
            estimate(&(struct vt_estimate_query){.arch = &arch, .gpu = &gpu});

        assert_true(e.expected[VT_TRUST_TTFT_P99] >= e.expected[VT_TRUST_TTFT]);
        assert_true(e.expected[VT_TRUST_ITL_P99] >= e.expected[VT_TRUST_ITL]);
    }
}

static double draft_us(const char *model, const char *gpu_name, uint32_t tp)
{
    struct vt_arch arch = arch_of(model);
    struct vt_gpu gpu = gpu_of(gpu_name);
    struct vt_estimate_query q = {.arch = &arch, .gpu = &gpu, .tp = tp};
    struct vt_err err;
    double us = 0;

    assert_int_equal(vt_estimate_draft(&us, &q, &err), VT_OK);
    return us;
}

/* A head has a layer of the model's width, whatever number format the model has. */
static void a_draft_s_pass_grows_with_the_model_s_width(void **state)
{
    double small = draft_us("Qwen/Qwen3-8B", "H200", 1);
    double wide = draft_us("meta-llama/Llama-3.1-70B", "H200", 1);

    (void)state;
    assert_true(small > 200 && small < 900);
    assert_true(wide > 1.2 * small && wide < 5 * small);
    assert_true(draft_us("meta-llama/Llama-3.1-70B", "A100-80", 1) > wide);
    assert_true(draft_us("meta-llama/Llama-3.1-70B", "H200", 4) < wide);
    assert_float_equal(draft_us("meta-llama/Llama-3.1-70B (fp8)", "H200", 1), wide,
                       1e-9);
    assert_true(draft_us("Qwen/Qwen3-30B-A3B", "H200", 1) < wide);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_with_more_of_everything_is_never_slower),
        cmocka_unit_test(more_bandwidth_and_arithmetic_are_never_slower),
        cmocka_unit_test(twice_the_gpus_take_less_and_not_half),
        cmocka_unit_test(more_work_takes_more_time),
        cmocka_unit_test(unmeasured_engines_are_monotone),
        cmocka_unit_test(a_step_without_graphs_is_not_launched_sooner),
        cmocka_unit_test(large_graphs_are_made_where_vllm_makes_them),
        cmocka_unit_test(smaller_elements_are_read_sooner),
        cmocka_unit_test(sparse_attention_reads_what_its_indexer_chose),
        cmocka_unit_test(states_cost_by_requests_and_bytes_and_not_by_context),
        cmocka_unit_test(a_stated_graph_size_is_the_largest_graph),
        cmocka_unit_test(coarser_graphs_are_never_faster),
        cmocka_unit_test(graphs_beyond_the_budget_are_not_made),
        cmocka_unit_test(an_estimate_says_what_it_stands_on),
        cmocka_unit_test(what_was_measured_is_carried_over_by_the_laws_ratio),
        cmocka_unit_test(heads_that_cannot_be_shared_out_are_refused),
        cmocka_unit_test(errors_are_of_the_captures_that_were_learned_from),
        cmocka_unit_test(measured_beats_estimated_beats_formulas),
        cmocka_unit_test(a_tail_is_no_surer_than_its_mean),
        cmocka_unit_test(a_draft_s_pass_grows_with_the_model_s_width),
    };

    return cmocka_run_group_tests_name("estimate", tests, NULL, NULL);
}

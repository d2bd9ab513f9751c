/* What a server says of itself, and what is made of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "learn/budget.h"
#include "learn/told.h"

#define INFO(e)                                                                 \
    "vllm:cache_config_info{block_size=\"32\",enable_prefix_caching=\"False\"," \
    "engine=\"" e "\",num_gpu_blocks=\"777\",num_gpu_blocks_override=\"None\"} 1.0\n"

#define GAUGES(e)                                     \
    "vllm:num_requests_running{engine=\"" e "\"} 0\n" \
    "vllm:kv_cache_usage_perc{engine=\"" e "\"} 0.0\n"

static struct cache {
    const char *name, *text;
    int rc;
    const char *why;
} caches[] = {
    {"one engine", "# HELP a\n" INFO("0") GAUGES("0"), VT_OK, ""},
    {"no vLLM", "process_cpu_seconds_total 1\n", VT_ECHECK,
     "/metrics tells nothing of a KV cache: this is not vLLM, or it runs with "
     "--disable-log-stats"},
    {"two Rust frontend's engines", GAUGES("0") GAUGES("1"), VT_ECHECK,
     "2 engines answer at this address; learn from one of them"},
    {"two engines", INFO("0") INFO("1"), VT_ECHECK,
     "2 engines answer at this address; learn from one of them"},
};

static void limits_of_the_cache(void **state)
{
    const struct cache *c = *state;
    struct vt_meta m = {0};
    struct vt_err err = {0};
    bool there;

    assert_int_equal(told_cache(&m, &there, c->text, strlen(c->text), &err), c->rc);
    assert_string_equal(err.msg, c->why);
    if (c->rc != VT_OK)
        return;
    assert_true(there);
    assert_int_equal(m.num_gpu_blocks, 777);
    assert_int_equal(m.block_size, 32);
    assert_int_equal(m.enable_prefix_caching, 0);
}

static void counters_are_summed(void **state)
{
    static const char text[] =
        "vllm:num_requests_running{engine=\"0\"} 3.0\n"
        "vllm:num_requests_waiting{engine=\"0\"} 2.0\n"
        "vllm:num_requests_waiting_by_reason{reason=\"capacity\"} 2.0\n"
        "vllm:request_success_total{finished_reason=\"length\"} 7.0\n"
        "vllm:request_success_total{finished_reason=\"abort\"} 1.0\n"
        "vllm:num_preemptions_total{engine=\"0\"} 5.0\n"
        "vllm:spec_decode_num_drafts_total{engine=\"0\"} 6\n"
        "vllm:prefix_cache_queries_total{engine=\"0\"} 512\n"
        "vllm:kv_cache_usage_perc{engine=\"0\"} 0.25\n"
        "vllm:num_requests_running{engine=\"1\"} NaN\n";
    struct told_counters t;

    (void)state;
    told_counters(&t, text, sizeof(text) - 1);
    assert_true(t.found);
    assert_int_equal(t.running, 3);
    assert_int_equal(t.waiting, 2);
    assert_int_equal(t.ended, 8);
    assert_int_equal(t.preemptions, 5);
    assert_int_equal(t.drafts, 6);
    assert_int_equal(t.prefix_queries, 512);
    assert_true(t.kv_usage == 0.25);
    assert_int_equal(t.engines, 1);
}

/* A stream that is looked at every so many tokens, as vLLM tells its KV cache's use. */
static struct pool {
    const char *name;
    uint32_t blocks, block_size, prompt, tokens, every;
    bool told;
} pools[] = {
    {"every token", 54321, 16, 500, 160, 1, true},
    {"now and then", 54321, 16, 500, 160, 14, true},
    {"blocks are missed", 54321, 16, 500, 300, 37, true},
    {"a small pool", 100, 16, 500, 160, 5, true},
    {"large blocks", 4000, 256, 500, 1100, 14, true},
    {"blocks of a hybrid model", 900, 528, 500, 2200, 14, true},
    {"small blocks", 9000, 8, 500, 100, 3, true},
    {"too short", 54321, 16, 500, 30, 1, false},
};

static void a_kv_cache_is_as_large_as_it_fills(void **state)
{
    const struct pool *p = *state;
    struct told_usage look[2048];
    struct vt_meta m = {0};
    size_t n = 0;

    for (uint32_t t = 0; t < p->tokens; t += p->every) {
        uint32_t used = (p->prompt + t + p->block_size - 1) / p->block_size;
        uint32_t all = p->blocks - 1;

        look[n++] = (struct told_usage){
            .usage = 1 - (double)(all - used) / all,
            .tokens = p->prompt + (t > 2 ? t - 2 : 0)}; /* some are on their way */
    }
    assert_int_equal(told_pool(&m, look, n), p->told);
    assert_int_equal(m.num_gpu_blocks, p->told ? p->blocks : 0);
    assert_int_equal(m.block_size, p->told ? p->block_size : 0);
}

/* Usages of two streams are no whole numbers of one. */
static void usages_that_fit_no_pool_tell_nothing(void **state)
{
    static const struct told_usage look[] = {
        {0.0100, 10}, {0.01237, 20}, {0.0171, 30}, {0.02003, 40}, {0.0309, 50}};
    struct vt_meta m = {0};

    (void)state;
    assert_false(told_pool(&m, look, VT_COUNT(look)));
}

/* Real engines of 8192 tokens a step, of which 20,000 take three: behind the Rust
 * frontend, where their launch held tokens up that the short prompt's did not; behind
 * the Python one, which made tokens late while it read them; and with a step that
 * stalled. */
static void budgets_of_real_engines_are_found(void **state)
{
    static const struct {
        const char *file;
        double least;
    } row[] = {{"rust", 900}, {"python", 900}, {"mixture", 777}};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        struct vt_workload w = {0};
        struct vt_err err = {0};
        uint32_t budget = 0;
        char path[256];

        (void)snprintf(path, sizeof(path),
                       VT_TEST_DIR "/learn/data/h200-budget-%s.trace.jsonl",
                       row[i].file);
        assert_int_equal(vt_trace_load(&w, path, &err), VT_OK);
        assert_int_equal(budget_find(&w, 20000, row[i].least, &budget, &err), VT_OK);
        if (budget != 8192)
            fail_msg("%s: %u", row[i].file, (unsigned)budget);
        vt_workload_free(&w);
    }
}

/* vLLM nests its configuration; vtwin serve does not. */
static void limits_are_found_wherever_they_stand(void **state)
{
    static const char *const texts[] = {
        "{\"vllm_config\":{\"max_num_seqs\":20,\"max_num_batched_tokens\":4096,"
        "\"async_scheduling\":false}}",
        "{\"vllm_config\":{\"a\":[{\"b\":1}],\"scheduler_config\":{\"max_num_seqs\":20,"
        "\"max_num_batched_tokens\":4096,\"async_scheduling\":false}}}"};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(texts); i++) {
        struct vt_meta m = {.async_scheduling = -1};
        const struct vt_node *root;
        struct vt_arena arena = {0};
        struct vt_err err = {0};

        assert_int_equal(
            vt_json_parse(&arena, texts[i], strlen(texts[i]), 1, &root, &err), VT_OK);
        told_config(&m, root);
        assert_int_equal(m.max_num_seqs, 20);
        assert_int_equal(m.max_num_batched_tokens, 4096);
        assert_int_equal(m.async_scheduling, 0);
        vt_arena_free(&arena);
    }
}

int main(void)
{
    enum { C = VT_COUNT(caches), P = C + VT_COUNT(pools) };
    struct CMUnitTest tests[P + 4] = {
        [P] = cmocka_unit_test(counters_are_summed),
        [P + 1] = cmocka_unit_test(limits_are_found_wherever_they_stand),
        [P + 2] = cmocka_unit_test(usages_that_fit_no_pool_tell_nothing),
        [P + 3] = cmocka_unit_test(budgets_of_real_engines_are_found),
    };

    for (size_t i = 0; i < C; i++)
        tests[i] = (struct CMUnitTest){.name = caches[i].name,
                                       .test_func = limits_of_the_cache,
                                       .initial_state = &caches[i]};
    for (size_t i = 0; i < VT_COUNT(pools); i++)
        tests[C + i] =
            (struct CMUnitTest){.name = pools[i].name,
                                .test_func = a_kv_cache_is_as_large_as_it_fills,
                                .initial_state = &pools[i]};
    return cmocka_run_group_tests_name("told", tests, NULL, NULL);
}

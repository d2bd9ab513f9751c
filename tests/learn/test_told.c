/* What a server says of itself, and what is made of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "learn/told.h"

#define INFO(e)                                                                 \
    "vllm:cache_config_info{block_size=\"32\",enable_prefix_caching=\"False\"," \
    "engine=\"" e "\",num_gpu_blocks=\"777\",num_gpu_blocks_override=\"None\"} 1.0\n"

static struct cache {
    const char *name, *text;
    int rc;
    const char *why;
} caches[] = {
    {"one engine", "# HELP a\n" INFO("0"), VT_OK, ""},
    {"no vLLM", "process_cpu_seconds_total 1\n", VT_ECHECK,
     "/metrics has no vllm:cache_config_info: this is not vLLM, or it runs with "
     "--disable-log-stats"},
    {"two engines", INFO("0") INFO("1"), VT_ECHECK,
     "2 engines answer at this address; learn from one of them"},
};

static void limits_of_the_cache(void **state)
{
    const struct cache *c = *state;
    struct vt_meta m = {0};
    struct vt_err err = {0};

    assert_int_equal(told_cache(&m, c->text, strlen(c->text), &err), c->rc);
    assert_string_equal(err.msg, c->why);
    if (c->rc != VT_OK)
        return;
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
        "vllm:spec_decode_num_drafts_total{engine=\"0\"} 0.0\n"
        "vllm:num_requests_running{engine=\"1\"} NaN\n";
    struct told_counters t;

    (void)state;
    told_counters(&t, text, sizeof(text) - 1);
    assert_true(t.found);
    assert_int_equal(t.running, 3);
    assert_int_equal(t.waiting, 2);
    assert_int_equal(t.ended, 8);
    assert_int_equal(t.preemptions, 5);
    assert_true(t.drafts);
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
    enum { C = VT_COUNT(caches) };
    struct CMUnitTest tests[C + 2] = {
        [C] = cmocka_unit_test(counters_are_summed),
        [C + 1] = cmocka_unit_test(limits_are_found_wherever_they_stand),
    };

    for (size_t i = 0; i < C; i++)
        tests[i] = (struct CMUnitTest){.name = caches[i].name,
                                       .test_func = limits_of_the_cache,
                                       .initial_state = &caches[i]};
    return cmocka_run_group_tests_name("told", tests, NULL, NULL);
}

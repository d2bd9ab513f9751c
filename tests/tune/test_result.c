/* What a search found, as vLLM's auto_tune writes it and otherwise. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tune/tune.h"

static struct vt_tuned tuned[] = {
    {.tried = true,
     .meets = true,
     .rate = INFINITY,
     .at.req_per_s = 3.141,
     .at.e2e.p99 = 1234.567,
     .goodput = 3.14},
    {.tried = true, .binding = "E2E p99"},
    {.tried = true,
     .meets = true,
     .rate = 7,
     .at.req_per_s = 6.5,
     .at.e2e.p99 = 2400,
     .goodput = 6.49},
    {0},
};
static struct vt_tune_result result = {.tuned = tuned, .n = 4, .best = 2, .trials = 3};

static struct vt_tune_spec spec_for_test(void)
{
    struct vt_tune_spec s = {.workload = "w", .slo.e2e_p99 = 2500};

    for (int i = 0; i < VT_TUNE_AXES; i++)
        s.space.n[i] = 1;
    s.space.n[0] = s.space.n[1] = 2;
    s.space.value[0][0] = 128;
    s.space.value[0][1] = 256;
    s.space.value[1][0] = 512;
    s.space.value[1][1] = 2048;
    s.space.value[2][0] = 0.9;
    s.space.value[3][0] = s.space.value[4][0] = s.space.value[7][0] = 1;
    s.space.routing[0] = "round-robin";
    return s;
}

static void result_txt_is_as_auto_tune_writes_it(void **state)
{
    struct vt_tune_spec s = spec_for_test();
    struct vt_buf b = {0};

    (void)state;
    vt_tune_result_txt(&b, &s, &result, "abc", "out");
    assert_string_equal(
        b.data,
        "hash:abc\n"
        "max_num_seqs: 128, max_num_batched_tokens: 512, request_rate: inf, e2el: "
        "1234.57, throughput: 3.14, goodput: 3.14\n"
        "max_num_seqs: 128, max_num_batched_tokens: 2048 does not meet latency "
        "requirement 2500\n"
        "max_num_seqs: 256, max_num_batched_tokens: 512, request_rate: 7, e2el: "
        "2400.00, throughput: 6.50, goodput: 6.49\n"
        "best_max_num_seqs: 256, best_num_batched_tokens: 512, best_throughput: 6.50, "
        "profile saved in: out\n");
    vt_buf_free(&b);
}

static void what_no_other_beats_in_both_is_the_front(void **state)
{
    struct vt_tune_spec s = spec_for_test();
    size_t front[4];

    (void)state;
    assert_int_equal(vt_tune_pareto(&s, &result, front), 2);
    assert_int_equal(front[0], 2);
    assert_int_equal(front[1], 0);
}

static void csv_has_a_row_for_each_trial_and_json_reads_back(void **state)
{
    struct vt_tune_spec s = spec_for_test();
    const struct vt_node *root;
    struct vt_arena arena = {0};
    struct vt_buf b = {0};
    struct vt_err err;
    size_t lines = 0;

    (void)state;
    vt_tune_csv(&b, &s, &result);
    for (size_t i = 0; i < b.len; i++)
        lines += b.data[i] == '\n';
    assert_int_equal(lines, 4);
    vt_buf_clear(&b);
    vt_tune_json(&b, &s, &result, "p", NULL, NULL);
    assert_int_equal(vt_json_parse(&arena, b.data, b.len, 1, &root, &err), VT_OK);
    assert_int_equal(vt_get(root, "tried")->n, 3);
    assert_int_equal(vt_get(vt_get(root, "best"), "max_num_seqs")->u.integer, 256);
    vt_arena_free(&arena);
    vt_buf_free(&b);
}

static void a_search_over_cache_formats_names_them(void **state)
{
    static const char *const want[] = {"auto", "fp8"};
    struct vt_tune_spec s = spec_for_test();
    const struct vt_site site = {0};
    const struct vt_engine_config engine = {.enable_chunked_prefill = true};
    struct vt_buf b = {0};

    (void)state;
    s.space.n[0] = 1;
    s.space.n[VT_AXIS_KV] = 2;
    s.space.value[VT_AXIS_KV][1] = 1;
    vt_tune_table(&b, &s, &result, 20);
    assert_non_null(strstr(b.data, "  KV fp8\n"));
    vt_buf_clear(&b);
    vt_tune_csv(&b, &s, &result);
    assert_non_null(strstr(b.data, ",fp8,"));
    for (size_t i = 0; i < 2; i++) {
        struct vt_setting one = vt_tune_space_at(&s.space, i);

        assert_string_equal(vt_setting_kv_dtype(&one), want[i]);
        vt_buf_clear(&b);
        vt_recommend(&b, &(struct vt_served_model){.name = "m"}, &site, &engine, &one);
        assert_int_equal(strstr(b.data, " --kv-cache-dtype fp8 ") != NULL, i == 1);
    }
    vt_buf_free(&b);
}

static void the_command_line_names_all_that_was_assumed(void **state)
{
    const struct vt_graphs none = {.none = true}, listed = {.n = 2, .size = {1, 64}},
                           bounded = {.most = 64};
    const struct {
        struct vt_served_model model;
        const char *begins;
    } rows[] = {
        {{.name = "m", .graphs = &listed},
         "vllm serve m --cudagraph-capture-sizes 1 64 --max-num-seqs 128"},
        {{.name = "m", .graphs = &bounded},
         "vllm serve m --max-cudagraph-capture-size 64 --max-num-seqs 128"},
        {{.name = "m"}, "vllm serve m --max-num-seqs 128"},
        {{.name = "a/Llama (fp8)"},
         "vllm serve a/Llama --quantization fp8 --max-num-seqs"},
        {{.name = "m", .quantization = "awq", .dtype = "half", .graphs = &none},
         "vllm serve m --quantization awq --dtype half --enforce-eager --max-num-seqs"},
        {{.name = NULL}, "vllm serve MODEL --max-num-seqs"},
    };
    const struct vt_engine_config engine = {.max_model_len = 16384,
                                            .block_size = 32,
                                            .policy = VT_PRIORITY,
                                            .enable_chunked_prefill = true};
    struct vt_site site = {.kv = {.element_bytes = 1, .pp = 2}};
    struct vt_setting s = {.max_num_seqs = 128,
                           .max_num_batched_tokens = 16384,
                           .gpu_memory_utilization = 0.95,
                           .tp = 2,
                           .dp = 1};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct vt_buf b = {0};

        vt_recommend(&b, &rows[i].model, &site, &engine, &s);
        assert_memory_equal(b.data, rows[i].begins, strlen(rows[i].begins));
        assert_non_null(strstr(
            b.data, " 128 --max-num-batched-tokens 16384 --gpu-memory-utilization 0.95 "
                    "--max-model-len 16384 --tensor-parallel-size 2 "
                    "--pipeline-parallel-size 2 --kv-cache-dtype fp8 "
                    "--no-enable-prefix-caching --block-size 32 --no-async-scheduling "
                    "--scheduling-policy priority"));
        vt_buf_free(&b);
    }
}

static void a_search_is_drawn_by_the_latency_that_is_limited(void **state)
{
    static const struct {
        struct vt_slo slo;
        const char *binding, *want;
        double limit;
    } rows[] = {
        {{.ttft_p99 = 500}, "", "TTFT p99", 500},
        {{.ttft_p99 = 500, .tpot_p99 = 50}, "TPOT p99", "TPOT p99", 50},
        {{.itl_p99 = 7}, "rate", "ITL p99", 7},
        {{0}, "", "E2E p99", 0},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct vt_tuned one = {.tried = true, .meets = true};
        struct vt_tune_result r = {.tuned = &one, .n = 1};
        struct vt_tune_spec spec = {.slo = rows[i].slo};
        double limit;

        (void)snprintf(one.binding, sizeof(one.binding), "%s", rows[i].binding);
        assert_string_equal(vt_tune_latency(&spec, &r, &limit), rows[i].want);
        assert_true(limit == rows[i].limit);
    }
}

/* Of a dense model as many servers are started; a mixture's ranks are one server. */
static void ranks_in_lockstep_are_one_server(void **state)
{
    const struct vt_served_model model = {.name = "m"};
    const struct vt_engine_config engine = {.max_model_len = 16384};
    struct vt_site site = {0};
    struct vt_setting s = {.max_num_seqs = 128,
                           .max_num_batched_tokens = 16384,
                           .tp = 1,
                           .dp = 4,
                           .routing = "vllm-dp",
                           .prefix_caching = true};
    struct vt_buf b = {0};

    (void)state;
    vt_recommend(&b, &model, &site, &engine, &s);
    assert_non_null(strstr(b.data, "# 4 of them, behind a router: vllm-dp"));
    vt_buf_free(&b);
    site.lockstep = true;
    vt_recommend(&b, &model, &site, &engine, &s);
    assert_non_null(strstr(b.data, " --data-parallel-size 4"));
    assert_null(strstr(b.data, "router"));
    vt_buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(result_txt_is_as_auto_tune_writes_it),
        cmocka_unit_test(what_no_other_beats_in_both_is_the_front),
        cmocka_unit_test(csv_has_a_row_for_each_trial_and_json_reads_back),
        cmocka_unit_test(a_search_over_cache_formats_names_them),
        cmocka_unit_test(the_command_line_names_all_that_was_assumed),
        cmocka_unit_test(a_search_is_drawn_by_the_latency_that_is_limited),
        cmocka_unit_test(ranks_in_lockstep_are_one_server),
    };

    return cmocka_run_group_tests_name("result", tests, NULL, NULL);
}

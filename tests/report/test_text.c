/* The text of summaries and comparisons, byte for byte where it is a promise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "report/report.h"

static const struct vt_summary summary = {
    .requests = 3,
    .duration_s = 1.070000001,
    .req_per_s = 3 / 1.070000001,
    .output_tok_per_s = 8,
    .total_tok_per_s = 1234.5,
    .prompt_tokens = 160,
    .output_tokens = 8,
    .ttft = {40.123457, 30, 50, 50, 50.000001, 3},
    .preemptions = 2,
    .prefix_hit_rate = 1.0 / 3,
    .kv_usage_peak = 0.5,
    .steps = 17,
    .profile = "a \"quoted\" name",
    .seed = UINT64_MAX,
    .version = "0.1.0",
};

static const char json[] =
    "{\n"
    "  \"requests\": 3,\n"
    "  \"duration_s\": 1.070000001,\n"
    "  \"req_per_s\": 2.803738,\n"
    "  \"output_tok_per_s\": 8,\n"
    "  \"total_tok_per_s\": 1234.5,\n"
    "  \"prompt_tokens\": 160,\n"
    "  \"output_tokens\": 8,\n"
    "  \"ttft_ms\": {\"mean\": 40.123457, \"p50\": 30, \"p90\": 50, \"p95\": 50, "
    "\"p99\": 50.000001},\n"
    "  \"tpot_ms\": {\"mean\": 0, \"p50\": 0, \"p90\": 0, \"p95\": 0, \"p99\": 0},\n"
    "  \"itl_ms\": {\"mean\": 0, \"p50\": 0, \"p90\": 0, \"p95\": 0, \"p99\": 0},\n"
    "  \"e2e_ms\": {\"mean\": 0, \"p50\": 0, \"p90\": 0, \"p95\": 0, \"p99\": 0},\n"
    "  \"queue_ms\": {\"mean\": 0, \"p50\": 0, \"p90\": 0, \"p95\": 0, \"p99\": 0},\n"
    "  \"preemptions\": 2,\n"
    "  \"prefix_hit_rate\": 0.333333,\n"
    "  \"kv_usage_peak\": 0.5,\n"
    "  \"steps\": 17,\n"
    "  \"workload\": null,\n"
    "  \"profile\": \"a \\\"quoted\\\" name\",\n"
    "  \"seed\": 18446744073709551615,\n"
    "  \"version\": \"0.1.0\"\n"
    "}\n";

static void summary_json_is_a_promise(void **state)
{
    struct vt_buf b = {0};
    struct vt_jw j;

    (void)state;
    vt_jw_init(&j, &b, &vt_json_pretty);
    vt_jw_map(&j, NULL);
    vt_summary_members(&j, &summary);
    vt_jw_end(&j);
    vt_buf_char(&b, '\n');
    assert_false(b.failed);
    assert_string_equal(b.data, json);
    vt_buf_free(&b);
}

static void table_shows_every_metric(void **state)
{
    static const char *const want[] = {
        "requests     3\n",
        "duration     1.070 s\n",
        "2.804 req/s",
        "1234.5 tok/s",
        "40.123",
        "TTFT ",
        "TPOT ",
        "ITL ",
        "E2E ",
        "queue ",
        "preemptions  2\n",
        "prefix hits  33.33 %",
        "peak KV use  50.00 %",
        "steps        17\n",
    };
    struct vt_buf b = {0};

    (void)state;
    vt_summary_table(&b, &summary);
    for (size_t i = 0; i < VT_COUNT(want); i++)
        if (!strstr(b.data, want[i]))
            fail_msg("no '%s' in\n%s", want[i], b.data);
    vt_buf_free(&b);
}

static void comparison_states_the_error(void **state)
{
    struct vt_summary predicted = summary, measured = summary;
    struct vt_buf b = {0};

    (void)state;
    predicted.ttft.mean = 44;
    measured.ttft.mean = 40;
    measured.prefix_hit_rate = 0; /* an error relative to nothing is none */
    vt_compare_table(&b, &predicted, &measured);
    assert_non_null(strstr(
        b.data, "TTFT        mean ms            44.000         40.000    +10.00%\n"));
    assert_non_null(strstr(
        b.data, "prefix hits      %             33.333          0.000          -\n"));
    vt_buf_clear(&b);
    vt_compare_json(&b, &predicted, &measured);
    assert_non_null(strstr(b.data, "\"ttft_ms\": {\"mean\": 10, \"p50\": 0"));
    assert_non_null(strstr(b.data, "\"prefix_hit_rate\": null\n"));
    vt_buf_free(&b);
}

static void comparison_json_reads_back(void **state)
{
    static const char *const top[] = {"predicted", "measured", "error_percent", NULL};
    struct vt_arena a = {0};
    struct vt_buf b = {0};
    const struct vt_node *root;
    struct vt_err err;

    (void)state;
    vt_compare_json(&b, &summary, &summary);
    assert_int_equal(vt_json_parse(&a, b.data, b.len, 1, &root, &err), VT_OK);
    assert_int_equal(vt_only_keys(root, top, &err), VT_OK);
    assert_int_equal(vt_get(vt_get(root, "predicted"), "steps")->u.integer, 17);
    assert_null(vt_get(vt_get(root, "measured"), "steps"));
    vt_arena_free(&a);
    vt_buf_free(&b);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(summary_json_is_a_promise),
        cmocka_unit_test(table_shows_every_metric),
        cmocka_unit_test(comparison_states_the_error),
        cmocka_unit_test(comparison_json_reads_back),
    };

    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}

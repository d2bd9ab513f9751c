/* Captures and models side by side: samples, tables by load, calibration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <unistd.h>

#include "report/report.h"

#define CAPTURE VT_TEST_DIR "/trace/data/closed-c2.trace.jsonl.gz"
#define STEPS   VT_TEST_DIR "/trace/data/closed-c2.steps.jsonl.gz"

/* ---- a small capture -------------------------------------------------- */

static const vt_ns gaps[] = {5 * VT_MS, 7 * VT_MS, 6 * VT_MS};
static struct vt_record records[] = {
    {.id = "a",
     .ttft_ns = 20 * VT_MS,
     .prompt_tokens = 100,
     .output_tokens = 3,
     .concurrency = 1,
     .gap = gaps,
     .n_gaps = 2},
    {.id = "b",
     .arrival_ns = 3 * VT_MS,
     .ttft_ns = 40 * VT_MS,
     .prompt_tokens = 50,
     .cached_tokens = 16,
     .output_tokens = 2,
     .concurrency = 2,
     .gap = &gaps[2],
     .n_gaps = 1},
    {.id = "c",
     .arrival_ns = 4 * VT_MS,
     .ttft_ns = 30 * VT_MS,
     .prompt_tokens = 60,
     .output_tokens = 1,
     .concurrency = 2},
};
static const struct vt_records small = {
    .rec = records, .n = VT_COUNT(records), .source = "small"};

static void view_of(struct vt_view *v, const struct vt_records *r)
{
    struct vt_err err = {0};

    *v = (struct vt_view){.label = "captured"};
    if (vt_view_records(v, r, &err) != VT_OK)
        fail_msg("%s", err.msg);
}

static void samples_are_sorted_milliseconds(void **state)
{
    static const struct {
        enum vt_metric metric;
        size_t n;
        double want[3];
    } row[] = {
        {VT_TTFT, 3, {20, 30, 40}}, {VT_ITL, 3, {5, 6, 7}}, {VT_DECODE, 2, {6, 12}}};
    struct vt_view v;
    struct vt_err err = {0};

    (void)state;
    view_of(&v, &small);
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        double *ms;
        size_t n;

        assert_int_equal(vt_view_samples(&v, row[i].metric, &ms, &n, &err), VT_OK);
        assert_int_equal(n, row[i].n);
        for (size_t k = 0; k < n; k++)
            assert_true(fabs(ms[k] - row[i].want[k]) < 1e-9);
        free(ms);
    }
    vt_view_free(&v);
}

static void unmeasured_records_are_refused(void **state)
{
    struct vt_record one = {.id = "x", .ttft_ns = -1};
    struct vt_records r = {.rec = &one, .n = 1, .source = "f"};
    struct vt_view v = {0};
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(vt_view_records(&v, &r, &err), VT_EINPUT);
    assert_string_equal(err.msg, "f: request 'x' has no measured times");
    vt_view_free(&v);
}

/* Idle time is no step's; two steps in flight share none of it twice. */
static void a_step_takes_the_time_since_the_result_before(void **state)
{
    static const struct vt_step_prefill prompt = {"a", 0, 64, 64};
    const struct vt_step_line line[] = {
        {.sched_ns = 0, .out_ns = 10, .decodes = 1},
        {.sched_ns = 2, .out_ns = 25, .n_prefill = 1, .prefill = &prompt},
        {.sched_ns = 100, .out_ns = 130, .decodes = 2},
    };
    static const vt_ns want[] = {10, 15, 30};
    struct vt_view v = {0};
    struct vt_err err = {0};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(line); i++) {
        assert_int_equal(vt_view_step(&v, &line[i], &err), VT_OK);
        assert_int_equal(v.step[i].took_ns, want[i]);
    }
    assert_int_equal(v.step[1].prefill_tokens, 64);
    vt_view_free(&v);
}

/* ---- by load ---------------------------------------------------------- */

static void the_table_has_a_row_for_each_load(void **state)
{
    static const char want[] =
        "in flight requests      prompt      output       TTFT p50, p90, p99 (ms)     "
        "ITL p50, p90, p99 (ms)\n"
        "        1        1         100           3    20.000    20.000    20.000    "
        "6.000    6.800    6.980\n"
        "        2        2       50-60         1-2    35.000    39.000    39.900    "
        "6.000    6.000    6.000\n"
        "      all        3      50-100         1-3    30.000    38.000    39.800    "
        "6.000    6.800    6.980\n";
    struct vt_buf b = {0};
    struct vt_view v;
    struct vt_err err = {0};

    (void)state;
    view_of(&v, &small);
    assert_int_equal(vt_load_table(&b, &v, &err), VT_OK);
    assert_string_equal(b.data, want);
    vt_buf_free(&b);
    vt_view_free(&v);
}

static void its_json_is_a_promise(void **state)
{
    static const char want[] =
        "{\n  \"source\": \"f\",\n  \"by_concurrency\": [\n"
        "    {\"concurrency\": 1, \"requests\": 1, \"prompt_tokens\": [100, 100], "
        "\"output_tokens\": [3, 3], \"ttft_ms\": {\"p50\": 20, \"p90\": 20, \"p99\": "
        "20}, \"itl_ms\": {\"p50\": 6, \"p90\": 6.8, \"p99\": 6.98}},\n"
        "    {\"concurrency\": 2, \"requests\": 2, \"prompt_tokens\": [50, 60], "
        "\"output_tokens\": [1, 2], \"ttft_ms\": {\"p50\": 35, \"p90\": 39, \"p99\": "
        "39.9}, \"itl_ms\": {\"p50\": 6, \"p90\": 6, \"p99\": 6}}\n"
        "  ],\n  \"all\": {\"concurrency\": 0, \"requests\": 3, \"prompt_tokens\": "
        "[50, "
        "100], \"output_tokens\": [1, 3], \"ttft_ms\": {\"p50\": 30, \"p90\": 38, "
        "\"p99\": 39.8}, \"itl_ms\": {\"p50\": 6, \"p90\": 6.8, \"p99\": 6.98}}\n}\n";
    struct vt_buf b = {0};
    struct vt_view v;
    struct vt_err err = {0};

    (void)state;
    view_of(&v, &small);
    assert_int_equal(vt_load_json(&b, &v, "f", &err), VT_OK);
    assert_string_equal(b.data, want);
    vt_buf_free(&b);
    vt_view_free(&v);
}

/* ---- calibration ------------------------------------------------------ */

static void a_capture_is_its_own_best_model(void **state)
{
    struct vt_records r;
    struct vt_view v;
    struct vt_calibration c;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(vt_records_load(&r, CAPTURE, &err), VT_OK);
    view_of(&v, &r);
    assert_int_equal(vt_calibrate(&c, &v, &v, 0, &err), VT_OK);
    assert_true(c.pass);
    assert_int_equal(c.row[VT_TTFT][8].n, r.n);
    assert_int_equal(c.row[VT_TTFT][0].n + c.row[VT_TTFT][1].n, r.n);
    vt_view_free(&v);
    vt_records_free(&r);
}

static void errors_are_relative_to_the_larger(void **state)
{
    struct vt_view a, b;
    struct vt_calibration c;
    struct vt_buf text = {0};
    struct vt_err err = {0};

    (void)state;
    view_of(&a, &small);
    view_of(&b, &small);
    b.label = "m";
    for (size_t i = 0; i < b.n; i++)
        b.req[i].ttft_ns *= 2;
    assert_int_equal(vt_calibrate(&c, &a, &b, 0.5, &err), VT_OK);
    assert_true(fabs(c.row[VT_TTFT][8].error - 0.5) < 1e-9);
    assert_true(c.row[VT_ITL][8].error == 0);
    assert_true(c.pass);
    assert_int_equal(vt_calibrate(&c, &a, &b, 0.49, &err), VT_OK);
    assert_false(c.pass);
    vt_calibration_table(&text, &c);
    assert_non_null(strstr(text.data,
                           "verdict: TTFT 50.00 %, ITL 0.00 %, decode 0.00 % "
                           "against a tolerance of 49 %: FAIL\n"));
    assert_non_null(strstr(text.data, "      2-4        2    35.000    39.000    39.900"
                                      "      70.000    78.000    79.800    50.00 %\n"));
    vt_buf_clear(&text);
    vt_calibration_json(&text, &c);
    assert_non_null(strstr(text.data,
                           "\"verdict\": {\"ttft_ms_error\": 0.5, \"itl_ms_error\": 0, "
                           "\"decode_ms_error\": 0, \"tolerance\": 0.49, \"pass\": "
                           "false}"));
    vt_buf_free(&text);
    vt_view_free(&a);
    vt_view_free(&b);
}

static void samples_go_out_as_vllm_vcr_reads_them(void **state)
{
    static const char *const names[] = {"source", "replay"};
    struct vt_view a;
    const struct vt_view *both[] = {&a, &a};
    struct vt_buf b = {0};
    struct vt_err err = {0};

    (void)state;
    view_of(&a, &small);
    assert_int_equal(vt_samples_json(&b, both, names, 2, &err), VT_OK);
    assert_string_equal(b.data,
                        "{\"source\":{\"ttft_ms\":[20,30,40],\"itl_ms\":[5,6,7]},\n"
                        "\"replay\":{\"ttft_ms\":[20,30,40],\"itl_ms\":[5,6,7]}}\n");
    vt_buf_free(&b);
    vt_view_free(&a);
}

static void samples_are_read_back(void **state)
{
    static const char text[] = "{\"a\":{\"ttft_ms\":[20,30.5],\"itl_ms\":[5,7,6]},\n"
                               "\"b\":{\"itl_ms\":[1]}}";
    struct vt_samples s;
    struct vt_summary sum;
    struct vt_err err = {0};
    double *ms;
    size_t n;

    (void)state;
    assert_int_equal(vt_samples_parse(&s, text, sizeof(text) - 1, &err), VT_OK);
    assert_int_equal(s.n, 2);
    assert_string_equal(s.view[0].label, "a");
    assert_int_equal(vt_view_samples(&s.view[0], VT_ITL, &ms, &n, &err), VT_OK);
    assert_int_equal(n, 3);
    assert_true(ms[2] == 7);
    free(ms);
    assert_int_equal(vt_view_samples(&s.view[1], VT_TTFT, &ms, &n, &err), VT_OK);
    assert_int_equal(n, 0);
    free(ms);
    assert_int_equal(vt_view_samples(&s.view[0], VT_DECODE, &ms, &n, &err), VT_OK);
    assert_int_equal(n, 0); /* whose gaps they are is not known */
    free(ms);
    assert_int_equal(vt_summary_view(&sum, &s.view[0], &err), VT_OK);
    assert_true(sum.ttft.n == 2 && sum.itl.n == 3 && sum.e2e.n == 0);
    assert_true(fabs(sum.ttft.mean - 25.25) < 1e-9);
    vt_samples_free(&s);
}

static void samples_that_are_none_are_refused(void **state)
{
    static const struct {
        const char *text, *want;
    } row[] = {
        {"[1]", "no object of samples"},
        {"{}", "no object of samples"},
        {"{\"a\":3}", "line 1: 'a' is no object of samples"},
        {"{\"a\":{}}", "line 1: 'a' has neither ttft_ms nor itl_ms"},
        {"{\"a\":{\"itl_ms\":5}}", "line 1: 'itl_ms' is no list"},
        {"{\"a\":{\"itl_ms\":[1,-2]}}", "line 1: 'itl_ms' must hold milliseconds only"},
        {"{\"a\":\n{\"ttft_ms\":[\"x\"]}}",
         "line 2: 'ttft_ms' must hold milliseconds only"},
    };
    struct vt_samples s;
    struct vt_err err = {0};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        assert_int_equal(vt_samples_parse(&s, row[i].text, strlen(row[i].text), &err),
                         VT_EINPUT);
        assert_string_equal(err.msg, row[i].want);
    }
}

/* Three requests decode in the second step, two in the third. */
static void a_step_log_has_gaps_of_those_who_decode(void **state)
{
    struct vt_step_line line[] = {{.out_ns = 10 * VT_MS},
                                  {.out_ns = 18 * VT_MS, .decodes = 3},
                                  {.out_ns = 30 * VT_MS, .decodes = 2},
                                  {.out_ns = 30 * VT_MS, .decodes = 9}};
    struct vt_steps s = {.step = line, .n = VT_COUNT(line)};
    struct vt_view v = {0};
    struct vt_err err = {0};
    double *ms;
    size_t n;

    (void)state;
    assert_int_equal(vt_view_steps(&v, &s, &err), VT_OK);
    assert_int_equal(vt_view_samples(&v, VT_ITL, &ms, &n, &err), VT_OK);
    assert_int_equal(n, 5);
    assert_true(ms[2] == 8 && ms[3] == 12);
    free(ms);
    assert_int_equal(vt_view_samples(&v, VT_TTFT, &ms, &n, &err), VT_OK);
    assert_int_equal(n, 0);
    free(ms);
    vt_view_free(&v);
}

/* ---- Chrome trace ----------------------------------------------------- */

static size_t count(const char *text, const char *what)
{
    size_t n = 0;

    for (const char *at = text; (at = strstr(at, what)) != NULL; at += strlen(what))
        n++;
    return n;
}

static void a_chrome_trace_is_json_and_holds_it_all(void **state)
{
    static const char path[] = "perfetto.tmp.json";
    struct vt_records r;
    struct vt_steps s;
    struct vt_buf b = {0};
    struct vt_arena a = {0};
    const struct vt_node *root;
    struct vt_err err = {0};
    size_t left_out, gaps_in_all = 0;

    (void)state;
    assert_int_equal(vt_records_load(&r, CAPTURE, &err), VT_OK);
    assert_int_equal(vt_steps_load(&s, STEPS, &err), VT_OK);
    r.rec[3].arrival_ns = -1;
    for (size_t i = 0; i < r.n; i++)
        gaps_in_all += i == 3 ? 0 : r.rec[i].n_gaps;
    assert_int_equal(vt_perfetto_write(&r, &s, path, &left_out, &err), VT_OK);
    assert_int_equal(left_out, 1);
    assert_int_equal(vt_read_file(path, 1 << 26, &b, &err), VT_OK);
    assert_int_equal(vt_json_parse(&a, b.data, b.len, 1, &root, &err), VT_OK);
    assert_int_equal(vt_get(root, "traceEvents")->kind, VT_LIST);
    assert_int_equal(count(b.data, "\"cat\":\"prefill\""), r.n - 1);
    assert_int_equal(count(b.data, "\"cat\":\"decode\""), gaps_in_all);
    assert_int_equal(count(b.data, "\"cat\":\"step\""), s.n);
    assert_int_equal(count(b.data, "\"name\":\"lane "), 2); /* two clients */
    assert_true(count(b.data, "\"name\":\"prefill+decode B1 (+1r") > 0);
    unlink(path);
    vt_arena_free(&a);
    vt_buf_free(&b);
    vt_steps_free(&s);
    vt_records_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_sorted_milliseconds),
        cmocka_unit_test(unmeasured_records_are_refused),
        cmocka_unit_test(a_step_takes_the_time_since_the_result_before),
        cmocka_unit_test(the_table_has_a_row_for_each_load),
        cmocka_unit_test(its_json_is_a_promise),
        cmocka_unit_test(a_capture_is_its_own_best_model),
        cmocka_unit_test(errors_are_relative_to_the_larger),
        cmocka_unit_test(samples_go_out_as_vllm_vcr_reads_them),
        cmocka_unit_test(samples_are_read_back),
        cmocka_unit_test(samples_that_are_none_are_refused),
        cmocka_unit_test(a_step_log_has_gaps_of_those_who_decode),
        cmocka_unit_test(a_chrome_trace_is_json_and_holds_it_all),
    };

    return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}

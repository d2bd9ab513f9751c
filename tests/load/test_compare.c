/* Results side by side: real ones of vLLM, and small ones with a difference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <unistd.h>

#include "load/load.h"

#define COMPLETIONS VT_TEST_DIR "/cases/bench/result.json"
#define CHAT        VT_TEST_DIR "/cases/bench/result-chat.json"

static void read_text(struct vt_results *r, const char *name, const char *text)
{
    struct vt_err err = {0};

    if (vt_results_read(r, name, text, strlen(text), &err) != VT_OK)
        fail_msg("%s", err.msg);
}

static const char *table(const struct vt_results *r, const char *metrics,
                         double tolerance, struct vt_buf *b, size_t *worse)
{
    const struct vt_result_judgement j = {.metrics = metrics, .tolerance = tolerance};
    struct vt_err err = {0};

    vt_buf_clear(b);
    assert_int_equal(vt_results_table(b, r, &j, worse, &err), VT_OK);
    return b->data;
}

static void results_of_vllm_are_compared(void **state)
{
    struct vt_results r = {0};
    struct vt_buf b = {0};
    struct vt_err err = {0};
    size_t worse = 0;
    double v;
    const char *text;

    (void)state;
    assert_int_equal(vt_results_load(&r, COMPLETIONS, &err), VT_OK);
    assert_int_equal(vt_results_load(&r, CHAT, &err), VT_OK);
    assert_int_equal(r.n, 2);
    assert_true(vt_result_get(&r.result[0], "p99_ttft_ms", &v));
    assert_true(fabs(v - 337.17425) < 1e-3);
    assert_false(vt_result_get(&r.result[0], "model_id", &v));
    text = table(&r, NULL, -1, &b, &worse);
    assert_non_null(strstr(text, "A: " COMPLETIONS ", tiny, 20261115-033004, 8 req"));
    assert_non_null(strstr(text, "mean_ttft_ms"));
    assert_non_null(strstr(text, "request_throughput"));
    assert_null(strstr(text, "burstiness")); /* was asked for, did not come out */
    assert_null(strstr(text, "judged"));
    assert_int_equal(worse, 0);
    vt_buf_free(&b);
    vt_results_free(&r);
}

#define FIRST  "{\"request_throughput\": 10.0, \"p99_ttft_ms\": 100.0, \"failed\": 0}"
#define SECOND "{\"request_throughput\": 9.0, \"p99_ttft_ms\": 103.0, \"failed\": 1}"

static struct judged {
    const char *name, *metrics;
    double tolerance;
    size_t worse;
} judged[] = {
    {"nothing is judged unless told", NULL, -1, 0},
    {"three are worse", NULL, 0, 3},
    {"small ones are forgiven", NULL, 5, 2},
    {"from none to one is worse by any measure", NULL, 1000, 1},
    {"only what is chosen", "p99_ttft_ms", 0, 1},
    {"a kind of latency by its name", "ttft", 1, 1},
    {"several", "ttft,request_throughput", 1, 2},
    {"one that nobody has", "mean_itl_ms", 0, 0},
};

static void worse_is_counted(void **state)
{
    const struct judged *j = *state;
    struct vt_results r = {0};
    struct vt_buf b = {0};
    size_t worse = 99;

    read_text(&r, "a", FIRST);
    read_text(&r, "b", SECOND);
    table(&r, j->metrics, j->tolerance, &b, &worse);
    assert_int_equal(worse, j->worse);
    vt_buf_free(&b);
    vt_results_free(&r);
}

static void better_and_worse_are_marked(void **state)
{
    struct vt_results r = {0};
    struct vt_buf b = {0};
    size_t worse;
    const char *text;

    (void)state;
    read_text(&r, "a",
              "{\"output_throughput\": 200, \"mean_tpot_ms\": 4, "
              "\"total_input_tokens\": 7, \"x\": {\"lag_ms\": {\"max\": 2}}}");
    read_text(&r, "b",
              "{\"output_throughput\": 300, \"mean_tpot_ms\": 5, "
              "\"total_input_tokens\": 8, \"x\": {\"lag_ms\": {\"max\": 1}}}");
    text = table(&r, NULL, -1, &b, &worse);
    assert_non_null(strstr(text, "200           300         +100     +50.0 better\n"));
    assert_non_null(strstr(text, "4             5           +1     +25.0 worse\n"));
    assert_non_null(strstr(text, "7             8           +1     +14.3\n"));
    assert_non_null(strstr(text, "2             1           -1     -50.0 better\n"));
    vt_buf_free(&b);
    vt_results_free(&r);
}

static void what_is_missing_is_told(void **state)
{
    struct vt_results r = {0};
    struct vt_buf b = {0};
    size_t worse;
    const char *text;

    (void)state;
    read_text(&r, "a", "{\"mean_itl_ms\": 4, \"completed\": 7}");
    read_text(&r, "b", "{\"completed\": 7, \"p99.9_itl_ms\": 3, \"x\": {\"y_ms\": 2}}");
    text = table(&r, NULL, 0, &b, &worse);
    assert_non_null(strstr(text, "not in A: p99.9_itl_ms, x.y_ms\n"));
    assert_non_null(strstr(text, "not in B: mean_itl_ms\n"));
    assert_int_equal(worse, 0);
    vt_buf_free(&b);
    vt_results_free(&r);
}

static void appended_lines_and_lists_are_several_results(void **state)
{
    struct vt_results r = {0};
    double v;

    (void)state;
    read_text(&r, "f", FIRST "\n\n" SECOND "\n");
    assert_int_equal(r.n, 2);
    assert_string_equal(r.result[1].name, "f:3");
    read_text(&r, "g", "[" FIRST ", \n" SECOND "]");
    assert_int_equal(r.n, 4);
    assert_true(vt_result_get(&r.result[3], "failed", &v));
    read_text(&r, "h", "\n{\n  \"failed\": 3\n}\n"); /* one result on several lines */
    assert_int_equal(r.n, 5);
    assert_string_equal(r.result[4].name, "h");
    vt_results_free(&r);
}

static void numbers_of_python_that_are_none_are_missing(void **state)
{
    struct vt_results r = {0};
    double v;

    (void)state;
    read_text(&r, "a",
              "{\"burstiness\": Infinity, \"mean_ttft_ms\": NaN, \"low\": -Infinity, "
              "\"label\": \"NaN \\\" NaN\", \"failed\": 2}\n");
    assert_false(vt_result_get(&r.result[0], "mean_ttft_ms", &v));
    assert_true(vt_result_get(&r.result[0], "failed", &v));
    assert_string_equal(vt_get(r.result[0].root, "label")->u.str, "NaN \" NaN");
    vt_results_free(&r);
}

static void json_has_what_the_table_has(void **state)
{
    const struct vt_result_judgement j = {.tolerance = 5};
    struct vt_results r = {0};
    struct vt_buf b = {0};
    struct vt_arena arena = {0};
    struct vt_err err = {0};
    const struct vt_node *root, *m;
    size_t worse;

    (void)state;
    read_text(&r, "a", FIRST);
    read_text(&r, "b", SECOND);
    read_text(&r, "c", FIRST);
    assert_int_equal(vt_results_json(&b, &r, &j, &worse, &err), VT_OK);
    assert_int_equal(vt_json_parse(&arena, b.data, b.len, 1, &root, &err), VT_OK);
    assert_int_equal(vt_get(root, "results")->n, 3);
    m = &vt_get(root, "metrics")->u.item[0];
    assert_string_equal(vt_get(m, "name")->u.str, "request_throughput");
    assert_string_equal(vt_get(m, "better")->u.str, "higher");
    assert_int_equal(vt_get(m, "others")->n, 2);
    assert_string_equal(vt_get(&vt_get(m, "others")->u.item[0], "verdict")->u.str,
                        "worse");
    assert_string_equal(vt_get(&vt_get(m, "others")->u.item[1], "verdict")->u.str, "");
    assert_int_equal(vt_get(root, "worse")->u.integer, 2);
    vt_arena_free(&arena);
    vt_buf_free(&b);
    vt_results_free(&r);
}

static struct refused {
    const char *name, *text;
} refusals[] = {
    {"nothing", ""},           {"a number", "3"},
    {"an empty list", "[]"},   {"a list of numbers", "[1]"},
    {"half a line", "{\"a\""}, {"a good line and a bad one", "{}\n{\"a\""},
    {"not JSON", "failed: 3"},
};

static void refused_with_its_name(void **state)
{
    const struct refused *t = *state;
    struct vt_results r = {0};
    struct vt_err err = {0};

    assert_int_equal(vt_results_read(&r, "odd.json", t->text, strlen(t->text), &err),
                     VT_EINPUT);
    assert_non_null(strstr(err.msg, "odd.json"));
    vt_results_free(&r);
}

/* Three runs on each side: what lies within their spread is called so, and is never
 * worse. */
static void what_seeds_alone_make_is_noise(void **state)
{
    static const struct {
        double a[3], b[3];
        const char *verdict;
        size_t worse;
        bool paired; /* the same seeds on both sides */
    } row[] = {
        {{10, 11, 12}, {11, 12, 13}, "noise", 0},
        {{10, 11, 12}, {11, 12, 13.1}, "worse", 1, .paired = true},
        {{10, 11, 12}, {11, 10, 13}, "noise", 0, .paired = true},
        {{10, 11, 12}, {20, 21, 22}, "worse", 1},
        {{10, 11, 12}, {1, 2, 3}, "better", 0},
        {{10, 10, 10}, {10.1, 10.1, 10.1}, "worse", 1},
    };
    struct vt_buf b = {0};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        struct vt_results r = {0};
        size_t worse = 0;
        char text[80], want[80];

        for (size_t k = 0; k < 6; k++) {
            snprintf(text, sizeof(text), "{\"mean_ttft_ms\": %g, \"seed\": %zu}",
                     k < 3 ? row[i].a[k] : row[i].b[k - 3], row[i].paired ? k % 3 : k);
            read_text(&r, "run", text);
            r.result[k].side = k / 3;
        }
        r.n_sides = 2;
        (void)table(&r, NULL, 0, &b, &worse);
        snprintf(want, sizeof(want), " %s\n", row[i].verdict);
        if (!strstr(b.data, want))
            fail_msg("row %zu: no '%s' in\n%s", i, row[i].verdict, b.data);
        assert_non_null(strstr(b.data, "A: run and 2 more runs"));
        assert_int_equal(worse, row[i].worse);
        vt_results_free(&r);
    }
    vt_buf_free(&b);
}

static void settings_that_differ_are_named(void **state)
{
    struct vt_results r = {0};
    struct vt_buf b = {0};
    size_t worse;
    const char *text;

    (void)state;
    read_text(&r, "a",
              "{\"settings\": {\"max_num_seqs\": 8, \"gpu\": \"H200\", \"x\": "
              "true}, \"workload\": \"chat\", \"capacity\": 4}");
    read_text(&r, "b",
              "{\"settings\": {\"max_num_seqs\": 64, \"gpu\": \"H200\", \"y\": "
              "\"new\"}, \"workload\": \"code\", \"capacity\": 5}");
    text = table(&r, NULL, -1, &b, &worse);
    assert_non_null(strstr(text, "max_num_seqs                                   8    "
                                 "        64\n"));
    assert_non_null(strstr(text, "x                                           true    "
                                 "         -\n"));
    assert_non_null(strstr(text, "y                                              -    "
                                 "       new\n"));
    assert_non_null(strstr(text, "workload                                    chat    "
                                 "      code\n"));
    assert_null(strstr(text, "gpu"));
    assert_non_null(strstr(text, "better")); /* a higher capacity */
    vt_buf_free(&b);
    vt_results_free(&r);
}

static void one_result_has_nothing_to_be_compared_with(void **state)
{
    const struct vt_result_judgement j = {.tolerance = -1};
    struct vt_results r = {0};
    struct vt_buf b = {0};
    struct vt_err err = {0};
    size_t worse;

    (void)state;
    read_text(&r, "a", FIRST);
    assert_int_equal(vt_results_table(&b, &r, &j, &worse, &err), VT_EINPUT);
    assert_int_equal(b.len, 0);
    vt_results_free(&r);
}

int main(void)
{
    const struct CMUnitTest single[] = {
        cmocka_unit_test(results_of_vllm_are_compared),
        cmocka_unit_test(better_and_worse_are_marked),
        cmocka_unit_test(what_is_missing_is_told),
        cmocka_unit_test(appended_lines_and_lists_are_several_results),
        cmocka_unit_test(numbers_of_python_that_are_none_are_missing),
        cmocka_unit_test(json_has_what_the_table_has),
        cmocka_unit_test(what_seeds_alone_make_is_noise),
        cmocka_unit_test(settings_that_differ_are_named),
        cmocka_unit_test(one_result_has_nothing_to_be_compared_with),
    };
    enum { N = VT_COUNT(single), J = VT_COUNT(judged), R = VT_COUNT(refusals) };
    struct CMUnitTest tests[N + J + R];

    for (size_t i = 0; i < N; i++)
        tests[i] = single[i];
    for (size_t i = 0; i < J; i++)
        tests[N + i] = (struct CMUnitTest){.name = judged[i].name,
                                           .test_func = worse_is_counted,
                                           .initial_state = &judged[i]};
    for (size_t i = 0; i < R; i++)
        tests[N + J + i] = (struct CMUnitTest){.name = refusals[i].name,
                                               .test_func = refused_with_its_name,
                                               .initial_state = &refusals[i]};
    return cmocka_run_group_tests_name("compare", tests, NULL, NULL);
}

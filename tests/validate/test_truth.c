/* What experiments a directory holds, and what is read from each. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "truth_dir.h"

static void assert_near(double a, double b, double off)
{
    if (!(fabs(a - b) <= off))
        fail_msg("%.9g is not %.9g", a, b);
}

static const struct vt_truth_options plain = {.dp_too = true, .tell = truth_tell_all};

static void load(struct vt_experiments *x, const struct vt_truth_options *o)
{
    struct vt_err err = {0};
    int rc = vt_experiments_load(x, truth_root, o, &err);

    if (rc != VT_OK)
        print_error("%s\n", err.msg);
    assert_int_equal(rc, VT_OK);
}

/* ---- discovery ------------------------------------------------------- */

static void manifest_names_experiments_in_order(void **state)
{
    struct vt_experiments x;

    (void)state;
    truth_experiment("12-a-general", "results");
    truth_experiment("3-b-general", "inference-perf-data");
    truth_put("9-file", "no directory");
    truth_put(
        "experiments.json",
        "[" TRUTH_ENTRY("12", ", \"dp2\": 1") ", " TRUTH_ENTRY(
            "3", "") ", "
                     "{\"id\": 4, \"done\": false}, {\"id\": 5}, {\"hw\": \"H100\"}]");
    load(&x, &plain);
    assert_int_equal(x.n, 2);
    assert_int_equal(x.e[0].id, 3);
    assert_int_equal(x.e[1].id, 12);
    assert_string_equal(x.e[0].workload, "general-lite"); /* not the folder's */
    assert_int_equal(x.e[0].dp, 0);
    assert_non_null(strstr(truth_said, "entry 4 of experiments.json has no id"));
    vt_experiments_free(&x);
}

static void only_safe_ones_unless_asked(void **state)
{
    const struct vt_truth_options all = {.dp_too = true, .unsafe_too = true};
    struct vt_experiments x;
    struct vt_err err = {0};

    (void)state;
    truth_experiment("1-a", "results");
    truth_put("experiments.json",
              "[{\"id\": 1, \"hw\": \"H100\", \"dp\": null, \"cpu_offload\": false, "
              "\"gpu_mem\": 0.9, \"precision\": \"FP16\", \"safe\": \"unsafe\", "
              "\"workload\": \"general\", \"done\": true}]");
    assert_int_equal(vt_experiments_load(&x, truth_root, &plain, &err), VT_EINPUT);
    assert_non_null(strstr(err.msg, "none of its 1 entries"));
    load(&x, &all);
    assert_int_equal(x.n, 1);
    vt_experiments_free(&x);
}

/* inference-perf once made other groups than it was told to, and says which. */
static void the_generators_report_tells_its_groups(void **state)
{
    struct vt_experiments x;

    (void)state;
    truth_experiment("1-a-general", "results");
    load(&x, &plain);
    assert_int_equal(x.e[0].prefix.num_groups, 0);
    vt_experiments_free(&x);
    truth_put("1-a-general/results/config.yaml",
              "data:\n  type: shared_prefix\n  shared_prefix: {num_groups: 10, "
              "num_prompts_per_group: 7}\n");
    load(&x, &plain);
    assert_int_equal(x.e[0].prefix.num_groups, 10);
    assert_int_equal(x.e[0].prefix.num_prompts_per_group, 7);
    vt_experiments_free(&x);
}

static void ambiguous_ids_are_refused(void **state)
{
    struct vt_experiments x;

    (void)state;
    truth_experiment("20260217-231439-llama-2-7b-tp1-codegen", "results");
    truth_experiment("20260217-155451-llama-2-7b-tp1-roleplay", "results");
    truth_experiment("7-a", "results");
    truth_put("experiments.json", "[" TRUTH_ENTRY("20260217", "") ", " TRUTH_ENTRY(
                                      "7", "") ", " TRUTH_ENTRY("7", "") "]");
    load(&x, &plain);
    assert_int_equal(x.n, 1);
    assert_int_equal(x.e[0].id, 7);
    assert_non_null(strstr(truth_said, "id 20260217 is ambiguous: 2 directories"));
    assert_non_null(strstr(truth_said, "id 7 is ambiguous: experiments.json has it"));
    vt_experiments_free(&x);
}

static void bad_entries_and_directories_are_skipped(void **state)
{
    struct vt_experiments x;

    (void)state;
    truth_experiment("1-a", "results");
    truth_experiment("2-b", "results");
    truth_put("2-b/vllm.log", "nothing of interest\n");
    truth_put("experiments.json",
              "[{\"id\": 1, \"done\": true, \"hw\": \"H100\"}, " TRUTH_ENTRY(
                  "2", "") ", " TRUTH_ENTRY("33", "") "]");
    load(&x, &plain);
    assert_int_equal(x.n, 0);
    assert_int_equal(x.found, 2);
    assert_non_null(strstr(truth_said, "has no cpu_offload, dp, gpu_mem, precision, "
                                       "safe, workload"));
    assert_non_null(strstr(truth_said, "no line 'GPU KV cache size: N tokens'"));
    assert_non_null(strstr(truth_said, "no directory 33-..."));
    vt_experiments_free(&x);
}

static void a_broken_manifest_is_an_error(void **state)
{
    struct vt_experiments x;
    struct vt_err err = {0};

    (void)state;
    truth_put("experiments.json", "[{]");
    assert_int_equal(vt_experiments_load(&x, truth_root, &plain, &err), VT_EINPUT);
    assert_non_null(strstr(err.msg, "experiments.json: line 1"));
    assert_int_equal(vt_experiments_load(&x, "/nonexistent/x", &plain, &err),
                     VT_EINPUT);
}

static void directories_are_walked_without_manifest(void **state)
{
    static const char csv[] = "experiment_folder,hardware,dp,precision,gpu_mem_util\n"
                              "x/20260217-231439-llama-tp1-codegen,L40S,2.0,FP8,0.95\n";
    struct vt_truth_options o = plain;
    struct vt_experiments x;
    char path[128];

    (void)state;
    truth_experiment("20260217-231439-llama-tp1-codegen", "inference-perf-data");
    truth_experiment("20260217-23-llama-tp1-codegen", "results"); /* no time of day */
    truth_experiment("5-llama", "results");
    truth_put("notes/readme", "not an experiment");
    truth_put("meta.csv", csv);
    snprintf(path, sizeof(path), "%s/meta.csv", truth_root);
    o.metadata = path;
    load(&x, &o);
    assert_int_equal(x.n, 3);
    assert_int_equal(x.e[0].id, 0);
    assert_string_equal(x.e[0].workload, "codegen");
    assert_string_equal(x.e[0].hardware, "L40S");
    assert_string_equal(x.e[0].precision, "FP8");
    assert_int_equal(x.e[0].dp, 2);
    assert_int_equal(x.e[1].id, 5);
    assert_string_equal(x.e[1].hardware, "H100");
    vt_experiments_free(&x);
    o.dp_too = false;
    load(&x, &o);
    assert_int_equal(x.n, 2);
    assert_non_null(strstr(truth_said, "DP filter: 2 kept, 1 left out"));
    vt_experiments_free(&x);
}

/* ---- one experiment -------------------------------------------------- */

static int load_one(struct vt_experiment *e, const char *name,
                    const struct vt_truth_options *o, struct vt_err *err)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", truth_root, name);
    return vt_experiment_load(e, path, NULL, o, err);
}

static void seconds_become_milliseconds(void **state)
{
    struct vt_experiment e;
    struct vt_err err = {0};

    (void)state;
    truth_experiment("1-a-b", "results");
    assert_int_equal(load_one(&e, "1-a-b", &plain, &err), VT_OK);
    assert_int_equal(e.kv_tokens, 119408); /* the first line counts */
    assert_int_equal(e.total_kv_blocks, 7463);
    assert_int_equal(e.cpu_kv_blocks, 0);
    assert_int_equal(e.n_stages, 2);
    assert_int_equal(e.summary.requests, 30); /* that succeeded, not 31 */
    assert_near(e.summary.ms[0], 400, 1e-9);
    assert_near(e.summary.ms[2], 1200, 1e-9);
    assert_near(e.summary.ms[3], 50, 1e-9);
    assert_near(e.summary.ms[6], 350.0 / 23, 1e-9); /* derived */
    assert_true(isnan(e.summary.ms[7]) && isnan(e.summary.ms[8]));
    assert_near(e.stage[1].duration_s, 2.5, 0); /* not cut to 2 */
    assert_int_equal(e.plan[0].requests, 10);
    assert_int_equal(e.prefix.num_unique_system_prompts, 9);
    vt_experiment_free(&e);
}

static void stages_are_in_the_order_of_their_numbers(void **state)
{
    struct vt_experiment e;
    struct vt_err err = {0};

    (void)state;
    truth_experiment("1-a", "results");
    truth_metrics("1-a/results", "stage_10_lifecycle_metrics.json", 5, 10, 1, 24);
    truth_metrics("1-a/results", "stage_2_lifecycle_metrics.json", 5, 2, 1, 24);
    assert_int_equal(load_one(&e, "1-a", &plain, &err), VT_OK);
    assert_int_equal(e.n_stages, 4);
    assert_near(e.stage[2].ms[0], 2000, 1e-9);
    assert_near(e.stage[3].ms[0], 10000, 1e-9);
    assert_non_null(strstr(truth_said, "4 stage files, but 2 stages in profile.yaml"));
    vt_experiment_free(&e);
}

static void logs_tell_of_offloading(void **state)
{
    static const struct {
        const char *log;
        uint32_t blocks; /* UINT32_MAX: refused */
    } row[] = {
        {"Available KV cache memory: 38.96 GiB\nGPU KV cache size: 425,648 tokens\n"
         "{'cpu_bytes_to_use': 8589934592.0}\n",
         5462},
        {"Available KV cache memory: 38.96 GiB\nGPU KV cache size: 425648 tokens\n"
         "{\"cpu_bytes_to_use\": 8589934592}\n",
         5462},
        {"GPU KV cache size: 425648 tokens\ncpu_bytes_to_use: 8589934592\n",
         UINT32_MAX},
        {"GPU KV cache size:16 tokens\n", UINT32_MAX},
        {"", UINT32_MAX},
        {"GPU KV cache size: 160 tokens", 0},
    };

    (void)state;
    truth_experiment("1-a", "results");
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        struct vt_experiment e;
        struct vt_err err = {0};
        int rc;

        truth_put("1-a/vllm.log", row[i].log);
        rc = load_one(&e, "1-a", &plain, &err);
        assert_int_equal(rc, row[i].blocks == UINT32_MAX ? VT_EINPUT : VT_OK);
        if (rc != VT_OK)
            continue;
        assert_int_equal(e.cpu_kv_blocks, row[i].blocks);
        vt_experiment_free(&e);
    }
}

static void kv_events_give_the_peak(void **state)
{
    struct vt_experiment e;
    struct vt_err err = {0};

    (void)state;
    truth_experiment("1-a", "results");
    truth_put(
        "1-a/kv_events.jsonl",
        "[1.0, [[\"TransferCompleted\", 1, \"r\", \"GPU\", \"CPU\", 40, true, 1],"
        "[\"BlockStored\", 1]], 0, {}]\n"
        "not json\n"
        "[2.0, [[\"TransferCompleted\", 2, \"r\", \"CPU\", \"GPU\", 15, true, 2]]]\n"
        "[3.0, [[\"TransferCompleted\", 3, \"r\", \"GPU\", \"CPU\", 9, false, 3]]]\n");
    assert_int_equal(load_one(&e, "1-a", &plain, &err), VT_OK);
    assert_int_equal(e.kv_events_peak, 40);
    vt_experiment_free(&e);
}

/* ---- requests -------------------------------------------------------- */

/* Where a row's counts and times stand, as printf() takes them. */
static const char old_row[] = "{\"start_time\": %d, \"end_time\": %g, \"info\": "
                              "{\"input_tokens\": 50, \"output_tokens\": 3, "
                              "\"output_token_times\": [";
static const char row_of_0_7[] =
    "{\"start_time\": %d, \"end_time\": %g, \"info\": "
    "{\"request_metrics\": {\"text\": {\"input_tokens\": 50}}, "
    "\"response_metrics\": {\"output_tokens\": 3, \"output_token_times\": [";

/* n requests a second apart, the last first, each with TTFT 0.1 s and gaps of 0.05 s.
 */
static void put_requests(int n, int times, bool is_old)
{
    struct vt_buf b = {0};

    vt_buf_char(&b, '[');
    for (int i = n - 1; i >= 0; i--) {
        if (is_old)
            vt_buf_printf(&b, old_row, 1000 + i, 1000 + i + 0.2);
        else
            vt_buf_printf(&b, row_of_0_7, 1000 + i, 1000 + i + 0.2);
        for (int k = 0; k < times; k++)
            vt_buf_printf(&b, "%s%g", k > 0 ? ", " : "", 1000 + i + 0.1 + 0.05 * k);
        vt_buf_str(&b, is_old ? "]}, \"error\": null}, " : "]}}, \"error\": null}, ");
    }
    vt_buf_str(&b, "{\"start_time\": 1004.5, \"end_time\": 1005, \"info\": {}, "
                   "\"error\": {\"error_type\": \"x\"}}]");
    truth_put("1-a/results/per_request_lifecycle_metrics.json", b.data);
    vt_buf_free(&b);
}

static void token_times_give_quantiles_of_itl(void **state)
{
    static const int times[] = {3, 6, 3}; /* one for each token, or two */

    (void)state;
    truth_experiment("1-a", "results");
    for (size_t i = 0; i < VT_COUNT(times); i++) {
        struct vt_experiment e;
        struct vt_err err = {0};

        put_requests(5, times[i], i < 2); /* the last as 0.7 writes it */
        assert_int_equal(load_one(&e, "1-a", &plain, &err), VT_OK);
        assert_int_equal(e.n_requests, 6);
        assert_true(e.n_failed == 1 && e.request[5].failed);
        assert_near(e.request[0].start_s, 0, 1e-9); /* sorted, from the first */
        assert_int_equal(e.request[2].stage, 0);
        assert_int_equal(e.request[3].stage, 1); /* 2.5 s and later */
        assert_int_equal(e.token_times, times[i] == 3);
        assert_near(e.summary.ms[6], times[i] == 3 ? 50 : 350.0 / 23, 1e-6);
        assert_int_equal(isnan(e.summary.ms[8]), times[i] != 3);
        assert_near(e.summary.ms[0], 400, 1e-9); /* the report's word stands */
        vt_experiment_free(&e);
    }
}

/* What failed is simulated until then, with the lengths that were planned; what clients
 * count is not what an engine makes that may not stop. */
static void failures_and_nominal_lengths_are_kept(void **state)
{
    static const char profile[] =
        "{\"load\": {\"stages\": [{\"rate\": 1, \"duration\": 9}]}, \"server\": "
        "{\"ignore_eos\": %s}, \"data\": {\"shared_prefix\": {\"question_len\": 40, "
        "\"system_prompt_len\": 10, \"output_len\": 24}}}";
    static const char *const said[] = {"true", "false"};
    struct vt_err err = {0};

    (void)state;
    truth_experiment("1-a", "results");
    put_requests(5, 6, true);
    for (size_t i = 0; i < VT_COUNT(said); i++) {
        struct vt_experiment e;
        char text[512];

        snprintf(text, sizeof(text), profile, said[i]);
        truth_put("1-a/profile.yaml", text);
        truth_put("1-a/results/config.yaml",
                  i == 0 ? "load:\n  request_timeout: 300\n" : "load:\n  x: 1\n");
        assert_int_equal(load_one(&e, "1-a", &plain, &err), VT_OK);
        assert_int_equal(e.request[0].output_tokens, i == 0 ? 24 : 3);
        assert_int_equal(e.request[5].output_tokens, 24);
        assert_int_equal(e.request[5].input_tokens, 50);
        assert_near(e.request[5].e2e_s, 0.5, 1e-9);
        assert_near(e.timeout_s, i == 0 ? 300 : 0, 0);
        assert_int_equal(e.summary.sent, 31);
        assert_int_equal(e.summary.requests, 30);
        vt_experiment_free(&e);
    }
    assert_non_null(strstr(truth_said, "1 requests failed (x): they are simulated"));
}

static void cutting_cuts_the_truth_too(void **state)
{
    const struct vt_truth_options o = {.dp_too = true, .max_requests = 3};
    struct vt_experiment e;
    struct vt_err err = {0};

    (void)state;
    truth_experiment("1-a", "results");
    assert_int_equal(load_one(&e, "1-a", &o, &err), VT_EINPUT);
    assert_non_null(strstr(err.msg, "needed to cut the measurements to 3 requests"));
    put_requests(5, 3, true);
    assert_int_equal(load_one(&e, "1-a", &o, &err), VT_OK);
    assert_int_equal(e.plan[0].requests, 1); /* 10 of 30 */
    assert_int_equal(e.plan[1].requests, 2);
    assert_near(e.plan[1].duration_s, 0.25, 1e-9);
    assert_int_equal(e.n_requests, 3);
    assert_int_equal(e.summary.requests, 3);
    assert_near(e.summary.ms[0], 200, 1e-6); /* of those, not the report's */
    assert_near(e.summary.ms[3], 100, 1e-6);
    vt_experiment_free(&e);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, truth_begin, truth_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(manifest_names_experiments_in_order),
        TEST(only_safe_ones_unless_asked),
        TEST(the_generators_report_tells_its_groups),
        TEST(ambiguous_ids_are_refused),
        TEST(bad_entries_and_directories_are_skipped),
        TEST(a_broken_manifest_is_an_error),
        TEST(directories_are_walked_without_manifest),
        TEST(seconds_become_milliseconds),
        TEST(stages_are_in_the_order_of_their_numbers),
        TEST(logs_tell_of_offloading),
        TEST(kv_events_give_the_peak),
        TEST(token_times_give_quantiles_of_itl),
        TEST(failures_and_nominal_lengths_are_kept),
        TEST(cutting_cuts_the_truth_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The three errors of a pair, what pairs are made, and the two CSV files. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "validate/validate.h"

static void errors_of_a_pair(void **state)
{
    static const struct {
        double predicted, actual, mape, mpe;
    } row[] = {
        {100, 100, 0, 0},    {120, 100, 20, 20},         {80, 100, 20, -20},
        {0, 0, 0, 0},        {5, 0, INFINITY, INFINITY}, {-5, 0, INFINITY, -INFINITY},
        {-80, -100, 20, 20},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        double mape = vt_error_mape(row[i].predicted, row[i].actual);
        double mpe = vt_error_mpe(row[i].predicted, row[i].actual);

        assert_true(mape == row[i].mape || fabs(mape - row[i].mape) < 1e-9);
        assert_true(mpe == row[i].mpe || fabs(mpe - row[i].mpe) < 1e-9);
    }
}

static struct vt_stage_metrics metrics(int32_t index, double base, bool means_only)
{
    struct vt_stage_metrics m = {.index = index, .requests = 10};

    for (int i = 0; i < VT_ERROR_METRICS; i++)
        m.ms[i] = means_only && i % 3 != 0 ? NAN : base + i;
    return m;
}

static struct vt_experiment experiment(struct vt_stage_metrics *stage, size_t n)
{
    return (struct vt_experiment){.folder = "data/3-a,b",
                                  .model = "org/model",
                                  .workload = "general",
                                  .hardware = "H100",
                                  .precision = "FP16",
                                  .id = 3,
                                  .tp = 2,
                                  .max_num_batched_tokens = 2048,
                                  .gpu_mem_util = 0.9,
                                  .stage = stage,
                                  .n_stages = n,
                                  .summary = metrics(-1, 100, false)};
}

static void unknown_values_make_no_record(void **state)
{
    struct vt_stage_metrics truth[] = {metrics(0, 100, false), metrics(1, 100, false)};
    struct vt_stage_metrics full[] = {metrics(0, 110, false), metrics(1, 110, false)};
    struct vt_stage_metrics means[] = {metrics(0, 110, true), metrics(1, 110, true)};
    struct vt_experiment e = experiment(truth, 2);
    struct vt_stage_metrics all = metrics(-1, 110, false), mean = metrics(-1, 1, true);
    struct vt_harness h = {0};

    (void)state;
    assert_int_equal(vt_errors_add(&h, "full", &e, full, 2, &all, NULL), VT_OK);
    assert_int_equal(h.n_errors, 27);
    assert_int_equal(h.error[0].stage_index, 0);
    assert_int_equal(h.error[26].stage_index, -1);
    assert_int_equal(vt_errors_add(&h, "means", &e, means, 2, &mean, NULL), VT_OK);
    assert_int_equal(h.n_errors, 27 + 9);
    vt_harness_free(&h);
}

static void stages_that_were_not_measured_are_left_out(void **state)
{
    struct vt_stage_metrics truth[] = {metrics(0, 100, false)};
    struct vt_stage_metrics p[] = {metrics(0, 1, true), metrics(1, 1, true),
                                   metrics(-7, 1, true)};
    struct vt_experiment e = experiment(truth, 1);
    struct vt_stage_metrics all = metrics(-1, 1, true);
    struct vt_harness h = {0};

    (void)state;
    assert_int_equal(vt_errors_add(&h, "s", &e, p, 3, &all, NULL), VT_OK);
    assert_int_equal(h.n_errors, 6);
    vt_harness_free(&h);
}

static void csv_files_have_their_columns(void **state)
{
    struct vt_stage_metrics all = metrics(-1, 110, true);
    struct vt_experiment e = experiment(NULL, 0);
    struct vt_adapter_run run[] = {
        {.simulator = "s", .experiment = &e, .seconds = 0.25},
        {.simulator = "t", .experiment = &e, .outcome = VT_ADAPTER_FAILED}};
    struct vt_harness h = {0};
    struct vt_buf b = {0};

    (void)state;
    e.cpu_offload = true;
    assert_int_equal(vt_errors_add(&h, "s", &e, NULL, 0, &all, NULL), VT_OK);
    vt_harness_errors_csv(&b, &h);
    assert_string_equal(
        b.data,
        "simulator,experiment_folder,model,workload,stage_index,metric_name,predicted,"
        "actual,mape,mpe,absolute_error,exp_id,hardware,dp,cpu_offload,gpu_mem_util,"
        "precision,tp,max_num_batched_tokens\r\n"
        "s,\"data/3-a,b\",org/model,general,-1,e2e_mean,110.0,100.0,10.0,10.0,10.0,3,"
        "H100,,True,0.9,FP16,2,2048\r\n"
        "s,\"data/3-a,b\",org/model,general,-1,ttft_mean,113.0,103.0,"
        "9.70873786407767,9.70873786407767,10.0,3,H100,,True,0.9,FP16,2,2048\r\n"
        "s,\"data/3-a,b\",org/model,general,-1,itl_mean,116.0,106.0,"
        "9.433962264150944,9.433962264150944,10.0,3,H100,,True,0.9,FP16,2,2048\r\n");
    vt_buf_clear(&b);
    e.dp = 4;
    h.run = run;
    h.n_runs = 2;
    vt_harness_runtime_csv(&b, &h);
    assert_string_equal(
        b.data, "simulator,experiment_folder,model,workload,wall_clock_seconds,exp_id,"
                "hardware,dp,cpu_offload,gpu_mem_util,precision,tp,"
                "max_num_batched_tokens\r\n"
                "s,\"data/3-a,b\",org/model,general,0.25,3,H100,4,True,0.9,FP16,2,"
                "2048\r\n");
    h.run = NULL;
    h.n_runs = 0;
    vt_buf_free(&b);
    vt_harness_free(&h);
}

/* Means are over stages and summaries together; models pool all simulators. */
static void tables_average_all_records(void **state)
{
    struct vt_stage_metrics truth[] = {metrics(0, 100, true)};
    struct vt_stage_metrics one[] = {metrics(0, 110, true)};
    struct vt_stage_metrics all = metrics(-1, 130, true);
    struct vt_experiment e = experiment(truth, 1);
    struct vt_harness h = {0};
    struct vt_buf b = {0};

    (void)state;
    assert_int_equal(vt_errors_add(&h, "sim", &e, one, 1, &all, NULL), VT_OK);
    assert_int_equal(vt_harness_table(&b, &h, "results", NULL), VT_OK);
    assert_non_null(strstr(
        b.data,
        "\n=== MAPE by Simulator ===\n\n"
        "Simulator  e2e_mean   e2e_p90   e2e_p99  ttft_mean  ttft_p90  ttft_p99  "
        "itl_mean   itl_p90   itl_p99\n"
        "-----------------------------------------------------------------------------"
        "-----------------------\n"
        "sim           20.00       N/A       N/A      19.42       N/A       N/A     "
        "18.87       N/A       N/A\n"));
    assert_non_null(strstr(b.data, "\n=== MPE by Simulator (signed) ===\n\n"));
    assert_non_null(strstr(b.data, "\nCSV saved to results/error_records.csv\n"));
    assert_null(strstr(b.data, "Runtime"));
    vt_buf_free(&b);
    vt_harness_free(&h);
}

static void nothing_to_report_is_said(void **state)
{
    struct vt_harness h = {0};
    struct vt_buf b = {0};

    (void)state;
    assert_int_equal(vt_harness_table(&b, &h, "results", NULL), VT_OK);
    assert_string_equal(b.data, "No error records to report.\n");
    vt_buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_of_a_pair),
        cmocka_unit_test(unknown_values_make_no_record),
        cmocka_unit_test(stages_that_were_not_measured_are_left_out),
        cmocka_unit_test(csv_files_have_their_columns),
        cmocka_unit_test(tables_average_all_records),
        cmocka_unit_test(nothing_to_report_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* vidur.c - Vidur, given the measured requests. */
#include <glob.h>
#include <math.h>
#include <unistd.h>

#include "validate/adapters/adapter.h"
#include "validate/sheet.h"

static const char *const models[] = {"meta-llama/Llama-2-7b-hf",
                                     "meta-llama/Llama-2-70b-hf",
                                     "codellama/CodeLlama-34b-Instruct-hf"};

static bool is_hopper(const struct vt_experiment *e)
{
    return strcmp(e->hardware, "H100") == 0;
}

int vidur_can_run(const struct adapter_job *j, struct vt_err *err)
{
    const struct vt_experiment *e = j->e;
    bool known = false;

    if (!j->c->vidur_dir || access(j->c->vidur_dir, X_OK) != 0 || !j->c->python)
        return vt_fail(err, VT_EINPUT, "no Vidur: --vidur-dir");
    for (size_t i = 0; i < VT_COUNT(models); i++)
        known |= strcmp(models[i], e->model) == 0;
    if (!known)
        return vt_fail(err, VT_EINPUT, "Vidur does not know %s", e->model);
    if (!is_hopper(e) && strcmp(e->hardware, "A100-80GB") != 0)
        return vt_fail(err, VT_EINPUT, "Vidur knows A100-80GB and H100, not %s",
                       e->hardware);
    if (strcmp(e->precision, "FP8") == 0 || e->cpu_offload)
        return vt_fail(err, VT_EINPUT, "Vidur has no %s",
                       e->cpu_offload ? "offloading" : "FP8");
    return adapter_work_check(e, VT_WORKLOAD_TRACE, err);
}

static void put_arguments(struct vt_proc *p, const struct adapter_job *j,
                          const char *trace, const char *out)
{
    const struct vt_experiment *e = j->e;

    vt_proc_arg_pair(p, j->c->python, "-m");
    vt_proc_arg(p, "vidur.main");
    vt_proc_arg_pair(p, "--replica_config_model_name", e->model);
    vt_proc_arg_pair(p, "--replica_config_device", is_hopper(e) ? "h100" : "a100");
    vt_proc_arg_pair(p, "--replica_config_network_device",
                     is_hopper(e) ? "h100_pairwise_nvlink" : "a100_pairwise_nvlink");
    vt_proc_arg_u64(p, "--replica_config_tensor_parallel_size", e->tp);
    vt_proc_arg_u64(p, "--replica_config_num_pipeline_stages", 1);
    vt_proc_arg_pair(p, "--replica_scheduler_config_type", "vllm");
    vt_proc_arg_u64(p, "--vllm_scheduler_config_batch_size_cap", e->max_num_seqs);
    vt_proc_arg_u64(p, "--vllm_scheduler_config_max_tokens_in_batch",
                    e->max_num_batched_tokens);
    vt_proc_arg_pair(p, "--request_generator_config_type", "trace_replay");
    vt_proc_arg_pair(p, "--trace_request_generator_config_trace_file", trace);
    vt_proc_arg_pair(p, "--metrics_config_output_dir", out);
    /* Pictures need a browser, and nobody looks at them. */
    vt_proc_arg_pair(p, "--no-metrics_config_store_plots",
                     "--no-metrics_config_enable_chrome_trace");
    vt_proc_arg_u64(p, "--cluster_config_num_replicas", e->dp > 1 ? e->dp : 1);
    if (e->dp > 1)
        vt_proc_arg_pair(p, "--global_scheduler_config_type", "round_robin");
}

/* Rows are in the order of requests. */
static int read_metrics(struct gather *g, const struct vt_experiment *e,
                        const char *path, struct vt_err *err)
{
    static const char itl[] = "decode_time_execution_plus_preemption_normalized";
    struct sheet csv;
    size_t i = 0;
    int rc = sheet_open(&csv, path, err);

    for (; sheet_next(&csv, &rc, err); i++) {
        struct gather_request r = {
            .e2e_ms = sheet_number(&csv, "request_e2e_time") * 1e3,
            .ttft_ms = sheet_number(&csv, "prefill_e2e_time") * 1e3,
            .itl_ms = sheet_number(&csv, itl) * 1e3};
        double tokens = sheet_number(&csv, "request_num_decode_tokens");

        if (isnan(r.e2e_ms) || isnan(r.ttft_ms) || isnan(r.itl_ms))
            continue;
        r.output_tokens = tokens >= 1 && tokens < 1e9 ? (uint32_t)tokens : 1;
        r.stage = i < e->n_requests ? e->request[i].stage : UINT32_MAX;
        if (i < e->n_requests && e->request[i].failed) {
            gather_leave_out(g, r.stage);
            continue;
        }
        rc = gather_add(g, &r, err);
    }
    sheet_end(&csv);
    return rc == VT_OK ? gather_finish(g, err) : rc;
}

int vidur_run(const struct adapter_job *j, const char *place, struct gather *g,
              struct vt_err *err)
{
    struct vt_proc p = {.environment = j->c->environment,
                        .output = VT_PROC_TO_FILE,
                        .directory = j->c->vidur_dir};
    char trace[ADAPTER_PATH], out[ADAPTER_PATH], pattern[ADAPTER_PATH + 32];
    struct vt_buf b = {0};
    glob_t found;
    int rc;

    snprintf(trace, sizeof(trace), "%s/trace.csv", place);
    snprintf(out, sizeof(out), "%s/out", place);
    /* arrived_at is in seconds since the earliest; requests are by start already. */
    vt_buf_str(&b, "arrived_at,num_prefill_tokens,num_decode_tokens\n");
    for (size_t i = 0; i < j->e->n_requests; i++) {
        vt_buf_py_f64(&b, j->e->request[i].start_s);
        vt_buf_printf(&b, ",%u,%u\n", j->e->request[i].input_tokens,
                      j->e->request[i].output_tokens);
    }
    rc = vt_write_file_in(place, "trace.csv", &b, err);
    if (rc == VT_OK) {
        put_arguments(&p, j, trace, out);
        rc = vt_proc_run(&p, 0, err);
    }
    snprintf(pattern, sizeof(pattern), "%s/*/request_metrics.csv", out);
    if (rc == VT_OK && glob(pattern, 0, NULL, &found) != 0) {
        rc = vt_fail(err, VT_EIO, "Vidur wrote no request_metrics.csv");
    } else if (rc == VT_OK) {
        rc = read_metrics(g, j->e, found.gl_pathv[0], err);
        globfree(&found);
    }
    vt_proc_stop(&p);
    vt_buf_free(&b);
    return rc;
}

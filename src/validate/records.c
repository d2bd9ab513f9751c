/* records.c - error_records.csv and runtime.csv, as Python's csv module writes them. */
#include <math.h>

#include "validate/validate.h"

static void put_number(struct vt_buf *b, double v)
{
    if (isinf(v))
        vt_buf_str(b, v > 0 ? "inf" : "-inf");
    else
        vt_buf_py_f64(b, v);
}

static void put_run(struct vt_buf *b, const char *simulator,
                    const struct vt_experiment *e)
{
    const char *const text[] = {simulator, e->folder, e->model, e->workload};

    for (size_t i = 0; i < VT_COUNT(text); i++) {
        vt_buf_str(b, i > 0 ? "," : "");
        vt_buf_csv(b, text[i], false);
    }
}

static void put_metadata(struct vt_buf *b, const struct vt_experiment *e)
{
    vt_buf_printf(b, ",%lld,", (long long)e->id);
    vt_buf_csv(b, e->hardware, false);
    vt_buf_char(b, ',');
    if (e->dp > 0)
        vt_buf_u64(b, e->dp);
    vt_buf_printf(b, ",%s,", e->cpu_offload ? "True" : "False");
    vt_buf_py_f64(b, e->gpu_mem_util);
    vt_buf_char(b, ',');
    vt_buf_csv(b, e->precision, false);
    vt_buf_printf(b, ",%u,%u\r\n", e->tp, e->max_num_batched_tokens);
}

void vt_harness_errors_csv(struct vt_buf *b, const struct vt_harness *h)
{
    vt_buf_str(b, "simulator,experiment_folder,model,workload,stage_index,metric_name,"
                  "predicted,actual,mape,mpe,absolute_error,exp_id,hardware,dp,"
                  "cpu_offload,gpu_mem_util,precision,tp,max_num_batched_tokens\r\n");
    for (size_t i = 0; i < h->n_errors; i++) {
        const struct vt_error_record *r = &h->error[i];
        const double v[] = {r->predicted, r->actual, r->mape, r->mpe, r->absolute};

        put_run(b, r->simulator, r->experiment);
        vt_buf_printf(b, ",%d,%s", r->stage_index, vt_error_metric_names[r->metric]);
        for (size_t k = 0; k < VT_COUNT(v); k++) {
            vt_buf_char(b, ',');
            put_number(b, v[k]);
        }
        put_metadata(b, r->experiment);
    }
}

void vt_harness_runtime_csv(struct vt_buf *b, const struct vt_harness *h)
{
    vt_buf_str(b,
               "simulator,experiment_folder,model,workload,wall_clock_seconds,exp_id,"
               "hardware,dp,cpu_offload,gpu_mem_util,precision,tp,"
               "max_num_batched_tokens\r\n");
    for (size_t i = 0; i < h->n_runs; i++) {
        const struct vt_adapter_run *r = &h->run[i];

        if (r->outcome != VT_ADAPTER_OK)
            continue;
        put_run(b, r->simulator, r->experiment);
        vt_buf_char(b, ',');
        put_number(b, r->seconds);
        put_metadata(b, r->experiment);
    }
}

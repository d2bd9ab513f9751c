/* aiconfigurator.c - NVIDIA's AIConfigurator: its table of configurations, one
 * of which has each stage's throughput. */
#include <math.h>
#include <stdlib.h>

#include "validate/adapters/adapter.h"
#include "validate/sheet.h"

enum { MOST_POINTS = 100000 };

/* Prints seq/s, ttft and tpot of every row with the wanted TP, in the table's order. */
static const char script[] =
    "import sys\n"
    "model, system, tp, isl, osl, prefix, profile, moe, seqs = sys.argv[1:10]\n"
    "asked = dict(serving_mode='agg', model_path=model, system_name=system,\n"
    "    backend_name='vllm', total_gpus=int(tp), isl=int(isl), osl=int(osl),\n"
    "    prefix=int(prefix), ttft=150000, tpot=200)\n"
    "if moe == '1':\n"
    "    asked['database_mode'] = 'HYBRID'\n"
    "try: # up to 0.11\n"
    "    from aiconfigurator.sdk.task import TaskConfig, TaskRunner\n"
    "    result = TaskRunner().run(TaskConfig(profiles=[profile], **asked))\n"
    "    table = None if result is None else result['pareto_df']\n"
    "except ImportError:\n"
    "    from aiconfigurator.sdk.task_v2 import Task\n"
    "    from aiconfigurator.sdk import common\n"
    "    if profile == 'fp8':\n"
    "        asked['gemm_quant_mode'] = common.GEMMQuantMode.fp8\n"
    "    if profile == 'fp8' and moe == '1':\n"
    "        asked['moe_quant_mode'] = common.MoEQuantMode.fp8\n"
    "    table = Task(**asked).run()\n"
    "if table is None or table.empty:\n"
    "    sys.exit('no feasible configuration')\n"
    "table = table[table['tp'] == int(tp)]\n"
    "if table.empty:\n"
    "    sys.exit('no configuration with tp=' + tp)\n"
    "if 'concurrency' in table: # more than the engine takes at a time\n"
    "    table = table[table['concurrency'] <= int(seqs)]\n"
    "if table.empty:\n"
    "    sys.exit('no configuration with max_num_seqs=' + seqs)\n"
    "print('req_per_s,ttft_ms,tpot_ms')\n"
    "for row in table.to_dict('records'):\n"
    "    print(row['seq/s'], row['ttft'], row['tpot'], sep=',')\n";

static const char *system_of(const struct vt_experiment *e)
{
    static const struct {
        const char *hardware, *system;
    } row[] = {{"H100", "h100_sxm"},
               {"H200", "h200_sxm"},
               {"A100-80GB", "a100_sxm"},
               {"L40S", "l40s"}};

    for (size_t i = 0; i < VT_COUNT(row); i++)
        if (strcmp(row[i].hardware, e->hardware) == 0)
            return row[i].system;
    return NULL;
}

int aiconfigurator_can_run(const struct adapter_job *j, struct vt_err *err)
{
    const struct vt_experiment *e = j->e;

    if (!j->c->aiconfigurator || !j->c->python)
        return vt_fail(err, VT_EINPUT, "%s has no module aiconfigurator",
                       j->c->python ? j->c->python : "python3");
    if (!system_of(e))
        return vt_fail(err, VT_EINPUT,
                       "AIConfigurator knows A100-80GB, H100, H200 and "
                       "L40S, not %s",
                       e->hardware);
    if (strcmp(e->precision, "FP16") != 0 && strcmp(e->precision, "FP8") != 0)
        return vt_fail(err, VT_EINPUT, "AIConfigurator knows FP16 and FP8, not %s",
                       e->precision);
    return adapter_work_check(e, VT_WORKLOAD_PROFILE, err);
}

static void put_arguments(struct vt_proc *p, const struct adapter_job *j)
{
    const struct vt_experiment *e = j->e;
    struct vt_arch arch = {0};
    struct vt_buf path = {0};
    bool moe = adapter_arch(&arch, j, &path, NULL) == VT_OK && arch.experts > 0;

    /* By a model's name it would look for its configuration in the network. */
    vt_proc_arg_pair(p, j->c->python, "-c");
    vt_proc_arg_pair(p, script, adapter_config_folder(&path) ? path.data : e->model);
    vt_buf_free(&path);
    vt_proc_arg(p, system_of(e));
    vt_proc_arg_printf(p, "%u", e->tp);
    vt_proc_arg_printf(p, "%u", e->prefix.question_len + e->prefix.system_prompt_len);
    vt_proc_arg_printf(p, "%u", e->prefix.output_len);
    vt_proc_arg_printf(p, "%u", e->prefix.system_prompt_len);
    vt_proc_arg(p, strcmp(e->precision, "FP8") == 0 ? "fp8" : "bfloat16");
    vt_proc_arg(p, moe ? "1" : "0");
    vt_proc_arg_printf(p, "%u", e->max_num_seqs);
}

static int read_points(struct gather *g, const struct vt_experiment *e,
                       const char *path, struct vt_err *err)
{
    struct estimate_point *p = NULL;
    struct sheet csv;
    size_t n = 0, cap = 0;
    int rc = sheet_open(&csv, path, err);

    while (n < MOST_POINTS && sheet_next(&csv, &rc, err)) {
        struct estimate_point at = {.req_per_s = sheet_number(&csv, "req_per_s"),
                                    .ttft_ms = sheet_number(&csv, "ttft_ms"),
                                    .itl_ms = sheet_number(&csv, "tpot_ms")};

        if (isnan(at.req_per_s) || isnan(at.ttft_ms) || isnan(at.itl_ms))
            continue;
        at.e2e_ms = at.ttft_ms + at.itl_ms * (e->prefix.output_len - 1.0);
        rc = vt_grow(&p, &cap, n + 1, sizeof(*p), err);
        if (rc == VT_OK)
            p[n++] = at;
    }
    sheet_end(&csv);
    if (rc == VT_OK)
        rc = estimate_match(g, e, p, n, err);
    free(p);
    return rc;
}

int aiconfigurator_run(const struct adapter_job *j, const char *place, struct gather *g,
                       struct vt_err *err)
{
    struct vt_proc p = {.environment = j->c->environment, .output = VT_PROC_TO_FILE};
    char out[ADAPTER_PATH];
    int rc;

    snprintf(out, sizeof(out), "%s/out.csv", place);
    p.out = out;
    put_arguments(&p, j);
    rc = vt_proc_run(&p, 0, err);
    if (rc == VT_OK)
        rc = read_points(g, j->e, out, err);
    vt_proc_stop(&p);
    return rc;
}

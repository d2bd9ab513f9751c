/* llmservingsim.c - LLMServingSim, given the measured lengths at the profile's
 * constant rates. It runs as it is installed; containers are the user's affair. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "validate/adapters/adapter.h"
#include "validate/sheet.h"

enum { LONGEST_RUN_S = 24 * 3600 };

static const char template_path[] =
    "configs/cluster/single_node_single_instance_H100.json";

int llmservingsim_can_run(const struct adapter_job *j, struct vt_err *err)
{
    const char *dir = j->c->llmservingsim_dir;
    char path[4300];
    int rc;

    snprintf(path, sizeof(path), "%s/serving/__main__.py", dir ? dir : "");
    if (!dir || !j->c->python || access(path, R_OK) != 0)
        return vt_fail(err, VT_EINPUT, "no LLMServingSim: --llmservingsim-dir");
    if (strcmp(j->e->hardware, "H100") != 0)
        return vt_fail(err, VT_EINPUT, "LLMServingSim knows H100, not %s",
                       j->e->hardware);
    rc = adapter_work_check(j->e, VT_WORKLOAD_TRACE, err);
    return rc == VT_OK ? adapter_work_check(j->e, VT_WORKLOAD_PROFILE, err) : rc;
}

/* ---- its files ------------------------------------------------------- */

static void put_request(struct vt_buf *b, const struct vt_truth_request *q, double at_s)
{
    struct vt_jw w;

    vt_jw_init(&w, b, &vt_json_spaced);
    vt_jw_map(&w, NULL);
    vt_jw_u64(&w, "input_toks", q->input_tokens);
    vt_jw_u64(&w, "output_toks", q->output_tokens);
    vt_jw_i64(&w, "arrival_time_ns", (int64_t)(at_s * 1e9));
    vt_jw_list(&w, "input_tok_ids");
    for (uint32_t i = 1; i <= q->input_tokens; i++)
        vt_jw_u64(&w, NULL, i);
    vt_jw_end(&w);
    vt_jw_end(&w);
    vt_buf_char(b, '\n');
}

/* All members of a map but those named, which end with NULL. */
static void put_others(struct vt_jw *w, const struct vt_node *map,
                       const char *const *but)
{
    for (uint32_t i = 0; i < map->n; i++) {
        const struct vt_node *f = &map->u.item[i];
        size_t k = 0;

        while (but[k] && strcmp(f->key, but[k]) != 0)
            k++;
        if (!but[k])
            vt_jw_node(w, f->key, f);
    }
}

/* The template's instance, with this experiment's model, once for each replica. */
static void put_instance(struct vt_jw *w, const struct vt_node *like,
                         const struct vt_experiment *e)
{
    static const char *const mem_size[] = {"mem_size", NULL};
    static const char *const own[] = {"model_name", "hardware", "tp_size", "num_npus",
                                      "npu_mem",    "dp_group", NULL};
    const struct vt_node *memory = vt_get(like, "npu_mem");

    vt_jw_map(w, NULL);
    vt_jw_str(w, "model_name", e->model);
    vt_jw_str(w, "hardware", "H100");
    vt_jw_u64(w, "tp_size", e->tp);
    vt_jw_u64(w, "num_npus", e->tp);
    vt_jw_map(w, "npu_mem");
    vt_jw_u64(w, "mem_size", 80);
    if (memory && memory->kind == VT_MAP)
        put_others(w, memory, mem_size);
    vt_jw_end(w);
    put_others(w, like, own);
    if (e->dp > 1)
        vt_jw_str(w, "dp_group", "A");
    vt_jw_end(w);
}

static const struct vt_node *first_of(const struct vt_node *map, const char *key)
{
    const struct vt_node *list = vt_get(map, key);

    return list && list->kind == VT_LIST && list->n > 0 &&
                   list->u.item[0].kind == VT_MAP
               ? &list->u.item[0]
               : NULL;
}

static int put_cluster(struct vt_buf *b, const struct adapter_job *j,
                       struct vt_err *err)
{
    static const char *const own[] = {"nodes", NULL};
    static const char *const own_of_node[] = {"num_instances", "instances", NULL};
    uint32_t n = j->e->dp > 1 ? j->e->dp : 1;
    const struct vt_node *root, *node, *instance;
    struct vt_arena scratch = {0};
    struct vt_jw w;
    char path[4400];
    int rc;

    snprintf(path, sizeof(path), "%s/%s", j->c->llmservingsim_dir, template_path);
    rc = vt_tree_load(&scratch, path, &root, err);
    if (rc != VT_OK)
        goto out;
    node = first_of(root, "nodes");
    instance = node ? first_of(node, "instances") : NULL;
    if (!instance) {
        rc = vt_fail(err, VT_EINPUT, "%s: no nodes[0].instances[0]", path);
        goto out;
    }
    vt_jw_init(&w, b, &vt_json_spaced);
    vt_jw_map(&w, NULL);
    vt_jw_list(&w, "nodes");
    vt_jw_map(&w, NULL);
    vt_jw_u64(&w, "num_instances", n);
    vt_jw_list(&w, "instances");
    for (uint32_t i = 0; i < n; i++)
        put_instance(&w, instance, j->e);
    vt_jw_end(&w);
    put_others(&w, node, own_of_node);
    vt_jw_end(&w);
    vt_jw_end(&w);
    put_others(&w, root, own);
    vt_jw_end(&w);
    vt_buf_char(b, '\n');
out:
    vt_arena_free(&scratch);
    return rc;
}

/* ---- a run ----------------------------------------------------------- */

static const char *dtype_of(const struct vt_experiment *e)
{
    if (strcmp(e->precision, "FP8") == 0)
        return "fp8";
    return strstr(e->model, "Llama-2-70b") ? "float16" : "bfloat16";
}

static int run_simulator(const struct adapter_job *j, const char *place,
                         const char *out, struct vt_err *err)
{
    struct vt_proc p = {.environment = j->c->environment,
                        .output = VT_PROC_TO_FILE,
                        .directory = j->c->llmservingsim_dir};
    char cluster[ADAPTER_PATH], dataset[ADAPTER_PATH];
    int rc;

    snprintf(cluster, sizeof(cluster), "%s/cluster.json", place);
    snprintf(dataset, sizeof(dataset), "%s/workload.jsonl", place);
    vt_proc_arg_pair(&p, j->c->python, "-m");
    vt_proc_arg(&p, "serving");
    vt_proc_arg_pair(&p, "--cluster-config", cluster);
    vt_proc_arg_pair(&p, "--dataset", dataset);
    vt_proc_arg_pair(&p, "--output", out);
    vt_proc_arg_pair(&p, "--dtype", dtype_of(j->e));
    vt_proc_arg_u64(&p, "--block-size", 16);
    vt_proc_arg_u64(&p, "--max-num-seqs", j->e->max_num_seqs);
    vt_proc_arg_u64(&p, "--max-num-batched-tokens", j->e->max_num_batched_tokens);
    vt_proc_arg_u64(&p, "--num-reqs", gather_planned(j->e));
    vt_proc_arg_pair(&p, "--log-level", "WARNING");
    if (j->e->dp > 1)
        vt_proc_arg_pair(&p, "--request-routing-policy", "RR");
    rc = vt_proc_run(&p, LONGEST_RUN_S * VT_SEC, err);
    vt_proc_stop(&p);
    return rc;
}

static int read_results(struct gather *g, const struct vt_experiment *e,
                        const char *path, struct vt_err *err)
{
    struct sheet csv;
    int rc = sheet_open(&csv, path, err);

    while (sheet_next(&csv, &rc, err)) {
        struct gather_request r = {.e2e_ms = sheet_number(&csv, "latency") / 1e6,
                                   .ttft_ms = sheet_number(&csv, "TTFT") / 1e6,
                                   .itl_ms = sheet_number(&csv, "TPOT") / 1e6};
        double at = sheet_number(&csv, "arrival"),
               tokens = sheet_number(&csv, "output");

        if (isnan(r.e2e_ms) || isnan(r.ttft_ms) || isnan(at))
            continue;
        r.output_tokens = tokens >= 1 && tokens < 1e9 ? (uint32_t)tokens : 1;
        r.stage = gather_stage_at(e, at / 1e9);
        rc = gather_add(g, &r, err);
    }
    sheet_end(&csv);
    return rc == VT_OK ? gather_finish(g, err) : rc;
}

int llmservingsim_run(const struct adapter_job *j, const char *place, struct gather *g,
                      struct vt_err *err)
{
    char results[ADAPTER_PATH];
    struct vt_buf cluster = {0}, requests = {0};
    const struct vt_experiment *e = j->e;
    double start_s = 0;
    size_t n = 0;
    int rc = put_cluster(&cluster, j, err);

    snprintf(results, sizeof(results), "%s/output.csv", place);
    if (rc == VT_OK && gather_planned(e) > e->n_requests)
        rc = vt_fail(err, VT_EINPUT, "%llu requests are planned, %zu were recorded",
                     (unsigned long long)gather_planned(e), e->n_requests);
    for (size_t s = 0; s < e->n_plan && rc == VT_OK; s++) {
        for (uint64_t k = 0; k < e->plan[s].requests; k++)
            put_request(&requests, &e->request[n++],
                        start_s + (double)k / e->plan[s].rate);
        start_s += e->plan[s].duration_s;
    }
    if (rc || (rc = vt_write_file_in(place, "cluster.json", &cluster, err)) ||
        (rc = vt_write_file_in(place, "workload.jsonl", &requests, err)) ||
        (rc = run_simulator(j, place, results, err)))
        goto out;
    rc = read_results(g, e, results, err);
out:
    vt_buf_free(&cluster);
    vt_buf_free(&requests);
    return rc;
}

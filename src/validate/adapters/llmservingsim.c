/* llmservingsim.c - LLMServingSim, given the measured lengths at the profile's
 * constant rates. It runs as it is installed; containers are the user's affair. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "validate/adapters/adapter.h"
#include "validate/adapters/program.h"

enum { LONGEST_RUN_S = 24 * 3600 };

static const char template_path[] =
    "configs/cluster/single_node_single_instance_H100.json";

int llmservingsim_can_run(const struct adapter *a, const struct adapter_job *j,
                          struct vt_err *err)
{
    const char *dir = j->c->llmservingsim_dir;
    char path[4300];
    int rc;

    (void)a;
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

static uint64_t planned(const struct vt_experiment *e)
{
    uint64_t n = 0;

    for (size_t i = 0; i < e->n_plan; i++)
        n += e->plan[i].requests;
    return n;
}

static void put_request(struct vt_buf *b, const struct vt_truth_request *q, double at_s)
{
    vt_buf_printf(b,
                  "{\"input_toks\": %u, \"output_toks\": %u, \"arrival_time_ns\": %lld"
                  ", \"input_tok_ids\": [",
                  q->input_tokens, q->output_tokens, (long long)(at_s * 1e9));
    for (uint32_t i = 1; i <= q->input_tokens; i++) {
        vt_buf_str(b, i > 1 ? ", " : "");
        vt_buf_u64(b, i);
    }
    vt_buf_str(b, "]}\n");
}

static int put_requests(struct vt_buf *b, const struct vt_experiment *e,
                        struct vt_err *err)
{
    double start = 0;
    size_t n = 0;

    if (planned(e) > e->n_requests)
        return vt_fail(err, VT_EINPUT, "%llu requests are planned, %zu were recorded",
                       (unsigned long long)planned(e), e->n_requests);
    for (size_t s = 0; s < e->n_plan; s++) {
        for (uint64_t k = 0; k < e->plan[s].requests; k++)
            put_request(b, &e->request[n++], start + (double)k / e->plan[s].rate);
        start += e->plan[s].duration_s;
    }
    return VT_OK;
}

/* The template's instance, with this experiment's model, once for each replica. */
static void put_instance(struct vt_buf *b, const struct vt_node *like,
                         const struct vt_experiment *e)
{
    vt_buf_printf(b, "{\"model_name\": ");
    vt_buf_json_str(b, e->model, strlen(e->model));
    vt_buf_printf(b,
                  ", \"hardware\": \"H100\", \"tp_size\": %u, \"num_npus\": %u, "
                  "\"npu_mem\": {\"mem_size\": 80",
                  e->tp, e->tp);
    for (uint32_t i = 0; i < like->n; i++) {
        const struct vt_node *f = &like->u.item[i];

        if (strcmp(f->key, "npu_mem") != 0 || f->kind != VT_MAP)
            continue;
        for (uint32_t k = 0; k < f->n; k++)
            if (strcmp(f->u.item[k].key, "mem_size") != 0) {
                vt_buf_printf(b, ", \"%s\": ", f->u.item[k].key);
                vt_buf_json_node(b, &f->u.item[k], NULL);
            }
    }
    vt_buf_char(b, '}');
    for (uint32_t i = 0; i < like->n; i++) {
        static const char *const own[] = {"model_name", "hardware", "tp_size",
                                          "num_npus",   "npu_mem",  "dp_group"};
        const struct vt_node *f = &like->u.item[i];
        bool mine = false;

        for (size_t k = 0; k < VT_COUNT(own); k++)
            mine |= strcmp(f->key, own[k]) == 0;
        if (mine)
            continue;
        vt_buf_printf(b, ", \"%s\": ", f->key);
        vt_buf_json_node(b, f, NULL);
    }
    vt_buf_str(b, e->dp > 1 ? ", \"dp_group\": \"A\"}" : "}");
}

static void put_node(struct vt_buf *b, const struct vt_node *node,
                     const struct vt_node *instance, const struct vt_experiment *e)
{
    uint32_t n = e->dp > 1 ? e->dp : 1;

    vt_buf_printf(b, "{\"num_instances\": %u, \"instances\": [", n);
    for (uint32_t i = 0; i < n; i++) {
        vt_buf_str(b, i > 0 ? ", " : "");
        put_instance(b, instance, e);
    }
    vt_buf_char(b, ']');
    for (uint32_t i = 0; i < node->n; i++) {
        const struct vt_node *f = &node->u.item[i];

        if (strcmp(f->key, "num_instances") == 0 || strcmp(f->key, "instances") == 0)
            continue;
        vt_buf_printf(b, ", \"%s\": ", f->key);
        vt_buf_json_node(b, f, NULL);
    }
    vt_buf_char(b, '}');
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
    struct vt_arena scratch = {0};
    const struct vt_node *root, *node = NULL, *instance = NULL;
    char path[4400];
    int rc;

    snprintf(path, sizeof(path), "%s/%s", j->c->llmservingsim_dir, template_path);
    rc = vt_tree_load(&scratch, path, &root, err);
    if (rc == VT_OK) {
        node = first_of(root, "nodes");
        instance = node ? first_of(node, "instances") : NULL;
        if (!instance)
            rc = vt_fail(err, VT_EINPUT, "%s: no nodes[0].instances[0]", path);
    }
    if (rc == VT_OK) {
        vt_buf_str(b, "{\"nodes\": [");
        put_node(b, node, instance, j->e);
        vt_buf_char(b, ']');
        for (uint32_t i = 0; i < root->n; i++) {
            const struct vt_node *f = &root->u.item[i];

            if (strcmp(f->key, "nodes") == 0)
                continue;
            vt_buf_printf(b, ", \"%s\": ", f->key);
            vt_buf_json_node(b, f, NULL);
        }
        vt_buf_str(b, "}\n");
    }
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
    struct program p = {.environment = j->c->environment,
                        .directory = j->c->llmservingsim_dir,
                        .timeout_s = LONGEST_RUN_S};
    char cluster[4200], dataset[4200];
    int rc;

    snprintf(cluster, sizeof(cluster), "%s/cluster.json", place);
    snprintf(dataset, sizeof(dataset), "%s/workload.jsonl", place);
    program_arg_pair(&p, j->c->python, "-m");
    program_arg(&p, "serving");
    program_arg_pair(&p, "--cluster-config", cluster);
    program_arg_pair(&p, "--dataset", dataset);
    program_arg_pair(&p, "--output", out);
    program_arg_pair(&p, "--dtype", dtype_of(j->e));
    program_arg_u64(&p, "--block-size", 16);
    program_arg_u64(&p, "--max-num-seqs", j->e->max_num_seqs);
    program_arg_u64(&p, "--max-num-batched-tokens", j->e->max_num_batched_tokens);
    program_arg_u64(&p, "--num-reqs", planned(j->e));
    program_arg_pair(&p, "--log-level", "WARNING");
    if (j->e->dp > 1)
        program_arg_pair(&p, "--request-routing-policy", "RR");
    rc = program_run(&p, err);
    program_free(&p);
    return rc;
}

static uint32_t stage_at(const struct vt_experiment *e, double s)
{
    double end = 0;

    for (size_t i = 0; i + 1 < e->n_plan; i++) {
        end += e->plan[i].duration_s;
        if (s < end)
            return (uint32_t)i;
    }
    return e->n_plan > 0 ? (uint32_t)e->n_plan - 1 : 0;
}

static int read_results(struct gather *g, const struct vt_experiment *e,
                        const char *path, struct vt_err *err)
{
    struct program_csv csv;
    int rc = program_csv_open(&csv, path, err);

    while (rc == VT_OK && program_csv_next(&csv)) {
        struct gather_request r = {.e2e_ms = program_csv_number(&csv, "latency") / 1e6,
                                   .ttft_ms = program_csv_number(&csv, "TTFT") / 1e6,
                                   .itl_ms = program_csv_number(&csv, "TPOT") / 1e6};
        double at = program_csv_number(&csv, "arrival"),
               tokens = program_csv_number(&csv, "output");

        if (isnan(r.e2e_ms) || isnan(r.ttft_ms) || isnan(at))
            continue;
        r.output_tokens = tokens >= 1 && tokens < 1e9 ? (uint32_t)tokens : 1;
        r.stage = stage_at(e, at / 1e9);
        rc = gather_add(g, &r, err);
    }
    program_csv_close(&csv);
    return rc == VT_OK ? gather_finish(g, err) : rc;
}

int llmservingsim_run(const struct adapter *a, const struct adapter_job *j,
                      struct gather *g, struct vt_err *err)
{
    char place[4096], out[4200];
    struct vt_buf cluster = {0}, requests = {0};
    int rc = program_place(place, sizeof(place), j->c->scratch, err);

    (void)a;
    if (rc != VT_OK)
        return rc;
    snprintf(out, sizeof(out), "%s/output.csv", place);
    rc = put_cluster(&cluster, j, err);
    if (rc == VT_OK)
        rc = put_requests(&requests, j->e, err);
    if (rc == VT_OK)
        rc = vt_write_file_in(place, "cluster.json", &cluster, err);
    if (rc == VT_OK)
        rc = vt_write_file_in(place, "workload.jsonl", &requests, err);
    if (rc == VT_OK)
        rc = run_simulator(j, place, out, err);
    if (rc == VT_OK)
        rc = read_results(g, j->e, out, err);
    vt_buf_free(&cluster);
    vt_buf_free(&requests);
    program_clear(place);
    return rc;
}

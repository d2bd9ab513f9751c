/* blis.c - the BLIS program, given the profile as its workload. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "validate/adapters/adapter.h"

int blis_can_run(const struct adapter_job *j, struct vt_err *err)
{
    if (!j->c->blis_binary || access(j->c->blis_binary, X_OK) != 0)
        return vt_fail(err, VT_EINPUT, "no BLIS program: --blis-binary");
    return adapter_work_check(j->e, VT_WORKLOAD_PROFILE, err);
}

static void put_spec(struct vt_buf *b, const struct vt_experiment *e)
{
    const struct vt_shared_prefix *p = &e->prefix;

    vt_buf_printf(b,
                  "version: \"2\"\nseed: 42\nnum_requests: %llu\ninference_perf:\n"
                  "  stages:\n",
                  (unsigned long long)gather_planned(e));
    for (size_t i = 0; i < e->n_plan; i++) {
        vt_buf_str(b, "    - rate: ");
        vt_buf_py_f64(b, e->plan[i].rate);
        vt_buf_printf(b, "\n      duration: %lld\n",
                      (long long)blis_seconds(&e->plan[i]));
    }
    vt_buf_printf(b,
                  "  shared_prefix:\n    num_unique_system_prompts: %u\n"
                  "    num_users_per_system_prompt: %u\n    system_prompt_len: %u\n"
                  "    question_len: %u\n    output_len: %u\n"
                  "    enable_multi_turn_chat: %s\n",
                  p->num_unique_system_prompts, p->num_users_per_system_prompt,
                  p->system_prompt_len, p->question_len, p->output_len,
                  p->enable_multi_turn_chat ? "true" : "false");
}

/* ---- its command line ------------------------------------------------------- */

/* Releases differ in their flags; `run --help` lists what this one has. */
static bool has_flag(const char *help, const char *flag)
{
    size_t n = strlen(flag);

    for (const char *at = help; (at = strstr(at, flag)) != NULL; at += n)
        if (strchr(" =\n", at[n]))
            return true;
    return false;
}

static int read_help(const struct adapter_job *j, const char *place,
                     struct vt_buf *help, struct vt_err *err)
{
    char path[ADAPTER_PATH];
    struct vt_proc p = {.environment = j->c->environment, .output = VT_PROC_TO_FILE};
    int rc;

    snprintf(path, sizeof(path), "%s/help.txt", place);
    p.out = path;
    vt_proc_arg_pair(&p, j->c->blis_binary, "run");
    vt_proc_arg(&p, "--help");
    rc = vt_proc_run(&p, 0, err);
    vt_proc_stop(&p);
    return rc ? rc : vt_read_file(path, 1 << 20, help, err);
}

/* Ranks of a mixture of experts are one engine to trained-physics; otherwise there are
 * so many engines. */
static void put_replicas(struct vt_proc *p, const struct adapter_job *j,
                         const char *help)
{
    uint32_t ranks = has_flag(help, "--dp") ? adapter_ranks(j) : 1;

    vt_proc_arg_u64(p, "--total-kv-blocks", (uint64_t)j->e->total_kv_blocks * ranks);
    if (ranks > 1)
        vt_proc_arg_u64(p, "--dp", ranks);
    else if (j->e->dp > 1)
        vt_proc_arg_u64(p, "--num-instances", j->e->dp);
}

/* Its own configurations of models, and a download, come after what the user has. With
 * one, b05154c does not look for the coefficients of a blackbox, which needs none. */
static void put_model(struct vt_proc *p, const struct adapter_job *j)
{
    struct vt_buf path = {0};
    struct vt_arch arch;

    vt_proc_arg_pair(p, "--model", j->e->model);
    if (strcmp(j->a->kind, "blackbox") != 0 &&
        adapter_arch(&arch, j, &path, NULL) == VT_OK && adapter_config_folder(&path))
        vt_proc_arg_pair(p, "--model-config-folder", path.data);
    vt_buf_free(&path);
}

static int run_blis(const struct adapter_job *j, const char *help, const char *spec,
                    const char *results, struct vt_err *err)
{
    static const char *const telling[] = {"level=fatal", "Error: ", "panic: ", NULL};
    struct vt_proc p = {.environment = j->c->environment,
                        .output = VT_PROC_TO_FILE,
                        .telling = telling};
    const char *binary = j->c->blis_binary;
    char *directory = strdup(binary), *slash;
    int rc = VT_OK;

    if (!directory)
        return vt_nomem(err);
    if ((slash = strrchr(directory, '/')) != NULL)
        *slash = '\0';
    p.directory = directory;
    vt_proc_arg_pair(&p, binary, "run");
    put_model(&p, j);
    vt_proc_arg_u64(&p, "--tp", j->e->tp);
    vt_proc_arg_pair(&p, "--hardware", adapter_gpu(j->e));
    vt_proc_arg_u64(&p, "--max-num-running-reqs", j->e->max_num_seqs);
    vt_proc_arg_u64(&p, "--max-num-scheduled-tokens", j->e->max_num_batched_tokens);
    put_replicas(&p, j, help);
    vt_proc_arg_u64(&p, "--kv-cpu-blocks", j->e->cpu_kv_blocks);
    vt_proc_arg_pair(&p, "--kv-offload-threshold", "0.9");
    vt_proc_arg_pair(&p, "--kv-transfer-bandwidth", "0.2");
    vt_proc_arg_pair(&p, "--seed", "42");
    vt_proc_arg_pair(&p, "--workload-spec", spec);
    vt_proc_arg_pair(
        &p, has_flag(help, "--metrics-path") ? "--metrics-path" : "--results-path",
        results);
    vt_proc_arg_pair(&p, "--latency-model", j->a->kind);
    rc = vt_proc_run(&p, 0, err);
    vt_proc_stop(&p);
    free(directory);
    return rc;
}

/* ---- what it says ------------------------------------------------------------ */

static int add_request(struct gather *g, const struct vt_experiment *e,
                       const struct vt_node *q, struct vt_err *err)
{
    struct gather_request r = {0};
    double at = 0, in = 0, out = 0;
    const struct {
        const char *key;
        double *to;
    } row[] = {
        {"e2e_ms", &r.e2e_ms},       {"ttft_ms", &r.ttft_ms},     {"itl_ms", &r.itl_ms},
        {"num_prefill_tokens", &in}, {"num_decode_tokens", &out}, {"arrived_at", &at},
    };

    for (size_t i = 0; i < VT_COUNT(row); i++)
        if (vt_get_f64(q, row[i].key, VT_REQUIRED, 0, 1e12, row[i].to, NULL) != VT_OK)
            return VT_OK; /* a record that says less is none */
    r.output_tokens = (uint32_t)fmin(out, UINT32_MAX);
    r.stage = blis_stage_at(e, at);
    if (r.e2e_ms <= 0) { /* it was given up */
        gather_leave_out(g, r.stage);
        return VT_OK;
    }
    return gather_add(g, &r, err);
}

static int read_results(struct gather *g, const struct vt_experiment *e,
                        const char *path, struct vt_err *err)
{
    struct vt_arena scratch = {0};
    const struct vt_node *root, *list;
    int rc = vt_tree_load(&scratch, path, &root, err);

    if (rc == VT_OK) {
        list = vt_get(root, "requests");
        for (uint32_t i = 0; list && list->kind == VT_LIST && i < list->n; i++)
            if ((rc = add_request(g, e, &list->u.item[i], err)) != VT_OK)
                break;
    }
    if (rc == VT_OK)
        rc = gather_finish(g, err);
    /* What BLIS says of the whole run stands. */
    for (int i = 0; i < VT_ERROR_METRICS && rc == VT_OK; i++) {
        char key[32];

        snprintf(key, sizeof(key), "%s_ms", vt_error_metric_names[i]);
        rc = vt_get_f64(root, key, VT_OPTIONAL, 0, 1e12, &g->summary.ms[i], err);
    }
    vt_arena_free(&scratch);
    return rc;
}

int blis_run(const struct adapter_job *j, const char *place, struct gather *g,
             struct vt_err *err)
{
    char spec[ADAPTER_PATH], results[ADAPTER_PATH];
    struct vt_buf b = {0}, help = {0};
    int rc;

    snprintf(spec, sizeof(spec), "%s/workload.yaml", place);
    snprintf(results, sizeof(results), "%s/results.json", place);
    put_spec(&b, j->e);
    rc = vt_write_file_in(place, "workload.yaml", &b, err);
    if (rc == VT_OK)
        rc = read_help(j, place, &help, err);
    if (rc == VT_OK)
        rc = run_blis(j, help.data, spec, results, err);
    if (rc == VT_OK)
        rc = read_results(g, j->e, results, err);
    vt_buf_free(&b);
    vt_buf_free(&help);
    return rc;
}

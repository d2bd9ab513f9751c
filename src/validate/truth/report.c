/* report.c - a folder that `simulate --out` wrote, as an experiment: how far other
 * simulators, profiles or settings are from that simulation. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "validate/gather.h"
#include "validate/truth/truth.h"

static const char *const files[] = {"summary.json", "requests.jsonl"};

bool truth_is_report(const char *folder)
{
    char path[4096];
    size_t n = 0;

    for (size_t i = 0; i < VT_COUNT(files); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
        n += access(path, R_OK) == 0;
    }
    return n == VT_COUNT(files);
}

/* ---- settings ---------------------------------------------------------------- */

static int copy_text(struct vt_experiment *e, const struct vt_node *map,
                     const char *key, const char **out, struct vt_err *err)
{
    const char *text = NULL;
    int rc = vt_get_str(map, key, VT_OPTIONAL, &text, err);

    if (rc == VT_OK && text && !(*out = truth_text(&e->arena, text)))
        rc = vt_nomem(err);
    return rc;
}

/* "chat (simulated)": it is named so in every table, record and figure. */
static int name_workload(struct vt_experiment *e, const struct vt_node *settings,
                         struct vt_err *err)
{
    const char *name = "requests", *slash;
    char text[160];
    int rc = vt_get_str(settings, "workload", VT_OPTIONAL, &name, err);

    if (rc != VT_OK)
        return rc;
    slash = strrchr(name, '/');
    (void)snprintf(text, sizeof(text), "%.140s (simulated)", slash ? slash + 1 : name);
    e->workload = truth_text(&e->arena, text);
    return e->workload ? VT_OK : vt_nomem(err);
}

static int read_settings(struct vt_experiment *e, const struct vt_node *root,
                         struct vt_err *err)
{
    const struct vt_node *s = vt_get(root, "settings");
    const struct {
        const char *key;
        uint32_t *to;
    } row[] = {
        {"max_num_seqs", &e->max_num_seqs},
        {"max_num_batched_tokens", &e->max_num_batched_tokens},
        {"max_model_len", &e->max_model_len},
        {"num_gpu_blocks", &e->total_kv_blocks},
        {"tensor_parallel_size", &e->tp},
    };
    const char *dtype = "auto";
    int rc = VT_OK;

    if (!s || s->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT,
                       "no settings: this version's simulate --out writes them");
    for (size_t i = 0; i < VT_COUNT(row) && rc == VT_OK; i++)
        rc = vt_get_u32(s, row[i].key, VT_REQUIRED, 1, INT32_MAX, row[i].to, err);
    if (rc || (rc = copy_text(e, s, "model", &e->model, err)) ||
        (rc = copy_text(e, s, "gpu", &e->hardware, err)) ||
        (rc = vt_get_str(s, "kv_cache_dtype", VT_OPTIONAL, &dtype, err)) ||
        (rc = vt_get_u32(s, "instances", VT_OPTIONAL, 1, 4096, &e->dp, err)) ||
        (rc = vt_get_f64(s, "gpu_memory_utilization", VT_OPTIONAL, 0, 1,
                         &e->gpu_mem_util, err)))
        return rc;
    if (!e->model)
        return vt_fail(err, VT_EINPUT,
                       "its model is not stated: it was timed by an inline model");
    e->kv_tokens = (uint64_t)e->total_kv_blocks * TRUTH_BLOCK_TOKENS;
    return name_workload(e, s, err);
}

static int read_summary(struct vt_experiment *e, const char *folder, struct vt_err *err)
{
    struct vt_arena scratch = {0};
    const struct vt_node *root;
    char path[4096];
    int rc;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, files[0]);
    rc = vt_tree_load(&scratch, path, &root, err);
    if (rc == VT_OK)
        rc = vt_within(err, read_settings(e, root, err), "%s", path);
    vt_arena_free(&scratch);
    return rc;
}

/* ---- requests ---------------------------------------------------------------- */

static int add_request(struct vt_experiment *e, const struct vt_workload *w, size_t i,
                       struct vt_err *err)
{
    const struct vt_work *q = &w->req[i];
    const struct vt_measured *m = &w->measured[i];
    struct vt_truth_request *to;
    vt_ns e2e = m->ttft_ns;
    int rc;

    if ((rc = vt_grow(&e->request, &e->cap_requests, e->n_requests + 1,
                      sizeof(*e->request), err)) ||
        (rc = vt_grow(&e->segment, &e->cap_segments, e->n_segments + q->n_segments,
                      sizeof(*e->segment), err)) ||
        (rc = vt_grow(&e->gap, &e->cap_gaps, e->n_gaps + m->n_gaps, sizeof(*e->gap),
                      err)))
        return rc;
    to = &e->request[e->n_requests++];
    *to = (struct vt_truth_request){
        .start_s = (double)(q->arrival_ns - w->req[0].arrival_ns) / 1e9,
        .ttft_s = (double)m->ttft_ns / 1e9,
        .input_tokens = q->prompt_tokens,
        .output_tokens = q->output_tokens,
        .first_segment = (uint32_t)e->n_segments,
        .n_segments = q->n_segments,
        .first_gap = e->n_gaps,
    };
    for (uint32_t k = 0; k < q->n_segments; k++)
        e->segment[e->n_segments++] = w->segment[q->first_segment + k];
    for (uint32_t k = 0; k < m->n_gaps; k++) {
        e2e += w->gap[m->first_gap + k];
        e->gap[e->n_gaps++] = w->gap[m->first_gap + k];
    }
    to->n_gaps = m->n_gaps;
    to->e2e_s = (double)e2e / 1e9;
    e->token_times &= m->n_gaps + 1 == q->output_tokens;
    return VT_OK;
}

/* All requests are of one stage, at the rate at which they came. */
static int plan_stage(struct vt_experiment *e, const struct vt_workload *w,
                      struct vt_err *err)
{
    double span_s = (double)(w->req[w->n - 1].arrival_ns - w->req[0].arrival_ns) / 1e9;
    int rc;

    if ((rc = vt_grow(&e->plan, &e->cap_plan, 1, sizeof(*e->plan), err)) ||
        (rc = vt_grow(&e->stage, &e->cap_stages, 1, sizeof(*e->stage), err)))
        return rc;
    e->plan[0] =
        (struct vt_stage_plan){.rate = span_s > 0 ? (double)(w->n - 1) / span_s : 0,
                               .duration_s = span_s,
                               .requests = w->n};
    e->stage[0] =
        (struct vt_stage_metrics){.rate = e->plan[0].rate, .duration_s = span_s};
    e->n_plan = e->n_stages = 1;
    return VT_OK;
}

static int read_requests(struct vt_experiment *e, const char *folder,
                         struct vt_err *err)
{
    struct vt_workload w = {0};
    char path[4096];
    int rc;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, files[1]);
    if ((rc = vt_trace_load(&w, path, err)))
        return rc;
    if (!w.measured)
        rc = vt_fail(err, VT_EINPUT, "%s: a request has no times", path);
    e->simulated = w.meta.simulated;
    if (rc == VT_OK && !e->simulated)
        rc = vt_fail(err, VT_EINPUT, "%s: it was not simulated by vtwin", path);
    e->token_times = true;
    if (rc == VT_OK)
        rc = plan_stage(e, &w, err);
    for (size_t i = 0; i < w.n && rc == VT_OK; i++)
        rc = add_request(e, &w, i, err);
    vt_workload_free(&w);
    return rc;
}

int truth_load_report(struct vt_experiment *e, const char *folder,
                      const struct vt_truth_options *o, struct vt_err *err)
{
    int rc = read_summary(e, folder, err);

    if (rc || (rc = read_requests(e, folder, err)))
        return rc;
    if (o->max_requests > 0 && e->n_requests > o->max_requests)
        truth_cut(e, o->max_requests);
    e->summary = (struct vt_stage_metrics){.index = -1};
    truth_tell(o, folder,
               "simulated by vtwin, not measured: errors are differences between "
               "simulations");
    return truth_refine(e, true, err);
}

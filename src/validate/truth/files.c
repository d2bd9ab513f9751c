/* files.c - exp-config.yaml, profile.yaml, the lifecycle reports, and rows of
 * experiments.json. */
#include <math.h>

#include "validate/truth/truth.h"

#define MOST_SECONDS 1e9

static int copy_text(struct vt_experiment *e, const struct vt_node *map,
                     const char *key, const char **out, struct vt_err *err)
{
    const char *text;
    int rc = vt_get_str(map, key, VT_REQUIRED, &text, err);

    if (rc != VT_OK)
        return rc;
    *out = truth_text(&e->arena, text);
    return *out ? VT_OK : vt_nomem(err);
}

/* ---- exp-config.yaml -------------------------------------------------------- */

int truth_read_config(struct vt_experiment *e, const struct vt_node *root,
                      struct vt_err *err)
{
    const struct {
        const char *key;
        uint32_t *to;
    } row[] = {
        {"tensor_parallelism", &e->tp},
        {"max_model_len", &e->max_model_len},
        {"max_num_batched_tokens", &e->max_num_batched_tokens},
        {"max_num_seqs", &e->max_num_seqs},
    };
    int rc = copy_text(e, root, "model", &e->model, err);

    for (size_t i = 0; i < VT_COUNT(row) && rc == VT_OK; i++)
        rc = vt_get_u32(root, row[i].key, VT_REQUIRED, 1, INT32_MAX, row[i].to, err);
    return rc;
}

/* ---- profile.yaml ----------------------------------------------------------- */

static int read_prefix(struct vt_shared_prefix *p, const struct vt_node *data,
                       struct vt_err *err)
{
    const struct vt_node *map = vt_get(data, "shared_prefix");
    const struct {
        const char *key;
        uint32_t lo, *to;
    } row[] = {
        {"question_len", 0, &p->question_len},
        {"system_prompt_len", 0, &p->system_prompt_len},
        {"output_len", 1, &p->output_len},
        {"num_unique_system_prompts", 1, &p->num_unique_system_prompts},
        {"num_users_per_system_prompt", 1, &p->num_users_per_system_prompt},
        {"num_groups", 1, &p->num_groups},
        {"num_prompts_per_group", 1, &p->num_prompts_per_group},
    };
    int rc = VT_OK;

    *p = (struct vt_shared_prefix){.num_unique_system_prompts = 1,
                                   .num_users_per_system_prompt = 1};
    map = map && map->kind == VT_MAP ? map : data;
    for (size_t i = 0; i < VT_COUNT(row) && rc == VT_OK; i++)
        rc = vt_get_u32(map, row[i].key, VT_OPTIONAL, row[i].lo, 1u << 30, row[i].to,
                        err);
    if (rc == VT_OK)
        rc = vt_get_bool(map, "enable_multi_turn_chat", VT_OPTIONAL,
                         &p->enable_multi_turn_chat, err);
    if (p->num_groups > 0 && p->num_prompts_per_group == 0)
        p->num_prompts_per_group = 1;
    p->stated = vt_get(map, "question_len") && vt_get(map, "system_prompt_len") &&
                vt_get(map, "output_len") && p->question_len + p->system_prompt_len > 0;
    return rc;
}

static int read_stage(struct vt_experiment *e, const struct vt_node *stage,
                      struct vt_err *err)
{
    struct vt_stage_plan p = {0};
    int rc;

    if ((rc = vt_get_f64(stage, "rate", VT_REQUIRED, 0, 1e9, &p.rate, err)) ||
        (rc = vt_get_f64(stage, "duration", VT_REQUIRED, 0, MOST_SECONDS, &p.duration_s,
                         err)) ||
        (rc = vt_grow(&e->plan, &e->cap_plan, e->n_plan + 1, sizeof(*e->plan), err)))
        return rc;
    if (p.rate * p.duration_s > 1e9)
        return vt_fail(err, VT_EINPUT, "line %u: a stage of %g requests", stage->line,
                       p.rate * p.duration_s);
    p.requests = (uint64_t)nearbyint(p.rate * p.duration_s);
    e->plan[e->n_plan++] = p;
    return VT_OK;
}

/* How clients asked, by the profile or by the generator's report. */
static int read_client(struct vt_experiment *e, const struct vt_node *root,
                       struct vt_err *err)
{
    const struct vt_node *load = vt_get(root, "load");
    int rc;

    if (vt_get_non_null(vt_get(root, "server"), "ignore_eos") &&
        (rc = vt_get_bool(vt_get(root, "server"), "ignore_eos", VT_OPTIONAL,
                          &e->prefix.ignore_eos, err)))
        return rc;
    if (!vt_get_non_null(load, "request_timeout"))
        return VT_OK;
    e->timeout_stated = true;
    return vt_get_f64(load, "request_timeout", VT_REQUIRED, 0, MOST_SECONDS,
                      &e->timeout_s, err);
}

int truth_read_profile(struct vt_experiment *e, const struct vt_node *root,
                       struct vt_err *err)
{
    const struct vt_node *stages = vt_get(vt_get(root, "load"), "stages");
    int rc = VT_OK;

    if (!stages || stages->kind != VT_LIST)
        return vt_fail(err, VT_EINPUT, "no list load.stages");
    if (stages->n > TRUTH_MAX_STAGES)
        return vt_fail(err, VT_EINPUT, "%u stages", stages->n);
    for (uint32_t i = 0; i < stages->n && rc == VT_OK; i++)
        rc = read_stage(e, &stages->u.item[i], err);
    if (rc == VT_OK)
        rc = read_prefix(&e->prefix, vt_get(root, "data"), err);
    return rc == VT_OK ? read_client(e, root, err) : rc;
}

/* The generator's own report of its settings, as it resolved them. */
int truth_read_groups(struct vt_experiment *e, const struct vt_node *root,
                      struct vt_err *err)
{
    const struct vt_node *map = vt_get(vt_get(root, "data"), "shared_prefix");
    int rc = read_client(e, root, err);

    if (rc != VT_OK)
        return rc;
    if (!map || map->kind != VT_MAP || !vt_get(map, "num_groups"))
        return VT_OK;
    e->prefix.num_prompts_per_group = 1;
    rc = vt_get_u32(map, "num_groups", VT_REQUIRED, 1, 1u << 30, &e->prefix.num_groups,
                    err);
    return rc ? rc
              : vt_get_u32(map, "num_prompts_per_group", VT_OPTIONAL, 1, 1u << 30,
                           &e->prefix.num_prompts_per_group, err);
}

/* ---- lifecycle reports ------------------------------------------------------ */

/* mean, p90 and p99 in milliseconds; null stays NAN. */
static int read_dist(double ms[3], const struct vt_node *latency, const char *key,
                     struct vt_err *err)
{
    static const char *const part[] = {"mean", "p90", "p99"};
    const struct vt_node *dist = vt_get(latency, key);
    int rc = VT_OK;

    if (!dist || dist->kind != VT_MAP)
        return VT_OK;
    for (int i = 0; i < 3 && rc == VT_OK; i++) {
        const struct vt_node *v = vt_get(dist, part[i]);
        double s = NAN;

        if (v && v->kind != VT_NULL)
            rc = vt_get_f64(dist, part[i], VT_OPTIONAL, 0, MOST_SECONDS, &s, err);
        ms[i] = s * 1e3;
    }
    return vt_within(err, rc, "%s", key);
}

/* inference-perf's own inter_token_latency counts events of the stream, of which there
 * are about two a token. What is left of a request's time after its first token, over
 * the other tokens, is the mean gap. */
static double derived_itl(const struct vt_stage_metrics *m,
                          const struct vt_node *successes)
{
    double length = NAN;

    if (vt_get_f64(vt_get(successes, "output_len"), "mean", VT_OPTIONAL, 0, 1e9,
                   &length, NULL) != VT_OK)
        return NAN;
    return (m->ms[0] - m->ms[3]) / fmax(length - 1, 1);
}

int truth_read_metrics(struct vt_stage_metrics *m, const struct vt_node *root,
                       struct vt_err *err)
{
    const struct vt_node *ok = vt_get(root, "successes"), *latency;
    const struct vt_node *sent = vt_get(root, "load_summary");
    int64_t count = 0, all = 0;
    int rc;

    for (int i = 0; i < VT_ERROR_METRICS; i++)
        m->ms[i] = NAN;
    if (!ok)
        return vt_fail(err, VT_EINPUT, "no field 'successes'");
    latency = vt_get(ok, "latency");
    if ((rc = vt_get_i64(ok, "count", VT_REQUIRED, 0, INT32_MAX, &count, err)))
        return rc;
    if (!latency)
        return vt_fail(err, VT_EINPUT, "no field 'successes.latency'");
    if ((rc = read_dist(&m->ms[0], latency, "request_latency", err)) ||
        (rc = read_dist(&m->ms[3], latency, "time_to_first_token", err)) ||
        (rc = vt_get_f64(sent, "requested_rate", VT_OPTIONAL, 0, 1e9, &m->rate, err)))
        return rc;
    if ((rc = vt_get_i64(sent, "count", VT_OPTIONAL, 0, INT32_MAX, &all, err)))
        return rc;
    m->requests = (uint64_t)count;
    m->sent = (uint64_t)(all > count ? all : count);
    m->ms[6] = derived_itl(m, ok);
    return vt_get_f64(sent, "send_duration", VT_OPTIONAL, 0, MOST_SECONDS,
                      &m->duration_s, err);
}

/* ---- experiments.json -------------------------------------------------------- */

int truth_read_entry(struct vt_experiment *e, const struct vt_node *entry,
                     struct vt_err *err)
{
    static const char *const required[] = {"cpu_offload", "dp",   "gpu_mem", "hw", "id",
                                           "precision",   "safe", "workload"};
    const struct vt_node *dp = vt_get(entry, "dp");
    struct vt_buf b = {.max = 400};
    int rc = VT_OK;

    for (size_t i = 0; i < VT_COUNT(required); i++)
        if (!vt_get(entry, required[i]))
            vt_buf_printf(&b, "%s%s", b.len > 0 ? ", " : "", required[i]);
    if (b.len > 0)
        rc = vt_fail(err, VT_EINPUT, "the manifest's entry has no %s", b.data);
    vt_buf_free(&b);
    if (rc || (rc = vt_get_i64(entry, "id", VT_REQUIRED, 0, INT64_MAX, &e->id, err)) ||
        (rc = copy_text(e, entry, "hw", &e->hardware, err)) ||
        (rc = copy_text(e, entry, "precision", &e->precision, err)) ||
        (rc = copy_text(e, entry, "workload", &e->workload, err)) ||
        (rc = vt_get_bool(entry, "cpu_offload", VT_REQUIRED, &e->cpu_offload, err)) ||
        (rc = vt_get_f64(entry, "gpu_mem", VT_REQUIRED, 0, 1, &e->gpu_mem_util, err)))
        return rc;
    return dp && dp->kind != VT_NULL
               ? vt_get_u32(entry, "dp", VT_REQUIRED, 1, 4096, &e->dp, err)
               : VT_OK;
}

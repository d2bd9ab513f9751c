/* plan.c - reads a tuning plan: rows of settings, and what was measured of them. */
#include <string.h>

#include "model/model.h"
#include "tune/tune.h"

#define BIG (1u << 30)

/* ---- rows ------------------------------------------------------------ */

/* A map of numbers, none of which has to be there; `known` ends with NULL. */
static int read_reals(const struct vt_node *map, const char *const *known,
                      double *const *to, struct vt_err *err)
{
    int rc = vt_only_keys(map, known, err);

    for (size_t i = 0; known[i] && rc == VT_OK; i++)
        rc = vt_get_f64(map, known[i], VT_OPTIONAL, 0, 1e9, to[i], err);
    return rc;
}

static int read_measured(const struct vt_node *map, struct vt_tuning_measured *m,
                         struct vt_err *err)
{
    static const char *const known[] = {"kv_gib",      "rate",       "rate_low",
                                        "rate_high",   "at",         "ttft_p99_ms",
                                        "tpot_p99_ms", "itl_p99_ms", NULL};
    double *to[] = {&m->kv_gib, &m->rate,     &m->rate_low, &m->rate_high,
                    &m->at,     &m->ttft_p99, &m->tpot_p99, &m->itl_p99};

    if (!map)
        return VT_OK;
    if (map->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "line %u: field 'measured' must be a map",
                       map->line);
    return read_reals(map, known, to, err);
}

static int read_setting(const struct vt_node *n, struct vt_setting *s,
                        struct vt_err *err)
{
    int rc;

    if ((rc = vt_get_f64(n, "gpu_memory_utilization", VT_OPTIONAL, 0.01, 1,
                         &s->gpu_memory_utilization, err)) ||
        (rc = vt_get_u32(n, "max_num_batched_tokens", VT_OPTIONAL, 1, BIG,
                         &s->max_num_batched_tokens, err)) ||
        (rc = vt_get_u32(n, "max_num_seqs", VT_OPTIONAL, 1, 1u << 20, &s->max_num_seqs,
                         err)) ||
        (rc = vt_get_u32(n, "tensor_parallel_size", VT_OPTIONAL, 1, 1024, &s->tp,
                         err)) ||
        (rc = vt_get_u32(n, "data_parallel_size", VT_OPTIONAL, 1, 1024, &s->dp, err)) ||
        (rc = vt_get_u32(n, "num_speculative_tokens", VT_OPTIONAL, 0, 64,
                         &s->spec_tokens, err)) ||
        (rc = vt_get_bool(n, "prefix_caching", VT_OPTIONAL, &s->prefix_caching, err)) ||
        (rc = vt_get_str(n, "routing", VT_OPTIONAL, &s->routing, err)))
        return rc;
    return s->dp > 1 ? vt_routing_check(s->routing, err) : VT_OK;
}

/* An earlier row by its name. */
static int find_over(struct vt_tuning_plan *p, struct vt_tuning_row *r,
                     const char *over, struct vt_err *err)
{
    r->over = p->n;
    if (!over)
        return VT_OK;
    for (r->over = 0; r->over < p->n; r->over++)
        if (strcmp(p->row[r->over].name, over) == 0)
            return VT_OK;
    return vt_fail(err, VT_EINPUT, "row '%.60s': no row before it is called '%.60s'",
                   r->name, over);
}

static int read_row(struct vt_tuning_plan *p, const struct vt_node *n,
                    struct vt_err *err)
{
    static const char *const known[] = {"name",
                                        "phase",
                                        "over",
                                        "measured",
                                        "workload",
                                        "gpu_memory_utilization",
                                        "max_num_seqs",
                                        "max_num_batched_tokens",
                                        "routing",
                                        "tensor_parallel_size",
                                        "data_parallel_size",
                                        "num_speculative_tokens",
                                        "prefix_caching",
                                        NULL};
    struct vt_tuning_row *r = &p->row[p->n];
    const char *name = NULL, *over = NULL;
    int rc;

    if (n->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "line %u: a row must be a map", n->line);
    *r = (struct vt_tuning_row){.setting = p->row[0].setting};
    if ((rc = vt_only_keys(n, known, err)) ||
        (rc = vt_get_str(n, "name", VT_REQUIRED, &name, err)) ||
        (rc = vt_get_u32(n, "phase", VT_OPTIONAL, 0, 100, &r->phase, err)) ||
        (rc = vt_get_str(n, "over", VT_OPTIONAL, &over, err)) ||
        (rc = vt_get_str(n, "workload", VT_OPTIONAL, &r->workload, err)) ||
        (rc = vt_within(err, read_setting(n, &r->setting, err), "row '%.60s'", name)) ||
        (rc = read_measured(vt_get(n, "measured"), &r->measured, err)))
        return rc;
    snprintf(r->name, sizeof(r->name), "%.63s", name);
    if ((rc = find_over(p, r, over, err)))
        return rc;
    p->n++;
    return VT_OK;
}

static int read_rows(struct vt_tuning_plan *p, const struct vt_node *root,
                     struct vt_err *err)
{
    const struct vt_node *rows = vt_get(root, "rows");
    int rc = VT_OK;

    if (!rows || rows->kind != VT_LIST || rows->n == 0 || rows->n > VT_TUNING_ROWS)
        return vt_fail(err, VT_EINPUT, "field 'rows' must be a list of 1 to %d",
                       VT_TUNING_ROWS);
    p->row[0].setting = (struct vt_setting){
        .max_num_seqs = 1024,
        .max_num_batched_tokens = 8192,
        .gpu_memory_utilization = 0.9,
        .tp = 1,
        .dp = 1,
        .routing = "round-robin",
        .prefix_caching = true,
    };
    for (uint32_t i = 0; i < rows->n && rc == VT_OK; i++)
        rc = read_row(p, &rows->u.item[i], err);
    return rc;
}

/* ---- the rest -------------------------------------------------------- */

static int read_numbers(const struct vt_node *n, const char *what, double lo, double hi,
                        double *out, size_t most, size_t *count, struct vt_err *err)
{
    if (!n || n->kind != VT_LIST || n->n == 0 || n->n > most)
        return vt_fail(err, VT_EINPUT, "field '%s' must be a list of 1 to %zu numbers",
                       what, most);
    for (*count = 0; *count < n->n; (*count)++) {
        const struct vt_node *v = &n->u.item[*count];
        double x = v->kind == VT_INT    ? (double)v->u.integer
                   : v->kind == VT_REAL ? v->u.real
                                        : hi + 1;

        if (!(x >= lo && x <= hi))
            return vt_fail(err, VT_EINPUT,
                           "line %u: field '%s': each must be from %g to %g", v->line,
                           what, lo, hi);
        out[*count] = x;
    }
    return VT_OK;
}

static int read_rates(struct vt_tuning_plan *p, const struct vt_node *root,
                      struct vt_err *err)
{
    int rc = read_numbers(vt_get(root, "rates"), "rates", 1e-6, 1e6, p->rate,
                          VT_TUNING_RATES, &p->n_rates, err);

    for (size_t i = 1; i < p->n_rates && rc == VT_OK; i++)
        if (!(p->rate[i] > p->rate[i - 1]))
            rc = vt_fail(err, VT_EINPUT, "field 'rates' must ascend");
    return rc;
}

static int read_slo(const struct vt_node *map, struct vt_slo *s, struct vt_err *err)
{
    static const char *const known[] = {"ttft_p99_ms", "tpot_p99_ms", "itl_p99_ms",
                                        "e2e_p99_ms", NULL};
    double *to[] = {&s->ttft_p99, &s->tpot_p99, &s->itl_p99, &s->e2e_p99};

    return map && map->kind == VT_MAP
               ? read_reals(map, known, to, err)
               : vt_fail(err, VT_EINPUT, "field 'slo' must be a map");
}

static int read_drafts(struct vt_tuning_plan *p, const struct vt_node *map,
                       struct vt_err *err)
{
    static const char *const known[] = {"acceptance", "draft_us", "draft_gib", NULL};
    struct vt_engine_config *e = &p->site.engine;
    size_t n = 0;
    int rc;

    if (!map)
        return VT_OK;
    if (map->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "line %u: field 'speculative' must be a map",
                       map->line);
    if ((rc = vt_only_keys(map, known, err)) ||
        (rc = read_numbers(vt_get(map, "acceptance"), "acceptance", 0, 1,
                           e->spec_position, VT_SPEC_POSITIONS, &n, err)) ||
        (rc = vt_get_f64(map, "draft_us", VT_OPTIONAL, 0, 1e6, &e->spec_draft_us,
                         err)) ||
        (rc = vt_get_f64(map, "draft_gib", VT_OPTIONAL, 0, 1e4, &p->site.draft_gib,
                         err)))
        return rc;
    e->n_spec_positions = (uint32_t)n;
    e->spec_acceptance = e->spec_position[0];
    e->use_eagle = true;
    p->site.law_drafts = !vt_get(map, "draft_us");
    return VT_OK;
}

static int read_fields(struct vt_tuning_plan *p, const struct vt_node *n,
                       struct vt_err *err)
{
    double stale_ms = 0;
    int rc;

    if ((rc = vt_get_str(n, "name", VT_REQUIRED, &p->name, err)) ||
        (rc = vt_get_str(n, "profile", VT_REQUIRED, &p->profile, err)) ||
        (rc = vt_get_str(n, "hf_config", VT_REQUIRED, &p->hf_config, err)) ||
        (rc = vt_get_str(n, "gpu", VT_REQUIRED, &p->gpu, err)) ||
        (rc = vt_get_str(n, "workload", VT_REQUIRED, &p->workload, err)) ||
        (rc = vt_get_u32(n, "requests", VT_OPTIONAL, 1, 10000000, &p->requests, err)) ||
        (rc = vt_get_u32(n, "seeds", VT_OPTIONAL, 1, 1000, &p->seeds, err)) ||
        (rc = vt_get_u32(n, "max_model_len", VT_OPTIONAL, 2, BIG, &p->max_model_len,
                         err)) ||
        (rc = vt_get_f64(n, "kv_element_bytes", VT_OPTIONAL, 0.25, 4,
                         &p->site.kv.element_bytes, err)) ||
        (rc = vt_get_f64(n, "measured_kv_element_bytes", VT_OPTIONAL, 0.25, 4,
                         &p->site.measured_kv_bytes, err)) ||
        (rc = vt_get_f64(n, "sampler_bytes_per_logit", VT_OPTIONAL, 0, 1000,
                         &p->site.sampler_bytes, err)) ||
        (rc = vt_get_f64(n, "staleness_ms", VT_OPTIONAL, 0, 1e9, &stale_ms, err)))
        return rc;
    p->site.staleness_ns = vt_ns_from_ms(stale_ms);
    return VT_OK;
}

static int read_plan(struct vt_tuning_plan *p, const struct vt_node *root,
                     struct vt_err *err)
{
    static const char *const known[] = {"name",
                                        "profile",
                                        "hf_config",
                                        "gpu",
                                        "workload",
                                        "requests",
                                        "seeds",
                                        "max_model_len",
                                        "kv_element_bytes",
                                        "measured_kv_element_bytes",
                                        "sampler_bytes_per_logit",
                                        "staleness_ms",
                                        "rates",
                                        "slo",
                                        "speculative",
                                        "rows",
                                        NULL};
    int rc;

    if (root->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "a plan is a map");
    vt_engine_config_init(&p->site.engine);
    p->seeds = 1;
    if ((rc = vt_only_keys(root, known, err)) || (rc = read_fields(p, root, err)) ||
        (rc = read_rates(p, root, err)) ||
        (rc = read_slo(vt_get(root, "slo"), &p->slo, err)) ||
        (rc = read_drafts(p, vt_get(root, "speculative"), err)))
        return rc;
    return read_rows(p, root, err);
}

int vt_tuning_plan_parse(struct vt_tuning_plan *p, const char *name, const char *text,
                         size_t len, struct vt_err *err)
{
    const struct vt_node *root;
    int rc;

    memset(p, 0, sizeof(*p));
    rc = vt_yaml_parse(&p->arena, text, len, &root, err);
    if (rc == VT_OK)
        rc = read_plan(p, root, err);
    if (rc != VT_OK)
        vt_tuning_plan_free(p);
    return vt_within(err, rc, "%s", name);
}

int vt_tuning_plan_load(struct vt_tuning_plan *p, const char *path, struct vt_err *err)
{
    enum { MOST = 1 << 20 };
    const struct vt_builtin *f = vt_builtin_find(path);
    struct vt_buf text = {0};
    int rc;

    if (f)
        return vt_tuning_plan_parse(p, path, f->text, f->len, err);
    rc = vt_read_file(path, MOST, &text, err);
    if (rc == VT_OK)
        rc =
            vt_tuning_plan_parse(p, path, text.len > 0 ? text.data : "", text.len, err);
    vt_buf_free(&text);
    return rc;
}

void vt_tuning_plan_free(struct vt_tuning_plan *p)
{
    vt_arena_free(&p->arena);
    memset(p, 0, sizeof(*p));
}

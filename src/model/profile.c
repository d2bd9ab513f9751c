/* profile.c - profiles: a JSON object {"name", "description", "engine": {limits},
 * "model": {"kind", "params"}, "frontend": {"kind"}, "provenance"}. */
#include "model/blis/blis.h"
#include "trace/trace.h"

extern const struct vt_builtin vt_builtin_table[];
extern const size_t vt_builtin_count;

const struct vt_builtin *vt_builtins(size_t *n)
{
    *n = vt_builtin_count;
    return vt_builtin_table;
}

const struct vt_builtin *vt_builtin_find(const char *name)
{
    for (size_t i = 0; i < vt_builtin_count; i++)
        if (strcmp(vt_builtin_table[i].name, name) == 0)
            return &vt_builtin_table[i];
    return NULL;
}

int vt_builtin_tree(struct vt_arena *a, const char *name, const struct vt_node **root,
                    struct vt_err *err)
{
    const struct vt_builtin *f = vt_builtin_find(name);

    if (!f)
        return vt_fail(err, VT_EINPUT, "%s is not built in", name);
    return vt_within(err, vt_json_parse(a, f->text, f->len, 1, root, err), "%s", name);
}

bool vt_builtin_is_profile(const struct vt_builtin *f)
{
    static const char *const constants[] = {"errors.json", "estimate.json",
                                            "gpus.json"};

    for (size_t i = 0; i < VT_COUNT(constants); i++)
        if (strcmp(f->name, constants[i]) == 0)
            return false;
    return vt_ends_with(f->name, ".json");
}

static int read_model(struct vt_profile *p, struct vt_err *err)
{
    static const char *const known[] = {"kind", "params", NULL};
    static const struct vt_node none = {.kind = VT_MAP};
    const struct vt_node *m = vt_get(p->root, "model");
    const struct vt_node *params = vt_get(m, "params");
    const char *kind = NULL;
    int rc;

    if (!m || m->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "field 'model' must be an object");
    if ((rc = vt_only_keys(m, known, err)) ||
        (rc = vt_get_str(m, "kind", VT_REQUIRED, &kind, err)))
        return rc;
    if (params && params->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "line %u: field 'params' must be an object",
                       params->line);
    return model_open(&p->model, kind, params ? params : &none, err);
}

static int read_clock(struct vt_profile *p, struct vt_err *err)
{
    const struct vt_node *node = vt_get(p->root, "clock");
    const char *name = NULL;
    int rc = vt_get_str(p->root, "clock", VT_OPTIONAL, &name, err);

    if (rc != VT_OK || !name)
        return rc;
    p->clock = vt_clock_find(name);
    if (p->clock != VT_CLOCK_ENGINE && p->clock != VT_CLOCK_CLIENT)
        return vt_fail(err, VT_EINPUT,
                       "line %u: field 'clock' is neither engine nor client",
                       node->line);
    if (p->clock == VT_CLOCK_CLIENT && !p->frontend.name)
        p->frontend = *vt_front_find("none");
    if (p->clock == VT_CLOCK_CLIENT && strcmp(p->frontend.name, "none") != 0)
        return vt_fail(err, VT_EINPUT,
                       "line %u: times of a client hold what the frontend adds: its "
                       "kind must be none",
                       node->line);
    return VT_OK;
}

/* A client's pause is between its own times. */
static void take_pause(struct vt_profile *p)
{
    if (p->clock != VT_CLOCK_CLIENT)
        return;
    p->model->turnaround_us = p->frontend.client_us;
    p->model->turnaround_next_us = p->frontend.next_us;
    p->model->turnaround_request_us = 0;
    p->model->turnaround_noise = 0;
}

static int read_profile(struct vt_profile *p, struct vt_err *err)
{
    static const char *const known[] = {
        "name",       "description", "engine",
        "model",      "frontend",    "clock",
        "provenance", "basis",       "expected_error_pct",
        "basis_from", "outside",     NULL};
    struct vt_basis basis;
    const struct vt_node *frontend;
    struct vt_engine_config c;
    int rc;

    if (p->root->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "line %u: a profile is an object",
                       p->root->line);
    if ((rc = vt_only_keys(p->root, known, err)) ||
        (rc = vt_get_str(p->root, "name", VT_REQUIRED, &p->name, err)) ||
        (rc = vt_get_str(p->root, "description", VT_OPTIONAL, &p->description, err)))
        return rc;
    p->engine = vt_get(p->root, "engine");
    frontend = vt_get(p->root, "frontend");
    if (frontend && (rc = front_read(&p->frontend, frontend, err)))
        return rc;
    if ((rc = read_clock(p, err)) ||
        (rc = vt_get_str(vt_get(p->root, "provenance"), "forced", VT_OPTIONAL,
                         &p->forced, err)))
        return rc;
    vt_engine_config_init(&c);
    if ((rc = vt_profile_limits(p, &c, err)) ||
        (rc = vt_basis_of_profile(&basis, p, err)) || (rc = read_model(p, err)))
        return rc;
    take_pause(p);
    return VT_OK;
}

int vt_profile_parse(struct vt_profile *p, const char *name, const char *text,
                     size_t len, struct vt_err *err)
{
    int rc;

    memset(p, 0, sizeof(*p));
    rc = vt_json_parse(&p->arena, text, len, 1, &p->root, err);
    if (rc == VT_OK)
        rc = read_profile(p, err);
    if (rc != VT_OK)
        vt_profile_close(p);
    return vt_within(err, rc, "%s", name);
}

static int fail_unknown(const char *name, struct vt_err *err)
{
    struct vt_profile_entry *entry = NULL;
    struct vt_arena arena = {0};
    const char **known = NULL, *near = NULL;
    char nearest[128] = "";
    size_t n = 0;

    /* Rows of a table are near to each other whatever was meant. */
    if (!strchr(name, ':') && vt_profile_list(&arena, &entry, &n, NULL) == VT_OK &&
        (known = vt_arena_alloc(&arena, (n + 1) * sizeof(*known)))) {
        for (size_t i = 0; i < n; i++)
            known[i] = entry[i].name;
        known[n] = NULL;
        near = vt_nearest(name, known);
    }
    if (near)
        (void)snprintf(nearest, sizeof(nearest), " (did you mean '%s'?)", near);
    vt_arena_free(&arena);
    return vt_fail(err, VT_EINPUT,
                   "no profile '%s'%s; `vtwin profile list%s` shows the built-in ones",
                   name, nearest, strchr(name, ':') ? " --all" : "");
}

int vt_profile_open(struct vt_profile *p, const char *name_or_path, struct vt_err *err)
{
    struct vt_buf text = {0};
    bool builtin;
    int rc = vt_profile_text(name_or_path, &text, &builtin, err);

    memset(p, 0, sizeof(*p));
    if (rc == VT_OK && builtin)
        rc = vt_profile_parse(p, name_or_path, text.data, text.len, err);
    vt_buf_free(&text);
    if (rc != VT_OK || builtin)
        return rc;
    rc = vt_tree_load(&p->arena, name_or_path, &p->root, err);
    if (rc == VT_OK)
        rc = vt_within(err, read_profile(p, err), "%s", name_or_path);
    else if (!strpbrk(name_or_path, "/.") || strncmp(name_or_path, "blackbox:", 9) == 0)
        /* a bare word that is no file was meant as a built-in name */
        rc = fail_unknown(name_or_path, err);
    if (rc != VT_OK)
        vt_profile_close(p);
    return rc;
}

void vt_profile_close(struct vt_profile *p)
{
    vt_latency_close(p->model);
    vt_arena_free(&p->arena);
    memset(p, 0, sizeof(*p));
}

const struct vt_node *profile_left_out(const struct vt_profile *p)
{
    const struct vt_node *from = vt_get(p->root, "provenance");

    return vt_get(vt_get(from, "median_error_percent"), "out_of_sample");
}

static void set_if_stated(uint32_t *to, uint32_t stated)
{
    if (stated > 0)
        *to = stated;
}

static int read_group(const struct vt_node *n, struct vt_kv_group *g,
                      struct vt_err *err)
{
    static const char *const known[] = {"type",         "window",     "block_size",
                                        "layers",       "page_bytes", "unit_bytes",
                                        "saves_inside", NULL};
    const uint32_t big = 1u << 30;
    int64_t page = 0, unit = 0;
    const char *type = "";
    int rc;

    *g = (struct vt_kv_group){.type = VT_ATTENTION_FULL};
    if ((rc = vt_only_keys(n, known, err)) ||
        (rc = vt_get_str(n, "type", VT_REQUIRED, &type, err)) ||
        (rc = vt_get_u32(n, "window", VT_OPTIONAL, 1, big, &g->window, err)) ||
        (rc = vt_get_u32(n, "block_size", VT_REQUIRED, 1, big, &g->block_size, err)) ||
        (rc = vt_get_u32(n, "layers", VT_REQUIRED, 1, 1u << 16, &g->layers, err)) ||
        (rc = vt_get_i64(n, "page_bytes", VT_REQUIRED, 1, INT64_MAX, &page, err)) ||
        (rc = vt_get_i64(n, "unit_bytes", VT_REQUIRED, 1, INT64_MAX, &unit, err)) ||
        (rc = vt_get_bool(n, "saves_inside", VT_OPTIONAL, &g->saves_inside, err)))
        return rc;
    g->page_bytes = (uint64_t)page;
    g->unit_bytes = (uint64_t)unit;
    while (strcmp(type, vt_attention_name((enum vt_attention)g->type)) != 0)
        if (g->type++ == VT_ATTENTION_MAMBA)
            return vt_fail(err, VT_EINPUT, "line %u: no kind of attention '%s'",
                           n->line, type);
    return VT_OK;
}

/* What a block of the pool holds, where the model's layers keep different tokens. */
static int read_groups(const struct vt_node *e, struct vt_engine_config *c,
                       struct vt_err *err)
{
    const struct vt_node *list = vt_get(e, "kv_groups");
    const char *mode = "none";
    int rc = vt_get_str(e, "mamba_cache_mode", VT_OPTIONAL, &mode, err);

    if (rc != VT_OK || !list)
        return rc;
    if (list->kind != VT_LIST || list->n == 0 || list->n > VT_KV_GROUPS)
        return vt_fail(err, VT_EINPUT,
                       "line %u: field 'kv_groups' must be a list of 1 to %d groups",
                       list->line, VT_KV_GROUPS);
    for (uint32_t i = 0; i < list->n; i++)
        if ((rc = read_group(&list->u.item[i], &c->kv_group[i], err)))
            return vt_within(err, rc, "KV group %u", i);
    c->n_kv_groups = list->n;
    c->mamba_cache_mode = strcmp(mode, "align") == 0 ? VT_MAMBA_ALIGN : VT_MAMBA_NONE;
    return VT_OK;
}

/* How fast its GPU's link to the host is, where that was measured. */
static int read_link(const struct vt_node *e, struct vt_offload *o, struct vt_err *err)
{
    static const struct {
        const char *key;
        size_t offset;
        double hi;
    } numbers[] = {
        {"load_gb_per_s", offsetof(struct vt_offload, load_gbs), 1e6},
        {"store_gb_per_s", offsetof(struct vt_offload, store_gbs), 1e6},
        {"setup_us", offsetof(struct vt_offload, setup_us), 1e9},
        {"duplex", offsetof(struct vt_offload, duplex), 1},
        {"host_us", offsetof(struct vt_offload, host_us), 1e9},
        {"host_block_us", offsetof(struct vt_offload, host_block_us), 1e9},
    };
    const struct vt_node *n = vt_get_non_null(e, "offload");
    const char *known[VT_COUNT(numbers) + 1] = {NULL};
    int rc = VT_OK;

    if (!n)
        return VT_OK;
    if (n->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "line %u: field 'offload' must be an object",
                       n->line);
    for (size_t i = 0; i < VT_COUNT(numbers); i++)
        known[i] = numbers[i].key;
    rc = vt_only_keys(n, known, err);
    for (size_t i = 0; i < VT_COUNT(numbers) && rc == VT_OK; i++)
        rc = vt_get_f64(n, numbers[i].key, VT_OPTIONAL, 0, numbers[i].hi,
                        (double *)(void *)((char *)o + numbers[i].offset), err);
    return rc;
}

static int read_limits(const struct vt_node *e, struct vt_engine_config *c,
                       struct vt_err *err)
{
    static const char *const known[] = {"max_num_seqs",
                                        "max_num_batched_tokens",
                                        "max_model_len",
                                        "block_size",
                                        "num_gpu_blocks",
                                        "kv_cache_tokens",
                                        "kv_groups",
                                        "mamba_cache_mode",
                                        "enable_prefix_caching",
                                        "async_scheduling",
                                        "offload",
                                        "num_speculative_tokens",
                                        "model",
                                        "gpu",
                                        "tensor_parallel_size",
                                        "kv_cache_dtype",
                                        "vllm_version",
                                        NULL};
    const uint32_t big = 1u << 30;
    int rc;

    if (!e)
        return VT_OK;
    if (e->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "line %u: field 'engine' must be an object",
                       e->line);
    if ((rc = vt_only_keys(e, known, err)) ||
        (rc = vt_get_u32(e, "max_num_seqs", VT_OPTIONAL, 1, big, &c->max_num_seqs,
                         err)) ||
        (rc = vt_get_u32(e, "max_num_batched_tokens", VT_OPTIONAL, 1, big,
                         &c->max_num_batched_tokens, err)) ||
        (rc = vt_get_u32(e, "max_model_len", VT_OPTIONAL, 2, big, &c->max_model_len,
                         err)) ||
        (rc = vt_get_u32(e, "block_size", VT_OPTIONAL, 1, big, &c->block_size, err)) ||
        (rc = vt_get_u32(e, "num_gpu_blocks", VT_OPTIONAL, 2, big, &c->num_gpu_blocks,
                         err)) ||
        (rc = vt_get_u32(e, "num_speculative_tokens", VT_OPTIONAL, 1, big,
                         &c->num_spec_tokens, err)) ||
        (rc = read_groups(e, c, err)) || (rc = read_link(e, &c->offload, err)) ||
        (rc = vt_get_bool(e, "enable_prefix_caching", VT_OPTIONAL,
                          &c->enable_prefix_caching, err)))
        return rc;
    return vt_get_bool(e, "async_scheduling", VT_OPTIONAL, &c->async_scheduling, err);
}

uint32_t vt_profile_release(const struct vt_profile *p)
{
    const char *text = NULL;
    struct vt_err none;

    if (vt_get_str(p->engine, "vllm_version", VT_OPTIONAL, &text, &none) != VT_OK)
        return 0;
    return vt_vllm_nearest(text);
}

int vt_profile_limits(const struct vt_profile *p, struct vt_engine_config *c,
                      struct vt_err *err)
{
    const struct vt_node *params = vt_get(vt_get(p->root, "model"), "params");
    uint32_t blocks;
    int rc = read_limits(p->engine, c, err);

    set_if_stated(&c->vllm, vt_profile_release(p));
    /* A model that knows what it runs on knows how much KV cache that leaves. */
    if (rc == VT_OK && !vt_get(p->engine, "num_gpu_blocks") &&
        analytic_blocks(params, c, &blocks))
        c->num_gpu_blocks = blocks;
    return rc;
}

void vt_engine_config_take(struct vt_engine_config *c, const struct vt_meta *m)
{
    set_if_stated(&c->vllm, vt_vllm_nearest(m->vllm_version));
    set_if_stated(&c->num_gpu_blocks, m->num_gpu_blocks);
    set_if_stated(&c->block_size, m->block_size);
    set_if_stated(&c->max_num_seqs, m->max_num_seqs);
    set_if_stated(&c->max_num_batched_tokens, m->max_num_batched_tokens);
    set_if_stated(&c->max_model_len, m->max_model_len);
    set_if_stated(&c->num_spec_tokens, m->num_speculative_tokens);
    if (m->async_scheduling >= 0)
        c->async_scheduling = m->async_scheduling > 0;
    if (m->enable_prefix_caching >= 0)
        c->enable_prefix_caching = m->enable_prefix_caching > 0;
}

void vt_engine_config_replay(struct vt_engine_config *c, const struct vt_workload *w)
{
    enum { A_FEW_LONG_PROMPTS = 8 };

    c->warmed_for = w->meta.warmed_for > 0              ? w->meta.warmed_for
                    : w->arrivals == VT_ARRIVALS_CLOSED ? A_FEW_LONG_PROMPTS
                                                        : 0;
}

static bool states_another(const struct vt_node *engine, const char *key,
                           const char *here)
{
    const struct vt_node *n = here ? vt_get(engine, key) : NULL;

    return n && n->kind == VT_STR && strcmp(n->u.str, here) != 0;
}

bool vt_profile_saw(const struct vt_profile *p, const char *path,
                    const struct vt_meta *meta)
{
    const struct vt_node *list = vt_get(vt_get(p->root, "provenance"), "captures");
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    size_t len = strcspn(file, ".");

    if (!list || list->kind != VT_LIST ||
        states_another(p->engine, "model", meta->model) ||
        states_another(p->engine, "gpu", meta->gpu))
        return false;
    for (uint32_t i = 0; i < list->n; i++) {
        const struct vt_node *name = vt_get(&list->u.item[i], "name");

        if (name && name->kind == VT_STR && vt_is_text(name->u.str, file, len))
            return true;
    }
    return false;
}

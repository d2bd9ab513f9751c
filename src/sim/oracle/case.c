/* case.c - reads a case; knows its made-up tokens and vLLM's hashes of them. */
#include "sim/oracle/oracle.h"

#include <math.h>

/* Far above every recorded case; keeps a damaged file from asking for the moon. */
#define LIMIT (1u << 22)

/* ---- loading ---------------------------------------------------------- */

static int load_mamba_mode(struct vt_engine_config *e, const struct vt_node *n,
                           struct vt_err *err)
{
    const char *mode = "none";
    int rc = vt_get_str(n, "mamba_cache_mode", VT_OPTIONAL, &mode, err);

    e->mamba_cache_mode = strcmp(mode, "align") == 0 ? VT_MAMBA_ALIGN : VT_MAMBA_NONE;
    return rc;
}

static int load_retention(struct vt_engine_config *e, const struct vt_node *n,
                          struct vt_err *err)
{
    e->prefix_cache_retention_interval = VT_RETENTION_DENSE;
    if (!vt_get_non_null(n, "retention_effective"))
        return VT_OK;
    return vt_get_u32(n, "retention_effective", VT_REQUIRED, 0, LIMIT,
                      &e->prefix_cache_retention_interval, err);
}

static int load_layer(struct vt_kv_layer *l, const struct vt_node *n,
                      struct vt_err *err)
{
    static const char *const types[] = {"full", "mla", "sliding", "chunked", "mamba"};
    uint32_t heads = 1, dim = 8, state = 0, type = 0;
    const char *name = "";
    int rc = vt_get_str(n, "type", VT_REQUIRED, &name, err);

    if (rc != VT_OK)
        return rc;
    while (type < VT_COUNT(types) && strcmp(types[type], name) != 0)
        type++;
    if (type == VT_COUNT(types))
        return vt_fail(err, VT_EINPUT, "line %u: unknown kind of layer '%s'", n->line,
                       name);
    *l = (struct vt_kv_layer){.type = (enum vt_attention)type, .n = 1};
    if ((rc = vt_get_u32(n, "n", VT_OPTIONAL, 1, 4096, &l->n, err)) ||
        (rc = vt_get_u32(n, "heads", VT_OPTIONAL, 1, 4096, &heads, err)) ||
        (rc = vt_get_u32(n, "dim", VT_OPTIONAL, 1, 4096, &dim, err)) ||
        (rc = vt_get_u32(n, "window", VT_OPTIONAL, 1, LIMIT, &l->window, err)) ||
        (rc = vt_get_u32(n, "chunk", VT_OPTIONAL, 1, LIMIT, &l->window, err)) ||
        (rc = vt_get_bool(n, "saves", VT_OPTIONAL, &l->saves_inside, err)) ||
        (rc = vt_get_u32(n, "state", VT_OPTIONAL, 1, LIMIT, &state, err)))
        return rc;
    /* Two bytes to an element; keys and values, or one latent vector. */
    l->bytes = l->type == VT_ATTENTION_MAMBA ? (uint64_t)state * 2
               : l->type == VT_ATTENTION_MLA ? (uint64_t)heads * dim * 2
                                             : (uint64_t)heads * dim * 4;
    return VT_OK;
}

static int check_size(const struct vt_node *n, const char *field, uint64_t mine,
                      struct vt_err *err)
{
    uint32_t theirs = 0;
    int rc = vt_get_u32(n, field, VT_REQUIRED, 0, UINT32_MAX, &theirs, err);

    if (rc == VT_OK && mine != theirs)
        return vt_fail(err, VT_ECHECK, "field '%s' differs: got %llu, recorded %u",
                       field, (unsigned long long)mine, theirs);
    return rc;
}

/* The groups are formed here and compared with those that vLLM formed. */
static int check_groups(const struct oracle_case *c, const struct vt_node *n,
                        struct vt_err *err)
{
    const struct vt_node *list = vt_get(n, "kv_groups");
    int rc;

    if (!list || list->kind != VT_LIST || list->n != c->config.n_kv_groups)
        return vt_fail(
            err, VT_ECHECK, "field 'kv_groups' differs: got %u groups, recorded %u",
            c->config.n_kv_groups, list && list->kind == VT_LIST ? list->n : 0);
    for (uint32_t i = 0; i < list->n; i++) {
        const struct vt_kv_group *g = &c->config.kv_group[i];
        const struct vt_node *theirs = &list->u.item[i],
                             *layers = vt_get(theirs, "layers");

        /* A group that is alone may have pages of several sizes: of these only the sum
         * is told, which num_blocks follows from. */
        if ((rc = check_size(theirs, "block_size", g->block_size, err)) ||
            (list->n > 1 &&
             (rc = check_size(theirs, "page_size_bytes", g->page_bytes, err))))
            return rc;
        if (!layers || layers->kind != VT_LIST || layers->n != g->layers)
            return vt_fail(err, VT_ECHECK, "group %u: field 'layers' differs: got %u",
                           i, g->layers);
    }
    return check_size(n, "hash_block_size", vt_hash_block_size(&c->config), err);
}

static int load_groups(struct oracle_case *c, const struct vt_node *n,
                       struct vt_err *err)
{
    const struct vt_node *list = vt_get(n, "kv_layers");
    struct vt_kv_layer *layer = NULL;
    uint64_t block_bytes = 1;
    int64_t memory = 0;
    bool one_kind = false;
    int rc =
        vt_get_bool(n, "disable_hybrid_kv_cache_manager", VT_OPTIONAL, &one_kind, err);

    if (rc != VT_OK || (rc = vt_get_i64(n, "available_memory", VT_REQUIRED, 1,
                                        INT64_MAX, &memory, err)))
        return rc;
    if (list->kind != VT_LIST || list->n == 0 || list->n > 4096)
        return vt_fail(err, VT_EINPUT, "field 'kv_layers' is no list of layers");
    layer = calloc(list->n, sizeof(*layer));
    if (!layer)
        return vt_nomem(err);
    for (uint32_t i = 0; rc == VT_OK && i < list->n; i++)
        rc = load_layer(&layer[i], &list->u.item[i], err);
    if (rc == VT_OK)
        rc =
            vt_kv_groups_form(&c->config, layer, list->n, !one_kind, &block_bytes, err);
    free(layer);
    if (rc != VT_OK || (rc = check_groups(c, n, err)))
        return rc;
    return check_size(n, "num_blocks", (uint64_t)memory / block_bytes, err);
}

static int load_offload(struct oracle_case *c, const struct vt_node *config,
                        struct vt_err *err)
{
    const struct vt_node *n = vt_get(config, "offload"), *x = vt_get(n, "extra");
    struct vt_offload *o = &c->config.offload;
    const char *policy = "lru";
    bool prompt_only = true;
    int rc;

    if ((rc =
             vt_get_u32(n, "load_steps", VT_REQUIRED, 0, LIMIT, &c->load_steps, err)) ||
        (rc = vt_get_u32(n, "store_steps", VT_REQUIRED, 0, LIMIT, &c->store_steps,
                         err)) ||
        (rc = vt_get_u32(n, "num_cpu_blocks", VT_REQUIRED, 1, LIMIT, &o->num_cpu_blocks,
                         err)))
        return rc;
    if (!x || x->kind != VT_MAP)
        return VT_OK;
    if ((rc = vt_get_u32(x, "blocks_per_chunk", VT_OPTIONAL, 1, 4096,
                         &o->blocks_per_chunk, err)) ||
        (rc = vt_get_u32(x, "store_threshold", VT_OPTIONAL, 0, LIMIT,
                         &o->store_threshold, err)) ||
        (rc = vt_get_str(x, "eviction_policy", VT_OPTIONAL, &policy, err)) ||
        (rc = vt_get_bool(x, "offload_prompt_only", VT_OPTIONAL, &prompt_only, err)) ||
        (rc = vt_get_bool(x, "self_describing_kv_events", VT_OPTIONAL,
                          &o->self_describing_kv_events, err)))
        return rc;
    o->eviction_policy = strcmp(policy, "arc") == 0 ? VT_EVICT_ARC : VT_EVICT_LRU;
    o->offload_generated = !prompt_only;
    return VT_OK;
}

/* Absent and null both leave *out as it is. */
static int number_or_none(const struct vt_node *n, const char *key, uint32_t hi,
                          uint32_t *out, struct vt_err *err)
{
    if (!vt_get_non_null(n, key))
        return VT_OK;
    return vt_get_u32(n, key, VT_REQUIRED, 0, hi, out, err);
}

static int load_config(struct oracle_case *c, const struct vt_node *n, uint32_t release,
                       struct vt_err *err)
{
    struct vt_engine_config *e = &c->config;
    const struct {
        const char *name;
        enum vt_need need;
        uint32_t lo, hi, *to;
    } numbers[] = {
        {"max_num_seqs", VT_REQUIRED, 1, LIMIT, &e->max_num_seqs},
        {"max_num_batched_tokens", VT_REQUIRED, 1, LIMIT, &e->max_num_batched_tokens},
        {"max_model_len", VT_REQUIRED, 1, LIMIT, &e->max_model_len},
        {"block_size", VT_REQUIRED, 1, LIMIT, &e->block_size},
        {"num_blocks", VT_REQUIRED, 2, LIMIT, &e->num_gpu_blocks},
        {"long_prefill_token_threshold", VT_OPTIONAL, 0, LIMIT,
         &e->long_prefill_token_threshold},
        {"num_spec_tokens", VT_OPTIONAL, 0, 64, &e->num_spec_tokens},
        {"prefill_schedule_interval", VT_OPTIONAL, 1, LIMIT, &c->interval},
    };
    const struct {
        const char *name;
        uint32_t *to;
    } nullable[] = {
        {"max_num_scheduled_tokens", &e->max_num_scheduled_tokens},
        {"max_num_active_seqs", &e->max_num_active_seqs},
        {"max_loras", &e->max_loras},
    };
    const struct {
        const char *name;
        bool *to;
    } flags[] = {
        {"enable_prefix_caching", &e->enable_prefix_caching},
        {"enable_chunked_prefill", &e->enable_chunked_prefill},
        {"scheduler_reserve_full_isl", &e->scheduler_reserve_full_isl},
        {"async_scheduling", &e->async_scheduling},
        {"use_eagle", &e->use_eagle},
        {"kv_events", &e->kv_events},
        {"long_prefill_token_threshold_adaptive",
         &e->long_prefill_token_threshold_adaptive},
    };
    const char *policy = "fcfs";
    int rc = VT_OK;

    vt_engine_config_init(e);
    e->vllm = release;
    e->async_scheduling = false;
    c->interval = 1;
    for (size_t i = 0; i < VT_COUNT(numbers) && rc == VT_OK; i++)
        rc = vt_get_u32(n, numbers[i].name, numbers[i].need, numbers[i].lo,
                        numbers[i].hi, numbers[i].to, err);
    for (size_t i = 0; i < VT_COUNT(nullable) && rc == VT_OK; i++)
        rc = number_or_none(n, nullable[i].name, LIMIT, nullable[i].to, err);
    for (size_t i = 0; i < VT_COUNT(flags) && rc == VT_OK; i++)
        rc = vt_get_bool(n, flags[i].name, VT_OPTIONAL, flags[i].to, err);
    if (rc != VT_OK ||
        (rc = vt_get_f64(n, "watermark", VT_OPTIONAL, 0, 1, &e->watermark, err)) ||
        (rc = vt_get_str(n, "policy", VT_OPTIONAL, &policy, err)))
        return rc;
    e->policy = strcmp(policy, "priority") == 0 ? VT_PRIORITY : VT_FCFS;
    if (vt_get_non_null(n, "offload") && (rc = load_offload(c, n, err)))
        return rc;
    if (vt_get(n, "kv_layers") &&
        ((rc = load_mamba_mode(e, n, err)) || (rc = load_retention(e, n, err)) ||
         (rc = load_groups(c, n, err))))
        return rc;
    return vt_engine_config_check(e, err);
}

static int check_prompt(const struct oracle_case *c, struct oracle_request *r,
                        struct vt_err *err)
{
    if (!r->prompt || r->prompt->kind != VT_LIST || r->prompt->n == 0)
        return vt_fail(err, VT_EINPUT, "request without a prompt");
    for (uint32_t i = 0; i < r->prompt->n; i++) {
        const struct vt_node *part = &r->prompt->u.item[i];
        const char *of = vt_get(part, "s") ? "s" : "out";
        uint32_t n = 0, from = 0;
        int rc = vt_get_u32(part, "n", VT_REQUIRED, 0, LIMIT, &n, err);

        if (rc != VT_OK ||
            (rc = vt_get_u32(part, of, VT_REQUIRED, 0, LIMIT, &from, err)))
            return rc;
        if (of[0] == 'o' && from >= c->n_req)
            return vt_fail(err, VT_EINPUT, "line %u: no request %u", part->line, from);
        if (n > LIMIT - r->prompt_tokens)
            return vt_fail(err, VT_EINPUT, "line %u: prompt too long", part->line);
        r->prompt_tokens += n;
    }
    return r->prompt_tokens > 0 ? VT_OK : vt_fail(err, VT_EINPUT, "empty prompt");
}

static int load_requests(struct oracle_case *c, struct vt_err *err)
{
    const struct vt_node *list = vt_get(c->root, "requests");

    if (!list || list->kind != VT_LIST || list->n == 0)
        return vt_fail(err, VT_EINPUT, "no requests");
    c->n_req = list->n;
    c->req = calloc(list->n, sizeof(*c->req));
    if (!c->req)
        return vt_nomem(err);
    for (uint32_t i = 0; i < list->n; i++) {
        const struct vt_node *n = &list->u.item[i], *salt = vt_get(n, "cache_salt");
        struct oracle_request *r = &c->req[i];
        int rc;

        r->salt = salt && salt->kind == VT_STR ? salt->u.str : NULL;
        r->prompt = vt_get(n, "prompt");
        r->eos_at = r->stop_at = VT_NO_STOP;
        if ((rc = number_or_none(n, "eos_at", VT_NO_STOP - 1, &r->eos_at, err)) ||
            (rc = number_or_none(n, "stop_at", VT_NO_STOP - 1, &r->stop_at, err)) ||
            (rc = number_or_none(n, "lora", LIMIT, &r->lora, err)) ||
            (rc = check_prompt(c, r, err)))
            return vt_within(err, rc, "request %u", i);
        (void)snprintf(r->lora_name, sizeof(r->lora_name), "lora%u", r->lora);
        (void)snprintf(r->lora_path, sizeof(r->lora_path), "/lora%u", r->lora);
    }
    return VT_OK;
}

static int hex_digit(char ch)
{
    if (ch >= '0' && ch <= '9')
        return ch - '0';
    return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

static int load_none_hash(struct oracle_case *c, struct vt_err *err)
{
    const char *hex = NULL;
    int rc = vt_get_str(c->root, "none_hash", VT_REQUIRED, &hex, err);

    if (rc != VT_OK)
        return rc;
    if (strlen(hex) != 2 * VT_HASH_BYTES)
        return vt_fail(err, VT_EINPUT, "field 'none_hash' must be 64 hex digits");
    for (size_t i = 0; i < VT_HASH_BYTES; i++) {
        int hi = hex_digit(hex[2 * i]), lo = hex_digit(hex[2 * i + 1]);

        if (hi < 0 || lo < 0)
            return vt_fail(err, VT_EINPUT, "field 'none_hash' must be 64 hex digits");
        c->none_hash[i] = (unsigned char)(hi * 16 + lo);
    }
    return VT_OK;
}

static int load_fields(struct oracle_case *c, struct vt_err *err)
{
    const char *format = "", *version = "";
    const struct vt_node *stops = vt_get(c->root, "stop_token_ids");
    uint32_t release;
    int rc;

    c->eos_token = 2;
    c->stop_token = 3;
    if ((rc = vt_get_str(c->root, "format", VT_REQUIRED, &format, err)) ||
        (rc = vt_get_str(c->root, "case", VT_REQUIRED, &c->name, err)) ||
        (rc = vt_get_str(c->root, "vllm_version", VT_REQUIRED, &version, err)) ||
        (rc = vt_get_u32(c->root, "eos_token_id", VT_OPTIONAL, 0, 1u << 30,
                         &c->eos_token, err)))
        return rc;
    c->by_group = strcmp(format, "vllm-sched-oracle/2") == 0;
    if (!c->by_group && strcmp(format, "vllm-sched-oracle/1") != 0)
        return vt_fail(err, VT_EINPUT, "not a vllm-sched-oracle/1 or /2 file");
    if (stops && stops->kind == VT_LIST && stops->n > 0 &&
        stops->u.item[0].kind == VT_INT)
        c->stop_token = (uint32_t)stops->u.item[0].u.integer;
    c->steps = vt_get(c->root, "steps");
    if (!c->steps || c->steps->kind != VT_LIST)
        return vt_fail(err, VT_EINPUT, "no steps");
    if ((rc = vt_vllm_release(version, &release, err)) ||
        (rc = load_config(c, vt_get(c->root, "config"), release, err)))
        return rc;
    rc = load_requests(c, err);
    c->kv_events = vt_get(c->root, "kv_events");
    if (rc == VT_OK && c->kv_events)
        rc = load_none_hash(c, err);
    return rc;
}

int oracle_load(struct oracle_case *c, const char *path, const char *text, size_t len,
                struct vt_err *err)
{
    int rc;

    memset(c, 0, sizeof(*c));
    rc = text ? vt_json_parse(&c->arena, text, len, 1, &c->root, err)
              : vt_tree_load(&c->arena, path, &c->root, err);
    if (rc == VT_OK)
        rc = vt_within(err, load_fields(c, err), "%s", path);
    if (rc != VT_OK)
        oracle_free(c);
    return rc;
}

void oracle_free(struct oracle_case *c)
{
    for (uint32_t i = 0; c->req && i < c->n_req; i++)
        vt_chain_free(&c->req[i].chain);
    free(c->req);
    vt_arena_free(&c->arena);
    memset(c, 0, sizeof(*c));
}

/* ---- requests --------------------------------------------------------- */

static int64_t part_int(const struct vt_node *part, const char *key)
{
    return vt_get(part, key)->u.integer;
}

int oracle_request(const struct oracle_case *c, uint32_t i, struct vt_request *r,
                   struct vt_segment **seg, struct vt_err *err)
{
    const struct vt_node *n = &vt_get(c->root, "requests")->u.item[i];
    const struct oracle_request *q = &c->req[i];
    double arrival_s = 0;
    const char *id = NULL;
    int64_t priority = 0;
    int rc;

    *seg = calloc(q->prompt->n, sizeof(**seg));
    if (!*seg)
        return vt_nomem(err);
    for (uint32_t k = 0; k < q->prompt->n; k++) {
        const struct vt_node *part = &q->prompt->u.item[k];
        bool out = !vt_get(part, "s");

        (*seg)[k] = (struct vt_segment){
            .content = out ? vt_hash2((uint64_t)part_int(part, "out"), 2)
                           : vt_hash2((uint64_t)part_int(part, "s"), 1),
            .tokens = (uint32_t)part_int(part, "n"),
        };
    }
    *r = (struct vt_request){
        .tag = i,
        .prompt_tokens = q->prompt_tokens,
        .eos_at = q->eos_at,
        .stop_at = q->stop_at,
        .segment = *seg,
        .n_segments = q->prompt->n,
        .output_content = vt_hash2(i, 2),
        .salt = q->salt ? vt_hash_bytes(q->salt, strlen(q->salt), 3) | 1 : 0,
        .lora = q->lora,
    };
    if ((rc = vt_get_u32(n, "max_tokens", VT_REQUIRED, 1, 1u << 30, &r->max_tokens,
                         err)) ||
        (rc = vt_get_u32(n, "min_tokens", VT_OPTIONAL, 0, 1u << 30, &r->min_tokens,
                         err)) ||
        (rc = vt_get_i64(n, "priority", VT_OPTIONAL, INT32_MIN, INT32_MAX, &priority,
                         err)) ||
        (rc = vt_get_f64(n, "arrival_time", VT_OPTIONAL, 0, 1e9, &arrival_s, err)) ||
        (rc = vt_get_bool(n, "skip_cache", VT_OPTIONAL, &r->skip_cache, err)) ||
        (rc = vt_get_str(n, "id", VT_OPTIONAL, &id, err))) {
        free(*seg);
        *seg = NULL;
        return rc;
    }
    r->id = id;
    r->priority = (int32_t)priority;
    r->arrival = llround(arrival_s * 1e9);
    return VT_OK;
}

/* ---- tokens and their hashes ------------------------------------------ */

uint32_t oracle_output_token(const struct oracle_case *c, uint32_t i, uint32_t k)
{
    if (k == c->req[i].eos_at)
        return c->eos_token;
    if (k == c->req[i].stop_at)
        return c->stop_token;
    return (uint32_t)(40000 + ((uint64_t)i * 131 + (uint64_t)k * 17) % 20000);
}

uint32_t oracle_token(const struct oracle_case *c, uint32_t i, uint32_t position)
{
    const struct oracle_request *r = &c->req[i];

    if (position >= r->prompt_tokens)
        return oracle_output_token(c, i, position - r->prompt_tokens);
    for (uint32_t k = 0;; k++) {
        const struct vt_node *part = &r->prompt->u.item[k];
        uint32_t n = (uint32_t)part_int(part, "n");

        uint64_t j = position;

        if (position >= n) {
            position -= n;
            continue;
        }
        if (!vt_get(part, "s"))
            return oracle_output_token(c, (uint32_t)part_int(part, "out"), position);
        return (uint32_t)(((uint64_t)part_int(part, "s") * 7919 + j * 31 + j * j % 97) %
                          32000);
    }
}

int oracle_block_hash(struct oracle_case *c, uint32_t i, uint32_t j, uint64_t *hash,
                      struct vt_err *err)
{
    struct vt_chain *chain = &c->req[i].chain;
    uint32_t bs = vt_hash_block_size(&c->config);
    uint32_t *token = chain->n <= j ? calloc(bs, sizeof(*token)) : NULL;
    int rc = chain->n > j || token ? VT_OK : vt_nomem(err);

    chain->none_hash = c->none_hash;
    chain->vllm = c->config.vllm;
    chain->salt = c->req[i].salt;
    chain->lora = c->req[i].lora > 0 ? c->req[i].lora_name : NULL;
    chain->lora_path = c->req[i].lora > 0 ? c->req[i].lora_path : NULL;
    while (chain->n <= j && rc == VT_OK) {
        for (uint32_t k = 0; k < bs; k++)
            token[k] = oracle_token(c, i, (uint32_t)chain->n * bs + k);
        rc = vt_chain_add(chain, token, bs, err);
    }
    free(token);
    if (rc == VT_OK)
        *hash = vt_hash_short(chain->hash[j]);
    return rc;
}

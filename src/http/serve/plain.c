/* plain.c - what the server is: its models, version, state and configuration. */
#include "http/serve/plain.h"

#include <inttypes.h>

bool plain_health(struct plain_ask *q)
{
    q->a->type = NULL;
    return true;
}

bool plain_version(struct plain_ask *q)
{
    vt_jw_map(&q->w, NULL);
    vt_jw_str(&q->w, "version", q->c->api->version);
    vt_jw_end(&q->w);
    return true;
}

/* ---- models ------------------------------------------------------------- */

bool plain_models(struct plain_ask *q)
{
    static const struct {
        const char *key;
        bool value;
    } rights[] = {{"allow_create_engine", false}, {"allow_sampling", true},
                  {"allow_logprobs", true},       {"allow_search_indices", false},
                  {"allow_view", true},           {"allow_fine_tuning", false}};
    struct vt_jw *w = &q->w;

    vt_jw_map(w, NULL);
    vt_jw_str(w, "object", "list");
    vt_jw_list(w, "data");
    for (uint32_t i = 0; i < q->c->n_models; i++) {
        const struct plain_model *m = &q->c->model[i];
        uint64_t id = vt_hash_bytes(m->id, strlen(m->id), (uint64_t)m->created);

        vt_jw_map(w, NULL);
        vt_jw_str(w, "id", m->id);
        vt_jw_str(w, "object", "model");
        vt_jw_i64(w, "created", m->created);
        vt_jw_str(w, "owned_by", "vllm");
        vt_jw_str(w, "root", m->root);
        vt_jw_str(w, "parent", m->parent);
        if (m->parent)
            vt_jw_null(w, "max_model_len");
        else
            vt_jw_u64(w, "max_model_len", q->c->api->max_model_len);
        vt_jw_list(w, "permission");
        vt_jw_map(w, NULL);
        vt_jw_printf(w, "id", "\"modelperm-%016" PRIx64 "\"", id);
        vt_jw_str(w, "object", "model_permission");
        vt_jw_i64(w, "created", m->created);
        for (size_t k = 0; k < VT_COUNT(rights); k++)
            vt_jw_bool(w, rights[k].key, rights[k].value);
        vt_jw_str(w, "organization", "*");
        vt_jw_null(w, "group");
        vt_jw_bool(w, "is_blocking", false);
        vt_jw_end(w);
        vt_jw_end(w);
        vt_jw_end(w);
    }
    vt_jw_end(w);
    vt_jw_end(w);
    return true;
}

/* ---- configuration ------------------------------------------------------ */

/* A map of them. */
static void put_settings(struct vt_jw *w, const char *key,
                         const struct plain_context *c)
{
    const char *root = c->n_models > 0 ? c->model[0].root : c->api->model;
    const struct vt_engine_config *e = &c->config->engine;

    vt_jw_map(w, key);
    vt_jw_str(w, "model", root);
    vt_jw_str(w, "tokenizer", root);
    vt_jw_str(w, "served_model_name", c->api->model);
    vt_jw_u64(w, "max_seq_len", c->api->max_model_len);
    vt_jw_u64(w, "tensor_parallel_size", 1);
    vt_jw_u64(w, "pipeline_parallel_size", 1);
    vt_jw_u64(w, "data_parallel_size", c->config->n_engines);
    vt_jw_str(w, "device_config", "twin");
    vt_jw_str(w, "profile", c->config->timed_by);
    if (e->num_spec_tokens == 0) {
        vt_jw_str(w, "speculative_config", NULL);
    } else {
        vt_jw_str(w, "speculative_method", e->use_eagle ? "eagle" : "ngram");
        vt_jw_u64(w, "num_speculative_tokens", e->num_spec_tokens);
        vt_jw_f64(w, "speculative_acceptance", e->spec_acceptance);
    }
    vt_jw_u64(w, "max_num_seqs", e->max_num_seqs);
    vt_jw_u64(w, "max_num_batched_tokens", e->max_num_batched_tokens);
    vt_jw_u64(w, "block_size", vt_kv_facts(e).block_size);
    vt_jw_u64(w, "num_gpu_blocks", e->num_gpu_blocks);
    vt_jw_u64(w, "long_prefill_token_threshold", e->long_prefill_token_threshold);
    vt_jw_str(w, "scheduling_policy", e->policy == VT_PRIORITY ? "priority" : "fcfs");
    vt_jw_bool(w, "enable_prefix_caching", e->enable_prefix_caching);
    vt_jw_bool(w, "enable_chunked_prefill", e->enable_chunked_prefill);
    vt_jw_bool(w, "async_scheduling", e->async_scheduling);
    vt_jw_u64(w, "seed", e->seed);
    vt_jw_end(w);
}

/* The same in one text, as Python prints keyword arguments. */
static void put_python_settings(struct vt_jw *w, const char *key,
                                const struct plain_context *c)
{
    struct vt_buf json = {0}, text = {0};
    struct vt_arena arena = {0};
    const struct vt_node *map;
    struct vt_jw made;

    vt_jw_init(&made, &json, &json_body);
    put_settings(&made, NULL, c);
    if (!json.failed &&
        vt_json_parse(&arena, json.data, json.len, 1, &map, NULL) == VT_OK)
        for (uint32_t i = 0; i < map->n; i++) {
            vt_buf_printf(&text, "%s%s=", i > 0 ? ", " : "", map->u.item[i].key);
            api_py_repr(&text, &map->u.item[i]);
        }
    vt_jw_strn(w, key, text.data ? text.data : "", text.failed ? 0 : text.len);
    vt_arena_free(&arena);
    vt_buf_free(&json);
    vt_buf_free(&text);
}

bool plain_server_info(struct plain_ask *q)
{
    struct vt_jw *w = &q->w;
    char format[8] = "";

    vt_jw_map(w, NULL);
    if (net_query_value(q->r->query, "config_format", format, sizeof(format)) &&
        strcmp(format, "json") == 0)
        put_settings(w, "vllm_config", q->c);
    else
        put_python_settings(w, "vllm_config", q->c);
    vt_jw_map(w, "vllm_env");
    vt_jw_bool(w, "VLLM_SERVER_DEV_MODE", true);
    vt_jw_end(w);
    vt_jw_map(w, "system_env");
    vt_jw_str(w, "vllm_version", q->c->api->version);
    vt_jw_str(w, "vtwin_version", VT_VERSION);
    vt_jw_end(w);
    if (q->c->config->about)
        vt_jw_raw(w, "vtwin", q->c->config->about, strlen(q->c->config->about));
    vt_jw_end(w);
    return true;
}

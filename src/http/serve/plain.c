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

/* One setting after another, as JSON, or as Python would print keyword arguments. */
struct settings {
    struct vt_jw *w;
    struct vt_buf python;
    bool json;
};

static struct vt_buf *python_name(struct settings *s, const char *name)
{
    vt_buf_printf(&s->python, "%s%s=", s->python.len > 0 ? ", " : "", name);
    return &s->python;
}

static void set_text(struct settings *s, const char *name, const char *value)
{
    if (s->json)
        vt_jw_str(s->w, name, value);
    else if (value)
        api_py_repr_text(python_name(s, name), value, strlen(value));
    else
        vt_buf_str(python_name(s, name), "None");
}

static void set_u64(struct settings *s, const char *name, uint64_t value)
{
    if (s->json)
        vt_jw_u64(s->w, name, value);
    else
        vt_buf_u64(python_name(s, name), value);
}

static void set_bool(struct settings *s, const char *name, bool value)
{
    if (s->json)
        vt_jw_bool(s->w, name, value);
    else
        vt_buf_str(python_name(s, name), value ? "True" : "False");
}

static void put_settings(struct settings *s, const struct plain_context *c)
{
    const char *root = c->n_models > 0 ? c->model[0].root : c->api->model;
    const struct vt_engine_config *e = c->engine;

    set_text(s, "model", root);
    set_text(s, "tokenizer", root);
    set_text(s, "served_model_name", c->api->model);
    set_u64(s, "max_seq_len", c->api->max_model_len);
    set_u64(s, "tensor_parallel_size", 1);
    set_u64(s, "pipeline_parallel_size", 1);
    set_u64(s, "data_parallel_size", c->data_parallel_size);
    set_text(s, "device_config", "twin");
    set_text(s, "profile", c->profile);
    if (!e)
        return;
    if (e->num_spec_tokens == 0) {
        set_text(s, "speculative_config", NULL);
    } else {
        set_text(s, "speculative_method", e->use_eagle ? "eagle" : "ngram");
        set_u64(s, "num_speculative_tokens", e->num_spec_tokens);
        if (s->json)
            vt_jw_f64(s->w, "speculative_acceptance", e->spec_acceptance);
        else
            api_py_float(python_name(s, "speculative_acceptance"), e->spec_acceptance);
    }
    set_u64(s, "max_num_seqs", e->max_num_seqs);
    set_u64(s, "max_num_batched_tokens", e->max_num_batched_tokens);
    set_u64(s, "block_size", e->block_size);
    set_u64(s, "num_gpu_blocks", e->num_gpu_blocks);
    set_u64(s, "long_prefill_token_threshold", e->long_prefill_token_threshold);
    set_text(s, "scheduling_policy", e->policy == VT_PRIORITY ? "priority" : "fcfs");
    set_bool(s, "enable_prefix_caching", e->enable_prefix_caching);
    set_bool(s, "enable_chunked_prefill", e->enable_chunked_prefill);
    set_bool(s, "async_scheduling", e->async_scheduling);
    set_u64(s, "seed", e->seed);
}

bool plain_server_info(struct plain_ask *q)
{
    struct vt_jw *w = &q->w;
    struct settings s = {.w = w};
    char format[8] = "";

    s.json = net_query_value(q->r->query, "config_format", format, sizeof(format)) &&
             strcmp(format, "json") == 0;
    vt_jw_map(w, NULL);
    if (s.json)
        vt_jw_map(w, "vllm_config");
    put_settings(&s, q->c);
    if (s.json)
        vt_jw_end(w);
    else
        vt_jw_str(w, "vllm_config", s.python.failed ? "" : s.python.data);
    vt_buf_free(&s.python);
    vt_jw_map(w, "vllm_env");
    vt_jw_bool(w, "VLLM_SERVER_DEV_MODE", true);
    vt_jw_end(w);
    vt_jw_map(w, "system_env");
    vt_jw_str(w, "vllm_version", q->c->api->version);
    vt_jw_str(w, "vtwin_version", VT_VERSION);
    vt_jw_end(w);
    vt_jw_end(w);
    return true;
}

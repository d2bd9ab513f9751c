/* plain.c - what the server is: its models, version, state and configuration. */
#include "http/serve/plain.h"

#include <inttypes.h>

#include "http/serve/plain_routes.h"

void plain_health(struct plain_ask *q)
{
    q->a->type = NULL;
}

void plain_version(struct plain_ask *q)
{
    vt_buf_str(q->body, "{\"version\":");
    vt_buf_json_str(q->body, q->c->api->version, strlen(q->c->api->version));
    vt_buf_char(q->body, '}');
}

/* ---- models ------------------------------------------------------------- */

static void put_text(struct vt_buf *b, const char *text)
{
    if (text)
        vt_buf_json_str(b, text, strlen(text));
    else
        vt_buf_str(b, "null");
}

static void put_permission(struct vt_buf *b, const struct plain_model *m)
{
    uint64_t id = vt_hash_bytes(m->id, strlen(m->id), (uint64_t)m->created);

    vt_buf_printf(b, "{\"id\":\"modelperm-%016" PRIx64 "\"", id);
    vt_buf_printf(b, ",\"object\":\"model_permission\",\"created\":%" PRId64,
                  m->created);
    vt_buf_str(b, ",\"allow_create_engine\":false,\"allow_sampling\":true,"
                  "\"allow_logprobs\":true,\"allow_search_indices\":false,"
                  "\"allow_view\":true,\"allow_fine_tuning\":false,"
                  "\"organization\":\"*\",\"group\":null,\"is_blocking\":false}");
}

static void put_card(struct vt_buf *b, const struct plain_model *m, uint32_t max_len)
{
    vt_buf_str(b, "{\"id\":");
    put_text(b, m->id);
    vt_buf_printf(b, ",\"object\":\"model\",\"created\":%" PRId64, m->created);
    vt_buf_str(b, ",\"owned_by\":\"vllm\",\"root\":");
    put_text(b, m->root);
    vt_buf_str(b, ",\"parent\":");
    put_text(b, m->parent);
    if (m->parent)
        vt_buf_str(b, ",\"max_model_len\":null");
    else
        vt_buf_printf(b, ",\"max_model_len\":%u", max_len);
    vt_buf_str(b, ",\"permission\":[");
    put_permission(b, m);
    vt_buf_str(b, "]}");
}

void plain_models(struct plain_ask *q)
{
    vt_buf_str(q->body, "{\"object\":\"list\",\"data\":[");
    for (uint32_t i = 0; i < q->c->n_models; i++) {
        if (i > 0)
            vt_buf_char(q->body, ',');
        put_card(q->body, &q->c->model[i], q->c->api->max_model_len);
    }
    vt_buf_str(q->body, "]}");
}

/* ---- configuration ------------------------------------------------------ */

enum style { AS_PYTHON, AS_JSON };

/* One setting after another, as Python would print keyword arguments, or as JSON. */
struct settings {
    struct vt_buf *b;
    enum style style;
    bool more;
};

static void put_name(struct settings *s, const char *name)
{
    if (s->more)
        vt_buf_str(s->b, s->style == AS_JSON ? "," : ", ");
    s->more = true;
    vt_buf_printf(s->b, s->style == AS_JSON ? "\"%s\":" : "%s=", name);
}

static void set_text(struct settings *s, const char *name, const char *value)
{
    put_name(s, name);
    if (s->style == AS_JSON)
        put_text(s->b, value);
    else if (value)
        api_py_repr_text(s->b, value, strlen(value));
    else
        vt_buf_str(s->b, "None");
}

static void set_u64(struct settings *s, const char *name, uint64_t value)
{
    put_name(s, name);
    vt_buf_u64(s->b, value);
}

static void set_f64(struct settings *s, const char *name, double value)
{
    put_name(s, name);
    api_py_float(s->b, value);
}

static void set_bool(struct settings *s, const char *name, bool value)
{
    static const char *const word[2][2] = {{"False", "True"}, {"false", "true"}};

    put_name(s, name);
    vt_buf_str(s->b, word[s->style][value]);
}

static void put_drafts(struct settings *s, const struct vt_engine_config *e)
{
    if (e->num_spec_tokens == 0) {
        set_text(s, "speculative_config", NULL);
        return;
    }
    set_text(s, "speculative_method", e->use_eagle ? "eagle" : "ngram");
    set_u64(s, "num_speculative_tokens", e->num_spec_tokens);
    set_f64(s, "speculative_acceptance", e->spec_acceptance);
}

static void put_engine(struct settings *s, const struct vt_engine_config *e)
{
    put_drafts(s, e);
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

static void put_settings(struct settings *s, const struct plain_context *c)
{
    const char *root = c->n_models > 0 ? c->model[0].root : c->api->model;

    set_text(s, "model", root);
    set_text(s, "tokenizer", root);
    set_text(s, "served_model_name", c->api->model);
    set_u64(s, "max_seq_len", c->api->max_model_len);
    set_u64(s, "tensor_parallel_size", 1);
    set_u64(s, "pipeline_parallel_size", 1);
    set_u64(s, "data_parallel_size", c->data_parallel_size);
    set_text(s, "device_config", "twin");
    set_text(s, "profile", c->profile);
    if (c->engine)
        put_engine(s, c->engine);
}

void plain_server_info(struct plain_ask *q)
{
    struct vt_buf text = {0};
    struct settings s = {.b = &text};
    char format[8] = "";

    if (net_query_value(q->r->query, "config_format", format, sizeof(format)) &&
        strcmp(format, "json") == 0)
        s.style = AS_JSON;
    put_settings(&s, q->c);
    vt_buf_str(q->body, "{\"vllm_config\":");
    if (s.style == AS_JSON)
        vt_buf_printf(q->body, "{%s}", text.failed ? "" : text.data);
    else
        put_text(q->body, text.failed ? "" : text.data);
    vt_buf_str(q->body, ",\"vllm_env\":{\"VLLM_SERVER_DEV_MODE\":true},"
                        "\"system_env\":{\"vllm_version\":");
    put_text(q->body, q->c->api->version);
    vt_buf_str(q->body, ",\"vtwin_version\":\"" VT_VERSION "\"}}");
    vt_buf_free(&text);
}

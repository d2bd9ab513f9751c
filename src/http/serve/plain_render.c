/* plain_render.c - what the engine would get of a request: its tokens and parameters,
 * as vLLM hands them to a server that only generates. */
#include "http/serve/plain_routes.h"

#include "http/api/api.h"
#include "http/json.h"

/* ---- parameters --------------------------------------------------------- */

static const struct vt_node *given(const struct api_request *r, const char *key)
{
    const struct vt_node *v = vt_get(r->body, key);

    return api_given(v) ? v : NULL;
}

static void put_real(struct vt_buf *b, const char *key, double v)
{
    vt_buf_printf(b, "\"%s\":", key);
    vt_buf_py_f64(b, v);
    vt_buf_char(b, ',');
}

static void put_int(struct vt_buf *b, const char *key, int64_t v)
{
    vt_buf_printf(b, "\"%s\":%lld,", key, (long long)v);
}

/* A field of the request as it is; an absent one not at all. */
static void put_given(struct vt_buf *b, const struct api_request *r, const char *key,
                      const char *as)
{
    const struct vt_node *v = given(r, key);

    if (!v)
        return;
    vt_buf_printf(b, "\"%s\":", as);
    json_node(b, v, JSON_TIGHT);
    vt_buf_char(b, ',');
}

static void put_penalties(struct vt_buf *b, const struct api_request *r)
{
    put_real(b, "presence_penalty", api_get_real(given(r, "presence_penalty"), 0));
    put_real(b, "frequency_penalty", api_get_real(given(r, "frequency_penalty"), 0));
    put_real(b, "repetition_penalty", api_get_real(given(r, "repetition_penalty"), 1));
}

/* With temperature 0 the rest of them is meaningless and left out. */
static void put_sampling(struct vt_buf *b, const struct api_request *r)
{
    int64_t top_k = api_get_int(given(r, "top_k"), 0);

    put_real(b, "temperature", r->temperature);
    if (r->temperature < 1e-5)
        return;
    put_real(b, "top_p", r->top_p);
    if (top_k > 0)
        put_int(b, "top_k", top_k);
    put_real(b, "min_p", api_get_real(given(r, "min_p"), 0));
}

static void put_stops(struct vt_buf *b, const struct api_request *r)
{
    vt_buf_str(b, "\"stop\":[");
    for (uint32_t i = 0; i < r->n_stop; i++) {
        if (i > 0)
            vt_buf_char(b, ',');
        json_text(b, r->stop[i], strlen(r->stop[i]));
    }
    vt_buf_str(b, "],\"stop_token_ids\":[");
    for (uint32_t i = 0; i < r->n_stop_ids; i++)
        vt_buf_printf(b, i > 0 ? ",%u" : "%u", r->stop_id[i]);
    vt_buf_str(b, "],");
}

static void put_limits(struct vt_buf *b, const struct api_request *r)
{
    if (r->ignore_eos)
        vt_buf_str(b, "\"ignore_eos\":true,");
    if (r->max_tokens != 16) /* the class's default */
        put_int(b, "max_tokens", r->max_tokens);
    if (r->min_tokens > 0)
        put_int(b, "min_tokens", r->min_tokens);
    if (r->logprobs >= 0)
        put_int(b, "logprobs", r->logprobs);
    if (r->prompt_logprobs >= 0)
        put_int(b, "prompt_logprobs", r->prompt_logprobs);
    if (!r->skip_special)
        vt_buf_str(b, "\"skip_special_tokens\":false,");
    if (r->include_stop)
        vt_buf_str(b, "\"include_stop_str_in_output\":true,");
}

static void put_constraint(struct vt_buf *b, const struct api_request *r)
{
    static const struct {
        const char *name;
        enum api_format format;
    } kind[] = {{"json", API_JSON_SCHEMA},
                {"regex", API_REGEX},
                {"choice", API_CHOICE},
                {"grammar", API_GRAMMAR}};

    if (r->format == API_TEXT)
        return;
    vt_buf_str(b, "\"structured_outputs\":{");
    for (size_t i = 0; i < VT_COUNT(kind); i++) {
        vt_buf_printf(b, "\"%s\":", kind[i].name);
        json_node_or_null(b, r->format == kind[i].format ? r->constraint : NULL);
        vt_buf_char(b, ',');
    }
    vt_buf_printf(b, "\"json_object\":%s,",
                  r->format == API_JSON_OBJECT ? "true" : "null");
    vt_buf_str(b, "\"disable_any_whitespace\":false,"
                  "\"disable_additional_properties\":false,\"whitespace_pattern\":null,"
                  "\"structural_tag\":null,\"_backend\":null,"
                  "\"_backend_was_auto\":false},");
}

static void put_params(struct vt_buf *b, const struct api_request *r)
{
    vt_buf_char(b, '{');
    if (r->n > 1)
        put_int(b, "n", r->n);
    put_penalties(b, r);
    put_sampling(b, r);
    if (r->seeded)
        put_int(b, "seed", r->seed);
    put_stops(b, r);
    put_limits(b, r);
    vt_buf_printf(b, "\"output_kind\":%d,\"skip_clone\":true,", r->stream ? 1 : 2);
    put_constraint(b, r);
    put_given(b, r, "logit_bias", "logit_bias");
    put_given(b, r, "allowed_token_ids", "allowed_token_ids");
    put_given(b, r, "vllm_xargs", "extra_args");
    if (given(r, "bad_words"))
        put_given(b, r, "bad_words", "bad_words");
    else
        vt_buf_str(b, "\"bad_words\":[],");
    vt_buf_printf(b, "\"skip_reading_prefix_cache\":%s}",
                  r->prompt_logprobs >= 0 ? "true" : "false");
}

/* ---- requests ----------------------------------------------------------- */

static void put_stream(struct vt_buf *b, const struct api_request *r)
{
    vt_buf_printf(b, "\"stream\":%s,\"stream_options\":", r->stream ? "true" : "false");
    if (r->stream && given(r, "stream_options"))
        vt_buf_printf(b, "{\"include_usage\":%s,\"continuous_usage_stats\":%s}",
                      r->include_usage ? "true" : "false",
                      r->continuous_usage ? "true" : "false");
    else
        vt_buf_str(b, "null");
}

static void put_prompt(struct vt_buf *b, const struct api_request *r,
                       const struct api_prompt *p)
{
    char id[17];

    api_new_id(id);
    vt_buf_printf(b, "{\"request_id\":\"%s-%s\",\"token_ids\":[",
                  r->kind == API_CHAT ? "chatcmpl" : "cmpl", id);
    for (uint32_t i = 0; i < p->n; i++) {
        if (i > 0)
            vt_buf_char(b, ',');
        vt_buf_u64(b, p->id[i]);
    }
    vt_buf_str(b, "],\"assistant_tokens_mask\":null,\"token_offsets\":null,"
                  "\"features\":null,\"sampling_params\":");
    put_params(b, r);
    vt_buf_str(b, ",\"model\":");
    json_text(b, r->model, strlen(r->model));
    vt_buf_char(b, ',');
    put_stream(b, r);
    vt_buf_str(b, ",\"cache_salt\":");
    if (r->cache_salt)
        json_text(b, r->cache_salt, strlen(r->cache_salt));
    else
        vt_buf_str(b, "null");
    vt_buf_printf(b,
                  ",\"priority\":%d,\"kv_transfer_params\":null,"
                  "\"ec_transfer_params\":null}",
                  (int)r->priority);
}

static bool may_render(struct plain_ask *q)
{
    struct api_error e;

    if (q->c->api->line == API_LINE_026 || q->c->scale_out)
        return true;
    api_error_set(&e, 403, "PermissionDeniedError", NULL,
                  "Scale-out endpoints are disabled. Restart vllm serve with "
                  "--enable-scale-out to enable them.");
    plain_refuse(q, &e);
    return false;
}

static bool read_request(struct plain_ask *q, struct api_request *r, enum api_kind kind)
{
    struct api_headers headers = {.content_type =
                                      net_header_value(q->r, "content-type")};
    struct api_error e;

    if (!may_render(q))
        return false;
    if (api_read(r, q->c->api, kind, q->r->body, q->r->body_len, &headers, &e))
        return true;
    plain_refuse(q, &e);
    return false;
}

void plain_render_completion(struct plain_ask *q)
{
    struct api_request r = {0};

    if (read_request(q, &r, API_COMPLETIONS)) {
        vt_buf_char(q->body, '[');
        for (uint32_t i = 0; i < r.n_prompts; i++) {
            if (i > 0)
                vt_buf_char(q->body, ',');
            put_prompt(q->body, &r, &r.prompt[i]);
        }
        vt_buf_char(q->body, ']');
    }
    vt_arena_free(&r.arena);
}

void plain_render_chat(struct plain_ask *q)
{
    struct api_request r = {0};

    if (read_request(q, &r, API_CHAT))
        put_prompt(q->body, &r, &r.prompt[0]);
    vt_arena_free(&r.arena);
}

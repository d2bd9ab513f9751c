/* plain_render.c - what the engine would get of a request: its tokens and parameters,
 * as vLLM hands them to a server that only generates. */
#include "http/serve/plain.h"

/* ---- parameters --------------------------------------------------------- */

static const struct vt_node *given(const struct api_request *r, const char *key)
{
    const struct vt_node *v = vt_get(r->body, key);

    return api_given(v) ? v : NULL;
}

/* A field of the request as it is; an absent one not at all. */
static void put_given(struct vt_jw *w, const struct api_request *r, const char *key,
                      const char *as)
{
    const struct vt_node *v = given(r, key);

    if (v)
        vt_jw_node(w, as, v);
}

static void put_limits(struct vt_jw *w, const struct api_request *r)
{
    vt_jw_list(w, "stop");
    for (uint32_t i = 0; i < r->n_stop; i++)
        vt_jw_str(w, NULL, r->stop[i]);
    vt_jw_end(w);
    vt_jw_u32_list(w, "stop_token_ids", r->stop_id, r->n_stop_ids);
    if (r->ignore_eos)
        vt_jw_bool(w, "ignore_eos", true);
    if (r->max_tokens != 16) /* the class's default */
        vt_jw_u64(w, "max_tokens", r->max_tokens);
    if (r->min_tokens > 0)
        vt_jw_u64(w, "min_tokens", r->min_tokens);
    if (r->logprobs >= 0)
        vt_jw_i64(w, "logprobs", r->logprobs);
    if (r->prompt_logprobs >= 0)
        vt_jw_i64(w, "prompt_logprobs", r->prompt_logprobs);
    if (!r->skip_special)
        vt_jw_bool(w, "skip_special_tokens", false);
    if (r->include_stop)
        vt_jw_bool(w, "include_stop_str_in_output", true);
}

static void put_constraint(struct vt_jw *w, const struct api_request *r)
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
    vt_jw_map(w, "structured_outputs");
    for (size_t i = 0; i < VT_COUNT(kind); i++)
        vt_jw_node(w, kind[i].name, r->format == kind[i].format ? r->constraint : NULL);
    vt_jw_printf(w, "json_object", "%s",
                 r->format == API_JSON_OBJECT ? "true" : "null");
    vt_jw_bool(w, "disable_any_whitespace", false);
    vt_jw_bool(w, "disable_additional_properties", false);
    vt_jw_null(w, "whitespace_pattern");
    vt_jw_null(w, "structural_tag");
    vt_jw_null(w, "_backend");
    vt_jw_bool(w, "_backend_was_auto", false);
    vt_jw_end(w);
}

static void put_params(struct vt_jw *w, const struct api_request *r)
{
    static const char *const penalty[] = {"presence_penalty", "frequency_penalty",
                                          "repetition_penalty"};
    int64_t top_k = api_get_int(given(r, "top_k"), 0);

    vt_jw_map(w, "sampling_params");
    if (r->n > 1)
        vt_jw_u64(w, "n", r->n);
    for (size_t i = 0; i < VT_COUNT(penalty); i++)
        vt_jw_f64(w, penalty[i],
                  api_get_real(given(r, penalty[i]), i == VT_COUNT(penalty) - 1));
    vt_jw_f64(w, "temperature", r->temperature);
    if (r->temperature >= 1e-5) { /* else the rest is meaningless and left out */
        vt_jw_f64(w, "top_p", r->top_p);
        if (top_k > 0)
            vt_jw_i64(w, "top_k", top_k);
        vt_jw_f64(w, "min_p", api_get_real(given(r, "min_p"), 0));
    }
    if (r->seeded)
        vt_jw_i64(w, "seed", r->seed);
    put_limits(w, r);
    vt_jw_u64(w, "output_kind", r->stream ? 1 : 2);
    vt_jw_bool(w, "skip_clone", true);
    put_constraint(w, r);
    put_given(w, r, "logit_bias", "logit_bias");
    put_given(w, r, "allowed_token_ids", "allowed_token_ids");
    put_given(w, r, "vllm_xargs", "extra_args");
    if (!given(r, "bad_words"))
        vt_jw_raw(w, "bad_words", "[]", 2);
    put_given(w, r, "bad_words", "bad_words");
    vt_jw_bool(w, "skip_reading_prefix_cache", r->prompt_logprobs >= 0);
    vt_jw_end(w);
}

/* ---- requests ----------------------------------------------------------- */

static void put_prompt(struct vt_jw *w, const struct api_request *r,
                       const struct api_prompt *p)
{
    char id[17];

    api_new_id(id);
    vt_jw_map(w, NULL);
    vt_jw_printf(w, "request_id", "\"%s-%s\"",
                 r->kind == API_CHAT ? "chatcmpl" : "cmpl", id);
    vt_jw_u32_list(w, "token_ids", p->id, p->n);
    vt_jw_null(w, "assistant_tokens_mask");
    vt_jw_null(w, "token_offsets");
    vt_jw_null(w, "features");
    put_params(w, r);
    vt_jw_str(w, "model", r->model);
    vt_jw_bool(w, "stream", r->stream);
    if (r->stream && given(r, "stream_options")) {
        vt_jw_map(w, "stream_options");
        vt_jw_bool(w, "include_usage", r->include_usage);
        vt_jw_bool(w, "continuous_usage_stats", r->continuous_usage);
        vt_jw_end(w);
    } else {
        vt_jw_null(w, "stream_options");
    }
    vt_jw_str(w, "cache_salt", r->cache_salt);
    vt_jw_i64(w, "priority", r->priority);
    vt_jw_null(w, "kv_transfer_params");
    vt_jw_null(w, "ec_transfer_params");
    vt_jw_end(w);
}

/* A chat is one prompt; completions may be many, and are a list. */
static bool render(struct plain_ask *q, enum api_kind kind)
{
    struct api_headers headers = {.content_type =
                                      net_header_value(q->r, "content-type")};
    struct api_request r = {0};
    bool ok;

    if (q->c->api->line == API_LINE_032 && !q->c->config->scale_out)
        return api_error_set(
            &q->e, 403, "PermissionDeniedError", NULL,
            "Scale-out endpoints are disabled. Restart vllm serve with "
            "--enable-scale-out to enable them.");
    ok = api_read(&r, q->c->api, kind, q->r->body, q->r->body_len, &headers, &q->e);
    if (ok && kind == API_COMPLETIONS)
        vt_jw_list(&q->w, NULL);
    for (uint32_t i = 0; ok && i < r.n_prompts; i++)
        put_prompt(&q->w, &r, &r.prompt[i]);
    if (ok && kind == API_COMPLETIONS)
        vt_jw_end(&q->w);
    vt_arena_free(&r.arena);
    return ok;
}

bool plain_render_completion(struct plain_ask *q)
{
    return render(q, API_COMPLETIONS);
}

bool plain_render_chat(struct plain_ask *q)
{
    return render(q, API_CHAT);
}

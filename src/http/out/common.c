/* common.c - the face of out.h, and what all kinds of responses share. */
#include <assert.h>
#include <inttypes.h>

#include "http/out/parts.h"

/* ---- dispatch -------------------------------------------------------- */

static const struct out_writer *writer_of(const struct api_request *r)
{
    static const struct out_writer *const writer[] = {
        [API_COMPLETIONS] = &out_completions,
        [API_CHAT] = &out_chat,
        [API_RESPONSES] = &out_responses,
        [API_MESSAGES] = &out_messages,
    };

    assert(r->kind < VT_COUNT(writer));
    return writer[r->kind];
}

bool out_begin(struct api_request *r, struct out_choice *c)
{
    return !writer_of(r)->begin || writer_of(r)->begin(r, c);
}

void out_tokens(struct vt_buf *b, const struct api_request *r, struct out_choice *c,
                uint32_t upto, struct out_choice *all, uint32_t n_all)
{
    const struct reply *p = c->reply;
    struct out_step s = {.from = c->told, .upto = upto, .all = all, .n_all = n_all};
    size_t from;

    if (upto > p->n || (upto <= c->told && p->end != REPLY_ABORT))
        return;
    s.last = upto == p->n;
    if (!s.last && c->told > 0 && upto - c->told < r->stream_interval)
        return;
    from = out_text_at(p, c->told);
    s.text = p->text + from;
    s.len = out_text_at(p, upto) - from;
    c->told = upto;
    writer_of(r)->step(b, r, c, &s);
}

void out_done(struct vt_buf *b, const struct api_request *r,
              const struct out_choice *all, uint32_t n_all)
{
    writer_of(r)->done(b, r, all, n_all);
}

void out_broken(struct vt_buf *b, const struct api_request *r,
                const struct api_error *e)
{
    struct vt_jw w;

    if (r->kind == API_MESSAGES) { /* which has no [DONE] */
        out_event_begin(&w, b, "error");
        vt_jw_str(&w, "type", "error");
        vt_jw_map(&w, "error");
        vt_jw_str(&w, "type", "internal_error");
        vt_jw_str(&w, "message", e->message);
        vt_jw_end(&w);
        out_event_end(&w);
        return;
    }
    vt_buf_str(b, r->kind == API_RESPONSES ? "event: error\ndata: " : "data: ");
    api_error_json(b, e);
    vt_buf_str(b, r->kind == API_RESPONSES ? "\n\n" : "\n\ndata: [DONE]\n\n");
}

void out_whole(struct vt_buf *b, const struct api_request *r,
               const struct out_choice *all, uint32_t n_all)
{
    struct vt_jw w;

    vt_jw_init(&w, b, &json_body);
    writer_of(r)->whole(&w, r, all, n_all);
    assert(w.depth == 0);
}

/* ---- events ---------------------------------------------------------- */

void out_event_begin(struct vt_jw *w, struct vt_buf *b, const char *name)
{
    if (name) {
        vt_buf_str(b, "event: ");
        vt_buf_str(b, name);
        vt_buf_char(b, '\n');
    }
    vt_buf_str(b, "data: ");
    vt_jw_init(w, b, &json_body);
    vt_jw_map(w, NULL);
}

void out_event_end(struct vt_jw *w)
{
    vt_jw_end(w);
    assert(w->depth == 0);
    vt_buf_str(w->b, "\n\n");
}

/* ---- completions and chats ------------------------------------------- */

static void put_origin(struct vt_jw *w, const struct api_request *r, const char *object)
{
    vt_jw_str(w, "id", r->id);
    vt_jw_str(w, "object", object);
    vt_jw_i64(w, "created", r->created);
    vt_jw_str(w, "model", r->model);
}

static const char *chunk_name(const struct api_request *r)
{
    return r->kind == API_CHAT ? "chat.completion.chunk" : "text_completion";
}

void out_chunk_begin(struct vt_jw *w, struct vt_buf *b, const struct api_request *r,
                     const struct out_choice *c)
{
    out_event_begin(w, b, NULL);
    put_origin(w, r, chunk_name(r));
    vt_jw_list(w, "choices");
    vt_jw_map(w, NULL);
    vt_jw_u64(w, "index", c->index);
}

void out_choice_end(struct vt_jw *w, const struct api_request *r,
                    const struct out_choice *c, uint32_t output)
{
    vt_jw_end(w);
    vt_jw_end(w);
    if (!r->continuous_usage)
        return;
    out_usage_begin(w, r->prompt[c->prompt].n, output);
    if (r->kind == API_CHAT && r->context->line != API_LINE_026)
        vt_jw_null(w, "completion_tokens_details");
    vt_jw_end(w);
}

void out_chunk_end(struct vt_jw *w, const struct api_request *r,
                   const struct out_choice *c, bool last)
{
    out_choice_end(w, r, c, c->told);
    if (last && !r->include_usage)
        vt_jw_str(w, "system_fingerprint", r->context->fingerprint);
    out_event_end(w);
}

bool out_set_head(struct api_request *r, struct out_choice *c, struct vt_buf *text)
{
    c->head = text->failed ? NULL : vt_arena_copy(&r->arena, text->data, text->len);
    c->head_len = (uint32_t)text->len;
    vt_buf_free(text);
    return c->head;
}

bool out_make_head(struct api_request *r, struct out_choice *c, const char *map,
                   const char *key)
{
    struct vt_buf b = {0};
    struct vt_jw w;

    out_chunk_begin(&w, &b, r, c);
    if (map)
        vt_jw_map(&w, map);
    vt_jw_key(&w, key);
    return out_set_head(r, c, &b);
}

void out_stream_done(struct vt_buf *b, const struct api_request *r,
                     const struct out_choice *all, uint32_t n_all)
{
    struct vt_jw w;

    if (r->include_usage) {
        out_event_begin(&w, b, NULL);
        put_origin(&w, r, chunk_name(r));
        vt_jw_raw(&w, "choices", "[]", 2);
        out_usage_begin(&w, out_prompt_tokens(r), out_told(all, n_all));
        if (r->context->prompt_details)
            out_cache_details(&w, r, &all[0], false);
        vt_jw_end(&w);
        vt_jw_str(&w, "system_fingerprint", r->context->fingerprint);
        out_event_end(&w);
    }
    vt_buf_str(b, "data: [DONE]\n\n");
}

void out_whole_begin(struct vt_jw *w, const struct api_request *r, const char *object,
                     void (*put_choice)(struct vt_jw *w, const struct api_request *r,
                                        const struct out_choice *c),
                     const struct out_choice *all, uint32_t n_all)
{
    /* The choices of one prompt share what it found in the cache. */
    const struct out_choice *told = &all[r->kind == API_CHAT ? 0 : n_all - 1];
    uint32_t output = 0;

    vt_jw_map(w, NULL);
    put_origin(w, r, object);
    vt_jw_list(w, "choices");
    for (uint32_t i = 0; i < n_all; i++) {
        vt_jw_map(w, NULL);
        vt_jw_u64(w, "index", all[i].index);
        put_choice(w, r, &all[i]);
        vt_jw_null(w, "routed_experts");
        vt_jw_end(w);
        output += all[i].reply->n;
    }
    vt_jw_end(w);
    vt_jw_null(w, "service_tier");
    vt_jw_str(w, "system_fingerprint", r->context->fingerprint);
    out_usage_begin(w, out_prompt_tokens(r), output);
    if (r->context->prompt_details)
        out_cache_details(w, r, told, true);
    else
        vt_jw_null(w, "prompt_tokens_details");
    if (r->context->line != API_LINE_026)
        vt_jw_null(w, "completion_tokens_details");
    vt_jw_end(w);
}

void out_nulls(struct vt_jw *w, const char *const *key)
{
    for (; *key; key++)
        vt_jw_null(w, *key);
}

void out_whole_end(struct vt_jw *w, const struct api_request *r)
{
    if (r->kv_kept)
        vt_jw_raw(w, "kv_transfer_params", r->kv_kept, strlen(r->kv_kept));
    else
        vt_jw_null(w, "kv_transfer_params");
    out_nulls(w, (const char *const[]){"ec_transfer_params", "metrics", NULL});
    vt_jw_end(w);
}

/* ---- pieces ---------------------------------------------------------- */

void out_id(struct vt_jw *w, const char *key, const char *prefix, const struct reply *p,
            uint64_t what)
{
    vt_jw_printf(w, key, "\"%s%016" PRIx64 "\"", prefix,
                 vt_mix64(vt_hash2(p->key, what)));
}

void out_ids(struct vt_jw *w, const char *key, const uint32_t *id, uint32_t n,
             bool wanted)
{
    if (wanted)
        vt_jw_u32_list(w, key, id, n);
    else
        vt_jw_null(w, key);
}

void out_joined(struct vt_jw *w, const char *key, const char *before, size_t n_before,
                const char *text, size_t len)
{
    struct vt_buf both = {0};

    vt_buf_add(&both, before, n_before);
    vt_buf_add(&both, text, len);
    vt_jw_strn(w, key, both.len > 0 ? both.data : "", both.len);
    w->b->failed |= both.failed;
    vt_buf_free(&both);
}

/* Bytes of a call's arguments that are out after n tokens of the reply. */
static size_t arguments_at(const struct reply_call *c, uint32_t n)
{
    if (n <= c->first)
        return 0;
    return c->arguments_end[n - c->first < c->n ? n - c->first - 1 : c->n - 1];
}

static bool named_at(const struct reply_call *c, uint32_t n)
{
    return c->named < c->n && n > c->first + c->named;
}

struct out_call out_call_in(const struct reply_call *c, const struct out_step *s)
{
    size_t from = arguments_at(c, s->from), upto = arguments_at(c, s->upto);

    return (struct out_call){
        .named = named_at(c, s->upto) && !named_at(c, s->from),
        .arguments = c->arguments + from,
        .len = upto - from,
    };
}

bool out_any_named(const struct reply *p, uint32_t n_tokens)
{
    for (uint32_t i = 0; i < p->n_calls; i++)
        if (named_at(&p->call[i], n_tokens))
            return true;
    return false;
}

/* ---- usage ----------------------------------------------------------- */

uint32_t out_prompt_tokens(const struct api_request *r)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < r->n_prompts; i++)
        n += r->prompt[i].n;
    return n;
}

uint32_t out_told(const struct out_choice *all, uint32_t n_all)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < n_all; i++)
        n += all[i].told;
    return n;
}

void out_usage_begin(struct vt_jw *w, uint32_t prompt, uint32_t output)
{
    vt_jw_map(w, "usage");
    vt_jw_u64(w, "prompt_tokens", prompt);
    vt_jw_u64(w, "total_tokens", (uint64_t)prompt + output);
    vt_jw_u64(w, "completion_tokens", output);
}

/* Completions do not tell how much they wrote into the cache. */
void out_cache_details(struct vt_jw *w, const struct api_request *r,
                       const struct out_choice *c, bool nulls)
{
    vt_jw_map(w, "prompt_tokens_details");
    vt_jw_u64(w, "cached_tokens", c->cached_tokens);
    if (r->kind == API_CHAT)
        vt_jw_u64(w, "created_cache_tokens", c->written_tokens);
    else if (nulls)
        vt_jw_null(w, "created_cache_tokens");
    if (nulls)
        vt_jw_null(w, "multimodal_tokens");
    vt_jw_end(w);
}

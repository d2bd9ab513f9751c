/* common.c - the face of out.h, and what all kinds of responses share. */
#include "http/out/parts.h"

#include <inttypes.h>

/* ---- dispatch -------------------------------------------------------- */

static const struct out_writer *writer_of(const struct api_request *r)
{
    switch (r->kind) {
    case API_CHAT:
        return &out_chat;
    case API_RESPONSES:
        return &out_responses;
    case API_MESSAGES:
        return &out_messages;
    default:
        return &out_completions;
    }
}

bool out_begin(struct api_request *r, struct out_choice *c)
{
    return writer_of(r)->begin(r, c);
}

void out_tokens(struct vt_buf *b, const struct api_request *r, struct out_choice *c,
                uint32_t upto, const struct out_choice *all, uint32_t n_all)
{
    const struct reply *p = c->reply;
    struct out_step s = {.from = c->told, .upto = upto};
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
    writer_of(r)->step(b, r, c, &s, all, n_all);
}

void out_done(struct vt_buf *b, const struct api_request *r,
              const struct out_choice *all, uint32_t n_all)
{
    writer_of(r)->done(b, r, all, n_all);
}

void out_broken(struct vt_buf *b, const struct api_request *r,
                const struct api_error *e)
{
    if (r->kind == API_MESSAGES) { /* which has no [DONE] */
        vt_buf_str(b, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":"
                      "\"internal_error\",\"message\":");
        json_text(b, e->message, strlen(e->message));
        vt_buf_str(b, "}}\n\n");
        return;
    }
    vt_buf_str(b, r->kind == API_RESPONSES ? "event: error\ndata: " : "data: ");
    api_error_json(b, e);
    vt_buf_str(b, r->kind == API_RESPONSES ? "\n\n" : "\n\ndata: [DONE]\n\n");
}

void out_whole(struct vt_buf *b, const struct api_request *r,
               const struct out_choice *all, uint32_t n_all)
{
    writer_of(r)->whole(b, r, all, n_all);
}

/* ---- heads ----------------------------------------------------------- */

void out_open(struct vt_buf *b, const struct api_request *r, const char *object)
{
    vt_buf_str(b, "{\"id\":");
    json_text(b, r->id, strlen(r->id));
    vt_buf_str(b, ",\"object\":\"");
    vt_buf_str(b, object);
    vt_buf_str(b, "\",\"created\":");
    vt_buf_i64(b, r->created);
    vt_buf_str(b, ",\"model\":");
    json_text(b, r->model, strlen(r->model));
}

uint32_t
out_whole_open(struct vt_buf *b, const struct api_request *r, const char *object,
               void (*put_choice)(struct vt_buf *b, const struct api_request *r,
                                  const struct out_choice *c),
               const struct out_choice *all, uint32_t n_all)
{
    uint32_t output = 0;

    out_open(b, r, object);
    vt_buf_str(b, ",\"choices\":[");
    for (uint32_t i = 0; i < n_all; i++) {
        if (i > 0)
            vt_buf_char(b, ',');
        put_choice(b, r, &all[i]);
        output += all[i].reply->n;
    }
    vt_buf_str(b, "],\"service_tier\":null,\"system_fingerprint\":");
    json_text(b, r->context->fingerprint, strlen(r->context->fingerprint));
    vt_buf_str(b, ",\"usage\":");
    return output;
}

bool out_make_head(struct api_request *r, struct out_choice *c, const char *object,
                   const char *more)
{
    struct vt_buf b = {0};

    vt_buf_str(&b, "data: ");
    out_open(&b, r, object);
    vt_buf_str(&b, ",\"choices\":[{\"index\":");
    vt_buf_u64(&b, c->index);
    vt_buf_str(&b, more);
    c->head = b.failed ? NULL : vt_arena_copy(&r->arena, b.data, b.len);
    c->head_len = (uint32_t)b.len;
    vt_buf_free(&b);
    return c->head != NULL;
}

/* ---- pieces ---------------------------------------------------------- */

void out_id(struct vt_buf *b, const char *prefix, const struct reply *p, uint64_t what)
{
    vt_buf_printf(b, "\"%s%016" PRIx64 "\"", prefix, vt_mix64(vt_hash2(p->key, what)));
}

void out_ids(struct vt_buf *b, const uint32_t *id, size_t n)
{
    vt_buf_char(b, '[');
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            vt_buf_char(b, ',');
        vt_buf_u64(b, id[i]);
    }
    vt_buf_char(b, ']');
}

size_t out_chars(const char *text, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
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

static void put_counts(struct vt_buf *b, uint32_t prompt, uint32_t output)
{
    vt_buf_str(b, "{\"prompt_tokens\":");
    vt_buf_u64(b, prompt);
    vt_buf_str(b, ",\"total_tokens\":");
    vt_buf_u64(b, (uint64_t)prompt + output);
    vt_buf_str(b, ",\"completion_tokens\":");
    vt_buf_u64(b, output);
}

/* Completions do not tell how much they wrote into the cache. */
static void put_details(struct vt_buf *b, const struct api_request *r,
                        const struct out_choice *c, bool nulls)
{
    vt_buf_str(b, "{\"cached_tokens\":");
    vt_buf_u64(b, c->cached_tokens);
    if (r->kind == API_CHAT) {
        vt_buf_str(b, ",\"created_cache_tokens\":");
        vt_buf_u64(b, c->written_tokens);
    } else if (nulls) {
        vt_buf_str(b, ",\"created_cache_tokens\":null");
    }
    vt_buf_str(b, nulls ? ",\"multimodal_tokens\":null}" : "}");
}

void out_usage_whole(struct vt_buf *b, const struct api_request *r,
                     const struct out_choice *c, uint32_t prompt, uint32_t output)
{
    put_counts(b, prompt, output);
    vt_buf_str(b, ",\"prompt_tokens_details\":");
    if (r->context->prompt_details)
        put_details(b, r, c, true);
    else
        vt_buf_str(b, "null");
    vt_buf_str(b, r->context->line == API_LINE_026
                      ? "}"
                      : ",\"completion_tokens_details\":null}");
}

void out_usage_chunk(struct vt_buf *b, const struct api_request *r, uint32_t prompt,
                     uint32_t output)
{
    vt_buf_str(b, ",\"usage\":");
    put_counts(b, prompt, output);
    vt_buf_str(b, r->kind == API_CHAT && r->context->line != API_LINE_026
                      ? ",\"completion_tokens_details\":null}"
                      : "}");
}

void out_usage_last(struct vt_buf *b, const struct api_request *r,
                    const struct out_choice *all, uint32_t n_all)
{
    if (!r->include_usage)
        return;
    vt_buf_str(b, "data: ");
    out_open(b, r, r->kind == API_CHAT ? "chat.completion.chunk" : "text_completion");
    vt_buf_str(b, ",\"choices\":[],\"usage\":");
    put_counts(b, out_prompt_tokens(r), out_told(all, n_all));
    if (r->context->prompt_details) {
        vt_buf_str(b, ",\"prompt_tokens_details\":");
        put_details(b, r, &all[0], false);
    }
    vt_buf_str(b, "},\"system_fingerprint\":");
    json_text(b, r->context->fingerprint, strlen(r->context->fingerprint));
    vt_buf_str(b, "}\n\n");
}

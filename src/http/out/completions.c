/* completions.c - /v1/completions, streamed and whole. */
#include "http/out/parts.h"

/* Tokens of this request need nothing but their text. */
enum { PLAIN = 1 };

static const char middle_tail[] = ",\"logprobs\":null,\"finish_reason\":null,"
                                  "\"stop_reason\":null,\"prompt_token_ids\":null,"
                                  "\"token_ids\":null}]}\n\n";

static bool begin(struct api_request *r, struct out_choice *c)
{
    bool plain =
        r->logprobs < 0 && !r->echo && !r->return_token_ids && !r->continuous_usage;

    c->state = plain ? PLAIN : 0;
    return !r->stream || out_make_head(r, c, "text_completion", ",\"text\":");
}

static void put_text(struct vt_buf *b, const struct api_request *r,
                     const struct api_prompt *prompt, const char *text, size_t len)
{
    struct vt_buf both = {0};

    if (!prompt || r->return_token_ids) { /* then the prompt is told as ids */
        json_text(b, text, len);
        return;
    }
    vt_buf_add(&both, prompt->text, prompt->text_len);
    vt_buf_add(&both, text, len);
    json_text(b, both.len > 0 ? both.data : "", both.len);
    b->failed |= both.failed;
    vt_buf_free(&both);
}

static void put_reason(struct vt_buf *b, const struct reply *p, bool last)
{
    vt_buf_str(b, ",\"finish_reason\":");
    if (last) {
        vt_buf_char(b, '"');
        vt_buf_str(b, out_finish(p));
        vt_buf_char(b, '"');
    } else {
        vt_buf_str(b, "null");
    }
    vt_buf_str(b, ",\"stop_reason\":");
    vt_buf_str(b, last ? p->stop_reason : "null");
}

static void put_ids(struct vt_buf *b, const struct api_request *r,
                    const struct out_choice *c, const struct out_step *s)
{
    const struct api_prompt *prompt = &r->prompt[c->prompt];

    vt_buf_str(b, ",\"prompt_token_ids\":");
    if (s->from == 0 && (r->echo || r->return_token_ids))
        out_ids(b, prompt->id, prompt->n);
    else
        vt_buf_str(b, "null");
    vt_buf_str(b, ",\"token_ids\":");
    if (r->return_token_ids)
        out_ids(b, c->reply->token + s->from, s->upto - s->from);
    else
        vt_buf_str(b, "null");
}

static void put_logprobs(struct vt_buf *b, const struct api_request *r,
                         struct out_choice *c, const struct out_step *s, bool echo)
{
    vt_buf_str(b, ",\"logprobs\":");
    if (r->logprobs >= 0)
        out_logprobs_completion(b, r, c, s, echo);
    else
        vt_buf_str(b, "null");
}

/* Of an echo without output the one token that was made is not seen. */
static struct out_step seen(const struct api_request *r, const struct out_step *s)
{
    return r->echo_only ? (struct out_step){0, 0, "", 0, s->last} : *s;
}

static void step(struct vt_buf *b, const struct api_request *r, struct out_choice *c,
                 const struct out_step *s, const struct out_choice *all, uint32_t n_all)
{
    bool echo = r->echo && s->from == 0;
    struct out_step shown = seen(r, s);

    (void)all;
    (void)n_all;
    if ((c->state & PLAIN) && !s->last) {
        out_quick(b, c, s, middle_tail, sizeof(middle_tail) - 1);
        return;
    }
    vt_buf_add(b, c->head, c->head_len);
    put_text(b, r, echo ? &r->prompt[c->prompt] : NULL, shown.text, shown.len);
    put_logprobs(b, r, c, &shown, echo);
    put_reason(b, c->reply, s->last);
    put_ids(b, r, c, s);
    vt_buf_str(b, "}]");
    if (r->continuous_usage)
        out_usage_chunk(b, r, r->prompt[c->prompt].n, c->told);
    if (s->last && !r->include_usage) {
        vt_buf_str(b, ",\"system_fingerprint\":");
        json_text(b, r->context->fingerprint, strlen(r->context->fingerprint));
    }
    vt_buf_str(b, "}\n\n");
}

static void done(struct vt_buf *b, const struct api_request *r,
                 const struct out_choice *all, uint32_t n_all)
{
    out_usage_last(b, r, all, n_all);
    vt_buf_str(b, "data: [DONE]\n\n");
}

static void put_choice(struct vt_buf *b, const struct api_request *r,
                       const struct out_choice *told)
{
    struct out_choice c = *told;
    const struct reply *p = c.reply;
    const struct out_step all = {0, p->n, p->text, p->text_len, true};
    struct out_step shown = seen(r, &all);

    vt_buf_str(b, "{\"index\":");
    vt_buf_u64(b, c.index);
    vt_buf_str(b, ",\"text\":");
    put_text(b, r, r->echo ? &r->prompt[c.prompt] : NULL, shown.text, shown.len);
    put_logprobs(b, r, &c, &shown, r->echo);
    put_reason(b, p, true);
    vt_buf_str(b, ",\"token_ids\":");
    if (r->return_token_ids)
        out_ids(b, p->token, p->n);
    else
        vt_buf_str(b, "null");
    vt_buf_str(b, ",\"prompt_logprobs\":");
    out_logprobs_prompt(b, r, &c);
    vt_buf_str(b, ",\"prompt_token_ids\":");
    if (r->return_token_ids)
        out_ids(b, r->prompt[c.prompt].id, r->prompt[c.prompt].n);
    else
        vt_buf_str(b, "null");
    vt_buf_str(b, ",\"routed_experts\":null}");
}

static void whole(struct vt_buf *b, const struct api_request *r,
                  const struct out_choice *all, uint32_t n_all)
{
    uint32_t output = out_whole_open(b, r, "text_completion", put_choice, all, n_all);

    out_usage_whole(b, r, &all[n_all - 1], out_prompt_tokens(r), output);
    vt_buf_str(b, ",\"kv_transfer_params\":null,\"ec_transfer_params\":null,"
                  "\"metrics\":null}");
}

const struct out_writer out_completions = {begin, step, done, whole};

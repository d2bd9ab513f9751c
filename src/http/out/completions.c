/* completions.c - /v1/completions, streamed and whole. */
#include "http/out/parts.h"

static const char middle_tail[] = ",\"logprobs\":null,\"finish_reason\":null,"
                                  "\"stop_reason\":null,\"prompt_token_ids\":null,"
                                  "\"token_ids\":null}]}\n\n";

static bool completion_begin(struct api_request *r, struct out_choice *c)
{
    c->plain =
        r->logprobs < 0 && !r->echo && !r->return_token_ids && !r->continuous_usage;
    return !r->stream || out_make_head(r, c, NULL, "text");
}

/* Text, log probabilities and how it ended. Of an echo without output the one token
 * that was made is not seen; with ids the prompt is told as such. */
static void put_output(struct vt_jw *w, const struct api_request *r,
                       struct out_choice *c, const struct out_step *s)
{
    const struct api_prompt *prompt = &r->prompt[c->prompt];
    struct out_step shown = *s;
    bool echo = r->echo && s->from == 0;

    if (r->echo_only)
        shown = (struct out_step){.text = ""};
    if (echo && !r->return_token_ids)
        out_joined(w, "text", prompt->text, prompt->text_len, shown.text, shown.len);
    else
        vt_jw_strn(w, "text", shown.text, shown.len);
    if (r->logprobs >= 0)
        out_logprobs_completion(w, r, c, &shown, echo);
    else
        vt_jw_null(w, "logprobs");
    vt_jw_str(w, "finish_reason", s->last ? out_finish(c->reply) : NULL);
    out_stop_reason(w, c->reply, s->last);
}

static void completion_step(struct vt_buf *b, const struct api_request *r,
                            struct out_choice *c, const struct out_step *s)
{
    const struct api_prompt *prompt = &r->prompt[c->prompt];
    struct vt_jw w;

    if (c->plain && !s->last) {
        out_quick(b, c, s, middle_tail, sizeof(middle_tail) - 1);
        return;
    }
    out_chunk_begin(&w, b, r, c);
    put_output(&w, r, c, s);
    out_ids(&w, "prompt_token_ids", prompt->id, prompt->n,
            s->from == 0 && (r->echo || r->return_token_ids));
    out_ids(&w, "token_ids", c->reply->token + s->from, s->upto - s->from,
            r->return_token_ids);
    out_chunk_end(&w, r, c, s->last);
}

static void put_choice(struct vt_jw *w, const struct api_request *r,
                       const struct out_choice *told)
{
    struct out_choice c = *told;
    const struct reply *p = c.reply;
    const struct out_step all = {
        .upto = p->n, .text = p->text, .len = p->text_len, .last = true};

    put_output(w, r, &c, &all);
    out_ids(w, "token_ids", p->token, p->n, r->return_token_ids);
    out_logprobs_prompt(w, r, &c);
    out_ids(w, "prompt_token_ids", r->prompt[c.prompt].id, r->prompt[c.prompt].n,
            r->return_token_ids);
}

static void completion_whole(struct vt_jw *w, const struct api_request *r,
                             const struct out_choice *all, uint32_t n_all)
{
    out_whole_begin(w, r, "text_completion", put_choice, all, n_all);
    out_whole_end(w, r);
}

const struct out_writer out_completions = {completion_begin, completion_step,
                                           out_stream_done, completion_whole};

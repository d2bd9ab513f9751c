/* chat.c - /v1/chat/completions, streamed and whole. */
#include "http/out/parts.h"

static const char middle_tail[] =
    "},\"logprobs\":null,\"finish_reason\":null,\"token_ids\":null}]}\n\n";

static bool chat_begin(struct api_request *r, struct out_choice *c)
{
    c->plain = r->logprobs < 0 && !r->return_token_ids && !r->continuous_usage &&
               !out_parsed(r);
    return !r->stream || out_make_head(r, c, "delta", "content");
}

/* ---- the first chunks ------------------------------------------------ */

/* With "echo", the message that is to be continued. */
static const struct vt_node *continued(const struct api_request *r)
{
    const struct vt_node *list = vt_get(r->body, "messages"), *last, *content;

    if (!r->echo || !list || list->kind != VT_LIST || list->n == 0)
        return NULL;
    last = &list->u.item[list->n - 1];
    content = vt_get(last, "content");
    if (strcmp(api_get_str(vt_get(last, "role"), ""), "assistant") != 0)
        return NULL;
    return content && content->kind == VT_STR && content->n > 0 ? content : NULL;
}

static void put_prompt(struct vt_jw *w, const struct api_request *r)
{
    const struct vt_node *asked = vt_get(r->body, "return_prompt_text");
    struct vt_buf text = {0};

    out_ids(w, "prompt_token_ids", r->prompt[0].id, r->prompt[0].n,
            r->return_token_ids);
    if (!asked || asked->kind != VT_BOOL || !asked->u.boolean) {
        vt_jw_null(w, "prompt_text");
        return;
    }
    vt_tokenizer_decode(r->context->tokenizer, r->prompt[0].id, r->prompt[0].n,
                        VT_KEEP_SPECIAL, &text);
    vt_jw_strn(w, "prompt_text", text.len > 0 ? text.data : "", text.len);
    w->b->failed |= text.failed;
    vt_buf_free(&text);
}

/* A chunk before any token: of the role, or of what is continued. */
static void put_first(struct vt_buf *b, const struct api_request *r,
                      const struct out_choice *c, const struct vt_node *echo)
{
    struct vt_jw w;

    out_chunk_begin(&w, b, r, c);
    vt_jw_map(&w, "delta");
    if (!echo)
        vt_jw_str(&w, "role", "assistant");
    vt_jw_strn(&w, "content", echo ? echo->u.str : "", echo ? echo->n : 0);
    vt_jw_end(&w);
    vt_jw_null(&w, "logprobs");
    vt_jw_null(&w, "finish_reason");
    out_choice_end(&w, r, c, 0);
    if (!echo)
        put_prompt(&w, r);
    out_event_end(&w);
}

/* ---- chunks ---------------------------------------------------------- */

static void put_call_news(struct vt_jw *w, const struct reply *p,
                          const struct out_step *s, uint32_t i)
{
    struct out_call d = out_call_in(&p->call[i], s);

    if (d.named) {
        vt_jw_map(w, NULL);
        vt_jw_str(w, "id", p->call[i].id);
        vt_jw_str(w, "type", "function");
        vt_jw_u64(w, "index", i);
        vt_jw_map(w, "function");
        vt_jw_str(w, "name", p->call[i].name);
        vt_jw_end(w);
        vt_jw_end(w);
    }
    if (d.len > 0) {
        vt_jw_map(w, NULL);
        vt_jw_u64(w, "index", i);
        vt_jw_map(w, "function");
        vt_jw_strn(w, "arguments", d.arguments, d.len);
        vt_jw_end(w);
        vt_jw_end(w);
    }
}

static void chat_step(struct vt_buf *b, const struct api_request *r,
                      struct out_choice *c, const struct out_step *s)
{
    const struct vt_node *echo;
    const struct reply *p = c->reply;
    bool calls = out_spells_calls(p), named = r->tool_choice == API_TOOLS_NAMED;
    bool old = r->context->line == API_LINE_026;
    bool news = !calls && (s->len > 0 || !out_parsed(r)); /* has the parser any? */
    const char *finish = NULL;
    struct vt_jw w;

    if (!c->begun) { /* the first of all */
        for (uint32_t i = 0; i < s->n_all; i++) {
            put_first(b, r, &s->all[i], NULL);
            s->all[i].begun = true;
        }
        echo = continued(r);
        for (uint32_t i = 0; echo && i < s->n_all; i++)
            put_first(b, r, &s->all[i], echo);
    }
    if (c->plain && !s->last) {
        out_quick(b, c, s, middle_tail, sizeof(middle_tail) - 1);
        return;
    }
    for (uint32_t i = 0; calls && i < p->n_calls && !news; i++) {
        struct out_call d = out_call_in(&p->call[i], s);

        news = d.named || d.len > 0;
    }
    if (!news && !s->last && !r->return_token_ids && (r->logprobs < 0 || old))
        return;
    out_chunk_begin(&w, b, r, c);
    vt_jw_map(&w, "delta");
    if (news && !calls)
        vt_jw_strn(&w, "content", s->text, s->len);
    if (news && calls) {
        vt_jw_null(&w, "content");
        vt_jw_list(&w, "tool_calls");
        for (uint32_t i = 0; i < p->n_calls; i++)
            put_call_news(&w, p, s, i);
        vt_jw_end(&w);
    }
    vt_jw_end(&w);
    out_logprobs_chat(&w, r, c, s);
    if (s->last)
        finish = out_any_named(p, p->n) && !named && (old || p->end != REPLY_LENGTH)
                     ? "tool_calls"
                     : out_finish(p);
    vt_jw_str(&w, "finish_reason", finish);
    if (s->last)
        out_stop_reason(&w, p, true);
    out_ids(&w, "token_ids", p->token + s->from, s->upto - s->from,
            r->return_token_ids);
    out_chunk_end(&w, r, c, s->last);
}

/* ---- whole ----------------------------------------------------------- */

static void put_choice(struct vt_jw *w, const struct api_request *r,
                       const struct out_choice *c)
{
    static const char *const nothing[] = {"refusal", "annotations", "audio",
                                          "function_call", NULL};
    const struct reply *p = c->reply;
    const struct out_step all = {
        .upto = p->n, .text = p->text, .len = p->text_len, .last = true};
    const struct vt_node *echo = continued(r);
    bool calls = p->n_calls > 0 && !p->calls_cut;
    /* Calls for "auto" and "required" are a reason of their own; the latter only where
     * the output has not been cut. */
    bool by_calls = (calls && r->tool_choice == API_TOOLS_AUTO) ||
                    (r->tool_choice == API_TOOLS_REQUIRED && r->n_tools > 0 &&
                     p->end != REPLY_LENGTH);

    vt_jw_map(w, "message");
    vt_jw_str(w, "role", "assistant");
    if (calls)
        vt_jw_str(w, "content", r->tool_choice == API_TOOLS_AUTO ? NULL : "");
    else if (echo)
        out_joined(w, "content", echo->u.str, echo->n, p->text, p->text_len);
    else
        vt_jw_strn(w, "content", p->text, p->text_len);
    out_nulls(w, nothing);
    if (calls)
        vt_jw_list(w, "tool_calls");
    for (uint32_t i = 0; calls && i < p->n_calls; i++) {
        vt_jw_map(w, NULL);
        vt_jw_str(w, "id", p->call[i].id);
        vt_jw_str(w, "type", "function");
        vt_jw_map(w, "function");
        vt_jw_str(w, "name", p->call[i].name);
        vt_jw_strn(w, "arguments", p->call[i].arguments, p->call[i].arguments_len);
        vt_jw_end(w);
        vt_jw_end(w);
    }
    if (calls)
        vt_jw_end(w);
    vt_jw_null(w, "reasoning");
    vt_jw_end(w);
    out_logprobs_chat(w, r, c, &all);
    vt_jw_str(w, "finish_reason", by_calls ? "tool_calls" : out_finish(p));
    out_stop_reason(w, p, true);
    out_ids(w, "token_ids", p->token, p->n, r->return_token_ids);
}

static void chat_whole(struct vt_jw *w, const struct api_request *r,
                       const struct out_choice *all, uint32_t n_all)
{
    out_whole_begin(w, r, "chat.completion", put_choice, all, n_all);
    out_logprobs_prompt(w, r, &all[0]);
    put_prompt(w, r);
    out_whole_end(w, r);
}

const struct out_writer out_chat = {chat_begin, chat_step, out_stream_done, chat_whole};

/* chat.c - /v1/chat/completions, streamed and whole. */
#include "http/out/parts.h"

/* Tokens of this choice need nothing but their text. */
enum { PLAIN = 1 };

static const char middle_tail[] =
    "},\"logprobs\":null,\"finish_reason\":null,\"token_ids\":null}]}\n\n";

static bool begin(struct api_request *r, struct out_choice *c)
{
    bool plain = r->logprobs < 0 && !r->return_token_ids && !r->continuous_usage &&
                 !out_parsed(r);

    c->state = plain ? PLAIN : 0;
    return !r->stream ||
           out_make_head(r, c, "chat.completion.chunk", ",\"delta\":{\"content\":");
}

/* The head without `"delta":{"content":`, which every one ends with. */
static void put_head(struct vt_buf *b, const struct out_choice *c)
{
    vt_buf_add(b, c->head, c->head_len - (sizeof("\"delta\":{\"content\":") - 1));
}

/* ---- the first chunks ------------------------------------------------ */

/* With "echo", the message that is to be continued. */
static const struct vt_node *continued(const struct api_request *r)
{
    const struct vt_node *list = vt_get(r->body, "messages"), *last, *role, *content;

    if (!r->echo || !list || list->kind != VT_LIST || list->n == 0)
        return NULL;
    last = &list->u.item[list->n - 1];
    role = vt_get(last, "role");
    content = vt_get(last, "content");
    if (!role || role->kind != VT_STR || strcmp(role->u.str, "assistant") != 0)
        return NULL;
    return content && content->kind == VT_STR && content->n > 0 ? content : NULL;
}

static void put_prompt_text(struct vt_buf *b, const struct api_request *r)
{
    const struct vt_node *asked = vt_get(r->body, "return_prompt_text");
    struct vt_buf text = {0};

    if (!asked || asked->kind != VT_BOOL || !asked->u.boolean) {
        vt_buf_str(b, "null");
        return;
    }
    vt_tokenizer_decode(r->context->tokenizer, r->prompt[0].id, r->prompt[0].n,
                        VT_KEEP_SPECIAL, &text);
    json_text(b, text.len > 0 ? text.data : "", text.len);
    b->failed |= text.failed;
    vt_buf_free(&text);
}

static void put_prompt(struct vt_buf *b, const struct api_request *r)
{
    vt_buf_str(b, ",\"prompt_token_ids\":");
    if (r->return_token_ids)
        out_ids(b, r->prompt[0].id, r->prompt[0].n);
    else
        vt_buf_str(b, "null");
    vt_buf_str(b, ",\"prompt_text\":");
    put_prompt_text(b, r);
}

static void put_roles(struct vt_buf *b, const struct api_request *r,
                      const struct out_choice *all, uint32_t n_all)
{
    const struct vt_node *echo = continued(r);

    for (uint32_t i = 0; i < n_all; i++) {
        put_head(b, &all[i]);
        vt_buf_str(b, "\"delta\":{\"role\":\"assistant\",\"content\":\"\"},"
                      "\"logprobs\":null,\"finish_reason\":null}]");
        if (r->continuous_usage)
            out_usage_chunk(b, r, r->prompt[0].n, 0);
        put_prompt(b, r);
        vt_buf_str(b, "}\n\n");
    }
    for (uint32_t i = 0; echo && i < n_all; i++) {
        vt_buf_add(b, all[i].head, all[i].head_len);
        json_text(b, echo->u.str, echo->n);
        vt_buf_str(b, "},\"logprobs\":null,\"finish_reason\":null}]");
        if (r->continuous_usage)
            out_usage_chunk(b, r, r->prompt[0].n, 0);
        vt_buf_str(b, "}\n\n");
    }
}

/* ---- deltas ---------------------------------------------------------- */

static void put_call_name(struct vt_buf *b, const struct reply_call *c, uint32_t i)
{
    vt_buf_str(b, "{\"id\":");
    json_text(b, c->id, strlen(c->id));
    vt_buf_str(b, ",\"type\":\"function\",\"index\":");
    vt_buf_u64(b, i);
    vt_buf_str(b, ",\"function\":{\"name\":");
    json_text(b, c->name, strlen(c->name));
    vt_buf_str(b, "}}");
}

static void put_call_arguments(struct vt_buf *b, const struct out_call *d, uint32_t i)
{
    vt_buf_str(b, "{\"index\":");
    vt_buf_u64(b, i);
    vt_buf_str(b, ",\"function\":{\"arguments\":");
    json_text(b, d->arguments, d->len);
    vt_buf_str(b, "}}");
}

/* False: the parser has nothing to say. */
static bool put_calls(struct vt_buf *b, const struct reply *p, const struct out_step *s)
{
    const char *before = "\"delta\":{\"content\":null,\"tool_calls\":[";

    for (uint32_t i = 0; i < p->n_calls; i++) {
        struct out_call d = out_call_in(&p->call[i], s);

        if (d.named) {
            vt_buf_str(b, before);
            put_call_name(b, &p->call[i], i);
            before = ",";
        }
        if (d.len > 0) {
            vt_buf_str(b, before);
            put_call_arguments(b, &d, i);
            before = ",";
        }
    }
    if (before[0] != ',')
        return false;
    vt_buf_char(b, ']');
    return true;
}

static bool put_delta(struct vt_buf *b, const struct reply *p, const struct out_step *s,
                      bool parsed)
{
    if (out_spells_calls(p))
        return put_calls(b, p, s);
    if (parsed && s->len == 0)
        return false;
    vt_buf_str(b, "\"delta\":{\"content\":");
    json_text(b, s->text, s->len);
    return true;
}

/* ---- chunks ---------------------------------------------------------- */

static const char *finish_in_stream(const struct api_request *r, const struct reply *p)
{
    bool stops = p->end != REPLY_LENGTH || r->context->line == API_LINE_026;

    if (out_any_named(p, p->n) && r->tool_choice != API_TOOLS_NAMED && stops)
        return "tool_calls";
    return out_finish(p);
}

static void put_tail(struct vt_buf *b, const struct api_request *r,
                     const struct out_choice *c, const struct out_step *s)
{
    const struct reply *p = c->reply;

    vt_buf_str(b, "},\"logprobs\":");
    if (r->logprobs >= 0)
        out_logprobs_chat(b, r, c, s);
    else
        vt_buf_str(b, "null");
    if (s->last)
        vt_buf_printf(b, ",\"finish_reason\":\"%s\",\"stop_reason\":%s",
                      finish_in_stream(r, p), p->stop_reason);
    else
        vt_buf_str(b, ",\"finish_reason\":null");
    vt_buf_str(b, ",\"token_ids\":");
    if (r->return_token_ids)
        out_ids(b, p->token + s->from, s->upto - s->from);
    else
        vt_buf_str(b, "null");
    vt_buf_str(b, "}]");
    if (r->continuous_usage)
        out_usage_chunk(b, r, r->prompt[0].n, c->told);
    if (s->last && !r->include_usage) {
        vt_buf_str(b, ",\"system_fingerprint\":");
        json_text(b, r->context->fingerprint, strlen(r->context->fingerprint));
    }
    vt_buf_str(b, "}\n\n");
}

/* Is a chunk sent although the parser says nothing? */
static bool is_due(const struct api_request *r, const struct out_step *s)
{
    return s->last || r->return_token_ids ||
           (r->logprobs >= 0 && r->context->line != API_LINE_026);
}

static bool is_first(const struct out_choice *all, uint32_t n_all,
                     const struct out_step *s)
{
    return s->from == 0 && out_told(all, n_all) == s->upto;
}

static void step(struct vt_buf *b, const struct api_request *r, struct out_choice *c,
                 const struct out_step *s, const struct out_choice *all, uint32_t n_all)
{
    size_t before;

    if (is_first(all, n_all, s))
        put_roles(b, r, all, n_all);
    if ((c->state & PLAIN) && !s->last) {
        out_quick(b, c, s, middle_tail, sizeof(middle_tail) - 1);
        return;
    }
    before = b->len;
    put_head(b, c);
    if (!put_delta(b, c->reply, s, out_parsed(r))) {
        if (!is_due(r, s)) {
            b->len = before;
            return;
        }
        vt_buf_str(b, "\"delta\":{");
    }
    put_tail(b, r, c, s);
}

static void done(struct vt_buf *b, const struct api_request *r,
                 const struct out_choice *all, uint32_t n_all)
{
    out_usage_last(b, r, all, n_all);
    vt_buf_str(b, "data: [DONE]\n\n");
}

/* ---- whole ----------------------------------------------------------- */

static void put_whole_calls(struct vt_buf *b, const struct reply *p)
{
    vt_buf_str(b, ",\"tool_calls\":[");
    for (uint32_t i = 0; i < p->n_calls; i++) {
        const struct reply_call *c = &p->call[i];

        vt_buf_str(b, i > 0 ? ",{\"id\":" : "{\"id\":");
        json_text(b, c->id, strlen(c->id));
        vt_buf_str(b, ",\"type\":\"function\",\"function\":{\"name\":");
        json_text(b, c->name, strlen(c->name));
        vt_buf_str(b, ",\"arguments\":");
        json_text(b, c->arguments, c->arguments_len);
        vt_buf_str(b, "}}");
    }
    vt_buf_char(b, ']');
}

static void put_content(struct vt_buf *b, const struct api_request *r,
                        const struct reply *p, bool calls)
{
    const struct vt_node *echo = continued(r);
    struct vt_buf both = {0};

    if (calls) {
        vt_buf_str(b, r->tool_choice == API_TOOLS_AUTO ? "null" : "\"\"");
    } else if (echo) {
        vt_buf_add(&both, echo->u.str, echo->n);
        vt_buf_add(&both, p->text, p->text_len);
        json_text(b, both.data, both.len);
        b->failed |= both.failed;
        vt_buf_free(&both);
    } else {
        json_text(b, p->text, p->text_len);
    }
}

/* Calls for "auto" and "required" are a reason of their own; the latter only where the
 * output has not been cut. */
static const char *finish_whole(const struct api_request *r, const struct reply *p,
                                bool calls)
{
    if (calls && r->tool_choice == API_TOOLS_AUTO)
        return "tool_calls";
    if (r->tool_choice == API_TOOLS_REQUIRED && r->n_tools > 0 &&
        p->end != REPLY_LENGTH)
        return "tool_calls";
    return out_finish(p);
}

static void put_choice(struct vt_buf *b, const struct api_request *r,
                       const struct out_choice *c)
{
    const struct reply *p = c->reply;
    const struct out_step all = {0, p->n, p->text, p->text_len, true};
    bool calls = p->n_calls > 0 && !p->calls_cut;

    vt_buf_str(b, "{\"index\":");
    vt_buf_u64(b, c->index);
    vt_buf_str(b, ",\"message\":{\"role\":\"assistant\",\"content\":");
    put_content(b, r, p, calls);
    vt_buf_str(b, ",\"refusal\":null,\"annotations\":null,\"audio\":null,"
                  "\"function_call\":null");
    if (calls)
        put_whole_calls(b, p);
    vt_buf_str(b, ",\"reasoning\":null},\"logprobs\":");
    if (r->logprobs >= 0)
        out_logprobs_chat(b, r, c, &all);
    else
        vt_buf_str(b, "null");
    vt_buf_printf(b, ",\"finish_reason\":\"%s\",\"stop_reason\":%s,\"token_ids\":",
                  finish_whole(r, p, calls), p->stop_reason);
    if (r->return_token_ids)
        out_ids(b, p->token, p->n);
    else
        vt_buf_str(b, "null");
    vt_buf_str(b, ",\"routed_experts\":null}");
}

static void whole(struct vt_buf *b, const struct api_request *r,
                  const struct out_choice *all, uint32_t n_all)
{
    uint32_t output = out_whole_open(b, r, "chat.completion", put_choice, all, n_all);

    out_usage_whole(b, r, &all[0], out_prompt_tokens(r), output);
    vt_buf_str(b, ",\"prompt_logprobs\":");
    out_logprobs_prompt(b, r, &all[0]);
    put_prompt(b, r);
    vt_buf_str(b, ",\"kv_transfer_params\":null,\"ec_transfer_params\":null,"
                  "\"metrics\":null}");
}

const struct out_writer out_chat = {begin, step, done, whole};

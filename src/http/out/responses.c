/* responses.c - /v1/responses, streamed and whole.
 *
 * vLLM sends the first two events when the request has come; here they leave with the
 * first token, as all of a stream's first events do. */
#include "http/out/parts.h"

/* The head is the message's id, which every event of it has. */
static bool responses_begin(struct api_request *r, struct out_choice *c)
{
    struct vt_buf b = {0};
    struct vt_jw w;

    vt_jw_init(&w, &b, &json_body);
    out_response_message_id(&w, NULL, r, c);
    return out_set_head(r, c, &b);
}

/* ---- events ----------------------------------------------------------- */

struct stream {
    struct vt_buf *b;
    const struct api_request *r;
    struct out_choice *c;
    struct out_items *k; /* the choice's */
    struct vt_jw w;      /* of the event that is being written */
    const char *type;
};

static struct vt_jw *event_begin(struct stream *s, const char *type)
{
    out_event_begin(&s->w, s->b, type);
    s->type = type;
    return &s->w;
}

/* Behind the item, or what is in it. */
static void put_output_index(struct stream *s)
{
    vt_jw_u64(&s->w, "output_index", s->k->done);
}

static void event_end(struct stream *s)
{
    vt_jw_u64(&s->w, "sequence_number", s->k->number++);
    vt_jw_str(&s->w, "type", s->type);
    out_event_end(&s->w);
}

static void put_response(struct stream *s, const char *type, enum out_status status)
{
    out_response_object(event_begin(s, type), "response", s->r, s->c, status);
    event_end(s);
}

/* ---- the message ------------------------------------------------------ */

static void put_message_id(struct stream *s)
{
    vt_jw_u64(&s->w, "content_index", 0);
    vt_jw_raw(&s->w, "item_id", s->c->head, s->c->head_len);
}

static void open_message(struct stream *s)
{
    struct vt_jw *w = event_begin(s, "response.output_item.added");

    out_response_message(w, "item", s->r, s->c, OUT_STREAMED, false);
    vt_jw_end(w);
    put_output_index(s);
    event_end(s);

    event_begin(s, "response.content_part.added");
    put_message_id(s);
    put_output_index(s);
    vt_jw_map(w, "part");
    vt_jw_raw(w, "annotations", "[]", 2);
    vt_jw_str(w, "text", "");
    vt_jw_str(w, "type", "output_text");
    vt_jw_raw(w, "logprobs", "[]", 2);
    vt_jw_end(w);
    event_end(s);
    s->k->open = OUT_MESSAGE;
}

static void close_message(struct stream *s)
{
    const struct reply *p = s->c->reply;
    struct vt_jw *w = event_begin(s, "response.output_text.done");

    put_message_id(s);
    vt_jw_raw(w, "logprobs", "[]", 2);
    put_output_index(s);
    vt_jw_u64(w, "sequence_number", s->k->number++);
    vt_jw_strn(w, "text", p->text, p->text_len);
    vt_jw_str(w, "type", s->type);
    out_event_end(w);

    event_begin(s, "response.content_part.done");
    put_message_id(s);
    put_output_index(s);
    out_response_part(w, "part", s->r, s->c, OUT_STREAMED);
    event_end(s);

    out_response_message(event_begin(s, "response.output_item.done"), "item", s->r,
                         s->c, OUT_STREAMED, true);
    if (s->r->context->line == API_LINE_026)
        vt_jw_raw(w, "summary", "[]", 2);
    vt_jw_end(w);
    put_output_index(s);
    event_end(s);
}

/* ---- calls ------------------------------------------------------------ */

static void put_item_event(struct stream *s, const char *type, bool done)
{
    out_response_call(event_begin(s, type), "item", s->r, s->c, s->k->call,
                      OUT_STREAMED, done);
    put_output_index(s);
    event_end(s);
}

static void close_item(struct stream *s)
{
    if (s->k->open == OUT_NOTHING)
        return;
    if (s->k->open == OUT_MESSAGE) {
        close_message(s);
    } else {
        const struct reply_call *call = &s->c->reply->call[s->k->call];
        struct vt_jw *w = event_begin(s, "response.function_call_arguments.done");

        vt_jw_strn(w, "arguments", call->arguments, call->arguments_len);
        out_response_call_id(w, "item_id", s->r, s->c, s->k->call);
        put_output_index(s);
        vt_jw_u64(w, "sequence_number", s->k->number++);
        vt_jw_str(w, "type", s->type);
        vt_jw_str(w, "name", call->name);
        out_event_end(w);
        put_item_event(s, "response.output_item.done", true);
    }
    s->k->open = OUT_NOTHING;
    s->k->done++;
}

/* ---- the whole way ---------------------------------------------------- */

static void responses_step(struct vt_buf *b, const struct api_request *r,
                           struct out_choice *c, const struct out_step *t)
{
    struct stream s = {.b = b, .r = r, .c = c, .k = &c->items};
    const struct reply *p = c->reply;

    if (t->from == 0) {
        put_response(&s, "response.created", OUT_IN_PROGRESS);
        put_response(&s, "response.in_progress", OUT_IN_PROGRESS);
    }
    if (!out_spells_calls(p) && t->len > 0) {
        if (s.k->open != OUT_MESSAGE)
            open_message(&s);
        event_begin(&s, "response.output_text.delta");
        vt_jw_u64(&s.w, "content_index", 0);
        vt_jw_strn(&s.w, "delta", t->text, t->len);
        vt_jw_raw(&s.w, "item_id", c->head, c->head_len);
        if (r->logprobs >= 0)
            out_logprobs_list(&s.w, "logprobs", r, c, t, OUT_FORM_DELTA, false);
        else
            vt_jw_raw(&s.w, "logprobs", "[]", 2);
        put_output_index(&s);
        event_end(&s);
    }
    for (uint32_t i = 0; i < p->n_calls; i++) {
        struct out_call d = out_call_in(&p->call[i], t);

        if (d.named) {
            close_item(&s);
            s.k->open = OUT_CALL;
            s.k->call = i;
            put_item_event(&s, "response.output_item.added", false);
        }
        if (d.len == 0)
            continue;
        event_begin(&s, "response.function_call_arguments.delta");
        vt_jw_strn(&s.w, "delta", d.arguments, d.len);
        out_response_call_id(&s.w, "item_id", r, c, i);
        put_output_index(&s);
        event_end(&s);
    }
}

static enum out_status status_of(const struct reply *p)
{
    return p->end == REPLY_LENGTH ? OUT_INCOMPLETE : OUT_COMPLETED;
}

static void responses_done(struct vt_buf *b, const struct api_request *r,
                           const struct out_choice *all, uint32_t n_all)
{
    struct out_choice c = all[0];
    struct stream s = {.b = b, .r = r, .c = &c, .k = &c.items};

    (void)n_all;
    close_item(&s);
    put_response(&s, "response.completed", status_of(c.reply));
}

static void responses_whole(struct vt_jw *w, const struct api_request *r,
                            const struct out_choice *all, uint32_t n_all)
{
    (void)n_all;
    out_response_object(w, NULL, r, &all[0], status_of(all[0].reply));
}

const struct out_writer out_responses = {responses_begin, responses_step,
                                         responses_done, responses_whole};

/* responses.c - /v1/responses, streamed and whole.
 *
 * vLLM sends the first two events when the request has come; here they leave with the
 * first token, as all of a stream's first events do. */
#include "http/out/parts.h"

/* The state of a stream: number of the next event, how many items are done, what is
 * open. */
enum { NOTHING, MESSAGE, CALL };
struct items {
    uint32_t number;
    uint32_t done;
    uint32_t open;
    uint32_t call; /* the one that is open */
};

static struct items unpack(uint64_t state)
{
    return (struct items){(uint32_t)state, (uint32_t)(state >> 32 & 0xfff),
                          (uint32_t)(state >> 44 & 0xf),
                          (uint32_t)(state >> 48 & 0xffff)};
}

static uint64_t pack(struct items k)
{
    return k.number | (uint64_t)k.done << 32 | (uint64_t)k.open << 44 |
           (uint64_t)k.call << 48;
}

static bool begin(struct api_request *r, struct out_choice *c)
{
    struct vt_buf b = {0};

    c->state = 0;
    vt_buf_str(&b, ",\"item_id\":");
    out_response_message_id(&b, r, c);
    vt_buf_str(&b, ",\"logprobs\":");
    c->head = b.failed ? NULL : vt_arena_copy(&r->arena, b.data, b.len);
    c->head_len = (uint32_t)b.len;
    vt_buf_free(&b);
    return c->head != NULL;
}

/* ---- events ----------------------------------------------------------- */

struct stream {
    struct vt_buf *b;
    const struct api_request *r;
    struct out_choice *c;
    struct items k;
};

static void put_open(struct stream *s, const char *type)
{
    vt_buf_str(s->b, "event: ");
    vt_buf_str(s->b, type);
    vt_buf_str(s->b, "\ndata: {");
}

/* Of an item, and of what is in it. */
static void put_output_index(struct stream *s)
{
    vt_buf_str(s->b, ",\"output_index\":");
    vt_buf_u64(s->b, s->k.done);
}

static void put_number(struct stream *s)
{
    vt_buf_str(s->b, ",\"sequence_number\":");
    vt_buf_u64(s->b, s->k.number++);
}

static void put_type(struct stream *s, const char *type)
{
    vt_buf_str(s->b, ",\"type\":\"");
    vt_buf_str(s->b, type);
    vt_buf_char(s->b, '"');
}

static void put_close(struct stream *s, const char *type)
{
    put_number(s);
    put_type(s, type);
    vt_buf_str(s->b, "}\n\n");
}

static void put_response(struct stream *s, const char *type, enum out_status status)
{
    put_open(s, type);
    vt_buf_str(s->b, "\"response\":");
    out_response_object(s->b, s->r, s->c, status);
    put_close(s, type);
}

/* ---- the message ------------------------------------------------------ */

static void put_message_id(struct stream *s)
{
    vt_buf_str(s->b, "\"content_index\":0,\"item_id\":");
    out_response_message_id(s->b, s->r, s->c);
}

static void open_message(struct stream *s)
{
    put_open(s, "response.output_item.added");
    vt_buf_str(s->b, "\"item\":{\"id\":");
    out_response_message_id(s->b, s->r, s->c);
    vt_buf_str(s->b, ",\"content\":[],\"role\":\"assistant\",\"status\":"
                     "\"in_progress\",\"type\":\"message\",\"phase\":null}");
    put_output_index(s);
    put_close(s, "response.output_item.added");
    put_open(s, "response.content_part.added");
    put_message_id(s);
    put_output_index(s);
    vt_buf_str(s->b, ",\"part\":{\"annotations\":[],\"text\":\"\",\"type\":"
                     "\"output_text\",\"logprobs\":[]}");
    put_close(s, "response.content_part.added");
    s->k.open = MESSAGE;
}

static void put_text(struct stream *s, const struct out_step *step)
{
    if (step->len == 0)
        return;
    if (s->k.open != MESSAGE)
        open_message(s);
    put_open(s, "response.output_text.delta");
    vt_buf_str(s->b, "\"content_index\":0,\"delta\":");
    json_text(s->b, step->text, step->len);
    vt_buf_add(s->b, s->c->head, s->c->head_len);
    if (s->r->logprobs >= 0)
        out_logprobs_delta(s->b, s->r, s->c, step);
    else
        vt_buf_str(s->b, "[]");
    put_output_index(s);
    put_close(s, "response.output_text.delta");
}

static void close_message(struct stream *s)
{
    const struct reply *p = s->c->reply;

    put_open(s, "response.output_text.done");
    put_message_id(s);
    vt_buf_str(s->b, ",\"logprobs\":[]");
    put_output_index(s);
    put_number(s);
    vt_buf_str(s->b, ",\"text\":");
    json_text(s->b, p->text, p->text_len);
    put_type(s, "response.output_text.done");
    vt_buf_str(s->b, "}\n\n");
    put_open(s, "response.content_part.done");
    put_message_id(s);
    put_output_index(s);
    vt_buf_str(s->b, ",\"part\":");
    out_response_part(s->b, s->r, s->c, OUT_STREAMED);
    put_close(s, "response.content_part.done");
    put_open(s, "response.output_item.done");
    vt_buf_str(s->b, "\"item\":");
    out_response_message(s->b, s->r, s->c, OUT_STREAMED);
    vt_buf_str(s->b, s->r->context->line == API_LINE_026 ? ",\"summary\":[]}" : "}");
    put_output_index(s);
    put_close(s, "response.output_item.done");
}

/* ---- calls ------------------------------------------------------------ */

static void put_item_event(struct stream *s, const char *type, bool done)
{
    put_open(s, type);
    vt_buf_str(s->b, "\"item\":");
    out_response_call(s->b, s->r, s->c, s->k.call, OUT_STREAMED, done);
    put_output_index(s);
    put_close(s, type);
}

static void close_call(struct stream *s)
{
    const struct reply_call *call = &s->c->reply->call[s->k.call];

    put_open(s, "response.function_call_arguments.done");
    vt_buf_str(s->b, "\"arguments\":");
    json_text(s->b, call->arguments, call->arguments_len);
    vt_buf_str(s->b, ",\"item_id\":");
    out_response_call_id(s->b, s->r, s->c, s->k.call);
    put_output_index(s);
    put_number(s);
    put_type(s, "response.function_call_arguments.done");
    vt_buf_str(s->b, ",\"name\":");
    json_text(s->b, call->name, strlen(call->name));
    vt_buf_str(s->b, "}\n\n");
    put_item_event(s, "response.output_item.done", true);
}

static void close_item(struct stream *s)
{
    if (s->k.open == MESSAGE)
        close_message(s);
    else if (s->k.open == CALL)
        close_call(s);
    else
        return;
    s->k.open = NOTHING;
    s->k.done++;
}

static void put_call(struct stream *s, uint32_t i, const struct out_call *d)
{
    if (d->named) {
        close_item(s);
        s->k.open = CALL;
        s->k.call = i;
        put_item_event(s, "response.output_item.added", false);
    }
    if (d->len == 0)
        return;
    put_open(s, "response.function_call_arguments.delta");
    vt_buf_str(s->b, "\"delta\":");
    json_text(s->b, d->arguments, d->len);
    vt_buf_str(s->b, ",\"item_id\":");
    out_response_call_id(s->b, s->r, s->c, i);
    put_output_index(s);
    put_close(s, "response.function_call_arguments.delta");
}

/* ---- the whole way ---------------------------------------------------- */

static void step(struct vt_buf *b, const struct api_request *r, struct out_choice *c,
                 const struct out_step *t, const struct out_choice *all, uint32_t n_all)
{
    struct stream s = {b, r, c, unpack(c->state)};
    const struct reply *p = c->reply;

    (void)all;
    (void)n_all;
    if (t->from == 0) {
        put_response(&s, "response.created", OUT_IN_PROGRESS);
        put_response(&s, "response.in_progress", OUT_IN_PROGRESS);
    }
    if (!out_spells_calls(p))
        put_text(&s, t);
    for (uint32_t i = 0; i < p->n_calls; i++) {
        struct out_call d = out_call_in(&p->call[i], t);

        put_call(&s, i, &d);
    }
    c->state = pack(s.k);
}

static enum out_status status_of(const struct reply *p)
{
    return p->end == REPLY_LENGTH ? OUT_INCOMPLETE : OUT_COMPLETED;
}

static void done(struct vt_buf *b, const struct api_request *r,
                 const struct out_choice *all, uint32_t n_all)
{
    struct out_choice c = all[0];
    struct stream s = {b, r, &c, unpack(c.state)};

    (void)n_all;
    close_item(&s);
    put_response(&s, "response.completed", status_of(c.reply));
}

static void whole(struct vt_buf *b, const struct api_request *r,
                  const struct out_choice *all, uint32_t n_all)
{
    (void)n_all;
    out_response_object(b, r, &all[0], status_of(all[0].reply));
}

const struct out_writer out_responses = {begin, step, done, whole};

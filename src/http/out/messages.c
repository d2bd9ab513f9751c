/* messages.c - /v1/messages, streamed and whole. */
#include "http/out/parts.h"

/* The state of a stream: how many blocks are closed, and which is open. */
enum { NOTHING, TEXT, CALL };
struct blocks {
    uint32_t index;
    uint32_t open;
    uint32_t call; /* the one that is open */
};

static struct blocks unpack(uint64_t state)
{
    return (struct blocks){(uint32_t)(state & 0xffff), (uint32_t)(state >> 16 & 0xff),
                           (uint32_t)(state >> 24 & 0xffff)};
}

static uint64_t pack(struct blocks k)
{
    return k.index | (uint64_t)k.open << 16 | (uint64_t)k.call << 24;
}

static bool begin(struct api_request *r, struct out_choice *c)
{
    (void)r;
    c->state = 0;
    return true;
}

/* Cached tokens are told apart from the input only where usage has details. */
static void put_usage(struct vt_buf *b, const struct api_request *r,
                      const struct out_choice *c, uint32_t output, bool details)
{
    uint32_t input = r->prompt[c->prompt].n;
    uint32_t cached = c->cached_tokens + c->written_tokens;

    if (details)
        input = cached < input ? input - cached : 0;
    vt_buf_printf(b, "\"usage\":{\"input_tokens\":%u,\"output_tokens\":%u", input,
                  output);
    if (details)
        vt_buf_printf(b,
                      ",\"cache_creation_input_tokens\":%u,"
                      "\"cache_read_input_tokens\":%u",
                      c->written_tokens, c->cached_tokens);
    vt_buf_char(b, '}');
}

/* ---- events ---------------------------------------------------------- */

static void put_start(struct vt_buf *b, const struct api_request *r,
                      const struct out_choice *c)
{
    vt_buf_str(b, "event: message_start\ndata: {\"type\":\"message_start\","
                  "\"message\":{\"id\":");
    json_text(b, r->id, strlen(r->id));
    vt_buf_str(b, ",\"type\":\"message\",\"role\":\"assistant\",\"content\":[],"
                  "\"model\":");
    json_text(b, r->model, strlen(r->model));
    vt_buf_str(b, ",\"stop_reason\":null,\"stop_sequence\":null,");
    put_usage(b, r, c, 0, false);
    vt_buf_str(b, "}}\n\n");
}

static void close_block(struct vt_buf *b, struct blocks *k)
{
    if (k->open == NOTHING)
        return;
    vt_buf_printf(b,
                  "event: content_block_stop\ndata: {\"type\":\"content_block_stop\","
                  "\"index\":%u}\n\n",
                  k->index);
    k->index++;
    k->open = NOTHING;
}

static void open_block(struct vt_buf *b, struct blocks *k, uint32_t kind)
{
    close_block(b, k);
    vt_buf_str(b, "event: content_block_start\ndata: {\"type\":"
                  "\"content_block_start\",\"content_block\":{\"type\":");
    k->open = kind;
}

static void put_index(struct vt_buf *b, const struct blocks *k)
{
    vt_buf_str(b, "},\"index\":");
    vt_buf_u64(b, k->index);
    vt_buf_str(b, "}\n\n");
}

static void put_delta(struct vt_buf *b, const struct blocks *k, const char *kind,
                      const char *text, size_t len)
{
    vt_buf_str(b, "event: content_block_delta\ndata: {\"type\":"
                  "\"content_block_delta\",\"delta\":{\"type\":");
    vt_buf_str(b, kind);
    json_text(b, text, len);
    put_index(b, k);
}

static void put_text(struct vt_buf *b, struct blocks *k, const struct out_step *s)
{
    if (s->len == 0)
        return;
    if (k->open != TEXT) {
        open_block(b, k, TEXT);
        vt_buf_str(b, "\"text\",\"text\":\"\"");
        put_index(b, k);
    }
    put_delta(b, k, "\"text_delta\",\"text\":", s->text, s->len);
}

static void put_call(struct vt_buf *b, struct blocks *k, const struct reply_call *c,
                     const struct out_call *d)
{
    if (d->named) {
        open_block(b, k, CALL);
        vt_buf_str(b, "\"tool_use\",\"id\":");
        json_text(b, c->id, strlen(c->id));
        vt_buf_str(b, ",\"name\":");
        json_text(b, c->name, strlen(c->name));
        vt_buf_str(b, ",\"input\":{}");
        put_index(b, k);
    }
    if (d->len > 0)
        put_delta(b, k, "\"input_json_delta\",\"partial_json\":", d->arguments, d->len);
}

static void step(struct vt_buf *b, const struct api_request *r, struct out_choice *c,
                 const struct out_step *s, const struct out_choice *all, uint32_t n_all)
{
    const struct reply *p = c->reply;
    struct blocks k = unpack(c->state);

    (void)all;
    (void)n_all;
    if (s->from == 0)
        put_start(b, r, c);
    if (!out_spells_calls(p))
        put_text(b, &k, s);
    for (uint32_t i = 0; i < p->n_calls; i++) {
        struct out_call d = out_call_in(&p->call[i], s);

        put_call(b, &k, &p->call[i], &d);
    }
    c->state = pack(k);
}

/* ---- the end --------------------------------------------------------- */

/* Later lines tell stop strings; earlier ones know only how the output finished. */
static const char *stop_reason(const struct api_request *r, const struct reply *p,
                               bool called, bool complete)
{
    if (r->context->line == API_LINE_026) {
        bool tools = called && r->tool_choice != API_TOOLS_NAMED;

        return tools ? "tool_use" : p->end == REPLY_LENGTH ? "max_tokens" : "end_turn";
    }
    if (p->end == REPLY_LENGTH)
        return "max_tokens";
    if (complete)
        return "tool_use";
    if (p->end == REPLY_STOP_STRING)
        return "stop_sequence";
    return called ? "tool_use" : "end_turn";
}

static bool tells_sequence(const char *reason)
{
    return strcmp(reason, "stop_sequence") == 0;
}

static void done(struct vt_buf *b, const struct api_request *r,
                 const struct out_choice *all, uint32_t n_all)
{
    const struct reply *p = all[0].reply;
    bool called = out_any_named(p, p->n);
    const char *reason = stop_reason(r, p, called, called && !p->calls_cut);
    struct blocks k = unpack(all[0].state);

    (void)n_all;
    close_block(b, &k);
    vt_buf_printf(b,
                  "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":"
                  "{\"stop_reason\":\"%s\"",
                  reason);
    if (r->context->line != API_LINE_026)
        vt_buf_printf(b, ",\"stop_sequence\":%s",
                      tells_sequence(reason) ? p->stop_reason : "null");
    vt_buf_str(b, "},");
    put_usage(b, r, &all[0], all[0].told, r->context->prompt_details);
    vt_buf_str(b, "}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
}

/* ---- whole ------------------------------------------------------------ */

/* What is an argument's text becomes JSON again, written tightly. */
static void put_input(struct vt_buf *b, const struct reply_call *c)
{
    struct vt_arena arena = {0};
    const struct vt_node *tree;

    if (vt_json_parse(&arena, c->arguments, c->arguments_len, 1, &tree, NULL) == VT_OK)
        json_node(b, tree, JSON_TIGHT);
    else
        vt_buf_str(b, "{}");
    vt_arena_free(&arena);
}

static void put_content(struct vt_buf *b, const struct reply *p, bool calls)
{
    vt_buf_str(b, "\"content\":[");
    for (uint32_t i = 0; calls && i < p->n_calls; i++) {
        const struct reply_call *c = &p->call[i];

        vt_buf_str(b, i > 0 ? ",{\"type\":\"tool_use\",\"id\":"
                            : "{\"type\":\"tool_use\",\"id\":");
        json_text(b, c->id, strlen(c->id));
        vt_buf_str(b, ",\"name\":");
        json_text(b, c->name, strlen(c->name));
        vt_buf_str(b, ",\"input\":");
        put_input(b, c);
        vt_buf_char(b, '}');
    }
    if (!calls) {
        vt_buf_str(b, "{\"type\":\"text\",\"text\":");
        json_text(b, p->text, p->text_len);
        vt_buf_char(b, '}');
    }
    vt_buf_char(b, ']');
}

static void whole(struct vt_buf *b, const struct api_request *r,
                  const struct out_choice *all, uint32_t n_all)
{
    const struct reply *p = all[0].reply;
    bool calls = p->n_calls > 0 && !p->calls_cut;
    const char *reason = stop_reason(r, p, calls, calls);

    (void)n_all;
    vt_buf_str(b, "{\"id\":");
    json_text(b, r->id, strlen(r->id));
    vt_buf_str(b, ",\"type\":\"message\",\"role\":\"assistant\",");
    put_content(b, p, calls);
    vt_buf_str(b, ",\"model\":");
    json_text(b, r->model, strlen(r->model));
    vt_buf_printf(b, ",\"stop_reason\":\"%s\",", reason);
    if (tells_sequence(reason))
        vt_buf_printf(b, "\"stop_sequence\":%s,", p->stop_reason);
    put_usage(b, r, &all[0], p->n, r->context->prompt_details);
    vt_buf_char(b, '}');
}

const struct out_writer out_messages = {begin, step, done, whole};

/* messages.c - /v1/messages, streamed and whole. */
#include "http/out/parts.h"

/* Cached tokens are told apart from the input only where usage has details. */
static void put_usage(struct vt_jw *w, const struct api_request *r,
                      const struct out_choice *c, uint32_t output, bool details)
{
    uint32_t input = r->prompt[c->prompt].n;
    uint32_t cached = c->cached_tokens + c->written_tokens;

    if (details)
        input = cached < input ? input - cached : 0;
    vt_jw_map(w, "usage");
    vt_jw_u64(w, "input_tokens", input);
    vt_jw_u64(w, "output_tokens", output);
    if (details) {
        vt_jw_u64(w, "cache_creation_input_tokens", c->written_tokens);
        vt_jw_u64(w, "cache_read_input_tokens", c->cached_tokens);
    }
    vt_jw_end(w);
}

/* ---- events ---------------------------------------------------------- */

static void typed_event(struct vt_jw *w, struct vt_buf *b, const char *type)
{
    out_event_begin(w, b, type);
    vt_jw_str(w, "type", type);
}

static void put_start(struct vt_buf *b, const struct api_request *r,
                      const struct out_choice *c)
{
    struct vt_jw w;

    typed_event(&w, b, "message_start");
    vt_jw_map(&w, "message");
    vt_jw_str(&w, "id", r->id);
    vt_jw_str(&w, "type", "message");
    vt_jw_str(&w, "role", "assistant");
    vt_jw_raw(&w, "content", "[]", 2);
    vt_jw_str(&w, "model", r->model);
    vt_jw_null(&w, "stop_reason");
    vt_jw_null(&w, "stop_sequence");
    put_usage(&w, r, c, 0, false);
    vt_jw_end(&w);
    out_event_end(&w);
}

/* Ends the map of what a block begins with, or of what it grows by. */
static void end_indexed(struct vt_jw *w, const struct out_items *k)
{
    vt_jw_end(w);
    vt_jw_u64(w, "index", k->done);
    out_event_end(w);
}

static void close_block(struct vt_buf *b, struct out_items *k)
{
    struct vt_jw w;

    if (k->open == OUT_NOTHING)
        return;
    typed_event(&w, b, "content_block_stop");
    vt_jw_u64(&w, "index", k->done++);
    out_event_end(&w);
    k->open = OUT_NOTHING;
}

static void open_block(struct vt_jw *w, struct vt_buf *b, struct out_items *k,
                       uint32_t kind)
{
    close_block(b, k);
    typed_event(w, b, "content_block_start");
    vt_jw_map(w, "content_block");
    vt_jw_str(w, "type", kind == OUT_MESSAGE ? "text" : "tool_use");
    k->open = kind;
}

static void put_delta(struct vt_buf *b, const struct out_items *k, const char *type,
                      const char *key, const char *text, size_t len)
{
    struct vt_jw w;

    typed_event(&w, b, "content_block_delta");
    vt_jw_map(&w, "delta");
    vt_jw_str(&w, "type", type);
    vt_jw_strn(&w, key, text, len);
    end_indexed(&w, k);
}

static void messages_step(struct vt_buf *b, const struct api_request *r,
                          struct out_choice *c, const struct out_step *s)
{
    const struct reply *p = c->reply;
    struct out_items *k = &c->items;
    struct vt_jw w;

    if (s->from == 0)
        put_start(b, r, c);
    if (!out_spells_calls(p) && s->len > 0) {
        if (k->open != OUT_MESSAGE) {
            open_block(&w, b, k, OUT_MESSAGE);
            vt_jw_str(&w, "text", "");
            end_indexed(&w, k);
        }
        put_delta(b, k, "text_delta", "text", s->text, s->len);
    }
    for (uint32_t i = 0; i < p->n_calls; i++) {
        struct out_call d = out_call_in(&p->call[i], s);

        if (d.named) {
            open_block(&w, b, k, OUT_CALL);
            vt_jw_str(&w, "id", p->call[i].id);
            vt_jw_str(&w, "name", p->call[i].name);
            vt_jw_raw(&w, "input", "{}", 2);
            end_indexed(&w, k);
        }
        if (d.len > 0)
            put_delta(b, k, "input_json_delta", "partial_json", d.arguments, d.len);
    }
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

static void put_stop(struct vt_jw *w, const struct reply *p, const char *reason,
                     bool always)
{
    bool told = strcmp(reason, "stop_sequence") == 0;

    vt_jw_str(w, "stop_reason", reason);
    if (told || always)
        vt_jw_printf(w, "stop_sequence", "%s", told ? p->stop_reason : "null");
}

static void messages_done(struct vt_buf *b, const struct api_request *r,
                          const struct out_choice *all, uint32_t n_all)
{
    const struct reply *p = all[0].reply;
    bool called = out_any_named(p, p->n);
    struct out_items k = all[0].items;
    struct vt_jw w;

    (void)n_all;
    close_block(b, &k);
    typed_event(&w, b, "message_delta");
    vt_jw_map(&w, "delta");
    put_stop(&w, p, stop_reason(r, p, called, called && !p->calls_cut),
             r->context->line != API_LINE_026);
    vt_jw_end(&w);
    put_usage(&w, r, &all[0], all[0].told, r->context->prompt_details);
    out_event_end(&w);
    typed_event(&w, b, "message_stop");
    out_event_end(&w);
}

/* ---- whole ------------------------------------------------------------ */

static void put_content(struct vt_jw *w, const struct reply *p, bool calls)
{
    struct vt_arena arena = {0};

    vt_jw_list(w, "content");
    for (uint32_t i = 0; calls && i < p->n_calls; i++) {
        const struct reply_call *c = &p->call[i];
        const struct vt_node *tree;

        vt_jw_map(w, NULL);
        vt_jw_str(w, "type", "tool_use");
        vt_jw_str(w, "id", c->id);
        vt_jw_str(w, "name", c->name);
        /* What is an argument's text becomes JSON again, written tightly. */
        if (vt_json_parse(&arena, c->arguments, c->arguments_len, 1, &tree, NULL) ==
            VT_OK)
            vt_jw_node(w, "input", tree);
        else
            vt_jw_raw(w, "input", "{}", 2);
        vt_jw_end(w);
    }
    vt_arena_free(&arena);
    if (!calls) {
        vt_jw_map(w, NULL);
        vt_jw_str(w, "type", "text");
        vt_jw_strn(w, "text", p->text, p->text_len);
        vt_jw_end(w);
    }
    vt_jw_end(w);
}

static void messages_whole(struct vt_jw *w, const struct api_request *r,
                           const struct out_choice *all, uint32_t n_all)
{
    const struct reply *p = all[0].reply;
    bool calls = p->n_calls > 0 && !p->calls_cut;

    (void)n_all;
    vt_jw_map(w, NULL);
    vt_jw_str(w, "id", r->id);
    vt_jw_str(w, "type", "message");
    vt_jw_str(w, "role", "assistant");
    put_content(w, p, calls);
    vt_jw_str(w, "model", r->model);
    put_stop(w, p, stop_reason(r, p, calls, calls), false);
    put_usage(w, r, &all[0], p->n, r->context->prompt_details);
    vt_jw_end(w);
}

const struct out_writer out_messages = {NULL, messages_step, messages_done,
                                        messages_whole};

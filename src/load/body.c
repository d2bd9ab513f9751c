/* body.c - the requests themselves: head and JSON, written before they are due.
 *
 * Members and their order are vLLM's benchmark's. What --extra-body names takes the
 * place of a member of the same name, or comes last. */
#include "load/client.h"

static const struct vt_json_style style = {vt_buf_py_f64, vt_buf_json_str, ",", ":",
                                           NULL};

int load_body_open(struct load_body *b, const struct vt_load_config *c,
                   const struct net_url *url, const struct vt_load_plan *plan,
                   struct vt_err *err)
{
    int rc = VT_OK;

    b->config = c;
    b->url = url;
    b->ignore_eos = c->ignore_eos || plan->ignore_eos;
    b->path = c->endpoint                  ? c->endpoint
              : c->backend == VT_LOAD_CHAT ? "/v1/chat/completions"
                                           : "/v1/completions";
    if (c->extra_body)
        rc = vt_json_parse(&b->arena, c->extra_body, strlen(c->extra_body), 1,
                           &b->extra, err);
    if (rc == VT_OK && b->extra && b->extra->kind != VT_MAP)
        rc = vt_fail(err, VT_EINPUT, "it is no JSON object");
    return vt_within(err, rc, "extra body");
}

void load_body_close(struct load_body *b)
{
    vt_buf_free(&b->scratch);
    vt_arena_free(&b->arena);
}

/* ---- members ----------------------------------------------------------- */

/* true: --extra-body says otherwise, and was written in its place. */
static bool is_replaced(struct load_body *b, const char *key)
{
    const struct vt_node *other = b->extra ? vt_get(b->extra, key) : NULL;

    if (other)
        vt_jw_node(&b->json, key, other);
    return other != NULL;
}

static void put_literal(struct load_body *b, const char *key, const char *value)
{
    if (!is_replaced(b, key))
        vt_jw_raw(&b->json, key, value, strlen(value));
}

static void put_model(struct load_body *b, const struct load_ask *a)
{
    const struct vt_load_config *c = b->config;
    const char *name = c->model ? c->model : "";

    if (c->n_lora > 0 && a->session)
        name =
            c->lora[c->lora_in_turn ? a->session_no % c->n_lora
                                    : (size_t)(vt_draw_f64(c->seed, a->session_no, 7) *
                                               (double)c->n_lora)];
    if (!is_replaced(b, "model"))
        vt_jw_str(&b->json, "model", name);
}

static void put_end(struct load_body *b, const char *const *written)
{
    put_literal(b, "stream", "true");
    put_literal(b, "stream_options", "{\"include_usage\":true}");
    if (b->ignore_eos && !(b->extra && vt_get(b->extra, "ignore_eos")))
        vt_jw_bool(&b->json, "ignore_eos", true);
    for (uint32_t i = 0; b->extra && i < b->extra->n; i++)
        if (!vt_is_one_of(b->extra->u.item[i].key, written))
            vt_jw_node(&b->json, b->extra->u.item[i].key, &b->extra->u.item[i]);
}

/* ---- prompts ----------------------------------------------------------- */

static struct span own_text(const struct load_ask *a)
{
    if (!a->turn)
        return (struct span){"Hi", 2};
    return (struct span){a->turn->text, a->turn->text_len};
}

static void put_prompt(struct load_body *b, const struct load_ask *a)
{
    struct vt_buf whole = {0};
    struct span own = own_text(a);

    if (a->turn && !a->turn->text) {
        vt_jw_u32_list(&b->json, "prompt", a->turn->id, a->turn->n_ids);
        return;
    }
    if (a->session && a->session->system)
        vt_buf_str(&whole, a->session->system);
    if (a->history)
        vt_buf_add(&whole, a->history->data, a->history->len);
    if (whole.len == 0) {
        vt_jw_strn(&b->json, "prompt", own.p, own.len);
    } else {
        vt_buf_add(&whole, own.p, own.len);
        vt_jw_strn(&b->json, "prompt", whole.data, whole.len);
    }
    b->scratch.failed |= whole.failed;
    vt_buf_free(&whole);
}

static void put_message(struct vt_jw *w, const char *role, const char *p, size_t n)
{
    vt_jw_map(w, NULL);
    vt_jw_str(w, "role", role);
    vt_jw_strn(w, "content", p, n);
    vt_jw_end(w);
}

static void put_user(struct vt_jw *w, struct span text)
{
    vt_jw_map(w, NULL);
    vt_jw_str(w, "role", "user");
    vt_jw_list(w, "content");
    vt_jw_map(w, NULL);
    vt_jw_str(w, "type", "text");
    vt_jw_strn(w, "text", text.p, text.len);
    vt_jw_end(w);
    vt_jw_end(w);
    vt_jw_end(w);
}

/* Of a chat: members of the list of messages, of a completion: plain text. */
void load_history_add(const struct load_body *b, const struct load_ask *a,
                      struct span reply, struct vt_buf *history)
{
    struct vt_jw w;

    if (b->config->backend == VT_LOAD_CHAT) {
        vt_jw_members(&w, history, &style, history->len > 0);
        put_user(&w, own_text(a));
        put_message(&w, "assistant", reply.p ? reply.p : "", reply.len);
    } else if (a->turn->text) {
        vt_buf_add(history, a->turn->text, a->turn->text_len);
        vt_buf_add(history, reply.p, reply.len);
    }
}

/* ---- the whole --------------------------------------------------------- */

static void write_completion(struct load_body *b, const struct load_ask *a)
{
    static const char *const written[] = {
        "model",    "prompt", "repetition_penalty", "max_tokens",
        "logprobs", "stream", "stream_options",     NULL};
    uint32_t output_tokens = a->turn ? a->turn->output_tokens : 1;

    put_model(b, a);
    if (!is_replaced(b, "prompt"))
        put_prompt(b, a);
    put_literal(b, "repetition_penalty", "1.0");
    if (!is_replaced(b, "max_tokens") && output_tokens > 0)
        vt_jw_u64(&b->json, "max_tokens", output_tokens);
    if (b->config->logprobs < 0)
        put_literal(b, "logprobs", "null");
    else if (!is_replaced(b, "logprobs"))
        vt_jw_i64(&b->json, "logprobs", b->config->logprobs);
    put_end(b, written);
}

static void write_chat(struct load_body *b, const struct load_ask *a)
{
    static const char *const written[] = {
        "model", "messages", "max_completion_tokens", "stream", "stream_options", NULL};
    uint32_t output_tokens = a->turn ? a->turn->output_tokens : 1;
    struct vt_jw *w = &b->json;

    put_model(b, a);
    if (!is_replaced(b, "messages")) {
        vt_jw_list(w, "messages");
        if (a->session && a->session->system)
            put_message(w, "system", a->session->system, strlen(a->session->system));
        if (a->history && a->history->len > 0)
            vt_jw_raw(w, NULL, a->history->data, a->history->len);
        put_user(w, own_text(a));
        vt_jw_end(w);
    }
    if (!is_replaced(b, "max_completion_tokens") && output_tokens > 0)
        vt_jw_u64(w, "max_completion_tokens", output_tokens);
    put_end(b, written);
}

void load_request_id(const struct vt_load_config *c, const struct load_ask *a,
                     struct vt_buf *out)
{
    if (!a->session) {
        vt_buf_printf(out, "%sprobe", c->id_prefix);
        return;
    }
    vt_buf_printf(out, "%s%zu", c->id_prefix, a->session_no);
    if (a->session->n_turns > 1)
        vt_buf_printf(out, "-%u", a->turn_no);
}

static void put_head(struct load_body *b, const struct load_ask *a, struct vt_buf *out)
{
    const struct vt_load_config *c = b->config;

    vt_buf_printf(out, "POST %.*s%s HTTP/1.1\r\nHost: %s\r\n", (int)b->url->base_len,
                  b->url->path, b->path, b->url->authority);
    vt_buf_str(out, "Accept: */*\r\nContent-Type: application/json\r\n");
    if (c->api_key)
        vt_buf_printf(out, "Authorization: Bearer %s\r\n", c->api_key);
    for (size_t i = 0; i < c->n_headers; i++)
        vt_buf_printf(out, "%s: %s\r\n", c->header[i].name, c->header[i].value);
    if (c->id_prefix) {
        vt_buf_str(out, "x-request-id: ");
        load_request_id(c, a, out);
        vt_buf_str(out, "\r\n");
    }
    if (c->session_header && a->session && a->session->id)
        vt_buf_printf(out, "X-Session-ID: %s\r\n", a->session->id);
    else if (c->session_header && a->session)
        vt_buf_printf(out, "X-Session-ID: %zu\r\n", a->session_no);
    vt_buf_printf(out, "Content-Length: %zu\r\n\r\n", b->scratch.len);
}

void load_ask_write(struct load_body *b, const struct load_ask *a, struct vt_buf *out)
{
    vt_buf_clear(&b->scratch);
    vt_jw_init(&b->json, &b->scratch, &style);
    vt_jw_map(&b->json, NULL);
    if (b->config->backend == VT_LOAD_CHAT)
        write_chat(b, a);
    else
        write_completion(b, a);
    vt_jw_end(&b->json);
    put_head(b, a, out);
    vt_buf_add(out, b->scratch.data, b->scratch.len);
    out->failed |= b->scratch.failed;
}

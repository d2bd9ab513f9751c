/* body.c - the requests themselves: head and JSON, written before they are due.
 *
 * Members and their order are vLLM's benchmark's. What --extra-body names takes the
 * place of a member of the same name, or comes last. */
#include <string.h>

#include "load/client.h"

static const struct vt_json_style as_python = {vt_buf_py_f64, vt_buf_json_str, ",", ":",
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

/* true: the value is to be written by the caller. */
static bool member(struct load_body *b, const char *key)
{
    const struct vt_node *other = b->extra ? vt_get(b->extra, key) : NULL;
    struct vt_buf *out = &b->scratch;

    vt_buf_str(out, out->len > 1 ? ",\"" : "\"");
    vt_buf_str(out, key);
    vt_buf_str(out, "\":");
    if (other)
        vt_buf_json_node(out, other, &as_python);
    return !other;
}

static void flag(struct load_body *b, const char *key, const char *value)
{
    if (member(b, key))
        vt_buf_str(&b->scratch, value);
}

static void put_rest(struct load_body *b, const char *const *written)
{
    for (uint32_t i = 0; b->extra && i < b->extra->n; i++) {
        const char *key = b->extra->u.item[i].key;
        const char *const *w = written;

        while (*w && strcmp(*w, key) != 0)
            w++;
        if (*w)
            continue;
        vt_buf_char(&b->scratch, ',');
        vt_buf_json_str(&b->scratch, key, strlen(key));
        vt_buf_char(&b->scratch, ':');
        vt_buf_json_node(&b->scratch, &b->extra->u.item[i], &as_python);
    }
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
    if (member(b, "model"))
        vt_buf_json_str(&b->scratch, name, strlen(name));
}

static void put_length(struct load_body *b, const char *key, uint32_t n)
{
    if (n > 0 && member(b, key))
        vt_buf_u64(&b->scratch, n);
}

static void put_stream(struct load_body *b)
{
    flag(b, "stream", "true");
    flag(b, "stream_options", "{\"include_usage\":true}");
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
        vt_buf_char(&b->scratch, '[');
        for (uint32_t i = 0; i < a->turn->n_ids; i++) {
            vt_buf_str(&b->scratch, i > 0 ? "," : "");
            vt_buf_u64(&b->scratch, a->turn->id[i]);
        }
        vt_buf_char(&b->scratch, ']');
        return;
    }
    if (a->session && a->session->system)
        vt_buf_str(&whole, a->session->system);
    if (a->history)
        vt_buf_add(&whole, a->history->data, a->history->len);
    if (whole.len == 0) {
        vt_buf_json_str(&b->scratch, own.p, own.len);
    } else {
        vt_buf_add(&whole, own.p, own.len);
        vt_buf_json_str(&b->scratch, whole.data, whole.len);
    }
    b->scratch.failed |= whole.failed;
    vt_buf_free(&whole);
}

static void put_message(struct vt_buf *out, const char *role, const char *p, size_t n)
{
    vt_buf_str(out, "{\"role\":\"");
    vt_buf_str(out, role);
    vt_buf_str(out, "\",\"content\":");
    vt_buf_json_str(out, p, n);
    vt_buf_char(out, '}');
}

static void put_user(struct vt_buf *out, struct span text)
{
    vt_buf_str(out, "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":");
    vt_buf_json_str(out, text.p, text.len);
    vt_buf_str(out, "}]}");
}

static void put_messages(struct load_body *b, const struct load_ask *a)
{
    struct vt_buf *out = &b->scratch;

    vt_buf_char(out, '[');
    if (a->session && a->session->system) {
        put_message(out, "system", a->session->system, strlen(a->session->system));
        vt_buf_char(out, ',');
    }
    if (a->history && a->history->len > 0)
        vt_buf_add(out, a->history->data, a->history->len);
    put_user(out, own_text(a));
    vt_buf_char(out, ']');
}

void load_history_add(const struct load_body *b, const struct load_ask *a,
                      struct span reply, struct vt_buf *history)
{
    if (b->config->backend == VT_LOAD_CHAT) {
        put_user(history, own_text(a));
        vt_buf_char(history, ',');
        put_message(history, "assistant", reply.p ? reply.p : "", reply.len);
        vt_buf_char(history, ',');
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
    struct vt_buf *out = &b->scratch;

    put_model(b, a);
    if (member(b, "prompt"))
        put_prompt(b, a);
    flag(b, "repetition_penalty", "1.0");
    put_length(b, "max_tokens", a->turn ? a->turn->output_tokens : 1);
    if (member(b, "logprobs")) {
        if (b->config->logprobs < 0)
            vt_buf_str(out, "null");
        else
            vt_buf_i64(out, b->config->logprobs);
    }
    put_stream(b);
    if (b->ignore_eos && !(b->extra && vt_get(b->extra, "ignore_eos")))
        vt_buf_str(out, ",\"ignore_eos\":true");
    put_rest(b, written);
}

static void write_chat(struct load_body *b, const struct load_ask *a)
{
    static const char *const written[] = {
        "model", "messages", "max_completion_tokens", "stream", "stream_options", NULL};

    put_model(b, a);
    if (member(b, "messages"))
        put_messages(b, a);
    put_length(b, "max_completion_tokens", a->turn ? a->turn->output_tokens : 1);
    put_stream(b);
    if (b->ignore_eos && !(b->extra && vt_get(b->extra, "ignore_eos")))
        vt_buf_str(&b->scratch, ",\"ignore_eos\":true");
    put_rest(b, written);
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
    vt_buf_char(&b->scratch, '{');
    if (b->config->backend == VT_LOAD_CHAT)
        write_chat(b, a);
    else
        write_completion(b, a);
    vt_buf_char(&b->scratch, '}');
    put_head(b, a, out);
    vt_buf_add(out, b->scratch.data, b->scratch.len);
    out->failed |= b->scratch.failed;
}

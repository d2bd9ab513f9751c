/* logprobs.c - made-up log probabilities in the shapes of the endpoints.
 *
 * A row tells the sampled token first, then the best ones, none twice. */
#include "http/out/parts.h"

enum {
    CONTEXT = 4, /* tokens before one that is a part of a character */
    MOST_KEYS = 64,
};

static const char unfinished[] = "\xef\xbf\xbd";

/* ---- texts of tokens ------------------------------------------------- */

/* A failure stays, however often the buffer is used. */
static void decode_ids(const struct api_request *r, const uint32_t *id, size_t n,
                       struct vt_buf *out)
{
    bool failed = out->failed;

    vt_buf_clear(out);
    vt_tokenizer_decode(r->context->tokenizer, id, n, VT_KEEP_SPECIAL, out);
    out->failed |= failed;
}

static bool is_unfinished(const struct vt_buf *text)
{
    return text->len >= 3 && memcmp(text->data + text->len - 3, unfinished, 3) == 0;
}

/* A token that is only a part of a character: the whole of it where this token
 * completes it, else nothing. *text has the token alone. */
static void complete_character(const struct api_request *r, const uint32_t *before,
                               uint32_t n, uint32_t id, struct vt_buf *text)
{
    uint32_t all[CONTEXT + 1];
    struct vt_buf prefix = {0};
    uint32_t clean, k;

    for (k = 1; k <= CONTEXT && k <= n; k++) {
        memcpy(all, before + n - k, k * sizeof(*all));
        all[k] = id;
        decode_ids(r, all, k + 1, text);
        if (!is_unfinished(text))
            break;
    }
    if (k > CONTEXT || k > n) {
        text->len = 0;
        return;
    }
    for (clean = k; clean > 0; clean--) {
        decode_ids(r, &all[clean - 1], 1, &prefix);
        if (!is_unfinished(&prefix))
            break;
    }
    decode_ids(r, all, clean, &prefix);
    if (prefix.len <= text->len) {
        memmove(text->data, text->data + prefix.len, text->len - prefix.len);
        text->len -= prefix.len;
    }
    text->failed |= prefix.failed;
    vt_buf_free(&prefix);
}

/* What a token that follows n others is called. */
static void token_text(const struct api_request *r, const uint32_t *before, uint32_t n,
                       uint32_t id, struct vt_buf *text)
{
    decode_ids(r, &id, 1, text);
    if (is_unfinished(text))
        complete_character(r, before, n, id, text);
}

static void token_name(const struct api_request *r, const uint32_t *before, uint32_t n,
                       uint32_t id, struct vt_buf *text)
{
    if (r->tokens_as_ids) {
        text->len = 0;
        vt_buf_printf(text, "token_id:%u", id);
    } else {
        token_text(r, before, n, id, text);
    }
}

static void put_name(struct vt_buf *b, const struct vt_buf *name)
{
    vt_buf_json_str(b, name->len > 0 ? name->data : "", name->len);
}

static void put_float32(struct vt_jw *w, const char *key, float v)
{
    vt_jw_key(w, key);
    vt_buf_py_f32(w->b, v);
}

/* ---- rows ------------------------------------------------------------ */

enum side { PROMPT, OUTPUT };

static const uint32_t *ids_of(const struct api_request *r, const struct out_choice *c,
                              enum side side)
{
    return side == PROMPT ? r->prompt[c->prompt].id : c->reply->token;
}

/* Of its token i; nobody chose the prompt's tokens, of which the first has no row. */
static struct vt_made_row row_of(const struct api_request *r,
                                 const struct out_choice *c, enum side side, uint32_t i)
{
    const struct vt_made_ask ask = {
        .vocab_size = vt_tokenizer_facts(r->context->tokenizer)->vocab_size,
        .key = c->reply->key,
        .greedy = side == OUTPUT && r->temperature <= 0,
    };

    return vt_made_row(&ask, side == PROMPT ? VT_MADE_PROMPT + i - 1 : i,
                       ids_of(r, c, side)[i]);
}

/* The i-th entry of a row that has the k best: the sampled one, then the others.
 * False: there are no more. */
static bool row_entry(const struct vt_made_row *row, uint32_t k, uint32_t i,
                      uint32_t *rank)
{
    *rank = i == 0 ? row->rank : i < row->rank ? i : i + 1;
    return i == 0 || (*rank <= k && *rank <= row->vocab);
}

/* ---- completions ----------------------------------------------------- */

enum { OFFSETS, VALUES, NAMES, TOPS, N_LISTS };

struct lists { /* of the object, in the making */
    const struct api_request *r;
    struct vt_buf buf[N_LISTS];
    struct vt_jw list[N_LISTS];
    struct vt_buf text; /* of a token */
    uint64_t at;        /* characters */
};

/* Tokens of one name are one key. */
static void put_top(struct lists *l, const struct vt_made_row *row,
                    const uint32_t *before, uint32_t n_before)
{
    struct vt_buf *b = &l->buf[TOPS];
    size_t start[MOST_KEYS];
    uint32_t k = (uint32_t)l->r->logprobs, n = 0, rank;

    vt_jw_key(&l->list[TOPS], NULL);
    vt_buf_char(b, '{');
    for (uint32_t i = 0; row_entry(row, k, i, &rank) && n < MOST_KEYS; i++) {
        size_t old = b->len;
        bool known = false;

        token_name(l->r, before, n_before, vt_made_token(row, rank), &l->text);
        if (n > 0)
            vt_buf_char(b, ',');
        start[n] = b->len;
        put_name(b, &l->text);
        for (uint32_t j = 0; !b->failed && j < n && !known; j++) /* the quote tells */
            known =
                memcmp(b->data + start[j], b->data + start[n], b->len - start[n]) == 0;
        if (b->failed || known) {
            b->len = old;
            continue;
        }
        n++;
        vt_buf_char(b, ':');
        vt_buf_py_f32(b, vt_made_logprob(row, rank));
    }
    vt_buf_char(b, '}');
}

/* One token in each of the lists. */
static void put_line(struct lists *l, const struct out_choice *c, enum side side,
                     uint32_t i)
{
    const uint32_t *id = ids_of(l->r, c, side);
    struct vt_made_row row;

    vt_jw_u64(&l->list[OFFSETS], NULL, l->at);
    token_name(l->r, id, i, id[i], &l->text);
    vt_jw_key(&l->list[NAMES], NULL);
    put_name(&l->buf[NAMES], &l->text);
    l->at += api_characters(l->text.data, l->text.len);
    if (side == PROMPT && i == 0) {
        vt_jw_null(&l->list[VALUES], NULL);
        vt_jw_null(&l->list[TOPS], NULL);
        return;
    }
    row = row_of(l->r, c, side, i);
    put_float32(&l->list[VALUES], NULL, vt_made_logprob(&row, row.rank));
    put_top(l, &row, id, i);
}

/* text_told counts what offsets go on from: characters of text that are out, and in
 * later lines those of the tokens. */
void out_logprobs_completion(struct vt_jw *w, const struct api_request *r,
                             struct out_choice *c, const struct out_step *s, bool echo)
{
    static const char *const name[N_LISTS] = {"text_offset", "token_logprobs", "tokens",
                                              "top_logprobs"};
    struct lists l = {.r = r, .at = c->text_told};

    for (int i = 0; i < N_LISTS; i++) {
        vt_jw_init(&l.list[i], &l.buf[i], &json_body);
        vt_jw_list(&l.list[i], NULL);
    }
    for (uint32_t i = 0; echo && i < r->prompt[c->prompt].n; i++)
        put_line(&l, c, PROMPT, i);
    for (uint32_t i = s->from; i < s->upto; i++)
        put_line(&l, c, OUTPUT, i);
    c->text_told = r->context->line == API_LINE_026
                       ? c->text_told + (uint32_t)api_characters(s->text, s->len)
                       : (uint32_t)l.at;
    vt_jw_map(w, "logprobs");
    for (int i = 0; i < N_LISTS; i++) {
        vt_jw_end(&l.list[i]);
        vt_jw_raw(w, name[i], l.buf[i].data, l.buf[i].len);
        w->b->failed |= l.buf[i].failed;
        vt_buf_free(&l.buf[i]);
    }
    vt_jw_end(w);
    w->b->failed |= l.text.failed;
    vt_buf_free(&l.text);
}

/* ---- chats and responses ---------------------------------------------- */

static void put_bytes(struct vt_jw *w, const struct vt_buf *text)
{
    vt_jw_list(w, "bytes");
    for (size_t i = 0; i < text->len; i++)
        vt_jw_u64(w, NULL, (unsigned char)text->data[i]);
    vt_jw_end(w);
}

/* Its map stays open. */
static void put_token(struct vt_jw *w, const struct vt_buf *name,
                      const struct vt_buf *text, float value, enum out_form form)
{
    vt_jw_map(w, NULL);
    vt_jw_key(w, "token");
    put_name(w->b, name);
    if (form == OUT_FORM_RESPONSE)
        put_bytes(w, text);
    put_float32(w, "logprob", value);
    if (form == OUT_FORM_CHAT)
        put_bytes(w, text);
}

void out_logprobs_list(struct vt_jw *w, const char *key, const struct api_request *r,
                       const struct out_choice *c, const struct out_step *s,
                       enum out_form form, bool with_text)
{
    const struct reply *p = c->reply;
    struct vt_buf name = {0}, text = {0};
    uint32_t k = (uint32_t)r->logprobs, rank;

    vt_jw_list(w, key);
    for (uint32_t i = s->from; i < s->upto; i++) {
        struct vt_made_row row;

        if (with_text && out_text_at(p, i + 1) <= out_text_at(p, i))
            continue;
        row = row_of(r, c, OUTPUT, i);
        token_name(r, p->token, i, row.token, &name);
        token_text(r, p->token, i, row.token, &text);
        put_token(w, &name, &text, vt_made_logprob(&row, row.rank), form);
        vt_jw_list(w, "top_logprobs");
        for (uint32_t m = 0; m < k && row_entry(&row, k, m, &rank); m++) {
            token_name(r, p->token, i, vt_made_token(&row, rank), &name);
            put_token(w, &name, &name, vt_made_logprob(&row, rank), form);
            vt_jw_end(w);
        }
        vt_jw_end(w);
        vt_jw_end(w);
    }
    vt_jw_end(w);
    w->b->failed |= name.failed || text.failed;
    vt_buf_free(&name);
    vt_buf_free(&text);
}

void out_logprobs_chat(struct vt_jw *w, const struct api_request *r,
                       const struct out_choice *c, const struct out_step *s)
{
    if (r->logprobs < 0) {
        vt_jw_null(w, "logprobs");
        return;
    }
    vt_jw_map(w, "logprobs");
    out_logprobs_list(w, "content", r, c, s, OUT_FORM_CHAT, false);
    vt_jw_end(w);
}

/* ---- of the prompt ---------------------------------------------------- */

static void put_prompt_row(struct vt_jw *w, const struct api_request *r,
                           const struct out_choice *c, uint32_t i, uint32_t k)
{
    const struct api_prompt *p = &r->prompt[c->prompt];
    struct vt_made_row row = row_of(r, c, PROMPT, i);
    struct vt_buf text = {0};
    uint32_t rank;

    vt_jw_map(w, NULL);
    for (uint32_t n = 0; row_entry(&row, k, n, &rank); n++) {
        uint32_t id = vt_made_token(&row, rank);
        char key[16];

        snprintf(key, sizeof(key), "%u", id);
        vt_jw_map(w, key);
        put_float32(w, "logprob", vt_made_logprob(&row, rank));
        vt_jw_u64(w, "rank", rank);
        token_text(r, p->id, i, id, &text);
        vt_jw_key(w, "decoded_token");
        put_name(w->b, &text);
        vt_jw_end(w);
    }
    vt_jw_end(w);
    w->b->failed |= text.failed;
    vt_buf_free(&text);
}

/* An echo with log probabilities has them of the prompt too. */
void out_logprobs_prompt(struct vt_jw *w, const struct api_request *r,
                         const struct out_choice *c)
{
    int32_t k = r->prompt_logprobs;

    if (k < 0 && r->kind == API_COMPLETIONS && r->echo)
        k = r->logprobs;
    if (k < 0 && r->kind == API_CHAT && r->echo)
        k = r->logprobs > 0 ? r->logprobs : 0;
    if (k < 0) {
        vt_jw_null(w, "prompt_logprobs");
        return;
    }
    vt_jw_list(w, "prompt_logprobs");
    vt_jw_null(w, NULL);
    for (uint32_t i = 1; i < r->prompt[c->prompt].n; i++)
        put_prompt_row(w, r, c, i, (uint32_t)k);
    vt_jw_end(w);
}

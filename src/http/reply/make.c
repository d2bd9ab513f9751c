/* make.c - one reply: what it says, how long it is, how it ends. */
#include "http/reply/parts.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH_MEDIAN 150.0 /* of random words: about 200 tokens on average */
#define LENGTH_SIGMA  0.75

enum { HASHED_TOKENS = 2048 }; /* of a prompt's beginning, and of its end */

/* ---- lengths --------------------------------------------------------- */

static uint32_t drawn_length(const struct reply_draft *d)
{
    const struct reply_source *s = d->s;
    double length, at;
    size_t low;

    if (!s->length) {
        length =
            LENGTH_MEDIAN * exp(LENGTH_SIGMA * vt_draw_normal(d->key, DRAW_LENGTH, 0));
        return length < UINT32_MAX ? (uint32_t)length : UINT32_MAX;
    }
    at = vt_draw_f64(d->key, DRAW_LENGTH, 0) * (double)(s->n_lengths - 1);
    low = (size_t)at;
    at -= (double)low;
    length = (1 - at) * s->length[low] +
             at * s->length[low + 1 < s->n_lengths ? low + 1 : low];
    return (uint32_t)(length + 0.5);
}

/* An EOS is not allowed before min_tokens others. */
static uint32_t at_least(const struct api_request *r, uint32_t n)
{
    uint32_t least = r->min_tokens < UINT32_MAX ? r->min_tokens + 1 : UINT32_MAX;

    return n > least ? n : least;
}

/* ---- tokens ---------------------------------------------------------- */

static int reserve_tokens(struct reply_draft *d, uint32_t n, struct vt_err *err)
{
    d->token = vt_arena_alloc(&d->r->arena, (n > 0 ? n : 1) * sizeof(*d->token));
    d->cap = n;
    return d->token ? VT_OK : vt_nomem(err);
}

static bool has_eos(const struct reply_draft *d)
{
    return d->s->facts->n_stop > 0;
}

/* Appends what may follow until there are n tokens. */
static void pad_tokens(struct reply_draft *d, uint32_t n)
{
    if (!d->structured || !has_eos(d)) {
        reply_words_add(d, n, NULL, NULL);
        return;
    }
    while (d->n < n)
        d->token[d->n++] = d->s->facts->stop[0];
}

/* The reply says these tokens: as many as the limit allows, then EOS. */
static int say_tokens(struct reply *out, struct reply_draft *d, const uint32_t *id,
                      size_t n, struct vt_err *err)
{
    uint32_t max = d->r->max_tokens;
    uint32_t whole = n < max ? at_least(d->r, (uint32_t)n + 1) : max;
    bool eos = n < max && whole <= max && !d->r->ignore_eos;
    int rc;

    whole = eos ? whole : max;
    rc = reserve_tokens(d, whole, err);
    if (rc != VT_OK)
        return rc;
    d->n = n < whole ? (uint32_t)n : whole;
    if (d->n > 0)
        memcpy(d->token, id, d->n * sizeof(*id));
    out->end = eos ? REPLY_EOS : REPLY_LENGTH;
    eos = eos && has_eos(d);
    pad_tokens(d, eos ? whole - 1 : whole);
    if (eos)
        d->token[d->n++] = d->s->facts->stop[0];
    return reply_text_of(out, d, err);
}

/* How much of a text can matter. It may become a third as long when its characters are
 * composed, and is never cut within one. */
static size_t sayable(const struct reply_draft *d, const char *text, size_t len)
{
    uint64_t most = 4 * (d->r->max_tokens + UINT64_C(2)) * d->s->token_bytes;

    if (len <= most)
        return len;
    for (len = (size_t)most; len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80;)
        len--;
    return len;
}

static int say_text(struct reply *out, struct reply_draft *d, const char *text,
                    size_t len, unsigned flags, struct vt_err *err)
{
    struct vt_ids ids = {0};
    int rc = vt_tokenizer_encode(d->s->c.tokenizer, text, sayable(d, text, len), flags,
                                 &ids, err);

    if (rc == VT_OK)
        rc = say_tokens(out, d, ids.id, ids.n, err);
    vt_ids_free(&ids);
    return rc;
}

/* ---- random words ---------------------------------------------------- */

/* How many tokens, and whether an EOS is the last of them. */
static uint32_t random_length(const struct reply_draft *d, bool *eos)
{
    const struct api_request *r = d->r;
    bool may_end = r->n_allowed_ids == 0;
    uint32_t n;

    *eos = false;
    for (uint32_t i = 0; has_eos(d) && i < r->n_allowed_ids && !may_end; i++)
        may_end = r->allowed_id[i] == d->s->facts->stop[0];
    if (r->ignore_eos || (r->limited && !d->s->length) || !may_end)
        return r->max_tokens;
    n = at_least(r, drawn_length(d));
    *eos = n < r->max_tokens;
    return *eos ? n : r->max_tokens;
}

/* Words are text by themselves: where nothing can stop them, no detokenizer is needed.
 */
static int plain_words(struct reply *out, struct reply_draft *d, uint32_t n,
                       struct vt_err *err)
{
    char *text = vt_arena_alloc(&d->r->arena, ((size_t)n + 1) * PIECE_BYTES);
    uint32_t *end = vt_arena_alloc(&d->r->arena, (size_t)d->cap * sizeof(*end));

    if (!text || !end)
        return vt_nomem(err);
    reply_words_add(d, n, text, end);
    out->text_len = n > 0 ? end[n - 1] : 0;
    text[out->text_len] = '\0';
    if (d->cap > n) {
        d->token[d->n++] = d->s->facts->stop[0];
        end[n] = (uint32_t)out->text_len;
    }
    out->token = d->token;
    out->n = d->n;
    out->text = text;
    out->text_end = end;
    out->stop_reason = "null";
    return VT_OK;
}

static int random_words(struct reply *out, struct reply_draft *d, struct vt_err *err)
{
    const struct api_request *r = d->r;
    bool eos;
    uint32_t n = random_length(d, &eos);
    int rc = reserve_tokens(d, n, err);

    if (rc != VT_OK)
        return rc;
    out->end = eos ? REPLY_EOS : REPLY_LENGTH;
    if (eos && has_eos(d))
        n--;
    if (r->n_allowed_ids == 0 && r->n_stop == 0 && r->n_stop_ids == 0 &&
        !r->include_stop)
        return plain_words(out, d, n, err);
    if (r->n_allowed_ids == 0)
        reply_words_add(d, n, NULL, NULL);
    while (d->n < n) {
        double at = vt_draw_f64(d->key, d->n, 0) * r->n_allowed_ids;

        d->token[d->n++] = r->allowed_id[(uint32_t)at];
    }
    if (d->n < d->cap)
        d->token[d->n++] = d->s->facts->stop[0];
    return reply_text_of(out, d, err);
}

/* ---- answers of a dataset -------------------------------------------- */

static int dataset_answer(struct reply *out, struct reply_draft *d,
                          const struct api_prompt *p, struct vt_err *err)
{
    const struct reply_source *s = d->s;
    double at = vt_draw_f64(d->key, DRAW_ROW, 0) * (double)s->n_rows;
    const struct vt_dataset_row *row = &s->data.row[s->row[(size_t)at]];
    const struct vt_dataset_turn *t;
    struct vt_ids ids = {0};
    int rc = vt_tokenizer_encode(s->c.tokenizer, p->text, p->text_len,
                                 VT_ENCODE_SPECIAL_AS_TEXT, &ids, err);

    if (rc != VT_OK)
        return rc;
    t = reply_turn_find(s, ids.id, ids.n);
    vt_ids_free(&ids);
    return t ? say_tokens(out, d, t->answer, t->n_answer, err)
             : say_tokens(out, d, row->answer, row->n_answer, err);
}

/* ---- calls and forms ------------------------------------------------- */

static int call_tools(struct reply *out, struct reply_draft *d, struct vt_err *err)
{
    struct vt_buf text = {0};
    struct reply_call *call = NULL;
    uint32_t n_calls = 0;
    int rc = reply_tools_spell(d, &text, &call, &n_calls, err);

    d->structured = d->spells_call = true;
    d->forms->spent += REPLY_BYTE_WORK * text.len;
    if (rc == VT_OK)
        rc = say_text(out, d, text.data, text.len, VT_ENCODE_PLAIN, err);
    if (rc == VT_OK)
        rc = reply_tools_find(out, d, call, n_calls, err);
    vt_buf_free(&text);
    return rc;
}

/* False: no text of that form can be made. */
static bool write_form(struct vt_buf *b, const struct reply_draft *d)
{
    const struct vt_node *c = d->r->constraint;
    uint64_t key = vt_hash2(d->key, DRAW_SCHEMA);

    switch (d->r->format) {
    case API_JSON_OBJECT:
        reply_schema_any(b, key);
        return true;
    case API_JSON_SCHEMA:
        return c && reply_schema_write(d->forms, b, c, key);
    case API_CHOICE:
        if (!c || c->kind != VT_LIST || c->n == 0)
            return false;
        c = &c->u.item[(uint32_t)(vt_draw_f64(key, 0, 0) * c->n)];
        if (c->kind == VT_STR)
            vt_buf_add(b, c->u.str, sayable(d, c->u.str, c->n));
        return c->kind == VT_STR;
    case API_REGEX:
        return c && c->kind == VT_STR &&
               reply_regex_write(d->forms, b, c->u.str, c->n, key);
    default:
        return false;
    }
}

/* ---- all choices of a request ---------------------------------------- */

struct reply_batch {
    const struct reply_source *s;
    struct api_request *r;
    struct reply_forms forms;
    struct reply_stops *stops;
    /* When no draw is made any more, all choices say what the first of them did: */
    struct vt_ids said;
    bool is_said, unformed;
};

int reply_batch_open(struct reply_batch **out, const struct reply_source *s,
                     struct api_request *r, struct vt_err *err)
{
    struct reply_batch *b = vt_arena_alloc(&r->arena, sizeof(*b));

    *out = b;
    if (!b)
        return vt_nomem(err);
    b->s = s;
    b->r = r;
    return reply_stops_open(&b->stops, s, r, err);
}

void reply_batch_close(struct reply_batch *b)
{
    if (!b)
        return;
    reply_forms_free(&b->forms);
    reply_stops_close(b->stops);
    vt_ids_free(&b->said);
}

/* Tokens of the form that the request asks for; *unformed: none could be made. */
static int make_form(struct reply_batch *b, const struct reply_draft *d,
                     struct vt_ids *ids, bool *unformed, struct vt_err *err)
{
    struct vt_buf text = {0};
    int rc = VT_OK;

    *unformed = !write_form(&text, d);
    if (text.failed || b->forms.no_memory)
        rc = vt_nomem(err);
    else if (!*unformed)
        rc = vt_tokenizer_encode(b->s->c.tokenizer, text.len > 0 ? text.data : "",
                                 sayable(d, text.data, text.len),
                                 VT_ENCODE_SPECIAL_AS_TEXT, ids, err);
    b->forms.spent += REPLY_BYTE_WORK * text.len;
    vt_buf_free(&text);
    return rc;
}

static int say_form(struct reply *out, struct reply_batch *b, struct reply_draft *d,
                    struct vt_err *err)
{
    bool last = reply_forms_spent(&b->forms);
    struct vt_ids own = {0}, *ids = last ? &b->said : &own;
    int rc = VT_OK;

    d->structured = true;
    if (!last || !b->is_said) {
        rc = make_form(b, d, ids, &b->unformed, err);
        b->is_said = last;
    }
    out->unformed = b->unformed;
    if (rc == VT_OK && !out->unformed)
        rc = say_tokens(out, d, ids->id, ids->n, err);
    vt_ids_free(&own);
    return rc;
}

static int say_unformed(struct reply *out, struct reply_draft *d,
                        const struct api_prompt *p, struct vt_err *err)
{
    enum vt_answers answers = d->s->c.answers;

    d->structured = false;
    if (answers == VT_ANSWER_ECHO && d->r->n_allowed_ids == 0)
        return say_text(out, d, p->text, p->text_len, VT_ENCODE_SPECIAL_AS_TEXT, err);
    return answers == VT_ANSWER_DATASET && d->r->n_allowed_ids == 0
               ? dataset_answer(out, d, p, err)
               : random_words(out, d, err);
}

/* Of what is drawn for a choice. */
static uint64_t key_of(const struct reply_batch *b, uint32_t prompt, uint32_t choice,
                       uint64_t number)
{
    const struct api_request *r = b->r;
    const struct api_prompt *p = &r->prompt[prompt];
    uint32_t n = p->n < HASHED_TOKENS ? p->n : HASHED_TOKENS;
    uint64_t seed = b->s->c.seed, key;

    if (!r->seeded && r->temperature > 0)
        return vt_hash2(vt_hash2(seed, number), (uint64_t)prompt << 32 | choice);
    key = vt_hash_bytes(p->id, n * sizeof(*p->id), p->n);
    if (n < p->n)
        key = vt_hash_bytes(p->id + (p->n - n), n * sizeof(*p->id), key);
    return vt_hash2(vt_hash2(r->seeded ? (uint64_t)r->seed : seed, key), choice);
}

int reply_make(struct reply *out, struct reply_batch *b, uint32_t prompt,
               uint32_t choice, uint64_t number, struct vt_err *err)
{
    struct api_request *r = b->r;
    struct reply_draft d = {.s = b->s,
                            .r = r,
                            .forms = &b->forms,
                            .stops = b->stops,
                            .key = key_of(b, prompt, choice, number)};
    int rc = VT_OK;

    *out = (struct reply){.key = d.key};
    reply_forms_choice(&b->forms);
    if (r->n_tools > 0 && r->tool_choice != API_TOOLS_NONE &&
        (r->tool_choice != API_TOOLS_AUTO ||
         vt_draw_f64(d.key, DRAW_TOOLS, 0) < b->s->c.tool_rate))
        return call_tools(out, &d, err);
    if (r->format != API_TEXT)
        rc = say_form(out, b, &d, err);
    if (rc == VT_OK && (r->format == API_TEXT || out->unformed))
        rc = say_unformed(out, &d, &r->prompt[prompt], err);
    assert(rc != VT_OK || (out->n > 0 && out->text_end[out->n - 1] == out->text_len));
    return rc;
}

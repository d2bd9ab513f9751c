/* prompts.c - prompts to token ids, within the model's length. */
#include <string.h>

#include "http/api/request.h"

/* ---- lengths --------------------------------------------------------- */

static int64_t max_input(const struct api_reading *q, const struct api_limits *l)
{
    return q->c->line == API_LINE_026 ? (int64_t)q->c->max_model_len - l->max_output
                                      : (int64_t)q->c->max_model_len;
}

bool api_limits_check(struct api_reading *q, struct api_limits *l)
{
    unsigned len = q->c->max_model_len;
    const char *value;

    if (l->max_output > (int64_t)len) {
        value = api_int_text(q, l->asked, l->max_output);
        return api_refuse_late(
            q, l->param, value,
            "%s=%s cannot be greater than max_model_len=%s%u. Please request fewer "
            "output tokens.",
            l->param, value, q->c->line == API_LINE_026 ? "max_total_tokens=" : "",
            len);
    }
    if (l->truncates && l->truncate > max_input(q, l)) {
        value = api_int_text(q, q->slot[SLOT_TRUNCATE], l->truncate);
        return api_refuse_late(q, "truncate_prompt_tokens", value,
                               "truncate_prompt_tokens=%s cannot be greater than "
                               "max_model_len%s%s = %lld. "
                               "Please request a smaller truncation size.",
                               value, q->c->line == API_LINE_026 ? " - " : "",
                               q->c->line == API_LINE_026 ? l->param : "",
                               (long long)max_input(q, l));
    }
    return true;
}

static bool refuse_long(struct api_reading *q, const struct api_limits *l, int64_t n,
                        bool is_text)
{
    unsigned len = q->c->max_model_len;
    int64_t max = max_input(q, l);
    const char *least;
    const char *value;

    /* vLLM stops tokenising a text one token behind what it would take. */
    if (is_text)
        n = max + 1;
    least = n == max + 1 ? "at least " : "";
    value = api_printed(q, "%lld", (long long)n);
    if (q->c->line == API_LINE_032)
        return api_refuse_late(
            q, "input_tokens", value,
            "This model's maximum context length is %u tokens. However, your prompt "
            "contains %s%s input tokens, which exceeds this limit even without any "
            "output tokens. Please reduce the length of the input prompt.",
            len, least, value);
    return api_refuse_late(
        q, "input_tokens", value,
        "This model's maximum context length is %u tokens. However, you requested %lld "
        "output tokens and your prompt contains %s%s input tokens, for a total of "
        "%s%lld tokens. Please reduce the length of the input prompt or the number of "
        "requested output tokens.",
        len, (long long)l->max_output, least, value, least,
        (long long)(n + l->max_output));
}

/* A text that could not fit whatever its tokens are is not tokenised at all. */
static bool check_text(struct api_reading *q, const struct api_limits *l,
                       const char *text, size_t len)
{
    const struct vt_tokenizer *t = q->c->tokenizer;
    int64_t max = max_input(q, l);
    size_t chars, most, longest = 1;
    const char *value, *asked = "";

    if (max < 0 || len / 8 <= (size_t)max || l->truncates)
        return true;
    for (uint32_t id = 0; id < vt_tokenizer_facts(t)->vocab_size; id++) {
        size_t n = 0;
        const char *spelt = vt_tokenizer_token(t, id, &n);

        n = spelt ? api_characters(spelt, n) : 0;
        longest = n > longest ? n : longest;
    }
    most = (size_t)max * longest;
    chars = api_characters(text, len);
    if (chars <= most)
        return true;
    value = api_printed(q, "%zu", chars);
    if (q->c->line == API_LINE_026)
        asked = api_printed(q, "you requested %lld output tokens and ",
                            (long long)l->max_output);
    return api_refuse_late(
        q, "input_text", value,
        "This model's maximum context length is %u tokens. However, %syour prompt "
        "contains %s characters (more than %zu characters, which is the upper bound "
        "for %lld input tokens). Please reduce the length of the input prompt%s.",
        q->c->max_model_len, asked, value, most, (long long)max,
        asked[0] ? " or the number of requested output tokens" : "");
}

/* ---- ids ------------------------------------------------------------- */

/* left_out: ids in the middle that were counted, not kept. */
static bool check_prompt(struct api_reading *q, const struct api_limits *l,
                         struct api_prompt *p, uint32_t left_out, bool is_text)
{
    int64_t max = l->truncate, n = (int64_t)p->n + left_out;

    if (l->truncate < 0)
        max = max_input(q, l);
    if (l->truncate < 0 && q->c->line == API_LINE_032 && l->max_output != 0)
        max = max > 0 ? max - 1 : 0;
    if (l->truncates && n > max) {
        /* HF tokenizers of generating models cut at the front unless told otherwise. */
        if (l->truncate_left)
            p->id += p->n - max;
        n = max;
        p->n = (uint32_t)max;
    }
    if (n > max_input(q, l))
        return refuse_long(q, l, n, is_text);
    if (p->n == 0)
        return api_refuse_late(q, NULL, NULL, "The decoder prompt cannot be empty");
    return true;
}

bool api_prompt_from_text(struct api_reading *q, const struct api_limits *l,
                          const char *text, size_t len, unsigned flags,
                          struct api_prompt *p)
{
    struct vt_ids ids = {0};
    struct vt_err err;
    uint32_t *copy;

    if (!check_text(q, l, text, len))
        return false;
    if (vt_tokenizer_encode(q->c->tokenizer, text, len, flags, &ids, &err) != VT_OK) {
        vt_ids_free(&ids);
        return api_refuse_late(q, NULL, NULL, "%s", err.msg);
    }
    copy = vt_arena_alloc(&q->r->arena, sizeof(*copy) * (ids.n + 1));
    if (!copy) {
        vt_ids_free(&ids);
        return api_nomem(q->e);
    }
    if (ids.n > 0)
        memcpy(copy, ids.id, sizeof(*copy) * ids.n);
    p->id = copy;
    p->n = (uint32_t)ids.n;
    vt_ids_free(&ids);
    return check_prompt(q, l, p, 0, true);
}

static bool prompt_from_ids(struct api_reading *q, const struct api_limits *l,
                            const struct vt_node *list, struct api_prompt *p)
{
    int64_t size = vt_tokenizer_facts(q->c->tokenizer)->vocab_size, least = 0, most = 0;
    uint32_t least_at = 0, most_at = 0;
    struct vt_buf text = {0};
    uint32_t *id = vt_arena_alloc(&q->r->arena, sizeof(*id) * (list->n + 1));

    if (!id)
        return api_nomem(q->e);
    for (uint32_t i = 0; i < list->n; i++) {
        int64_t wide = api_get_int(&list->u.item[i], 0);

        if (wide < least)
            least = wide, least_at = i;
        if (wide > most)
            most = wide, most_at = i;
        id[i] = (uint32_t)wide;
    }
    p->id = id;
    p->n = list->n;
    if (!check_prompt(q, l, p, list->left_out, false))
        return false;
    if (least < 0 || most >= size) /* the least is named first */
        return api_refuse_late(q, NULL, NULL, "Token id %s is out of vocabulary",
                               least < 0
                                   ? api_int_text(q, &list->u.item[least_at], least)
                                   : api_int_text(q, &list->u.item[most_at], most));
    p->text = "";
    if (!q->r->echo)
        return true;
    vt_tokenizer_decode(q->c->tokenizer, p->id, p->n, VT_KEEP_SPECIAL, &text);
    p->text_len = text.len;
    p->text = text.failed ? NULL : vt_arena_copy(&q->r->arena, text.data, text.len);
    vt_buf_free(&text);
    return p->text || api_nomem(q->e);
}

/* A limit of our own. */
bool api_check_choices(struct api_reading *q, uint32_t n_prompts)
{
    uint64_t n = (uint64_t)n_prompts * q->r->n;

    if (q->c->max_choices == 0 || n <= q->c->max_choices)
        return true;
    return api_refuse_late(q, NULL, NULL,
                           "%u prompts with n=%u ask for %llu choices; this server "
                           "makes at most %u for a request (--max-choices).",
                           n_prompts, q->r->n, (unsigned long long)n,
                           q->c->max_choices);
}

/* "a", ["a", "b"], [1, 2] or [[1], [2]]. */
bool api_read_prompts(struct api_reading *q, const struct api_limits *l)
{
    const struct vt_node *v =
        q->slot[q->r->kind == API_EMBEDDINGS ? SLOT_INPUT : SLOT_PROMPT];
    bool many = v->kind == VT_LIST && v->n > 0 && v->u.item[0].kind >= VT_STR;
    uint32_t n = many ? v->n : 1;
    unsigned flags = api_get_bool(q->slot[SLOT_ADD_SPECIAL_TOKENS], true)
                         ? VT_ENCODE_ADD_SPECIAL
                         : VT_ENCODE_PLAIN;
    struct api_prompt *prompt;

    if (v->kind == VT_LIST && v->n == 0)
        return api_refuse_late(q, NULL, NULL, "You must pass at least one prompt");
    if (!api_check_choices(q, n))
        return false;
    prompt = vt_arena_alloc(&q->r->arena, sizeof(*prompt) * n);
    if (!prompt)
        return api_nomem(q->e);
    for (uint32_t i = 0; i < n; i++) {
        const struct vt_node *one = many ? &v->u.item[i] : v;

        if (one->kind == VT_STR) {
            prompt[i].text = one->u.str;
            prompt[i].text_len = one->n;
        }
        if (one->kind == VT_STR
                ? !api_prompt_from_text(q, l, one->u.str, one->n, flags, &prompt[i])
                : !prompt_from_ids(q, l, one, &prompt[i]))
            return false;
    }
    q->r->prompt = prompt;
    q->r->n_prompts = n;
    return true;
}

/* read.c - a request from its bytes to what the engine needs, step by step as
 * vLLM's Python frontend goes about it, so that of several faults the same one is
 * named. */
#include <assert.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "http/api/request.h"

/* ---- ids ------------------------------------------------------------- */

/* As base's vt_mix64(), but within the 62 bits that the variant leaves: each step can
 * be undone there, so no two counts give the same. */
uint64_t api_id_bits(uint64_t seed, uint64_t count)
{
    const uint64_t mask = UINT64_MAX >> 2;
    uint64_t x = (seed ^ count) & mask;

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9) & mask;
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb) & mask;
    return x ^ x >> 31;
}

/* The last half of a version 4 UUID, as vLLM cuts it: the first digit is 8, 9, a or b.
 * The seed keeps servers apart. */
void api_new_id(char out[17])
{
    static atomic_uint_least64_t counter, seed;
    uint64_t s = atomic_load_explicit(&seed, memory_order_relaxed), x;
    static const char digits[] = "0123456789abcdef";

    if (s == 0) {
        struct timespec now = {0};
        uint64_t expected = 0;

        (void)clock_gettime(CLOCK_REALTIME, &now);
        s = vt_mix64((uint64_t)now.tv_sec ^ (uint64_t)now.tv_nsec << 32 ^
                     (uint64_t)(uintptr_t)&s) |
            1;
        if (!atomic_compare_exchange_strong(&seed, &expected, s))
            s = expected;
    }
    x = api_id_bits(s, atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed)) |
        UINT64_C(1) << 63;
    for (int i = 15; i >= 0; i--, x >>= 4)
        out[i] = digits[x & 15];
    out[16] = '\0';
}

/* A header's value as Starlette reads it: each byte is a character. NULL: memory. */
static const char *from_latin_1(struct vt_arena *a, const char *text)
{
    char *utf8 = vt_arena_alloc(a, 2 * strlen(text) + 1), *to = utf8;

    for (; utf8 && *text; text++) {
        unsigned char u = (unsigned char)*text;

        if (u >= 0x80)
            *to++ = (char)(0xc0 | u >> 6);
        *to++ = (char)(u >= 0x80 ? 0x80 | (u & 0x3f) : u);
    }
    if (utf8)
        *to = '\0';
    return utf8;
}

static bool set_id(struct api_reading *q, const struct api_headers *h)
{
    static const char *const prefix[] = {
        [API_COMPLETIONS] = "cmpl-", [API_CHAT] = "chatcmpl-",
        [API_RESPONSES] = "resp_",   [API_MESSAGES] = "chatcmpl-",
        [API_EMBEDDINGS] = "embd-",
    };
    const char *own = api_get_str(q->slot[SLOT_REQUEST_ID], NULL), *given = own;
    const char *head = prefix[q->r->kind];
    char fresh[17], *id;
    size_t n_head, n;

    if (h->request_id && q->r->kind != API_RESPONSES &&
        !(given = from_latin_1(&q->r->arena, h->request_id)))
        return api_nomem(q->e);
    if (q->r->kind == API_RESPONSES && given)
        head = ""; /* the client's own word, whole */
    if (!given) {
        api_new_id(fresh);
        given = fresh;
    }
    n_head = strlen(head);
    n = strlen(given);
    id = vt_arena_alloc(&q->r->arena, n_head + n + 1);
    if (!id)
        return api_nomem(q->e);
    memcpy(id, head, n_head);
    memcpy(id + n_head, given, n);
    q->r->id = id;
    return true;
}

/* ---- model ----------------------------------------------------------- */

static bool find_model(struct api_reading *q)
{
    const char *name = api_get_str(q->slot[SLOT_MODEL], "");

    q->r->model = q->c->model;
    if (name[0] == '\0')
        return true;
    q->r->model = name;
    if (!q->c->find || q->c->find(q->c->user, name, &q->r->lora))
        return true;
    if (q->c->line == API_LINE_026)
        return api_error_set(q->e, 404, "NotFoundError", "model",
                             "The model `%s` does not exist.", name);
    return api_error_set(q->e, 404, "NotFoundError", "model",
                         "The model `%s` does not exist. Valid aliases: %s.", name,
                         q->c->model);
}

/* ---- headers --------------------------------------------------------- */

static bool copy_header(struct api_reading *q, const char *value, const char **out)
{
    if (!value)
        return true;
    *out = vt_arena_copy(&q->r->arena, value, strlen(value));
    return *out || api_nomem(q->e);
}

static bool read_headers(struct api_reading *q, const struct api_headers *h)
{
    int64_t n;

    q->r->dp_rank = -1;
    if (h->dp_rank && vt_parse_i64(h->dp_rank, strlen(h->dp_rank), &n) && n >= 0 &&
        n <= INT32_MAX)
        q->r->dp_rank = (int32_t)n;
    if (q->c->line == API_LINE_032 && h->priority &&
        vt_parse_i64(h->priority, strlen(h->priority), &n))
        q->r->priority = n > INT32_MAX   ? INT32_MAX
                         : n < INT32_MIN ? INT32_MIN
                                         : (int32_t)n;
    return copy_header(q, h->traceparent, &q->r->traceparent) &&
           copy_header(q, h->session, &q->r->session);
}

/* ---- steps ----------------------------------------------------------- */

static const struct vt_node *wanted_tokens(const struct api_reading *q)
{
    if (q->r->kind == API_RESPONSES)
        return q->slot[SLOT_MAX_OUTPUT_TOKENS];
    return api_given(q->slot[SLOT_MAX_COMPLETION_TOKENS])
               ? q->slot[SLOT_MAX_COMPLETION_TOKENS]
               : q->slot[SLOT_MAX_TOKENS];
}

static struct api_limits limits_of(const struct api_reading *q)
{
    static const char *const side = "left";
    int64_t def = q->r->kind == API_COMPLETIONS ? 16 : 0;
    struct api_limits l = {
        .max_output =
            q->r->kind == API_EMBEDDINGS ? 0 : api_get_int(wanted_tokens(q), def),
        .asked = wanted_tokens(q),
        .param = q->r->kind == API_RESPONSES ? "max_output_tokens"
                 : q->r->kind == API_MESSAGES ||
                         api_given(q->slot[SLOT_MAX_COMPLETION_TOKENS])
                     ? "max_completion_tokens"
                     : "max_tokens",
        .truncates = api_given(q->slot[SLOT_TRUNCATE]),
        .truncate = api_get_int(q->slot[SLOT_TRUNCATE], -1),
        .truncate_left =
            strcmp(api_get_str(q->slot[SLOT_TRUNCATION_SIDE], side), side) == 0,
    };

    if (l.max_output < INT32_MIN)
        l.max_output = INT32_MIN; /* refused later; sums must not overflow before */
    if (q->r->kind == API_RESPONSES &&
        strcmp(api_get_str(q->slot[SLOT_TRUNCATION], "disabled"), "disabled") != 0)
        l.truncates = true;
    return l;
}

static bool check_supported(struct api_reading *q)
{
    const struct vt_node *kwargs = q->slot[SLOT_CHAT_TEMPLATE_KWARGS];

    if (api_given(q->slot[SLOT_SUFFIX])) {
        if (q->c->line == API_LINE_026)
            return api_refuse_late(q, NULL, NULL, "suffix is not currently supported");
        return api_error_set(
            q->e, 400, "BadRequestError", "suffix",
            "suffix is only supported for models with FIM completion rendering");
    }
    if (api_given(q->slot[SLOT_PREVIOUS])) /* none is kept, as vLLM's default is */
        return api_error_set(q->e, 404, "invalid_request_error", "response_id",
                             "Response with id '%s' not found.",
                             api_get_str(q->slot[SLOT_PREVIOUS], ""));
    if (q->r->kind == API_COMPLETIONS && !api_given(q->slot[SLOT_PROMPT]))
        return api_refuse_late(q, NULL, NULL,
                               "You must set `--enable-prompt-embeds` to input "
                               "`prompt_embeds`.");
    if (api_given(q->slot[SLOT_CHAT_TEMPLATE]) ||
        api_given(vt_get(kwargs, "chat_template")))
        return api_refuse_late(q, NULL, NULL,
                               "Chat template is passed with request, but "
                               "--trust-request-chat-template is not set. Refused "
                               "request with untrusted chat template.");
    return true;
}

/* The longest prompt decides how much may follow any of them. */
static bool resolve_length(struct api_reading *q)
{
    const struct vt_node *wanted = wanted_tokens(q);
    int64_t room = q->c->max_model_len, tokens;

    for (uint32_t i = 0; i < q->r->n_prompts; i++)
        if ((int64_t)q->c->max_model_len - q->r->prompt[i].n < room)
            room = (int64_t)q->c->max_model_len - q->r->prompt[i].n;
    tokens = q->r->kind == API_COMPLETIONS ? 16 : room;
    q->r->limited = api_given(wanted);
    tokens = api_get_int(wanted, tokens);
    q->r->echo_only = q->r->kind == API_COMPLETIONS && q->r->echo && tokens == 0;
    if (q->r->echo_only)
        tokens = 1;
    if (tokens > room)
        tokens = room;
    return api_check_sampling(q, tokens, wanted);
}

static bool may_come(struct api_reading *q)
{
    return !q->c->admit || q->c->admit(q->c->gate, q->r->n, q->e);
}

static bool read_generating(struct api_reading *q)
{
    struct api_limits limits = limits_of(q);
    bool late = q->r->kind == API_RESPONSES; /* looked at first, as vLLM does */

    if (q->r->stream && api_get_bool(q->slot[SLOT_USE_BEAM_SEARCH], false))
        return api_refuse_late(q, NULL, NULL,
                               "Streaming is not currently supported with beam search");
    return find_model(q) && (late || may_come(q)) && check_supported(q) &&
           (!late || may_come(q)) && api_limits_check(q, &limits) &&
           (q->r->kind == API_COMPLETIONS ? api_read_prompts(q, &limits)
                                          : api_read_chat(q, &limits)) &&
           resolve_length(q) && api_check_against_model(q);
}

static bool read_embeddings(struct api_reading *q)
{
    struct api_limits limits = limits_of(q);
    const struct vt_node *input = q->slot[SLOT_INPUT], *chat = q->slot[SLOT_MESSAGES];
    int64_t n = api_get_int(q->slot[SLOT_DIMENSIONS], q->c->embedding_dimensions);
    struct api_error unread;

    q->r->base64 =
        strcmp(api_get_str(q->slot[SLOT_ENCODING_FORMAT], "float"), "float") != 0;
    q->r->dimensions = q->c->embedding_dimensions;
    q->r->max_tokens = 1;
    if (!find_model(q))
        return false;
    if (n < 1 || n > q->c->embedding_dimensions)
        return api_refuse_late(q, NULL, NULL,
                               "dimensions must be between 1 and %u, got %lld.",
                               q->c->embedding_dimensions, (long long)n);
    q->r->dimensions = (uint32_t)n;
    if (!check_supported(q) || !api_limits_check(q, &limits))
        return false;
    /* Texts and ids come first; of the chats, one is taken. */
    if (input && api_value_check(&api_embedding_input, input, q->c->line, &unread))
        return api_read_prompts(q, &limits);
    if (chat && chat->kind == VT_LIST &&
        (chat->n == 0 || chat->u.item[0].kind == VT_MAP))
        return api_read_chat(q, &limits);
    return api_error_set(q->e, 501, "NotImplementedError", NULL,
                         "Only one chat can be embedded at a time, as `messages`");
}

bool api_read(struct api_request *r, const struct api_context *c, enum api_kind kind,
              const char *body, size_t len, const struct api_headers *h,
              struct api_error *e)
{
    static const struct api_field *const schema[] = {
        [API_COMPLETIONS] = api_completion_fields, [API_CHAT] = api_chat_fields,
        [API_RESPONSES] = api_responses_fields,    [API_MESSAGES] = api_messages_fields,
        [API_EMBEDDINGS] = api_embedding_fields,
    };
    static const char *const ids_at[] = {
        [API_COMPLETIONS] = "prompt", [API_EMBEDDINGS] = "input"};
    struct vt_arena arena = r->arena;
    struct api_reading q = {.r = r, .c = c, .e = e};
    bool embeds = kind == API_EMBEDDINGS, ok;

    vt_arena_reset(&arena);
    *r = (struct api_request){
        .arena = arena, .context = c, .kind = kind, .created = (int64_t)time(NULL)};
    ok = api_body_read(&r->arena, c, ids_at[kind], h->content_type, body, len, &q.body,
                       e);
    r->body = ok ? q.body : NULL;
    ok = ok && api_validate(&q) &&
         (!embeds || api_value_check(&api_embedding_type, q.body, c->line, e)) &&
         api_fields_check(schema[kind], q.body, c->line, q.slot, e) &&
         api_validate_after(&q) && set_id(&q, h) && api_read_options(&q) &&
         read_headers(&q, h) && (embeds ? read_embeddings(&q) : read_generating(&q));
    assert(!ok || (r->id && r->model && r->n_prompts > 0 && r->max_tokens > 0));
    if (!ok) {
        api_sanitize(e->message);
        e->anthropic = kind == API_MESSAGES && strcmp(e->type, "Bad Request") != 0;
    }
    return ok;
}

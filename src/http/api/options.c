/* options.c - everything of a request but its prompts, and vLLM's checks of it. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "http/api/request.h"

enum { MAX_CHOICES = 16384 }; /* VLLM_MAX_N_SEQUENCES */

/* ---- lists ----------------------------------------------------------- */

static bool read_ids(struct api_reading *q, const struct vt_node *list,
                     const uint32_t **out, uint32_t *n)
{
    uint32_t *id;

    if (!api_given(list) || list->n == 0)
        return true;
    id = vt_arena_alloc(&q->r->arena, sizeof(*id) * list->n);
    if (!id)
        return api_nomem(q->e);
    for (uint32_t i = 0; i < list->n; i++)
        id[i] = (uint32_t)api_get_int(&list->u.item[i], 0);
    *out = id;
    *n = list->n;
    return true;
}

static bool read_stops(struct api_reading *q, const struct vt_node *v)
{
    uint32_t n = !api_given(v) ? 0 : v->kind == VT_STR ? 1 : v->n;
    const char **stop;

    if (q->r->kind == API_RESPONSES && !api_truth(v))
        n = 0;
    if (n == 0)
        return true;
    stop = vt_arena_alloc(&q->r->arena, sizeof(*stop) * n);
    if (!stop)
        return api_nomem(q->e);
    for (uint32_t i = 0; i < n; i++)
        stop[i] = v->kind == VT_STR ? v->u.str : v->u.item[i].u.str;
    q->r->stop = stop;
    q->r->n_stop = n;
    return true;
}

/* ---- reading --------------------------------------------------------- */

static void read_stream(struct api_reading *q)
{
    struct api_request *r = q->r;
    const struct vt_node *o = q->slot[SLOT_STREAM_OPTIONS];

    r->stream = api_get_bool(q->slot[SLOT_STREAM], false);
    if (!r->stream)
        return;
    r->include_usage =
        q->c->force_usage || api_get_bool(vt_get(o, "include_usage"), false);
    r->continuous_usage =
        q->c->force_usage ||
        (r->include_usage && api_get_bool(vt_get(o, "continuous_usage_stats"), false));
    r->stream_interval = (uint32_t)fmin(
        (double)api_get_int(q->slot[SLOT_STREAM_INTERVAL], 1), (double)UINT32_MAX);
}

static int32_t clip32(int64_t n)
{
    return n > INT32_MAX ? INT32_MAX : n < INT32_MIN ? INT32_MIN : (int32_t)n;
}

static int64_t sample_logprobs(const struct api_reading *q)
{
    const struct vt_node *include = q->slot[SLOT_INCLUDE];

    if (q->r->kind == API_COMPLETIONS)
        return api_given(q->slot[SLOT_LOGPROBS])
                   ? api_get_int(q->slot[SLOT_LOGPROBS], 0)
                   : -2;
    if (q->r->kind == API_CHAT)
        return api_get_bool(q->slot[SLOT_LOGPROBS], false)
                   ? api_get_int(q->slot[SLOT_TOP_LOGPROBS], 0)
                   : -2;
    for (uint32_t i = 0; api_given(include) && i < include->n; i++)
        if (strcmp(include->u.item[i].u.str, "message.output_text.logprobs") == 0)
            return api_get_int(q->slot[SLOT_TOP_LOGPROBS], 0);
    return -2;
}

bool api_read_options(struct api_reading *q)
{
    struct api_request *r = q->r;
    const struct vt_node *const *slot = q->slot;
    int64_t n = api_get_int(slot[SLOT_N], 1);

    r->n = n < 1 || n > MAX_CHOICES ? 1 : (uint32_t)n; /* refused later */
    r->stream_interval = 1;
    read_stream(q);
    r->echo = api_get_bool(slot[SLOT_ECHO], false);
    r->return_token_ids = api_get_bool(slot[SLOT_RETURN_TOKEN_IDS], false);
    r->tokens_as_ids = api_get_bool(slot[SLOT_TOKENS_AS_IDS], false);
    r->include_stop = api_get_bool(slot[SLOT_INCLUDE_STOP], false);
    r->skip_special = api_get_bool(slot[SLOT_SKIP_SPECIAL], true);
    r->ignore_eos = api_get_bool(slot[SLOT_IGNORE_EOS], false);
    r->temperature = api_get_real(slot[SLOT_TEMPERATURE], 1.0);
    r->top_p = api_get_real(slot[SLOT_TOP_P], 1.0);
    r->seeded = api_given(slot[SLOT_SEED]);
    r->seed = api_get_int(slot[SLOT_SEED], 0);
    r->priority = clip32(api_get_int(slot[SLOT_PRIORITY], 0));
    r->cache_salt = api_get_str(slot[SLOT_CACHE_SALT], NULL);
    r->session = api_get_str(slot[SLOT_SESSION_ID], NULL);
    r->kv_transfer = slot[SLOT_KV_TRANSFER];
    r->parallel_tools = api_get_bool(slot[SLOT_PARALLEL_TOOLS], true);
    /* -1 asks for the whole vocabulary, which no writer gives; refused by the limit. */
    n = sample_logprobs(q);
    r->logprobs = n < -1 ? -1 : clip32(n);
    r->prompt_logprobs = clip32(api_get_int(slot[SLOT_PROMPT_LOGPROBS], -1));
    if (r->kind == API_COMPLETIONS && r->echo && !api_given(slot[SLOT_PROMPT_LOGPROBS]))
        r->prompt_logprobs = r->logprobs;
    return read_stops(q, r->kind == API_MESSAGES ? slot[SLOT_STOP_SEQUENCES]
                                                 : slot[SLOT_STOP]) &&
           read_ids(q, slot[SLOT_STOP_TOKEN_IDS], &r->stop_id, &r->n_stop_ids) &&
           read_ids(q, slot[SLOT_ALLOWED_TOKEN_IDS], &r->allowed_id,
                    &r->n_allowed_ids) &&
           api_read_tools(q) && api_read_format(q);
}

/* ---- SamplingParams -------------------------------------------------- */

/* Ranges, in vLLM's order; some name the parameter. */
static const struct {
    enum api_slot slot;
    double otherwise, min, max;
    const char *param, *message;
} reals[] = {
    {SLOT_PRESENCE_PENALTY, 0, -2, 2, NULL, "presence_penalty must be in [-2, 2]"},
    {SLOT_FREQUENCY_PENALTY, 0, -2, 2, NULL, "frequency_penalty must be in [-2, 2]"},
    {SLOT_REPETITION_PENALTY, 1, -DBL_MAX, DBL_MAX, NULL,
     "repetition_penalty must be a finite number"},
    {SLOT_REPETITION_PENALTY, 1, DBL_TRUE_MIN, DBL_MAX, NULL,
     "repetition_penalty must be greater than zero"},
    {SLOT_TEMPERATURE, 1, -DBL_MAX, DBL_MAX, "temperature",
     "temperature must be a finite number"},
    {SLOT_TEMPERATURE, 1, 0, DBL_MAX, "temperature",
     "temperature must be non-negative"},
    {SLOT_TEMPERATURE, 1, 0, 2, "temperature", "temperature must be in [0, 2]"},
    {SLOT_TOP_P, 1, DBL_TRUE_MIN, 1, "top_p", "top_p must be in (0, 1]"},
    {SLOT_MIN_P, 0, 0, 1, NULL, "min_p must be in [0, 1]"},
};

static bool check_reals(struct api_reading *q)
{
    int64_t top_k = api_get_int(q->slot[SLOT_TOP_K], 0);

    for (size_t i = 0; i < VT_COUNT(reals); i++) {
        double v = api_get_real(q->slot[reals[i].slot], reals[i].otherwise);
        struct vt_buf text = {0};
        const char *value;

        if (reals[i].slot == SLOT_MIN_P && top_k < -1) /* which comes before it */
            return api_refuse_late(q, NULL, NULL,
                                   "top_k must be 0 (disable), or at least 1, got "
                                   "%s.",
                                   api_int_text(q, q->slot[SLOT_TOP_K], top_k));
        if (v >= reals[i].min && v <= reals[i].max)
            continue;
        api_py_float(&text, v);
        value = api_kept(q, &text);
        return api_refuse_late(q, reals[i].param, reals[i].param ? value : NULL,
                               "%s, got %s.", reals[i].message, value);
    }
    return true;
}

static bool check_lengths(struct api_reading *q, int64_t max_tokens,
                          const struct vt_node *asked)
{
    int64_t min = api_get_int(q->slot[SLOT_MIN_TOKENS], 0);
    const char *max_said, *min_said;

    if (max_tokens >= 1 && min >= 0 && min <= max_tokens) {
        q->r->min_tokens = (uint32_t)min;
        return true;
    }
    max_said = api_int_text(q, asked, max_tokens);
    min_said = api_int_text(q, q->slot[SLOT_MIN_TOKENS], min);
    if (max_tokens < 1)
        return api_refuse_late(q, "max_tokens", max_said,
                               "max_tokens must be at least 1, got %s.", max_said);
    if (min < 0)
        return api_refuse_late(q, NULL, NULL,
                               "min_tokens must be greater than or equal to 0, got "
                               "%s.",
                               min_said);
    return api_refuse_late(q, NULL, NULL,
                           "min_tokens must be less than or equal to "
                           "max_tokens=%s, got %s.",
                           max_said, min_said);
}

/* Keys that are no integers, as a list. */
static bool check_biases(struct api_reading *q)
{
    const struct vt_node *bias = q->slot[SLOT_LOGIT_BIAS];
    struct vt_buf text = {0};
    const char *keys;
    unsigned n = 0;

    for (uint32_t i = 0; api_given(bias) && i < bias->n; i++) {
        const char *key = bias->u.item[i].key;
        const struct vt_node v = {
            .kind = VT_STR, .n = (uint32_t)strlen(key), .u.str = key};

        if (api_get_int(&v, INT64_MIN) != INT64_MIN)
            continue;
        vt_buf_str(&text, n++ == 0 ? "[" : ", ");
        api_py_repr(&text, &v);
    }
    if (n == 0)
        return true;
    vt_buf_char(&text, ']');
    keys = api_kept(q, &text);
    return api_refuse_late(q, "logit_bias", keys,
                           "logit_bias contains key(s) that cannot be converted to "
                           "integer token IDs: %s",
                           keys);
}

bool api_check_sampling(struct api_reading *q, int64_t max_tokens,
                        const struct vt_node *asked)
{
    const struct vt_node *bad = q->slot[SLOT_BAD_WORDS];
    int64_t n = api_get_int(q->slot[SLOT_N], 1);

    if (!check_biases(q))
        return false;
    if (n < 1)
        return api_refuse_late(q, NULL, NULL, "n must be at least 1, got %s.",
                               api_int_text(q, q->slot[SLOT_N], n));
    if (n > MAX_CHOICES)
        return api_refuse_late(q, NULL, NULL,
                               "n must be at most %d, got %s. To increase this limit, "
                               "set the VLLM_MAX_N_SEQUENCES environment variable.",
                               MAX_CHOICES, api_int_text(q, q->slot[SLOT_N], n));
    if (!api_check_choices(q, q->r->n_prompts) || !check_reals(q) ||
        !check_lengths(q, max_tokens, asked))
        return false;
    for (uint32_t i = 0; i < q->r->n_stop; i++)
        if (q->r->stop[i][0] == '\0')
            return api_refuse_late(q, NULL, NULL,
                                   "stop cannot contain an empty string.");
    for (uint32_t i = 0; api_given(bad) && i < bad->n; i++)
        if (bad->u.item[i].n == 0)
            return api_refuse_late(q, NULL, NULL,
                                   "bad_words cannot contain an empty string. Got "
                                   "bad_words=%s",
                                   api_str_of(q, bad));
    if (q->r->n > 1 && q->r->temperature < 1e-5)
        return api_refuse_late(
            q, NULL, NULL, "n must be 1 when using greedy sampling, got %u.", q->r->n);
    q->r->max_tokens = (uint32_t)max_tokens;
    return true;
}

/* ---- against the model ----------------------------------------------- */

static bool check_logprobs(struct api_reading *q, const char *what, const char *param,
                           int64_t n)
{
    int64_t asked = n == -1 ? vt_tokenizer_facts(q->c->tokenizer)->vocab_size : n;
    const char *value;

    if (asked <= q->c->max_logprobs)
        return true;
    value = api_printed(q, "%lld", (long long)asked);
    return api_refuse_late(q, param, value,
                           "Requested %s logprobs of %s, which is greater than max "
                           "allowed: %u",
                           what, value, q->c->max_logprobs);
}

/* Those of a list that the vocabulary does not have, as Python writes them; NULL: it
 * has all. */
static const char *unknown_ids(struct api_reading *q, const struct vt_node *list)
{
    int64_t size = vt_tokenizer_facts(q->c->tokenizer)->vocab_size;
    struct vt_buf text = {0};

    for (uint32_t i = 0; api_given(list) && i < list->n; i++) {
        const struct vt_node key = {
            .kind = VT_STR,
            .n = list->kind == VT_MAP ? (uint32_t)strlen(list->u.item[i].key) : 0,
            .u.str = list->u.item[i].key};
        const struct vt_node *asked = list->kind == VT_MAP ? &key : &list->u.item[i];
        int64_t id = api_get_int(asked, -1);

        if (id >= 0 && id < size)
            continue;
        vt_buf_str(&text, text.len == 0 ? "[" : ", ");
        vt_buf_str(&text, api_int_text(q, asked, id));
    }
    if (text.len == 0)
        return NULL;
    vt_buf_char(&text, ']');
    return api_kept(q, &text);
}

static bool check_vocab(struct api_reading *q, const struct vt_node *list,
                        const char *param)
{
    const char *ids = unknown_ids(q, list);

    return !ids ||
           api_refuse_late(q, param, ids,
                           "token_id(s) %s in %s contain out-of-vocab token "
                           "ids. Vocabulary size: %u",
                           ids, param, vt_tokenizer_facts(q->c->tokenizer)->vocab_size);
}

bool api_check_against_model(struct api_reading *q)
{
    int64_t sample = sample_logprobs(q);
    const struct vt_node *prompt = q->slot[SLOT_PROMPT_LOGPROBS];
    const struct vt_node *allowed = q->slot[SLOT_ALLOWED_TOKEN_IDS];
    const char *ids;
    int64_t n_prompt = api_given(prompt) ? api_get_int(prompt, 0)
                       : q->r->echo && q->r->kind == API_COMPLETIONS ? sample
                                                                     : 0;

    if ((sample >= -1 && !check_logprobs(q, "sample", "logprobs", sample)) ||
        (n_prompt >= -1 && !check_logprobs(q, "prompt", "prompt_logprobs", n_prompt)) ||
        !check_vocab(q, q->slot[SLOT_LOGIT_BIAS], "logit_bias") ||
        (q->c->line == API_LINE_032 &&
         !check_vocab(q, q->slot[SLOT_STOP_TOKEN_IDS], "stop_token_ids")))
        return false;
    if (api_given(allowed) && allowed->n == 0)
        return api_refuse_late(q, "allowed_token_ids", "[]",
                               "allowed_token_ids is not None and empty!");
    ids = unknown_ids(q, allowed);
    return !ids || api_refuse_late(q, "allowed_token_ids", ids,
                                   "allowed_token_ids contains out-of-vocab token id!");
}

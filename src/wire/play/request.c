/* request.c - a request as the engines keep it, and the keys of its blocks. */
#include "wire/play/logprobs.h"
#include "wire/play/play.h"

#include <string.h>

enum {
    MAX_LOGPROBS = 1 << 24, /* of one request in one message */
    MAX_TEXT = 4096,        /* bytes of an id or name; they come with every message */
    MAX_FEATURES = 1 << 16,
};
_Static_assert((int)MAX_LOGPROBS <= (int)LOGPROBS_MAX_CELLS,
               "the engine thread can make them");

/* ---- what its blocks hold ---------------------------------------------- */

static uint32_t output_token(const void *request, uint32_t index)
{
    const struct play_request *r = request;

    return script_token(&r->script, index);
}

/* ---- making one ------------------------------------------------------- */

struct shape { /* what of a request takes memory */
    const struct wire_request *w;
    struct wire_sampling sampling;
    struct wire_lora lora;
    struct mp_span salt, session; /* characters */
    uint32_t n_prompt;
    uint32_t n_features; /* images and the like */
    size_t feature_bytes;
    struct vt_arena arena;
};

/* Bytes that so many, or a text of so many, take of a request's memory. */
#define ROOM(len)      (((len) + 7) / 8 * 8)
#define TEXT_ROOM(len) ROOM((len) + 1)

/* Takes the next bytes of the request's memory. */
static void *carve_bytes(char **at, size_t len)
{
    void *p = *at;

    *at += ROOM(len);
    return p;
}

static const char *carve_text(char **at, struct mp_span text)
{
    char *p;

    if (!text.at)
        return NULL;
    p = carve_bytes(at, text.len + 1);
    memcpy(p, text.at, text.len);
    p[text.len] = '\0';
    return p;
}

static struct mp_span feature_name(struct mp_span feature)
{
    return mp_text(mp_get(feature, "identifier"));
}

static int by_offset(const void *pa, const void *pb)
{
    const struct vt_mm_item *a = pa, *b = pb;

    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return strcmp(a->id, b->id);
}

/* Counts images and the like, and the bytes of their names. */
static int read_features(struct shape *s, struct mp_span features, struct vt_err *err)
{
    struct mp_in in;
    uint32_t n;

    mp_in_init(&in, features.at, features.len);
    if (mp_is_nil(features) || mp_peek(&in) != MP_ARRAY)
        return VT_OK;
    n = mp_array(&in);
    if (n > MAX_FEATURES)
        return vt_fail(err, VT_EINPUT, "%u images and the like", n);
    for (; s->n_features < n && !in.bad; s->n_features++) {
        struct mp_span name = feature_name(mp_raw(&in));

        if (name.len > MAX_TEXT)
            return vt_fail(err, VT_EINPUT, "an id or name of more than %d bytes",
                           MAX_TEXT);
        s->feature_bytes += TEXT_ROOM(name.len);
    }
    return VT_OK;
}

/* Prompts whose placeholder tokens are equal differ by them. */
static void carve_features(struct vt_chain *c, const struct shape *s, char **at)
{
    struct vt_mm_item *item = carve_bytes(at, sizeof(*item) * s->n_features);
    struct mp_in in;

    mp_in_init(&in, s->w->mm_features.at, s->w->mm_features.len);
    (void)mp_array(&in);
    for (uint32_t i = 0; i < s->n_features; i++) {
        struct mp_span feature = mp_raw(&in), place = mp_get(feature, "mm_position");
        const char *name = carve_text(at, feature_name(feature));

        item[i] = (struct vt_mm_item){
            .id = name ? name : "",
            .offset = (uint32_t)mp_natural(mp_get(place, "offset"), UINT32_MAX, 0),
            .length = (uint32_t)mp_natural(mp_get(place, "length"), UINT32_MAX, 1),
        };
    }
    qsort(item, s->n_features, sizeof(*item), by_offset);
    for (uint32_t i = 0; i + 1 < s->n_features; i++) /* none reaches into the next */
        if (item[i].length > item[i + 1].offset - item[i].offset)
            item[i].length = item[i + 1].offset - item[i].offset;
    c->mm = item;
    c->n_mm = s->n_features;
}

/* What is far too large is refused before it is copied. */
static int read_shape(struct shape *s, const struct play *p,
                      const struct wire_request *w, struct vt_err *err)
{
    int rc = wire_sampling_read(&s->sampling, &s->arena, w->sampling, err);

    if (rc != VT_OK)
        return rc;
    if (mp_is_nil(w->sampling))
        return vt_fail(err, VT_EINPUT,
                       "it has no sampling_params: only generation is played");
    if (!mp_is_nil(w->lora) && (rc = wire_lora_read(&s->lora, w->lora, err)))
        return rc;
    s->w = w;
    s->salt = mp_text(w->cache_salt);
    s->session = mp_text(w->session_id);
    s->n_prompt = w->prompt ? w->n_prompt : wire_embedded_tokens(w->prompt_embeds);
    if (s->n_prompt > p->engine.max_model_len)
        return vt_fail(err, VT_EINPUT, "a prompt of %u tokens, max-model-len is %u",
                       s->n_prompt, p->engine.max_model_len);
    if (w->id.len > MAX_TEXT || s->lora.name.len > MAX_TEXT ||
        s->lora.path.len > MAX_TEXT || s->salt.len > MAX_TEXT ||
        s->session.len > MAX_TEXT)
        return vt_fail(err, VT_EINPUT, "an id or name of more than %d bytes", MAX_TEXT);
    return read_features(s, w->mm_features, err);
}

static struct play_request *allocate_request(const struct shape *s)
{
    const struct wire_request *w = s->w;
    size_t texts = TEXT_ROOM(w->id.len) + TEXT_ROOM(s->lora.name.len) +
                   TEXT_ROOM(s->lora.path.len) + TEXT_ROOM(s->salt.len) +
                   TEXT_ROOM(s->session.len) + s->feature_bytes;
    size_t size = sizeof(struct play_request) + texts +
                  ROOM(sizeof(uint32_t) * s->n_prompt) +
                  ROOM(sizeof(struct vt_mm_item) * s->n_features);
    struct play_request *r = calloc(1, size);
    struct vt_chain *c;
    char *at;

    if (!r)
        return NULL;
    at = (char *)(r + 1);
    c = &r->blocks.chain;
    r->blocks.n_prompt = s->n_prompt;
    if (w->prompt) {
        uint32_t *prompt = carve_bytes(&at, sizeof(uint32_t) * s->n_prompt);

        memcpy(prompt, w->prompt, sizeof(uint32_t) * s->n_prompt);
        r->blocks.prompt = prompt;
    }
    r->id = carve_text(&at, w->id);
    r->id_len = (uint32_t)w->id.len;
    c->lora = carve_text(&at, s->lora.name);
    c->lora_path = carve_text(&at, s->lora.path);
    c->salt = carve_text(&at, s->salt);
    c->embedded = w->prompt ? NULL : r->id;
    r->blocks.session = carve_text(&at, s->session);
    if (s->n_features > 0)
        carve_features(c, s, &at);
    return r;
}

/* Where the keys of its blocks start from: equal for requests that may share. */
static uint64_t first_key(const struct play_request *r)
{
    const char *salt = r->blocks.chain.salt, *lora = r->blocks.chain.lora;
    uint64_t h = 1;

    if (salt)
        h = vt_hash_bytes(salt, strlen(salt), vt_hash2(h, 1));
    if (lora)
        h = vt_hash_bytes(lora, strlen(lora), vt_hash2(h, 2));
    if (!r->blocks.prompt) /* what was embedded is not looked at */
        h = vt_hash_bytes(r->id, r->id_len, vt_hash2(h, 4));
    return h;
}

static uint64_t count_logprobs(const struct play *p, int32_t k, uint32_t tokens)
{
    uint64_t most = p->c->vocab_size;

    if (k == INT32_MIN)
        return 0;
    return ((k < 0 || (uint64_t)k > most ? most : (uint64_t)k) + 1) * tokens;
}

static int check_request(const struct play *p, const struct play_request *r,
                         struct vt_err *err)
{
    struct vt_request q = {
        .prompt_tokens = r->blocks.n_prompt,
        .max_tokens = r->script.max_tokens,
        .min_tokens = r->script.min_tokens,
        .eos_at = r->script.eos_at,
        .stop_at = r->script.stop_at,
        .block_key = vt_blocks_key,
    };
    uint32_t at_once =
        r->script.steps ? r->script.max_tokens : p->engine.num_spec_tokens + 1;
    int rc = vt_request_check(&p->engine, &q, err);

    if (rc != VT_OK)
        return rc;
    /* More at a time would hold up the engines, or be too many for a message. */
    if (count_logprobs(p, r->logprobs, at_once) > MAX_LOGPROBS ||
        count_logprobs(p, r->prompt_logprobs, r->blocks.n_prompt) > MAX_LOGPROBS)
        return vt_fail(err, VT_EINPUT, "it asks for too many log probabilities");
    return VT_OK;
}

/* kv_transfer_params, which come as MessagePack and are read as JSON is. */
static int read_transfer(struct play_request *r, const struct wire_request *w,
                         struct vt_arena *arena, struct vt_err *err)
{
    struct mp_span params =
        mp_get(mp_get(w->sampling, "extra_args"), "kv_transfer_params");
    const struct vt_node *map = NULL;
    struct vt_buf text = {0};
    int rc = VT_OK;

    if (!mp_is_nil(params) && mp_json(&text, params))
        rc = vt_json_parse(arena, text.data, text.len, 1, &map, err);
    if (rc == VT_OK)
        rc = vt_kv_ask_read(&r->kv, map, err);
    vt_buf_free(&text);
    return vt_within(err, rc, "kv_transfer_params");
}

static int fill_request(struct play_request *r, struct play *p, struct shape *s,
                        struct vt_err *err)
{
    const struct wire_request *w = s->w;
    int rc;

    r->play = p;
    r->client = w->client_index;
    r->blocks.lora_id = s->lora.id;
    r->blocks.size = vt_hash_block_size(&p->engine);
    r->blocks.output = output_token;
    r->blocks.request = r;
    play_request_release(r, p->engine.vllm);
    r->blocks.first_key = first_key(r);
    r->skip_cache = s->sampling.skip_reading_prefix_cache ||
                    s->sampling.prompt_logprobs != INT32_MIN;
    r->greedy = s->sampling.temperature <= 0;
    r->abort_at_once = w->abort_immediately;
    r->logprobs = s->sampling.logprobs;
    r->prompt_logprobs = s->sampling.prompt_logprobs;
    r->priority = w->priority;
    r->arrival_time = w->arrival_time;
    r->wave = w->current_wave;
    spans_parent(r, w->trace_headers);
    rc = script_begin(p->scripts, w, &s->sampling, p->engine.max_model_len, &r->script,
                      err);
    if (rc == VT_OK)
        rc = check_request(p, r, err);
    if (rc == VT_OK && p->engine.remote.on)
        rc = read_transfer(r, w, &s->arena, err);
    if (rc == VT_OK)
        r->fail = failure_next(p->failures, &w->external_id);
    return rc;
}

void play_request_release(struct play_request *r, uint32_t vllm)
{
    const struct play *p = r->play;
    struct vt_chain *c = &r->blocks.chain;
    bool told = p->c->kv.on && p->engine.enable_prefix_caching;

    c->vllm = vllm;
    c->none_hash = told ? p->none_hash[vllm - VT_VLLM_OLDEST] : NULL;
}

int play_request_new(struct play_request **out, struct play *p,
                     const struct wire_request *w, struct vt_err *err)
{
    struct shape s = {0};
    struct play_request *r = NULL;
    int rc = read_shape(&s, p, w, err);

    if (rc == VT_OK) {
        r = allocate_request(&s);
        rc = r ? fill_request(r, p, &s, err) : vt_nomem(err);
    }
    vt_arena_free(&s.arena);
    if (rc != VT_OK) {
        play_request_free(r);
        r = NULL;
    }
    *out = r;
    return rc;
}

void play_request_free(struct play_request *r)
{
    if (!r)
        return;
    script_end(&r->script);
    vt_kv_ask_free(&r->kv);
    vt_chain_free(&r->blocks.chain);
    free(r);
}

void play_request_event(struct play_request *r, int type, double timestamp)
{
    if (r->n_events < PLAY_EVENTS)
        r->event[r->n_events++] = (struct wire_event){type, timestamp};
}

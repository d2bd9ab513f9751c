/* encode.c - events as maps, in the form of vLLM 0.24 and later: keys in
 * msgspec's order, those with their default left out. */
#include "kvevents/kvevents.h"

#include <string.h>

static const char *const medium_names[] = {"GPU", "CPU"}; /* of enum vt_medium */

enum { SESSIONS_SINCE = 30 };

static void put_hash(struct vt_kv_batch *b, const uint8_t *hash)
{
    if (b->raw_hashes)
        mp_put_bin(&b->events, hash, VT_HASH_BYTES);
    else
        mp_put_u64(&b->events, vt_hash_short(hash));
}

/* A field whose value is a text; NULL: nil. */
static void put_text(struct vt_buf *b, const char *key, const char *value)
{
    mp_put_str(b, key);
    if (value)
        mp_put_str(b, value);
    else
        mp_put_nil(b);
}

static void put_hashes(struct vt_kv_batch *b, const uint8_t *hash, uint32_t n)
{
    mp_put_str(&b->events, "block_hashes");
    mp_put_array(&b->events, n);
    for (uint32_t i = 0; i < n; i++)
        put_hash(b, hash + (size_t)i * VT_HASH_BYTES);
}

/* What beside the tokens goes into each kept block's hash, untagged in all releases:
 * the LoRA's name, images with their places in the block, and the salt for a request's
 * first block. */
static void put_extra_keys(struct vt_buf *b, const struct vt_kv_stored *s)
{
    const struct vt_chain *c = &s->of->chain;

    mp_put_str(b, "extra_keys");
    mp_put_array(b, s->n_hashes);
    for (uint32_t i = 0; i < s->n_hashes; i++) {
        uint64_t first = s->first_token + (uint64_t)s->at[i] * s->block_size;
        bool salted = first == 0 && c->salt;
        uint32_t from,
            n_mm = vt_mm_within(c->mm, c->n_mm, first, first + s->block_size, &from);
        uint32_t n = (c->lora != NULL) + n_mm + salted + (c->embedded != NULL);

        if (n == 0)
            mp_put_nil(b);
        else
            mp_put_array(b, n);
        if (c->lora)
            mp_put_str(b, c->lora);
        for (uint32_t k = from; k < from + n_mm; k++) {
            mp_put_array(b, 2);
            mp_put_str(b, c->mm[k].id);
            mp_put_i64(b, (int64_t)c->mm[k].offset - (int64_t)first);
        }
        if (salted)
            mp_put_str(b, c->salt);
        if (c->embedded)
            mp_put_bin(b, c->embedded, strlen(c->embedded));
    }
}

void vt_kv_batch_stored(struct vt_kv_batch *b, const struct vt_kv_stored *s)
{
    const char *session = b->vllm >= SESSIONS_SINCE ? s->of->session : NULL;
    const char *lora = s->of->chain.lora;
    bool told_keys = s->n_hashes > 0 && s->medium == VT_MEDIUM_GPU;
    struct vt_buf *e = &b->events;

    mp_put_map(e, 10U + told_keys + (s->window > 0) + (session != NULL));
    put_text(e, "type", "BlockStored");
    put_hashes(b, s->hash, s->n_hashes);
    mp_put_str(e, "parent_block_hash");
    if (s->parent)
        put_hash(b, s->parent);
    else
        mp_put_nil(e);
    mp_put_str(e, "token_ids");
    mp_put_array(e, s->n_tokens);
    for (uint32_t i = 0; i < s->n_tokens; i++)
        mp_put_u64(e, s->token[i]);
    mp_put_str(e, "block_size");
    mp_put_u64(e, s->block_size);
    mp_put_str(e, "lora_id");
    if (lora)
        mp_put_i64(e, s->of->lora_id);
    else
        mp_put_nil(e);
    put_text(e, "medium", medium_names[s->medium]);
    put_text(e, "lora_name", lora);
    if (told_keys)
        put_extra_keys(e, s);
    mp_put_str(e, "group_idx");
    mp_put_u64(e, s->group);
    put_text(e, "kv_cache_spec_kind", s->kind);
    if (s->window > 0) {
        mp_put_str(e, "kv_cache_spec_sliding_window");
        mp_put_u64(e, s->window);
    }
    if (session)
        put_text(e, "session_id", session);
    b->n_events++;
}

/* Of a chunk in the host's memory only its hash is told. */
static void batch_kept(struct vt_kv_batch *b, const uint8_t *hash, uint32_t group)
{
    struct vt_buf *e = &b->events;

    mp_put_map(e, 9);
    put_text(e, "type", "BlockStored");
    put_hashes(b, hash, 1);
    mp_put_str(e, "parent_block_hash");
    mp_put_nil(e);
    mp_put_str(e, "token_ids");
    mp_put_array(e, 0);
    mp_put_str(e, "block_size");
    mp_put_u64(e, 0);
    mp_put_str(e, "lora_id");
    mp_put_nil(e);
    put_text(e, "medium", medium_names[VT_MEDIUM_CPU]);
    put_text(e, "lora_name", NULL);
    mp_put_str(e, "group_idx");
    mp_put_u64(e, group);
    b->n_events++;
}

void vt_kv_batch_removed(struct vt_kv_batch *b, const uint8_t *hash, uint32_t n,
                         uint32_t group, enum vt_medium medium)
{
    struct vt_buf *e = &b->events;

    mp_put_map(e, 4);
    put_text(e, "type", "BlockRemoved");
    put_hashes(b, hash, n);
    put_text(e, "medium", medium_names[medium]);
    mp_put_str(e, "group_idx");
    mp_put_u64(e, group);
    b->n_events++;
}

void vt_kv_batch_cleared(struct vt_kv_batch *b)
{
    mp_put_map(&b->events, 1);
    put_text(&b->events, "type", "AllBlocksCleared");
    b->n_events++;
}

/* ---- a scheduler's events --------------------------------------------- */

/* Their tokens: within the prompt where they lie, else gathered. */
static const uint32_t *message_tokens(const struct vt_blocks *k,
                                      const struct vt_kv_message *m,
                                      struct vt_buf *gathered)
{
    uint32_t *token;

    if (k->prompt && m->first_token + m->n_tokens <= k->n_prompt)
        return k->prompt + m->first_token;
    token = (uint32_t *)(void *)vt_buf_room(gathered, m->n_tokens * sizeof(*token));
    for (uint32_t i = 0; token && i < m->n_tokens; i++)
        token[i] = vt_blocks_token(k, m->first_token + i);
    return token;
}

/* The hashes of those that are kept, and which they are. */
static void message_hashes(const struct vt_blocks *k, const struct vt_kv_message *m,
                           const struct vt_kv_event *e, struct vt_buf *hash,
                           struct vt_buf *at)
{
    for (uint32_t i = 0; m->medium == VT_MEDIUM_CPU && i < m->n_kept; i++)
        vt_buf_add(hash, k->chain.hash[m->first_hash + i], VT_HASH_BYTES);
    for (uint32_t i = 0; m->medium == VT_MEDIUM_GPU && i < m->n_events; i++) {
        if (e[i].key == 0)
            continue;
        vt_buf_add(hash, k->chain.hash[(e[i].index + 1) * m->units - 1], VT_HASH_BYTES);
        vt_buf_add(at, &i, sizeof(i));
    }
}

static void collect_stored(struct vt_kv_batch *b, const struct vt_blocks *k,
                           const struct vt_kv_event *e, const struct vt_kv_message *m)
{
    struct vt_buf gathered = {0}, hash = {0}, at = {0};
    uint32_t before = e->index * m->units;
    struct vt_kv_stored s = {
        .n_hashes = m->n_kept,
        .parent = before > 0 ? k->chain.hash[before - 1] : NULL,
        .token = message_tokens(k, m, &gathered),
        .first_token = m->first_token,
        .n_tokens = m->n_tokens,
        .block_size = m->block_size,
        .of = k,
        .group = e->group,
        .kind = m->kind,
        .window = m->window,
        .medium = m->medium,
    };

    message_hashes(k, m, e, &hash, &at);
    if (gathered.failed || hash.failed || at.failed) {
        b->events.failed = true;
    } else {
        s.hash = (const uint8_t *)hash.data;
        s.at = (const uint32_t *)(const void *)at.data;
        vt_kv_batch_stored(b, &s);
    }
    vt_buf_free(&gathered);
    vt_buf_free(&hash);
    vt_buf_free(&at);
}

/* Of a block that goes only the key is known: the end of its hash, which is all that is
 * told. */
static void hash_of_key(uint64_t key, uint8_t hash[VT_HASH_BYTES])
{
    memset(hash, 0, VT_HASH_BYTES);
    for (uint32_t j = 0; j < 8; j++)
        hash[VT_HASH_BYTES - 1 - j] = (uint8_t)(key >> (8 * j));
}

/* Of the n events those that are told together; returns how many. */
static uint32_t collect_removed(struct vt_kv_batch *b, const struct vt_kv_event *e,
                                uint32_t n)
{
    struct vt_buf hashes = {0};
    uint32_t told = 0;

    do {
        uint8_t hash[VT_HASH_BYTES];

        hash_of_key(e[told].key, hash);
        vt_buf_add(&hashes, hash, sizeof(hash));
    } while (++told < n && e[told].kind == VT_KV_REMOVED && e[told].joins);
    if (hashes.failed)
        b->events.failed = true;
    else
        vt_kv_batch_removed(b, (const uint8_t *)hashes.data, told, e->group,
                            (enum vt_medium)e->medium);
    vt_buf_free(&hashes);
    return told;
}

/* Whoever stored the chunk may be gone: then only its hash is told. */
static void collect_kept(struct vt_kv_batch *b, const struct vt_kv_event *e)
{
    uint8_t hash[VT_HASH_BYTES];

    hash_of_key(e->key, hash);
    batch_kept(b, hash, e->group);
}

void vt_kv_batch_collect(struct vt_kv_batch *b, const struct vt_engine_config *c,
                         struct vt_sched *s, vt_kv_find *find, void *user)
{
    uint32_t n, told;
    const struct vt_kv_event *e = vt_sched_kv_events(s, &n);

    for (uint32_t i = 0; i < n; i += told) {
        told = 1;
        if (e[i].kind == VT_KV_STORED) {
            struct vt_kv_message m = vt_kv_message(c, &e[i], n - i);
            const struct vt_blocks *k = find(user, e[i].tag);

            if (k && !m.bare &&
                k->chain.n >= (size_t)(e[i].index + m.n_events) * m.units)
                collect_stored(b, k, &e[i], &m);
            else if (m.medium == VT_MEDIUM_CPU)
                collect_kept(b, &e[i]);
            told = m.n_events;
        } else if (e[i].kind == VT_KV_REMOVED) {
            told = collect_removed(b, &e[i], n - i);
        } else {
            vt_kv_batch_cleared(b);
        }
    }
    vt_sched_kv_events_clear(s);
}

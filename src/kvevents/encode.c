/* encode.c - events as maps, in the form of vLLM 0.24 and later: keys in
 * msgspec's order, those with their default left out. */
#include "kvevents/kvevents.h"

#include <string.h>

#define MEDIUM "GPU"
#define KIND   "full_attention"

enum { GROUP = 0 };

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

/* What beside the tokens goes into each block's hash: the LoRA's name, and the salt for
 * a request's first block. */
static void put_extra_keys(struct vt_buf *b, const struct vt_kv_stored *s)
{
    mp_put_str(b, "extra_keys");
    mp_put_array(b, s->n_hashes);
    for (uint32_t i = 0; i < s->n_hashes; i++) {
        bool salted = i == 0 && s->first && s->salt;
        uint32_t n = (s->lora ? 1U : 0U) + (salted ? 1U : 0U);

        if (n == 0)
            mp_put_nil(b);
        else
            mp_put_array(b, n);
        if (s->lora)
            mp_put_str(b, s->lora);
        if (salted)
            mp_put_str(b, s->salt);
    }
}

void vt_kv_batch_stored(struct vt_kv_batch *b, const struct vt_kv_stored *s)
{
    bool session = b->session_ids && s->session;
    struct vt_buf *e = &b->events;

    mp_put_map(e, session ? 12 : 11);
    put_text(e, "type", "BlockStored");
    put_hashes(b, s->hash, s->n_hashes);
    mp_put_str(e, "parent_block_hash");
    if (s->parent)
        put_hash(b, s->parent);
    else
        mp_put_nil(e);
    mp_put_str(e, "token_ids");
    mp_put_array(e, s->n_hashes * s->block_size);
    for (uint32_t i = 0; i < s->n_hashes * s->block_size; i++)
        mp_put_u64(e, s->token[i]);
    mp_put_str(e, "block_size");
    mp_put_u64(e, s->block_size);
    mp_put_str(e, "lora_id");
    if (s->lora)
        mp_put_i64(e, s->lora_id);
    else
        mp_put_nil(e);
    put_text(e, "medium", MEDIUM);
    put_text(e, "lora_name", s->lora);
    put_extra_keys(e, s);
    mp_put_str(e, "group_idx");
    mp_put_u64(e, GROUP);
    put_text(e, "kv_cache_spec_kind", KIND);
    if (session)
        put_text(e, "session_id", s->session);
    b->n_events++;
}

void vt_kv_batch_removed(struct vt_kv_batch *b, const uint8_t *hash, uint32_t n_hashes)
{
    struct vt_buf *e = &b->events;

    mp_put_map(e, 4);
    put_text(e, "type", "BlockRemoved");
    put_hashes(b, hash, n_hashes);
    put_text(e, "medium", MEDIUM);
    mp_put_str(e, "group_idx");
    mp_put_u64(e, GROUP);
    b->n_events++;
}

void vt_kv_batch_cleared(struct vt_kv_batch *b)
{
    mp_put_map(&b->events, 1);
    put_text(&b->events, "type", "AllBlocksCleared");
    b->n_events++;
}

/* ---- a scheduler's events --------------------------------------------- */

static void collect_stored(struct vt_kv_batch *b, const struct vt_blocks *k,
                           const struct vt_kv_event *e, uint32_t n)
{
    uint32_t first = e[0].index * k->size, count = n * k->size;
    struct vt_buf gathered = {0};
    struct vt_kv_stored s = {
        .hash = k->chain.hash[e[0].index],
        .n_hashes = n,
        .parent = e[0].index > 0 ? k->chain.hash[e[0].index - 1] : NULL,
        .block_size = k->size,
        .lora = k->chain.lora,
        .salt = k->chain.salt,
        .session = k->session,
        .lora_id = k->lora_id,
        .first = e[0].index == 0,
    };

    if (k->prompt && first + count <= k->n_prompt) {
        s.token = k->prompt + first;
    } else {
        uint32_t *token =
            (uint32_t *)(void *)vt_buf_room(&gathered, count * sizeof(*token));

        for (uint32_t i = 0; token && i < count; i++)
            token[i] = vt_blocks_token(k, first + i);
        s.token = token;
    }
    if (s.token)
        vt_kv_batch_stored(b, &s);
    b->events.failed |= gathered.failed;
    vt_buf_free(&gathered);
}

void vt_kv_batch_collect(struct vt_kv_batch *b, struct vt_sched *s, vt_kv_find *find,
                         void *user)
{
    uint32_t n, len;
    const struct vt_kv_event *e = vt_sched_kv_events(s, &n);

    for (uint32_t i = 0; i < n; i += len) {
        const struct vt_blocks *k =
            e[i].kind == VT_KV_STORED ? find(user, e[i].tag) : NULL;

        len = 1; /* so many are told as one */
        while (i + len < n && e[i].kind == VT_KV_STORED &&
               e[i + len].kind == VT_KV_STORED && e[i + len].joins)
            len++;
        if (k && k->chain.n >= e[i].index + len) {
            collect_stored(b, k, e + i, len);
        } else if (e[i].kind == VT_KV_REMOVED) {
            /* Of a block that goes only the key is known: the end of its hash, which is
             * all that is told. */
            uint8_t hash[VT_HASH_BYTES] = {0};

            for (uint32_t j = 0; j < 8; j++)
                hash[VT_HASH_BYTES - 1 - j] = (uint8_t)(e[i].key >> (8 * j));
            vt_kv_batch_removed(b, hash, 1);
        } else if (e[i].kind == VT_KV_CLEARED) {
            vt_kv_batch_cleared(b);
        }
    }
    vt_sched_kv_events_clear(s);
}

/* encode.c - events as maps, in the form of vLLM 0.24 and later: keys in
 * msgspec's order, those with their default left out. */
#include "kvevents/encode.h"

#define MEDIUM "GPU"
#define KIND   "full_attention"

enum { GROUP = 0 };

static void put_hash(struct kv_batch *b, const uint8_t *hash)
{
    if (b->raw_hashes)
        mp_put_bin(&b->events, hash, VT_HASH_BYTES);
    else
        mp_put_u64(&b->events, vt_hash_short(hash));
}

static void put_hashes(struct kv_batch *b, const uint8_t *hash, uint32_t n)
{
    mp_put_str(&b->events, "block_hashes");
    mp_put_array(&b->events, n);
    for (uint32_t i = 0; i < n; i++)
        put_hash(b, hash + (size_t)i * VT_HASH_BYTES);
}

static void put_text(struct vt_buf *b, struct mp_span text)
{
    if (text.at)
        mp_put_strn(b, text.at, text.len);
    else
        mp_put_nil(b);
}

/* What beside the tokens goes into each block's hash: the LoRA's name, and the salt for
 * a request's first block. */
static void put_extra_keys(struct vt_buf *b, const struct kv_stored *s)
{
    mp_put_str(b, "extra_keys");
    mp_put_array(b, s->n_hashes);
    for (uint32_t i = 0; i < s->n_hashes; i++) {
        bool salted = i == 0 && s->first && s->cache_salt.at;
        uint32_t n = (s->lora_name.at ? 1U : 0U) + (salted ? 1U : 0U);

        if (n == 0)
            mp_put_nil(b);
        else
            mp_put_array(b, n);
        if (s->lora_name.at)
            put_text(b, s->lora_name);
        if (salted)
            put_text(b, s->cache_salt);
    }
}

static void put_tokens(struct vt_buf *b, const struct kv_stored *s)
{
    uint32_t n = s->n_hashes * s->block_size;

    mp_put_str(b, "token_ids");
    mp_put_array(b, n);
    for (uint32_t i = 0; i < n; i++)
        mp_put_u64(b, s->token[i]);
    mp_put_str(b, "block_size");
    mp_put_u64(b, s->block_size);
}

static void put_lora(struct vt_buf *b, const struct kv_stored *s)
{
    mp_put_str(b, "lora_id");
    if (s->lora_name.at)
        mp_put_i64(b, s->lora_id);
    else
        mp_put_nil(b);
    mp_put_str(b, "medium");
    mp_put_str(b, MEDIUM);
    mp_put_str(b, "lora_name");
    put_text(b, s->lora_name);
}

void kv_batch_stored(struct kv_batch *b, const struct kv_stored *s)
{
    bool session = b->session_ids && s->session_id.at;
    struct vt_buf *e = &b->events;

    mp_put_map(e, session ? 12 : 11);
    mp_put_str(e, "type");
    mp_put_str(e, "BlockStored");
    put_hashes(b, s->hash, s->n_hashes);
    mp_put_str(e, "parent_block_hash");
    if (s->parent)
        put_hash(b, s->parent);
    else
        mp_put_nil(e);
    put_tokens(e, s);
    put_lora(e, s);
    put_extra_keys(e, s);
    mp_put_str(e, "group_idx");
    mp_put_u64(e, GROUP);
    mp_put_str(e, "kv_cache_spec_kind");
    mp_put_str(e, KIND);
    if (session) {
        mp_put_str(e, "session_id");
        put_text(e, s->session_id);
    }
    b->n_events++;
}

void kv_batch_removed(struct kv_batch *b, const uint8_t *hash, uint32_t n_hashes)
{
    struct vt_buf *e = &b->events;

    mp_put_map(e, 4);
    mp_put_str(e, "type");
    mp_put_str(e, "BlockRemoved");
    put_hashes(b, hash, n_hashes);
    mp_put_str(e, "medium");
    mp_put_str(e, MEDIUM);
    mp_put_str(e, "group_idx");
    mp_put_u64(e, GROUP);
    b->n_events++;
}

void kv_batch_cleared(struct kv_batch *b)
{
    mp_put_map(&b->events, 1);
    mp_put_str(&b->events, "type");
    mp_put_str(&b->events, "AllBlocksCleared");
    b->n_events++;
}

void kv_batch_finish(struct kv_batch *b, struct vt_buf *out, double now_unix,
                     uint32_t dp_rank)
{
    mp_put_array(out, 3);
    mp_put_f64(out, now_unix);
    mp_put_array(out, b->n_events);
    vt_buf_add(out, b->events.data, b->events.len);
    mp_put_u64(out, dp_rank);
    out->failed |= b->events.failed;
    vt_buf_clear(&b->events);
    b->n_events = 0;
}

/* kv.c - keys of blocks whose tokens are known, and events about them. */
#include <string.h>

#include "http/serve/serve.h"

enum { MAX_BLOCK = 1024 }; /* tokens */

/* ---- keys ------------------------------------------------------------ */

/* The block's tokens: within the prompt where they lie, else gathered. */
static const uint32_t *block_tokens(const struct choice *c, uint32_t block,
                                    uint32_t room[MAX_BLOCK])
{
    uint32_t size = c->x->s->c->engine.block_size, first = block * size;

    if (first + size <= c->prompt->n)
        return c->prompt->id + first;
    for (uint32_t i = 0; i < size; i++) {
        uint32_t at = first + i;

        if (at < c->prompt->n)
            room[i] = c->prompt->id[at];
        else if (at - c->prompt->n < c->reply.n && c->reply.token != NULL)
            room[i] = c->reply.token[at - c->prompt->n];
        else
            room[i] = 0; /* made for nobody: computed ahead of a stop */
    }
    return room;
}

uint64_t serve_block_key(void *choice, uint32_t block, uint64_t parent)
{
    struct choice *c = choice;
    uint32_t room[MAX_BLOCK], size = c->x->s->c->engine.block_size;
    uint64_t key = parent != 0 ? parent : c->first_key;

    /* With events the key is what subscribers are told, or they could not tell which
     * block was evicted. Out of memory ends in a miss. */
    if (c->chain.none_hash == NULL)
        return vt_hash_bytes(block_tokens(c, block, room), sizeof(uint32_t) * size,
                             key);
    while (c->chain.n <= block)
        if (vt_chain_add(&c->chain, block_tokens(c, (uint32_t)c->chain.n, room), size,
                         0, NULL) != VT_OK)
            return vt_hash2(key, c->tag);
    return vt_hash_short(c->chain.hash[block]);
}

/* ---- events ---------------------------------------------------------- */

int serve_kv_open(struct server *s, struct vt_err *err)
{
    const struct vt_serve_config *c = s->c;
    int rc = VT_OK;

    if (c->engine.block_size > MAX_BLOCK)
        return vt_fail(err, VT_EINPUT, "KV events know blocks of at most %d tokens",
                       MAX_BLOCK);
    vt_hash_none(c->hash_seed != NULL ? c->hash_seed : "vllm-none-hash", s->none_hash);
    for (uint32_t i = 0; i < c->n_engines && rc == VT_OK; i++) {
        struct vt_kv_config k = {.endpoint = c->kv_endpoint,
                                 .replay_endpoint = c->kv_replay_endpoint,
                                 .topic = c->kv_topic,
                                 .dp_rank = i,
                                 .session_ids = s->api.line == API_LINE_032};

        rc = vt_kv_publisher_open(&s->rank[i].kv, &k, err);
    }
    return rc;
}

void serve_kv_close(struct server *s)
{
    for (uint32_t i = 0; s->rank != NULL && i < s->c->n_engines; i++)
        vt_kv_publisher_close(s->rank[i].kv);
}

static void tell_stored(struct server *s, struct rank *r, const struct vt_kv_event *e,
                        uint32_t n)
{
    struct choice *c = choice_table_find(&s->table, e[0].tag);
    uint32_t size = s->c->engine.block_size, room[MAX_BLOCK];
    struct vt_kv_stored k = {.n_hashes = n, .block_size = size};

    if (c == NULL || c->chain.n < e[0].index + n) /* aborted in this very pass */
        return;
    vt_buf_clear(&s->tokens);
    for (uint32_t i = 0; i < n; i++)
        vt_buf_add(&s->tokens, block_tokens(c, e[0].index + i, room),
                   sizeof(uint32_t) * size);
    if (s->tokens.failed)
        return;
    k.token = (const uint32_t *)(const void *)s->tokens.data;
    k.hash = c->chain.hash[e[0].index];
    k.parent = e[0].index > 0 ? c->chain.hash[e[0].index - 1] : NULL;
    k.lora = c->chain.lora;
    k.lora_id = k.lora != NULL ? 1 : 0;
    k.salt = c->chain.salt;
    k.session = c->x->r.session;
    vt_kv_stored(r->kv, &k);
}

/* Of a block that goes only the key is known: the end of its hash, which is all that is
 * told. */
static void tell_removed(struct rank *r, const struct vt_kv_event *e)
{
    uint8_t hash[VT_HASH_BYTES] = {0};

    for (uint32_t i = 0; i < 8; i++)
        hash[VT_HASH_BYTES - 1 - i] = (uint8_t)(e->key >> (8 * i));
    vt_kv_removed(r->kv, hash, 1);
}

int serve_kv(struct server *s, struct rank *r, struct vt_err *err)
{
    struct vt_sched *q = vt_engine_sched(r->core);
    uint32_t n, len;
    const struct vt_kv_event *e = vt_sched_kv_events(q, &n);

    for (uint32_t i = 0; i < n; i += len) {
        len = vt_kv_event_run(e + i, n - i);
        if (e[i].kind == VT_KV_STORED)
            tell_stored(s, r, e + i, len);
        else if (e[i].kind == VT_KV_REMOVED)
            tell_removed(r, e + i);
        else
            vt_kv_cleared(r->kv);
    }
    vt_sched_kv_events_clear(q);
    return n > 0 ? vt_kv_flush(r->kv, vt_unix_s(), err) : VT_OK;
}

void serve_kv_replay(struct server *s)
{
    for (uint32_t i = 0; i < s->c->n_engines; i++)
        if (s->rank[i].kv != NULL)
            (void)vt_kv_replay(s->rank[i].kv);
}

/* kv.c - keys of blocks whose tokens are known, and events about them. */
#include <string.h>

#include "http/serve/serve.h"

/* Equal for requests that may share blocks. */
static uint64_t first_key(const struct api_request *r, const char *lora_path)
{
    uint64_t h = 1;

    if (r->lora)
        h = vt_hash_bytes(r->model, strlen(r->model), h);
    if (lora_path)
        h = vt_hash2(vt_hash_bytes(lora_path, strlen(lora_path), h), 3);
    if (r->cache_salt)
        h = vt_hash2(vt_hash_bytes(r->cache_salt, strlen(r->cache_salt), h), 2);
    return h;
}

static uint32_t output_token(const void *choice, uint32_t index)
{
    const struct reply *r = &((const struct choice *)choice)->reply;

    /* What is beyond its end is made for nobody: computed ahead of a stop. */
    return index < r->n && r->token ? r->token[index] : 0;
}

void serve_blocks(struct choice *c)
{
    struct server *s = c->x->s;
    struct api_request *r = &c->x->r;
    const struct vt_engine_config *e = &s->c->engine;
    const char *lora_path =
        r->lora ? models_path(&s->models, r->model, &r->arena) : NULL;

    c->blocks = (struct vt_blocks){
        .size = vt_hash_block_size(e),
        .prompt = c->prompt->id,
        .n_prompt = c->prompt->n,
        .output = output_token,
        .request = c,
        .first_key = first_key(r, lora_path),
        .chain =
            {
                .none_hash =
                    s->c->kv.on && e->enable_prefix_caching ? s->none_hash : NULL,
                .vllm = e->vllm,
                .lora = r->lora ? r->model : NULL,
                .lora_path = lora_path,
                .salt = r->cache_salt,
            },
        .session = r->session,
        .lora_id = r->lora,
    };
}

/* ---- events ---------------------------------------------------------- */

int serve_kv_open(struct server *s, struct vt_err *err)
{
    const struct vt_serve_config *c = s->c;
    int rc = VT_OK;

    vt_none_hash(c->engine.vllm, c->kv.hash_seed, s->none_hash);
    for (uint32_t i = 0; i < c->n_engines && rc == VT_OK; i++) {
        struct vt_kv_config k = {.wanted = c->kv, .dp_rank = i, .vllm = c->engine.vllm};

        rc = vt_kv_publisher_open(&s->rank[i].kv, NULL, &k, err);
    }
    return rc;
}

void serve_kv_close(struct server *s)
{
    for (uint32_t i = 0; s->rank && i < s->c->n_engines; i++)
        vt_kv_publisher_close(s->rank[i].kv);
}

static const struct vt_blocks *blocks_of(void *server, uint64_t tag)
{
    const struct server *s = server;
    const struct choice *c = vt_driver_find(s->driver, tag);

    return c ? &c->blocks : NULL; /* one aborted in this very pass is gone */
}

int serve_kv_publish(struct server *s, struct rank *r, struct vt_err *err)
{
    vt_kv_batch_collect(vt_kv_publisher_batch(r->kv), &s->c->engine,
                        vt_engine_sched(r->core), blocks_of, s);
    return vt_kv_publisher_flush(r->kv, vt_unix_s(), err);
}

void serve_kv_replay(struct server *s)
{
    for (uint32_t i = 0; i < s->c->n_engines; i++)
        if (s->rank[i].kv)
            (void)vt_kv_publisher_replay(s->rank[i].kv);
}

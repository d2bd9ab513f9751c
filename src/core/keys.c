/* keys.c - what a router asks of an engine's cache: the keys of a prompt's blocks, and
 * how many of them are there. */
#include "core/rules.h"

struct vt_keys {
    struct content content;
    uint32_t block_size;
};

int vt_keys_new(struct vt_keys **out, uint32_t block_size, struct vt_err *err)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return vt_nomem(err);
    (*out)->block_size = block_size;
    return VT_OK;
}

void vt_keys_free(struct vt_keys *k)
{
    if (!k)
        return;
    content_free(&k->content);
    free(k);
}

const uint64_t *vt_keys_of(struct vt_keys *k, const struct vt_request *r, uint32_t *n)
{
    static const uint64_t none;
    uint64_t key;

    *n = r->prompt_tokens / k->block_size;
    if (content_init(&k->content, r, NULL) != VT_OK)
        return NULL;
    if (*n == 0)
        return &none;
    return content_key(&k->content, *n - 1, k->block_size, &key) ? k->content.key
                                                                 : NULL;
}

uint32_t vt_engine_cached_blocks(const struct vt_engine *e, const uint64_t *key,
                                 uint32_t n)
{
    const struct pool *p = engine_pool(e);
    uint32_t group, units = vt_engine_key_units(e, &group), i = 0;

    while (p->caching && i + units <= n &&
           pool_lookup(p, key[i + units - 1], group) != 0)
        i += units;
    return i;
}

uint32_t vt_engine_blocks_of(const struct vt_engine *e, uint64_t key)
{
    const struct pool *p = engine_pool(e);
    uint32_t group, first, n;

    (void)vt_engine_key_units(e, &group);
    first = p->caching ? pool_lookup(p, key, group) : 0;
    n = first != 0;

    if (first != 0)
        for (uint32_t b = p->block[first].same_next; b != first;
             b = p->block[b].same_next)
            n++;
    return n;
}

const struct vt_kv_event *vt_engine_kv_events(const struct vt_engine *e, uint32_t *n)
{
    const struct pool *p = engine_pool(e);

    *n = (uint32_t)p->n_events;
    return p->event;
}

void vt_engine_kv_events_clear(struct vt_engine *e)
{
    engine_pool(e)->n_events = 0;
}

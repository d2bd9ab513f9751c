#include "core/kv/kv.h"

int content_init(struct content *c, const struct vt_request *r, struct vt_err *err)
{
    size_t n = 0;

    if (vt_grow(&c->seg, &c->cap_seg, (size_t)r->n_segments + 1, sizeof(*c->seg),
                err) != VT_OK)
        return VT_ENOMEM;
    for (uint32_t i = 0; i < r->n_segments; i++)
        if (r->segment[i].tokens > 0)
            c->seg[n++] = r->segment[i];
    c->seg[n] = (struct vt_segment){r->output_content, 0, UINT32_MAX};
    c->n_seg = n + 1;
    c->n_keys = 0;
    c->at_seg = 0;
    c->at_token = 0;
    c->salt = r->lora > 0 ? vt_hash2(r->salt, r->lora) : r->salt;
    c->block_key = r->block_key;
    c->tokens = r->tokens;
    return VT_OK;
}

void content_free(struct content *c)
{
    free(c->seg);
    free(c->key);
    memset(c, 0, sizeof(*c));
}

static uint64_t next_key(struct content *c, uint32_t block_size)
{
    uint64_t key = c->n_keys > 0 ? c->key[c->n_keys - 1] : vt_hash2(c->salt, 1);
    uint32_t left = block_size;

    while (left > 0) {
        const struct vt_segment *s = &c->seg[c->at_seg];
        uint32_t take = s->tokens - c->at_token;

        if (take > left)
            take = left;
        key = vt_hash2(vt_hash2(key, s->content),
                       ((uint64_t)(s->offset + c->at_token) << 32) | take);
        left -= take;
        c->at_token += take;
        if (c->at_token == s->tokens && c->at_seg + 1 < c->n_seg) {
            c->at_seg++;
            c->at_token = 0;
        }
    }
    return key;
}

bool content_key(struct content *c, uint32_t j, uint32_t block_size, uint64_t *key)
{
    for (; c->n_keys <= j; c->n_keys++) {
        uint64_t parent = c->n_keys > 0 ? c->key[c->n_keys - 1] : 0, next;

        if (c->n_keys == c->cap_keys && vt_grow(&c->key, &c->cap_keys, c->n_keys + 1,
                                                sizeof(*c->key), NULL) != VT_OK)
            return false;
        next = c->block_key ? c->block_key(c->tokens, (uint32_t)c->n_keys, parent)
                            : next_key(c, block_size);
        c->key[c->n_keys] = next != 0 ? next : 1; /* 0 means no content */
    }
    *key = c->key[j];
    return true;
}

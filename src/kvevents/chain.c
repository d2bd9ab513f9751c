/* chain.c - hashes of a request's blocks, as vLLM chains them. */
#include <stdlib.h>
#include <string.h>

#include "kvevents/kvevents.h"

/* What is hashed beside the tokens; nothing where `extra` stays empty. */
static void put_extra(const struct vt_chain *c, uint64_t mark, struct vt_buf *extra)
{
    bool salted = c->n == 0 && c->salt != NULL;

    if (c->lora == NULL && !salted && mark == 0)
        return;
    vt_cbor_array(extra, (uint32_t)(c->lora != NULL) + (mark != 0) + salted);
    if (c->lora != NULL) {
        if (c->tagged) {
            vt_cbor_array(extra, 2);
            vt_cbor_text(extra, "lora", 4);
        }
        vt_cbor_text(extra, c->lora, strlen(c->lora));
    }
    if (mark != 0)
        vt_cbor_text(extra, (const char *)&mark, sizeof(mark));
    if (salted)
        vt_cbor_text(extra, c->salt, strlen(c->salt));
}

int vt_chain_add(struct vt_chain *c, const uint32_t *token, uint32_t n_tokens,
                 uint64_t mark, struct vt_err *err)
{
    struct vt_buf extra = {0}, scratch = {0};
    struct vt_block_text t = {.token = token, .n_tokens = n_tokens};
    int rc = vt_grow(&c->hash, &c->cap, c->n + 1, sizeof(*c->hash), err);

    put_extra(c, mark, &extra);
    if (extra.len > 0) {
        t.extra = extra.data;
        t.extra_len = extra.len;
    }
    if (rc == VT_OK && extra.failed)
        rc = vt_nomem(err);
    if (rc == VT_OK) {
        t.parent = c->n > 0 ? c->hash[c->n - 1] : c->none_hash;
        rc = vt_hash_block(&t, &scratch, c->hash[c->n], err);
    }
    if (rc == VT_OK)
        c->n++;
    vt_buf_free(&extra);
    vt_buf_free(&scratch);
    return rc;
}

void vt_chain_free(struct vt_chain *c)
{
    free(c->hash);
    *c = (struct vt_chain){0};
}

uint32_t vt_kv_event_run(const struct vt_kv_event *e, uint32_t n)
{
    uint32_t len = 1;

    while (len < n && e[0].kind == VT_KV_STORED && e[len].kind == VT_KV_STORED &&
           e[len].joins)
        len++;
    return len;
}

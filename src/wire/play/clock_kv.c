/* clock_kv.c - collects block events of a pass, with the tokens that they stand for,
 * before the requests that know them go. */
#include <string.h>

#include "wire/play/blocks.h"
#include "wire/play/clock.h"

void blocks_free(struct play_blocks *b)
{
    if (b == NULL)
        return;
    vt_arena_free(&b->arena);
    free(b);
}

static const char *keep(struct play_blocks *b, const char *text)
{
    return text != NULL ? vt_arena_copy(&b->arena, text, strlen(text)) : NULL;
}

static bool fill_stored(struct play_blocks *b, struct blocks_event *v,
                        const struct play_request *q, const struct vt_kv_event *e)
{
    uint32_t size = q->block_size, first = e[0].index * size;

    v->token = vt_arena_alloc(&b->arena, sizeof(uint32_t) * size * v->n_hashes);
    if (v->token == NULL)
        return false;
    for (uint32_t i = 0; i < size * v->n_hashes; i++)
        v->token[i] = play_request_token(q, first + i);
    v->has_parent = e[0].index > 0;
    if (v->has_parent)
        memcpy(v->parent, q->chain.hash[e[0].index - 1], VT_HASH_BYTES);
    memcpy(v->hash, q->chain.hash[e[0].index], (size_t)v->n_hashes * VT_HASH_BYTES);
    v->lora = keep(b, q->chain.lora);
    v->lora_id = q->lora_id;
    v->salt = e[0].index == 0 ? keep(b, q->chain.salt) : NULL;
    v->session = keep(b, q->session);
    return true;
}

static bool add_event(struct play_clock *k, struct play_blocks *b,
                      const struct vt_kv_event *e, uint32_t n)
{
    struct blocks_event *v = &b->event[b->n];
    const struct play_request *q = NULL;

    *v = (struct blocks_event){.kind = (enum vt_kv_kind)e[0].kind, .n_hashes = n};
    if (v->kind == VT_KV_STORED) {
        q = table_tagged(&k->table, e[0].tag);
        if (q == NULL) /* it was aborted in this very pass */
            return true;
    }
    v->hash = vt_arena_alloc(&b->arena, (size_t)n * VT_HASH_BYTES);
    if (v->hash == NULL)
        return false;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k8 = 0; k8 < 8; k8++)
            v->hash[i][VT_HASH_BYTES - 1 - k8] = (uint8_t)(e[i].key >> (8 * k8));
    if (q != NULL && !fill_stored(b, v, q, e))
        return false;
    b->n++;
    return true;
}

int clock_kv(struct play_clock *k, struct rank *r, struct vt_err *err)
{
    struct vt_sched *s = vt_engine_sched(r->core);
    struct play_blocks *b;
    struct note *note;
    uint32_t n, len;
    const struct vt_kv_event *e = vt_sched_kv_events(s, &n);
    bool ok = true;

    if (n == 0)
        return VT_OK;
    b = calloc(1, sizeof(*b));
    if (b == NULL)
        return vt_nomem(err);
    b->unix_s = vt_unix_s();
    b->event = vt_arena_alloc(&b->arena, sizeof(*b->event) * n);
    ok = b->event != NULL;
    for (uint32_t i = 0; ok && i < n; i += len) {
        len = vt_kv_event_run(e + i, n - i);
        ok = add_event(k, b, e + i, len);
    }
    vt_sched_kv_events_clear(s);
    note = ok ? note_new(NOTE_KV, (uint32_t)(r - k->rank)) : NULL;
    if (note == NULL) {
        blocks_free(b);
        return vt_nomem(err);
    }
    note->blocks = b;
    play_to_intake(k->p, note);
    return VT_OK;
}

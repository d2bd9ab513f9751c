/* events.c - KV-cache events with the hashes that vLLM gives its blocks. */
#include "sim/oracle/replay.h"

static void put_stored_rest(struct replay *r, uint32_t i, uint32_t first, uint32_t n)
{
    uint32_t bs = r->c->config.block_size;
    struct vt_buf *b = &r->mine;

    vt_buf_str(b, ",\"token_ids\":[");
    for (uint32_t k = first * bs; k < (first + n) * bs; k++) {
        put_comma(b, k > first * bs);
        vt_buf_u64(b, oracle_token(r->c, i, k));
    }
    vt_buf_printf(b,
                  "],\"block_size\":%u,\"lora_id\":null,\"medium\":\"GPU\","
                  "\"lora_name\":null,\"extra_keys\":[",
                  bs);
    for (uint32_t k = first; k < first + n; k++) {
        const char *salt = k == 0 ? r->c->req[i].salt : NULL;

        put_comma(b, k > first);
        if (!salt) {
            vt_buf_str(b, "null");
            continue;
        }
        vt_buf_char(b, '[');
        vt_buf_json_str(b, salt, strlen(salt));
        vt_buf_char(b, ']');
    }
    vt_buf_str(b, "],\"group_idx\":0,\"kv_cache_spec_kind\":\"full_attention\","
                  "\"kv_cache_spec_sliding_window\":null,\"locality\":null,"
                  "\"type\":\"BlockStored\"}");
}

/* One message for n blocks that were stored together. */
static int put_stored(struct replay *r, const struct vt_kv_event *e, uint32_t n,
                      struct vt_err *err)
{
    uint32_t i = (uint32_t)e->tag;
    uint64_t hash = 0;
    int rc = VT_OK;

    vt_buf_str(&r->mine, "{\"block_hashes\":[");
    for (uint32_t k = 0; k < n && rc == VT_OK; k++) {
        rc = oracle_block_hash(r->c, i, e[k].index, &hash, err);
        if (rc == VT_OK)
            rc = vt_grow(&r->hashes, &r->cap_hashes, r->n_hashes + 1,
                         sizeof(*r->hashes), err);
        if (rc == VT_OK)
            r->hashes[r->n_hashes++] = (struct known_hash){e[k].key, hash};
        put_comma(&r->mine, k > 0);
        vt_buf_u64(&r->mine, hash);
    }
    vt_buf_str(&r->mine, "],\"parent_block_hash\":");
    if (rc == VT_OK && e->index > 0) {
        rc = oracle_block_hash(r->c, i, e->index - 1, &hash, err);
        vt_buf_u64(&r->mine, hash);
    } else {
        vt_buf_str(&r->mine, "null");
    }
    put_stored_rest(r, i, e->index, n);
    return rc;
}

static void put_removed(struct replay *r, uint64_t key)
{
    size_t i = r->n_hashes;

    while (i > 0 && r->hashes[i - 1].key != key)
        i--;
    vt_buf_printf(&r->mine,
                  "{\"block_hashes\":[%llu],\"medium\":\"GPU\",\"group_idx\":0,"
                  "\"locality\":null,\"type\":\"BlockRemoved\"}",
                  (unsigned long long)(i > 0 ? r->hashes[i - 1].hash : 0));
}

/* The next recorded event, as a one-field map so that same() can compare it. */
static int same_event(struct replay *r, struct vt_err *err)
{
    const struct vt_node *list = r->c->kv_events, *e;
    struct vt_node cell, rec = {.kind = VT_MAP, .n = 1, .u = {.item = &cell}};

    if (r->next_event >= list->n)
        return vt_fail(err, VT_ECHECK,
                       "%s: step %u: field 'kv_events' differs: got %.120s, "
                       "recorded no more",
                       r->c->name, r->step, r->mine.data);
    e = &list->u.item[r->next_event++];
    if (e->kind != VT_LIST || e->n != 2 || e->u.item[0].kind != VT_INT)
        return vt_fail(err, VT_EINPUT, "line %u: not a [step, event] pair", e->line);
    if (e->u.item[0].u.integer != r->step)
        return vt_fail(
            err, VT_ECHECK,
            "%s: step %u: field 'kv_events' differs: got %.120s, recorded at "
            "step %lld",
            r->c->name, r->step, r->mine.data, (long long)e->u.item[0].u.integer);
    cell = e->u.item[1];
    cell.key = "kv_events";
    return same(r, &rec, "kv_events", "null", err);
}

int replay_events(struct replay *r, struct vt_err *err)
{
    uint32_t n, i = 0, k;
    const struct vt_kv_event *e = vt_sched_kv_events(r->s, &n);
    int rc = VT_OK;

    for (; i < n && rc == VT_OK && r->c->kv_events; i += k) {
        for (k = 1; i + k < n && e[i + k].joins; k++)
            ;
        if (e[i].kind == VT_KV_STORED)
            rc = put_stored(r, &e[i], k, err);
        else if (e[i].kind == VT_KV_REMOVED)
            put_removed(r, e[i].key);
        else
            vt_buf_str(&r->mine, "{\"type\":\"AllBlocksCleared\"}");
        if (rc == VT_OK)
            rc = same_event(r, err);
    }
    vt_sched_kv_events_clear(r->s);
    return rc;
}

int replay_events_seen(struct replay *r, struct vt_err *err)
{
    if (!r->c->kv_events || r->next_event == r->c->kv_events->n)
        return VT_OK;
    return vt_fail(err, VT_ECHECK,
                   "%s: step %u: field 'kv_events' differs: got %u events, "
                   "recorded %u",
                   r->c->name, r->step, r->next_event, r->c->kv_events->n);
}
